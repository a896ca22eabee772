//! Rows as they were read, and changes that are staged beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::base::{RangeVersions, ReadBase, conflict};
use super::diff::{RowChange, WriteDiff};
use super::filter::RowFilter;
use super::rules::append_only;
use super::table::{FilledBy, RowPlace, SceneTables, StoredRow, TableDefinition, TableRow};
use super::{StagedError, StagedLimits};

/// The values that the host knows and puts into the columns that it fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostValues {
    /// An id that no other set of staged changes has; the ids of new rows begin with it.
    pub id: String,
    /// When the request was made, `YYYY-MM-DDTHH:MM:SSZ`.
    pub now: String,
    /// The requester's name.
    pub user: String,
}

/// Rows as they were read, and changes that are staged beside them.
#[derive(Debug, Clone)]
pub struct WriteSet {
    tables: Arc<SceneTables>,
    host: HostValues,
    limits: StagedLimits,
    /// The amounts of money in the user's words, in hundredths, where they are known.
    stated: Option<BTreeSet<i64>>,
    /// Rows as they were read; `None`: there was no such row.
    read: BTreeMap<RowPlace, Option<StoredRow>>,
    /// Those that were read by their key.
    by_key: BTreeSet<RowPlace>,
    ranges: BTreeSet<RangeVersions>,
    /// Rows as they will be; `None`: deleted.
    staged: BTreeMap<RowPlace, Option<TableRow>>,
    ids: u32,
    read_rows: usize,
    bytes: usize,
}

impl WriteSet {
    /// An empty set.
    pub fn new(tables: Arc<SceneTables>, host: HostValues, limits: StagedLimits) -> Self {
        Self {
            tables,
            host,
            limits,
            stated: None,
            read: BTreeMap::new(),
            by_key: BTreeSet::new(),
            ranges: BTreeSet::new(),
            staged: BTreeMap::new(),
            ids: 0,
            read_rows: 0,
            bytes: 0,
        }
    }

    /// With the amounts of money in the user's words, in hundredths, which checks of entries may ask for.
    #[must_use]
    pub fn with_stated(self, amounts: BTreeSet<i64>) -> Self {
        Self { stated: Some(amounts), ..self }
    }

    /// Returns what the host fills.
    pub fn host(&self) -> &HostValues {
        &self.host
    }

    /// The tables that it is about.
    pub fn tables(&self) -> &SceneTables {
        &self.tables
    }

    /// The rows that pass `filter`, with what is staged, in the order of their keys. `found` are those that the store has.
    ///
    /// # Errors
    /// `staged.table`, `staged.too_large`, and `staged.conflict` if a row is not as it was when it was first read.
    pub fn find(
        &mut self,
        table: &str,
        filter: RowFilter,
        found: Vec<StoredRow>,
    ) -> Result<Vec<TableRow>, StagedError> {
        let tables = self.tables.clone();
        let table = tables.table(table)?;
        let places: Vec<RowPlace> = found.iter().map(|row| table.place(&row.values)).collect();
        let versions = places.iter().zip(&found).map(|(place, row)| (place.key.clone(), row.version));
        self.count(found.len().max(1))?;
        let read = RangeVersions::of(&table.name, filter.clone(), versions.collect())?;
        let same = |known: &&RangeVersions| known.table == read.table && known.filter == read.filter;
        if self.ranges.iter().find(same).is_some_and(|known| *known != read) {
            return Err(conflict(&format!("rows of {}", table.name)));
        }
        for (place, row) in places.iter().zip(found) {
            self.keep(place, Some(row))?;
        }
        self.ranges.insert(read);
        let stored = places.into_iter().filter(|place| !self.staged.contains_key(place));
        let stored = stored.filter_map(|place| Some((self.current(&place)?.clone(), place)));
        let staged = self.staged.iter().filter(|(place, _)| place.table == table.name);
        let staged = staged.filter_map(|(place, row)| Some((row.clone()?, place.clone())));
        let rows = stored.chain(staged).filter(|(row, _)| filter.matches(row));
        let rows: BTreeMap<RowPlace, TableRow> = rows.map(|(row, place)| (place, row)).collect();
        Ok(rows.into_values().collect())
    }

