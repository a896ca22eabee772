//! Clients that send again by themselves when a connection breaks.
//!
//! The official clients do so without a key that would tell one request from another, and number their
//! tries (`x-stainless-retry-count`). So each run is remembered for a while by what was asked, by whom and
//! from where, with what became of its client. A further try of the same words gets
//!
//! 1. the run of a client that went away before it had its answer;
//! 2. else a run of its own, where an equal request was refused before it was accepted: it is that one's;
//! 3. else the run of an equal request that waits still or was just answered: a break that nobody here
//!    noticed looks like that, as when the answer was lost on its way.
//!
//! A first try never gets another's run: who begins with the same words by chance meets nobody.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::super::who::Who;
use super::request::CompletionRequest;
use crate::run::{RunId, SessionId};

/// How long a run is kept for a further try; the clients' own timeout is ten minutes.
const KEPT: Duration = Duration::from_secs(900);
/// How long after its answer was sent. The clients wait eight seconds at most between two tries.
const ANSWERED: Duration = Duration::from_secs(30);
/// How long after the moment for which a refused client was told to come again.
const REFUSED: Duration = Duration::from_secs(10);
/// Most runs and refusals.
const MOST: usize = 10_000;

/// What makes two requests the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn of(
        who: &Who,
        request: &HttpRequest,
        session: Option<&SessionId>,
        body: &CompletionRequest,
    ) -> Self {
        let peer = request.peer_addr().map(|addr| addr.ip().to_string()).unwrap_or_default();
        let session = session.map_or("", SessionId::as_str);
        let mut hasher = Sha256::new();
        for part in [who.tenant.as_str(), &who.user, &peer, session] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        // Plain data, which can always be written.
        hasher.update(serde_json::to_vec(body).unwrap_or_default());
        Self(hasher.finalize().into())
    }
}

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
    /// Every entry, the oldest first.
    ages: VecDeque<(Instant, Key, u64)>,
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
    /// The run that a further try is for, with the wait for its answer begun.
    pub(crate) fn join(&self, key: &Key) -> Option<Delivery> {
        self.join_at(key, Instant::now())
    }

    fn join_at(&self, key: &Key, now: Instant) -> Option<Delivery> {
        let mut kept = self.kept();
        kept.forget(now);
        let entries = kept.asked.get_mut(key)?;
        let fresh = |at: &Instant| now.duration_since(*at) < ANSWERED;
        let place = |wanted: &dyn Fn(&What) -> bool| entries.iter().position(|entry| wanted(&entry.what));
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
        self.next += 1;
        let number = self.next;
        self.ages.push_back((now, key.clone(), number));
        self.asked.entry(key).or_default().push(Entry { number, what });
        number
    }

    /// Drops what is too old or too much.
    fn forget(&mut self, now: Instant) {
        while let Some((since, key, number)) = self.ages.front() {
            if now.duration_since(*since) < KEPT && self.ages.len() < MOST {
                break;
            }
            if let Some(entries) = self.asked.get_mut(key) {
                entries.retain(|entry| entry.number != *number);
                if entries.is_empty() {
                    self.asked.remove(key);
                }
            }
            self.ages.pop_front();
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
