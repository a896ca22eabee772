//! Starts the log on standard error.

use std::io::{self, IsTerminal};

use proscenium::config::{LogFormat, TelemetryConfig};
use proscenium::telemetry::{LineFormat, LogLayer};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::args::CliCommand;
use super::failure::Failure;
use super::log_queue::LogQueue;
use super::progress::LogWriter;

/// Maximum length of a panic's own words, in characters.
const MAX_PANIC_CHARS: usize = 200;

/// The output of a command on standard error beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedOutput {
    /// Nothing: the log is all there is.
    Server,
    /// Progress, with each failure of a model or a tool.
    Progress,
    /// No progress.
    Plain,
    /// No progress, and no warning is wanted.
    Quiet,
}

impl LoggedOutput {
    /// Returns what this command writes.
    pub fn of(command: &CliCommand) -> Self {
        match command {
            CliCommand::Serve(_) | CliCommand::SimulateLlm(_) => LoggedOutput::Server,
            CliCommand::Chat(chat) if chat.quiet => LoggedOutput::Quiet,
            CliCommand::Chat(chat) if chat.json => LoggedOutput::Plain,
            CliCommand::Chat(_) | CliCommand::Plans(_) | CliCommand::Approvals(_) => LoggedOutput::Progress,
            _ => LoggedOutput::Plain,
        }
    }

    /// The filter, in place of the default one.
    fn filter(self, default: &str) -> String {
        match self {
            LoggedOutput::Server => default.to_owned(),
            LoggedOutput::Progress => format!("{default},proscenium::runs=off,proscenium::llm::gateway=off"),
            LoggedOutput::Plain => format!("{default},proscenium::runs=off"),
            LoggedOutput::Quiet => "error,proscenium::runs=off".to_owned(),
        }
    }
}

/// Starts the log of a command other than a server's. Unless the configuration asks for log lines, it leaves out what the
/// command shows itself on the same stream.
pub fn start(config: &TelemetryConfig, beside: LoggedOutput) -> Result<(), Failure> {
    let mut telemetry = config.clone();
    if telemetry.log == TelemetryConfig::default().log {
        telemetry.log = beside.filter(&telemetry.log);
    }
    start_with(&telemetry, || LogWriter)
}

/// Starts the log of a server, whose lines are queued.
pub fn start_queued(config: &TelemetryConfig) -> Result<LogQueue, Failure> {
    let queue = LogQueue::start().map_err(|error| not_started(&error))?;
    let writer = queue.clone();
    start_with(config, move || writer.clone())?;
    Ok(queue)
}

/// Starts the log of a server whose configuration has faults, perhaps in the filter of the log.
pub fn start_for_faults(config: &TelemetryConfig) -> Result<LogQueue, Failure> {
    let mut telemetry = config.clone();
    if telemetry.filter().is_err() {
        telemetry.log = TelemetryConfig::default().log;
    }
    start_queued(&telemetry)
}

fn start_with<W>(telemetry: &TelemetryConfig, writer: W) -> Result<(), Failure>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = telemetry.filter().map_err(|error| {
        Failure::usage("config.value", format!("`telemetry.log` is not a valid filter: {error}"))
    })?;
    let format = match telemetry.log_format {
        LogFormat::Text => LineFormat::Text { has_colors: io::stderr().is_terminal() },
        LogFormat::Json => LineFormat::Json,
    };
    let started = tracing_subscriber::registry().with(filter).with(LogLayer::new(format, writer)).try_init();
    started.map_err(|error| not_started(&error))?;
    if format == LineFormat::Json {
        log_panics();
    }
    Ok(())
}

fn not_started(error: &dyn std::fmt::Display) -> Failure {
    Failure::new("log.start", format!("the log cannot be written: {error}"))
}

/// Panics are log lines, with the ids of what the thread was working on, in place of Rust's own text.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text =
            text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason");
        let text: String = text.chars().take(MAX_PANIC_CHARS).collect();
        let location = panic.location().map(tracing::field::display);
        let thread = std::thread::current();
        let backtrace = std::backtrace::Backtrace::capture();
        let has_trace = backtrace.status() == std::backtrace::BacktraceStatus::Captured;
        let backtrace = has_trace.then(|| tracing::field::display(&backtrace));
        tracing::error!(
            target: "proscenium::panic",
            code = "server.panic", thread = thread.name(), location, backtrace,
            "a thread panicked: {text}"
        );
    }));
}
