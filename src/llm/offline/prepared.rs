//! Prepared calls: the writes that a plan's steps are expected to make, with the arguments known in advance.
//! Approvers see them before they decide.
//!
//! **Invariant:** they come from the same rules by which the step's scene makes its calls. The scene's prompt is
//! built here from the planner's prompt, so that the executed calls equal the prepared ones.

use serde_json::{Value, json};

use super::prompt::{PromptText, SceneCard, ToolCard};
use super::scene;
use crate::llm::{Request, ToolSpec};

/// Maximum number of orders of required arguments to try.
const MAX_ORDERS: usize = 50;

/// Number of recent turns in a scene's prompt regardless of whether the scene took part in them.
const LAST_TURNS: usize = 2;

/// Adds prepared calls to `steps` if the forced tool of `request` takes them. Unchanged steps of the plan
/// `before` keep theirs.
pub(super) fn prepare(
    request: &Request,
    prompt: &PromptText,
    scenes: &[SceneCard],
    before: &Value,
    steps: &mut Value,
) {
    for step in steps.as_array_mut().into_iter().flatten() {
        let offered = step["scene_name"].as_str().and_then(|scene| PreparableCalls::to(scene, request));
        let calls = match &offered {
            Some(_) if is_unchanged(step, before) => continue,
            Some(offered) => offered.calls(step, prompt, scenes),
            None => Vec::new(),
        };
        let required = offered.is_some_and(|offered| offered.required);
        if let Some(step) = step.as_object_mut() {
            step.remove("prepared_calls");
            if !calls.is_empty() || required {
                step.insert("prepared_calls".to_owned(), json!(calls));
            }
        }
    }
}

/// Whether the plan `before` has this step with the same purpose and tools, whatever its number.
fn is_unchanged(step: &Value, before: &Value) -> bool {
    let same = |old: &&Value| {
        ["scene_name", "purpose", "expected_tools"].iter().all(|name| old[*name] == step[*name])
    };
    before["steps"].as_array().into_iter().flatten().any(|old| same(&old))
}

/// The prepared calls that a scene's steps may carry.
struct PreparableCalls<'a> {
    /// By tool: the schema of its arguments. `None` where any tool may be called.
    tools: Option<Vec<(&'a str, &'a Value)>>,
    writes_only: bool,
    /// Whether each step must have a list of calls, even an empty one.
    required: bool,
    /// Whether arguments are written as text, and reads are prepared as well: the schemas are then those of the
    /// catalogue, and a step is executed by its calls if they are all that it expects.
    as_text: bool,
}

impl<'a> PreparableCalls<'a> {
    fn to(scene: &str, request: &'a Request) -> Option<Self> {
        let steps = request.tools.first()?.parameters.pointer("/properties/steps/items")?;
        let is_its = |step: &&Value| {
            let name = step.pointer("/properties/scene_name");
            name.is_some_and(|name| allowed_strings(name).is_none_or(|names| names.contains(&scene)))
        };
        let step = alternatives(steps).into_iter().find(is_its)?;
        let items = step.pointer("/properties/prepared_calls/items")?;
        let required = step["required"].as_array().into_iter().flatten();
        let required = required.into_iter().any(|name| name == "prepared_calls");
        let writes_only = step.pointer("/properties/if_needed").is_none();
        if items.pointer("/properties/arguments/type").is_some_and(|kind| kind == "string") {
            let names = items.pointer("/properties/tool").and_then(allowed_strings);
            let tools = names.map(|names| names.into_iter().map(|name| (name, &Value::Null)).collect());
            return Some(Self { tools, writes_only, required, as_text: true });
        }
        let tool = |item: &'a Value| {
            let names = allowed_strings(item.pointer("/properties/tool")?)?;
            Some((*names.first()?, item.pointer("/properties/arguments")?))
        };
        let tools = alternatives(items).into_iter().filter_map(tool).collect();
        Some(Self { tools: Some(tools), writes_only, required, as_text: false })
    }

    /// The calls that the scene of `step` will make, with the arguments known in advance.
    fn calls(&self, step: &Value, prompt: &PromptText, scenes: &[SceneCard]) -> Vec<Value> {
        let expected: Vec<&str> =
            step["expected_tools"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let Some(scene) = scenes.iter().find(|scene| step["scene_name"] == scene.scene.as_str()) else {
            return Vec::new();
        };
        let writes = |name: &str| scene.tools.iter().any(|tool| tool.name == name && tool.writes());
        let is_listed =
            |name: &str| self.tools.as_ref().is_none_or(|tools| tools.iter().any(|(tool, _)| *tool == name));
        let is_preparable = |name: &str| is_listed(name) && (!self.writes_only || writes(name));
        if !expected.iter().any(|name| is_preparable(name)) {
            return Vec::new();
        }
        let offered =
            scene.tools.iter().filter(|tool| !tool.writes() || expected.contains(&tool.name.as_str()));
        let offered: Vec<&ToolCard> = offered.collect();
        let purpose = step["purpose"].as_str().unwrap_or_default();
        let scene_prompt = scene_prompt(prompt, &scene.scene, &expected, (purpose, &step["unclear"]));
        let waits = match &step["depends_on_step"] {
            Value::Array(list) => !list.is_empty(),
            one => !one.is_null(),
        };
        let calls_for_order = |order: usize| {
            let tools: Vec<ToolSpec> = offered.iter().map(|tool| self.tool_spec(tool, order)).collect();
            let tools: Vec<&ToolSpec> = tools.iter().collect();
            // Calls that are executed without the scene are those that it would make at once.
            let mut calls = match self.writes_only {
                true => scene::prepared_calls(&scene_prompt, &tools, waits),
                false => scene::first_calls(&scene_prompt, &tools, waits, &scene.description),
            };
            calls.retain(|(name, _)| is_preparable(name));
            calls
        };
        let mut calls = calls_for_order(0);
        let orders = offered.iter().map(|tool| self.orders(tool)).max().unwrap_or(1);
        for order in 1..orders.min(MAX_ORDERS) {
            keep_common(&mut calls, &calls_for_order(order));
        }
        // Reads alone would end a step that needs what they find.
        let covers = |name: &&str| calls.iter().any(|(tool, _)| tool == name);
        if self.as_text && !expected.iter().all(covers) {
            calls.retain(|(name, _)| writes(name));
        }
        let written = |arguments: Value| if self.as_text { json!(arguments.to_string()) } else { arguments };
        let calls = calls.into_iter();
        calls.map(|(tool, arguments)| json!({"tool": tool, "arguments": written(arguments)})).collect()
    }

    /// The number of orders of `card`'s required arguments to try. The scene's prompt has the author's order,
    /// by which the scene resolves values that fit several arguments. If the order is unknown here, only
    /// arguments that do not depend on it are prepared.
    fn orders(&self, card: &ToolCard) -> usize {
        match self.own_schema(card) {
            Some(schema) if !is_order_known(schema, &required(schema, card)) => {
                swaps(required(schema, card).len()).len() + 1
            }
            _ => 1,
        }
    }

    /// The schema that the plan has of a tool's arguments.
    fn own_schema(&self, card: &ToolCard) -> Option<&'a Value> {
        let own = self.tools.iter().flatten().find(|(name, _)| *name == card.name);
        own.map(|(_, schema)| *schema).filter(|_| !self.as_text)
    }

    /// The tool as in the scene's prompt, with its required arguments in one of the orders.
    fn tool_spec(&self, card: &ToolCard, order: usize) -> ToolSpec {
        let own = self.own_schema(card);
        let mut parameters = own.unwrap_or(&card.schema).clone();
        if let Some(schema) = own {
            let mut required = required(schema, card);
            if is_order_known(schema, &required) {
                required.sort_by_key(|name| mention_position(schema, name));
            }
            let swap = order.checked_sub(1).and_then(|at| swaps(required.len()).get(at).copied());
            if let Some((a, b)) = swap {
                required.swap(a, b);
            }
            if let Some(schema) = parameters.as_object_mut() {
                schema.entry("required").or_insert_with(|| json!(required));
            }
        }
        ToolSpec {
            name: card.name.clone(),
            description: card.description.clone(),
            parameters: parameters.into(),
            strict: false,
        }
    }
}

