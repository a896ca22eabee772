use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const NANO: u64 = 1_000_000_000;

fn caller(tenant: &str, session: &str, run: u128) -> Caller {
    Caller {
        tenant: TenantId::new(tenant).unwrap(),
        session: SessionId::new(session).unwrap(),
        run: Some(RunId(Uuid::from_u128(run))),
        cache: None,
    }
}

fn at(time: &str) -> Zoned {
    time.parse().unwrap()
}

fn budget(options: &Options) -> Budget {
    Budget::with_clock(options, || at("2026-05-04T09:00:00+02:00[Europe/Rome]"))
}

#[test]
fn what_fits_exactly_passes_and_one_nano_dollar_more_does_not() {
    let budget = budget(&Options { tenant_usd: Some(1.0), ..Options::default() });
    let who = caller("acme", "s", 1);
    let first = budget.reserve(&who, NANO).unwrap();
    assert!(budget.reserve(&who, 1).is_err());
    assert!(budget.reserve(&caller("other", "s", 1), NANO).is_ok(), "another tenant has its own");
    first.settle(NANO - 1);
    budget.reserve(&who, 1).unwrap().settle(1);
    assert_eq!(budget.tenant(&who.tenant), AccountBalance { spent: NANO, reserved: 0 });
    assert!(budget.reserve(&who, 0).is_ok(), "what is free is never refused");
    assert_eq!(budget.stats(), BudgetStats { refused: 1, ..BudgetStats::default() });
}

