use std::collections::BTreeMap;

use actix::prelude::*;
use proptest::prelude::*;

use super::*;
use crate::actors::journal::{self, Journal};
use crate::run::{Fault, RunStatus, SessionEvent, Usage};
use crate::store::tests::{envelope, open, record, run_id};
use crate::telemetry::JournalTelemetry;

/// A run that makes the actor panic when it is restored.
pub(super) fn unrestorable_run() -> RunId {
    run_id(u128::MAX)
}

/// A journal that publishes to the actor, and a subscriber that sees everything at once.
struct Stage {
    journal: journal::Handle,
    kpis: Handle,
    server_metrics: ServerMetrics,
    store: Store,
    expected: Subscriber,
    history: BTreeMap<u128, Vec<Envelope<Event>>>,
    session_seq: u64,
    _dir: tempfile::TempDir,
}

fn names() -> LabelNames {
    LabelNames::new(&Catalogue::default(), &[])
}

fn fresh() -> Subscriber {
    let names = names();
    let metrics = RunMetrics::new(&names).unwrap();
    Subscriber::new(names.into(), Some(metrics))
}

/// A sum of fractions depends a little on their order, and a lagging actor reads stream by stream.
fn rounded(text: &str) -> String {
    let round = |line: &str| match line.split_once("} ").filter(|(series, _)| series.contains("_sum{")) {
        Some((series, sum)) => format!("{series}}} {:.9}\n", sum.parse::<f64>().unwrap()),
        None => format!("{line}\n"),
    };
    text.lines().map(round).collect()
}

impl Stage {
    async fn new(capacity: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        let server_metrics = ServerMetrics::default();
        let options = Options {
            names: names(),
            is_counting: true,
            capacity,
            store: store.clone(),
            runtime: tokio::runtime::Handle::current(),
            server_metrics: server_metrics.clone(),
            traces: None,
        };
        let kpis = Handle::start(options).unwrap();
        let watch =
            JournalTelemetry { sink: Some(Arc::new(kpis.clone())), server_metrics: server_metrics.clone() };
        let journal =
            Journal::start_with_telemetry(store.clone(), &store::Options::default(), watch).await.unwrap();
        let (expected, history, session_seq) = (fresh(), BTreeMap::new(), 0);
        Self { journal, kpis, server_metrics, store, expected, history, session_seq, _dir: dir }
    }

    /// The run's next event: it is queued first, and works until it ends or waits.
    fn next(&mut self, run: u128, ends: bool) -> Record {
        let events = self.history.entry(run).or_default();
        let seq = events.len() as u64 + 1;
        let body = match (events.last().map(|last| &last.body), ends) {
            (None, _) => return self.enter(run, record(run, 1)),
            (Some(Event::RunWaiting {}), _) => Event::Released { by: "keysersoze".to_owned() },
            (_, true) if seq.is_multiple_of(2) => Event::RunWaiting {},
            (_, true) => Event::RunCompleted { status: RunStatus::Completed },
            _ => Event::StepCompleted { step: 1, result: String::new() },
        };
        self.enter(run, Record::Run(envelope(Some(run_id(run)), "s1", seq, body).into()))
    }

    fn has_ended(&self, run: u128) -> bool {
        self.history.get(&run).and_then(|events| events.last()).is_some_and(|last| last.body.is_terminal())
    }

    fn summary(&mut self) -> Record {
        self.session_seq += 1;
        let body = if self.session_seq == 1 {
            SessionEvent::SessionStarted {}
        } else {
            let usage = Usage { calls: 1, input_tokens: 7, ..Usage::default() };
            SessionEvent::SummaryFailed { error: Fault::new("llm.status", "no"), usage, attempts: vec![] }
        };
        let record = Record::Session(envelope(None, "s1", self.session_seq, body));
        self.expected.observe(&record);
        record
    }

    fn enter(&mut self, run: u128, record: Record) -> Record {
        let Record::Run(event) = &record else { panic!("of a run") };
        let events = self.history.entry(run).or_default();
        if event.seq > 1 && !self.expected.is_tracked(run_id(run)) {
            self.expected.restore(events);
        }
        events.push((**event).clone());
        self.expected.observe(&record);
        record
    }

    async fn append(&self, records: Vec<Record>) {
        self.journal.append(records, true).await.unwrap();
    }

    /// Makes the actor panic; it has counted everything before.
    async fn panic(&mut self) {
        self.kpis.flush().await.unwrap();
        let restarts = self.server_metrics.restarts(Component::Kpis);
        self.kpis.wake(self.kpis.queue.push(PublishedItem::Panic));
        self.kpis.flush().await.unwrap();
        assert_eq!(self.server_metrics.restarts(Component::Kpis), restarts + 1);
        self.expected = fresh();
    }

