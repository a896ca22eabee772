//! The journal's actor: group commit of the events of all runs and sessions by one writer.
//!
//! Appends queue up while a commit is on its way and go into the next one together, so that many
//! callers share one wait for the disk. The queue ([`inbox`]) is bounded by permits that a caller takes
//! before its append is accepted and that the commit gives back.
//!
//! A commit begins when somebody waits for it. What nobody waits for goes with it, or on its own a moment
//! later: a commit of its own would only have whoever comes next wait for two. Nor is the actor told of
//! it, unless it sleeps: a message would be two changes of thread for nothing.
//!
//! Where the disk takes nothing just now, what belongs to runs that were accepted waits and is tried
//! again ([`held`]); what would begin another run is refused at once.

use std::sync::Arc;

use actix::prelude::*;
use tokio::sync::OwnedSemaphorePermit;

pub use self::handle::Handle;
use self::held::Held;
use self::inbox::{Done, Item, Next};
use self::shared::Shared;
pub use self::shared::Stats;
use super::aside::aside;
use crate::store::{Code, Error, Options, Outcome, Record, Row, Store, Stream};
use crate::telemetry::{Outside, Subscriber, Watch};

mod handle;
mod held;
mod inbox;
mod shared;
#[cfg(test)]
mod tests;

/// Room in the queue beside the appends, which the permits bound: flushes and reopenings.
const SPARE: usize = 64;

/// How long appends that nobody waits for may wait for one that somebody does.
const LINGER: std::time::Duration = std::time::Duration::from_millis(10);

/// How long the end waits before it looks again for appends that are on their way.
const BREATH: std::time::Duration = std::time::Duration::from_millis(1);

/// The actor. It lives on a thread of its own and dies with its last handle.
pub struct Journal {
    store: Store,
    shared: Arc<Shared>,
    /// Fires when what nobody waits for has waited long enough.
    linger: Option<SpawnHandle>,
    /// It has fired.
    due: bool,
    /// A commit is on its way, or waits to be tried again.
    committing: bool,
    /// Something was written that may not be on the disk yet.
    unsynced: bool,
    /// What the disk did not take and is tried again.
    held: Held,
    /// The first whole commit that was given up since a flush last told of one.
    failed: Option<Error>,
    /// Is shown what was written.
    subscriber: Option<Subscriber>,
    outside: Outside,
    /// Who waits for the end.
    stopping: Vec<Done>,
}

/// There is something to look at.
#[derive(Message)]
#[rtype(result = "()")]
struct Wake;

/// What one commit has to carry.
#[derive(Default)]
struct Batch {
    groups: Vec<Vec<Row>>,
    /// For each group, what is behind it.
    waiting: Vec<Waiting>,
    flushes: Vec<Done>,
}

/// What is behind a group of rows: their records, their place in the queue, who waits for them, and who is
/// told of them.
struct Waiting {
    records: Vec<Record>,
    permit: OwnedSemaphorePermit,
    done: Option<Done>,
    committed: Option<Committed>,
}

/// Who is told when an append is committed, on the journal's thread and in the order of the appends.
pub(crate) trait Listeners: Send {
    /// Whether somebody is shown what is appended: then it is on the disk before it is told.
    fn are_there(&self) -> bool;

    /// It was committed.
    fn tell(self: Box<Self>);
}

pub(crate) type Committed = Box<dyn Listeners>;

impl Batch {
    /// Whether it has to be on the disk before the next thing happens.
    fn is_awaited(&self) -> bool {
        let awaited = |waiting: &Waiting| {
            waiting.done.is_some() || waiting.committed.as_ref().is_some_and(|told| told.are_there())
        };
        !self.flushes.is_empty() || self.waiting.iter().any(awaited)
    }
}

impl Journal {
    /// Starts the journal over `store` on a thread of its own, inside the running actix system.
    ///
    /// # Errors
    /// `store.stopped` when there is no actix system, `store.failed` when no thread can be made.
    pub async fn start(store: Store, options: &Options) -> Result<Handle, Error> {
        Self::watched(store, options, Watch::default()).await
    }

