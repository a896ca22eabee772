//! The bytes of each tenant's events and documents, and the quota on them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use rusqlite::{Connection, OptionalExtension, params};
use sqlx::{AssertSqlSafe, SqliteConnection};

use super::Store;
use super::error::{Error, ErrorCode};
use super::record::JournalRow;
use crate::run::TenantId;

/// Counts the bytes of `rows`.
pub(super) fn add_bytes(connection: &Connection, rows: &[&JournalRow]) -> rusqlite::Result<()> {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry(row.tenant.as_str()).or_default();
        *sum = sum.saturating_add(i64::try_from(row.body.len()).unwrap_or(i64::MAX));
    }
    let mut add = connection.prepare_cached(ADD)?;
    for (tenant, bytes) in sums {
        add.execute(params![tenant, bytes])?;
    }
    Ok(())
}

/// Subtracts the streams about to be erased: the streams of tenant `?1` that the SQL condition `which` selects by
/// the name `?2`.
pub(super) async fn subtract_erased(
    tx: &mut SqliteConnection,
    which: &'static str,
    tenant: &TenantId,
    name: &str,
) -> Result<(), sqlx::Error> {
    let sql = format!(
        "UPDATE tenant_bytes SET bytes = max(0, bytes - \
         (SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM journal WHERE {which})) WHERE tenant = ?1"
    );
    sqlx::query(AssertSqlSafe(sql)).bind(tenant.as_str()).bind(name).execute(tx).await.map(drop)
}

/// The bytes that tenants that start runs have stored, while a batch is checked.
#[derive(Debug)]
pub(super) struct StoredBytes {
    /// The quota; `None` if there is none.
    max: Option<u64>,
    used: BTreeMap<TenantId, u64>,
}

impl StoredBytes {
    /// Reads what the tenants have stored that start runs in `groups`; nothing without a quota.
    pub(super) fn read(
        connection: &Connection,
        groups: &[Vec<JournalRow>],
        max: Option<u64>,
    ) -> rusqlite::Result<Self> {
        let mut used: BTreeMap<TenantId, u64> = BTreeMap::new();
        if max.is_some() {
            let starts = groups.iter().flatten().filter(|row| row.starts_run());
            used.extend(starts.map(|row| (row.tenant.clone(), 0)));
        }
        for (tenant, used) in &mut used {
            let mut read = connection.prepare_cached(STORED)?;
            let bytes: Option<i64> = read.query_row([tenant.as_str()], |row| row.get(0)).optional()?;
            *used = bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
        }
        Ok(Self { max, used })
    }

    /// Refuses the rows of a stream if they start a run of a tenant whose quota is used up, and counts them
    /// otherwise.
    pub(super) fn add(&mut self, rows: &[&JournalRow]) -> Result<(), Error> {
        let Some(max) = self.max else { return Ok(()) };
        for row in rows {
            let Some(used) = self.used.get_mut(&row.tenant) else { continue };
            if row.starts_run() && *used >= max {
                return Err(quota_error(&row.tenant, *used, max));
            }
            *used = used.saturating_add(row.body.len() as u64);
        }
        Ok(())
    }
}

/// The error for a tenant that has `used` bytes stored and may store `max`.
pub(super) fn quota_error(tenant: &TenantId, used: u64, max: u64) -> Error {
    let what = format!(
        "tenant `{tenant}` has {used} bytes of events and documents stored, of {max} allowed (store.max_tenant_bytes): \
         erase conversations (DELETE /api/sessions/ID), plans (DELETE /api/plans/ID) or documents \
         (DELETE /api/documents/ID), or have the limit raised"
    );
    Error::new(ErrorCode::Quota, what)
}

pub(super) async fn stored(connection: &mut SqliteConnection, tenant: &TenantId) -> Result<u64, sqlx::Error> {
    let bytes: Option<i64> =
        sqlx::query_scalar(STORED).bind(tenant.as_str()).fetch_optional(connection).await?;
    Ok(bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0))
}

/// Counts the bytes of a document.
pub(super) async fn add(tx: &mut SqliteConnection, tenant: &TenantId, bytes: u64) -> Result<(), sqlx::Error> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    sqlx::query(ADD).bind(tenant.as_str()).bind(bytes).execute(tx).await.map(drop)
}

/// Subtracts the bytes of a document.
pub(super) async fn subtract(
    tx: &mut SqliteConnection,
    tenant: &TenantId,
    bytes: i64,
) -> Result<(), sqlx::Error> {
    let sql = "UPDATE tenant_bytes SET bytes = max(0, bytes - ?) WHERE tenant = ?";
    sqlx::query(sql).bind(bytes).bind(tenant.as_str()).execute(tx).await.map(drop)
}

const ADD: &str = "INSERT INTO tenant_bytes (tenant, bytes) VALUES (?, ?) \
     ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes";

