//! The built-in functions offered to models besides a scene's own tools.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::llm::ToolSpec;
use crate::plan::{PROGRAM, SYNTHESIS};
use crate::run::{Effect, PatchScope};
use crate::scene::{Catalogue, PlanShape, PlannedCalls, SceneTool};
use crate::schema::Schema;
use crate::schema::is_required;

pub use crate::llm::functions::{
    ADAPT_PLAN, ASK_USER, CHANGE_LISTS, CHECK_CONTINUATION, CHOOSE_RECOVERY, CREATE_PLAN, INTERPRET_DATA,
    MAKE_DECISION, NEXT_CALL, PLAN_FLOW_PATH, REPORT_NODE,
};

/// The field of plans that says whether any scene has to act.
pub(super) const NEEDS_EXECUTION: &str = "needs_execution";
/// The field of `CheckContinuation` that says whether work is left.
pub(super) const SHOULD_CONTINUE: &str = "should_continue";
/// The field of plans with scenes to be described first.
pub(super) const MORE_SCENES: &str = "more_scenes";
/// The field of plans with the parts of the request that only switched-off tools serve.
const UNAVAILABLE: &str = "unavailable";
/// The field of plans and verdicts with the answer.
pub(super) const ANSWER: &str = "answer";
/// The choice for no further call.
pub const NOTHING: &str = "nothing";

/// `CreateExecutionPlan`, with the known scenes and their tools as enums.
///
/// Each scene is a separate alternative, so that constrained decoding cannot combine a scene with another's
/// tools, which small models do even after repeated repairs.
///
/// With [`PlannedCalls::Writes`], its steps have `prepared_calls` for the writes of their scene. Their arguments
/// are those of the tools, none of them required, which providers with strict schemas do not accept. With
/// [`PlannedCalls::All`], and where only some scenes are described, arguments are JSON as text, which any schema can be
/// strict about.
pub fn create_plan(catalogue: &Catalogue, shape: PlanShape) -> ToolSpec {
    ToolSpec {
        name: CREATE_PLAN.to_owned(),
        description: "Says which scenes take part in answering the request, for what, and in which order."
            .to_owned(),
        parameters: catalogue.plan_schema(shape, |catalogue| plan_schema(catalogue, shape)),
        strict: shape.shortlisted || shape.calls != PlannedCalls::Writes,
    }
}

fn plan_schema(catalogue: &Catalogue, shape: PlanShape) -> Schema {
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": [NEEDS_EXECUTION, "reasoning", "steps", "unserved"],
        "properties": {
            NEEDS_EXECUTION: {
                "type": "boolean",
                "description": "false, with no steps, when no scene serves the request"
            },
            "reasoning": {"type": "string", "description": "Why this plan, in one sentence"},
            "steps": {
                "type": "array",
                "description": "Numbered 1, 2, 3, …; purpose: what the scene is to do, with every fact it needs; \
                                expected_tools: the scene's tools that will be called; depends_on_step: steps \
                                that must be done before: null, a number or a list of numbers",
                "maxItems": shape.max_steps,
                "items": step_schema(catalogue, shape)
            },
            "unserved": {
                "type": "array",
                "description": "Parts of the request that no scene serves, in the user's words; mostly empty",
                "items": {"type": "string"}
            }
        }
    });
    if shape.answers {
        let about = "The answer to the user where needs_execution is false, otherwise null";
        require(&mut schema, ANSWER, json!({"type": ["string", "null"], "description": about}));
    }
    if shape.switched_off {
        let about = "Those parts of unserved that only tools of <switched_off> serve";
        let list = json!({"type": "array", "description": about, "items": {"type": "string"}});
        require(&mut schema, UNAVAILABLE, list);
    }
    if shape.shortlisted {
        let about = "Names or topics of scenes to be described first; mostly empty";
        let list = json!({"type": "array", "description": about, "items": {"type": "string"}});
        require(&mut schema, MORE_SCENES, list);
    }
    Schema::from(schema)
}

/// `AdaptPlan`: the changes of the unfinished part of the plan, within `scope`. Its steps are those of [`create_plan`].
pub fn adapt_plan(catalogue: &Catalogue, shape: PlanShape, scope: &PatchScope) -> ToolSpec {
    let step = step_schema(catalogue, shape);
    let numbers = |of: &[u32]| json!({"type": "integer", "enum": of});
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["reason"],
        "properties": {"reason": {"type": "string", "description": "Why, in one short sentence"}}
    });
    // Some providers reject an empty `enum`.
    if !scope.removable.is_empty() {
        let about = "Steps that are not needed any more; mostly empty";
        let list = json!({"type": "array", "description": about, "items": numbers(&scope.removable)});
        require(&mut schema, "remove", list);
    }
    if !scope.replaceable.is_empty() {
        let replacement = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["step", "with"],
            "properties": {"step": numbers(&scope.replaceable), "with": step}
        });
        let about = "Steps that a new one takes the place of";
        require(&mut schema, "replace", json!({"type": "array", "description": about, "items": replacement}));
    }
    let about = "Further steps; mostly empty";
    let list = json!({"type": "array", "description": about, "maxItems": shape.max_steps, "items": step});
    require(&mut schema, "add", list);
    ToolSpec {
        name: ADAPT_PLAN.to_owned(),
        description: "Says what changes in the part of the plan that is not finished.".to_owned(),
        parameters: Schema::from(schema),
        strict: shape.shortlisted || shape.calls != PlannedCalls::Writes,
    }
}

