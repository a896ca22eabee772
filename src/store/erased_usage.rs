//! Usage totals that are in no stream: those of erased conversations, without their content, and of calls that belong to
//! no conversation.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use super::Store;
use super::breakdown::{USAGE_COLUMNS, read_attempts};
use super::error::Error;
use super::usage::{USAGE_EVENTS, time_bound};
use crate::run::{Attempt, TenantId, Usage};

/// A quarter of an hour in nanoseconds, the resolution of the totals.
const QUARTER: i64 = 900_000_000_000;

/// Adds the usage of streams about to be erased to the totals: the streams of tenant `?1` that the SQL
/// condition `which` selects by the name `?2`.
pub(super) async fn keep_usage(
    tx: &mut SqliteConnection,
    which: &'static str,
    tenant: &TenantId,
    name: &str,
) -> Result<(), sqlx::Error> {
    let sql = format!("SELECT {USAGE_COLUMNS} FROM journal WHERE {USAGE_EVENTS} AND {which}");
    let rows: Vec<SqliteRow> =
        sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant.as_str()).bind(name).fetch_all(&mut *tx).await?;
    let mut sums: BTreeMap<(i64, String, String), Usage> = BTreeMap::new();
    for row in &rows {
        let at: i64 = row.try_get("at")?;
        for attempt in read_attempts(row)? {
            *sums.entry((at - at.rem_euclid(QUARTER), attempt.model, attempt.purpose)).or_default() +=
                attempt.usage;
        }
    }
    add_sums(tx, tenant, sums).await
}

