//! Rows that labelled requests need in tables of scenes.

use serde_json::{Map, Value};
use sqlx::{AssertSqlSafe, Sqlite, Transaction};

use super::fault::EvalFileFault;
use super::labels::LabelledRequest;
use super::read::fault;
use crate::Engine;
use crate::run::TenantId;

/// Inserts the rows of a request for a tenant and user.
pub(super) async fn insert(
    engine: &Engine,
    tenant: &TenantId,
    user: &str,
    request: &LabelledRequest,
) -> Result<(), EvalFileFault> {
    if request.rows.is_empty() {
        return Ok(());
    }
    let failed = |why: String| {
        let message = format!("{}: its rows cannot be inserted: {why}", request.id);
        fault(request, "eval.rows", message, "name tables of scenes and their columns as `schema.sql` does")
    };
    let database = |error: sqlx::Error| failed(error.to_string());
    let mut writing = engine.store().pool().begin_with("BEGIN IMMEDIATE").await.map_err(database)?;
    // The tables may refer to each other in any order.
    sqlx::query("PRAGMA defer_foreign_keys = ON").execute(&mut *writing).await.map_err(database)?;
    for (table, rows) in &request.rows {
        let columns = columns(&mut writing, engine, table).await.map_err(database)?;
        if columns.is_empty() {
            return Err(failed(format!("no scene has a table {table:?}")));
        }
        for row in rows {
            let row = completed(row, &columns, tenant, user);
            if let Some(name) = row.keys().find(|name| !columns.contains(name)) {
                return Err(failed(format!("the table {table:?} has no column {name:?}")));
            }
            insert_row(&mut writing, table, &row).await.map_err(database)?;
        }
    }
    writing.commit().await.map_err(database)
}

/// The columns of a table that a scene's `schema.sql` creates; none if there is no such table.
async fn columns(
    writing: &mut Transaction<'_, Sqlite>,
    engine: &Engine,
    table: &str,
) -> Result<Vec<String>, sqlx::Error> {
    let catalogue = engine.catalogue();
    let mut schemas = catalogue.all().filter_map(|scene| scene.schema_sql.as_deref());
    let is_word = |sql: &str| sql.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == table);
    if !schemas.any(is_word) {
        return Ok(Vec::new());
    }
    let columns = sqlx::query_scalar("SELECT name FROM pragma_table_info(?)").bind(table);
    columns.fetch_all(&mut **writing).await
}

/// The row with the tenant and the user, if the table has these columns.
fn completed(
    row: &Map<String, Value>,
    columns: &[String],
    tenant: &TenantId,
    user: &str,
) -> Map<String, Value> {
    let mut row = row.clone();
    for (name, value) in [("tenant", tenant.as_str()), ("user", user)] {
        if columns.iter().any(|column| column == name) {
            row.entry(name).or_insert_with(|| value.into());
        }
    }
    row
}

/// The names are those of the table.
async fn insert_row(
    writing: &mut Transaction<'_, Sqlite>,
    table: &str,
    row: &Map<String, Value>,
) -> Result<(), sqlx::Error> {
    let names: Vec<String> = row.keys().map(|name| format!("\"{name}\"")).collect();
    let places = vec!["?"; names.len()].join(", ");
    let sql = format!("INSERT INTO \"{table}\" ({}) VALUES ({places})", names.join(", "));
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for value in row.values() {
        query = match value {
            Value::Null => query.bind(None::<String>),
            Value::Bool(yes) => query.bind(i64::from(*yes)),
            Value::Number(number) => match number.as_i64() {
                Some(number) => query.bind(number),
                None => query.bind(number.as_f64()),
            },
            Value::String(text) => query.bind(text.clone()),
            other => query.bind(other.to_string()),
        };
    }
    query.execute(&mut **writing).await.map(drop)
}
