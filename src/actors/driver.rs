//! The driver of one run: asks the machine what must happen, does it, and appends every outcome to
//! the journal before it takes effect. It holds no rule.

mod append;
mod orders;
mod perform;
mod preflight;
mod replaced;
mod taken_over;
mod waited;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::gate::{Place, Turn};
use super::journal;
use super::live::{Entered, Live, Order};
use super::scene;
use crate::config;
use crate::crash;
use crate::llm::budget::Hold;
use crate::llm::{self, Confirm, Gateway};
use crate::parts::Replaced;
use crate::planner::Refused;
use crate::run::{
    Action, Context, Envelope, Event, Fault, RunId, RunQueued, RunState, RunStatus, SessionEvent, SessionId,
    Settings, TenantId,
};
use crate::scene::Catalogue;
use crate::store;
use crate::tools::Principal;
use orders::next_order;
use waited::Waited;

/// Events that one run may have. Every loop has a bound of its own; this one is for what was
/// forgotten.
const MAX_EVENTS: u64 = 20_000;
/// How many events a slow listener may lag behind before it has to read the journal.
pub(crate) const EVENTS_KEPT: usize = 256;

/// What every run works with.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) gateway: Gateway,
    pub(crate) journal: journal::Handle,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) catalogue_hash: Arc<str>,
    pub(crate) scenes: Arc<BTreeMap<String, scene::Handle>>,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    /// What is different by tenant.
    pub(crate) approval: Arc<config::Approval>,
    /// The same, beside approvals.
    pub(crate) tenants: Arc<BTreeMap<String, config::Tenant>>,
    pub(crate) live: Live,
    /// What a library user has put in the place of ours.
    pub(crate) replaced: Replaced,
}

/// A wish to stop a run.
#[derive(Debug, Clone)]
pub struct CancelWish {
    /// Whose.
    pub by: String,
}

/// An event as listeners get it.
pub type Told = Arc<Envelope<Event>>;

/// A run whose `run_queued` is in the journal, and who is to be told of it.
pub(crate) struct Accepted {
    /// The fold of what the journal has of it.
    pub(crate) state: RunState,
    pub(crate) live: Arc<Entered>,
    /// Somebody carried it out before: it is to be taken over.
    pub(crate) taken_over: bool,
    /// That was a driver of this process, which panicked.
    pub(crate) panicked: bool,
    /// What the journal has of it, where whoever counts was not shown it yet.
    pub(crate) known: Vec<Envelope<Event>>,
}

impl Accepted {
    /// A run of which nothing but the request is in the journal.
    pub(crate) fn new(run: RunId, queued: RunQueued, live: Entered) -> Self {
        let mut state = RunState::new(run);
        if let Err(error) = state.apply(&Event::RunQueued(queued)) {
            tracing::error!(%run, %error, "a new run refused its own request");
        }
        Self { state, live: Arc::new(live), taken_over: false, panicked: false, known: Vec::new() }
    }
}

/// A run under way.
pub(crate) struct Driver {
    shared: Shared,
    session: SessionId,
    principal: Principal,
    state: RunState,
    live: Arc<Entered>,
    wishes: watch::Receiver<Option<CancelWish>>,
    taken_over: bool,
    panicked: bool,
    /// Its place among the runs under way, kept until it is left.
    place: Option<Place>,
    /// Nothing has come of the run since an earlier process died: the first that does is waited for until it
    /// is on disk.
    suspect: bool,
    in_flight: FuturesUnordered<Pin<Box<dyn Future<Output = Done> + Send>>>,
    /// Replies whose meaning is not read yet, by their questions.
    unread: BTreeMap<u32, Confirm>,
    stop: CancellationToken,
    waited: Waited,
    /// The last number of the session's own stream, held by whoever writes to it.
    session_seq: SessionSeq,
    /// What people want done with it.
    orders: Option<mpsc::Receiver<Order>>,
    /// The version whose plan was looked through before its first step.
    looked_through: u32,
    /// What its conversation remembers of it, with the numbers in the session's stream.
    turns: Vec<(u64, SessionEvent)>,
    /// What the journal has of it, until whoever counts is shown it: with the first event from here.
    known: Vec<Envelope<Event>>,
    /// It was carried on after its end, and has its whole time once more.
    reopened: bool,
    /// How its questions use the cache, where not as configured.
    cache: Option<llm::cache::Mode>,
    /// Words of the conversation decided about it.
    said: bool,
    /// What was refused, and who is told once the run rests again: whoever then says something in its
    /// conversation says it of a run that waits.
    refused: Vec<(Reply, Refused)>,
    /// Keeps the run's account until its end.
    _account: Hold,
}

