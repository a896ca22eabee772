//! SQL engines: opens a database that is only read, tells what it holds, and executes what the guard approved.
//!
//! [`crate::sql_guard`] decides on a statement's text; this module is the layer below it, and does not rely on it. Each
//! engine is asked to do nothing but read what is approved, by its own means:
//!
//! - SQLite: a file that is opened read-only, an authorizer that denies whatever is not approved, no extensions, an
//!   untrusted schema, limits on values, programs, time and instructions. A connection lives for one statement.
//! - PostgreSQL: a role that cannot write, a read-only transaction that is rolled back, timeouts, a pinned
//!   `search_path`, a plan that is read before it is executed (relations, functions, cost), and a cursor.
//!
//! *Architecture invariants*: nothing is written to a database; no statement outlives its caller or its deadline; no
//! result is held beyond [`QueryLimits`]; no error holds a value of the data, a password or an address.

mod error;
mod limits;
mod offered;
mod postgres;
mod redact;
mod rows;
mod schema;
mod settings;
mod sqlite;
#[cfg(test)]
mod tests;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

pub use error::{SqlEngineError, SqlErrorCode};
pub use limits::QueryLimits;
pub use rows::{RowBound, SqlColumn, SqlRows, SqlValue};
pub use schema::{DatabaseColumn, DatabaseSchema, DatabaseTable, ForeignKey, OmittedTable, RelationKind};
pub use settings::{SqlDatabaseKind, SqlDatabaseSettings};

use crate::sql_guard::{self, Approved, ApprovedSet, Dialect, Limits, TableName};
use postgres::PostgresDatabase;
use sqlite::SqliteDatabase;

/// Longest time for opening a database and reading its schema.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of statements on one database at the same time.
const MAX_CONCURRENT: usize = 64;

/// A database that is only read. Clones share it.
///
/// ```no_run
/// use proscenium::sql_engine::{SqlDatabase, SqlDatabaseKind, SqlDatabaseSettings};
/// use proscenium::sql_guard::{self, Limits};
/// use tokio_util::sync::CancellationToken;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let kind = SqlDatabaseKind::Sqlite { path: "shop.db".into() };
/// let database = SqlDatabase::open(SqlDatabaseSettings::new("shop", kind)).await?;
/// let schema = database.schema();
/// let orders = schema.find("orders").ok_or("no table orders")?;
/// let set = database.approved_set(&[orders.name.clone()])?;
/// let sql = "SELECT count(*) FROM orders";
/// let approved = sql_guard::check(sql, database.dialect(), &set, &Limits::default())?;
/// let rows = database.query(&approved, &set, database.limits(), &CancellationToken::new()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqlDatabase {
    inner: Arc<OpenDatabase>,
}

#[derive(Debug)]
struct OpenDatabase {
    settings: SqlDatabaseSettings,
    engine: DatabaseEngine,
    places: Arc<Semaphore>,
    schema: RwLock<Arc<DatabaseSchema>>,
}

#[derive(Debug)]
enum DatabaseEngine {
    Sqlite(SqliteDatabase),
    Postgres(Box<PostgresDatabase>),
}

impl SqlDatabase {
    /// Opens the database of `settings` and reads its schema. PostgreSQL: connects, and checks what the role may do.
    ///
    /// # Errors
    /// `sql.engine.settings`, `.own_database`, `.unreadable`, `.connection`, `.authentication`, `.role`, `.busy`,
    /// `.timeout`.
    pub async fn open(settings: SqlDatabaseSettings) -> Result<Self, SqlEngineError> {
        let engine = match &settings.kind {
            SqlDatabaseKind::Sqlite { path } => {
                DatabaseEngine::Sqlite(SqliteDatabase::new(path, &settings.forbidden_paths)?)
            }
            SqlDatabaseKind::Postgres { url } => {
                DatabaseEngine::Postgres(Box::new(PostgresDatabase::new(url, &settings)?))
            }
        };
        if let DatabaseEngine::Postgres(database) = &engine {
            within(OPEN_TIMEOUT, database.check_role()).await?;
        }
        let schema = within(OPEN_TIMEOUT, engine.schema(&settings)).await?;
        let places = Arc::new(Semaphore::new(settings.max_concurrent.clamp(1, MAX_CONCURRENT)));
        let schema = RwLock::new(Arc::new(schema));
        Ok(Self { inner: Arc::new(OpenDatabase { settings, engine, places, schema }) })
    }

