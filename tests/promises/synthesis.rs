//! Steps of kind llm: a model makes values of the results of earlier steps, without a tool.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::adapt::ExecutionLevel;
use proscenium::plan::Plan;
use proscenium::run::{Event, RequestOptions, RunStatus, SessionId};
use proscenium::tools::{ToolContext, ToolError, native};
use serde_json::{Value, json};

use crate::flows::SCENE;
use crate::support::test_engine::{FinishedRun, Setup, TestEngine};
use crate::support::{Scripted, ScriptedLlm, forced_tool, section};

/// An engine with the scene Database, its model and what it has saved.
struct Database {
    test: TestEngine,
    llm: ScriptedLlm,
    saved: Arc<AtomicUsize>,
    _scenes: tempfile::TempDir,
}

/// A model that plans `plan`, and replies to a step's question with what `synthesis` makes of its number.
fn model(plan: Value, synthesis: impl Fn(usize) -> Value + Send + Sync + 'static) -> ScriptedLlm {
    let asked = AtomicUsize::new(0);
    ScriptedLlm::start(move |request, _| match forced_tool(request) {
        Some("CreateExecutionPlan") => Scripted::forced(request, plan.clone()),
        Some("ReportNode") => Scripted::forced(request, synthesis(asked.fetch_add(1, Ordering::SeqCst))),
        Some("CheckContinuation") => Scripted::answered(request, Value::Null),
        _ => Scripted::Text("That is what was found.".into()),
    })
}

impl Database {
    async fn start(llm: ScriptedLlm) -> Self {
        Self::start_with(llm, |setup| setup).await
    }

    async fn start_with(llm: ScriptedLlm, more: impl FnOnce(Setup) -> Setup) -> Self {
        let (scenes, saved) = (tempfile::tempdir().unwrap(), Arc::new(AtomicUsize::new(0)));
        let folder = scenes.path().join("database");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("scene.toml"), SCENE).unwrap();
        let saves = saved.clone();
        let setup = Setup::scripted(&llm).alone().scenes(scenes.path()).set("execution.level", "adaptive");
        let setup = more(setup)
            .native(
                "test.run",
                native(|sent: Value, _: ToolContext| async move {
                    Ok::<_, ToolError>(json!({"rows": [sent["sql"]]}))
                }),
            )
            .native(
                "test.save",
                native(move |_: Value, _: ToolContext| {
                    saves.fetch_add(1, Ordering::SeqCst);
                    async { Ok::<_, ToolError>(json!({"saved": true})) }
                }),
            );
        Self { test: setup.start().await, llm, saved, _scenes: scenes }
    }

    async fn ask(&self, plan: Option<Value>, options: RequestOptions) -> FinishedRun {
        let words = "Look the numbers up and say what they mean";
        let mut request = self.test.engine.request(words, Some(SessionId::new("s").unwrap()));
        request.plan = plan.map(|plan| serde_json::from_value::<Plan>(plan).unwrap());
        request.options = options;
        let ticket = self.test.engine.submit(request).await.unwrap();
        self.test.finish(ticket).await
    }

    async fn run(&self, plan: Value) -> FinishedRun {
        self.ask(Some(plan), RequestOptions::default()).await
    }

    /// The questions to the models of steps.
    fn questions(&self) -> Vec<Value> {
        self.llm.requests().into_iter().filter(|request| forced_tool(request) == Some("ReportNode")).collect()
    }
}

fn look_up() -> Value {
    json!({"step_number": 1, "scene_name": "Database", "purpose": "Run the query", "expected_tools": ["Run"],
        "depends_on_step": null, "prepared_calls": [{"tool": "Run", "arguments": {"sql": "select 1"}}]})
}

fn headline() -> Value {
    json!({"step_number": 2, "kind": "llm", "scene_name": "LLM", "purpose": "Make a headline", "depends_on_step": 1,
        "inputs": {"rows": {"$ref": {"step": 1, "tool": "Run", "pointer": "/rows"}}, "tone": "dry"},
        "output": {"type": "object", "required": ["headline"], "properties": {"headline": {"type": "string"}}}})
}

fn plan_of(steps: Vec<Value>) -> Value {
    json!({"needs_execution": true, "reasoning": "", "steps": steps})
}

#[tokio::test]
async fn step_makes_its_output_of_results_of_earlier_steps() {
    let none = plan_of(vec![]);
    let database = Database::start(model(none, |_| json!({"headline": "One row"}))).await;
    let run = database.run(plan_of(vec![look_up(), headline()])).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!(run.answer.steps[1].result.as_deref(), Some("One row"));
    assert_eq!((run.answer.steps[1].scene_name.as_str(), run.answer.steps[1].tool_calls.len()), ("LLM", 0));
    let question = &database.questions()[0];
    let inputs: Value = serde_json::from_str(&section(question, "inputs").unwrap()).unwrap();
    assert_eq!(inputs, json!({"rows": ["select 1"], "tone": "dry"}));
    assert_eq!(section(question, "purpose").as_deref(), Some("Make a headline"));
}

