//! The Kpis actor: folds what the journal publishes into the metrics, spans and log lines of runs, on a
//! thread of its own.
//!
//! The journal hands over each commit's records and never waits: they go into a bounded queue. When it is
//! full, the actor *lags*: of each further record only its place in its stream is remembered, and the actor
//! reads those records from the store once it gets there. So nothing is dropped and nothing is counted twice.
//! A range per stream is exact although a position in the whole journal would not be: erased rows free their
//! numbers for later ones.
//!
//! A run whose first event the actor has not seen is restored from the store before its next event is folded:
//! a run of an earlier process, one that waited for a person, or any run after a panic. After a panic the
//! metrics start at zero, as after a restart of the process, and the queue is kept.

mod published;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::supervised::{Behavior, Mailbox, MailboxError, SupervisionOptions};
use crate::run::{Envelope, Event, RunId};
use crate::scene::Catalogue;
use crate::store::{self, Record, Store, StreamId};
use crate::telemetry::traces::RunTraces;
use crate::telemetry::{
    Component, Exposition, LabelNames, RecordSink, RunMetrics, ServerMetrics, Subscriber,
};
#[cfg(test)]
use published::MAX_MISSED_STREAMS;
use published::{PAGE, PublishedItem, PublishedQueue};

#[cfg(test)]
mod tests;

/// How many events are queued before the actor lags: twice what may wait in the journal by default.
pub const CAPACITY: usize = 16_384;

/// How long published records wait for others, so that not every commit wakes the actor's thread.
const LINGER: Duration = Duration::from_millis(5);

/// How many items are folded, and how many reads follow each other, before scrapes are looked at.
const BATCH: usize = 1024;
const MAX_READS_IN_A_ROW: u32 = 64;

/// Maximum number of waiting scrapes.
const MAX_SCRAPES: usize = 64;

/// A read that failed is tried again, since what it would have returned is not counted otherwise. Once that was
/// in vain, later reads are tried once each until one succeeds.
const RETRY_DELAY: Duration = Duration::from_millis(250);
const MAX_RETRIES: u32 = 8;

/// How the actor is started.
pub struct Options {
    /// The allowed label values.
    pub names: LabelNames,
    /// Whether metrics are recorded; otherwise there are only log lines.
    pub is_counting: bool,
    /// Maximum number of queued events; at more the actor lags.
    pub capacity: usize,
    /// What it reads when it lags.
    pub store: Store,
    /// The thread that it runs on.
    pub runtime: tokio::runtime::Handle,
    /// Records waiting times and restarts.
    pub server_metrics: ServerMetrics,
    /// The traces of runs, if there are any.
    pub traces: Option<RunTraces>,
}

/// Why the metrics of runs are not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The metrics could not be created: a name is invalid or used twice.
    #[error("the metrics cannot be created: {0}")]
    Invalid(String),
    /// Too many callers are waiting.
    #[error("too many scrapes are waiting for the metrics of runs; try again later")]
    Busy,
    /// The actor panicked each time it was asked.
    #[error("the metrics of runs could not be gathered because of an internal error; see the log")]
    Failed,
    /// The actor has stopped with its engine.
    #[error("the metrics of runs are no longer available: the engine has stopped")]
    Stopped,
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Invalid(_) => "metrics.invalid",
            Error::Busy => "metrics.busy",
            Error::Failed => "metrics.failed",
            Error::Stopped => "metrics.stopped",
        }
    }
}

impl From<MailboxError> for Error {
    fn from(error: MailboxError) -> Self {
        match error {
            MailboxError::Full => Error::Busy,
            MailboxError::Failed => Error::Failed,
            MailboxError::Stopped => Error::Stopped,
        }
    }
}

/// A handle to the actor. Clones share it.
#[derive(Clone)]
pub struct Handle {
    mailbox: Mailbox<Kpis>,
    queue: Arc<PublishedQueue>,
    is_counting: bool,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("kpis::Handle").field("backlog", &self.backlog()).finish_non_exhaustive()
    }
}

