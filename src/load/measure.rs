//! The measurements of a load test, by name: for thresholds and comparisons.

use std::collections::BTreeMap;

use super::latency::LatencyPercentiles;
use super::report::{LoadUsage, RequestCounts};

/// Measured values by the names of their measures. What was not measured is absent.
pub type MeasuredValues = BTreeMap<String, f64>;

/// The unit of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureUnit {
    /// Milliseconds.
    Millis,
    /// A share of all, 0 to 1.
    Share,
    /// A number of things.
    Count,
    /// Things a second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// US dollars.
    Usd,
}

/// Which direction of a measure is a regression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorseWhen {
    /// Higher is worse.
    Higher,
    /// Lower is worse.
    Lower,
    /// Neither: it depends on the load, or on single requests.
    Neither,
}

/// Something that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadMeasure {
    /// Its name, such as `p99_overhead`.
    pub name: String,
    /// Its unit.
    pub unit: MeasureUnit,
    /// Which direction is a regression.
    pub worse: WorseWhen,
}

/// Durations of which percentiles are measured.
const FAMILIES: [&str; 5] = ["latency", "overhead", "server_overhead", "first_token", "lag"];
const PERCENTILES: [&str; 7] = ["mean", "p50", "p90", "p95", "p99", "p999", "max"];
/// How many durations each percentile needs: of fewer, it is their maximum or close to it.
pub(super) const MIN_COUNTS: [u64; 7] = [1, 1, 10, 20, 100, 1000, 1];

/// All other measures.
const SINGLE: [(&str, MeasureUnit, WorseWhen); 26] = {
    use MeasureUnit::{Bytes, Count, Millis, PerSecond, Share, Usd};
    use WorseWhen::{Higher, Lower, Neither};
    [
        ("sent", Count, Neither),
        ("answered", Count, Neither),
        ("errors", Count, Neither),
        ("shed", Count, Neither),
        ("shed_without_retry_after", Count, Higher),
        ("not_sent", Count, Neither),
        ("replayed", Count, Neither),
        ("lost", Count, Higher),
        ("duplicates", Count, Higher),
        ("waiting", Count, Neither),
        ("error_rate", Share, Higher),
        ("shed_rate", Share, Higher),
        ("not_sent_rate", Share, Higher),
        ("partial_rate", Share, Higher),
        ("needs_input_rate", Share, Neither),
        ("waiting_rate", Share, Neither),
        ("cache_hit_rate", Share, Lower),
        ("throughput", PerSecond, Lower),
        ("llm_calls_per_answer", Count, Neither),
        ("tokens_per_answer", Count, Neither),
        ("cost", Usd, Neither),
        ("cost_per_answer", Usd, Higher),
        ("server_memory_max", Bytes, Higher),
        ("server_memory_growth", Bytes, Higher),
        ("server_cpu_per_answer", Millis, Higher),
        ("loader_cpu_per_request", Millis, Neither),
    ]
};

/// All measures, in the order in which they are listed.
pub fn measures() -> Vec<LoadMeasure> {
    let of = |family: &'static str| {
        PERCENTILES.map(|percentile| LoadMeasure {
            name: format!("{percentile}_{family}"),
            unit: MeasureUnit::Millis,
            // The lag is the loader's; single requests and means vary too much.
            worse: match (family, percentile) {
                ("latency" | "overhead" | "server_overhead" | "first_token", "p50" | "p99") => {
                    WorseWhen::Higher
                }
                _ => WorseWhen::Neither,
            },
        })
    };
    let single = SINGLE.map(|(name, unit, worse)| LoadMeasure { name: name.to_owned(), unit, worse });
    FAMILIES.into_iter().flat_map(of).chain(single).collect()
}

/// Returns whether a measure exists only after the load: the ends of runs, and what server and loader used.
pub fn is_final(name: &str) -> bool {
    matches!(name, "lost" | "duplicates" | "waiting" | "cache_hit_rate")
        || name.starts_with("server_memory")
        || name.starts_with("server_cpu")
        || name.starts_with("loader_")
}

/// Returns whether only answer documents have a measure. They are read after the load where answers are streamed or of the
/// OpenAI protocol.
pub fn is_of_documents(name: &str) -> bool {
    name.starts_with("cost") || name.ends_with("overhead") || name == "llm_calls_per_answer"
}

/// How many durations a percentile takes to be measured; `None` for another measure.
pub fn min_durations(name: &str) -> Option<u64> {
    let (percentile, family) = name.split_once('_')?;
    let at = PERCENTILES.iter().position(|known| *known == percentile)?;
    FAMILIES.contains(&family).then_some(MIN_COUNTS[at])
}

/// The measure of a name.
pub fn measure(name: &str) -> Option<LoadMeasure> {
    measures().into_iter().find(|measure| measure.name == name)
}

/// The names of all measures, in short: the percentiles of each kind of duration, and the others.
pub fn measure_names() -> String {
    let others: Vec<&str> = SINGLE.iter().map(|(name, ..)| *name).collect();
    format!("{{{}}}_{{{}}}, {}", PERCENTILES.join(","), FAMILIES.join(","), others.join(", "))
}

