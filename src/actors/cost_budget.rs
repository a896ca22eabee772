//! The cost budget: reserves money before each attempt at a model and settles it afterwards. Only this actor
//! knows balances.
//!
//! A handle keeps what the actor granted: open reservations, held accounts, and charges that are not in the
//! journal yet. After a panic the new actor reads the tenants' spending from the journal and adds what the
//! handles announce, before it grants anything. So nothing that was reserved or spent is forgotten. A charge
//! that reaches the journal while it is read is counted twice, until the next start: the safe direction.
//!
//! Where no budget is limited, a reservation is granted without asking, and the actor is only notified.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use futures::future::BoxFuture;
use jiff::Zoned;
use jiff::civil::Date;
use tokio::runtime;
use tokio::sync::oneshot;

use super::supervised::{Behavior, Mailbox, MailboxError, SupervisionOptions};
use crate::llm::budget::{
    self, AccountBalance, AccountKey, Budget, BudgetError, BudgetRefusal, BudgetReport, BudgetReturns,
    BudgetScope, Granted, Hold, Ledger, Reservation, Spending,
};
use crate::llm::{Caller, GuardUnavailable};
use crate::mutex::lock;
use crate::telemetry::{Component, ServerMetrics};

/// The delay between attempts to read the spending from the journal, and the time that one may take.
const READ_RETRY: Duration = Duration::from_millis(250);
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// How a budget is started.
pub struct Options {
    /// The limits.
    pub limits: budget::Options,
    /// The time, in the zone in which days begin.
    pub now: Arc<dyn Fn() -> Zoned + Send + Sync>,
    /// Records depth, waiting times and restarts.
    pub metrics: ServerMetrics,
}

/// Reads the spending from the journal, everything appended before included; an error's text says why not.
pub type SpendingSource = Box<dyn Fn() -> BoxFuture<'static, Result<Spending, String>> + Send + Sync>;

/// A handle to the budget; clones share it.
#[derive(Debug, Clone)]
pub struct Handle(Arc<BudgetShared>);

struct BudgetShared {
    mailbox: Mailbox<CostBudget>,
    limits: ArcSwap<budget::Options>,
    source: OnceLock<SpendingSource>,
    granted: Mutex<Granted>,
}

impl Handle {
    /// A budget whose actor is not started yet; questions wait for it.
    pub fn new(options: Options) -> Self {
        Self(Arc::new_cyclic(|shared: &Weak<BudgetShared>| {
            let supervision = SupervisionOptions::of_guard(Component::CostBudget, options.metrics);
            let (weak, now) = (shared.clone(), options.now);
            BudgetShared {
                mailbox: Mailbox::new(supervision, move |is_first| CostBudget::build(&weak, &now, is_first)),
                limits: ArcSwap::from_pointee(options.limits),
                source: OnceLock::new(),
                granted: Mutex::default(),
            }
        }))
    }

    /// Starts the actor on a runtime. `source` reads the spending again after a panic.
    pub fn start(&self, runtime: runtime::Handle, source: SpendingSource) {
        if self.0.source.set(source).is_ok() {
            self.0.mailbox.start(runtime);
        }
    }

    /// Applies other limits. If a budget of tenants is limited, their spending is read from the journal: it is
    /// not summed up while nothing is limited.
    ///
    /// # Errors
    /// The journal cannot be read, or the actor has stopped or fails; then the limits stay as they were.
    pub async fn configure(&self, limits: budget::Options) -> Result<(), GuardUnavailable> {
        let limits = Arc::new(limits);
        let message = |reply| BudgetMessage::Configure(limits.clone(), reply);
        let reply = self.0.mailbox.ask(message).await.map_err(unavailable)?;
        let failed = |why| GuardUnavailable {
            guard: "cost budget",
            reason: format!("cannot read what was spent: {why}"),
        };
        reply.map_err(failed)
    }

