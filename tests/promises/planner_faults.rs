//! A misbehaving planner: an unambiguous reply is executed as it was meant, everything else is rejected with
//! the exact errors, and no partially parsed plan ever runs.

use proscenium::Config;
use proscenium::llm::Forcing;
use proscenium::run::RunStatus;
use serde_json::{Value, json};

use crate::support::planner_engine::{
    AnsweredRun, ModelRules, QuestionKind, Town, arguments_of, plan, requests, step,
};
use crate::support::{Scripted, ScriptedLlm, StreamEnd, calls, chunk, forced_tool, last_message};

const TOOL: &str = "CreateExecutionPlan";
const REQUEST: &str = "Find the book Dune and then book a parking space for tomorrow.";

/// The right plan: a book, then a parking space.
fn right() -> Value {
    plan(json!([
        step(1, "Library", &["FindBook"], Value::Null),
        step(2, "Parking", &["BookSpace"], json!(1)),
    ]))
}

/// The right plan with one thing changed.
fn right_plan_with(pointer: &str, value: Value) -> Value {
    let mut plan = right();
    *plan.pointer_mut(pointer).unwrap() = value;
    plan
}

async fn run(reply: Scripted, configure: impl FnOnce(&mut Config)) -> (ScriptedLlm, Town, AnsweredRun) {
    let play = ModelRules::of(right()).plan(move |request, nth| match nth {
        0 => reply.clone(),
        _ => Scripted::forced(request, right()),
    });
    let llm = play.start();
    let town = Town::open(&llm, configure).await;
    let finished = town.ask(REQUEST).await;
    (llm, town, finished)
}

fn assert_done(town: &Town, finished: &AnsweredRun) {
    assert_eq!(finished.answer.status, RunStatus::Completed, "{finished:#?}");
    let expected = ["FindBook", "BookSpace"].map(|tool| (tool.to_owned(), arguments_of(tool)));
    assert_eq!(town.log.calls(), expected, "{finished:#?}");
}

/// Asserts that the reply is executed as the right plan, without a retry.
async fn assert_understood(reply: Scripted) {
    let (llm, town, finished) = run(reply, |_| {}).await;
    assert_done(&town, &finished);
    assert_eq!(requests(&llm, QuestionKind::Plan).len(), 1);
}

/// Asserts that the reply is rejected with exactly these errors, and that the corrected one is executed.
async fn assert_repaired(reply: Scripted, codes: &[&str]) {
    assert_repaired_with(reply, codes, |_| {}).await;
}

async fn assert_repaired_with(reply: Scripted, codes: &[&str], configure: impl FnOnce(&mut Config)) {
    let (llm, town, finished) = run(reply, configure).await;
    assert_eq!(finished.rejected(), [codes], "{finished:#?}");
    assert_done(&town, &finished);
    let asked = requests(&llm, QuestionKind::Plan);
    assert_eq!(asked.len(), 2);
    let sent_back = last_message(&asked[1]).unwrap();
    assert!(!finished.problems().is_empty());
    for problem in finished.problems() {
        assert!(sent_back.contains(problem), "{problem:?} is not in {sent_back:?}");
    }
    assert_eq!(forced_tool(&asked[1]), Some(TOOL), "the repair is forced as well");
}

fn call(arguments: Value) -> Scripted {
    Scripted::call(TOOL, arguments)
}

fn raw(arguments: impl Into<String>) -> Scripted {
    Scripted::RawCall { name: TOOL.into(), arguments: arguments.into() }
}

#[tokio::test]
async fn argument_lists_after_expected_tools_are_parsed() {
    let mut plan = right();
    plan["steps"][0]["expected_tools"] = json!(["FindBook(title)"]);
    plan["steps"][1]["expected_tools"] = json!(["BookSpace(day=\"2026-05-05\", plate)", "FreeSpaces()"]);
    assert_understood(call(plan)).await;
}

#[tokio::test]
async fn steps_without_needs_execution_are_rejected() {
    assert_repaired(
        call(right_plan_with("/needs_execution", json!(false))),
        &["plan.steps_without_execution"],
    )
    .await;
}

#[tokio::test]
async fn needs_execution_without_steps_is_rejected() {
    assert_repaired(call(right_plan_with("/steps", json!([]))), &["plan.no_steps"]).await;
}

