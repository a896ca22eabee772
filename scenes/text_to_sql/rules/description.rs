//! What the rules know of a database: its tables and columns, what they are called in each language, and, where they
//! were read, the values of a column.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A text by language (ISO 639-1).
pub type TextByLanguage = BTreeMap<String, String>;
/// Synonyms by language.
pub type SynonymsByLanguage = BTreeMap<String, Vec<String>>;

/// A database as the rules see it. The words come from a description file; types, keys and references from the database.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DatabaseDescription {
    /// What it is called.
    pub database: String,
    /// What it holds.
    pub description: TextByLanguage,
    /// Its tables.
    pub tables: Vec<TableDescription>,
}

/// A table and what it is called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TableDescription {
    /// As in the database.
    pub name: String,
    /// What a row is.
    pub description: TextByLanguage,
    /// What people call it.
    pub synonyms: SynonymsByLanguage,
    /// The columns by which a row is named in a list.
    pub label: Vec<String>,
    /// The column that a date means if the question names none.
    pub time: Option<String>,
    /// Whether a person approves before it is read.
    pub sensitive: bool,
    /// Its columns, in the database's order.
    pub columns: Vec<ColumnDescription>,
    /// The columns of its primary key.
    pub primary_key: Vec<String>,
}

/// A column and what it is called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ColumnDescription {
    /// As in the database.
    pub name: String,
    /// What it holds.
    pub description: TextByLanguage,
    /// What people call it.
    pub synonyms: SynonymsByLanguage,
    /// Its unit, such as `EUR`, `kg` or `%`.
    pub unit: Option<String>,
    /// Whether it holds personal or financial data.
    pub sensitive: bool,
    /// Every value of an enumeration, with synonyms.
    pub values: Vec<ValueDescription>,
    /// What it holds, by type.
    pub kind: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether no two rows share a value.
    pub unique: bool,
    /// The table and column that it references.
    pub references: Option<ColumnReference>,
    /// All distinct values, if they were read. Leave it absent rather than incomplete.
    pub known: Option<Vec<String>>,
}

/// A value of an enumeration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ValueDescription {
    /// As stored, as text.
    pub value: String,
    /// What people call it.
    pub synonyms: SynonymsByLanguage,
}

/// What a foreign key points to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnReference {
    /// The table.
    pub table: String,
    /// Its column.
    pub column: String,
}

/// The type of a column, as far as the rules care.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// Whole numbers.
    Integer,
    /// Other numbers.
    Decimal,
    /// Text.
    Text,
    /// Days.
    Date,
    /// Moments.
    Timestamp,
    /// Truth values; 0 and 1 in SQLite.
    Boolean,
    /// Anything else, which the rules leave alone.
    #[default]
    Other,
}

impl ColumnType {
    /// From a declared type, such as `NUMERIC(10, 2)` or `timestamp without time zone`.
    pub fn of_declared(declared: &str) -> Self {
        let declared = declared.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
        if has(&["bool"]) {
            Self::Boolean
        } else if has(&["timestamp", "datetime"]) {
            Self::Timestamp
        } else if has(&["date"]) {
            Self::Date
        } else if has(&["interval", "point", "json", "[]", "range"]) {
            Self::Other
        } else if has(&["int", "serial"]) {
            Self::Integer
        } else if has(&["num", "dec", "real", "float", "double", "money"]) {
            Self::Decimal
        } else if has(&["char", "text", "clob"]) {
            Self::Text
        } else {
            Self::Other
        }
    }

    /// Whether it can be compared with a number, summed and averaged.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Decimal)
    }

    /// Whether it can be compared with a day.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Date | Self::Timestamp)
    }
}

impl DatabaseDescription {
    /// The position of a table by its name.
    pub fn table(&self, name: &str) -> Option<usize> {
        self.tables.iter().position(|table| table.name == name)
    }

    /// The foreign keys from one table to another: the column and the column it references.
    pub fn keys(&self, from: usize, to: usize) -> Vec<(usize, usize)> {
        let (Some(child), Some(parent)) = (self.tables.get(from), self.tables.get(to)) else {
            return Vec::new();
        };
        let key = |(at, column): (usize, &ColumnDescription)| {
            let reference = column.references.as_ref().filter(|reference| reference.table == parent.name)?;
            Some((at, parent.column(&reference.column)?))
        };
        child.columns.iter().enumerate().filter_map(key).collect()
    }
}

impl TableDescription {
    /// The position of a column by its name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The columns by which a row is named, else its primary key.
    pub fn label_columns(&self) -> Vec<usize> {
        let names = if self.label.is_empty() { &self.primary_key } else { &self.label };
        names.iter().filter_map(|name| self.column(name)).collect()
    }
}
