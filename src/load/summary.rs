//! The results of a load test for people: a text of at most 80 columns.

use super::compare::LoadComparison;
use super::latency::LatencyPercentiles;
use super::measure::{MIN_COUNTS, MeasureUnit};
use super::report::{LoadEnd, LoadReport};

/// Columns of the text.
const WIDTH: usize = 80;
/// Columns of labels.
const LABEL: usize = 12;
/// A 99th percentile of the lag above which the load test says that it was late itself.
const LATE_MS: f64 = 50.0;

/// The results, in the order in which they are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadSummary {
    /// The requests that were sent, and where.
    pub head: String,
    /// Labels with their figures.
    pub figures: Vec<(&'static str, Vec<String>)>,
    /// Kinds of durations with their percentiles.
    pub durations: Vec<(&'static str, LatencyPercentiles)>,
}

impl LoadSummary {
    /// From a report.
    pub fn of(report: &LoadReport) -> Self {
        let settings = &report.settings;
        let load = match settings.rate {
            Some(rate) => format!("open loop, {rate} requests/s"),
            None if settings.sessions == 1 => "closed loop, 1 conversation at once".to_owned(),
            None => format!("closed loop, {} conversations at once", settings.sessions),
        };
        let head = format!(
            "{} ({}), {load}, {:.1} s{}",
            settings.url,
            settings.protocol,
            report.seconds,
            ending(report.ended)
        );
        let mut figures = vec![("requests", requests(report))];
        for (label, counts) in [("answers", &report.statuses), ("refused", &report.codes)] {
            if !counts.is_empty() {
                figures.push((label, counts.iter().map(|(name, count)| format!("{name} {count}")).collect()));
            }
        }
        if report.requests.are_denied(1) {
            let what = "every request was refused for its key (401 or 403)".to_owned();
            let remedy = "set PROSCENIUM_API_KEY to a key that may send requests, or give --keys".to_owned();
            figures.push(("keys", vec![what, remedy]));
        }
        figures.push(("models", models(report)));
        figures.push(("runs", runs(report)));
        figures.push(("server", server(report)));
        if let Some(loader) = report.loader {
            let cores = loader.cpu_ms / 1000.0 / report.seconds.max(0.001);
            let mut used = vec![
                format!("processor {:.2} s ({cores:.2} cores)", loader.cpu_ms / 1000.0),
                format!("memory at most {:.1} MiB", loader.peak_mib),
            ];
            if report.lag.is_some_and(|lag| lag.p99_ms > LATE_MS) {
                used.push("it sent late: the latencies are also its own".to_owned());
            }
            figures.push(("loader", used));
        }
        let latency = if settings.rate.is_some() { "latency" } else { "service" };
        let durations = [
            (latency, report.latency),
            ("first text", report.first_token),
            ("overhead", report.overhead),
            ("in server", report.server_overhead),
            ("sent late", report.lag.filter(|_| settings.rate.is_some())),
        ];
        let durations = durations.into_iter().filter_map(|(label, of)| Some((label, of?))).collect();
        Self { head, figures, durations }
    }
}

fn ending(ended: LoadEnd) -> &'static str {
    match ended {
        LoadEnd::Duration | LoadEnd::Requests => "",
        LoadEnd::Aborted => ", aborted by a threshold",
        LoadEnd::Denied => ", ended: no request was permitted",
        LoadEnd::Interrupted => ", interrupted",
        LoadEnd::Failed => ", failed by a defect of the load test",
    }
}

fn requests(report: &LoadReport) -> Vec<String> {
    let counts = &report.requests;
    let rate = report.measures.get("throughput").copied().unwrap_or_default();
    let share = |name: &str| {
        let share = report.measures.get(name).copied().filter(|share| *share > 0.0);
        share.map_or_else(String::new, |share| format!(" ({})", MeasureUnit::Share.show(share)))
    };
    let mut all = vec![
        format!("{} sent", counts.sent),
        format!("{} answered ({rate:.1}/s)", counts.answered),
        format!("{} failed{}", counts.errors, share("error_rate")),
        format!("{} shed{}", counts.shed, share("shed_rate")),
    ];
    if counts.shed_without_retry_after > 0 {
        all.push(format!("{} of them without Retry-After", counts.shed_without_retry_after));
    }
    if report.settings.rate.is_some() {
        all.push(format!("{} due and not sent{}", counts.not_sent, share("not_sent_rate")));
    }
    if counts.not_sent > 0 {
        all.push("the durations are only those of requests that were sent".to_owned());
    }
    if counts.replayed > 0 {
        all.push(format!("{} answered with an earlier answer", counts.replayed));
    }
    all
}

