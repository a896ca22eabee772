//! The functions that models are given beside a scene's own tools.

use serde_json::{Value, json};

use crate::llm::ToolSpec;
use crate::scene::Catalogue;

/// The forced tool of the planner.
pub const CREATE_PLAN: &str = "CreateExecutionPlan";
/// The forced tool of the continuation check.
pub const CHECK_CONTINUATION: &str = "CheckContinuation";
/// The tool by which a scene's model asks the user.
pub const ASK_USER: &str = "AskUser";

/// `CreateExecutionPlan`, with the scenes and tools there are as enums.
pub fn create_plan(catalogue: &Catalogue) -> ToolSpec {
    let scenes: Vec<&str> = catalogue.iter().map(|s| s.name.as_str()).collect();
    let tools: Vec<&str> = catalogue.iter().flat_map(|s| s.tools.iter().map(|t| t.name.as_str())).collect();
    ToolSpec {
        name: CREATE_PLAN.to_owned(),
        description: "Says which scenes take part in answering the request, for what, and in which order."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["needs_execution", "reasoning", "steps"],
            "properties": {
                "needs_execution": {
                    "type": "boolean",
                    "description": "false, with no steps, when no scene serves the request"
                },
                "reasoning": {"type": "string", "description": "Why this plan, in one sentence"},
                "steps": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["step_number", "scene_name", "purpose", "expected_tools", "depends_on_step"],
                        "properties": {
                            "step_number": {"type": "integer", "description": "1, 2, 3, …"},
                            "scene_name": {"type": "string", "enum": scenes},
                            "purpose": {
                                "type": "string",
                                "description": "What the scene is to do, with every fact it needs"
                            },
                            "expected_tools": {
                                "type": "array",
                                "items": names(&tools),
                                "description": "Names of this scene's tools that will be called"
                            },
                            "depends_on_step": {
                                "description": "Steps that must be done before: null, a number or a list of numbers",
                                "anyOf": [
                                    {"type": "null"},
                                    {"type": "integer"},
                                    {"type": "array", "items": {"type": "integer"}}
                                ]
                            }
                        }
                    }
                }
            }
        }),
        strict: true,
    }
}

/// `CheckContinuation`; with `answer` where the check carries the answer.
pub fn check_continuation(answer: bool) -> ToolSpec {
    let mut properties = json!({
        "should_continue": {
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
    // Models write in this order: a streamed reply has given its verdict before the answer begins, and
    // explains it only afterwards.
    let mut required = vec!["should_continue", "can_answer_now", "missing_information", "reasoning"];
    if answer {
        if let Some(map) = properties.as_object_mut() {
            map.insert(
                "answer".to_owned(),
                json!({
                    "type": ["string", "null"],
                    "description": "When should_continue is false: the answer to the user, in the user's language"
                }),
            );
        }
        required.insert(3, "answer");
    }
    ToolSpec {
        name: CHECK_CONTINUATION.to_owned(),
        description: "Says whether the request is answered by what was executed.".to_owned(),
        parameters: json!({
            "type": "object",
            "additionalProperties": false,
            "required": required,
            "properties": properties
        }),
        strict: true,
    }
}

/// `AskUser`: what a scene's model calls where only the user can say what is missing.
pub fn ask_user() -> ToolSpec {
    ToolSpec {
        name: ASK_USER.to_owned(),
        description:
            "Asks the user for something that a tool requires and that nobody but the user can say. \
                      Never make such a value up: ask."
                .to_owned(),
        parameters: json!({
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
        }),
        strict: false,
    }
}

/// An empty `enum` matches nothing and some servers refuse it.
fn names(all: &[&str]) -> Value {
    if all.is_empty() { json!({"type": "string"}) } else { json!({"type": "string", "enum": all}) }
}