#[tokio::test]
async fn unknown_scene_is_rejected_with_the_available_scenes() {
    let (_, _, finished) = run(call(right_plan_with("/steps/1/scene_name", json!("Garage"))), |_| {}).await;
    assert_eq!(
        finished.problems(),
        ["step 2: there is no scene \"Garage\"; the scenes are Canteen, Library, Parking"]
    );
    assert_repaired(call(right_plan_with("/steps/1/scene_name", json!("Garage"))), &["plan.unknown_scene"])
        .await;
}

#[tokio::test]
async fn unknown_tool_is_rejected_with_the_scenes_tools() {
    assert_repaired(
        call(right_plan_with("/steps/0/expected_tools", json!(["BurnBook"]))),
        &["plan.unknown_tool"],
    )
    .await;
}

#[tokio::test]
async fn tool_of_another_scene_is_rejected() {
    assert_repaired(
        call(right_plan_with("/steps/0/expected_tools", json!(["Menu"]))),
        &["plan.unknown_tool"],
    )
    .await;
}

#[tokio::test]
async fn cyclic_dependencies_are_rejected() {
    assert_repaired(call(right_plan_with("/steps/0/depends_on_step", json!(2))), &["plan.circular"]).await;
}

#[tokio::test]
async fn self_dependency_is_rejected() {
    assert_repaired(
        call(right_plan_with("/steps/1/depends_on_step", json!([1, 2]))),
        &["plan.self_dependency"],
    )
    .await;
}

#[tokio::test]
async fn dependency_on_a_missing_step_is_rejected() {
    assert_repaired(
        call(right_plan_with("/steps/1/depends_on_step", json!(7))),
        &["plan.unknown_dependency"],
    )
    .await;
}

#[tokio::test]
async fn duplicate_step_numbers_are_rejected() {
    let mut plan = right();
    plan["steps"][1]["step_number"] = json!(1);
    plan["steps"][1]["depends_on_step"] = Value::Null;
    assert_repaired(call(plan), &["plan.repeated_number"]).await;
}

#[tokio::test]
async fn too_many_steps_are_rejected_with_the_bound() {
    let mut plan = right();
    plan["steps"].as_array_mut().unwrap().push(step(3, "Canteen", &["Menu"], Value::Null));
    assert_repaired_with(call(plan), &["plan.too_many_steps"], |config| config.planning.max_steps = 2).await;
}

#[tokio::test]
async fn retry_does_not_repeat_a_reply_of_megabytes_or_thousands_of_errors() {
    let steps: Vec<Value> = (1..=5_000).map(|n| step(n, "Library", &["FindBook"], Value::Null)).collect();
    let long_name = "G".repeat(200_000);
    for mistaken in [plan(json!(steps)), right_plan_with("/steps/0/scene_name", json!(long_name))] {
        let (llm, town, finished) = run(call(mistaken), |_| {}).await;
        assert_done(&town, &finished);
        let asked = requests(&llm, QuestionKind::Plan);
        let sizes: Vec<usize> = asked.iter().map(|request| request.to_string().len()).collect();
        assert!(sizes.len() == 2 && sizes[1] < sizes[0] + 20_000, "{sizes:?}");
        let sent_back = last_message(&asked[1]).unwrap();
        let first: String = finished.problems()[0].chars().take(100).collect();
        assert!(sent_back.contains(&first), "{first:?} is not in {sent_back:.500}");
    }
}

#[tokio::test]
async fn all_problems_of_a_plan_are_reported_at_once() {
    let mut plan = right_plan_with("/needs_execution", json!(false));
    plan["steps"][0]["scene_name"] = json!("Garage");
    plan["steps"][1]["depends_on_step"] = json!(2);
    let codes = ["plan.steps_without_execution", "plan.self_dependency", "plan.unknown_scene"];
    assert_repaired(call(plan), &codes).await;
}

#[tokio::test]
async fn dependencies_are_parsed_as_null_number_or_list() {
    for depends in [json!(1), json!([1]), json!([1, 1]), json!(1.0)] {
        assert_understood(call(right_plan_with("/steps/1/depends_on_step", depends))).await;
    }
    let three = plan(json!([
        step(1, "Library", &["FindBook"], json!([])),
        step(2, "Canteen", &["Menu"], Value::Null),
        step(3, "Parking", &["BookSpace"], json!([1, 2])),
    ]));
    let llm = ModelRules::of(three).start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask(REQUEST).await;
    assert_eq!(finished.answer.status, RunStatus::Completed);
    let names = town.log.names();
    assert_eq!((names.len(), names[2].as_str()), (3, "BookSpace"), "{names:?}");
}

