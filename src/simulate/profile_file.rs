//! Reads a profile from TOML. All faults are reported at once, with their lines.

use std::path::Path;

use serde_json::Value;
use strum::VariantArray;

use super::fate::FaultKind;
use super::latency::{LatencyDistribution, LatencyShape, MAX_REPLY_MS};
use super::profile::{Profile, ScriptedFault};
use super::question;
use crate::run::Purpose;
use crate::scene::{FaultReport, Located, Presence, SceneFault, TableReader, read_toml};

/// Maximum number of entries of a script.
const MAX_SCRIPT: usize = 1_000;

const SHAPES: [(&str, LatencyShape); 3] = [
    ("fixed", LatencyShape::Fixed),
    ("normal", LatencyShape::Normal),
    ("lognormal", LatencyShape::LogNormal),
];

impl Profile {
    /// Reads the profile of a file; keys that are absent have their defaults.
    ///
    /// # Errors
    /// Everything that is wrong with it: `profile.file`, `profile.syntax`, `profile.unknown_key`, `profile.wrong_type`,
    /// `profile.invalid_value`, `profile.bound`.
    pub fn of_file(path: &Path) -> Result<Self, Vec<SceneFault>> {
        let report = FaultReport::of("profile", path.display().to_string());
        match std::fs::read_to_string(path) {
            Ok(text) => Self::read(&text, report),
            Err(error) => {
                let message = format!("the file cannot be read: {error}");
                report.error(
                    None,
                    "file",
                    message,
                    "give the path of a TOML file, such as config/simulated.toml",
                );
                Err(report.into_faults())
            }
        }
    }

    /// Reads a profile; `report` gets the faults.
    pub(super) fn read(text: &str, report: FaultReport) -> Result<Self, Vec<SceneFault>> {
        let mut profile = Self::default();
        read_toml(text, &report, |fields| profile.fill(fields));
        if report.has_errors() { Err(report.into_faults()) } else { Ok(profile) }
    }

    fn fill(&mut self, mut fields: TableReader<'_>) {
        if let Some(seed) = fields.number("seed") {
            self.seed = seed.value;
        }
        if let Some(table) = fields.table("server") {
            self.fill_server(table);
        }
        if let Some(mut table) = fields.table("latency") {
            for (key, latency) in [("first_token", &mut self.first_token), ("per_token", &mut self.per_token)]
            {
                if let Some(inner) = table.table(key) {
                    *latency = latency_of(inner);
                }
            }
            table.reject_unknown_keys();
        }
        if let Some(mut table) = fields.table("stream") {
            whole(&mut table, "chunks", 4..=20, &mut self.chunks);
            table.reject_unknown_keys();
        }
        if let Some(mut table) = fields.table("usage") {
            if let Some(reported) = table.flag("reported") {
                self.usage_reported = reported.value;
            }
            decimal(&mut table, "cached_share", 1.0, &mut self.cached_share);
            table.reject_unknown_keys();
        }
        if let Some(table) = fields.table("faults") {
            self.fill_faults(table);
        }
        let script = fields.tables("script");
        if script.len() > MAX_SCRIPT {
            let message = format!("`script` has {} entries", script.len());
            let remedy = format!("keep at most {MAX_SCRIPT}");
            fields.report().error(fields.line_of("script"), "bound", message, remedy);
        }
        self.script = script.into_iter().filter_map(scripted).collect();
        fields.reject_unknown_keys();
    }

    fn fill_server(&mut self, mut table: TableReader<'_>) {
        whole(&mut table, "max_in_flight", 1..=1_000_000, &mut self.max_in_flight);
        whole(&mut table, "max_body_bytes", 1_024..=64 * 1_024 * 1_024, &mut self.max_body_bytes);
        millis(&mut table, "drain_ms", &mut self.drain_ms);
        table.reject_unknown_keys();
    }

    fn fill_faults(&mut self, mut table: TableReader<'_>) {
        for fault in FaultKind::all() {
            let mut rate = 0.0;
            decimal(&mut table, fault.name(), 1.0, &mut rate);
            self.faults.set_rate(fault, rate);
        }
        if self.faults.sum() > 1.0 + 1e-9 {
            let message = format!("the rates of `faults` add up to {:.3}", self.faults.sum());
            table.report().error(
                table.line(),
                "bound",
                message,
                "a request meets one fault: lower them to 1 together",
            );
        }
        let mut seconds = self.retry_after_s;
        bounded(&mut table, "retry_after_s", 0..=86_400, &mut seconds);
        self.retry_after_s = seconds;
        millis(&mut table, "timeout_ms", &mut self.timeout_ms);
        millis(&mut table, "drip_ms", &mut self.drip_ms);
        table.reject_unknown_keys();
    }
}

fn latency_of(mut table: TableReader<'_>) -> LatencyDistribution {
    let mut latency = LatencyDistribution::default();
    let shape = table.keyword("shape", Presence::Required, &SHAPES);
    decimal(&mut table, "ms", MAX_REPLY_MS, &mut latency.ms);
    decimal(&mut table, "spread", MAX_REPLY_MS, &mut latency.spread);
    if let Some(Located { value, .. }) = shape {
        latency.shape = value;
        if value == LatencyShape::Fixed && table.has("spread") {
            let remedy = "remove it, or write shape = \"normal\" or \"lognormal\"";
            let line = table.line_of("spread");
            table.report().error(line, "invalid_value", "a fixed time has no `spread`", remedy);
        }
        if value == LatencyShape::LogNormal && latency.spread > 10.0 {
            let message = format!("`spread` is {}, which is e to that power of the median", latency.spread);
            table.report().error(
                table.line_of("spread"),
                "bound",
                message,
                "use a spread such as 0.5, at most 10",
            );
        }
    }
    table.reject_unknown_keys();
    latency
}

