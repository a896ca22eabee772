//! When a backup is given up, and how far it is.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::super::error::{Error, ErrorCode};

/// How far a backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupProgress {
    /// Bytes that were copied.
    pub done: u64,
    /// Bytes in all, as far as known.
    pub total: u64,
}

/// Receives how far a backup is, on the thread that copies.
#[derive(Clone)]
pub struct ProgressSink(Arc<dyn Fn(BackupProgress) + Send + Sync>);

impl ProgressSink {
    /// A sink that calls `tell` with each progress.
    pub fn new(tell: impl Fn(BackupProgress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl Default for ProgressSink {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressSink")
    }
}

/// Watches over one copy.
#[derive(Debug)]
pub(super) struct CopyWatch {
    deadline: Option<(Instant, Duration)>,
    stop: CancellationToken,
    sink: ProgressSink,
    done: AtomicU64,
    total: AtomicU64,
}

impl CopyWatch {
    /// Without `timeout`, only `stop` ends it.
    pub(super) fn new(timeout: Option<Duration>, stop: CancellationToken, sink: ProgressSink) -> Self {
        let deadline = timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout)));
        Self { deadline, stop, sink, done: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    /// Returns whether it has to be given up.
    pub(super) fn must_end(&self) -> bool {
        self.stop.is_cancelled() || self.is_late()
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|(deadline, _)| Instant::now() >= deadline)
    }

    /// Fails once it has to be given up.
    ///
    /// # Errors
    /// `backup.interrupted`, `backup.timeout`.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.stop.is_cancelled() {
            let what = "interrupted; what was copied is removed";
            return Err(Error::new(ErrorCode::BackupInterrupted, what));
        }
        if self.is_late() {
            let allowed = self.deadline.map_or(0, |(_, timeout)| timeout.as_secs());
            let what = format!(
                "the backup took longer than {allowed} s: allow more with --timeout, or use a faster disk"
            );
            return Err(Error::new(ErrorCode::BackupTimeout, what));
        }
        Ok(())
    }

    /// Waits before another try.
    #[expect(clippy::disallowed_methods, reason = "on a thread for blocking work")]
    pub(super) fn pause(&self, time: Duration) {
        if !self.must_end() {
            std::thread::sleep(time);
        }
    }

    /// Sets how many bytes there are in all.
    pub(super) fn expect(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Tells that so many more bytes were copied.
    pub(super) fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let total = self.total.load(Ordering::Relaxed).max(done);
        (self.sink.0)(BackupProgress { done, total });
    }
}
