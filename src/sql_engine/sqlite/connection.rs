//! Opens connections that can only read, and ends their statements.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::super::{SqlEngineError, SqlErrorCode};
use super::errors::engine_error;

/// `PROS` in ASCII, which marks the product's own databases in SQLite's `application_id`.
const OWN_APPLICATION_ID: i64 = 0x5052_4f53;

/// Tables that only the product's own database has all of.
const OWN_TABLES: &str = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND \
                          name IN ('journal', 'runs', 'sessions', 'api_keys', 'idempotency')";

/// Bytes of one value or row. With the size of the page cache it bounds the memory of a statement: what is sorted or
/// collected beyond that goes to SQLite's temporary files. SQLite's own bound on memory is one for the process.
const MAX_VALUE_BYTES: i32 = 4 * 1024 * 1024;

/// Instructions between two looks at the deadline.
const INSTRUCTIONS: i32 = 1_000;

/// How long a statement waits for a writer of the database.
const BUSY_TIMEOUT: Duration = Duration::from_millis(250);

/// Where a database is, and where it must not be.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    path: PathBuf,
    forbidden: Vec<PathBuf>,
}

impl Connector {
    pub(super) fn new(path: &Path, forbidden: &[PathBuf]) -> Self {
        Self { path: path.to_owned(), forbidden: forbidden.to_vec() }
    }

    /// The file, without links. Since it begins with `/`, SQLite does not read it as a URI.
    pub(super) fn file(&self) -> Result<PathBuf, SqlEngineError> {
        let unreadable = |why: &str| {
            let remedy = "name an SQLite file that this process may read";
            SqlEngineError::new(SqlErrorCode::Unreadable, format!("the database file {why}"), remedy)
        };
        let file = self
            .path
            .canonicalize()
            .map_err(|error| unreadable(&format!("cannot be found: {}", error.kind())))?;
        if !file.is_file() {
            return Err(unreadable("is not a file"));
        }
        let forbidden = self.forbidden.iter().filter_map(|path| path.canonicalize().ok());
        if forbidden.into_iter().any(|forbidden| file.starts_with(forbidden)) {
            return Err(own_database());
        }
        Ok(file)
    }

    /// A connection that can only read, whose statements end when `watch` says so.
    pub(super) fn connect(&self, watch: &Arc<Watch>) -> Result<Connection, SqlEngineError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| engine_error(&error, watch, None);
        let connection = Connection::open_with_flags(self.file()?, flags).map_err(failed)?;
        restrict(&connection).map_err(failed)?;
        let watched = Arc::clone(watch);
        connection.progress_handler(INSTRUCTIONS, Some(move || watched.must_end())).map_err(failed)?;
        let application: i64 =
            connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(failed)?;
        let own_tables: i64 = connection.query_row(OWN_TABLES, [], |row| row.get(0)).map_err(failed)?;
        if application == OWN_APPLICATION_ID || own_tables == 5 {
            return Err(own_database());
        }
        Ok(connection)
    }
}

fn own_database() -> SqlEngineError {
    SqlEngineError::new(
        SqlErrorCode::OwnDatabase,
        "the database is the product's own",
        "set `path` to a database of your own; runs and keys are not for questions",
    )
}

fn restrict(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    for (config, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
    ] {
        connection.set_db_config(config, on)?;
    }
    for (limit, max) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 256 * 1024),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 50),
        (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 8),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, max)?;
    }
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "cache_size", -8_192)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// Why a statement was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    Cancelled,
    Deadline,
    Instructions,
}

/// Ends a statement whose caller has gone, or that goes beyond its bounds.
#[derive(Debug)]
pub(super) struct Watch {
    deadline: Instant,
    max_kilo_instructions: u64,
    kilo_instructions: AtomicU64,
    cancelled: AtomicBool,
    /// 0 as long as the statement goes on.
    reason: AtomicU8,
}

impl Watch {
    pub(super) fn new(deadline: Instant, max_kilo_instructions: u64) -> Self {
        Self {
            deadline,
            max_kilo_instructions,
            kilo_instructions: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            reason: AtomicU8::new(0),
        }
    }

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn reason(&self) -> Option<EndReason> {
        match self.reason.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(EndReason::Cancelled),
            2 => Some(EndReason::Deadline),
            _ => Some(EndReason::Instructions),
        }
    }

    /// Returns whether the statement must end now; counts [`INSTRUCTIONS`] more. Called by the connection.
    pub(super) fn must_end(&self) -> bool {
        let done = self.kilo_instructions.fetch_add(1, Ordering::Relaxed);
        let reason = if self.cancelled.load(Ordering::Relaxed) {
            1
        } else if Instant::now() > self.deadline {
            2
        } else if done >= self.max_kilo_instructions {
            3
        } else {
            return false;
        };
        self.reason.store(reason, Ordering::Relaxed);
        true
    }
}
