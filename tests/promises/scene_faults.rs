//! A misbehaving scene model: every call gets its result or its exact error, nothing runs twice, every loop
//! ends, and the tools' results are kept.

use std::collections::BTreeSet;
use std::sync::Mutex;

use proscenium::llm::Forcing;
use proscenium::plan::StepStatus;
use proscenium::run::{ConfirmPolicy, Event, RunStatus};
use proscenium::{Answer, CallOutcome};
use serde_json::{Value, json};

use crate::support::planner_engine::{
    AnsweredRun, MEETING, ModelRules, QuestionKind, Town, arguments_of, has_results, plan, requests, step,
};
use crate::support::{Scripted, ScriptedLlm, calls, forced_tool, section, tool_names, tool_results};

fn library(tools: &[&str]) -> Value {
    plan(json!([step(1, "Library", tools, Value::Null)]))
}

/// The town after one step in the library, whose model gives these replies in turn.
async fn library_step(tools: &[&str], replies: Vec<Scripted>) -> (ScriptedLlm, Town, AnsweredRun) {
    let play =
        ModelRules::of(library(tools)).scene(move |_, nth| replies[nth.min(replies.len() - 1)].clone());
    let llm = play.start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask("Where is Dune?").await;
    (llm, town, finished)
}

fn find(title: &str) -> (&'static str, Value) {
    ("FindBook", json!({"title": title}))
}

fn done() -> Scripted {
    Scripted::Text("Dune is on shelf B4.".into())
}

fn outcomes(answer: &Answer) -> Vec<CallOutcome> {
    answer.steps.iter().flat_map(|step| step.tool_calls.iter().map(|call| call.outcome)).collect()
}

#[tokio::test]
async fn tool_text_replaces_an_empty_last_message() {
    let (_, _, finished) =
        library_step(&["FindBook"], vec![calls(&[find("Dune")]), Scripted::Text(String::new())]).await;
    assert_eq!(finished.answer.status, RunStatus::Completed, "{finished:#?}");
    assert_eq!(finished.answer.steps[0].result.as_deref(), Some("The book Dune is on shelf B4."));
}

#[tokio::test]
async fn silent_scene_fails_its_step_after_one_retry() {
    let (llm, town, finished) = library_step(&["FindBook"], vec![Scripted::Text(String::new())]).await;
    assert_eq!(requests(&llm, QuestionKind::Scene).len(), 2);
    assert_eq!(finished.rejected(), [["reply.empty"], ["reply.empty"]]);
    assert_eq!(finished.answer.steps[0].status, StepStatus::Failed);
    assert_eq!(finished.answer.status, RunStatus::Failed);
    assert!(town.log.calls().is_empty());
}

#[tokio::test]
async fn calls_written_as_plain_text_are_executed() {
    let written =
        format!("<tool_call>\n{}\n</tool_call>", json!({"name": "FindBook", "arguments": {"title": "Dune"}}));
    let (_, town, finished) = library_step(&["FindBook"], vec![Scripted::Text(written), done()]).await;
    assert_eq!(town.log.calls(), [("FindBook".to_owned(), arguments_of("FindBook"))]);
    assert_eq!(finished.answer.status, RunStatus::Completed);
}

#[tokio::test]
async fn unknown_tool_error_lists_the_tools_and_the_model_recovers() {
    let (llm, town, finished) = library_step(
        &["FindBook"],
        vec![calls(&[("SearchBook", json!({"title": "Dune"}))]), calls(&[find("Dune")]), done()],
    )
    .await;
    let results = tool_results(&requests(&llm, QuestionKind::Scene)[1]);
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["error"]["code"], "tool.unknown");
    let message = results[0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("\"SearchBook\"") && message.contains("FindBook"), "{message}");
    assert_eq!(town.log.names(), ["FindBook"]);
    assert_eq!(finished.answer.status, RunStatus::Completed);
}

#[tokio::test]
async fn wrong_arguments_never_reach_the_tool_and_errors_are_exact() {
    let wrong = vec![
        calls(&[("FindBook", json!({"title": 5}))]),
        calls(&[("FindBook", json!({}))]),
        calls(&[find("Dune")]),
        done(),
    ];
    let (llm, town, finished) = library_step(&["FindBook"], wrong).await;
    let results = tool_results(&requests(&llm, QuestionKind::Scene)[2]);
    let messages: Vec<&str> = results.iter().map(|r| r["error"]["message"].as_str().unwrap()).collect();
    assert!(messages[0].contains("/title must be a string; got 5"), "{messages:?}");
    assert!(messages[1].contains("/title is missing"), "{messages:?}");
    assert_eq!(town.log.calls(), [("FindBook".to_owned(), arguments_of("FindBook"))]);
    assert_eq!(outcomes(&finished.answer), [CallOutcome::Refused, CallOutcome::Refused, CallOutcome::Ok]);
}

