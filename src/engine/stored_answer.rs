//! The answer document of any run, made from its stored events.

use std::time::Duration;

use jiff::Timestamp;

use super::{Engine, fold};
use crate::answer::Answer;
use crate::run::{Envelope, Event, Fault, RunId, TenantId};

impl Engine {
    /// The answer document of any run of the tenant, ended or not, from its stored events; `None` if the
    /// tenant has no such run. Timings come from the events; the conversation's cost is the current one.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn answer_of(&self, tenant: &TenantId, run: RunId) -> Result<Option<Answer>, Fault> {
        let store = &self.parts.store;
        let events = self.events_of(tenant, run).await?;
        let Some(first) = events.first() else { return Ok(None) };
        let cost = store.session_usage(tenant, &first.session).await?;
        let answer = move || Answer::of(run, &events, cost.cost_nano_usd);
        // A large run would block the caller's thread.
        tokio::task::spawn_blocking(answer)
            .await
            .map_err(|_| Fault::new("run.unshown", "the run's document could not be created"))
    }

    /// The events of a tenant's run, including those that are not on disk yet; empty if the tenant has no
    /// such run.
    ///
    /// # Errors
    /// Errors of the store, also if pending events could not be written.
    pub async fn events_of(&self, tenant: &TenantId, run: RunId) -> Result<Vec<Envelope<Event>>, Fault> {
        self.system.journal.flush_for_read().await?;
        self.parts.store.run_events(tenant, run).await.map_err(Fault::from)
    }

    /// Erases a tenant's ended run with its plan, events and approvals. The memory of its conversation is
    /// kept. False if the tenant has no such run.
    ///
    /// # Errors
    /// `store.run_busy` if it has not ended; errors of the store.
    pub async fn erase_run(&self, tenant: &TenantId, run: RunId) -> Result<bool, Fault> {
        self.system.journal.flush().await?;
        self.parts.store.erase_run(tenant, run).await.map_err(Fault::from)
    }

    /// How long an approval waits before it counts as refused; `None` for ever.
    pub fn approvals_expire(&self) -> Option<Duration> {
        self.parts.current.load().config.approval.expires()
    }
}

impl Answer {
    /// The answer document of a run, ended or not, from its events; `None` if there are none.
    /// `session_cost_nano_usd` is the current cost of its conversation.
    pub fn of(run: RunId, journal: &[Envelope<Event>], session_cost_nano_usd: u64) -> Option<Self> {
        let first = journal.first()?;
        let (total, overhead) = run_times(journal);
        Some(Self::new(&fold(run, journal), &first.session, session_cost_nano_usd, total, overhead))
    }
}

/// The time from a run's acceptance to its last event, and its overhead: of the time since the run's start,
/// the part without pending model or tool calls in which the run did not wait for a person (a decision, or
/// after its end a resume).
fn run_times(events: &[Envelope<Event>]) -> (Duration, Duration) {
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Default::default() };
    let mut overhead = Duration::ZERO;
    let mut under_way = 0_u32;
    let mut timers = 0_u32;
    // Since when no call has been pending.
    let mut idle: Option<Timestamp> = None;
    let mut waits = false;
    for event in events {
        let before = under_way;
        // Any event after a wait ends the wait.
        if std::mem::take(&mut waits) || matches!(event.body, Event::RunReopened { .. }) {
            idle = Some(event.at);
        }
        match &event.body {
            Event::RunStarted(_) => idle = Some(event.at),
            Event::RunWaiting {} | Event::RunPutAside { .. } => waits = true,
            Event::ModelAsked { .. } | Event::ToolStarted { .. } => under_way += 1,
            Event::ModelReplied { .. } | Event::ModelFailed { .. } | Event::ToolCompleted { .. } => {
                under_way = under_way.saturating_sub(1);
            }
            Event::BackedOff { .. } => (under_way, timers) = (under_way + 1, timers + 1),
            Event::TimerFired { .. } => {
                (under_way, timers) = (under_way.saturating_sub(1), timers.saturating_sub(1));
            }
            // Pending calls ended with their process; a backoff continues.
            Event::RunResumed { .. } => under_way = timers,
            _ => {}
        }
        match (before, under_way) {
            (0, 1..) => overhead += idle.take().map_or(Duration::ZERO, |since| elapsed(since, event.at)),
            (1.., 0) => idle = Some(event.at),
            _ => {}
        }
        if waits || event.body.is_terminal() {
            (under_way, timers) = (0, 0);
            overhead += idle.take().map_or(Duration::ZERO, |since| elapsed(since, event.at));
        }
    }
    overhead += idle.map_or(Duration::ZERO, |since| elapsed(since, last.at));
    (elapsed(first.at, last.at), overhead)
}

