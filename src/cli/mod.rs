//! The command line. Standard output carries the answer, or what a command lists or shows, or with `--json` one
//! document, and nothing else; progress, costs, open questions, errors and logs go to standard error.

mod address;
mod approvals;
mod arg_values;
mod args;
mod assistant;
mod audit;
mod backup;
mod backup_args;
mod caller;
mod changes;
mod chat;
mod check;
mod decide;
mod document_file;
mod documents;
mod engine;
mod eval;
mod eval_args;
mod explain;
mod facts;
mod failure;
mod flows;
mod follow;
mod followed_run;
mod ids;
mod invocation;
mod keys;
mod learned;
mod load;
mod log;
mod log_queue;
mod narrate;
mod open_files;
mod output;
mod pending_questions;
mod plans;
mod plans_args;
mod progress;
#[cfg(test)]
mod recorded;
mod remote;
mod replay;
mod serve;
mod server_notices;
mod settings;
mod show;
mod signals;
mod simulate;
mod stored_runs;
mod switches;
mod switches_args;
mod table;
mod text;
mod turns;
mod wrap;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use proscenium::config::{Config, ConfigFaults, ConfigFlags, LoadedConfig};
use proscenium::plan::{self, PlanStatus};
use proscenium::run::RequestOptions;
use proscenium::sandbox;

use args::{Cli, CliCommand, RunsCommand};
use assistant::Assistant;
use caller::ServerClient;
use chat::ChatRunner;
use check::{Finding, Level};
use failure::{Exit, Failure};
use follow::Show;
use log::LoggedOutput;
use output::Output;
use server_notices::ServerNotices;
use signals::Signals;
use turns::{InteractivePrompt, LineInput, Turns};

