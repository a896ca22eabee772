//! Model usage of one tenant by day, model and purpose.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::Store;
use super::error::Error;
use super::read::read_time;
use super::usage::{USAGE_EVENTS, time_bound};
use crate::run::{Attempt, TenantId, Usage};

/// The name used when an event of an older version has no model or purpose.
const OTHER: &str = "other";

/// One line of a usage report: a tenant's requests to one model for one purpose on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageRow {
    /// The day, in the time zone of the report.
    pub day: Date,
    /// The configured name of the model.
    pub model: String,
    /// The purpose of the requests, as `llm.purposes` names it.
    pub purpose: String,
    /// Number of calls to the model.
    pub calls: u64,
    /// Prompt tokens, including cached ones.
    pub input_tokens: u64,
    /// Prompt tokens that the provider had cached.
    pub cached_input_tokens: u64,
    /// Completion tokens.
    pub output_tokens: u64,
    /// Cost in billionths of a US dollar.
    pub cost_nano_usd: u64,
}

/// The columns that [`read_attempts`] reads. Not the whole event: a reply can be long.
pub(super) const USAGE_COLUMNS: &str = "\
at, json_extract(body, '$.reply.model') AS model, body GLOB '{\"type\":\"summar*' AS summary, \
json_object('usage', json_extract(body, '$.usage'), \
'attempts', json(coalesce(json_extract(body, '$.attempts'), '[]'))) AS told";

/// The part of an event that a usage report needs.
#[derive(Default, Deserialize)]
struct EventUsage {
    #[serde(default)]
    usage: Usage,
    #[serde(default)]
    attempts: Vec<Attempt>,
}

impl Store {
    /// Model usage of `tenant` in events appended from `since` (inclusive) to `until` (exclusive; both are
    /// optional), by day in `zone`, model and purpose, in this order. The totals equal those of
    /// [`Store::usage`]. Reads only the events in the period that have usage, through an index.
    ///
    /// # Errors
    /// Database errors.
    pub async fn usage_breakdown(
        &self,
        tenant: &TenantId,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
        zone: &TimeZone,
    ) -> Result<Vec<UsageRow>, Error> {
        let failed = |e| Error::database(self.path(), "read the usage of models", &e);
        let sql = format!(
            "SELECT {USAGE_COLUMNS} FROM journal WHERE tenant = ?1 AND at >= ?2 AND at < ?3 AND {USAGE_EVENTS}"
        );
        let mut rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(tenant.as_str())
            .bind(time_bound(since, i64::MIN))
            .bind(time_bound(until, i64::MAX))
            .fetch(self.pool());
        let mut sums: BTreeMap<(Date, String, String), UsageRow> = BTreeMap::new();
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let day = day(&row, zone).map_err(failed)?;
            for attempt in read_attempts(&row).map_err(failed)? {
                let key = (day, attempt.model.clone(), attempt.purpose.clone());
                let sum = sums.entry(key).or_insert_with(|| UsageRow::new(day, &attempt));
                sum.add(attempt.usage);
            }
        }
        let erased = sqlx::query("SELECT * FROM erased_usage WHERE tenant = ?1 AND at >= ?2 AND at < ?3")
            .bind(tenant.as_str())
            .bind(time_bound(since, i64::MIN))
            .bind(time_bound(until, i64::MAX))
            .fetch_all(self.pool())
            .await
            .map_err(failed)?;
        for row in &erased {
            let day = day(row, zone).map_err(failed)?;
            let attempt = erased_attempt(row).map_err(failed)?;
            let key = (day, attempt.model.clone(), attempt.purpose.clone());
            sums.entry(key).or_insert_with(|| UsageRow::new(day, &attempt)).add(attempt.usage);
        }
        Ok(sums.into_values().collect())
    }
}

fn day(row: &SqliteRow, zone: &TimeZone) -> Result<Date, sqlx::Error> {
    Ok(read_time(row, "at")?.to_zoned(zone.clone()).date())
}

/// The usage of erased conversations in a quarter of an hour.
fn erased_attempt(row: &SqliteRow) -> Result<Attempt, sqlx::Error> {
    let figure = |column: &str| Ok::<_, sqlx::Error>(row.try_get::<i64, _>(column)?.unsigned_abs());
    let usage = Usage {
        calls: u32::try_from(figure("calls")?).unwrap_or(u32::MAX),
        input_tokens: figure("input_tokens")?,
        cached_input_tokens: figure("cached_input_tokens")?,
        output_tokens: figure("output_tokens")?,
        cost_nano_usd: figure("cost_nano_usd")?,
    };
    Ok(Attempt {
        model: row.try_get("model")?,
        purpose: row.try_get("purpose")?,
        usage,
        ..Attempt::default()
    })
}

/// The attempts of an event that have usage.
pub(super) fn read_attempts(row: &SqliteRow) -> Result<Vec<Attempt>, sqlx::Error> {
    // An unreadable event must not hide the usage of the others.
    let event: EventUsage = serde_json::from_str(row.try_get::<&str, _>("told")?).unwrap_or_default();
    let mut attempts = event.attempts;
    if attempts.is_empty() {
        let model: Option<String> = row.try_get("model")?;
        let purpose = if row.try_get("summary")? { "summary" } else { OTHER };
        attempts.push(Attempt {
            model: model.filter(|model| !model.is_empty()).unwrap_or_else(|| OTHER.to_owned()),
            purpose: purpose.to_owned(),
            usage: event.usage,
            ..Attempt::default()
        });
    }
    attempts.retain(|attempt| attempt.usage != Usage::default());
    Ok(attempts)
}

impl UsageRow {
    fn new(day: Date, attempt: &Attempt) -> Self {
        Self {
            day,
            model: attempt.model.clone(),
            purpose: attempt.purpose.clone(),
            calls: 0,
            input_tokens: 0,
            cached_input_tokens: 0,
            output_tokens: 0,
            cost_nano_usd: 0,
        }
    }

    fn add(&mut self, usage: Usage) {
        self.calls = self.calls.saturating_add(u64::from(usage.calls));
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.cached_input_tokens = self.cached_input_tokens.saturating_add(usage.cached_input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        self.cost_nano_usd = self.cost_nano_usd.saturating_add(usage.cost_nano_usd);
    }
}
