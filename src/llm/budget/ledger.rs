//! The accounts and their rules. Pure: the caller passes the time.

use std::collections::HashMap;
use std::time::Duration;

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan, Zoned};

use super::Options;
use crate::llm::Caller;
use crate::run::{RunId, SessionId, TenantId};

/// The delay after which some calls in progress may have been settled, usually for less than they reserved.
const SETTLED_SOON: Duration = Duration::from_secs(1);

/// The kind of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum BudgetScope {
    /// Of one run.
    Run,
    /// Of one conversation.
    Session,
    /// Of one tenant, ever.
    Tenant,
    /// Of one tenant, today.
    Day,
}

impl BudgetScope {
    /// Every scope.
    pub const ALL: [BudgetScope; 4] =
        [BudgetScope::Run, BudgetScope::Session, BudgetScope::Tenant, BudgetScope::Day];

    fn key(self) -> &'static str {
        match self {
            BudgetScope::Run => "budget.run_usd",
            BudgetScope::Session => "budget.session_usd",
            BudgetScope::Tenant => "budget.tenant_usd",
            BudgetScope::Day => "budget.day_usd",
        }
    }
}

/// Why money was not reserved. Amounts in nano-USD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetRefusal {
    /// The budget that does not cover the amount.
    pub scope: BudgetScope,
    /// The id of its run, conversation or tenant.
    pub of: String,
    /// Its limit.
    pub limit: u64,
    /// The amount that is spent.
    pub spent: u64,
    /// The most that calls in progress may cost.
    pub reserved: u64,
    /// The most that this call may cost.
    pub wanted: u64,
    /// When it begins again; absent if it does not.
    pub renews: Option<Zoned>,
}

impl BudgetRefusal {
    /// After how long such a call may pass: once calls in progress have been settled, or once the budget begins again.
    /// Absent if the budget never begins again, or is smaller than what this call alone may cost.
    pub fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        if self.fits_once_settled() {
            return Some(SETTLED_SOON);
        }
        if self.exceeds_alone() {
            return None;
        }
        let renews = self.renews.as_ref()?.timestamp();
        Duration::try_from(renews.duration_since(now)).ok()
    }

    /// Whether the call would be covered if the calls in progress cost nothing.
    fn fits_once_settled(&self) -> bool {
        self.spent.saturating_add(self.wanted) <= self.limit
    }

    /// Whether the call may cost more than the whole budget, so that waiting does not help.
    fn exceeds_alone(&self) -> bool {
        self.wanted > self.limit
    }

    /// The refusal for journals and clients: without the figures of a tenant, because they include those of its other
    /// users.
    pub fn for_clients(&self) -> String {
        match self.scope {
            BudgetScope::Run | BudgetScope::Session => self.to_string(),
            BudgetScope::Tenant | BudgetScope::Day => {
                let wanted = usd(self.wanted);
                format!(
                    "the {} does not cover this call, which may cost {wanted} USD; {}",
                    self.name(),
                    self.end()
                )
            }
        }
    }

    fn name(&self) -> String {
        match self.scope {
            BudgetScope::Day => format!("day's budget of tenant {:?}", self.of),
            other => format!("budget of {other} {:?}", self.of),
        }
    }

    fn end(&self) -> String {
        let key = self.scope.key();
        match &self.renews {
            _ if self.exceeds_alone() => format!("that is more than the whole budget; `{key}` sets it"),
            _ if self.fits_once_settled() => {
                format!("what is left is reserved for calls in progress until they end; `{key}` sets it")
            }
            Some(at) => format!("it renews at {at}; `{key}` sets it"),
            None => format!("it does not renew; `{key}` sets it"),
        }
    }
}

impl std::fmt::Display for BudgetRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the {} is {} USD, of which {} USD are spent and {} USD reserved, and this call may cost {} USD; {}",
            self.name(),
            usd(self.limit),
            usd(self.spent),
            usd(self.reserved),
            usd(self.wanted),
            self.end(),
        )
    }
}

