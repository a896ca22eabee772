//! `undo` of a tool, checked: the tool of the same scene that takes a finished write back.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::At;
use super::draft::UndoDraft;
use super::fault::Report;
use super::{SceneTool, parameters};
use crate::nearest::{did_you_mean, listed};
use crate::run::{Effect, Undo};

/// The undo of `tool`, whose scene has `tools`; `None` where the report has an error about it.
pub(super) fn check(
    tools: &[SceneTool],
    tool: &SceneTool,
    draft: UndoDraft,
    report: &Report,
) -> Option<Undo> {
    let named = draft.tool?;
    if tool.effect == Effect::Read {
        let message = format!("{} only reads: there is nothing to undo", tool.name);
        report.error(named.line, "undo", message, "take `undo` out, or make it effect = \"write\"");
        return None;
    }
    let writes = || tools.iter().filter(|t| t.effect == Effect::Write).map(|t| t.name.as_str());
    let Some(by) = tools.iter().find(|t| t.name == named.value && t.effect == Effect::Write) else {
        let message = format!("{} is undone by {:?}, which is no write of its scene", tool.name, named.value);
        let hint = did_you_mean(&named.value, writes());
        let remedy = if hint.is_empty() { format!("its writes are: {}", listed(writes())) } else { hint };
        report.error(named.line, "undo_tool", message, remedy);
        return None;
    };
    let given = draft.arguments.unwrap_or_else(|| At::nowhere(Value::Object(serde_json::Map::new())));
    let Value::Object(map) = given.value else {
        let message = format!("the arguments of the undo of {} are no table", tool.name);
        report.error(given.line, "undo_arguments", message, "write arguments = { id = \"/result/id\" }");
        return None;
    };
    let known: Vec<&str> = parameters::property_names(&by.parameters).collect();
    let mut fits = true;
    let mut wrong = |message: String, remedy: String| {
        report.error(given.line, "undo_arguments", message, remedy);
        fits = false;
    };
    for (name, value) in &map {
        if !known.contains(&name.as_str()) {
            let message = format!("{} has no argument {name:?}", by.name);
            wrong(message, parameters::hint(name, &known));
        }
        let pointer = value.as_str().filter(|text| text.starts_with('/'));
        if pointer.is_some_and(|p| !p.starts_with("/arguments/") && !p.starts_with("/result/")) {
            let message = format!("{value} points neither into the arguments nor into the result");
            wrong(message, "write \"/result/…\" or \"/arguments/…\"".to_owned());
        }
    }
    let required = by.parameters.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<String> = required.filter_map(Value::as_str).map(str::to_owned).collect();
    for name in required.iter().filter(|name| !map.contains_key(*name)) {
        wrong(format!("{} needs {name:?}", by.name), format!("add {name} = \"/result/…\""));
    }
    let arguments: BTreeMap<String, Value> = map.into_iter().collect();
    fits.then(|| Undo {
        tool: by.name.clone(),
        arguments,
        repeat: by.repeat,
        required,
        identity: by.identity.clone(),
    })
}
