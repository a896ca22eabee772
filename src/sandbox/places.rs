//! The places of a pool of workers: how many programs are executed at once, who may wait for a place, and whose turn it is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot::{self, Sender};
use tokio::time::timeout;

use crate::fairness::{FairPermit, FairPermits, SharedPlaces, Sharers};
use crate::mutex::lock;

/// Maximum number of executions that wait for a place.
const MAX_WAITING: usize = 1_000;

/// From how many places on some are left free for other tenants. An execution is short: with fewer places, turns are
/// enough, and a place that stands idle would be a large part of all.
const KEEPS_ROOM_FROM: usize = 5;

/// Places that tenants share by the rules of [`crate::fairness`]: those who wait are served tenant by tenant, and of many
/// places none takes all where several have had programs executed. Clones share the places.
#[derive(Debug, Clone)]
pub(super) struct WorkerPlaces {
    places: Arc<Mutex<SharedPlaces<String, Sender<WorkerPlace>>>>,
    waiting: FairPermits<String>,
    tenants: Sharers<String>,
    keeps_room: bool,
}

/// A place, which is returned when this is dropped.
#[derive(Debug)]
pub(super) struct WorkerPlace {
    of: WorkerPlaces,
    tenant: String,
}

impl Drop for WorkerPlace {
    fn drop(&mut self) {
        lock(&self.of.places).give_back(&self.tenant);
        self.of.serve();
    }
}

impl WorkerPlaces {
    /// `total` free places; at least one.
    pub(super) fn new(total: usize) -> Self {
        Self {
            places: Arc::new(Mutex::new(SharedPlaces::new(total.max(1)))),
            waiting: FairPermits::new(MAX_WAITING),
            tenants: Sharers::default(),
            keeps_room: total >= KEEPS_ROOM_FROM,
        }
    }

    /// A place for `tenant`, for which it waits at most so long; `None` if it gets none, or if too many wait.
    pub(super) async fn take(&self, tenant: &str, wait: Duration) -> Option<WorkerPlace> {
        let tenant = tenant.to_owned();
        self.tenants.see(&tenant);
        let is_shared = self.tenants.is_shared();
        let (sender, receiver) = oneshot::channel();
        let mut waits = {
            let mut places = lock(&self.places);
            if places.take(&tenant, self.keeps_room && is_shared) {
                drop(places);
                return Some(WorkerPlace { of: self.clone(), tenant });
            }
            let permit = self.waiting.take(&tenant, is_shared).ok()?;
            places.queue(tenant, sender);
            WaitsForPlace { of: self, is_served: false, _permit: permit }
        };
        let place = timeout(wait, receiver).await.ok()?.ok()?;
        waits.is_served = true;
        Some(place)
    }

    /// Gives free places to those whose turn it is.
    fn serve(&self) {
        loop {
            let keeps_room = self.keeps_room && self.tenants.is_shared();
            let next = lock(&self.places).next(keeps_room);
            let Some((tenant, waits)) = next else { return };
            if waits.is_closed() {
                lock(&self.places).give_back(&tenant);
                continue;
            }
            // A place that nobody takes any more is dropped, and so returned.
            drop(waits.send(WorkerPlace { of: self.clone(), tenant }));
        }
    }
}

/// An execution that waits for a place.
struct WaitsForPlace<'p> {
    of: &'p WorkerPlaces,
    is_served: bool,
    _permit: FairPermit<String>,
}

impl Drop for WaitsForPlace<'_> {
    /// What waits no longer leaves the queue, also if it was dropped while it waited.
    fn drop(&mut self) {
        if !self.is_served {
            lock(&self.of.places).retain_waiting(|waits| !waits.is_closed());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// Has `count` of a tenant's executions wait.
    fn flood(
        places: &WorkerPlaces,
        tenant: &'static str,
        count: usize,
    ) -> Vec<BoxFuture<'static, Option<WorkerPlace>>> {
        let waits = |_| {
            let places = places.clone();
            let mut waits = async move { places.take(tenant, LONG).await }.boxed();
            assert!((&mut waits).now_or_never().is_none());
            waits
        };
        (0..count).map(waits).collect()
    }

    #[tokio::test]
    async fn tenants_take_turns_and_of_many_places_none_takes_all() {
        for total in [1, 2, KEEPS_ROOM_FROM] {
            let places = WorkerPlaces::new(total);
            let mut held = Vec::new();
            for _ in 0..total {
                // Alone, a tenant may take all.
                held.push(places.take("flood", LONG).await.unwrap());
            }
            let mut all = flood(&places, "flood", 50);
            let mut other = flood(&places, "other", 1);
            drop(held.pop());
            let first = all.remove(0).now_or_never().flatten();
            // One of many places is left for the other tenant; of few, the next one is its.
            assert_eq!(first.is_some(), total < KEEPS_ROOM_FROM, "of {total}");
            drop(first);
            let given = other.remove(0).now_or_never().flatten().expect("it is the other one's turn");
            assert_eq!(given.tenant, "other");
        }
    }

    #[tokio::test]
    async fn waiter_that_gives_up_frees_its_place() {
        let places = WorkerPlaces::new(1);
        let held = places.take("a", LONG).await.unwrap();
        assert!(places.take("a", Duration::ZERO).await.is_none());
        assert_eq!((lock(&places.places).waiting(), places.waiting.taken()), (0, 0));
        let mut all = flood(&places, "a", 3);
        // One is dropped while it waits, and one after it was given a place.
        drop(all.remove(1));
        assert_eq!(lock(&places.places).waiting(), 2);
        drop(held);
        drop(all.remove(0));
        let last = all.remove(0).now_or_never().flatten().expect("the place goes to the last one");
        drop(last);
        assert_eq!((lock(&places.places).taken(), places.waiting.taken()), (0, 0));
        assert!(places.take("b", Duration::ZERO).await.is_some());
    }

    #[tokio::test]
    async fn waiting_executions_are_bounded_and_one_tenant_cannot_fill_the_queue() {
        let places = WorkerPlaces::new(1);
        let _held = places.take("other", LONG).await.unwrap();
        places.tenants.see(&"flood".to_owned());
        let all = flood(&places, "flood", MAX_WAITING * 4 / 5);
        assert!(places.take("flood", LONG).now_or_never().expect("it does not wait").is_none());
        assert_eq!(flood(&places, "other", 1).len(), 1);
        drop(all);
    }
}
