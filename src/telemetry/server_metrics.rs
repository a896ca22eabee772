//! Metrics outside of runs: load shedding, queue depths, journal commits, and the facts of conversations.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{Histogram, HistogramOpts, HistogramVec};
use strum::IntoStaticStr;

use super::{PREFIX, buckets};
use crate::mutex::lock;
use crate::run::FactKind;
use crate::sandbox::ProgramCounts;
use crate::store::DiskUsage;

/// From when seconds between log lines are counted.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A component of the server that has a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Component {
    /// Requests to be routed to conversations.
    SessionRegistry,
    /// Requests that wait for their turn in a conversation.
    SceneManager,
    /// Model requests and tool calls that wait for a permit of their scene.
    Scene,
    /// Events that wait to be written.
    Journal,
    /// HTTP requests.
    Http,
    /// Lookups in the cache of model replies.
    ResponseCache,
    /// Attempts at models that wait for a permit.
    RateLimiter,
    /// Reservations of money.
    CostBudget,
    /// Written events to be counted, and scrapes of the metrics of runs.
    Kpis,
}

impl Component {
    /// All components.
    pub const ALL: [Component; 9] = [
        Component::SessionRegistry,
        Component::SceneManager,
        Component::Scene,
        Component::Journal,
        Component::Http,
        Component::ResponseCache,
        Component::RateLimiter,
        Component::CostBudget,
        Component::Kpis,
    ];

    /// Those with a supervised actor, whose questions are timed.
    const SUPERVISED: [Component; 4] =
        [Component::ResponseCache, Component::RateLimiter, Component::CostBudget, Component::Kpis];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The fate of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum SpanFate {
    /// The receiver took it.
    Exported,
    /// There was no room for it, or the server stopped.
    Dropped,
    /// The receiver could not be reached, or refused the export.
    Failed,
    /// The receiver took others of the same export.
    Rejected,
}

impl SpanFate {
    /// All of them.
    pub const ALL: [SpanFate; 4] =
        [SpanFate::Exported, SpanFate::Dropped, SpanFate::Failed, SpanFate::Rejected];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Records the metrics outside of runs; clones share them.
#[derive(Clone, Default)]
pub struct ServerMetrics(Arc<ServerMetricsInner>);

#[derive(Default)]
struct ServerMetricsInner {
    shed: [AtomicU64; Component::ALL.len()],
    /// The second since `BEGAN` in which shedding was last logged.
    shed_logged: [AtomicU64; Component::ALL.len()],
    depth: [AtomicU64; Component::ALL.len()],
    restarts: [AtomicU64; Component::ALL.len()],
    awake: AtomicU64,
    /// In the order of [`FactKind::ALL`].
    facts: [AtomicU64; FactKind::ALL.len()],
    superseded_facts: AtomicU64,
    data_dir: Mutex<DataDirSizes>,
    commits: CommitMetrics,
    waits: WaitMetrics,
    programs: ProgramCounts,
    spans: [AtomicU64; SpanFate::ALL.len()],
    /// Counted by the queue of the log, where there is one.
    dropped_log_lines: OnceLock<Arc<AtomicU64>>,
}

/// The sizes in the data directory when they were last read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DataDirSizes {
    pub(super) disk: DiskUsage,
    /// Number and bytes of the documents, once they were counted.
    pub(super) documents: Option<(u64, u64)>,
}

/// Each metric is present: creating one fails only for an invalid name.
struct CommitMetrics {
    seconds: Option<HistogramVec>,
    done: Option<Histogram>,
    failed: Option<Histogram>,
    events: Option<Histogram>,
}

impl Default for CommitMetrics {
    fn default() -> Self {
        let options = HistogramOpts::new(
            format!("{PREFIX}journal_append_duration_seconds"),
            "Time of one commit of the journal, by outcome (ok, error).",
        );
        let seconds = HistogramVec::new(options.buckets(buckets::JOURNAL.to_vec()), &["outcome"]).ok();
        let by = |outcome: &str| seconds.as_ref()?.get_metric_with_label_values(&[outcome]).ok();
        let options = HistogramOpts::new(
            format!("{PREFIX}journal_batch_events"),
            "Events written in one commit of the journal.",
        );
        let events = Histogram::with_opts(options.buckets(buckets::BATCH.to_vec())).ok();
        Self { done: by("ok"), failed: by("error"), seconds, events }
    }
}

/// How long questions waited in the queues of actors, by component; present for the same reason.
struct WaitMetrics {
    seconds: Option<HistogramVec>,
    by_component: [Option<Histogram>; Component::ALL.len()],
}

impl Default for WaitMetrics {
    fn default() -> Self {
        let options = HistogramOpts::new(
            format!("{PREFIX}mailbox_wait_seconds"),
            "Time that a question waited in the queue of an actor, by actor.",
        );
        let seconds = HistogramVec::new(options.buckets(buckets::JOURNAL.to_vec()), &["actor"]).ok();
        let mut by_component = [const { None }; Component::ALL.len()];
        for part in Component::SUPERVISED {
            let histogram =
                seconds.as_ref().and_then(|all| all.get_metric_with_label_values(&[part.name()]).ok());
            by_component[part as usize] = histogram;
        }
        Self { seconds, by_component }
    }
}

impl ServerMetrics {
    /// Records that the component refused work because its queue was full. Logged at most once a second.
    pub fn shed(&self, part: Component) {
        let total = self.0.shed[part as usize].fetch_add(1, Relaxed) + 1;
        // Counted from 1, because 0 means never.
        let now = BEGAN.elapsed().as_secs() + 1;
        let logged = &self.0.shed_logged[part as usize];
        let before = logged.load(Relaxed);
        if before < now && logged.compare_exchange(before, now, Relaxed, Relaxed).is_ok() {
            tracing::warn!(actor = part.name(), total, "refused: the queue is full");
        }
    }

