//! Requirements on what was measured: `p99_overhead<50ms`, `error_rate<0.1%`, `lost=0`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::LoadFault;
use super::measure::{MeasureUnit, MeasuredValues, measure, measure_names, measures, min_durations};
use crate::bound::{self, BoundComparison};
use crate::nearest::did_you_mean;

/// A requirement: a measure, a comparison and a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    measure: String,
    unit: MeasureUnit,
    comparison: BoundComparison,
    /// In the unit of the measure.
    bound: f64,
}

/// A requirement, with the value that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckedThreshold {
    /// The requirement, as it is written.
    pub threshold: String,
    /// The measured value in the measure's own unit; absent if it was not measured.
    pub value: Option<f64>,
    /// The value with its unit, for people.
    pub shown: String,
    /// Whether it holds. What was not measured does not.
    pub holds: bool,
}

impl Threshold {
    /// The name of its measure.
    pub fn measure(&self) -> &str {
        &self.measure
    }

    /// Compares it with what was measured.
    pub fn check(&self, values: &MeasuredValues) -> CheckedThreshold {
        let value = values.get(&self.measure).copied();
        CheckedThreshold {
            threshold: self.to_string(),
            value,
            shown: value.map_or_else(|| self.unmeasured(), |value| self.unit.show(value)),
            holds: value.is_some_and(|value| self.comparison.holds(value, self.bound)),
        }
    }

    fn unmeasured(&self) -> String {
        match min_durations(&self.measure) {
            Some(min @ 2..) => format!("not measured: fewer than {min} durations"),
            _ => "not measured".to_owned(),
        }
    }
}

impl FromStr for Threshold {
    type Err = LoadFault;

    fn from_str(text: &str) -> Result<Self, LoadFault> {
        let shown: String = text.chars().take(80).collect();
        let fault = |why: String| LoadFault::new("load.require", format!("`{shown}`: {why}"));
        let (name, comparison, bound) = bound::split(text).ok_or_else(|| {
            fault("write a measure, one of < <= > >= =, and a bound, such as p99_overhead<50ms".to_owned())
        })?;
        let measure = measure(name).ok_or_else(|| {
            let all = measures();
            let near = did_you_mean(name, all.iter().map(|measure| measure.name.as_str()));
            let near = if near.is_empty() { near } else { format!(" {near}") };
            fault(format!("there is no measure `{name}`.{near} The measures are {}", measure_names()))
        })?;
        let bound = read_bound(bound, measure.unit)
            .ok_or_else(|| fault(format!("`{}` is not a bound; write {}", bound, example(measure.unit))))?;
        Ok(Self { measure: measure.name, unit: measure.unit, comparison, bound })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, bound) = (self.comparison.sign(), self.bound);
        let bound = match self.unit {
            MeasureUnit::Millis => format!("{bound}ms"),
            // Rounded: a hundredth is no exact binary number.
            MeasureUnit::Share => format!("{}%", (bound * 1e12).round() / 1e10),
            MeasureUnit::Bytes => format!("{bound}B"),
            MeasureUnit::Usd => format!("${bound}"),
            MeasureUnit::Count | MeasureUnit::PerSecond => bound.to_string(),
        };
        write!(f, "{}{sign}{bound}", self.measure)
    }
}

/// The factors of the units in which a bound can be given.
fn factors(unit: MeasureUnit) -> &'static [(&'static str, f64)] {
    match unit {
        MeasureUnit::Millis => &[("us", 1e-3), ("µs", 1e-3), ("ms", 1.0), ("min", 60_000.0), ("s", 1e3)],
        MeasureUnit::Share => &[("%", 0.01), ("", 1.0)],
        MeasureUnit::Count => &[("", 1.0)],
        MeasureUnit::PerSecond => &[("/s", 1.0), ("", 1.0)],
        MeasureUnit::Bytes => &[
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("B", 1.0),
        ],
        MeasureUnit::Usd => &[("", 1.0)],
    }
}

