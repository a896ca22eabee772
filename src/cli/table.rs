//! Lists in aligned columns.

use std::collections::BTreeSet;
use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proscenium::run::{RunId, RunStatus, SessionId, TenantId};
use proscenium::store::{About, ApprovalRow, RunRow};
use serde_json::{Value, json};

use super::text::{dollars, one_line, short};

/// One run in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct RunTableRow {
    /// The run.
    pub run: RunId,
    /// When its request was accepted.
    pub at: Timestamp,
    /// Its status.
    pub status: RunStatus,
    /// The code of the error with which it failed.
    pub error: Option<String>,
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
        let error = row.error.as_ref().map(|code| format!(" [{}]", one_line(code))).unwrap_or_default();
        [
            row.run.to_string(),
            time(row.at, zone),
            format!("{}{error}", row.status),
            row.llm_calls.to_string(),
            dollars(row.cost_nano_usd as f64 / 1e9),
            row.session.to_string(),
            one_line(&row.request),
        ]
    });
    // The session is left out first, because most runs have a session of their own. The time is left out last.
    aligned(out, head, body, &TableLayout { right: &[3, 4], optional: &[5, 3, 4, 1], ids: Some(0) }, width)
}

/// Writes the tenant below an empty list of runs, because other tenants may have runs.
pub fn of_tenant(out: &mut impl Write, tenant: &TenantId) -> io::Result<()> {
    writeln!(out, "This is the tenant {tenant}. --tenant names another one.")?;
    out.flush()
}

/// Writes below a list of runs which other tenants have runs that wait.
pub fn other_waiting(out: &mut impl Write, tenants: &BTreeSet<TenantId>) -> io::Result<()> {
    if !tenants.is_empty() {
        let names: Vec<&str> = tenants.iter().map(TenantId::as_str).collect();
        writeln!(out, "Runs of other tenants wait, too; --tenant names one: {}", names.join(", "))?;
    }
    out.flush()
}

/// Writes the runs that need a person, with what they wait for.
pub fn parked(
    out: &mut impl Write,
    rows: &[(RunRow, Vec<ApprovalRow>)],
    zone: &TimeZone,
    width: Option<usize>,
) -> io::Result<()> {
    if rows.is_empty() {
        writeln!(out, "No run waits for a person, and no write has an unknown outcome.")?;
        return out.flush();
    }
    let head = ["RUN", "SINCE", "STATUS", "WAITS FOR", "REQUEST"].map(str::to_owned);
    let body = rows.iter().map(|(row, approvals)| {
        let waits = |approval: &ApprovalRow| match approval.about {
            About::Plan => format!("approval of its plan (.{})", approval.id.approval),
            About::Call => format!("approval of a write (.{})", approval.id.approval),
            About::Outcome => format!("what a write did (.{})", approval.id.approval),
        };
        let waits: Vec<String> = approvals.iter().map(waits).collect();
        let waits = if waits.is_empty() { "plans resume: quarantine".to_owned() } else { waits.join(", ") };
        [row.run.to_string(), time(row.updated, zone), row.status.to_string(), waits, one_line(&row.request)]
    });
    aligned(out, head, body, &TableLayout { right: &[], optional: &[1, 2], ids: Some(0) }, width)?;
    writeln!(
        out,
        "\n`proscenium approvals decide RUN.N` decides; `proscenium explain RUN` says what happened."
    )?;
    out.flush()
}

/// A run in a list, as JSON.
pub fn run_json(row: &RunTableRow) -> Value {
    json!({"run_id": row.run, "at": row.at, "status": row.status, "error": row.error,
        "session_id": row.session, "llm_calls": row.llm_calls,
        "cost_usd": row.cost_nano_usd as f64 / 1e9, "request": row.request})
}

/// A run that needs a person, as JSON, with the ids of its open approvals.
pub fn parked_json((row, approvals): &(RunRow, Vec<ApprovalRow>)) -> Value {
    let open: Vec<String> = approvals.iter().map(|approval| approval.id.to_string()).collect();
    json!({"run_id": row.run, "since": row.updated, "status": row.status, "session_id": row.session, "approvals": open,
        "request": row.request})
}

/// How a table fits a narrow terminal.
#[derive(Debug, Clone, Copy)]
pub struct TableLayout {
    /// The columns of numbers, which are aligned right.
    pub right: &'static [usize],
    /// The columns that are left out where there is no room, the least important first.
    pub optional: &'static [usize],
    /// The column of ids that are shortened where there is no room, if commands take their prefixes.
    pub ids: Option<usize>,
}

/// Columns that the last column keeps, if the others can make room.
const LAST: usize = 24;
/// Characters of a shortened id: its time in milliseconds.
const SHORT_ID: usize = 13;

