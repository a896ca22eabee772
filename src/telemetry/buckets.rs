//! The buckets of all histograms. Durations are in seconds.

/// Orchestration overhead, from a tenth of a millisecond.
pub(super) const OVERHEAD: &[f64] =
    &[0.000_1, 0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// A model's reply time; the fastest are simulated models and small ones nearby.
pub(super) const MODEL: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0,
    120.0,
];
/// A tool call. There is a series for each bucket of each tool.
pub(super) const TOOL: &[f64] =
    &[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0];
/// A whole request, from half a millisecond; the finest where the offline model or nearby models answer, and where users
/// wait.
pub(super) const REQUEST: &[f64] = &[
    0.000_5, 0.001, 0.002, 0.003, 0.005, 0.007_5, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0,
    2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0,
];
/// A step of a request. There is a series for each bucket of each scene.
pub(super) const STEP: &[f64] =
    &[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0];
/// The reply to an HTTP request; some of them wait for the whole request.
pub(super) const HTTP: &[f64] = &[
    0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0,
    300.0,
];
pub(super) const JOURNAL: &[f64] =
    &[0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
/// Events in one commit.
pub(super) const BATCH: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
pub(super) const STEPS: &[f64] = &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 50.0, 100.0];
pub(super) const RATIO: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
/// Number of steps that a person changed.
pub(super) const CHANGES: &[f64] = &[1.0, 2.0, 3.0, 5.0, 10.0, 20.0];
/// A person's time to decide, from a second to a month.
pub(super) const DECISION: &[f64] = &[
    1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0,
    2_592_000.0,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_and_two_neighbours_are_close_where_requests_are_measured() {
        for bounds in
            [OVERHEAD, MODEL, TOOL, REQUEST, STEP, HTTP, JOURNAL, BATCH, STEPS, RATIO, CHANGES, DECISION]
        {
            assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
        }
        for bounds in [OVERHEAD, MODEL, TOOL, REQUEST, STEP, HTTP] {
            assert!(bounds.windows(2).all(|pair| pair[1] / pair[0] <= 5.0), "{bounds:?}");
            assert!(bounds.iter().any(|bound| *bound <= 0.001), "{bounds:?}");
        }
        // A median of 5.5 ms is shown as at least 5 ms and at most 7.5 ms.
        let above = REQUEST.iter().position(|bound| *bound > 0.005_5).unwrap();
        assert_eq!((REQUEST[above - 1], REQUEST[above]), (0.005, 0.007_5));
    }
}
