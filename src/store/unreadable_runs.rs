//! Runs whose events are unreadable, with the reason, for lists.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::Store;
use super::error::Error;
use super::record::StreamId;
use crate::mutex::lock;
use crate::run::RunId;

/// Maximum number of remembered runs.
const MAX_UNREADABLE_RUNS: usize = 1000;

/// The error of the last failed read of each run.
#[derive(Debug, Default)]
pub(super) struct UnreadableRuns(Mutex<BTreeMap<RunId, String>>);

impl Store {
    /// Why a run's events could not be read at the last attempt; `None` if they could, or if they have not
    /// been read since the store was opened.
    pub fn unreadable_reason(&self, run: RunId) -> Option<String> {
        let known = lock(&self.inner.unreadable.0);
        known.get(&run).cloned()
    }

    /// Remembers the result of reading a stream.
    pub(super) fn note_read<T>(&self, stream: &StreamId, read: &Result<T, Error>) {
        let StreamId::Run(run) = stream else { return };
        let mut known = lock(&self.inner.unreadable.0);
        match read {
            Ok(_) => _ = known.remove(run),
            Err(error) if error.is_damaged_stream() => {
                if known.len() < MAX_UNREADABLE_RUNS || known.contains_key(run) {
                    known.insert(*run, error.to_string());
                }
            }
            Err(_) => {}
        }
    }
}