#[tokio::test]
async fn output_that_does_not_fit_its_schema_is_sent_back() {
    let reply = |nth| if nth == 0 { json!({"headline": 5}) } else { json!({"headline": "One row"}) };
    let database = Database::start(model(plan_of(vec![]), reply)).await;
    let run = database.run(plan_of(vec![look_up(), headline()])).await;
    assert_eq!(
        (run.answer.status, database.questions().len()),
        (RunStatus::Completed, 2),
        "{:#?}",
        run.answer
    );
    let database = Database::start(model(plan_of(vec![]), |_| json!({"headline": 5}))).await;
    let run = database.run(plan_of(vec![look_up(), headline()])).await;
    assert_eq!(run.answer.steps[1].error.as_ref().unwrap().code, "llm.unusable", "{:#?}", run.answer);
}

#[tokio::test]
async fn planner_may_plan_a_step_without_a_tool() {
    // As other systems write it.
    let bare = json!({"step_number": 2, "scene_name": "", "purpose": "Say what it means", "expected_tools": ["LLM"],
        "depends_on_step": [1], "unclear": false});
    let planned = json!({"needs_execution": true, "reasoning": "", "steps": [look_up(), bare], "unserved": [], "answer": null});
    let database = Database::start(model(planned, |_| json!({"text": "It means one."}))).await;
    let run = database.ask(None, RequestOptions::default()).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!(run.answer.steps[1].result.as_deref(), Some("It means one."));
}

/// A plan of two reads and a step that compares what they found, as a planner writes it.
fn comparison(more: Vec<Value>) -> Value {
    // What is read are words of the request, so that the prepared calls are made.
    let read = |number: u32, sql: &str| {
        let mut step = look_up();
        step["step_number"] = json!(number);
        step["prepared_calls"][0]["arguments"] = json!({"sql": sql}).to_string().into();
        step
    };
    let rows = |step: u32| json!({"$ref": {"step": step, "tool": "Run", "pointer": "/rows"}});
    let output = json!({"type": "object", "required": ["more"], "properties": {"more": {"type": "string"}}});
    // The dependencies follow from the references.
    let compare = json!({"step_number": 3, "scene_name": "LLM", "purpose": "Say which is more", "depends_on_step": null,
        "inputs": json!({"one": rows(1), "two": rows(2)}).to_string(), "output": output.to_string()});
    let steps: Vec<Value> =
        [read(1, "the numbers"), read(2, "what they mean"), compare].into_iter().chain(more).collect();
    json!({"needs_execution": true, "reasoning": "", "steps": steps, "unserved": [], "answer": null})
}

