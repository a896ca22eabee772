//! Retries, answers that are fetched later, and erased conversations.

use std::task::Poll;

use jiff::{SignedDuration, Timestamp};
use proscenium::run::{Fault, RunId, RunStatus, SessionId, TenantId};
use proscenium::{Answer, ChatRequest, Submitted};
use serde_json::json;

use super::conversations::{GatedModel, desk_setup, held, remembered};
use super::support::{Setup, TestEngine};

const WEATHER: &str = "Che tempo fa a Milano?";

fn request_with_key(test: &TestEngine, key: &str, words: &str, session: Option<&str>) -> ChatRequest {
    let session = session.map(|name| SessionId::new(name).unwrap());
    ChatRequest { idempotency: Some(key.to_owned()), ..test.engine.request(words, session) }
}

/// The run, its conversation, and whether it had been started before.
async fn submit_once(test: &TestEngine, request: ChatRequest) -> Result<(RunId, SessionId, bool), Fault> {
    Ok(match test.engine.submit_once(request).await? {
        Submitted::New(ticket) => {
            let (run, session) = (ticket.run, ticket.session.clone());
            test.finish(ticket).await;
            (run, session, false)
        }
        Submitted::Duplicate { run, session, .. } => (run, session, true),
    })
}

async fn erase(test: &TestEngine, session: &str) -> Result<bool, Fault> {
    test.engine.erase(&test.tenant, &SessionId::new(session).unwrap()).await
}

async fn stored_answer(test: &TestEngine, run: RunId) -> Answer {
    test.engine.answer_of(&test.tenant, run).await.unwrap().unwrap()
}

async fn runs_of(test: &TestEngine, session: &str) -> usize {
    let filter = proscenium::store::RunFilter {
        session: Some(SessionId::new(session).unwrap()),
        ..Default::default()
    };
    test.engine.store().runs(&test.tenant, &filter, &proscenium::store::Page::default()).await.unwrap().len()
}

#[tokio::test]
async fn retry_of_same_request_returns_first_answer() {
    let test = Setup::offline().start().await;
    let words = "Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno";
    let (run, session, before) =
        submit_once(&test, request_with_key(&test, "k-1", words, None)).await.unwrap();
    assert!(!before);
    assert_eq!(
        submit_once(&test, request_with_key(&test, "k-1", words, None)).await.unwrap(),
        (run, session.clone(), true)
    );
    let plain = test.engine.submit(request_with_key(&test, "k-1", words, None)).await.err().unwrap();
    assert_eq!(plain.code, "request.duplicate");
    let dir = test.stop().await;

    let test = Setup::offline().on(&dir).start().await;
    assert_eq!(
        submit_once(&test, request_with_key(&test, "k-1", words, None)).await.unwrap(),
        (run, session, true)
    );
    assert_eq!(test.vacations().await.len(), 1);
    assert_eq!(stored_answer(&test, run).await.status, RunStatus::Completed);
    // Without a key, and under another tenant's, it is a different request.
    test.engine.submit(test.engine.request(WEATHER, None)).await.unwrap();
    let other = ChatRequest {
        tenant: TenantId::new("other").unwrap(),
        ..request_with_key(&test, "k-1", "Che tempo fa a Roma?", None)
    };
    assert!(matches!(test.engine.submit_once(other).await.unwrap(), Submitted::New(_)));
}

#[tokio::test]
async fn different_request_under_the_same_key_is_refused() {
    let test = Setup::offline().start().await;
    let first = || request_with_key(&test, "k-1", WEATHER, Some("s-1"));
    let (run, ..) = submit_once(&test, first()).await.unwrap();
    for other in [
        ChatRequest { message: "Che tempo fa a Roma?".to_owned(), ..first() },
        ChatRequest { session: None, ..first() },
        ChatRequest { session: Some(SessionId::new("s-2").unwrap()), ..first() },
        ChatRequest { history: Some(Vec::new()), ..first() },
        ChatRequest { plan_only: true, ..first() },
    ] {
        let fault = submit_once(&test, other).await.unwrap_err();
        assert_eq!(fault.code, "request.idempotency_conflict");
        assert!(fault.message.contains(&run.to_string()), "{fault}");
    }
    assert_eq!(submit_once(&test, first()).await.unwrap().0, run);
    assert_eq!(runs_of(&test, "s-1").await, 1);
}

#[tokio::test]
async fn one_of_equal_simultaneous_requests_is_accepted() {
    let test = Setup::offline().start().await;
    let requests = (0..32).map(|_| submit_once(&test, request_with_key(&test, "k-1", WEATHER, None)));
    let all: Vec<_> =
        futures::future::join_all(requests).await.into_iter().map(|finished| finished.unwrap()).collect();
    assert_eq!(all.iter().filter(|(.., before)| !before).count(), 1);
    assert!(all.iter().all(|(run, session, _)| (run, session) == (&all[0].0, &all[0].1)));
}

