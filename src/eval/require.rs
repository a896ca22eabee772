//! Thresholds that a report has to keep, such as `right>=95%`.

use std::str::FromStr;

use super::report::EvalReport;
use crate::bound::{self, BoundComparison};
use crate::nearest::did_you_mean;

/// A threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalRequirement {
    figure: &'static EvalFigure,
    comparison: BoundComparison,
    bound: f64,
    text: String,
}

/// A figure of a report by its name.
struct EvalFigure {
    name: &'static str,
    units: &'static [(&'static str, f64)],
    value: fn(&EvalReport) -> Option<f64>,
}

/// How bounds of shares, numbers, times and money are written, and in what factor of the figure.
const SHARE: &[(&str, f64)] = &[("%", 0.01), ("", 1.0)];
const NUMBER: &[(&str, f64)] = &[("", 1.0)];
const MILLIS: &[(&str, f64)] = &[("ms", 1.0), ("s", 1000.0)];

impl PartialEq for EvalFigure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for EvalFigure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

static FIGURES: [EvalFigure; 19] = [
    EvalFigure { name: "right", units: SHARE, value: |r| Some(r.right) },
    EvalFigure { name: "scenes_exact", units: SHARE, value: |r| r.counts.scenes.exact.share() },
    EvalFigure { name: "scene_precision", units: SHARE, value: |r| r.counts.scenes.precision.share() },
    EvalFigure { name: "scene_recall", units: SHARE, value: |r| r.counts.scenes.recall.share() },
    EvalFigure { name: "tool_precision", units: SHARE, value: |r| r.counts.tools.precision.share() },
    EvalFigure { name: "tool_recall", units: SHARE, value: |r| r.counts.tools.recall.share() },
    EvalFigure { name: "arguments", units: SHARE, value: |r| r.counts.arguments.share() },
    EvalFigure { name: "order", units: SHARE, value: |r| r.counts.order.share() },
    EvalFigure { name: "mentions", units: SHARE, value: |r| r.counts.mentions.share() },
    EvalFigure { name: "plain", units: SHARE, value: |r| r.counts.plain.share() },
    EvalFigure { name: "wrong_writes", units: NUMBER, value: |r| Some(r.counts.wrong_writes.part as f64) },
    EvalFigure { name: "invented", units: SHARE, value: |r| r.counts.invented.share() },
    EvalFigure { name: "dropped", units: NUMBER, value: |r| Some(r.counts.dropped.part as f64) },
    EvalFigure { name: "out_of_scope", units: SHARE, value: |r| r.counts.out_of_scope.share() },
    EvalFigure { name: "needless", units: SHARE, value: |r| r.counts.needless.share() },
    EvalFigure { name: "unasked", units: SHARE, value: |r| r.counts.unasked.share() },
    EvalFigure { name: "model_calls", units: NUMBER, value: |r| per_request(r, r.counts.model_calls as f64) },
    EvalFigure { name: "cost_usd", units: NUMBER, value: |r| Some(r.counts.cost_usd) },
    EvalFigure { name: "p95_latency", units: MILLIS, value: |r| Some(r.latency.p95_ms) },
];

fn per_request(report: &EvalReport, sum: f64) -> Option<f64> {
    let executed = report.counts.right.whole;
    (executed > 0).then(|| sum / executed as f64)
}

impl FromStr for EvalRequirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, comparison, number) =
            bound::split(text).ok_or("write a figure, one of < <= = >= >, and a number: right>=95%")?;
        let figure = FIGURES.iter().find(|figure| figure.name == name).ok_or_else(|| {
            let names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
            let near = did_you_mean(name, names.iter().copied());
            format!("there is no figure {name:?}. {near} The figures are {}", names.join(", "))
        })?;
        let read = |(unit, factor): &(&str, f64)| {
            Some(number.strip_suffix(*unit)?.trim_end().parse::<f64>().ok()? * factor)
        };
        // `needless<5` would always hold: 5 % is meant.
        let is_share = |bound: f64| figure.units != SHARE || number.ends_with('%') || bound <= 1.0;
        let bound = figure.units.iter().find_map(read);
        let bound = bound.filter(|bound| bound.is_finite() && is_share(*bound));
        let unit = figure.units.first().map_or("", |(unit, _)| *unit);
        // `right>=95`: only the unit is missing.
        let meant = number.parse::<f64>().map_or("5", |_| number);
        let bound =
            bound.ok_or_else(|| format!("{number:?} is not a bound of {name}: write {meant}{unit}"))?;
        Ok(Self { figure, comparison, bound, text: text.to_owned() })
    }
}

impl EvalRequirement {
    /// Why a report does not keep it; `None` if it does. A figure that nothing was measured of keeps nothing.
    pub fn missed(&self, report: &EvalReport) -> Option<String> {
        let Some(value) = (self.figure.value)(report) else {
            return Some(format!("{} is required, and there is nothing to measure it of", self.text));
        };
        let is_kept = self.comparison.holds(value, self.bound);
        let shown = match self.text.contains('%') {
            true => format!("{:.2}%", value * 100.0),
            false => format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        };
        (!is_kept).then(|| format!("{} is required; it is {shown}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::report::EvalSubject;

    #[test]
    fn thresholds_are_read_and_kept() {
        let mut report = EvalReport::of(EvalSubject::default(), &[]);
        report.right = 0.955;
        report.counts.wrong_writes.part = 1;
        let missed =
            |text: &str| text.parse::<EvalRequirement>().unwrap().missed(&report).unwrap_or_default();
        assert_eq!(missed("right>=95%"), "");
        assert_eq!(missed(" right > 0.96 "), " right > 0.96  is required; it is 0.955");
        assert_eq!(missed("wrong_writes=0"), "wrong_writes=0 is required; it is 1");
        assert!(missed("scene_recall>=90%").contains("nothing to measure"));
    }

    #[test]
    fn other_words_are_no_threshold() {
        for (text, why) in [
            ("right", "write a figure"),
            ("rigth>=1", "did you mean \"right\"?"),
            ("right>=much", "write 5%"),
            ("right>=95", "write 95%"),
            ("p95_latency<5%", "write 5ms"),
            ("right=>1", "is not a bound"),
        ] {
            let error = text.parse::<EvalRequirement>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
