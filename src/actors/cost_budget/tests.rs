use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::llm::budget::{BudgetStats, TenantSpending};
use crate::run::{RunId, SessionId, TenantId};

const NANO: u64 = 1_000_000_000;

fn caller(tenant: &str, session: &str, run: u128) -> Caller {
    Caller {
        tenant: TenantId::new(tenant).unwrap(),
        session: SessionId::new(session).unwrap(),
        run: Some(RunId(Uuid::from_u128(run))),
        cache: None,
        voter: None,
        trace: None,
    }
}

fn run_account(who: &Caller) -> AccountKey {
    AccountKey::Run(who.tenant.clone(), who.run.unwrap())
}

fn session_account(who: &Caller) -> AccountKey {
    AccountKey::Session(who.tenant.clone(), who.session.clone())
}

fn at(time: &str) -> Zoned {
    time.parse().unwrap()
}

/// A budget over a journal in which tenant `acme` has spent `recorded`.
fn start(
    limits: &budget::Options,
    now: impl Fn() -> Zoned + Send + Sync + 'static,
    recorded: Arc<AtomicU64>,
) -> Handle {
    let options = Options { limits: limits.clone(), now: Arc::new(now), metrics: ServerMetrics::default() };
    let budget = Handle::new(options);
    let source: SpendingSource = Box::new(move || {
        let total = recorded.load(Ordering::SeqCst);
        Box::pin(async move { Ok(of_acme(total, total)) })
    });
    budget.start(tokio::runtime::Handle::current(), source);
    budget
}

/// The journal's sums on 4 May, where only tenant `acme` has spent something.
fn of_acme(total: u64, today: u64) -> Spending {
    let tenants = [(TenantId::new("acme").unwrap(), TenantSpending { total, today })].into();
    Spending { day: jiff::civil::date(2026, 5, 4), tenants }
}

fn budget(limits: &budget::Options) -> Handle {
    start(limits, || at("2026-05-04T09:00:00+02:00[Europe/Rome]"), Arc::default())
}

async fn panic(budget: &Handle) {
    assert_eq!(budget.0.mailbox.ask(BudgetMessage::Panic).await, Err(MailboxError::Failed));
}

async fn tenant(budget: &Handle, who: &Caller) -> AccountBalance {
    budget.balance(AccountKey::Tenant(who.tenant.clone())).await.unwrap()
}

async fn day(budget: &Handle, who: &Caller) -> AccountBalance {
    budget.balance(AccountKey::Day(who.tenant.clone())).await.unwrap()
}

#[actix::test]
async fn exact_fit_passes_and_one_nano_dollar_more_is_refused() {
    let budget = budget(&budget::Options { tenant_usd: Some(1.0), ..Default::default() });
    let who = caller("acme", "s", 1);
    let first = budget.reserve(&who, NANO).await.unwrap();
    assert!(budget.reserve(&who, 1).await.is_err());
    assert!(budget.reserve(&caller("other", "s", 1), NANO).await.is_ok(), "another tenant has its own");
    first.settle(NANO - 1);
    budget.reserve(&who, 1).await.unwrap().settle(1);
    assert_eq!(tenant(&budget, &who).await, AccountBalance { spent: NANO, reserved: 0 });
    assert!(budget.reserve(&who, 0).await.is_ok(), "what is free is never refused");
    assert_eq!(budget.report().await.unwrap().stats, BudgetStats { refused: 1, ..BudgetStats::default() });
}

