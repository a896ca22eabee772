//! A depot in which things go wrong in an orderly way, and models that are consulted about it: the source of the runs with
//! consultations for `tests/replays`. Nothing is repeated by itself, so no delay depends on the run's id.
//!
//! | request | what happens |
//! | --- | --- |
//! | `fetch` | the tool fails, and a model chooses the second of its alternatives |
//! | `fetch by vote` | the same, with two models that vote |
//! | `weigh` | the result has another shape, and a model says where the values are |
//! | `count` | the tool fails, and a model chooses to end that part |
//! | `count, or else weigh` | the step fails, and a model replaces it |

use proscenium::adapt::{FaultPolicy, PolicyAction};
use proscenium::run::{Effect, FaultClass};
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, ToolError, native};
use serde_json::{Value, json};

use super::planner_engine::{ModelRules, choice, plan, step};
use super::{Scripted, ScriptedLlm, Setup, section};

/// The depot's models.
pub struct Depot {
    first: ScriptedLlm,
    second: ScriptedLlm,
}

impl Depot {
    pub fn new() -> Self {
        Self { first: rules().start(), second: rules().start() }
    }

    /// An engine at the level `intelligent` in this mode, with one model or with two that vote.
    pub fn setup(&self, mode: &str, votes: u32) -> Setup {
        let setup = Setup::scripted(&self.first)
            .alone()
            .scene(scene())
            .set("llm.max_attempts", 1)
            .set("execution.level", "intelligent")
            .set("execution.mode", mode)
            .set("execution.language", "en");
        match votes {
            1 => setup,
            votes => setup.another_model("second", &self.second).set("execution.consultations.vote", votes),
        }
    }
}

/// Models that plan the tool which a request names first, and agree about everything.
fn rules() -> ModelRules {
    ModelRules::of(Value::Null)
        .plan(|request, _| {
            let words = section(request, "request").unwrap_or_default();
            let tool = match words.split([' ', ',']).next() {
                Some("weigh") => "Weigh",
                Some("count") => "Count",
                _ => "Fetch",
            };
            Scripted::forced(request, plan(json!([depot_step(1, tool)])))
        })
        .decide(|request, _| Scripted::forced(request, choice("alternative_2")))
        .interpret(|request, _| {
            let mapping = json!([{"to": "/kg", "from": "/weight/kilograms"}]);
            Scripted::forced(request, json!({"reason": "scripted", "mapping": mapping}))
        })
        .recovery(|request, _| Scripted::forced(request, choice("abort")))
        .adapt(|request, _| {
            let replace = json!([{"step": 1, "with": depot_step(2, "Weigh")}]);
            Scripted::forced(
                request,
                json!({"reason": "scripted", "replace": replace, "remove": [], "add": []}),
            )
        })
}

fn depot_step(number: u32, tool: &str) -> Value {
    let mut step = step(number, "Depot", &[tool], Value::Null);
    step["prepared_calls"] = json!([{"tool": tool, "arguments": json!({"item": "crate"}).to_string()}]);
    step["if_needed"] = json!([]);
    step
}

fn scene() -> Scene {
    let schema = json!({"type": "object", "required": ["item"], "properties": {"item": {"type": "string"}}});
    let tool = |name: &'static str, about: &str, result: Option<Value>| {
        let work = native(move |_: Value, _: ToolContext| {
            let result = result.clone();
            async move {
                result.ok_or_else(|| ToolError::failed("depot.garbled", "?!").classed(FaultClass::BadData))
            }
        });
        SceneTool::dynamic(name, about, Effect::Read, schema.clone(), work)
    };
    let instead = FaultPolicy { actions: Some(vec![PolicyAction::Alternative]), ..FaultPolicy::default() };
    let same = || json!({"item": "/arguments/item"});
    let weight = json!({"type": "object", "required": ["kg"], "properties": {"kg": {"type": "number"}}});
    Scene::builder("Depot")
        .description("A depot: fetches, weighs and counts things.")
        .instructions("Call the tool.")
        .example("fetch the crate", "Fetch")
        .tool(
            tool("Fetch", "Fetches a thing.", None)
                .policy(FaultClass::BadData, instead)
                .alternative("FetchByRail", same())
                .alternative("FetchByShip", same())
                .choose_by("Prefer ships."),
        )
        .tool(
            tool("FetchByRail", "Fetches a thing by rail.", Some(json!({"by": "rail"})))
                .say("en", "It came by {{ by }}."),
        )
        .tool(
            tool("FetchByShip", "Fetches a thing by ship.", Some(json!({"by": "ship"})))
                .say("en", "It came by {{ by }}."),
        )
        .tool(
            tool("Weigh", "Weighs a thing.", Some(json!({"weight": {"kilograms": 12}})))
                .expect_schema(weight)
                .expect_interpret()
                .say("en", "It has {{ kg }} kg."),
        )
        .tool(tool("Count", "Counts things.", None))
        .build()
        .unwrap()
}
