//! Money: reserved before an attempt at a model and settled after it, so that calls in progress at the same
//! time cannot overshoot a budget together.
//!
//! [`Budget`] is what the gateway needs of it; the actor `CostBudget` implements it over the [`Ledger`] and what
//! was [`Granted`], which have the rules. Settling and releasing are one-way: they can happen in a destructor.

mod cap;
mod granted;
mod ledger;
mod options;

use std::sync::Arc;

use async_trait::async_trait;

use super::Caller;
use super::guards::GuardUnavailable;

pub use cap::SpendingCap;
pub(crate) use granted::Granted;
pub use granted::{Spending, TenantSpending};
pub(crate) use ledger::Ledger;
pub use ledger::{AccountBalance, AccountKey, BudgetRefusal, BudgetScope, BudgetStats};
pub use options::Options;

/// The money that may be spent. A reply need not come from this process, nor at once.
#[async_trait]
pub trait Budget: Send + Sync + std::fmt::Debug {
    /// Sets `amount` nano-USD aside in every account of the caller, or in none.
    ///
    /// # Errors
    /// The first account that does not cover it (run, session, tenant, day), or that the budget cannot be asked.
    async fn reserve(&self, caller: &Caller, amount: u64) -> Result<Reservation, BudgetError>;

    /// Whether `amount` nano-USD are left in every account of the caller; nothing is reserved.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    async fn check_funds(&self, caller: &Caller, amount: u64) -> Result<(), BudgetError>;

    /// Charges what was spent by a driver that ended without recording it, such as one of an earlier process.
    fn charge(&self, caller: &Caller, amount: u64);

    /// Keeps the account of a run or conversation, which has spent `spent` nano-USD so far, until the hold is
    /// dropped. An account without holders is forgotten once no reservation in it is open.
    fn hold(&self, account: AccountKey, spent: u64) -> Hold;

    /// The amount in nano-USD that this process has charged to the account of a run or conversation and that the
    /// journal does not contain yet.
    fn unrecorded(&self, account: &AccountKey) -> u64;

    /// Whether the budget of a scope is limited.
    fn is_limited(&self, scope: BudgetScope) -> bool;

    /// What an account has spent and reserved; zero for an account of a run or conversation without holders.
    async fn balance(&self, account: AccountKey) -> Result<AccountBalance, GuardUnavailable>;

    /// The figures of all accounts.
    async fn report(&self) -> Result<BudgetReport, GuardUnavailable>;
}

/// Why money was not reserved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// An account does not cover the amount.
    #[error("{0}")]
    Refused(Box<BudgetRefusal>),
    /// The budget cannot be asked.
    #[error(transparent)]
    Unavailable(#[from] GuardUnavailable),
}

/// The figures of all accounts. Amounts in nano-USD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetReport {
    /// Counts since the start.
    pub stats: BudgetStats,
    /// Attempts that were refused since the start, by the budget that refused them.
    pub refused_by: [(BudgetScope, u64); 4],
    /// The spending of the run, the conversation, the tenant and the tenant's day that spent most.
    pub most_spent: [(BudgetScope, u64); 4],
    /// The limit of each scope, where there is one.
    pub limits: [(BudgetScope, Option<u64>); 4],
}

/// The receiver of reservations and holds that end. One-way: these are called in destructors.
pub trait BudgetReturns: Send + Sync {
    /// The reservation ended and cost `actual` nano-USD.
    fn settle(&self, reservation: u64, actual: u64);

    /// The journal now contains `amount` nano-USD of the charges to this account.
    fn record(&self, account: &AccountKey, amount: u64);

    /// A hold of this account was dropped.
    fn release(&self, account: &AccountKey);
}

/// Money reserved for one attempt. If it is dropped before the model is asked, it costs nothing; if it is dropped
/// later, it costs all of it, because it is unknown what the model did.
pub struct Reservation {
    /// Absent once it is settled, and if nothing is accounted.
    returns: Option<Arc<dyn BudgetReturns>>,
    id: u64,
    amount: u64,
    /// What it costs if it is dropped now.
    due: u64,
}

impl Reservation {
    /// The open reservation with this id, which `returns` settles.
    pub(crate) fn new(returns: Arc<dyn BudgetReturns>, id: u64, amount: u64) -> Self {
        Self { returns: Some(returns), id, amount, due: 0 }
    }

    /// A reservation if nothing is accounted.
    pub(crate) fn unaccounted() -> Self {
        Self { returns: None, id: 0, amount: u64::MAX, due: 0 }
    }

    /// The model is asked from here on.
    pub fn sent(&mut self) {
        self.due = self.amount;
    }

    /// The attempt cost `actual` nano-USD.
    pub fn settle(mut self, actual: u64) {
        self.close(actual);
    }

    fn close(&mut self, actual: u64) {
        let Some(returns) = self.returns.take() else { return };
        if actual > self.amount {
            tracing::warn!(
                reserved = self.amount,
                actual,
                "a call to a model cost more nano-USD than reserved"
            );
        }
        returns.settle(self.id, actual);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.close(self.due);
    }
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reservation")
            .field("id", &self.id)
            .field("amount", &self.amount)
            .finish_non_exhaustive()
    }
}

/// Keeps the account of a run or a conversation.
pub struct Hold {
    returns: Option<Arc<dyn BudgetReturns>>,
    account: AccountKey,
}

impl Hold {
    /// A hold of `account`, released by `returns`.
    pub(crate) fn new(returns: Option<Arc<dyn BudgetReturns>>, account: AccountKey) -> Self {
        Self { returns, account }
    }

    /// Reports that the journal now contains `amount` nano-USD of the charges to this account, so that a balance
    /// rebuilt from the journal includes them.
    pub fn record(&self, amount: u64) {
        if let Some(returns) = self.returns.as_ref().filter(|_| amount > 0) {
            returns.record(&self.account, amount);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(returns) = &self.returns {
            returns.release(&self.account);
        }
    }
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hold").field("account", &self.account).finish_non_exhaustive()
    }
}
