//! A report as text, in at most 80 columns apart from what requests say.

use std::fmt::{self, Write};

use super::compare::{ChangedRequest, EvalComparison};
use super::counts::{EvalCounts, PartOfWhole};
use super::judge::EvalFaultKind;
use super::report::{EvalReport, RepetitionReport, RequestReport};
use crate::invisible::one_line;

/// Columns of a rule.
const WIDTH: usize = 79;
/// Maximum number of scenes of the confusion table.
const MAX_SCENES: usize = 40;
/// Fewer executions say nothing about a percentile.
const MIN_FOR_P95: usize = 30;
/// Maximum length of an answer or of a fault, in characters.
const MAX_DETAIL: usize = 240;

/// The whole report; `failures` requests that are not right are described.
pub fn report_text(report: &EvalReport, failures: usize) -> String {
    let mut text = String::new();
    // Writing into a text does not fail.
    let _ = write_report(&mut text, report, failures);
    text
}

fn write_report(to: &mut String, report: &EvalReport, failures: usize) -> fmt::Result {
    write_failures(to, report, failures)?;
    write_classes(to, report)?;
    write_scenes(to, &report.counts)?;
    write_figures(to, report)?;
    write_usage(to, report)
}

/// Words what has changed since an earlier report; at most `max` requests of a kind are named.
pub fn comparison_text(comparison: &EvalComparison, max: usize) -> String {
    let mut text = String::new();
    let _ = write_comparison(&mut text, comparison, max);
    text
}

fn write_comparison(to: &mut String, comparison: &EvalComparison, max: usize) -> fmt::Result {
    let kinds = [
        ("right before, wrong now", &comparison.regressions),
        ("wrong before, right now", &comparison.improved),
        ("another share of right executions, as chance may have it", &comparison.shifted),
    ];
    for (what, requests) in kinds.into_iter().filter(|(_, requests)| !requests.is_empty()) {
        writeln!(to, "{}, {what}:", number(requests.len(), "request"))?;
        for ChangedRequest { id, before, now, fault } in requests.iter().take(max) {
            let fault =
                if fault.is_empty() { String::new() } else { format!(": {}", short(fault, MAX_DETAIL)) };
            let of = |[right, all]: &[usize; 2]| format!("{right} of {all}");
            writeln!(to, "- {} ({}, was {}){fault}", one_line(id), of(now), of(before))?;
        }
        more(to, requests.len(), max)?;
    }
    for (what, ids) in [
        ("not executed before", &comparison.added),
        ("not executed now", &comparison.removed),
        ("with other words or labels than before, not compared", &comparison.relabelled),
    ] {
        if !ids.is_empty() {
            writeln!(to, "{}, {what}", number(ids.len(), "request"))?;
        }
    }
    if let Some([before, now]) = &comparison.models {
        writeln!(to, "Other models: {}, and before {}", one_line(now), one_line(before))?;
    }
    if let Some([worse, better]) = comparison.fallen {
        writeln!(to, "Of the requests, {worse} became worse and {better} better: more than chance does")?;
    }
    if !comparison.is_regression() {
        writeln!(to, "Nothing that was right is wrong now.")?;
    }
    Ok(())
}

fn write_failures(to: &mut String, report: &EvalReport, max: usize) -> fmt::Result {
    let wrong: Vec<&RequestReport> =
        report.requests.iter().filter(|one| one.first_wrong().is_some()).collect();
    for request in wrong.iter().take(max) {
        let place = format!("{}:{}", request.file.display(), request.line);
        let shares = match request.repetitions.len() {
            1 => String::new(),
            all => format!(", right in {} of {all} executions", request.right_repetitions()),
        };
        writeln!(to, "- {} ({place}){shares}", one_line(&request.id))?;
        writeln!(to, "    say: {}", short(&request.say, MAX_DETAIL))?;
        if let Some(repetition) = request.first_wrong() {
            write_repetition(to, repetition)?;
        }
    }
    if max > 0 {
        more(to, wrong.len(), max)?;
    }
    if wrong.is_empty() || max == 0 { Ok(()) } else { writeln!(to) }
}

