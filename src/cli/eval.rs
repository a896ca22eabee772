//! `eval`: executes labelled requests, and says how many were executed as labelled.

use std::io::{self, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use proscenium::Builder;
use proscenium::config::{Config, LoadedConfig};
use proscenium::eval::{
    self, EvalComparison, EvalError, EvalOptions, EvalReport, EvalSet, Evaluation, RealHttpTool,
    SpendingLimits,
};

use super::engine;
use super::eval_args::EvalArgs;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::signals::Signals;
use super::text::{clean, count, one_line};

/// Maximum number of requests of a comparison that are named.
const MAX_CHANGED: usize = 50;

/// Executes the labelled requests of the files, and writes the reports.
pub async fn run<W: Write, E: Write>(
    args: EvalArgs,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
    errors: &mut Output<E>,
) -> Result<Exit, Failure> {
    let earlier = args.against.as_deref().map(earlier_report).transpose()?;
    let prepared = read(&args).and_then(|sets| prepare(sets, &args, loaded));
    let evaluation = match prepared {
        Ok(evaluation) => evaluation,
        Err(EvalError::Files(faults)) => {
            for fault in &faults {
                writeln!(errors, "{}", clean(&fault.to_string()))?;
            }
            return Ok(Exit::Usage);
        }
        Err(error) => return Err(failure(error, Exit::Usage)),
    };
    announce(errors, &evaluation, &args, loaded)?;
    refuse_writes(evaluation.real_http_tools(), args.allow_http_writes)?;
    for file in [&args.json, &args.junit].into_iter().flatten() {
        check_writable(file)?;
    }
    let report = execute(&evaluation, &args).await?;
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&report).map_err(io::Error::from)?;
        write_file(file, &text)?;
    }
    if let Some(file) = &args.junit {
        write_file(file, &eval::junit(&report))?;
    }
    write!(out, "{}", clean(&eval::report_text(&report, args.failures)))?;
    let comparison = earlier.map(|earlier| EvalComparison::of(&earlier, &report));
    if let Some(comparison) = &comparison {
        write!(out, "\n{}", clean(&eval::comparison_text(comparison, MAX_CHANGED)))?;
    }
    let missed: Vec<String> = args.require.iter().filter_map(|required| required.missed(&report)).collect();
    for missed in &missed {
        writeln!(out, "NOT MET: {missed}")?;
    }
    out.flush()?;
    let is_decided = comparison.is_some() || !args.require.is_empty();
    let is_kept = missed.is_empty() && !comparison.is_some_and(|comparison| comparison.is_regression());
    let is_whole = report.left_out == 0 && report.ended_early.is_none();
    let is_done = is_whole && if is_decided { is_kept } else { report.is_right() };
    Ok(if is_done { Exit::Completed } else { Exit::Failed })
}

/// The labelled requests of the files, or those of them that are named.
fn read(args: &EvalArgs) -> Result<Vec<EvalSet>, EvalError> {
    let mut sets = eval::read_files(&args.files).map_err(EvalError::Files)?;
    if args.only.is_empty() {
        return Ok(sets);
    }
    let is_known = |id: &&String| sets.iter().flat_map(EvalSet::requests).any(|request| request.id == **id);
    if let Some(unknown) = args.only.iter().find(|id| !is_known(id)) {
        return Err(EvalError::Other {
            code: "eval.unknown_request".to_owned(),
            message: format!("no file has a request {unknown:?}"),
            remedy: "give the `id` of a request; scenarios of several turns have ids such as talk/2"
                .to_owned(),
        });
    }
    for set in &mut sets {
        set.conversations
            .retain(|conversation| conversation.turns.iter().any(|turn| args.only.contains(&turn.id)));
    }
    sets.retain(|set| !set.conversations.is_empty());
    Ok(sets)
}

fn prepare(
    sets: Vec<EvalSet>,
    args: &EvalArgs,
    loaded: &LoadedConfig,
) -> Result<Evaluation<impl Fn(Config) -> Builder>, EvalError> {
    let mut loaded = loaded.clone();
    if args.rules {
        loaded.config.llm.models.clear();
        loaded.config.llm.purposes.clear();
        loaded.config.llm.slow_ms.clear();
    }
    let options = EvalOptions {
        repeat: args.repeat.into(),
        concurrency: args.concurrency.into(),
        limits: SpendingLimits { cost_usd: args.max_cost, model_calls: args.max_calls },
    };
    Evaluation::prepare(sets, &loaded.config, options, engine::builder_of)
}

