//! Calls that a plan prepares (`planning.prepare = "always"`): made without asking the scene where they are
//! complete, valid and allowed, and otherwise by the scene, which is told why.

use proscenium::plan::StepStatus;
use proscenium::run::{ConfirmPolicy, PrepareMode, RunStatus, SceneMode};
use serde_json::{Value, json};

use crate::support::planner_engine::{
    AnsweredRun, ModelRules, QuestionKind, Town, arguments_of, has_results, plan, requests, step,
};
use crate::support::{Scripted, ScriptedLlm, section};

const REQUEST: &str = "Find the book Dune and then book a parking space for tomorrow for the plate AB123CD.";

/// A prepared call as models write it: its arguments are JSON as text.
fn call(tool: &str, arguments: &Value) -> Value {
    json!({"tool": tool, "arguments": arguments.to_string()})
}

fn prepared(mut step: Value, calls: Vec<Value>) -> Value {
    step["prepared_calls"] = json!(calls);
    step
}

/// Both steps of the request, with these calls for the second one.
fn both(second: Vec<Value>) -> Value {
    plan(json!([
        prepared(
            step(1, "Library", &["FindBook"], Value::Null),
            vec![call("FindBook", &arguments_of("FindBook"))]
        ),
        prepared(step(2, "Parking", &["BookSpace"], json!(1)), second),
    ]))
}

async fn open(llm: &ScriptedLlm) -> Town {
    Town::open(llm, |config| config.planning.prepare = PrepareMode::Always).await
}

fn scene_questions(llm: &ScriptedLlm) -> Vec<String> {
    let asked = requests(llm, QuestionKind::Scene);
    asked.iter().map(|request| section(request, "scene").unwrap_or_default()).collect()
}

fn statuses(run: &AnsweredRun) -> Vec<StepStatus> {
    run.answer.steps.iter().map(|step| step.status).collect()
}

#[tokio::test]
async fn two_scenes_take_two_model_calls() {
    let llm = ModelRules::of(both(vec![call("BookSpace", &arguments_of("BookSpace"))])).start();
    let town = open(&llm).await;
    let run = town.ask(REQUEST).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    assert_eq!(town.log.names(), ["FindBook", "BookSpace"]);
    assert_eq!(llm.requests().len(), 2, "one plan, and one check with the answer");
    // The check sees the calls with their arguments and results.
    let executed = section(&requests(&llm, QuestionKind::Check)[0], "executed").unwrap();
    for seen in ["AB123CD", "2026-05-05", "shelf B4", "17"] {
        assert!(executed.contains(seen), "{seen}: {executed}");
    }
}

#[tokio::test]
async fn schema_of_a_plan_stays_strict_with_prepared_calls() {
    let llm = ModelRules::of(both(Vec::new())).start();
    let town = open(&llm).await;
    town.ask(REQUEST).await;
    let tool = &requests(&llm, QuestionKind::Plan)[0]["tools"][0]["function"];
    assert_eq!(tool["strict"], true);
    let step = &tool["parameters"]["properties"]["steps"]["items"]["anyOf"][0];
    assert!(step["required"].as_array().unwrap().contains(&json!("prepared_calls")), "{step:#}");
    // Nothing was prepared, so each scene is asked as before.
    assert_eq!(town.log.names(), ["FindBook", "BookSpace"]);
}

