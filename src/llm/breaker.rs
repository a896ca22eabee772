//! A circuit breaker per model: after repeated failures the model is not called for a while, and the next model
//! serves at once. The rules are pure: the time is an argument.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::error::{Error, ErrorKind};
use crate::mutex::lock;

/// When a circuit breaker opens (`llm.breaker`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Consecutive failures that open it; 0 disables it.
    pub failures: u32,
    /// Milliseconds until one probe tests whether the model works again.
    pub pause_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { failures: 10, pause_ms: 15_000 }
    }
}

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Closed: the model is considered healthy.
    Closed,
    /// Open: the model is not called.
    Open,
    /// Half-open: one probe is in progress.
    HalfOpen,
}

/// The recorded state of one model.
#[derive(Debug)]
pub(super) struct Breaker {
    options: Options,
    failures: u32,
    /// Until when the breaker is open.
    until: Option<Instant>,
    probing: bool,
}

/// Permission for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    probe: bool,
}

/// The report of an attempt about its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptReport {
    /// The model responded, with a reply or a refusal.
    Works,
    Fails,
    /// Nothing: the attempt was abandoned.
    Nothing,
}

impl AttemptReport {
    pub(super) fn by(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Connect { .. }
            | ErrorKind::Silence { .. }
            | ErrorKind::Timeout { .. }
            | ErrorKind::Quota { .. }
            | ErrorKind::Unauthorized { .. }
            | ErrorKind::Malformed { .. }
            | ErrorKind::EmptyStream
            | ErrorKind::CutStream => AttemptReport::Fails,
            ErrorKind::Status { status, .. } if *status >= 500 => AttemptReport::Fails,
            // Busy, but available: retries handle the requested delay.
            ErrorKind::RateLimited { .. }
            | ErrorKind::Status { .. }
            | ErrorKind::ContextOverflow { .. }
            | ErrorKind::TooLarge { .. } => AttemptReport::Works,
            _ => AttemptReport::Nothing,
        }
    }
}

/// The breaker of one model, shared by all its attempts.
#[derive(Debug, Clone)]
pub(super) struct ModelBreaker(Arc<Mutex<Breaker>>);

/// An attempt in progress. If it is dropped without a report, the breaker does not change.
pub(super) struct Trial {
    breaker: ModelBreaker,
    pass: Option<Pass>,
}

impl ModelBreaker {
    pub(super) fn new(options: &Options) -> Self {
        Self(Arc::new(Mutex::new(Breaker::new(options.clone()))))
    }

    /// Permission for an attempt, or the delay until the next request for one.
    pub(super) fn admit(&self) -> Result<Trial, Duration> {
        let pass = self.lock().admit(Instant::now())?;
        Ok(Trial { breaker: self.clone(), pass: Some(pass) })
    }

    pub(super) fn state(&self) -> BreakerState {
        self.lock().state()
    }

    fn lock(&self) -> MutexGuard<'_, Breaker> {
        lock(&self.0)
    }
}

impl Trial {
    pub(super) fn report(mut self, report: AttemptReport) {
        self.end(report);
    }

    fn end(&mut self, report: AttemptReport) {
        if let Some(pass) = self.pass.take() {
            self.breaker.lock().report(pass, report, Instant::now());
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.end(AttemptReport::Nothing);
    }
}

impl Breaker {
    pub(super) fn new(options: Options) -> Self {
        Self { options, failures: 0, until: None, probing: false }
    }

    /// Returns a pass if an attempt is allowed, or the delay until the next request for one.
    pub(super) fn admit(&mut self, now: Instant) -> Result<Pass, Duration> {
        let Some(until) = self.until else { return Ok(Pass { probe: false }) };
        if now < until {
            return Err(until - now);
        }
        if self.probing {
            return Err(self.pause());
        }
        self.probing = true;
        Ok(Pass { probe: true })
    }

    /// Records the result of an attempt. Every permission is reported exactly once.
    pub(super) fn report(&mut self, pass: Pass, report: AttemptReport, now: Instant) {
        if pass.probe {
            self.probing = false;
        }
        match report {
            AttemptReport::Works => {
                // An attempt from before it opened says nothing about the current state.
                if pass.probe || self.until.is_none() {
                    (self.failures, self.until) = (0, None);
                }
            }
            AttemptReport::Fails => {
                self.failures = self.failures.saturating_add(1);
                let opens = pass.probe || (self.until.is_none() && self.failures >= self.options.failures);
                if self.options.failures > 0 && opens {
                    self.until = Some(now + self.pause());
                }
            }
            // The next attempt is the probe.
            AttemptReport::Nothing => {}
        }
    }

