//! The runs of a conversation that are queued, driven or finished in this process, with their drivers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::prelude::*;
use tracing::Instrument;

use super::SceneManager;
use crate::actors::active_runs::ActiveRun;
use crate::actors::driver::{self, Driver, EndedRun, RefusedCommands, RunServices};
use crate::answer::{self, Answer};
use crate::conversation::{self, CallerId, DriverReport, Input, RunCondition, StartingContext};
use crate::memory;
use crate::run::{Fault, RunId, RunQueued, RunState};
use crate::telemetry::{QueueGuard, run_context};

/// A run that is queued, read or driven.
pub(super) struct RunEntry {
    /// Its entry among the live runs, kept while drivers follow each other.
    live: Option<Arc<ActiveRun>>,
    received: Instant,
    /// Counts it as waiting until it is driven.
    waiting: Option<QueueGuard>,
    /// Its state while no driver works on it.
    state: Option<RunState>,
    /// Whether a driver of this process panicked.
    panicked: bool,
    /// Whether it was left unfinished, so that its next driver takes it over.
    taken_over: bool,
    /// What its last driver worked on it.
    overhead: Duration,
    /// The commands that its last driver refused.
    refused: Option<RefusedCommands>,
}

impl RunEntry {
    /// A run with only its request in the journal.
    pub(super) fn new(
        run: RunId,
        queued: RunQueued,
        live: ActiveRun,
        received: Instant,
        waiting: Option<QueueGuard>,
    ) -> Self {
        let driver::AcceptedRun { state, live, .. } = driver::AcceptedRun::new(run, queued, live);
        Self { received, waiting, live: Some(live), taken_over: false, ..Self::read(state) }
    }

    pub(super) fn read(state: RunState) -> Self {
        Self {
            live: None,
            received: Instant::now(),
            waiting: None,
            taken_over: state.is_unfinished(),
            state: Some(state),
            panicked: false,
            overhead: Duration::ZERO,
            refused: None,
        }
    }

    /// Returns whether its whole answer was published, although its driver may not have left.
    pub(super) fn is_answer_published(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.feed.is_closed())
    }
}

/// Where a run without a driver is.
pub(super) fn condition(state: &RunState) -> RunCondition {
    RunCondition::of(state, answer::is_shown_whole(state))
}

impl SceneManager {
    /// Enters runs that an earlier process left, so that they can be followed while they are queued.
    pub(super) fn enter_recovered(&mut self, runs: Vec<RunState>) -> Vec<RunId> {
        let live = self.options.shared.load().live.clone();
        let mut entered = Vec::new();
        for state in runs {
            let Some(queued) = &state.queued else { continue };
            let (active_run, _) = live.register(state.run, queued.task, &self.tenant, &self.session);
            let run = state.run;
            let entry = RunEntry { live: Some(Arc::new(active_run)), ..RunEntry::read(state) };
            self.runs.insert(run, Box::new(entry));
            entered.push(run);
        }
        entered
    }

    /// Keeps a run that was read, for its driver. After a panic its subscribers keep their streams.
    pub(super) fn keep_read(&mut self, run: RunId, state: RunState, panicked: bool) {
        let mut entry = RunEntry { panicked, ..RunEntry::read(state) };
        if let Some(before) = self.runs.remove(&run) {
            entry.live = before.live;
            entry.received = before.received;
        }
        self.runs.insert(run, Box::new(entry));
    }

    /// Starts a driver, which gets these commands first.
    pub(super) fn drive(
        &mut self,
        run: RunId,
        commands: Vec<CallerId>,
        ctx: &mut Context<Self>,
    ) -> Option<Input> {
        let shared = RunServices::clone(&self.options.shared.load());
        let entry = self.runs.get_mut(&run)?;
        let state = entry.state.take()?;
        let Some(context) = self.state.context_for(&state) else {
            return Some(self.not_driven(run, commands));
        };
        entry.waiting = None;
        let live = match (&entry.live, &state.queued) {
            (Some(live), _) => {
                if entry.panicked {
                    live.reopen_commands();
                }
                live.clone()
            }
            (None, Some(queued)) => {
                let (active_run, _) = shared.live.register(run, queued.task, &self.tenant, &self.session);
                entry.live.insert(Arc::new(active_run)).clone()
            }
            // A run without a request cannot be read.
            (None, None) => return None,
        };
        let (taken_over, panicked) = (entry.taken_over, entry.panicked);
        let accepted = driver::AcceptedRun { state, live, taken_over, panicked };
        for caller in commands {
            // A new driver's inbox has room for all of them.
            let _ = self.deliver(caller, run);
        }
        self.spawn_driver(shared, accepted, context, ctx);
        None
    }

