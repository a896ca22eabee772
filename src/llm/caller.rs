//! The caller of the gateway.

use super::cache::Mode;
use crate::run::{RunId, SessionId, TenantId};
use crate::trace_context::ModelCallTrace;

/// On whose behalf a model is called: tenant, conversation and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The tenant, which pays. Cache, budgets and limits are separate for each tenant.
    pub tenant: TenantId,
    /// The conversation.
    pub session: SessionId,
    /// The run; absent for calls of the conversation itself, such as a summary.
    pub run: Option<RunId>,
    /// Overrides the configured cache mode of its purpose.
    pub cache: Option<Mode>,
    /// The only model that is asked: its place, from 0, among those of the purpose. `None` for all in their order.
    pub voter: Option<usize>,
    /// The question's place in the trace of its run, if the run has one.
    pub trace: Option<ModelCallTrace>,
}