    /// The row at a place, with what is staged. `found` is what the store has there.
    ///
    /// # Errors
    /// `staged.too_large` and `staged.conflict`.
    pub fn get(
        &mut self,
        place: &RowPlace,
        found: Option<StoredRow>,
    ) -> Result<Option<TableRow>, StagedError> {
        self.count(1)?;
        self.keep(place, found)?;
        self.by_key.insert(place.clone());
        Ok(self.current(place).cloned())
    }

    /// The row that `values` make, with what the host fills: what an insertion would add, at its place.
    ///
    /// # Errors
    /// `staged.column`, `staged.value`, `staged.check`.
    pub fn new_row(&self, table: &str, values: &Map<String, Value>) -> Result<TableRow, StagedError> {
        let table = self.tables.table(table)?;
        refuse_filled(table, values)?;
        let mut values = values.clone();
        for column in &table.columns {
            let filled = match column.filled {
                Some(FilledBy::Id) => format!("{}-{}", self.host.id, self.ids + 1),
                Some(FilledBy::Now) => self.host.now.clone(),
                Some(FilledBy::User) => self.host.user.clone(),
                None => continue,
            };
            values.insert(column.name.clone(), Value::from(filled));
        }
        let row = table.row(&values)?;
        table.check_row(&row)?;
        Ok(row)
    }

    /// Stages a new row. `found` is what the store has at its place.
    ///
    /// # Errors
    /// Those of [`Self::new_row`] and [`Self::get`], and `staged.exists`.
    pub fn insert(
        &mut self,
        table: &str,
        values: &Map<String, Value>,
        found: Option<StoredRow>,
    ) -> Result<TableRow, StagedError> {
        let row = self.new_row(table, values)?;
        let place = self.tables.table(table)?.place(&row);
        if self.get(&place, found)?.is_some() {
            let message = format!("{place} exists already; use update to change it");
            return Err(StagedError::new("staged.exists", message));
        }
        self.stage(place, Some(row.clone()))?;
        self.ids += 1;
        Ok(row)
    }

    /// Stages other values of a row. `found` is what the store has at its place.
    ///
    /// # Errors
    /// `staged.no_row`, `staged.key`, `staged.append_only`, and those of [`Self::get`] and of values.
    pub fn update(
        &mut self,
        place: &RowPlace,
        values: &Map<String, Value>,
        found: Option<StoredRow>,
    ) -> Result<TableRow, StagedError> {
        let tables = self.tables.clone();
        let table = tables.table(&place.table)?;
        let mut row = self.existing(table, place, found)?;
        refuse_filled(table, values)?;
        row.extend(table.cells(values)?);
        if table.place(&row) != *place {
            let message = format!("the key of {place} cannot change; delete the row and insert another");
            return Err(StagedError::new("staged.key", message));
        }
        table.check_row(&row)?;
        self.stage(place.clone(), Some(row.clone()))?;
        Ok(row)
    }

    /// Stages the deletion of a row; returns the row. `found` is what the store has at its place.
    ///
    /// # Errors
    /// `staged.no_row`, `staged.append_only`, and those of [`Self::get`].
    pub fn delete(&mut self, place: &RowPlace, found: Option<StoredRow>) -> Result<TableRow, StagedError> {
        let tables = self.tables.clone();
        let row = self.existing(tables.table(&place.table)?, place, found)?;
        self.stage(place.clone(), None)?;
        Ok(row)
    }

    /// Returns the base and the diff, checked as a whole.
    ///
    /// # Errors
    /// `staged.check`, `staged.append_only` and `staged.rule`.
    pub fn finish(&self) -> Result<(ReadBase, WriteDiff), StagedError> {
        let diff = self.diff();
        self.tables.check_diff(&diff, &self.host, self.stated.as_ref())?;
        Ok((self.base(), diff))
    }

