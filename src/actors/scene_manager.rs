//! `SceneManager`: one live conversation. Its requests run in the order they came; its memory is a
//! fold of the session's stream; when nothing is left to do it goes to sleep in the store.

mod carry;
mod decide;
mod erase;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix::prelude::*;
use arc_swap::ArcSwap;
use futures::future::join_all;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::aside::aside;
use super::driver::{self, Driver, Ended, SessionSeq, Shared, store_fault};
use super::launch;
use super::live::Watch;
use super::session_registry::{self, Asleep};
use crate::answer::Answer;
use crate::crash;
use crate::llm::budget::{Hold, Scope};
use crate::llm::{Caller, Purpose};
use crate::memory::{self, Memory};
use crate::plan::{Plan, TaskId};
use crate::run::{
    Attempt, Context as Remembered, Envelope, Event, Fault, Idempotency, RunId, RunQueued, RunState,
    RunStatus, SCHEMA, SessionEvent, SessionId, TenantId, Turn, Usage,
};
use crate::store::{self, Record, Store};
use crate::telemetry::{Outside, Part, Queued};

pub(crate) use carry::CarryOn;
pub(crate) use decide::Do;
use decide::{Parked, TakenUp};
pub(crate) use erase::{Erase, session_busy};

/// What every conversation works with.
#[derive(Clone)]
pub(crate) struct Options {
    /// What runs that start now work with; another after the configuration was read anew.
    pub(crate) shared: Arc<ArcSwap<Shared>>,
    pub(crate) store: Store,
    pub(crate) memory: memory::Options,
    /// Most requests of one conversation that wait.
    pub(crate) max_queued: usize,
    /// How long a conversation stays awake with nothing to do.
    pub(crate) idle: Duration,
    /// Hears of what waits and of what is refused.
    pub(crate) outside: Outside,
    /// Whether runs that an earlier process left unfinished are carried on here.
    pub(crate) carries_on: Arc<AtomicBool>,
}

/// A request to a conversation.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Submit {
    /// The conversation was named just now: nothing of it can be in the store.
    pub(crate) is_first: bool,
    pub(crate) message: String,
    pub(crate) user: String,
    pub(crate) plan_only: bool,
    /// Its client's name for it; the journal takes each once.
    pub(crate) idempotency: Option<Idempotency>,
    /// What was asked, for a client that sends again without a name.
    pub(crate) asked: Option<String>,
    /// The conversation as the client tells it, where it is not kept here.
    /// Whether a yes may not approve what the same user has asked for.
    pub(crate) no_own_approval: bool,
    pub(crate) history: Option<Vec<Turn>>,
    /// The chatbot's own instructions.
    pub(crate) instructions: Option<String>,
    /// How its questions use the cache.
    pub(crate) cache: Option<crate::llm::cache::Mode>,
    /// Its plan is to be approved by a person.
    pub(crate) require_approval: bool,
    /// Nothing is written.
    pub(crate) dry_run: bool,
    /// The plan, made by a person.
    pub(crate) plan: Option<Plan>,
    pub(crate) received: Instant,
    pub(crate) reply: oneshot::Sender<Result<Accepted, Fault>>,
    /// From the registry on, until its turn comes.
    pub(crate) waiting: Option<Queued>,
}

/// A request that is in the journal and will end in exactly one way.
pub(crate) struct Accepted {
    /// From its first event on; of a run that was decided about, from later on.
    pub(crate) watch: Watch,
    /// The number of the last event before the request; 0 where the run begins with it.
    pub(crate) before: u64,
    pub(crate) answer: oneshot::Receiver<Result<Answer, Fault>>,
}

/// A run that waits for its turn.
struct Waiting {
    run: driver::Accepted,
    received: Instant,
    /// Who waits for its answer, if anybody does.
    answer: Option<oneshot::Sender<Result<Answer, Fault>>>,
    queued: Option<Queued>,
    /// How often its driver has ended without ending it.
    crashes: u32,
}