    /// Stops the actor; waiting questions get an error.
    pub fn stop(&self) {
        self.0.mailbox.stop();
    }
}

fn unavailable(error: MailboxError) -> GuardUnavailable {
    error.of_guard("cost budget")
}

#[async_trait]
impl Budget for Handle {
    async fn reserve(&self, caller: &Caller, amount: u64) -> Result<Reservation, BudgetError> {
        let accounts: Arc<[AccountKey]> = AccountKey::of(caller).into();
        if BudgetScope::ALL.iter().all(|scope| !self.is_limited(*scope)) {
            return Ok(self.0.grant_unlimited(accounts, amount));
        }
        let message = |reply| BudgetMessage::Reserve(accounts.clone(), amount, reply);
        let reply = self.0.mailbox.ask(message).await.map_err(unavailable)?;
        reply.map_err(BudgetError::Refused)
    }

    async fn check_funds(&self, caller: &Caller, amount: u64) -> Result<(), BudgetError> {
        let accounts: Arc<[AccountKey]> = AccountKey::of(caller).into();
        let message = |reply| BudgetMessage::Affords(accounts.clone(), amount, reply);
        let reply = self.0.mailbox.ask(message).await.map_err(unavailable)?;
        reply.map_err(BudgetError::Refused)
    }

    fn charge(&self, caller: &Caller, amount: u64) {
        let accounts: Arc<[AccountKey]> = AccountKey::of(caller).into();
        let mut granted = self.0.granted();
        granted.charge(&accounts, amount);
        self.0.mailbox.notify(BudgetMessage::Charge(accounts, amount));
    }

    fn hold(&self, account: AccountKey, spent: u64) -> Hold {
        let mut granted = self.0.granted();
        granted.hold(&account, spent);
        self.0.mailbox.notify(BudgetMessage::Hold(account.clone(), spent));
        drop(granted);
        Hold::new(Some(self.0.clone()), account)
    }

    fn unrecorded(&self, account: &AccountKey) -> u64 {
        self.0.granted().unrecorded(account)
    }

    fn is_limited(&self, scope: BudgetScope) -> bool {
        self.0.limits.load().limit_usd(scope).is_some()
    }

    async fn balance(&self, account: AccountKey) -> Result<AccountBalance, GuardUnavailable> {
        let message = |reply| BudgetMessage::Balance(account.clone(), reply);
        self.0.mailbox.ask(message).await.map_err(unavailable)
    }

    async fn report(&self) -> Result<BudgetReport, GuardUnavailable> {
        self.0.mailbox.ask(BudgetMessage::Report).await.map_err(unavailable)
    }
}

impl BudgetShared {
    /// Adds an open reservation.
    fn open(
        self: &Arc<Self>,
        granted: &mut Granted,
        accounts: Arc<[AccountKey]>,
        amount: u64,
    ) -> Reservation {
        let id = granted.open(accounts, amount);
        Reservation::new(self.clone(), id, amount)
    }

    fn grant_unlimited(self: &Arc<Self>, accounts: Arc<[AccountKey]>, amount: u64) -> Reservation {
        let mut granted = self.granted();
        let reservation = self.open(&mut granted, accounts.clone(), amount);
        // Under the lock: a new actor either gets this notice or finds the reservation.
        self.mailbox.notify(BudgetMessage::Reserved(accounts, amount));
        reservation
    }

    fn granted(&self) -> MutexGuard<'_, Granted> {
        lock(&self.granted)
    }
}

impl BudgetReturns for BudgetShared {
    fn settle(&self, reservation: u64, actual: u64) {
        let mut granted = self.granted();
        let Some(open) = granted.settle(reservation, actual) else { return };
        self.mailbox.notify(BudgetMessage::Settle { accounts: open.accounts, reserved: open.amount, actual });
    }

    fn record(&self, account: &AccountKey, amount: u64) {
        self.granted().record(account, amount);
    }

