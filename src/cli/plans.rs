//! `plans`: lists, shows and changes plans. Reads use the store directly, also while a server owns it. A change
//! is executed by the server that owns the data directory, or here if none does.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use proscenium::config::LoadedConfig;
use proscenium::plan::{self, Plan};
use proscenium::planner::{ApproverChoice, CommandAction};
use proscenium::run::{Envelope, Event, RunId, RunState, RunStatus};
use proscenium::store::{DataDir, ErrorCode, PlanRow, Store};
use proscenium::{PlanDocument, PlanSummary};
use serde_json::{Value, json};

use super::assistant::{CommandExecutor, CommandTarget, CommandWithNote};
use super::failure::{Exit, Failure};
use super::follow::{Show, follow, until_done};
use super::output::{self, Output};
use super::plans_args::{Plans, PlansCommand};
use super::remote::RemoteServer;
use super::signals::Signals;
use super::stored_runs::{self, StoredRuns};
use super::table::TableLayout;
use super::text::{clean, one_line};
use super::{address, engine, pending_questions, remote, show, table};

/// Longest plan that is read from a file, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Runs the command.
pub async fn run<W: Write, E: Write>(
    plans: Plans,
    loaded: LoadedConfig,
    out: &mut Output<W>,
    errors: &mut Output<E>,
) -> Result<Exit, Failure> {
    let zone = loaded.config.execution.zone().unwrap_or(TimeZone::UTC);
    let what = plans.what.unwrap_or(PlansCommand::List { status: None, limit: 20, json: false });
    if !matches!(what, PlansCommand::List { .. } | PlansCommand::Show { .. }) {
        stored_runs::only_reads(plans.tenant.as_ref())?;
    }
    let stored = stored_runs::open_of(&loaded, plans.tenant).await?;
    let (task, action, note, json) = match what {
        PlansCommand::List { status, limit, json } => {
            let rows = stored.plans(status, limit).await?;
            print_plans(out, &stored, rows, &zone, json).await?;
            return Ok(Exit::Completed);
        }
        PlansCommand::Show { task, json, mermaid } => {
            let row = stored.plan_named(&task).await?;
            show_plan(out, &stored, row.run, json, mermaid, &zone).await?;
            return Ok(Exit::Completed);
        }
        PlansCommand::Delete { task, json } => {
            let row = stored.plan_named(&task).await?;
            let task = row.task;
            delete(row, stored, plans.user.is_some(), &loaded).await?;
            if json {
                output::document(out, &json!({"task_id": task, "deleted": true}), false)?;
            } else {
                writeln!(out, "Plan {task} is deleted, with its run.")?;
                out.flush()?;
            }
            return Ok(Exit::Completed);
        }
        PlansCommand::Approve { task, version, hash, only, note, json } => {
            (task, CommandAction::Approve { version, hash, hold: only }, note, json)
        }
        PlansCommand::Modify { task, words, file, version, note, json } => {
            (task, modification(words, file, version)?, note, json)
        }
        PlansCommand::Cancel { task, note, json } => (task, CommandAction::Cancel, note, json),
        PlansCommand::Rate { task, score, note, json } => (task, CommandAction::Rate { score }, note, json),
        PlansCommand::Resume { task, json } => (task, CommandAction::Reopen, None, json),
    };
    let row = stored.plan_named(&task).await?;
    let change = RunRequest {
        of: CommandTarget { run: row.run, task: row.task },
        command: CommandWithNote { action, note },
        as_user: plans.user.is_some(),
        json,
    };
    let (state, exit) = change.execute(stored.clone(), loaded, out, errors).await?;
    if json {
        let (journal, state) = stored.run(state.run).await?;
        document(out, &stored, &journal, &state).await?;
    }
    Ok(exit)
}

async fn print_plans<W: Write>(
    out: &mut Output<W>,
    stored: &StoredRuns,
    rows: Vec<PlanRow>,
    zone: &TimeZone,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let rows: Vec<PlanSummary> = rows.into_iter().map(PlanSummary::from).collect();
        output::document(out, &rows, false)?;
        return Ok(());
    }
    let mut listed = Vec::with_capacity(rows.len());
    for row in rows {
        listed.push((stored.reported_plan_status(&row).await?, row));
    }
    list(out, &listed, zone, table::width())?;
    Ok(())
}

