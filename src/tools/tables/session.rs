//! How a tool reads and changes the tables that its scene declares.

use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{CommitTerms, KEY_REUSED, TenantTables, moment};
use crate::staged::{HostValues, ReadBase, StagedLimits, TableCall, WriteDiff, WriteSet};
use crate::tools::{ToolContext, ToolError};

/// Reads of the tables, and changes that are staged until they are committed together.
///
/// Changes count only with [`Self::commit`]; until then, reads of this session see them and nobody else does.
#[derive(Debug)]
pub struct TableSession {
    rows: TenantTables,
    set: WriteSet,
    key: Option<String>,
}

impl ToolContext {
    /// A session with the tables that the scene declares, for the requester's tenant.
    ///
    /// # Errors
    /// `staged.table` if the scene declares none.
    pub fn tables(&self) -> Result<TableSession, ToolError> {
        let rows = self.tenant_tables()?;
        let key = self.idempotency_key.clone();
        let id = HEXLOWER.encode(&Sha256::digest(key.as_deref().unwrap_or_default()));
        let now = moment(&self.now);
        let user = self.principal.user.clone();
        let host = HostValues { id: id[..16].to_owned(), now, user };
        let set = WriteSet::new(rows.definitions().clone(), host, StagedLimits::default());
        Ok(TableSession { rows, set, key })
    }
}

impl TableSession {
    /// The rows of a table that pass a filter, such as `{"sku": ["A", "B"], "stock": {"gte": 1}}`, with what is staged.
    ///
    /// # Errors
    /// Those of [`crate::staged`], and `store.error`.
    pub async fn find(&mut self, table: &str, filter: Value) -> Result<Vec<Value>, ToolError> {
        match self.call("find", json!({"table": table, "where": filter})).await? {
            Value::Array(rows) => Ok(rows),
            _ => Ok(Vec::new()),
        }
    }

    /// The row with a key, or null.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub async fn get(&mut self, table: &str, key: Value) -> Result<Value, ToolError> {
        self.call("get", json!({"table": table, "key": key})).await
    }

    /// Stages a new row; returns it with what the host fills.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub async fn insert(&mut self, table: &str, values: Value) -> Result<Value, ToolError> {
        self.call("insert", json!({"table": table, "values": values})).await
    }

    /// Stages other values of a row; returns the row.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub async fn update(&mut self, table: &str, key: Value, values: Value) -> Result<Value, ToolError> {
        self.call("update", json!({"table": table, "key": key, "values": values})).await
    }

    /// Stages the deletion of a row; returns the row.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub async fn delete(&mut self, table: &str, key: Value) -> Result<Value, ToolError> {
        self.call("delete", json!({"table": table, "key": key})).await
    }

    /// Returns what the host fills.
    #[cfg(test)]
    pub(super) fn host(&self) -> &HostValues {
        self.set.host()
    }

    /// Returns what was read so far, and what is staged.
    pub fn staged(&self) -> (ReadBase, WriteDiff) {
        (self.set.base(), self.set.diff())
    }

    /// Does everything that is staged, or nothing. The same idempotency key does it once: a repeated call gets what the first
    /// one did, whatever it staged.
    ///
    /// # Errors
    /// `staged.conflict` if something that was read changed in between: the session is to be repeated from its reads.
    /// `staged.no_key` without an idempotency key.
    pub async fn commit(self) -> Result<WriteDiff, ToolError> {
        let key = self.key()?;
        if let Some(done) = self.rows.committed(key).await? {
            return Ok(done);
        }
        let (base, diff) = self.set.finish()?;
        let terms = CommitTerms { key, host: self.set.host(), result: None };
        match self.rows.commit(terms, &base, &diff).await {
            Ok(_) => Ok(diff),
            // An equal call was faster.
            Err(error) if error.code == KEY_REUSED => self.rows.committed(key).await?.ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// Returns what the call with this idempotency key did before, if it did anything: a write that is repeated says so, instead
    /// of computing it from rows that it changed itself.
    ///
    /// # Errors
    /// `store.error`.
    pub async fn committed(&self) -> Result<Option<WriteDiff>, ToolError> {
        match &self.key {
            Some(key) => self.rows.committed(key).await,
            None => Ok(None),
        }
    }

    /// Does everything that is staged, or nothing, and keeps the result of the call with it. The same idempotency key does it
    /// once: a repeated call gets the result of the first one.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub(in crate::tools) async fn commit_returning(self, result: Value) -> Result<Value, ToolError> {
        let key = self.key()?;
        let (base, diff) = self.set.finish()?;
        let written = result.to_string();
        let terms = CommitTerms { key, host: self.set.host(), result: Some(&written) };
        match self.rows.commit(terms, &base, &diff).await {
            Ok(false) => Ok(result),
            // An equal call was faster.
            Ok(true) => Ok(self.committed_result().await?.unwrap_or(result)),
            Err(error) if error.code == KEY_REUSED => self.committed_result().await?.ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// The result of the call with this idempotency key, if it has committed before.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub(in crate::tools) async fn committed_result(&self) -> Result<Option<Value>, ToolError> {
        self.rows.committed_result(self.key()?).await
    }

    fn key(&self) -> Result<&str, ToolError> {
        self.key.as_deref().ok_or_else(|| {
            let message = "a write was called without an idempotency key: nothing was done";
            ToolError::failed("staged.no_key", message)
        })
    }

    async fn call(&mut self, function: &str, arguments: Value) -> Result<Value, ToolError> {
        self.perform(function, arguments.as_object().unwrap_or(&Map::new())).await
    }

    /// A call of one of [`TableCall::FUNCTIONS`].
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(in crate::tools) async fn perform(
        &mut self,
        function: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Value, ToolError> {
        let call = TableCall::read(self.set.tables(), function, arguments)?;
        let found = self.rows.read(&call.reading(self.set.tables())?).await?;
        Ok(self.set.perform(&call, found)?)
    }
}