const STORED: &str = "SELECT bytes FROM tenant_bytes WHERE tenant = ?";

impl Store {
    /// Sets how many bytes of events and documents a tenant may have stored; `None` for any number. A run that would
    /// start beyond it, and a document that does not fit, are refused with `store.quota`; runs in progress continue.
    pub fn limit_tenant_bytes(&self, max: Option<u64>) {
        self.inner.max_tenant_bytes.store(max.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How many bytes of events and documents a tenant may have stored.
    pub(super) fn max_tenant_bytes(&self) -> Option<u64> {
        Some(self.inner.max_tenant_bytes.load(Ordering::Relaxed)).filter(|max| *max < u64::MAX)
    }

    /// The bytes of a tenant's events and documents.
    ///
    /// # Errors
    /// Database errors.
    pub async fn tenant_bytes(&self, tenant: &TenantId) -> Result<u64, Error> {
        let bytes: Option<i64> = sqlx::query_scalar(STORED)
            .bind(tenant.as_str())
            .fetch_optional(self.pool())
            .await
            .map_err(|e| Error::database(self.path(), "read the stored bytes", &e))?;
        Ok(bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::MIGRATIONS;
    use super::super::tests::{envelope, event, fresh, open, run_id, session, tenant};
    use super::super::{DataDir, Record};
    use super::*;
    use crate::run::{Event, RunStatus};

    fn row(record: Record) -> JournalRow {
        record.to_row().unwrap()
    }

    fn begun(n: u128) -> JournalRow {
        row(Record::Run(event(n, 1).into()))
    }

    fn ended(n: u128) -> JournalRow {
        let end = Event::RunCompleted { status: RunStatus::Completed };
        row(Record::Run(envelope(Some(run_id(n)), "s1", 2, end).into()))
    }

    async fn counted(store: &Store) -> u64 {
        let sum: i64 = sqlx::query_scalar("SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM journal")
            .fetch_one(store.pool())
            .await
            .unwrap();
        sum.try_into().unwrap()
    }

    #[tokio::test]
    async fn quota_refuses_runs_that_would_start_and_erasure_makes_room() {
        let (_tmp, store) = fresh().await;
        let length = begun(1).body.len() as u64;
        store.limit_tenant_bytes(Some(length + 1));
        // The batch counts what it appends itself.
        let outcomes = store.write(&[vec![begun(1)], vec![begun(2)], vec![begun(3)]]).await.unwrap();
        let refused: Vec<_> = outcomes.iter().map(|outcome| outcome.failures.len()).collect();
        assert_eq!(refused, [0, 0, 1]);
        let (_, error) = &outcomes[2].failures[0];
        assert_eq!(error.code(), "store.quota");
        let said = error.to_string();
        assert!(said.contains(&format!("has {} bytes", 2 * length)), "{said}");
        assert!(said.contains(&format!("of {} allowed", length + 1)), "{said}");
        assert_eq!(store.tenant_bytes(&tenant()).await.unwrap(), counted(&store).await);
        // Runs in progress continue.
        let outcomes = store.write(&[vec![ended(1)], vec![ended(2)]]).await.unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.failures.is_empty()), "{outcomes:?}");
        assert!(store.erase_run(&tenant(), run_id(1)).await.unwrap());
        assert_eq!(store.tenant_bytes(&tenant()).await.unwrap(), counted(&store).await);
        assert!(store.erase_session(&tenant(), &session("s1")).await.unwrap());
        assert_eq!((store.tenant_bytes(&tenant()).await.unwrap(), counted(&store).await), (0, 0));
        let outcomes = store.write(&[vec![begun(3)]]).await.unwrap();
        assert!(outcomes[0].failures.is_empty(), "{outcomes:?}");
    }

    #[tokio::test]
    async fn migration_counts_what_is_stored() {
        let tmp = tempfile::tempdir().unwrap();
        let old = Store::open_with(DataDir::open(tmp.path()).unwrap(), &MIGRATIONS[..9]).await.unwrap();
        sqlx::raw_sql(
            "INSERT INTO journal (stream, seq, session, tenant, at, epoch, schema, body) VALUES
                ('run:1', 1, 's1', 'acme', 1, 0, 1, '\u{e8}'), ('run:1', 2, 's1', 'acme', 1, 0, 1, 'two'),
                ('run:2', 1, 's1', 'rival', 1, 0, 1, 'x')",
        )
        .execute(old.pool())
        .await
        .unwrap();
        old.close().await;
        let store = open(tmp.path()).await;
        assert_eq!(store.tenant_bytes(&tenant()).await.unwrap(), 5);
        assert_eq!(store.tenant_bytes(&TenantId::new("rival").unwrap()).await.unwrap(), 1);
        assert_eq!(store.tenant_bytes(&TenantId::new("nobody").unwrap()).await.unwrap(), 0);
    }
}
