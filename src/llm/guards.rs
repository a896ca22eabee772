//! The guards between a caller and a model.

use super::{Budget, Cache, RateLimits};

/// The guards of the gateway. Without configuration they let every call pass.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// The reply cache.
    pub cache: Cache,
    /// The cost budget.
    pub budget: Budget,
    /// The rate limits.
    pub limits: RateLimits,
}
