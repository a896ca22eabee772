//! Reads replies to forced questions, if they can be understood in exactly one way.
//!
//! **Invariant:** pure, and it never guesses. Truncated JSON is a problem, even if a smaller object inside it is
//! complete; so are several different objects. Every [`PlanProblem`] is written for the model that has to fix it.

mod parse;
mod partial;
mod scan;

use serde_json::{Map, Value};

use crate::long_integers;
use crate::nesting;
use crate::plan::PlanProblem;
use crate::run::{ReaderMode, Reply, ReplyCall};

pub(crate) use parse::parse;
pub use partial::Partial;

/// The arguments for the forced function `tool` in `reply`.
///
/// Besides a call of that function, tolerant reading accepts a single call under another name, equal calls,
/// arguments that are JSON in a string, and, instead of a call, JSON in the text (bare, fenced, in tags, between
/// words, or as `{"name": …, "arguments": {…}}`), with the extensions of JSON5. Strict reading parses the first
/// call's arguments with `serde_json`, if it names `tool`.
///
/// Problems have the codes `reply.no_json`, `reply.truncated`, `reply.ambiguous`, `reply.invalid_json`,
/// `reply.not_an_object`, `reply.too_deep` and, strict only, `reply.wrong_tool`.
pub fn read(reply: &Reply, tool: &str, mode: ReaderMode) -> Result<Value, Vec<PlanProblem>> {
    match mode {
        ReaderMode::Strict => strict(reply, tool),
        ReaderMode::Tolerant => tolerant(reply, tool),
    }
    .and_then(|value| match nesting::is_too_deep([&value]) {
        true => Err(too_deep(tool)),
        false => Ok(value),
    })
    .map_err(|problem| vec![problem])
}

/// Calls that a model wrote as text, for questions that force nothing: each must name one of `offered` beside its
/// arguments. Empty if there are none or the text was truncated.
pub fn calls_in_text(text: &str, offered: &[&str]) -> Vec<ReplyCall> {
    let text = without_reasoning(text);
    if let Some((name, arguments)) = after_its_name(text, offered) {
        return vec![ReplyCall { id: "text_1".to_owned(), name: name.to_owned(), arguments }];
    }
    let Ok(parsed) = parse_calls(text) else { return Vec::new() };
    let calls = parsed.into_iter().filter_map(|call| {
        let written = call.name?;
        let name = offered.iter().find(|name| names_function(name, &written))?;
        Some((*name, call.arguments))
    });
    let named = |(i, (name, arguments)): (usize, (&str, Map<String, Value>))| ReplyCall {
        id: format!("text_{}", i + 1),
        name: name.to_owned(),
        arguments: Value::Object(arguments).to_string(),
    };
    calls.enumerate().map(named).collect()
}

