//! `approvals`: lists and decides approvals.

use std::io::Write;
use std::time::Duration;

use jiff::tz::TimeZone;
use proscenium::ApprovalDocument;
use proscenium::config::LoadedConfig;
use proscenium::planner::CommandAction;
use proscenium::run::ApprovalId;
use proscenium::store::{About, ApprovalState};

use super::assistant::{CommandTarget, CommandWithNote};
use super::failure::{Exit, Failure};
use super::output::{self, Output};
use super::plans::RunRequest;
use super::plans_args::{Approvals, ApprovalsCommand};
use super::stored_runs::{self, StoredRuns};
use super::table::TableLayout;
use super::text::one_line;
use super::{pending_questions, show, table};

/// Runs the command.
pub async fn run<W: Write, E: Write>(
    approvals: Approvals,
    loaded: LoadedConfig,
    out: &mut Output<W>,
    errors: &mut Output<E>,
) -> Result<Exit, Failure> {
    let zone = loaded.config.execution.zone().unwrap_or(TimeZone::UTC);
    let expires = loaded.config.approval.expires();
    let what = approvals.what.unwrap_or(ApprovalsCommand::List { all: false, limit: 50, json: false });
    if matches!(what, ApprovalsCommand::Decide { .. }) {
        stored_runs::only_reads(approvals.tenant.as_ref())?;
    }
    let stored = stored_runs::open_of(&loaded, approvals.tenant).await?;
    match what {
        ApprovalsCommand::List { all, limit, json } => {
            list(out, &stored, all, limit, json, &zone, expires).await?;
            Ok(Exit::Completed)
        }
        ApprovalsCommand::Show { id, json } => {
            let id = stored.approval_named(&id).await?.id;
            one(out, &stored, id, json, &zone, expires).await?;
            Ok(Exit::Completed)
        }
        ApprovalsCommand::Decide { id, decision, arguments, hash, note, json } => {
            let Some(choice) = decision.choice(arguments) else {
                return Err(Failure::usage("usage.arguments", "--arguments go with yes only"));
            };
            let row = stored.approval_named(&id).await?;
            let id = row.id;
            let hash = decides(errors, &stored, id, hash, json).await?;
            let change = RunRequest {
                of: CommandTarget { run: id.run, task: row.task },
                command: CommandWithNote {
                    action: CommandAction::Decide { approval: id.approval, choice, hash },
                    note,
                },
                as_user: approvals.user.is_some(),
                json,
            };
            let (_, exit) = change.execute(stored.clone(), loaded, out, errors).await?;
            if json {
                one(out, &stored, id, true, &zone, expires).await?;
            }
            Ok(exit)
        }
    }
}

/// Shows the approval that is about to be decided and returns its hash, unless the user gave one: so the decision
/// applies to exactly what is shown, even if it changes meanwhile.
async fn decides<E: Write>(
    errors: &mut Output<E>,
    stored: &StoredRuns,
    id: ApprovalId,
    seen: Option<String>,
    json: bool,
) -> Result<Option<String>, Failure> {
    let (_, state) = stored.run(id.run).await?;
    let Some(put) = state.approvals.get(&id.approval).filter(|put| put.is_open()) else { return Ok(seen) };
    if !json {
        writeln!(errors, "Decides {id}:")?;
        pending_questions::describe(errors, &state, put, None)?;
        errors.flush()?;
    }
    let shown = put.needed.hash.clone();
    Ok(seen.or_else(|| Some(shown).filter(|hash| !hash.is_empty())))
}

async fn list<W: Write>(
    out: &mut Output<W>,
    stored: &StoredRuns,
    all: bool,
    limit: u32,
    json: bool,
    zone: &TimeZone,
    expires: Option<Duration>,
) -> Result<(), Failure> {
    let rows = stored.approvals(all, limit).await?;
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        let (journal, state) = stored.run(row.id.run).await?;
        entries.push((row, journal, state));
    }
    if json {
        let documents = entries
            .iter()
            .filter_map(|(row, journal, state)| ApprovalDocument::new(journal, state, row.id, expires));
        output::document(out, &documents.collect::<Vec<_>>(), false)?;
        return Ok(());
    }
    if entries.is_empty() {
        let what = if all { "There are no approvals yet." } else { "No approval is pending." };
        writeln!(out, "{what}")?;
        return Ok(out.flush()?);
    }
    let head = ["APPROVAL", "WHEN", "STATE", "ABOUT", "ASKED BY", "WHAT"].map(str::to_owned);
    let body = entries.iter().map(|(row, _, state)| {
        let put = state.approvals.get(&row.id.approval);
        [
            row.id.to_string(),
            table::time(row.created, zone),
            put.map_or("", |put| state_text(ApprovalState::from(put))).to_owned(),
            put.map_or("", |put| About::from(put.matter).name()).to_owned(),
            one_line(&row.user),
            put.map(|put| {
                let subject = pending_questions::subject_line(state, put.matter);
                format!("{subject}{}", pending_questions::changeable_names(put))
            })
            .unwrap_or_default(),
        ]
    });
    let layout = TableLayout { right: &[], optional: &[4, 2], ids: Some(0) };
    Ok(table::aligned(out, head, body, &layout, table::width())?)
}

/// The state of an approval in a list: one that is open is pending, as in all other texts.
fn state_text(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Open => "pending",
        other => other.name(),
    }
}

async fn one<W: Write>(
    out: &mut Output<W>,
    stored: &StoredRuns,
    id: ApprovalId,
    json: bool,
    zone: &TimeZone,
    expires: Option<Duration>,
) -> Result<(), Failure> {
    let row = stored.approval(id).await?;
    let (journal, state) = stored.run(id.run).await?;
    let Some(put) = state.approvals.get(&id.approval) else {
        return Err(Failure::new(
            "approval.unknown",
            format!("run {} has no approval {}", id.run, id.approval),
        ));
    };
    if json {
        return Ok(output::document(out, &ApprovalDocument::new(&journal, &state, id, expires), false)?);
    }
    writeln!(out, "Approval: {id}\nPlan: {}, of: {}", row.task, one_line(state.request()))?;
    if put.is_open() {
        pending_questions::write_one(out, &state, id, put, None)?;
    } else {
        show::approvals(out, &journal, &state, zone, Some(id.approval))?;
    }
    Ok(out.flush()?)
}