#[tokio::test]
async fn disconnected_caller_releases_its_key() {
    let test = Setup::offline().start().await;
    {
        let mut gone =
            Box::pin(test.engine.submit_once(request_with_key(&test, "k-1", WEATHER, Some("s-1"))));
        futures::future::poll_fn(|cx| {
            assert!(gone.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
    }
    assert!(submit_once(&test, request_with_key(&test, "k-1", WEATHER, Some("s-1"))).await.unwrap().2);
    assert_eq!(runs_of(&test, "s-1").await, 1);
}

#[tokio::test]
async fn refused_request_leaves_its_key_unused() {
    let GatedModel { llm, arrived, gate } = held();
    let test = desk_setup(&llm).set("execution.max_queued_requests", 1).start().await;
    let long = "x".repeat(256);
    for key in ["", "a\nb", "caffè", long.as_str()] {
        let fault = submit_once(&test, request_with_key(&test, key, "look", None)).await.unwrap_err();
        assert_eq!(fault.code, "request.idempotency_key", "{key:?}");
    }
    assert_eq!(
        submit_once(&test, request_with_key(&test, "k-1", " ", None)).await.unwrap_err().code,
        "request.empty"
    );
    let first = test.submit("s-1", "held").await.unwrap();
    arrived.wait_open().await;
    let second = test.submit("s-1", "look").await.unwrap();
    let full = submit_once(&test, request_with_key(&test, "k-1", "look", Some("s-1"))).await.unwrap_err();
    assert_eq!(full.code, "session.queue_full");
    gate.open();
    test.finish(first).await;
    test.finish(second).await;
    assert!(!submit_once(&test, request_with_key(&test, "k-1", "look", Some("s-1"))).await.unwrap().2);
}

#[tokio::test]
async fn answer_is_available_later_to_its_tenant_only() {
    let GatedModel { llm, arrived, gate } = held();
    let test = desk_setup(&llm).start().await;
    let finished = test.chat("s-1", "look").await;
    let again = stored_answer(&test, finished.answer.run_id).await;
    assert!(again.timings.total_ms > 0.0 && again.timings.overhead_ms <= again.timings.total_ms);
    assert_eq!(Answer { timings: finished.answer.timings, ..again }, finished.answer);

    let ticket = test.submit("s-1", "held").await.unwrap();
    arrived.wait_open().await;
    let queued = test.submit("s-1", "look").await.unwrap();
    let running = stored_answer(&test, ticket.run).await;
    assert_eq!((running.status, running.answer.as_str()), (RunStatus::Running, ""));
    assert_eq!(stored_answer(&test, queued.run).await.status, RunStatus::Queued);
    let other = TenantId::new("other").unwrap();
    assert_eq!(test.engine.answer_of(&other, ticket.run).await.unwrap(), None);
    gate.open();
    for ticket in [ticket, queued] {
        let run = ticket.run;
        let live = test.finish(ticket).await.answer;
        assert_eq!(json!(stored_answer(&test, run).await.steps), json!(live.steps));
    }
    assert_eq!(test.engine.answer_of(&test.tenant, RunId(uuid::Uuid::now_v7())).await.unwrap(), None);
}

#[tokio::test]
async fn erased_conversation_starts_empty_loaded_or_unloaded() {
    for idle in [std::time::Duration::ZERO, std::time::Duration::from_secs(3600)] {
        let test = Setup::offline().idle(idle).start().await;
        let words = "Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno";
        let (run, ..) = submit_once(&test, request_with_key(&test, "k-1", words, Some("s-1"))).await.unwrap();
        test.chat("s-2", WEATHER).await;
        while idle.is_zero() && test.engine.awake_sessions().await > 0 {
            tokio::task::yield_now().await;
        }
        assert!(erase(&test, "s-1").await.unwrap());
        assert!(!erase(&test, "s-1").await.unwrap());
        assert!(test.session("s-1").await.is_empty());
        assert_eq!(test.engine.answer_of(&test.tenant, run).await.unwrap(), None);
        // What its tools wrote belongs to the company and stays.
        assert_eq!(test.vacations().await.len(), 1);
        assert_eq!(test.session("s-2").await.len(), 1);

        let finished = test.chat("s-1", "E a Roma?").await;
        assert!(remembered(&finished).is_empty());
        assert_eq!(remembered(&test.chat("s-1", WEATHER).await), ["E a Roma?"]);
        // The sequence numbers of the stream have no gap.
        assert_eq!(test.session("s-1").await.len(), 2);
        assert!(!submit_once(&test, request_with_key(&test, "k-1", WEATHER, Some("s-1"))).await.unwrap().2);
    }
}

#[tokio::test]
async fn busy_conversation_is_not_erased() {
    let GatedModel { llm, arrived, gate } = held();
    let test = desk_setup(&llm).start().await;
    let first = test.submit("s-1", "held").await.unwrap();
    arrived.wait_open().await;
    assert_eq!(erase(&test, "s-1").await.unwrap_err().code, "store.session_busy");
    let second = test.submit("s-1", "look").await.unwrap();
    assert_eq!(erase(&test, "s-1").await.unwrap_err().code, "store.session_busy");
    assert!(!erase(&test, "s-9").await.unwrap());
    let other = TenantId::new("other").unwrap();
    assert!(!test.engine.erase(&other, &SessionId::new("s-1").unwrap()).await.unwrap());
    gate.open();
    test.finish(first).await;
    assert_eq!(remembered(&test.finish(second).await), ["held"]);
    assert!(erase(&test, "s-1").await.unwrap());
}

#[tokio::test]
async fn concurrent_requests_and_erasures_keep_the_conversation_consistent() {
    let GatedModel { llm, .. } = held();
    for idle in [std::time::Duration::ZERO, std::time::Duration::from_secs(3600)] {
        let test = desk_setup(&llm).idle(idle).start().await;
        let rub = async {
            for _ in 0..6 {
                match erase(&test, "s-1").await {
                    Ok(_) => {}
                    Err(fault) => assert_eq!(fault.code, "store.session_busy"),
                }
                tokio::task::yield_now().await;
            }
        };
        // A run's events may be erased before they are read: its answer counts here.
        let talk = async {
            for _ in 0..3 {
                let answer = test.submit("s-1", "look").await.unwrap().answer().await.unwrap();
                assert_eq!(answer.status, RunStatus::Completed);
            }
        };
        tokio::join!(talk, rub);
        // After many turns a summary may be in progress, which does not block the erasure.
        for _ in 0..21 {
            test.chat("s-1", "look").await;
        }
        assert!(erase(&test, "s-1").await.unwrap());
        let finished = test.chat("s-1", "look").await;
        assert!(remembered(&finished).is_empty());
        assert_eq!(test.session("s-1").await.len(), 1);
    }
}

#[tokio::test]
async fn unreadable_conversation_can_be_erased() {
    let test = Setup::offline().idle(std::time::Duration::ZERO).start().await;
    test.chat("s-1", WEATHER).await;
    test.chat("s-1", "E a Roma?").await;
    while test.engine.awake_sessions().await > 0 {
        tokio::task::yield_now().await;
    }
    sqlx::query("DELETE FROM journal WHERE stream LIKE 'session:%' AND seq = 1")
        .execute(test.engine.store().pool())
        .await
        .unwrap();
    assert_eq!(test.submit("s-1", WEATHER).await.err().unwrap().code, "store.gap");
    assert!(erase(&test, "s-1").await.unwrap());
    assert!(remembered(&test.chat("s-1", WEATHER).await).is_empty());
}

#[tokio::test]
async fn conversations_are_kept_no_longer_than_configured() {
    let test = Setup::offline().set("store.keep_sessions_days", 7).start().await;
    test.chat("s-1", WEATHER).await;
    // A plan alone adds no turn, but is a conversation.
    let request = ChatRequest { plan_only: true, ..test.engine.request(WEATHER, None) };
    test.engine.chat(request).await.unwrap();
    let day = |days: i64| Timestamp::now() + SignedDuration::from_hours(24 * days);
    assert_eq!(test.engine.expire_sessions(day(6)).await.unwrap(), 0);
    assert_eq!(test.session("s-1").await.len(), 1);
    assert_eq!(test.engine.expire_sessions(day(8)).await.unwrap(), 2);
    assert!(test.session("s-1").await.is_empty());
    assert_eq!(test.engine.expire_sessions(day(8)).await.unwrap(), 0);

    test.chat("s-1", WEATHER).await;
    test.chat("s-2", WEATHER).await;
    // As if this conversation had been idle for a long time.
    for sql in [
        "UPDATE runs SET updated = 0 WHERE session = 's-1'",
        "UPDATE sessions SET updated = 0 WHERE session = 's-1'",
    ] {
        sqlx::query(sql).execute(test.engine.store().pool()).await.unwrap();
    }
    let dir = test.stop().await;
    // Kept forever by default.
    let test = Setup::offline().on(&dir).start().await;
    assert_eq!(test.engine.expire_sessions(day(10_000)).await.unwrap(), 0);
    let dir = test.stop().await;
    // Erased at the start.
    let test = Setup::offline().on(&dir).set("store.keep_sessions_days", 7).start().await;
    while !test.session("s-1").await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(test.session("s-2").await.len(), 1);
}
