//! What was granted: open reservations, held accounts, and charges that are not in the journal yet. Together with the
//! spending of the journal, it fills a new [`Ledger`].

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use jiff::civil::Date;

use super::{AccountKey, Ledger};
use crate::run::TenantId;

/// Maximum number of accounts without holders that are kept for charges that are not in the journal.
const MAX_UNHELD: usize = 4_096;

/// The spending of a tenant, in nano-USD.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TenantSpending {
    /// Ever.
    pub total: u64,
    /// Of that, today.
    pub today: u64,
}

/// The spending of all tenants according to the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spending {
    /// The day of which [`TenantSpending::today`] is the sum.
    pub day: Date,
    /// By tenant.
    pub tenants: BTreeMap<TenantId, TenantSpending>,
}

/// The grants and their cost, apart from the ledger that granted them.
#[derive(Debug, Default)]
pub(crate) struct Granted {
    reservations: HashMap<u64, OpenReservation>,
    accounts: HashMap<AccountKey, HeldAccount>,
    last_id: u64,
    /// Accounts without holders, whose charges the journal does not have yet; the oldest first.
    unheld: VecDeque<AccountKey>,
    /// While the journal is being read: amounts recorded meanwhile.
    recorded_late: Option<Vec<(AccountKey, u64)>>,
}

#[derive(Debug)]
pub(crate) struct OpenReservation {
    pub(crate) accounts: Arc<[AccountKey]>,
    pub(crate) amount: u64,
}

/// An account of a run or conversation.
#[derive(Debug, Default)]
struct HeldAccount {
    holders: u32,
    spent: u64,
    /// Charges to its run or conversation that are not in the journal. Negative between the record of a charge
    /// and the charge, which may come in any order.
    unrecorded: i64,
}

impl Granted {
    /// Adds an open reservation; its number.
    pub(crate) fn open(&mut self, accounts: Arc<[AccountKey]>, amount: u64) -> u64 {
        self.last_id += 1;
        self.reservations.insert(self.last_id, OpenReservation { accounts, amount });
        self.last_id
    }

    /// Ends a reservation, which cost `actual`.
    pub(crate) fn settle(&mut self, reservation: u64, actual: u64) -> Option<OpenReservation> {
        let open = self.reservations.remove(&reservation)?;
        self.charge(&open.accounts, actual);
        Some(open)
    }

    /// Adds a holder of an account, of which `spent` is in the journal.
    pub(crate) fn hold(&mut self, account: &AccountKey, spent: u64) {
        let held = self.accounts.entry(account.clone()).or_default();
        held.holders += 1;
        held.spent = held.spent.max(spent);
        self.unheld.retain(|other| other != account);
    }

    /// Takes a holder of an account away.
    pub(crate) fn release(&mut self, account: &AccountKey) {
        let Some(held) = self.accounts.get_mut(account) else { return };
        held.holders = held.holders.saturating_sub(1);
        // While the journal is being read, its charges may be in neither.
        if held.holders == 0 && self.recorded_late.is_none() {
            self.forget(account);
        }
    }

    /// The charges to an account that are not in the journal.
    pub(crate) fn unrecorded(&self, account: &AccountKey) -> u64 {
        self.accounts.get(account).map_or(0, |held| u64::try_from(held.unrecorded).unwrap_or(0))
    }

    /// Adds a charge to the accounts that are held; the first one's stream has to record it.
    pub(crate) fn charge(&mut self, accounts: &[AccountKey], amount: u64) {
        for (i, account) in accounts.iter().enumerate() {
            let Some(held) = self.accounts.get_mut(account) else { continue };
            held.spent = held.spent.saturating_add(amount);
            if i == 0 {
                held.unrecorded = held.unrecorded.saturating_add(signed(amount));
            }
        }
    }

    /// Notes that the journal has a charge to an account.
    pub(crate) fn record(&mut self, account: &AccountKey, amount: u64) {
        if let Some(late) = &mut self.recorded_late {
            late.push((account.clone(), amount));
        } else if let Some(held) = self.accounts.get_mut(account) {
            held.unrecorded = held.unrecorded.saturating_sub(signed(amount));
            if held.holders == 0 {
                self.forget(account);
            }
        }
    }

    /// Forgets an account without holders, unless its run is taken over later and its charges recorded then.
    fn forget(&mut self, account: &AccountKey) {
        let Some(held) = self.accounts.get(account).filter(|held| held.holders == 0) else { return };
        if held.unrecorded <= 0 {
            self.accounts.remove(account);
            self.unheld.retain(|other| other != account);
        } else if !self.unheld.contains(account) {
            if self.unheld.len() >= MAX_UNHELD
                && let Some(oldest) = self.unheld.pop_front()
            {
                self.accounts.remove(&oldest);
            }
            self.unheld.push_back(account.clone());
        }
    }

    /// Collects late records: the journal is being read from now on.
    pub(crate) fn collect_late_records(&mut self) {
        self.recorded_late.get_or_insert_default();
    }

    /// Ends the collection of late records: the journal is not being read any more.
    pub(crate) fn apply_late_records(&mut self) {
        for (account, amount) in self.recorded_late.take().unwrap_or_default() {
            self.record(&account, amount);
        }
        let idle: Vec<AccountKey> =
            self.accounts.iter().filter(|(_, held)| held.holders == 0).map(|(key, _)| key.clone()).collect();
        idle.iter().for_each(|account| self.forget(account));
    }

    /// Whether no account and no late record is kept.
    #[cfg(test)]
    pub(crate) fn is_forgotten(&self) -> bool {
        self.accounts.is_empty() && self.recorded_late.as_ref().is_none_or(Vec::is_empty)
    }

    /// Fills a new ledger, with the spending of the journal.
    pub(crate) fn announce(&mut self, ledger: &mut Ledger, today: Date, read: Spending) {
        let Spending { day, tenants: mut spending } = read;
        if day != today {
            spending.values_mut().for_each(|spent| spent.today = 0);
        }
        for (account, held) in &self.accounts {
            let (AccountKey::Run(tenant, _)
            | AccountKey::Session(tenant, _)
            | AccountKey::Tenant(tenant)
            | AccountKey::Day(tenant)) = account;
            let unrecorded = u64::try_from(held.unrecorded).unwrap_or(0);
            let spent = spending.entry(tenant.clone()).or_default();
            spent.total = spent.total.saturating_add(unrecorded);
            spent.today = spent.today.saturating_add(unrecorded);
            for _ in 0..held.holders {
                ledger.hold(account.clone(), held.spent);
            }
        }
        for (tenant, spent) in spending {
            ledger.seed(&tenant, spent.total, spent.today);
        }
        for open in self.reservations.values() {
            ledger.add_reservation(&open.accounts, open.amount);
        }
        self.apply_late_records();
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}