/// A request on its way into the queue.
struct Place {
    waiting: Waiting,
    accepted: Accepted,
    reply: oneshot::Sender<Result<Accepted, Fault>>,
}

/// One conversation.
pub(crate) struct SceneManager {
    tenant: TenantId,
    session: SessionId,
    options: Options,
    registry: session_registry::Address,
    /// Which of the actors that the registry started this is.
    life: usize,
    /// `None` until it was read from the store.
    memory: Option<Memory>,
    /// The last number of the session's own stream.
    seq: SessionSeq,
    /// The number of the last event that is in the memory, and those that came before their turn.
    remembered: u64,
    early_turns: BTreeMap<u64, SessionEvent>,
    /// The run that is driven as the next of the queue.
    at_work: Option<RunId>,
    /// Runs that wait for a person.
    parked: BTreeMap<RunId, Parked>,
    /// Runs that are driven beside the queue, for what somebody wants of them.
    taken_up: HashMap<RunId, TakenUp>,
    /// What is wanted of the run at work, whose driver has just left.
    left_over: HashMap<RunId, TakenUp>,
    /// Requests that came before the memory was there.
    early: VecDeque<Submit>,
    /// What was wanted of its runs before that.
    early_wishes: Vec<Do>,
    /// Wishes to erase that came before the memory was there and before any request.
    erasing: Vec<Erase>,
    queue: VecDeque<Waiting>,
    /// Who waits until every unfinished run of an earlier process is under way or waits for its turn.
    waking: Vec<oneshot::Sender<()>>,
    /// Who waits until each of them has ended.
    carrying: Vec<oneshot::Sender<()>>,
    busy: bool,
    /// Ends the summary that is being made.
    summary: Option<CancellationToken>,
    /// Submissions received: by it the registry knows whether one is still on its way.
    received: u64,
    timer: Option<SpawnHandle>,
    /// Keeps the conversation's account while it is awake.
    account: Option<Hold>,
}

impl SceneManager {
    pub(crate) fn launch(
        arbiter: &ArbiterHandle,
        tenant: TenantId,
        session: SessionId,
        options: Options,
        registry: session_registry::Address,
        life: usize,
        is_new: bool,
    ) -> Addr<Self> {
        let mut manager = Self {
            tenant,
            session,
            options,
            registry,
            life,
            memory: None,
            seq: SessionSeq::default(),
            remembered: 0,
            early_turns: BTreeMap::new(),
            at_work: None,
            parked: BTreeMap::new(),
            taken_up: HashMap::new(),
            left_over: HashMap::new(),
            early: VecDeque::new(),
            early_wishes: Vec::new(),
            erasing: Vec::new(),
            queue: VecDeque::new(),
            waking: Vec::new(),
            carrying: Vec::new(),
            busy: false,
            summary: None,
            received: 0,
            timer: None,
            account: None,
        };
        if is_new {
            let budget = manager.options.shared.load().gateway.guards().budget.clone();
            manager.account = Some(budget.hold_session(&manager.tenant, &manager.session, 0));
            manager.memory = Some(Memory::new(manager.options.memory.clone()));
        }
        launch::start(arbiter, manager.options.max_queued.max(1), manager)
    }

    fn wake(&mut self, ctx: &mut Context<Self>) {
        let (store, tenant, session) =
            (self.options.store.clone(), self.tenant.clone(), self.session.clone());
        let shared = self.options.shared.load();
        let (budget, journal) = (shared.gateway.guards().budget.clone(), shared.journal.clone());
        let carries_on = self.options.carries_on.load(Ordering::Acquire);
        let read = aside(async move {
            let left = carry::unfinished(&store, &journal, &tenant, &session, carries_on).await?;
            let events = store.session_events(&tenant, &session).await?;
            // What is not limited need not be added up.
            let spent = match budget.limit(Scope::Session) {
                Some(_) => store.session_usage(&tenant, &session).await?.cost_nano_usd,
                None => 0,
            };
            Ok::<_, store::Error>((events, left, budget.hold_session(&tenant, &session, spent)))
        });
        ctx.spawn(read.into_actor(self).map(|read, manager, ctx| match read {
            Ok((events, left, account)) => {
                manager.account = Some(account);
                let mut memory = Memory::new(manager.options.memory.clone());
                for event in &events {
                    memory.apply(&event.body);
                    manager.remembered = event.seq;
                }
                // Nobody else holds it before the first run is driven.
                manager.seq = Arc::new(tokio::sync::Mutex::new(manager.remembered));
                manager.memory = Some(memory);
                // What the conversation was told before it slept is what its last turn is not newer than.
                let last = events.last().map(|event| event.at);
                manager.parked = left.parked;
                for parked in manager.parked.values_mut() {
                    parked.told &= last.is_none_or(|last| last < parked.since);
                }
                manager.take_over(left.runs);
                manager.woken(ctx);
            }
            Err(error) => manager.give_up(error, ctx),
        }));
    }