/// The schema of a step: one alternative for each scene, or, where not every scene is described, one for all of them; and
/// one for steps of kind llm and one for steps of kind code, where they are offered.
fn step_schema(catalogue: &Catalogue, shape: PlanShape) -> Value {
    let mut steps = match shape.shortlisted {
        true => vec![step_of_any(catalogue, shape)],
        false => scene_steps(catalogue, shape),
    };
    if shape.synthesis {
        steps.push(synthesis_step());
    }
    if shape.programs {
        steps.push(program_step(catalogue));
    }
    match steps.len() {
        0 => step_of(&json!({"type": "string"}), &[]),
        1 => steps.remove(0),
        _ => json!({"anyOf": steps}),
    }
}

/// The schema of a step of any scene.
fn step_of_any(catalogue: &Catalogue, shape: PlanShape) -> Value {
    let names: Vec<&str> = catalogue.iter().map(|scene| scene.name.as_str()).collect();
    let mut step = step_of(&json!({"type": "string", "enum": names}), &[]);
    if shape.calls != PlannedCalls::None {
        add_calls_as_text(&mut step, &[], shape.calls);
    }
    step
}

/// The schema of a step of kind llm. Its inputs and the schema of its output are JSON as text, which any schema can be
/// strict about.
fn synthesis_step() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["step_number", "scene_name", "purpose", "inputs", "output", "depends_on_step"],
        "properties": {
            "step_number": {"type": "integer"},
            "scene_name": {"type": "string", "enum": [SYNTHESIS]},
            "purpose": {"type": "string"},
            "inputs": {"type": "string"},
            "output": {"type": ["string", "null"]},
            "depends_on_step": earlier_steps()
        }
    })
}

/// The schema of a step of kind code.
fn program_step(catalogue: &Catalogue) -> Value {
    let scenes: Vec<&str> =
        catalogue.iter().filter(|scene| scene.flow.is_none()).map(|scene| scene.name.as_str()).collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["step_number", "scene_name", "purpose", "scenes", "depends_on_step"],
        "properties": {
            "step_number": {"type": "integer"},
            "scene_name": {"type": "string", "enum": [PROGRAM]},
            "purpose": {"type": "string"},
            "scenes": {"type": "array", "items": names(&scenes)},
            "depends_on_step": earlier_steps()
        }
    })
}

fn scene_steps(catalogue: &Catalogue, shape: PlanShape) -> Vec<Value> {
    catalogue
        .iter()
        .map(|scene| {
            let tools: Vec<&str> = scene.tools.iter().map(|t| t.name.as_str()).collect();
            let mut step = step_of(&json!({"type": "string", "enum": [scene.name]}), &tools);
            let writes = scene.tools.iter().filter(|tool| tool.effect == Effect::Write);
            match shape.calls {
                PlannedCalls::None => {}
                PlannedCalls::Writes => {
                    let calls: Vec<Value> = writes.map(prepared_call).collect();
                    if !calls.is_empty() {
                        step["properties"]["prepared_calls"] =
                            json!({"type": "array", "items": {"anyOf": calls}});
                    }
                }
                PlannedCalls::All => add_calls_as_text(&mut step, &tools, shape.calls),
            }
            step
        })
        .collect()
}

/// Adds a required property to the schema of an object.
fn require(schema: &mut Value, name: &str, property: Value) {
    schema["properties"][name] = property;
    if let Some(required) = schema["required"].as_array_mut() {
        required.push(json!(name));
    }
}

/// Adds `prepared_calls` of these tools to the schema of a step, and which of its tools may turn out unnecessary.
fn add_calls_as_text(step: &mut Value, tools: &[&str], planned: PlannedCalls) {
    let calls = json!({
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": false,
            "required": ["tool", "arguments"],
            "properties": {
                "tool": names(tools),
                "arguments": {"type": "string", "description": "All arguments, as one JSON object"}
            }
        }
    });
    require(step, "prepared_calls", calls);
    if planned == PlannedCalls::All {
        require(step, "if_needed", json!({"type": "array", "items": names(tools)}));
    }
}

