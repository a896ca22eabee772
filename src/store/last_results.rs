//! The last good results of calls: a projection that points at their events, by the key of the call.

use jiff::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row as _, Sqlite};

use super::Store;
use super::error::Error;
use super::read::{decode, read_time};
use super::record::{JournalRow, StreamId};
use super::write::MAX_ROWS;
use crate::run::{Event, Outcome, RecalledResult, RunId, TenantId, parse_event};

/// How long a row is kept, in nanoseconds: 30 days, the greatest age that a tool can declare.
const KEPT_NANOS: i64 = 30 * 24 * 60 * 60 * 1_000_000_000;

/// Adds the statements that write the rows of remembered results, and forget those that are too old for any tool.
pub(super) fn write_results(sql: &mut QueryBuilder<Sqlite>, rows: &[&JournalRow]) {
    let remembered = rows.iter().filter_map(|row| match (&row.stream, &row.change.remember) {
        (StreamId::Run(run), Some(key)) => Some((*row, run.to_string(), key.as_str())),
        _ => None,
    });
    let remembered: Vec<_> = remembered.collect();
    let Some(newest) = remembered.iter().map(|(row, ..)| row.at).max() else { return };
    for rows in remembered.chunks(MAX_ROWS) {
        sql.push("; INSERT INTO last_results (tenant, key, run, seq, at) ");
        sql.push_values(rows, |mut values, (row, run, key)| {
            values.push_bind(row.tenant.as_str()).push_bind(*key).push_bind(run.as_str());
            values.push_bind(row.seq).push_bind(row.at);
        });
        // A run on a slower clock does not replace a newer result.
        sql.push(
            " ON CONFLICT (tenant, key) DO UPDATE SET run = excluded.run, seq = excluded.seq, at = excluded.at \
             WHERE excluded.at >= last_results.at",
        );
    }
    sql.push("; DELETE FROM last_results WHERE at < ").push_bind(newest.saturating_sub(KEPT_NANOS));
}

impl Store {
    /// The last result that was appended with the key, if its event is still there and can be read.
    ///
    /// # Errors
    /// Database errors.
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
