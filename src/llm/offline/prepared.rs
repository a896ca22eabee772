//! Prepared calls: the writes that a plan's steps are expected to make, with the arguments that are known
//! before anything was done. People see them before they say yes.
//!
//! **Invariant:** they come from the rules by which the step's scene calls later. The scene's question is
//! made here of what the planner was told, so what was shown is what is called.

use serde_json::{Value, json};

use super::prompt::{PromptText, SceneCard, ToolCard};
use super::scene;
use crate::llm::{Request, ToolSpec};

/// Most orders of required arguments that are looked at.
const MAX_ORDERS: usize = 50;

/// How many turns a scene is told of in which it did not take part.
const LAST_TURNS: usize = 2;

/// Gives `steps` their prepared calls where the forced tool of `request` takes them. Steps of the plan
/// `before` that stay as they were keep theirs.
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
            Some(_) if stays(step, before) => continue,
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

/// Whether the plan `before` has this step with the same words and tools, whatever its number.
fn stays(step: &Value, before: &Value) -> bool {
    let same = |old: &&Value| {
        ["scene_name", "purpose", "expected_tools"].iter().all(|name| old[*name] == step[*name])
    };
    before["steps"].as_array().into_iter().flatten().any(|old| same(&old))
}

/// The prepared calls that a scene's steps may carry.
struct PreparableCalls<'a> {
    /// By tool: the schema of its arguments.
    tools: Vec<(&'a str, &'a Value)>,
    /// Whether each step has to say its calls, also where there are none.
    required: bool,
}

