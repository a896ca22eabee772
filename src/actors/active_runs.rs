//! The runs that are active in this process, and how to watch and cancel them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::answer_feed::{AnswerFeed, FeedFollowerGuard};
use super::driver::{CancelRequest, EVENT_BUFFER_CAPACITY, PublishedRunEvent};
use crate::mutex::lock;
use crate::plan::TaskId;
use crate::planner::{Command, CommandRefusal};
use crate::run::{RequestIdentity, RunId, SessionId, TenantId};

/// How many commands to one run may wait; more are refused.
const MAX_PENDING_COMMANDS: usize = 256;

/// A command to a run and the channel that receives its result. The channel closes without a result if the
/// driver left the run first; the run then has to be resumed for the command.
pub(crate) struct RunCommand {
    pub(crate) command: Command,
    /// The request that gave the command, if it was given in the session.
    pub(crate) request: Option<RequestIdentity>,
    pub(crate) reply: oneshot::Sender<Result<(), CommandRefusal>>,
}

/// Receives the commands to a run. They are boxed: a channel has room for several from its start, and most runs get none.
pub(crate) type CommandReceiver = mpsc::Receiver<Box<RunCommand>>;

/// Why a command was not accepted.
pub(crate) enum CommandRejected {
    /// The run is not active, or its driver has just left it.
    NotActive(Box<RunCommand>),
    /// Too many commands wait.
    Full,
}

/// The table of active runs; clones share it.
#[derive(Clone, Default)]
pub(crate) struct ActiveRuns {
    runs: Arc<Mutex<ActiveRunTable>>,
    /// Notified of every run that is registered.
    registered: Arc<Notify>,
    /// Fires when the engine shuts down.
    shutdown: CancellationToken,
}

/// Active runs by id, and the ids of those of each session: many sessions are active at once.
#[derive(Default)]
struct ActiveRunTable {
    runs: HashMap<RunId, ActiveRunEntry>,
    sessions: HashMap<(TenantId, SessionId), Vec<RunId>>,
}

impl ActiveRunTable {
    fn insert(&mut self, run: RunId, entry: ActiveRunEntry) {
        self.remove(run);
        self.sessions.entry((entry.tenant.clone(), entry.session.clone())).or_default().push(run);
        self.runs.insert(run, entry);
    }

    fn remove(&mut self, run: RunId) {
        let Some(ActiveRunEntry { tenant, session, .. }) = self.runs.remove(&run) else { return };
        if let Entry::Occupied(mut of_session) = self.sessions.entry((tenant, session)) {
            of_session.get_mut().retain(|other| *other != run);
            if of_session.get().is_empty() {
                of_session.remove();
            }
        }
    }

    fn watch_session(&self, session: &(TenantId, SessionId)) -> Option<RunWatch> {
        let run = self.sessions.get(session)?.first()?;
        self.runs.get(run).map(|entry| entry.watch(*run))
    }
}

struct ActiveRunEntry {
    tenant: TenantId,
    session: SessionId,
    task: TaskId,
    event_sender: broadcast::Sender<PublishedRunEvent>,
    feed: Arc<AnswerFeed>,
    cancel: watch::Sender<Option<CancelRequest>>,
    commands: mpsc::Sender<Box<RunCommand>>,
}

/// The driver's side of a run's entry. Dropping it removes the run from the table.
pub(crate) struct ActiveRun {
    run: RunId,
    runs: Arc<Mutex<ActiveRunTable>>,
    pub(crate) event_sender: broadcast::Sender<PublishedRunEvent>,
    /// Publishes its answer while it is generated.
    pub(crate) feed: Arc<AnswerFeed>,
    pub(crate) cancel_requests: watch::Receiver<Option<CancelRequest>>,
    /// The receiver of its commands, until its driver takes it.
    commands: Mutex<Option<CommandReceiver>>,
}

impl ActiveRun {
    /// Takes the receiver of commands, for its driver; `None` if it was already taken.
    pub(crate) fn take_commands(&self) -> Option<CommandReceiver> {
        lock(&self.commands).take()
    }

    /// Leaves the run if nothing is pending, and accepts no later commands. No command can arrive between the two, because
    /// commands are sent under the same lock. `is_cancel_requested` tells whether a cancel request is pending.
    pub(crate) fn leave_if_idle(
        &self,
        commands: &mut CommandReceiver,
        is_cancel_requested: impl Fn() -> bool,
    ) -> bool {
        let _runs = lock(&self.runs);
        let leaves = commands.is_empty() && !is_cancel_requested();
        if leaves {
            commands.close();
        }
        leaves
    }

    /// Opens a new command channel, for the driver that takes over from one that panicked.
    pub(crate) fn reopen_commands(&self) {
        let (sender, receiver) = mpsc::channel(MAX_PENDING_COMMANDS);
        *lock(&self.commands) = Some(receiver);
        if let Some(entry) = lock(&self.runs).runs.get_mut(&self.run) {
            entry.commands = sender;
        }
    }
}

/// A subscription to an active run: its events from now on. A slow reader delays nothing, and the
/// subscription does not keep the run alive.
pub struct RunWatch {
    /// The run.
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// The public id of its plan.
    pub task: TaskId,
    pub(crate) events: broadcast::Receiver<PublishedRunEvent>,
    pub(crate) feed: Arc<AnswerFeed>,
    /// Whether the holder may read the answer as it is written. Only for the subscription of a request, until its caller says
    /// that it only waits for the whole answer.
    follower: Option<FeedFollowerGuard>,
    cancel: watch::Sender<Option<CancelRequest>>,
}

impl std::fmt::Debug for RunWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { run, session, .. } = self;
        f.debug_struct("RunWatch").field("run", run).field("session", session).finish_non_exhaustive()
    }
}