#[test]
fn a_refusal_names_the_budget_its_limit_what_is_spent_and_when_it_renews() {
    let day = budget(&Options { day_usd: Some(0.5), ..Options::default() });
    let who = caller("acme", "s", 1);
    day.seed(&who.tenant, 9 * NANO, 400_000_000);
    insta::assert_snapshot!(day.reserve(&who, 200_000_000).unwrap_err(), @r#"the day's budget of tenant "acme" is 0.5 USD, of which 0.4 USD are spent and 0 USD reserved, and this call may cost 0.2 USD; it renews at 2026-05-05T00:00:00+02:00[Europe/Rome]; `budget.day_usd` sets it"#);
    let session = budget(&Options { session_usd: Some(2.0), ..Options::default() });
    let _held = session.hold_session(&who.tenant, &who.session, NANO);
    let _under_way = session.reserve(&who, NANO).unwrap();
    insta::assert_snapshot!(session.reserve(&who, 1).unwrap_err(), @r#"the budget of session "s" is 2 USD, of which 1 USD are spent and 1 USD reserved, and this call may cost 0.000000001 USD; it does not renew; `budget.session_usd` sets it"#);
}

#[test]
fn a_call_that_is_dropped_costs_nothing_before_it_is_sent_and_its_reservation_after() {
    let budget = budget(&Options::default());
    let who = caller("acme", "s", 1);
    drop(budget.reserve(&who, 7).unwrap());
    assert_eq!(budget.tenant(&who.tenant), AccountBalance::default());
    let mut sent = budget.reserve(&who, 7).unwrap();
    sent.sent();
    drop(sent);
    assert_eq!(budget.tenant(&who.tenant), AccountBalance { spent: 7, reserved: 0 });
}

#[test]
fn more_than_reserved_is_charged_and_counted_as_an_overrun() {
    let budget = budget(&Options::default());
    let who = caller("acme", "s", 1);
    budget.reserve(&who, 5).unwrap().settle(12);
    assert_eq!(budget.tenant(&who.tenant).spent, 12);
    assert_eq!(budget.stats(), BudgetStats { overruns: 1, overrun_nano_usd: 7, refused: 0 });
}

#[test]
fn a_day_begins_anew_at_local_midnight_and_what_is_under_way_stays_reserved() {
    let hours = Arc::new(AtomicI64::new(0));
    let clock = hours.clone();
    let now = move || {
        &at("2026-05-04T23:30:00+02:00[Europe/Rome]") + jiff::Span::new().hours(clock.load(Ordering::Relaxed))
    };
    let options = Options { day_usd: Some(1.0), tenant_usd: Some(10.0), ..Options::default() };
    let budget = Budget::with_clock(&options, now);
    let who = caller("acme", "s", 1);
    budget.reserve(&who, NANO / 2).unwrap().settle(NANO / 2);
    let open = budget.reserve(&who, NANO / 2).unwrap();
    assert!(budget.reserve(&who, 1).is_err());
    hours.store(1, Ordering::Relaxed);
    assert_eq!(budget.day(&who.tenant), AccountBalance { spent: 0, reserved: NANO / 2 });
    open.settle(NANO / 4);
    assert_eq!(budget.day(&who.tenant), AccountBalance { spent: NANO / 4, reserved: 0 });
    assert_eq!(budget.tenant(&who.tenant).spent, NANO / 2 + NANO / 4);
}

#[test]
fn accounts_of_runs_and_sessions_live_as_long_as_they_are_held_or_under_way() {
    let budget = budget(&Options::default());
    let who = caller("acme", "s", 1);
    let run = who.run.unwrap();
    let hold = budget.hold_run(&who.tenant, run, 3);
    let open = budget.reserve(&who, 5).unwrap();
    drop(hold);
    assert_eq!(budget.run(&who.tenant, run), AccountBalance { spent: 3, reserved: 5 });
    open.settle(1);
    assert_eq!(budget.run(&who.tenant, run), AccountBalance::default());
    assert_eq!(budget.ledger().0.accounts(), 2, "the tenant's two");
}

#[test]
fn a_thousand_threads_at_the_edge_do_not_overshoot_by_one_call() {
    let budget = budget(&Options { day_usd: Some(1.0), ..Options::default() });
    let passed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for n in 0..1_000 {
            let (budget, passed) = (&budget, &passed);
            scope.spawn(move || {
                // A hundred hundredths of a dollar fit; each is spent when it is dropped.
                if let Ok(mut kept) = budget.reserve(&caller("acme", "s", n), NANO / 100) {
                    kept.sent();
                    passed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(passed.load(Ordering::Relaxed), 100);
    assert_eq!(budget.day(&caller("acme", "s", 0).tenant), AccountBalance { spent: NANO, reserved: 0 });
}

proptest! {
    /// Whatever is reserved, settled and dropped in whatever order: no budget is overshot by what was
    /// reserved, and nothing stays reserved in the end.
    #[test]
    fn no_order_of_calls_overshoots_a_budget(
        calls in prop::collection::vec((0_u64..400, 0_u64..400, 0_u8..3, 0_u128..3, any::<bool>()), 1..60),
    ) {
        let usd = |nano: u64| Some(nano as f64 / 1e9);
        let limits = [600, 900, 1_500, 1_200];
        let [run_usd, session_usd, tenant_usd, day_usd] = limits.map(usd);
        let budget = budget(&Options { run_usd, session_usd, tenant_usd, day_usd });
        let who = |run| caller("acme", if run == 0 { "a" } else { "b" }, run);
        let tenant = who(0).tenant;
        let _holds: Vec<Hold> = (0..3).map(|n| budget.hold_run(&tenant, who(n).run.unwrap(), 0))
            .chain(["a", "b"].map(|s| budget.hold_session(&tenant, &SessionId::new(s).unwrap(), 0)))
            .collect();
        let mut open = Vec::new();
        let mut spent = 0;
        for (amount, actual, how, run, close_first) in calls {
            if close_first && !open.is_empty() {
                let (reservation, actual): (Reservation, u64) = open.remove(0);
                spent += actual;
                reservation.settle(actual);
            }
            let Ok(mut reservation) = budget.reserve(&who(run), amount) else { continue };
            match how {
                0 => open.push((reservation, actual.min(amount))),
                1 => drop(reservation),
                _ => {
                    reservation.sent();
                    spent += amount;
                }
            }
            for figures in [budget.tenant(&tenant), budget.day(&tenant)] {
                prop_assert!(figures.spent + figures.reserved <= 1_200);
            }
            let run_has = budget.run(&tenant, who(run).run.unwrap());
            prop_assert!(run_has.spent + run_has.reserved <= 600);
            let session_has = budget.session(&tenant, &who(run).session);
            prop_assert!(session_has.spent + session_has.reserved <= 900);
        }
        for (reservation, actual) in open {
            spent += actual;
            reservation.settle(actual);
        }
        prop_assert_eq!(budget.tenant(&tenant), AccountBalance { spent, reserved: 0 });
        prop_assert_eq!(budget.day(&tenant), AccountBalance { spent, reserved: 0 });
    }
}
