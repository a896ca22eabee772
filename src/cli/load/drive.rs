//! Sends the requests of a load: conversation by conversation (closed loop), or at a rate (open loop).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use proscenium::load::ends::RunLedger;
use proscenium::load::mix::RequestMix;
use proscenium::load::outcome::{CONNECT, RequestEnd, RequestOutcome};
use proscenium::load::recorder::{LoadRecorder, RequestTimes};
use proscenium::load::report::LoadEnd;
use proscenium::load::schedule::{ArrivalSchedule, ThinkTime};
use proscenium::load::{pick, random_share};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::client::{LoadClient, LoadReply, LoadRequest};
use super::target::{LoadKey, LoadProtocol};

/// Maximum wait of a conversation that was told to come again later.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Wait of a conversation that could not connect.
const RECONNECT: Duration = Duration::from_millis(100);
/// Minimum wait of a conversation whose request failed: a server that fails at once is not asked without end.
const AFTER_FAILURE: Duration = Duration::from_millis(10);
/// After so many requests of which none was permitted, no further one is sent.
const MIN_DENIED: u64 = 20;
/// Maximum number of earlier turns that are sent to a server that keeps no conversations.
const MAX_HISTORY: usize = 50;

/// The requests to send, and when.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// Conversations at once.
    pub sessions: u32,
    /// Requests a second of an open loop.
    pub rate: Option<f64>,
    /// Maximum number of requests in flight of an open loop.
    pub max_in_flight: u32,
    /// Time in which the load rises.
    pub ramp: Duration,
    /// For how long requests are sent.
    pub duration: Option<Duration>,
    /// How many requests are sent.
    pub requests: Option<u64>,
    /// Waits between an answer and the next request of its conversation.
    pub think_time: ThinkTime,
    /// Requests of a conversation, if not as many as its scenario has.
    pub turns: Option<u32>,
    /// The seed of choices.
    pub seed: u64,
}

/// A load while it runs. Everything is on one thread.
pub struct LoadDriver {
    client: LoadClient,
    mix: RequestMix,
    keys: Vec<LoadKey>,
    plan: LoadPlan,
    /// What came of the requests.
    pub recorder: RefCell<LoadRecorder>,
    /// The runs that were accepted.
    pub ledger: RefCell<RunLedger>,
    began: Instant,
    requests: Cell<u64>,
    conversations: Cell<u64>,
    in_flight: Cell<u64>,
    /// Conversations of an open loop that have not ended, and those of them that wait for their next request, the one
    /// that waits longest in front.
    alive: Cell<u32>,
    idle: RefCell<VecDeque<LiveConversation>>,
    ended: Cell<Option<LoadEnd>>,
    over: CancellationToken,
    answered: Notify,
}

/// Counts a request as in flight until it is dropped, also by a panic.
struct FlightGuard<'a>(&'a LoadDriver);

impl Drop for FlightGuard<'_> {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get().saturating_sub(1));
        if std::thread::panicking() {
            self.0.end(LoadEnd::Failed);
        }
        self.0.answered.notify_one();
    }
}

struct LiveConversation {
    number: u64,
    session: String,
    key: usize,
    turn: usize,
    turns: usize,
    history: VecDeque<(String, String)>,
    idle_since: Instant,
}

impl LoadDriver {
    /// A load that begins now. `name` is part of the names of its conversations and requests.
    pub fn new(
        client: LoadClient,
        mix: RequestMix,
        keys: Vec<LoadKey>,
        plan: LoadPlan,
        name: &str,
    ) -> Rc<Self> {
        let names = keys.iter().map(|key| key.name.clone());
        Rc::new(Self {
            recorder: RefCell::new(LoadRecorder::new(names, plan.ramp)),
            ledger: RefCell::new(RunLedger::new(name)),
            client,
            mix,
            keys,
            plan,
            began: Instant::now(),
            requests: Cell::new(0),
            conversations: Cell::new(0),
            in_flight: Cell::new(0),
            alive: Cell::new(0),
            idle: RefCell::default(),
            ended: Cell::new(None),
            over: CancellationToken::new(),
            answered: Notify::new(),
        })
    }