    fn release(&self, account: &AccountKey) {
        let mut granted = self.granted();
        granted.release(account);
        self.mailbox.notify(BudgetMessage::Release(account.clone()));
    }
}

impl std::fmt::Debug for BudgetShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CostBudget").field("limits", &self.limits.load()).finish_non_exhaustive()
    }
}

type ReserveReply = oneshot::Sender<Result<Reservation, Box<BudgetRefusal>>>;
type ConfigureReply = oneshot::Sender<Result<(), String>>;

/// What handles send. The first five are questions.
enum BudgetMessage {
    Reserve(Arc<[AccountKey]>, u64, ReserveReply),
    Affords(Arc<[AccountKey]>, u64, oneshot::Sender<Result<(), Box<BudgetRefusal>>>),
    Balance(AccountKey, oneshot::Sender<AccountBalance>),
    Report(oneshot::Sender<BudgetReport>),
    Configure(Arc<budget::Options>, ConfigureReply),
    /// Granted by the handle, because nothing is limited.
    Reserved(Arc<[AccountKey]>, u64),
    Settle {
        accounts: Arc<[AccountKey]>,
        reserved: u64,
        actual: u64,
    },
    Charge(Arc<[AccountKey]>, u64),
    Hold(AccountKey, u64),
    Release(AccountKey),
    /// What the journal says, for a new actor and for other limits.
    SpendingRead(Result<Spending, String>),
    #[cfg(test)]
    #[expect(dead_code, reason = "dropped with the message")]
    Panic(oneshot::Sender<()>),
}

impl BudgetMessage {
    /// Whether [`Granted`] does not reflect it, so that it is kept when a new actor takes over.
    fn is_question(&self) -> bool {
        !matches!(
            self,
            Self::Reserved(..) | Self::Settle { .. } | Self::Charge(..) | Self::Hold(..) | Self::Release(_)
        )
    }
}

/// The actor's state.
struct CostBudget {
    shared: Weak<BudgetShared>,
    now: Arc<dyn Fn() -> Zoned + Send + Sync>,
    ledger: Ledger,
    rebuild: Rebuild,
    /// Limits that apply from the next reading of the journal on.
    configuring: Option<(Arc<budget::Options>, ConfigureReply)>,
}

/// How far the actor is with the journal.
enum Rebuild {
    Done,
    Due { delay: Duration },
    Reading,
}

impl CostBudget {
    fn build(
        shared: &Weak<BudgetShared>,
        now: &Arc<dyn Fn() -> Zoned + Send + Sync>,
        is_first: bool,
    ) -> Self {
        let limits = shared.upgrade().map(|shared| shared.limits.load_full()).unwrap_or_default();
        let ledger = Ledger::new(&limits, now().date());
        let rebuild = if is_first { Rebuild::Done } else { Rebuild::Due { delay: Duration::ZERO } };
        Self { shared: shared.clone(), now: now.clone(), ledger, rebuild, configuring: None }
    }

    fn reserve(&mut self, accounts: Arc<[AccountKey]>, amount: u64, now: &Zoned) -> Option<ReserveResult> {
        let shared = self.shared.upgrade()?;
        if let Err(refusal) = self.ledger.reserve(&accounts, amount, now) {
            return Some(Err(Box::new(refusal)));
        }
        Some(Ok(shared.open(&mut shared.granted(), accounts, amount)))
    }

    fn report(&self) -> BudgetReport {
        BudgetReport {
            stats: self.ledger.stats(),
            refused_by: self.ledger.refused_by(),
            most_spent: self.ledger.most_spent(),
            limits: BudgetScope::ALL.map(|scope| (scope, self.ledger.limit(scope))),
        }
    }

