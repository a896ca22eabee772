//! Alternative tools: what a back end sees of the call that takes the place of a failed one.

use proscenium::CallOutcome;
use proscenium::run::RunStatus;

use super::fault_matrix::{World, names};
use crate::support::Misbehaviour;

/// Each tool's alternative is its twin.
const ALTERNATIVE: &str = "alternative = { tool = \"{tool}Elsewhere\", arguments = { cell = \"/arguments/cell\" } }\n\
    policies = { unavailable = { do = [\"alternative\"] }, rate_limit = { do = [\"alternative\"] } }";

/// The first back end never works; its twin does.
fn first_is_down(place: &str, _: usize) -> Misbehaviour {
    match (place.contains("Elsewhere"), place.rsplit('/').next()) {
        (true, _) => Misbehaviour::Answer,
        (false, Some("429")) => Misbehaviour::Status(429, Vec::new()),
        (false, _) => Misbehaviour::Status(503, Vec::new()),
    }
}

async fn world(mode: &str, confirm: &'static str) -> World {
    let set = |setup: crate::support::Setup| setup.set("execution.confirm", confirm);
    World::with(Some("basic"), Some(mode), ALTERNATIVE, first_is_down, set).await
}

#[tokio::test]
async fn alternative_answers_in_the_same_request_and_asks_no_model() {
    let world = world("adaptive", "unclear").await;
    let run = world.ask("Look", "503").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!((world.wire("Look", "503"), world.wire("LookElsewhere", "503")), (1, 1));
    assert_eq!(run.answer.answer, "503: it was answered.");
    let [first, second] = run.answer.steps[0].tool_calls.as_slice() else { panic!("{:#?}", run.answer) };
    assert_eq!((first.outcome, first.by.as_deref()), (CallOutcome::Failed, Some("LookElsewhere")));
    assert_eq!((second.outcome, second.tool.as_str()), (CallOutcome::Ok, "LookElsewhere"));
    assert!(names(&run).contains(&"adapted"));
    assert_eq!(world.llm.count(), 1, "only the plan is asked for");
}

#[tokio::test]
async fn mode_strict_calls_no_alternative() {
    let world = world("strict", "unclear").await;
    let run = world.ask("Look", "503").await;
    assert_eq!(run.answer.status, RunStatus::Failed);
    assert_eq!((world.wire("Look", "503"), world.wire("LookElsewhere", "503")), (1, 0));
}

#[tokio::test]
async fn alternative_that_writes_is_asked_first_under_any_policy() {
    for confirm in ["unclear", "never"] {
        let world = world("adaptive", confirm).await;
        let asked = world.ask("Book", "429").await;
        assert_eq!(asked.answer.status, RunStatus::NeedsInput, "{confirm}: {:#?}", names(&asked));
        assert!(asked.answer.answer.contains("BookElsewhere"), "{}", asked.answer.answer);
        assert_eq!((world.wire("Book", "429"), world.wire("BookElsewhere", "429")), (1, 0), "{confirm}");
        let done = world.test.chat("Book-429", "yes").await;
        assert_eq!(done.answer.status, RunStatus::Completed, "{confirm}: {:#?}", done.answer);
        assert_eq!((world.wire("Book", "429"), world.wire("BookElsewhere", "429")), (1, 1), "{confirm}");
    }
}

#[tokio::test]
async fn write_that_may_be_done_is_referred_to_a_person_and_not_done_elsewhere() {
    let world = world("adaptive", "unclear").await;
    let run = world.ask("Book", "503").await;
    assert_eq!(run.answer.approvals.len(), 1, "{:#?}", names(&run));
    assert_eq!((world.wire("Book", "503"), world.wire("BookElsewhere", "503")), (1, 0));
}
