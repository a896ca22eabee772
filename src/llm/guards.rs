//! The guards between a caller and a model.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;

use super::budget::{
    AccountBalance, AccountKey, Budget, BudgetError, BudgetReport, BudgetScope, BudgetStats, Hold,
    Reservation,
};
use super::cache::{CacheKey, CacheLookup, CacheReport, ReplyCache};
use super::limits::{AttemptPermit, LimitError, LimitStats, RateLimits};
use super::{Caller, Purpose, cache};
use crate::run::TenantId;

/// The guards of the gateway. By default they let every call pass and count nothing.
#[derive(Debug, Clone)]
pub struct Guards {
    /// The cache of replies.
    pub cache: Arc<dyn ReplyCache>,
    /// The cost budget.
    pub budget: Arc<dyn Budget>,
    /// The rate limits.
    pub limits: Arc<dyn RateLimits>,
    /// The models that operators have switched off.
    pub disabled: DisabledModels,
}

/// The names of models that operators have switched off. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct DisabledModels(Arc<ArcSwap<BTreeSet<String>>>);

impl DisabledModels {
    /// Returns whether the model is switched off.
    pub fn contains(&self, model: &str) -> bool {
        self.0.load().contains(model)
    }

    /// Replaces the names.
    pub fn replace(&self, models: impl IntoIterator<Item = String>) {
        self.0.store(Arc::new(models.into_iter().collect()));
    }
}

impl Default for Guards {
    fn default() -> Self {
        Self {
            cache: Arc::new(Unguarded),
            budget: Arc::new(Unguarded),
            limits: Arc::new(Unguarded),
            disabled: DisabledModels::default(),
        }
    }
}

/// A guard that cannot be asked: it is overloaded, has failed repeatedly, or has stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {guard} {reason}")]
pub struct GuardUnavailable {
    /// The name of the guard.
    pub guard: &'static str,
    /// The reason.
    pub reason: String,
}

/// No guard: every call passes.
#[derive(Debug, Clone, Copy)]
pub struct Unguarded;

#[async_trait]
impl Budget for Unguarded {
    async fn reserve(&self, _: &Caller, _: u64) -> Result<Reservation, BudgetError> {
        Ok(Reservation::unaccounted())
    }

    async fn check_funds(&self, _: &Caller, _: u64) -> Result<(), BudgetError> {
        Ok(())
    }

    fn charge(&self, _: &Caller, _: u64) {}

    fn hold(&self, account: AccountKey, _: u64) -> Hold {
        Hold::new(None, account)
    }

    fn unrecorded(&self, _: &AccountKey) -> u64 {
        0
    }

    fn is_limited(&self, _: BudgetScope) -> bool {
        false
    }

    async fn balance(&self, _: AccountKey) -> Result<AccountBalance, GuardUnavailable> {
        Ok(AccountBalance::default())
    }

    async fn report(&self) -> Result<BudgetReport, GuardUnavailable> {
        let none = BudgetScope::ALL.map(|scope| (scope, 0));
        Ok(BudgetReport {
            stats: BudgetStats::default(),
            refused_by: none,
            most_spent: none,
            limits: BudgetScope::ALL.map(|scope| (scope, None)),
        })
    }
}

#[async_trait]
impl RateLimits for Unguarded {
    async fn enter(&self, _: &TenantId, _: &str, _: u64) -> Result<AttemptPermit, LimitError> {
        Ok(AttemptPermit::unlimited())
    }

    async fn stats(&self) -> Result<LimitStats, GuardUnavailable> {
        Ok(LimitStats::default())
    }
}

#[async_trait]
impl ReplyCache for Unguarded {
    fn mode(&self, _: &Caller, _: Purpose) -> cache::Mode {
        cache::Mode::Off
    }

    async fn look_up(&self, _: CacheKey) -> Result<CacheLookup, GuardUnavailable> {
        Ok(CacheLookup::Ask(None))
    }

    fn store(&self, _: CacheKey, _: cache::CachedReply) {}

    fn reject(&self, _: CacheKey) {}

    async fn report(&self) -> Result<CacheReport, GuardUnavailable> {
        Ok(CacheReport::default())
    }
}
