//! What people want done with runs of a conversation: handed to whoever drives the run, or, where it waits
//! or has ended, to a driver that takes it up for that. A run that waits holds no memory here beside its
//! name: it is read from its journal when somebody decides.

use std::sync::Arc;
use std::time::Instant;

use actix::prelude::*;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::{SceneManager, carry};
use crate::actors::active_runs::{CommandRejected, RunCommand, RunWatch};
use crate::actors::driver::{self, Driver, RunServices, store_fault};
use crate::actors::runtime_task::run_as_task;
use crate::answer::Answer;
use crate::planner::{Command, CommandRefusal};
use crate::run::{
    ApprovalId, ApprovalSubject, Envelope, Event, Fault, PlanCause, RunId, RunState, RunStatus,
};

/// Commands that wait until a run was read from its journal; more are refused.
const MAX_PENDING: usize = 256;

/// The wish to have something done with a run of the conversation.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Do {
    pub(crate) run: RunId,
    pub(crate) command: Command,
    /// Told when it is on disk, or refused.
    pub(crate) reply: oneshot::Sender<Result<(), CommandRefusal>>,
    /// Told when the run ends or waits again.
    pub(crate) answer: Option<oneshot::Sender<Result<Answer, Fault>>>,
}

/// A run that is taken up for what somebody wants.
#[derive(Default)]
pub(super) struct TakenUp {
    /// Orders that came before it was there, or while its driver was leaving.
    orders: Vec<RunCommand>,
    waiters: Vec<Waiter>,
    /// Its driver is at work; until then it is being read.
    driven: bool,
    /// How often its driver has panicked.
    crashes: u32,
    /// Where it stood when its conversation was told of what waits.
    told: Option<u64>,
}

/// Somebody who waits for what a run comes to.
#[derive(Default)]
pub(super) struct Waiter {
    /// Told when the run ends or waits again.
    pub(super) answer: Option<oneshot::Sender<Result<Answer, Fault>>>,
    /// Given the run to follow, from before anything comes of the command.
    pub(super) follow: Option<oneshot::Sender<RunWatch>>,
}

impl Waiter {
    fn follow(&mut self, watch: impl FnOnce() -> Option<RunWatch>) {
        if let Some(follow) = self.follow.take()
            && let Some(watch) = watch()
        {
            // Whoever asked may have gone.
            let _ = follow.send(watch);
        }
    }

    fn answer(self, answer: Result<Answer, Fault>) {
        if let Some(waiting) = self.answer {
            let _ = waiting.send(answer);
        }
    }
}

/// A run of the conversation that waits for a person.
#[derive(Debug, Clone)]
pub(super) struct Parked {
    /// The number of its last event.
    pub(super) seq: u64,
    /// What is open.
    pub(super) open: Vec<ApprovalId>,
    /// Whether the conversation's last answer said so, as it is now: then words can decide it.
    pub(super) told: bool,
    /// When it began to wait, where that was read from the store.
    pub(super) since: Timestamp,
}

impl Parked {
    pub(super) fn of(state: &RunState, told: bool) -> Self {
        let asks = |matter: ApprovalSubject| !matches!(matter, ApprovalSubject::Outcome { .. });
        let open = state.approvals.iter().filter(|(_, put)| put.is_open() && asks(put.matter));
        // What was not shown whole is not decided by a word.
        let told = told && state.aside.is_none() && crate::answer::is_shown_whole(state);
        Self {
            seq: state.seq,
            open: open.map(|(approval, _)| ApprovalId { run: state.run, approval: *approval }).collect(),
            told,
            since: Timestamp::MAX,
        }
    }

    /// As it is read from the store, waiting since then. A plan that a person has changed meanwhile may be
    /// another than the conversation was told of.
    pub(super) fn stored(state: &RunState, since: Timestamp) -> Self {
        let changed =
            state.plan().is_some_and(|made| matches!(made.cause, PlanCause::Feedback | PlanCause::Edit));
        let lapsed = state.approvals.values().any(|put| put.lapsed);
        Self { since, ..Self::of(state, !changed && !lapsed) }
    }
}

pub(super) fn refused(code: &str, message: impl Into<String>) -> CommandRefusal {
    CommandRefusal { fault: Fault::new(code, message), difference: Vec::new(), record: None }
}

impl SceneManager {
    pub(super) fn carry_out(&mut self, wish: Do, ctx: &mut Context<Self>) {
        let Do { run, command, reply, answer } = wish;
        let waiter = Waiter { answer, follow: None };
        self.take_order(run, RunCommand { command, word: None, reply }, waiter, ctx);
    }

