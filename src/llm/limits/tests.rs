use super::*;

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn limits(max_wait_ms: u64, tenant: Rates, model: Rates) -> RateLimits {
    RateLimits::new(&Options { max_wait_ms, tenant, models: [("m".to_owned(), model)].into() })
}

fn rates(requests: Option<u32>, tokens: Option<u32>, concurrent: Option<u32>) -> Rates {
    Rates { requests_per_minute: requests, tokens_per_minute: tokens, concurrent }
}

async fn pass(limits: &RateLimits, who: &str, tokens: u64) -> Result<(), LimitRefusal> {
    let mut turn = limits.enter(&tenant(who), "m", tokens).await?;
    turn.sent();
    turn.settle(tokens);
    Ok(())
}

#[tokio::test]
async fn what_has_to_wait_longer_than_the_bound_is_refused_with_the_time_to_come_again() {
    let limits = limits(5_000, rates(Some(6), None, None), Rates::default());
    for _ in 0..6 {
        pass(&limits, "acme", 1).await.unwrap();
    }
    pass(&limits, "other", 1).await.unwrap();
    let refused = pass(&limits, "acme", 1).await.unwrap_err();
    assert_eq!(refused.retry_after.unwrap().as_secs_f64().ceil(), 10.0);
    insta::assert_snapshot!(refused, @r#"the limit of tenant "acme" is reached (`limits.tenant.requests_per_minute` = 6, this call needs 1): try again in 10 s"#);
    limits.inner.clock.advance(Duration::from_secs(10));
    pass(&limits, "acme", 1).await.unwrap();
    assert_eq!(limits.refused(), 1);
}

#[tokio::test]
async fn a_call_that_can_never_pass_is_refused_by_name_and_takes_nothing() {
    let limits = limits(0, rates(Some(1), None, None), rates(None, Some(1_000), None));
    let refused = pass(&limits, "acme", 1_001).await.unwrap_err();
    assert!(refused.retry_after.is_none() && refused.models);
    assert!(refused.to_string().contains("`limits.models.m.tokens_per_minute` = 1000"), "{refused}");
    pass(&limits, "acme", 1_000).await.expect("the refused call's request was given back");
}

#[tokio::test]
async fn tokens_that_were_not_used_are_there_for_the_next_call() {
    let limits = limits(0, Rates::default(), rates(None, Some(1_000), None));
    for _ in 0..10 {
        let mut turn = limits.enter(&tenant("acme"), "m", 900).await.unwrap();
        turn.sent();
        turn.settle(10);
    }
    assert!(pass(&limits, "acme", 901).await.is_err());
}

#[tokio::test]
async fn a_turn_that_is_dropped_before_it_is_sent_gives_everything_back() {
    let limits = limits(0, rates(Some(1), Some(10), Some(1)), Rates::default());
    for _ in 0..5 {
        drop(limits.enter(&tenant("acme"), "m", 10).await.unwrap());
    }
    let mut sent = limits.enter(&tenant("acme"), "m", 10).await.unwrap();
    sent.sent();
    drop(sent);
    let refused = limits.enter(&tenant("acme"), "m", 1).await.err().unwrap();
    assert_eq!(refused.key, "limits.tenant.requests_per_minute");
}

#[tokio::test]
async fn no_more_are_at_work_at_once_than_there_are_places() {
    let two = rates(None, None, Some(2));
    let impatient = limits(0, Rates::default(), two.clone());
    let _first = impatient.enter(&tenant("a"), "m", 1).await.unwrap();
    let _second = impatient.enter(&tenant("b"), "m", 1).await.unwrap();
    let refused = impatient.enter(&tenant("c"), "m", 1).await.err().unwrap();
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

#[tokio::test]
async fn a_call_waits_for_its_turn_within_the_bound() {
    // A thousand a second: the next one comes by itself.
    let limits = limits(600_000, rates(None, Some(60_000), None), Rates::default());
    for _ in 0..3 {
        pass(&limits, "acme", 60_000).await.unwrap();
        limits.inner.clock.advance(Duration::from_millis(59_999));
    }
    assert_eq!(limits.refused(), 0);
}
