//! SQLite: one connection for one statement, on a thread where blocking is allowed.

mod authorizer;
mod catalog;
mod connection;
mod errors;
mod select;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;

use super::{
    DatabaseSchema, OPEN_TIMEOUT, QueryLimits, SqlDatabaseSettings, SqlEngineError, SqlErrorCode, SqlRows,
};
use crate::sql_guard::ApprovedSet;
use authorizer::ReadPermission;
use connection::{Connector, Watch};

/// A file that is opened for each statement anew.
#[derive(Debug)]
pub(super) struct SqliteDatabase {
    connector: Connector,
}

impl SqliteDatabase {
    /// The database in `path`, which must be a file outside of `forbidden`.
    pub(super) fn new(path: &Path, forbidden: &[PathBuf]) -> Result<Self, SqlEngineError> {
        let connector = Connector::new(path, forbidden);
        connector.file()?;
        Ok(Self { connector })
    }

    pub(super) async fn schema(
        &self,
        settings: &SqlDatabaseSettings,
    ) -> Result<DatabaseSchema, SqlEngineError> {
        let (connector, settings) = (self.connector.clone(), settings.clone());
        let watch = Watch::new(Instant::now() + OPEN_TIMEOUT, u64::MAX);
        blocking(watch, move |watch| catalog::read(&connector, &settings, watch)).await
    }

    /// Executes `sql` if it does nothing but read `set`. `place` is given back when the statement has ended, also
    /// after the caller has gone.
    pub(super) async fn query(
        &self,
        sql: &str,
        set: &ApprovedSet,
        schema: &DatabaseSchema,
        settings: &SqlDatabaseSettings,
        limits: &QueryLimits,
        place: OwnedSemaphorePermit,
    ) -> Result<SqlRows, SqlEngineError> {
        let permission = ReadPermission::new(set, schema, &settings.view_functions);
        let watch = Watch::new(Instant::now() + limits.timeout(), limits.max_kilo_instructions);
        let (connector, sql, limits) = (self.connector.clone(), sql.to_owned(), limits.clone());
        let work = move |watch: &Arc<Watch>| {
            let rows = select::rows(&connector, &sql, permission, &limits, watch);
            drop(place);
            rows
        };
        blocking(watch, work).await
    }
}

/// Does `work` where blocking is allowed. If the caller goes, the statement ends at its next instructions.
async fn blocking<T: Send + 'static>(
    watch: Watch,
    work: impl FnOnce(&Arc<Watch>) -> Result<T, SqlEngineError> + Send + 'static,
) -> Result<T, SqlEngineError> {
    let watch = Arc::new(watch);
    let caller = CancelOnDrop(Arc::clone(&watch));
    let result = tokio::task::spawn_blocking(move || work(&watch)).await;
    drop(caller);
    result.unwrap_or_else(|_| {
        let what = "the statement's thread did not end well";
        Err(SqlEngineError::new(SqlErrorCode::Internal, what, "nothing was changed; try again"))
    })
}

struct CancelOnDrop(Arc<Watch>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
