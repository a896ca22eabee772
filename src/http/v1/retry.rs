//! Clients that send again by themselves when a connection breaks.
//!
//! The official clients do so without a key that would tell one request from another, and number their
//! tries (`x-stainless-retry-count`). So each run is remembered for a while by what was asked, by whom and
//! from where, with what became of its client. A further try of the same words gets
//!
//! 1. the run of a client that went away before it had its answer;
//! 2. else a run of its own, where an equal request was refused before it was accepted: it is that one's;
//! 3. else the run of an equal request that waits still or was just answered: a break that nobody here
//!    noticed looks like that, as when the answer was lost on its way;
//!
//! of several such runs the newest. A first try never gets another's run: who begins with the same words by
//! chance meets nobody. So a first try that is read only after its own further one begins a run, too; the
//! clients wait 0.375 s at least before they come again, and a server that reads so late is rarer than two
//! people who begin with the same words.
//!
//! **After a restart.** A server that is killed breaks the connection of every client that waits, and their
//! further tries come to the next process. So each run bears the mark of what was asked in its first event
//! (`Key::mark`), and a process begins with the runs that earlier ones had under way, whatever the clock says
//! of their age, and with those that had ended just before the last event, whatever it does with them by
//! itself; it keeps them for as long as [`KEPT`] says:
//!
//! - One that had not ended when this process started is one whose client went away: nobody can have got its
//!   answer. Each goes to one further try before any is shared, for as long as `KEPT` says. Whoever gets it
//!   waits if it is carried on, and otherwise hears that it was cut off (`run.interrupted`).
//! - One that had ended less than [`ANSWERED`] before the start counts as answered at the start. Its answer may
//!   have been on its way when the process died. The half minute of a try begins anew, since none could come
//!   while no server was there; and where there was none for longer than that, the clients have given up:
//!   by default they try twice more, and wait eight seconds at most in between.
//! - One that had ended before is nobody's: its client had the answer or has asked again.
//!
//! Words that decide about a run which waits ("yes") begin none. Their mark stands with what they decided, and
//! their run is the one that they decided about; where that waits again, whoever decided has its answer. So
//! what was decided just before a kill is not taken for a word about whatever waits then.
//!
//! A request that carries a name (`Idempotency-Key`) is not remembered here and bears no mark: the name finds
//! it, and nothing else does.
//!
//! While no server is there first tries fail, too, and their further tries come when it is there again. Such a
//! one gets the run of a twin that said the same before the stop with the same key, from the same address.
//! That is the price of never writing twice: nothing tells the one from the other.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use tokio::sync::watch;

use super::key::Key;
use crate::engine::again::{self, ANSWERED, KEPT};
use crate::run::RunId;
use crate::store::Asked;

/// How long after the moment for which a refused client was told to come again.
const REFUSED: Duration = Duration::from_secs(10);
/// Time between two looks through everything, when there is no room.
const SWEEP: Duration = Duration::from_secs(1);
/// Most runs and refusals of this process; as many of earlier ones may be beside them.
const MOST: usize = again::MOST as usize;

/// Whether this is a further try, as its client says.
pub(crate) fn is_further(request: &HttpRequest) -> bool {
    let tries = request.headers().get("x-stainless-retry-count").and_then(|value| value.to_str().ok());
    tries.and_then(|tries| tries.trim().parse::<u32>().ok()).is_some_and(|tries| tries > 0)
}

/// Runs and refusals of late, by what was asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tries(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    asked: HashMap<Key, Vec<Entry>>,
    /// Every entry that was made here, the oldest first.
    ages: VecDeque<(Instant, Key, u64)>,
    /// The same of what earlier processes accepted. Apart, so that new requests do not push it out.
    earlier: VecDeque<(Instant, Key, u64)>,
    /// When everything was last looked through for what nobody asks for any more.
    swept: Option<Instant>,
    next: u64,
}

/// A run that was accepted, or a refusal.
#[derive(Debug)]
struct Entry {
    number: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    Run {
        /// None while it is being accepted.
        run: watch::Receiver<Option<RunId>>,
        /// Clients that wait for its answer.
        waiting: usize,
        /// When its answer was sent; none where the last client went away without it.
        answered: Option<Instant>,
    },
    /// The next try is not before this one's end a further try of an accepted request.
    Refused { until: Instant },
}

impl Tries {
    /// Begins with what earlier processes accepted, the oldest first.
    pub(crate) fn after(earlier: &[Asked]) -> Self {
        let now = Instant::now();
        let mut kept = Kept::default();
        for Asked { run, asked, created: _, ended } in earlier {
            let Some(key) = Key::read(asked) else { continue };
            let (_, run) = watch::channel(Some(*run));
            let what = What::Run { run, waiting: 0, answered: ended.then_some(now) };
            let number = kept.enter(&key, what);
            // It was cut off just now, however old the clock says that it is.
            kept.earlier.push_back((now, key, number));
        }
        Self(Arc::new(Mutex::new(kept)))
    }

    /// The run that a further try is for, with the wait for its answer begun.
    pub(crate) fn join(&self, key: &Key) -> Option<Delivery> {
        self.join_at(key, Instant::now())
    }

    fn join_at(&self, key: &Key, now: Instant) -> Option<Delivery> {
        let mut kept = self.kept();
        kept.forget(now);
        let entries = kept.asked.get_mut(key)?;
        let fresh = |at: &Instant| now.duration_since(*at) < ANSWERED;
        // The newest: the client of an older one may have given up.
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

    /// Watches over a request from before it is accepted: a further try may come while it is.
    pub(crate) fn begin(&self, key: Key) -> Delivery {
        let (accept, run) = watch::channel(None);
        let what = What::Run { run: run.clone(), waiting: 1, answered: None };
        let number = self.kept().add(key.clone(), what, Instant::now());
        Delivery { tries: self.clone(), key, number, run, accept: Some(accept), sent: false }
    }

    /// A request was refused before it was accepted; its client may come again in so many seconds.
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
            // It was not accepted: there is nothing to find.
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

    /// Drops what is too old or too much.
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

    /// Drops what was answered long ago and refusals that are over: it makes room for who waits.
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

/// An answer on its way to its client. If it is dropped before it was sent, the client has gone.
#[derive(Debug)]
pub(crate) struct Delivery {
    tries: Tries,
    key: Key,
    number: u64,
    run: watch::Receiver<Option<RunId>>,
    /// To tell the run, until it is accepted.
    accept: Option<watch::Sender<Option<RunId>>>,
    sent: bool,
}

impl Delivery {
    /// It is accepted as this run.
    pub(crate) fn accepted(&mut self, run: RunId) {
        if let Some(accept) = self.accept.take() {
            accept.send_replace(Some(run));
        }
    }

    /// Its run, once it is accepted; none where it was refused.
    pub(crate) async fn run(&mut self) -> Option<RunId> {
        let run = self.run.wait_for(Option::is_some).await.ok()?;
        *run
    }

    /// What was asked, as it is written down.
    pub(crate) fn mark(&self) -> String {
        self.key.mark()
    }

    /// The answer is handed to the connection.
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
        // It went away once more.
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
        // One that was refused leaves nothing behind.
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
        // It never came back.
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
        // The newest first, then what is shared, and what has ended at the very last.
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
        // A request that is under way here comes before it.
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
        // A clock that was set back, and a mark that is none.
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
