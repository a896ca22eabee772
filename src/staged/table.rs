//! Tables that a scene declares: columns, keys, checks and rules.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::value::{CellValue, ColumnKind};
use super::{StagedError, rules};

/// A row: the value of each column.
pub type TableRow = BTreeMap<String, CellValue>;

/// A table that a scene declares for its programs and tools. Each tenant has its own rows; programs do not see the
/// column that names the tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableDefinition {
    /// Its name, unique in the scene.
    pub name: String,
    /// A description of its rows, for the authors of programs.
    pub description: String,
    /// Its columns, in the declared order.
    pub columns: Vec<ColumnDefinition>,
    /// The columns by which a row is found, in order. They never change.
    pub key: Vec<String>,
    /// Conditions on every row: minijinja expressions over its columns, such as `stock >= 0`. A decimal counts in its
    /// smallest units. A check with a column that is null is not made.
    pub checks: Vec<String>,
    /// Whether rows are only added.
    pub append_only: bool,
    /// Set if its rows are the entries of changes of another table.
    pub records: Option<EntryRule>,
    /// The rows that a tenant begins with.
    pub initial: Vec<TableRow>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnDefinition {
    /// Its name, unique in the table.
    pub name: String,
    /// The kind of its values.
    pub kind: ColumnKind,
    /// Whether it may be null.
    pub optional: bool,
    /// The texts that it may hold; empty: any.
    pub values: Vec<String>,
    /// The value that the host puts into it when a row is added; nothing else writes this column.
    pub filled: Option<FilledBy>,
}

/// The value that the host puts into a column of a new row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilledBy {
    /// A text that no other row has.
    Id,
    /// When the request was made.
    Now,
    /// The requester's name.
    User,
}

/// Declares that a table's rows are entries of the changes of another table: each changed row of that table has exactly
/// one new entry, which names it and says by how much it changed; and each entry belongs to such a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EntryRule {
    /// The other table.
    pub table: String,
    /// By column of the entry, the key column of the other table that it repeats.
    pub by: BTreeMap<String, String>,
    /// By column of the entry, the column of the other table whose change it is.
    pub amounts: BTreeMap<String, String>,
    /// Conditions on every new entry: minijinja expressions over its columns, those of the changed row as it is then,
    /// under the name of its table (`items.price_cents`), and `stated`, the amounts of money in the user's words, in
    /// hundredths. A check with `stated` is made where these are known: for programs, before the commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
}

/// The place of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RowPlace {
    /// The table.
    pub table: String,
    /// The values of its key columns.
    pub key: Vec<CellValue>,
}

impl std::fmt::Display for RowPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key: Vec<String> = self.key.iter().map(CellValue::to_string).collect();
        write!(f, "{} {}", self.table, key.join(", "))
    }
}

/// A row as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredRow {
    /// Its version; no other state of a row at this place has the same.
    pub version: i64,
    /// Its values.
    pub values: TableRow,
}

/// The tables of a scene.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SceneTables(pub Vec<TableDefinition>);

impl SceneTables {
    /// The table called `name`.
    ///
    /// # Errors
    /// `staged.table` lists the tables.
    pub fn table(&self, name: &str) -> Result<&TableDefinition, StagedError> {
        self.0.iter().find(|table| table.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|table| table.name.as_str()).collect();
            let message = format!("there is no table {name:?}; the tables are {}", names.join(", "));
            StagedError::new("staged.table", message)
        })
    }

    /// Returns whether no table is declared.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TableDefinition {
    /// The column called `name`.
    ///
    /// # Errors
    /// `staged.column` lists the columns.
    pub fn column(&self, name: &str) -> Result<&ColumnDefinition, StagedError> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
            let message =
                format!("{} has no column {name:?}; its columns are {}", self.name, names.join(", "));
            StagedError::new("staged.column", message)
        })
    }

    /// The value of a column.
    ///
    /// # Errors
    /// `staged.column` and `staged.value` say what is expected.
    pub fn cell(&self, name: &str, value: &Value) -> Result<CellValue, StagedError> {
        let column = self.column(name)?;
        let wrong = |expected: &str| {
            let message = format!("{}.{name} is {value}; expected {expected}", self.name);
            StagedError::new("staged.value", message)
        };
        if value.is_null() {
            return if column.optional { Ok(CellValue::Null) } else { Err(wrong("a value")) };
        }
        let cell = column.kind.read(value).ok_or_else(|| wrong(&column.kind.expected()))?;
        match &cell {
            CellValue::Text(text) if !column.values.is_empty() && !column.values.contains(text) => {
                Err(wrong(&format!("one of {}", column.values.join(", "))))
            }
            _ => Ok(cell),
        }
    }

    /// The values of the given columns.
    ///
    /// # Errors
    /// `staged.column` and `staged.value`.
    pub fn cells(&self, values: &Map<String, Value>) -> Result<TableRow, StagedError> {
        values.iter().map(|(name, value)| Ok((name.clone(), self.cell(name, value)?))).collect()
    }

    /// A complete row; columns that are left out are null.
    ///
    /// # Errors
    /// `staged.column` and `staged.value`.
    pub fn row(&self, values: &Map<String, Value>) -> Result<TableRow, StagedError> {
        let mut row = self.cells(values)?;
        for column in &self.columns {
            if !row.contains_key(&column.name) {
                row.insert(column.name.clone(), self.cell(&column.name, &Value::Null)?);
            }
        }
        Ok(row)
    }

    /// The place of a row of this table.
    pub fn place(&self, row: &TableRow) -> RowPlace {
        let key = self.key.iter().map(|name| row.get(name).cloned().unwrap_or(CellValue::Null)).collect();
        RowPlace { table: self.name.clone(), key }
    }

    /// The place that a key names: an object with the key's columns, or the value of the only one.
    ///
    /// # Errors
    /// `staged.key` says what the key is.
    pub fn place_of(&self, key: &Value) -> Result<RowPlace, StagedError> {
        let wrong = || {
            let message = format!("the key of {} is {}, not {key}", self.name, self.key.join(", "));
            StagedError::new("staged.key", message)
        };
        let values: Vec<&Value> = match key {
            Value::Object(fields) if fields.len() == self.key.len() => {
                self.key.iter().filter_map(|name| fields.get(name)).collect()
            }
            Value::Object(_) | Value::Array(_) => return Err(wrong()),
            single => vec![single],
        };
        if values.len() != self.key.len() {
            return Err(wrong());
        }
        let cells = self.key.iter().zip(values).map(|(name, value)| self.cell(name, value));
        Ok(RowPlace { table: self.name.clone(), key: cells.collect::<Result<_, _>>()? })
    }

    /// Checks that a complete row passes every check.
    ///
    /// # Errors
    /// `staged.check` names the first that it does not pass.
    pub fn check_row(&self, row: &TableRow) -> Result<(), StagedError> {
        for check in &self.checks {
            if !rules::holds(check, row) {
                let place = self.place(row);
                let message = format!("the change of {place} breaks the rule `{check}`: {}", shown(row));
                return Err(StagedError::new("staged.check", message));
            }
        }
        Ok(())
    }
}

fn shown(row: &TableRow) -> String {
    serde_json::to_string(row).unwrap_or_default()
}

pub(super) fn row_json(row: &TableRow) -> Value {
    row.iter().map(|(name, cell)| (name.clone(), cell.to_json())).collect::<Map<_, _>>().into()
}