/// The required arguments of a tool: from the plan's schema, else from the catalogue.
fn required<'a>(schema: &'a Value, card: &'a ToolCard) -> Vec<&'a str> {
    let own = schema.get("required").unwrap_or(&card.parameters["required"]);
    own.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether the plan's schema has the order of the required arguments: in its list, or in its description.
fn is_order_known(schema: &Value, required: &[&str]) -> bool {
    schema.get("required").is_some() || required.iter().all(|name| mention_position(schema, name).is_some())
}

/// The position of a property's name in the description of a schema.
fn mention_position(schema: &Value, name: &str) -> Option<usize> {
    let words = schema["description"].as_str()?;
    words.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').position(|word| word == name)
}

/// All swaps of two of `count` positions.
fn swaps(count: usize) -> Vec<(usize, usize)> {
    (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
}

/// Keeps in `calls` only the calls and arguments that `others` have too.
fn keep_common(calls: &mut Vec<(String, Value)>, others: &[(String, Value)]) {
    let both = calls.iter().zip(others).take_while(|(one, other)| one.0 == other.0).count();
    calls.truncate(both);
    for ((_, arguments), (_, other)) in calls.iter_mut().zip(others) {
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.retain(|name, value| other.get(name) == Some(value));
        }
    }
}

/// The prompt that the scene of a step will get, built from the planner's prompt.
fn scene_prompt(
    prompt: &PromptText,
    scene: &str,
    expected: &[&str],
    (purpose, unclear): (&str, &Value),
) -> PromptText {
    let mut conversation: Value = prompt.json("conversation");
    if let Some(turns) = conversation["turns"].as_array() {
        let first = turns.len().saturating_sub(LAST_TURNS);
        let took_part = |turn: &Value| {
            turn["calls"].as_array().into_iter().flatten().any(|call| call["scene"].as_str() == Some(scene))
        };
        let kept = turns.iter().enumerate().filter(|(at, turn)| *at >= first || took_part(turn));
        conversation["turns"] = kept.map(|(_, turn)| turn.clone()).collect();
    }
    PromptText::with(&[
        ("scene", scene),
        ("now", &prompt.get("now")),
        ("language", &prompt.get("language")),
        ("user", &prompt.get("user")),
        ("conversation", &conversation.to_string()),
        ("pending", &prompt.get("pending")),
        ("request", &prompt.request()),
        ("expected_tools", &expected.join("\n")),
        ("unclear", if unclear == true { "true" } else { "" }),
        ("purpose", purpose),
    ])
}

/// The alternatives of a schema: those of its `anyOf`, or the schema itself.
fn alternatives(schema: &Value) -> Vec<&Value> {
    match schema["anyOf"].as_array() {
        Some(several) => several.iter().collect(),
        None => vec![schema],
    }
}

/// The strings that a schema allows. `None` if it allows any.
fn allowed_strings(schema: &Value) -> Option<Vec<&str>> {
    if let Some(one) = schema["const"].as_str() {
        return Some(vec![one]);
    }
    Some(schema["enum"].as_array()?.iter().filter_map(Value::as_str).collect())
}