/// The last number of a session's own stream, shared by all who write to it: its conversation, and the
/// drivers of its runs.
pub(crate) type SessionSeq = Arc<Mutex<u64>>;

/// Who is told what became of an order.
type Reply = oneshot::Sender<Result<(), Refused>>;

/// What came of an action, and for a reply where to say what its reader made of it.
type Done = (Event, Option<Confirm>);

/// A run that ended, or could not go on.
pub(crate) struct Ended {
    /// Its last state.
    pub(crate) state: RunState,
    /// Time in which neither a model, a tool nor a person was awaited.
    pub(crate) overhead: Duration,
    /// Why it could not go on: the journal refused an event.
    pub(crate) broken: Option<Fault>,
    /// What its conversation remembers of it, where it ended here, with the numbers in the session's stream.
    pub(crate) turns: Vec<(u64, SessionEvent)>,
    /// Whether words of the conversation decided about it here: what it comes to is their answer.
    pub(crate) said: bool,
    /// What was refused last, to be told once the conversation knows where the run stands.
    refused: Vec<(Reply, Refused)>,
}

impl Ended {
    /// Tells those whose orders were refused.
    pub(crate) fn take_refused(&mut self) -> RefusedLast {
        RefusedLast(std::mem::take(&mut self.refused))
    }
}

/// Orders that were refused while their run was leaving.
pub(crate) struct RefusedLast(Vec<(Reply, Refused)>);

impl RefusedLast {
    /// Tells who gave them.
    pub(crate) fn tell(self) {
        for (reply, refused) in self.0 {
            // Whoever asked may have gone.
            let _ = reply.send(Err(refused));
        }
    }
}

impl Driver {
    /// A driver for a run that has not started, or that was left by whoever carried it out.
    pub(crate) fn new(
        shared: Shared,
        session: SessionId,
        tenant: TenantId,
        accepted: Accepted,
        session_seq: SessionSeq,
    ) -> Self {
        let Accepted { state, live, taken_over, panicked, known } = accepted;
        let queued = state.queued.as_ref();
        let user = queued.map(|queued| queued.user.clone()).unwrap_or_default();
        let cache = queued.and_then(|queued| queued.cache);
        let principal = Principal { tenant, user };
        let spent = state.usage.cost_nano_usd;
        let account = shared.gateway.guards().budget.hold_run(&principal.tenant, state.run, spent);
        let mut wishes = live.wishes.clone();
        // One that came before is heard, too.
        if wishes.borrow().is_some() {
            wishes.mark_changed();
        }
        Self {
            shared,
            session,
            principal,
            state,
            wishes,
            taken_over,
            panicked,
            place: None,
            suspect: false,
            in_flight: FuturesUnordered::new(),
            unread: BTreeMap::new(),
            stop: CancellationToken::new(),
            waited: Waited::default(),
            session_seq,
            orders: live.orders(),
            live,
            looked_through: 0,
            turns: Vec::new(),
            known,
            reopened: false,
            cache,
            said: false,
            refused: Vec::new(),
            _account: account,
        }
    }