#[actix::test]
async fn refusal_names_budget_limit_spending_and_renewal() {
    let limits = budget::Options { day_usd: Some(0.5), ..Default::default() };
    let now = || at("2026-05-04T09:00:00+02:00[Europe/Rome]");
    let limited = start(&limits, now, Arc::new(AtomicU64::new(400_000_000)));
    let who = caller("acme", "s", 1);
    limited.configure(limits).await.unwrap();
    insta::assert_snapshot!(limited.reserve(&who, 200_000_000).await.unwrap_err(), @r#"the day's budget of tenant "acme" is 0.5 USD, of which 0.4 USD are spent and 0 USD reserved, and this call may cost 0.2 USD; it renews at 2026-05-05T00:00:00+02:00[Europe/Rome]; `budget.day_usd` sets it"#);
    let session = budget(&budget::Options { session_usd: Some(2.0), ..Default::default() });
    let _held = session.hold(session_account(&who), NANO);
    let _open = session.reserve(&who, NANO).await.unwrap();
    insta::assert_snapshot!(session.reserve(&who, 1).await.unwrap_err(), @r#"the budget of session "s" is 2 USD, of which 1 USD are spent and 1 USD reserved, and this call may cost 0.000000001 USD; what is left is reserved for calls in progress until they end; `budget.session_usd` sets it"#);
}

#[actix::test]
async fn dropped_reservation_costs_nothing_before_it_is_sent_and_all_after() {
    let budget = budget(&budget::Options::default());
    let who = caller("acme", "s", 1);
    drop(budget.reserve(&who, 7).await.unwrap());
    assert_eq!(tenant(&budget, &who).await, AccountBalance::default());
    let mut sent = budget.reserve(&who, 7).await.unwrap();
    sent.sent();
    drop(sent);
    assert_eq!(tenant(&budget, &who).await, AccountBalance { spent: 7, reserved: 0 });
}

#[actix::test]
async fn cost_beyond_reservation_is_charged_and_counted() {
    let budget = budget(&budget::Options::default());
    let who = caller("acme", "s", 1);
    budget.reserve(&who, 5).await.unwrap().settle(12);
    assert_eq!(tenant(&budget, &who).await.spent, 12);
    let stats = budget.report().await.unwrap().stats;
    assert_eq!(stats, BudgetStats { overruns: 1, overrun_nano_usd: 7, refused: 0 });
}

#[actix::test]
async fn day_restarts_at_local_midnight_and_keeps_reservations() {
    let hours = Arc::new(AtomicI64::new(0));
    let clock = hours.clone();
    let now = move || {
        &at("2026-05-04T23:30:00+02:00[Europe/Rome]") + jiff::Span::new().hours(clock.load(Ordering::Relaxed))
    };
    let options = budget::Options { day_usd: Some(1.0), tenant_usd: Some(10.0), ..Default::default() };
    let budget = start(&options, now, Arc::default());
    let who = caller("acme", "s", 1);
    budget.reserve(&who, NANO / 2).await.unwrap().settle(NANO / 2);
    let open = budget.reserve(&who, NANO / 2).await.unwrap();
    assert!(budget.reserve(&who, 1).await.is_err());
    hours.store(1, Ordering::Relaxed);
    assert_eq!(day(&budget, &who).await, AccountBalance { spent: 0, reserved: NANO / 2 });
    open.settle(NANO / 4);
    assert_eq!(day(&budget, &who).await, AccountBalance { spent: NANO / 4, reserved: 0 });
    assert_eq!(tenant(&budget, &who).await.spent, NANO / 2 + NANO / 4);
}

#[actix::test]
async fn day_renews_at_the_next_midnight_after_the_clock_was_a_year_ahead() {
    let hours = Arc::new(AtomicI64::new(0));
    let clock = hours.clone();
    let now = move || {
        &at("2026-05-04T23:30:00+02:00[Europe/Rome]") + jiff::Span::new().hours(clock.load(Ordering::Relaxed))
    };
    let options = budget::Options { day_usd: Some(1.0), ..Default::default() };
    let budget = start(&options, now, Arc::default());
    let who = caller("acme", "s", 1);
    hours.store(24 * 365, Ordering::Relaxed);
    budget.reserve(&who, NANO).await.unwrap().settle(NANO);
    hours.store(0, Ordering::Relaxed);
    assert!(budget.reserve(&who, 1).await.is_err(), "what was spent is not refunded");
    hours.store(1, Ordering::Relaxed);
    assert_eq!(day(&budget, &who).await, AccountBalance::default());
}

#[actix::test]
async fn what_a_day_spent_counts_again_after_the_clock_was_ahead_of_it() {
    let hours = Arc::new(AtomicI64::new(0));
    let clock = hours.clone();
    let now = move || {
        &at("2026-05-04T12:00:00+02:00[Europe/Rome]") + jiff::Span::new().hours(clock.load(Ordering::Relaxed))
    };
    let options = budget::Options { day_usd: Some(1.0), ..Default::default() };
    let budget = start(&options, now, Arc::default());
    let who = caller("acme", "s", 1);
    budget.reserve(&who, NANO / 2).await.unwrap().settle(NANO / 2);
    assert_eq!(day(&budget, &who).await.spent, NANO / 2);
    hours.store(24, Ordering::Relaxed);
    budget.reserve(&who, NANO / 4).await.unwrap().settle(NANO / 4);
    assert_eq!(day(&budget, &who).await.spent, NANO / 4);
    hours.store(1, Ordering::Relaxed);
    assert_eq!(day(&budget, &who).await.spent, NANO / 2 + NANO / 4);
    assert!(budget.reserve(&who, NANO / 2).await.is_err());
    hours.store(2, Ordering::Relaxed);
    assert_eq!(day(&budget, &who).await.spent, NANO / 2 + NANO / 4, "it counts once");
    hours.store(24, Ordering::Relaxed);
    assert_eq!(day(&budget, &who).await, AccountBalance::default());
}

#[actix::test]
async fn run_account_lives_while_it_is_held_or_has_reservations() {
    let budget = budget(&budget::Options { run_usd: Some(1.0), ..Default::default() });
    let who = caller("acme", "s", 1);
    let hold = budget.hold(run_account(&who), 3);
    let open = budget.reserve(&who, 5).await.unwrap();
    drop(hold);
    assert_eq!(budget.balance(run_account(&who)).await.unwrap(), AccountBalance { spent: 3, reserved: 5 });
    open.settle(1);
    assert_eq!(budget.balance(run_account(&who)).await.unwrap(), AccountBalance::default());
}

#[actix::test]
async fn thousand_concurrent_questions_do_not_overshoot() {
    let budget = budget(&budget::Options { day_usd: Some(1.0), ..Default::default() });
    let ask = |n| {
        let budget = budget.clone();
        // A hundred hundredths of a dollar fit; each is spent when it is dropped.
        async move {
            let mut kept = budget.reserve(&caller("acme", "s", n), NANO / 100).await.ok()?;
            kept.sent();
            Some(())
        }
    };
    let passed = futures::future::join_all((0..1_000).map(ask)).await;
    assert_eq!(passed.into_iter().flatten().count(), 100);
    let spent = day(&budget, &caller("acme", "s", 0)).await;
    assert_eq!(spent, AccountBalance { spent: NANO, reserved: 0 });
}

#[actix::test]
async fn restart_keeps_reservations_holds_and_unrecorded_charges() {
    let recorded = Arc::new(AtomicU64::new(100));
    let limits = budget::Options { tenant_usd: Some(1.0), run_usd: Some(1.0), ..Default::default() };
    let now = || at("2026-05-04T09:00:00+02:00[Europe/Rome]");
    let budget = start(&limits, now, recorded.clone());
    let who = caller("acme", "s", 1);
    budget.configure(limits).await.unwrap();
    let hold = budget.hold(run_account(&who), 40);
    budget.reserve(&who, 30).await.unwrap().settle(20);
    let open = budget.reserve(&who, 7).await.unwrap();
    let before = tenant(&budget, &who).await;
    assert_eq!(before, AccountBalance { spent: 120, reserved: 7 });

    panic(&budget).await;
    assert_eq!(tenant(&budget, &who).await, before, "the charge of 20 is not in the journal");
    assert_eq!(budget.balance(run_account(&who)).await.unwrap(), AccountBalance { spent: 60, reserved: 7 });

    recorded.store(120, Ordering::SeqCst);
    hold.record(20);
    panic(&budget).await;
    assert_eq!(tenant(&budget, &who).await, before, "the charge of 20 is in the journal");
    open.settle(7);
    assert_eq!(tenant(&budget, &who).await, AccountBalance { spent: 127, reserved: 0 });
}

#[actix::test]
async fn unreadable_journal_delays_questions_until_it_can_be_read() {
    let attempts = Arc::new(AtomicU64::new(0));
    let counted = attempts.clone();
    let options = Options {
        limits: budget::Options { tenant_usd: Some(1.0), ..Default::default() },
        now: Arc::new(|| at("2026-05-04T09:00:00+02:00[Europe/Rome]")),
        metrics: ServerMetrics::default(),
    };
    let budget = Handle::new(options);
    let source: SpendingSource = Box::new(move || {
        let nth = counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { if nth < 2 { Err("the disk is full".to_owned()) } else { Ok(of_acme(0, 0)) } })
    });
    budget.start(tokio::runtime::Handle::current(), source);
    panic(&budget).await;
    budget.reserve(&caller("acme", "s", 1), 5).await.unwrap();
    assert!(attempts.load(Ordering::SeqCst) >= 3);
}

/// Between the reading and the end of a failed one, what is recorded and released stays bounded.
#[actix::test]
async fn failing_journal_keeps_no_released_accounts() {
    let options = Options {
        limits: budget::Options { tenant_usd: Some(1.0), ..Default::default() },
        now: Arc::new(|| at("2026-05-04T09:00:00+02:00[Europe/Rome]")),
        metrics: ServerMetrics::default(),
    };
    let budget = Handle::new(options);
    let (reading, readings) = tokio::sync::watch::channel(0);
    let source: SpendingSource = Box::new(move || {
        reading.send_modify(|count| *count += 1);
        Box::pin(async { Err("a page is damaged".to_owned()) })
    });
    budget.start(tokio::runtime::Handle::current(), source);
    // The actor panics, and nothing is asked of the new one before it has read the journal.
    let mut question = Box::pin(budget.0.mailbox.ask(BudgetMessage::Panic));
    assert!(futures::poll!(&mut question).is_pending());
    let mut readings = readings;
    for round in 1..=2 {
        readings.wait_for(|count| *count >= round * 2).await.unwrap();
        for run in 0..100 {
            let hold = budget.hold(run_account(&caller("acme", "s", run)), 0);
            hold.record(1);
        }
    }
    let last = *readings.borrow();
    readings.wait_for(|count| *count > last + 1).await.unwrap();
    assert!(budget.0.granted().is_forgotten());
    let mut queued = 0;
    budget.0.mailbox.retain(|_| {
        queued += 1;
        true
    });
    assert_eq!(queued, 0);
}

#[actix::test]
async fn spending_before_a_limit_was_set_counts() {
    let recorded = Arc::new(AtomicU64::new(100));
    let now = || at("2026-05-04T09:00:00+02:00[Europe/Rome]");
    let budget = start(&budget::Options::default(), now, recorded.clone());
    let who = caller("acme", "s", 1);
    let _hold = budget.hold(run_account(&who), 0);
    let open = budget.reserve(&who, 50).await.unwrap();
    budget.reserve(&who, 30).await.unwrap().settle(20);
    let limits = budget::Options { tenant_usd: Some(1.0), ..Default::default() };
    budget.configure(limits).await.unwrap();
    assert_eq!(tenant(&budget, &who).await, AccountBalance { spent: 120, reserved: 50 });
    open.settle(5);
    assert_eq!(tenant(&budget, &who).await, AccountBalance { spent: 125, reserved: 0 });
}

#[actix::test]
async fn unreadable_journal_leaves_the_limits_as_they_were() {
    let budget = Handle::new(Options {
        limits: budget::Options { run_usd: Some(1.0), ..Default::default() },
        now: Arc::new(|| at("2026-05-04T09:00:00+02:00[Europe/Rome]")),
        metrics: ServerMetrics::default(),
    });
    let source: SpendingSource = Box::new(|| Box::pin(async { Err("the disk is gone".to_owned()) }));
    budget.start(tokio::runtime::Handle::current(), source);
    let who = caller("acme", "s", 1);
    let hold = budget.hold(run_account(&who), 3);
    let error = budget.configure(budget::Options { tenant_usd: Some(1.0), ..Default::default() }).await;
    insta::assert_snapshot!(error.unwrap_err(), @"the cost budget cannot read what was spent: the disk is gone");
    assert!(budget.is_limited(BudgetScope::Run) && !budget.is_limited(BudgetScope::Tenant));
    drop(hold);
    assert_eq!(budget.balance(run_account(&who)).await.unwrap(), AccountBalance::default());
}

#[actix::test]
async fn sum_of_yesterday_is_not_charged_to_today() {
    let limits = budget::Options { day_usd: Some(1.0), tenant_usd: Some(1.0), ..Default::default() };
    let now = || at("2026-05-05T00:00:01+02:00[Europe/Rome]");
    let budget = start(&limits, now, Arc::new(AtomicU64::new(70)));
    let who = caller("acme", "s", 1);
    budget.configure(limits).await.unwrap();
    assert_eq!((tenant(&budget, &who).await.spent, day(&budget, &who).await.spent), (70, 0));
    panic(&budget).await;
    assert_eq!((tenant(&budget, &who).await.spent, day(&budget, &who).await.spent), (70, 0));
}

#[actix::test]
async fn charge_of_a_driver_that_ended_is_known_until_it_is_recorded() {
    let budget = budget(&budget::Options { tenant_usd: Some(1.0), ..Default::default() });
    let who = caller("acme", "s", 1);
    let hold = budget.hold(run_account(&who), 0);
    let mut sent = budget.reserve(&who, 50).await.unwrap();
    sent.sent();
    drop((sent, hold));
    assert_eq!(budget.unrecorded(&run_account(&who)), 50);
    let next = budget.hold(run_account(&who), 0);
    assert_eq!(budget.unrecorded(&run_account(&who)), 50);
    next.record(50);
    drop(next);
    assert_eq!(budget.unrecorded(&run_account(&who)), 0);
    assert!(budget.0.granted().is_forgotten());
    assert_eq!(tenant(&budget, &who).await.spent, 50);
}

#[actix::test]
async fn stopped_budget_is_unavailable() {
    let budget = budget(&budget::Options { tenant_usd: Some(1.0), ..Default::default() });
    budget.stop();
    let error = budget.reserve(&caller("acme", "s", 1), 5).await.unwrap_err();
    insta::assert_snapshot!(error, @"the cost budget has stopped with its engine");
}

/// What happens in a random history.
#[derive(Debug, Clone)]
enum Step {
    Reserve {
        run: u128,
        amount: u64,
    },
    /// The question's task is dropped after it was sent.
    DropQuestion {
        run: u128,
        amount: u64,
    },
    Settle {
        actual: u64,
    },
    DropUnsent,
    DropSent,
    /// The charges so far reach the journal.
    Record,
    Panic,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u128..3, 0_u64..400).prop_map(|(run, amount)| Step::Reserve { run, amount }),
        2 => (0_u128..3, 0_u64..400).prop_map(|(run, amount)| Step::DropQuestion { run, amount }),
        3 => (0_u64..400).prop_map(|actual| Step::Settle { actual }),
        1 => Just(Step::DropUnsent),
        1 => Just(Step::DropSent),
        1 => Just(Step::Record),
        1 => Just(Step::Panic),
    ]
}

