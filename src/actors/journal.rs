//! The journal actor: group commit of the events of all runs and sessions by a single writer.
//!
//! Appends that arrive during a commit are queued and written by the next one, so many callers share one
//! fsync. The queue ([`inbox`]) is bounded by permits: a caller takes them before its append is accepted,
//! and the commit returns them.
//!
//! A commit starts when a caller waits for it. Appends without a waiter join the next commit, or are
//! committed after a short delay: committing them immediately would make the next caller wait for two
//! commits. They do not wake the actor unless it is idle, which saves two thread switches per append.
//!
//! While the disk rejects writes, appends of accepted runs are held and retried ([`held_appends`]); an
//! append that would start a new run is refused at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use actix::prelude::*;
use tokio::sync::OwnedSemaphorePermit;

pub use self::handle::Handle;
use self::held_appends::HeldAppends;
use self::inbox::{CompletionSender, InboxItem, InboxPoll};
use self::shared::JournalShared;
pub use self::shared::JournalStats;
use super::runtime_task::run_as_task;
use crate::store::{AppendOutcome, Error, ErrorCode, JournalRow, Options, Record, Store, StreamId};
use crate::telemetry::{JournalTelemetry, RecordSink, ServerMetrics};

mod handle;
mod held_appends;
mod inbox;
mod shared;
#[cfg(test)]
mod tests;

/// Queue capacity for flushes and reopens. Appends are bounded by the permits instead.
const CONTROL_CAPACITY: usize = 64;

/// How long appends without a waiter are delayed so that they can share another append's commit.
const LINGER: std::time::Duration = std::time::Duration::from_millis(10);

/// How many streams of a commit that failed are logged by name.
const MAX_LOGGED: usize = 32;

/// How often the shutdown checks for appends that hold a permit but are not queued yet.
const DRAIN_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(1);

/// The actor. It runs on a dedicated thread and stops when its last handle is dropped.
pub struct Journal {
    store: Store,
    shared: Arc<JournalShared>,
    /// The timer that ends the delay of appends without a waiter.
    linger: Option<SpawnHandle>,
    /// Whether that timer has fired.
    linger_elapsed: bool,
    /// Whether a commit is in progress or waits to be retried.
    committing: bool,
    /// Whether something was written without an fsync since.
    unsynced: bool,
    /// Appends that the disk rejected, to be retried.
    held: HeldAppends,
    /// The error of the first abandoned commit that no flush has reported yet.
    failed: Option<Error>,
    /// Receives what was written.
    sink: Option<Arc<dyn RecordSink>>,
    server_metrics: ServerMetrics,
    /// Callers that wait for the actor to stop.
    stopping: Vec<CompletionSender>,
}

/// Tells the actor that its inbox has work.
#[derive(Message)]
#[rtype(result = "()")]
struct Wake;

/// The content of one commit.
#[derive(Default)]
struct CommitBatch {
    groups: Vec<Vec<JournalRow>>,
    /// The append of each group, in the same order.
    waiting: Vec<PendingAppend>,
    flushes: Vec<CompletionSender>,
}

/// The append behind a group of rows: its records, its queue permit, its waiter and its commit hook.
struct PendingAppend {
    records: Vec<Record>,
    permit: OwnedSemaphorePermit,
    done: Option<CompletionSender>,
    commit_hook: Option<BoxedCommitHook>,
}

impl PendingAppend {
    /// Whether a caller or a reader waits for its commit, so that this must be synced.
    fn is_awaited(&self) -> bool {
        self.done.is_some() || self.commit_hook.as_ref().is_some_and(|hook| hook.has_readers())
    }
}

/// Called when an append is committed, on the journal's thread and in the order of the appends.
pub(crate) trait CommitHook: Send {
    /// Whether the append has readers: then it is synced to disk before it is published.
    fn has_readers(&self) -> bool;

    /// Publishes the committed append.
    fn publish(self: Box<Self>);
}

pub(crate) type BoxedCommitHook = Box<dyn CommitHook>;

impl CommitBatch {
    /// Whether a caller or a reader waits for this commit, so that it must be synced.
    fn is_awaited(&self) -> bool {
        !self.flushes.is_empty() || self.waiting.iter().any(PendingAppend::is_awaited)
    }
}

impl Journal {
    /// Starts the journal over `store` on a dedicated thread, inside the running actix system.
    ///
    /// # Errors
    /// `store.stopped` when there is no actix system, `store.failed` when no thread can be made.
    pub async fn start(store: Store, options: &Options) -> Result<Handle, Error> {
        Self::start_with_telemetry(store, options, JournalTelemetry::default()).await
    }