    /// Its name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.settings.name
    }

    /// The SQL that it reads.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.inner.engine.dialect()
    }

    /// The limits of its settings.
    #[must_use]
    pub fn limits(&self) -> &QueryLimits {
        &self.inner.settings.limits
    }

    /// Returns what it holds, as it was when the schema was read last.
    #[must_use]
    pub fn schema(&self) -> Arc<DatabaseSchema> {
        Arc::clone(&self.inner.schema.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the schema again.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn refresh(&self) -> Result<Arc<DatabaseSchema>, SqlEngineError> {
        let _place = self.place(OPEN_TIMEOUT).await?;
        let schema = within(OPEN_TIMEOUT, self.inner.engine.schema(&self.inner.settings)).await?;
        let schema = Arc::new(schema);
        *self.inner.schema.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&schema);
        Ok(schema)
    }

    /// The set of exactly `tables`: [`DatabaseSchema::approved_set`].
    ///
    /// # Errors
    /// `sql.engine.unknown_table`.
    pub fn approved_set(&self, tables: &[TableName]) -> Result<ApprovedSet, SqlEngineError> {
        self.schema().approved_set(tables)
    }

    /// Executes `approved`, which the guard made for `set`. The guard's layers are run on it once more: a value that
    /// was read from a journal or given by a client is not trusted. Dropping the future, or cancelling `cancel`, ends
    /// the statement.
    ///
    /// # Errors
    /// Any code but those of opening. The message may be shown to a model, which may repair the statement if
    /// [`SqlErrorCode::is_repairable`].
    pub async fn query(
        &self,
        approved: &Approved,
        set: &ApprovedSet,
        limits: &QueryLimits,
        cancel: &CancellationToken,
    ) -> Result<SqlRows, SqlEngineError> {
        let started = Instant::now();
        self.guard(approved, set).await?;
        self.execute(&approved.sql, set, limits, cancel, started).await
    }

    /// Checks that the database may be used as it is set up now: that it can be opened and read, and what the role may do
    /// (PostgreSQL). Returns remarks for the person who runs the server: what is left out, and what to restrict further.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn check_live(&self) -> Result<Vec<String>, SqlEngineError> {
        let mut remarks = match &self.inner.engine {
            DatabaseEngine::Sqlite(_) => Vec::new(),
            DatabaseEngine::Postgres(database) => within(OPEN_TIMEOUT, database.check_role()).await?,
        };
        let schema = self.refresh().await?;
        if let DatabaseEngine::Postgres(database) = &self.inner.engine {
            remarks.extend(within(OPEN_TIMEOUT, database.readable_withheld(&schema)).await?);
        }
        let omitted = |omitted: &OmittedTable| format!("{} is left out: {}", omitted.name, omitted.why);
        remarks.extend(schema.omitted.iter().map(omitted));
        if schema.tables.is_empty() {
            remarks.push("there is no table to read".into());
        }
        Ok(remarks)
    }

    /// Runs the guard on what it has approved.
    async fn guard(&self, approved: &Approved, set: &ApprovedSet) -> Result<(), SqlEngineError> {
        let (approved, set, dialect) = (approved.clone(), set.clone(), self.dialect());
        let limits = Limits {
            max_bytes: approved.sql.len(),
            max_depth: 200,
            max_nodes: usize::MAX,
            max_tables: usize::MAX,
            max_rows: u64::MAX,
        };
        let again = tokio::task::spawn_blocking(move || {
            let again = sql_guard::check(&approved.sql, dialect, &set, &limits);
            again.map(|again| again.tables == approved.tables && again.columns == approved.columns)
        });
        match again.await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false) | Err(_)) => Err(SqlEngineError::new(
                SqlErrorCode::Forbidden,
                "the statement is not what the guard approved for these tables",
                "check the statement again, and execute what the check returns",
            )),
            Err(_) => Err(SqlEngineError::new(
                SqlErrorCode::Internal,
                "the statement could not be checked",
                "nothing was executed; try again",
            )),
        }
    }

    /// Executes `sql` with the engine's own layer only. Its callers are [`query`](Self::query), and tests that show that
    /// this layer holds without the guard.
    async fn execute(
        &self,
        sql: &str,
        set: &ApprovedSet,
        limits: &QueryLimits,
        cancel: &CancellationToken,
        started: Instant,
    ) -> Result<SqlRows, SqlEngineError> {
        if sql.contains('\0') {
            let what = "the statement contains a NUL";
            return Err(SqlEngineError::new(SqlErrorCode::Syntax, what, "remove it"));
        }
        let work = async {
            let place = self.place(limits.timeout()).await?;
            let began = Instant::now();
            let (schema, settings) = (self.schema(), &self.inner.settings);
            let mut rows = match &self.inner.engine {
                DatabaseEngine::Sqlite(database) => {
                    database.query(sql, set, &schema, settings, limits, place).await?
                }
                DatabaseEngine::Postgres(database) => {
                    database.query(sql, set, &schema, settings, limits, place).await?
                }
            };
            rows.database_ms = milliseconds(began);
            Ok(rows)
        };
        let mut rows = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(SqlEngineError::new(
                SqlErrorCode::Cancelled,
                "the statement was cancelled",
                "nothing is to be done",
            )),
            result = within(limits.timeout(), work) => result,
        }?;
        rows.elapsed_ms = milliseconds(started);
        Ok(rows)
    }

    async fn place(&self, patience: Duration) -> Result<OwnedSemaphorePermit, SqlEngineError> {
        match tokio::time::timeout(patience, Arc::clone(&self.inner.places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(SqlEngineError::new(
                SqlErrorCode::Busy,
                "all connections to the database are in use",
                "try again later, or raise the number of concurrent statements",
            )),
        }
    }
}

impl DatabaseEngine {
    fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    async fn schema(&self, settings: &SqlDatabaseSettings) -> Result<DatabaseSchema, SqlEngineError> {
        match self {
            Self::Sqlite(database) => database.schema(settings).await,
            Self::Postgres(database) => database.schema(settings).await,
        }
    }
}

/// `work`, or `sql.engine.timeout`. What it held is dropped, which ends its statement.
async fn within<T>(
    timeout: Duration,
    work: impl Future<Output = Result<T, SqlEngineError>>,
) -> Result<T, SqlEngineError> {
    tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| Err(timed_out(timeout)))
}

fn timed_out(timeout: Duration) -> SqlEngineError {
    let what = format!("the database took longer than {} ms", timeout.as_millis());
    SqlEngineError::new(SqlErrorCode::Timeout, what, "ask for less: fewer tables, rows or days")
}

fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