/// Writes columns below their heads. To fit `width`, if given, ids are shortened, optional columns are left out,
/// and the last column is truncated.
pub fn aligned<const N: usize>(
    out: &mut impl Write,
    head: [String; N],
    body: impl Iterator<Item = [String; N]>,
    layout: &TableLayout,
    width: Option<usize>,
) -> io::Result<()> {
    let mut lines: Vec<[String; N]> = std::iter::once(head).chain(body).collect();
    let mut columns: Vec<usize> = (0..N).collect();
    if let Some(width) = width {
        if let Some(ids) = layout.ids.filter(|_| needed(&lines, &columns) > width) {
            shorten_ids(&mut lines, ids);
        }
        for optional in layout.optional {
            if needed(&lines, &columns) > width {
                columns.retain(|column| column != optional);
            }
        }
    }
    let widths: Vec<usize> = (0..N).map(|column| widest(&lines, column)).collect();
    for line in &lines {
        let mut text = String::new();
        for column in &columns {
            let cell = &line[*column];
            let pad = " ".repeat(widths[*column].saturating_sub(console::measure_text_width(cell)));
            match *column {
                last if last == N - 1 => text.push_str(cell),
                number if layout.right.contains(&number) => text.push_str(&format!("{pad}{cell}  ")),
                _ => text.push_str(&format!("{cell}{pad}  ")),
            }
        }
        let text = text.trim_end();
        match width {
            Some(width) => writeln!(out, "{}", cut(text, width))?,
            None => writeln!(out, "{text}")?,
        }
    }
    out.flush()
}

fn widest<const N: usize>(lines: &[[String; N]], column: usize) -> usize {
    lines.iter().map(|line| console::measure_text_width(&line[column])).max().unwrap_or(0)
}

/// The width of these columns, with at most [`LAST`] for the last one.
fn needed<const N: usize>(lines: &[[String; N]], columns: &[usize]) -> usize {
    let width = |column: &usize| match *column {
        last if last == N - 1 => widest(lines, last).min(LAST),
        other => widest(lines, other) + 2,
    };
    columns.iter().map(width).sum()
}

/// Shortens the ids of a column to prefixes by which these can be told apart; the ordinal of an approval stays.
fn shorten_ids<const N: usize>(lines: &mut [[String; N]], column: usize) {
    let split = |cell: &str| match cell.split_once('.') {
        Some((id, ordinal)) => (id.to_owned(), format!(".{ordinal}")),
        None => (cell.to_owned(), String::new()),
    };
    let ids: BTreeSet<String> = lines.iter().skip(1).map(|line| split(&line[column]).0).collect();
    let is_unique = |length: usize| {
        let prefixes: BTreeSet<&str> = ids.iter().filter_map(|id| id.get(..length)).collect();
        prefixes.len() == ids.len() && prefixes.iter().all(|prefix| !prefix.ends_with('-'))
    };
    let Some(length) = (SHORT_ID..36).find(|length| is_unique(*length)) else { return };
    for line in lines.iter_mut().skip(1) {
        let (id, ordinal) = split(&line[column]);
        line[column] = format!("{}{ordinal}", id.get(..length).unwrap_or(&id));
    }
}

/// The width of the terminal of standard output; a pipe has none.
pub fn width() -> Option<usize> {
    console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns))
}

/// The width of the terminal of standard error; a pipe has none.
pub fn stderr_width() -> Option<usize> {
    console::Term::stderr().size_checked().map(|(_, columns)| usize::from(columns))
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
            error: (status == RunStatus::Failed).then(|| "budget.exceeded".to_owned()),
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
    fn eighty_columns_keep_status_and_request() {
        let mut rows = [
            row(RunStatus::NeedsInput, 12, 1_200_000, "Ask for three days off in June"),
            row(RunStatus::Completed, 5, 0, "Che tempo fa a Milano?"),
        ];
        rows[0].session = SessionId::new("01976c8e-0000-7000-8000-000000000003").unwrap();
        rows[1].run = "01976c8e-0123-7000-8000-000000000009".parse().unwrap();
        insta::assert_snapshot!(shown(&rows, Some(80)), @r"
        RUN            WHEN                 STATUS       REQUEST
        01976c8e-0000  2026-05-04 09:00:00  needs_input  Ask for three days off in June
        01976c8e-0123  2026-05-04 09:00:00  completed    Che tempo fa a Milano?
        ");
    }

    #[test]
    fn failed_runs_have_their_code_at_eighty_columns() {
        let rows = [row(RunStatus::Failed, 5, 0, "What is the weather in Milan tomorrow?")];
        insta::assert_snapshot!(shown(&rows, Some(80)), @r"
        RUN            STATUS                    REQUEST
        01976c8e-0000  failed [budget.exceeded]  What is the weather in Milan tomorrow?
        ");
    }

    #[test]
    fn no_runs_are_told_in_words() {
        assert_eq!(shown(&[], None), "There are no runs yet.\n");
        let mut out = Vec::new();
        of_tenant(&mut out, &TenantId::new("acme").unwrap()).unwrap();
        let told = String::from_utf8(out).unwrap();
        assert!(told.starts_with("This is the tenant acme."), "{told}");
        assert!(told.lines().all(|line| line.len() <= 80), "{told}");
    }
}
