//! PostgreSQL: a role that cannot write, a read-only transaction, and a plan that is read before it is executed.

mod calls;
mod catalog;
mod connection;
mod errors;
mod plan;
mod role;
mod select;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use secrecy::SecretString;
use tokio::sync::OwnedSemaphorePermit;

use super::{DatabaseSchema, QueryLimits, SqlDatabaseSettings, SqlEngineError, SqlRows};
use crate::sql_guard::{ApprovedSet, TableName};
use connection::PostgresConnections;
use plan::PlanPermission;

/// Milliseconds for one query about the role.
const CHECK_TIMEOUT_MS: u64 = 20_000;

/// A server, and connections to it.
#[derive(Debug)]
pub(super) struct PostgresDatabase {
    connections: PostgresConnections,
    facts: RwLock<Arc<Facts>>,
}

/// What is known of the whole database beside its schema.
#[derive(Debug, Default)]
struct Facts {
    /// Names of the server's own functions.
    functions: BTreeSet<String>,
    /// The tables that a partition or inheriting table belongs to.
    parents: BTreeMap<TableName, Vec<TableName>>,
}

impl PostgresDatabase {
    pub(super) fn new(url: &SecretString, settings: &SqlDatabaseSettings) -> Result<Self, SqlEngineError> {
        let connections = PostgresConnections::new(url, settings.max_concurrent)?;
        Ok(Self { connections, facts: RwLock::default() })
    }

    /// Refuses a role that may do more than read; returns remarks about what it may do beside that.
    pub(super) async fn check_role(&self) -> Result<Vec<String>, SqlEngineError> {
        let mut connection = self.connections.take().await?;
        connection::begin(&mut connection, CHECK_TIMEOUT_MS).await?;
        let remarks = role::check(&mut connection).await?;
        select::end(&mut connection).await;
        self.connections.give_back(connection);
        Ok(remarks)
    }

    /// Remarks on columns of `schema` that are withheld and that the role could read.
    pub(super) async fn readable_withheld(
        &self,
        schema: &DatabaseSchema,
    ) -> Result<Vec<String>, SqlEngineError> {
        let mut connection = self.connections.take().await?;
        connection::begin(&mut connection, CHECK_TIMEOUT_MS).await?;
        let remarks = role::readable_withheld(&mut connection, schema).await?;
        select::end(&mut connection).await;
        self.connections.give_back(connection);
        Ok(remarks)
    }

    pub(super) async fn schema(
        &self,
        settings: &SqlDatabaseSettings,
    ) -> Result<DatabaseSchema, SqlEngineError> {
        let mut connection = self.connections.take().await?;
        let (schema, facts) = catalog::read(&mut connection, settings).await?;
        self.connections.give_back(connection);
        *self.facts.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(facts);
        Ok(schema)
    }

    /// Executes `sql` if it does nothing but read `set`. If the future is dropped, so is its connection, and the server ends
    /// the statement.
    pub(super) async fn query(
        &self,
        sql: &str,
        set: &ApprovedSet,
        schema: &DatabaseSchema,
        settings: &SqlDatabaseSettings,
        limits: &QueryLimits,
        _place: OwnedSemaphorePermit,
    ) -> Result<SqlRows, SqlEngineError> {
        let facts = Arc::clone(&self.facts.read().unwrap_or_else(PoisonError::into_inner));
        let permission = PlanPermission {
            set,
            schema,
            functions: &facts.functions,
            parents: &facts.parents,
            view_functions: &settings.view_functions,
        };
        permission.check_text(sql)?;
        let mut connection = self.connections.take().await?;
        let rows = select::rows(&mut connection, sql, &permission, limits).await;
        if select::end(&mut connection).await {
            self.connections.give_back(connection);
        }
        rows
    }
}
