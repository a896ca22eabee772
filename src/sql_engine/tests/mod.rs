//! Engines with real databases, with and without the guard before them.

mod corpus;
#[path = "../../../tests/support/eventually.rs"]
mod eventually;
mod postgres;
#[path = "../../../tests/support/postgres.rs"]
mod postgres_server;
mod sqlite;

use std::path::{Path, PathBuf};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::*;

/// A file of `tests/fixtures/text_to_sql`, or the script of the sample database.
fn fixture(name: &str) -> String {
    let folder = match name {
        "shop.sql" => "scenes/text_to_sql/data",
        _ => "tests/fixtures/text_to_sql",
    };
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name)).unwrap()
}

/// The database of `statements_sqlite.sql` in `dir`.
fn sqlite_file(dir: &Path) -> PathBuf {
    let path = dir.join("statements.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch(&fixture("statements_sqlite.sql")).unwrap();
    path
}

fn sqlite_settings(path: PathBuf) -> SqlDatabaseSettings {
    SqlDatabaseSettings {
        withheld: vec!["staff.salary".into()],
        sensitive: vec!["customers".into()],
        ..SqlDatabaseSettings::new("shop", SqlDatabaseKind::Sqlite { path })
    }
}

/// The tables of the corpus that are approved.
fn approved(database: &SqlDatabase) -> ApprovedSet {
    let offered = [
        "customers", "orders", "staff", "files", "numbers", "visits", "order_totals", "monthly", "leaks",
        "deeper_leaks",
    ];
    let schema = database.schema();
    let names: Vec<_> =
        offered.iter().filter_map(|name| schema.find(name)).map(|table| table.name.clone()).collect();
    database.approved_set(&names).unwrap()
}

/// Executes `sql` without the guard.
async fn unguarded(
    database: &SqlDatabase,
    sql: &str,
    limits: &QueryLimits,
) -> Result<SqlRows, SqlEngineError> {
    let set = approved(database);
    database.execute(sql, &set, limits, &CancellationToken::new(), Instant::now()).await
}

/// Executes `sql` as the product does.
async fn guarded(database: &SqlDatabase, sql: &str, limits: &QueryLimits) -> Result<SqlRows, SqlEngineError> {
    let set = approved(database);
    let approved = sql_guard::check(sql, database.dialect(), &set, &Limits::default()).unwrap();
    database.query(&approved, &set, limits, &CancellationToken::new()).await
}

async fn code(database: &SqlDatabase, sql: &str) -> Option<SqlErrorCode> {
    unguarded(database, sql, &QueryLimits::default()).await.err().map(|error| error.code)
}

/// A statement that ends only when it is ended.
const ENDLESS: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

#[tokio::test]
async fn engine_executes_only_what_the_guard_approved() {
    let dir = tempfile::tempdir().unwrap();
    let database = SqlDatabase::open(sqlite_settings(sqlite_file(dir.path()))).await.unwrap();
    let set = approved(&database);
    let good =
        sql_guard::check("SELECT name FROM customers", Dialect::Sqlite, &set, &Limits::default()).unwrap();
    let (limits, cancel) = (QueryLimits::default(), CancellationToken::new());
    assert_eq!(database.query(&good, &set, &limits, &cancel).await.unwrap().rows.len(), 5);
    for sql in [
        "SELECT token FROM secrets",
        "SELECT name FROM customers; DELETE FROM customers",
        "SELECT id FROM customers",
    ] {
        let forged = Approved { sql: sql.into(), ..good.clone() };
        let error = database.query(&forged, &set, &limits, &cancel).await.unwrap_err();
        assert_eq!(error.code, SqlErrorCode::Forbidden, "{sql}");
    }
}

#[tokio::test]
async fn results_and_schemas_can_be_stored_and_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let database = SqlDatabase::open(sqlite_settings(sqlite_file(dir.path()))).await.unwrap();
    let rows =
        guarded(&database, "SELECT *, 1.5, NULL FROM orders ORDER BY id", database.limits()).await.unwrap();
    let stored = serde_json::to_string(&rows).unwrap();
    assert_eq!(serde_json::from_str::<SqlRows>(&stored).unwrap(), rows);
    let schema = database.schema();
    let stored = serde_json::to_string(&*schema).unwrap();
    assert_eq!(serde_json::from_str::<DatabaseSchema>(&stored).unwrap(), *schema);
}