/// How a bound of a unit is written.
fn example(unit: MeasureUnit) -> &'static str {
    match unit {
        MeasureUnit::Millis => "a duration such as 800us, 50ms or 1.5s",
        MeasureUnit::Share => "a share such as 0.1%",
        MeasureUnit::Count => "a number such as 0",
        MeasureUnit::PerSecond => "a number a second such as 100",
        MeasureUnit::Bytes => "a size such as 40kB or 512MiB",
        MeasureUnit::Usd => "US dollars such as $0.01",
    }
}

/// A bound in the unit of its measure. It is finite and not negative.
fn read_bound(text: &str, unit: MeasureUnit) -> Option<f64> {
    let text = if unit == MeasureUnit::Usd { text.strip_prefix('$').unwrap_or(text) } else { text };
    let number = |text: &str| {
        let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        text.parse::<f64>().ok().filter(|value| is_number && value.is_finite())
    };
    factors(unit)
        .iter()
        .find_map(|(suffix, factor)| Some(number(text.strip_suffix(suffix)?.trim_end())? * factor))
        // `error_rate<5` would always hold: 5 % is meant.
        .filter(|bound| unit != MeasureUnit::Share || text.ends_with('%') || *bound <= 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Threshold {
        text.parse().unwrap_or_else(|fault| panic!("{fault}"))
    }

    #[test]
    fn bounds_are_compared_in_the_unit_of_the_measure() {
        let values = MeasuredValues::from([
            ("p99_overhead".to_owned(), 49.9),
            ("error_rate".to_owned(), 0.001),
            ("lost".to_owned(), 0.0),
            ("server_memory_max".to_owned(), 41e6),
        ]);
        let holds = |text: &str| of(text).check(&values).holds;
        assert!(holds("p99_overhead<50ms") && holds("p99_overhead < 0.05 s") && !holds("p99_overhead<800us"));
        assert!(holds("error_rate<=0.1%") && !holds("error_rate<0.1%") && holds("error_rate<0.5"));
        assert!(holds("lost=0") && holds("server_memory_max<40MiB") && !holds("server_memory_max>=42MB"));
        let unmeasured = of("p99_first_token<1s").check(&values);
        let without_percent = "error_rate<5".parse::<Threshold>().unwrap_err().to_string();
        assert!(without_percent.ends_with("write a share such as 0.1%"), "{without_percent}");
        assert_eq!(
            (unmeasured.holds, unmeasured.shown.as_str()),
            (false, "not measured: fewer than 100 durations")
        );
    }

    #[test]
    fn faults_name_the_text_and_the_remedy() {
        let faults =
            ["p99_overhed<50ms", "p99_overhead", "error_rate<<1%", "p50_latency<50", "lost<-1", "cost<1%"]
                .map(|text| text.parse::<Threshold>().unwrap_err().to_string());
        insta::assert_snapshot!(faults.join("\n"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn threshold_is_read_as_it_is_written(at in 0_usize..61, sign in 0_usize..5, bound in 0_u32..1_000_000) {
            let all = measures();
            let measure = &all[at % all.len()];
            let bound = f64::from(bound) / 8.0;
            let given = Threshold { measure: measure.name.clone(), unit: measure.unit, comparison: bound::COMPARISONS[sign].1, bound };
            let read = of(&given.to_string());
            prop_assert!((read.bound - bound).abs() <= bound * 1e-9, "{given} {read}");
            prop_assert_eq!(Threshold { bound, ..read }, given);
        }

        #[test]
        fn any_text_is_a_threshold_or_a_fault(text in "\\PC{0,40}", sign in "[<>=]{0,2}", bound in "[0-9a-zµ$%. -]{0,8}") {
            for text in [text.clone(), format!("p99_latency{sign}{bound}"), format!("{text}{sign}{bound}")] {
                if let Err(fault) = text.parse::<Threshold>() {
                    prop_assert_eq!(fault.code, "load.require");
                }
            }
        }
    }
}