    /// Sends all requests and waits for their replies.
    pub async fn run(self: &Rc<Self>) -> LoadEnd {
        if let Some(duration) = self.plan.duration {
            let load = self.clone();
            tokio::task::spawn_local(async move {
                tokio::select! {
                    () = tokio::time::sleep_until(load.began + duration) => load.end(LoadEnd::Duration),
                    () = load.over.cancelled() => {}
                }
            });
        }
        match self.plan.rate {
            Some(rate) => self.open_loop(ArrivalSchedule { rate, ramp: self.plan.ramp }).await,
            None => self.closed_loop().await,
        }
        self.end(LoadEnd::Requests);
        self.recorder.borrow_mut().close(self.elapsed());
        self.ended.get().unwrap_or(LoadEnd::Requests)
    }

    /// Ends the load: no further request is sent, and replies are still awaited. The first reason is kept, unless a part
    /// of the load fails later.
    pub fn end(&self, why: LoadEnd) {
        if self.ended.get().is_none() || why == LoadEnd::Failed {
            self.ended.set(Some(why));
            if why != LoadEnd::Requests
                && let Ok(mut recorder) = self.recorder.try_borrow_mut()
            {
                recorder.close(self.elapsed());
            }
            self.over.cancel();
        }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.get()
    }

    /// The client.
    pub fn client(&self) -> &LoadClient {
        &self.client
    }

    /// The keys.
    pub fn keys(&self) -> &[LoadKey] {
        &self.keys
    }

    /// The key of a conversation: chosen by its share.
    pub fn key_of(&self, conversation: u64) -> usize {
        // Another sequence than that of the mix, so that no key gets particular scenarios.
        pick(self.plan.seed ^ u64::MAX, conversation, self.keys.iter().map(|key| key.share))
    }

    async fn closed_loop(self: &Rc<Self>) {
        let mut sessions = JoinSet::new();
        for number in 0..self.plan.sessions {
            let load = self.clone();
            sessions.spawn_local(async move { load.session(number).await });
        }
        while let Some(ended) = sessions.join_next().await {
            if ended.is_err() {
                self.end(LoadEnd::Failed);
            }
        }
    }

    /// One conversation after another, until the load is over.
    async fn session(&self, number: u32) {
        let start = self.plan.ramp.mul_f64(f64::from(number) / f64::from(self.plan.sessions));
        if !self.pause(start.saturating_sub(self.elapsed())).await {
            return;
        }
        loop {
            let mut conversation = self.begin_conversation();
            while conversation.turn < conversation.turns {
                let Some(n) = self.take_request() else { return };
                let end = self.ask(&mut conversation, n, None).await;
                let wait = match end {
                    RequestEnd::Answered { .. } => self.plan.think_time.before(self.plan.seed, n),
                    RequestEnd::Shed { retry_after_s, .. } => {
                        let told =
                            Duration::from_secs(u64::from(retry_after_s.unwrap_or(1))).min(LONGEST_WAIT);
                        // Not all at once.
                        told.mul_f64(1.0 + random_share(self.plan.seed, n) / 4.0)
                    }
                    RequestEnd::Failed { code } if code == CONNECT => RECONNECT,
                    RequestEnd::Failed { .. } => {
                        self.plan.think_time.before(self.plan.seed, n).max(AFTER_FAILURE)
                    }
                };
                if !self.pause(wait).await {
                    return;
                }
            }
        }
    }

