//! Which database is opened, and what of it is read.

use std::path::PathBuf;

use secrecy::SecretString;

use super::QueryLimits;

/// Where a database is.
#[derive(Clone, Debug)]
pub enum SqlDatabaseKind {
    /// A file of SQLite.
    Sqlite {
        /// The file. It must exist; it is opened read-only.
        path: PathBuf,
    },
    /// A server of PostgreSQL, version 12 or later. The role may only read, or it is refused:
    ///
    /// ```sql
    /// CREATE ROLE reader LOGIN PASSWORD '…';
    /// GRANT USAGE ON SCHEMA public TO reader;
    /// GRANT SELECT ON orders, customers TO reader;
    /// GRANT SELECT (id, name) ON staff TO reader; -- not the salary
    /// ```
    Postgres {
        /// `postgres://user:password@host:port/database?…`. Without `sslmode`, a host other than this one is connected
        /// to over TLS, with its certificate verified.
        url: SecretString,
    },
}

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct SqlDatabaseSettings {
    /// Its name in messages.
    pub name: String,
    /// Where it is.
    pub kind: SqlDatabaseKind,
    /// PostgreSQL: the schemas whose tables are offered, the first of them for names that are written without one.
    /// SQLite has `main` only.
    pub schemas: Vec<String>,
    /// Tables, as `table` or `schema.table`, about which a person is asked before they are read.
    pub sensitive: Vec<String>,
    /// Columns, as `table.column` or `schema.table.column`, that no statement may read.
    pub withheld: Vec<String>,
    /// Functions that views and row policies of this database may call beside those that a statement may call. Views
    /// that call others are left out of the schema, or refused when they are read.
    pub view_functions: Vec<String>,
    /// Statements that run at the same time, 64 at most; others wait.
    pub max_concurrent: usize,
    /// Files and folders that are never opened, nor anything in them: the data directory of this process. The product's own databases
    /// are recognised wherever they are.
    pub forbidden_paths: Vec<PathBuf>,
    /// Bounds for statements, for callers that have none of their own.
    pub limits: QueryLimits,
}

impl SqlDatabaseSettings {
    /// The database `name`, with nothing sensitive or withheld and the default limits.
    pub fn new(name: impl Into<String>, kind: SqlDatabaseKind) -> Self {
        let schemas = match kind {
            SqlDatabaseKind::Sqlite { .. } => vec!["main".to_owned()],
            SqlDatabaseKind::Postgres { .. } => vec!["public".to_owned()],
        };
        Self {
            name: name.into(),
            kind,
            schemas,
            sensitive: Vec::new(),
            withheld: Vec::new(),
            view_functions: Vec::new(),
            max_concurrent: 4,
            forbidden_paths: Vec::new(),
            limits: QueryLimits::default(),
        }
    }
}