#[tokio::test]
async fn unusable_prepared_calls_are_left_to_the_scene_and_never_made() {
    let book = arguments_of("BookSpace");
    let unusable = [
        ("wrong type", call("BookSpace", &json!({"day": 5, "plate": "AB123CD"}))),
        ("missing argument", call("BookSpace", &json!({"plate": "AB123CD"}))),
        ("no JSON", json!({"tool": "BookSpace", "arguments": "tomorrow, AB123CD"})),
        ("another scene's tool", call("ReserveBook", &json!({"title": "Dune", "days": 7}))),
        ("unknown tool", call("Teleport", &book)),
        (
            "reference into nowhere",
            call(
                "BookSpace",
                &json!({"day": {"$ref": {"step": 9, "tool": "FindBook", "pointer": "/day"}}, "plate": "AB123CD"}),
            ),
        ),
        (
            "reference to a later step",
            call(
                "BookSpace",
                &json!({"day": {"$ref": {"step": 2, "tool": "BookSpace", "pointer": "/day"}}, "plate": "AB123CD"}),
            ),
        ),
        (
            "pointer into nowhere",
            call(
                "BookSpace",
                &json!({"day": {"$ref": {"step": 1, "tool": "FindBook", "pointer": "/day"}}, "plate": "AB123CD"}),
            ),
        ),
        (
            "value of another type",
            call(
                "BookSpace",
                &json!({"day": {"$ref": {"step": 1, "tool": "FindBook", "pointer": ""}}, "plate": "AB123CD"}),
            ),
        ),
        ("no object", json!("BookSpace")),
    ];
    for (what, written) in unusable {
        let llm = ModelRules::of(both(vec![written])).start();
        let town = open(&llm).await;
        let run = town.ask(REQUEST).await;
        assert_eq!(statuses(&run), [StepStatus::Completed; 2], "{what}: {run:#?}");
        let calls = town.log.calls();
        assert_eq!(calls[1..], [("BookSpace".to_owned(), book.clone())], "{what}");
        assert_eq!(requests(&llm, QuestionKind::Plan).len(), 1, "{what}: no repair of the plan");
        assert!(scene_questions(&llm).iter().all(|scene| scene == "Parking"), "{what}");
    }
}

#[tokio::test]
async fn scene_is_told_which_prepared_call_was_not_made_and_why() {
    let missing = call("BookSpace", &json!({"plate": "AB123CD"}));
    let llm = ModelRules::of(both(vec![missing])).start();
    let town = open(&llm).await;
    town.ask(REQUEST).await;
    let asked = &requests(&llm, QuestionKind::Scene)[0];
    let unprepared = section(asked, "unprepared").unwrap();
    assert!(unprepared.contains("BookSpace") && unprepared.contains("day"), "{unprepared}");
}

#[tokio::test]
async fn prepared_call_that_cannot_be_made_beside_one_that_can_is_not_forgotten() {
    for bad in [
        call("BookSpace", &json!({"day": 5, "plate": "ZZ999ZZ"})),
        json!({"tool": "BookSpace", "arguments": "the day after, ZZ999ZZ"}),
    ] {
        let llm = ModelRules::of(both(vec![call("BookSpace", &arguments_of("BookSpace")), bad.clone()]))
            .scene(|request, _| {
                assert!(section(request, "unprepared").unwrap().contains("BookSpace"), "{request:#}");
                Scripted::Text("Space 17 is booked.".into())
            })
            .start();
        let town = open(&llm).await;
        let run = town.ask(REQUEST).await;
        assert_eq!(town.log.names(), ["FindBook", "BookSpace"], "{bad}: {run:#?}");
        assert_eq!(scene_questions(&llm), ["Parking"], "{bad}");
    }
}

#[tokio::test]
async fn expected_write_that_was_not_prepared_asks_the_scene_unless_it_may_be_unnecessary() {
    for (optional, asked) in [(false, 2), (true, 0)] {
        let find = vec![call("FindBook", &arguments_of("FindBook"))];
        let mut written = prepared(step(1, "Library", &["FindBook", "ReserveBook"], Value::Null), find);
        written["if_needed"] = if optional { json!(["reservebook"]) } else { json!([]) };
        let llm = ModelRules::of(plan(json!([written])))
            .scene(|request, nth| {
                assert!(section(request, "unprepared").unwrap().contains("ReserveBook"));
                match nth {
                    0 => Scripted::call("ReserveBook", arguments_of("ReserveBook")),
                    _ => Scripted::Text("Reserved.".to_owned()),
                }
            })
            .start();
        let town = open(&llm).await;
        let run = town.ask("Find the book Dune, and reserve it for 7 days if it is there.").await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
        assert_eq!(scene_questions(&llm).len(), asked, "optional: {optional}");
        assert_eq!(town.log.names().contains(&"ReserveBook".to_owned()), !optional);
    }
}

