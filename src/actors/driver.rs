//! The driver of one run: asks the machine what must happen, does it, and appends every outcome to
//! the journal before it takes effect. It holds no rule.

mod replaced;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::journal;
use super::live::{Entered, Live, Order};
use super::scene;
use crate::config;
use crate::crash;
use crate::llm::budget::Hold;
use crate::llm::{self, Caller, Confirm, Gateway, Sink};
use crate::memory;
use crate::parts::Replaced;
use crate::plan::Problem;
use crate::planner::{self, Shown};
use crate::run::{
    Action, Attempt, CacheMode, Context, Effect, Envelope, Event, Fault, Illegal, Outcome, RunId, RunQueued,
    RunStarted, RunState, RunStatus, SCHEMA, SessionEvent, SessionId, Settings, Subject, TenantId, Usage,
    idempotency_key,
};
use crate::scene::Catalogue;
use crate::store::{self, Record};
use crate::tools::Principal;

/// Events that one run may have. Every loop has a bound of its own; this one is for what was
/// forgotten.
const MAX_EVENTS: u64 = 20_000;
/// How long an ending run waits to hear what its questions under way have cost.
const PATIENCE: Duration = Duration::from_secs(5);
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
        Self { state, live: Arc::new(live), taken_over: false, known: Vec::new() }
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
    /// Keeps the run's account until its end.
    _account: Hold,
}

/// The last number of a session's own stream, shared by all who write to it: its conversation, and the
/// drivers of its runs.
pub(crate) type SessionSeq = Arc<Mutex<u64>>;

/// What came of an action, and for a reply where to say what its reader made of it.
type Done = (Event, Option<Confirm>);