/// Nano-USD as dollars, exactly.
fn usd(nano: u64) -> String {
    let text = format!("{}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000);
    let kept = text.trim_end_matches('0');
    kept.trim_end_matches('.').to_owned()
}

/// An account's figures in nano-USD.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountBalance {
    /// The amount that was spent.
    pub spent: u64,
    /// The most that calls in progress may cost.
    pub reserved: u64,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetStats {
    /// Attempts that were refused.
    pub refused: u64,
    /// Attempts that cost more than was reserved for them.
    pub overruns: u64,
    /// By how many nano-USD together.
    pub overrun_nano_usd: u64,
}

/// The name of an account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AccountKey {
    /// A run.
    Run(TenantId, RunId),
    /// A conversation.
    Session(TenantId, SessionId),
    /// A tenant, ever.
    Tenant(TenantId),
    /// A tenant, today.
    Day(TenantId),
}

impl AccountKey {
    /// The accounts that a caller's attempts are charged to, in the order in which they are checked. The first
    /// one is that of the stream whose journal records the cost.
    pub fn of(caller: &Caller) -> Vec<Self> {
        let tenant = || caller.tenant.clone();
        let run = caller.run.map(|run| AccountKey::Run(tenant(), run));
        let others = [
            AccountKey::Session(tenant(), caller.session.clone()),
            AccountKey::Tenant(tenant()),
            AccountKey::Day(tenant()),
        ];
        run.into_iter().chain(others).collect()
    }

    /// The budget that limits it.
    pub fn scope(&self) -> BudgetScope {
        match self {
            AccountKey::Run(..) => BudgetScope::Run,
            AccountKey::Session(..) => BudgetScope::Session,
            AccountKey::Tenant(_) => BudgetScope::Tenant,
            AccountKey::Day(_) => BudgetScope::Day,
        }
    }

    fn of_whom(&self) -> String {
        match self {
            AccountKey::Run(_, run) => run.to_string(),
            AccountKey::Session(_, session) => session.to_string(),
            AccountKey::Tenant(tenant) | AccountKey::Day(tenant) => tenant.to_string(),
        }
    }
}

#[derive(Debug, Default)]
struct Account {
    spent: u64,
    reserved: u64,
    /// How many holders keep it. Accounts of tenants are kept forever, because tenants are few.
    holders: u32,
}

/// All accounts: of the tenants, of what is held, and of what is in progress.
#[derive(Debug)]
pub(crate) struct Ledger {
    limits: [Option<u64>; 4],
    accounts: HashMap<AccountKey, Account>,
    today: Date,
    /// The spending of the day before `today`, in case the clock was only ahead.
    left: Option<(Date, HashMap<AccountKey, u64>)>,
    stats: BudgetStats,
    /// How often the budget of each scope refused, in the order of [`Scope::ALL`].
    refused_by: [u64; 4],
}

/// In nano-USD, in the order of [`Scope::ALL`].
fn limits(options: &Options) -> [Option<u64>; 4] {
    // A float's cast to an integer saturates, and NaN becomes 0.
    let nano = |usd: Option<f64>| usd.map(|usd| (usd * 1e9).round() as u64);
    BudgetScope::ALL.map(|scope| nano(options.limit_usd(scope)))
}

impl Ledger {
    pub(crate) fn new(options: &Options, today: Date) -> Self {
        let limits = limits(options);
        Self {
            limits,
            accounts: HashMap::new(),
            today,
            left: None,
            stats: BudgetStats::default(),
            refused_by: [0; 4],
        }
    }

    /// Forgets all accounts, to be filled again, and applies these limits. Refusals stay counted.
    pub(crate) fn restart(&mut self, options: &Options) {
        self.limits = limits(options);
        self.accounts.clear();
        self.left = None;
    }

    pub(crate) fn limit(&self, scope: BudgetScope) -> Option<u64> {
        let [run, session, tenant, day] = self.limits;
        match scope {
            BudgetScope::Run => run,
            BudgetScope::Session => session,
            BudgetScope::Tenant => tenant,
            BudgetScope::Day => day,
        }
    }