/// Prints one plan and what waits in it.
async fn show_plan<W: Write>(
    out: &mut Output<W>,
    stored: &StoredRuns,
    run: RunId,
    json: bool,
    mermaid: bool,
    zone: &TimeZone,
) -> Result<(), Failure> {
    let (journal, state) = stored.run(run).await?;
    if json {
        document(out, stored, &journal, &state).await?;
    } else if mermaid {
        chart(out, &state)?;
    } else {
        show::plan(out, &journal, &state, zone)?;
        // The plan in force was just shown.
        pending_questions::write_all(out, &state, state.plan().map(|made| made.version))?;
    }
    Ok(())
}

/// The change of a plan that the command line describes, in words or in a file.
fn modification(
    words: Option<String>,
    file: Option<PathBuf>,
    version: Option<u32>,
) -> Result<CommandAction, Failure> {
    match (words, file) {
        (Some(words), _) => Ok(CommandAction::Modify { words, version }),
        (None, Some(file)) => {
            let (plan, seen) = read(&file)?;
            Ok(CommandAction::Edit { plan, version: version.or(seen) })
        }
        (None, None) => Err(Failure::usage("plan.no_feedback", "say what is to change")),
    }
}

/// Prints the document of a run's plan.
async fn document<W: Write>(
    out: &mut Output<W>,
    stored: &StoredRuns,
    journal: &[Envelope<Event>],
    state: &RunState,
) -> Result<(), Failure> {
    let unknown = || stored_runs::unknown(state.run);
    let cost = stored.session_cost(&journal.first().ok_or_else(unknown)?.session).await?;
    let document = PlanDocument::new(journal, state, cost).ok_or_else(unknown)?;
    Ok(output::document(out, &document, false)?)
}

/// A command for a run, from the command line.
pub struct RunRequest {
    /// The run.
    pub of: CommandTarget,
    /// The action that is wanted.
    pub command: CommandWithNote,
    /// The command line names the user.
    pub as_user: bool,
    /// Events are not shown, only the document at the end.
    pub json: bool,
}

impl RunRequest {
    /// Executes the command, here or at the server that owns the data directory, and shows the result. Returns
    /// the run's new state and the exit status.
    ///
    /// # Errors
    /// Why it was refused or could not be executed.
    pub async fn execute<W: Write, E: Write>(
        self,
        stored: StoredRuns,
        loaded: LoadedConfig,
        out: &mut Output<W>,
        errors: &mut Output<E>,
    ) -> Result<(RunState, Exit), Failure> {
        let mut signals = Signals::listen()
            .map_err(|error| Failure::new("chat.signals", format!("cannot listen for Ctrl-C: {error}")))?;
        let data_dir = loaded.config.store.data_dir.clone();
        match engine::start(loaded, super::args::Asking::default()).await {
            Ok(assistant) => {
                let done = self.by(assistant.as_ref(), &mut signals, out, errors).await;
                let stopped = assistant.stop().await;
                let done = done?;
                stopped.map(|()| done)
            }
            Err(failure) if remote::is_owned(&failure) => {
                let url = address::find(&data_dir, failure)?.url;
                let server = RemoteServer::at(url, stored, self.as_user)?;
                self.by(&server, &mut signals, out, errors).await
            }
            Err(failure) => Err(failure),
        }
    }

    async fn by<O: CommandExecutor + ?Sized, W: Write, E: Write>(
        self,
        executor: &O,
        signals: &mut Signals,
        out: &mut Output<W>,
        errors: &mut Output<E>,
    ) -> Result<(RunState, Exit), Failure> {
        let Self { of, command, json, .. } = self;
        let action = command.action.clone();
        let show = Show::fitting(json, false, true);
        let mut stop = None;
        let ticket = until_done(executor.command(of, command), signals, &mut stop, errors).await?;
        let run = follow(ticket, signals, stop, show, errors).await?;
        let state = executor.state(of.run).await?;
        let changes = matches!(action, CommandAction::Modify { .. } | CommandAction::Edit { .. });
        if let Some(fault) = state.unmodified.as_ref().filter(|_| changes) {
            return Err(Failure::new("plan.not_modified", pending_questions::unmodified_text(fault))
                .help("say it in other words, or give a plan with --file"));
        }
        if !json {
            if matches!(action, CommandAction::Cancel) {
                writeln!(out, "Plan {} is {}.", of.task, state.plan_status.name())?;
                out.flush()?;
            }
            let rates = matches!(action, CommandAction::Rate { .. });
            if rates {
                writeln!(out, "Plan {} is rated.", of.task)?;
                out.flush()?;
            }
            if !changes && !rates {
                output::answer(out, errors, &run.answer, true)?;
            }
            pending_questions::write_all(errors, &state, run.shown_plan)?;
        }
        let exit = exit(&action, state.status);
        Ok((state, exit))
    }
}

