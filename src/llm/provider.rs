//! The interface to a model.

use std::future::Future;

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::{Error, ErrorKind};
use super::{Completion, Request, Sink};
use crate::trace_context::TraceParent;

/// A model that answers [`Request`]s: one attempt, no retries. The [`Gateway`](super::Gateway) calls it
/// on its own runtime, retries it if that is safe, and drops the call when its control ends.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The configured name of the model.
    fn name(&self) -> &str;

    /// Makes one attempt. The reply's `model` is [`name`](Self::name). If the provider reports no usage, tokens
    /// are estimated ([`tokens`](super::tokens)) and the cost is the maximum possible
    /// ([`Price::unknown`](super::Price::unknown)). Chunks of the reply are passed to the control's sink as they
    /// arrive; the gateway passes the complete reply.
    async fn complete(&self, request: &Request, ctl: &CallControl) -> Result<Completion, Error>;
}

/// Cancellation, deadline, sink and place in a trace of a call.
#[derive(Debug, Clone)]
pub struct CallControl {
    /// Fires when the reply is no longer wanted.
    pub cancelled: CancellationToken,
    /// The deadline of the call.
    pub deadline: Instant,
    /// Milliseconds from the start of the call to `deadline`, for messages.
    pub deadline_ms: u64,
    /// Receives the reply as it arrives.
    pub sink: Sink,
    /// The span of this attempt, for the header `traceparent`.
    pub trace_parent: Option<TraceParent>,
    /// Whether another model is asked if the reply does not begin in time, so that its beginning has to be seen.
    pub is_awaited: bool,
}

impl CallControl {
    /// A control that ends `deadline_ms` milliseconds from now, or when `cancelled` fires.
    pub fn new(cancelled: CancellationToken, deadline_ms: u64) -> Self {
        let deadline = Instant::now() + std::time::Duration::from_millis(deadline_ms);
        Self {
            cancelled,
            deadline,
            deadline_ms,
            sink: Sink::default(),
            trace_parent: None,
            is_awaited: false,
        }
    }

    /// The same, streaming the reply to `sink`.
    #[must_use]
    pub fn with_sink(mut self, sink: Sink) -> Self {
        self.sink = sink;
        self
    }

    /// Waits for `work`, but no longer than this control allows.
    pub async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, ErrorKind> {
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => Err(ErrorKind::Cancelled),
            done = work => Ok(done),
            () = tokio::time::sleep_until(self.deadline) => Err(ErrorKind::Timeout { millis: self.deadline_ms }),
        }
    }
}
