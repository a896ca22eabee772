//! The schema of a database: tables and views that may be offered, and the sets that a statement may be approved for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::error::{SqlEngineError, SqlErrorCode};
use crate::sql_guard::{ApprovedSet, ApprovedTable, Dialect, TableName};

/// The kind of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelationKind {
    /// A table.
    Table,
    /// A view.
    View,
    /// A view whose rows are stored.
    MaterializedView,
}

/// A column of a table or view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseColumn {
    /// Its name.
    pub name: String,
    /// Its type in the engine's words; SQLite allows any text, also none.
    pub declared_type: String,
    /// Whether it may be NULL, as far as the schema says.
    pub nullable: bool,
    /// Whether it is part of the primary key.
    pub primary_key: bool,
    /// The comment on it. It is data that others wrote: never an instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Whether no statement may read it.
    #[serde(default)]
    pub withheld: bool,
}

/// A reference from a table to another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// The columns that refer.
    pub columns: Vec<String>,
    /// The table that is referred to.
    pub table: TableName,
    /// Its columns, in the order of `columns`.
    pub referenced: Vec<String>,
}

/// A table or view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseTable {
    /// Its name.
    pub name: TableName,
    /// Its kind.
    pub kind: RelationKind,
    /// The comment on it. It is data that others wrote: never an instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Its columns, in order.
    pub columns: Vec<DatabaseColumn>,
    /// Its references to other tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// What a view reads, directly or through other views: tables and views, whether or not they are offered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "reads_as_list")]
    pub reads: BTreeMap<TableName, BTreeSet<String>>,
    /// Whether a person is asked before it is read. A view of a sensitive table is sensitive.
    #[serde(default)]
    pub sensitive: bool,
    /// PostgreSQL: about how many rows it has, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_rows: Option<u64>,
}

/// A table or view that is not offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedTable {
    /// Its name.
    pub name: TableName,
    /// Why, in words for the person who runs the server.
    pub why: String,
}

/// The relations of a database, as they were when they were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseSchema {
    /// The engine's SQL.
    pub dialect: Dialect,
    /// The schema of names that are written without one.
    pub default_schema: String,
    /// The tables and views that may be offered, by name.
    pub tables: Vec<DatabaseTable>,
    /// Those that may not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<OmittedTable>,
}

impl DatabaseTable {
    /// The columns that a statement may read.
    pub fn readable(&self) -> impl Iterator<Item = &DatabaseColumn> {
        self.columns.iter().filter(|column| !column.withheld)
    }
}

impl DatabaseSchema {
    /// The table `name`, exactly as it is stored.
    #[must_use]
    pub fn table(&self, name: &TableName) -> Option<&DatabaseTable> {
        self.tables.iter().find(|table| table.name == *name)
    }

    /// The table that a person or a model means by `written`: `table` or `schema.table`, whatever the case of its
    /// letters. `None` if there is none or more than one.
    #[must_use]
    pub fn find(&self, written: &str) -> Option<&DatabaseTable> {
        let exact = |table: &&DatabaseTable| written == self.short_name(&table.name);
        if let Some(table) = self.tables.iter().find(exact) {
            return Some(table);
        }
        let mut found = self.tables.iter().filter(|table| {
            table.name.name.eq_ignore_ascii_case(written)
                || table.name.to_string().eq_ignore_ascii_case(written)
        });
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// `name` as people write it: without the default schema.
    #[must_use]
    pub fn short_name(&self, name: &TableName) -> String {
        if name.schema == self.default_schema { name.name.clone() } else { name.to_string() }
    }

    /// `tables`, and what the views among them read: a view may be used only if all of that is approved, too.
    #[must_use]
    pub fn with_reads(&self, tables: &[TableName]) -> Vec<TableName> {
        let mut all: BTreeSet<_> = tables.iter().cloned().collect();
        let read =
            tables.iter().filter_map(|name| self.table(name)).flat_map(|table| table.reads.keys().cloned());
        all.extend(read);
        all.into_iter().collect()
    }

    /// The set of exactly `tables`, with all their columns but those that are withheld. A statement that uses a view
    /// among them is refused unless what the view reads is in `tables`, too ([`with_reads`](Self::with_reads)).
    ///
    /// # Errors
    /// [`SqlErrorCode::UnknownTable`] for a table that the schema does not offer. What a view reads needs not be offered.
    pub fn approved_set(&self, tables: &[TableName]) -> Result<ApprovedSet, SqlEngineError> {
        let wanted: BTreeSet<_> = tables.iter().collect();
        let read: BTreeSet<_> =
            wanted.iter().filter_map(|name| self.table(name)).flat_map(|table| table.reads.keys()).collect();
        let mut approved = Vec::new();
        for name in wanted {
            match self.table(name) {
                Some(table) => approved.push(approved_table(table)),
                // Only views read it: none of its columns may be named.
                None if read.contains(name) => approved.push(hidden_table(name, &self.tables)),
                None => {
                    let what = format!("there is no table {} to read", self.short_name(name));
                    let remedy = "name tables of the schema";
                    return Err(SqlEngineError::new(SqlErrorCode::UnknownTable, what, remedy));
                }
            }
        }
        Ok(ApprovedSet { default_schema: self.default_schema.clone(), tables: approved })
    }
}

fn approved_table(table: &DatabaseTable) -> ApprovedTable {
    let (withheld, columns): (Vec<_>, Vec<_>) = table.columns.iter().partition(|column| column.withheld);
    let names =
        |columns: Vec<&DatabaseColumn>| columns.into_iter().map(|column| column.name.clone()).collect();
    ApprovedTable {
        name: table.name.clone(),
        columns: names(columns),
        withheld: names(withheld),
        reads: table.reads.keys().cloned().collect(),
    }
}

/// A table that is read by views only, such as one of a schema that is not offered.
fn hidden_table(name: &TableName, tables: &[DatabaseTable]) -> ApprovedTable {
    let columns = tables.iter().filter_map(|table| table.reads.get(name)).flatten();
    let withheld: BTreeSet<_> = columns.cloned().collect();
    ApprovedTable {
        name: name.clone(),
        columns: Vec::new(),
        withheld: withheld.into_iter().collect(),
        reads: Vec::new(),
    }
}

/// JSON has no maps with such keys.
mod reads_as_list {
    use std::collections::{BTreeMap, BTreeSet};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::sql_guard::TableName;

    type Reads = BTreeMap<TableName, BTreeSet<String>>;

    pub(super) fn serialize<S: Serializer>(reads: &Reads, out: S) -> Result<S::Ok, S::Error> {
        reads.iter().collect::<Vec<_>>().serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(read: D) -> Result<Reads, D::Error> {
        Ok(Vec::<(TableName, BTreeSet<String>)>::deserialize(read)?.into_iter().collect())
    }
}
