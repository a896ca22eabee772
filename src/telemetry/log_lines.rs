//! Spans and log lines of runs. They contain identifiers, outcomes and durations, never text of a user, a
//! model or a tool.

use std::cell::Cell;

use tracing::field::Empty;
use tracing::{Span, error_span, info_span};

use crate::adapt::PolicyChoice;
use crate::run::{Fault, RunId, SessionId, TenantId, Usage};

/// The target of all these lines, for the filter `telemetry.log`.
const TARGET: &str = "proscenium::runs";

thread_local! {
    /// Whether the events that are folded on this thread were logged before.
    static LOGGED_BEFORE: Cell<bool> = const { Cell::new(false) };
}

/// Folds events that were logged before: `fold` writes none of these lines. Its spans are real ones, since spans
/// of later events are their children: with a `Dispatch::none()` they would have an id that no other span may
/// refer to, and lines whose callsite is first reached here would be disabled for good.
pub(super) fn without_lines(fold: impl FnOnce()) {
    /// Resets the flag after a panic, too.
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            LOGGED_BEFORE.set(false);
        }
    }
    LOGGED_BEFORE.set(true);
    let _reset = Reset;
    fold();
}

macro_rules! debug {
    ($($line:tt)*) => { if !LOGGED_BEFORE.get() { tracing::debug!($($line)*) } };
}

macro_rules! info {
    ($($line:tt)*) => { if !LOGGED_BEFORE.get() { tracing::info!($($line)*) } };
}

macro_rules! warn {
    ($($line:tt)*) => { if !LOGGED_BEFORE.get() { tracing::warn!($($line)*) } };
}

pub(super) fn run(run: RunId, session: &SessionId, tenant: &TenantId) -> Span {
    // Enabled with every level, so that each line names its run.
    error_span!(target: TARGET, parent: None, "run", %run, %session, %tenant, outcome = Empty)
}

/// The inner span, or the outer one if the filter disables the inner one: a line with a disabled parent would
/// name no run.
pub(super) fn enabled<'a>(inner: &'a Span, outer: &'a Span) -> &'a Span {
    if inner.is_disabled() { outer } else { inner }
}

pub(super) fn step(run: &Span, step: u32, scene: &str) -> Span {
    info_span!(target: TARGET, parent: run, "step", step, scene, outcome = Empty)
}

pub(super) fn model(parent: &Span, call: u32, purpose: &'static str) -> Span {
    info_span!(target: TARGET, parent: parent, "model", call, purpose, outcome = Empty)
}

pub(super) fn tool(parent: &Span, call: u32, scene: &str, tool: &str, attempt: u32) -> Span {
    info_span!(target: TARGET, parent: parent, "tool", call, scene, tool, attempt, outcome = Empty)
}

pub(super) fn queued(span: &Span) {
    debug!(target: TARGET, parent: span, "request accepted");
}

pub(super) fn resumed(span: &Span, epoch: u32) {
    info!(target: TARGET, parent: span, epoch, "run taken over");
}

pub(super) fn planned(span: &Span, version: u32, kind: &str, steps: usize) {
    info!(target: TARGET, parent: span, version, kind, steps, "plan made");
}

pub(super) fn not_planned(span: &Span, version: u32, code: &str) {
    warn!(target: TARGET, parent: span, version, code, "no plan could be made");
}

pub(super) fn rejected(span: &Span, call: u32, problems: usize) {
    info!(target: TARGET, parent: span, call, problems, "a model's reply was rejected");
}

pub(super) fn model_ended(span: &Span, call: u32, purpose: &str, millis: u64, usage: Usage) {
    span.record("outcome", "ok");
    let Usage { input_tokens, output_tokens, cost_nano_usd, .. } = usage;
    debug!(target: TARGET, parent: span, call, purpose, millis, input_tokens, output_tokens, cost_nano_usd, "model replied");
}

pub(super) fn model_failed(span: &Span, call: u32, purpose: &str, millis: u64, code: &str) {
    span.record("outcome", code);
    warn!(target: TARGET, parent: span, call, purpose, millis, code, "no model replied");
}

