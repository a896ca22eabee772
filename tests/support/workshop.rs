//! A scene in which every call outcome is possible, and a model that follows the words of a request: the
//! source of runs of every kind for `tests/replays`.
//!
//! | item | what happens |
//! | --- | --- |
//! | `lamp` | the call succeeds |
//! | `shy` | the first call fails |
//! | `broken` | every call fails |
//! | `lost` | the outcome is unknown |
//! | `slow` | the call has `started` and ends when `go` opens |
//!
//! If a request with the word `think` is planned, the model has `started`, too, and replies when `go` opens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::run::Effect;
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::model_script::ModelScript;
use super::{Gate, Scripted, ScriptedLlm, Setup, forced_tool, section, tool_results};

const SCRIPT: &str = r#"
"look": {steps: [{scene: Workshop, rounds: [[{Look: {item: lamp}}]]}]}
"look again": {steps: [{scene: Workshop, rounds: [[{Look: {item: shy}}], [{Look: {item: shy}}]]}]}
"look in vain, then put": {steps: [
  {scene: Workshop, rounds: [[{Look: {item: broken}}]]},
  {scene: Yard, after: [1], rounds: [[{Sweep: {item: lamp}}]]}]}
"put": {steps: [{scene: Workshop, rounds: [[{Put: {item: lamp}}]]}]}
"put it somewhere": {steps: [{scene: Workshop, rounds: [[{Put: {item: lost}}, {Put: {item: lamp}}]]}]}
"put slowly": {steps: [{scene: Workshop, rounds: [[{Put: {item: slow}}]]}]}
"look slowly": {steps: [{scene: Workshop, rounds: [[{Look: {item: slow}}]]}]}
"think, then look": {steps: [{scene: Workshop, rounds: [[{Look: {item: lamp}}]]}]}
"look, and see to the rest": {steps: [
  {scene: Workshop, rounds: [[{Look: {item: lamp}}]]},
  {scene: Yard, rounds: [[{Sweep: {item: lamp}}]]}]}
"look, misspoken": {steps: [{scene: Workshop, rounds: [[{Look: {item: lamp}}]]}]}
"look, unjudged": {steps: [{scene: Workshop, rounds: [[{Look: {item: lamp}}]]}]}
"hello": {says: "Good day."}
"Look at the lamp in the workshop": {}
"#;

/// What a call is about.
#[derive(Deserialize, schemars::JsonSchema)]
struct Item {
    /// The thing.
    item: String,
}

/// The workshop's scenes and model.
pub struct Workshop {
    pub llm: ScriptedLlm,
    pub started: Gate,
    pub go: Gate,
}

impl Workshop {
    pub fn new() -> Self {
        let (started, go) = (Gate::closed(), Gate::closed());
        let script = ModelScript::parse(SCRIPT);
        let (reached, wait) = (started.clone(), go.clone());
        let misspoken = AtomicUsize::new(0);
        let llm = ScriptedLlm::start(move |request, _| {
            let words = section(request, "request").unwrap_or_default();
            match (words.as_str(), forced_tool(request)) {
                ("Look at the lamp in the workshop", _) => Scripted::status(500),
                ("think, then look", Some("CreateExecutionPlan")) => {
                    reached.open();
                    script.reply(request).held(&wait)
                }
                ("look, and see to the rest", Some(forced)) => rest(request, forced, &script),
                ("look in vain, then put", None) if !tool_results(request).is_empty() => {
                    Scripted::status(500)
                }
                ("look, unjudged", Some("CheckContinuation")) => Scripted::Text("I cannot tell.".into()),
                ("look, misspoken", forced) => {
                    slip(request, forced, misspoken.fetch_add(1, Ordering::SeqCst), &script)
                }
                _ => script.reply(request),
            }
        });
        Self { llm, started, go }
    }

    pub fn setup(&self) -> Setup {
        let setup = Setup::scripted(&self.llm).alone().set("llm.max_attempts", 1);
        scenes(&self.started, &self.go).into_iter().fold(setup, Setup::scene)
    }
}