#[tokio::test]
async fn malformed_arguments_get_an_error_and_history_stays_valid_json() {
    let broken = Scripted::RawCall { name: "FindBook".into(), arguments: "{\"title\": \"Du".into() };
    let (llm, town, _) = library_step(&["FindBook"], vec![broken, calls(&[find("Dune")]), done()]).await;
    let second = &requests(&llm, QuestionKind::Scene)[1];
    assert_eq!(tool_results(second)[0]["error"]["code"], "tool.arguments_not_json");
    for message in second["messages"].as_array().unwrap() {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object(), "{arguments}");
        }
    }
    assert_eq!(town.log.names(), ["FindBook"]);
}

#[tokio::test]
async fn reads_in_one_reply_run_concurrently() {
    // Each waits inside the tool until the other has started too; sequential calls would time out.
    let titles = [format!("{MEETING} one"), format!("{MEETING} two")];
    let both = calls(&[find(&titles[0]), find(&titles[1])]);
    let (llm, town, finished) = library_step(&["FindBook"], vec![both, done()]).await;
    assert_eq!(outcomes(&finished.answer), [CallOutcome::Ok, CallOutcome::Ok], "{finished:#?}");
    assert_eq!(town.log.marks()[..2], ["begin FindBook", "begin FindBook"]);
    assert_eq!(requests(&llm, QuestionKind::Scene).len(), 2);
}

#[tokio::test]
async fn read_and_write_in_one_reply_run_in_order() {
    let reserve = ("ReserveBook", arguments_of("ReserveBook"));
    let three = calls(&[find("Dune"), reserve, find("Solaris")]);
    let (_, town, _) = library_step(&["FindBook", "ReserveBook"], vec![three, done()]).await;
    assert_eq!(
        town.log.marks(),
        [
            "begin FindBook", "end FindBook", "begin ReserveBook", "end ReserveBook", "begin FindBook",
            "end FindBook"
        ]
    );
}

#[tokio::test]
async fn repeated_ids_do_not_mix_up_results() {
    let menu = calls(&[find("Dune"), ("FindBook", json!({"title": 7})), find("Solaris")]);
    let (llm, _, finished) = library_step(&["FindBook"], vec![menu, done()]).await;
    let second = &requests(&llm, QuestionKind::Scene)[1];
    let messages = second["messages"].as_array().unwrap();
    let made: Vec<&str> = messages
        .iter()
        .flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
        .map(|call| call["id"].as_str().unwrap())
        .collect();
    let answered: Vec<&str> =
        messages.iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
    assert_eq!(made, answered);
    assert_eq!(made.iter().collect::<BTreeSet<_>>().len(), 3, "{made:?}");
    let outcomes: Vec<Value> = tool_results(second).iter().map(|result| result["outcome"].clone()).collect();
    assert_eq!(outcomes, ["ok", "refused", "ok"]);
    assert_eq!(finished.answer.status, RunStatus::Completed);
}

#[tokio::test]
async fn equal_call_runs_once_and_gets_the_first_result() {
    let replies = vec![calls(&[find("Dune"), find("Dune")]), calls(&[find("Dune")]), done()];
    let (llm, town, finished) = library_step(&["FindBook"], replies).await;
    assert_eq!(town.log.names(), ["FindBook"]);
    assert_eq!(outcomes(&finished.answer), [CallOutcome::Ok, CallOutcome::Skipped, CallOutcome::Skipped]);
    let results = tool_results(&requests(&llm, QuestionKind::Scene)[2]);
    assert_eq!(results[2]["outcome"], "skipped");
    assert_eq!(results[2]["result"], json!({"shelf": "B4"}));
}