fn write_repetition(to: &mut String, repetition: &RepetitionReport) -> fmt::Result {
    let status = repetition.status.map_or("not executed", Into::into);
    let calls = if repetition.calls.is_empty() { "none".to_owned() } else { repetition.calls.join("; ") };
    writeln!(to, "    {status} [{}] calls: {}", repetition.scenes.join(", "), short(&calls, MAX_DETAIL))?;
    writeln!(to, "    answer: {}", short(&repetition.answer, MAX_DETAIL))?;
    for fault in &repetition.faults {
        writeln!(to, "    FAULT {}: {}", fault.kind, short(&fault.detail, MAX_DETAIL))?;
    }
    Ok(())
}

fn more(to: &mut String, all: usize, max: usize) -> fmt::Result {
    match all.saturating_sub(max) {
        0 => Ok(()),
        left => writeln!(to, "and {} more", number(left, "request")),
    }
}

/// A line for each class: where the faults are.
fn write_classes(to: &mut String, report: &EvalReport) -> fmt::Result {
    let mut classes = report.classes();
    classes.retain(|_, counts| counts.executed > 0);
    if classes.len() < 2 {
        return Ok(());
    }
    let columns: [(&str, EvalFaultKind); 6] = [
        ("writes", EvalFaultKind::WrongWrite),
        ("invented", EvalFaultKind::InventedValue),
        ("dropped", EvalFaultKind::DroppedPart),
        ("scenes", EvalFaultKind::WrongScenes),
        ("needless", EvalFaultKind::NeedlessQuestion),
        ("unasked", EvalFaultKind::MissingQuestion),
    ];
    write!(to, "{:<13} {:>4} {:>5} {:>6}", "class", "all", "right", "share")?;
    columns.iter().try_for_each(|(head, _)| write!(to, " {head}"))?;
    writeln!(to, "\n{}", "-".repeat(WIDTH))?;
    for (class, counts) in classes {
        let share = percent(counts.right as f64 / counts.executed.max(1) as f64);
        let class = if class.is_empty() { "(none)" } else { class };
        write!(to, "{:<13} {:>4} {:>5} {share:>6}", short(class, 13), counts.executed, counts.right)?;
        for (head, kind) in &columns {
            let count = counts.faults.get(kind).copied().unwrap_or_default();
            write!(to, " {count:>width$}", width = head.len())?;
        }
        writeln!(to)?;
    }
    writeln!(to)
}

/// The confusion table: a line for each labelled scene.
fn write_scenes(to: &mut String, counts: &EvalCounts) -> fmt::Result {
    if counts.confusion.is_empty() {
        return Ok(());
    }
    let took_part =
        |scene: &str| -> usize { counts.confusion.values().filter_map(|row| row.get(scene)).sum() };
    writeln!(
        to,
        "{:<22} {:>8} {:>6} {:>7} {:>9}  taken for",
        "scene", "labelled", "found", "recall", "precision"
    )?;
    writeln!(to, "{}", "-".repeat(WIDTH))?;
    for (scene, row) in counts.confusion.iter().take(MAX_SCENES) {
        let found = row.get(scene).copied().unwrap_or_default();
        let confused = row.iter().filter(|(other, _)| *other != scene);
        let confused: Vec<String> = confused.map(|(other, count)| format!("{other} {count}")).collect();
        let labelled: usize = row.values().sum();
        let (recall, precision) = (share_of(found, labelled), share_of(found, took_part(scene)));
        let line = format!(
            "{:<22} {labelled:>8} {found:>6} {recall:>7} {precision:>9}  {}",
            short(scene, 22),
            short(&confused.join(", "), 22)
        );
        writeln!(to, "{}", line.trim_end())?;
    }
    if counts.confusion.len() > MAX_SCENES {
        writeln!(to, "and {} more", number(counts.confusion.len() - MAX_SCENES, "scene"))?;
    }
    writeln!(to)
}

