//! How a requirement on a figure is written: a name, a comparison and a bound, such as `p99_overhead<50ms` or `right>=95%`.

/// How a value compares with its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoundComparison {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
}

/// The comparisons. Longer signs first, since they begin with the shorter ones.
pub(crate) const COMPARISONS: [(&str, BoundComparison); 5] = [
    ("<=", BoundComparison::AtMost),
    (">=", BoundComparison::AtLeast),
    ("<", BoundComparison::Less),
    (">", BoundComparison::More),
    ("=", BoundComparison::Equal),
];

impl BoundComparison {
    /// Returns whether a value keeps the bound; equal values differ by less than rounding.
    pub(crate) fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            BoundComparison::Less => value < bound,
            BoundComparison::AtMost => value <= bound,
            BoundComparison::More => value > bound,
            BoundComparison::AtLeast => value >= bound,
            BoundComparison::Equal => (value - bound).abs() < 1e-12,
        }
    }

    pub(crate) fn sign(self) -> &'static str {
        COMPARISONS.iter().find(|(_, comparison)| *comparison == self).map_or("", |(sign, _)| sign)
    }
}

/// The name, the comparison and the text of the bound; `None` without a comparison.
pub(crate) fn split(text: &str) -> Option<(&str, BoundComparison, &str)> {
    let (name, rest) = text.split_at_checked(text.find(['<', '>', '='])?)?;
    let (comparison, bound) =
        COMPARISONS.iter().find_map(|(sign, comparison)| Some((*comparison, rest.strip_prefix(sign)?)))?;
    Some((name.trim(), comparison, bound.trim()))
}