    /// How often the component refused work.
    pub fn shed_count(&self, part: Component) -> u64 {
        self.0.shed[part as usize].load(Relaxed)
    }

    /// Records that the component's actor ended and was restarted.
    pub fn record_restart(&self, part: Component) {
        self.0.restarts[part as usize].fetch_add(1, Relaxed);
    }

    /// How often the component's actor was restarted.
    pub fn restarts(&self, part: Component) -> u64 {
        self.0.restarts[part as usize].load(Relaxed)
    }

    /// Records how long a question waited in the queue of the component's actor.
    pub fn record_wait(&self, part: Component, waited: Duration) {
        if let Some(waits) = &self.0.waits.by_component[part as usize] {
            waits.observe(waited.as_secs_f64());
        }
    }

    /// Counts an item as queued for the component until the guard is dropped.
    pub fn enqueue(&self, part: Component) -> QueueGuard {
        self.0.depth[part as usize].fetch_add(1, Relaxed);
        QueueGuard { metrics: self.clone(), component: part }
    }

    /// The queue depth of the component.
    pub fn depth(&self, part: Component) -> u64 {
        self.0.depth[part as usize].load(Relaxed)
    }

    /// Sets the number of active conversations.
    pub fn set_awake(&self, conversations: usize) {
        self.0.awake.store(conversations as u64, Relaxed);
    }

    /// The number of active conversations.
    pub fn awake(&self) -> u64 {
        self.0.awake.load(Relaxed)
    }

    /// Records facts of conversations: how many of each kind, in the order of [`FactKind::ALL`], and how many others they
    /// took the place of.
    pub fn record_facts(&self, recorded: [u64; FactKind::ALL.len()], superseded: u64) {
        for (count, new) in self.0.facts.iter().zip(recorded) {
            count.fetch_add(new, Relaxed);
        }
        self.0.superseded_facts.fetch_add(superseded, Relaxed);
    }

    /// The recorded facts by kind, and the number of superseded ones.
    pub(super) fn facts(&self) -> ([(FactKind, u64); FactKind::ALL.len()], u64) {
        let mut by_kind = FactKind::ALL.map(|kind| (kind, 0));
        for ((_, sum), count) in by_kind.iter_mut().zip(&self.0.facts) {
            *sum = count.load(Relaxed);
        }
        (by_kind, self.0.superseded_facts.load(Relaxed))
    }

    /// Sets the number of all documents, and their bytes.
    pub fn set_document_totals(&self, count: u64, bytes: u64) {
        self.lock_data_dir().documents = Some((count, bytes));
    }

    /// Sets what the database takes on its disk.
    pub fn set_disk_usage(&self, disk: DiskUsage) {
        self.lock_data_dir().disk = disk;
    }

    /// The sizes of the data directory's parts, as far as they were read.
    pub(super) fn data_dir(&self) -> DataDirSizes {
        *self.lock_data_dir()
    }

    fn lock_data_dir(&self) -> MutexGuard<'_, DataDirSizes> {
        lock(&self.0.data_dir)
    }

    /// Records a commit of the journal with this number of events, or its failure.
    pub fn record_commit(&self, events: usize, took: Duration, ok: bool) {
        let commits = &self.0.commits;
        if let Some(seconds) = if ok { &commits.done } else { &commits.failed } {
            seconds.observe(took.as_secs_f64());
        }
        if let Some(batch) = commits.events.as_ref().filter(|_| ok) {
            batch.observe(events as f64);
        }
    }

    /// The counts of executed programs, for the sandbox to keep.
    pub fn programs(&self) -> ProgramCounts {
        self.0.programs.clone()
    }

    /// Records what became of so many spans.
    pub fn record_spans(&self, fate: SpanFate, spans: u64) {
        self.0.spans[fate as usize].fetch_add(spans, Relaxed);
    }

    /// How many spans have met this fate.
    pub fn spans(&self, fate: SpanFate) -> u64 {
        self.0.spans[fate as usize].load(Relaxed)
    }

    /// Lets the metrics read the log queue's counter of dropped lines.
    pub fn count_dropped_log_lines(&self, counter: Arc<AtomicU64>) {
        // A process has one log; another counter would be of the same queue.
        let _ = self.0.dropped_log_lines.set(counter);
    }

    /// How many log lines were dropped since the start.
    pub fn dropped_log_lines(&self) -> u64 {
        self.0.dropped_log_lines.get().map_or(0, |dropped| dropped.load(Relaxed))
    }

    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        let commits = &self.0.commits;
        let seconds = commits.seconds.iter().flat_map(Collector::collect);
        let waits = self.0.waits.seconds.iter().flat_map(Collector::collect);
        seconds.chain(commits.events.iter().flat_map(Collector::collect)).chain(waits).collect()
    }
}

impl std::fmt::Debug for ServerMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerMetrics").field("awake", &self.awake()).finish_non_exhaustive()
    }
}

/// Counts a queued item until dropped.
#[derive(Debug)]
pub struct QueueGuard {
    metrics: ServerMetrics,
    component: Component,
}

impl Drop for QueueGuard {
    fn drop(&mut self) {
        self.metrics.0.depth[self.component as usize].fetch_sub(1, Relaxed);
    }
}
