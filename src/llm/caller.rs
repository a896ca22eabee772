//! Who asks, for the gateway.

use super::cache::Mode;
use crate::run::{RunId, SessionId, TenantId};

/// For whom a model is asked: who pays, and in which conversation and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who pays. Cache, budgets and limits are kept apart by it.
    pub tenant: TenantId,
    /// The conversation.
    pub session: SessionId,
    /// The run; absent for what a conversation asks for itself, such as a summary.
    pub run: Option<RunId>,
    /// How this question uses the cache, where not as configured for its purpose.
    pub cache: Option<Mode>,
}