    /// Does what came while the conversation woke.
    fn woken(&mut self, ctx: &mut Context<Self>) {
        for wish in std::mem::take(&mut self.early_wishes) {
            self.carry_out(wish, ctx);
        }
        if self.erasing.is_empty() {
            let early = std::mem::take(&mut self.early);
            self.accept(early, ctx);
        } else {
            self.erase(None, ctx);
        }
    }

    /// Ends a conversation that cannot be read, or whose stream takes nothing more. First the registry
    /// forgets it, as when it sleeps: so what is on its way here is answered, and what comes after that
    /// answer meets an actor that reads anew.
    fn give_up(&mut self, error: store::Error, ctx: &mut Context<Self>) {
        self.memory = None;
        // What cannot be read can be erased.
        if !self.erasing.is_empty() {
            return self.erase(Some(error), ctx);
        }
        let forgotten = self.ask_to_sleep();
        ctx.spawn(forgotten.into_actor(self).map(|agreed, manager, ctx| {
            if !agreed {
                return manager.give_up(error, ctx);
            }
            for wish in std::mem::take(&mut manager.early_wishes) {
                let _ = wish.reply.send(Err(decide::refused(error.code(), error.to_string())));
            }
            for submit in std::mem::take(&mut manager.early) {
                let _ = submit.reply.send(Err(store_fault(&error)));
            }
            ctx.stop();
        }));
    }

    /// Puts requests into the journal, in the order they came; only then they are accepted.
    fn accept(&mut self, submits: impl IntoIterator<Item = Submit>, ctx: &mut Context<Self>) {
        let mut appends = Vec::new();
        let mut places = Vec::new();
        let shared = self.options.shared.load_full();
        let journal = &shared.journal;
        let mut decisions = Vec::new();
        for mut submit in submits {
            // A plan that is sent, or only wanted, is no word about another; nor is a request that is to
            // write nothing, or to be approved first.
            let speaks =
                submit.plan.is_none() && !submit.plan_only && !submit.dry_run && !submit.require_approval;
            match if speaks { self.says(&submit.message) } else { Ok(None) } {
                Ok(None) => {}
                // Sent again after a restart it would be taken for another word, about whatever waits then.
                Ok(Some(_)) if submit.idempotency.is_some() => {
                    let message = "a decision in words cannot carry an `Idempotency-Key`: leave it out, or decide with \
                                   POST /api/approvals/{id}, which is safe to send again";
                    let _ = submit.reply.send(Err(Fault::new("approval.keyed_words", message)));
                    continue;
                }
                Ok(Some(said)) => {
                    decisions.push((said, submit));
                    continue;
                }
                Err(fault) => {
                    let _ = submit.reply.send(Err(fault));
                    continue;
                }
            }
            if self.queue.len() + places.len() >= self.options.max_queued {
                let message = format!(
                    "{} requests of this conversation are waiting already; wait for an answer before sending more",
                    self.options.max_queued
                );
                submit.waiting = None;
                self.options.outside.shed(Part::SceneManager);
                let _ = submit.reply.send(Err(Fault::new("session.queue_full", message)));
                continue;
            }
            let words = if cfg!(feature = "crash-points") { submit.message.clone() } else { String::new() };
            let (record, place) = self.place(submit);
            let journal = journal.clone();
            appends.push(async move {
                crash::point(crash::BEFORE, "run_queued", &words);
                let appended = journal.append(vec![record], true).await;
                crash::point(crash::AFTER, "run_queued", &words);
                appended
            });
            places.push(place);
        }
        for (said, submit) in decisions {
            self.decide(&said, submit, ctx);
        }
        if places.is_empty() {
            self.proceed(ctx);
            return;
        }
        // Each by itself, since one that is refused takes no other with it; one commit carries them all.
        let appends = join_all(appends);
        // The next message is read when these are on disk. One wait for all of them: of several, the
        // actor would end the newest first.
        ctx.wait(appends.into_actor(self).map(move |results, manager, ctx| {
            for (result, Place { waiting, accepted, reply }) in results.into_iter().zip(places) {
                // Whoever asked may have gone; the request is carried out all the same.
                let _ = reply.send(match result {
                    Ok(()) => {
                        manager.queue.push_back(waiting);
                        Ok(accepted)
                    }
                    Err(error) => Err(store_fault(&error)),
                });
            }
            manager.proceed(ctx);
        }));
    }

