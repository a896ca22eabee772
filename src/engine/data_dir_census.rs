//! Background work for metrics: the disk usage of the data directory. It does not happen in scrapes, so that these need
//! not wait for a slow disk or for a sum over many documents.

use std::time::Duration;

use crate::store::{ErrorCode, Store};
use crate::telemetry::ServerMetrics;

/// Time between two passes.
const INTERVAL: Duration = Duration::from_secs(15);
/// The documents are summed in every fourth pass.
const LOOKS_PER_SUM: u64 = 4;

/// Measures the parts of the data directory from time to time.
pub(super) struct DataDirCensus {
    pub(super) store: Store,
    pub(super) metrics: ServerMetrics,
}

impl DataDirCensus {
    /// Measures at once and then every 15 seconds, until the store is closed. Passes do not overlap.
    pub(super) async fn run_forever(self) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for look in 0_u64.. {
            ticks.tick().await;
            let store = self.store.clone();
            if let Ok(disk) = tokio::task::spawn_blocking(move || store.disk_usage()).await {
                self.metrics.set_disk_usage(disk);
            }
            if !look.is_multiple_of(LOOKS_PER_SUM) {
                continue;
            }
            match self.store.documents().totals().await {
                Ok((count, bytes)) => self.metrics.set_document_totals(count, bytes),
                Err(error) if error.kind() == ErrorCode::Stopped => return,
                Err(error) => tracing::warn!(code = error.code(), %error, "the documents cannot be summed"),
            }
        }
    }
}
