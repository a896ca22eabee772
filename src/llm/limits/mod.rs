//! Rate limits: requests and tokens a minute, and concurrent attempts, of each tenant and of each model.
//!
//! An attempt waits for its turn up to a bound and is then refused, with the time after which to retry. Tokens are
//! taken by estimate before it and corrected to the actual number after it.
//!
//! [`RateLimits`] is the interface for the gateway; the actor `RateLimiter` implements it over the [`Scheduler`], which
//! has the rules. Returning a permit is one-way: it can happen in a destructor.

mod bucket;
mod gate;
mod options;
mod scheduler;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::guards::GuardUnavailable;
use crate::run::TenantId;

pub use options::{Options, Rates};
pub(crate) use scheduler::{AttemptRequest, PermitGrant, Scheduler};

/// The limits of attempts at models. An implementation may be in another process, and reply later.
#[async_trait]
pub trait RateLimits: Send + Sync + std::fmt::Debug {
    /// Waits, up to the bound, until a call of `tenant` with about so many tokens may go to `model`. The waiting
    /// tenants of a model take turns.
    ///
    /// # Errors
    /// Which limit is reached, and when to retry; or that the limits cannot be asked.
    async fn enter(&self, tenant: &TenantId, model: &str, tokens: u64) -> Result<AttemptPermit, LimitError>;

    /// Attempts that were refused since the start.
    ///
    /// # Errors
    /// The limits cannot be asked.
    async fn stats(&self) -> Result<LimitStats, GuardUnavailable>;
}

/// Why an attempt got no permit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// A limit is reached.
    #[error("{0}")]
    Refused(Box<LimitRefusal>),
    /// The limits cannot be asked.
    #[error(transparent)]
    Unavailable(#[from] GuardUnavailable),
}

/// Why an attempt was not let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitRefusal {
    /// Whose limit: `tenant "acme"`, `model "main"`.
    pub of: String,
    /// The limit's key, such as `limits.tenant.tokens_per_minute`.
    pub key: String,
    /// Its value.
    pub limit: u32,
    /// What the attempt needs of it.
    pub needs: u64,
    /// When to retry; absent if the attempt can never pass.
    pub retry_after: Option<Duration>,
    /// Whether it is the model's limit, so that another model may serve.
    pub models: bool,
}

impl std::fmt::Display for LimitRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LimitRefusal { of, key, limit, needs, .. } = self;
        match self.retry_after {
            Some(after) => {
                let seconds = after.as_secs_f64().ceil();
                write!(
                    f,
                    "the limit of {of} is reached (`{key}` = {limit}, this call needs {needs}): try again in {seconds} s"
                )
            }
            None => write!(
                f,
                "it needs {needs}, and `{key}` = {limit} of {of} never lets so much pass: raise it, or lower \
                 `max_output_tokens` or the request's length"
            ),
        }
    }
}

/// Attempts that were refused since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitStats {
    /// By a limit of their tenant.
    pub tenant: u64,
    /// By a limit of their model.
    pub model: u64,
}

/// How an attempt ended, for the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermitUse {
    /// The model was not asked: everything is returned.
    Unused,
    /// The model was asked, and what it used is unknown: only the places are returned.
    Unknown,
    /// The model was asked and used so many tokens.
    Tokens(u64),
}

/// Where permits are returned. One-way: called in destructors.
pub trait PermitReturns: Send + Sync {
    /// The permit ended.
    fn give_back(&self, permit: u64, usage: PermitUse);
}

/// A granted attempt. If it is dropped before [`sent`](Self::sent), everything is returned; after that, only its
/// places.
pub struct AttemptPermit {
    /// Absent once it is returned, and if nothing is limited.
    returns: Option<Arc<dyn PermitReturns>>,
    id: u64,
    sent: bool,
}

impl AttemptPermit {
    /// The permit with this id, which is returned to `returns`.
    pub(crate) fn new(returns: Arc<dyn PermitReturns>, id: u64) -> Self {
        Self { returns: Some(returns), id, sent: false }
    }

    /// A permit if nothing is limited.
    pub(crate) fn unlimited() -> Self {
        Self { returns: None, id: 0, sent: false }
    }

    /// The model is asked from here on.
    pub fn sent(&mut self) {
        self.sent = true;
    }

    /// The attempt used so many tokens.
    pub fn settle(mut self, used: u64) {
        self.close(PermitUse::Tokens(used));
    }

    fn close(&mut self, usage: PermitUse) {
        if let Some(returns) = self.returns.take() {
            returns.give_back(self.id, usage);
        }
    }
}

impl Drop for AttemptPermit {
    fn drop(&mut self) {
        self.close(if self.sent { PermitUse::Unknown } else { PermitUse::Unused });
    }
}

impl std::fmt::Debug for AttemptPermit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttemptPermit")
            .field("id", &self.id)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}
