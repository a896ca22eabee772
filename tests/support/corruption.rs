//! Replies to forced questions as misbehaving models give them: each is a function of a seed, so that
//! different settings can be compared on the same replies.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::{Value, json};

use super::{Scripted, ScriptedCall};

/// A random source for one reply.
pub fn dice(seed: u64, request: usize, attempt: usize) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed ^ ((request as u64) << 8) ^ attempt as u64)
}

/// Corruptions of a reply's form. Those of the first group still contain the whole object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    PlainText,
    Fenced,
    Prose,
    WrongName,
    ObjectArguments,
    TrailingCommas,
    EqualCalls,
    OtherCalls,
    EncodedTwice,
    // The following cannot be parsed.
    DifferentCalls,
    Truncated,
    TruncatedText,
    SaysToolCalls,
    Empty,
}

pub const FORMS: [Form; 14] = [
    Form::PlainText,
    Form::Fenced,
    Form::Prose,
    Form::WrongName,
    Form::ObjectArguments,
    Form::TrailingCommas,
    Form::EqualCalls,
    Form::OtherCalls,
    Form::EncodedTwice,
    Form::DifferentCalls,
    Form::Truncated,
    Form::TruncatedText,
    Form::SaysToolCalls,
    Form::Empty,
];

/// The reply that should call `tool` with `right`, in this form. `other` is another object that the tool
/// would accept.
pub fn corrupted(form: Form, tool: &str, right: &Value, other: &Value, dice: &mut ChaCha8Rng) -> Scripted {
    let text = right.to_string();
    let raw = |arguments: String| Scripted::RawCall { name: tool.to_owned(), arguments };
    let calls = |calls: &[(&str, &Value)]| {
        let call = |(name, arguments): &(&str, &Value)| ScriptedCall {
            id: "call_0".to_owned(),
            name: (*name).to_owned(),
            arguments: arguments.to_string(),
        };
        Scripted::Calls { text: String::new(), calls: calls.iter().map(call).collect() }
    };
    match form {
        Form::PlainText => Scripted::Text(text),
        Form::Fenced => Scripted::Text(format!("```json\n{right:#}\n```")),
        Form::Prose => {
            let before = ["Sure! Here it is: ", "Let's see what {the user} wants.\n\n", "Ecco il piano:\n"];
            let before = before.choose(dice).copied().unwrap_or_default();
            Scripted::Text(format!("{before}{text}\n\nLet me know if that is fine."))
        }
        Form::WrongName => {
            let names = ["plan", "create_execution_plan", "answer", "functions"];
            Scripted::call(names.choose(dice).copied().unwrap_or_default(), right.clone())
        }
        Form::ObjectArguments => {
            let call = json!({"id": "x", "type": "function", "function": {"name": tool, "arguments": right}});
            let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
            Scripted::Json(json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]}))
        }
        Form::TrailingCommas => raw(text.replace("}]", "},]").replacen('}', ",}", 1)),
        Form::EqualCalls => calls(&[(tool, right), (tool, right)]),
        Form::OtherCalls => calls(&[("Look", &json!({"number": 1})), (tool, right)]),
        Form::EncodedTwice => raw(Value::String(text).to_string()),
        Form::DifferentCalls => calls(&[(tool, other), (tool, right)]),
        Form::Truncated => raw(cut(&text, dice)).finished("length"),
        Form::TruncatedText => Scripted::Text(format!("The plan: {}", cut(&text, dice))).finished("length"),
        Form::SaysToolCalls => raw(cut(&text, dice)).finished("tool_calls"),
        Form::Empty => Scripted::Text(String::new()),
    }
}

/// A proper prefix of `text`.
fn cut(text: &str, dice: &mut ChaCha8Rng) -> String {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let end = ends.choose(dice).copied().unwrap_or_default();
    text[..end].to_owned()
}

/// Whether this reply is corrupted.
pub fn is_corrupted(dice: &mut ChaCha8Rng, share: f64) -> bool {
    dice.random_bool(share)
}