/// A run that ended, or could not go on.
pub(crate) struct Ended {
    /// Its last state.
    pub(crate) state: RunState,
    /// Time in which neither a model nor a tool was awaited.
    pub(crate) overhead: Duration,
    /// Why it could not go on: the journal refused an event.
    pub(crate) broken: Option<Fault>,
    /// What its conversation remembers of it, where it ended here, with the numbers in the session's stream.
    pub(crate) turns: Vec<(u64, SessionEvent)>,
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
        let Accepted { state, live, taken_over, known } = accepted;
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
            _account: account,
        }
    }

    /// Drives the run to its end with `context` as its memory of the conversation.
    pub(crate) async fn run(mut self, context: Context) -> Ended {
        let began = Instant::now();
        let mut broken = self.drive(context).await.err();
        // A journal that takes events can be told how it ends; a run that cannot go on has failed.
        let ended = self.state.status.is_terminal();
        if let Some(fault) = broken.take_if(|fault| fault.code == "run.illegal_event" && !ended) {
            broken = self.end_by_force(fault).await.err();
        }
        // What is still in flight is of no use to an ended run.
        self.stop.cancel();
        self.in_flight.clear();
        if let Some(fault) = &broken {
            tracing::error!(run = %self.state.run, code = %fault.code, "{}", fault.message);
        }
        let overhead = began.elapsed().saturating_sub(self.waited.total());
        Ended { state: self.state, overhead, broken, turns: self.turns }
    }

    async fn drive(&mut self, context: Context) -> Result<(), Fault> {
        let mut context = Some(context);
        if self.taken_over {
            self.record(Event::RunResumed { epoch: self.state.epoch + 1 }).await?;
        }
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

    /// Carries out what people want, as far as they have said so.
    async fn carry_out(&mut self) -> Result<(), Fault> {
        while let Some(order) = self.orders.as_mut().and_then(|orders| orders.try_recv().ok()) {
            self.obey(order).await?;
        }
        Ok(())
    }

    /// Whether the run can be left: nobody wants anything of it, and whoever does from now on takes it up
    /// again.
    fn is_left(&mut self) -> bool {
        let ended = self.state.status.is_terminal();
        let Some(orders) = &mut self.orders else { return true };
        self.live.leave(orders, || !ended && self.wishes.has_changed().unwrap_or(false))
    }

    /// One order: the events that carry it out are on disk before it is answered.
    async fn obey(&mut self, order: Order) -> Result<(), Fault> {
        let Order { command, mut word, reply } = order;
        let events = match planner::command(&self.state, &self.shared.catalogue, &command) {
            Ok(events) => events,
            Err(mut refused) => {
                if let Some(lapse) = refused.record.take() {
                    self.record(lapse.0).await?;
                    // Whoever looks again finds what is asked now.
                    self.put().await?;
                }
                let _ = reply.send(Err(refused));
                return Ok(());
            }
        };
        for mut event in events {
            // In the same commit, so that whoever sends it again is known whenever it was decided.
            if let Event::Decided { word: said, .. } = &mut event {
                *said = word.take();
            }
            if let Err(illegal) = self.state.check(&event) {
                let fault = Fault::new("run.not_now", illegal.to_string());
                let _ = reply.send(Err(planner::Refused { fault, difference: Vec::new(), record: None }));
                return Ok(());
            }
            self.reopened |= matches!(event, Event::RunReopened { .. });
            self.append(event).await?;
        }
        // Whoever asked may have gone.
        let _ = reply.send(Ok(()));
        Ok(())
    }

    /// An approval whose tools have changed counts no more.
    async fn see_what_lapsed(&mut self) -> Result<(), Fault> {
        while let Some(event) = planner::lapsed(&self.state, &self.shared.catalogue) {
            self.record(event).await?;
        }
        Ok(())
    }

    /// Has what is due to be put to a person put to one.
    async fn put(&mut self) -> Result<(), Fault> {
        while let Some(Action::Record {
            event: event @ (Event::ApprovalRequired { .. } | Event::RunWaiting {}),
        }) = self.state.next().into_iter().next()
        {
            self.append(event).await?;
        }
        Ok(())
    }

    /// Looks the plan in force through before its first step: the event where it cannot be carried out.
    fn look_through(&mut self) -> Option<Event> {
        let version = self.state.plans.len() as u32;
        if self.looked_through == version || self.state.has_begun() {
            return None;
        }
        self.looked_through = version;
        let mut problems = planner::preflight(&self.state, &self.shared.catalogue);
        problems.extend(self.too_dear());
        (!problems.is_empty()).then_some(Event::PlanRefused { version, problems })
    }

    /// Whether the plan writes, and the budget has not even the least left that its steps will cost: it would
    /// end in the middle.
    fn too_dear(&self) -> Option<Problem> {
        let (state, catalogue) = (&self.state, &self.shared.catalogue);
        let plan = &state.plan()?.plan;
        // Replies that are kept cost nothing, and a dry run does nothing.
        if !planner::expects_writes(catalogue, plan)
            || state.is_dry_run()
            || self.cache.is_some_and(CacheMode::reads)
        {
            return None;
        }
        let gateway = &self.shared.gateway;
        let least: u64 = plan
            .steps
            .iter()
            .map(|step| {
                let subject = Subject::Scene { step: step.step_number };
                gateway.least_cost(&planner::request(state, catalogue, subject))
            })
            .fold(0, u64::saturating_add);
        let caller = self.caller();
        let refusal = gateway.guards().budget.affords(&caller, least).err()?;
        let what = format!("the steps cost at least what is not left: {refusal}");
        Some(Problem::new("budget.exceeded", what))
    }

    fn caller(&self) -> Caller {
        Caller {
            tenant: self.principal.tenant.clone(),
            session: self.session.clone(),
            run: Some(self.state.run),
            cache: self.cache,
        }
    }

    /// Ends a run that cannot go on, with all that nobody will hear of any more put to people.
    async fn end_by_force(&mut self, why: Fault) -> Result<(), Fault> {
        self.stop_asking().await?;
        self.append_together(self.state.forced_end(why)).await
    }

    /// Ends the questions under way and records what they cost, before the run's last event: what was
    /// charged to a budget is in the journal. So is what became of a write, where that is heard of now.
    async fn stop_asking(&mut self) -> Result<(), Fault> {
        self.stop.cancel();
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while let Ok(Some((event, _))) = tokio::time::timeout_at(deadline, self.in_flight.next()).await {
            let counts = matches!(event, Event::ModelReplied { .. } | Event::ModelFailed { .. })
                || self.is_about_a_write(&event);
            if counts && self.state.check(&event).is_ok() {
                self.record(event).await?;
            }
        }
        // Whatever does not end is of no use to an ended run.
        self.in_flight.clear();
        Ok(())
    }

    async fn perform(&mut self, action: Action, context: &mut Option<Context>) -> Result<(), Fault> {
        match action {
            // The machine is asked again afterwards.
            Action::Record { event } if event.is_terminal() && !self.in_flight.is_empty() => {
                self.stop_asking().await
            }
            Action::Start => {
                let context = context.take().unwrap_or_default();
                let language = language(self.state.request(), &context);
                let started = RunStarted {
                    now: self.shared.clock.now(),
                    language,
                    settings: Settings {
                        approval: self.shared.approval.policy_of(&self.principal.tenant),
                        ..self.shared.settings.clone()
                    },
                    catalogue: self.shared.catalogue_hash.to_string(),
                    context,
                };
                self.append(Event::RunStarted(started)).await
            }
            Action::Record { event: event @ Event::StepStarted { .. } } => {
                let event = self.look_through().unwrap_or(event);
                self.append(event).await
            }
            Action::Record { event } => self.append(event).await,
            Action::Take { version } => {
                let event = planner::given(&self.state, &self.shared.catalogue, version);
                self.record(event).await
            }
            Action::Read { call, subject } => {
                let event = planner::read(&self.state, &self.shared.catalogue, call, subject);
                match self.unread.remove(&call) {
                    Some(confirm) if is_usable(&event) => confirm.accepted().await,
                    Some(confirm) => confirm.rejected().await,
                    None => {}
                }
                self.record(event).await
            }
            Action::Ask { call, subject, attempt, fallback } => {
                let request = planner::request(&self.state, &self.shared.catalogue, subject);
                let prompt_hash = planner::prompt_hash(&request);
                self.append(Event::ModelAsked { call, subject, attempt, fallback, prompt_hash }).await?;
                self.ask(call, subject, request, fallback);
                Ok(())
            }
            Action::Call { call, attempt } => {
                self.append(Event::ToolStarted { call, attempt }).await?;
                self.call(call);
                Ok(())
            }
        }
    }

    fn ask(&mut self, call: u32, subject: Subject, request: llm::Request, fallback: bool) {
        if let Some(asked) = self.replaced(subject, &request, fallback) {
            let stop = self.stop.clone();
            self.in_flight.push(Box::pin(async move {
                let asked_at = Instant::now();
                let result = asked.answer(&stop).await;
                let (millis, usage) = (millis(asked_at), Usage::default());
                let event = match result {
                    Ok(reply) => Event::ModelReplied { call, reply, usage, millis, attempts: Vec::new() },
                    Err(error) => Event::ModelFailed { call, error, usage, millis, attempts: Vec::new() },
                };
                (event, None)
            }));
            return;
        }
        let gateway = self.shared.gateway.clone();
        let scene = match subject {
            Subject::Scene { step } => {
                self.state.steps.get(&step).and_then(|s| self.shared.scenes.get(&s.step.scene_name)).cloned()
            }
            _ => None,
        };
        let stop = self.stop.clone();
        let caller = self.caller();
        let shown = Shown::of(&self.state, subject);
        let sink = shown.map_or_else(Sink::default, |shown| self.live.feed.sink(shown));
        self.in_flight.push(Box::pin(async move {
            let asked = Instant::now();
            let result = match scene {
                Some(scene) => scene.ask(caller, request, fallback, stop).await,
                None => gateway
                    .complete_telling(caller, request, fallback, &stop, sink)
                    .await
                    .map_err(scene::Failed::from),
            };
            let millis = millis(asked);
            match result {
                Ok(done) => {
                    let (usage, attempts) = (done.usage, done.attempts);
                    let event = Event::ModelReplied { call, reply: done.reply, usage, millis, attempts };
                    (event, Some(done.confirm))
                }
                Err(scene::Failed { fault: error, attempts }) => {
                    let usage = Attempt::sum(&attempts);
                    (Event::ModelFailed { call, error, usage, millis, attempts }, None)
                }
            }
        }));
    }

    fn call(&mut self, number: u32) {
        let Some(call) = self.state.calls.get(&number) else { return };
        let Some(started) = &self.state.started else { return };
        let handle = self.shared.scenes.get(&call.scene).cloned();
        let writes = call.requested.effect == Effect::Write;
        let work = scene::Call {
            tool: call.requested.tool.clone(),
            arguments: call.requested.arguments.clone(),
            principal: self.principal.clone(),
            now: started.now.clone(),
            language: started.language.clone(),
            session: self.session.clone(),
            run: self.state.run,
            step: call.step,
            idempotency_key: writes.then(|| idempotency_key(self.state.run, call.step, number)),
            cancelled: self.stop.clone(),
        };
        let executor = self.shared.replaced.executor.clone();
        let gateway = self.shared.gateway.clone();
        let name = call.scene.clone();
        self.in_flight.push(Box::pin(async move {
            let asked = Instant::now();
            let outcome = match (handle, executor) {
                (Some(scene), Some(executor)) => {
                    replaced::execute(&gateway, executor, name, scene, work, writes).await
                }
                (Some(scene), None) => scene.call(work).await,
                (None, _) => {
                    Outcome::Failed { error: Fault::new("scene.unknown", "the scene is not loaded") }
                }
            };
            (Event::ToolCompleted { call: number, outcome, millis: millis(asked) }, None)
        }));
    }

    /// Who answers in place of a model, if anybody does. The embedded rules are nobody's to replace: they
    /// are asked when that has failed.
    fn replaced(&self, subject: Subject, request: &llm::Request, fallback: bool) -> Option<replaced::Asked> {
        if fallback {
            return None;
        }
        replaced::Asked::of(&self.shared, &self.state, subject, request)
    }

    /// Appends, applies, tells: in this order.
    async fn record(&mut self, event: Event) -> Result<(), Fault> {
        let illegal = |error: Illegal| Fault::new("run.illegal_event", error.to_string());
        self.state.check(&event).map_err(illegal)?;
        self.append(event).await
    }

    /// The same for an event that the machine has just asked for: what is due can happen.
    async fn append(&mut self, event: Event) -> Result<(), Fault> {
        debug_assert_eq!(self.state.check(&event), Ok(()));
        self.append_together(vec![event]).await
    }

    /// The same for several, none of which is on disk without the others.
    async fn append_together(&mut self, events: Vec<Event>) -> Result<(), Fault> {
        let durable = events.iter().any(|event| event.must_be_durable(self.is_about_a_write(event)));
        let (at, first) = (Timestamp::now(), self.state.seq + 1);
        let envelopes: Vec<Told> =
            (first..).zip(events).map(|(seq, event)| Arc::new(self.envelope(seq, at, event))).collect();
        if !self.known.is_empty() {
            self.shared.journal.known(std::mem::take(&mut self.known));
        }
        for envelope in &envelopes {
            crash::point(crash::BEFORE, envelope.body.name(), self.state.request());
        }
        let records = envelopes.iter().cloned().map(Record::Run).collect();
        match envelopes.last().filter(|last| last.body.is_terminal()) {
            Some(last) => self.append_last(records, last).await?,
            None => {
                self.shared.journal.append(records, durable).await.map_err(|error| store_fault(&error))?
            }
        }
        for envelope in envelopes {
            crash::point(crash::AFTER, envelope.body.name(), self.state.request());
            self.state.apply_checked(&envelope.body);
            self.live.feed.journalled(envelope.seq, &envelope.body);
            // Nobody may be listening.
            let _ = self.live.listeners.send(envelope);
        }
        Ok(())
    }

    fn envelope(&self, seq: u64, at: Timestamp, event: Event) -> Envelope<Event> {
        Envelope {
            seq,
            run: Some(self.state.run),
            session: self.session.clone(),
            tenant: self.principal.tenant.clone(),
            at,
            epoch: match &event {
                Event::RunResumed { epoch } => *epoch,
                _ => self.state.epoch,
            },
            schema: SCHEMA,
            body: event,
        }
    }

    /// With a run's end the conversation remembers it, in the same commit.
    async fn append_last(&mut self, mut records: Vec<Record>, last: &Told) -> Result<(), Fault> {
        let session = self.session_seq.clone();
        let mut seq = session.lock().await;
        let turn = self.turn(last, *seq + 1);
        let remembered = turn.as_ref().map(|turn| turn.body.clone());
        records.extend(turn.map(Record::Session));
        self.shared.journal.append(records, true).await.map_err(|error| store_fault(&error))?;
        if let Some(remembered) = remembered {
            *seq += 1;
            self.turns.push((*seq, remembered));
        }
        Ok(())
    }

    fn turn(&self, last: &Envelope<Event>, seq: u64) -> Option<Envelope<SessionEvent>> {
        let mut ended = self.state.clone();
        ended.apply(&last.body).ok()?;
        let body = memory::turn_ended(&ended)?;
        Some(Envelope {
            seq,
            run: None,
            session: last.session.clone(),
            tenant: last.tenant.clone(),
            at: last.at,
            epoch: 0,
            schema: SCHEMA,
            body,
        })
    }

    fn is_about_a_write(&self, event: &Event) -> bool {
        let (Event::ToolStarted { call, .. } | Event::ToolCompleted { call, .. }) = event else {
            return false;
        };
        self.state.calls.get(call).is_some_and(|c| c.requested.effect == Effect::Write)
    }
}

