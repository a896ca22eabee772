//! The last good results of calls: a projection that points at their events, by the key of the call.

use jiff::Timestamp;
use rusqlite::{Connection, params};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::Store;
use super::error::Error;
use super::read::{decode, read_time};
use super::record::{JournalRow, StreamId};
use crate::run::{Event, Outcome, RecalledResult, RunId, TenantId, parse_event};

/// How long a row is kept, in nanoseconds: 30 days, the greatest age that a tool can declare.
const KEPT_NANOS: i64 = 30 * 24 * 60 * 60 * 1_000_000_000;

/// Writes the rows of remembered results, and forgets those that are too old for any tool.
pub(super) fn write_results(connection: &Connection, rows: &[&JournalRow]) -> rusqlite::Result<()> {
    let remembered = rows.iter().filter_map(|row| match (&row.stream, &row.change.remember) {
        (StreamId::Run(run), Some(key)) => Some((*row, run.to_string(), key.as_str())),
        _ => None,
    });
    let mut newest = None;
    for (row, run, key) in remembered {
        // A run on a slower clock does not replace a newer result.
        let mut write = connection.prepare_cached(
            "INSERT INTO last_results (tenant, key, run, seq, at) VALUES (?, ?, ?, ?, ?) \
             ON CONFLICT (tenant, key) DO UPDATE SET run = excluded.run, seq = excluded.seq, at = excluded.at \
             WHERE excluded.at >= last_results.at",
        )?;
        write.execute(params![row.tenant.as_str(), key, run, row.seq, row.at])?;
        newest = newest.max(Some(row.at));
    }
    let Some(newest) = newest else { return Ok(()) };
    let mut forget = connection.prepare_cached("DELETE FROM last_results WHERE at < ?")?;
    forget.execute([newest.saturating_sub(KEPT_NANOS)]).map(drop)
}

impl Store {
    /// The last result that was appended with the key, if its event is still there and can be read.
    pub(crate) async fn last_result(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Option<RecalledResult>, Error> {
        let found = sqlx::query(
            "SELECT l.run, j.at, j.schema, j.body FROM last_results AS l \
             JOIN journal AS j ON j.stream = 'run:' || l.run AND j.seq = l.seq AND j.tenant = l.tenant \
             WHERE l.tenant = ? AND l.key = ?",
        )
        .bind(tenant.as_str())
        .bind(key)
        .fetch_optional(self.pool())
        .await;
        let row = found.map_err(|e| Error::database(self.path(), "read the last result of a call", &e))?;
        // What cannot be read is not there.
        Ok(row.and_then(|row| recalled(&row, key).ok().flatten()))
    }
}

fn recalled(row: &SqliteRow, key: &str) -> Result<Option<RecalledResult>, sqlx::Error> {
    let run: RunId = decode(row.try_get::<&str, _>("run")?.parse())?;
    let at: Timestamp = read_time(row, "at")?;
    let event = decode(parse_event(row.try_get("schema")?, row.try_get("body")?))?;
    Ok(match event {
        Event::ToolCompleted { outcome: Outcome::Ok { result, say, whole }, notes: Some(notes), .. }
            if notes.remember.as_deref() == Some(key) =>
        {
            Some(RecalledResult { result, say, whole, at, run })
        }
        _ => None,
    })
}
