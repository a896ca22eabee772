//! Runs that somebody left unfinished: an earlier process that died, or a driver of this one that
//! panicked. They are carried on from their journal, before anything that came later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use actix::prelude::*;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::{Parked, SceneManager, Waiting};
use crate::actors::active_runs::ActiveRun;
use crate::actors::driver::{self, store_fault};
use crate::actors::journal;
use crate::actors::runtime_task::run_as_task;
use crate::answer::Answer;
use crate::run::{
    Envelope, Event, Fault, RunId, RunState, RunStatus, SCHEMA, SessionEvent, SessionId, TenantId,
};
use crate::store::{self, Record, Store, StreamId};

/// How often a driver of one run may panic in this process. The machine puts a run aside before that
/// (`run.poisonous`); this is for one that cannot even say so.
pub(super) const MAX_CRASHES: u32 = 5;

/// The wish to have what was left unfinished carried on.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct CarryOn {
    /// Told when all of it is under way or waits for its turn.
    pub(crate) woken: oneshot::Sender<()>,
    /// Told when there is nothing of it left.
    pub(crate) done: oneshot::Sender<()>,
}

/// A run whose driver panicked.
pub(super) struct Crashed {
    pub(super) run: RunId,
    /// Whoever follows the run goes on following it.
    pub(super) live: Arc<ActiveRun>,
    pub(super) received: Instant,
    pub(super) answer: Option<oneshot::Sender<Result<Answer, Fault>>>,
    pub(super) crashes: u32,
}

/// What is left of a conversation.
#[derive(Default)]
pub(super) struct Left {
    /// Runs to be carried on.
    pub(super) runs: Vec<RunState>,
    /// Runs that wait for a person.
    pub(super) parked: BTreeMap<RunId, Parked>,
}