    /// Sets the date to `today`. On a later day the days' accounts begin again; amounts in progress stay reserved, and
    /// are charged to the day on which they end. If the clock was set back, nothing is refunded: the spending of the
    /// previously shown day is added again, and the accounts begin again on the day after the one that the clock shows
    /// now.
    pub(crate) fn turn(&mut self, today: Date) {
        let days = self.accounts.iter_mut().filter(|(key, _)| matches!(key, AccountKey::Day(_)));
        if today > self.today {
            let spent = days.map(|(key, account)| (key.clone(), std::mem::take(&mut account.spent)));
            self.left = Some((self.today, spent.collect()));
        } else if let Some((_, left)) = self.left.take_if(|(day, _)| *day == today) {
            for (key, account) in days {
                account.spent = account.spent.saturating_add(left.get(key).copied().unwrap_or_default());
            }
        }
        self.today = today;
    }

    pub(crate) fn seed(&mut self, tenant: &TenantId, total: u64, today: u64) {
        for (key, spent) in
            [(AccountKey::Tenant(tenant.clone()), total), (AccountKey::Day(tenant.clone()), today)]
        {
            let account = self.accounts.entry(key).or_default();
            account.spent = account.spent.max(spent);
        }
    }

    pub(crate) fn hold(&mut self, key: AccountKey, spent: u64) {
        let account = self.accounts.entry(key).or_default();
        account.holders += 1;
        // An account that still exists includes calls that ended just now.
        account.spent = account.spent.max(spent);
    }

    pub(crate) fn release(&mut self, key: &AccountKey) {
        if let Some(account) = self.accounts.get_mut(key) {
            account.holders = account.holders.saturating_sub(1);
        }
        self.forget_if_idle(key);
    }

    fn forget_if_idle(&mut self, key: &AccountKey) {
        let kept = matches!(key, AccountKey::Tenant(_) | AccountKey::Day(_));
        if !kept && self.accounts.get(key).is_some_and(|a| a.holders == 0 && a.reserved == 0) {
            self.accounts.remove(key);
        }
    }

    pub(crate) fn check_funds(
        &self,
        keys: &[AccountKey],
        amount: u64,
        now: &Zoned,
    ) -> Result<(), BudgetRefusal> {
        for key in keys {
            let scope = key.scope();
            let Some(limit) = self.limit(scope) else { continue };
            let AccountBalance { spent, reserved } = self.figures(key);
            let taken = spent.saturating_add(reserved).saturating_add(amount);
            // A free call is never refused.
            if amount > 0 && taken > limit {
                let renews = (scope == BudgetScope::Day).then(|| next_midnight(now)).flatten();
                return Err(BudgetRefusal {
                    scope,
                    of: key.of_whom(),
                    limit,
                    spent,
                    reserved,
                    wanted: amount,
                    renews,
                });
            }
        }
        Ok(())
    }

    pub(crate) fn reserve(
        &mut self,
        keys: &[AccountKey],
        amount: u64,
        now: &Zoned,
    ) -> Result<(), BudgetRefusal> {
        if let Err(refusal) = self.check_funds(keys, amount, now) {
            self.stats.refused += 1;
            self.refused_by[refusal.scope as usize] += 1;
            return Err(refusal);
        }
        self.add_reservation(keys, amount);
        Ok(())
    }

    /// Adds a reservation that was granted before: by the ledger that this one replaces, or where nothing is
    /// limited.
    pub(crate) fn add_reservation(&mut self, keys: &[AccountKey], amount: u64) {
        for key in keys {
            let account = self.accounts.entry(key.clone()).or_default();
            account.reserved = account.reserved.saturating_add(amount);
        }
    }

    /// Charges what was spent by a process that has ended.
    pub(crate) fn charge(&mut self, keys: &[AccountKey], amount: u64) {
        for key in keys {
            let account = self.accounts.entry(key.clone()).or_default();
            account.spent = account.spent.saturating_add(amount);
            self.forget_if_idle(key);
        }
    }

    pub(crate) fn settle(&mut self, keys: &[AccountKey], reserved: u64, actual: u64) {
        for key in keys {
            if let Some(account) = self.accounts.get_mut(key) {
                account.reserved = account.reserved.saturating_sub(reserved);
                account.spent = account.spent.saturating_add(actual);
            }
            self.forget_if_idle(key);
        }
        if actual > reserved {
            self.stats.overruns += 1;
            self.stats.overrun_nano_usd = self.stats.overrun_nano_usd.saturating_add(actual - reserved);
        }
    }