    /// The same, telling `watch` of what it does: a record once it is on disk and before whoever waits
    /// for it is told.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn watched(store: Store, options: &Options, watch: Watch) -> Result<Handle, Error> {
        let Watch { subscriber, outside } = watch;
        if System::try_current().is_none() {
            return Err(Error::new(Code::Stopped, "the journal needs a running actix system"));
        }
        let arbiter = Arbiter::try_new()
            .map_err(|e| Error::new(Code::Failed, format!("no thread for the journal: {e}")))?;
        let shared = Arc::new(Shared::new(options, SPARE, subscriber.is_some(), outside.clone()));
        let journal = Journal {
            store,
            shared: Arc::clone(&shared),
            linger: None,
            due: false,
            committing: false,
            unsynced: false,
            held: Held::default(),
            failed: None,
            subscriber,
            outside,
            stopping: Vec::new(),
        };
        // At most one message is on its way, so its mailbox needs no more room than any has.
        let actor = Self::start_in_arbiter(&arbiter.handle(), move |_| journal);
        Ok(Handle { actor, shared })
    }

    /// Makes a batch of these items and answers what needs no commit.
    fn batch(&mut self, items: Vec<Item>) -> Batch {
        let mut batch = Batch::default();
        for item in items {
            match item {
                Item::Append { mut records, mut rows, permit, done, committed } => {
                    let stuck = rows.iter().find_map(|row| self.shared.stuck(&row.stream));
                    let is_stuck = stuck.is_some();
                    let done = match (stuck, done) {
                        (Some(error), Some(done)) => {
                            let _ = done.send(Err(error));
                            None
                        }
                        (_, done) => done,
                    };
                    if is_stuck {
                        rows.retain(|row| self.shared.stuck(&row.stream).is_none());
                        let open = |stream: Stream| self.shared.stuck(&stream).is_none();
                        records.retain(|record| record.stream().is_ok_and(open));
                    }
                    if !rows.is_empty() {
                        batch.groups.push(rows);
                        batch.waiting.push(Waiting { records, permit, done, committed });
                    }
                }
                Item::Known(events) => {
                    if let Some(subscriber) = &mut self.subscriber {
                        subscriber.restore(&events);
                    }
                }
                Item::Flush(done) => batch.flushes.push(done),
                Item::Reopen(stream, done) => {
                    // What was appended to it before is still to be answered.
                    let held = self.shared.refusing().filter(|_| self.held.has(&stream));
                    if held.is_none() {
                        self.shared.release(&stream);
                    }
                    answer(Some(done), held.map_or(Ok(()), Err));
                }
                Item::Stop(done) => self.stopping.push(done),
            }
        }
        batch
    }

    /// Begins the next commit unless one is on its way; ends the actor when all is done and it was
    /// asked to stop.
    fn work(&mut self, context: &mut Context<Self>) {
        while !self.committing {
            let items = match self.shared.next(self.due || !self.stopping.is_empty()) {
                Next::Work(items) => items,
                Next::Linger => {
                    self.linger.get_or_insert_with(|| {
                        context.run_later(LINGER, |journal, context| {
                            journal.linger = None;
                            journal.due = true;
                            journal.work(context);
                        })
                    });
                    return;
                }
                Next::Nothing => {
                    self.due = false;
                    self.rest(context);
                    return;
                }
            };
            self.due = false;
            if let Some(timer) = self.linger.take() {
                context.cancel_future(timer);
            }
            let batch = self.batch(items);
            let asked = !batch.flushes.is_empty() || !self.stopping.is_empty();
            if batch.groups.is_empty() && !(asked && self.unsynced) {
                self.flushed(batch.flushes);
                continue;
            }
            self.commit(batch, context);
        }
    }

    fn commit(&mut self, batch: Batch, context: &mut Context<Self>) {
        self.committing = true;
        let store = self.store.clone();
        let synced = batch.is_awaited() || !self.stopping.is_empty();
        let unsynced = self.unsynced;
        let commit = aside(async move {
            let began = std::time::Instant::now();
            let outcome = write(&store, &batch.groups, synced, unsynced).await;
            (batch, outcome, began.elapsed())
        });
        context.spawn(commit.into_actor(self).map(move |(batch, outcome, took), journal, context| {
            let events = batch.groups.iter().map(Vec::len).sum();
            if outcome.is_ok() {
                journal.unsynced = !synced;
            }
            journal.shared.count(events, took, outcome.is_ok(), synced);
            journal.outside.committed(events, took, outcome.is_ok());
            match outcome {
                Err(error) if error.may_pass() && journal.stopping.is_empty() && !journal.held.too_long() => {
                    journal.hold(batch, error, context);
                }
                outcome => {
                    journal.released();
                    journal.committed(batch, outcome);
                    journal.work(context);
                }
            }
        }));
    }

    /// Nothing is left to do: ends the actor if it was asked to stop.
    fn rest(&self, context: &mut Context<Self>) {
        if self.stopping.is_empty() {
            return;
        }
        if self.shared.stats().pending == 0 {
            context.stop();
        } else {
            // An append took its place before the end was announced and is still on its way here.
            context.run_later(BREATH, Self::work);
        }
    }

    fn committed(&mut self, batch: Batch, outcome: Result<Vec<Outcome>, Error>) {
        self.committing = false;
        match outcome {
            Ok(outcomes) => {
                for (waiting, outcome) in batch.waiting.into_iter().zip(outcomes) {
                    let Waiting { records, permit, done, committed } = waiting;
                    self.show(&records, &outcome.failures);
                    if let Some(told) = committed.filter(|_| outcome.failures.is_empty()) {
                        told.tell();
                    }
                    let mut first = Ok(());
                    for (stream, error) in outcome.failures {
                        tracing::error!(%stream, code = error.code(), %error, "append refused");
                        if first.is_ok() {
                            first = Err(error.clone());
                        }
                        self.lose(&stream);
                        self.shared.stick(stream, error);
                    }
                    drop(permit);
                    answer(done, first);
                }
            }
            Err(error) => {
                tracing::error!(code = error.code(), %error, "commit failed");
                for row in batch.groups.iter().flatten() {
                    self.lose(&row.stream);
                    self.shared.stick(row.stream.clone(), error.clone());
                }
                for Waiting { permit, done, .. } in batch.waiting {
                    drop(permit);
                    answer(done, Err(error.clone()));
                }
                self.failed.get_or_insert(error);
            }
        }
        self.flushed(batch.flushes);
    }

    /// Shows what was written: all but the streams that failed.
    fn show(&mut self, records: &[Record], failures: &[(Stream, Error)]) {
        let Some(subscriber) = &mut self.subscriber else { return };
        for record in records {
            let failed = |stream: Stream| failures.iter().any(|(failed, _)| *failed == stream);
            if failures.is_empty() || !record.stream().is_ok_and(failed) {
                subscriber.observe(record);
            }
        }
    }

    /// A stream ends where it could not be written.
    fn lose(&mut self, stream: &Stream) {
        if let Some(subscriber) = &mut self.subscriber {
            subscriber.forget(stream);
        }
    }

    fn flushed(&mut self, flushes: Vec<Done>) {
        if flushes.is_empty() {
            return;
        }
        let failed = self.failed.take();
        for done in flushes {
            let _ = done.send(failed.clone().map_or(Ok(()), Err));
        }
    }
}

