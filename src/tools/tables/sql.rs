//! SQL for the tables that a scene declares. Names come from definitions that were checked; values are bound.

use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row as _, Sqlite};

use super::CommitTerms;
use crate::staged::{
    CellValue, ColumnDefinition, ColumnKind, ColumnTest, RowFilter, RowPlace, SceneTables, StoredRow,
    TableDefinition, TableRow,
};
use crate::tools::ToolError;

/// The names of a scene's tables in the database: no other scene's are equal.
#[derive(Debug, Clone)]
pub struct TableNames {
    scene: String,
}

impl TableNames {
    pub(super) fn of(scene: &str) -> Self {
        Self { scene: scene.to_ascii_lowercase() }
    }

    fn table(&self, name: &str) -> String {
        format!("\"{}:{name}\"", self.scene)
    }

    fn commits(&self) -> String {
        self.table("commits")
    }
}

/// The statements that create the tables of a scene, and that fail where a table of an earlier start has other columns.
pub fn schema(scene: &str, tables: &SceneTables) -> String {
    let names = TableNames::of(scene);
    let mut sql = format!(
        "CREATE TABLE IF NOT EXISTS {} (id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, \
         key TEXT NOT NULL, binding TEXT NOT NULL, diff TEXT NOT NULL, user TEXT NOT NULL, at TEXT NOT NULL, \
         UNIQUE (tenant, key)) \
         STRICT;\n",
        names.commits()
    );
    for table in &tables.0 {
        let name = names.table(&table.name);
        let columns: String = table.columns.iter().map(column).collect();
        let key = quoted(&table.key);
        let all: Vec<String> = table.columns.iter().map(|column| format!("t.\"{}\"", column.name)).collect();
        sql.push_str(&format!(
            "CREATE TABLE IF NOT EXISTS {name} (tenant TEXT NOT NULL, row_version INTEGER NOT NULL{columns}, \
             PRIMARY KEY (tenant, {key})) STRICT, WITHOUT ROWID;\nSELECT {} FROM {name} AS t WHERE 0;\n",
            all.join(", ")
        ));
    }
    sql
}

fn column(column: &ColumnDefinition) -> String {
    let kind = match column.kind {
        ColumnKind::Text | ColumnKind::Day | ColumnKind::Time => "TEXT",
        ColumnKind::Integer | ColumnKind::Decimal { .. } | ColumnKind::Boolean => "INTEGER",
    };
    let null = if column.optional { "" } else { " NOT NULL" };
    format!(", \"{}\" {kind}{null}", column.name)
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

fn bind(query: &mut QueryBuilder<Sqlite>, cell: &CellValue) {
    match cell {
        CellValue::Null => query.push("NULL"),
        CellValue::Boolean(value) => query.push_bind(i64::from(*value)),
        CellValue::Integer(units) | CellValue::Decimal { units, .. } => query.push_bind(*units),
        CellValue::Text(text) => query.push_bind(text.clone()),
    };
}

/// `columns` of the rows of a tenant that pass a filter.
fn filtered(
    names: &TableNames,
    table: &TableDefinition,
    (tenant, columns): (&str, &str),
    filter: &RowFilter,
    max: usize,
) -> QueryBuilder<Sqlite> {
    let name = names.table(&table.name);
    let mut query = QueryBuilder::new(format!("SELECT {columns} FROM {name} WHERE tenant = "));
    query.push_bind(tenant.to_owned());
    for (column, test) in &filter.0 {
        let column = format!("\"{column}\"");
        match test {
            ColumnTest::Is(CellValue::Null) => {
                query.push(format!(" AND {column} IS NULL"));
            }
            ColumnTest::Is(cell) => {
                query.push(format!(" AND {column} = "));
                bind(&mut query, cell);
            }
            ColumnTest::OneOf(cells) => one_of(&mut query, &column, cells),
            ColumnTest::Within { gte, gt, lte, lt } => {
                for (operator, bound) in [(">=", gte), (">", gt), ("<=", lte), ("<", lt)] {
                    if let Some(bound) = bound {
                        query.push(format!(" AND {column} {operator} "));
                        bind(&mut query, bound);
                    }
                }
            }
        }
    }
    query.push(format!(" ORDER BY {} LIMIT ", quoted(&table.key)));
    query.push_bind(i64::try_from(max).unwrap_or(i64::MAX));
    query
}

fn one_of(query: &mut QueryBuilder<Sqlite>, column: &str, cells: &[CellValue]) {
    // An empty list fits no row.
    query.push(" AND (0");
    for cell in cells {
        match cell {
            CellValue::Null => {
                query.push(format!(" OR {column} IS NULL"));
            }
            cell => {
                query.push(format!(" OR {column} = "));
                bind(query, cell);
            }
        }
    }
    query.push(")");
}

/// Version and values.
fn all_columns(table: &TableDefinition) -> String {
    let names: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    format!("row_version, {}", quoted(&names))
}

pub(super) fn selected(
    names: &TableNames,
    table: &TableDefinition,
    tenant: &str,
    filter: &RowFilter,
    max: usize,
) -> QueryBuilder<Sqlite> {
    filtered(names, table, (tenant, &all_columns(table)), filter, max)
}

/// Version and key.
pub(super) fn versions(
    names: &TableNames,
    table: &TableDefinition,
    tenant: &str,
    filter: &RowFilter,
    max: usize,
) -> QueryBuilder<Sqlite> {
    let columns = format!("row_version, {}", quoted(&table.key));
    filtered(names, table, (tenant, &columns), filter, max)
}

/// The filter that fits one place.
fn place_filter(table: &TableDefinition, place: &RowPlace) -> RowFilter {
    let tests = table.key.iter().cloned().zip(place.key.iter().cloned().map(ColumnTest::Is));
    RowFilter(tests.collect())
}

pub(super) fn at_place(
    names: &TableNames,
    table: &TableDefinition,
    tenant: &str,
    place: &RowPlace,
) -> QueryBuilder<Sqlite> {
    selected(names, table, tenant, &place_filter(table, place), 1)
}

pub(super) fn deleted(
    names: &TableNames,
    table: &TableDefinition,
    tenant: &str,
    place: &RowPlace,
) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new(format!("DELETE FROM {} WHERE tenant = ", names.table(&table.name)));
    query.push_bind(tenant.to_owned());
    for (name, cell) in table.key.iter().zip(&place.key) {
        query.push(format!(" AND \"{name}\" = "));
        bind(&mut query, cell);
    }
    query
}