    /// The versions of everything that was read.
    pub fn base(&self) -> ReadBase {
        let version = |place: &RowPlace| self.read.get(place).and_then(Option::as_ref).map(|row| row.version);
        ReadBase {
            rows: self.by_key.iter().map(|place| (place.clone(), version(place))).collect(),
            ranges: self.ranges.iter().cloned().collect(),
        }
    }

    /// Each changed row, before and after.
    pub fn diff(&self) -> WriteDiff {
        let change = |(place, after): (&RowPlace, &Option<TableRow>)| RowChange {
            place: place.clone(),
            before: self.read.get(place).and_then(Option::as_ref).map(|row| row.values.clone()),
            after: after.clone(),
        };
        let changes = self.staged.iter().map(change).filter(|change| change.before != change.after);
        WriteDiff { changes: changes.collect() }
    }

    /// The row at a place, with staged changes.
    fn current(&self, place: &RowPlace) -> Option<&TableRow> {
        match self.staged.get(place) {
            Some(staged) => staged.as_ref(),
            None => self.read.get(place)?.as_ref().map(|row| &row.values),
        }
    }

    /// A row that may be changed.
    fn existing(
        &mut self,
        table: &TableDefinition,
        place: &RowPlace,
        found: Option<StoredRow>,
    ) -> Result<TableRow, StagedError> {
        if table.append_only {
            return Err(append_only(table));
        }
        self.get(place, found)?
            .ok_or_else(|| StagedError::new("staged.no_row", format!("there is no row {place}")))
    }

    /// Keeps a row as it was first read.
    fn keep(&mut self, place: &RowPlace, found: Option<StoredRow>) -> Result<(), StagedError> {
        match self.read.get(place) {
            Some(known) if *known != found => Err(conflict(&place.to_string())),
            Some(_) => Ok(()),
            None => {
                self.add_bytes(found.as_ref().map(|row| &row.values))?;
                self.read.insert(place.clone(), found);
                Ok(())
            }
        }
    }

    fn stage(&mut self, place: RowPlace, row: Option<TableRow>) -> Result<(), StagedError> {
        let max = self.limits.changed_rows;
        if self.staged.len() >= max && !self.staged.contains_key(&place) {
            return Err(too_large(&format!("more than {max} rows are changed")));
        }
        self.add_bytes(row.as_ref())?;
        self.staged.insert(place, row);
        Ok(())
    }

    fn count(&mut self, rows: usize) -> Result<(), StagedError> {
        self.read_rows = self.read_rows.saturating_add(rows);
        let max = self.limits.read_rows;
        if self.read_rows > max {
            return Err(too_large(&format!("more than {max} rows were read; narrow the conditions")));
        }
        Ok(())
    }

    fn add_bytes(&mut self, row: Option<&TableRow>) -> Result<(), StagedError> {
        let bytes = row.map_or(0, |row| serde_json::to_vec(row).map_or(0, |bytes| bytes.len()));
        self.bytes = self.bytes.saturating_add(bytes);
        let max = self.limits.bytes;
        if self.bytes > max {
            return Err(too_large(&format!(
                "the rows that were read and changed have more than {max} bytes"
            )));
        }
        Ok(())
    }
}

fn too_large(what: &str) -> StagedError {
    StagedError::new("staged.too_large", what)
}

fn refuse_filled(table: &TableDefinition, values: &Map<String, Value>) -> Result<(), StagedError> {
    let filled = |name: &&String| table.column(name).is_ok_and(|column| column.filled.is_some());
    match values.keys().find(filled) {
        Some(name) => {
            let message = format!("{}.{name} is set by the server; leave it out", table.name);
            Err(StagedError::new("staged.value", message))
        }
        None => Ok(()),
    }
}
