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
//!   nobody can have received its answer. Each such run goes to one retry before any run is shared. The retry
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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use tokio::sync::watch;

use super::key::Key;
use crate::engine::again::{self, ANSWERED, KEPT};
use crate::run::RunId;
use crate::store::Asked;

/// How long a rejection is kept after the end of its `Retry-After`.
const REFUSED: Duration = Duration::from_secs(10);
/// Minimum time between two sweeps of a full table.
const SWEEP: Duration = Duration::from_secs(1);
/// Maximum number of runs and rejections of this process; as many runs of earlier processes may be added.
const MOST: usize = again::MOST as usize;

/// Whether the client marks this request as a retry.
pub(crate) fn is_further(request: &HttpRequest) -> bool {
    let tries = request.headers().get("x-stainless-retry-count").and_then(|value| value.to_str().ok());
    tries.and_then(|tries| tries.trim().parse::<u32>().ok()).is_some_and(|tries| tries > 0)
}

/// Recent runs and rejections, by fingerprint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tries(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    asked: HashMap<Key, Vec<Entry>>,
    /// The entries of this process, oldest first.
    ages: VecDeque<(Instant, Key, u64)>,
    /// The entries of earlier processes, oldest first. Separate, so that new requests do not evict them.
    earlier: VecDeque<(Instant, Key, u64)>,
    /// When obsolete entries were last swept.
    swept: Option<Instant>,
    next: u64,
}

/// An accepted run, or a rejection.
#[derive(Debug)]
struct Entry {
    number: u64,
    what: What,
}

#[derive(Debug)]
enum What {
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

impl Tries {
    /// Starts with the runs that earlier processes accepted, oldest first.
    pub(crate) fn after(earlier: &[Asked]) -> Self {
        let now = Instant::now();
        let mut kept = Kept::default();
        for Asked { run, asked, created: _, ended } in earlier {
            let Some(key) = Key::read(asked) else { continue };
            let (_, run) = watch::channel(Some(*run));
            let what = What::Run { run, waiting: 0, answered: ended.then_some(now) };
            let number = kept.enter(&key, what);
            // Its connection broke just now, regardless of its age by the clock.
            kept.earlier.push_back((now, key, number));
        }
        Self(Arc::new(Mutex::new(kept)))
    }

    /// Finds the run of a retry and starts waiting for its answer.
    pub(crate) fn join(&self, key: &Key) -> Option<Delivery> {
        self.join_at(key, Instant::now())
    }

    fn join_at(&self, key: &Key, now: Instant) -> Option<Delivery> {
        let mut kept = self.kept();
        kept.forget(now);
        let entries = kept.asked.get_mut(key)?;
        let fresh = |at: &Instant| now.duration_since(*at) < ANSWERED;
        // The newest one: the client of an older one may have given up.
        let place = |wanted: &dyn Fn(&What) -> bool| entries.iter().rposition(|entry| wanted(&entry.what));
        let lost = place(&|what| matches!(what, What::Run { waiting: 0, answered: None, .. }));
        let refused = place(&|what| matches!(what, What::Refused { until } if now < *until));
        let waits = place(&|what| matches!(what, What::Run { waiting: 1.., .. }));
        let answered = place(&|what| matches!(what, What::Run { answered: Some(at), .. } if fresh(at)));
        if let (None, Some(refused)) = (lost, refused) {
            entries.remove(refused);
            return None;
        }
        let entry = entries.get_mut(lost.or(waits).or(answered)?)?;
        let What::Run { run, waiting, .. } = &mut entry.what else { return None };
        *waiting += 1;
        let run = run.clone();
        Some(Delivery {
            tries: self.clone(),
            key: key.clone(),
            number: entry.number,
            run,
            accept: None,
            sent: false,
        })
    }

