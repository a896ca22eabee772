//! The rules for rows and for whole diffs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;

use minijinja::Environment;
use minijinja::value::Value as Variable;

use super::StagedError;
use super::diff::{RowChange, WriteDiff};
use super::table::{EntryRule, FilledBy, SceneTables, TableDefinition, TableRow, row_json};
use super::value::CellValue;
use super::write_set::HostValues;

/// The longest check of a row, in bytes.
const MAX_CHECK: usize = 500;

/// An environment without functions, filters and tests: only comparisons and arithmetic. Arithmetic that overflows is
/// an error.
static EXPRESSIONS: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::empty();
    environment.set_fuel(Some(10_000));
    environment
});

/// Checks that `check` is an expression over the columns `names`; the error says why it is not.
///
/// # Errors
/// A sentence.
pub fn check_expression(check: &str, names: &[&str]) -> Result<(), String> {
    if check.len() > MAX_CHECK {
        return Err(format!("a check has at most {MAX_CHECK} bytes"));
    }
    let compiled = EXPRESSIONS.compile_expression(check).map_err(|error| error.to_string())?;
    let used = compiled.undeclared_variables(false);
    match used.iter().find(|name| !names.contains(&name.as_str())) {
        Some(unknown) => Err(format!("there is no column {unknown:?}")),
        None if used.is_empty() => Err("it uses no column".to_owned()),
        None => Ok(()),
    }
}

/// The name under which checks of entries find the amounts of money in the user's words.
const STATED: &str = "stated";

/// Checks that `check` is an expression over the columns `own` of an entry, the columns `of` of the other table, and `stated`;
/// the error says why it is not.
///
/// # Errors
/// A sentence.
pub fn check_entry_expression(check: &str, own: &[&str], (other, of): (&str, &[&str])) -> Result<(), String> {
    if check.len() > MAX_CHECK {
        return Err(format!("a check has at most {MAX_CHECK} bytes"));
    }
    let compiled = EXPRESSIONS.compile_expression(check).map_err(|error| error.to_string())?;
    let used = compiled.undeclared_variables(true);
    let is_known = |name: &str| match name.split_once('.') {
        Some((table, column)) => table == other && of.contains(&column),
        None => name == STATED || own.contains(&name),
    };
    match used.iter().find(|name| !is_known(name.as_str())) {
        Some(unknown) => {
            Err(format!("there is no {unknown:?}: it may use columns, {other}.COLUMN and {STATED}"))
        }
        None if used.is_empty() => Err("it uses no column".to_owned()),
        None => Ok(()),
    }
}

/// Whether an entry passes a check together with the changed row that it records. A check that uses `stated` passes if
/// that is not known; one that cannot be computed does not pass.
fn entry_holds(
    check: &str,
    entry: &TableRow,
    (table, row): (&str, &TableRow),
    stated: Option<&BTreeSet<i64>>,
) -> bool {
    let Ok(compiled) = EXPRESSIONS.compile_expression(check) else { return false };
    let used: HashSet<String> = compiled.undeclared_variables(true);
    let cell = |name: &String| match name.split_once('.') {
        Some((_, column)) => row.get(column),
        None => entry.get(name),
    };
    if used.contains(STATED) && stated.is_none() {
        return true;
    }
    let is_null = |name: &String| name != STATED && cell(name).is_none_or(|cell| *cell == CellValue::Null);
    if used.iter().any(is_null) {
        return true;
    }
    let columns = |row: &TableRow| row.iter().map(|(name, cell)| (name.clone(), variable(cell))).collect();
    let mut variables: BTreeMap<String, Variable> = columns(entry);
    let of: BTreeMap<String, Variable> = columns(row);
    variables.insert(table.to_owned(), of.into_iter().collect());
    variables.insert(STATED.to_owned(), stated.into_iter().flatten().copied().collect());
    compiled.eval(variables).is_ok_and(|result| result == Variable::from(true))
}

/// Returns whether a row passes a check. A check that cannot be computed does not pass.
pub(super) fn holds(check: &str, row: &TableRow) -> bool {
    let Ok(compiled) = EXPRESSIONS.compile_expression(check) else { return false };
    let used = compiled.undeclared_variables(false);
    if used.iter().any(|name| row.get(name).is_none_or(|cell| *cell == CellValue::Null)) {
        return true;
    }
    let variables: BTreeMap<&str, Variable> =
        row.iter().map(|(name, cell)| (name.as_str(), variable(cell))).collect();
    compiled.eval(variables).is_ok_and(|result| result == Variable::from(true))
}

fn variable(cell: &CellValue) -> Variable {
    match cell {
        CellValue::Null => Variable::from(()),
        CellValue::Boolean(value) => Variable::from(*value),
        CellValue::Integer(units) | CellValue::Decimal { units, .. } => Variable::from(*units),
        CellValue::Text(text) => Variable::from(text.as_str()),
    }
}

