//! Interpretation: a model says where the expected values are in a result of another shape, judged by what reached it and
//! the back end, and by what the user gets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::CallOutcome;
use proscenium::adapt::{AskRefusal, ConsultationOutcome};
use proscenium::run::{Adaptation, Event, RunStatus, SessionId};
use serde_json::{Value, json};

use super::fault_matrix::{World, names, rules, run_after_a_kill, write_scene};
use super::process::Workspace;
use crate::support::planner_engine::{QuestionKind, has_results, plan, requests, step};
use crate::support::{FaultyBackend, FinishedRun, Gate, Misbehaviour, Scripted, ScriptedLlm, Setup, section};

/// The back end returns `done`, `text` and `code`; expected is another name for `done`.
pub(super) const EXPECT: &str = "{read}expect = { interpret = true, not_empty = [\"/text\"], schema = { type = \"object\", \
    required = [\"code\", \"text\", \"finished\"], properties = { code = { type = \"string\" }, text = { type = \
    \"string\" }, finished = { type = \"boolean\" } } } }";

fn mapping(pairs: &[(&str, &str)]) -> Value {
    let places = pairs.iter().map(|(to, from)| json!({"to": to, "from": from}));
    json!({"reason": "scripted", "mapping": places.collect::<Vec<_>>()})
}

pub(super) fn right() -> Value {
    mapping(&[("/code", "/code"), ("/text", "/text"), ("/finished", "/done")])
}

fn mapped_by(reply: impl Fn(usize) -> Value + Send + Sync + 'static) -> ScriptedLlm {
    rules().interpret(move |request, nth| Scripted::forced(request, reply(nth))).start()
}

fn always(_: &str, _: usize) -> Misbehaviour {
    Misbehaviour::Answer
}

async fn world_at(level: &str, llm: ScriptedLlm, more: &str, set: impl FnOnce(Setup) -> Setup) -> World {
    World::of_model(llm, Some(level), None, &format!("{EXPECT}\n{more}"), (always, set)).await
}

async fn world(llm: ScriptedLlm) -> World {
    world_at("intelligent", llm, "", |setup| setup).await
}

fn asked(world: &World) -> usize {
    requests(&world.llm, QuestionKind::Interpret).len()
}

fn outcome(run: &FinishedRun) -> CallOutcome {
    run.answer.steps[0].tool_calls[0].outcome
}

#[tokio::test]
async fn data_of_another_shape_is_read_as_a_model_maps_it() {
    let world = world(mapped_by(|_| right())).await;
    let run = world.ask("Look", "x").await;
    assert_eq!(
        (run.answer.status, outcome(&run)),
        (RunStatus::Completed, CallOutcome::Ok),
        "{:#?}",
        names(&run)
    );
    let result = &run.answer.steps[0].tool_calls[0].result;
    assert_eq!(*result, Some(json!({"code": "R-4711", "text": "it was answered", "finished": true})));
    assert_eq!((world.wire("Look", "x"), asked(&world)), (1, 1));
    assert_eq!(run.consultations(), [(ConsultationOutcome::Asked, Some("mapping"))]);
    let interpreted = run.events.iter().any(|event| {
        matches!(&event.body, Event::Adapted { change: Adaptation::Interpreted { found: Some(_), .. } })
    });
    assert!(interpreted, "{:#?}", names(&run));
}

#[tokio::test]
async fn question_has_the_expected_schema_and_the_shape_but_no_value() {
    let world = world(mapped_by(|_| right())).await;
    world.ask("Look", "secret-cell").await;
    let asked = requests(&world.llm, QuestionKind::Interpret)[0].clone();
    let expected: Value = serde_json::from_str(&section(&asked, "expected").unwrap()).unwrap();
    assert_eq!(expected["required"], json!(["code", "text", "finished"]));
    let data = section(&asked, "data").unwrap();
    assert_eq!(data, "\"\": object\n/code: string\n/done: boolean\n/text: string");
    let messages = asked["messages"].to_string();
    for hidden in ["R-4711", "it was answered", "secret-cell", "127.0.0.1", "keysersoze"] {
        assert!(!messages.contains(hidden), "{hidden} is in {messages}");
    }
}

