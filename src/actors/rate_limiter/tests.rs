use proptest::prelude::*;

use super::*;

/// When a place will be free is unknown.
const SOON: Duration = Duration::from_secs(1);

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn limits(max_wait_ms: u64, tenant: Rates, model: Rates) -> Handle {
    let limits = limits::Options { max_wait_ms, tenant, models: [("m".to_owned(), model)].into() };
    let limiter = Handle::new(Options { limits, metrics: ServerMetrics::default() });
    limiter.start(tokio::runtime::Handle::current());
    limiter
}

fn rates(requests: Option<u32>, tokens: Option<u32>, concurrent: Option<u32>) -> Rates {
    Rates { requests_per_minute: requests, tokens_per_minute: tokens, concurrent }
}

fn advance(limits: &Handle, by: Duration) {
    limits.0.mailbox.notify(LimiterMessage::Advance(by));
}

async fn panic(limits: &Handle) {
    assert_eq!(limits.0.mailbox.ask(LimiterMessage::Panic).await, Err(MailboxError::Failed));
}

async fn refused(limits: &Handle, who: &str, tokens: u64) -> LimitRefusal {
    match limits.enter(&tenant(who), "m", tokens).await {
        Err(LimitError::Refused(refusal)) => *refusal,
        other => panic!("{other:?}"),
    }
}

async fn pass(limits: &Handle, who: &str, tokens: u64) -> Result<(), LimitError> {
    let mut turn = limits.enter(&tenant(who), "m", tokens).await?;
    turn.sent();
    turn.settle(tokens);
    Ok(())
}

