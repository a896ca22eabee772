//! What a step of a plan expects of its tools' results: a plan's own postconditions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use proscenium::adapt::{ConsultationOutcome, ExecutionLevel, ExecutionMode, RecoveryAction};
use proscenium::parts::{Recovery, RecoveryChoice, RecoveryRequest};
use proscenium::run::{ConfirmPolicy, Effect, Event, Fault, FaultClass, RunStatus};
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, native};
use proscenium::{CallOutcome, Config, Engine};
use serde_json::{Value, json};

use crate::support::journal;
use crate::support::planner_engine::{AnsweredRun, CallLog, ModelRules, Town, plan, step};

/// Temperatures of a room, in the order in which they are read; the last one stays.
fn scene(log: &CallLog, temperatures: &[i64]) -> Scene {
    let schema = json!({"type": "object", "required": ["room"], "properties": {"room": {"type": "string"}}});
    let tool = |name: &'static str, about: &str, effect: Effect| {
        let (log, values) = (log.clone(), Arc::new(Mutex::new(VecDeque::from(temperatures.to_vec()))));
        let work = native(move |arguments: Value, _: ToolContext| {
            let (log, values) = (log.clone(), values.clone());
            async move {
                log.begin(name, &arguments);
                let mut values = values.lock().unwrap();
                let c = if values.len() > 1 { values.pop_front() } else { values.front().copied() };
                Ok(json!({"room": arguments["room"], "c": c, "notes": []}))
            }
        });
        SceneTool::dynamic(name, about, effect, schema.clone(), work)
            .say("en", "{{ room }} has {{ c }} degrees.")
    };
    Scene::builder("Heating")
        .description("The heating of the house: temperatures of rooms, and setting them.")
        .instructions("Call the tool.")
        .example("How warm is the kitchen?", "Measure")
        .example("Heat the kitchen", "Heat")
        .tool(tool("Measure", "Measures the temperature of a room.", Effect::Read))
        .tool(tool("Heat", "Heats a room.", Effect::Write))
        .build()
        .unwrap()
}

/// A step that calls a tool for the kitchen and expects this of its result.
fn own_step(number: u32, tool: &str, after: Value, expect: Value) -> Value {
    let mut made = step(number, "Heating", &[tool], after);
    made["prepared_calls"] = json!([{"tool": tool, "arguments": {"room": "kitchen"}}]);
    made["expect"] = expect;
    made
}

fn warm(tool: &str) -> Value {
    json!([{"tool": tool, "ranges": {"/c": {"min": 15, "max": 30}}, "same": {"room": "/room"}}])
}

/// Asks the customer whenever it may.
struct Asks;

#[async_trait]
impl Recovery for Asks {
    async fn recover(&self, question: RecoveryRequest) -> Result<RecoveryChoice, Fault> {
        assert_eq!(question.failure.class, FaultClass::BadData);
        Ok(RecoveryChoice { action: RecoveryAction::AskUser, reason: String::new() })
    }
}

struct House {
    engine: Engine,
    log: CallLog,
    _dir: tempfile::TempDir,
}

/// An engine without models.
async fn house(level: Option<ExecutionLevel>, temperatures: &[i64]) -> House {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.data_dir = dir.path().to_owned();
    config.execution.level = level;
    config.execution.mode = level.map(|_| ExecutionMode::Adaptive);
    config.execution.confirm = ConfirmPolicy::Never;
    let log = CallLog::default();
    let builder = Engine::builder(config).scene(scene(&log, temperatures)).recovery(Asks);
    House { engine: builder.start().await.unwrap(), log, _dir: dir }
}

impl House {
    /// Carries out a plan that a person wrote.
    async fn carry_out(&self, steps: Value) -> AnsweredRun {
        let mut request = self.engine.request("See to the kitchen.", None);
        request.plan = Some(serde_json::from_value(plan(steps)).unwrap());
        let tenant = request.tenant.clone();
        let answer = self.engine.chat(request).await.unwrap();
        let stored = self.engine.store().run_events(&tenant, answer.run_id).await.unwrap();
        journal::assert_replayed(answer.run_id, &stored, &self.engine.catalogue());
        AnsweredRun { answer, events: stored.into_iter().map(|event| event.body).collect() }
    }
}

