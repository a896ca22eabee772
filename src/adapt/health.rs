//! How well a tool works for one tenant lately, and its circuit breaker. The time is an argument.
//!
//! Only timeouts and unavailable back ends count against a tool: a refusal shows that it works. Whatever it answers, a
//! breaker never decides that a write is repeated; it only keeps calls from being made.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fault::{Fault, FaultClass};

/// Seconds after which an observation counts half.
const HALF_LIFE_S: f64 = 300.0;

/// The longest pause of a breaker, in milliseconds.
const MAX_PAUSE_MS: u64 = 300_000;

/// The fewest observations, decayed, from which a success rate is reported.
const MIN_WEIGHT: f64 = 2.5;

/// `[execution.breaker]`: when the breakers of tools open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolBreakerConfig {
    /// Consecutive timeouts and unavailable back ends that open it; 0 for never.
    pub failures: u32,
    /// Milliseconds until a call tests whether the tool works again; doubled with each test that fails.
    pub pause_ms: u64,
}

impl Default for ToolBreakerConfig {
    fn default() -> Self {
        Self { failures: 4, pause_ms: 15_000 }
    }
}

/// The report of an ended call about its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthReport {
    /// The tool answered, with a result or a refusal.
    Works,
    /// It did not answer in time, or its back end is not available.
    Fails,
}

impl HealthReport {
    /// The report of a call that ended with a fault of this class; of one with a result, `None` is its class.
    pub fn of(class: Option<FaultClass>) -> Self {
        match class {
            Some(FaultClass::Timeout | FaultClass::Unavailable) => Self::Fails,
            _ => Self::Works,
        }
    }
}

/// A call that asks for admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolUse {
    /// A read, which may test whether the tool works again, within so many milliseconds.
    Read {
        /// Its time limit.
        timeout_ms: u64,
    },
    /// A write, which is never a test.
    Write {
        /// How long a breaker of a read of the same scene stays open, in milliseconds, if one is open.
        reads_open_ms: Option<u64>,
    },
}

impl ToolUse {
    /// A write of a scene whose reads have this health.
    pub fn write<'h>(reads: impl Iterator<Item = &'h ToolHealth>, at: Timestamp) -> Self {
        Self::Write { reads_open_ms: reads.filter_map(|read| read.open_ms(at)).max() }
    }
}

/// The state of a tool's breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolBreakerState {
    /// Calls are made.
    Closed,
    /// After a pause: the next report decides.
    HalfOpen,
    /// Calls are refused.
    Open,
}

/// The forecast for a step that may call a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolForecast {
    /// The tool.
    pub tool: String,
    /// Whether its calls are refused at present.
    pub open: bool,
    /// How many of its recent calls worked, in percent; a call counts half after five minutes.
    pub success_percent: u32,
    /// How long its recent calls took, in milliseconds, on the average.
    pub latency_ms: u64,
}

/// The recent past of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolHealth {
    /// Decayed numbers of calls, up to `at`.
    good: f64,
    bad: f64,
    /// Decayed sum of their durations in milliseconds.
    took_ms: f64,
    at: Timestamp,
    failures: u32,
    breaker: BreakerPhase,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum BreakerPhase {
    Closed,
    Open {
        until: Timestamp,
        pause_ms: u64,
    },
    /// A test is in progress; if nothing is reported until then, there may be another.
    HalfOpen {
        until: Timestamp,
        pause_ms: u64,
    },
}

impl ToolHealth {
    /// A tool that has not been called.
    pub fn new(at: Timestamp) -> Self {
        Self { good: 0.0, bad: 0.0, took_ms: 0.0, at, failures: 0, breaker: BreakerPhase::Closed }
    }

    /// When it was last called.
    pub fn last_call(&self) -> Timestamp {
        self.at
    }

    /// Adds an ended call.
    pub fn record(&mut self, report: HealthReport, took_ms: u64, at: Timestamp, config: ToolBreakerConfig) {
        let kept = self.kept(at);
        (self.good, self.bad, self.took_ms) = (self.good * kept, self.bad * kept, self.took_ms * kept);
        self.at = self.at.max(at);
        self.took_ms += took_ms as f64;
        if report == HealthReport::Works {
            self.good += 1.0;
            (self.failures, self.breaker) = (0, BreakerPhase::Closed);
            return;
        }
        self.bad += 1.0;
        self.failures = self.failures.saturating_add(1);
        match self.breaker {
            BreakerPhase::Closed if config.failures > 0 && self.failures >= config.failures => {
                self.open(config.pause_ms, at);
            }
            BreakerPhase::HalfOpen { pause_ms, .. } => self.open(pause_ms.saturating_mul(2), at),
            // Calls that had begun before it opened.
            BreakerPhase::Closed | BreakerPhase::Open { .. } => {}
        }
    }

