//! What stands between a caller and a model.

use super::{Budget, Cache, RateLimits};

/// The gateway's guards. Without configuration they let everything pass.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Replies given before.
    pub cache: Cache,
    /// Money.
    pub budget: Budget,
    /// Rates.
    pub limits: RateLimits,
}
