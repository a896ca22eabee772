//! Spans that give every log line beneath them the ids of what it is about.

use tracing::{Span, error_span};

use crate::run::{RunId, SessionId, TenantId};

/// The target of these spans. `TelemetryConfig::filter` enables it whatever is logged: a line of any module then has
/// the ids. Nothing is logged with it.
const TARGET: &str = "proscenium::context";

/// The context of a run. Made once a driver, whose task is instrumented with it.
pub(crate) fn run_context(run: RunId, session: &SessionId, tenant: &TenantId) -> Span {
    error_span!(target: TARGET, parent: None, "run", %run, %session, %tenant)
}

/// The context of a conversation's own work.
pub(crate) fn session_context(session: &SessionId, tenant: &TenantId) -> Span {
    error_span!(target: TARGET, parent: None, "session", %session, %tenant)
}