/// The next order; for ever where there can be none.
async fn next_order(orders: &mut Option<mpsc::Receiver<Order>>) -> Option<Order> {
    match orders {
        Some(orders) => orders.recv().await,
        None => std::future::pending().await,
    }
}

/// A store's error as a fault of a run.
pub(crate) fn store_fault(error: &store::Error) -> Fault {
    Fault::new(error.code(), error.to_string())
}

/// Whether a reply could be used as it is, so that an equal question may get it, too.
fn is_usable(read: &Event) -> bool {
    match read {
        Event::ReplyRejected { .. } => false,
        Event::SceneReplied { calls, .. } => calls.iter().all(|call| call.problem.is_none()),
        _ => true,
    }
}

/// The language of the request; of the conversation so far where the request is too short to tell.
fn language(request: &str, context: &Context) -> Option<String> {
    llm::language::detect(request)
        .or_else(|| context.turns.iter().rev().find_map(|turn| llm::language::detect(&turn.request)))
        .map(str::to_owned)
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Adds up the time in which something was awaited.
#[derive(Default)]
struct Waited {
    since: Option<Instant>,
    total: Duration,
}

impl Waited {
    fn busy(&mut self, waiting: bool) {
        match (self.since, waiting) {
            (None, true) => self.since = Some(Instant::now()),
            (Some(since), false) => {
                self.total += since.elapsed();
                self.since = None;
            }
            _ => {}
        }
    }

    fn total(&self) -> Duration {
        self.total
    }
}