    /// A request's first record, and its place in the queue.
    fn place(&self, submit: Submit) -> (Record, Place) {
        let run = RunId(Uuid::now_v7());
        let queued = RunQueued {
            plan_only: submit.plan_only,
            idempotency: submit.idempotency,
            asked: submit.asked,
            history: submit.history,
            instructions: submit.instructions,
            cache: submit.cache,
            require_approval: submit.require_approval,
            dry_run: submit.dry_run,
            plan: submit.plan,
            ..RunQueued::new(submit.message, submit.user, TaskId(Uuid::now_v7()))
        };
        let envelope = Envelope {
            seq: 1,
            run: Some(run),
            session: self.session.clone(),
            tenant: self.tenant.clone(),
            at: Timestamp::now(),
            epoch: 0,
            schema: SCHEMA,
            body: Event::RunQueued(queued.clone()),
        };
        let (live, watch) =
            self.options.shared.load().live.enter(run, queued.task, &self.tenant, &self.session);
        let (answer, answered) = oneshot::channel();
        let place = Place {
            waiting: Waiting {
                run: driver::Accepted::new(run, queued, live),
                received: submit.received,
                answer: Some(answer),
                queued: submit.waiting,
                crashes: 0,
            },
            accepted: Accepted { watch, before: 0, answer: answered },
            reply: submit.reply,
        };
        (Record::Run(envelope.into()), place)
    }

    /// Starts the next request, makes a summary that is due, or thinks of sleep.
    fn proceed(&mut self, ctx: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        self.tell_carried();
        if self.busy {
            return;
        }
        let Some(memory) = &self.memory else { return };
        let window = self.options.shared.load().gateway.context_window(Purpose::Plan) as usize;
        if let Some(job) = memory.needs_summary(window) {
            self.busy = true;
            self.summarise(job, ctx);
        } else if let Some(waiting) = self.queue.pop_front() {
            self.busy = true;
            self.start(waiting, ctx);
        } else if self.taken_up.is_empty() {
            self.timer = Some(ctx.run_later(self.options.idle, |manager, ctx| manager.sleep(ctx)));
        }
    }

