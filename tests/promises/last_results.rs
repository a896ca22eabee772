//! The last good result of a read, where its back end fails later.

use proscenium::ChatRequest;
use proscenium::run::{RequestOptions, RunStatus, SessionId};

use super::fault_matrix::{World, names};
use crate::support::{FinishedRun, Misbehaviour};

const CACHED: &str = "policies = { unavailable = { do = [\"cached\"] } }";

/// Each place answers once.
fn answers_once(_: &str, nth: usize) -> Misbehaviour {
    match nth {
        0 => Misbehaviour::Answer,
        _ => Misbehaviour::Status(503, Vec::new()),
    }
}

async fn world(mode: &str, confirm: &'static str) -> World {
    let more = format!("{{read}}cached = {{ max_age_s = 3600 }}\n{{read}}{CACHED}");
    let set = |setup: crate::support::Setup| setup.set("execution.confirm", confirm);
    World::with(Some("basic"), Some(mode), &more, answers_once, set).await
}

async fn ask(world: &World, session: &str, user: &str) -> FinishedRun {
    say(world, session, user, "Look cell x").await
}

async fn say(world: &World, session: &str, user: &str, words: &str) -> FinishedRun {
    let session = Some(SessionId::new(session).unwrap());
    let request = world.test.engine.request(words, session);
    let request = ChatRequest { user: user.to_owned(), options: RequestOptions::default(), ..request };
    world.test.finish(world.test.engine.submit(request).await.unwrap()).await
}

fn is_dated(run: &FinishedRun) -> bool {
    run.answer.answer.contains("since the service is not available now: Look (cell: x)")
}

#[tokio::test]
async fn last_result_is_used_and_dated_for_the_same_user_only() {
    let world = world("adaptive", "unclear").await;
    let first = ask(&world, "a", "lucia").await;
    assert_eq!((first.answer.status, is_dated(&first)), (RunStatus::Completed, false));
    let later = ask(&world, "b", "lucia").await;
    assert_eq!(later.answer.status, RunStatus::Completed, "{:#?}", names(&later));
    assert!(
        is_dated(&later) && later.answer.answer.contains("x: it was answered."),
        "{}",
        later.answer.answer
    );
    assert!(later.answer.steps[0].tool_calls[0].as_of.is_some());
    assert_eq!(world.wire("Look", "x"), 2);
    let other = ask(&world, "c", "marco").await;
    assert_eq!((other.answer.status, is_dated(&other)), (RunStatus::Failed, false));
    // What was used is not kept as a new result, and goes with its conversation.
    let session = SessionId::new("a").unwrap();
    world.test.engine.erase(&world.test.tenant, &session).await.unwrap();
    let erased = ask(&world, "d", "lucia").await;
    assert_eq!((erased.answer.status, is_dated(&erased)), (RunStatus::Failed, false));
}

#[tokio::test]
async fn mode_strict_uses_no_earlier_result() {
    let world = world("strict", "unclear").await;
    ask(&world, "a", "lucia").await;
    let later = ask(&world, "b", "lucia").await;
    assert_eq!((later.answer.status, is_dated(&later)), (RunStatus::Failed, false));
}

#[tokio::test]
async fn write_that_rests_on_an_earlier_result_is_asked_first_under_any_policy() {
    for confirm in ["unclear", "never"] {
        let world = world("adaptive", confirm).await;
        let words = "Look cell x then Book";
        let first = say(&world, "a", "lucia", words).await;
        assert_eq!(first.answer.status, RunStatus::Completed, "{confirm}: {:#?}", first.answer);
        let booked = || world.wire("Book", "R-4711");
        assert_eq!(booked(), 1, "{confirm}");
        let later = say(&world, "b", "lucia", words).await;
        assert_eq!(later.answer.status, RunStatus::NeedsInput, "{confirm}: {:#?}", later.answer);
        assert!(is_dated(&later), "{confirm}: {}", later.answer.answer);
        assert_eq!(booked(), 1, "{confirm}: nobody said yes");
        let asked = later.state.steps[&2].error.as_ref().unwrap();
        assert_eq!(asked.code, "confirm.required");
    }
}

#[tokio::test]
async fn earlier_result_grounds_nothing_in_later_turns() {
    let world = world("adaptive", "unclear").await;
    for (session, status) in [("a", RunStatus::Completed), ("b", RunStatus::NeedsInput)] {
        ask(&world, session, "lucia").await;
        let later = say(&world, session, "lucia", "Book that").await;
        assert_eq!(later.answer.status, status, "{session}: {:#?}", later.answer);
    }
    assert_eq!(world.wire("Book", "R-4711"), 1, "nobody confirmed the second one");
}