impl Handle {
    /// Starts the actor. It runs until [`Handle::stop`] or [`Handle::close`].
    ///
    /// # Errors
    /// `metrics.invalid`.
    pub fn start(options: Options) -> Result<Self, Error> {
        let Options { names, is_counting, capacity, store, runtime, server_metrics, traces } = options;
        if is_counting {
            RunMetrics::new(&names).map_err(|error| Error::Invalid(error.to_string()))?;
        }
        let queue = Arc::new(PublishedQueue::new(capacity, names));
        let supervision = SupervisionOptions {
            component: Component::Kpis,
            capacity: MAX_SCRAPES,
            lazy_notices: 1,
            metrics: server_metrics.clone(),
        };
        let (shared, refusals) = (queue.clone(), server_metrics);
        let mailbox = Mailbox::new(supervision, move |is_first| Kpis {
            subscriber: subscriber(&shared, is_counting, traces.clone()),
            is_counting,
            traces: traces.clone(),
            queue: shared.clone(),
            store: store.clone(),
            // What was queued when its predecessor panicked.
            due: (!is_first).then(Instant::now),
            read: None,
            retry_delay: Duration::ZERO,
            is_reading: false,
            reads_in_a_row: 0,
            failures: 0,
            unrestorable: shared.lock().restoring.take(),
            waiters: VecDeque::new(),
            server_metrics: refusals.clone(),
        });
        mailbox.start(runtime);
        Ok(Self { mailbox, queue, is_counting })
    }

    /// Returns whether metrics are recorded; otherwise there are only log lines.
    pub fn is_counting(&self) -> bool {
        self.is_counting
    }

    /// The metrics of runs, which include everything that was published before the call. `waiting` is the
    /// number of runs that wait for a person: they are counted in the store.
    ///
    /// # Errors
    /// `metrics.busy`, `metrics.failed`, `metrics.stopped`.
    pub async fn gather(&self, waiting: Option<u64>) -> Result<Exposition, Error> {
        self.mailbox.ask(|reply| KpisMessage::Ask(KpisQuestion::Gather { waiting, reply })).await?
    }

    /// Returns when everything that was published before the call is counted and logged.
    ///
    /// # Errors
    /// As [`Handle::gather`].
    pub async fn flush(&self) -> Result<(), Error> {
        self.mailbox.ask(|reply| KpisMessage::Ask(KpisQuestion::Flush { reply })).await?
    }

    /// Applies a changed configuration: new scenes, tools and models get their own labels from now on, up to
    /// a bound beyond which they count as `other`. Removed ones keep their series.
    pub fn extend_names(&self, catalogue: &Catalogue, models: &[String]) {
        let mut names = self.queue.lock_names();
        if let Some(extended) = names.extended(catalogue, models) {
            *names = Arc::new(extended);
            drop(names);
            self.wake(self.queue.push(PublishedItem::NamesExtended));
        }
    }

    /// Number of published events that are not counted yet.
    pub fn backlog(&self) -> u64 {
        self.queue.backlog()
    }

    /// Counts and logs what was published, then stops the actor.
    pub async fn stop(&self) {
        if let Err(error) = self.flush().await
            && error != Error::Stopped
        {
            tracing::warn!(code = error.code(), %error, "the last log lines of runs may be missing");
        }
        self.close();
    }

    /// Stops the actor at once.
    pub fn close(&self) {
        self.queue.close();
        self.mailbox.stop();
    }

    fn wake(&self, is_needed: bool) {
        if is_needed {
            self.mailbox.notify(KpisMessage::Published);
        }
    }
}

impl RecordSink for Handle {
    fn publish(&self, records: Vec<Record>) {
        self.wake(self.queue.publish(records));
    }

    fn forget(&self, stream: &StreamId) {
        self.wake(self.queue.push(PublishedItem::Forget(stream.clone())));
    }
}

/// A subscriber that has seen nothing, with the current label names.
fn subscriber(queue: &PublishedQueue, is_counting: bool, traces: Option<RunTraces>) -> Subscriber {
    let names = queue.lock_names().clone();
    let metrics = is_counting.then(|| RunMetrics::new(&names)).transpose().unwrap_or_else(|error| {
        // The same metrics were made when the actor was started.
        tracing::error!(%error, "the metrics of runs cannot be created");
        None
    });
    Subscriber::new(names, metrics).traced(traces)
}

