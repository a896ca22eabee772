//! Who can be asked.

use std::future::Future;

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::{Error, ErrorKind};
use super::{Completion, Request, Sink};

/// A model that answers [`Request`]s: one attempt, no retries. The [`Gateway`](super::Gateway) calls it
/// on its own runtime, repeats it where that is safe, and drops the call when its control ends.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The configured name of the model.
    fn name(&self) -> &str;

    /// Asks once. The reply's `model` is [`name`](Self::name); where the other
    /// side did not say what it used, tokens are estimated ([`tokens`](super::tokens)) and money is the
    /// most that it can be ([`Price::unknown`](super::Price::unknown)). Pieces of the reply that come
    /// before its end are told to the control's sink; the gateway tells it the whole.
    async fn complete(&self, request: &Request, ctl: &CallControl) -> Result<Completion, Error>;
}

/// How long a call may go on.
#[derive(Debug, Clone)]
pub struct CallControl {
    /// Fires when nobody wants the reply any more.
    pub cancelled: CancellationToken,
    /// When the call is given up.
    pub deadline: Instant,
    /// Milliseconds from the beginning of the call to `deadline`, for messages.
    pub deadline_ms: u64,
    /// Where the reply goes while it comes.
    pub sink: Sink,
}

impl CallControl {
    /// A control that ends `deadline_ms` milliseconds from now, or when `cancelled` fires.
    pub fn new(cancelled: CancellationToken, deadline_ms: u64) -> Self {
        let deadline = Instant::now() + std::time::Duration::from_millis(deadline_ms);
        Self { cancelled, deadline, deadline_ms, sink: Sink::default() }
    }

    /// The same, telling `sink` what the reply says while it comes.
    #[must_use]
    pub fn telling(mut self, sink: Sink) -> Self {
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