impl ActiveRuns {
    /// Registers a run. Returns the driver's side and a subscription from the beginning, whose holder may read the
    /// answer as it is written.
    pub(crate) fn register(
        &self,
        run: RunId,
        task: TaskId,
        tenant: &TenantId,
        session: &SessionId,
    ) -> (ActiveRun, RunWatch) {
        let (listeners, _) = broadcast::channel(EVENT_BUFFER_CAPACITY);
        let (cancel, cancel_requests) = watch::channel(None);
        let (command_sender, commands) = mpsc::channel(MAX_PENDING_COMMANDS);
        let feed = Arc::new(AnswerFeed::new());
        let entry = ActiveRunEntry {
            tenant: tenant.clone(),
            session: session.clone(),
            task,
            event_sender: listeners.clone(),
            feed: feed.clone(),
            cancel,
            commands: command_sender,
        };
        let watch = entry.watch(run).following();
        lock(&self.runs).insert(run, entry);
        self.registered.notify_waiters();
        let commands = Mutex::new(Some(commands));
        (
            ActiveRun {
                run,
                runs: self.runs.clone(),
                event_sender: listeners,
                feed,
                cancel_requests,
                commands,
            },
            watch,
        )
    }

    /// Subscribes to a tenant's run; `None` if the tenant has no active run with that id.
    pub(crate) fn watch(&self, tenant: &TenantId, run: RunId) -> Option<RunWatch> {
        let table = lock(&self.runs);
        table.runs.get(&run).filter(|entry| entry.tenant == *tenant).map(|entry| entry.watch(run))
    }

    /// Sends a command to the driver of a tenant's run.
    pub(crate) fn send_command(
        &self,
        tenant: &TenantId,
        run: RunId,
        command: RunCommand,
    ) -> Result<(), CommandRejected> {
        let command = Box::new(command);
        let table = lock(&self.runs);
        let Some(entry) = table.runs.get(&run).filter(|entry| entry.tenant == *tenant) else {
            return Err(CommandRejected::NotActive(command));
        };
        entry.commands.try_send(command).map_err(|refused| match refused {
            mpsc::error::TrySendError::Closed(command) => CommandRejected::NotActive(command),
            mpsc::error::TrySendError::Full(_) => CommandRejected::Full,
        })
    }

    /// Returns whether a tenant's run has no driver, so that a cancel request would have no receiver.
    pub(crate) fn has_no_driver(&self, tenant: &TenantId, run: RunId) -> bool {
        let table = lock(&self.runs);
        let entry = table.runs.get(&run).filter(|entry| entry.tenant == *tenant);
        entry.is_none_or(|entry| entry.commands.is_closed())
    }

    /// Waits until a tenant's run is active; forever if it never is.
    pub(crate) async fn wait_until_active(&self, tenant: &TenantId, run: RunId) {
        loop {
            // Before the check, so that a run registered in between is noticed.
            let entered = self.registered.notified();
            if self.watch(tenant, run).is_some() {
                return;
            }
            entered.await;
        }
    }

    pub(crate) async fn wait_until_session_idle(&self, tenant: &TenantId, session: &SessionId) {
        let session = (tenant.clone(), session.clone());
        loop {
            let Some(mut watch) = lock(&self.runs).watch_session(&session) else { return };
            while watch.next().await.is_some() {}
        }
    }

    /// Drives a run until it ends; `None` if the engine shuts down first, which leaves the run as it is.
    pub(crate) fn run_until_shutdown<F: Future>(
        &self,
        driven: F,
    ) -> impl Future<Output = Option<F::Output>> + use<F> {
        self.shutdown.clone().run_until_cancelled_owned(driven)
    }

    /// Shuts down: the drivers of active runs stop, and the runs remain as they are.
    pub(crate) fn shut_down(&self) {
        self.shutdown.cancel();
    }

    /// The number of active runs, including those that wait for admission.
    pub(crate) fn count(&self) -> usize {
        lock(&self.runs).runs.len()
    }
}

impl ActiveRunEntry {
    fn watch(&self, run: RunId) -> RunWatch {
        RunWatch {
            run,
            session: self.session.clone(),
            task: self.task,
            events: self.event_sender.subscribe(),
            feed: self.feed.clone(),
            follower: None,
            cancel: self.cancel.clone(),
        }
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        lock(&self.runs).remove(self.run);
    }
}

impl RunWatch {
    /// The next event; `None` when there will be no more. A subscriber that lags more than 64 events behind loses the oldest
    /// ones; the journal has them.
    pub async fn next(&mut self) -> Option<PublishedRunEvent> {
        loop {
            match self.events.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// Asks the run to stop at its next safe point. Returns whether it was still active.
    pub fn cancel(&self, by: &str) -> bool {
        let request = CancelRequest { by: by.to_owned() };
        self.cancel.send(Some(request)).is_ok()
    }

    /// The same subscription, whose holder may read the answer as it is written.
    #[must_use]
    pub(crate) fn following(self) -> Self {
        Self { follower: Some(self.feed.add_follower()), ..self }
    }

    /// Keeps the answer streamed after the subscription has gone, if its holder might have read it.
    pub(crate) fn take_follower(&mut self) -> Option<FeedFollowerGuard> {
        self.follower.take()
    }

    /// Another subscription to the same run, from now on.
    pub(crate) fn resubscribe(&self) -> Self {
        Self {
            run: self.run,
            session: self.session.clone(),
            task: self.task,
            events: self.events.resubscribe(),
            feed: self.feed.clone(),
            follower: None,
            cancel: self.cancel.clone(),
        }
    }
}
