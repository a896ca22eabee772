//! A gate that one side waits at until another opens it: how tests put things in order without a clock.

use std::sync::Arc;

use tokio::sync::watch;

/// Closed when made; once opened, it stays open. Clones are the same gate.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// A closed one.
    pub fn closed() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Lets everybody through.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it is open.
    pub async fn passed(&self) {
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}