    /// Fills the ledger anew from the journal and the tables, under other limits if there are any.
    fn finish_rebuild(&mut self, read: Result<Spending, String>, today: Date) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut granted = shared.granted();
        let configuring = self.configuring.take();
        self.rebuild = Rebuild::Done;
        match read {
            Ok(spending) => {
                if let Some((limits, _)) = &configuring {
                    shared.limits.store(limits.clone());
                }
                self.ledger.restart(&shared.limits.load());
                granted.announce(&mut self.ledger, today, spending);
                // Under the lock: the tables reflect exactly the notices that are dropped.
                shared.mailbox.retain(BudgetMessage::is_question);
                if let Some((_, reply)) = configuring {
                    let _ = reply.send(Ok(()));
                }
            }
            Err(error) => {
                granted.apply_late_records();
                if let Some((_, reply)) = configuring {
                    // The ledger is as it was, and the notices are for it.
                    let _ = reply.send(Err(error));
                    return;
                }
                tracing::error!(%error, "the spending of tenants could not be read; trying again");
                // A later reading finds in the tables what they say.
                shared.mailbox.retain(BudgetMessage::is_question);
                self.rebuild = Rebuild::Due { delay: READ_RETRY };
            }
        }
    }
}

type ReserveResult = Result<Reservation, Box<BudgetRefusal>>;

impl Behavior for CostBudget {
    type Message = BudgetMessage;

    fn handle(&mut self, message: BudgetMessage) {
        let now = (self.now)();
        self.ledger.turn(now.date());
        // An asker may have gone: a reservation in a dropped reply is returned.
        match message {
            BudgetMessage::Reserve(accounts, amount, reply) => {
                if let Some(result) = self.reserve(accounts, amount, &now) {
                    let _ = reply.send(result);
                }
            }
            BudgetMessage::Affords(accounts, amount, reply) => {
                let _ = reply.send(self.ledger.check_funds(&accounts, amount, &now).map_err(Box::new));
            }
            BudgetMessage::Balance(account, reply) => drop(reply.send(self.ledger.figures(&account))),
            BudgetMessage::Report(reply) => drop(reply.send(self.report())),
            BudgetMessage::Configure(limits, reply) => {
                self.configuring = Some((limits, reply));
                self.rebuild = Rebuild::Due { delay: Duration::ZERO };
            }
            BudgetMessage::Reserved(accounts, amount) => self.ledger.add_reservation(&accounts, amount),
            BudgetMessage::Settle { accounts, reserved, actual } => {
                self.ledger.settle(&accounts, reserved, actual);
            }
            BudgetMessage::Charge(accounts, amount) => self.ledger.charge(&accounts, amount),
            BudgetMessage::Hold(account, spent) => self.ledger.hold(account, spent),
            BudgetMessage::Release(account) => self.ledger.release(&account),
            BudgetMessage::SpendingRead(read) => self.finish_rebuild(read, now.date()),
            #[cfg(test)]
            BudgetMessage::Panic(_) => panic!("a test asked for it"),
        }
    }

    fn blocking_work(&mut self) -> Option<BoxFuture<'static, BudgetMessage>> {
        let Rebuild::Due { delay } = self.rebuild else { return None };
        let shared = self.shared.upgrade()?;
        self.rebuild = Rebuild::Reading;
        let limits = match &self.configuring {
            Some((limits, _)) => limits.clone(),
            None => shared.limits.load_full(),
        };
        let sums = [BudgetScope::Tenant, BudgetScope::Day];
        let is_summed = sums.iter().any(|scope| limits.limit_usd(*scope).is_some());
        let nothing = Spending { day: (self.now)().date(), tenants: BTreeMap::new() };
        shared.granted().collect_late_records();
        Some(Box::pin(async move {
            tokio::time::sleep(delay).await;
            let read = match shared.source.get().filter(|_| is_summed) {
                Some(source) => tokio::time::timeout(READ_TIMEOUT, source())
                    .await
                    .unwrap_or_else(|_| Err(format!("it took longer than {} s", READ_TIMEOUT.as_secs()))),
                None => Ok(nothing),
            };
            BudgetMessage::SpendingRead(read)
        }))
    }
}

#[cfg(test)]
mod tests;