pub(super) fn summary_failed(session: &SessionId, tenant: &TenantId, code: &str) {
    warn!(target: TARGET, parent: None, %session, %tenant, code, "no model could summarise the conversation");
}

/// The fields of the log line at the end of a tool call.
pub(super) struct ToolEndLine<'a> {
    pub(super) scene: &'a str,
    pub(super) tool: &'a str,
    pub(super) outcome: &'static str,
    /// Why the call was not successful.
    pub(super) error: Option<&'a Fault>,
    pub(super) millis: u64,
    pub(super) write: bool,
}

/// `run` is the parent if `span` is disabled.
pub(super) fn tool_ended(span: &Span, run: &Span, end: &ToolEndLine<'_>) {
    let &ToolEndLine { scene, tool, outcome, error, millis, write } = end;
    span.record("outcome", outcome);
    let span = enabled(span, run);
    let code = error.map(|error| error.code.as_str());
    let reason = error.map(failure_reason);
    if write && outcome == "unknown" {
        warn!(target: TARGET, parent: span, scene, tool, outcome, code, reason, millis, write, "the outcome of a write is unknown");
    } else if matches!(outcome, "failed" | "unknown") || code == Some("http.status") {
        warn!(target: TARGET, parent: span, scene, tool, outcome, code, reason, millis, write, "tool call failed");
    } else {
        info!(target: TARGET, parent: span, scene, tool, outcome, code, millis, write, "tool call ended");
    }
}

/// The fields of the log line about the reaction to a failed attempt.
pub(super) struct UnexpectedLine<'a> {
    pub(super) attempt: u32,
    pub(super) class: &'static str,
    pub(super) code: &'a str,
}

/// `run` is the parent if `span` is disabled.
pub(super) fn unexpected(
    span: &Span,
    run: &Span,
    (scene, tool): (&str, &str),
    chosen: PolicyChoice,
    line: &UnexpectedLine<'_>,
) {
    let span = enabled(span, run);
    let &UnexpectedLine { attempt, class, code } = line;
    match chosen {
        PolicyChoice::Retry { delay_ms } => {
            warn!(target: TARGET, parent: span, scene, tool, attempt, class, code, delay_ms, "a tool call is retried");
        }
        PolicyChoice::Alternative { .. } => {
            warn!(target: TARGET, parent: span, scene, tool, attempt, class, code, "another tool is called in its place");
        }
        PolicyChoice::Cached { .. } => {
            warn!(target: TARGET, parent: span, scene, tool, attempt, class, code, "its last good result is looked for");
        }
        PolicyChoice::Skip => {
            warn!(target: TARGET, parent: span, scene, tool, attempt, class, code, "an optional tool call is left out");
        }
        PolicyChoice::Fail => {
            info!(target: TARGET, parent: span, scene, tool, attempt, class, code, "a tool call is not retried");
        }
        PolicyChoice::Consult { consultation, .. } => {
            info!(target: TARGET, parent: span, scene, tool, attempt, class, code, consultation, "a model is asked about a failed tool call");
        }
    }
}

pub(super) fn step_unexpected(span: &Span, step: u32, class: &'static str, code: &str, chosen: PolicyChoice) {
    match chosen {
        PolicyChoice::Consult { consultation, .. } => {
            info!(target: TARGET, parent: span, step, class, code, consultation, "a model is asked what to change in the plan");
        }
        _ => {
            info!(target: TARGET, parent: span, step, class, code, "no model is asked what to change in the plan")
        }
    }
}

pub(super) fn no_progress(span: &Span, idle_steps: u32) {
    warn!(target: TARGET, parent: span, idle_steps, "steps in a row had no result: no more are begun");
}

/// The fields of the log line about the end of a consultation.
pub(super) struct ConsultationLine<'a> {
    pub(super) consultation: u32,
    pub(super) kind: &'static str,
    pub(super) how: &'static str,
    pub(super) chosen: Option<&'static str>,
    pub(super) refused: Option<&'static str>,
    pub(super) model: Option<&'a str>,
}

