//! Places for the summaries of conversations that are being made, over all conversations of the process: requests go before them.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Maximum number of concurrent summaries for each core. A summary mostly waits for a model: if the model takes five
/// seconds, a core makes thirteen summaries a second, enough for more than a hundred requests.
const PLACES: usize = 64;

/// The cores for one summary whose reply is read at a time: the others serve requests.
const CORES_FOR_ONE_READER: usize = 2;

/// Places that are given in the order in which they were asked for.
#[derive(Debug, Clone)]
pub(crate) struct SummaryPlaces {
    all: Arc<Semaphore>,
    readers: Arc<Semaphore>,
}

impl SummaryPlaces {
    /// The places of a process on so many cores.
    pub(crate) fn new(cores: usize) -> Self {
        let readers = cores.div_ceil(CORES_FOR_ONE_READER).max(1);
        let all = cores.max(1) * PLACES;
        Self { all: Arc::new(Semaphore::new(all)), readers: Arc::new(Semaphore::new(readers)) }
    }

    /// A place for a whole summary, given back when it is dropped. `None` as soon as the summary is `urgent`: then it takes none.
    pub(crate) async fn take(&self, urgent: &CancellationToken) -> Option<OwnedSemaphorePermit> {
        place(&self.all, urgent).await
    }

    /// A place for reading a model's reply, which takes processor time. Otherwise like [`SummaryPlaces::take`].
    pub(crate) async fn take_reader(&self, urgent: &CancellationToken) -> Option<OwnedSemaphorePermit> {
        place(&self.readers, urgent).await
    }
}

async fn place(places: &Arc<Semaphore>, urgent: &CancellationToken) -> Option<OwnedSemaphorePermit> {
    tokio::select! {
        biased;
        () = urgent.cancelled() => None,
        place = places.clone().acquire_owned() => place.ok(),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn summaries_wait_for_places_unless_they_are_urgent() {
        let (places, patient) = (SummaryPlaces::new(1), CancellationToken::new());
        let mut taken = Vec::new();
        for _ in 0..PLACES {
            taken.push(places.take(&patient).await.unwrap());
        }
        let mut waiting = Box::pin(places.take(&patient));
        assert!((&mut waiting).now_or_never().is_none());
        // Readers have places of their own.
        assert!(places.take_reader(&patient).await.is_some());

        // One that becomes urgent while it waits takes no place.
        let urgent = CancellationToken::new();
        let mut overdue = Box::pin(places.take(&urgent));
        assert!((&mut overdue).now_or_never().is_none());
        urgent.cancel();
        assert!(overdue.await.is_none());

        // One that is not made any more leaves its place in the line to the next.
        let ended = Box::pin(places.take(&patient));
        drop(ended);
        taken.pop();
        assert!(waiting.await.is_some());
    }
}