/// The state of the actor.
pub(crate) struct Kpis {
    subscriber: Subscriber,
    is_counting: bool,
    traces: Option<RunTraces>,
    queue: Arc<PublishedQueue>,
    store: Store,
    /// When it looks at the queue of published items again.
    due: Option<Instant>,
    /// What has to be read before the next item is folded.
    read: Option<StoreRead>,
    /// How long to wait before that.
    retry_delay: Duration,
    is_reading: bool,
    reads_in_a_row: u32,
    /// Failed reads in a row.
    failures: u32,
    /// The run at the front of the queue, if its earlier events cannot be read: it is tracked from here on.
    unrestorable: Option<RunId>,
    /// Questions, each answered once the actor gets to its barrier.
    waiters: VecDeque<(u64, KpisQuestion)>,
    server_metrics: ServerMetrics,
}

/// A message to the actor.
pub(crate) enum KpisMessage {
    /// Something was published.
    Published,
    Ask(KpisQuestion),
    /// A read has ended.
    Read(StoreRead, Result<Vec<Record>, store::Error>),
}

/// A question that is answered when everything published before it is counted.
pub(crate) enum KpisQuestion {
    Gather { waiting: Option<u64>, reply: oneshot::Sender<Result<Exposition, Error>> },
    Flush { reply: oneshot::Sender<Result<(), Error>> },
}