#[tokio::test]
async fn prepared_write_that_nobody_asked_for_is_not_made() {
    let asked = "How many parking spaces are free tomorrow?";
    let only = plan(json!([prepared(
        step(1, "Parking", &["FreeSpaces", "BookSpace"], Value::Null),
        vec![
            call("FreeSpaces", &json!({"day": "2026-05-05"})),
            call("BookSpace", &json!({"day": "2026-05-05", "plate": "ZZ999ZZ"})),
        ]
    )]));
    let rules = ModelRules::of(only).scene(|_, _| Scripted::Text("3 spaces are free.".into()));
    let llm = rules.start();
    let town = Town::open(&llm, |config| {
        config.planning.prepare = PrepareMode::Always;
        config.execution.confirm = ConfirmPolicy::Unclear;
    })
    .await;
    town.ask(asked).await;
    assert_eq!(town.log.names(), ["FreeSpaces"]);
}

#[tokio::test]
async fn failing_prepared_call_is_left_to_the_scene_with_its_error() {
    // A lookup that finds nothing is no result that ends a step either.
    let llm = ModelRules::of(both(vec![
        call("BookSpace", &arguments_of("BookSpace")),
        call("BookSpace", &json!({"day": "2026-05-05"})),
    ]))
    .scene(|request, _| {
        assert!(has_results(request), "{request:#}");
        Scripted::Text("Space 17 is booked.".into())
    })
    .start();
    let town = open(&llm).await;
    let run = town.ask(REQUEST).await;
    // The write was made once, and the scene saw its result before it was asked about the rest.
    assert_eq!(town.log.names(), ["FindBook", "BookSpace"], "{run:#?}");
    assert_eq!(scene_questions(&llm), ["Parking"]);
}

#[tokio::test]
async fn reference_is_the_value_of_an_earlier_result() {
    let second = json!({"title": {"$ref": {"step": 1, "tool": "FindBook", "pointer": "/shelf"}}});
    let steps = plan(json!([
        prepared(
            step(1, "Library", &["FindBook"], Value::Null),
            vec![call("FindBook", &arguments_of("FindBook"))]
        ),
        // The planner forgot the dependency that the reference implies.
        prepared(step(2, "Library", &["FindBook"], Value::Null), vec![call("FindBook", &second)]),
    ]));
    let llm = ModelRules::of(steps).start();
    let town = open(&llm).await;
    let run = town.ask("Find the book Dune and then the one that is called like its shelf").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    let titles: Vec<Value> =
        town.log.calls().iter().map(|(_, arguments)| arguments["title"].clone()).collect();
    assert_eq!(titles, [json!("Dune"), json!("B4")]);
    assert_eq!(llm.requests().len(), 2);
}

#[tokio::test]
async fn scenes_are_never_asked_in_prepared_mode() {
    let llm = ModelRules::of(both(vec![call("BookSpace", &json!({"plate": "AB123CD"}))])).start();
    let town = Town::open(&llm, |config| {
        config.planning.prepare = PrepareMode::Always;
        config.execution.scenes = SceneMode::Prepared;
    })
    .await;
    let run = town.ask(REQUEST).await;
    assert_eq!(statuses(&run), [StepStatus::Completed, StepStatus::Failed], "{run:#?}");
    let error = run.answer.steps[1].error.as_ref().unwrap();
    assert_eq!(error.code, "step.unprepared");
    assert!(error.message.contains("BookSpace") && error.message.contains("day"), "{error}");
    assert_eq!(town.log.names(), ["FindBook"]);
    assert!(requests(&llm, QuestionKind::Scene).is_empty());
}
