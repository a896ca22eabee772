//! The table functions of programs: reads of declared tables, and the commit of what they staged.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CommitTerms, moment};
use crate::staged::{HostValues, ReadBase, StoredRow, TableCall, WriteDiff};
use crate::tools::{Tool, ToolContext, ToolError};

/// Reads what a call of a program about a table needs: `find`, `get`, `insert`, `update` and `delete` alike. The result has the
/// rows as the store has them; what is staged is laid over them where the program is executed.
#[derive(Debug)]
pub struct TableFunction(pub &'static str);

#[async_trait]
impl Tool for TableFunction {
    async fn call(&self, context: ToolContext, arguments: Value) -> Result<Value, ToolError> {
        let tables = context.tenant_tables()?;
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let call = TableCall::read(tables.definitions(), self.0, &arguments)?;
        let rows = tables.read(&call.reading(tables.definitions())?).await?;
        Ok(json!({"rows": rows.iter().map(StoredRow::to_json).collect::<Vec<_>>()}))
    }
}

/// Maximum number of changed rows that the result of a commit lists.
const SHOWN_ROWS: usize = 20;

/// Commits what a program staged. The machine alone requests it.
#[derive(Debug)]
pub struct TableCommit;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commit {
    id: String,
    base: Value,
    diff: Value,
}

#[async_trait]
impl Tool for TableCommit {
    async fn call(&self, context: ToolContext, arguments: Value) -> Result<Value, ToolError> {
        let Commit { id, base, diff } = serde_json::from_value(arguments).map_err(|error| {
            ToolError::refused("staged.arguments", format!("the arguments of the commit do not fit: {error}"))
        })?;
        let tables = context.tenant_tables()?;
        let Some(key) = context.idempotency_key.as_deref() else {
            let message = "a commit was called without an idempotency key: nothing was done";
            return Err(ToolError::failed("staged.no_key", message));
        };
        let base = ReadBase::read(tables.definitions(), &base)?;
        let diff = WriteDiff::read(tables.definitions(), &diff)?;
        let host = HostValues { id, now: moment(&context.now), user: context.principal.user.clone() };
        tables.commit(CommitTerms { key, host: &host, result: None }, &base, &diff).await?;
        let rows: Vec<String> = diff.changes.iter().take(SHOWN_ROWS).map(ToString::to_string).collect();
        Ok(json!({"committed": diff.changes.len(), "rows": rows}))
    }
}
