//! When requests are sent.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;

use super::{LoadFault, random_share};

/// Arrivals of an open loop: evenly spaced at a rate, which rises linearly from zero during the ramp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArrivalSchedule {
    /// Arrivals a second after the ramp.
    pub rate: f64,
    /// How long the rate rises.
    pub ramp: Duration,
}

impl ArrivalSchedule {
    /// When arrival number `n` is due, counted from zero, since the start.
    pub fn at(&self, n: u64) -> Duration {
        let (n, ramp) = (n as f64, self.ramp.as_secs_f64());
        // During the ramp, rate·t²/2·ramp requests have arrived after the time t.
        let in_ramp = self.rate * ramp / 2.0;
        let seconds =
            if n < in_ramp { (2.0 * ramp * n / self.rate).sqrt() } else { n / self.rate + ramp / 2.0 };
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// How long a conversation waits between an answer and its next request: the same each time, or evenly distributed
/// between two durations. Written `5s` or `1s..5s`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThinkTime {
    shortest: Duration,
    longest: Duration,
}

impl ThinkTime {
    /// The shortest.
    pub fn shortest(&self) -> Duration {
        self.shortest
    }

    /// The time before request number `n`, which depends on the seed and on `n` alone.
    pub fn before(&self, seed: u64, n: u64) -> Duration {
        self.shortest + (self.longest - self.shortest).mul_f64(random_share(seed, n))
    }
}

impl fmt::Display for ThinkTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shortest == self.longest {
            true => write!(f, "{:?}", self.shortest),
            false => write!(f, "{:?}..{:?}", self.shortest, self.longest),
        }
    }
}

impl FromStr for ThinkTime {
    type Err = LoadFault;

    fn from_str(text: &str) -> Result<Self, LoadFault> {
        let (shortest, longest) = text.split_once("..").unwrap_or((text, text));
        let time = Self { shortest: duration(shortest)?, longest: duration(longest)? };
        if time.shortest > time.longest {
            return Err(LoadFault::new(
                "load.duration",
                format!("`{text}`: the first duration is the longer one"),
            ));
        }
        Ok(time)
    }
}

/// Reads a duration such as `250ms`, `90s`, `1m 30s` or `2h`, of at most a week.
///
/// # Errors
/// `load.duration` for anything else.
pub fn duration(text: &str) -> Result<Duration, LoadFault> {
    let parsed = text.trim().parse::<SignedDuration>().ok();
    let parsed = parsed.filter(|time| *time <= SignedDuration::from_hours(7 * 24));
    let fault = || {
        let text: String = text.chars().take(40).collect();
        LoadFault::new(
            "load.duration",
            format!("`{text}` is not a duration; write one such as 250ms, 30s, 5m or 2h, of at most a week"),
        )
    };
    parsed.and_then(|time| Duration::try_from(time).ok()).ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arrivals_are_evenly_spaced_and_a_ramp_sends_half_as_many() {
        let steady = ArrivalSchedule { rate: 10.0, ramp: Duration::ZERO };
        assert_eq!([0, 1, 20].map(|n| steady.at(n)), [0, 100, 2000].map(Duration::from_millis));
        let rising = ArrivalSchedule { rate: 10.0, ramp: Duration::from_secs(4) };
        // 20 requests in the ramp of 4 s, then one each 100 ms.
        assert_eq!([0, 5, 20, 21].map(|n| rising.at(n)), [0, 2000, 4000, 4100].map(Duration::from_millis));
    }

    proptest! {
        #[test]
        fn arrivals_never_go_back_and_keep_the_rate(rate in 0.1_f64..5000.0, ramp in 0_u64..60_000, n in 0_u64..1_000_000) {
            let schedule = ArrivalSchedule { rate, ramp: Duration::from_millis(ramp) };
            let (this, next) = (schedule.at(n), schedule.at(n + 1));
            prop_assert!(this <= next);
            // Never faster than the rate, up to rounding to nanoseconds.
            prop_assert!((next - this).as_secs_f64() + 1e-8 >= 1.0 / rate);
        }

        #[test]
        fn think_times_stay_within_their_bounds_and_repeat(seed: u64, n: u64) {
            let time: ThinkTime = "1s..5s".parse().unwrap();
            let waits = time.before(seed, n);
            prop_assert!((Duration::from_secs(1)..=Duration::from_secs(5)).contains(&waits));
            prop_assert_eq!(waits, time.before(seed, n));
            prop_assert_eq!(time.to_string().parse::<ThinkTime>(), Ok(time));
        }
    }

    #[test]
    fn durations_are_read_with_units_and_anything_else_is_explained() {
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!("250ms".parse::<ThinkTime>().unwrap().before(1, 2), Duration::from_millis(250));
        for bad in ["", "5", "-1s", "1y", "200h", "soon"] {
            let fault = duration(bad).unwrap_err();
            assert!(fault.code == "load.duration" && fault.message.contains("250ms"), "{fault}");
        }
        assert!("5s..1s".parse::<ThinkTime>().is_err());
    }
}