fn write_figures(to: &mut String, report: &EvalReport) -> fmt::Result {
    let counts = &report.counts;
    let figures: [(&str, PartOfWhole); 18] = [
        ("executions as labelled", counts.right),
        ("scenes: exact sets", counts.scenes.exact),
        ("scenes: precision, of all that took part", counts.scenes.precision),
        ("scenes: recall, of all that are labelled", counts.scenes.recall),
        ("tools: exact sets", counts.tools.exact),
        ("tools: precision, of all that were called", counts.tools.precision),
        ("tools: recall, of all that are labelled", counts.tools.recall),
        ("arguments of labelled calls", counts.arguments),
        ("pairs in order", counts.order),
        ("texts in answers", counts.mentions),
        ("plain requests executed completely", counts.plain),
        ("wrong writes", counts.wrong_writes),
        ("calls with an invented value", counts.invented),
        ("requests with a dropped part", counts.dropped),
        ("out-of-scope requests that call a tool", counts.out_of_scope),
        ("needless questions", counts.needless),
        ("questions that were not asked", counts.unasked),
        ("reads with other values than labelled", counts.other_reads),
    ];
    for (what, part) in figures {
        if let Some(share) = part.share() {
            writeln!(to, "{what:<42} {:>6} of {:>6} {:>9}", part.part, part.whole, percent(share))?;
        }
    }
    Ok(())
}

fn write_usage(to: &mut String, report: &EvalReport) -> fmt::Result {
    let (counts, latency) = (&report.counts, report.latency);
    let executions: usize = report.requests.iter().map(|request| request.repetitions.len()).sum();
    let each = |sum: u64| sum as f64 / executions.max(1) as f64;
    writeln!(
        to,
        "a request: {:.2} model calls, {:.0} prompt tokens, {:.0} completion tokens",
        each(counts.model_calls),
        each(counts.input_tokens),
        each(counts.output_tokens)
    )?;
    if executions >= MIN_FOR_P95 {
        let (p50, p95) = (latency.p50_ms, latency.p95_ms);
        let at_once = report.subject.concurrency;
        writeln!(to, "time of a request, with {at_once} at once: {p50:.1} ms (median), {p95:.1} ms (p95)")?;
    }
    let models = report.subject.models();
    let times =
        if report.subject.repeat > 1 { format!(" x {}", report.subject.repeat) } else { String::new() };
    let interval = report.right_interval;
    let request = number(report.count, "request");
    writeln!(to, "{request}{times} with {}, ${:.4}", one_line(&models), counts.cost_usd)?;
    let (share, low, high) = (percent(report.right), percent(interval.low), percent(interval.high));
    writeln!(to, "right: {share} ({low} to {high} with 95% confidence)")?;
    if let Some(why) = &report.ended_early {
        writeln!(to, "ended early: {}", one_line(why))?;
    }
    if report.left_out > 0 {
        writeln!(
            to,
            "{} not executed: it was stopped, or no more may be spent",
            number(report.left_out, "request")
        )?;
    }
    if report.cut_off_usd > 0.0 {
        writeln!(to, "${:.4} more for requests that were cut off when it was spent", report.cut_off_usd)?;
    }
    if report.unjudged > 0 {
        writeln!(to, "{} in words not judged", number(report.unjudged, "condition"))?;
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// The share as text; of nothing there is none.
fn share_of(part: usize, whole: usize) -> String {
    PartOfWhole { part, whole }.share().map_or("–".to_owned(), percent)
}

fn number(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// On one line, in at most `max` characters.
fn short(text: &str, max: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(max) {
        Some(_) => line.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::testing::example;

    #[test]
    fn report_shows_failures_classes_scenes_and_figures() {
        let report = example();
        let text = report_text(&report, 5);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
        // The document is complete.
        let again = EvalReport::parse(&serde_json::to_string(&report).unwrap()).unwrap();
        assert_eq!(again, report);
        assert!(EvalReport::parse("{}").is_err());
    }

    #[test]
    fn comparison_names_what_changed() {
        let (now, mut before) = (example(), example());
        before.requests.remove(2);
        before.requests[1].repetitions.iter_mut().for_each(|repetition| {
            repetition.right = true;
            repetition.faults.clear();
        });
        insta::assert_snapshot!(comparison_text(&EvalComparison::of(&before, &now), 5));
    }
}