/// `run` is the parent if `span` is disabled.
pub(super) fn consulted(span: &Span, run: &Span, (scene, tool): (&str, &str), line: &ConsultationLine<'_>) {
    let span = enabled(span, run);
    let &ConsultationLine { consultation, kind, how, chosen, refused, model } = line;
    info!(target: TARGET, parent: span, scene, tool, consultation, kind, how, chosen, refused, model, "a consultation has ended");
}

/// Why a call failed, by its code: the fault's own message may quote what the back end or the user wrote.
fn failure_reason(error: &Fault) -> String {
    let reason = match error.code.as_str() {
        "http.status" => return status_reason(&error.message),
        "http.unreachable" => "the back end could not be reached",
        "http.connection_lost" => "the connection was lost after the request was sent",
        "http.timeout" | "tool.timeout" => "there was no reply in time",
        "http.unexpected_answer" => "the back end's answer has an unexpected form",
        "http.redirect" | "http.redirect_downgrade" | "http.too_many_redirects" => {
            "the back end redirected the request in a way that is not followed"
        }
        "http.private_address" | "http.port_not_allowed" => "the address is not allowed",
        "http.too_large" => "the answer is too large",
        "tool.panicked" | "executor.panicked" => "the tool panicked",
        "tool.cancelled" => "it was cancelled with its run",
        "tool.interrupted" => "the server ended while it was called",
        "scene.lost" => "the scene's actor failed during the call",
        "tool.breaker_open" => "the tool failed too often lately and is not called for a while",
        "tool.disabled" => "an operator has switched the tool off",
        "tool.changed" => "the tool has changed since the call was planned",
        "tool.postcondition" => "its result is not as its tool declares or its step expects",
        "scene.busy" => "too many calls of its scene are in progress",
        "python.error" => "the function raised an exception",
        "python.time" => "the function did not end in time",
        "python.memory" => "the function used too much memory",
        "python.calls" => "the function made too many calls, or read too much with them",
        "python.crashed" | "code.crashed" => "the interpreter failed",
        "python.result" => "the function returned something that is not as declared",
        "python.forbidden" => "the function used something that it has not declared",
        "python.conflict" | "staged.conflict" => "others changed the same rows meanwhile",
        "sandbox.busy" => "all workers of the sandbox execute other programs",
        "sandbox.unavailable" => "no worker of the sandbox can be started",
        "staged.commit_unknown" => "whether its changes were committed is unknown",
        "document.deleted" => "a document that it reads was deleted",
        _ => "as the tool reported; the run's events have its words",
    };
    reason.to_owned()
}

/// Only the status of the answer: its words are the back end's.
fn status_reason(message: &str) -> String {
    let status = message.split_once(" answered ").and_then(|(_, answer)| answer.get(..3));
    match status.and_then(|status| status.parse::<u16>().ok()) {
        Some(status) => format!("the back end answered with status {status}"),
        None => "the back end answered with an error status".to_owned(),
    }
}

pub(super) fn step_ended(span: &Span, step: u32, scene: &str, outcome: &'static str, seconds: Option<f64>) {
    span.record("outcome", outcome);
    info!(target: TARGET, parent: span, step, scene, outcome, seconds, "step ended");
}

pub(super) fn cancelling(span: &Span, deadline: bool) {
    info!(target: TARGET, parent: span, deadline, "run cancellation requested");
}

/// The fields of the log line at the end of a run.
pub(super) struct RunEndLine {
    pub(super) outcome: &'static str,
    pub(super) code: Option<String>,
    pub(super) seconds: f64,
    pub(super) overhead: Option<f64>,
    pub(super) usage: Usage,
}

pub(super) fn run_ended(span: &Span, end: &RunEndLine) {
    span.record("outcome", end.outcome);
    let RunEndLine { outcome, code, seconds, overhead, usage } = end;
    let Usage { calls, input_tokens, output_tokens, cost_nano_usd, .. } = usage;
    info!(target: TARGET, parent: span, outcome, code, seconds, overhead, calls, input_tokens, output_tokens, cost_nano_usd, "run ended");
}