    /// Hands an order to the run's driver, or has the run taken up for it.
    pub(super) fn take_order(
        &mut self,
        run: RunId,
        order: RunCommand,
        mut waiter: Waiter,
        ctx: &mut Context<Self>,
    ) {
        if let Some(taken) = self.taken_up.get_mut(&run).filter(|taken| !taken.driven) {
            if taken.orders.len() >= MAX_PENDING {
                let _ = order.reply.send(Err(too_many()));
                return;
            }
            taken.orders.push(order);
            taken.waiters.push(waiter);
            return;
        }
        let live = self.options.shared.load().live.clone();
        // Before the order, so that nothing that comes of it is missed.
        let watch = live.watch(&self.tenant, run);
        let order = match live.send_command(&self.tenant, run, order) {
            Ok(()) => {
                waiter.follow(|| watch);
                if let Some(taken) = self.taken_up.get_mut(&run) {
                    taken.waiters.push(waiter);
                }
                return;
            }
            // The order went with the refusal; whoever waits for its reply hears that nobody has it.
            Err(CommandRejected::Full) => return,
            Err(CommandRejected::NotActive(order)) => *order,
        };
        // Its driver has just left, and this actor has yet to hear of it.
        if self.at_work == Some(run) || self.taken_up.contains_key(&run) {
            let left = self.left_over.entry(run).or_default();
            if left.orders.len() >= MAX_PENDING {
                let _ = order.reply.send(Err(too_many()));
                return;
            }
            left.orders.push(order);
            left.waiters.push(waiter);
            return;
        }
        let taken = TakenUp { orders: vec![order], waiters: vec![waiter], ..TakenUp::default() };
        self.taken_up.insert(run, taken);
        self.take_up(run, ctx);
    }

    /// What was wanted of a run while its driver was leaving.
    pub(super) fn take_left_over(&mut self, run: RunId, ctx: &mut Context<Self>) {
        if let Some(left) = self.left_over.remove(&run) {
            self.taken_up.insert(run, left);
            self.take_up(run, ctx);
        }
    }

    /// Hands what was wanted of a run while its driver was leaving to whoever drives it now.
    pub(super) fn hand_over(&mut self, run: RunId) {
        let Some(left) = self.left_over.get_mut(&run) else { return };
        let live = self.options.shared.load().live.clone();
        for order in left.orders.drain(..) {
            // There is room for all of them.
            let _ = live.send_command(&self.tenant, run, order);
        }
    }

    /// Reads a run and has it driven, its orders first.
    fn take_up(&mut self, run: RunId, ctx: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let journal = self.options.shared.load().journal.clone();
        let (store, tenant, session) =
            (self.options.store.clone(), self.tenant.clone(), self.session.clone());
        let crashed = self.taken_up.get(&run).is_some_and(|taken| taken.crashes > 0);
        let seq = self.seq.clone();
        let work = run_as_task(async move {
            // What was told to it and not waited for.
            journal.flush().await.map_err(|error| store_fault(&error))?;
            match store.run(&tenant, run).await {
                Ok(Some(row)) if row.session == session => {}
                Ok(_) => {
                    return Err(Fault::new("run.not_found", format!("this conversation has no run {run}")));
                }
                Err(error) => return Err(store_fault(&error)),
            }
            let (state, events) =
                carry::read(&store, &journal, &tenant, run).await.map_err(|error| store_fault(&error))?;
            // It may have come to an end before its driver panicked.
            let told =
                if crashed { carry::stream(&store, &seq, &tenant, &session).await? } else { Vec::new() };
            Ok((state, events, told))
        });
        ctx.spawn(work.into_actor(self).map(move |read, manager, ctx| match read {
            Ok((state, events, told)) => {
                manager.catch_up(told);
                manager.drive_again(state, events, ctx);
            }
            Err(fault) => manager.not_taken_up(run, &fault, ctx),
        }));
    }

    fn not_taken_up(&mut self, run: RunId, fault: &Fault, ctx: &mut Context<Self>) {
        let Some(taken) = self.taken_up.remove(&run) else { return };
        for order in taken.orders {
            let _ = order.reply.send(Err(refused(&fault.code, fault.message.clone())));
        }
        for waiter in taken.waiters {
            waiter.answer(Err(fault.clone()));
        }
        self.proceed(ctx);
    }

