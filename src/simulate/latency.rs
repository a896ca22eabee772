//! How long the simulated model takes.

use std::time::Duration;

use rand::Rng;
use rand_distr::{Distribution, LogNormal, Normal};

/// The longest reply, in milliseconds.
pub const MAX_REPLY_MS: f64 = 600_000.0;

/// The shape of a distribution of times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LatencyShape {
    /// Always the same time.
    #[default]
    Fixed,
    /// A normal distribution; times below 0 count as 0.
    Normal,
    /// A lognormal distribution: most replies are quick, a few are very slow.
    LogNormal,
}

/// A distribution of times.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LatencyDistribution {
    /// Its shape.
    pub shape: LatencyShape,
    /// Milliseconds: the time (fixed), the mean (normal) or the median (lognormal).
    pub ms: f64,
    /// The standard deviation: in milliseconds (normal), or of the logarithm (lognormal). Not used if fixed.
    pub spread: f64,
}

impl LatencyDistribution {
    /// Always `ms` milliseconds.
    pub fn fixed(ms: f64) -> Self {
        Self { ms, ..Self::default() }
    }

    /// Draws a time in milliseconds, from 0 to ten minutes.
    fn draw(&self, rng: &mut impl Rng) -> f64 {
        // Spreads that are no numbers were refused with the profile.
        let drawn = match self.shape {
            LatencyShape::Fixed => self.ms,
            LatencyShape::Normal => {
                Normal::new(self.ms, self.spread).map_or(self.ms, |normal| normal.sample(rng))
            }
            LatencyShape::LogNormal => {
                LogNormal::new(self.ms.ln(), self.spread).map_or(self.ms, |lognormal| lognormal.sample(rng))
            }
        };
        drawn.clamp(0.0, MAX_REPLY_MS)
    }
}

/// The waits before the pieces of a reply that have so many tokens: `first` before the first, and before each other the
/// time that the tokens of the piece before it take. The time per token is drawn once a piece. All together are at
/// most ten minutes.
pub(super) fn waits(
    first: &LatencyDistribution,
    per_token: &LatencyDistribution,
    tokens: &[u64],
    rng: &mut impl Rng,
) -> Vec<Duration> {
    let mut left = MAX_REPLY_MS;
    let mut before: Option<u64> = None;
    let wait = |tokens: &u64| {
        let ms = match before.replace(*tokens) {
            None => first.draw(rng),
            Some(0) => 0.0,
            Some(before) => per_token.draw(rng) * before as f64,
        };
        let ms = ms.min(left);
        left -= ms;
        Duration::from_secs_f64(ms / 1e3)
    };
    tokens.iter().map(wait).collect()
}

/// How long a reply with `tokens` takes that is sent at once: as long as a stream of `parts` pieces.
pub(super) fn whole_wait(
    first: &LatencyDistribution,
    per_token: &LatencyDistribution,
    tokens: u64,
    parts: usize,
    rng: &mut impl Rng,
) -> Duration {
    let parts = parts.max(1) as u64;
    let share = |part| tokens / parts + u64::from(part < tokens % parts);
    let shares: Vec<u64> = (0..parts).map(share).chain([0]).collect();
    waits(first, per_token, &shares, rng).iter().sum()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn drawn(latency: LatencyDistribution) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut drawn: Vec<f64> = (0..10_000).map(|_| latency.draw(&mut rng)).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    fn near(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 0.05
    }

    #[test]
    fn times_have_the_shape_that_the_profile_says() {
        let fixed = drawn(LatencyDistribution::fixed(40.0));
        assert!(fixed.iter().all(|ms| *ms == 40.0));
        let normal = drawn(LatencyDistribution { shape: LatencyShape::Normal, ms: 100.0, spread: 20.0 });
        assert!(near(normal.iter().sum::<f64>() / 1e4, 100.0));
        assert!(near(normal[8_413] - normal[5_000], 20.0), "one standard deviation");
        let lognormal = drawn(LatencyDistribution { shape: LatencyShape::LogNormal, ms: 400.0, spread: 0.5 });
        assert!(near(lognormal[5_000], 400.0), "the median");
        assert!(near(lognormal[8_413], 400.0 * 0.5_f64.exp()), "one standard deviation of the logarithm");
        let wide = drawn(LatencyDistribution { shape: LatencyShape::Normal, ms: 1.0, spread: 100.0 });
        assert!(wide[0] == 0.0 && wide[9_999] > 100.0);
    }

    #[test]
    fn reply_takes_the_time_of_its_first_token_and_of_all_its_tokens() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let waits = waits(
            &LatencyDistribution::fixed(500.0),
            &LatencyDistribution::fixed(10.0),
            &[3, 4, 0, 0],
            &mut rng,
        );
        let millis: Vec<u128> = waits.iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [500, 30, 40, 0]);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let endless = super::waits(
            &LatencyDistribution::fixed(1e5),
            &LatencyDistribution::fixed(1e5),
            &[100, 100, 100],
            &mut rng,
        );
        let whole = whole_wait(
            &LatencyDistribution::fixed(500.0),
            &LatencyDistribution::fixed(10.0),
            7,
            20,
            &mut rng,
        );
        assert_eq!(whole.as_millis(), 570, "a reply that is not streamed takes as long");
        assert_eq!(endless.iter().sum::<Duration>(), Duration::from_secs(600), "no reply takes longer");
    }
}