impl KpisQuestion {
    fn refuse(self, error: Error) {
        // The asker may have left.
        match self {
            KpisQuestion::Gather { reply, .. } => drop(reply.send(Err(error))),
            KpisQuestion::Flush { reply } => drop(reply.send(Err(error))),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum StoreRead {
    /// Records that were missed.
    Missed { stream: StreamId, first: u64, last: u64 },
    /// The events of a run before this one, which the actor has not seen.
    Earlier { run: RunId, before: u64 },
}

impl StoreRead {
    async fn perform(&self, store: &Store) -> Result<Vec<Record>, store::Error> {
        match self {
            StoreRead::Missed { stream, first, last } => {
                store.records_between(stream, *first, *last, PAGE).await
            }
            StoreRead::Earlier { run, before } => {
                store.records_between(&StreamId::Run(*run), 1, before.saturating_sub(1), u32::MAX).await
            }
        }
    }
}

impl Kpis {
    /// Folds queued items until a read is needed. Continues soon if there are many.
    fn fold(&mut self) {
        if self.is_reading || self.read.is_some() {
            return;
        }
        for _ in 0..BATCH {
            let Some(item) = self.queue.pop() else { return };
            self.fold_item(item);
            if self.read.is_some() {
                self.reads_in_a_row += 1;
                if self.reads_in_a_row > MAX_READS_IN_A_ROW {
                    self.reads_in_a_row = 0;
                    self.read = None;
                    break;
                }
                return;
            }
        }
        self.due = Some(Instant::now());
    }

    fn fold_item(&mut self, item: PublishedItem) {
        match item {
            PublishedItem::Record(record) => match self.unseen(&record) {
                None => {
                    self.subscriber.observe(&record);
                    self.unrestorable = None;
                }
                Some((run, before)) => {
                    self.queue.put_back(PublishedItem::Record(record));
                    self.read = Some(StoreRead::Earlier { run, before });
                }
            },
            PublishedItem::Missed { stream, first, last } => {
                self.read = Some(StoreRead::Missed { stream: stream.clone(), first, last });
                self.queue.put_back(PublishedItem::Missed { stream, first, last });
            }
            PublishedItem::CatchUp => {
                tracing::warn!(
                    "the metrics lag behind the journal: the missing events are read from the store"
                );
                self.queue.end_lag();
            }
            PublishedItem::Forget(stream) => self.subscriber.forget(&stream),
            PublishedItem::NamesExtended => self.subscriber.set_names(self.queue.lock_names().clone()),
            PublishedItem::Barrier(number) => self.answer(number),
            PublishedItem::Reset => {
                tracing::error!("the metrics lag too far behind the journal and start again at zero");
                self.subscriber = subscriber(&self.queue, self.is_counting, self.traces.clone());
            }
            #[cfg(test)]
            PublishedItem::Panic => panic!("told to"),
        }
    }

    /// The run of the record, and its sequence number, if the run has earlier events that this actor has not
    /// seen.
    fn unseen(&self, record: &Record) -> Option<(RunId, u64)> {
        let Record::Run(envelope) = record else { return None };
        let run = envelope.run.filter(|_| envelope.seq > 1)?;
        let is_seen = self.subscriber.is_tracked(run) || self.unrestorable == Some(run);
        (!is_seen).then_some((run, envelope.seq))
    }

    fn answer(&mut self, number: u64) {
        // The asker of a barrier that is not found asked an actor that has panicked, and asks again.
        if let Some(place) = self.waiters.iter().position(|(waiting, _)| *waiting == number)
            && let Some((_, question)) = self.waiters.remove(place)
        {
            match question {
                KpisQuestion::Gather { waiting, reply } => {
                    let exposition = self.subscriber.metrics().map(|metrics| {
                        if let Some(runs) = waiting {
                            metrics.set_waiting(runs);
                        }
                        Exposition::of_runs(metrics)
                    });
                    // The asker may have left.
                    let _ = reply.send(Ok(exposition.unwrap_or_default()));
                }
                KpisQuestion::Flush { reply } => drop(reply.send(Ok(()))),
            }
        }
    }

    fn read_ended(&mut self, read: StoreRead, result: Result<Vec<Record>, store::Error>) {
        self.is_reading = false;
        let result = match result {
            Ok(records) => {
                self.failures = 0;
                Ok(records)
            }
            Err(error) if is_worth_a_retry(&error) && self.failures < MAX_RETRIES => {
                tracing::warn!(code = error.code(), %error, "the metrics wait for the store");
                self.failures += 1;
                self.retry_delay = RETRY_DELAY;
                self.read = Some(read);
                return;
            }
            Err(error) => Err(error),
        };
        let records = result.unwrap_or_else(|error| {
            tracing::error!(code = error.code(), %error, "events are missing in the metrics");
            Vec::new()
        });
        match read {
            StoreRead::Missed { stream, first, .. } => {
                let is_erased = records.is_empty();
                if self.queue.replace_missed(&stream, first, records).is_some() && is_erased {
                    self.subscriber.forget(&stream);
                }
            }
            StoreRead::Earlier { run, before } => self.restore(run, before, records),
        }
    }

    fn restore(&mut self, run: RunId, before: u64, records: Vec<Record>) {
        let events: Vec<Envelope<Event>> = records
            .into_iter()
            .filter_map(|record| match record {
                Record::Run(envelope) => Some(Arc::unwrap_or_clone(envelope)),
                Record::Session(_) => None,
            })
            .collect();
        // Without all of them, the run is tracked from its next event on.
        if events.len() as u64 == before - 1 {
            self.queue.lock().restoring = Some(run);
            #[cfg(test)]
            assert_ne!(run, tests::unrestorable_run(), "told to");
            self.subscriber.restore(&events);
            self.queue.lock().restoring = None;
        }
        self.unrestorable = (!self.subscriber.is_tracked(run)).then_some(run);
    }
}

fn is_worth_a_retry(error: &store::Error) -> bool {
    !error.is_damaged_stream() && error.kind() != store::ErrorCode::Stopped
}

impl Behavior for Kpis {
    type Message = KpisMessage;

    fn handle(&mut self, message: KpisMessage) {
        match message {
            KpisMessage::Published => {
                self.due.get_or_insert_with(|| Instant::now() + LINGER);
            }
            KpisMessage::Ask(question) if self.waiters.len() >= MAX_SCRAPES => {
                self.server_metrics.shed(Component::Kpis);
                question.refuse(Error::Busy);
            }
            KpisMessage::Ask(question) => {
                self.waiters.push_back((self.queue.push_barrier(), question));
                self.fold();
            }
            KpisMessage::Read(read, result) => {
                self.read_ended(read, result);
                self.fold();
            }
        }
    }

    fn blocking_work(&mut self) -> Option<BoxFuture<'static, KpisMessage>> {
        let read = self.read.take()?;
        self.is_reading = true;
        let store = self.store.clone();
        let delay = std::mem::take(&mut self.retry_delay);
        let work = async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let result = read.perform(&store).await;
            KpisMessage::Read(read, result)
        };
        Some(work.boxed())
    }

    fn timer(&self) -> Option<Instant> {
        self.due
    }

    fn on_timer(&mut self) {
        self.due = None;
        self.fold();
    }
}
