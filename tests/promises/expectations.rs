//! Silent failures: results that a tool's expectations reject.

use proscenium::CallOutcome;
use proscenium::run::{Event, RunStatus};

use super::fault_matrix::{World, names};
use crate::support::Misbehaviour;

/// No result has what is expected.
const EXPECT: &str = "expect = { not_empty = [\"/missing\"] }";

async fn world(mode: Option<&str>, more: &str) -> World {
    let level = mode.map(|_| "basic");
    World::with(level, mode, more, |_, _| Misbehaviour::Answer, |setup| setup).await
}

#[tokio::test]
async fn read_with_another_result_than_expected_has_failed() {
    let alternative = "alternative = { tool = \"{tool}Elsewhere\", arguments = { cell = \"/arguments/cell\" } }\n\
        policies = { bad_data = { do = [\"alternative\"] } }";
    let world = world(Some("adaptive"), &format!("{EXPECT}\n{alternative}")).await;
    let run = world.ask("Look", "x").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!((world.wire("Look", "x"), world.wire("LookElsewhere", "x")), (1, 1));
    let first = &run.answer.steps[0].tool_calls[0];
    assert_eq!(first.error.as_ref().unwrap().code, "tool.postcondition");
    assert_eq!(first.result, None, "what was rejected is shown to nobody");
    let rejected = run.events.iter().find_map(|event| match &event.body {
        Event::ToolCompleted { notes: Some(notes), .. } => Some(notes.clone()),
        _ => None,
    });
    let rejected = rejected.unwrap();
    assert_eq!(rejected.breaches, ["/missing is empty"]);
    assert!(rejected.rejected.is_some(), "it is kept in the journal");
}

#[tokio::test]
async fn write_with_another_result_than_expected_was_done_and_the_answer_says_so() {
    for tool in ["Book", "Pay"] {
        let world = world(Some("adaptive"), EXPECT).await;
        let run = world.ask(tool, "x").await;
        assert_eq!(run.answer.status, RunStatus::Partial, "{:#?}", names(&run));
        assert_eq!(world.wire(tool, "x"), 1, "it is not repeated");
        let call = &run.answer.steps[0].tool_calls[0];
        assert_eq!((call.outcome, call.unexpected_result), (CallOutcome::Ok, true));
        let says = format!("{tool} (cell: x): done, but its result is not as expected");
        assert!(run.answer.answer.contains(&says), "{}", run.answer.answer);
        assert!(names(&run).contains(&"unexpected"));
    }
}

#[tokio::test]
async fn without_level_and_mode_results_are_not_compared() {
    let world = world(None, EXPECT).await;
    let run = world.ask("Look", "x").await;
    assert_eq!(run.answer.steps[0].tool_calls[0].outcome, CallOutcome::Ok);
    assert!(!names(&run).contains(&"unexpected"));
}