fn models(report: &LoadReport) -> Vec<String> {
    let usage = &report.usage;
    let mut all = vec![
        format!("{} calls", usage.llm_calls),
        format!("{} tokens in ({} cached)", usage.input_tokens, usage.cached_input_tokens),
        format!("{} out", usage.output_tokens),
    ];
    if let Some(cost) = usage.cost_usd {
        let each = report.measures.get("cost_per_answer").copied().unwrap_or_default();
        all.push(format!("{} ({} an answer)", MeasureUnit::Usd.show(cost), MeasureUnit::Usd.show(each)));
    }
    all
}

fn runs(report: &LoadReport) -> Vec<String> {
    let Some(ends) = &report.ends else {
        return vec![format!("not checked: {}", report.ends_unchecked.as_deref().unwrap_or("unknown"))];
    };
    let mut all = vec![
        format!("{} accepted", ends.accepted),
        format!("{} ended", ends.ended),
        format!("{} waiting", ends.waiting),
        format!("{} lost", ends.lost),
        format!("{} duplicates", ends.duplicates),
    ];
    if ends.unheard > 0 {
        all.push(format!("{} accepted without a reply", ends.unheard));
    }
    if ends.unchecked > 0 {
        all.push(format!("{} not checked (more than a million)", ends.unchecked));
    }
    let named = [("lost", &ends.lost_runs), ("duplicate", &ends.duplicate_runs)];
    all.extend(named.into_iter().flat_map(|(what, ids)| ids.iter().map(move |id| format!("{what}: {id}"))));
    all
}

fn server(report: &LoadReport) -> Vec<String> {
    let server = &report.server;
    if let Some(why) = &server.unread {
        let mut all = vec![format!("metrics not read: {why}")];
        if matches!(why.as_str(), "HTTP 401" | "HTTP 403") {
            let key = "they need a key with the role approver (the first of --keys)";
            all.extend([key.to_owned(), "or server.open_metrics = true".to_owned()]);
        }
        return all;
    }
    let bytes = |value: f64| MeasureUnit::Bytes.show(value);
    let memory = match (server.memory_before_bytes, server.memory_max_bytes, server.memory_after_bytes) {
        (Some(before), Some(peak), Some(after)) => {
            format!("memory {} to {}, at most {}", bytes(before), bytes(after), bytes(peak))
        }
        _ => "memory not exported".to_owned(),
    };
    let cpu = server.cpu_seconds.map_or_else(
        || "processor not exported".to_owned(),
        |seconds| format!("processor {seconds:.2} s ({:.2} cores)", seconds / report.seconds.max(0.001)),
    );
    let cache = match report.measures.get("cache_hit_rate") {
        Some(share) => format!("cache hits {}", MeasureUnit::Share.show(*share)),
        None => "no cache lookups".to_owned(),
    };
    let mut all = vec![memory, cpu, cache];
    if server.restarted {
        all.push("it was started again during the load".to_owned());
    }
    all
}

/// The report as text.
pub fn text(report: &LoadReport) -> String {
    let summary = LoadSummary::of(report);
    let mut out = format!("{}\n\n", summary.head);
    for (label, figures) in &summary.figures {
        push_figures(&mut out, label, figures);
    }
    push_durations(&mut out, &summary.durations);
    push_keys(&mut out, report);
    if !report.thresholds.is_empty() {
        out.push('\n');
    }
    for threshold in &report.thresholds {
        let verdict = if threshold.holds { "holds" } else { "BROKEN" };
        out.push_str(&format!("{verdict:<LABEL$}{:<34}{}\n", threshold.threshold, threshold.shown));
    }
    out
}