/// Runs the command line and returns the exit status.
pub fn main() -> ExitCode {
    // Before anything of this process begins.
    if std::env::args_os().nth(1).is_some_and(|command| command == sandbox::WORKER_COMMAND) {
        return sandbox::worker_main();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help, version and a closed output are not errors.
            let _ = show_usage(&error);
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    invocation::remember(&cli.global);
    // Not locked: the spinners' own threads draw on it, too.
    let mut out = Output::new(io::stdout()).wrapped(table::width);
    let mut errors = Output::new(io::stderr()).wrapped(table::stderr_width);
    let ended = actix::System::new().block_on(run(cli, &mut out, &mut errors));
    let exit = ended.unwrap_or_else(|failure| {
        // There is nowhere to report an error of standard error.
        let _ = failure.write(&mut errors);
        failure.exit
    });
    exit.into()
}

/// Shows help, the version, or what is wrong with a command line.
fn show_usage(error: &clap::Error) -> io::Result<()> {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand as MissingCommand};
    if !matches!(error.kind(), DisplayHelp | MissingCommand) {
        return error.print();
    }
    let is_colored =
        if error.use_stderr() { console::colors_enabled_stderr() } else { console::colors_enabled() };
    let text = error.render();
    let text = if is_colored { text.ansi().to_string() } else { text.to_string() };
    let text = wrap::help(&text, if error.use_stderr() { table::stderr_width() } else { table::width() });
    let mut to: Box<dyn Write> =
        if error.use_stderr() { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
    to.write_all(text.as_bytes())?;
    to.flush()
}

async fn run<W: Write, E: Write>(
    cli: Cli,
    out: &mut Output<W>,
    errors: &mut Output<E>,
) -> Result<Exit, Failure> {
    if let CliCommand::Check(args::Check { schema: true, .. }) = &cli.command {
        write!(out, "{}", proscenium::scene::FILE_SCHEMA)?;
        out.flush()?;
        return Ok(Exit::Completed);
    }
    let (loaded, faults) = read(&cli);
    if let CliCommand::Check(check) = &cli.command {
        return checked(loaded, faults, check.live, out).await;
    }
    let telemetry = &loaded.config.telemetry;
    let beside = LoggedOutput::of(&cli.command);
    let is_server = beside == LoggedOutput::Server;
    if !faults.0.is_empty() {
        if is_server {
            let notices = ServerNotices::new(log::start_for_faults(telemetry)?, telemetry.log_format);
            notices.faults(&faults);
            return Ok(notices.end(Ok(Exit::Usage)));
        }
        writeln!(errors, "{faults}")?;
        return Ok(Exit::Usage);
    }
    if is_server {
        let notices = ServerNotices::new(log::start_queued(telemetry)?, telemetry.log_format);
        log_warnings(&loaded);
        let ended = server(cli, loaded, out, &notices).await;
        return Ok(notices.end(ended));
    }
    log::start(telemetry, beside)?;
    log_warnings(&loaded);
    match cli.command.clone() {
        CliCommand::Chat(chat) => self::chat(chat, loaded, out, errors).await,
        CliCommand::Plan(plan) => self::plan(plan, loaded, out, errors).await,
        CliCommand::Runs(runs) => self::runs(runs, loaded, out).await,
        CliCommand::Plans(plans) => self::plans::run(plans, loaded, out, errors).await,
        CliCommand::Approvals(approvals) => self::approvals::run(approvals, loaded, out, errors).await,
        CliCommand::Explain(explain) => self::explain::run(explain, &loaded, out).await,
        CliCommand::Facts(facts) => self::facts::run(facts, loaded, out).await,
        CliCommand::Eval(eval) => self::eval::run(eval, &loaded, out, errors).await,
        CliCommand::Replay(replay) => self::replay::run(replay, &loaded, out).await,
        CliCommand::Audit(audit) => self::audit::run(audit.what, &loaded, out).await,
        CliCommand::Backup(backup) => self::backup::backup(backup, &loaded, out).await,
        CliCommand::Restore(restore) => self::backup::restore(restore, &loaded, out).await,
        CliCommand::Tools(tools) => self::switches::tools(tools.what, &loaded, out).await,
        CliCommand::Models(models) => self::switches::models(models.what, &loaded, out).await,
        CliCommand::Tenants(tenants) => self::switches::tenants(tenants.what, &loaded, out).await,
        CliCommand::Flows(flows) => self::flows(flows, loaded, out, errors).await,
        CliCommand::Documents(documents) => self::documents::run(documents, &loaded, out).await,
        CliCommand::Load(load) => self::load::run(*load, out).await,
        CliCommand::Learned(learned) => self::learned::run(learned, &loaded, out).await,
        CliCommand::Keys(keys) => self::keys::run(keys.what, &loaded, out, errors).await,
        // Executed above.
        CliCommand::Check(_) | CliCommand::Serve(_) | CliCommand::SimulateLlm(_) => Ok(Exit::Completed),
    }
}

/// Executes a command that serves until a signal stops it.
async fn server<W: Write>(
    cli: Cli,
    loaded: LoadedConfig,
    out: &mut Output<W>,
    notices: &ServerNotices,
) -> Result<Exit, Failure> {
    match cli.command.clone() {
        CliCommand::SimulateLlm(simulate) => self::simulate::run(simulate, out, notices).await,
        _ => serve::serve(cli, loaded, out, notices).await,
    }
}

/// Logs what is probably unintended in a configuration.
fn log_warnings(loaded: &LoadedConfig) {
    for warning in &loaded.warnings {
        let (code, origin, message) = (warning.code, &warning.origin, &warning.message);
        match code {
            // These hold until the configuration changes. `check` reports them, so other commands need not warn.
            "config.price" | "config.clock" => tracing::info!(code, %origin, "{message}"),
            _ => tracing::warn!(code, %origin, "{message}"),
        }
    }
}

fn read(cli: &Cli) -> (LoadedConfig, ConfigFaults) {
    let user = match &cli.command {
        CliCommand::Chat(chat) => chat.user.clone(),
        CliCommand::Plans(plans) => plans.user.clone(),
        CliCommand::Approvals(approvals) => approvals.user.clone(),
        CliCommand::Documents(documents) => documents.user.clone(),
        CliCommand::Facts(facts) => facts.user.clone(),
        CliCommand::Tools(switches) | CliCommand::Models(switches) => switches.user.clone(),
        CliCommand::Tenants(tenants) => tenants.user.clone(),
        _ => None,
    };
    let addr = match &cli.command {
        CliCommand::Serve(serve) => serve.addr.clone(),
        _ => None,
    };
    let flags =
        ConfigFlags { scenes: cli.global.scenes.clone(), data_dir: cli.global.data_dir.clone(), user, addr };
    // The variables of this program are valid text.
    let env = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    // The API key for a server is not part of the configuration.
    let env = env.filter(|(name, _)| name != remote::KEY);
    // The environment's receiver of traces is for a server: a command that ends at once waits for none.
    let serves = matches!(cli.command, CliCommand::Serve(_) | CliCommand::Check(_));
    let is_receiver = |name: &str| name.starts_with("OTEL_") && name.ends_with("_ENDPOINT");
    let env = env.filter(move |(name, _)| serves || !is_receiver(name));
    Config::read(cli.global.config.as_deref(), env, flags)
}

/// What answers: an engine in this process, or the server that owns the data directory. `as_user` says that
/// the command line names the user.
async fn assistant(
    loaded: LoadedConfig,
    asking: args::Asking,
    as_user: bool,
) -> Result<Box<dyn Assistant>, Failure> {
    match engine::start(loaded.clone(), asking.clone()).await {
        Err(owned) if remote::is_owned(&owned) => {
            Ok(Box::new(ServerClient::new(&loaded, owned, asking, as_user).await?))
        }
        started => started,
    }
}

async fn chat<W: Write, E: Write>(
    chat: args::ChatArgs,
    loaded: LoadedConfig,
    out: &mut Output<W>,
    errors: &mut Output<E>,
) -> Result<Exit, Failure> {
    let typed = chat.message.is_none() && io::stdin().is_terminal();
    if typed && chat.json {
        return Err(Failure::usage("usage.json", "--json needs a message")
            .help("give the message on the command line, or pipe one a line"));
    }
    let show = Show::fitting(chat.json, chat.quiet, chat.message.is_some());
    let data_dir = loaded.config.store.data_dir.clone();
    let mut signals = listen("chat.signals")?;
    let options = RequestOptions {
        require_approval: chat.require_approval,
        dry_run: chat.dry_run,
        level: chat.limits.level,
        mode: chat.limits.mode,
        ..RequestOptions::default()
    };
    let asking = args::Asking {
        options,
        guidance: chat.guidance.clone(),
        flow: chat.flow.clone(),
        documents: chat.documents.clone(),
    };
    let assistant = assistant(loaded, asking, chat.user.is_some()).await?;
    let mut runner = ChatRunner { assistant: assistant.as_ref(), signals: &mut signals, show, out, errors };
    let exit = match &chat.message {
        Some(message) => {
            // Open questions are asked only if input and output are terminals.
            let asked = !chat.json && io::stdin().is_terminal() && io::stdout().is_terminal();
            let mut turns: Box<dyn Turns> = if asked {
                Box::new(InteractivePrompt::new(&data_dir)?)
            } else {
                Box::new(LineInput::of_stdin())
            };
            runner.once(message, chat.session, turns.as_mut()).await.map(|(exit, _)| exit)
        }
        None => {
            let mut turns: Box<dyn Turns> = if typed {
                Box::new(InteractivePrompt::new(&data_dir)?)
            } else {
                Box::new(LineInput::of_stdin())
            };
            runner.conversation(turns.as_mut(), chat.session).await
        }
    };
    let stopped = assistant.stop().await;
    let exit = exit?;
    stopped.map(|()| exit)
}

/// Listens for signals to stop; `code` is of the failure to do so.
fn listen(code: &str) -> Result<Signals, Failure> {
    Signals::listen().map_err(|error| Failure::new(code, format!("cannot listen for Ctrl-C: {error}")))
}

async fn plan<W: Write, E: Write>(
    plan: args::PlanArgs,
    loaded: LoadedConfig,
    out: &mut Output<W>,
    errors: &mut Output<E>,
) -> Result<Exit, Failure> {
    draft(&plan.message, args::Asking::default(), plan.json, loaded, (out, errors)).await
}

/// Makes a plan, and prints it with the paths through its flows.
async fn draft<W: Write, E: Write>(
    message: &str,
    asking: args::Asking,
    json: bool,
    loaded: LoadedConfig,
    (out, errors): (&mut Output<W>, &mut Output<E>),
) -> Result<Exit, Failure> {
    let mut signals = listen("plan.signals")?;
    let assistant = assistant(loaded, asking, false).await?;
    let draft = assistant.draft(message, &mut signals, errors).await;
    let stopped = assistant.stop().await;
    let draft = draft?;
    stopped?;
    if json {
        output::document(out, &draft, false)?;
    } else {
        let steps = std::collections::BTreeMap::new();
        let described = plan::text(&draft.plan, message, draft.task_id, PlanStatus::Draft, &steps);
        let usage = draft.usage;
        writeln!(out, "{}", text::clean(&described))?;
        for flow in &draft.flows {
            flows::write_path(out, flow)?;
        }
        writeln!(
            out,
            "{}",
            output::tokens(usage.calls, usage.input_tokens, usage.cached_input_tokens, usage.output_tokens)
        )?;
        out.flush()?;
    }
    Ok(Exit::Completed)
}

async fn flows<W: Write, E: Write>(
    flows: args::FlowsArgs,
    loaded: LoadedConfig,
    out: &mut Output<W>,
    errors: &mut Output<E>,
) -> Result<Exit, Failure> {
    match flows.what {
        args::FlowsCommand::Plan { name, message, current_state, json } => {
            let guidance = args::GuidanceArgs { current_state, ..args::GuidanceArgs::default() };
            let asking = args::Asking { flow: Some(name), guidance, ..args::Asking::default() };
            draft(&message, asking, json, loaded, (out, errors)).await
        }
        args::FlowsCommand::List { json } => self::flows::list(json, &loaded, out),
        args::FlowsCommand::Show { name, json } => self::flows::show(&name, json, &loaded, out).await,
    }
}

async fn runs<W: Write>(
    runs: args::Runs,
    loaded: LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let zone = loaded.config.execution.zone().unwrap_or(jiff::tz::TimeZone::UTC);
    let stored = stored_runs::open_of(&loaded, runs.tenant).await?;
    match runs.what.unwrap_or(RunsCommand::List { limit: 20, parked: false, json: false }) {
        RunsCommand::List { limit, parked, json } if parked || runs.parked => {
            let parked = stored.parked(limit).await?;
            if json || runs.json {
                output::document(out, &parked.iter().map(table::parked_json).collect::<Vec<_>>(), false)?;
            } else {
                table::parked(out, &parked, &zone, table::width())?;
                if parked.is_empty() {
                    table::of_tenant(out, stored.tenant())?;
                }
                table::other_waiting(out, &stored.other_waiting_tenants().await?)?;
            }
        }
        RunsCommand::List { limit, json, .. } => {
            let listed = stored.runs(limit).await?;
            if json || runs.json {
                output::document(out, &listed.iter().map(table::run_json).collect::<Vec<_>>(), false)?;
            } else {
                table::runs(out, &listed, &zone, table::width())?;
                if listed.is_empty() {
                    table::of_tenant(out, stored.tenant())?;
                }
            }
        }
        RunsCommand::Show { run, json, .. } if json || runs.json => {
            output::document(out, &stored.answer(stored.run_named(&run).await?).await?, false)?;
        }
        RunsCommand::Show { run, events, mermaid, .. } => {
            let (journal, state) = stored.run(stored.run_named(&run).await?).await?;
            show::run(out, &journal, &state, show::ShownParts { mermaid, events }, &zone)?;
        }
    }
    Ok(Exit::Completed)
}

/// Checks until a signal ends it. Nothing is changed, so there is no safe point to wait for.
async fn checked<W: Write>(
    loaded: LoadedConfig,
    faults: ConfigFaults,
    live: bool,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    if !live {
        return check(loaded, faults, live, out).await;
    }
    let mut signals = listen("check.signals")?;
    tokio::select! {
        checked = check(loaded, faults, live, out) => checked,
        name = signals.next() => Err(Failure::new("check.interrupted", format!("stopped by {name}"))),
    }
}

/// Scenes are checked even if the configuration has faults, so that everything is reported at once.
async fn check<W: Write>(
    loaded: LoadedConfig,
    faults: ConfigFaults,
    live: bool,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let mut findings: Vec<Finding> = faults.0.iter().map(|fault| Finding::of(fault, Level::Error)).collect();
    let sound = findings.is_empty();
    findings.extend(loaded.warnings.iter().map(|warning| Finding::of(warning, Level::Warning)));
    let (mut found, more) = engine::inspect(&loaded, live && sound).await;
    findings.extend(more);
    // A wrong path is not searched for elsewhere.
    if !faults.0.iter().any(|fault| fault.key.starts_with("store")) {
        match check::store(&loaded).await {
            Ok(store) => found.store = store,
            Err(finding) => findings.push(finding),
        }
        findings.extend(check::exposed(&loaded));
    }
    Ok(check::report(out, &findings, sound.then_some(&found))?)
}