    fn start(&mut self, waiting: Waiting, ctx: &mut Context<Self>) {
        let Waiting { run, received, answer, queued, crashes } = waiting;
        drop(queued);
        let live = run.live.clone();
        let id = run.state.run;
        self.at_work = Some(id);
        let remembered = self.remembered(&run.state);
        let shared = Shared::clone(&self.options.shared.load());
        let (gateway, all) = (shared.gateway.clone(), shared.live.clone());
        let driver = Driver::new(shared, self.session.clone(), self.tenant.clone(), run, self.seq.clone());
        // A task of its own: a panic in it ends this run and nothing else. It runs where models are called,
        // and this handle on the gateway outlives it.
        let work = async move {
            let task = gateway.spawn(all.until_end(driver.run(remembered))).map_err(|e| e.to_string())?;
            task.await.map_err(|e| e.to_string())
        };
        ctx.spawn(work.into_actor(self).map(move |ended, manager, ctx| {
            let result = match ended {
                Ok(Some(ended)) => manager.ended(ended, received, answer.is_some(), false),
                // So does this actor; whoever waits for the answer is told by its absence.
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(run = %id, error, "the driver of a run panicked");
                    let crashed = carry::Crashed { run: id, live, received, answer, crashes: crashes + 1 };
                    return manager.crashed(crashed, ctx);
                }
            };
            // Only now is it not under way any more.
            drop(live);
            // The client may have gone away.
            if let Some(answer) = answer {
                let _ = answer.send(result);
            }
            manager.busy = false;
            manager.at_work = None;
            manager.take_left_over(id, ctx);
            manager.proceed(ctx);
        }));
    }

    fn remembered(&self, run: &RunState) -> Remembered {
        let Some(queued) = run.queued.as_ref().filter(|_| run.started.is_none()) else {
            return Remembered::default();
        };
        let window = self.options.shared.load().gateway.context_window(Purpose::Plan) as usize;
        let budget = self.options.memory.budget(window);
        let remembered = match &queued.history {
            Some(turns) => {
                let mut memory = Memory::new(self.options.memory.clone());
                for turn in turns.clone() {
                    memory.apply(&SessionEvent::TurnEnded { turn, pending: None, usage: Usage::default() });
                }
                memory.context(budget)
            }
            None => self.memory.as_ref().map(|m| m.context(budget)).unwrap_or_default(),
        };
        memory::with_instructions(remembered, queued.instructions.as_deref())
    }

    /// What a run came to. `told` says that its answer is the conversation's own, for whoever speaks in it;
    /// `still` that it stands where it stood when that was so.
    fn ended(&mut self, ended: Ended, received: Instant, told: bool, still: bool) -> Result<Answer, Fault> {
        for (seq, event) in ended.turns {
            self.remember(seq, event);
        }
        if let Some(fault) = ended.broken {
            if ended.state.status == RunStatus::Waiting {
                self.parked.insert(ended.state.run, Parked::of(&ended.state, false));
            }
            return Err(fault);
        }
        if told {
            // A yes or a no is about what was said last.
            self.parked.values_mut().for_each(|parked| parked.told = false);
        }
        if ended.state.status == RunStatus::Waiting {
            self.parked.insert(ended.state.run, Parked::of(&ended.state, told || still));
        }
        let session_cost = self.memory.as_ref().map_or(0, |m| m.usage().cost_nano_usd);
        Ok(Answer::new(&ended.state, &self.session, session_cost, received.elapsed(), ended.overhead))
    }

    /// Remembers an event of the session's stream, in its order: several runs may end at once.
    fn remember(&mut self, seq: u64, event: SessionEvent) {
        // It may have been read from the stream meanwhile.
        if seq <= self.remembered {
            return;
        }
        self.early_turns.insert(seq, event);
        while let Some(event) = self.early_turns.remove(&(self.remembered + 1)) {
            self.remembered += 1;
            if let Some(memory) = &mut self.memory {
                memory.apply(&event);
            }
        }
    }

    /// Has the oldest turns summarised; without a model if need be, so that it always ends.
    fn summarise(&mut self, job: memory::SummaryJob, ctx: &mut Context<Self>) {
        let language = job.turns.last().and_then(|turn| crate::llm::language::detect(&turn.request));
        let request = memory::prompt::summary_request(&job, language);
        let gateway = self.options.shared.load().gateway.clone();
        let journal = self.options.shared.load().journal.clone();
        let (session, tenant, seq) = (self.session.clone(), self.tenant.clone(), self.seq.clone());
        let caller = Caller { tenant: tenant.clone(), session: session.clone(), run: None, cache: None };
        let stop = CancellationToken::new();
        self.summary = Some(stop.clone());
        let work = async move {
            let mut events = Vec::new();
            match gateway.complete(&caller, &request, false, &stop).await {
                Ok(done) if !done.reply.text.trim().is_empty() => {
                    done.confirm.accepted().await;
                    events.push(SessionEvent::Summarised {
                        through: job.through,
                        summary: done.reply.text.trim().to_owned(),
                        usage: done.usage,
                        attempts: done.attempts,
                    });
                }
                other => {
                    let (error, usage, attempts) = match other {
                        Ok(done) => {
                            done.confirm.rejected().await;
                            (Fault::new("summary.empty", "the summary was empty"), done.usage, done.attempts)
                        }
                        Err(error) => {
                            let failure = super::scene::Failed::from(error);
                            (failure.fault, Attempt::sum(&failure.attempts), failure.attempts)
                        }
                    };
                    events.push(SessionEvent::SummaryFailed { error, usage, attempts });
                    events.push(SessionEvent::Summarised {
                        through: job.through,
                        summary: job.fallback(),
                        usage: Usage::default(),
                        attempts: Vec::new(),
                    });
                }
            }
            let mut seq = seq.lock().await;
            let first = *seq + 1;
            let records = events
                .iter()
                .enumerate()
                .map(|(i, body)| {
                    Record::Session(Envelope {
                        seq: first + i as u64,
                        run: None,
                        session: session.clone(),
                        tenant: tenant.clone(),
                        at: Timestamp::now(),
                        epoch: 0,
                        schema: SCHEMA,
                        body: body.clone(),
                    })
                })
                .collect();
            journal.append(records, true).await?;
            *seq += events.len() as u64;
            Ok((first, events))
        };
        ctx.spawn(work.into_actor(self).map(|result, manager, ctx| {
            manager.summary = None;
            match result {
                Ok((first, events)) => {
                    for (at, event) in events.into_iter().enumerate() {
                        manager.remember(first + at as u64, event);
                    }
                    manager.busy = false;
                    manager.summarised(ctx);
                }
                // The stream refuses further events until it is read anew.
                Err(error) => {
                    let fault = store_fault(&error);
                    for waiting in std::mem::take(&mut manager.queue) {
                        if let Some(answer) = waiting.answer {
                            let _ = answer.send(Err(fault.clone()));
                        }
                    }
                    manager.give_up(error, ctx);
                }
            }
        }));
    }

    /// Asks the registry to be forgotten; it agrees if no request is on its way here.
    fn sleep(&mut self, ctx: &mut Context<Self>) {
        // The timer may have fired just as a request came; whatever is at work proceeds afterwards.
        if self.busy || !self.queue.is_empty() || !self.taken_up.is_empty() {
            return;
        }
        let ask = self.ask_to_sleep();
        ctx.spawn(ask.into_actor(self).map(|agreed, manager, ctx| {
            if agreed && !manager.busy && manager.queue.is_empty() && manager.taken_up.is_empty() {
                ctx.stop();
            } else {
                manager.proceed(ctx);
            }
        }));
    }

    /// Asks the registry whether nothing is on its way here; where it agrees it has forgotten this actor.
    fn ask_to_sleep(&self) -> impl Future<Output = bool> + 'static + use<> {
        let wish = Asleep {
            tenant: self.tenant.clone(),
            session: self.session.clone(),
            life: self.life,
            received: self.received,
        };
        let registry = self.registry.clone();
        async move { registry.may_sleep(wish).await }
    }
}

impl Actor for SceneManager {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        if self.memory.is_none() {
            self.wake(ctx);
        }
    }
}

impl Handler<Submit> for SceneManager {
    type Result = ();

    fn handle(&mut self, mut submit: Submit, ctx: &mut Context<Self>) {
        self.received += 1;
        if self.memory.is_some() {
            self.accept([submit], ctx);
        } else if self.early.len() < self.options.max_queued {
            self.early.push_back(submit);
        } else {
            submit.waiting = None;
            self.options.outside.shed(Part::SceneManager);
            let _ = submit
                .reply
                .send(Err(Fault::new("session.queue_full", "too many requests wait for this conversation")));
        }
    }
}
