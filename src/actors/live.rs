//! Which runs are under way in this process, and how to follow and stop them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::driver::{CancelWish, EVENTS_KEPT, Told};
use super::feed::Feed;
use crate::plan::TaskId;
use crate::planner::{Command, Refused};
use crate::run::{RunId, SessionId, TenantId, Word};

/// Commands to one run that wait to be carried out; more are refused.
const MAX_ORDERS: usize = 256;

/// A command to a run, and who is told what became of it: `None` where the run was left before it was
/// carried out, and is to be taken up again for it.
pub(crate) struct Order {
    pub(crate) command: Command,
    /// The request that said so, where it was said in the conversation.
    pub(crate) word: Option<Word>,
    pub(crate) reply: oneshot::Sender<Result<(), Refused>>,
}

/// Why an order was not taken.
pub(crate) enum NotTaken {
    /// The run is not under way, or was just left.
    NotUnderWay(Box<Order>),
    /// Too many wait.
    Full,
}

/// The table of runs; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Live {
    runs: Arc<Mutex<HashMap<RunId, Entry>>>,
    /// Told of every run that enters.
    entered: Arc<Notify>,
    /// Fires when the engine ends.
    end: CancellationToken,
}

struct Entry {
    tenant: TenantId,
    session: SessionId,
    task: TaskId,
    listeners: broadcast::Sender<Told>,
    feed: Arc<Feed>,
    cancel: watch::Sender<Option<CancelWish>>,
    orders: mpsc::Sender<Order>,
}

/// A run's own side of its entry; when it is dropped, the run is not under way any more.
pub(crate) struct Entered {
    run: RunId,
    runs: Arc<Mutex<HashMap<RunId, Entry>>>,
    /// Where its events are told.
    pub(crate) listeners: broadcast::Sender<Told>,
    /// Where its answer is shown.
    pub(crate) feed: Arc<Feed>,
    /// The last wish to stop it.
    pub(crate) wishes: watch::Receiver<Option<CancelWish>>,
    /// What people want done with it; its driver takes it.
    orders: Mutex<Option<mpsc::Receiver<Order>>>,
}

impl Entered {
    /// Where orders come, for its driver; `None` for a second one.
    pub(crate) fn orders(&self) -> Option<mpsc::Receiver<Order>> {
        lock(&self.orders).take()
    }

    /// Whether nobody wants anything of the run, which is then left: later orders are not taken. Nothing
    /// can come in between, since orders are handed over under the same lock.
    /// `wished` says whether a wish to stop came that was not heard.
    pub(crate) fn leave(&self, orders: &mut mpsc::Receiver<Order>, wished: impl Fn() -> bool) -> bool {
        let _runs = lock(&self.runs);
        let left = orders.is_empty() && !wished();
        if left {
            orders.close();
        }
        left
    }

    /// Gives the orders back, for the driver that takes over from one that panicked.
    pub(crate) fn renew_orders(&self) {
        let (sender, receiver) = mpsc::channel(MAX_ORDERS);
        *lock(&self.orders) = Some(receiver);
        if let Some(entry) = lock(&self.runs).get_mut(&self.run) {
            entry.orders = sender;
        }
    }
}

/// A run under way, followed: what it says from now on. It holds nothing up, however slowly it is
/// read, and does not keep the run alive.
pub struct Watch {
    /// The run.
    pub run: RunId,
    /// Its conversation.
    pub session: SessionId,
    /// The public id of its plan.
    pub task: TaskId,
    pub(crate) events: broadcast::Receiver<Told>,
    pub(crate) feed: Arc<Feed>,
    cancel: watch::Sender<Option<CancelWish>>,
}

impl Live {
    /// Enters a run. Gives its own side and one who follows it from the beginning.
    pub(crate) fn enter(
        &self,
        run: RunId,
        task: TaskId,
        tenant: &TenantId,
        session: &SessionId,
    ) -> (Entered, Watch) {
        let (listeners, _) = broadcast::channel(EVENTS_KEPT);
        let (cancel, wishes) = watch::channel(None);
        let (ordered, orders) = mpsc::channel(MAX_ORDERS);
        let feed = Arc::new(Feed::new());
        let entry = Entry {
            tenant: tenant.clone(),
            session: session.clone(),
            task,
            listeners: listeners.clone(),
            feed: feed.clone(),
            cancel,
            orders: ordered,
        };
        let watch = entry.watch(run);
        lock(&self.runs).insert(run, entry);
        self.entered.notify_waiters();
        let orders = Mutex::new(Some(orders));
        (Entered { run, runs: self.runs.clone(), listeners, feed, wishes, orders }, watch)
    }

