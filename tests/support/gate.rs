//! A gate that one side waits at until another opens it: orders events in tests without a clock.

use std::sync::Arc;

use tokio::sync::watch;

/// Initially closed; once opened, it stays open. Clones share the gate.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// A closed gate.
    pub fn closed() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Releases all waiters.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it is open.
    pub async fn wait_open(&self) {
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}
