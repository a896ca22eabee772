//! Recognizes automatic retries of clients whose connection broke.
//!
//! The official OpenAI clients retry without an idempotency key, and number their attempts
//! (`x-stainless-retry-count`). So each run is kept for a while under the fingerprint of its request,
//! together with what became of its client. A retry with the same fingerprint gets
//!
//! 1. the run of a client that disconnected before it had its answer;
//! 2. otherwise a new run, if an equal request was rejected before acceptance: the retry belongs to that one;
//! 3. otherwise the run of an equal request that is still waiting or was just answered: the server may not
//!    have noticed the broken connection, or the answer was lost in transit.
//!
//! Of several such runs it gets the newest. A first attempt never joins another run, so two users who start
//! with the same message stay separate. As a consequence, a first attempt that is read after its own retry
//! starts a second run. Clients wait at least 0.375 s before a retry, and a server that late is rarer than
//! two users with the same first message.
//!
//! **After a restart.** Killing a server breaks the connection of every waiting client, and their retries
//! reach the next process. So the first event of each run records the fingerprint
//! (`RequestFingerprint::to_hex`). A process starts with the runs that earlier processes had in progress,
//! regardless of their age by the clock, and with those that ended just before the last event. It keeps them
//! for [`RETRY_WINDOW`]:
//!
//! - A run that had not ended when this process started counts as one whose client disconnected, because
//!   its answer cannot have been received. Each such run goes to one retry before any run is shared. The retry
//!   waits for the answer if the run is resumed, and otherwise gets `run.interrupted`.
//! - A run that had ended less than [`ANSWERED_RETRY_WINDOW`] before the last event counts as answered at the
//!   start: its answer may have been in transit when the process died. The window starts again because no
//!   retry could arrive while no server was running. After a longer outage the clients have given up: by
//!   default they retry twice and wait at most eight seconds in between.
//! - A run that had ended earlier is not kept: its client got the answer or has retried.
//!
//! A message that decides about a waiting run ("yes") starts no run. Its fingerprint is recorded with the
//! decision, and its run is the one that it decided about; if that run waits again, this is the answer. So
//! the retry of a decision made just before a kill does not decide about whatever is pending by then.
//!
//! A request with an `Idempotency-Key` is neither tracked here nor fingerprinted: only its key identifies it.
//!
//! First attempts that fail while no server is running are retried, too, once it runs again. Such a retry
//! gets the run of an equal request from before the stop, with the same API key and address. The two cannot
//! be distinguished; this is the price of never writing twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use tokio::sync::watch;

use super::fingerprint::RequestFingerprint;
use crate::engine::earlier_requests::{self, ANSWERED_RETRY_WINDOW, RETRY_WINDOW};
use crate::mutex::lock;
use crate::run::RunId;
use crate::store::RecentRequest;

/// How long a rejection is kept after the end of its `Retry-After`.
const REFUSAL_GRACE: Duration = Duration::from_secs(10);
/// Minimum time between two sweeps of a full table.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of runs and rejections of this process; as many runs of earlier processes may be added.
const MAX_ENTRIES: usize = earlier_requests::MAX_EARLIER_RUNS as usize;

/// Returns whether the client marks this request as a retry.
pub(crate) fn is_retry(request: &HttpRequest) -> bool {
    let tries = request.headers().get("x-stainless-retry-count").and_then(|value| value.to_str().ok());
    tries.and_then(|tries| tries.trim().parse::<u32>().ok()).is_some_and(|tries| tries > 0)
}

/// Recent runs and rejections, by fingerprint.
#[derive(Debug, Clone, Default)]
pub(crate) struct RetryRegistry(Arc<Mutex<RetryTable>>);

#[derive(Debug, Default)]
struct RetryTable {
    by_fingerprint: HashMap<RequestFingerprint, Vec<RetryEntry>>,
    /// The entries of this process, oldest first.
    by_age: VecDeque<EntryAge>,
    /// The entries of earlier processes, oldest first. Separate, so that new requests do not evict them.
    earlier: VecDeque<EntryAge>,
    /// When obsolete entries were last swept.
    swept_at: Option<Instant>,
    /// The number of the last entry.
    last: u64,
}

