//! The tables that a scene declares, in the store: their rows by tenant, read with their versions, and changed in one
//! transaction that compares what was read.
//!
//! The version of a row is the number of the commit that wrote it, so no two states of a row share one. A commit is
//! found again by its idempotency key.

mod functions;
mod session;
mod sql;

use std::sync::Arc;

use serde_json::Value;
use sqlx::{Connection as _, Row as _, SqliteConnection};

pub use functions::{TableCommit, TableFunction};
pub use session::TableSession;
pub use sql::schema;

use super::{ToolContext, ToolError};
use crate::staged::{
    BaseConflict, HostValues, RangeVersions, ReadBase, RowChange, RowPlace, SceneTables, StagedError,
    StagedLimits, StoredRow, TableReading, WriteDiff,
};
use sql::{TableNames, inserted, read_row, selected, versions};

/// The code of a commit whose key has made another one.
const KEY_REUSED: &str = "staged.key_reused";

/// The setting of a scene that leaves out the rows that its tables begin with.
const INITIAL_ROWS: &str = "initial_rows";

/// The key of the commit that adds these rows. Keys of calls are hashes, so none is equal.
const INITIAL_KEY: &str = "initial rows";

/// The key under which the result of the call with this key is kept.
fn result_key(key: &str) -> String {
    format!("{key} result")
}

/// The tables of a scene with the rows of one tenant.
#[derive(Debug, Clone)]
pub struct TenantTables {
    pool: sqlx::SqlitePool,
    tables: Arc<SceneTables>,
    names: TableNames,
    tenant: String,
    has_initial: bool,
}

/// The committer, the time of the commit, and its key.
#[derive(Debug, Clone, Copy)]
pub struct CommitTerms<'a> {
    /// The idempotency key: the same key commits once.
    pub key: &'a str,
    /// What the host fills.
    pub host: &'a HostValues,
    /// The result of the call, as JSON, where a repeated call is to get it.
    pub result: Option<&'a str>,
}

impl From<StagedError> for ToolError {
    fn from(error: StagedError) -> Self {
        Self::refused(error.code, error.message)
    }
}

impl ToolContext {
    /// The tables that the scene declares, with the requester's tenant's rows.
    ///
    /// # Errors
    /// `staged.table` if the scene declares none.
    pub fn tenant_tables(&self) -> Result<TenantTables, ToolError> {
        let declared = self.store.tables.as_ref().filter(|(_, tables)| !tables.is_empty());
        let Some((scene, tables)) = declared else {
            return Err(ToolError::failed("staged.table", "the scene declares no tables"));
        };
        let wanted = self.settings.get(INITIAL_ROWS).is_none_or(|setting| setting != false);
        Ok(TenantTables {
            pool: self.store.pool.clone(),
            names: TableNames::of(scene),
            tenant: self.principal.tenant.as_str().to_owned(),
            has_initial: wanted && tables.0.iter().any(|table| !table.initial.is_empty()),
            tables: tables.clone(),
        })
    }
}

