//! Room for the texts of summaries in progress, over all runs of the process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::run::Fault;

/// Maximum number of bytes of all documents of one summary: the run holds their text while it works on it.
pub(crate) const MAX_TEXT: u64 = 16 * 1024 * 1024;
/// Maximum number of bytes of all texts together: four of the largest summaries, or hundreds of usual ones.
const MAX_TEXTS: u64 = 4 * MAX_TEXT;
/// The bytes of one permit: their number fits into what a semaphore counts.
const UNIT: u64 = 1024;

/// Room for texts, given in the order in which it was asked for.
#[derive(Debug, Clone)]
pub(crate) struct SummaryRoom(Arc<Semaphore>);

impl Default for SummaryRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(usize::try_from(MAX_TEXTS / UNIT).unwrap_or(usize::MAX))))
    }
}

impl SummaryRoom {
    /// Room for a text of so many bytes, at most [`MAX_TEXT`]. It is free again when the result is dropped.
    ///
    /// # Errors
    /// `summary.busy` if there is none within `wait`.
    pub(crate) async fn take(&self, bytes: u64, wait: Duration) -> Result<OwnedSemaphorePermit, Fault> {
        let permits = u32::try_from(bytes.min(MAX_TEXT).div_ceil(UNIT).max(1)).unwrap_or(u32::MAX);
        match tokio::time::timeout(wait, self.0.clone().acquire_many_owned(permits)).await {
            Ok(Ok(room)) => Ok(room),
            _ => {
                let what = format!(
                    "summaries in progress hold {MAX_TEXTS} bytes of documents, which is the limit; try again later"
                );
                Err(Fault::new("summary.busy", what))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn texts_together_are_bounded_and_give_their_room_back() {
        let (room, now) = (SummaryRoom::default(), Duration::ZERO);
        let mut held = Vec::new();
        for _ in 0..4 {
            // No text is larger.
            held.push(room.take(u64::MAX, now).await.unwrap());
        }
        let refused = room.take(1, now).await.unwrap_err();
        assert_eq!(refused.code, "summary.busy");
        // One that waits gets what is given back.
        let waits = tokio::spawn({
            let room = room.clone();
            async move { room.take(MAX_TEXT, Duration::from_secs(60)).await }
        });
        held.pop();
        let fourth = waits.await.unwrap().unwrap();
        assert!(room.take(1, now).await.is_err());
        drop(fourth);
        assert!(room.take(MAX_TEXT, now).await.is_ok());
    }
}