pub(super) fn inserted(
    names: &TableNames,
    table: &TableDefinition,
    tenant: &str,
    row: &TableRow,
    version: i64,
) -> QueryBuilder<Sqlite> {
    let columns: Vec<String> = row.keys().cloned().collect();
    let name = names.table(&table.name);
    let mut query =
        QueryBuilder::new(format!("INSERT INTO {name} (tenant, row_version, {}) VALUES (", quoted(&columns)));
    query.push_bind(tenant.to_owned());
    query.push(", ");
    query.push_bind(version);
    for cell in row.values() {
        query.push(", ");
        bind(&mut query, cell);
    }
    query.push(")");
    query
}

pub(super) fn commit_of(names: &TableNames, tenant: &str, key: &str) -> QueryBuilder<Sqlite> {
    let mut query =
        QueryBuilder::new(format!("SELECT binding, diff FROM {} WHERE tenant = ", names.commits()));
    query.push_bind(tenant.to_owned());
    query.push(" AND key = ");
    query.push_bind(key.to_owned());
    query
}

pub(super) fn new_commit(
    names: &TableNames,
    tenant: &str,
    terms: CommitTerms<'_>,
    (binding, diff): (&str, &str),
) -> QueryBuilder<Sqlite> {
    let sql = format!("INSERT INTO {} (tenant, key, binding, diff, user, at) VALUES (", names.commits());
    let mut query = QueryBuilder::new(sql);
    for (at, value) in
        [tenant, terms.key, binding, diff, &terms.host.user, &terms.host.now].into_iter().enumerate()
    {
        query.push(if at == 0 { "" } else { ", " });
        query.push_bind(value.to_owned());
    }
    query.push(")");
    query
}

/// A row of [`selected`].
pub(super) fn read_row(table: &TableDefinition, row: &SqliteRow) -> Result<StoredRow, ToolError> {
    let mut values = TableRow::new();
    for (at, column) in table.columns.iter().enumerate() {
        values.insert(column.name.clone(), read_cell(column.kind, row, at + 1)?);
    }
    Ok(StoredRow { version: row.try_get(0)?, values })
}

/// The key of a row of [`versions`].
pub(super) fn read_key(table: &TableDefinition, row: &SqliteRow) -> Result<Vec<CellValue>, ToolError> {
    let cells = table.key.iter().enumerate().map(|(at, name)| {
        let column = table.column(name)?;
        read_cell(column.kind, row, at + 1)
    });
    cells.collect()
}

fn read_cell(kind: ColumnKind, row: &SqliteRow, at: usize) -> Result<CellValue, ToolError> {
    let cell = match kind {
        ColumnKind::Text | ColumnKind::Day | ColumnKind::Time => {
            row.try_get::<Option<String>, _>(at)?.map(CellValue::Text)
        }
        ColumnKind::Integer => row.try_get::<Option<i64>, _>(at)?.map(CellValue::Integer),
        ColumnKind::Boolean => row.try_get::<Option<i64>, _>(at)?.map(|value| CellValue::Boolean(value != 0)),
        ColumnKind::Decimal { scale } => {
            row.try_get::<Option<i64>, _>(at)?.map(|units| CellValue::Decimal { units, scale })
        }
    };
    Ok(cell.unwrap_or(CellValue::Null))
}