    pub(crate) fn figures(&self, key: &AccountKey) -> AccountBalance {
        let account = self.accounts.get(key);
        account
            .map_or_else(AccountBalance::default, |a| AccountBalance { spent: a.spent, reserved: a.reserved })
    }

    /// Returns, for each scope, the spending of the account that has spent most.
    pub(crate) fn most_spent(&self) -> [(BudgetScope, u64); 4] {
        let mut max = BudgetScope::ALL.map(|scope| (scope, 0));
        for (key, account) in &self.accounts {
            let (_, spent) = &mut max[key.scope() as usize];
            *spent = account.spent.max(*spent);
        }
        max
    }

    /// How often each budget refused.
    pub(crate) fn refused_by(&self) -> [(BudgetScope, u64); 4] {
        BudgetScope::ALL.map(|scope| (scope, self.refused_by[scope as usize]))
    }

    pub(crate) fn stats(&self) -> BudgetStats {
        self.stats
    }
}

fn next_midnight(now: &Zoned) -> Option<Zoned> {
    now.start_of_day().and_then(|day| day.checked_add(1.day())).and_then(|day| day.start_of_day()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The refusal of 10 by a day's budget of 100.
    fn refusal(spent: u64, reserved: u64, renews: Option<Zoned>) -> BudgetRefusal {
        let (scope, of) = (BudgetScope::Day, "acme".to_owned());
        BudgetRefusal { scope, of, limit: 100, spent, reserved, wanted: 10, renews }
    }

    #[test]
    fn wait_for_a_budget_is_until_it_renews_or_calls_in_progress_are_settled() {
        let now: Zoned = "2026-05-04T23:59:50+02:00[Europe/Rome]".parse().unwrap();
        let wait = |refusal: BudgetRefusal| refusal.retry_after(now.timestamp());
        assert_eq!(wait(refusal(95, 0, None)), None);
        assert_eq!(wait(refusal(95, 0, next_midnight(&now))), Some(Duration::from_secs(10)));
        assert_eq!(wait(refusal(50, 45, None)), Some(SETTLED_SOON));
        assert_eq!(wait(BudgetRefusal { limit: 9, ..refusal(0, 0, next_midnight(&now)) }), None);
    }

    #[test]
    fn clients_are_shown_the_figures_of_their_own_accounts_alone() {
        let shown = |scope| {
            let (of, renews) = ("acme".to_owned(), None);
            let nano = 1_000_000_000;
            BudgetRefusal {
                scope,
                of,
                limit: 7 * nano,
                spent: 6 * nano,
                reserved: 0,
                wanted: 2 * nano,
                renews,
            }
            .for_clients()
        };
        for scope in [BudgetScope::Run, BudgetScope::Session] {
            assert!(shown(scope).contains("is 7 USD, of which 6 USD are spent"), "{}", shown(scope));
        }
        let expected = "the budget of tenant \"acme\" does not cover this call, which may cost 2 USD; it does not renew; \
             `budget.tenant_usd` sets it";
        assert_eq!(shown(BudgetScope::Tenant), expected);
        assert!(!shown(BudgetScope::Day).contains("spent"), "{}", shown(BudgetScope::Day));
    }

    #[test]
    fn clients_are_told_what_waiting_would_change() {
        let now: Zoned = "2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap();
        let refusal = |spent, reserved| refusal(spent, reserved, next_midnight(&now));
        let shown = refusal(50, 45).for_clients();
        assert!(shown.contains("reserved for calls in progress") && !shown.contains("renews"), "{shown}");
        let shown = refusal(95, 0).for_clients();
        assert!(shown.contains("it renews at 2026-05-05T00:00:00+02:00"), "{shown}");
        let shown = BudgetRefusal { limit: 9, ..refusal(0, 0) }.for_clients();
        assert!(shown.contains("more than the whole budget") && !shown.contains("renews"), "{shown}");
    }
}