impl MeasureUnit {
    /// A value with its unit, for people: `12.3 ms`, `0.10 %`, `1.5 MB`.
    pub fn show(self, value: f64) -> String {
        match self {
            MeasureUnit::Millis if value.abs() >= 10_000.0 => format!("{:.2} s", value / 1000.0),
            MeasureUnit::Millis if value.abs() >= 100.0 => format!("{value:.0} ms"),
            MeasureUnit::Millis => format!("{value:.1} ms"),
            MeasureUnit::Share => format!("{:.2} %", value * 100.0),
            MeasureUnit::Count => format!("{}", (value * 10.0).round() / 10.0),
            MeasureUnit::PerSecond => format!("{value:.1}"),
            MeasureUnit::Bytes if value.abs() >= 1e9 => format!("{:.2} GB", value / 1e9),
            MeasureUnit::Bytes => format!("{:.1} MB", value / 1e6),
            MeasureUnit::Usd if value.abs() >= 1.0 => format!("${value:.2}"),
            MeasureUnit::Usd => format!("${}", (value * 1e6).round() / 1e6),
        }
    }

    /// A difference below which two values count as equal.
    pub fn noise(self) -> f64 {
        match self {
            MeasureUnit::Millis => 1.0,
            MeasureUnit::Share => 0.001,
            MeasureUnit::Count | MeasureUnit::PerSecond => 0.0,
            MeasureUnit::Bytes => 1e6,
            MeasureUnit::Usd => 1e-6,
        }
    }
}

/// Adds the percentiles of a kind of duration, those for which there are enough.
pub fn add_percentiles(to: &mut MeasuredValues, family: &str, of: &LatencyPercentiles) {
    let values = [of.mean_ms, of.p50_ms, of.p90_ms, of.p95_ms, of.p99_ms, of.p999_ms, of.max_ms];
    for ((percentile, min), value) in PERCENTILES.into_iter().zip(MIN_COUNTS).zip(values) {
        if of.count >= min {
            to.insert(format!("{percentile}_{family}"), value);
        }
    }
}

/// Adds what follows from the counts and the usage.
pub fn add_counts(to: &mut MeasuredValues, counts: &RequestCounts, usage: &LoadUsage) {
    let mut add = |name: &str, value: f64| to.insert(name.to_owned(), value);
    for (name, count) in [
        ("sent", counts.sent),
        ("answered", counts.answered),
        ("errors", counts.errors),
        ("shed", counts.shed),
        ("shed_without_retry_after", counts.shed_without_retry_after),
        ("not_sent", counts.not_sent),
        ("replayed", counts.replayed),
    ] {
        add(name, count as f64);
    }
    let ended = counts.answered + counts.errors + counts.shed;
    if ended > 0 {
        add("shed_rate", counts.shed as f64 / ended as f64);
    }
    // What was shed does not make the errors of what was not look fewer.
    if counts.answered + counts.errors > 0 {
        add("error_rate", counts.errors as f64 / (counts.answered + counts.errors) as f64);
    }
    let due = counts.sent + counts.not_sent;
    if due > 0 {
        add("not_sent_rate", counts.not_sent as f64 / due as f64);
    }
    if let Some(cost) = usage.cost_usd {
        add("cost", cost);
    }
    if counts.answered > 0 {
        let each = |total: f64| total / counts.answered as f64;
        if let Some(cost) = usage.cost_usd {
            add("cost_per_answer", each(cost));
        }
        if usage.llm_calls > 0 {
            add("llm_calls_per_answer", each(usage.llm_calls as f64));
        }
        add("tokens_per_answer", each((usage.input_tokens + usage.output_tokens) as f64));
    }
}

/// Adds the shares of answers whose runs did not complete.
pub fn add_statuses(to: &mut MeasuredValues, statuses: &BTreeMap<String, u64>, answered: u64) {
    for status in ["partial", "needs_input", "waiting"].iter().filter(|_| answered > 0) {
        let count = statuses.get(*status).copied().unwrap_or_default();
        to.insert(format!("{status}_rate"), count as f64 / answered as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_listed() {
        let all = measures();
        let names: std::collections::BTreeSet<&str> =
            all.iter().map(|measure| measure.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        assert_eq!(measure("p99_overhead").map(|measure| measure.unit), Some(MeasureUnit::Millis));
        assert!(measure_names().contains("p999") && measure_names().contains("error_rate"));
    }

    #[test]
    fn values_have_their_units() {
        let shown = [
            MeasureUnit::Millis.show(12.34),
            MeasureUnit::Millis.show(61_000.0),
            MeasureUnit::Share.show(0.0012),
            MeasureUnit::Bytes.show(1.5e6),
            MeasureUnit::Usd.show(0.0123456),
            MeasureUnit::Count.show(12.0),
        ];
        assert_eq!(shown, ["12.3 ms", "61.00 s", "0.12 %", "1.5 MB", "$0.012346", "12"]);
    }
}
