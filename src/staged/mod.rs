//! Staged changes: what a program, or a tool of a scene, is going to change in the tables that its scene declares.
//!
//! Rows are read from the store and kept as they were read, with their versions ([`WriteSet`]). Changes are staged beside
//! them and change nothing; reads see them. In the end there is one write of two parts: the [`ReadBase`], which is the
//! versions of the rows and ranges that were read, and the [`WriteDiff`], each changed row before and after. It is done
//! only if nothing of the base changed since.
//!
//! **Invariant:** pure. What is staged fits the declared columns, and every check of a row, at any moment; rules over
//! several rows are checked with the whole diff.

mod base;
mod call;
mod diff;
mod filter;
mod rules;
mod table;
#[cfg(test)]
mod tests;
mod value;
mod write_set;

pub use base::{BaseConflict, RangeVersions, ReadBase};
pub use call::{COMMIT, TableCall, TableReading};
pub use diff::{RowChange, WriteDiff};
pub use filter::{ColumnTest, RowFilter};
pub use rules::{check_entry_expression, check_expression};
pub use table::{
    ColumnDefinition, EntryRule, FilledBy, RowPlace, SceneTables, StoredRow, TableDefinition, TableRow,
};
pub use value::{CellValue, ColumnKind};
pub use write_set::{HostValues, WriteSet};

/// Bounds of one set of staged changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StagedLimits {
    /// Maximum number of rows that it may have read.
    pub read_rows: usize,
    /// Maximum number of rows that it may change.
    pub changed_rows: usize,
    /// Maximum number of bytes of all rows, as read and as changed, written as JSON.
    pub bytes: usize,
}

impl Default for StagedLimits {
    fn default() -> Self {
        Self { read_rows: 1_000, changed_rows: 200, bytes: 128 * 1024 }
    }
}

/// Why something cannot be read, staged or committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StagedError {
    /// A stable code: `staged.table`, `staged.column`, `staged.value`, `staged.filter`, `staged.key`, `staged.exists`,
    /// `staged.no_row`, `staged.check`, `staged.rule`, `staged.append_only`, `staged.too_large`, `staged.conflict`,
    /// `staged.arguments`, `staged.key_reused`.
    pub code: &'static str,
    /// The problem and what is expected, for the author of the program.
    pub message: String,
}

impl StagedError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