/// The exit status of a command after which the run has this status.
fn exit(action: &CommandAction, status: RunStatus) -> Exit {
    let stops =
        matches!(action, CommandAction::Cancel | CommandAction::Decide { choice: ApproverChoice::No, .. });
    let reports_outcome = matches!(
        action,
        CommandAction::Decide { choice: ApproverChoice::Done | ApproverChoice::NotDone, .. }
    );
    match status {
        RunStatus::Cancelled if stops => Exit::Completed,
        _ if matches!(action, CommandAction::Rate { .. }) => Exit::Completed,
        status if status.is_terminal() && reports_outcome => Exit::Completed,
        RunStatus::Waiting if matches!(action, CommandAction::Approve { hold: true, .. }) => Exit::Completed,
        status => Exit::of(status),
    }
}

async fn delete(
    row: PlanRow,
    stored: StoredRuns,
    as_user: bool,
    loaded: &LoadedConfig,
) -> Result<(), Failure> {
    let task = row.task;
    let dir = &loaded.config.store.data_dir;
    let owned = match DataDir::open(dir) {
        Ok(owned) => owned,
        Err(error) if error.kind() == ErrorCode::InUse => {
            let server = RemoteServer::at(address::find(dir, error.into())?.url, stored, as_user)?;
            return server.delete(CommandTarget { run: row.run, task }).await;
        }
        Err(error) => return Err(error.into()),
    };
    let (_, state) = stored.run(row.run).await?;
    if !state.status.is_terminal() {
        let what = format!("plan {task} has not ended: its run is {}", state.status);
        return Err(
            Failure::new("plan.active", what).help(format!("`proscenium plans cancel {task}` ends it"))
        );
    }
    let store = Store::open(owned).await?;
    let erased = store.erase_run(&loaded.config.auth.default_tenant, row.run).await;
    store.close().await;
    match erased? {
        true => Ok(()),
        false => Err(stored_runs::unknown(row.run)),
    }
}

/// Reads a plan from a file: the plan itself, or a document with a field `plan`, whose `version` is the version
/// that was edited.
fn read(file: &Path) -> Result<(Plan, Option<u32>), Failure> {
    let shown = file.display();
    let cannot = |error: io::Error| Failure::usage("plan.file", format!("{shown} cannot be read: {error}"));
    let mut text = String::new();
    match file.to_str() {
        Some("-") => io::stdin().take(MAX_FILE_BYTES + 1).read_to_string(&mut text),
        _ => std::fs::File::open(file)
            .and_then(|opened| opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)),
    }
    .map_err(cannot)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(Failure::usage("plan.file", format!("{shown} has more than {MAX_FILE_BYTES} bytes")));
    }
    plan_in(&text).map_err(|why| {
        Failure::usage("plan.file", format!("{shown} holds no plan: {why}"))
            .help("`proscenium plans show TASK_ID --json` prints the plan as it is, under `plan`")
    })
}

fn plan_in(text: &str) -> Result<(Plan, Option<u32>), String> {
    let mut document =
        proscenium::long_integers::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    let seen = document.get("version").and_then(Value::as_u64).and_then(|seen| u32::try_from(seen).ok());
    let (plan, seen) = match document.get_mut("plan") {
        Some(plan) => (plan.take(), seen),
        None => (document, None),
    };
    let plan = serde_path_to_error::deserialize(plan).map_err(|error| error.to_string())?;
    // A document of a run whose plan is not made yet has version 0.
    Ok((plan, seen.filter(|seen| *seen > 0)))
}