    /// Like [`start`](Self::start), and reports to `watch`: a record after it is on disk and before its
    /// waiter is answered.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_with_telemetry(
        store: Store,
        options: &Options,
        watch: JournalTelemetry,
    ) -> Result<Handle, Error> {
        let JournalTelemetry { sink, server_metrics } = watch;
        if System::try_current().is_none() {
            return Err(Error::new(ErrorCode::Stopped, "the journal needs a running actix system"));
        }
        let arbiter = Arbiter::try_new()
            .map_err(|e| Error::new(ErrorCode::Failed, format!("no thread for the journal: {e}")))?;
        let shared =
            Arc::new(JournalShared::new(options, CONTROL_CAPACITY, sink.is_some(), server_metrics.clone()));
        let journal = Journal {
            store: store.clone(),
            shared: Arc::clone(&shared),
            linger: None,
            linger_elapsed: false,
            committing: false,
            unsynced: false,
            held: HeldAppends::default(),
            failed: None,
            sink,
            server_metrics,
            stopping: Vec::new(),
        };
        // At most one message is in flight, so the default mailbox capacity is enough.
        let actor = Self::start_in_arbiter(&arbiter.handle(), move |_| journal);
        Ok(Handle { actor, shared, store })
    }

    /// Turns these items into a batch and answers those that need no commit.
    fn assemble_batch(&mut self, items: Vec<InboxItem>) -> CommitBatch {
        let mut batch = CommitBatch::default();
        for item in items {
            match item {
                InboxItem::Append { mut rows, mut append } => {
                    if let Some(error) = rows.iter().find_map(|row| self.shared.stream_error(&row.stream)) {
                        send_reply(append.done.take(), Err(error));
                        let is_open = |stream: &StreamId| self.shared.stream_error(stream).is_none();
                        rows.retain(|row| is_open(&row.stream));
                        append.records.retain(|record| record.stream().is_ok_and(|stream| is_open(&stream)));
                    }
                    if !rows.is_empty() {
                        batch.groups.push(rows);
                        batch.waiting.push(append);
                    }
                }
                InboxItem::Flush(done) => batch.flushes.push(done),
                InboxItem::Reopen(stream, done) => {
                    // Held appends of this stream have not been answered yet.
                    let held = self.shared.write_error().filter(|_| self.held.contains_stream(&stream));
                    if held.is_none() {
                        self.shared.reopen_stream(&stream);
                    }
                    send_reply(Some(done), held.map_or(Ok(()), Err));
                }
                InboxItem::Stop(done) => self.stopping.push(done),
            }
        }
        batch
    }

    /// Starts the next commit unless one is in progress. Stops the actor once the inbox is empty and a
    /// stop was requested.
    fn process_inbox(&mut self, context: &mut Context<Self>) {
        while !self.committing {
            let items = match self.shared.poll_inbox(self.linger_elapsed || !self.stopping.is_empty()) {
                InboxPoll::Ready(items) => items,
                InboxPoll::Linger => {
                    self.linger.get_or_insert_with(|| {
                        context.run_later(LINGER, |journal, context| {
                            journal.linger = None;
                            journal.linger_elapsed = true;
                            journal.process_inbox(context);
                        })
                    });
                    return;
                }
                InboxPoll::Empty => {
                    self.linger_elapsed = false;
                    self.stop_if_drained(context);
                    return;
                }
            };
            self.linger_elapsed = false;
            if let Some(timer) = self.linger.take() {
                context.cancel_future(timer);
            }
            let batch = self.assemble_batch(items);
            let asked = !batch.flushes.is_empty() || !self.stopping.is_empty();
            if batch.groups.is_empty() && !(asked && self.unsynced) {
                self.complete_flushes(batch.flushes);
                continue;
            }
            self.commit(batch, context);
        }
    }

    fn commit(&mut self, batch: CommitBatch, context: &mut Context<Self>) {
        self.committing = true;
        let store = self.store.clone();
        let synced = batch.is_awaited() || !self.stopping.is_empty();
        let unsynced = self.unsynced;
        let commit = run_as_task(async move {
            let began = std::time::Instant::now();
            let outcome = write_groups(&store, &batch.groups, synced, unsynced).await;
            (batch, outcome, began.elapsed())
        });
        context.spawn(commit.into_actor(self).map(move |(batch, outcome, took), journal, context| {
            let events = batch.groups.iter().map(Vec::len).sum();
            if outcome.is_ok() {
                journal.unsynced = !synced;
            }
            journal.shared.record_commit(events, took, outcome.is_ok(), synced);
            journal.server_metrics.record_commit(events, took, outcome.is_ok());
            match outcome {
                Err(error)
                    if error.is_transient() && journal.stopping.is_empty() && !journal.held.is_expired() =>
                {
                    journal.hold(batch, error, context);
                }
                outcome => {
                    journal.clear_held();
                    journal.finish_commit(batch, outcome);
                    journal.process_inbox(context);
                }
            }
        }));
    }

    /// Stops the actor if a stop was requested and no append is outstanding.
    fn stop_if_drained(&self, context: &mut Context<Self>) {
        if self.stopping.is_empty() {
            return;
        }
        if self.shared.stats().pending == 0 {
            context.stop();
        } else {
            // An append took its permit before the stop and is not queued yet.
            context.run_later(DRAIN_POLL_INTERVAL, Self::process_inbox);
        }
    }

    fn finish_commit(&mut self, mut batch: CommitBatch, outcome: Result<Vec<AppendOutcome>, Error>) {
        self.committing = false;
        match outcome {
            Ok(outcomes) => {
                self.publish_records(&mut batch.waiting, &outcomes);
                for ((waiting, rows), outcome) in batch.waiting.into_iter().zip(&batch.groups).zip(outcomes) {
                    let PendingAppend { permit, done, commit_hook, .. } = waiting;
                    if let Some(hook) = commit_hook.filter(|_| outcome.failures.is_empty()) {
                        hook.publish();
                    }
                    let mut first = Ok(());
                    for (stream, error) in outcome.failures {
                        log_refused(rows.iter().find(|row| row.stream == stream), &error);
                        if first.is_ok() {
                            first = Err(error.clone());
                        }
                        self.forget_stream(&stream);
                        self.shared.fail_stream(stream, error);
                    }
                    drop(permit);
                    send_reply(done, first);
                }
            }
            Err(error) => {
                let events = batch.groups.iter().map(Vec::len).sum::<usize>();
                tracing::error!(code = error.code(), %error, events, "commit failed");
                let mut failed = BTreeSet::new();
                for row in batch.groups.iter().flatten() {
                    if failed.insert(&row.stream) && failed.len() <= MAX_LOGGED {
                        log_refused(Some(row), &error);
                    }
                    self.forget_stream(&row.stream);
                    self.shared.fail_stream(row.stream.clone(), error.clone());
                }
                for PendingAppend { permit, done, .. } in batch.waiting {
                    drop(permit);
                    send_reply(done, Err(error.clone()));
                }
                self.failed.get_or_insert(error);
            }
        }
        self.complete_flushes(batch.flushes);
    }

    /// Publishes what was written, which excludes the streams that failed.
    fn publish_records(&self, appends: &mut [PendingAppend], outcomes: &[AppendOutcome]) {
        let Some(sink) = &self.sink else { return };
        let mut written = Vec::new();
        for (append, outcome) in appends.iter_mut().zip(outcomes) {
            let records = std::mem::take(&mut append.records);
            let failed = |stream: StreamId| outcome.failures.iter().any(|(failed, _)| *failed == stream);
            if outcome.failures.is_empty() {
                written.extend(records);
            } else {
                written.extend(records.into_iter().filter(|record| !record.stream().is_ok_and(failed)));
            }
        }
        if !written.is_empty() {
            sink.publish(written);
        }
    }

    /// Tells that a stream has failed.
    fn forget_stream(&self, stream: &StreamId) {
        if let Some(sink) = &self.sink {
            sink.forget(stream);
        }
    }

    fn complete_flushes(&mut self, flushes: Vec<CompletionSender>) {
        if flushes.is_empty() {
            return;
        }
        let failed = self.failed.take();
        for done in flushes {
            let _ = done.send(failed.clone().map_or(Ok(()), Err));
        }
    }
}

