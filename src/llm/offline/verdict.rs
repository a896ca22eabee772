//! The continuation check: whether the request is answered, and the answer itself.

use serde_json::{Value, json};

use super::answer;
use super::prompt::{Executed, PromptText};
use crate::llm::Request;

/// The arguments of `CheckContinuation`. It never asks to continue, because the first plan has a step for every
/// clause that a scene serves; a question to the user ends the round.
pub(super) fn check(request: &Request, prompt: &PromptText) -> Value {
    let lang = prompt.language();
    let executed: Vec<Executed> = prompt.lines("executed");
    let waiting: Vec<&Executed> = executed.iter().filter(|e| e.status == "needs_input").collect();
    let failed =
        executed.iter().filter(|e| matches!(e.status.as_str(), "failed" | "blocked" | "cancelled")).count();
    let reasoning = match (waiting.is_empty(), failed) {
        (false, _) => "Something required is only the user's to say.".to_owned(),
        (true, 0) => "Every step was carried out.".to_owned(),
        (true, n) => {
            format!("{n} of {} steps could not be carried out; the answer says why.", executed.len())
        }
    };
    let mut verdict = json!({
        "should_continue": false,
        "can_answer_now": waiting.is_empty(),
        "reasoning": reasoning,
        "missing_information": waiting.first().and_then(|e| e.question.as_ref()).and_then(|q| {
            q.as_str().or_else(|| q.get("text").and_then(Value::as_str))
        }),
    });
    let asks_for_answer = request.tools.iter().any(|t| t.parameters.pointer("/properties/answer").is_some());
    if asks_for_answer {
        verdict["answer"] = json!(answer::answer_from_steps(&executed, prompt, lang));
    }
    verdict
}