/// The schema of a prepared write call.
fn prepared_call(tool: &SceneTool) -> Value {
    let mut arguments = Value::clone(&tool.parameters);
    if let Some(schema) = arguments.as_object_mut()
        && let Some(Value::Array(required)) = schema.remove("required")
    {
        // Keeps the tool's order, which shows which of two values comes first.
        let required: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
        schema.insert("description".to_owned(), json!(format!("What is known of: {}", required.join(", "))));
    }
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["tool", "arguments"],
        "properties": {"tool": {"type": "string", "enum": [tool.name]}, "arguments": arguments}
    })
}

fn step_of(scene: &Value, tools: &[&str]) -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["step_number", "scene_name", "purpose", "expected_tools", "depends_on_step", "unclear"],
        "properties": {
            "step_number": {"type": "integer"},
            "scene_name": scene,
            "purpose": {"type": "string"},
            "expected_tools": {"type": "array", "items": names(tools)},
            "unclear": {
                "type": "boolean",
                "description": "true if the user may not want what the step changes; it is then asked first"
            },
            "depends_on_step": earlier_steps()
        }
    })
}

/// The schema of the steps that a step depends on.
fn earlier_steps() -> Value {
    json!({"anyOf": [{"type": "null"}, {"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]})
}

/// `CheckContinuation`; with `answer` where the check carries the answer.
pub fn check_continuation(answer: bool) -> ToolSpec {
    static BARE: LazyLock<Schema> = LazyLock::new(|| verdict_schema(false));
    static ANSWERING: LazyLock<Schema> = LazyLock::new(|| verdict_schema(true));
    ToolSpec {
        name: CHECK_CONTINUATION.to_owned(),
        description: "Says whether the request is answered by what was executed.".to_owned(),
        parameters: if answer { ANSWERING.clone() } else { BARE.clone() },
        strict: true,
    }
}

fn verdict_schema(answer: bool) -> Schema {
    let mut properties = json!({
        SHOULD_CONTINUE: {
            "type": "boolean",
            "description": "true only if something the user asked for is still undone and a scene can do it now"
        },
        "can_answer_now": {
            "type": "boolean",
            "description": "true if what was executed is enough for an answer; false if only the user can say what is missing"
        },
        "reasoning": {"type": "string", "description": "Why, in one sentence"},
        "missing_information": {
            "type": ["string", "null"],
            "description": "What is missing, or null"
        }
    });
    // Models write in this order: a streamed reply contains the verdict before the answer begins, and the
    // reasoning only afterwards.
    let mut required = vec![SHOULD_CONTINUE, "can_answer_now", "missing_information", "reasoning"];
    if answer {
        if let Some(map) = properties.as_object_mut() {
            map.insert(
                ANSWER.to_owned(),
                json!({
                    "type": ["string", "null"],
                    "description": "When should_continue is false: the answer to the user, in the user's language"
                }),
            );
        }
        required.insert(3, ANSWER);
    }
    Schema::from(json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties
    }))
}

/// `AskUser`: called by a scene's model if only the user knows what is missing.
pub fn ask_user() -> ToolSpec {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        Schema::from(json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["question", "missing"],
            "properties": {
                "question": {"type": "string", "description": "The question, in the user's language"},
                "tool": {"type": ["string", "null"], "description": "The tool that needs it"},
                "missing": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Names of the missing arguments"
                },
                "known": {"type": "object", "description": "Arguments of that tool that are already known"}
            }
        }))
    });
    ToolSpec {
        name: ASK_USER.to_owned(),
        description:
            "Asks the user for something that a tool requires and that nobody but the user can say. \
                      Never make such a value up: ask."
                .to_owned(),
        parameters: SCHEMA.clone(),
        strict: false,
    }
}

/// `NextCall`: the choice of a scene's model that ended without an expected call: one of the `tools`, or
/// nothing more. A question to the user is not offered: small models choose it and ask for what they were
/// told. Values that the user did not give are null in the chosen call.
pub fn next_call(tools: &[&SceneTool]) -> ToolSpec {
    let first = |text: &str| text.split_inclusive(". ").next().unwrap_or_default().trim().to_owned();
    let signatures: Vec<String> =
        tools.iter().map(|tool| format!("{}: {}", tool.name, first(&tool.description))).collect();
    let choices: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).chain([NOTHING]).collect();
    ToolSpec {
        name: NEXT_CALL.to_owned(),
        description: "Says which function is to be called next to do what the purpose says.".to_owned(),
        parameters: Schema::from(json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["next"],
            "properties": {
                "next": {
                    "type": "string",
                    "enum": choices,
                    "description": format!(
                        "{}\n{NOTHING}: the purpose asks for nothing that is still to be done.",
                        signatures.join("\n")
                    )
                }
            }
        })),
        strict: false,
    }
}

