//! Which tables of a database are offered: the settings' sensitive and withheld names applied to what was read.

use std::collections::BTreeSet;

use super::{DatabaseSchema, OmittedTable, SqlDatabaseSettings, SqlEngineError, SqlErrorCode};
use crate::sql_guard::TableName;

/// The names in the settings.
#[derive(Debug)]
pub(super) struct Offer<'a> {
    sensitive: &'a [String],
    withheld: &'a [String],
}

impl<'a> Offer<'a> {
    pub(super) fn of(settings: &'a SqlDatabaseSettings) -> Self {
        Self { sensitive: &settings.sensitive, withheld: &settings.withheld }
    }
}

/// Marks what is sensitive and withheld. A view of a sensitive table is sensitive; a view that reads a withheld column, or
/// something that is left out, is left out. Names of the settings that are in no table are an error: a misspelt one
/// would protect nothing.
///
/// # Errors
/// [`SqlErrorCode::Settings`].
pub(super) fn apply(mut schema: DatabaseSchema, offer: &Offer<'_>) -> Result<DatabaseSchema, SqlEngineError> {
    let mut sensitive = BTreeSet::new();
    for written in offer.sensitive {
        let table = schema.find(written).ok_or_else(|| unknown("sensitive", written))?;
        sensitive.insert(table.name.clone());
    }
    let mut withheld = BTreeSet::new();
    for written in offer.withheld {
        let (table, column) = written.rsplit_once('.').ok_or_else(|| unknown("withheld", written))?;
        let table = schema.find(table).ok_or_else(|| unknown("withheld", written))?;
        let column = table.columns.iter().find(|known| known.name.eq_ignore_ascii_case(column));
        let column = column.ok_or_else(|| unknown("withheld", written))?;
        withheld.insert((table.name.clone(), column.name.to_ascii_lowercase()));
    }
    for table in &mut schema.tables {
        table.sensitive =
            sensitive.contains(&table.name) || table.reads.keys().any(|read| sensitive.contains(read));
        for column in &mut table.columns {
            column.withheld |= withheld.contains(&(table.name.clone(), column.name.to_ascii_lowercase()));
        }
    }
    leave_out(&mut schema, &withheld);
    Ok(schema)
}

fn leave_out(schema: &mut DatabaseSchema, withheld: &BTreeSet<(TableName, String)>) {
    let mut omitted = Vec::new();
    schema.tables.retain(|table| {
        let reads =
            table.reads.iter().flat_map(|(read, columns)| columns.iter().map(move |column| (read, column)));
        let mut reads = reads.map(|(read, column)| (read.clone(), column.to_ascii_lowercase()));
        let Some((read, column)) = reads.find(|read| withheld.contains(read)) else { return true };
        let why = format!("it reads the withheld column {column} of {read}");
        omitted.push(OmittedTable { name: table.name.clone(), why });
        false
    });
    schema.omitted.append(&mut omitted);
    schema.omitted.sort_by(|a, b| a.name.cmp(&b.name));
}

fn unknown(key: &str, written: &str) -> SqlEngineError {
    SqlEngineError::new(
        SqlErrorCode::Settings,
        format!("`{key}` names {written}, which the database does not have"),
        "name a table or column as the database does",
    )
}