    /// Waits; false if the load was over before.
    async fn pause(&self, time: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.over.cancelled() => false,
            () = tokio::time::sleep(time) => true,
        }
    }

    async fn open_loop(self: &Rc<Self>, schedule: ArrivalSchedule) {
        for arrival in 0.. {
            let due = schedule.at(arrival);
            if self.plan.duration.is_some_and(|duration| due >= duration) {
                self.end(LoadEnd::Duration);
                break;
            }
            let intended = self.began + due;
            tokio::select! {
                biased;
                () = self.over.cancelled() => break,
                () = tokio::time::sleep_until(intended) => {}
            }
            let Some(n) = self.take_request() else { break };
            match self.free_conversation() {
                Some(conversation) => {
                    let load = self.clone();
                    self.in_flight.set(self.in_flight.get() + 1);
                    tokio::task::spawn_local(async move { load.arrive(conversation, n, intended).await });
                }
                None => self.recorder.borrow_mut().not_sent(self.elapsed()),
            }
            if intended.elapsed() > Duration::from_millis(1) {
                // Behind time: replies are read in between.
                tokio::task::yield_now().await;
            }
        }
        while self.in_flight.get() > 0 {
            self.answered.notified().await;
        }
    }

    /// A conversation for the next arrival: a new one until there are enough, then the one that has waited longest.
    fn free_conversation(&self) -> Option<LiveConversation> {
        if self.in_flight.get() >= u64::from(self.plan.max_in_flight) {
            return None;
        }
        if self.alive.get() < self.plan.sessions {
            self.alive.set(self.alive.get() + 1);
            return Some(self.begin_conversation());
        }
        let mut idle = self.idle.borrow_mut();
        let is_rested =
            idle.front().is_some_and(|first| first.idle_since.elapsed() >= self.plan.think_time.shortest());
        if is_rested { idle.pop_front() } else { None }
    }

    /// One request of an open loop. It is counted as in flight when this begins.
    async fn arrive(&self, mut conversation: LiveConversation, n: u64, intended: Instant) {
        let _in_flight = FlightGuard(self);
        self.ask(&mut conversation, n, Some(intended)).await;
        if conversation.turn < conversation.turns {
            conversation.idle_since = Instant::now();
            self.idle.borrow_mut().push_back(conversation);
        } else {
            self.alive.set(self.alive.get() - 1);
        }
    }

    fn begin_conversation(&self) -> LiveConversation {
        let number = self.conversations.get();
        self.conversations.set(number + 1);
        let scenario = self.mix.conversation(self.plan.seed, number);
        LiveConversation {
            number,
            session: self.ledger.borrow().session(number),
            key: self.key_of(number),
            turn: 0,
            turns: self.plan.turns.map_or(scenario.turns.len(), |turns| turns as usize),
            history: VecDeque::new(),
            idle_since: Instant::now(),
        }
    }

    /// The number of the next request; `None` if the load is over.
    fn take_request(&self) -> Option<u64> {
        if self.over.is_cancelled() {
            return None;
        }
        let n = self.requests.get() + 1;
        self.requests.set(n);
        if self.plan.requests == Some(n) {
            self.end(LoadEnd::Requests);
        }
        Some(n)
    }

    /// Sends request `n` and records what came of it. A conversation whose request failed is over.
    async fn ask(
        &self,
        conversation: &mut LiveConversation,
        n: u64,
        intended: Option<Instant>,
    ) -> RequestEnd {
        let number = conversation.number;
        let text = self.mix.conversation(self.plan.seed, number).text(conversation.turn, n);
        let idempotency = format!("{}-{}", conversation.session, conversation.turn);
        let key = self.keys.get(conversation.key).and_then(|key| key.secret.as_ref());
        let sent = Instant::now();
        let started = intended.unwrap_or(sent);
        self.recorder.borrow_mut().sent(conversation.key, sent - self.began);
        let request = LoadRequest {
            key,
            session: &conversation.session,
            idempotency: &idempotency,
            text: &text,
            history: conversation.history.make_contiguous(),
        };
        let in_flight = intended.is_none().then(|| {
            self.in_flight.set(self.in_flight.get() + 1);
            FlightGuard(self)
        });
        let LoadReply { outcome, answer } = self.client.send(&request).await;
        drop(in_flight);
        let ended = Instant::now();
        let times = RequestTimes {
            started_at: started - self.began,
            ended_at: ended - self.began,
            latency: ended - started,
            lag: sent - started,
        };
        self.note_run(number, &outcome, times.latency);
        self.recorder.borrow_mut().ended(conversation.key, times, &outcome);
        let is_denied = self.recorder.borrow().is_denied(MIN_DENIED);
        if is_denied {
            self.end(LoadEnd::Denied);
        }
        conversation.turn += 1;
        if !outcome.is_answered() {
            conversation.turn = conversation.turns;
        } else if self.client.target().protocol == LoadProtocol::OpenAi
            && conversation.turn < conversation.turns
        {
            conversation.history.push_back((text, answer));
            if conversation.history.len() > MAX_HISTORY {
                conversation.history.pop_front();
            }
        }
        outcome.end
    }

    fn note_run(&self, conversation: u64, outcome: &RequestOutcome, latency: Duration) {
        let mut ledger = self.ledger.borrow_mut();
        match outcome.run {
            Some(run) => ledger.heard(conversation, run, latency),
            None if outcome.is_silent() => ledger.silent(conversation),
            None => {}
        }
    }
}
