//! What is known of a database: what it holds, as its engine says, with the words of a description file.

use std::collections::{BTreeMap, BTreeSet};

use proscenium::sql_engine::{DatabaseColumn, DatabaseSchema, DatabaseTable};

use super::rules::description::{
    ColumnDescription, ColumnReference, ColumnType, DatabaseDescription, TableDescription,
};
use super::settings::DatabaseEntry;

/// Describes a database: its readable tables and columns, with the words of `written`, where that has them. What
/// `written` says of other tables is left out; what it, the entry or the engine mark as sensitive is sensitive.
pub fn described(
    name: &str,
    schema: &DatabaseSchema,
    written: &DatabaseDescription,
    entry: &DatabaseEntry,
) -> DatabaseDescription {
    let table = |table: &DatabaseTable| {
        let short = schema.short_name(&table.name);
        let words = written.tables.iter().find(|words| words.name.eq_ignore_ascii_case(&short));
        described_table(short, table, words, schema, entry)
    };
    let mut tables: Vec<TableDescription> = schema.tables.iter().map(table).collect();
    mark_views(&mut tables, schema);
    DatabaseDescription { database: name.to_owned(), description: written.description.clone(), tables }
}

/// The first name that the entry marks as sensitive and the database does not have: a misspelt one would protect nothing. A
/// table that is left out is known, too.
pub fn unknown_sensitive<'a>(schema: &DatabaseSchema, entry: &'a DatabaseEntry) -> Option<&'a str> {
    let lower = |name: &str| name.to_ascii_lowercase();
    let omitted: BTreeSet<String> =
        schema.omitted.iter().map(|table| lower(&schema.short_name(&table.name))).collect();
    let mut known = omitted.clone();
    for table in &schema.tables {
        let short = schema.short_name(&table.name);
        known.extend(table.columns.iter().map(|column| lower(&format!("{short}.{}", column.name))));
        known.insert(lower(&short));
    }
    let is_omitted =
        |name: &str| name.rsplit_once('.').is_some_and(|(table, _)| omitted.contains(&lower(table)));
    let mut written = entry.sensitive.iter().map(String::as_str);
    written.find(|name| !known.contains(&lower(name)) && !is_omitted(name))
}

fn described_table(
    short: String,
    table: &DatabaseTable,
    words: Option<&TableDescription>,
    schema: &DatabaseSchema,
    entry: &DatabaseEntry,
) -> TableDescription {
    let is_listed = |path: &str| entry.sensitive.iter().any(|listed| listed.eq_ignore_ascii_case(path));
    let columns = table.readable().map(|column| {
        let of = words.and_then(|words| {
            words.columns.iter().find(|words| words.name.eq_ignore_ascii_case(&column.name))
        });
        let mut described = described_column(column, of);
        described.sensitive |= is_listed(&format!("{short}.{}", column.name));
        described.references = reference(table, &column.name, schema);
        described.unique |= is_only_key(table, &column.name);
        described
    });
    let columns = columns.collect();
    let primary_key = table.columns.iter().filter(|column| column.primary_key).map(|key| key.name.clone());
    let words = words.cloned().unwrap_or_default();
    let description = match words.description.is_empty() {
        true => table.comment.iter().map(|comment| ("en".to_owned(), comment.clone())).collect(),
        false => words.description,
    };
    TableDescription {
        sensitive: words.sensitive || table.sensitive || is_listed(&short),
        name: short,
        description,
        synonyms: words.synonyms,
        label: words.label,
        time: words.time,
        columns,
        primary_key: primary_key.collect(),
    }
}

fn described_column(column: &DatabaseColumn, words: Option<&ColumnDescription>) -> ColumnDescription {
    let words = words.cloned().unwrap_or_default();
    let description: BTreeMap<String, String> = match words.description.is_empty() {
        true => column.comment.iter().map(|comment| ("en".to_owned(), comment.clone())).collect(),
        false => words.description,
    };
    ColumnDescription {
        name: column.name.clone(),
        description,
        kind: ColumnType::of_declared(&column.declared_type),
        nullable: column.nullable,
        unique: false,
        references: None,
        known: None,
        ..words
    }
}

/// What a column refers to by itself.
fn reference(table: &DatabaseTable, column: &str, schema: &DatabaseSchema) -> Option<ColumnReference> {
    table.foreign_keys.iter().find_map(|key| match (key.columns.as_slice(), key.referenced.as_slice()) {
        ([from], [to]) if from == column => {
            Some(ColumnReference { table: schema.short_name(&key.table), column: to.clone() })
        }
        _ => None,
    })
}

fn is_only_key(table: &DatabaseTable, column: &str) -> bool {
    let mut keys = table.columns.iter().filter(|column| column.primary_key);
    keys.next().is_some_and(|key| key.name == column) && keys.next().is_none()
}

/// A view is as sensitive as what it reads: its columns may be called anything.
fn mark_views(tables: &mut [TableDescription], schema: &DatabaseSchema) {
    let mut sensitive_tables: BTreeSet<String> = BTreeSet::new();
    let mut sensitive_columns: BTreeSet<(String, String)> = BTreeSet::new();
    for table in tables.iter() {
        if table.sensitive {
            sensitive_tables.insert(table.name.clone());
        }
        for column in table.columns.iter().filter(|column| column.sensitive) {
            sensitive_columns.insert((table.name.clone(), column.name.clone()));
        }
    }
    for view in tables.iter_mut() {
        let Some(of) = schema.find(&view.name) else { continue };
        view.sensitive |= of.reads.iter().any(|(read, columns)| {
            let short = schema.short_name(read);
            let reads_column = |column: &String| sensitive_columns.contains(&(short.clone(), column.clone()));
            sensitive_tables.contains(&short) || columns.iter().any(reads_column)
        });
    }
}
