//! Spans and log lines of runs. They contain identifiers, outcomes and durations, never text of a user, a
//! model or a tool.

use tracing::field::Empty;
use tracing::{Span, debug, info, info_span, warn};

use crate::run::{RunId, SessionId, TenantId, Usage};

/// The target of all of them, for the filter `telemetry.log`.
const TARGET: &str = "proscenium::runs";

pub(super) fn run(run: RunId, session: &SessionId, tenant: &TenantId) -> Span {
    info_span!(target: TARGET, parent: None, "run", %run, %session, %tenant, outcome = Empty)
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

pub(super) fn tool_ended(
    span: &Span,
    scene: &str,
    tool: &str,
    outcome: &'static str,
    millis: u64,
    write: bool,
) {
    span.record("outcome", outcome);
    if write && outcome == "unknown" {
        warn!(target: TARGET, parent: span, scene, tool, outcome, millis, write, "the outcome of a write is unknown");
    } else {
        info!(target: TARGET, parent: span, scene, tool, outcome, millis, write, "tool call ended");
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
