//! `audit`: who decided what and when, and whether the audit log is intact. It reads the
//! store of all tenants, also while another process owns it.

use std::collections::BTreeSet;
use std::io::{self, Write};

use jiff::tz::TimeZone;
use proscenium::config::LoadedConfig;
use proscenium::run::RunId;
use proscenium::store::{AuditReport, AuditRow, Store};

use super::args::AuditCommand;
use super::failure::{Exit, Failure};
use super::ids::IdPrefix;
use super::output::{self, Output};
use super::table;
use super::table::TableLayout;
use super::text::{count, one_line};

/// Among how many of the latest decisions the run of a prefix is searched for.
const MAX_NAMED: u32 = 10_000;

/// Runs the command.
pub async fn run<W: Write>(
    what: AuditCommand,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let store = Store::open_read_only(&loaded.config.store.data_dir).await?;
    match what {
        AuditCommand::Verify { head, json } => {
            let audit = store.verify_audit(head.as_deref()).await;
            store.close().await;
            let audit = audit?;
            if json {
                output::document(out, &audit, false)?;
            } else {
                verified(out, &audit)?;
            }
            Ok(if audit.broken.is_none() { Exit::Completed } else { Exit::Failed })
        }
        AuditCommand::List { run, limit, json } => {
            let rows = decisions(&store, run.as_ref(), limit).await;
            store.close().await;
            let rows = rows?;
            if json {
                output::document(out, &rows, false)?;
            } else {
                let zone = loaded.config.execution.zone().unwrap_or(TimeZone::UTC);
                list(out, &rows, &zone)?;
            }
            Ok(Exit::Completed)
        }
    }
}

/// The latest decisions, of one run if it is named. Runs that are erased have decisions, too, so a prefix is one of these.
async fn decisions(store: &Store, run: Option<&IdPrefix>, limit: u32) -> Result<Vec<AuditRow>, Failure> {
    let run = match run.map(|run| (run, run.whole())) {
        None => None,
        Some((_, Some(whole))) => Some(RunId(whole)),
        Some((prefix, None)) => {
            let rows = store.audit_rows(None, MAX_NAMED).await?;
            let runs: BTreeSet<RunId> = rows.iter().map(|row| row.run).collect();
            Some(prefix.only("run", runs, |run| run.0)?)
        }
    };
    store.audit_rows(run, limit).await.map_err(Failure::from)
}

fn verified(out: &mut impl Write, audit: &AuditReport) -> io::Result<()> {
    match &audit.broken {
        None => writeln!(
            out,
            "The audit log is intact: {}.\nhead: {}\n\
             Store the head elsewhere: `proscenium audit verify --head {}` later detects removed rows.",
            count(usize::try_from(audit.rows).unwrap_or_default(), "row"),
            audit.head,
            audit.head
        )?,
        Some(broken) => writeln!(
            out,
            "The audit log is broken at row {}: {}.\nThe {} rows before it are unchanged.",
            broken.seq,
            one_line(&broken.why),
            audit.rows
        )?,
    }
    out.flush()
}

fn list(out: &mut impl Write, rows: &[AuditRow], zone: &TimeZone) -> io::Result<()> {
    if rows.is_empty() {
        writeln!(out, "No decisions yet.")?;
        return out.flush();
    }
    let head = ["ROW", "WHEN", "TENANT", "WHO", "DECISION", "ABOUT", "ERASED"].map(str::to_owned);
    let body = rows.iter().map(|row| {
        [
            row.seq.to_string(),
            table::time(row.at, zone),
            row.tenant.to_string(),
            one_line(&row.who),
            one_line(&row.decision),
            row.approval.map_or_else(|| row.run.to_string(), |approval| format!("{}.{approval}", row.run)),
            if row.erased { "yes" } else { "no" }.to_owned(),
        ]
    });
    let layout = TableLayout { right: &[0], optional: &[2], ids: Some(5) };
    table::aligned(out, head, body, &layout, table::width())
}
