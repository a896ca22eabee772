//! The values of text columns, by which the rules understand names such as those of products. Only what may be read
//! without a person's yes is read, and no model sees it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proscenium::sql_engine::{QueryLimits, SqlDatabase, SqlValue};
use proscenium::sql_guard::{self, Approved, ApprovedSet, Limits};
use tokio_util::sync::CancellationToken;

use super::access::ReadAccess;
use super::rules::description::{ColumnType, DatabaseDescription};
use super::settings::AskPolicy;
use super::values::NodeInput;

/// Most distinct values of a column that are kept; of a column with more, none are.
const MAX_VALUES: usize = 500;
/// Most characters of a value that is kept.
const MAX_VALUE_CHARS: usize = 80;
/// Milliseconds for one column.
const COLUMN_MS: u64 = 1_000;
/// How long all columns together may take.
const MAX_TIME: Duration = Duration::from_secs(5);

/// A column, by its places in the description, with the statement that reads its values.
struct ColumnQuery {
    table: usize,
    column: usize,
    approved: Approved,
}

/// Adds the values of columns to a description, as far as they can be read in time.
pub async fn add_known_values(database: &SqlDatabase, description: &mut DatabaseDescription) {
    let schema = database.schema();
    let tables = description.tables.iter().map(|table| table.name.clone()).collect();
    let access =
        ReadAccess::of(description, AskPolicy::Sensitive, &NodeInput { tables, ..NodeInput::default() });
    // Without a set nothing is read: the rules then understand fewer names.
    let Ok(set) = access.approved_set(&schema, description) else { return };
    let wanted: Vec<(usize, usize, String)> = description
        .tables
        .iter()
        .enumerate()
        .filter(|(_, table)| access.reads(&table.name))
        .flat_map(|(at, table)| {
            let name = schema.find(&table.name).map(|table| table.name.clone());
            let columns = table
                .columns
                .iter()
                .enumerate()
                .filter(|(_, column)| column.kind == ColumnType::Text && !column.sensitive);
            columns
                .filter_map(|(column, own)| {
                    let name = name.as_ref()?;
                    let (schema, table) = (quoted(&name.schema), quoted(&name.name));
                    Some((at, column, format!("SELECT DISTINCT {} FROM {schema}.{table}", quoted(&own.name))))
                })
                .collect::<Vec<_>>()
        })
        .collect();
    let (dialect, own_set) = (database.dialect(), set.clone());
    let check = move || {
        let limits = Limits { max_rows: MAX_VALUES as u64 + 1, ..Limits::default() };
        let approve = |(table, column, sql): (usize, usize, String)| {
            let approved = sql_guard::check(&sql, dialect, &own_set, &limits).ok()?;
            Some(ColumnQuery { table, column, approved })
        };
        wanted.into_iter().filter_map(approve).collect::<Vec<_>>()
    };
    let Ok(queries) = tokio::task::spawn_blocking(check).await else { return };
    let begun = Instant::now();
    for query in queries {
        if begun.elapsed() > MAX_TIME {
            tracing::warn!(database = database.name(), "the values of some columns were not read in time");
            return;
        }
        let values = values(database, &query.approved, &set).await;
        let table = description.tables.get_mut(query.table);
        if let Some(column) = table.and_then(|table| table.columns.get_mut(query.column)) {
            column.known = values;
        }
    }
}

/// All values of a column; `None` if there are too many, or they are too long or cannot be read.
async fn values(database: &SqlDatabase, approved: &Approved, set: &ApprovedSet) -> Option<Vec<String>> {
    let limits = QueryLimits {
        max_rows: MAX_VALUES + 1,
        max_cells: MAX_VALUES + 1,
        max_cell_chars: MAX_VALUE_CHARS + 1,
        timeout_ms: COLUMN_MS,
        ..QueryLimits::default()
    };
    let found = database.query(approved, set, &limits, &CancellationToken::new()).await.ok()?;
    if found.truncated.is_some() || found.cut_cells > 0 || found.rows.len() > MAX_VALUES {
        return None;
    }
    let mut values = BTreeSet::new();
    for value in found.rows.into_iter().flatten() {
        match value {
            SqlValue::Text(text) if text.chars().count() <= MAX_VALUE_CHARS => _ = values.insert(text),
            SqlValue::Null => {}
            _ => return None,
        }
    }
    Some(values.into_iter().collect())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