    /// Tracks a request from before its acceptance, because a retry may arrive during it.
    pub(crate) fn begin(&self, key: Key) -> Delivery {
        let (accept, run) = watch::channel(None);
        let what = What::Run { run: run.clone(), waiting: 1, answered: None };
        let number = self.kept().add(key.clone(), what, Instant::now());
        Delivery { tries: self.clone(), key, number, run, accept: Some(accept), sent: false }
    }

    /// Records a request that was rejected before acceptance, with its `Retry-After` in seconds.
    pub(crate) fn refused(&self, key: Key, seconds: u64) {
        let now = Instant::now();
        let until = now + Duration::from_secs(seconds.min(KEPT.as_secs())) + REFUSED;
        self.kept().add(key, What::Refused { until }, now);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, delivery: &Delivery) {
        let mut kept = self.kept();
        let Some(entries) = kept.asked.get_mut(&delivery.key) else { return };
        if delivery.accept.is_some() {
            // It was not accepted, so there is no run to find.
            entries.retain(|entry| entry.number != delivery.number);
        }
        for entry in entries.iter_mut().filter(|entry| entry.number == delivery.number) {
            if let What::Run { waiting, answered, .. } = &mut entry.what {
                *waiting = waiting.saturating_sub(1);
                *answered = delivery.sent.then(Instant::now);
            }
        }
    }
}

impl Kept {
    fn add(&mut self, key: Key, what: What, now: Instant) -> u64 {
        self.forget(now);
        let number = self.enter(&key, what);
        self.ages.push_back((now, key, number));
        number
    }

    fn enter(&mut self, key: &Key, what: What) -> u64 {
        self.next += 1;
        let number = self.next;
        self.asked.entry(key.clone()).or_default().push(Entry { number, what });
        number
    }

    /// Removes expired and surplus entries.
    fn forget(&mut self, now: Instant) {
        let old = |(since, ..): &(Instant, Key, u64)| now.duration_since(*since) >= KEPT;
        while self.earlier.front().is_some_and(old) {
            let Some((_, key, number)) = self.earlier.pop_front() else { break };
            self.remove(&key, number);
        }
        if self.ages.len() >= MOST && self.swept.is_none_or(|at| now.duration_since(at) >= SWEEP) {
            self.swept = Some(now);
            self.sweep(now);
        }
        while self.ages.len() >= MOST || self.ages.front().is_some_and(old) {
            let Some((_, key, number)) = self.ages.pop_front() else { break };
            self.remove(&key, number);
        }
    }

    /// Removes answered runs and rejections whose retries are over, to make room for waiting clients.
    fn sweep(&mut self, now: Instant) {
        let serves = |entry: &Entry| match entry.what {
            What::Run { waiting: 0, answered: Some(at), .. } => now.duration_since(at) < ANSWERED,
            What::Run { .. } => true,
            What::Refused { until } => now < until,
        };
        self.asked.retain(|_, entries| {
            entries.retain(serves);
            !entries.is_empty()
        });
        let asked = &self.asked;
        let is_there = |(_, key, number): &(Instant, Key, u64)| {
            asked
                .get(key)
                .is_some_and(|entries| entries.binary_search_by_key(number, |entry| entry.number).is_ok())
        };
        self.ages.retain(is_there);
        self.earlier.retain(is_there);
    }

    fn remove(&mut self, key: &Key, number: u64) {
        let Some(entries) = self.asked.get_mut(key) else { return };
        entries.retain(|entry| entry.number != number);
        if entries.is_empty() {
            self.asked.remove(key);
        }
    }
}

/// Tracks an answer on its way to the client. Dropped before it was sent, it counts as disconnected.
#[derive(Debug)]
pub(crate) struct Delivery {
    tries: Tries,
    key: Key,
    number: u64,
    run: watch::Receiver<Option<RunId>>,
    /// Publishes the run's id on acceptance; `None` afterwards.
    accept: Option<watch::Sender<Option<RunId>>>,
    sent: bool,
}

impl Delivery {
    /// Records that the request was accepted as this run.
    pub(crate) fn accepted(&mut self, run: RunId) {
        if let Some(accept) = self.accept.take() {
            accept.send_replace(Some(run));
        }
    }