#[tokio::test]
async fn endless_scene_is_ended_and_its_results_are_kept() {
    let play = ModelRules::of(library(&["FindBook"]))
        .scene(|_, nth| calls(&[("FindBook", json!({"title": format!("Volume {nth}")}))]));
    let llm = play.start();
    let town = Town::open(&llm, |config| config.execution.max_rounds = 4).await;
    let finished = town.ask("Where are all the volumes?").await;
    let asked = requests(&llm, QuestionKind::Scene);
    assert_eq!(asked.len(), 4);
    assert!(tool_names(&asked[2]).contains(&"FindBook"));
    assert!(tool_names(&asked[3]).contains(&"FindBook"), "tools stay offered");
    let note =
        |request: &Value| request["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(
        note(&asked[2]).contains("last reply in this step in which calls are made"),
        "{}",
        note(&asked[2])
    );
    assert!(note(&asked[3]).contains("last reply in this step, and calls in it are not made"));
    assert_eq!(town.log.calls().len(), 3);
    assert_eq!(finished.answer.status, RunStatus::Partial);
    assert!(
        finished.answer.answer.contains("Volume 3"),
        "omitted results are named: {}",
        finished.answer.answer
    );
    let result = finished.answer.steps[0].result.as_deref().unwrap();
    assert!(result.contains("Volume 0") && result.contains("Volume 2"), "{result}");
}

#[tokio::test]
async fn calls_beyond_the_bound_are_refused_and_reported() {
    let titles: Vec<String> = (0..5).map(|n| format!("Volume {n}")).collect();
    let many: Vec<(&str, Value)> = titles.iter().map(|title| find(title)).collect();
    let reply = calls(&many);
    let play = ModelRules::of(library(&["FindBook"]))
        .scene(move |request, _| if has_results(request) { done() } else { reply.clone() });
    let llm = play.start();
    let town = Town::open(&llm, |config| config.execution.max_calls = 3).await;
    let finished = town.ask("Where are all the volumes?").await;
    assert_eq!(town.log.calls().len(), 3);
    let results = tool_results(&requests(&llm, QuestionKind::Scene)[1]);
    let refused: Vec<&Value> = results.iter().filter(|r| r["error"]["code"] == "bound.calls").collect();
    assert_eq!((results.len(), refused.len()), (5, 2), "{finished:#?}");
    assert_eq!(finished.answer.status, RunStatus::Partial);
    assert!(finished.answer.answer.contains("Volume 3") && finished.answer.answer.contains("Volume 4"));
}

#[tokio::test]
async fn reply_with_hundreds_of_calls_is_rejected() {
    let titles: Vec<String> = (0..300).map(|n| format!("Volume {n}")).collect();
    let many: Vec<(&str, Value)> = titles.iter().map(|title| find(title)).collect();
    let (_, town, finished) =
        library_step(&["FindBook"], vec![calls(&many), calls(&[find("Dune")]), done()]).await;
    assert_eq!(finished.rejected(), [["reply.too_many_calls"]]);
    assert_eq!(town.log.names(), ["FindBook"]);
}

#[tokio::test]
async fn unplanned_write_is_neither_offered_nor_executed() {
    let reserve = ("ReserveBook", arguments_of("ReserveBook"));
    let (llm, town, finished) =
        library_step(&["FindBook"], vec![calls(&[reserve, find("Dune")]), done()]).await;
    let asked = requests(&llm, QuestionKind::Scene);
    assert_eq!(tool_names(&asked[0]), ["FindBook", "AskUser"]);
    assert_eq!(tool_results(&asked[1])[0]["error"]["code"], "tool.not_offered");
    assert_eq!(town.log.names(), ["FindBook"]);
    assert_eq!(outcomes(&finished.answer), [CallOutcome::Refused, CallOutcome::Ok]);
}

#[tokio::test]
async fn scene_prompt_contains_only_results_of_its_dependencies() {
    let three = plan(json!([
        step(1, "Library", &["FindBook"], Value::Null),
        step(2, "Canteen", &["Menu"], Value::Null),
        step(3, "Parking", &["BookSpace"], json!(1)),
    ]));
    let llm = ModelRules::of(three).start();
    let town = Town::open(&llm, |_| {}).await;
    town.ask("Find Dune and book a space; what is there to eat?").await;
    let asked = requests(&llm, QuestionKind::Scene);
    let third = asked.iter().find(|request| section(request, "scene").as_deref() == Some("Parking")).unwrap();
    let earlier = section(third, "earlier").unwrap();
    let lines: Vec<Value> = earlier.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["result"], "Library is done.");
    assert_eq!(lines[0]["calls"][0]["result"], json!({"shelf": "B4"}));
}