impl SceneTables {
    /// Checks a whole diff against the declarations of the tables: checks of rows, rows that are only added, columns
    /// that the host fills, and entries of changes. `stated` are the amounts of money in the user's words, where they
    /// are known.
    ///
    /// # Errors
    /// `staged.check`, `staged.append_only`, `staged.value` and `staged.rule`.
    pub fn check_diff(
        &self,
        diff: &WriteDiff,
        host: &HostValues,
        stated: Option<&BTreeSet<i64>>,
    ) -> Result<(), StagedError> {
        for change in &diff.changes {
            let table = self.table(&change.place.table)?;
            check_filled(table, change, host)?;
            if table.append_only && change.before.is_some() {
                return Err(append_only(table));
            }
            if let Some(row) = &change.after {
                table.check_row(row)?;
            }
        }
        for table in &self.0 {
            if let Some(rule) = &table.records {
                check_entries(table, rule, &self.table(&rule.table)?.key, (diff, stated))?;
            }
        }
        Ok(())
    }
}

/// Checks that a new row has the host's values in the columns that the host fills, and that a changed row keeps those
/// that it had.
fn check_filled(table: &TableDefinition, change: &RowChange, host: &HostValues) -> Result<(), StagedError> {
    let Some(after) = &change.after else { return Ok(()) };
    for column in &table.columns {
        let Some(filled) = column.filled else { continue };
        let value = after.get(&column.name);
        let text = value.and_then(CellValue::as_text).unwrap_or_default();
        let fits = match (&change.before, filled) {
            (Some(before), _) => before.get(&column.name) == value,
            (None, FilledBy::Id) => text.strip_prefix(&host.id).is_some_and(|rest| rest.starts_with('-')),
            (None, FilledBy::Now) => text == host.now,
            (None, FilledBy::User) => text == host.user,
        };
        if !fits {
            let message = format!("{}.{} is set by the server", table.name, column.name);
            return Err(StagedError::new("staged.value", message));
        }
    }
    Ok(())
}

pub(super) fn append_only(table: &TableDefinition) -> StagedError {
    let message = format!("rows of {} are only added, never changed or deleted", table.name);
    StagedError::new("staged.append_only", message)
}

/// The changed rows that need entries, by key: the change of each amount, and the row after the change.
fn changed_rows<'d>(
    rule: &EntryRule,
    diff: &'d WriteDiff,
) -> BTreeMap<Vec<CellValue>, (Vec<i128>, &'d TableRow)> {
    let units = |row: &Option<TableRow>, column: &String| {
        row.as_ref().and_then(|row| row.get(column)).and_then(CellValue::as_units).map_or(0, i128::from)
    };
    let of_table = diff.changes.iter().filter(|change| change.place.table == rule.table);
    let changed = of_table.filter_map(|change| {
        let delta = |column: &String| units(&change.after, column) - units(&change.before, column);
        // A deleted row is compared with the values that it had.
        let row = change.after.as_ref().or(change.before.as_ref())?;
        let amounts: Vec<i128> = rule.amounts.values().map(delta).collect();
        Some((change.place.key.clone(), (amounts, row)))
    });
    changed.collect()
}

/// Checks that each changed row has one entry with its amounts, and each entry a changed row.
fn check_entries(
    entries: &TableDefinition,
    rule: &EntryRule,
    key_columns: &[String],
    (diff, stated): (&WriteDiff, Option<&BTreeSet<i64>>),
) -> Result<(), StagedError> {
    let broken = |what: String| StagedError::new("staged.rule", what);
    let named = |key: &[CellValue]| key.iter().map(CellValue::to_string).collect::<Vec<_>>().join(", ");
    let deltas = changed_rows(rule, diff);
    let mut seen = BTreeSet::new();
    let added = diff.changes.iter().filter(|change| change.place.table == entries.name);
    for row in added.filter_map(|change| change.after.as_ref()) {
        let repeated = |column: &String| {
            let own = rule.by.iter().find(|(_, of)| *of == column).and_then(|(own, _)| row.get(own));
            own.cloned().unwrap_or(CellValue::Null)
        };
        let key: Vec<CellValue> = key_columns.iter().map(repeated).collect();
        let written: Vec<i128> = rule
            .amounts
            .keys()
            .map(|column| row.get(column).and_then(CellValue::as_units).map_or(0, i128::from))
            .collect();
        let Some((actual, changed)) = deltas.get(&key) else {
            let what = format!("{} has an entry for {}, which does not change", entries.name, named(&key));
            return Err(broken(what));
        };
        if written != *actual {
            return Err(broken(format!(
                "the entry in {} for {} says {written:?}, but {} changes by {actual:?}",
                entries.name,
                named(&key),
                rule.table
            )));
        }
        let wrong = |check: &&String| !entry_holds(check, row, (rule.table.as_str(), *changed), stated);
        if let Some(check) = rule.checks.iter().find(wrong) {
            return Err(broken(format!(
                "the entry in {} for {} breaks the rule `{check}`: {}, where {} has {}",
                entries.name,
                named(&key),
                row_json(row),
                rule.table,
                row_json(changed)
            )));
        }
        if seen.contains(&key) {
            return Err(broken(format!("{} has more than one entry for {}", entries.name, named(&key))));
        }
        seen.insert(key);
    }
    match deltas.keys().find(|key| !seen.contains(*key)) {
        Some(key) => {
            let what =
                format!("the change of {} {} has no entry in {}", rule.table, named(key), entries.name);
            Err(broken(what))
        }
        None => Ok(()),
    }
}
