//! The database schema: its versions in order, and how a file is migrated.

use std::path::Path;

use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use super::error::{Error, ErrorCode};

/// Marks a file as Proscenium's, in SQLite's `application_id`: `PROS` in ASCII.
const APPLICATION_ID: i64 = 0x5052_4f53;

/// The migrations in order. A file's version (SQLite's `user_version`) is the number of migrations applied
/// to it. Entries are added, never changed.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_journal.sql"),
    include_str!("../../migrations/0002_keys_and_idempotency.sql"),
    include_str!("../../migrations/0003_costs.sql"),
    include_str!("../../migrations/0004_plans.sql"),
    include_str!("../../migrations/0005_words.sql"),
    include_str!("../../migrations/0006_own_requests.sql"),
    include_str!("../../migrations/0007_audit.sql"),
    include_str!("../../migrations/0008_recovery.sql"),
    include_str!("../../migrations/0009_users.sql"),
    include_str!("../../migrations/0010_tenant_bytes.sql"),
    include_str!("../../migrations/0011_switches.sql"),
    include_str!("../../migrations/0012_learned_plans.sql"),
    include_str!("../../migrations/0013_last_results.sql"),
    include_str!("../../migrations/0014_missing_nodes.sql"),
    include_str!("../../migrations/0015_learned_paths.sql"),
    include_str!("../../migrations/0016_documents.sql"),
    include_str!("../../migrations/0017_document_listings.sql"),
    include_str!("../../migrations/0018_document_deletions.sql"),
];

/// The marks of a database file about itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatabaseMarks {
    /// SQLite's `application_id`.
    pub(super) application: i64,
    /// SQLite's `user_version`.
    pub(super) version: i64,
    /// How many tables, indices and triggers it has.
    pub(super) tables: i64,
}

/// The schema version of the file behind `connection`; 0 for an empty file.
///
/// # Errors
/// `store.foreign` when the file belongs to another program, `store.newer_schema` when a newer
/// version of this program wrote it.
pub(super) async fn version(
    connection: &mut SqliteConnection,
    path: &Path,
    migrations: &[&str],
) -> Result<usize, Error> {
    let failed = |e| Error::database(path, "read the database", &e);
    let application: i64 =
        sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *connection).await.map_err(failed)?;
    let version: i64 =
        sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *connection).await.map_err(failed)?;
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    check_version(path, DatabaseMarks { application, version, tables }, migrations.len())
}

/// The schema version that the marks of a file at `path` say, if it is at most `known`.
///
/// # Errors
/// The errors of [`version`].
pub(super) fn check_version(path: &Path, marks: DatabaseMarks, known: usize) -> Result<usize, Error> {
    let DatabaseMarks { application, version, tables } = marks;
    if application != APPLICATION_ID && (application != 0 || version != 0 || tables != 0) {
        return Err(Error::new(
            ErrorCode::Foreign,
            format!(
                "{}: this database belongs to another program; name another directory in `store.data_dir`",
                path.display()
            ),
        ));
    }
    match usize::try_from(version) {
        Ok(version) if version <= known => Ok(version),
        _ => Err(Error::new(
            ErrorCode::NewerSchema,
            format!(
                "{}: the database has schema version {version}, this program knows up to {known}: use the newer program that wrote it, or name another directory in `store.data_dir`",
                path.display()
            ),
        )),
    }
}

/// Applies the missing migrations, each in its own transaction, so that an interrupted migration
/// continues where it stopped.
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    path: &Path,
    migrations: &[&str],
) -> Result<(), Error> {
    let failed = |e| Error::database(path, "migrate the database", &e);
    let from = version(connection, path, migrations).await?;
    for (index, sql) in migrations.iter().enumerate().skip(from) {
        let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        let number = index + 1;
        let sql =
            format!("{sql}\n;PRAGMA user_version = {number}; PRAGMA application_id = {APPLICATION_ID};");
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        tracing::debug!(version = number, path = %path.display(), "database schema applied");
    }
    Ok(())
}