/// Zero if the clock was set back in between.
fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{ApprovalSubject, Decision, Outcome, SessionId, Subject, Usage};

    fn asked(call: u32) -> Event {
        let subject = Subject::Plan { version: 1 };
        Event::ModelAsked {
            call,
            subject,
            attempt: 0,
            fallback: false,
            prompt_hash: String::new(),
            reserved: None,
        }
    }

    fn replied(call: u32) -> Event {
        Event::ModelReplied {
            call,
            reply: crate::run::Reply::default(),
            usage: Usage::default(),
            millis: 0,
            attempts: Vec::new(),
        }
    }

    fn journal_of(told: impl IntoIterator<Item = (i64, Event)>) -> Vec<Envelope<Event>> {
        let envelope = |(millis, body): (i64, Event)| Envelope {
            seq: 1,
            run: None,
            session: SessionId::new("s").unwrap(),
            tenant: TenantId::new("t").unwrap(),
            at: Timestamp::from_millisecond(1_777_878_000_000 + millis).unwrap(),
            epoch: 0,
            schema: crate::run::SCHEMA,
            body,
        };
        told.into_iter().map(envelope).collect()
    }

    fn started() -> Event {
        serde_json::from_value(serde_json::json!({"type": "run_started", "language": null, "catalogue": "",
            "now": "2026-05-04T09:00:00+02:00[Europe/Rome]", "context": {},
            "settings": crate::run::Settings::default()}))
        .unwrap()
    }

    #[test]
    fn overhead_counts_only_time_without_pending_work() {
        let completed = Event::ToolCompleted {
            call: 1,
            outcome: Outcome::Ok { result: serde_json::Value::Null, say: None, whole: None },
            millis: 0,
            notes: None,
        };
        let events = journal_of([
            (0, Event::Planning { version: 1, cause: crate::run::PlanCause::Request }),
            // Waiting for its turn is not overhead.
            (1000, started()),
            (1002, asked(1)),
            (1500, replied(1)),
            // Concurrent calls count once.
            (1503, asked(2)),
            (1600, Event::ToolStarted { call: 1, attempt: 1 }),
            (1700, replied(2)),
            (1900, completed),
            (1905, Event::RunCancelled { by: "u".to_owned() }),
        ]);
        let millis = Duration::from_millis;
        assert_eq!(run_times(&events), (millis(1905), millis(2 + 3 + 5)));
        // Not ended yet, with a pending model call.
        assert_eq!(run_times(&events[..3]), (millis(1002), millis(2)));
        assert_eq!(run_times(&events[..1]), (Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn waiting_for_a_person_is_not_overhead() {
        let decided = || {
            let matter = ApprovalSubject::Plan { version: 1 };
            let decision = Decision::Yes { hold: false };
            Event::Decided { approval: 1, matter, decision, by: "b".to_owned(), note: None, word: None }
        };
        let failed = || Event::RunFailed { error: Fault::new("x", "y") };
        let days = 3 * 24 * 60 * 60 * 1000;
        let events = journal_of([
            (0, started()),
            (2, asked(1)),
            (500, replied(1)),
            (503, Event::RunWaiting {}),
            (days, decided()),
            (days + 4, asked(2)),
            (days + 50, replied(2)),
            (days + 55, failed()),
            // Somebody reports the outcome of a write, and then resumes the run.
            (days + 1000, decided()),
            (2 * days, Event::RunReopened { by: "b".to_owned() }),
            (2 * days + 6, asked(3)),
            (2 * days + 70, replied(3)),
            (2 * days + 77, failed()),
        ]);
        let millis = |millis| Duration::from_millis(u64::try_from(millis).unwrap());
        assert_eq!(run_times(&events), (millis(2 * days + 77), millis(2 + 3 + 4 + 5 + 6 + 7)));
        // While it waits, and after it has ended.
        assert_eq!(run_times(&events[..4]).1, millis(5));
        assert_eq!(run_times(&events[..9]).1, millis(14));
    }

    #[test]
    fn calls_pending_at_a_crash_stop_counting_as_pending() {
        let events = journal_of([
            (0, started()),
            (10, asked(1)),
            (500, Event::RunResumed { epoch: 1, restart: false, catalogue: None }),
            (507, asked(2)),
            (600, replied(2)),
        ]);
        assert_eq!(run_times(&events), (Duration::from_millis(600), Duration::from_millis(17)));
    }

    #[test]
    fn clock_set_back_gives_zero_not_negative_times() {
        let events = journal_of([(100, started()), (0, asked(1)), (50, replied(1))]);
        assert_eq!(run_times(&events), (Duration::ZERO, Duration::ZERO));
    }
}