/// Writes them; with `synced` all is on the disk then, also what was written before and is `unsynced`.
async fn write(
    store: &Store,
    groups: &[Vec<Row>],
    synced: bool,
    unsynced: bool,
) -> Result<Vec<Outcome>, Error> {
    let outcomes = if groups.is_empty() { Vec::new() } else { store.append(groups, synced).await? };
    // Where nothing was accepted, nothing was committed.
    let committed = outcomes.iter().any(|outcome| outcome.failures.is_empty());
    if synced && unsynced && !committed {
        store.sync().await?;
    }
    Ok(outcomes)
}

fn answer(done: Option<Done>, result: Result<(), Error>) {
    if let Some(done) = done {
        // A caller that went away wants no answer.
        let _ = done.send(result);
    }
}

impl Actor for Journal {
    type Context = Context<Self>;

    fn stopped(&mut self, _: &mut Self::Context) {
        self.shared.end();
        for done in self.stopping.drain(..) {
            let _ = done.send(self.failed.clone().map_or(Ok(()), Err));
        }
        // The thread was made for this actor alone.
        Arbiter::current().stop();
    }
}

impl Drop for Journal {
    /// Also after a panic: nobody waits for room that never comes.
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Handler<Wake> for Journal {
    type Result = ();

    fn handle(&mut self, _: Wake, context: &mut Self::Context) {
        self.work(context);
    }
}
