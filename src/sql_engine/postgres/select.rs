//! Executes one statement in a read-only transaction and reads its rows through a cursor.

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{
    AssertSqlSafe, Column as _, Executor as _, Row as _, SqlSafeStr as _, Statement as _, TypeInfo as _,
};

use super::super::rows::BoundedRows;
use super::super::{QueryLimits, SqlColumn, SqlEngineError, SqlErrorCode, SqlRows, SqlValue};
use super::connection::begin;
use super::errors::engine_error;
use super::plan::PlanPermission;

/// Bytes of a `bytea` that are shown.
const SHOWN_BYTES: usize = 32;

/// Maximum number of rows that are fetched at once.
const MAX_FETCH: usize = 200;

/// The rows of `sql`, which must do what `permission` allows. The transaction is left open.
pub(super) async fn rows(
    connection: &mut PgConnection,
    sql: &str,
    permission: &PlanPermission<'_>,
    limits: &QueryLimits,
) -> Result<SqlRows, SqlEngineError> {
    let failed = |error: sqlx::Error| engine_error(&error);
    begin(connection, limits.timeout_ms).await?;
    // Compiled by itself first: it must be one statement, and no part of another one.
    let statement =
        (&mut *connection).prepare(AssertSqlSafe(sql.to_owned()).into_sql_str()).await.map_err(failed)?;
    let columns: Vec<SqlColumn> = statement
        .columns()
        .iter()
        .map(|column| SqlColumn {
            name: column.name().to_owned(),
            declared_type: Some(column.type_info().name().to_ascii_lowercase()),
        })
        .collect();
    if columns.is_empty() {
        let what = "the statement returns no columns";
        return Err(SqlEngineError::new(SqlErrorCode::Forbidden, what, "write one SELECT"));
    }
    let bounded_sql = bounded_statement(sql, &columns, limits);
    let explain = AssertSqlSafe(format!("EXPLAIN (VERBOSE, FORMAT JSON) {bounded_sql}"));
    let plan: serde_json::Value =
        sqlx::query_scalar(explain).fetch_one(&mut *connection).await.map_err(failed)?;
    permission.check_plan(&plan, limits.max_cost)?;
    let declare =
        AssertSqlSafe(format!("DECLARE proscenium_rows NO SCROLL CURSOR WITHOUT HOLD FOR {bounded_sql}"));
    sqlx::query(declare).execute(&mut *connection).await.map_err(failed)?;
    fetch(connection, columns, limits).await
}

/// Ends the transaction, whose work is thrown away in any case; returns whether the connection may be used again.
pub(super) async fn end(connection: &mut PgConnection) -> bool {
    sqlx::raw_sql("ROLLBACK").execute(connection).await.is_ok()
}

/// `sql` with each cell as text of bounded length, so that the server never sends a cell that is larger than wanted.
fn bounded_statement(sql: &str, columns: &[SqlColumn], limits: &QueryLimits) -> String {
    let longest = limits.max_cell_chars.saturating_add(1).min(i32::MAX as usize);
    let cells = columns.iter().enumerate().map(|(number, column)| {
        if column.declared_type.as_deref() == Some("bytea") {
            format!("octet_length(q.c{number})::text || substr(q.c{number}, 1, {SHOWN_BYTES})::text")
        } else {
            format!("left(q.c{number}::text, {longest})")
        }
    });
    let (cells, names): (Vec<_>, Vec<_>) = cells.zip((0..).map(|number| format!("c{number}"))).unzip();
    format!("SELECT {} FROM ({sql}\n) AS q({})", cells.join(", "), names.join(", "))
}

