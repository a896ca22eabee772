//! Which rows a read is about: equality, one of a list, and ranges.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::StagedError;
use super::table::{TableDefinition, TableRow};
use super::value::CellValue;

/// Maximum number of values of a list.
const MAX_LIST: usize = 100;

/// A test of one column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnTest {
    /// It has this value.
    Is(CellValue),
    /// It has one of these values.
    OneOf(Vec<CellValue>),
    /// It lies within these bounds; null does not.
    Within {
        /// The value is at least this.
        gte: Option<CellValue>,
        /// The value is greater than this.
        gt: Option<CellValue>,
        /// The value is at most this.
        lte: Option<CellValue>,
        /// The value is less than this.
        lt: Option<CellValue>,
    },
}

/// Which rows: those that pass the test of each column. Texts are compared by their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowFilter(pub BTreeMap<String, ColumnTest>);

impl RowFilter {
    /// Reads `{"sku": "A"}`, `{"sku": ["A", "B"]}` and `{"stock": {"gte": 1, "lt": 5}}`.
    ///
    /// # Errors
    /// `staged.filter`, `staged.column` and `staged.value`.
    pub fn read(table: &TableDefinition, tests: &Map<String, Value>) -> Result<Self, StagedError> {
        let read = tests.iter().map(|(name, test)| Ok((name.clone(), read_test(table, name, test)?)));
        Ok(Self(read.collect::<Result<_, StagedError>>()?))
    }

    /// Returns whether a row passes.
    pub fn matches(&self, row: &TableRow) -> bool {
        self.0.iter().all(|(name, test)| row.get(name).is_some_and(|cell| test.passes(cell)))
    }
}

fn read_test(table: &TableDefinition, name: &str, test: &Value) -> Result<ColumnTest, StagedError> {
    let wrong = |why: &str| {
        let message = format!("the condition on {}.{name} is {test}: {why}", table.name);
        StagedError::new("staged.filter", message)
    };
    match test {
        Value::Array(values) if values.len() > MAX_LIST => {
            Err(wrong(&format!("at most {MAX_LIST} values can be listed")))
        }
        Value::Array(values) => {
            let cells = values.iter().map(|value| table.cell(name, value));
            let mut cells: Vec<CellValue> = cells.collect::<Result<_, _>>()?;
            cells.sort();
            cells.dedup();
            Ok(ColumnTest::OneOf(cells))
        }
        Value::Object(bounds) => {
            if bounds.is_empty()
                || bounds.keys().any(|key| !["gte", "gt", "lte", "lt"].contains(&key.as_str()))
            {
                return Err(wrong("a range has gte, gt, lte and lt"));
            }
            let bound = |key: &str| bounds.get(key).map(|value| table.cell(name, value)).transpose();
            let (gte, gt, lte, lt) = (bound("gte")?, bound("gt")?, bound("lte")?, bound("lt")?);
            if [&gte, &gt, &lte, &lt].into_iter().flatten().any(|cell| *cell == CellValue::Null) {
                return Err(wrong("a bound is never null"));
            }
            Ok(ColumnTest::Within { gte, gt, lte, lt })
        }
        value => Ok(ColumnTest::Is(table.cell(name, value)?)),
    }
}

impl ColumnTest {
    fn passes(&self, cell: &CellValue) -> bool {
        match self {
            Self::Is(value) => cell == value,
            Self::OneOf(values) => values.contains(cell),
            Self::Within { gte, gt, lte, lt } => {
                *cell != CellValue::Null
                    && gte.as_ref().is_none_or(|bound| cell >= bound)
                    && gt.as_ref().is_none_or(|bound| cell > bound)
                    && lte.as_ref().is_none_or(|bound| cell <= bound)
                    && lt.as_ref().is_none_or(|bound| cell < bound)
            }
        }
    }
}

/// As [`RowFilter::read`] reads it.
impl Serialize for RowFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.0)
    }
}

impl Serialize for ColumnTest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Is(value) => value.serialize(serializer),
            Self::OneOf(values) => serializer.collect_seq(values),
            Self::Within { gte, gt, lte, lt } => {
                let bounds = [("gt", gt), ("gte", gte), ("lt", lt), ("lte", lte)];
                let mut map = serializer.serialize_map(None)?;
                for (name, bound) in bounds {
                    if let Some(bound) = bound {
                        map.serialize_entry(name, bound)?;
                    }
                }
                map.end()
            }
        }
    }
}