/// A moment as columns of the kind `time` have it.
pub fn moment(now: &jiff::Zoned) -> String {
    now.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl TenantTables {
    /// Their definitions.
    pub fn definitions(&self) -> &Arc<SceneTables> {
        &self.tables
    }

    /// The rows that a call needs.
    ///
    /// # Errors
    /// `staged.too_large` if there are too many; `store.error`.
    pub async fn read(&self, reading: &TableReading) -> Result<Vec<StoredRow>, ToolError> {
        self.begin().await?;
        let mut db = self.pool.acquire().await?;
        match reading {
            TableReading::Nothing => Ok(Vec::new()),
            TableReading::Row(place) => Ok(self.row(&mut db, place).await?.into_iter().collect()),
            TableReading::Range(name, filter) => {
                let table = self.tables.table(name)?;
                let max = StagedLimits::default().read_rows;
                let mut query = selected(&self.names, table, &self.tenant, filter, max + 1);
                let rows = query.build().fetch_all(&mut *db).await?;
                if rows.len() > max {
                    let message = format!("more than {max} rows of {name} fit; narrow the conditions");
                    return Err(ToolError::refused("staged.too_large", message));
                }
                rows.iter().map(|row| read_row(table, row)).collect()
            }
        }
    }

    /// Does what a diff says, all of it or nothing, if nothing of the base changed and what the tables declare holds. The
    /// same key does it once; returns whether it was done before.
    ///
    /// # Errors
    /// `staged.conflict`, `staged.check`, `staged.rule`, `staged.append_only` and `staged.key_reused`: nothing was done.
    /// `staged.commit_unknown`: the end of the transaction is not known.
    pub async fn commit(
        &self,
        terms: CommitTerms<'_>,
        base: &ReadBase,
        diff: &WriteDiff,
    ) -> Result<bool, ToolError> {
        self.begin().await?;
        let binding = diff.binding(base)?;
        let mut db = self.pool.acquire().await?;
        let mut tx = db.begin_with("BEGIN IMMEDIATE").await?;
        if let Some((earlier, _)) = self.find_commit(&mut tx, terms.key).await? {
            if earlier == binding {
                return Ok(true);
            }
            let message = "the same call has made other changes before, and made none now";
            return Err(ToolError::refused(KEY_REUSED, message));
        }
        let conflicts = base.conflicts(&self.current(&mut tx, base).await?);
        if !conflicts.is_empty() {
            return Err(StagedError::from(conflicts.as_slice()).into());
        }
        // What the user said was compared where that is known; nothing of the diff can have changed since.
        self.tables.check_diff(diff, terms.host, None)?;
        for change in &diff.changes {
            // The base is not trusted: what is changed was read, and is as it was said to be.
            if !base.rows.contains_key(&change.place) {
                let message = format!("{} was changed without having been read", change.place);
                return Err(ToolError::refused("staged.arguments", message));
            }
            let stored = self.row(&mut tx, &change.place).await?.map(|row| row.values);
            if stored != change.before {
                return Err(StagedError::from([BaseConflict::Row(change.place.clone())].as_slice()).into());
            }
        }
        let written = serde_json::to_string(diff).unwrap_or_default();
        let version = self.log(&mut tx, terms, (&binding, &written)).await?;
        if let Some(result) = terms.result {
            let key = result_key(terms.key);
            self.log(&mut tx, CommitTerms { key: &key, ..terms }, ("", result)).await?;
        }
        for change in &diff.changes {
            self.apply(&mut tx, change, version).await?;
        }
        tx.commit().await.map_err(|error| {
            let message = format!("whether the changes were stored is not known: {error}");
            ToolError::unknown("staged.commit_unknown", message)
        })?;
        Ok(false)
    }

    /// The rows and ranges of a base as they are now.
    async fn current(&self, db: &mut SqliteConnection, base: &ReadBase) -> Result<ReadBase, ToolError> {
        let mut current = ReadBase::default();
        for place in base.rows.keys() {
            let row = self.row(db, place).await?;
            current.rows.insert(place.clone(), row.map(|row| row.version));
        }
        for range in &base.ranges {
            let table = self.tables.table(&range.table)?;
            // One row more than there were is a change already.
            let max = range.rows.min(StagedLimits::default().read_rows).saturating_add(1);
            let mut query = versions(&self.names, table, &self.tenant, &range.filter, max);
            let rows = query.build().fetch_all(&mut *db).await?;
            let mut found = Vec::new();
            for row in &rows {
                found.push((sql::read_key(table, row)?, row.try_get(0)?));
            }
            current.ranges.push(RangeVersions::of(&range.table, range.filter.clone(), found)?);
        }
        Ok(current)
    }

    async fn row(&self, db: &mut SqliteConnection, place: &RowPlace) -> Result<Option<StoredRow>, ToolError> {
        let table = self.tables.table(&place.table)?;
        let mut query = sql::at_place(&self.names, table, &self.tenant, place);
        let found = query.build().fetch_optional(&mut *db).await?;
        found.map(|row| read_row(table, &row)).transpose()
    }

    /// Returns what was done under an idempotency key, if anything was.
    ///
    /// # Errors
    /// `store.error`.
    pub async fn committed(&self, key: &str) -> Result<Option<WriteDiff>, ToolError> {
        let mut db = self.pool.acquire().await?;
        let Some((_, written)) = self.find_commit(&mut db, key).await? else { return Ok(None) };
        let diff = serde_json::from_str(&written).unwrap_or_default();
        Ok(Some(WriteDiff::read(&self.tables, &diff)?))
    }

    /// The result of the call that committed under an idempotency key, if it was kept with the commit.
    pub(in crate::tools) async fn committed_result(&self, key: &str) -> Result<Option<Value>, ToolError> {
        let mut db = self.pool.acquire().await?;
        let found = self.find_commit(&mut db, &result_key(key)).await?;
        Ok(found.map(|(_, result)| serde_json::from_str(&result).unwrap_or_default()))
    }

    /// The binding and the diff of the commit with this key.
    async fn find_commit(
        &self,
        db: &mut SqliteConnection,
        key: &str,
    ) -> Result<Option<(String, String)>, ToolError> {
        let mut query = sql::commit_of(&self.names, &self.tenant, key);
        Ok(query.build_query_as().fetch_optional(&mut *db).await?)
    }

    /// Remembers a commit; its number is the version of the rows that it writes.
    async fn log(
        &self,
        db: &mut SqliteConnection,
        terms: CommitTerms<'_>,
        what: (&str, &str),
    ) -> Result<i64, ToolError> {
        let mut query = sql::new_commit(&self.names, &self.tenant, terms, what);
        Ok(query.build().execute(&mut *db).await?.last_insert_rowid())
    }

    async fn apply(
        &self,
        db: &mut SqliteConnection,
        change: &RowChange,
        version: i64,
    ) -> Result<(), ToolError> {
        let table = self.tables.table(&change.place.table)?;
        if change.before.is_some() {
            sql::deleted(&self.names, table, &self.tenant, &change.place).build().execute(&mut *db).await?;
        }
        if let Some(row) = &change.after {
            inserted(&self.names, table, &self.tenant, row, version).build().execute(&mut *db).await?;
        }
        Ok(())
    }

    /// Adds the rows that a tenant begins with, once.
    async fn begin(&self) -> Result<(), ToolError> {
        if !self.has_initial {
            return Ok(());
        }
        let mut db = self.pool.acquire().await?;
        if self.find_commit(&mut db, INITIAL_KEY).await?.is_some() {
            return Ok(());
        }
        let mut tx = db.begin_with("BEGIN IMMEDIATE").await?;
        if self.find_commit(&mut tx, INITIAL_KEY).await?.is_some() {
            return Ok(());
        }
        let host = HostValues { id: String::new(), now: String::new(), user: String::new() };
        let terms = CommitTerms { key: INITIAL_KEY, host: &host, result: None };
        let version = self.log(&mut tx, terms, ("", "[]")).await?;
        for table in &self.tables.0 {
            for row in &table.initial {
                let mut query = inserted(&self.names, table, &self.tenant, row, version);
                query.build().execute(&mut *tx).await?;
            }
        }
        // A read repeats this; the next call finds it done or not done.
        Ok(tx.commit().await?)
    }
}

#[cfg(test)]
mod tests;
