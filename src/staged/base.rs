//! The base of a set of staged changes: the versions of the rows and ranges that were read.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::diff;
use super::filter::RowFilter;
use super::table::{RowPlace, SceneTables};
use super::value::CellValue;
use super::{StagedError, StagedLimits};

/// A range of a table, and the rows that it had.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RangeVersions {
    /// The table.
    pub table: String,
    /// Which rows.
    #[serde(rename = "where")]
    pub filter: RowFilter,
    /// How many rows it had.
    pub rows: usize,
    /// SHA-256 over the keys of its rows, each with its version.
    pub versions: String,
}

impl RangeVersions {
    /// The range of a table with these rows.
    ///
    /// # Errors
    /// `staged.arguments` if a key cannot be written.
    pub fn of(
        table: &str,
        filter: RowFilter,
        mut rows: Vec<(Vec<CellValue>, i64)>,
    ) -> Result<Self, StagedError> {
        rows.sort();
        let versions = hash(&rows)?;
        Ok(Self { table: table.to_owned(), filter, rows: rows.len(), versions })
    }
}

/// SHA-256, in hex, over the JSON of a value whose maps are sorted.
pub(super) fn hash(value: &impl Serialize) -> Result<String, StagedError> {
    let bytes = serde_json::to_vec(value)
        .map_err(|error| StagedError::new("staged.arguments", format!("it cannot be written: {error}")))?;
    Ok(HEXLOWER.encode(&Sha256::digest(bytes)))
}

/// The versions of everything that was read, and of nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadBase {
    /// Rows that were read by their key; `None`: there was no such row.
    pub rows: BTreeMap<RowPlace, Option<i64>>,
    /// Ranges that were read.
    pub ranges: Vec<RangeVersions>,
}

/// A part of a base that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseConflict {
    /// A row changed, was added or deleted.
    Row(RowPlace),
    /// Another row is in a range, or one of its rows changed or left.
    Range {
        /// The table.
        table: String,
    },
}

impl std::fmt::Display for BaseConflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Row(place) => place.fmt(f),
            Self::Range { table } => write!(f, "rows of {table}"),
        }
    }
}

#[derive(Serialize)]
struct WrittenRow<'a> {
    #[serde(flatten)]
    place: &'a RowPlace,
    version: Option<i64>,
}

#[derive(Serialize)]
struct WrittenBase<'a> {
    rows: Vec<WrittenRow<'a>>,
    ranges: &'a [RangeVersions],
}

impl Serialize for ReadBase {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.rows.iter().map(|(place, version)| WrittenRow { place, version: *version });
        WrittenBase { rows: rows.collect(), ranges: &self.ranges }.serialize(serializer)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenBase {
    rows: Vec<GivenRow>,
    ranges: Vec<GivenRange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenRow {
    table: String,
    key: Vec<Value>,
    version: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenRange {
    table: String,
    #[serde(rename = "where")]
    filter: Map<String, Value>,
    rows: usize,
    versions: String,
}

impl ReadBase {
    /// Reads a base as it is written in JSON.
    ///
    /// # Errors
    /// `staged.arguments` if it is not a base, and the faults of its keys and conditions.
    pub fn read(tables: &SceneTables, base: &Value) -> Result<Self, StagedError> {
        let given: GivenBase = serde_json::from_value(base.clone())
            .map_err(|error| StagedError::new("staged.arguments", format!("the base is invalid: {error}")))?;
        let max = StagedLimits::default().read_rows;
        if given.rows.len() > max || given.ranges.len() > max {
            return Err(StagedError::new("staged.too_large", format!("the base has more than {max} rows")));
        }
        let mut read = Self::default();
        for row in given.rows {
            let place = diff::place(tables.table(&row.table)?, &row.key)?;
            read.rows.insert(place, row.version);
        }
        for range in given.ranges {
            let table = tables.table(&range.table)?;
            let filter = RowFilter::read(table, &range.filter)?;
            let GivenRange { table, rows, versions, .. } = range;
            read.ranges.push(RangeVersions { table, filter, rows, versions });
        }
        Ok(read)
    }

    /// Returns the parts of this base that have changed, where `current` has the same rows and ranges with their
    /// present versions. Empty if and only if each row and each range that was read is unchanged.
    pub fn conflicts(&self, current: &Self) -> Vec<BaseConflict> {
        let rows = self.rows.iter().filter(|(place, version)| current.rows.get(place) != Some(version));
        let mut found: Vec<BaseConflict> = rows.map(|(place, _)| BaseConflict::Row(place.clone())).collect();
        for range in &self.ranges {
            if !current.ranges.contains(range) {
                found.push(BaseConflict::Range { table: range.table.clone() });
            }
        }
        found
    }
}

pub(super) fn conflict(what: &str) -> StagedError {
    let message = format!("{what} changed since it was read; nothing was done");
    StagedError::new("staged.conflict", message)
}

impl From<&[BaseConflict]> for StagedError {
    fn from(conflicts: &[BaseConflict]) -> Self {
        let what: Vec<String> = conflicts.iter().take(5).map(BaseConflict::to_string).collect();
        conflict(&what.join("; "))
    }
}