#[tokio::test]
async fn dependency_list_inside_a_string_is_rejected() {
    assert_repaired(call(right_plan_with("/steps/1/depends_on_step", json!("[1]"))), &["reply.shape"]).await;
}

#[tokio::test]
async fn plan_as_plain_text_is_parsed() {
    assert_understood(Scripted::Text(right().to_string())).await;
}

#[tokio::test]
async fn plan_in_a_code_fence_is_parsed() {
    assert_understood(Scripted::Text(format!("Here it is:\n```json\n{:#}\n```", right()))).await;
}

#[tokio::test]
async fn prose_around_the_plan_is_ignored() {
    assert_understood(Scripted::Text(format!("The user wants {{two}} things. {} That is all.", right())))
        .await;
}

#[tokio::test]
async fn plan_under_another_tools_name_is_parsed() {
    assert_understood(Scripted::call("make_plan", right())).await;
}

#[tokio::test]
async fn plan_beside_other_calls_is_parsed() {
    assert_understood(calls(&[("FindBook", json!({"title": "Dune"})), (TOOL, right())])).await;
    assert_understood(calls(&[(TOOL, right()), (TOOL, right())])).await;
}

#[tokio::test]
async fn two_different_plans_in_one_reply_are_rejected() {
    let other = plan(json!([step(1, "Canteen", &["Menu"], Value::Null)]));
    assert_repaired(calls(&[(TOOL, right()), (TOOL, other)]), &["reply.ambiguous"]).await;
}

#[tokio::test]
async fn trailing_commas_are_parsed() {
    let almost = right().to_string().replace("}]", "},]").replace("]}", "],}");
    assert_understood(raw(almost)).await;
}

#[tokio::test]
async fn arguments_as_an_object_are_parsed() {
    let call = json!({"id": "x", "type": "function", "function": {"name": TOOL, "arguments": right()}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    assert_understood(Scripted::Json(
        json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]}),
    ))
    .await;
}

#[tokio::test]
async fn doubly_encoded_arguments_are_parsed() {
    assert_understood(raw(Value::String(right().to_string()).to_string())).await;
}

#[tokio::test]
async fn truncated_plan_is_rejected_and_never_partially_executed() {
    let whole = right().to_string();
    // In the middle of the second step: the first one is complete.
    let cut = &whole[..whole.find("Parking").unwrap()];
    assert_repaired(raw(cut).finished("length"), &["reply.truncated"]).await;
    assert_repaired(raw(cut).finished("tool_calls"), &["reply.truncated"]).await;
    assert_repaired(Scripted::Text(cut.to_owned()).finished("length"), &["reply.truncated"]).await;
}

#[tokio::test]
async fn empty_reply_is_retried() {
    assert_repaired(Scripted::Text(String::new()), &["reply.no_json"]).await;
    assert_repaired(raw(""), &["reply.no_json"]).await;
}

#[tokio::test]
async fn prose_instead_of_a_plan_is_rejected() {
    assert_repaired(Scripted::Text("Dune is on shelf B4, and I booked space 12.".into()), &["reply.no_json"])
        .await;
}

#[tokio::test]
async fn irregular_streams_result_in_the_right_plan() {
    let text = right().to_string();
    let (head, tail) = text.split_at(40);
    let piece = |arguments: &str| {
        chunk(json!({"delta": {"tool_calls": [{"index": 0, "id": "a",
            "function": {"name": TOOL, "arguments": arguments}}]}}))
    };
    let repeated = vec![piece(head), piece(tail), chunk(json!({"delta": {}, "finish_reason": "tool_calls"}))];
    for (events, asked) in [(repeated, 1), (vec![], 2)] {
        let (llm, town, finished) = run(Scripted::Stream(events, StreamEnd::Done), |config| {
            config.llm.models[0].stream = proscenium::llm::StreamMode::All;
        })
        .await;
        assert_done(&town, &finished);
        assert_eq!(finished.rejected(), Vec::<Vec<&str>>::new());
        assert_eq!(requests(&llm, QuestionKind::Plan).len(), asked);
    }
}