impl Store {
    /// Adds the usage of `attempts` at models that belong to no conversation of the tenant who pays for them. It counts in
    /// [`Store::usage`] and [`Store::usage_breakdown`] like that of a conversation.
    ///
    /// # Errors
    /// Database errors.
    pub async fn add_usage(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        attempts: &[Attempt],
    ) -> Result<(), Error> {
        let at = time_bound(Some(at), 0);
        let mut sums: BTreeMap<(i64, String, String), Usage> = BTreeMap::new();
        for attempt in attempts.iter().filter(|attempt| attempt.usage != Usage::default()) {
            let key = (at - at.rem_euclid(QUARTER), attempt.model.clone(), attempt.purpose.clone());
            *sums.entry(key).or_default() += attempt.usage;
        }
        if sums.is_empty() {
            return Ok(());
        }
        let doing = "record the usage of models";
        let failed = |e| Error::database(self.path(), doing, &e);
        let mut writing = self.writer(doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        let mut tx =
            sqlx::Connection::begin_with(&mut *connection, "BEGIN IMMEDIATE").await.map_err(failed)?;
        add_sums(&mut tx, tenant, sums).await.map_err(failed)?;
        tx.commit().await.map_err(failed)
    }
}

/// Adds sums, by quarter of an hour, model and purpose, to the totals of a tenant.
async fn add_sums(
    tx: &mut SqliteConnection,
    tenant: &TenantId,
    sums: BTreeMap<(i64, String, String), Usage>,
) -> Result<(), sqlx::Error> {
    for ((at, model, purpose), sum) in sums {
        sqlx::query(
            "INSERT INTO erased_usage (tenant, at, model, purpose, calls, input_tokens, cached_input_tokens, \
             output_tokens, cost_nano_usd) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) \
             ON CONFLICT (tenant, at, model, purpose) DO UPDATE SET calls = calls + excluded.calls, \
             input_tokens = input_tokens + excluded.input_tokens, \
             cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens, \
             output_tokens = output_tokens + excluded.output_tokens, \
             cost_nano_usd = cost_nano_usd + excluded.cost_nano_usd",
        )
        .bind(tenant.as_str())
        .bind(at)
        .bind(model)
        .bind(purpose)
        .bind(i64::from(sum.calls))
        .bind(to_sql_integer(sum.input_tokens))
        .bind(to_sql_integer(sum.cached_input_tokens))
        .bind(to_sql_integer(sum.output_tokens))
        .bind(to_sql_integer(sum.cost_nano_usd))
        .execute(&mut *tx)
        .await?;
    }
    Ok(())
}

fn to_sql_integer(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::super::Record;
    use super::super::tests::{envelope, event, fresh, run_id, session, tenant};
    use crate::run::{Attempt, Event, Fault, RunStatus, SessionEvent, Usage};

    #[tokio::test]
    async fn usage_without_a_conversation_adds_up() {
        let (_tmp, store) = fresh().await;
        let usage = Usage { calls: 1, input_tokens: 10, cost_nano_usd: 7, ..Usage::default() };
        let attempt = |usage: Usage| Attempt {
            model: "vectors".to_owned(),
            purpose: "embedding".to_owned(),
            usage,
            ..Attempt::default()
        };
        let at = event(1, 1).at;
        store.add_usage(&tenant(), at, &[]).await.unwrap();
        for _ in 0..2 {
            let attempts = [attempt(usage), attempt(Usage::default()), attempt(usage)];
            store.add_usage(&tenant(), at, &attempts).await.unwrap();
        }
        let rows = store.usage_breakdown(&tenant(), None, None, &TimeZone::UTC).await.unwrap();
        let lines: Vec<_> =
            rows.iter().map(|row| (row.purpose.as_str(), row.calls, row.cost_nano_usd)).collect();
        assert_eq!(lines, [("embedding", 4, 28)]);
        assert_eq!(store.usage(None, None).await.unwrap()[&tenant()].input_tokens, 40);
    }

    #[tokio::test]
    async fn usage_of_erased_conversation_still_counts() {
        let (_tmp, store) = fresh().await;
        let usage = Usage { calls: 1, input_tokens: 10, cost_nano_usd: 7, ..Usage::default() };
        let attempt = |purpose: &str| Attempt {
            model: "main".to_owned(),
            purpose: purpose.to_owned(),
            usage,
            ..Attempt::default()
        };
        let mut expected = Usage::default();
        for n in 1..=3 {
            let failed = Event::ModelFailed {
                call: 1,
                error: Fault::new("x", "y"),
                usage,
                millis: 0,
                attempts: vec![attempt("plan")],
            };
            let end = Event::RunCompleted { status: RunStatus::Completed };
            let summary = SessionEvent::SummaryFailed {
                error: Fault::new("x", "y"),
                usage,
                attempts: vec![attempt("summary")],
            };
            let group = [
                Record::Run(event(n, 1).into()),
                Record::Run(envelope(Some(run_id(n)), "s1", 2, failed).into()),
                Record::Run(envelope(Some(run_id(n)), "s1", 3, end).into()),
                Record::Session(envelope(None, "s1", 1, summary)),
            ];
            store.write(&[group.map(|record| record.to_row().unwrap()).into()]).await.unwrap();
            expected += usage;
            expected += usage;
            let before = store.usage(None, None).await.unwrap();
            assert_eq!(before[&tenant()], expected);
            let rows = store.usage_breakdown(&tenant(), None, None, &TimeZone::UTC).await.unwrap();
            let lines: Vec<_> = rows.iter().map(|row| (row.purpose.as_str(), row.calls)).collect();
            assert_eq!(lines, [("plan", n as u64), ("summary", n as u64)]);
            assert!(store.erase_session(&tenant(), &session("s1")).await.unwrap());
            assert_eq!(store.usage_breakdown(&tenant(), None, None, &TimeZone::UTC).await.unwrap(), rows);
            assert_eq!(store.usage(None, None).await.unwrap(), before);
            assert_eq!(store.session_usage(&tenant(), &session("s1")).await.unwrap(), Usage::default());
        }
        let at = event(1, 2).at;
        let day = jiff::SignedDuration::from_hours(24);
        assert_eq!(store.usage(Some(at - day), Some(at)).await.unwrap()[&tenant()], expected);
        assert!(store.usage(Some(at + day), None).await.unwrap().is_empty());
        assert!(store.usage(None, Some(at - day)).await.unwrap().is_empty());
    }
}
