//! The diff of a set of staged changes: each changed row before and after.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::invisible::one_line;

use super::base::{ReadBase, hash};
use super::table::{RowPlace, SceneTables, TableDefinition, TableRow};
use super::{StagedError, StagedLimits};

/// A changed row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowChange {
    /// Where it is.
    #[serde(flatten)]
    pub place: RowPlace,
    /// Its values before; `None` if there was no such row.
    pub before: Option<TableRow>,
    /// Its values after; `None` if it is deleted.
    pub after: Option<TableRow>,
}

/// All changed rows, in the order of their tables and keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct WriteDiff {
    /// The changes, at most one of each row.
    pub changes: Vec<RowChange>,
}

/// On one line: `items "CUP": stock 42 → 39`.
impl std::fmt::Display for RowChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match (&self.before, &self.after) {
            (before, Some(after)) => {
                let old = |name: &String| before.as_ref().and_then(|row| row.get(name));
                let changed = after.iter().filter(|(name, cell)| old(name) != Some(*cell));
                let cells = changed.map(|(name, cell)| match old(name) {
                    Some(old) => format!("{name} {old} → {cell}"),
                    None => format!("{name} {cell}"),
                });
                cells.collect::<Vec<_>>().join(", ")
            }
            (_, None) => "deleted".to_owned(),
        };
        f.write_str(&one_line(&format!("{}: {what}", self.place)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenChange {
    table: String,
    key: Vec<Value>,
    before: Option<Map<String, Value>>,
    after: Option<Map<String, Value>>,
}

impl WriteDiff {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Reads a diff as it is written in JSON, and checks each value against its column.
    ///
    /// # Errors
    /// `staged.arguments` if it is not a diff, and the faults of its values.
    pub fn read(tables: &SceneTables, diff: &Value) -> Result<Self, StagedError> {
        let wrong = |why: String| StagedError::new("staged.arguments", format!("the diff is invalid: {why}"));
        let given: Vec<GivenChange> =
            serde_json::from_value(diff.clone()).map_err(|error| wrong(error.to_string()))?;
        let max = StagedLimits::default().changed_rows;
        if given.len() > max {
            return Err(StagedError::new("staged.too_large", format!("more than {max} rows are changed")));
        }
        let mut changes: Vec<RowChange> = Vec::new();
        for change in given {
            let table = tables.table(&change.table)?;
            let row = |values: &Option<Map<String, Value>>| {
                values.as_ref().map(|values| table.row(values)).transpose()
            };
            let (before, after) = (row(&change.before)?, row(&change.after)?);
            let place = place(table, &change.key)?;
            if [&before, &after].into_iter().flatten().any(|row| table.place(row) != place) {
                return Err(wrong(format!("a row of {place} has another key")));
            }
            if before == after || changes.last().is_some_and(|last| last.place >= place) {
                return Err(wrong(format!("{place} does not change, or is not in its place")));
            }
            changes.push(RowChange { place, before, after });
        }
        Ok(Self { changes })
    }

    /// Returns the hash that a person's approval covers: exactly these changes of exactly this state.
    ///
    /// # Errors
    /// `staged.arguments` if they cannot be written.
    pub fn binding(&self, base: &ReadBase) -> Result<String, StagedError> {
        // Rows are sorted by column, changes by place: equal sets have equal bytes.
        hash(&(base, self))
    }
}

/// The place of a key that is written as a list of its values.
pub(super) fn place(table: &TableDefinition, key: &[Value]) -> Result<RowPlace, StagedError> {
    let named: Map<String, Value> = table.key.iter().cloned().zip(key.iter().cloned()).collect();
    if named.len() != key.len() {
        return table.place_of(&Value::from(key.to_vec()));
    }
    table.place_of(&Value::Object(named))
}
