//! Model usage, summed up from the journal.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::Store;
use super::error::Error;
use crate::run::{SessionId, TenantId, Usage};

// The events with the usage of model calls: those of runs, and a conversation's own. The usage in
// `turn_ended` repeats that of the run, so it is excluded. An event's JSON begins with its type, so other
// events need not be parsed. A damaged event must not hide the usage of the others, nor may an absurd number
// of a provider: `SUM` fails above 2^63, so the sums are floating-point (exact up to 2^53) and cut.
const SUMS: &str = "\
CAST(MIN(TOTAL(json_extract(body, '$.usage.calls')), 9.0e18) AS INTEGER) AS calls, \
CAST(MIN(TOTAL(json_extract(body, '$.usage.input_tokens')), 9.0e18) AS INTEGER) AS input_tokens, \
CAST(MIN(TOTAL(json_extract(body, '$.usage.cached_input_tokens')), 9.0e18) AS INTEGER) AS cached_input_tokens, \
CAST(MIN(TOTAL(json_extract(body, '$.usage.output_tokens')), 9.0e18) AS INTEGER) AS output_tokens, \
CAST(MIN(TOTAL(json_extract(body, '$.usage.cost_nano_usd')), 9.0e18) AS INTEGER) AS cost_nano_usd";
pub(super) const USAGE_EVENTS: &str = "\
(body GLOB '{\"type\":\"model_replied\"*' OR body GLOB '{\"type\":\"model_failed\"*' OR \
body GLOB '{\"type\":\"summarised\"*' OR body GLOB '{\"type\":\"summary_failed\"*') \
AND json_valid(body)";

// The streams of conversation `?2` of tenant `?1`.
pub(super) const SESSION_STREAMS: &str = "stream IN (SELECT 'run:' || run FROM runs \
WHERE tenant = ?1 AND session = ?2 UNION ALL SELECT 'session:' || ?1 || '/' || ?2)";
impl Store {
    /// Model usage of each tenant in events appended from `from` (inclusive) to `to` (exclusive; both are
    /// optional). Usage of erased conversations has a resolution of a quarter of an hour. Reads the whole
    /// journal, so it is for startup and reports only.
    ///
    /// # Errors
    /// Database errors.
    pub async fn usage(
        &self,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    ) -> Result<BTreeMap<TenantId, Usage>, Error> {
        let failed = |e| Error::database(self.path(), "sum up the usage of models", &e);
        let sql = format!(
            "SELECT tenant, CAST(MIN(TOTAL(calls), 9.0e18) AS INTEGER) AS calls, CAST(MIN(TOTAL(input_tokens), 9.0e18) AS INTEGER) AS input_tokens, \
             CAST(MIN(TOTAL(cached_input_tokens), 9.0e18) AS INTEGER) AS cached_input_tokens, CAST(MIN(TOTAL(output_tokens), 9.0e18) AS INTEGER) AS output_tokens, \
             CAST(MIN(TOTAL(cost_nano_usd), 9.0e18) AS INTEGER) AS cost_nano_usd FROM \
             (SELECT tenant, {SUMS} FROM journal WHERE at >= ?1 AND at < ?2 AND {USAGE_EVENTS} GROUP BY tenant \
             UNION ALL SELECT tenant, calls, input_tokens, cached_input_tokens, output_tokens, cost_nano_usd \
             FROM erased_usage WHERE at >= ?1 AND at < ?2) GROUP BY tenant"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(time_bound(from, i64::MIN))
            .bind(time_bound(to, i64::MAX))
            .fetch_all(self.pool())
            .await
            .map_err(failed)?;
        let read = |row: &SqliteRow| {
            let tenant =
                TenantId::new(row.try_get("tenant")?).map_err(|e| sqlx::Error::Decode(Box::new(e)))?;
            Ok((tenant, read_usage(row)?))
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(failed)
    }

    /// Model usage of a conversation so far: of its runs and of its summaries.
    ///
    /// # Errors
    /// Database errors.
    pub async fn session_usage(&self, tenant: &TenantId, session: &SessionId) -> Result<Usage, Error> {
        let failed = |e| Error::database(self.path(), "sum up the usage of models", &e);
        let sql = format!("SELECT {SUMS} FROM journal WHERE {USAGE_EVENTS} AND {SESSION_STREAMS}");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(tenant.as_str())
            .bind(session.as_str())
            .fetch_one(self.pool())
            .await
            .map_err(failed)?;
        read_usage(&row).map_err(failed)
    }
}

/// A time bound in nanoseconds; `none` if absent. Saturates: a time that does not fit into 64 bits is far
/// outside any journal.
pub(super) fn time_bound(at: Option<Timestamp>, none: i64) -> i64 {
    let far = |nanos: i128| if nanos < 0 { i64::MIN } else { i64::MAX };
    at.map_or(none, |at| i64::try_from(at.as_nanosecond()).unwrap_or_else(|_| far(at.as_nanosecond())))
}

fn read_usage(row: &SqliteRow) -> Result<Usage, sqlx::Error> {
    let sum = |column: &str| {
        let sum: Option<i64> = row.try_get(column)?;
        Ok::<_, sqlx::Error>(u64::try_from(sum.unwrap_or(0)).unwrap_or(0))
    };
    Ok(Usage {
        calls: u32::try_from(sum("calls")?).unwrap_or(u32::MAX),
        input_tokens: sum("input_tokens")?,
        cached_input_tokens: sum("cached_input_tokens")?,
        output_tokens: sum("output_tokens")?,
        cost_nano_usd: sum("cost_nano_usd")?,
    })
}