/// Writes the groups. With `synced` everything is on disk afterwards, earlier `unsynced` writes included.
async fn write_groups(
    store: &Store,
    groups: &[Vec<JournalRow>],
    synced: bool,
    unsynced: bool,
) -> Result<Vec<AppendOutcome>, Error> {
    let outcomes = if groups.is_empty() { Vec::new() } else { store.append(groups, synced).await? };
    // If the store accepted no group, no commit has synced the earlier writes.
    let committed = outcomes.iter().any(|outcome| outcome.failures.is_empty());
    if synced && unsynced && !committed {
        store.sync().await?;
    }
    Ok(outcomes)
}

/// Logs that events of a stream, of which this is the first, were not written.
fn log_refused(first: Option<&JournalRow>, error: &Error) {
    let run = first.and_then(|row| match &row.stream {
        StreamId::Run(run) => Some(tracing::field::display(run)),
        StreamId::Session(..) => None,
    });
    let (session, tenant) = (first.map(|row| row.session.as_str()), first.map(|row| row.tenant.as_str()));
    let seq = first.map(|row| row.seq);
    tracing::error!(run, session, tenant, seq, code = error.code(), %error, "append refused");
}

fn send_reply(done: Option<CompletionSender>, result: Result<(), Error>) {
    if let Some(done) = done {
        // The caller may have dropped its future.
        let _ = done.send(result);
    }
}

impl Actor for Journal {
    type Context = Context<Self>;

    fn stopped(&mut self, _: &mut Self::Context) {
        self.shared.close_inbox();
        for done in self.stopping.drain(..) {
            let _ = done.send(self.failed.clone().map_or(Ok(()), Err));
        }
        // This actor is the only one on its thread.
        Arbiter::current().stop();
    }
}

impl Drop for Journal {
    /// Also runs after a panic, so that no caller waits for permits that will never be returned.
    fn drop(&mut self) {
        self.shared.close_inbox();
    }
}

impl Handler<Wake> for Journal {
    type Result = ();

    fn handle(&mut self, _: Wake, context: &mut Self::Context) {
        self.process_inbox(context);
    }
}