    pub(super) fn state(&self) -> BreakerState {
        match (self.until, self.probing) {
            (None, _) => BreakerState::Closed,
            (Some(_), false) => BreakerState::Open,
            (Some(_), true) => BreakerState::HalfOpen,
        }
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(self.options.pause_ms)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn breaker(failures: u32) -> Breaker {
        Breaker::new(Options { failures, pause_ms: 1_000 })
    }

    fn fail(breaker: &mut Breaker, now: Instant) {
        let pass = breaker.admit(now).unwrap();
        breaker.report(pass, AttemptReport::Fails, now);
    }

    #[test]
    fn breaker_opens_after_consecutive_failures() {
        let (mut breaker, now) = (breaker(3), Instant::now());
        fail(&mut breaker, now);
        fail(&mut breaker, now);
        let pass = breaker.admit(now).unwrap();
        breaker.report(pass, AttemptReport::Works, now);
        fail(&mut breaker, now);
        fail(&mut breaker, now);
        assert_eq!(breaker.state(), BreakerState::Closed);
        fail(&mut breaker, now);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert_eq!(breaker.admit(now + Duration::from_millis(400)), Err(Duration::from_millis(600)));
    }

    #[test]
    fn after_the_pause_one_attempt_finds_out_and_closes_it_or_opens_it_again() {
        let (mut breaker, now) = (breaker(1), Instant::now());
        fail(&mut breaker, now);
        let later = now + Duration::from_millis(1_000);
        let probe = breaker.admit(later).unwrap();
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert!(breaker.admit(later).is_err(), "one at a time");
        breaker.report(probe, AttemptReport::Fails, later);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(breaker.admit(later + Duration::from_millis(999)).is_err());
        let later = later + Duration::from_millis(1_000);
        let probe = breaker.admit(later).unwrap();
        // Abandoned: the next attempt is the probe.
        breaker.report(probe, AttemptReport::Nothing, later);
        let probe = breaker.admit(later).unwrap();
        breaker.report(probe, AttemptReport::Works, later);
        assert_eq!(breaker.state(), BreakerState::Closed);
        fail(&mut breaker, later);
        assert_eq!(breaker.state(), BreakerState::Open);
    }

    #[test]
    fn reply_to_an_attempt_before_the_breaker_opened_does_not_close_it() {
        let (mut breaker, now) = (breaker(1), Instant::now());
        let early = breaker.admit(now).unwrap();
        fail(&mut breaker, now);
        breaker.report(early, AttemptReport::Works, now);
        assert_eq!(breaker.state(), BreakerState::Open);
    }

    #[test]
    fn with_zero_failures_it_never_opens() {
        let (mut breaker, now) = (breaker(0), Instant::now());
        for _ in 0..100 {
            fail(&mut breaker, now);
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    proptest! {
        /// In every sequence there is at most one probe at a time, and the breaker never stays open forever.
        #[test]
        fn there_is_one_probe_at_a_time_and_always_a_way_back(
            events in prop::collection::vec((0_u8..4, 0_u64..1_500), 1..80),
        ) {
            let mut breaker = breaker(2);
            let mut now = Instant::now();
            let mut open: Vec<Pass> = Vec::new();
            for (what, wait) in events {
                now += Duration::from_millis(wait);
                match (what, open.pop()) {
                    (0, last) => {
                        open.extend(last);
                        open.extend(breaker.admit(now));
                    }
                    (1, Some(pass)) => breaker.report(pass, AttemptReport::Works, now),
                    (2, Some(pass)) => breaker.report(pass, AttemptReport::Fails, now),
                    (_, Some(pass)) => breaker.report(pass, AttemptReport::Nothing, now),
                    _ => {}
                }
                prop_assert!(open.iter().filter(|pass| pass.probe).count() <= 1);
            }
            for pass in open {
                breaker.report(pass, AttemptReport::Nothing, now);
            }
            now += Duration::from_millis(1_000);
            let pass = breaker.admit(now).unwrap();
            breaker.report(pass, AttemptReport::Works, now);
            prop_assert_eq!(breaker.state(), BreakerState::Closed);
        }
    }
}