#[tokio::test]
async fn retries_are_counted_in_addition_to_the_first_attempt() {
    for (retries, asked) in [(0, 1), (1, 2), (3, 4)] {
        let llm = ModelRules::of(right()).plan(|_, _| Scripted::Text("I would rather not.".into())).start();
        let town = Town::open(&llm, |config| config.planning.max_retries = retries).await;
        let finished = town.ask(REQUEST).await;
        assert_eq!(finished.answer.status, RunStatus::Failed);
        assert_eq!(finished.answer.error.as_ref().unwrap().code, "llm.unusable");
        assert_eq!(llm.count(), asked, "max_retries = {retries}");
        assert!(town.log.calls().is_empty());
    }
}

#[tokio::test]
async fn last_retry_is_accepted() {
    let play = ModelRules::of(right()).plan(|request, nth| match nth {
        3 => Scripted::forced(request, right()),
        nth => call(right_plan_with("/steps/0/scene_name", json!(format!("Scene{nth}")))),
    });
    let llm = play.start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask(REQUEST).await;
    assert_done(&town, &finished);
    let asked = requests(&llm, QuestionKind::Plan);
    assert_eq!(asked.len(), 4);
    for (nth, problem) in finished.problems().into_iter().enumerate() {
        assert!(last_message(&asked[nth + 1]).unwrap().contains(problem), "{problem:?}");
    }
}

#[tokio::test]
async fn tool_choice_is_released_after_the_forced_call() {
    let (llm, town, finished) =
        run(call(right_plan_with("/steps/0/scene_name", json!("Garage"))), |_| {}).await;
    assert_done(&town, &finished);
    let forced: Vec<String> = llm
        .requests()
        .iter()
        .map(|request| {
            forced_tool(request).unwrap_or(request["tool_choice"].as_str().unwrap_or("none")).to_owned()
        })
        .collect();
    let scene = "auto";
    assert_eq!(forced, [TOOL, TOOL, scene, scene, scene, scene, "CheckContinuation"]);
}

#[tokio::test]
async fn forced_calls_use_temperature_0_3() {
    let (llm, _, _) = run(call(right()), |_| {}).await;
    for what in [QuestionKind::Plan, QuestionKind::Check] {
        for request in requests(&llm, what) {
            assert_eq!(request["temperature"], json!(0.3));
        }
    }
}

#[tokio::test]
async fn every_forcing_mode_completes_a_request() {
    for forcing in [Forcing::Named, Forcing::Required, Forcing::JsonSchema] {
        let llm = ModelRules::of(right()).start();
        let town = Town::open(&llm, |config| config.llm.models[0].forcing = forcing).await;
        let finished = town.ask(REQUEST).await;
        assert_done(&town, &finished);
        for what in [QuestionKind::Plan, QuestionKind::Check] {
            let asked = requests(&llm, what);
            assert_eq!(asked.len(), 1, "{forcing}");
            let schema = match forcing {
                Forcing::Named => {
                    assert!(asked[0]["tool_choice"].is_object());
                    &asked[0]["tools"][0]["function"]
                }
                Forcing::Required => {
                    assert_eq!(asked[0]["tool_choice"], "required");
                    &asked[0]["tools"][0]["function"]
                }
                Forcing::JsonSchema => {
                    assert!(asked[0].get("tools").is_none());
                    &asked[0]["response_format"]["json_schema"]
                }
            };
            assert_eq!(schema["strict"], true, "{forcing}");
        }
    }
}

#[tokio::test]
async fn plan_schema_lists_the_available_scenes_and_tools() {
    let (llm, _, _) = run(call(right()), |_| {}).await;
    let schema = &requests(&llm, QuestionKind::Plan)[0]["tools"][0]["function"]["parameters"];
    let steps = schema["properties"]["steps"]["items"]["anyOf"].as_array().unwrap();
    let each = steps.iter().map(|step| {
        let properties = &step["properties"];
        json!([properties["scene_name"]["enum"], properties["expected_tools"]["items"]["enum"]])
    });
    // Each scene with its own tools only: no strict schema combines it with another scene's tools.
    assert_eq!(
        each.collect::<Vec<_>>(),
        [
            json!([["Canteen"], ["Menu"]]),
            json!([["Library"], ["FindBook", "ReserveBook"]]),
            json!([["Parking"], ["FreeSpaces", "BookSpace"]]),
            json!([["LLM"], null]),
        ]
    );
}
