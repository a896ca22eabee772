//! Waiting for what another task or process does soon.

use std::time::{Duration, Instant};

/// Upper bound for everything that has to happen; a test that reaches it fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks until it is so. Panics, with `what`, if that never happens.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