/// `ChooseRecovery`: how to continue after a call failed, with the ids of what is offered.
pub fn choose_recovery(ids: &[&str]) -> ToolSpec {
    choice(CHOOSE_RECOVERY, "Says how to continue after a tool failed.", ids)
}

/// `MakeDecision`: which alternative is called in place of a failed call, with the ids of those that are open.
pub fn make_decision(ids: &[&str]) -> ToolSpec {
    choice(MAKE_DECISION, "Says which tool is called in place of one that failed.", ids)
}

/// A function that chooses one of these ids, with a reason.
fn choice(name: &str, description: &str, ids: &[&str]) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: Schema::from(json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["reason", "choice"],
            "properties": {
                "reason": {"type": "string", "description": "Why, in one short sentence"},
                "choice": names(ids)
            }
        })),
        strict: true,
    }
}

/// `PlanFlowPath`: which of the nodes of a flow a request needs, in order.
pub fn plan_flow_path(nodes: &[String]) -> ToolSpec {
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    ToolSpec {
        name: PLAN_FLOW_PATH.to_owned(),
        description: "Says which nodes of the flow are executed, in which order.".to_owned(),
        parameters: Schema::from(json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["reasoning", "path", "missing_node"],
            "properties": {
                "reasoning": {"type": "string", "description": "Why this path, in one short sentence"},
                "path": {"type": "array", "items": names(&nodes)},
                "missing_node": {
                    "type": ["object", "null"],
                    "description": "A node that the flow lacks for such requests; null where it lacks none",
                    "additionalProperties": false,
                    "required": ["name", "description", "why"],
                    "properties": {
                        "name": {"type": "string", "description": "Letters, digits and _"},
                        "description": {"type": "string", "description": "What it would do, in one sentence"},
                        "why": {"type": "string", "description": "Why such requests need it, in one sentence"}
                    }
                }
            }
        })),
        strict: true,
    }
}

/// `InterpretData`: where the values of the expected result are in data of another shape.
pub fn interpret_data() -> ToolSpec {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let place = |about: &str| json!({"type": "string", "description": about});
        Schema::from(json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["reason", "mapping"],
            "properties": {
                "reason": {"type": "string", "description": "Why, in one short sentence"},
                "mapping": {
                    "type": "array",
                    "description": "Empty if the data does not have what is required",
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["to", "from"],
                        "properties": {
                            "to": place("A place of the expected result, such as /rows/*/temp"),
                            "from": place("The place of the data that is copied, such as /forecast/*/temperature")
                        }
                    }
                }
            }
        }))
    });
    ToolSpec {
        name: INTERPRET_DATA.to_owned(),
        description: "Says where the expected values are in data of another shape.".to_owned(),
        parameters: SCHEMA.clone(),
        strict: true,
    }
}

/// `ReportNode`: what a node's model returns.
pub fn report_node(output: Value) -> ToolSpec {
    ToolSpec {
        name: REPORT_NODE.to_owned(),
        description: "Returns the result of the node.".to_owned(),
        parameters: Schema::from(output),
        strict: false,
    }
}

/// `ChangeLists`: what each list contains after a user's reply, out of the names that it may contain.
pub fn change_lists(options: &BTreeMap<String, Vec<String>>) -> ToolSpec {
    let list = |names: &Vec<String>| json!({"type": "array", "items": {"type": "string", "enum": names}});
    let properties: Map<String, Value> =
        options.iter().map(|(name, names)| (name.clone(), list(names))).collect();
    let names: Vec<&String> = options.keys().collect();
    ToolSpec {
        name: CHANGE_LISTS.to_owned(),
        description: "Says what each list contains after the user's reply.".to_owned(),
        parameters: Schema::from(json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["is_clear", "lists"],
            "properties": {
                "is_clear": {"type": "boolean", "description": "false if the reply does not clearly say a change"},
                "lists": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": names,
                    "properties": properties
                }
            }
        })),
        strict: true,
    }
}

/// The schema `parameters` with null allowed for required properties, so that a model that must call a tool
/// can mark unknown values instead of inventing them.
pub fn nullable(parameters: &Value) -> Value {
    let mut schema = parameters.clone();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
    for (_, property) in properties.filter(|(name, _)| is_required(parameters, name)) {
        let about = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = format!("{about} null where the user did not say it.");
        *property = json!({"anyOf": [property.take(), {"type": "null"}], "description": description.trim()});
    }
    schema
}

/// An empty `enum` matches nothing, and some providers reject it.
fn names(all: &[&str]) -> Value {
    if all.is_empty() { json!({"type": "string"}) } else { json!({"type": "string", "enum": all}) }
}