/// Says what is about to be executed, and what is called for real.
fn announce<B: Fn(Config) -> Builder>(
    errors: &mut impl Write,
    evaluation: &Evaluation<B>,
    args: &EvalArgs,
    loaded: &LoadedConfig,
) -> io::Result<()> {
    let models: Vec<&str> = loaded.config.llm.models.iter().map(|model| model.name.as_str()).collect();
    let models = match args.rules || models.is_empty() {
        true => "the offline model".to_owned(),
        false => one_line(&models.join(", ")),
    };
    let times = if args.repeat == 1 { "once".to_owned() } else { format!("{} times", args.repeat) };
    writeln!(errors, "{}, each {times}, with {models}", count(evaluation.count(), "request"))?;
    for RealHttpTool { scene, tool, writes, address } in evaluation.real_http_tools() {
        let what = if *writes { "writes" } else { "reads" };
        writeln!(
            errors,
            "called for real: {} ({what}, {})",
            one_line(&format!("{scene}.{tool}")),
            one_line(address)
        )?;
    }
    let settings: Vec<&str> = loaded.config.scenes.settings.keys().map(String::as_str).collect();
    if !settings.is_empty() {
        writeln!(
            errors,
            "with the configured settings of {}: what these name is used for real",
            settings.join(", ")
        )?;
    }
    errors.flush()
}

fn refuse_writes(tools: &[RealHttpTool], is_allowed: bool) -> Result<(), Failure> {
    let writing: Vec<String> =
        tools.iter().filter(|tool| tool.writes).map(|tool| format!("{}.{}", tool.scene, tool.tool)).collect();
    if is_allowed || writing.is_empty() {
        return Ok(());
    }
    let message =
        format!("HTTP tools that write would be called for real: {}", one_line(&writing.join(", ")));
    let remedy = "add a replies.json to the folder of the scene, or give --allow-http-writes";
    Err(Failure::usage("eval.http_writes", message).help(remedy))
}

/// Executes all requests, with a bar on a terminal. After a signal no further one begins; another one ends it.
async fn execute<B: Fn(Config) -> Builder>(
    evaluation: &Evaluation<B>,
    args: &EvalArgs,
) -> Result<EvalReport, Failure> {
    let executions = evaluation.count() * usize::from(args.repeat);
    // Hidden where standard error is no terminal.
    let bar = ProgressBar::new(executions as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} {elapsed}") {
        bar.set_style(style);
    }
    let mut signals = Signals::listen()
        .map_err(|error| Failure::new("eval.signals", format!("cannot listen for Ctrl-C: {error}")))?;
    let done = |requests: usize| bar.inc(requests as u64);
    let mut running = std::pin::pin!(evaluation.run(&done));
    let mut is_stopped = false;
    let executed = loop {
        tokio::select! {
            executed = &mut running => break executed.map_err(|error| failure(error, Exit::Failed)),
            signal = signals.next() => {
                if is_stopped {
                    let message = format!("stopped by {signal}: there is no report");
                    break Err(Failure::new("eval.interrupted", message));
                }
                is_stopped = true;
                evaluation.stop();
                bar.println("No further request begins; those in progress are awaited. Again: stop at once");
            }
        }
    };
    bar.finish_and_clear();
    executed
}

fn failure(error: EvalError, exit: Exit) -> Failure {
    match error {
        EvalError::Other { code, message, remedy } => {
            let remedy = Some(remedy).filter(|remedy| !remedy.is_empty());
            Failure { code, message, remedy, exit }
        }
        EvalError::Files(_) => Failure { exit: Exit::Usage, ..Failure::new(error.code(), error.to_string()) },
    }
}

fn earlier_report(file: &Path) -> Result<EvalReport, Failure> {
    let failed = |why: String| {
        let message = format!("{} cannot be compared with: {why}", file.display());
        Failure::usage("eval.against", message).help("name a file that `eval --json` wrote")
    };
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    EvalReport::parse(&text).map_err(failed)
}

/// Whether a report can be written, before anything is spent on it.
fn check_writable(file: &Path) -> Result<(), Failure> {
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
    opened.map(drop).map_err(|error| unwritable(file, &error))
}

fn write_file(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::usage("eval.output", format!("{} cannot be written: {error}", file.display()))
}
