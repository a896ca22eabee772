//! Databases as text: their schema, version and rows as SQL, one row per line, so that the stored data of a
//! release can be kept with the tests and reviewed.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

/// The database file in a data directory.
fn file(data: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(data.join("proscenium.db"))
}

/// The whole database of a data directory without an owner, as SQL: its schema, and its rows.
pub async fn dump(data: &Path) -> (String, String) {
    let mut database = SqliteConnection::connect_with(&file(data)).await.unwrap();
    let (mut schema, mut text) = (String::new(), String::new());
    let sql = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' \
               ORDER BY rowid";
    let made = sqlx::query(sql).fetch_all(&mut database).await.unwrap();
    for row in &made {
        schema += &format!("{};\n", row.get::<String, _>("sql"));
    }
    let tables = made.iter().filter(|row| row.get::<String, _>("type") == "table");
    for table in tables.map(|row| row.get::<String, _>("name")) {
        for line in rows(&mut database, &table).await {
            text += &format!("{line}\n");
        }
    }
    for pragma in ["application_id", "user_version"] {
        let value: i64 = sqlx::query_scalar(AssertSqlSafe(format!("PRAGMA {pragma}")))
            .fetch_one(&mut database)
            .await
            .unwrap();
        schema += &format!("PRAGMA {pragma} = {value};\n");
    }
    database.close().await.unwrap();
    (schema, text)
}

/// An `INSERT` statement for every row of a table.
async fn rows(database: &mut SqliteConnection, table: &str) -> Vec<String> {
    let sql = format!("SELECT name FROM pragma_table_info('{table}')");
    let columns: Vec<String> =
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut *database).await.unwrap();
    let values: Vec<String> = columns.iter().map(|column| format!("quote(\"{column}\")")).collect();
    let values = values.join(" || ',' || ");
    let sql = format!("SELECT 'INSERT INTO {table} VALUES(' || {values} || ');' FROM {table} ORDER BY 1");
    let order = if table == "journal" { sql.replace("ORDER BY 1", "ORDER BY stream, seq") } else { sql };
    sqlx::query_scalar(AssertSqlSafe(order)).fetch_all(database).await.unwrap()
}

/// Creates a data directory with the database that [`dump`] wrote.
pub async fn load(data: &Path, schema: &str, rows: &str) {
    std::fs::create_dir_all(data).unwrap();
    let options = file(data).create_if_missing(true);
    let mut database = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("BEGIN;\n{schema}{rows}COMMIT;")))
        .execute(&mut database)
        .await
        .unwrap();
    database.close().await.unwrap();
}

/// Every run of a data directory with its conversation, in the order of creation.
pub async fn runs(data: &Path) -> Vec<(String, String)> {
    let mut database = SqliteConnection::connect_with(&file(data)).await.unwrap();
    let sql = "SELECT session, run FROM runs ORDER BY created, run";
    let runs = sqlx::query_as(sql).fetch_all(&mut database).await.unwrap();
    database.close().await.unwrap();
    runs
}

/// Shortens the only run to what a kill leaves if the last committed group of events ends at this place:
/// `after:` or `before:` an event of this name, once it has been passed `skip` times. No question was asked
/// by then, and the conversation had no turn. Rows of the shipped scenes are removed: the place is before
/// their writes.
pub async fn shorten(data: &Path, place: &str, skip: u32) {
    let mut database = SqliteConnection::connect_with(&file(data)).await.unwrap();
    let (when, event) = place.split_once(':').unwrap();
    let sql = "SELECT seq FROM journal WHERE stream LIKE 'run:%' AND body ->> 'type' = ? ORDER BY seq \
               LIMIT 1 OFFSET ?";
    let of_the_event: i64 =
        sqlx::query_scalar(sql).bind(event).bind(skip).fetch_one(&mut database).await.unwrap();
    let last = if when == "after" { of_the_event } else { of_the_event - 1 };
    let sql = format!(
        "DELETE FROM journal WHERE seq > {last} OR stream LIKE 'session:%';
         DELETE FROM sessions;
         UPDATE runs SET status = 'running', last_seq = {last},
             updated = (SELECT at FROM journal WHERE seq = {last});
         UPDATE plans SET
             updated = (SELECT at FROM journal WHERE seq = {last}),
             version = (SELECT count(*) FROM journal WHERE body ->> 'type' IN ('plan_created', 'replanned')),
             status = (SELECT CASE WHEN sum(body ->> 'type' = 'step_started') > 0 THEN 'executing'
                 WHEN sum(body ->> 'type' = 'plan_created') > 0 THEN 'approved' ELSE 'draft' END FROM journal);"
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut database).await.unwrap();
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'vacation_requests'";
    let is_there: i64 = sqlx::query_scalar(sql).fetch_one(&mut database).await.unwrap();
    if is_there > 0 {
        sqlx::query("DELETE FROM vacation_requests").execute(&mut database).await.unwrap();
    }
    database.close().await.unwrap();
}

/// The only column of a query; nothing if its table does not exist.
pub async fn column(data: &Path, sql: &str) -> Vec<String> {
    let mut database = SqliteConnection::connect_with(&file(data)).await.unwrap();
    let found = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_all(&mut database).await;
    database.close().await.unwrap();
    found.unwrap_or_default()
}