#[tokio::test]
async fn equal_shapes_of_many_runs_are_one_question() {
    let world = world(mapped_by(|_| right())).await;
    for cell in ["a", "b", "c"] {
        let run = world.ask("Look", cell).await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{cell}: {:#?}", names(&run));
    }
    assert_eq!(asked(&world), 1, "the others share its reply");
}

#[tokio::test]
async fn mapping_that_does_not_fit_is_sent_back_and_the_next_one_counts() {
    let replies = [
        mapping(&[("/code", "/number"), ("/text", "/text"), ("/finished", "/done")]),
        mapping(&[("/code", "/code"), ("/text", "/text"), ("/finished", "/code")]),
        right(),
    ];
    let world = world(mapped_by(move |nth| replies[nth.min(2)].clone())).await;
    let run = world.ask("Look", "x").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!(asked(&world), 3);
    let sent = requests(&world.llm, QuestionKind::Interpret);
    assert!(sent[1].to_string().contains("the data has nothing at /number"), "{}", sent[1]);
    assert!(sent[2].to_string().contains("/finished does not have the expected type"), "{}", sent[2]);
    assert!(sent.iter().all(|request| !request.to_string().contains("R-4711")), "no repair tells a value");
}

#[tokio::test]
async fn without_a_fitting_mapping_the_failure_stands_and_nobody_else_is_asked() {
    let invented = mapping(&[("/code", "R-1"), ("/text", "/text"), ("/finished", "/done")]);
    let world = world(mapped_by(move |_| invented.clone())).await;
    let run = world.ask("Look", "x").await;
    assert_ne!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!(outcome(&run), CallOutcome::Failed);
    assert_eq!(asked(&world), 4, "one question and its repairs");
    assert_eq!(run.consultations(), [(ConsultationOutcome::Asked, None)]);
    assert_eq!(requests(&world.llm, QuestionKind::Recovery).len(), 0);
    // A model may say that the values are not there.
    let world = self::world(mapped_by(|_| mapping(&[]))).await;
    let run = world.ask("Look", "x").await;
    assert_eq!((outcome(&run), asked(&world)), (CallOutcome::Failed, 1));
    assert_eq!(run.consultations(), [(ConsultationOutcome::Asked, None)]);
}

#[tokio::test]
async fn interpreted_result_has_to_be_what_its_step_expects_too() {
    for (places, outcome, questions) in [("/code", CallOutcome::Ok, 1), ("/nothing", CallOutcome::Failed, 4)]
    {
        let world = world(mapped_by(|_| right())).await;
        let mut step = step(1, "Desk", &["Look"], Value::Null);
        step["prepared_calls"] = json!([{"tool": "Look", "arguments": {"cell": "x"}}]);
        step["expect"] = json!([{"tool": "Look", "not_empty": [places]}]);
        let session = SessionId::new("a").unwrap();
        let mut asked = world.test.engine.request("Look cell x", Some(session));
        asked.plan = Some(serde_json::from_value(plan(json!([step]))).unwrap());
        let run = world.test.finish(world.test.engine.submit(asked).await.unwrap()).await;
        assert_eq!(self::outcome(&run), outcome, "{places}: {:#?}", names(&run));
        assert_eq!(self::asked(&world), questions, "{places}: a mapping that breaks it is sent back");
    }
}

#[tokio::test]
async fn optional_call_without_a_mapping_is_left_out() {
    let more = "{read}optional = true\n{read}policies = { bad_data = { do = [\"skip\"] } }";
    for (reply, status) in [(right(), CallOutcome::Ok), (mapping(&[]), CallOutcome::Failed)] {
        let world = world_at("intelligent", mapped_by(move |_| reply.clone()), more, |setup| setup).await;
        let run = world.ask("Look", "x").await;
        let call = &run.answer.steps[0].tool_calls[0];
        assert_eq!(
            (call.outcome, call.left_out),
            (status, status == CallOutcome::Failed),
            "{:#?}",
            names(&run)
        );
        assert_eq!(asked(&world), 1);
    }
}

#[tokio::test]
async fn declared_alternative_comes_before_a_model() {
    let more = "{read}alternative = { tool = \"{tool}Elsewhere\", arguments = { cell = \"/arguments/cell\" } }\n\
        {read}policies = { bad_data = { do = [\"alternative\"] } }";
    let world = world_at("intelligent", mapped_by(|_| right()), more, |setup| setup).await;
    let run = world.ask("Look", "x").await;
    assert_eq!((run.answer.status, asked(&world)), (RunStatus::Completed, 0), "{:#?}", names(&run));
    assert_eq!(world.wire("LookElsewhere", "x"), 1);
}

#[tokio::test]
async fn no_model_is_asked_about_data_below_its_level_or_in_mode_strict() {
    for (level, mode) in
        [(None, None), (Some("basic"), None), (Some("adaptive"), None), (Some("intelligent"), Some("strict"))]
    {
        let world =
            World::of_model(mapped_by(|_| right()), level, mode, EXPECT, (always, |setup| setup)).await;
        world.ask("Look", "x").await;
        assert_eq!(asked(&world), 0, "{level:?} {mode:?}");
    }
    // Nor where the tool does not let it.
    let without = EXPECT.replace("interpret = true, ", "");
    let llm = mapped_by(|_| right());
    let world = World::of_model(llm, Some("intelligent"), None, &without, (always, |setup| setup)).await;
    world.ask("Look", "x").await;
    assert_eq!(asked(&world), 0);
}

#[tokio::test]
async fn bound_of_the_run_leaves_the_failure_as_it_is() {
    let set = |setup: Setup| setup.set("execution.consultations.max_per_run", 0);
    let world = world_at("intelligent", mapped_by(|_| right()), "", set).await;
    let run = world.ask("Look", "x").await;
    assert_eq!((outcome(&run), asked(&world)), (CallOutcome::Failed, 0), "{:#?}", names(&run));
    let why = run.events.iter().find_map(|event| match &event.body {
        Event::Unexpected { unasked, .. } => *unasked,
        _ => None,
    });
    assert_eq!(why, Some(AskRefusal::RunLimit));
}

#[tokio::test]
async fn write_that_rests_on_an_interpreted_result_is_asked_first_under_any_policy() {
    for confirm in ["unclear", "never"] {
        let set = |setup: Setup| setup.set("execution.confirm", confirm);
        let llm = rules().interpret(|request, _| Scripted::forced(request, right())).scene(|request, _| {
            match has_results(request) {
                true => Scripted::Text("That is what came of it.".to_owned()),
                false => Scripted::call("Book", json!({"cell": "R-4711"})),
            }
        });
        let world = world_at("intelligent", llm.start(), "", set).await;
        let run = world.test.chat("a", "Look cell x then Book").await;
        assert_eq!(run.answer.status, RunStatus::NeedsInput, "{confirm}: {:#?}", run.answer);
        assert_eq!(world.wire("Book", "R-4711"), 0, "{confirm}: nobody said yes");
        let done = world.test.chat("a", "yes").await;
        assert_eq!(done.answer.status, RunStatus::Completed, "{confirm}: {:#?}", done.answer);
        assert_eq!(world.wire("Book", "R-4711"), 1, "{confirm}");
    }
}

#[tokio::test]
async fn interpreted_result_grounds_nothing_in_later_turns() {
    let set = |setup: Setup| setup.set("execution.confirm", "unclear");
    let world = world_at("intelligent", mapped_by(|_| right()), "", set).await;
    world.test.chat("a", "Look cell x").await;
    let later = world.test.chat("a", "Book that").await;
    assert_eq!(later.answer.status, RunStatus::NeedsInput, "{:#?}", later.answer);
    assert_eq!(world.wire("Book", "R-4711"), 0);
}

#[tokio::test]
async fn what_the_back_end_returned_goes_with_its_conversation() {
    let world = world(mapped_by(|_| mapping(&[]))).await;
    let run = world.test.chat("a", "Look cell x").await;
    let id = run.answer.run_id;
    assert!(serde_json::to_string(&run.events).unwrap().contains("R-4711"), "it is in the journal alone");
    assert!(!serde_json::to_string(&run.answer).unwrap().contains("R-4711"));
    let session = SessionId::new("a").unwrap();
    world.test.engine.erase(&world.test.tenant, &session).await.unwrap();
    assert!(world.test.events(id).await.is_empty());
}

#[tokio::test]
async fn question_in_flight_is_asked_again_after_a_kill_and_nothing_is_sent_twice() {
    for at in [
        "after:unexpected", "after:model_asked", "after:model_replied", "after:consultation", "after:adapted",
    ] {
        let (backend, workspace) = (FaultyBackend::start(always), Workspace::bare());
        let llm = mapped_by(|_| right());
        write_scene(&workspace.path().join("scenes"), backend.address(), EXPECT);
        workspace.write_house(
            &llm,
            "[planning]\nfallback_enabled = false\n[execution]\nlevel = \"intelligent\"\n",
        );
        // The plan is asked for first.
        let skipped = u32::from(at.contains("model"));
        let run = run_after_a_kill(&workspace, (at, skipped), "Look cell x", || {}).await;
        assert_eq!(run["status"], "completed", "{at}: {run:#}");
        // A read whose end was not on disk may be made again.
        assert!(backend.requests("GET /Look/x").len() <= 2, "{at}");
        assert!((1..=2).contains(&requests(&llm, QuestionKind::Interpret).len()), "{at}");
    }
}

#[tokio::test]
async fn silent_model_leaves_the_failure_as_it_is() {
    let gate = Gate::closed();
    let (held, count) = (gate.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = count.clone();
    let llm = rules()
        .interpret(move |request, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            Scripted::forced(request, right()).held(&held)
        })
        .start();
    let set = |setup: Setup| setup.set("execution.consultations.timeout_ms", 2_000);
    let world = world_at("intelligent", llm, "", set).await;
    let run = world.ask("Look", "x").await;
    assert_eq!((outcome(&run), count.load(Ordering::SeqCst)), (CallOutcome::Failed, 1), "{:#?}", names(&run));
    gate.open();
}
