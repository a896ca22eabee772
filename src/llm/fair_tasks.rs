//! Processor time shared between tenants. The tasks of a runtime are polled in order of their wakes, so with 200 ready
//! runs of one tenant, a request of another tenant would wait for 200 polls at each of its steps. Tasks that are
//! spawned here are polled in turn by tenant instead (the fair queueing of Nagle, RFC 970, with a poll in place of a
//! packet).
//!
//! A poll takes one of a fixed number of places. If none is free, the task queues under its tenant and is woken
//! when its turn has come. The runtime has one thread more than there are places: while all places are taken,
//! that thread moves tasks that become ready into the queue. Without it they would wait in the runtime's own
//! queue, where the order is that of their wakes.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::fairness::SharedPlaces;
use crate::mutex::lock;
use crate::run::TenantId;

/// The places in which tasks are polled. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct FairTasks(Arc<Mutex<SharedPlaces<TenantId, Arc<TaskTurn>>>>);

/// A task that waits for its turn.
#[derive(Debug)]
struct TaskTurn {
    /// Whether a place was taken for the task.
    granted: AtomicBool,
    /// Whether the task no longer exists.
    dropped: AtomicBool,
    waker: Mutex<Waker>,
}

impl FairTasks {
    /// Polls at most `places` tasks at the same time; at least one.
    pub(super) fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(SharedPlaces::new(places.max(1)))))
    }

    /// `work`, to be polled in turn with other tasks of the same and other tenants.
    pub(super) fn task<F: Future>(&self, tenant: TenantId, work: F) -> FairTask<F> {
        FairTask { work: Box::pin(work), tenant, turn: None, tasks: self.clone() }
    }

    /// Takes a place, or queues.
    fn enter(&self, tenant: &TenantId, waker: &Waker) -> Option<Arc<TaskTurn>> {
        let mut places = lock(&self.0);
        // One tenant may take all places: a poll is short, and then it is the turn of the next tenant.
        if places.take(tenant, false) {
            return None;
        }
        let turn = Arc::new(TaskTurn {
            granted: AtomicBool::new(false),
            dropped: AtomicBool::new(false),
            waker: Mutex::new(waker.clone()),
        });
        places.queue(tenant.clone(), turn.clone());
        Some(turn)
    }

    /// Returns a place, which goes to the task whose turn it is.
    fn leave(&self, tenant: &TenantId) {
        let mut places = lock(&self.0);
        places.give_back(tenant);
        while let Some((tenant, turn)) = places.next(false) {
            // A task that is dropped now sees that it was granted a place, or this sees that it is dropped.
            turn.granted.store(true, Ordering::SeqCst);
            if turn.dropped.load(Ordering::SeqCst) && turn.granted.swap(false, Ordering::SeqCst) {
                places.give_back(&tenant);
                continue;
            }
            let waker = lock(&turn.waker).clone();
            drop(places);
            waker.wake();
            return;
        }
    }
}

/// A task that is polled in turn.
pub(super) struct FairTask<F> {
    work: Pin<Box<F>>,
    tenant: TenantId,
    /// The turn for which it waits, or which it was granted.
    turn: Option<Arc<TaskTurn>>,
    tasks: FairTasks,
}

impl<F: Future> Future for FairTask<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        match &this.turn {
            Some(turn) => {
                lock(&turn.waker).clone_from(context.waker());
                // The waker first: a place that is granted now wakes this task again.
                if !turn.granted.load(Ordering::SeqCst) {
                    return Poll::Pending;
                }
                this.turn = None;
            }
            None => {
                this.turn = this.tasks.enter(&this.tenant, context.waker());
                if this.turn.is_some() {
                    return Poll::Pending;
                }
            }
        }
        // Returned even if the poll panics.
        let _place = PlaceInUse { tasks: &this.tasks, tenant: &this.tenant };
        this.work.as_mut().poll(context)
    }
}

impl<F> Drop for FairTask<F> {
    fn drop(&mut self) {
        let Some(turn) = &self.turn else { return };
        turn.dropped.store(true, Ordering::SeqCst);
        if turn.granted.swap(false, Ordering::SeqCst) {
            self.tasks.leave(&self.tenant);
        }
    }
}

struct PlaceInUse<'a> {
    tasks: &'a FairTasks,
    tenant: &'a TenantId,
}