/// The unfinished runs of a conversation, the oldest first. One whose journal has a gap is ended, with the
/// reason as its last event; one that this program cannot read is left to the program that can.
///
/// # Errors
/// The store's, where it is not the run that is broken: it is carried on when that has passed.
pub(super) async fn unfinished(
    store: &Store,
    journal: &journal::Handle,
    tenant: &TenantId,
    session: &SessionId,
    carries_on: bool,
) -> Result<Left, store::Error> {
    let mut left = Left::default();
    for row in store.unfinished_runs_of(tenant, session).await? {
        let waits = row.status == RunStatus::Waiting;
        // Only who serves carries on; what waits for a person can be decided by anybody.
        if !waits && !carries_on {
            continue;
        }
        match read(store, journal, tenant, row.run).await {
            Ok((state, _)) if waits => {
                left.parked.insert(row.run, Parked::stored(&state, row.updated));
            }
            Ok((state, events)) => {
                journal.restore_run(events);
                left.runs.push(state);
            }
            Err(error) if error.code() == store::ErrorCode::Gap.as_str() => {
                let last = Last { tenant, session, run: row.run, seq: row.last_seq, epoch: row.epoch };
                let end = lost(store, row.run, store_fault(&error)).await?;
                put_aside(journal, last, end).await?;
            }
            Err(error) if error.code() == store::ErrorCode::Unreadable.as_str() => {
                tracing::error!(run = %row.run, code = error.code(), %error, "a run cannot be carried on here");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(left)
}

/// A run as the journal has it, open for its next event.
pub(super) async fn read(
    store: &Store,
    journal: &journal::Handle,
    tenant: &TenantId,
    run: RunId,
) -> Result<(RunState, Vec<Envelope<Event>>), store::Error> {
    // A stream that had failed, as on a full disk, takes events again from where it is.
    journal.reopen(StreamId::Run(run)).await?;
    let events = store.run_events(tenant, run).await?;
    let mut state = RunState::from_events(run, events.iter().map(|event| &event.body));
    // Whoever put it aside took it over for that, and said nothing else.
    state.epoch = events.last().map_or(state.epoch, |last| last.epoch.max(state.epoch));
    Ok((state, events))
}

/// The last event of a run that cannot be folded, as the list of runs has it.
struct Last<'a> {
    tenant: &'a TenantId,
    session: &'a SessionId,
    run: RunId,
    seq: u64,
    epoch: u32,
}

/// The end of a run whose journal has a gap. Nothing can be decided about it any more, so what nobody knows
/// is told with its end.
async fn lost(store: &Store, run: RunId, why: Fault) -> Result<Vec<Event>, store::Error> {
    let left = store.readable_run_events(run).await?;
    let mut end = RunState::from_events(run, &left).forced_end(unrecoverable(&why));
    let unknown: Vec<String> = end
        .iter()
        .filter_map(|event| match event {
            Event::ApprovalRequired { needed, .. } => Some(needed.why.join("; ")),
            _ => None,
        })
        .collect();
    end.retain(Event::is_terminal);
    if let Some(Event::RunFailed { error }) = end.last_mut() {
        for what in unknown {
            error.message = format!("{}; {what}", error.message);
        }
    }
    Ok(end)
}

fn unrecoverable(why: &Fault) -> Fault {
    Fault::new("run.unrecoverable", format!("the run cannot be carried on: {}", why.message))
}

/// Ends a run that nobody can carry on.
async fn put_aside(journal: &journal::Handle, last: Last<'_>, end: Vec<Event>) -> Result<(), store::Error> {
    if let Some(Event::RunFailed { error }) = end.last() {
        tracing::error!(run = %last.run, code = %error.code, "{}", error.message);
    }
    let at = Timestamp::now();
    let records = (last.seq + 1..).zip(end).map(|(seq, body)| {
        let envelope = Envelope {
            seq,
            run: Some(last.run),
            session: last.session.clone(),
            tenant: last.tenant.clone(),
            at,
            epoch: last.epoch + 1,
            schema: SCHEMA,
            body,
        };
        Record::Run(envelope.into())
    });
    journal.append(records.collect(), true).await
}

/// A conversation's own stream, with its last number known to all who write to it.
pub(super) async fn stream(
    store: &Store,
    seq: &driver::SessionSeq,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<Envelope<SessionEvent>>, Fault> {
    let mut seq = seq.lock().await;
    let events = store.session_events(tenant, session).await.map_err(|error| store_fault(&error))?;
    *seq = events.last().map_or(0, |last| last.seq);
    Ok(events)
}

impl SceneManager {
    /// Remembers what it had not heard of.
    pub(super) fn catch_up(&mut self, events: Vec<Envelope<SessionEvent>>) {
        for event in events {
            self.remember(event.seq, event.body);
        }
    }

    /// Puts what was left unfinished before everything else.
    pub(super) fn take_over(&mut self, left: Vec<RunState>) {
        let shared = self.options.shared.load();
        for state in left {
            let Some(queued) = &state.queued else { continue };
            let (live, _) = shared.live.register(state.run, queued.task, &self.tenant, &self.session);
            self.queue.push_back(Waiting {
                run: driver::AcceptedRun {
                    state,
                    live: Arc::new(live),
                    taken_over: true,
                    panicked: false,
                    prior_events: Vec::new(),
                },
                received: Instant::now(),
                answer: None,
                queued: None,
                crashes: 0,
            });
        }
    }

    /// Tells whoever waits for it that everything unfinished was carried on, or at least taken up.
    pub(super) fn tell_carried(&mut self) {
        if self.memory.is_some() {
            for woken in self.waking.drain(..) {
                let _ = woken.send(());
            }
        }
        if self.busy {
            return;
        }
        let left = self.queue.iter().any(|waiting| waiting.run.taken_over);
        if self.memory.is_some() && !left {
            for done in self.carrying.drain(..) {
                let _ = done.send(());
            }
        }
    }

    /// Takes a run over whose driver panicked; after a few times it is left to whoever starts next.
    pub(super) fn crashed(&mut self, crashed: Crashed, ctx: &mut Context<Self>) {
        let Crashed { run, live, received, answer, crashes } = crashed;
        let journal = self.options.shared.load().journal.clone();
        let (store, tenant, session) =
            (self.options.store.clone(), self.tenant.clone(), self.session.clone());
        let seq = self.seq.clone();
        let work = run_as_task(async move {
            // What was told to it and not waited for.
            journal.flush().await.map_err(|error| store_fault(&error))?;
            // Where it cannot be read now, it is carried on when the conversation wakes again.
            let read = read(&store, &journal, &tenant, run).await.map_err(|error| store_fault(&error))?;
            // It may have come to an end, and nobody here has heard at which number it is remembered.
            let events = stream(&store, &seq, &tenant, &session).await?;
            if read.0.status.is_terminal() || crashes < MAX_CRASHES {
                return Ok((read.0, events));
            }
            let fault = Fault::new("run.crashed", "its driver ended with an internal error each time");
            if let Ok(Some(row)) = store.run(&tenant, run).await
                && !row.status.is_terminal()
            {
                let last =
                    Last { tenant: &tenant, session: &session, run, seq: row.last_seq, epoch: row.epoch };
                let end = read.0.forced_end(unrecoverable(&fault));
                put_aside(&journal, last, end).await.map_err(|error| store_fault(&error))?;
            }
            Err(Fault::new(
                "run.crashed",
                format!(
                    "the run stopped with an internal error ({}); what it did is in its events",
                    fault.message
                ),
            ))
        });
        ctx.spawn(work.into_actor(self).map(move |read, manager, ctx| {
            if manager.at_work == Some(run) {
                manager.busy = false;
                manager.at_work = None;
                // Its subscribers see the end of their streams.
                manager.shown = None;
            }
            live.reopen_commands();
            let read = read.map(|(state, events)| {
                manager.catch_up(events);
                state
            });
            match read {
                Ok(state) if !state.status.is_terminal() => {
                    // What was wanted of it meanwhile is heard by whoever carries it on.
                    manager.hand_over(run);
                    let (taken_over, panicked, known) = (true, true, Vec::new());
                    let run = driver::AcceptedRun { state, live, taken_over, panicked, prior_events: known };
                    manager.queue.push_front(Waiting { run, received, answer, queued: None, crashes });
                }
                Ok(state) => {
                    drop(live);
                    manager.take_left_over(run, ctx);
                    let ended = driver::EndedRun::without_driver(state);
                    let result = manager.ended(ended, received, answer.is_some(), false);
                    if let Some(answer) = answer {
                        let _ = answer.send(result);
                    }
                }
                Err(fault) => {
                    drop(live);
                    manager.take_left_over(run, ctx);
                    if let Some(answer) = answer {
                        let _ = answer.send(Err(fault));
                    }
                }
            }
            manager.proceed(ctx);
        }));
    }
}

impl Handler<CarryOn> for SceneManager {
    type Result = ();

    fn handle(&mut self, wish: CarryOn, ctx: &mut Context<Self>) {
        self.received += 1;
        self.waking.push(wish.woken);
        self.carrying.push(wish.done);
        // While it wakes there is nothing to do; afterwards whatever there is to do is under way.
        if self.memory.is_some() {
            self.proceed(ctx);
        }
    }
}