impl<'a> PreparableCalls<'a> {
    fn to(scene: &str, request: &'a Request) -> Option<Self> {
        let steps = request.tools.first()?.parameters.pointer("/properties/steps/items")?;
        let is_its = |step: &&Value| {
            let name = step.pointer("/properties/scene_name");
            name.is_some_and(|name| names(name).is_none_or(|names| names.contains(&scene)))
        };
        let step = choices(steps).into_iter().find(is_its)?;
        let items = step.pointer("/properties/prepared_calls/items")?;
        let tool = |item: &'a Value| {
            let names = names(item.pointer("/properties/tool")?)?;
            Some((*names.first()?, item.pointer("/properties/arguments")?))
        };
        let tools = choices(items).into_iter().filter_map(tool).collect();
        let required = step["required"].as_array().into_iter().flatten();
        Some(Self { tools, required: required.into_iter().any(|name| name == "prepared_calls") })
    }

    /// What the scene of `step` will call, as far as it is known.
    fn calls(&self, step: &Value, prompt: &PromptText, scenes: &[SceneCard]) -> Vec<Value> {
        let expected: Vec<&str> =
            step["expected_tools"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let Some(scene) = scenes.iter().find(|scene| step["scene_name"] == scene.scene.as_str()) else {
            return Vec::new();
        };
        let is_write = |name: &str| self.tools.iter().any(|(tool, _)| *tool == name);
        if !expected.iter().any(|name| is_write(name)) {
            return Vec::new();
        }
        let told = scene.tools.iter().filter(|tool| !tool.writes() || expected.contains(&tool.name.as_str()));
        let told: Vec<&ToolCard> = told.collect();
        let purpose = step["purpose"].as_str().unwrap_or_default();
        let question = question(prompt, &scene.scene, &expected, purpose);
        let waits = match &step["depends_on_step"] {
            Value::Array(list) => !list.is_empty(),
            one => !one.is_null(),
        };
        let as_if = |order: usize| {
            let tools: Vec<ToolSpec> = told.iter().map(|tool| self.spec(tool, order)).collect();
            let tools: Vec<&ToolSpec> = tools.iter().collect();
            let mut calls = scene::prepared(&question, &tools, waits);
            calls.retain(|(name, _)| is_write(name));
            calls
        };
        let mut calls = as_if(0);
        let most = told.iter().map(|tool| self.orders(tool)).max().unwrap_or(1);
        for order in 1..most.min(MAX_ORDERS) {
            agree(&mut calls, &as_if(order));
        }
        let told = calls.into_iter().map(|(tool, arguments)| json!({"tool": tool, "arguments": arguments}));
        told.collect()
    }

    /// How many orders of what `card` requires are looked at. The scene is told the order in which its author
    /// wrote it, and takes what fits several in that order; where it is not told here, what depends on it is
    /// not known.
    fn orders(&self, card: &ToolCard) -> usize {
        match self.tools.iter().find(|(name, _)| *name == card.name) {
            Some((_, schema)) if !is_told(schema, &required(schema, card)) => {
                swaps(required(schema, card).len()).len() + 1
            }
            _ => 1,
        }
    }

    /// The tool as its scene is told of it, with what it requires in one of the orders.
    fn spec(&self, card: &ToolCard, order: usize) -> ToolSpec {
        let own = self.tools.iter().find(|(name, _)| *name == card.name);
        let mut parameters = own.map_or_else(|| card.parameters.clone(), |(_, schema)| (*schema).clone());
        if let Some((_, schema)) = own {
            let mut required = required(schema, card);
            if is_told(schema, &required) {
                required.sort_by_key(|name| mentioned(schema, name));
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

/// What a tool requires: the plan's schema may leave it out, and then it is told with the scenes.
fn required<'a>(schema: &'a Value, card: &'a ToolCard) -> Vec<&'a str> {
    let own = schema.get("required").unwrap_or(&card.parameters["required"]);
    own.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether the plan's schema tells the order of what is required: in its list, or in its words.
fn is_told(schema: &Value, required: &[&str]) -> bool {
    schema.get("required").is_some() || required.iter().all(|name| mentioned(schema, name).is_some())
}

/// Where the words of a schema name one of its properties.
fn mentioned(schema: &Value, name: &str) -> Option<usize> {
    let words = schema["description"].as_str()?;
    words.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').position(|word| word == name)
}

/// Every exchange of two of so many places.
fn swaps(count: usize) -> Vec<(usize, usize)> {
    (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
}

/// Leaves in `calls` what `others` say as well.
fn agree(calls: &mut Vec<(String, Value)>, others: &[(String, Value)]) {
    let both = calls.iter().zip(others).take_while(|(one, other)| one.0 == other.0).count();
    calls.truncate(both);
    for ((_, arguments), (_, other)) in calls.iter_mut().zip(others) {
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.retain(|name, value| other.get(name) == Some(value));
        }
    }
}

/// What the scene of a step will be asked, of what the planner is told.
fn question(prompt: &PromptText, scene: &str, expected: &[&str], purpose: &str) -> PromptText {
    let mut conversation: Value = prompt.json("conversation");
    if let Some(turns) = conversation["turns"].as_array() {
        let first = turns.len().saturating_sub(LAST_TURNS);
        let took_part = |turn: &Value| {
            turn["calls"].as_array().into_iter().flatten().any(|call| call["scene"].as_str() == Some(scene))
        };
        let told = turns.iter().enumerate().filter(|(at, turn)| *at >= first || took_part(turn));
        conversation["turns"] = told.map(|(_, turn)| turn.clone()).collect();
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
        ("purpose", purpose),
    ])
}

/// The schemas that a value may have: those of its `anyOf`, or the one that it is.
fn choices(schema: &Value) -> Vec<&Value> {
    match schema["anyOf"].as_array() {
        Some(several) => several.iter().collect(),
        None => vec![schema],
    }
}

/// The values that a schema allows; `None` where it allows any.
fn names(schema: &Value) -> Option<Vec<&str>> {
    if let Some(one) = schema["const"].as_str() {
        return Some(vec![one]);
    }
    Some(schema["enum"].as_array()?.iter().filter_map(Value::as_str).collect())
}
