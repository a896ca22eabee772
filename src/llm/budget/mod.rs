//! Money: reserved before an attempt at a model, settled after it, so that calls in progress at the same
//! time cannot overshoot a budget together.
//!
//! A [`Budget`] is a handle on one ledger behind a short lock and not an actor: a reservation is one
//! check over four accounts that no one may come between, takes less time than a message, and has to
//! be given back also where a call is dropped in the middle.

mod ledger;
mod options;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Zoned;
use jiff::tz::TimeZone;

use super::Caller;
use crate::run::{RunId, SessionId, TenantId};
use ledger::{AccountKey, Ledger};

pub use ledger::{AccountBalance, BudgetRefusal, BudgetScope, BudgetStats};
pub use options::Options;

type Now = dyn Fn() -> Zoned + Send + Sync;

/// The money that may be spent and was; clones share it.
#[derive(Clone)]
pub struct Budget {
    inner: Arc<BudgetState>,
}

struct BudgetState {
    ledger: Mutex<Ledger>,
    now: Box<Now>,
}

impl Budget {
    /// A budget whose days begin at midnight in `zone`.
    pub fn new(options: &Options, zone: TimeZone) -> Self {
        Self::with_clock(options, move || Zoned::now().with_time_zone(zone.clone()))
    }

    /// A budget with a clock of its own.
    pub fn with_clock(options: &Options, now: impl Fn() -> Zoned + Send + Sync + 'static) -> Self {
        let ledger = Mutex::new(Ledger::new(options, now().date()));
        Self { inner: Arc::new(BudgetState { ledger, now: Box::new(now) }) }
    }

    /// Other limits from here on; what was spent stays spent. Where a tenant was not limited before, tell
    /// what it has spent by [`Budget::seed`].
    pub fn relimit(&self, options: &Options) {
        self.ledger().0.relimit(options);
    }

    /// What was spent before this process began, in nano-USD: `total` ever, `today` of it today.
    pub fn seed(&self, tenant: &TenantId, total: u64, today: u64) {
        let (mut ledger, _) = self.ledger();
        ledger.seed(tenant, total, today);
    }

    /// Keeps the account of a run, which has spent `spent` nano-USD so far, until the hold is dropped.
    /// What no one holds is forgotten when nothing of it is in progress any more.
    pub fn hold_run(&self, tenant: &TenantId, run: RunId, spent: u64) -> Hold {
        self.hold(AccountKey::Run(tenant.clone(), run), spent)
    }

    /// As [`hold_run`](Self::hold_run) for a conversation.
    pub fn hold_session(&self, tenant: &TenantId, session: &SessionId, spent: u64) -> Hold {
        self.hold(AccountKey::Session(tenant.clone(), session.clone()), spent)
    }

    fn hold(&self, key: AccountKey, spent: u64) -> Hold {
        self.ledger().0.hold(key.clone(), spent);
        Hold { budget: self.clone(), key }
    }

    /// Sets `amount` nano-USD aside in every account of the caller, or in none.
    ///
    /// # Errors
    /// The first account that has not so much left: run, session, tenant, day.
    pub fn reserve(&self, caller: &Caller, amount: u64) -> Result<Reservation, BudgetRefusal> {
        let keys = AccountKey::of(caller);
        let (mut ledger, now) = self.ledger();
        ledger.reserve(&keys, amount, &now)?;
        drop(ledger);
        Ok(Reservation { budget: self.clone(), keys, amount, due: 0, open: true })
    }

    /// Charges what was spent where no one could set it aside before: by a process that has ended.
    pub fn charge(&self, caller: &Caller, amount: u64) {
        self.ledger().0.charge(&AccountKey::of(caller), amount);
    }

    /// Whether `amount` nano-USD are left in every account of the caller; nothing is reserved.
    ///
    /// # Errors
    /// The account that has not so much left.
    pub fn affords(&self, caller: &Caller, amount: u64) -> Result<(), BudgetRefusal> {
        let (ledger, now) = self.ledger();
        ledger.affords(&AccountKey::of(caller), amount, &now)
    }

    /// What a tenant has spent and reserved.
    pub fn tenant(&self, tenant: &TenantId) -> AccountBalance {
        self.ledger().0.figures(&AccountKey::Tenant(tenant.clone()))
    }

    /// What a tenant has spent today, and reserved.
    pub fn day(&self, tenant: &TenantId) -> AccountBalance {
        self.ledger().0.figures(&AccountKey::Day(tenant.clone()))
    }

    /// What a run has spent and reserved; nothing where no one holds its account.
    pub fn run(&self, tenant: &TenantId, run: RunId) -> AccountBalance {
        self.ledger().0.figures(&AccountKey::Run(tenant.clone(), run))
    }

    /// What a conversation has spent and reserved; nothing where no one holds its account.
    pub fn session(&self, tenant: &TenantId, session: &SessionId) -> AccountBalance {
        self.ledger().0.figures(&AccountKey::Session(tenant.clone(), session.clone()))
    }

    /// What happened since the start.
    pub fn stats(&self) -> BudgetStats {
        self.ledger().0.stats()
    }

    /// Attempts that were refused since the start, by the budget that refused them.
    pub fn refused_by(&self) -> [(BudgetScope, u64); 4] {
        self.ledger().0.refused_by()
    }

    /// What the run, the conversation, the tenant and the tenant's day have spent that have spent most,
    /// in nano-USD.
    pub fn most_spent(&self) -> [(BudgetScope, u64); 4] {
        self.ledger().0.most_spent()
    }

    /// The limit of a scope in nano-USD, where there is one.
    pub fn limit(&self, scope: BudgetScope) -> Option<u64> {
        self.ledger().0.limit(scope)
    }

    /// The ledger, with its day turned if it is time.
    fn ledger(&self) -> (MutexGuard<'_, Ledger>, Zoned) {
        let now = (self.inner.now)();
        // A poisoned ledger is a consistent one: no change of it can panic halfway.
        let mut ledger = self.inner.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.turn(now.date());
        (ledger, now)
    }
}

impl Default for Budget {
    /// No limits, in UTC.
    fn default() -> Self {
        Self::new(&Options::default(), TimeZone::UTC)
    }
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// Money reserved for one attempt. Dropped before the model is asked it costs nothing, dropped while
/// the model is asked all of it: no one knows what the model did.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    keys: Vec<AccountKey>,
    amount: u64,
    /// What it costs if it is dropped now.
    due: u64,
    open: bool,
}

impl Reservation {
    /// The model is asked from here on.
    pub fn sent(&mut self) {
        self.due = self.amount;
    }

    /// The attempt cost `actual` nano-USD.
    pub fn settle(mut self, actual: u64) {
        self.close(actual);
    }

    fn close(&mut self, actual: u64) {
        if std::mem::take(&mut self.open) {
            self.budget.ledger().0.settle(&self.keys, self.amount, actual);
            if actual > self.amount {
                tracing::warn!(
                    reserved = self.amount,
                    actual,
                    "a call to a model cost more nano-USD than reserved"
                );
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.close(self.due);
    }
}

/// Keeps the account of a run or a conversation.
#[derive(Debug)]
pub struct Hold {
    budget: Budget,
    key: AccountKey,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.budget.ledger().0.release(&self.key);
    }
}