impl Drop for PlaceInUse<'_> {
    fn drop(&mut self) {
        self.tasks.leave(self.tenant);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicU32;

    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct CountedWakes(AtomicU32);

    impl std::task::Wake for CountedWakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn tenant(n: u8) -> TenantId {
        TenantId::new(&format!("t{n}")).unwrap()
    }

    proptest! {
        /// Whatever is polled, granted and dropped in any order: no place is lost or returned twice, and a task
        /// that was granted its turn was woken.
        #[test]
        fn no_place_is_lost(places in 1_usize..4, steps in prop::collection::vec((0_u8..4, 0_u8..3, 0_usize..30), 1..200)) {
            let tasks = FairTasks::new(places);
            // Places that polls on other threads have taken.
            let mut polls: Vec<u8> = Vec::new();
            let mut waiting: Vec<(FairTask<_>, Arc<CountedWakes>)> = Vec::new();
            for (step, of, at) in steps {
                match step {
                    0 => match tasks.enter(&tenant(of), Waker::noop()) {
                        None => polls.push(of),
                        Some(turn) => turn.dropped.store(true, Ordering::SeqCst),
                    },
                    1 => {
                        let wakes = Arc::new(CountedWakes::default());
                        let waker = Waker::from(wakes.clone());
                        let mut task = tasks.task(tenant(of), poll_fn(|_| Poll::<()>::Pending));
                        let _ = task.poll_unpin(&mut Context::from_waker(&waker));
                        waiting.push((task, wakes));
                    }
                    2 if !polls.is_empty() => tasks.leave(&tenant(polls.swap_remove(at % polls.len()))),
                    3 if !waiting.is_empty() => drop(waiting.swap_remove(at % waiting.len())),
                    _ => {}
                }
                for (task, wakes) in &waiting {
                    let granted = task.turn.as_ref().is_some_and(|turn| turn.granted.load(Ordering::SeqCst));
                    prop_assert!(!granted || wakes.0.load(Ordering::SeqCst) > 0);
                }
                prop_assert!(lock(&tasks.0).taken() <= places);
            }
            drop(waiting);
            for of in polls {
                tasks.leave(&tenant(of));
            }
            prop_assert_eq!(lock(&tasks.0).taken(), 0);
        }
    }

    #[test]
    fn other_tenant_waits_for_one_poll_and_not_for_a_hundred() {
        let tasks = FairTasks::new(1);
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut all: Vec<_> = (0..101)
            .map(|n| {
                let order = order.clone();
                let of = u8::from(n == 100);
                Box::pin(tasks.task(tenant(of), async move { lock(&order).push(of) }))
            })
            .collect();
        // A poll is in progress on another thread, and all of them become ready meanwhile.
        assert!(tasks.enter(&tenant(0), Waker::noop()).is_none());
        let mut context = Context::from_waker(Waker::noop());
        for task in &mut all {
            assert!(task.poll_unpin(&mut context).is_pending());
        }
        tasks.leave(&tenant(0));
        while !all.is_empty() {
            let before = all.len();
            all.retain_mut(|task| task.poll_unpin(&mut context).is_pending());
            assert!(all.len() < before, "a granted turn is lost");
        }
        let at = lock(&order).iter().position(|of| *of == 1);
        assert!(at <= Some(1), "{at:?}");
        assert_eq!(lock(&tasks.0).taken(), 0);
    }

    #[test]
    fn dropped_task_passes_its_turn_on() {
        let tasks = FairTasks::new(1);
        let mut context = Context::from_waker(Waker::noop());
        assert!(tasks.enter(&tenant(0), Waker::noop()).is_none());
        let mut all: Vec<_> = (0..3).map(|n| tasks.task(tenant(n), async {})).collect();
        for task in &mut all {
            assert!(task.poll_unpin(&mut context).is_pending());
        }
        // The second one waits in the queue, the first one has been granted its turn.
        drop(all.remove(1));
        tasks.leave(&tenant(0));
        drop(all.remove(0));
        assert!(all[0].poll_unpin(&mut context).is_ready());
        assert_eq!(lock(&tasks.0).taken(), 0);
    }

    #[test]
    fn task_that_panics_returns_its_place() {
        let tasks = FairTasks::new(1);
        let mut context = Context::from_waker(Waker::noop());
        let broken = std::panic::AssertUnwindSafe(tasks.task(tenant(0), async { panic!("in a task") }));
        let mut broken = Box::pin(broken.catch_unwind());
        assert!(matches!(broken.poll_unpin(&mut context), Poll::Ready(Err(_))));
        assert_eq!(lock(&tasks.0).taken(), 0);
    }
}