/// The functions forced by the scene questions, in order; `None` if the choice was free.
fn forced(llm: &ScriptedLlm) -> Vec<Option<String>> {
    requests(llm, QuestionKind::Scene).iter().map(|request| forced_tool(request).map(str::to_owned)).collect()
}

/// The town after one step that should reserve a book. The model replies `free` without a forced call, and
/// one of these if it is forced to call that function.
async fn reserve_step(
    tools: &[&str],
    free: &str,
    by_force: Vec<(&str, Value)>,
) -> (ScriptedLlm, Town, AnsweredRun) {
    let free = free.to_owned();
    let by_force: Vec<(String, Value)> =
        by_force.into_iter().map(|(name, arguments)| (name.to_owned(), arguments)).collect();
    let play = ModelRules::of(library(tools)).scene(move |request, _| match forced_tool(request) {
        _ if has_results(request) && forced_tool(request).is_none() => Scripted::Text(String::new()),
        None => Scripted::Text(free.clone()),
        Some(name) => match by_force.iter().find(|(function, _)| function == name) {
            Some((_, arguments)) => Scripted::forced(request, arguments.clone()),
            None => Scripted::Text(String::new()),
        },
    });
    let llm = play.start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask("Reserve Dune.").await;
    (llm, town, finished)
}

fn names(all: &[Option<&str>]) -> Vec<Option<String>> {
    all.iter().map(|name| name.map(str::to_owned)).collect()
}

fn choice(tool: &str) -> (&'static str, Value) {
    ("NextCall", json!({ "next": tool }))
}