    fn drive_again(&mut self, state: RunState, known: Vec<Envelope<Event>>, ctx: &mut Context<Self>) {
        let run = state.run;
        let Some(task) = state.queued.as_ref().map(|queued| queued.task) else {
            let fault = Fault::new("run.unknown", format!("there is no run {run}"));
            return self.not_taken_up(run, &fault, ctx);
        };
        let Some(taken) = self.taken_up.get_mut(&run) else { return };
        let shared = RunServices::clone(&self.options.shared.load());
        let (live, watch) = shared.live.register(run, task, &self.tenant, &self.session);
        let live = Arc::new(live);
        taken.driven = true;
        for waiter in &mut taken.waiters {
            waiter.follow(|| Some(watch.resubscribe()));
        }
        drop(watch);
        for order in taken.orders.drain(..) {
            // There is room for all of them.
            let _ = shared.live.send_command(&self.tenant, run, order);
        }
        let before = self.parked.remove(&run).filter(|parked| parked.told);
        taken.told = before.map(|parked| parked.seq);
        let panicked = taken.crashes > 0;
        let received = Instant::now();
        // One that neither waits nor has ended was left by whoever carried it out.
        let taken_over = matches!(state.status, RunStatus::Queued | RunStatus::Running);
        let remembered = self.remembered(&state);
        let accepted =
            driver::AcceptedRun { state, live: live.clone(), taken_over, panicked, prior_events: known };
        let (gateway, all, gate) = (shared.gateway.clone(), shared.live.clone(), self.options.gate.clone());
        let driver =
            Driver::new(shared, self.session.clone(), self.tenant.clone(), accepted, self.seq.clone());
        let work = async move {
            let driven = async move { driver.run(remembered, gate.admit(run).await).await };
            let task = gateway.spawn(all.run_until_shutdown(driven)).map_err(|e| e.to_string())?;
            task.await.map_err(|e| e.to_string())
        };
        ctx.spawn(work.into_actor(self).map(move |ended, manager, ctx| {
            let result = match ended {
                Ok(Some(mut ended)) => {
                    let taken = manager.taken_up.get(&run);
                    // A decision that was refused changes nothing of what was told.
                    let still = taken.is_some_and(|taken| taken.told == Some(ended.state.seq));
                    // What it comes to is the answer to words that decided, not to such as were refused.
                    let (said, refused) = (ended.decided_in_session, ended.take_refused_commands());
                    let result = manager.ended(ended, received, said, still);
                    refused.reply_all();
                    result
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(%run, error, "the driver of a run panicked");
                    drop(live);
                    return manager.take_up_again(run, ctx);
                }
            };
            drop(live);
            if let Some(taken) = manager.taken_up.remove(&run) {
                for waiter in taken.waiters {
                    waiter.answer(result.clone());
                }
            }
            manager.take_left_over(run, ctx);
            manager.proceed(ctx);
        }));
    }
}

impl SceneManager {
    /// Takes a run up once more whose driver panicked. It stays in the table meanwhile, so that nobody else
    /// takes it up; the machine puts it aside before this bound (`run.poisonous`).
    fn take_up_again(&mut self, run: RunId, ctx: &mut Context<Self>) {
        let left = self.left_over.remove(&run).unwrap_or_default();
        let Some(taken) = self.taken_up.get_mut(&run) else { return };
        taken.driven = false;
        taken.crashes += 1;
        taken.orders.extend(left.orders);
        taken.waiters.extend(left.waiters);
        if taken.crashes < carry::MAX_CRASHES {
            return self.take_up(run, ctx);
        }
        let fault = Fault::new("run.crashed", "its driver ended with an internal error each time");
        self.not_taken_up(run, &fault, ctx);
    }
}

fn too_many() -> CommandRefusal {
    refused("run.too_many_commands", "too many decisions about this run wait; try again in a moment")
}

impl Handler<Do> for SceneManager {
    type Result = ();

    fn handle(&mut self, wish: Do, ctx: &mut Context<Self>) {
        self.received += 1;
        // One that is to be given up waits for the runs that are driven, and for nothing new.
        let goes_on = self.failed.is_none() || self.taken_up.contains_key(&wish.run);
        if self.memory.is_some() && goes_on {
            self.carry_out(wish, ctx);
        } else if self.early_wishes.len() < MAX_PENDING {
            self.early_wishes.push(wish);
        } else {
            let _ = wish.reply.send(Err(too_many()));
        }
    }
}
