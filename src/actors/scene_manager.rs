//! `SceneManager`: one live conversation. Its requests run in the order they came; its memory is a
//! fold of the session's stream; when nothing is left to do it goes to sleep in the store.

mod accept;
mod carry;
mod decide;
mod erase;
mod life;
mod remember;
mod words;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use actix::prelude::*;
use arc_swap::ArcSwap;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::active_runs::ActiveRun;
use super::driver::{self, Driver, EndedRun, RunServices, SessionSeq};
use super::launch;
use super::recovery_gate::RecoveryGate;
use super::session_registry;
use crate::answer::Answer;
use crate::llm::Purpose;
use crate::llm::budget::Hold;
use crate::memory::{self, Memory};
use crate::run::{Fault, RunId, RunStatus, SessionEvent, SessionId, TenantId};
use crate::store::{self, Store};
use crate::telemetry::{QueueGuard, ServerMetrics};

pub(crate) use accept::{Accepted, Submit};
pub(crate) use carry::CarryOn;
pub(crate) use decide::Do;
use decide::{Parked, TakenUp};
pub(crate) use erase::{Erase, session_busy};

/// What every conversation works with.
#[derive(Clone)]
pub(crate) struct Options {
    /// What runs that start now work with; another after the configuration was read anew.
    pub(crate) shared: Arc<ArcSwap<RunServices>>,
    pub(crate) store: Store,
    pub(crate) memory: memory::Options,
    /// Most requests of one conversation that wait.
    pub(crate) max_queued: usize,
    /// How long a conversation stays awake with nothing to do.
    pub(crate) idle: Duration,
    /// Hears of what waits and of what is refused.
    pub(crate) outside: ServerMetrics,
    /// Lets runs begin.
    pub(crate) gate: RecoveryGate,
    /// Whether runs that an earlier process left unfinished are carried on here.
    pub(crate) carries_on: Arc<AtomicBool>,
}

/// A run that waits for its turn.
struct Waiting {
    run: driver::AcceptedRun,
    received: Instant,
    /// Who waits for its answer, if anybody does.
    answer: Option<oneshot::Sender<Result<Answer, Fault>>>,
    queued: Option<QueueGuard>,
    /// How often its driver has ended without ending it.
    crashes: u32,
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
    /// Whose conversation it is, where anything of it was ever stored.
    owner: Option<String>,
    /// The last number of the session's own stream.
    seq: SessionSeq,
    /// The number of the last event that is in the memory, and those that came before their turn.
    remembered: u64,
    early_turns: BTreeMap<u64, SessionEvent>,
    /// The run that is driven as the next of the queue.
    at_work: Option<RunId>,
    /// What is shown of it.
    shown: Option<Arc<ActiveRun>>,
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
    /// Why its stream takes nothing more: it is given up when nobody drives a run of it any more.
    failed: Option<store::Error>,
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
            owner: None,
            seq: SessionSeq::default(),
            remembered: 0,
            early_turns: BTreeMap::new(),
            at_work: None,
            shown: None,
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
            failed: None,
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
        launch::start_actor(arbiter, manager.options.max_queued.max(1), manager)
    }

    /// Starts the next request, makes a summary that is due, or thinks of sleep.
    fn proceed(&mut self, ctx: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        self.tell_carried();
        if let Some(error) = self.failed.take_if(|_| self.taken_up.is_empty()) {
            return self.give_up(error, ctx);
        }
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
        // Whoever had asked it of an earlier process looks what came of it, or has it when it asks again.
        let told = answer.is_some() || run.taken_over;
        self.at_work = Some(id);
        self.shown = Some(live.clone());
        let remembered = self.remembered(&run.state);
        let shared = RunServices::clone(&self.options.shared.load());
        let (gateway, all, gate) = (shared.gateway.clone(), shared.live.clone(), self.options.gate.clone());
        let driver = Driver::new(shared, self.session.clone(), self.tenant.clone(), run, self.seq.clone());
        // A task of its own: a panic in it ends this run and nothing else. It runs where models are called,
        // and this handle on the gateway outlives it.
        let work = async move {
            let driven = async move { driver.run(remembered, gate.admit(id).await).await };
            let task = gateway.spawn(all.run_until_shutdown(driven)).map_err(|e| e.to_string())?;
            task.await.map_err(|e| e.to_string())
        };
        ctx.spawn(work.into_actor(self).map(move |ended, manager, ctx| {
            let result = match ended {
                Ok(Some(mut ended)) => {
                    let refused = ended.take_refused_commands();
                    let result = manager.ended(ended, received, told, false);
                    refused.reply_all();
                    result
                }
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
            manager.shown = None;
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

    /// What a run came to. `told` says that its answer is the conversation's own, for whoever speaks in it;
    /// `still` that it stands where it stood when that was so.
    fn ended(
        &mut self,
        ended: EndedRun,
        received: Instant,
        told: bool,
        still: bool,
    ) -> Result<Answer, Fault> {
        for (seq, event) in ended.turns {
            self.remember(seq, event);
        }
        if let Some(fault) = ended.fault {
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
}
