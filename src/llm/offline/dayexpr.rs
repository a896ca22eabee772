//! What a text says of days: single ones, ranges, lists, days left out, and what cannot be told for
//! certain. Reading it is one thing (`dayreader`), and which days it comes to another ([`runs`]).

use jiff::ToSpan;
use jiff::civil::Date;

use super::dates::{Day, RangeRole};

/// Days between two dates of which nobody said the year, at most.
const MAX_TURN: i64 = 183;

/// What is said of days in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DayExpr {
    /// This day.
    Single(Date),
    /// First and last day.
    Range(Date, Date),
    /// Not these: first and last day.
    Excluded(Date, Date),
    /// A beginning or an end alone: "from 15 June", "until Friday".
    Bound(RangeRole, Date),
    /// Some time before (an end) or after (a beginning) that day: "before 15 June".
    Beside(RangeRole, Date),
    /// Days that nobody can tell for certain: "the week after 15 June", "from 17 to 15 June".
    Unclear,
}

/// An expression with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expr {
    /// What is said.
    pub said: DayExpr,
    /// Its days as arguments take them, with their places.
    pub days: Vec<Day>,
    /// Index of its first token.
    pub first: usize,
    /// Index of its last token.
    pub last: usize,
    /// Whether it is the next of one list with the expression before: "15, 16 and 18 June".
    pub listed: bool,
}

/// Days one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DayRun {
    /// The first.
    pub from: Date,
    /// The last.
    pub to: Date,
}

/// The days that the expressions come to, in order, without those that were left out. Neighbours are one
/// run where they are of one list.
pub(super) fn runs(all: &[Expr]) -> Vec<DayRun> {
    let mut out: Vec<DayRun> = Vec::new();
    for expr in all {
        let run = match expr.said {
            DayExpr::Single(date) => DayRun { from: date, to: date },
            DayExpr::Range(from, to) => DayRun { from, to },
            _ => continue,
        };
        match out.last_mut() {
            Some(last) if expr.listed && last.to.tomorrow().ok() == Some(run.from) => last.to = run.to,
            _ => out.push(run),
        }
    }
    for expr in all {
        if let DayExpr::Excluded(from, to) = expr.said {
            out = out.iter().flat_map(|run| without(*run, from, to)).collect();
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

/// The single days of runs, two months of them at most.
pub(super) fn dates(runs: &[DayRun]) -> Vec<Date> {
    let days = |run: &DayRun| {
        let last = run.to;
        run.from.series(1.days()).take_while(move |day| *day <= last)
    };
    runs.iter().flat_map(days).take(62).collect()
}

/// What is left of a run.
fn without(run: DayRun, from: Date, to: Date) -> Vec<DayRun> {
    if to < run.from || from > run.to {
        return vec![run];
    }
    let before =
        from.yesterday().ok().filter(|end| *end >= run.from).map(|end| DayRun { from: run.from, to: end });
    let after =
        to.tomorrow().ok().filter(|start| *start <= run.to).map(|start| DayRun { from: start, to: run.to });
    before.into_iter().chain(after).collect()
}

/// Whether two days are further apart than anybody means who says no year.
pub(super) fn far(from: Date, to: Date) -> bool {
    from.saturating_add(MAX_TURN.days()) < to
}