/// Plays a history against the real actor, and compares its balances with sums made beside it.
async fn play(steps: Vec<Step>, limited: bool) {
    let limits = [600.0, 900.0, 1_500.0, 1_200.0].map(|nano| limited.then_some(nano / 1e9));
    let [run_usd, session_usd, tenant_usd, day_usd] = limits;
    let limits = budget::Options { run_usd, session_usd, tenant_usd, day_usd };
    let recorded = Arc::new(AtomicU64::new(0));
    let budget = start(&limits, || at("2026-05-04T09:00:00+02:00[Europe/Rome]"), recorded.clone());
    let who = |run| caller("acme", if run == 0 { "a" } else { "b" }, run);
    let holds: Vec<Hold> = (0..3).map(|n| budget.hold(run_account(&who(n)), 0)).collect();
    let _sessions = [budget.hold(session_account(&who(0)), 0), budget.hold(session_account(&who(1)), 0)];
    let mut open: Vec<(u128, u64, Reservation)> = Vec::new();
    let (mut spent, mut unrecorded) = (0, [0; 3]);
    let mut charge = |run: u128, amount: u64, unrecorded: &mut [u64; 3]| {
        spent += amount;
        unrecorded[usize::try_from(run).unwrap()] += amount;
        spent
    };
    let mut total = 0;
    for step in steps {
        match step {
            Step::Reserve { run, amount } => {
                if let Ok(reservation) = budget.reserve(&who(run), amount).await {
                    open.push((run, amount, reservation));
                }
            }
            Step::DropQuestion { run, amount } => {
                let caller = who(run);
                let mut question = budget.reserve(&caller, amount);
                let _ = futures::poll!(&mut question);
            }
            Step::Settle { actual } if !open.is_empty() => {
                let (run, amount, reservation) = open.remove(0);
                let actual = actual.min(amount);
                reservation.settle(actual);
                total = charge(run, actual, &mut unrecorded);
            }
            Step::DropUnsent => drop(open.pop()),
            Step::DropSent => {
                if let Some((run, amount, mut reservation)) = open.pop() {
                    reservation.sent();
                    total = charge(run, amount, &mut unrecorded);
                }
            }
            Step::Record => {
                for (hold, amount) in holds.iter().zip(std::mem::take(&mut unrecorded)) {
                    recorded.fetch_add(amount, Ordering::SeqCst);
                    hold.record(amount);
                }
            }
            Step::Panic => panic(&budget).await,
            Step::Settle { .. } => {}
        }
        // What a dropped question got is returned behind the first one.
        tenant(&budget, &who(0)).await;
        let has = tenant(&budget, &who(0)).await;
        if limited {
            assert!(has.spent + has.reserved <= 1_200, "{has:?}");
        }
        let reserved = open.iter().map(|(_, amount, _)| amount).sum();
        // Without budgets of tenants, spending is not read from the journal again.
        if limited {
            assert_eq!(has, AccountBalance { spent: total, reserved });
        }
        assert_eq!(has.reserved, reserved);
    }
    drop(open);
    assert_eq!(tenant(&budget, &who(0)).await.reserved, 0);
    for run in 0..3 {
        assert_eq!(budget.balance(run_account(&who(run))).await.unwrap().reserved, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is asked, dropped, settled and restarted in whatever order: no reservation is lost or returned
    /// twice, no budget is overshot, and no charge is forgotten.
    #[test]
    fn no_history_loses_or_repeats_a_reservation(
        steps in prop::collection::vec(step(), 1..60),
        limited in any::<bool>(),
    ) {
        actix::System::new().block_on(play(steps, limited));
    }
}