/// The check asks for the yard, once; the re-plan sweeps it.
fn rest(request: &Value, forced: &str, script: &ModelScript) -> Scripted {
    let swept = section(request, "executed").is_some_and(|executed| executed.contains("Yard"));
    let plan =
        |step: Value| json!({"needs_execution": true, "reasoning": "It was asked for.", "steps": [step]});
    match forced {
        "CreateExecutionPlan" if section(request, "missing").is_some() => Scripted::forced(
            request,
            plan(json!({"step_number": 2, "scene_name": "Yard", "purpose": "See to the yard",
                "expected_tools": ["Sweep"], "depends_on_step": 1})),
        ),
        "CreateExecutionPlan" => Scripted::forced(
            request,
            plan(json!({"step_number": 1, "scene_name": "Workshop", "purpose": "Look at the lamp",
                "expected_tools": ["Look"], "depends_on_step": null})),
        ),
        "CheckContinuation" if !swept => Scripted::forced(
            request,
            json!({"should_continue": true, "can_answer_now": false, "reasoning": "The yard is left.",
                "missing_information": "The yard was not seen to.", "answer": null}),
        ),
        _ => script.reply(request),
    }
}

/// A truncated plan, a plan with an unknown scene, a plan in a fence; then a scene without text.
fn slip(request: &Value, forced: Option<&str>, nth: usize, script: &ModelScript) -> Scripted {
    let plan = |scene: &str| {
        json!({"needs_execution": true, "reasoning": "Look.", "steps": [{"step_number": 1, "scene_name": scene,
            "purpose": "Look at the lamp", "expected_tools": ["Look(item)"], "depends_on_step": "1, no"}]})
    };
    let plain = json!({"needs_execution": true, "reasoning": "Look.", "steps": [{"step_number": 1,
        "scene_name": "workshop", "purpose": "Look at the lamp", "expected_tools": ["Look(item)"],
        "depends_on_step": null}]});
    match (forced, nth) {
        (Some(tool), 0) => Scripted::RawCall {
            name: tool.to_owned(),
            arguments: r#"{"needs_execution": true, "steps": [{"#.to_owned(),
        }
        .finished("length"),
        (Some(_), 1) => Scripted::forced(request, plan("Attic")),
        (Some(_), 2) => Scripted::Text(format!("```json\n{plain:#}\n```")),
        (None, 3) => Scripted::Text(String::new()),
        // After that the read is forced by name.
        (Some("Look"), _) => Scripted::forced(request, json!({"item": "lamp"})),
        _ => script.reply(request),
    }
}

/// Both scenes. Their tools are always the same.
fn scenes(started: &Gate, go: &Gate) -> Vec<Scene> {
    let shy = Arc::new(AtomicUsize::new(0));
    let (started, go) = (started.clone(), go.clone());
    let work = move |item: Item, _: ToolContext| {
        let (shy, started, go) = (shy.clone(), started.clone(), go.clone());
        async move {
            match item.item.as_str() {
                "shy" if shy.fetch_add(1, Ordering::SeqCst) == 0 => {
                    Err(ToolError::failed("workshop.hidden", "it hides: look again"))
                }
                "broken" => Err(ToolError::failed("workshop.broken", "it is in pieces")),
                "lost" => Err(ToolError::unknown("workshop.lost", "the door fell shut behind it")),
                "slow" => {
                    started.open();
                    go.wait_open().await;
                    Ok(json!({"item": item.item}))
                }
                _ => Ok::<Value, ToolError>(json!({"item": item.item})),
            }
        }
    };
    let workshop = Scene::builder("Workshop")
        .description("Things in a workshop.")
        .instructions("Look at them, or put them there.")
        .example("Look at the lamp in the workshop", "Look")
        .tool(
            SceneTool::native("Look", "Looks at a thing.", Effect::Read, work.clone())
                .say("en", "The {{ item }} stands in the workshop."),
        )
        .tool(
            SceneTool::native("Put", "Puts a thing there.", Effect::Write, work.clone())
                .say("en", "The {{ item }} stands there now."),
        );
    let yard = Scene::builder("Yard")
        .description("The yard behind the workshop.")
        .instructions("Sweep it.")
        .tool(SceneTool::native("Sweep", "Sweeps around a thing.", Effect::Write, work));
    [workshop, yard].map(|scene| scene.build().unwrap()).into()
}
