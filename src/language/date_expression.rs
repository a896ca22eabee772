//! Date expressions of a text: single days, ranges, lists, exclusions and unclear expressions. They are
//! parsed in `date_expression_reader` and resolved to days in [`resolve_runs`].

use jiff::ToSpan;
use jiff::civil::Date;

use super::dates::{DateSpan, RangeRole};

/// Maximum distance in days between two dates stated without a year.
const MAX_YEARLESS_GAP_DAYS: i64 = 183;

/// The meaning of one date expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DateExpressionKind {
    /// This day.
    Single(Date),
    /// First and last day.
    Range(Date, Date),
    /// Excluded days: first and last.
    Excluded(Date, Date),
    /// Only a beginning or an end: "from 15 June", "until Friday".
    Bound(RangeRole, Date),
    /// Some time before (`To`) or after (`From`) that day: "before 15 June".
    BeforeOrAfter(RangeRole, Date),
    /// Ambiguous or contradictory days: "the week after 15 June", "from 17 to 15 June".
    Unclear,
}

/// A date expression with its token span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DateExpression {
    /// Its meaning.
    pub kind: DateExpressionKind,
    /// The days that can fill arguments, with their token spans.
    pub days: Vec<DateSpan>,
    /// Index of its first token.
    pub first: usize,
    /// Index of its last token.
    pub last: usize,
    /// Whether it continues a list with the previous expression: "15, 16 and 18 June".
    pub listed: bool,
}

/// A run of consecutive days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DayRun {
    /// First day.
    pub from: Date,
    /// Last day.
    pub to: Date,
}

/// Resolves expressions to runs of days, in order and without excluded days. Consecutive days of one list are
/// merged into one run.
pub(crate) fn resolve_runs(all: &[DateExpression]) -> Vec<DayRun> {
    let mut out: Vec<DayRun> = Vec::new();
    for expr in all {
        let run = match expr.kind {
            DateExpressionKind::Single(date) => DayRun { from: date, to: date },
            DateExpressionKind::Range(from, to) => DayRun { from, to },
            _ => continue,
        };
        match out.last_mut() {
            Some(last) if expr.listed && last.to.tomorrow().ok() == Some(run.from) => last.to = run.to,
            _ => out.push(run),
        }
    }
    for expr in all {
        if let DateExpressionKind::Excluded(from, to) = expr.kind {
            out = out.iter().flat_map(|run| subtract_range(*run, from, to)).collect();
        }
    }
    let mut unique: Vec<DayRun> = Vec::new();
    out.into_iter().for_each(|run| {
        if !unique.contains(&run) {
            unique.push(run);
        }
    });
    unique
}

/// The single days of runs, at most 62.
pub(crate) fn expand_runs(runs: &[DayRun]) -> Vec<Date> {
    let days = |run: &DayRun| {
        let last = run.to;
        run.from.series(1.days()).take_while(move |day| *day <= last)
    };
    runs.iter().flat_map(days).take(62).collect()
}

/// Removes a range of days from a run.
fn subtract_range(run: DayRun, from: Date, to: Date) -> Vec<DayRun> {
    if to < run.from || from > run.to {
        return vec![run];
    }
    let before =
        from.yesterday().ok().filter(|end| *end >= run.from).map(|end| DayRun { from: run.from, to: end });
    let after =
        to.tomorrow().ok().filter(|start| *start <= run.to).map(|start| DayRun { from: start, to: run.to });
    before.into_iter().chain(after).collect()
}

/// Returns whether two dates are too far apart for an expression without a year.
pub(crate) fn is_too_far_apart(from: Date, to: Date) -> bool {
    from.saturating_add(MAX_YEARLESS_GAP_DAYS.days()) < to
}
