//! What stands between a caller and a model.

use super::Budget;

/// The gateway's guards. Without configuration they let everything pass.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Money.
    pub budget: Budget,
}
