//! Time spent waiting for models and tools: the union of all wait intervals.

use jiff::Timestamp;

const MILLI: i128 = 1_000_000;

/// How long something took, in nanoseconds. The measured duration has millisecond resolution; the times of
/// the two events around it are finer but include the wait for the journal.
pub(super) fn duration_nanos(began: Option<Timestamp>, ended: Timestamp, millis: u64) -> i128 {
    let min = i128::from(millis) * MILLI;
    let between = began.map_or(min, |began| ended.as_nanosecond() - began.as_nanosecond());
    between.clamp(min, min + MILLI)
}

/// Converts nanoseconds to seconds.
pub(super) fn seconds(nanos: i128) -> f64 {
    nanos.max(0) as f64 / 1e9
}

/// Disjoint intervals in order, in nanoseconds since the Unix epoch.
#[derive(Debug, Default)]
pub(super) struct WaitIntervals(Vec<(i128, i128)>);

impl WaitIntervals {
    /// Adds a wait of `nanos` that ended at `ended`. Calls must be in order of `ended`.
    pub(super) fn add(&mut self, ended: Timestamp, nanos: i128) {
        let end = ended.as_nanosecond();
        let (mut from, mut to) = (end - nanos.max(0), end);
        while let Some(&(start, stop)) = self.0.last() {
            if stop < from {
                break;
            }
            (from, to) = (from.min(start), to.max(stop));
            self.0.pop();
        }
        self.0.push((from, to));
    }

    /// The total length of the intervals, in nanoseconds.
    pub(super) fn total(&self) -> i128 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: i128) -> Timestamp {
        Timestamp::from_nanosecond(nanos).unwrap()
    }

    #[test]
    fn overlapping_intervals_count_once() {
        let mut awaited = WaitIntervals::default();
        awaited.add(at(10), 5);
        awaited.add(at(20), 12);
        awaited.add(at(40), 5);
        awaited.add(at(41), 30);
        assert_eq!(awaited.total(), 41 - 5);
    }

    #[test]
    fn journal_wait_is_not_counted_as_tool_time() {
        let (began, ended) = (Some(at(0)), at(9 * MILLI + 500));
        assert_eq!(duration_nanos(began, ended, 2), 3 * MILLI);
        assert_eq!(duration_nanos(began, ended, 9), 9 * MILLI + 500);
        assert_eq!(duration_nanos(None, ended, 4), 4 * MILLI);
        // The clock was set back.
        assert_eq!(duration_nanos(Some(at(99 * MILLI)), ended, 4), 4 * MILLI);
    }
}
