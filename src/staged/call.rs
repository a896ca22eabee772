//! The calls by which a program reads and stages: `scene.find`, `get`, `insert`, `update` and `delete`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::StagedError;
use super::filter::RowFilter;
use super::table::{RowPlace, SceneTables, StoredRow, row_json};
use super::write_set::WriteSet;

/// A call about a table.
#[derive(Debug, Clone, PartialEq)]
pub enum TableCall {
    /// The rows that pass a filter.
    Find {
        /// The table.
        table: String,
        /// Which rows.
        filter: RowFilter,
    },
    /// The row with a key.
    Get(RowPlace),
    /// A new row.
    Insert {
        /// The table.
        table: String,
        /// Its values.
        values: Map<String, Value>,
    },
    /// Other values of a row.
    Update(RowPlace, Map<String, Value>),
    /// A row that is deleted.
    Delete(RowPlace),
}

/// The data of the store that a call needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableReading {
    /// The rows of a table that pass a filter.
    Range(String, RowFilter),
    /// The row at a place.
    Row(RowPlace),
    /// Nothing: the place of a row that gets its id from the host.
    Nothing,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenCall {
    table: String,
    #[serde(default, rename = "where")]
    filter: Option<Map<String, Value>>,
    key: Option<Value>,
    values: Option<Map<String, Value>>,
}

/// The function by which the host commits the staged changes of a program. No program calls it.
pub const COMMIT: &str = "commit";

impl TableCall {
    /// The names of the functions.
    pub const FUNCTIONS: [&'static str; 5] = ["find", "get", "insert", "update", "delete"];

    /// Reads a call of `function`, one of [`Self::FUNCTIONS`].
    ///
    /// # Errors
    /// `staged.arguments` says which arguments the function takes; and the faults of names and values.
    pub fn read(
        tables: &SceneTables,
        function: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Self, StagedError> {
        let wrong = |why: &str| {
            let takes = match function {
                "find" => "table and where",
                "get" | "delete" => "table and key",
                "insert" => "table and values",
                _ => "table, key and values",
            };
            StagedError::new("staged.arguments", format!("{function} takes {takes}: {why}"))
        };
        let given: GivenCall = serde_json::from_value(Value::Object(arguments.clone()))
            .map_err(|error| wrong(&error.to_string()))?;
        let table = tables.table(&given.table)?;
        let name = given.table.clone();
        match (function, given.filter, given.key, given.values) {
            ("find", filter, None, None) => {
                let filter = RowFilter::read(table, &filter.unwrap_or_default())?;
                Ok(Self::Find { table: name, filter })
            }
            ("get", None, Some(key), None) => Ok(Self::Get(table.place_of(&key)?)),
            ("insert", None, None, Some(values)) => Ok(Self::Insert { table: name, values }),
            ("update", None, Some(key), Some(values)) => Ok(Self::Update(table.place_of(&key)?, values)),
            ("delete", None, Some(key), None) => Ok(Self::Delete(table.place_of(&key)?)),
            _ => Err(wrong("others were given")),
        }
    }

    /// Returns what must be read from the store before it can be performed.
    ///
    /// # Errors
    /// Faults of the key of a new row.
    pub fn reading(&self, tables: &SceneTables) -> Result<TableReading, StagedError> {
        match self {
            Self::Find { table, filter } => Ok(TableReading::Range(table.clone(), filter.clone())),
            Self::Get(place) | Self::Update(place, _) | Self::Delete(place) => {
                Ok(TableReading::Row(place.clone()))
            }
            Self::Insert { table, values } => {
                let table = tables.table(table)?;
                let filled = |name: &String| table.column(name).is_ok_and(|column| column.filled.is_some());
                if table.key.iter().any(filled) {
                    return Ok(TableReading::Nothing);
                }
                let of = |name: &String| (name.clone(), values.get(name).cloned().unwrap_or_default());
                let key: Map<String, Value> = table.key.iter().map(of).collect();
                Ok(TableReading::Row(table.place_of(&Value::Object(key))?))
            }
        }
    }

    /// The table that it is about.
    pub fn table(&self) -> &str {
        match self {
            Self::Find { table, .. } | Self::Insert { table, .. } => table,
            Self::Get(place) | Self::Update(place, _) | Self::Delete(place) => &place.table,
        }
    }

    /// The parameters of a function, in order.
    pub fn parameters(function: &str) -> &'static [&'static str] {
        match function {
            "find" => &["table", "where"],
            "insert" => &["table", "values"],
            "update" => &["table", "key", "values"],
            _ => &["table", "key"],
        }
    }

    /// Returns whether it stages a change.
    pub fn stages(&self) -> bool {
        !matches!(self, Self::Find { .. } | Self::Get(_))
    }
}

impl WriteSet {
    /// Performs a call, with the rows that the store has for its [`TableCall::reading`]; the result is what the program sees.
    ///
    /// # Errors
    /// Why it cannot be done. Nothing is staged by it then.
    pub fn perform(&mut self, call: &TableCall, found: Vec<StoredRow>) -> Result<Value, StagedError> {
        let mut found = found;
        let rows = |rows: Vec<_>| Value::Array(rows.iter().map(row_json).collect());
        match call {
            TableCall::Find { table, filter } => self.find(table, filter.clone(), found).map(rows),
            TableCall::Get(place) => {
                Ok(self.get(place, found.pop())?.map_or(Value::Null, |row| row_json(&row)))
            }
            TableCall::Insert { table, values } => {
                self.insert(table, values, found.pop()).map(|row| row_json(&row))
            }
            TableCall::Update(place, values) => {
                self.update(place, values, found.pop()).map(|row| row_json(&row))
            }
            TableCall::Delete(place) => self.delete(place, found.pop()).map(|row| row_json(&row)),
        }
    }
}

/// Rows of the store as JSON, as a call's result keeps them.
impl StoredRow {
    /// In JSON: `{"version": 3, "values": {…}}`.
    pub fn to_json(&self) -> Value {
        serde_json::json!({"version": self.version, "values": row_json(&self.values)})
    }

    /// Reads rows from a list of such objects.
    ///
    /// # Errors
    /// `staged.arguments` if they are not rows, and the faults of their values.
    pub fn read_all(tables: &SceneTables, table: &str, rows: &Value) -> Result<Vec<Self>, StagedError> {
        #[derive(Deserialize)]
        struct Given {
            version: i64,
            values: Map<String, Value>,
        }
        let given: Vec<Given> = serde_json::from_value(rows.clone())
            .map_err(|error| StagedError::new("staged.arguments", format!("rows are invalid: {error}")))?;
        let table = tables.table(table)?;
        let read = |row: &Given| Ok(Self { version: row.version, values: table.row(&row.values)? });
        given.iter().map(read).collect()
    }
}
