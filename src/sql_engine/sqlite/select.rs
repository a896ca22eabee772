//! Executes one statement and reads its rows.

use std::sync::Arc;

use rusqlite::Statement;
use rusqlite::types::ValueRef;

use super::super::rows::BoundedRows;
use super::super::{QueryLimits, SqlColumn, SqlEngineError, SqlErrorCode, SqlRows, SqlValue};
use super::authorizer::{ReadPermission, Seen, hook};
use super::catalog::all_relations;
use super::connection::{Connector, Watch};
use super::errors::engine_error;

/// Bytes of a BLOB that are shown.
const SHOWN_BYTES: usize = 32;

/// The rows of `sql`, which may do what `permission` allows.
pub(super) fn rows(
    connector: &Connector,
    sql: &str,
    permission: ReadPermission,
    limits: &QueryLimits,
    watch: &Arc<Watch>,
) -> Result<SqlRows, SqlEngineError> {
    let connection = connector.connect(watch)?;
    let seen = Seen::default();
    let failed = |error| engine_error(&error, watch, Some(&seen));
    let permission = Arc::new(permission.among(all_relations(&connection).map_err(failed)?));
    connection.authorizer(Some(hook(Arc::clone(&permission), seen.clone()))).map_err(failed)?;
    let mut statement = connection.prepare(sql).map_err(failed)?;
    is_query(&statement)?;
    permission.check_joins(sql, &seen.tables()).map_err(|what| {
        let remedy = "write the columns to join on with ON";
        SqlEngineError::new(SqlErrorCode::Forbidden, what, remedy)
    })?;
    let columns: Vec<SqlColumn> = statement
        .columns()
        .iter()
        .map(|column| SqlColumn {
            name: column.name().to_owned(),
            declared_type: column.decl_type().map(str::to_owned).filter(|name| !name.is_empty()),
        })
        .collect();
    let mut bounded = BoundedRows::new(limits);
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        if bounded.is_full(columns.len()) {
            break;
        }
        let mut cells = Vec::with_capacity(columns.len());
        for (position, column) in columns.iter().enumerate() {
            cells.push(cell(row.get_ref(position).map_err(failed)?, column, &mut bounded));
        }
        if !bounded.push(cells) {
            break;
        }
    }
    drop(rows);
    drop(statement);
    Ok(bounded.finish(columns))
}

/// Refuses what compiles but is no query. SQLite calls ATTACH, PRAGMA and BEGIN read-only; the authorizer denies those.
fn is_query(statement: &Statement<'_>) -> Result<(), SqlEngineError> {
    let fault = if statement.is_explain() != 0 {
        "the statement is an EXPLAIN"
    } else if !statement.readonly() {
        "the statement does more than read"
    } else if statement.column_count() == 0 {
        "the statement returns no columns"
    } else if statement.parameter_count() != 0 {
        "the statement has parameters"
    } else {
        return Ok(());
    };
    Err(SqlEngineError::new(SqlErrorCode::Forbidden, fault, "write one SELECT with all its values"))
}

/// A value of `column`. SQLite has no types for days, moments and truth values: a column that is declared as one has them
/// where its values look so.
fn cell(value: ValueRef<'_>, column: &SqlColumn, bounded: &mut BoundedRows<'_>) -> SqlValue {
    let declared = column.declared_type.as_deref().unwrap_or_default().to_ascii_uppercase();
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number @ (0 | 1)) if declared.starts_with("BOOL") => SqlValue::Bool(number == 1),
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) if number.is_finite() => SqlValue::Float(number),
        ValueRef::Real(number) => SqlValue::Text(if number > 0.0 { "Infinity" } else { "-Infinity" }.into()),
        ValueRef::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let (text, cut) = bounded.cut(&text);
            let moment = declared.starts_with("DATETIME") || declared.starts_with("TIMESTAMP");
            match text.len() {
                10 if declared == "DATE" && is_day(&text) => SqlValue::Date(text),
                19.. if moment && is_day(&text) && !cut => SqlValue::Timestamp(text),
                _ if declared.starts_with("JSON") && !cut => SqlValue::Json(text),
                _ => SqlValue::Text(text),
            }
        }
        ValueRef::Blob(bytes) => {
            let start = bytes.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
            SqlValue::Bytes { length: bytes.len() as u64, start }
        }
    }
}

/// Whether `text` begins as a day of ISO 8601.
fn is_day(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    digits(0..4)
        && bytes.get(4) == Some(&b'-')
        && digits(5..7)
        && bytes.get(7) == Some(&b'-')
        && digits(8..10)
}