    /// Drives the run to its end with `context` as its memory of the conversation, or puts it aside.
    pub(crate) async fn run(mut self, context: Context, turn: Turn) -> Ended {
        let began = Instant::now();
        let mut broken = self.drive(context, turn).await.err();
        // A journal that takes events can be told how it ends; a run that cannot go on has failed.
        let ended = self.state.status.is_terminal();
        let of_itself =
            |fault: &Fault| matches!(fault.code.as_str(), "run.illegal_event" | "store.bad_record");
        if let Some(fault) = broken.take_if(|fault| of_itself(fault) && !ended) {
            broken = self.end_by_force(fault).await.err();
        }
        // What is still in flight is of no use to an ended run.
        self.stop.cancel();
        self.in_flight.clear();
        if let Some(fault) = &broken {
            tracing::error!(run = %self.state.run, code = %fault.code, "{}", fault.message);
        }
        let overhead = began.elapsed().saturating_sub(self.waited.total());
        Ended {
            state: self.state,
            overhead,
            broken,
            turns: self.turns,
            said: self.said,
            refused: self.refused,
        }
    }

    async fn drive(&mut self, context: Context, turn: Turn) -> Result<(), Fault> {
        let mut context = Some(context);
        self.take_over(turn).await?;
        // Whoever takes a run over gives it its whole time: that in which nobody was there is not its own.
        let settings = self.state.started.as_ref().map_or(&self.shared.settings, |started| &started.settings);
        let time = Duration::from_millis(settings.run_timeout_ms);
        let deadline = tokio::time::sleep(time);
        tokio::pin!(deadline);
        let mut late = false;
        // Whoever decides about something that is another by now is told so; only then it is put anew.
        self.carry_out().await?;
        // What was approved may be another by now.
        self.see_what_lapsed().await?;
        loop {
            self.carry_out().await?;
            if std::mem::take(&mut self.reopened) {
                late = false;
                deadline.as_mut().reset(tokio::time::Instant::now() + time);
            }
            while let Some(action) = self.state.next().into_iter().next() {
                let most = crash::most_events(MAX_EVENTS);
                if self.state.seq > most && !matches!(action, Action::Record { .. }) {
                    // Nothing new begins, and what becomes of a write is heard of.
                    if self.state.write_in_flight() {
                        break;
                    }
                    let message = format!("more than {most} events: the run was stopped");
                    self.end_by_force(Fault::new("run.too_many_events", message)).await?;
                    continue;
                }
                self.perform(action, &mut context).await?;
            }
            let rests = self.state.status.is_terminal() || self.state.status == RunStatus::Waiting;
            if rests && self.in_flight.is_empty() {
                if self.is_left() {
                    return Ok(());
                }
                // A wish to stop that came in these last moments is one of a run that waits.
                let wished = !self.state.status.is_terminal() && self.wishes.has_changed().unwrap_or(false);
                let wish = if wished { self.wishes.borrow_and_update().clone() } else { None };
                if let Some(CancelWish { by }) = wish {
                    self.record(Event::CancelRequested { by, deadline: false, note: None }).await?;
                }
                continue;
            }
            // The run goes on anyway.
            RefusedLast(std::mem::take(&mut self.refused)).tell();
            self.waited.busy(!self.in_flight.is_empty());
            let (event, confirm) = tokio::select! {
                Some(done) = self.in_flight.next() => done,
                Some(order) = next_order(&mut self.orders) => {
                    self.waited.busy(false);
                    self.obey(order).await?;
                    continue;
                }
                Ok(()) = self.wishes.changed() => {
                    let wish = self.wishes.borrow_and_update().clone();
                    let Some(CancelWish { by }) = wish else { continue };
                    (Event::CancelRequested { by, deadline: false, note: None }, None)
                }
                () = &mut deadline, if !late => {
                    late = true;
                    (Event::CancelRequested { by: "deadline".to_owned(), deadline: true, note: None }, None)
                }
            };
            self.waited.busy(false);
            if let (Event::ModelReplied { call, .. }, Some(confirm)) = (&event, confirm) {
                self.unread.insert(*call, confirm);
            }
            self.record(event).await?;
        }
    }
}

/// A store's error as a fault of a run.
pub(crate) fn store_fault(error: &store::Error) -> Fault {
    Fault::new(error.code(), error.to_string())
}