/// Since when an entry is kept.
#[derive(Debug)]
struct EntryAge {
    since: Instant,
    key: RequestFingerprint,
    number: u64,
}

impl EntryAge {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= RETRY_WINDOW
    }
}

/// An accepted run, or a rejection.
#[derive(Debug)]
struct RetryEntry {
    number: u64,
    state: RetryState,
}

#[derive(Debug)]
enum RetryState {
    Run {
        /// `None` while it is being accepted.
        run: watch::Receiver<Option<RunId>>,
        /// Number of clients that wait for its answer.
        waiting: usize,
        /// When its answer was sent; `None` if the last client disconnected before.
        answered: Option<Instant>,
    },
    /// A retry before `until` belongs to this rejected request, not to an accepted one.
    Refused { until: Instant },
}

impl RetryRegistry {
    /// Starts with the runs that earlier processes accepted, oldest first.
    pub(crate) fn from_earlier(earlier: &[RecentRequest]) -> Self {
        let now = Instant::now();
        let mut kept = RetryTable::default();
        for RecentRequest { run, fingerprint, created: _, ended } in earlier {
            let Some(key) = RequestFingerprint::from_hex(fingerprint) else { continue };
            let (_, run) = watch::channel(Some(*run));
            let state = RetryState::Run { run, waiting: 0, answered: ended.then_some(now) };
            let number = kept.insert(&key, state);
            // Its connection broke just now, regardless of its age by the clock.
            kept.earlier.push_back(EntryAge { since: now, key, number });
        }
        Self(Arc::new(Mutex::new(kept)))
    }

    /// Finds the run of a retry and starts waiting for its answer.
    pub(crate) fn join(&self, key: &RequestFingerprint) -> Option<Delivery> {
        self.join_at(key, Instant::now())
    }

    fn join_at(&self, key: &RequestFingerprint, now: Instant) -> Option<Delivery> {
        let mut table = self.lock_table();
        table.evict(now);
        let entries = table.by_fingerprint.get_mut(key)?;
        let fresh = |at: &Instant| now.duration_since(*at) < ANSWERED_RETRY_WINDOW;
        // The newest one: the client of an older one may have given up.
        let newest =
            |wanted: &dyn Fn(&RetryState) -> bool| entries.iter().rposition(|entry| wanted(&entry.state));
        let lost = newest(&|state| matches!(state, RetryState::Run { waiting: 0, answered: None, .. }));
        let refused = newest(&|state| matches!(state, RetryState::Refused { until } if now < *until));
        let waits = newest(&|state| matches!(state, RetryState::Run { waiting: 1.., .. }));
        let answered =
            newest(&|state| matches!(state, RetryState::Run { answered: Some(at), .. } if fresh(at)));
        if let (None, Some(refused)) = (lost, refused) {
            entries.remove(refused);
            return None;
        }
        let entry = entries.get_mut(lost.or(waits).or(answered)?)?;
        let RetryState::Run { run, waiting, .. } = &mut entry.state else { return None };
        *waiting += 1;
        let run = run.clone();
        Some(Delivery {
            registry: self.clone(),
            fingerprint: key.clone(),
            number: entry.number,
            run,
            run_sender: None,
            sent: false,
        })
    }

    /// Tracks a request from before its acceptance, because a retry may arrive during it.
    pub(crate) fn track(&self, key: RequestFingerprint) -> Delivery {
        let (accept, run) = watch::channel(None);
        let state = RetryState::Run { run: run.clone(), waiting: 1, answered: None };
        let number = self.lock_table().add(key.clone(), state, Instant::now());
        Delivery {
            registry: self.clone(),
            fingerprint: key,
            number,
            run,
            run_sender: Some(accept),
            sent: false,
        }
    }

    /// Records a request that was rejected before acceptance, with its `Retry-After` in seconds.
    pub(crate) fn record_refusal(&self, key: RequestFingerprint, seconds: u64) {
        let now = Instant::now();
        let until = now + Duration::from_secs(seconds.min(RETRY_WINDOW.as_secs())) + REFUSAL_GRACE;
        self.lock_table().add(key, RetryState::Refused { until }, now);
    }