async fn fetch(
    connection: &mut PgConnection,
    columns: Vec<SqlColumn>,
    limits: &QueryLimits,
) -> Result<SqlRows, SqlEngineError> {
    let failed = |error: sqlx::Error| engine_error(&error);
    let mut bounded = BoundedRows::new(limits);
    // At most about the bytes that are wanted are fetched at once, if all cells were as long as they may be.
    let widest = columns.len().saturating_mul(limits.max_cell_chars).max(1);
    let count = (limits.max_bytes / widest).clamp(1, MAX_FETCH);
    let sql = format!("FETCH FORWARD {count} FROM proscenium_rows");
    loop {
        let rows =
            sqlx::raw_sql(AssertSqlSafe(sql.clone())).fetch_all(&mut *connection).await.map_err(failed)?;
        let last = rows.len() < count;
        for row in rows {
            if bounded.is_full(columns.len()) {
                return Ok(bounded.finish(columns));
            }
            let mut cells = Vec::with_capacity(columns.len());
            for (position, column) in columns.iter().enumerate() {
                cells.push(cell(&row, position, column, &mut bounded)?);
            }
            if !bounded.push(cells) {
                return Ok(bounded.finish(columns));
            }
        }
        if last {
            return Ok(bounded.finish(columns));
        }
    }
}

fn cell(
    row: &PgRow,
    position: usize,
    column: &SqlColumn,
    bounded: &mut BoundedRows<'_>,
) -> Result<SqlValue, SqlEngineError> {
    let text: Option<&str> = row.try_get(position).map_err(|error| engine_error(&error))?;
    let Some(text) = text else { return Ok(SqlValue::Null) };
    let kind = column.declared_type.as_deref().unwrap_or_default();
    if kind == "bytea" {
        return Ok(bytes(text));
    }
    let (text, cut) = bounded.cut(text);
    Ok(if cut { SqlValue::Text(text) } else { value(kind, text) })
}

/// `text`, which is a value of the type `kind`. Values that their variant cannot hold, such as infinity, stay text.
fn value(kind: &str, text: String) -> SqlValue {
    let starts_with_digit = text.starts_with(|first: char| first.is_ascii_digit());
    match kind {
        "bool" => match text.as_str() {
            "true" | "t" => SqlValue::Bool(true),
            "false" | "f" => SqlValue::Bool(false),
            _ => SqlValue::Text(text),
        },
        "int2" | "int4" | "int8" | "oid" => text.parse().map_or(SqlValue::Text(text), SqlValue::Integer),
        "float4" | "float8" => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => SqlValue::Float(number),
            _ => SqlValue::Text(text),
        },
        "numeric" if text.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit()) => {
            SqlValue::Decimal(text)
        }
        "date" if starts_with_digit => SqlValue::Date(text),
        "timestamp" | "timestamptz" if starts_with_digit => SqlValue::Timestamp(text),
        "json" | "jsonb" => SqlValue::Json(text),
        _ => SqlValue::Text(text),
    }
}

/// The length and the first bytes, as [`bounded_statement`] writes them: `12\x00ff…`.
fn bytes(text: &str) -> SqlValue {
    let (length, start) = text.split_once("\\x").unwrap_or((text, ""));
    SqlValue::Bytes { length: length.parse().unwrap_or_default(), start: start.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_types_and_stay_text_where_they_do_not_fit() {
        for (kind, text, read) in [
            ("bool", "true", SqlValue::Bool(true)),
            ("int8", "-9223372036854775808", SqlValue::Integer(i64::MIN)),
            ("numeric", "-12.50", SqlValue::Decimal("-12.50".into())),
            ("numeric", "NaN", SqlValue::Text("NaN".into())),
            ("float8", "Infinity", SqlValue::Text("Infinity".into())),
            ("date", "2026-03-01", SqlValue::Date("2026-03-01".into())),
            ("date", "infinity", SqlValue::Text("infinity".into())),
            ("timestamptz", "2026-03-01 10:00:00+00", SqlValue::Timestamp("2026-03-01 10:00:00+00".into())),
            ("jsonb", "{\"a\": 1}", SqlValue::Json("{\"a\": 1}".into())),
            ("int4[]", "{1,2}", SqlValue::Text("{1,2}".into())),
        ] {
            assert_eq!(value(kind, text.to_owned()), read);
        }
        assert_eq!(bytes("300\\x00ff"), SqlValue::Bytes { length: 300, start: "00ff".into() });
    }
}