    /// Runs a driver as a task of its own: a panic in it ends nothing else. It runs where models are called, and the handle on
    /// the gateway outlives it.
    fn spawn_driver(
        &self,
        shared: RunServices,
        accepted: driver::AcceptedRun,
        context: StartingContext,
        ctx: &mut Context<Self>,
    ) {
        let (run, tenant) = (accepted.state.run, self.tenant.clone());
        let lines = run_context(run, &self.session, &self.tenant);
        let (gateway, all, gate) = (shared.gateway.clone(), shared.live.clone(), self.options.gate.clone());
        // Boxed, as its work and its result are: they are large, and would be moved with the task, and the result at each poll.
        let driver = Box::new((
            Driver::new(shared, self.session.clone(), self.tenant.clone(), accepted, self.end.clone()),
            context,
        ));
        let work = async move {
            let driven = async move {
                let gate = gate.admit(run).await;
                let (driver, context) = *driver;
                Box::new(Box::pin(driver.run(context, gate)).await)
            };
            let driven = driven.instrument(lines);
            let work = all.run_until_shutdown(driven);
            let task = gateway.spawn_for(tenant, work).map_err(|e| e.to_string())?;
            task.await.map_err(|e| e.to_string())
        };
        ctx.spawn(work.into_actor(self).map(move |ended, manager, ctx| {
            let input = match ended {
                Ok(Some(ended)) => manager.driver_ended(run, *ended),
                // The engine stops, and this actor with it; the reply channels of callers are dropped.
                Ok(None) => return,
                Err(error) => {
                    let (session, tenant) = (&manager.session, &manager.tenant);
                    tracing::error!(%run, %session, %tenant, error, "the driver of a run panicked");
                    Input::DriverPanicked { run }
                }
            };
            manager.feed(input, ctx);
        }));
    }

    /// What the conversation remembers cannot be read: the run is read again, as if its driver had panicked at once.
    fn not_driven(&mut self, run: RunId, commands: Vec<CallerId>) -> Input {
        let (session, tenant) = (&self.session, &self.tenant);
        tracing::error!(%run, %session, %tenant, "what the conversation remembers cannot be read");
        let behind = conversation::behind(session);
        commands.into_iter().for_each(|caller| self.refuse(caller, behind.clone(), false));
        Input::DriverPanicked { run }
    }

    fn driver_ended(&mut self, run: RunId, mut ended: EndedRun) -> Input {
        let report = DriverReport {
            condition: condition(&ended.state),
            seq: ended.state.seq,
            turns: std::mem::take(&mut ended.turns),
            decided_by_words: ended.decided_by_words,
            broken: ended.fault.take(),
        };
        if let Some(entry) = self.runs.get_mut(&run) {
            entry.refused = Some(ended.take_refused_commands());
            entry.overhead = ended.overhead;
            entry.state = Some(ended.state);
        }
        Input::DriverEnded { run, report }
    }

    /// Lets go of a run, and then replies to those that wait for it: what a caller does next then refers to
    /// a run that is not live any more.
    pub(super) fn finish(&mut self, run: RunId, callers: Vec<CallerId>, fault: Option<Fault>) {
        let Some(entry) = self.runs.remove(&run) else {
            let fault = fault.unwrap_or_else(|| answer::unknown_run_fault(run));
            callers.into_iter().for_each(|caller| self.answer(caller, Err(fault.clone())));
            return;
        };
        let RunEntry { live, received, waiting, state, overhead, refused, .. } = *entry;
        drop(waiting);
        if let Some(refused) = refused {
            refused.reply_all();
        }
        drop(live);
        if callers.is_empty() {
            return;
        }
        let cost = self.state.cost_nano_usd();
        let result = match (fault, state) {
            (None, Some(state)) => {
                let cost = cost.saturating_add(memory::cost_outside_turns(&state));
                Ok(Answer::new(&state, &self.session, cost, received.elapsed(), overhead))
            }
            (Some(fault), _) => Err(fault),
            (None, None) => Err(answer::lost_run_fault(run)),
        };
        // Mostly there is one, whose document need not be copied.
        let Some((last, others)) = callers.split_last() else { return };
        for caller in others {
            self.answer(*caller, result.clone());
        }
        self.answer(*last, result);
    }
}