#[tokio::test]
async fn planner_is_offered_a_step_that_compares_two_results() {
    let database = Database::start(model(comparison(vec![]), |_| json!({"more": "the second"}))).await;
    let run = database.ask(None, RequestOptions::default()).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!(run.answer.steps[2].result.as_deref(), Some("the second"));
    let question = &database.questions()[0];
    let inputs: Value = serde_json::from_str(&section(question, "inputs").unwrap()).unwrap();
    assert_eq!(inputs, json!({"one": ["the numbers"], "two": ["what they mean"]}));
    let plan = &database.llm.requests()[0];
    let system = plan["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("A step of LLM has no tool"), "{system}");
    let tool = &plan["tools"][0]["function"];
    let offered = &tool["parameters"]["properties"]["steps"]["items"]["anyOf"][1]["properties"];
    assert_eq!(
        (&offered["scene_name"]["enum"], &tool["strict"]),
        (&json!(["LLM"]), &json!(true)),
        "{tool:#}"
    );
}

#[tokio::test]
async fn planned_write_is_not_made_of_what_a_planned_step_made() {
    let title = json!({"title": {"$ref": {"step": 3, "tool": "LLM", "pointer": "/more"}}});
    let save = json!({"step_number": 4, "scene_name": "Database", "purpose": "Save it", "expected_tools": ["Save"],
        "depends_on_step": 3, "unclear": false, "if_needed": [],
        "prepared_calls": [{"tool": "Save", "arguments": title.to_string()}]});
    let database = Database::start(model(comparison(vec![save]), |_| json!({"more": "the second"}))).await;
    let run = database.ask(None, RequestOptions::default()).await;
    assert_eq!(run.answer.steps[2].result.as_deref(), Some("the second"), "{:#?}", run.answer);
    let why = run.events.iter().find_map(|event| match &event.body {
        Event::Prepared { step: 4, unprepared, .. } => unprepared.first().map(|call| call.why.clone()),
        _ => None,
    });
    assert!(why.as_ref().is_some_and(|why| why.contains("no source of a write")), "{why:?}");
    assert_eq!(database.saved.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn without_a_model_for_it_the_step_is_not_offered() {
    let llm = model(comparison(vec![]), |_| json!({"more": "the second"}));
    let offline = |setup: Setup| setup.set("llm.purposes.node", json!(["offline"]));
    let database = Database::start_with(llm, offline).await;
    let run = database.ask(None, RequestOptions::default()).await;
    let plan = &database.llm.requests()[0];
    assert!(!plan["messages"][0]["content"].as_str().unwrap().contains("A step of LLM"));
    assert_eq!(run.answer.steps[2].error.as_ref().unwrap().code, "llm.not_configured", "{:#?}", run.answer);
    assert!(database.questions().is_empty());
}

#[tokio::test]
async fn at_the_level_basic_the_step_fails_without_a_question() {
    let database = Database::start(model(plan_of(vec![]), |_| json!({"headline": "One row"}))).await;
    let options = RequestOptions { level: Some(ExecutionLevel::Basic), ..RequestOptions::default() };
    let run = database.ask(Some(plan_of(vec![look_up(), headline()])), options).await;
    assert_eq!(run.answer.steps[1].error.as_ref().unwrap().code, "level.basic", "{:#?}", run.answer);
    assert!(database.questions().is_empty());
}

#[tokio::test]
async fn what_a_model_made_grounds_no_write() {
    let database = Database::start(model(plan_of(vec![]), |_| json!({"headline": "One row"}))).await;
    let save = json!({"step_number": 3, "scene_name": "Database", "purpose": "Save it", "expected_tools": ["Save"],
        "depends_on_step": 2, "prepared_calls": [{"tool": "Save",
        "arguments": {"title": {"$ref": {"step": 2, "tool": "LLM", "pointer": "/headline"}}}}]});
    let run = database.run(plan_of(vec![look_up(), headline(), save])).await;
    let why = run.events.iter().find_map(|event| match &event.body {
        Event::Prepared { step: 3, unprepared, .. } => unprepared.first().map(|call| call.why.clone()),
        _ => None,
    });
    assert!(why.as_ref().is_some_and(|why| why.contains("no source of a write")), "{why:?}");
    assert_eq!(database.saved.load(Ordering::SeqCst), 0);
    // A further model may read it.
    let further = json!({"step_number": 3, "kind": "llm", "purpose": "Shorten it", "depends_on_step": 2,
        "inputs": {"long": {"$ref": {"step": 2, "tool": "LLM", "pointer": "/headline"}}},
        "output": {"type": "object", "required": ["headline"], "properties": {"headline": {"type": "string"}}}});
    let run = database.run(plan_of(vec![look_up(), headline(), further])).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    let inputs = section(database.questions().last().unwrap(), "inputs");
    assert_eq!(inputs.as_deref(), Some("{\"long\":\"One row\"}"));
}

#[tokio::test]
async fn faulty_steps_are_refused_with_their_problems() {
    let database = Database::start(model(plan_of(vec![]), |_| json!({"headline": "One row"}))).await;
    let with = |key: &str, value: Value| {
        let mut step = headline();
        step[key] = value;
        plan_of(vec![look_up(), step])
    };
    for (plan, expected) in [
        (with("depends_on_step", Value::Null), "does not depend on"),
        (with("output", json!({"type": "array"})), "not of the type"),
        (with("output", json!({"type": "nonsense"})), "cannot be used"),
        (with("purpose", json!(" ")), "no purpose"),
        (with("inputs", json!({"long": "x".repeat(40_000)})), "at most 32768"),
    ] {
        let run = database.run(plan).await;
        let message = &run.answer.error.as_ref().unwrap().message;
        assert_eq!(run.answer.status, RunStatus::Failed, "{:#?}", run.answer);
        assert!(
            message.contains(expected) || run.state.error.as_ref().unwrap().message.contains(expected),
            "{message}"
        );
    }
    assert!(database.questions().is_empty());
    // A missing value is known only when the step begins.
    let run = database
        .run(with("inputs", json!({"rows": {"$ref": {"step": 1, "tool": "Run", "pointer": "/nothing"}}})))
        .await;
    assert_eq!(run.answer.steps[1].error.as_ref().unwrap().code, "step.input", "{:#?}", run.answer);
}
