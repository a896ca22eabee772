//! `audit`: the record of what people decided, listed and verified.

use std::io::Write;

use jiff::tz::TimeZone;
use proscenium::config::Loaded;
use proscenium::store::{AuditRow, Error, Store};

use super::args::AuditCommand;
use super::failure::{Exit, Failure};
use super::output::{self, Output};
use super::table;
use super::text::one_line;

/// Does it.
pub async fn run<W: Write>(
    what: AuditCommand,
    loaded: &Loaded,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let store = Store::open_reading(&loaded.config.store.data_dir).await.map_err(failure)?;
    let done = match what {
        AuditCommand::Verify { json } => verify(&store, out, json).await,
        AuditCommand::List { json } => list(&store, loaded, out, json).await,
    };
    store.close().await;
    done
}

async fn verify<W: Write>(store: &Store, out: &mut Output<W>, json: bool) -> Result<Exit, Failure> {
    let found = store.audited().await.map_err(failure)?;
    if json {
        output::document(out, &found, false)?;
    }
    if let Some(broken) = found.broken {
        let what = format!("the record of decisions is not what it was: {broken}");
        return Err(Failure::new("audit.broken", what)
            .help("compare it with a backup: somebody has changed the database beside the program"));
    }
    if !json {
        let (rows, proven, erased) = (found.rows, found.proven, found.erased);
        writeln!(out, "{rows} decisions, in an unbroken chain.")?;
        writeln!(out, "{proven} are proven by their runs, {erased} are of runs that were erased.")?;
        if rows > 0 {
            writeln!(out, "head: {}", found.head)?;
        }
        out.flush()?;
    }
    Ok(Exit::Completed)
}

async fn list<W: Write>(
    store: &Store,
    loaded: &Loaded,
    out: &mut Output<W>,
    json: bool,
) -> Result<Exit, Failure> {
    let zone = loaded.config.execution.zone().unwrap_or(TimeZone::UTC);
    let mut rows: Vec<AuditRow> = Vec::new();
    loop {
        let page = store.audit(rows.last().map_or(0, |row| row.seq)).await.map_err(failure)?;
        if page.is_empty() {
            break;
        }
        rows.extend(page);
    }
    if json {
        output::document(out, &rows, false)?;
        return Ok(Exit::Completed);
    }
    let head = ["NO", "WHEN", "TENANT", "WHO", "DECISION", "RUN"].map(str::to_owned);
    let body = rows.iter().map(|row| {
        [
            row.seq.to_string(),
            table::time(row.time(), &zone),
            one_line(&row.tenant),
            one_line(&row.by),
            row.decision.clone(),
            row.run.clone(),
        ]
    });
    table::aligned(out, head, body, &[], table::width())?;
    Ok(Exit::Completed)
}

fn failure(error: Error) -> Failure {
    Failure::new(error.code(), error.to_string())
}