/// An entry of the script; `None` if its fault is unknown, which was reported.
fn scripted(mut table: TableReader<'_>) -> Option<ScriptedFault> {
    let mut kinds: Vec<(&str, Option<Purpose>)> =
        Purpose::VARIANTS.iter().map(|purpose| (purpose.name(), Some(*purpose))).collect();
    kinds.push((question::OTHER, None));
    let mut faults: Vec<(&str, Option<FaultKind>)> =
        FaultKind::all().map(|fault| (fault.name(), Some(fault))).collect();
    faults.push(("none", None));
    let question = table.keyword("question", Presence::Optional, &kinds);
    let contains = table.string("contains", Presence::Optional);
    let times = times(&mut table);
    let fault = table.keyword("fault", Presence::Required, &faults);
    table.reject_unknown_keys();
    Some(ScriptedFault {
        question: question.map(|question| question.value),
        contains: contains.map(|text| text.value).unwrap_or_default(),
        times,
        fault: fault?.value,
    })
}

fn times(table: &mut TableReader<'_>) -> Vec<u64> {
    let Some((given, _)) = table.json("times") else { return Vec::new() };
    let list = given.value.as_array().filter(|list| !list.is_empty() && list.len() <= MAX_SCRIPT);
    let numbers = |list: &Vec<Value>| list.iter().map(|n| n.as_u64().filter(|n| *n > 0)).collect();
    match list.and_then(numbers) {
        Some(times) => times,
        None => {
            let message = format!("`times` is {}", given.value);
            let remedy = "write a list of whole numbers from 1, such as [1, 2]; omit it for every time";
            table.report().error(given.line, "invalid_value", message, remedy);
            Vec::new()
        }
    }
}

/// Reads a number between bounds; faults are reported.
fn bounded(
    table: &mut TableReader<'_>,
    key: &'static str,
    bounds: std::ops::RangeInclusive<u64>,
    to: &mut u64,
) {
    let Some(Located { value, line }) = table.number(key) else { return };
    if bounds.contains(&value) {
        *to = value;
        return;
    }
    let remedy = format!("use a number from {} to {}", bounds.start(), bounds.end());
    table.report().error(line, "bound", format!("`{key}` is {value}"), remedy);
}

fn whole(
    table: &mut TableReader<'_>,
    key: &'static str,
    bounds: std::ops::RangeInclusive<u64>,
    to: &mut usize,
) {
    let mut read = *to as u64;
    bounded(table, key, bounds, &mut read);
    // The bounds are far below the largest number.
    *to = usize::try_from(read).unwrap_or(*to);
}

/// Reads milliseconds: at most ten minutes.
fn millis(table: &mut TableReader<'_>, key: &'static str, to: &mut u64) {
    bounded(table, key, 0..=600_000, to);
}

/// Reads a number from 0 to `max`; faults are reported.
fn decimal(table: &mut TableReader<'_>, key: &'static str, max: f64, to: &mut f64) {
    let Some(Located { value, line }) = table.decimal(key) else { return };
    if (0.0..=max).contains(&value) {
        *to = value;
        return;
    }
    table.report().error(
        line,
        "bound",
        format!("`{key}` is {value}"),
        format!("use a number from 0 to {max}"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Profile, Vec<SceneFault>> {
        Profile::read(text, FaultReport::of("profile", "p.toml"))
    }

    #[test]
    fn shipped_profile_is_read_as_its_comments_say() {
        let shipped = read(include_str!("../../config/simulated.toml")).unwrap();
        assert_eq!(
            shipped.first_token,
            LatencyDistribution { shape: LatencyShape::LogNormal, ms: 400.0, spread: 0.5 }
        );
        assert_eq!(
            shipped.per_token,
            LatencyDistribution { shape: LatencyShape::Normal, ms: 8.0, spread: 2.0 }
        );
        assert!((0.01..0.1).contains(&shipped.faults.sum()), "{:?}", shipped.faults);
        // What it says to be the default is the default.
        let bare = Profile {
            first_token: LatencyDistribution::default(),
            per_token: LatencyDistribution::default(),
            cached_share: 0.0,
            faults: super::super::profile::FaultRates::default(),
            script: Vec::new(),
            ..shipped
        };
        assert_eq!(bare, Profile::default());
    }

    #[test]
    fn everything_wrong_with_a_profile_is_reported_at_once_with_line_and_remedy() {
        let faults = read(
            r#"
sead = 4
[server]
max_in_flight = 0
max_body_bytes = "8 MiB"
[latency.first_token]
shape = "log-normal"
ms = 400
[latency.per_token]
shape = "fixed"
ms = -1
spread = 2
[stream]
chunks = 21
[faults]
rate_limited = 0.7
cut_stream = 0.6
slow_drips = 0.1
[[script]]
question = "planning"
times = [0]
fault = "rate_limit"
[[script]]
contains = "Rome"
"#,
        )
        .unwrap_err();
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(text.join("\n"));
        let broken = read("seed = \n").unwrap_err();
        assert_eq!((broken[0].code.as_str(), broken[0].line), ("profile.syntax", Some(1)));
        let missing = Profile::of_file(Path::new("no/such/file.toml")).unwrap_err();
        assert_eq!((missing.len(), missing[0].code.as_str()), (1, "profile.file"));
    }
}