    /// Waits for acceptance and returns the run; `None` if the request was rejected.
    pub(crate) async fn run(&mut self) -> Option<RunId> {
        let run = self.run.wait_for(Option::is_some).await.ok()?;
        *run
    }

    /// The fingerprint in hex.
    pub(crate) fn mark(&self) -> String {
        self.key.mark()
    }

    /// Records that the answer was handed to the connection.
    pub(crate) fn sent(mut self) {
        self.sent = true;
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.tries.ended(self);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn run(number: u128) -> RunId {
        RunId(uuid::Uuid::from_u128(number))
    }

    const KEY: Key = Key([1; 32]);

    fn accepted(tries: &Tries, key: Key, number: u128) -> Delivery {
        let mut delivery = tries.begin(key);
        delivery.accepted(run(number));
        delivery
    }

    fn joined(tries: &Tries) -> (Delivery, RunId) {
        let delivery = tries.join(&KEY).unwrap();
        let run = delivery.run.borrow().unwrap();
        (delivery, run)
    }

    #[test]
    fn every_client_that_went_away_finds_a_run_of_its_own() {
        let tries = Tries::default();
        drop((accepted(&tries, KEY, 1), accepted(&tries, KEY, 2)));
        assert!(tries.join(&Key([2; 32])).is_none());
        let ((first, one), (_second, two)) = (joined(&tries), joined(&tries));
        assert_ne!(one, two);
        // The client disconnected again.
        drop(first);
        assert_eq!(joined(&tries).1, one);
    }

    #[test]
    fn an_answer_that_was_sent_may_have_been_lost_on_its_way() {
        let tries = Tries::default();
        accepted(&tries, KEY, 1).sent();
        for _ in 0..2 {
            let (again, number) = joined(&tries);
            assert_eq!(number, run(1));
            again.sent();
        }
        assert!(tries.join_at(&KEY, Instant::now() + ANSWERED).is_none());
    }

    #[test]
    fn a_break_that_was_not_noticed_leads_to_the_run_that_waits() {
        let tries = Tries::default();
        let _waits = accepted(&tries, KEY, 1);
        assert_eq!(joined(&tries).1, run(1));
    }

    #[tokio::test]
    async fn a_further_try_waits_for_what_is_being_accepted() {
        let tries = Tries::default();
        let mut first = tries.begin(KEY);
        let mut again = tries.join(&KEY).unwrap();
        let (found, ()) = tokio::join!(again.run(), async { first.accepted(run(1)) });
        assert_eq!(found, Some(run(1)));
        drop((first, again));
        // A rejected request leaves no entry.
        let tries = Tries::default();
        let refused = tries.begin(KEY);
        let mut again = tries.join(&KEY).unwrap();
        drop(refused);
        assert_eq!(again.run().await, None);
        drop(again);
        assert!(tries.join(&KEY).is_none());
    }

    #[test]
    fn who_was_refused_gets_a_run_of_its_own() {
        let tries = Tries::default();
        accepted(&tries, KEY, 1).sent();
        tries.refused(KEY, 1);
        assert!(tries.join(&KEY).is_none());
        assert_eq!(joined(&tries).1, run(1));
        let tries = Tries::default();
        accepted(&tries, KEY, 1).sent();
        tries.refused(KEY, 1);
        // The rejected client never retried.
        let later = Instant::now() + Duration::from_secs(1) + REFUSED;
        assert!(tries.join_at(&KEY, later).is_some());
    }

    fn earlier(runs: &[(u128, u64, bool)]) -> Tries {
        let now = Timestamp::now();
        let asked = runs.iter().map(|(number, age, ended)| Asked {
            run: run(*number),
            asked: KEY.mark(),
            created: now - Duration::from_secs(*age),
            ended: *ended,
        });
        Tries::after(&asked.collect::<Vec<_>>())
    }

    #[test]
    fn after_a_restart_every_run_that_was_cut_off_is_one_clients() {
        let tries = earlier(&[(1, 300, true), (2, 200, false), (3, 100, false)]);
        assert!(tries.join(&Key([2; 32])).is_none());
        // The newest one first, then shared runs, and ended runs last.
        let ((first, newest), (second, oldest)) = (joined(&tries), joined(&tries));
        assert_eq!((newest, oldest), (run(3), run(2)));
        assert_eq!(joined(&tries).1, run(3));
        first.sent();
        second.sent();
        let later = Instant::now() + ANSWERED;
        assert!(tries.join_at(&KEY, later).is_none());
    }

    #[test]
    fn after_a_restart_what_had_just_ended_counts_as_answered_just_now() {
        let tries = earlier(&[(1, 300, true)]);
        assert_eq!(joined(&tries).1, run(1));
        let tries = earlier(&[(1, 300, true)]);
        assert!(tries.join_at(&KEY, Instant::now() + ANSWERED).is_none());
        // A request in progress here has precedence.
        let tries = earlier(&[(1, 300, true)]);
        let _waits = accepted(&tries, KEY, 2);
        assert_eq!(joined(&tries).1, run(2));
    }

    #[test]
    fn what_was_accepted_before_a_restart_is_kept_as_long_as_anything() {
        let tries = earlier(&[(1, 300, false)]);
        let soon = Instant::now() + KEPT - Duration::from_secs(1);
        assert!(tries.join_at(&KEY, soon).is_some());
        assert!(tries.join_at(&KEY, soon + Duration::from_secs(2)).is_none());
        assert!(tries.kept().asked.is_empty() && tries.kept().earlier.is_empty());
        // A clock that was set back, and invalid fingerprints.
        let asked = |mark: String| Asked {
            run: run(1),
            asked: mark,
            created: Timestamp::now() + Duration::from_secs(60),
            ended: false,
        };
        let made = |mark: String| Tries::after(&[asked(mark)]);
        assert!(made(KEY.mark()).join(&KEY).is_some());
        let marks = [String::new(), "01".repeat(31), "01".repeat(33), "0g".repeat(32), "é".repeat(32)];
        for mark in marks {
            assert!(made(mark.clone()).kept().asked.is_empty(), "{mark}");
        }
    }

    #[test]
    fn new_requests_do_not_push_out_what_was_accepted_before_a_restart() {
        let tries = earlier(&[(1, 300, false)]);
        for _ in 0..=MOST {
            drop(tries.begin(Key([2; 32])));
        }
        assert_eq!(joined(&tries).1, run(1));
    }

    #[test]
    fn what_was_answered_makes_room_for_who_waits() {
        let tries = Tries::default();
        drop(accepted(&tries, KEY, 1));
        let (now, later) = (Instant::now(), Instant::now() + ANSWERED);
        let (_, run) = watch::channel(None);
        let mut kept = tries.kept();
        for _ in 0..=MOST {
            let answered = What::Run { run: run.clone(), waiting: 0, answered: Some(now) };
            kept.add(Key([2; 32]), answered, later);
        }
        assert!(kept.ages.len() < MOST && kept.asked.contains_key(&KEY));
    }

    #[test]
    fn only_so_much_is_kept_and_only_for_so_long() {
        let tries = Tries::default();
        for number in 0..=MOST {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&(number as u64).to_le_bytes());
            drop(accepted(&tries, Key(key), number as u128));
        }
        assert_eq!(tries.kept().asked.len(), MOST);
        assert!(tries.join(&Key([0; 32])).is_none());
        tries.kept().forget(Instant::now() + KEPT);
        assert!(tries.kept().asked.is_empty() && tries.kept().ages.is_empty());
    }
}