    /// Follows a tenant's run; `None` where it has none of that id under way.
    pub(crate) fn watch(&self, tenant: &TenantId, run: RunId) -> Option<Watch> {
        let runs = lock(&self.runs);
        runs.get(&run).filter(|entry| entry.tenant == *tenant).map(|entry| entry.watch(run))
    }

    /// Hands an order to whoever drives a tenant's run.
    pub(crate) fn order(&self, tenant: &TenantId, run: RunId, order: Order) -> Result<(), NotTaken> {
        let runs = lock(&self.runs);
        let Some(entry) = runs.get(&run).filter(|entry| entry.tenant == *tenant) else {
            return Err(NotTaken::NotUnderWay(Box::new(order)));
        };
        entry.orders.try_send(order).map_err(|refused| match refused {
            mpsc::error::TrySendError::Closed(order) => NotTaken::NotUnderWay(Box::new(order)),
            mpsc::error::TrySendError::Full(_) => NotTaken::Full,
        })
    }

    /// Whether nobody drives a tenant's run any more: a wish to stop it is not heard here.
    pub(crate) fn is_left(&self, tenant: &TenantId, run: RunId) -> bool {
        let runs = lock(&self.runs);
        let entry = runs.get(&run).filter(|entry| entry.tenant == *tenant);
        entry.is_none_or(|entry| entry.orders.is_closed())
    }

    /// Waits until a tenant's run is under way; for ever where it never is.
    pub(crate) async fn until_under_way(&self, tenant: &TenantId, run: RunId) {
        loop {
            // Before the look, so that what enters in between is heard.
            let entered = self.entered.notified();
            if self.watch(tenant, run).is_some() {
                return;
            }
            entered.await;
        }
    }

    /// Waits until no run of a conversation is under way any more.
    pub(crate) async fn until_left(&self, tenant: &TenantId, session: &SessionId) {
        loop {
            let of_it = |(run, entry): (&RunId, &Entry)| {
                (entry.tenant == *tenant && entry.session == *session).then(|| entry.watch(*run))
            };
            let Some(mut watch) = lock(&self.runs).iter().find_map(of_it) else { return };
            while watch.next().await.is_some() {}
        }
    }

    /// Drives a run until it ends; `None` where the engine ended first, and the run stops where it is.
    pub(crate) fn until_end<F: Future>(&self, driven: F) -> impl Future<Output = Option<F::Output>> + use<F> {
        self.end.clone().run_until_cancelled_owned(driven)
    }

    /// The engine ends: runs under way stop where they are.
    pub(crate) fn end(&self) {
        self.end.cancel();
    }

    /// How many runs are under way, those that wait for their turn included.
    pub(crate) fn count(&self) -> usize {
        lock(&self.runs).len()
    }
}

impl Entry {
    fn watch(&self, run: RunId) -> Watch {
        Watch {
            run,
            session: self.session.clone(),
            task: self.task,
            events: self.listeners.subscribe(),
            feed: self.feed.clone(),
            cancel: self.cancel.clone(),
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        lock(&self.runs).remove(&self.run);
    }
}

impl Watch {
    /// The next event; `None` when there will be no more. A listener that lags more than a few hundred
    /// events behind loses the oldest; the journal has them.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            match self.events.recv().await {
                Ok(told) => return Some(told),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// Asks the run to stop at its next safe point. Says whether it was still under way.
    pub fn cancel(&self, by: &str) -> bool {
        let wish = CancelWish { by: by.to_owned() };
        self.cancel.send(Some(wish)).is_ok()
    }

    /// Another one who follows the same run from now on.
    pub(crate) fn again(&self) -> Self {
        Self {
            run: self.run,
            session: self.session.clone(),
            task: self.task,
            events: self.events.resubscribe(),
            feed: self.feed.clone(),
            cancel: self.cancel.clone(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A map that is inserted into and removed from is consistent at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