    /// Checks that a call may be made now.
    ///
    /// # Errors
    /// The milliseconds until the next call may be.
    pub fn admit(&mut self, call: ToolUse, at: Timestamp) -> Result<(), u64> {
        let (until, pause_ms, is_testing) = match self.breaker {
            BreakerPhase::Closed => return Ok(()),
            BreakerPhase::Open { until, pause_ms } => (until, pause_ms, false),
            BreakerPhase::HalfOpen { until, pause_ms } => (until, pause_ms, true),
        };
        let left_ms = millis_until(until, at);
        match call {
            // A write is no test, so it does not wait for the end of one.
            ToolUse::Write { .. } if is_testing => Ok(()),
            _ if left_ms > 0 => Err(left_ms),
            ToolUse::Write { reads_open_ms: Some(left_ms) } => Err(left_ms),
            ToolUse::Write { reads_open_ms: None } => {
                self.breaker = BreakerPhase::HalfOpen { until: at, pause_ms };
                Ok(())
            }
            ToolUse::Read { timeout_ms } => {
                self.breaker = BreakerPhase::HalfOpen { until: after(at, timeout_ms), pause_ms };
                Ok(())
            }
        }
    }

    /// Why a call of `tool`, whose health this is, is refused now; `None` if it is admitted.
    pub fn refusal(&mut self, tool: &str, call: ToolUse, at: Timestamp) -> Option<Fault> {
        let left_ms = self.admit(call, at).err()?;
        let message = format!(
            "{tool} did not answer several times in a row, so it is not called for {left_ms} ms; \
             `execution.breaker` sets when and how long"
        );
        let fault = Fault::new("tool.breaker_open", message).classed(FaultClass::Unavailable);
        Some(Fault { retry_after_ms: Some(left_ms), ..fault })
    }

    /// How long its breaker stays open, in milliseconds; `None` if calls are made, or one may test it.
    pub fn open_ms(&self, at: Timestamp) -> Option<u64> {
        match self.breaker {
            BreakerPhase::Open { until, .. } => Some(millis_until(until, at)).filter(|left| *left > 0),
            BreakerPhase::Closed | BreakerPhase::HalfOpen { .. } => None,
        }
    }

    /// The state of its breaker.
    pub fn state(&self, at: Timestamp) -> ToolBreakerState {
        match self.breaker {
            BreakerPhase::Closed => ToolBreakerState::Closed,
            BreakerPhase::Open { .. } if self.open_ms(at).is_some() => ToolBreakerState::Open,
            BreakerPhase::Open { .. } | BreakerPhase::HalfOpen { .. } => ToolBreakerState::HalfOpen,
        }
    }

    /// Returns what a caller of the tool has to expect, if it does not work well: that its calls are refused, or that most of its
    /// recent ones failed.
    pub fn forecast(&self, tool: &str, at: Timestamp) -> Option<ToolForecast> {
        let open = self.open_ms(at).is_some();
        let (weight, kept) = (self.good + self.bad, self.kept(at));
        let is_failing = self.failures > 0 && self.bad > self.good && weight * kept >= MIN_WEIGHT;
        let per_call = |sum: f64| if weight > 0.0 { sum / weight } else { 0.0 };
        (open || is_failing).then(|| ToolForecast {
            tool: tool.to_owned(),
            open,
            success_percent: (per_call(self.good) * 100.0).round() as u32,
            latency_ms: per_call(self.took_ms).round() as u64,
        })
    }

    fn open(&mut self, pause_ms: u64, at: Timestamp) {
        let pause_ms = pause_ms.min(MAX_PAUSE_MS);
        self.breaker = BreakerPhase::Open { until: after(at, pause_ms), pause_ms };
    }

    /// What is left of an observation at `at`, from 0 to 1.
    fn kept(&self, at: Timestamp) -> f64 {
        let seconds = at.duration_since(self.at).as_secs_f64().max(0.0);
        (-seconds / HALF_LIFE_S).exp2()
    }
}

fn after(at: Timestamp, ms: u64) -> Timestamp {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    at.saturating_add(jiff::SignedDuration::from_millis(ms)).unwrap_or(Timestamp::MAX)
}

