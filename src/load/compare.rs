//! Two load tests side by side.

use super::measure::{MeasureUnit, WorseWhen, measures};
use super::report::LoadReport;

/// An earlier report and this one.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadComparison {
    /// The settings that differ, each as `name: earlier → now`.
    pub settings: Vec<String>,
    /// The measures that both have and of which one direction is worse.
    pub rows: Vec<ComparedMeasure>,
}

/// One measure in both.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedMeasure {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: MeasureUnit,
    /// The earlier value; absent if it was not measured.
    pub earlier: Option<f64>,
    /// The value now.
    pub now: Option<f64>,
    /// By which share it is worse: negative if it is better, infinite if it was zero; absent if one is missing, or the
    /// difference is below what single requests explain.
    pub worsened: Option<f64>,
}

impl LoadComparison {
    /// Compares `now` with `earlier`.
    pub fn of(earlier: &LoadReport, now: &LoadReport) -> Self {
        let judged = measures().into_iter().filter(|measure| measure.worse != WorseWhen::Neither);
        let rows = judged.filter_map(|measure| {
            // Reports of earlier versions also have percentiles of too few durations.
            let value = |report: &LoadReport| {
                let is_measured = report.has_enough_for(&measure.name);
                report.measures.get(&measure.name).copied().filter(|_| is_measured)
            };
            let (before, after) = (value(earlier), value(now));
            before.or(after)?;
            let worsened = before.zip(after).and_then(|(before, after)| {
                let by = if measure.worse == WorseWhen::Higher { after - before } else { before - after };
                let share = if before == 0.0 { f64::INFINITY.copysign(by) } else { by / before.abs() };
                (by.abs() > measure.unit.noise()).then_some(share)
            });
            Some(ComparedMeasure {
                name: measure.name,
                unit: measure.unit,
                earlier: before,
                now: after,
                worsened,
            })
        });
        Self { settings: earlier.settings.differences(&now.settings), rows: rows.collect() }
    }

    /// The measures that are worse by more than a share of their earlier value, or that are not measured any more.
    pub fn regressions(&self, tolerance: f64) -> Vec<&ComparedMeasure> {
        let is_regression = |row: &&ComparedMeasure| {
            row.worsened.is_some_and(|share| share > tolerance)
                || (row.earlier.is_some() && row.now.is_none())
        };
        self.rows.iter().filter(is_regression).collect()
    }
}

impl ComparedMeasure {
    /// How it changed, for people: `+12 %`, `worse`, or nothing.
    pub fn change(&self) -> String {
        let (Some(earlier), Some(now), Some(worsened)) = (self.earlier, self.now, self.worsened) else {
            return if self.now.is_none() { "not measured" } else { "" }.to_owned();
        };
        let sign = if worsened > 0.0 { "worse" } else { "better" };
        match earlier == 0.0 {
            true => sign.to_owned(),
            false => format!("{:+.0} % {sign}", (now - earlier) / earlier.abs() * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::example;
    use super::*;

    fn with(values: &[(&str, f64)]) -> LoadReport {
        let mut report = example();
        report.measures = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        report
    }

    #[test]
    fn worse_is_judged_by_measure_and_small_differences_are_none() {
        let earlier = with(&[
            ("p99_latency", 100.0),
            ("p50_latency", 0.2),
            ("throughput", 50.0),
            ("lost", 0.0),
            ("p50_overhead", 2.0),
            ("max_latency", 1.0),
        ]);
        let mut now = with(&[
            ("p99_latency", 115.0),
            ("p50_latency", 0.9),
            ("throughput", 60.0),
            ("lost", 1.0),
            ("max_latency", 900.0),
        ]);
        now.settings.sessions = 8;
        let comparison = LoadComparison::of(&earlier, &now);
        assert_eq!(comparison.settings, ["sessions: 4 → 8"]);
        let names = |tolerance| {
            comparison.regressions(tolerance).iter().map(|row| row.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(0.1), ["p99_latency", "p50_overhead", "lost"]);
        assert_eq!(names(0.2), ["p50_overhead", "lost"]);
        let change = |name: &str| comparison.rows.iter().find(|row| row.name == name).unwrap().change();
        assert_eq!([change("p99_latency"), change("throughput")], ["+15 % worse", "+20 % better"]);
        assert_eq!(
            [change("lost"), change("p50_overhead"), change("p50_latency")],
            ["worse", "not measured", ""]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn no_report_is_a_regression_of_itself_and_of_two_one_may_be(a in 0.0_f64..1e6, b in 0.0_f64..1e6) {
            let (a, b) = (with(&[("p99_latency", a), ("throughput", b)]), with(&[("p99_latency", b), ("throughput", a)]));
            prop_assert!(LoadComparison::of(&a, &a).regressions(0.0).is_empty());
            let (to, back) = (LoadComparison::of(&a, &b), LoadComparison::of(&b, &a));
            let worse = |comparison: &LoadComparison| {
                comparison.regressions(0.0).iter().any(|row| row.name == "p99_latency")
            };
            prop_assert!(!(worse(&to) && worse(&back)));
        }
    }
}
