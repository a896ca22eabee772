//! The health of tools as earlier processes knew it, from the end of the journal.

use jiff::{SignedDuration, Timestamp};

use super::fold;
use crate::actors::tool_healths::{EndedCall, ToolHealths};
use crate::adapt::ToolBreakerConfig;
use crate::store::Store;

/// How far back runs are read: longer than the longest pause of a breaker.
const SINCE: SignedDuration = SignedDuration::from_mins(10);
/// Maximum number of runs that are read.
const MAX_RUNS: u32 = 200;

/// Restores the health of the tools in the background. Without it, tools would only be tried again.
pub(super) async fn restore_health(store: Store, health: ToolHealths, config: ToolBreakerConfig) {
    let since = Timestamp::now().checked_sub(SINCE).unwrap_or(Timestamp::UNIX_EPOCH);
    let rows = match store.runs_accepted_since(since, MAX_RUNS).await {
        Ok(rows) => rows,
        Err(error) => return tracing::debug!(code = error.code(), %error, "recent runs could not be read"),
    };
    let mut ended = Vec::new();
    for row in rows {
        // A run that cannot be read is reported by what resumes or lists it.
        if let Ok(journal) = store.run_events(&row.tenant, row.run).await {
            let state = fold(row.run, &journal);
            ended.extend(journal.iter().filter_map(|envelope| EndedCall::of(&state, envelope)));
        }
    }
    health.restore(ended, config);
}