#[tokio::test]
async fn silent_scene_that_chooses_the_write_executes_it_once() {
    let by_force = vec![choice("ReserveBook"), ("ReserveBook", arguments_of("ReserveBook"))];
    let (llm, town, finished) = reserve_step(&["ReserveBook"], "", by_force).await;
    assert_eq!(forced(&llm), names(&[None, Some("NextCall"), Some("ReserveBook"), None]));
    assert_eq!(town.log.calls(), [("ReserveBook".to_owned(), arguments_of("ReserveBook"))]);
    assert_eq!(finished.answer.status, RunStatus::Completed, "{finished:#?}");
    let asked = requests(&llm, QuestionKind::Scene);
    let function = |request: &Value, name: &str| {
        let tools = request["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["function"]["name"] == name).unwrap()["function"].clone()
    };
    let choices = function(&asked[1], "NextCall")["parameters"]["properties"]["next"]["enum"].clone();
    assert_eq!(choices, json!(["ReserveBook", "nothing"]));
    let plain = function(&asked[1], "ReserveBook")["parameters"]["properties"]["days"].clone();
    let forced = function(&asked[2], "ReserveBook")["parameters"]["properties"]["days"].clone();
    assert_eq!(
        forced["anyOf"],
        json!([plain, {"type": "null"}]),
        "null means that the user did not mention it"
    );
}

/// The town after one step that should reserve a book, whose model repeats the read until it is asked what
/// comes next, and then chooses `decision`.
async fn looping_step(decision: &'static str) -> (ScriptedLlm, Town, AnsweredRun) {
    let play =
        ModelRules::of(library(&["ReserveBook"])).scene(move |request, _| match forced_tool(request) {
            Some("NextCall") => Scripted::forced(request, json!({ "next": decision })),
            Some(tool) => Scripted::forced(request, arguments_of(tool)),
            None => Scripted::call("FindBook", arguments_of("FindBook")),
        });
    let llm = play.start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask("Reserve Dune.").await;
    (llm, town, finished)
}

#[tokio::test]
async fn scene_repeating_a_read_is_asked_once_for_the_planned_write() {
    let (llm, town, _) = looping_step("ReserveBook").await;
    let asked = forced(&llm);
    // A read, the same read, the choice, the write; then it may loop again, and ends.
    let decisive = names(&[None, None, Some("NextCall"), Some("ReserveBook")]);
    assert_eq!(asked[..4], decisive, "{asked:?}");
    assert_eq!(asked.iter().flatten().filter(|name| *name == "NextCall").count(), 1);
    assert_eq!(town.log.names().iter().filter(|name| *name == "ReserveBook").count(), 1);

    let (llm, town, _) = looping_step("nothing").await;
    assert_eq!(forced(&llm), names(&[None, None, Some("NextCall")]));
    assert_eq!(town.log.names(), ["FindBook"]);
    // The check judges whether that was right, and is informed.
    let executed = section(&requests(&llm, QuestionKind::Check)[0], "executed").unwrap();
    assert!(executed.contains("ReserveBook"), "{executed}");
}

#[tokio::test]
async fn unplanned_read_does_not_replace_the_planned_write() {
    // It looks the book up, which is not planned, and then has nothing to add.
    let play = ModelRules::of(library(&["ReserveBook"])).scene(|request, _| match forced_tool(request) {
        Some("NextCall") => Scripted::forced(request, json!({"next": "ReserveBook"})),
        Some(tool) => Scripted::forced(request, arguments_of(tool)),
        None if has_results(request) => Scripted::Text("It is on shelf B4.".into()),
        None => Scripted::call("FindBook", arguments_of("FindBook")),
    });
    let llm = play.start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask("Reserve Dune.").await;
    assert_eq!(town.log.names(), ["FindBook", "ReserveBook"]);
    assert_eq!(finished.answer.status, RunStatus::Completed, "{finished:#?}");
}

#[tokio::test]
async fn missing_argument_of_a_forced_write_is_asked_for() {
    for unmentioned in [json!({"title": "Dune", "days": null}), json!({"title": "Dune"})] {
        let (_, town, finished) =
            reserve_step(&["ReserveBook"], "", vec![choice("ReserveBook"), ("ReserveBook", unmentioned)])
                .await;
        assert_eq!(finished.answer.status, RunStatus::NeedsInput, "{finished:#?}");
        assert!(town.log.calls().is_empty());
        let question = finished.events.iter().find_map(|event| match event {
            Event::SceneReplied { question, .. } => question.clone(),
            _ => None,
        });
        let question = question.unwrap();
        assert_eq!(
            (question.tool.as_deref(), question.missing.as_slice()),
            (Some("ReserveBook"), &["days".to_owned()][..])
        );
        assert_eq!(question.known, json!({"title": "Dune"}));
        assert!(question.text.contains("days"), "{}", question.text);
    }
}

#[tokio::test]
async fn silent_scene_that_chooses_nothing_reports_nothing_done() {
    let (llm, town, finished) = reserve_step(&["ReserveBook"], "", vec![choice("nothing")]).await;
    assert_eq!(forced(&llm), names(&[None, Some("NextCall")]));
    assert!(town.log.calls().is_empty());
    assert_eq!(finished.answer.steps[0].status, StepStatus::Failed);
    assert_eq!(finished.answer.status, RunStatus::Failed);
    let error = finished.answer.steps[0].error.as_ref().unwrap();
    assert_eq!(error.code, "step.empty");
}

#[tokio::test]
async fn scene_that_chooses_a_question_asks_it() {
    let question =
        ("AskUser", json!({"question": "For how many days?", "missing": ["days"], "tool": "ReserveBook"}));
    let (llm, town, finished) = reserve_step(&["ReserveBook"], "", vec![choice("AskUser"), question]).await;
    assert_eq!(forced(&llm), names(&[None, Some("NextCall"), Some("AskUser")]));
    assert_eq!(finished.answer.status, RunStatus::NeedsInput, "{finished:#?}");
    assert!(town.log.calls().is_empty());
}

#[tokio::test]
async fn scene_silent_before_its_write_fails_and_reports_it() {
    let (llm, town, finished) = reserve_step(&["ReserveBook"], "", vec![]).await;
    assert_eq!(forced(&llm), names(&[None, Some("NextCall")]));
    assert_eq!(finished.rejected(), [["reply.empty"], ["reply.empty"]]);
    assert_eq!(finished.answer.status, RunStatus::Failed);
    // It chooses, and then cannot give the arguments.
    let (llm, town_too, finished) = reserve_step(&["ReserveBook"], "", vec![choice("ReserveBook")]).await;
    assert_eq!(forced(&llm), names(&[None, Some("NextCall"), Some("ReserveBook"), Some("ReserveBook")]));
    assert_eq!(finished.rejected(), [["reply.empty"], ["reply.no_call"], ["reply.no_call"]]);
    assert_eq!(finished.answer.status, RunStatus::Failed);
    assert!(town.log.calls().is_empty() && town_too.log.calls().is_empty());
}

#[tokio::test]
async fn text_does_not_replace_a_missing_write() {
    let by_force = || vec![choice("ReserveBook"), ("ReserveBook", arguments_of("ReserveBook"))];
    let (llm, town, finished) = reserve_step(&["ReserveBook"], "I have reserved Dune.", by_force()).await;
    assert_eq!(forced(&llm), names(&[None, Some("NextCall"), Some("ReserveBook"), None]));
    assert_eq!(finished.rejected(), [["reply.undone"]]);
    assert_eq!(town.log.names(), ["ReserveBook"]);
    assert_eq!(finished.answer.status, RunStatus::Completed);
}

#[tokio::test]
async fn text_is_kept_when_the_scene_chooses_not_to_write() {
    let words = "Dune is on the shelf: there is no need to reserve it.";
    let (llm, town, finished) = reserve_step(&["ReserveBook"], words, vec![choice("nothing")]).await;
    assert_eq!(forced(&llm), names(&[None, Some("NextCall")]));
    assert!(town.log.calls().is_empty());
    assert_eq!(finished.answer.steps[0].result.as_deref(), Some(words));
    let check = requests(&llm, QuestionKind::Check).pop().unwrap();
    let line: Value = serde_json::from_str(&section(&check, "executed").unwrap()).unwrap();
    assert_eq!(line["not_called"], json!(["ReserveBook"]), "the check is told that nothing was written");
}

#[tokio::test]
async fn text_is_kept_when_the_server_cannot_force() {
    let words = "Which day?";
    let play = ModelRules::of(library(&["ReserveBook"])).scene(move |_, _| Scripted::Text(words.to_owned()));
    let llm = play.start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask("Reserve Dune.").await;
    assert_eq!(requests(&llm, QuestionKind::Scene).len(), 2);
    assert_eq!(finished.answer.steps[0].result.as_deref(), Some(words));
}

#[tokio::test]
async fn scene_chooses_once_per_step() {
    let by_force = vec![choice("FindBook"), find("Dune")];
    let (llm, town, finished) = reserve_step(&["ReserveBook", "FindBook"], "", by_force).await;
    assert_eq!(forced(&llm), names(&[None, Some("NextCall"), Some("FindBook"), None]));
    assert_eq!(town.log.names(), ["FindBook"]);
    assert_eq!(finished.answer.steps[0].result.as_deref(), Some("The book Dune is on shelf B4."));
    let check = requests(&llm, QuestionKind::Check).pop().unwrap();
    let line: Value = serde_json::from_str(&section(&check, "executed").unwrap()).unwrap();
    assert_eq!(line["not_called"], json!(["ReserveBook"]));
    assert_eq!(finished.answer.status, RunStatus::Partial, "the planned write was not executed");
}

#[tokio::test]
async fn repeating_scene_is_ended_with_its_results() {
    let (llm, town, finished) = library_step(&["FindBook"], vec![calls(&[find("Dune")])]).await;
    assert_eq!(requests(&llm, QuestionKind::Scene).len(), 3, "a call, and twice the same again");
    assert_eq!(town.log.names(), ["FindBook"]);
    assert_eq!(finished.answer.steps[0].result.as_deref(), Some("The book Dune is on shelf B4."));
}

#[tokio::test]
async fn scene_with_results_may_end_without_the_planned_write() {
    for last in ["", "Dune is on shelf B4."] {
        let replies = vec![calls(&[find("Dune")]), Scripted::Text(last.to_owned())];
        let (llm, town, finished) = library_step(&["FindBook", "ReserveBook"], replies).await;
        assert_eq!(forced(&llm), names(&[None, None]), "{finished:#?}");
        assert_eq!(town.log.names(), ["FindBook"]);
        assert_eq!(finished.answer.status, RunStatus::Completed);
    }
}

#[tokio::test]
async fn read_planned_first_runs_before_a_choice_is_requested() {
    let refused = ("FindBook", json!({"title": 5}));
    let by_force = vec![refused, choice("ReserveBook"), ("ReserveBook", arguments_of("ReserveBook"))];
    let (llm, town, _) = reserve_step(&["FindBook", "ReserveBook"], "", by_force).await;
    let order = [None, Some("FindBook"), None, Some("NextCall"), Some("ReserveBook"), None];
    assert_eq!(forced(&llm), names(&order));
    assert_eq!(town.log.names(), ["ReserveBook"]);
}

#[tokio::test]
async fn scene_choice_is_parsed_in_every_forcing_mode() {
    for forcing in [Forcing::Required, Forcing::JsonSchema] {
        let replies = [choice("ReserveBook"), ("ReserveBook", arguments_of("ReserveBook"))];
        let play = ModelRules::of(library(&["ReserveBook"])).scene(move |request, _| {
            let scripted = forced_tool(request).and_then(|name| replies.iter().find(|(of, _)| *of == name));
            scripted
                .map_or(Scripted::Text(String::new()), |(_, reply)| Scripted::forced(request, reply.clone()))
        });
        let llm = play.start();
        let town = Town::open(&llm, |config| config.llm.models[0].forcing = forcing).await;
        let finished = town.ask("Reserve Dune.").await;
        assert_eq!(
            town.log.calls(),
            [("ReserveBook".to_owned(), arguments_of("ReserveBook"))],
            "{finished:#?}"
        );
    }
}

#[tokio::test]
async fn rules_choosing_for_a_silent_model_write_nothing() {
    let play = ModelRules::of(library(&["ReserveBook"])).scene(|_, _| Scripted::Text(String::new()));
    let llm = play.start();
    let town = Town::open(&llm, |config| config.planning.fallback_enabled = true).await;
    let finished = town.ask("Reserve the book Solaris for 7 days").await;
    assert!(town.log.calls().is_empty(), "{finished:#?}");
    assert_ne!(finished.answer.status, RunStatus::Completed);
}

/// The town after one step that should book a parking space, silent without a forced call, and forced to book
/// for each of these days in turn.
async fn book_step(request: &str, days: &'static [&'static str]) -> (ScriptedLlm, Town, AnsweredRun) {
    let booked = Mutex::new(days.iter());
    let play = ModelRules::of(plan(json!([step(1, "Parking", &["BookSpace"], Value::Null)])));
    let play = play.scene(move |request, _| match forced_tool(request) {
        None => Scripted::Text(String::new()),
        Some("NextCall") => Scripted::forced(request, json!({"next": "BookSpace"})),
        Some(_) => {
            let day = booked.lock().unwrap().next().unwrap();
            Scripted::forced(request, json!({"day": day, "plate": "AB123CD"}))
        }
    });
    let llm = play.start();
    let town = Town::open(&llm, |config| config.execution.confirm = ConfirmPolicy::Unclear).await;
    let finished = town.ask(request).await;
    (llm, town, finished)
}