    fn lock_table(&self) -> MutexGuard<'_, RetryTable> {
        lock(&self.0)
    }

    fn finish(&self, delivery: &Delivery) {
        let mut table = self.lock_table();
        let Some(entries) = table.by_fingerprint.get_mut(&delivery.fingerprint) else { return };
        if delivery.run_sender.is_some() {
            // It was not accepted, so there is no run to find.
            entries.retain(|entry| entry.number != delivery.number);
        }
        for entry in entries.iter_mut().filter(|entry| entry.number == delivery.number) {
            if let RetryState::Run { waiting, answered, .. } = &mut entry.state {
                *waiting = waiting.saturating_sub(1);
                *answered = delivery.sent.then(Instant::now);
            }
        }
    }
}

impl RetryTable {
    fn add(&mut self, key: RequestFingerprint, state: RetryState, now: Instant) -> u64 {
        self.evict(now);
        let number = self.insert(&key, state);
        self.by_age.push_back(EntryAge { since: now, key, number });
        number
    }

    fn insert(&mut self, key: &RequestFingerprint, state: RetryState) -> u64 {
        self.last += 1;
        let number = self.last;
        self.by_fingerprint.entry(key.clone()).or_default().push(RetryEntry { number, state });
        number
    }

    /// Removes expired and surplus entries.
    fn evict(&mut self, now: Instant) {
        while let Some(EntryAge { key, number, .. }) = self.earlier.pop_front_if(|entry| entry.is_over(now)) {
            self.remove(&key, number);
        }
        if self.by_age.len() >= MAX_ENTRIES
            && self.swept_at.is_none_or(|at| now.duration_since(at) >= SWEEP_INTERVAL)
        {
            self.swept_at = Some(now);
            self.sweep(now);
        }
        while self.by_age.len() >= MAX_ENTRIES || self.by_age.front().is_some_and(|entry| entry.is_over(now))
        {
            let Some(EntryAge { key, number, .. }) = self.by_age.pop_front() else { break };
            self.remove(&key, number);
        }
    }

    /// Removes answered runs and rejections whose retries are over, to make room for waiting clients.
    fn sweep(&mut self, now: Instant) {
        let serves = |entry: &RetryEntry| match entry.state {
            RetryState::Run { waiting: 0, answered: Some(at), .. } => {
                now.duration_since(at) < ANSWERED_RETRY_WINDOW
            }
            RetryState::Run { .. } => true,
            RetryState::Refused { until } => now < until,
        };
        self.by_fingerprint.retain(|_, entries| {
            entries.retain(serves);
            !entries.is_empty()
        });
        let asked = &self.by_fingerprint;
        let is_there = |EntryAge { key, number, .. }: &EntryAge| {
            asked
                .get(key)
                .is_some_and(|entries| entries.binary_search_by_key(number, |entry| entry.number).is_ok())
        };
        self.by_age.retain(is_there);
        self.earlier.retain(is_there);
    }

    fn remove(&mut self, key: &RequestFingerprint, number: u64) {
        let Some(entries) = self.by_fingerprint.get_mut(key) else { return };
        entries.retain(|entry| entry.number != number);
        if entries.is_empty() {
            self.by_fingerprint.remove(key);
        }
    }
}

/// Tracks an answer on its way to the client. Dropped before it was sent, it counts as disconnected.
#[derive(Debug)]
pub(crate) struct Delivery {
    registry: RetryRegistry,
    fingerprint: RequestFingerprint,
    number: u64,
    run: watch::Receiver<Option<RunId>>,
    /// Publishes the run's id on acceptance; `None` afterwards.
    run_sender: Option<watch::Sender<Option<RunId>>>,
    sent: bool,
}

impl Delivery {
    /// Records that the request was accepted as this run.
    pub(crate) fn set_run(&mut self, run: RunId) {
        if let Some(accept) = self.run_sender.take() {
            accept.send_replace(Some(run));
        }
    }