fn millis_until(until: Timestamp, at: Timestamp) -> u64 {
    let nanos = until.as_nanosecond().saturating_sub(at.as_nanosecond()).max(0);
    u64::try_from((nanos + 999_999) / 1_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONFIG: ToolBreakerConfig = ToolBreakerConfig { failures: 4, pause_ms: 1_000 };
    const READ: ToolUse = ToolUse::Read { timeout_ms: 500 };
    const WRITE: ToolUse = ToolUse::Write { reads_open_ms: None };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(1_777_878_000_000 + ms).unwrap()
    }

    fn after_failures(count: u32) -> ToolHealth {
        let mut health = ToolHealth::new(at(0));
        (0..count).for_each(|_| health.record(HealthReport::Fails, 400, at(0), CONFIG));
        health
    }

    #[test]
    fn fourth_failure_in_a_row_opens_it_and_a_success_closes_it() {
        let mut health = after_failures(3);
        assert_eq!(health.admit(READ, at(0)), Ok(()));
        health.record(HealthReport::Fails, 400, at(0), CONFIG);
        assert_eq!((health.admit(READ, at(1)), health.admit(WRITE, at(1))), (Err(999), Err(999)));
        let told = health.forecast("Look", at(1)).unwrap();
        assert_eq!((told.open, told.success_percent, told.latency_ms), (true, 0, 400));
        // A slow call that had begun before.
        health.record(HealthReport::Works, 400, at(2), CONFIG);
        assert_eq!((health.admit(READ, at(2)), health.state(at(2))), (Ok(()), ToolBreakerState::Closed));
        let off = ToolBreakerConfig { failures: 0, ..CONFIG };
        let mut health = ToolHealth::new(at(0));
        (0..50).for_each(|_| health.record(HealthReport::Fails, 1, at(0), off));
        assert_eq!(health.admit(READ, at(0)), Ok(()));
    }

    #[test]
    fn one_read_probes_an_open_breaker_and_failed_probes_double_its_pause() {
        let mut health = after_failures(4);
        assert_eq!(health.admit(READ, at(1_000)), Ok(()));
        assert_eq!(health.admit(READ, at(1_001)), Err(499));
        health.record(HealthReport::Fails, 400, at(1_400), CONFIG);
        assert_eq!(health.admit(READ, at(1_401)), Err(1_999));
        assert_eq!(health.admit(READ, at(3_400)), Ok(()));
        // The test was lost, with its run.
        assert_eq!(health.admit(READ, at(3_900)), Ok(()));
        health.record(HealthReport::Fails, 400, at(3_950), CONFIG);
        assert_eq!(health.open_ms(at(3_950)), Some(4_000));
        let mut worst = health;
        for _ in 0..20 {
            let now = worst.open_ms(at(0)).map_or(at(0), |ms| after(at(0), ms));
            assert_eq!(worst.admit(READ, now), Ok(()));
            worst.record(HealthReport::Fails, 1, now, CONFIG);
            assert!(worst.open_ms(now).is_some_and(|ms| ms <= MAX_PAUSE_MS));
        }
    }

    #[test]
    fn write_is_no_test_and_waits_for_reads_of_its_scene() {
        let mut health = after_failures(4);
        let waits = ToolUse::Write { reads_open_ms: Some(700) };
        assert_eq!(health.admit(waits, at(1_000)), Err(700));
        assert_eq!((health.admit(WRITE, at(1_000)), health.admit(WRITE, at(1_000))), (Ok(()), Ok(())));
        health.record(HealthReport::Fails, 400, at(1_100), CONFIG);
        assert_eq!(health.admit(WRITE, at(1_101)), Err(1_999));
    }

    #[test]
    fn write_waits_for_the_read_that_is_refused_longest() {
        let mut slow = after_failures(4);
        slow.record(HealthReport::Fails, 400, at(0), CONFIG);
        assert_eq!(slow.admit(READ, at(1_000)), Ok(()));
        slow.record(HealthReport::Fails, 400, at(1_000), CONFIG);
        let reads = [after_failures(0), slow, after_failures(4)];
        assert_eq!(ToolUse::write(reads.iter(), at(1_000)), ToolUse::Write { reads_open_ms: Some(2_000) });
        assert_eq!(ToolUse::write(reads[..1].iter(), at(1_000)), WRITE);
    }

    #[test]
    fn refusal_says_when_the_tool_may_be_called_again() {
        let refused = after_failures(4).refusal("Look", READ, at(1)).unwrap();
        assert_eq!((refused.code.as_str(), refused.retry_after_ms), ("tool.breaker_open", Some(999)));
        assert_eq!(refused.class, FaultClass::Unavailable);
        assert_eq!(after_failures(3).refusal("Look", READ, at(1)), None);
    }

    #[test]
    fn past_is_forgotten() {
        let health = after_failures(3);
        assert!(health.forecast("Look", at(0)).is_some_and(|told| !told.open));
        assert_eq!(health.forecast("Look", at(3_600_000)), None);
        assert_eq!(ToolHealth::new(at(0)).forecast("Look", at(0)), None);
    }

    proptest! {
        #[test]
        fn calls_are_never_refused_for_longer_than_the_longest_pause(
            calls in proptest::collection::vec((any::<bool>(), any::<bool>(), 0_i64..400_000), 1..60)
        ) {
            let (mut health, mut now) = (ToolHealth::new(at(0)), 0);
            for (works, reads, wait) in calls {
                now += wait;
                let call = if reads { READ } else { WRITE };
                match health.admit(call, at(now)) {
                    Ok(()) => {
                        let report = if works { HealthReport::Works } else { HealthReport::Fails };
                        health.record(report, 1, at(now), CONFIG);
                    }
                    Err(left) => prop_assert!(left <= MAX_PAUSE_MS),
                }
                let later = now + MAX_PAUSE_MS as i64;
                prop_assert_eq!(health.clone().admit(READ, at(later)), Ok(()));
                prop_assert_eq!(health.clone().admit(WRITE, at(later)), Ok(()));
            }
        }
    }
}
