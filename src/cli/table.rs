//! Lists in aligned columns.

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proscenium::run::{RunId, RunStatus, SessionId};

use super::text::{dollars, name, one_line, short};

/// One run in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct RunTableRow {
    /// The run.
    pub run: RunId,
    /// When its request was accepted.
    pub at: Timestamp,
    /// Its status.
    pub status: RunStatus,
    /// The conversation.
    pub session: SessionId,
    /// Calls sent to a model.
    pub llm_calls: u32,
    /// Its cost in nano-USD.
    pub cost_nano_usd: u64,
    /// The user's request.
    pub request: String,
}

/// Writes the runs as a table. `width` is the terminal's, by which the last column is cut; a pipe
/// has none and gets complete lines.
pub fn runs(
    out: &mut impl Write,
    rows: &[RunTableRow],
    zone: &TimeZone,
    width: Option<usize>,
) -> io::Result<()> {
    if rows.is_empty() {
        writeln!(out, "There are no runs yet.")?;
        return out.flush();
    }
    let head = ["RUN", "WHEN", "STATUS", "CALLS", "COST", "SESSION", "REQUEST"].map(str::to_owned);
    let body = rows.iter().map(|row| {
        [
            row.run.to_string(),
            time(row.at, zone),
            name(&row.status),
            row.llm_calls.to_string(),
            dollars(row.cost_nano_usd as f64 / 1e9),
            row.session.to_string(),
            one_line(&row.request),
        ]
    });
    aligned(out, head, body, &[3, 4], width)
}

/// Writes columns below their heads; `right` are those of numbers. The last column is truncated to `width`,
/// if given.
pub fn aligned<const N: usize>(
    out: &mut impl Write,
    head: [String; N],
    body: impl Iterator<Item = [String; N]>,
    right: &[usize],
    width: Option<usize>,
) -> io::Result<()> {
    let lines: Vec<[String; N]> = std::iter::once(head).chain(body).collect();
    let widths: Vec<usize> = (0..N)
        .map(|column| lines.iter().map(|line| console::measure_text_width(&line[column])).max().unwrap_or(0))
        .collect();
    for line in &lines {
        let mut text = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width.saturating_sub(console::measure_text_width(cell)));
            match column {
                last if last == N - 1 => text.push_str(cell),
                // Numbers are aligned right.
                number if right.contains(&number) => text.push_str(&format!("{pad}{cell}  ")),
                _ => text.push_str(&format!("{cell}{pad}  ")),
            }
        }
        match width {
            Some(width) => writeln!(out, "{}", cut(&text, width))?,
            None => writeln!(out, "{text}")?,
        }
    }
    out.flush()
}

/// The width of the terminal of standard output; a pipe has none.
pub fn width() -> Option<usize> {
    console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns))
}

/// A time in a list.
pub fn time(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Cut by columns; unlike [`short`], spaces stay as they are.
fn cut(text: &str, width: usize) -> String {
    match width {
        0..20 => short(text, 20),
        _ => console::truncate_str(text, width, "…").into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorded;
    use super::*;

    fn row(status: RunStatus, llm_calls: u32, cost_nano_usd: u64, request: &str) -> RunTableRow {
        RunTableRow {
            run: recorded::run_id(),
            at: "2026-05-04T07:00:00Z".parse().unwrap(),
            status,
            session: recorded::session(),
            llm_calls,
            cost_nano_usd,
            request: request.to_owned(),
        }
    }

    fn shown(rows: &[RunTableRow], width: Option<usize>) -> String {
        let mut out = Vec::new();
        runs(&mut out, rows, &TimeZone::get("Europe/Rome").unwrap(), width).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_whole_in_a_pipe() {
        let rows = [
            row(RunStatus::Completed, 5, 1_200_000, "Che tempo fa\na Milano?"),
            row(RunStatus::NeedsInput, 12, 0, "Ask for three days off \u{1b}[31m, 休暇をお願いします"),
        ];
        insta::assert_snapshot!(shown(&rows, None), @r"
        RUN                                   WHEN                 STATUS       CALLS     COST  SESSION  REQUEST
        01976c8e-0000-7000-8000-000000000001  2026-05-04 09:00:00  completed        5  $0.0012  s-1      Che tempo fa a Milano?
        01976c8e-0000-7000-8000-000000000001  2026-05-04 09:00:00  needs_input     12       $0  s-1      Ask for three days off [31m, 休暇をお願いします
        ");
    }

    #[test]
    fn on_a_terminal_the_last_column_is_cut_to_its_width() {
        let rows = [row(RunStatus::Completed, 5, 0, &"very long ".repeat(30))];
        for line in shown(&rows, Some(110)).lines() {
            assert!(console::measure_text_width(line) <= 110, "{line}");
        }
    }

    #[test]
    fn no_runs_are_told_in_words() {
        assert_eq!(shown(&[], None), "There are no runs yet.\n");
    }
}