/// A comparison as text. `tolerance` marks what is worse by more.
pub fn comparison_text(comparison: &LoadComparison, tolerance: Option<f64>) -> String {
    let mut out = String::from("Compared with the earlier report:\n");
    for difference in &comparison.settings {
        out.push_str(&format!("  the loads differ: {difference}\n"));
    }
    out.push_str(&format!("{:<26}{:>12}{:>12}  {}\n", "measure", "earlier", "now", "change"));
    let regressed: Vec<&str> = match tolerance {
        Some(share) => comparison.regressions(share).into_iter().map(|row| row.name.as_str()).collect(),
        None => Vec::new(),
    };
    for row in &comparison.rows {
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| row.unit.show(value));
        let mark = if regressed.contains(&row.name.as_str()) { " REGRESSION" } else { "" };
        let line = format!(
            "{:<26}{:>12}{:>12}  {}{mark}",
            row.name,
            shown(row.earlier),
            shown(row.now),
            row.change()
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// A label and its figures, in lines of at most [`WIDTH`] columns.
fn push_figures(out: &mut String, label: &str, figures: &[String]) {
    let mut line = format!("{label:<LABEL$}");
    for (at, figure) in figures.iter().enumerate() {
        let figure = if at + 1 < figures.len() { format!("{figure}, ") } else { figure.clone() };
        let is_full = line.chars().count() + figure.trim_end().chars().count() > WIDTH;
        if is_full && line.trim().len() > label.len() {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(LABEL);
        }
        line.push_str(&figure);
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

fn push_durations(out: &mut String, durations: &[(&'static str, LatencyPercentiles)]) {
    if durations.is_empty() {
        return;
    }
    let heads = ["mean", "p50", "p90", "p99", "p99.9", "max"];
    out.push_str(&format!("\n{:<LABEL$}", "duration"));
    heads.iter().for_each(|head| out.push_str(&format!("{head:>11}")));
    out.push('\n');
    for (label, of) in durations {
        out.push_str(&format!("{label:<LABEL$}"));
        let [mean, p50, p90, _, p99, p999, max] = shown_percentiles(of);
        for shown in [mean, p50, p90, p99, p999, max] {
            out.push_str(&format!("{shown:>11}"));
        }
        out.push('\n');
    }
}

/// The mean, the percentiles 50, 90, 95, 99 and 99.9, and the maximum of durations. Of fewer than a percentile takes, it is
/// left out: it would be their maximum.
pub(super) fn shown_percentiles(of: &LatencyPercentiles) -> [String; 7] {
    let values = [of.mean_ms, of.p50_ms, of.p90_ms, of.p95_ms, of.p99_ms, of.p999_ms, of.max_ms];
    let mut shown = values.map(|value| MeasureUnit::Millis.show(value));
    for (shown, min) in shown.iter_mut().zip(MIN_COUNTS) {
        if of.count < min {
            "-".clone_into(shown);
        }
    }
    shown
}

fn push_keys(out: &mut String, report: &LoadReport) {
    if report.keys.len() < 2 {
        return;
    }
    let heads = ["sent", "answered", "failed", "shed", "p50", "p99"];
    out.push_str(&format!("\n{:<LABEL$}", "key"));
    heads.iter().for_each(|head| out.push_str(&format!("{head:>11}")));
    out.push('\n');
    for key in &report.keys {
        let name: String = key.name.chars().take(LABEL - 1).collect();
        out.push_str(&format!("{name:<LABEL$}"));
        let counts = &key.requests;
        for count in [counts.sent, counts.answered, counts.errors, counts.shed] {
            out.push_str(&format!("{count:>11}"));
        }
        for value in [key.p50_ms, key.p99_ms] {
            out.push_str(&format!(
                "{:>11}",
                value.map_or_else(|| "-".to_owned(), |value| MeasureUnit::Millis.show(value))
            ));
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::example;
    use super::*;

    #[test]
    fn results_are_a_text_of_at_most_eighty_columns() {
        let mut report = example();
        report.add_final_measures();
        report.keys.push(report.keys[0].clone());
        report.settings.rate = Some(50.0);
        report.lag = report.latency;
        report.codes = (0..12).map(|n| (format!("server.overloaded_{n}"), n)).collect();
        let shown = text(&report);
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn metrics_that_a_key_may_not_read_name_the_remedy() {
        let mut report = example();
        report.settings.sessions = 1;
        report.server.unread = Some("HTTP 403".to_owned());
        let shown = text(&report);
        assert!(shown.contains("1 conversation at once"), "{shown}");
        assert!(shown.contains("server      metrics not read: HTTP 403,\n"), "{shown}");
        assert!(shown.contains("a key with the role approver"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
        report.server.unread = Some("no reply".to_owned());
        assert!(!text(&report).contains("role approver"));
    }

    #[test]
    fn comparison_marks_regressions() {
        let earlier = example();
        let mut now = example();
        now.settings.sessions = 8;
        now.measures.insert("p99_latency".to_owned(), 150.0);
        let shown = comparison_text(&LoadComparison::of(&earlier, &now), Some(0.1));
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
        insta::assert_snapshot!(shown);
    }
}
