//! The tables and columns that a statement may read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Dialect;

/// The name of a table or view, as the engine stores it: no quotes, no folding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TableName {
    /// The schema: `main` in SQLite, `public` in most PostgreSQL databases.
    pub schema: String,
    /// The table's own name.
    pub name: String,
}

impl TableName {
    /// The table `name` in `schema`.
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        Self { schema: schema.into(), name: name.into() }
    }
}

impl std::fmt::Display for TableName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}", self.schema, self.name)
    }
}

/// A table or view that may be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedTable {
    /// Its name.
    pub name: TableName,
    /// The columns that may be read, in the table's order.
    pub columns: Vec<String>,
    /// The columns that the table has beside those. They must be listed: a name that the engine finds in this table
    /// must never be taken for another table's column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// The tables that the view reads, directly or through other views; empty for a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<TableName>,
}

/// Everything that a statement may read. Whatever is not here is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedSet {
    /// The schema of names that are written without one.
    pub default_schema: String,
    /// The tables and views.
    pub tables: Vec<ApprovedTable>,
}

impl ApprovedSet {
    /// The tables by their folded names.
    pub(super) fn index(&self, dialect: Dialect) -> BTreeMap<(String, String), &ApprovedTable> {
        let key =
            |table: &ApprovedTable| (dialect.stored(&table.name.schema), dialect.stored(&table.name.name));
        self.tables.iter().map(|table| (key(table), table)).collect()
    }

    /// Returns whether any name in the set is exactly `written`.
    pub(super) fn names(&self, written: &str) -> bool {
        self.tables.iter().any(|table| {
            table.name.name == written
                || table.name.schema == written
                || table.columns.iter().chain(&table.withheld).any(|column| column == written)
        })
    }
}
