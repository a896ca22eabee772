//! Costs of tokens, in exact integers.

use super::options::ModelOptions;
use crate::run::Usage;

/// Prices of a model, in nano-USD per million tokens: 0.15 USD per million is 150,000,000.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Price {
    /// Prompt tokens that were not cached.
    pub input: u64,
    /// Prompt tokens that the provider had cached.
    pub cached_input: u64,
    /// Completion tokens.
    pub output: u64,
}

impl Price {
    /// The prices of a configured model; cached tokens cost as much as others unless configured.
    pub fn of(model: &ModelOptions) -> Self {
        let input = nano(model.input_usd_per_million);
        Self {
            input,
            cached_input: model.cached_input_usd_per_million.map_or(input, nano),
            output: nano(model.output_usd_per_million),
        }
    }

    /// The cost of the tokens in nano-USD, exact and rounded up once.
    pub fn cost(&self, input: u64, cached_input: u64, output: u64) -> u64 {
        let cached = cached_input.min(input);
        let parts = [(input - cached, self.input), (cached, self.cached_input), (output, self.output)];
        // Saturates at what SQLite can store.
        let total = parts.iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(*tokens).saturating_mul(u128::from(*price)))
        });
        i64::try_from(total.div_ceil(1_000_000)).unwrap_or(i64::MAX).unsigned_abs()
    }

    /// The maximum cost of a call in nano-USD, with this number of prompt tokens and at most this number of reply
    /// tokens.
    pub fn most(&self, input: u64, output: u64) -> u64 {
        let cached = if self.cached_input > self.input { input } else { 0 };
        self.cost(input, cached, output)
    }

    /// The usage of one call that was not reported: `input` and `output` tokens are estimates, and the cost is the
    /// maximum for a reply of up to `max_output` tokens.
    pub fn unknown(&self, input: u64, output: u64, max_output: u64) -> Usage {
        Usage { cost_nano_usd: self.most(input, max_output), ..self.usage(input, 0, output) }
    }

    /// One call that used these tokens.
    pub fn usage(&self, input: u64, cached_input: u64, output: u64) -> Usage {
        Usage {
            calls: 1,
            input_tokens: input,
            cached_input_tokens: cached_input.min(input),
            output_tokens: output,
            cost_nano_usd: self.cost(input, cached_input, output),
        }
    }
}

/// USD per million tokens in nano-USD per million tokens; an invalid price counts as zero.
fn nano(usd: f64) -> u64 {
    // A float's cast to an integer saturates, and NaN becomes 0.
    (usd * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price() -> Price {
        Price::of(&ModelOptions {
            input_usd_per_million: 0.15,
            cached_input_usd_per_million: Some(0.0375),
            output_usd_per_million: 0.6,
            ..ModelOptions::default()
        })
    }

    #[test]
    fn prices_of_a_fraction_of_a_nano_usd_per_token_are_exact() {
        assert_eq!(price(), Price { input: 150_000_000, cached_input: 37_500_000, output: 600_000_000 });
        // 1,000 of which 400 cached, and 50 out: 600·150 + 400·37.5 + 50·600 nano-USD.
        assert_eq!(price().cost(1_000, 400, 50), 90_000 + 15_000 + 30_000);
    }

    #[test]
    fn fractions_of_a_nano_usd_are_rounded_up() {
        assert_eq!(price().cost(1, 1, 0), 38);
        assert_eq!(price().cost(0, 0, 0), 0);
    }

    #[test]
    fn more_cached_tokens_than_tokens_count_as_all_cached() {
        assert_eq!(price().usage(10, 99, 0).cached_input_tokens, 10);
    }

    #[test]
    fn absurd_numbers_saturate() {
        let price = Price { input: u64::MAX, cached_input: 0, output: u64::MAX };
        assert_eq!(price.cost(u64::MAX, 0, u64::MAX), i64::MAX as u64);
    }
}