#[actix::test]
async fn wait_beyond_the_bound_is_refused_with_the_time_to_come_again() {
    let limits = limits(5_000, rates(Some(6), None, None), Rates::default());
    for _ in 0..6 {
        pass(&limits, "acme", 1).await.unwrap();
    }
    pass(&limits, "other", 1).await.unwrap();
    let refused = refused(&limits, "acme", 1).await;
    assert_eq!(refused.retry_after.unwrap().as_secs_f64().ceil(), 10.0);
    insta::assert_snapshot!(refused, @r#"the limit of tenant "acme" is reached (`limits.tenant.requests_per_minute` = 6, this call needs 1): try again in 10 s"#);
    advance(&limits, Duration::from_secs(10));
    pass(&limits, "acme", 1).await.unwrap();
    assert_eq!(limits.stats().await.unwrap(), LimitStats { tenant: 1, model: 0 });
}

#[actix::test]
async fn impossible_call_is_refused_by_name_and_takes_nothing() {
    let limits = limits(0, rates(Some(1), None, None), rates(None, Some(1_000), None));
    let refused = refused(&limits, "acme", 1_001).await;
    assert!(refused.retry_after.is_none() && refused.models);
    assert!(refused.to_string().contains("`limits.models.m.tokens_per_minute` = 1000"), "{refused}");
    pass(&limits, "acme", 1_000).await.expect("the refused call's request was given back");
}

#[actix::test]
async fn unused_tokens_are_free_for_the_next_call() {
    let limits = limits(0, Rates::default(), rates(None, Some(1_000), None));
    for _ in 0..10 {
        let mut turn = limits.enter(&tenant("acme"), "m", 900).await.unwrap();
        turn.sent();
        turn.settle(10);
    }
    assert!(pass(&limits, "acme", 901).await.is_err());
}

#[actix::test]
async fn permit_dropped_before_it_is_sent_returns_everything() {
    let limits = limits(0, rates(Some(1), Some(10), Some(1)), Rates::default());
    for _ in 0..5 {
        drop(limits.enter(&tenant("acme"), "m", 10).await.unwrap());
    }
    let mut sent = limits.enter(&tenant("acme"), "m", 10).await.unwrap();
    sent.sent();
    drop(sent);
    let refused = refused(&limits, "acme", 1).await;
    assert_eq!(refused.key, "limits.tenant.requests_per_minute");
}

#[actix::test]
async fn calls_at_once_are_at_most_the_places() {
    let two = rates(None, None, Some(2));
    let impatient = limits(0, Rates::default(), two.clone());
    let _first = impatient.enter(&tenant("a"), "m", 1).await.unwrap();
    let _second = impatient.enter(&tenant("b"), "m", 1).await.unwrap();
    let refused = refused(&impatient, "c", 1).await;
    assert_eq!((refused.key.as_str(), refused.retry_after), ("limits.models.m.concurrent", Some(SOON)));
    impatient.enter(&tenant("d"), "another model", 1).await.unwrap();

    let patient = limits(600_000, Rates::default(), two);
    let first = patient.enter(&tenant("a"), "m", 1).await.unwrap();
    let _second = patient.enter(&tenant("b"), "m", 1).await.unwrap();
    let who = tenant("c");
    let third = patient.enter(&who, "m", 1);
    tokio::pin!(third);
    assert!(futures::poll!(&mut third).is_pending());
    drop(first);
    third.await.unwrap();
}

#[actix::test]
async fn call_waits_for_its_turn_within_the_bound() {
    // A thousand a second: the next one comes by itself.
    let limits = limits(600_000, rates(None, Some(60_000), None), Rates::default());
    for _ in 0..3 {
        pass(&limits, "acme", 60_000).await.unwrap();
        advance(&limits, Duration::from_millis(59_999));
    }
    assert_eq!(limits.stats().await.unwrap(), LimitStats::default());
}

#[actix::test]
async fn tenants_take_turns_at_a_model() {
    let limits = limits(600_000, Rates::default(), rates(None, None, Some(1)));
    let served = Arc::new(Mutex::new(Vec::new()));
    let first = limits.enter(&tenant("a"), "m", 1).await.unwrap();
    let calls = ["a", "a", "a", "b", "c", "b"].map(|who| {
        let (limits, served) = (limits.clone(), served.clone());
        actix::spawn(async move {
            let permit = limits.enter(&tenant(who), "m", 1).await.unwrap();
            served.lock().unwrap().push(who);
            drop(permit);
        })
    });
    // Behind all of them: everybody waits.
    tokio::task::yield_now().await;
    limits.stats().await.unwrap();
    drop(first);
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(*served.lock().unwrap(), ["a", "b", "c", "a", "b", "a"]);
}

#[actix::test]
async fn restart_keeps_places_of_open_permits_and_waiting_calls() {
    let limits = limits(600_000, Rates::default(), rates(None, None, Some(2)));
    let (who, other) = (tenant("a"), tenant("b"));
    let first = limits.enter(&who, "m", 1).await.unwrap();
    let second = limits.enter(&other, "m", 1).await.unwrap();
    let mut third = limits.enter(&who, "m", 1);
    assert!(futures::poll!(&mut third).is_pending());
    limits.0.mailbox.notify(LimiterMessage::Panic(oneshot::channel().0));
    limits.stats().await.unwrap();
    assert!(futures::poll!(&mut third).is_pending(), "both places are taken");
    drop(first);
    let third = third.await.unwrap();
    let mut fourth = limits.enter(&other, "m", 1);
    assert!(futures::poll!(&mut fourth).is_pending());
    limits.stats().await.unwrap();
    assert!(futures::poll!(&mut fourth).is_pending(), "no place was returned twice");
    drop((second, third));
    fourth.await.unwrap();
}

#[actix::test]
async fn changed_limits_apply_to_waiting_calls() {
    let limiter = limits(600_000, Rates::default(), rates(None, None, Some(1)));
    let who = tenant("a");
    let _first = limiter.enter(&who, "m", 1).await.unwrap();
    let mut second = limiter.enter(&who, "m", 1);
    assert!(futures::poll!(&mut second).is_pending());
    let models = [("m".to_owned(), rates(None, None, Some(2)))].into();
    limiter.configure(limits::Options { models, ..limits::Options::default() });
    let _second = second.await.unwrap();
    let mut third = limiter.enter(&who, "m", 1);
    assert!(futures::poll!(&mut third).is_pending());
    limiter.stats().await.unwrap();
    assert!(futures::poll!(&mut third).is_pending(), "the permits in progress hold both places");
}

/// Calls that began while nothing was limited hold places of limits that are set meanwhile.
#[actix::test]
async fn limits_set_later_count_calls_in_progress() {
    let limiter = limits(0, Rates::default(), Rates::default());
    let options = limits::Options { models: [].into(), ..limits::Options::clone(&limiter.0.limits.load()) };
    limiter.configure(options.clone());
    let who = tenant("a");
    let first = limiter.enter(&who, "m", 1).await.unwrap();
    let _second = limiter.enter(&who, "m", 1).await.unwrap();
    let models = [("m".to_owned(), rates(None, None, Some(2)))].into();
    limiter.configure(limits::Options { models, ..options });
    assert_eq!(refused(&limiter, "a", 1).await.key, "limits.models.m.concurrent");
    drop(first);
    let third = limiter.enter(&who, "m", 1).await.unwrap();
    refused(&limiter, "a", 1).await;
    drop(third);
}

/// The deadline of a later call may come first: after a reload with a shorter bound, and after a restart.
#[actix::test]
async fn call_is_refused_at_its_deadline_behind_one_that_waits_longer() {
    for (of_tenant, of_model) in [(Some(1), None), (None, Some(1))] {
        let tenant_rates = rates(None, None, of_tenant);
        let limiter = limits(600_000, tenant_rates.clone(), rates(None, None, of_model));
        let who = tenant("a");
        let _first = limiter.enter(&who, "m", 1).await.unwrap();
        let mut patient = limiter.enter(&who, "m", 1);
        assert!(futures::poll!(&mut patient).is_pending());
        let options = limits::Options::clone(&limiter.0.limits.load());
        limiter.configure(limits::Options { max_wait_ms: 1, ..options });
        let refusal = refused(&limiter, "a", 1).await;
        assert!(refusal.key.ends_with(".concurrent"), "{refusal:?}");
        assert!(futures::poll!(&mut patient).is_pending());
    }
}

/// Tokens that calls in progress reserved and do not use come back before the rate refills.
#[actix::test]
async fn call_waits_for_tokens_that_a_call_in_progress_may_return() {
    for (tenant_rates, model_rates) in [
        (rates(None, Some(10_000), None), Rates::default()),
        (Rates::default(), rates(None, Some(10_000), None)),
    ] {
        let limiter = limits(10_000, tenant_rates, model_rates);
        let who = tenant("a");
        let mut first = limiter.enter(&who, "m", 10_000).await.unwrap();
        first.sent();
        let mut second = limiter.enter(&who, "m", 6_000);
        assert!(futures::poll!(&mut second).is_pending());
        // The actor has looked at it.
        limiter.stats().await.unwrap();
        let mut third = limiter.enter(&who, "m", 3_000);
        assert!(futures::poll!(&mut third).is_pending());
        limiter.stats().await.unwrap();
        first.settle(1_000);
        let (second, third) = (second.await.unwrap(), third.await.unwrap());
        drop((second, third));
        // With nothing in progress, only time helps.
        let mut all = limiter.enter(&who, "m", 9_000).await.unwrap();
        all.sent();
        all.settle(9_000);
        assert!(refused(&limiter, "a", 6_000).await.key.ends_with(".tokens_per_minute"));
    }
}

/// Attempts whose askers have gone do not count as queued before others.
#[actix::test]
async fn call_is_not_refused_for_those_that_have_gone() {
    let limiter = limits(3_500, rates(Some(60), None, None), Rates::default());
    for _ in 0..60 {
        pass(&limiter, "a", 1).await.unwrap();
    }
    let who = tenant("a");
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut question = limiter.enter(&who, "m", 1);
        assert!(futures::poll!(&mut question).is_pending());
        waiting.push(question);
    }
    assert_eq!(refused(&limiter, "a", 1).await.key, "limits.tenant.requests_per_minute");
    waiting.truncate(1);
    let mut question = limiter.enter(&who, "m", 1);
    assert!(futures::poll!(&mut question).is_pending());
    limiter.stats().await.unwrap();
    assert!(futures::poll!(&mut question).is_pending(), "it waits behind one");
}