#[tokio::test]
async fn forced_write_for_an_unmentioned_day_is_confirmed() {
    let words = "Book a parking space for 15 June for the plate AB123CD";
    let (_, town, finished) = book_step(words, &["2026-06-15"]).await;
    assert_eq!(town.log.calls()[0].1["day"], "2026-06-15");
    assert_eq!(finished.answer.status, RunStatus::Completed, "{finished:#?}");
    for (words, day) in [(words, "2026-05-15"), ("Book a parking space for the plate AB123CD", "2026-05-05")]
    {
        let days: &'static [&'static str] =
            if day == "2026-05-15" { &["2026-05-15"] } else { &["2026-05-05"] };
        let (_, town, finished) = book_step(words, days).await;
        assert!(town.log.calls().is_empty());
        assert_eq!(finished.answer.status, RunStatus::NeedsInput, "{finished:#?}");
        assert!(finished.answer.answer.contains(day), "{}", finished.answer.answer);
    }
}

#[tokio::test]
async fn write_with_unmentioned_values_is_confirmed_first() {
    for (day, plate) in [("2026-07-15", "AB123CD"), ("2026-06-15", "AB321CD")] {
        let reply = calls(&[("BookSpace", json!({"day": day, "plate": plate}))]);
        let play = ModelRules::of(plan(json!([step(1, "Parking", &["BookSpace"], Value::Null)])));
        let llm = play.scene(move |_, _| reply.clone()).start();
        let town = Town::open(&llm, |config| config.execution.confirm = ConfirmPolicy::Unclear).await;
        let finished = town.ask("Book a parking space for 15 June for the plate AB123CD").await;
        assert!(town.log.calls().is_empty());
        assert_eq!(requests(&llm, QuestionKind::Scene).len(), 1, "the scene is not asked again");
        assert_eq!(finished.answer.status, RunStatus::NeedsInput);
        assert!(
            finished.answer.answer.contains(day) && finished.answer.answer.contains(plate),
            "{finished:#?}"
        );
    }
}
