//! A limit on what several engines spend together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::ledger::{AccountBalance, AccountKey, BudgetRefusal, BudgetScope};
use super::{Budget, BudgetError, BudgetReport, BudgetReturns, Hold, Reservation};
use crate::llm::Caller;
use crate::llm::guards::GuardUnavailable;
use crate::mutex::lock;

/// Whose account a refusal names.
const ALL_ENGINES: &str = "all engines together";

/// Limits what the engines that have it spend on models together. Clones share it. It is not stored: it begins with nothing
/// spent.
///
/// A call that may cost more than is left beside the calls in progress waits for the end of one of them. It is refused
/// if it may cost more than is left without them.
#[derive(Debug, Clone)]
pub struct SpendingCap(Arc<CapState>);

#[derive(Debug)]
struct CapState {
    /// In nano-USD.
    limit: u64,
    amounts: Mutex<AccountBalance>,
    has_refused: AtomicBool,
    settled: Notify,
}

impl SpendingCap {
    /// At most `limit` nano-USD.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(CapState {
            limit,
            amounts: Mutex::default(),
            has_refused: AtomicBool::new(false),
            settled: Notify::new(),
        }))
    }

    /// Returns whether a call to a model was refused, because what is left did not cover it.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        self.0.has_refused.load(Ordering::Acquire)
    }

    /// A budget that also keeps to this limit.
    pub(crate) fn guard(self, inner: Arc<dyn Budget>) -> Arc<dyn Budget> {
        Arc::new(CappedBudget { cap: self, inner })
    }

    fn lock(&self) -> MutexGuard<'_, AccountBalance> {
        lock(&self.0.amounts)
    }

    /// Whether `amount` is left besides the amount `taken`; a free call always passes.
    fn covers(&self, taken: u64, amount: u64) -> bool {
        amount == 0 || taken.saturating_add(amount) <= self.0.limit
    }

    /// Sets `amount` aside until the result is dropped.
    async fn take(&self, amount: u64) -> Result<TakenAmount, BudgetError> {
        loop {
            let settled = self.0.settled.notified();
            {
                let mut amounts = self.lock();
                if self.covers(amounts.spent.saturating_add(amounts.reserved), amount) {
                    amounts.reserved = amounts.reserved.saturating_add(amount);
                    return Ok(TakenAmount { cap: self.clone(), amount, cost: 0 });
                }
                if !self.covers(amounts.spent, amount) {
                    return Err(self.refuse(*amounts, amount));
                }
            }
            settled.await;
        }
    }

    fn refuse(&self, now: AccountBalance, wanted: u64) -> BudgetError {
        self.0.has_refused.store(true, Ordering::Release);
        BudgetError::Refused(Box::new(BudgetRefusal {
            scope: BudgetScope::Tenant,
            of: ALL_ENGINES.to_owned(),
            limit: self.0.limit,
            spent: now.spent,
            reserved: now.reserved,
            wanted,
            renews: None,
        }))
    }
}

/// An amount that is set aside. When it is dropped, its actual cost counts.
struct TakenAmount {
    cap: SpendingCap,
    amount: u64,
    cost: u64,
}

impl Drop for TakenAmount {
    fn drop(&mut self) {
        let mut amounts = self.cap.lock();
        amounts.reserved = amounts.reserved.saturating_sub(self.amount);
        amounts.spent = amounts.spent.saturating_add(self.cost);
        drop(amounts);
        self.cap.0.settled.notify_waiters();
    }
}

/// A reservation in the cap and in the budget below it, until it is settled.
struct CappedReservation(Mutex<Option<(TakenAmount, Reservation)>>);

impl BudgetReturns for CappedReservation {
    fn settle(&self, _: u64, actual: u64) {
        let both = lock(&self.0).take();
        if let Some((mut taken, inner)) = both {
            taken.cost = actual;
            inner.settle(actual);
        }
    }

    // Accounts are held in the budget below.
    fn record(&self, _: &AccountKey, _: u64) {}

    fn release(&self, _: &AccountKey) {}
}

#[derive(Debug)]
struct CappedBudget {
    cap: SpendingCap,
    inner: Arc<dyn Budget>,
}

#[async_trait]
impl Budget for CappedBudget {
    async fn reserve(&self, caller: &Caller, amount: u64) -> Result<Reservation, BudgetError> {
        let taken = self.cap.take(amount).await?;
        let inner = self.inner.reserve(caller, amount).await?;
        let both = CappedReservation(Mutex::new(Some((taken, inner))));
        Ok(Reservation::new(Arc::new(both), 0, amount))
    }

    async fn check_funds(&self, caller: &Caller, amount: u64) -> Result<(), BudgetError> {
        let now = *self.cap.lock();
        if !self.cap.covers(now.spent, amount) {
            return Err(self.cap.refuse(now, amount));
        }
        self.inner.check_funds(caller, amount).await
    }

    fn charge(&self, caller: &Caller, amount: u64) {
        self.inner.charge(caller, amount);
    }

    fn hold(&self, account: AccountKey, spent: u64) -> Hold {
        self.inner.hold(account, spent)
    }

    fn unrecorded(&self, account: &AccountKey) -> u64 {
        self.inner.unrecorded(account)
    }

    fn is_limited(&self, scope: BudgetScope) -> bool {
        self.inner.is_limited(scope)
    }

    async fn balance(&self, account: AccountKey) -> Result<AccountBalance, GuardUnavailable> {
        self.inner.balance(account).await
    }

    async fn report(&self) -> Result<BudgetReport, GuardUnavailable> {
        self.inner.report().await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::llm::guards::Unguarded;
    use crate::run::{SessionId, TenantId};

    fn budgets(cap: &SpendingCap) -> [Arc<dyn Budget>; 2] {
        [cap.clone().guard(Arc::new(Unguarded)), cap.clone().guard(Arc::new(Unguarded))]
    }

    #[tokio::test]
    async fn calls_of_two_engines_never_reserve_more_than_the_limit() {
        let cap = SpendingCap::new(1_000);
        let (tenant, session) = (TenantId::new("acme").unwrap(), SessionId::new("s").unwrap());
        let caller = Caller { tenant, session, run: None, cache: None, voter: None, trace: None };
        let [one, other] = budgets(&cap);
        let cheap = one.reserve(&caller, 10).await.unwrap();
        cheap.settle(10);
        // All at once, as requests whose cost is not known before.
        let first = one.reserve(&caller, 600).await.unwrap();
        let mut waits = std::pin::pin!(other.reserve(&caller, 600));
        assert!(waits.as_mut().now_or_never().is_none() && !cap.has_refused());
        let second = other.reserve(&caller, 390).await.unwrap();
        let now = *cap.lock();
        assert_eq!((now.spent, now.reserved), (10, 990));
        assert!(one.reserve(&caller, 0).await.is_ok(), "what costs nothing is never refused");
        second.settle(390);
        assert!(waits.as_mut().now_or_never().is_none(), "400 are spent, 600 reserved");
        // Dropped unsent it costs nothing, sent all of it.
        drop(first);
        waits.await.unwrap().settle(300);
        let mut sent = one.reserve(&caller, 100).await.unwrap();
        sent.sent();
        drop(sent);
        let now = *cap.lock();
        assert_eq!((now.spent, now.reserved), (800, 0));
        assert!(one.check_funds(&caller, 201).await.is_err() && cap.has_refused());
        assert!(other.reserve(&caller, 201).await.is_err());
    }
}
