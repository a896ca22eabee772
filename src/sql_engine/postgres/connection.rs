//! Connections whose sessions can only read. One that is dropped in a statement is closed, and never used again.

use std::str::FromStr as _;
use std::sync::Mutex;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use super::super::{SqlEngineError, SqlErrorCode};
use super::errors::engine_error;
use crate::mutex::lock;

/// The oldest version whose plans and settings are known here.
const MIN_VERSION: u32 = 120_000;

/// From this version on the server notices that a client has gone while it executes a statement.
const CHECKS_CLIENTS: u32 = 140_000;

/// What every transaction is set to before anything else. Names of tables are written with their schemas, so that no
/// schema of users is searched: a function of theirs cannot take the place of a built-in one.
const SETTINGS: &str = "SELECT \
    pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), \
    pg_catalog.set_config('standard_conforming_strings', 'on', true), \
    pg_catalog.set_config('transform_null_equals', 'off', true), \
    pg_catalog.set_config('quote_all_identifiers', 'off', true), \
    pg_catalog.set_config('datestyle', 'ISO, YMD', true), \
    pg_catalog.set_config('intervalstyle', 'postgres', true), \
    pg_catalog.set_config('bytea_output', 'hex', true), \
    pg_catalog.set_config('xmlbinary', 'base64', true), \
    pg_catalog.set_config('jit', 'off', true)";

const CHECK_CLIENT: &str = "SELECT pg_catalog.set_config('client_connection_check_interval', '500ms', false)";

/// Connects, and keeps idle connections.
#[derive(Debug)]
pub(super) struct PostgresConnections {
    options: PgConnectOptions,
    idle: Mutex<Vec<PgConnection>>,
    max_idle: usize,
}

impl PostgresConnections {
    /// For the server of `url`; connects to nothing yet.
    pub(super) fn new(url: &SecretString, max_idle: usize) -> Result<Self, SqlEngineError> {
        let wrong = |what: &str| {
            let remedy = "write postgres://user:password@host:port/database";
            SqlEngineError::new(SqlErrorCode::Settings, what, remedy)
        };
        let url = url.expose_secret();
        // The parser's own message may repeat a part of the URL.
        let mut options =
            PgConnectOptions::from_str(url).map_err(|_| wrong("the database's URL cannot be read"))?;
        if options.get_database().is_none_or(str::is_empty) {
            return Err(wrong("the database's URL names no database"));
        }
        if !url.contains("sslmode=") && !url.contains("ssl-mode=") {
            let mode = if is_local(&options) { PgSslMode::Prefer } else { PgSslMode::VerifyFull };
            options = options.ssl_mode(mode);
        }
        // Statements hold what people ask for: they are not logged.
        let options =
            options.statement_cache_capacity(0).application_name("proscenium").disable_statement_logging();
        Ok(Self { options, idle: Mutex::default(), max_idle })
    }

    /// A connection whose session has nothing of the statement before.
    pub(super) async fn take(&self) -> Result<PgConnection, SqlEngineError> {
        loop {
            let idle = lock(&self.idle).pop();
            let Some(mut connection) = idle else { break };
            // What the last statement may have left: session locks, temporary tables.
            let clean = sqlx::raw_sql("DISCARD ALL").execute(&mut connection).await;
            if clean.is_ok() && prepare(&mut connection).await.is_ok() {
                return Ok(connection);
            }
        }
        let mut connection =
            PgConnection::connect_with(&self.options).await.map_err(|error| engine_error(&error))?;
        prepare(&mut connection).await?;
        Ok(connection)
    }

    /// Keeps a connection that is in no transaction.
    pub(super) fn give_back(&self, connection: PgConnection) {
        let mut idle = lock(&self.idle);
        if idle.len() < self.max_idle {
            idle.push(connection);
        }
    }
}

fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let loopback =
        host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    options.get_socket().is_some() || host.starts_with('/') || host == "localhost" || loopback
}

async fn prepare(connection: &mut PgConnection) -> Result<(), SqlEngineError> {
    let version = connection.server_version_num().unwrap_or(MIN_VERSION);
    if version < MIN_VERSION {
        let what = format!("the server's version {version} is too old");
        return Err(SqlEngineError::new(SqlErrorCode::Settings, what, "use PostgreSQL 12 or later"));
    }
    if version >= CHECKS_CLIENTS {
        // Not every system can do it.
        let _ = sqlx::raw_sql(CHECK_CLIENT).execute(&mut *connection).await;
    }
    Ok(())
}

/// Begins a transaction that can only read, in which statements take at most `timeout_ms`.
pub(super) async fn begin(connection: &mut PgConnection, timeout_ms: u64) -> Result<(), SqlEngineError> {
    // 0 would mean no timeout; the largest is what fits the server's integer.
    let timeout = timeout_ms.clamp(1, 2_000_000_000);
    let sql = format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
         SET LOCAL statement_timeout = {timeout}; SET LOCAL lock_timeout = {}; \
         SET LOCAL idle_in_transaction_session_timeout = {timeout}; {SETTINGS}",
        timeout.min(2_000)
    );
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await
        .map(drop)
        .map_err(|error| engine_error(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> PgSslMode {
        PostgresConnections::new(&SecretString::from(url), 1).unwrap().options.get_ssl_mode()
    }

    #[test]
    fn connections_to_other_hosts_are_verified_unless_the_url_says_otherwise() {
        assert!(matches!(mode("postgres://u:p@db.example.com/shop"), PgSslMode::VerifyFull));
        assert!(matches!(mode("postgres://u:p@10.0.0.1/shop"), PgSslMode::VerifyFull));
        assert!(matches!(mode("postgres://u:p@db.example.com/shop?sslmode=disable"), PgSslMode::Disable));
        assert!(matches!(mode("postgres://u:p@127.0.0.1/shop"), PgSslMode::Prefer));
        assert!(matches!(mode("postgres://u@localhost/shop?host=/var/run/postgresql"), PgSslMode::Prefer));
    }

    #[test]
    fn a_url_that_cannot_be_read_is_not_repeated() {
        for url in ["postgres://u:hunter2@host:notaport/shop", "hunter2", "postgres://u:hunter2@host"] {
            let error = PostgresConnections::new(&SecretString::from(url), 1).unwrap_err();
            assert_eq!(error.code, SqlErrorCode::Settings);
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