/// The call that makes up a whole text: `functions.GetWeather: {"city": "Milan"}` or
/// `GetWeather({"city": "Milan"})`. Models of servers whose templates render earlier calls in this way write new
/// ones in the same way, with the template's characters for quotes.
fn after_its_name<'n>(text: &str, offered: &[&'n str]) -> Option<(&'n str, String)> {
    let (written, rest) = text.split_once([':', '('])?;
    let name = offered.iter().find(|name| names_function(name, written))?;
    let rest = rest.trim().trim_end_matches([')', ';']);
    let signs =
        [("&#34;", "\""), ("&quot;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    let plain = signs.iter().fold(rest.to_owned(), |text, (sign, meant)| text.replace(sign, meant));
    match object(rest).or_else(|| object(&plain)) {
        Some(arguments) => Some((name, arguments.to_string())),
        // No sentence begins like this, so it is a call; validation of its arguments reports any problem.
        None if written.trim_start().starts_with("functions.") => Some((name, plain)),
        None => None,
    }
}

/// The object in a call's arguments, also if they are almost JSON or JSON in a string; `None` for anything else
/// and if they are nested too deeply.
pub fn object(arguments: &str) -> Option<Value> {
    let value = match parse(arguments).ok()? {
        Value::String(inner) => parse(&inner).ok()?,
        value => value,
    };
    (value.is_object() && !nesting::is_too_deep([&value])).then_some(value)
}

fn too_deep(tool: &str) -> PlanProblem {
    let max = nesting::MAX_DEPTH;
    let what = format!("the JSON for {tool} is nested deeper than {max} levels: say the same with fewer");
    PlanProblem::new("reply.too_deep", what)
}

fn strict(reply: &Reply, tool: &str) -> Result<Value, PlanProblem> {
    let call = reply.calls.first().ok_or_else(|| no_json(tool))?;
    if call.name != tool {
        let what = format!("you called {:?}: call {tool}", call.name);
        return Err(PlanProblem::new("reply.wrong_tool", what));
    }
    match long_integers::parse(call.arguments.as_bytes()) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(not_an_object(tool)),
        Err(error) => Err(invalid(tool, &error.to_string())),
    }
}

fn tolerant(reply: &Reply, tool: &str) -> Result<Value, PlanProblem> {
    let mut calls: Vec<&ReplyCall> =
        reply.calls.iter().filter(|call| names_function(tool, &call.name)).collect();
    if calls.is_empty() {
        calls = reply.calls.iter().collect();
    }
    // A call without arguments has no content; the text may have it.
    calls.retain(|call| !matches!(call.arguments.trim(), "" | "null"));
    if calls.is_empty() {
        return choose(
            parse_calls(without_reasoning(&reply.text)).map_err(|e| e.problem(reply, tool))?,
            tool,
        );
    }
    let mut values: Vec<Value> = Vec::new();
    for call in calls {
        push_distinct(&mut values, arguments(&call.arguments, reply, tool)?);
    }
    only(values, tool)
}

/// The object in a call's arguments.
fn arguments(text: &str, reply: &Reply, tool: &str) -> Result<Value, PlanProblem> {
    match long_integers::parse(text.as_bytes()) {
        Ok(Value::Object(object)) => match as_call(&object) {
            Some((name, arguments)) if names_function(tool, &name) => Ok(Value::Object(arguments)),
            _ => Ok(Value::Object(object)),
        },
        Ok(Value::String(inner)) => choose(parse_calls(&inner).map_err(|e| e.problem(reply, tool))?, tool),
        Ok(Value::Number(_) | Value::Bool(_)) => Err(not_an_object(tool)),
        _ => choose(parse_calls(text).map_err(|e| e.problem(reply, tool))?, tool),
    }
}

/// An object in a text, with the function's name if the text has it.
struct ParsedCall {
    name: Option<String>,
    arguments: Map<String, Value>,
}

/// Why a text has no usable object.
enum Unread {
    Truncated,
    Invalid(String),
    Mixed,
}

impl Unread {
    fn problem(self, reply: &Reply, tool: &str) -> PlanProblem {
        match self {
            Unread::Truncated => {
                let by_limit = reply.finish_reason.as_deref() == Some("length");
                let why = if by_limit { " at the limit of tokens" } else { "" };
                let what = format!(
                    "the JSON for {tool} was cut off{why}: write the whole object again, with shorter texts"
                );
                PlanProblem::new("reply.truncated", what)
            }
            Unread::Invalid(error) => invalid(tool, &error),
            Unread::Mixed => ambiguous(tool),
        }
    }
}

/// Every object at the outermost level of `text`.
fn parse_calls(text: &str) -> Result<Vec<ParsedCall>, Unread> {
    let mut out = Vec::new();
    match long_integers::parse(text.trim().as_bytes()) {
        // The whole text is JSON in a string. Only one level is unwrapped.
        Ok(Value::String(inner)) => collect(&inner, &mut out)?,
        Ok(value) => understand(value, &mut out),
        Err(_) => collect(text, &mut out)?,
    }
    Ok(out)
}

fn collect(text: &str, out: &mut Vec<ParsedCall>) -> Result<(), Unread> {
    let found = scan::scan(text);
    if found.cut {
        return Err(Unread::Truncated);
    }
    let mut broken = None;
    for piece in found.pieces {
        match parse(piece) {
            Ok(value) => understand(value, out),
            Err(error) => broken = Some(error),
        }
    }
    match broken {
        None => Ok(()),
        Some(error) if out.is_empty() => Err(Unread::Invalid(error)),
        Some(_) => Err(Unread::Mixed),
    }
}

/// Adds an object, the objects of an array, or the calls of `{"tool_calls": […]}`.
fn understand(value: Value, out: &mut Vec<ParsedCall>) {
    match value {
        Value::Array(items) => {
            for item in items.into_iter().filter(Value::is_object) {
                understand(item, out);
            }
        }
        Value::Object(mut object) => {
            if let Some(call) = as_call(&object) {
                out.push(ParsedCall { name: Some(call.0), arguments: call.1 });
            } else if object.len() == 1 && object.get("tool_calls").is_some_and(Value::is_array) {
                understand(object.remove("tool_calls").unwrap_or_default(), out);
            } else {
                out.push(ParsedCall { name: None, arguments: object });
            }
        }
        _ => {}
    }
}

/// Name and arguments, if the object is a call and nothing else.
fn as_call(object: &Map<String, Value>) -> Option<(String, Map<String, Value>)> {
    let mut name = None;
    let mut arguments = None;
    for (key, value) in object {
        match (key.as_str(), value) {
            ("type" | "id" | "index", _) => {}
            ("function", Value::Object(inner)) => return as_call(inner),
            ("name" | "tool" | "tool_name" | "function", Value::String(text)) => name = Some(text.clone()),
            ("arguments" | "parameters" | "args" | "input", Value::Object(inner)) => {
                arguments = Some(inner.clone());
            }
            ("arguments" | "parameters" | "args" | "input", Value::String(text)) => {
                arguments = parse(text).ok()?.as_object().cloned();
            }
            _ => return None,
        }
    }
    name.zip(arguments)
}

/// Chooses the only object that names `tool`, or else the only object.
fn choose(parsed: Vec<ParsedCall>, tool: &str) -> Result<Value, PlanProblem> {
    let is_named = |call: &ParsedCall| call.name.as_ref().is_some_and(|name| names_function(tool, name));
    let any_named = parsed.iter().any(is_named);
    let mut values: Vec<Value> = Vec::new();
    for call in parsed {
        // `{"NameOfTheFunction": {…}}`: the name is the only key.
        let arguments = match call.arguments.iter().next() {
            Some((key, Value::Object(inner))) if call.arguments.len() == 1 && key == tool => inner.clone(),
            _ if any_named && !call.name.as_ref().is_some_and(|name| names_function(tool, name)) => continue,
            _ => call.arguments,
        };
        push_distinct(&mut values, Value::Object(arguments));
    }
    if values.len() > 1 {
        // An empty object `{}` beside another object is only part of the prose.
        values.retain(|value| value.as_object().is_some_and(|object| !object.is_empty()));
    }
    only(values, tool)
}

/// Adds a value that is not there yet. Three different ones, of which one may be empty, already are ambiguous, so
/// no more are kept: the comparison stays cheap however many objects a text contains.
fn push_distinct(values: &mut Vec<Value>, value: Value) {
    if values.len() < 3 && !values.contains(&value) {
        values.push(value);
    }
}

fn only(mut values: Vec<Value>, tool: &str) -> Result<Value, PlanProblem> {
    match (values.pop(), values.is_empty()) {
        (None, _) => Err(no_json(tool)),
        (Some(value), true) => Ok(value),
        (Some(_), false) => Err(ambiguous(tool)),
    }
}

/// Returns whether a name as written means `tool`: case and a prefix such as `functions.` do not matter.
pub(crate) fn names_function(tool: &str, written: &str) -> bool {
    let written = written.trim();
    let bare = written.strip_prefix("functions.").unwrap_or(written);
    bare.eq_ignore_ascii_case(tool)
}

/// The text after a model's thoughts in `<think>` … `</think>`, which contain drafts. An unclosed thought extends to
/// the end.
fn without_reasoning(text: &str) -> &str {
    match text.rfind("</think>") {
        Some(end) => text.get(end + "</think>".len()..).unwrap_or_default(),
        None if text.trim_start().starts_with("<think>") => "",
        None => text,
    }
}

/// The text after thoughts in `<think>` … `</think>` at its beginning; `None` while these, or their opening tag, may
/// continue. Such tags later in the text are left as they are.
pub(crate) fn after_reasoning(so_far: &str) -> Option<&str> {
    const OPENS: &str = "<think>";
    let text = so_far.trim_start();
    if !text.starts_with(OPENS) {
        let may_open = !text.is_empty() && OPENS.starts_with(text);
        return (!may_open).then_some(so_far);
    }
    text.split_once("</think>").map(|(_, after)| after)
}

fn no_json(tool: &str) -> PlanProblem {
    let what = format!(
        "there is no call of {tool}: reply only with a call of {tool}, its arguments one JSON object"
    );
    PlanProblem::new("reply.no_json", what)
}

fn ambiguous(tool: &str) -> PlanProblem {
    let what = format!("there are several different JSON objects: reply with exactly one call of {tool}");
    PlanProblem::new("reply.ambiguous", what)
}

fn invalid(tool: &str, error: &str) -> PlanProblem {
    let what =
        format!("the arguments of {tool} are no valid JSON ({error}): write the object again, all of it");
    PlanProblem::new("reply.invalid_json", what)
}

fn not_an_object(tool: &str) -> PlanProblem {
    let what =
        format!("the arguments of {tool} are no JSON object: write one object with the fields of the schema");
    PlanProblem::new("reply.not_an_object", what)
}

#[cfg(test)]
mod tests;