    /// Waits for acceptance and returns the run; `None` if the request was rejected.
    pub(crate) async fn run(&mut self) -> Option<RunId> {
        let run = self.run.wait_for(Option::is_some).await.ok()?;
        *run
    }

    pub(crate) fn fingerprint_hex(&self) -> String {
        self.fingerprint.to_hex()
    }

    /// Records that the answer was handed to the connection.
    pub(crate) fn mark_sent(mut self) {
        self.sent = true;
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.registry.finish(self);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn run(number: u128) -> RunId {
        RunId(uuid::Uuid::from_u128(number))
    }

    const KEY: RequestFingerprint = RequestFingerprint([1; 32]);

    fn accepted(tries: &RetryRegistry, key: RequestFingerprint, number: u128) -> Delivery {
        let mut delivery = tries.track(key);
        delivery.set_run(run(number));
        delivery
    }

    fn joined(tries: &RetryRegistry) -> (Delivery, RunId) {
        let delivery = tries.join(&KEY).unwrap();
        let run = delivery.run.borrow().unwrap();
        (delivery, run)
    }

    #[test]
    fn each_disconnected_client_gets_back_its_own_run() {
        let tries = RetryRegistry::default();
        drop((accepted(&tries, KEY, 1), accepted(&tries, KEY, 2)));
        assert!(tries.join(&RequestFingerprint([2; 32])).is_none());
        let ((first, one), (_second, two)) = (joined(&tries), joined(&tries));
        assert_ne!(one, two);
        // The client disconnected again.
        drop(first);
        assert_eq!(joined(&tries).1, one);
    }

    #[test]
    fn retry_soon_after_an_answer_gets_the_same_run() {
        let tries = RetryRegistry::default();
        accepted(&tries, KEY, 1).mark_sent();
        for _ in 0..2 {
            let (again, number) = joined(&tries);
            assert_eq!(number, run(1));
            again.mark_sent();
        }
        assert!(tries.join_at(&KEY, Instant::now() + ANSWERED_RETRY_WINDOW).is_none());
    }

    #[test]
    fn retry_joins_a_run_whose_client_still_seems_connected() {
        let tries = RetryRegistry::default();
        let _waits = accepted(&tries, KEY, 1);
        assert_eq!(joined(&tries).1, run(1));
    }

    #[tokio::test]
    async fn retry_waits_for_a_request_still_being_accepted() {
        let tries = RetryRegistry::default();
        let mut first = tries.track(KEY);
        let mut again = tries.join(&KEY).unwrap();
        let (found, ()) = tokio::join!(again.run(), async { first.set_run(run(1)) });
        assert_eq!(found, Some(run(1)));
        drop((first, again));
        // A rejected request leaves no entry.
        let tries = RetryRegistry::default();
        let refused = tries.track(KEY);
        let mut again = tries.join(&KEY).unwrap();
        drop(refused);
        assert_eq!(again.run().await, None);
        drop(again);
        assert!(tries.join(&KEY).is_none());
    }

    #[test]
    fn retry_of_a_refused_request_starts_a_new_run() {
        let tries = RetryRegistry::default();
        accepted(&tries, KEY, 1).mark_sent();
        tries.record_refusal(KEY, 1);
        assert!(tries.join(&KEY).is_none());
        assert_eq!(joined(&tries).1, run(1));
        let tries = RetryRegistry::default();
        accepted(&tries, KEY, 1).mark_sent();
        tries.record_refusal(KEY, 1);
        // The rejected client never retried.
        let later = Instant::now() + Duration::from_secs(1) + REFUSAL_GRACE;
        assert!(tries.join_at(&KEY, later).is_some());
    }

    fn earlier(runs: &[(u128, u64, bool)]) -> RetryRegistry {
        let now = Timestamp::now();
        let asked = runs.iter().map(|(number, age, ended)| RecentRequest {
            run: run(*number),
            fingerprint: KEY.to_hex(),
            created: now - Duration::from_secs(*age),
            ended: *ended,
        });
        RetryRegistry::from_earlier(&asked.collect::<Vec<_>>())
    }

    #[test]
    fn after_restart_each_interrupted_run_goes_to_one_client() {
        let tries = earlier(&[(1, 300, true), (2, 200, false), (3, 100, false)]);
        assert!(tries.join(&RequestFingerprint([2; 32])).is_none());
        // The newest one first, then shared runs, and ended runs last.
        let ((first, newest), (second, oldest)) = (joined(&tries), joined(&tries));
        assert_eq!((newest, oldest), (run(3), run(2)));
        assert_eq!(joined(&tries).1, run(3));
        first.mark_sent();
        second.mark_sent();
        let later = Instant::now() + ANSWERED_RETRY_WINDOW;
        assert!(tries.join_at(&KEY, later).is_none());
    }

    #[test]
    fn after_restart_just_ended_runs_count_as_just_answered() {
        let tries = earlier(&[(1, 300, true)]);
        assert_eq!(joined(&tries).1, run(1));
        let tries = earlier(&[(1, 300, true)]);
        assert!(tries.join_at(&KEY, Instant::now() + ANSWERED_RETRY_WINDOW).is_none());
        // A request in progress here has precedence.
        let tries = earlier(&[(1, 300, true)]);
        let _waits = accepted(&tries, KEY, 2);
        assert_eq!(joined(&tries).1, run(2));
    }

    #[test]
    fn earlier_runs_are_kept_for_the_whole_retry_window() {
        let tries = earlier(&[(1, 300, false)]);
        let soon = Instant::now() + RETRY_WINDOW - Duration::from_secs(1);
        assert!(tries.join_at(&KEY, soon).is_some());
        assert!(tries.join_at(&KEY, soon + Duration::from_secs(2)).is_none());
        assert!(tries.lock_table().by_fingerprint.is_empty() && tries.lock_table().earlier.is_empty());
        // A clock that was set back, and invalid fingerprints.
        let asked = |mark: String| RecentRequest {
            run: run(1),
            fingerprint: mark,
            created: Timestamp::now() + Duration::from_secs(60),
            ended: false,
        };
        let made = |mark: String| RetryRegistry::from_earlier(&[asked(mark)]);
        assert!(made(KEY.to_hex()).join(&KEY).is_some());
        let marks = [String::new(), "01".repeat(31), "01".repeat(33), "0g".repeat(32), "é".repeat(32)];
        for mark in marks {
            assert!(made(mark.clone()).lock_table().by_fingerprint.is_empty(), "{mark}");
        }
    }

    #[test]
    fn new_requests_do_not_evict_earlier_runs() {
        let tries = earlier(&[(1, 300, false)]);
        for _ in 0..=MAX_ENTRIES {
            drop(tries.track(RequestFingerprint([2; 32])));
        }
        assert_eq!(joined(&tries).1, run(1));
    }

    #[test]
    fn answered_entries_are_evicted_before_waiting_ones() {
        let tries = RetryRegistry::default();
        drop(accepted(&tries, KEY, 1));
        let (now, later) = (Instant::now(), Instant::now() + ANSWERED_RETRY_WINDOW);
        let (_, run) = watch::channel(None);
        let mut kept = tries.lock_table();
        for _ in 0..=MAX_ENTRIES {
            let answered = RetryState::Run { run: run.clone(), waiting: 0, answered: Some(now) };
            kept.add(RequestFingerprint([2; 32]), answered, later);
        }
        assert!(kept.by_age.len() < MAX_ENTRIES && kept.by_fingerprint.contains_key(&KEY));
    }

    #[test]
    fn entries_are_bounded_in_number_and_age() {
        let tries = RetryRegistry::default();
        for number in 0..=MAX_ENTRIES {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&(number as u64).to_le_bytes());
            drop(accepted(&tries, RequestFingerprint(key), number as u128));
        }
        assert_eq!(tries.lock_table().by_fingerprint.len(), MAX_ENTRIES);
        assert!(tries.join(&RequestFingerprint([0; 32])).is_none());
        tries.lock_table().evict(Instant::now() + RETRY_WINDOW);
        assert!(tries.lock_table().by_fingerprint.is_empty() && tries.lock_table().by_age.is_empty());
    }
}
