//! Confidence intervals of shares: how much a share of a small number of requests says.

use serde::{Deserialize, Serialize};

/// The standard normal quantile of 97.5 %.
const Z: f64 = 1.959_963_984_540_054;

/// The bounds between which a share is, with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ShareInterval {
    /// The lower bound, 0 to 1.
    pub low: f64,
    /// The upper bound, 0 to 1.
    pub high: f64,
}

impl ShareInterval {
    /// Wilson's score interval of `share` (0 to 1) among `count` that are independent of each other. Of none nothing is
    /// known: 0 to 1.
    pub fn wilson(share: f64, count: usize) -> Self {
        if count == 0 {
            return Self { low: 0.0, high: 1.0 };
        }
        let (n, p) = (count as f64, share.clamp(0.0, 1.0));
        let square = Z * Z / n;
        let centre = (p + square / 2.0) / (1.0 + square);
        let half = Z / (1.0 + square) * (p * (1.0 - p) / n + square / (4.0 * n)).sqrt();
        Self { low: (centre - half).max(0.0), high: (centre + half).min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_say_little() {
        let shown = |share, count| {
            let ShareInterval { low, high } = ShareInterval::wilson(share, count);
            format!("{low:.3} to {high:.3}")
        };
        // As in the tables of the literature.
        assert_eq!(shown(1.0, 3), "0.439 to 1.000");
        assert_eq!(shown(0.5, 10), "0.237 to 0.763");
        assert_eq!(shown(0.95, 1000), "0.935 to 0.962");
        assert_eq!(shown(0.0, 0), "0.000 to 1.000");
    }

    proptest! {
        #[test]
        fn share_is_inside_and_more_narrows(share in 0.0..=1.0f64, count in 1usize..10_000) {
            let (some, more) = (ShareInterval::wilson(share, count), ShareInterval::wilson(share, 4 * count));
            prop_assert!(some.low <= share + 1e-12 && share - 1e-12 <= some.high);
            prop_assert!(more.high - more.low < some.high - some.low);
        }
    }
}