/// Lists plans, each with its status as it is shown to people.
fn list(
    out: &mut impl Write,
    rows: &[(&'static str, PlanRow)],
    zone: &TimeZone,
    width: Option<usize>,
) -> io::Result<()> {
    if rows.is_empty() {
        writeln!(out, "There are no such plans.")?;
        return out.flush();
    }
    let head = ["TASK", "WHEN", "STATUS", "VERSION", "SESSION", "USER", "OBJECTIVE"].map(str::to_owned);
    let body = rows.iter().map(|(status, row)| {
        [
            row.task.to_string(),
            table::time(row.created, zone),
            (*status).to_owned(),
            row.version.to_string(),
            row.session.to_string(),
            one_line(&row.user),
            one_line(&row.objective),
        ]
    });
    // The session is left out first, because most plans have a session of their own.
    let layout = TableLayout { right: &[3], optional: &[4, 3, 5], ids: Some(0) };
    table::aligned(out, head, body, &layout, width)
}

fn chart(out: &mut impl Write, state: &RunState) -> Result<(), Failure> {
    let Some(plan) = state.plan_of_round() else {
        return Err(Failure::new("plan.not_made", "there is no plan yet"));
    };
    write!(out, "{}", clean(&plan::mermaid(&plan)))?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::super::recorded;
    use super::*;

    #[test]
    fn a_plan_is_read_alone_or_out_of_a_document() {
        let plan = r#"{"needs_execution": true, "steps": [{"step_number": 1, "scene_name": "Weather"}]}"#;
        let (alone, seen) = plan_in(plan).unwrap();
        assert_eq!((alone.steps[0].scene_name.as_str(), seen), ("Weather", None));
        let document = |version: &str| plan_in(&format!(r#"{{"task_id": "t"{version}, "plan": {plan}}}"#));
        assert_eq!(document("").unwrap(), (alone.clone(), None));
        assert_eq!(document(r#", "version": 2"#).unwrap(), (alone, Some(2)));
        let error = plan_in(r#"{"needs_execution": true, "steps": [{"step_number": "one"}]}"#).unwrap_err();
        assert!(error.contains("steps[0].step_number"), "{error}");
    }

    #[test]
    fn plans_are_listed_in_columns() {
        let row = |status, objective: &str| PlanRow {
            task: recorded::task_id(),
            run: recorded::run_id(),
            tenant: proscenium::run::TenantId::new("local").unwrap(),
            session: recorded::session(),
            user: "keysersoze".to_owned(),
            objective: objective.to_owned(),
            status,
            version: 2,
            created: "2026-05-04T07:00:00Z".parse().unwrap(),
            updated: "2026-05-04T07:00:01Z".parse().unwrap(),
        };
        let rows = [
            ("pending_approval", row(plan::PlanStatus::PendingApproval, "Three days\u{1b}[31m off")),
            ("needs_input", row(plan::PlanStatus::Failed, "休暇")),
        ];
        let mut out = Vec::new();
        list(&mut out, &rows, &TimeZone::get("Europe/Rome").unwrap(), None).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        TASK                                  WHEN                 STATUS            VERSION  SESSION  USER        OBJECTIVE
        01976c8e-0000-7000-8000-000000000002  2026-05-04 09:00:00  pending_approval        2  s-1      keysersoze  Three days[31m off
        01976c8e-0000-7000-8000-000000000002  2026-05-04 09:00:00  needs_input             2  s-1      keysersoze  休暇
        ");
        let mut out = Vec::new();
        list(&mut out, &[], &TimeZone::UTC, None).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "There are no such plans.\n");
    }

    #[test]
    fn exit_status_follows_from_the_command_and_the_status_of_its_run() {
        let decide = |choice| CommandAction::Decide { approval: 1, choice, hash: None };
        let approve = |hold| CommandAction::Approve { version: None, hash: None, hold };
        for (action, status, expected) in [
            (approve(false), RunStatus::Completed, Exit::Completed),
            (approve(false), RunStatus::Waiting, Exit::NeedsInput),
            (approve(true), RunStatus::Waiting, Exit::Completed),
            (CommandAction::Cancel, RunStatus::Cancelled, Exit::Completed),
            (decide(ApproverChoice::No), RunStatus::Cancelled, Exit::Completed),
            (decide(ApproverChoice::Yes), RunStatus::Cancelled, Exit::Failed),
            (decide(ApproverChoice::Done), RunStatus::Partial, Exit::Completed),
            (decide(ApproverChoice::Again), RunStatus::Partial, Exit::Failed),
            (CommandAction::Reopen, RunStatus::Partial, Exit::Failed),
        ] {
            assert_eq!(exit(&action, status), expected, "{action:?}, {status:?}");
        }
    }
}