#[tokio::test]
async fn read_that_is_not_as_its_step_expects_has_failed() {
    for level in [None, Some(ExecutionLevel::Basic)] {
        let house = house(level, &[99]).await;
        let run = house.carry_out(json!([own_step(1, "Measure", Value::Null, warm("Measure"))])).await;
        let call = &run.answer.steps[0].tool_calls[0];
        assert_eq!((call.outcome, call.result.as_ref()), (CallOutcome::Failed, None), "{run:#?}");
        assert_eq!(call.error.as_ref().unwrap().code, "tool.postcondition");
        assert_ne!(run.answer.status, RunStatus::Completed);
        assert!(!run.answer.answer.contains("99"), "{}", run.answer.answer);
        assert_eq!(run.has("unexpected"), level.is_some());

        let house = self::house(level, &[20]).await;
        let run = house.carry_out(json!([own_step(1, "Measure", Value::Null, warm("Measure"))])).await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    }
}

#[tokio::test]
async fn about_a_result_that_a_step_does_not_expect_somebody_may_be_asked() {
    let house = house(Some(ExecutionLevel::Adaptive), &[99]).await;
    let run = house.carry_out(json!([own_step(1, "Measure", Value::Null, warm("Measure"))])).await;
    let asked = |event: &Event| matches!(event, Event::Consultation { how: ConsultationOutcome::Asked, .. });
    assert!(run.events.iter().any(asked), "{run:#?}");
    assert_eq!(run.answer.status, RunStatus::NeedsInput);
}

#[tokio::test]
async fn write_that_is_not_as_its_step_expects_stays_done_and_the_answer_says_so() {
    for level in [None, Some(ExecutionLevel::Basic)] {
        let house = house(level, &[99]).await;
        let run = house.carry_out(json!([own_step(1, "Heat", Value::Null, warm("Heat"))])).await;
        assert_eq!(house.log.names(), ["Heat"], "it is not repeated");
        let call = &run.answer.steps[0].tool_calls[0];
        assert_eq!((call.outcome, call.unexpected_result), (CallOutcome::Ok, true), "{run:#?}");
        assert_eq!(run.answer.status, RunStatus::Partial);
        assert!(run.answer.answer.contains("not as expected"), "{}", run.answer.answer);
        assert_eq!(run.has("unexpected"), level.is_some());
    }
}

#[tokio::test]
async fn equal_read_of_a_step_that_expects_more_is_judged_by_itself() {
    let house = house(None, &[5, 99]).await;
    let steps = json!([
        own_step(1, "Measure", Value::Null, json!([])),
        own_step(2, "Measure", json!(1), warm("Measure")),
    ]);
    let run = house.carry_out(steps).await;
    assert_eq!(house.log.names(), ["Measure", "Measure"], "{run:#?}");
    let outcomes: Vec<CallOutcome> = run.answer.steps.iter().map(|step| step.tool_calls[0].outcome).collect();
    assert_eq!(outcomes, [CallOutcome::Ok, CallOutcome::Failed]);
}

#[tokio::test]
async fn unusable_expectations_are_refused_with_the_plan() {
    let house = house(None, &[20]).await;
    for (expect, says) in [
        (json!([{"tool": "Measure", "same": {"rom": "/room"}}]), "no argument \"rom\""),
        (json!([{"tool": "Measure", "schema": {"type": "nonsense"}}]), "schema"),
        (json!([{"tool": "Heat", "not_empty": ["/c"]}]), "not among its expected_tools"),
        (json!([{"tool": "Measure", "not_empty": ["c"]}]), "JSON Pointer"),
    ] {
        let own = plan(json!([own_step(1, "Measure", Value::Null, expect)]));
        let plans = house.engine.plans();
        let refused = plans.supply("See.", serde_json::from_value(own).unwrap()).await.unwrap_err();
        assert_eq!(refused.code, "plan.invalid");
        assert!(refused.message.contains(says), "{refused}");
    }
    // The names of tools are corrected as elsewhere in a plan.
    let own = plan(json!([own_step(1, "Measure", Value::Null, warm("measure"))]));
    let made = house.engine.plans().supply("See.", serde_json::from_value(own).unwrap()).await.unwrap();
    assert_eq!(made.plan.unwrap().steps[0].expect[0].tool, "Measure");
}

#[tokio::test]
async fn models_state_no_expectations() {
    let mut made = step(1, "Heating", &["Measure"], Value::Null);
    made["expect"] = warm("Measure");
    let llm = ModelRules::of(plan(json!([made])))
        .scene(|request, _| match crate::support::planner_engine::has_results(request) {
            false => crate::support::Scripted::call("Measure", json!({"room": "kitchen"})),
            true => crate::support::Scripted::Text("99 degrees.".to_owned()),
        })
        .start();
    let mut config = Config { llm: llm.options(), ..Config::default() };
    config.planning.fallback_enabled = false;
    let log = CallLog::default();
    let town = Town::with(config, vec![scene(&log, &[99])], log).await;
    let run = town.ask("How warm is the kitchen?").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    assert!(run.plans()[0].plan.steps[0].expect.is_empty());
}