/// What happens in a random history.
#[derive(Debug, Clone)]
enum Step {
    Enter {
        who: u8,
        tokens: u64,
    },
    /// The waiting task of a call is dropped.
    DropWaiting,
    DropUnsent,
    DropSent,
    Settle {
        used: u64,
    },
    Reload,
    Panic,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0_u8..3, 1_u64..50).prop_map(|(who, tokens)| Step::Enter { who, tokens }),
        1 => Just(Step::DropWaiting),
        1 => Just(Step::DropUnsent),
        1 => Just(Step::DropSent),
        2 => (0_u64..50).prop_map(|used| Step::Settle { used }),
        1 => Just(Step::Reload),
        1 => Just(Step::Panic),
    ]
}

const PLACES: u32 = 3;

/// Plays a history against the real actor: never more permits than places, and all are free in the end.
async fn play(steps: Vec<Step>) {
    let places = rates(None, Some(400_000_000), Some(PLACES));
    let limiter = limits(600_000, rates(Some(400_000_000), None, Some(PLACES)), places);
    let options = limits::Options::clone(&limiter.0.limits.load());
    let mut waiting = std::collections::VecDeque::new();
    let mut open = Vec::new();
    for step in steps {
        match step {
            Step::Enter { who, tokens } => {
                let (limiter, who) = (limiter.clone(), tenant(&format!("t{who}")));
                let call: std::pin::Pin<Box<dyn Future<Output = _>>> =
                    Box::pin(async move { limiter.enter(&who, "m", tokens).await.unwrap() });
                waiting.push_back(call);
            }
            Step::DropWaiting => drop(waiting.pop_front()),
            Step::DropUnsent => drop(open.pop()),
            Step::DropSent => {
                if let Some(mut permit) = open.pop() {
                    AttemptPermit::sent(&mut permit);
                }
            }
            Step::Settle { used } => {
                if let Some(mut permit) = open.pop() {
                    AttemptPermit::sent(&mut permit);
                    permit.settle(used);
                }
            }
            Step::Reload => limiter.configure(options.clone()),
            Step::Panic => panic(&limiter).await,
        }
        for _ in 0..2 {
            for mut call in std::mem::take(&mut waiting) {
                match futures::poll!(&mut call) {
                    std::task::Poll::Ready(permit) => open.push(permit),
                    std::task::Poll::Pending => waiting.push_back(call),
                }
            }
            limiter.stats().await.unwrap();
        }
        assert!(open.len() <= PLACES as usize, "{} permits", open.len());
    }
    drop((open, waiting));
    let mut all = Vec::new();
    for _ in 0..PLACES {
        all.push(limiter.enter(&tenant("t0"), "m", 1).await.unwrap());
    }
    let who = tenant("t1");
    let mut more = limiter.enter(&who, "m", 1);
    assert!(futures::poll!(&mut more).is_pending());
    limiter.stats().await.unwrap();
    assert!(futures::poll!(&mut more).is_pending(), "one place too many");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever waits, is dropped, returned and restarted in whatever order: no place is lost or returned twice.
    #[test]
    fn no_history_loses_or_repeats_a_permit(steps in prop::collection::vec(step(), 1..60)) {
        actix::System::new().block_on(play(steps));
    }
}