    async fn figures(&self) -> String {
        rounded(&self.kpis.gather(None).await.unwrap().text())
    }

    fn expected_figures(&self) -> String {
        rounded(&Exposition::of_runs(self.expected.metrics().unwrap()).text())
    }

    async fn stop(self) {
        self.journal.stop().await.unwrap();
        self.kpis.stop().await;
        assert_eq!(self.kpis.gather(None).await.err(), Some(Error::Stopped));
    }
}

/// Runs a test in an actix system.
fn run_in_system(test: impl Future<Output = ()>) {
    let system = System::new();
    system.block_on(test);
    System::try_current().inspect(System::stop);
}

#[test]
fn scrape_sees_everything_that_was_appended_before_it() {
    run_in_system(async {
        let mut stage = Stage::new(CAPACITY).await;
        for run in 1..=20 {
            let records = (0..4).map(|n| stage.next(run, n == 3)).collect();
            stage.append(records).await;
            assert_eq!(stage.figures().await, stage.expected_figures());
        }
        assert_eq!(stage.kpis.backlog(), 0);
        stage.stop().await;
    });
}

#[test]
fn lagging_actor_counts_every_event_once() {
    run_in_system(async {
        let mut stage = Stage::new(1).await;
        // More events than one page has.
        for _ in 0..u64::from(PAGE) {
            let records = vec![stage.next(1, false), stage.next(2, false), stage.summary()];
            stage.append(records).await;
        }
        let last = vec![stage.next(1, true), stage.next(2, true)];
        stage.append(last).await;
        let figures = stage.figures().await;
        assert_eq!(figures, stage.expected_figures());
        assert!(figures.contains(r#"steps_total{outcome="completed",scene="other"} 510"#), "{figures}");
        assert_eq!((stage.kpis.backlog(), stage.server_metrics.restarts(Component::Kpis)), (0, 0));
        stage.stop().await;
    });
}

#[test]
fn actor_counts_from_zero_after_panic_and_keeps_its_queue() {
    run_in_system(async {
        let mut stage = Stage::new(CAPACITY).await;
        let begun = vec![stage.next(1, false), stage.next(1, false), stage.next(2, false)];
        stage.append(begun).await;
        stage.panic().await;
        let ended = vec![stage.next(1, true), stage.next(2, false), stage.next(3, false)];
        stage.append(ended).await;
        let figures = stage.figures().await;
        assert_eq!(figures, stage.expected_figures());
        assert!(figures.contains(r#"requests_total{outcome="completed"} 1"#), "{figures}");
        stage.stop().await;
    });
}

#[test]
fn panic_loses_only_the_item_that_caused_it() {
    run_in_system(async {
        let mut stage = Stage::new(CAPACITY).await;
        stage.kpis.queue.push(PublishedItem::Panic);
        for run in 1..=3 {
            let records = (0..4).map(|n| stage.next(run, n == 2)).collect();
            stage.append(records).await;
        }
        assert_eq!(stage.figures().await, stage.expected_figures());
        assert_eq!(stage.server_metrics.restarts(Component::Kpis), 1);
        stage.stop().await;
    });
}

#[test]
fn waiting_run_is_restored_from_the_store() {
    run_in_system(async {
        let mut stage = Stage::new(CAPACITY).await;
        for ends in [false, true, false, false, true] {
            let record = stage.next(1, ends);
            stage.append(vec![record]).await;
        }
        assert!(stage.has_ended(1));
        let figures = stage.figures().await;
        assert_eq!(figures, stage.expected_figures());
        assert!(figures.contains(r#"request_duration_seconds_count{outcome="completed"} 1"#), "{figures}");
        stage.stop().await;
    });
}

#[test]
fn erased_streams_are_gone() {
    run_in_system(async {
        let stage = Stage::new(1).await;
        // Published, but not in the store: as if erased meanwhile.
        stage.kpis.publish(vec![record(7, 1), record(7, 2), record(8, 2)]);
        stage.kpis.publish(vec![record(9, 1)]);
        let figures = stage.figures().await;
        assert!(figures.contains(r#"runs_in_flight{state="queued"} 0"#), "{figures}");
        assert_eq!(stage.kpis.backlog(), 0);
        stage.stop().await;
    });
}

#[test]
fn run_that_cannot_be_restored_panics_the_actor_once() {
    run_in_system(async {
        let mut stage = Stage::new(CAPACITY).await;
        for ends in [false, true, false] {
            let record = stage.next(u128::MAX, ends);
            stage.append(vec![record]).await;
        }
        let records = (0..4).map(|n| stage.next(1, n == 2)).collect();
        stage.append(records).await;
        let figures = stage.figures().await;
        assert!(figures.contains(r#"requests_total{outcome="completed"} 1"#), "{figures}");
        assert_eq!(stage.server_metrics.restarts(Component::Kpis), 1);
        stage.stop().await;
    });
}

#[test]
fn closed_store_does_not_hold_the_actor() {
    run_in_system(async {
        let stage = Stage::new(1).await;
        stage.store.pool().close().await;
        for run in 1..100 {
            stage.kpis.publish(vec![record(run, 1), record(run, 2)]);
        }
        let figures = stage.figures().await;
        assert!(figures.contains(r#"runs_in_flight{state="queued"} 0"#), "{figures}");
        assert_eq!(stage.kpis.backlog(), 0);
        stage.kpis.stop().await;
    });
}

#[test]
fn too_many_missed_streams_start_the_metrics_again() {
    run_in_system(async {
        let mut stage = Stage::new(1).await;
        let records = (0..4).map(|n| stage.next(1, n == 2)).collect();
        stage.append(records).await;
        stage.kpis.flush().await.unwrap();
        {
            let mut state = stage.kpis.queue.lock();
            for run in 0..=MAX_MISSED_STREAMS as u128 {
                state.miss(&[record(run + 10, 2)]);
            }
            assert!(state.missed.is_empty());
        }
        let figures = stage.figures().await;
        assert_eq!(figures, rounded(&Exposition::of_runs(fresh().metrics().unwrap()).text()));
        assert_eq!(stage.kpis.backlog(), 0);
        stage.stop().await;
    });
}

#[test]
fn scrapes_beyond_the_bound_are_refused() {
    run_in_system(async {
        let stage = Stage::new(CAPACITY).await;
        let scrapes = (0..=MAX_SCRAPES).map(|_| stage.kpis.gather(Some(3)));
        let answers = futures::future::join_all(scrapes).await;
        let refused: Vec<Error> = answers.into_iter().filter_map(Result::err).collect();
        // The actor may have taken some meanwhile.
        assert!(refused.len() <= 1 && refused.iter().all(|error| error.code() == "metrics.busy"));
        let figures = stage.kpis.gather(Some(3)).await.unwrap().text();
        assert!(figures.contains(r#"runs_in_flight{state="waiting"} 3"#));
        stage.stop().await;
    });
}

#[test]
fn without_metrics_nothing_is_gathered() {
    run_in_system(async {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            names: names(),
            is_counting: false,
            capacity: CAPACITY,
            store: open(dir.path()).await,
            runtime: tokio::runtime::Handle::current(),
            server_metrics: ServerMetrics::default(),
            traces: None,
        };
        let kpis = Handle::start(options).unwrap();
        kpis.publish(vec![record(1, 1)]);
        assert_eq!(kpis.gather(None).await.unwrap().text(), "");
        kpis.close();
    });
}

/// What happens to the actor.
#[derive(Debug, Clone)]
enum Step {
    /// Appends the next events of these runs in one commit; an event may end its run.
    Append(Vec<(u128, bool)>),
    Summary,
    Scrape,
    Panic,
}

fn any_step() -> impl Strategy<Value = Step> {
    let append = prop::collection::vec((1..5_u128, prop::bool::weighted(0.2)), 1..12);
    prop_oneof![
        12 => append.prop_map(Step::Append),
        2 => Just(Step::Summary),
        2 => Just(Step::Scrape),
        1 => Just(Step::Panic),
    ]
}

async fn play(capacity: usize, steps: Vec<Step>) {
    let mut stage = Stage::new(capacity).await;
    // A run that has ended is followed by another one.
    let mut successors: BTreeMap<u128, u128> = BTreeMap::new();
    for step in steps {
        match step {
            Step::Append(events) => {
                let mut records = Vec::new();
                for (run, ends) in events {
                    let current = successors.entry(run).or_insert(run);
                    if stage.has_ended(*current) {
                        *current += 100;
                    }
                    let current = *current;
                    records.push(stage.next(current, ends));
                }
                stage.append(records).await;
            }
            Step::Summary => {
                let record = stage.summary();
                stage.append(vec![record]).await;
            }
            Step::Scrape => assert_eq!(stage.figures().await, stage.expected_figures()),
            Step::Panic => stage.panic().await,
        }
    }
    assert_eq!(stage.figures().await, stage.expected_figures());
    assert_eq!(stage.kpis.backlog(), 0);
    stage.stop().await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn metrics_equal_those_of_a_subscriber_that_saw_everything(
        capacity in 1..24_usize,
        steps in prop::collection::vec(any_step(), 1..40),
    ) {
        run_in_system(play(capacity, steps));
    }
}
