//! Levels and modes: what `basic` and `strict` promise, and how they are configured.

use proscenium::adapt::capabilities_table;
use proscenium::run::{RunStatus, SceneMode, SessionId};
use serde_json::{Value, json};

use crate::support::planner_engine::{
    ModelRules, QuestionKind, Town, arguments_of, more, plan, requests, step,
};
use crate::support::{Scripted, ScriptedLlm, section};

/// A step with prepared calls.
fn prepared(number: u32, scene: &str, tool: &str, arguments: &Value, depends: Value) -> Value {
    let mut step = step(number, scene, &[tool], depends);
    step["prepared_calls"] = json!([{"tool": tool, "arguments": arguments.to_string()}]);
    step["if_needed"] = json!([]);
    step
}

fn both() -> Value {
    plan(json!([
        prepared(1, "Library", "FindBook", &arguments_of("FindBook"), Value::Null),
        prepared(2, "Parking", "BookSpace", &arguments_of("BookSpace"), json!(1)),
    ]))
}

const REQUEST: &str = "Find the book Dune and then book a parking space for tomorrow for the plate AB123CD.";

async fn basic(llm: &ScriptedLlm) -> Town {
    Town::open(llm, |config| {
        config.execution.level = Some(proscenium::adapt::ExecutionLevel::Basic);
        config.execution.mode = None;
        config.execution.scenes = SceneMode::Model;
        config.planning.prepare = proscenium::run::PrepareMode::Never;
    })
    .await
}

#[test]
fn table_of_capabilities_is_that_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/internals/failures.md");
    let text = std::fs::read_to_string(path).unwrap();
    let table = capabilities_table();
    assert_eq!(table.lines().count(), 14);
    assert!(text.contains(&table), "{path} needs this table:\n{table}");
}

#[tokio::test]
async fn basic_asks_one_model_question_for_two_scenes() {
    let llm = ModelRules::of(both()).start();
    let town = basic(&llm).await;
    let run = town.ask(REQUEST).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    assert_eq!(town.log.names(), ["FindBook", "BookSpace"]);
    assert_eq!(llm.count(), 1, "only the plan is asked for");
    assert!(run.answer.answer.contains("shelf B4"), "{}", run.answer.answer);
    let asked = &requests(&llm, QuestionKind::Plan)[0];
    assert!(asked.to_string().contains("Nothing is asked later"), "{asked:#}");
}

#[tokio::test]
async fn basic_asks_the_user_where_the_plan_prepared_nothing_usable() {
    let mut unprepared = plan(json!([step(1, "Library", &["FindBook"], Value::Null)]));
    unprepared["steps"][0]["prepared_calls"] = json!([{"tool": "FindBook", "arguments": "{\"title\": 5}"}]);
    let llm = ModelRules::of(unprepared).start();
    let town = basic(&llm).await;
    let run = town.ask("Find the book Dune.").await;
    assert_eq!(llm.count(), 1);
    // The title is missing, and the user is no model.
    assert_eq!(run.answer.status, RunStatus::NeedsInput, "{run:#?}");
    assert!(town.log.names().is_empty());
}

#[tokio::test]
async fn basic_asks_for_missing_values_and_the_next_message_completes_the_request() {
    let llm = ModelRules::of(Value::Null)
        .plan(|request, nth| {
            let mut known = json!({"day": "2026-05-05"});
            if nth > 0 {
                assert!(section(request, "pending").unwrap().contains("plate"), "{request:#}");
                known["plate"] = json!("AB123CD");
            }
            let call = prepared(1, "Parking", "BookSpace", &known, Value::Null);
            Scripted::forced(request, plan(json!([call])))
        })
        .start();
    let town = basic(&llm).await;
    let session = || Some(SessionId::new("s").unwrap());
    let run = town.ask_in(session(), "Book a parking space for tomorrow.").await;
    assert_eq!(run.answer.status, RunStatus::NeedsInput, "{run:#?}");
    assert!(town.log.names().is_empty());
    let run = town.ask_in(session(), "The plate is AB123CD: book it.").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    assert_eq!(town.log.names(), ["BookSpace"]);
    assert_eq!(llm.count(), 2, "one plan for each message");
}

#[tokio::test]
async fn basic_never_makes_a_conditional_write_by_itself() {
    let mut planned =
        plan(json!([prepared(1, "Parking", "BookSpace", &arguments_of("BookSpace"), Value::Null)]));
    planned["steps"][0]["if_needed"] = json!(["BookSpace"]);
    let llm = ModelRules::of(planned).start();
    let town = basic(&llm).await;
    let run = town.ask("Book a parking space for tomorrow for AB123CD if it rains.").await;
    assert_eq!(run.answer.status, RunStatus::NeedsInput, "{run:#?}");
    assert!(town.log.names().is_empty());
    assert!(run.answer.answer.contains("BookSpace"), "{}", run.answer.answer);
}

#[tokio::test]
async fn greeting_at_basic_is_answered_by_the_plan_and_completes() {
    let mut planned = plan(json!([]));
    planned["answer"] = json!("Hello, what can be done for you?");
    let llm = ModelRules::of(planned).start();
    let town = basic(&llm).await;
    let run = town.ask("Good day").await;
    assert_eq!((run.answer.status, llm.count()), (RunStatus::Completed, 1), "{run:#?}");
    assert_eq!(run.answer.answer, "Hello, what can be done for you?");
}

#[tokio::test]
async fn conversation_of_ten_messages_at_basic_asks_for_ten_plans() {
    let llm = ModelRules::of(both()).start();
    let town = basic(&llm).await;
    for _ in 0..10 {
        let run = town.ask_in(Some(SessionId::new("s").unwrap()), REQUEST).await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    }
    assert_eq!(llm.count(), 10, "the summary of the conversation is asked of no model");
}

#[tokio::test]
async fn strict_does_not_plan_again() {
    for (mode, plans) in [(None, 2), (Some(proscenium::adapt::ExecutionMode::Strict), 1)] {
        let llm = ModelRules::of(Value::Null)
            .plan(|request, nth| Scripted::forced(request, if nth == 0 { both() } else { plan(json!([])) }))
            .check(|request, nth| match nth {
                0 => Scripted::forced(request, more("the weather")),
                _ => Scripted::forced(request, crate::support::planner_engine::final_verdict()),
            })
            .start();
        let town = Town::open(&llm, |config| config.execution.mode = mode).await;
        let run = town.ask(REQUEST).await;
        assert_eq!(requests(&llm, QuestionKind::Plan).len(), plans, "{mode:?} {run:#?}");
        assert_eq!(run.answer.status, RunStatus::Partial, "{run:#?}");
    }
}
