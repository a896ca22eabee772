//! The rows of a statement, and the bounds on them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::QueryLimits;

/// A cell. Numbers, dates and texts are as the engine has them; showing them to people is the caller's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum SqlValue {
    /// NULL.
    Null,
    /// A truth value of PostgreSQL; SQLite has integers.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A finite floating-point number.
    Float(f64),
    /// A number with all its digits, such as `12.50`.
    Decimal(String),
    /// Text, and any type that has no variant of its own.
    Text(String),
    /// A day, as `2026-03-01`.
    Date(String),
    /// A moment, as `2026-03-01 10:00:00`, with its offset if the type has one.
    Timestamp(String),
    /// A JSON text.
    Json(String),
    /// Bytes: only their beginning, in hexadecimal.
    Bytes {
        /// How many bytes there are.
        length: u64,
        /// The first of them, in hexadecimal.
        start: String,
    },
}

impl SqlValue {
    /// The cell as plain JSON: numbers as numbers, decimals and everything else as text.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Integer(value) => (*value).into(),
            Self::Float(value) => (*value).into(),
            other => other.to_string().into(),
        }
    }

    /// What the cell counts towards `max_bytes`.
    fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) => 1,
            Self::Integer(_) | Self::Float(_) => 8,
            Self::Decimal(text)
            | Self::Text(text)
            | Self::Date(text)
            | Self::Timestamp(text)
            | Self::Json(text) => text.len(),
            Self::Bytes { start, .. } => start.len(),
        }
    }
}

impl fmt::Display for SqlValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("NULL"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Integer(value) => write!(out, "{value}"),
            Self::Float(value) => write!(out, "{value}"),
            Self::Decimal(text)
            | Self::Text(text)
            | Self::Date(text)
            | Self::Timestamp(text)
            | Self::Json(text) => out.write_str(text),
            Self::Bytes { length, start } if *length as usize * 2 > start.len() => {
                write!(out, "0x{start}… ({length} bytes)")
            }
            Self::Bytes { start, .. } => write!(out, "0x{start}"),
        }
    }
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlColumn {
    /// Its name; several columns may share one.
    pub name: String,
    /// Its type in the engine's words, where the engine knows one: SQLite does for columns of tables only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_type: Option<String>,
}

/// The bound at which a result ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowBound {
    /// `max_rows`.
    Rows,
    /// `max_cells`.
    Cells,
    /// `max_bytes`.
    Bytes,
}

/// The rows that a statement returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqlRows {
    /// The columns, in order.
    pub columns: Vec<SqlColumn>,
    /// The rows; each has a cell for each column.
    pub rows: Vec<Vec<SqlValue>>,
    /// The bound after which rows are missing, if any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<RowBound>,
    /// Cells that were cut to `max_cell_chars`.
    #[serde(default)]
    pub cut_cells: usize,
    /// Milliseconds from the call to the last row, with waiting for a connection.
    pub elapsed_ms: u64,
    /// Milliseconds of those in the database.
    pub database_ms: u64,
}

/// Rows within bounds, as they come from an engine.
#[derive(Debug)]
pub(super) struct BoundedRows<'a> {
    limits: &'a QueryLimits,
    rows: Vec<Vec<SqlValue>>,
    bytes: usize,
    cut_cells: usize,
    truncated: Option<RowBound>,
}

impl<'a> BoundedRows<'a> {
    pub(super) fn new(limits: &'a QueryLimits) -> Self {
        Self { limits, rows: Vec::new(), bytes: 0, cut_cells: 0, truncated: None }
    }

    /// Returns whether a row of `width` cells would be one too many. Then it need not be read.
    pub(super) fn is_full(&mut self, width: usize) -> bool {
        let cells = (self.rows.len() + 1).saturating_mul(width);
        if self.rows.len() >= self.limits.max_rows {
            self.truncated = Some(RowBound::Rows);
        } else if cells > self.limits.max_cells {
            self.truncated = Some(RowBound::Cells);
        }
        self.truncated.is_some()
    }

    /// Keeps `row` unless it goes beyond `max_bytes`; returns whether more rows are wanted.
    pub(super) fn push(&mut self, row: Vec<SqlValue>) -> bool {
        let bytes = row.iter().map(SqlValue::bytes).sum::<usize>();
        if self.bytes.saturating_add(bytes) > self.limits.max_bytes {
            self.truncated = Some(RowBound::Bytes);
            return false;
        }
        self.bytes += bytes;
        self.rows.push(row);
        true
    }

    /// `text`, cut to `max_cell_chars`, and whether it was cut.
    pub(super) fn cut(&mut self, text: &str) -> (String, bool) {
        match text.char_indices().nth(self.limits.max_cell_chars) {
            None => (text.to_owned(), false),
            Some((end, _)) => {
                self.cut_cells += 1;
                (format!("{}…", &text[..end]), true)
            }
        }
    }

    /// The result; the times are the caller's.
    pub(super) fn finish(self, columns: Vec<SqlColumn>) -> SqlRows {
        SqlRows {
            columns,
            rows: self.rows,
            truncated: self.truncated,
            cut_cells: self.cut_cells,
            elapsed_ms: 0,
            database_ms: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(limits: &QueryLimits, texts: &[Vec<String>]) -> SqlRows {
        let mut rows = BoundedRows::new(limits);
        for row in texts {
            if rows.is_full(row.len()) {
                break;
            }
            let cells = row.iter().map(|text| SqlValue::Text(rows.cut(text).0)).collect();
            if !rows.push(cells) {
                break;
            }
        }
        rows.finish(Vec::new())
    }

    #[test]
    fn a_long_cell_is_cut_at_a_character_and_counted() {
        let limits = QueryLimits { max_cell_chars: 3, ..QueryLimits::default() };
        let rows = collect(&limits, &[vec!["àèìòù".into(), "àèì".into()]]);
        assert_eq!(rows.rows, [[SqlValue::Text("àèì…".into()), SqlValue::Text("àèì".into())]]);
        assert_eq!((rows.cut_cells, rows.truncated), (1, None));
    }

    #[test]
    fn bytes_show_their_length_only_where_they_are_cut() {
        let bytes = |length| SqlValue::Bytes { length, start: "00ff".into() }.to_string();
        assert_eq!([bytes(2), bytes(9)], ["0x00ff", "0x00ff… (9 bytes)"]);
    }

    proptest! {
        #[test]
        fn bounds_hold_and_a_missing_row_is_always_said(
            max_rows in 0_usize..6, max_cells in 0_usize..20, max_bytes in 0_usize..60, width in 1_usize..4,
            texts in proptest::collection::vec("[a-zé]{0,9}", 0..30),
        ) {
            let limits = QueryLimits { max_rows, max_cells, max_bytes, max_cell_chars: 5, ..QueryLimits::default() };
            let all: Vec<Vec<String>> = texts.chunks_exact(width).map(<[String]>::to_vec).collect();
            let got = collect(&limits, &all);
            prop_assert!(got.rows.len() <= max_rows && got.rows.len() * width <= max_cells);
            prop_assert!(got.rows.iter().flatten().map(SqlValue::bytes).sum::<usize>() <= max_bytes);
            prop_assert_eq!(got.truncated.is_some(), got.rows.len() < all.len());
        }
    }
}
