//! Bounds on what one statement may cost and return.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Bounds on one statement. What goes beyond `max_rows`, `max_cells`, `max_bytes` or `max_cell_chars` is left out and
/// said ([`SqlRows::truncated`](super::SqlRows::truncated)); what goes beyond the others ends the statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueryLimits {
    /// Rows that are returned. One less than the guard's `max_rows`, so that it is noticed if there are more.
    pub max_rows: usize,
    /// Cells that are returned: rows × columns.
    pub max_cells: usize,
    /// Bytes of all cells together.
    pub max_bytes: usize,
    /// Characters of one cell; a longer one is cut and ends with `…`.
    pub max_cell_chars: usize,
    /// Milliseconds that a statement may take, with waiting for a connection.
    pub timeout_ms: u64,
    /// PostgreSQL: the planner's estimate of the cost, in its own units, from which a statement is not executed.
    pub max_cost: f64,
    /// SQLite: instructions of its virtual machine after which a statement is ended, in thousands.
    pub max_kilo_instructions: u64,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            max_rows: 1_000,
            max_cells: 20_000,
            max_bytes: 1024 * 1024,
            max_cell_chars: 4_096,
            timeout_ms: 10_000,
            max_cost: 1_000_000.0,
            max_kilo_instructions: 500_000,
        }
    }
}

impl QueryLimits {
    /// How long a statement may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}
