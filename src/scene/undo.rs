//! Checks `undo` of a tool: the tool of the same scene that reverts a completed write.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::document::Located;
use super::draft::UndoDraft;
use super::fault::FaultReport;
use super::{SceneTool, parameters};
use crate::nearest::{did_you_mean, name_list};
use crate::run::{Effect, Undo};

/// The checked undo of `tool`, whose scene has `tools`; `None` if an error was reported.
pub(super) fn check(
    tools: &[SceneTool],
    tool: &SceneTool,
    draft: UndoDraft,
    report: &FaultReport,
) -> Option<Undo> {
    let named = draft.tool?;
    if tool.effect == Effect::Read {
        let message = format!("{} only reads: there is nothing to undo", tool.name);
        report.error(named.line, "undo", message, "remove `undo`, or set effect = \"write\"");
        return None;
    }
    let writes = || tools.iter().filter(|t| t.effect == Effect::Write).map(|t| t.name.as_str());
    let Some(by) = tools.iter().find(|t| t.name == named.value && t.effect == Effect::Write) else {
        let message =
            format!("{} is undone by {:?}, which is not a write of its scene", tool.name, named.value);
        let hint = did_you_mean(&named.value, writes());
        let remedy = if hint.is_empty() { format!("its writes are: {}", name_list(writes())) } else { hint };
        report.error(named.line, "undo_tool", message, remedy);
        return None;
    };
    let given = draft.arguments.unwrap_or_else(|| Located::without_line(Value::Object(Map::new())));
    let Value::Object(map) = given.value else {
        let message = format!("the arguments of the undo of {} are not a table", tool.name);
        report.error(given.line, "undo_arguments", message, "write arguments = { id = \"/result/id\" }");
        return None;
    };
    let mut problems = argument_problems(tool, by, &map);
    let required = by.parameters.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<String> = required.filter_map(Value::as_str).map(str::to_owned).collect();
    for name in required.iter().filter(|name| !map.contains_key(*name)) {
        problems.push((format!("{} needs {name:?}", by.name), format!("add {name} = \"/result/…\"")));
    }
    let fits = problems.is_empty();
    for (message, remedy) in problems {
        report.error(given.line, "undo_arguments", message, remedy);
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

/// The problems of the arguments with which `by` undoes `tool`, each with its remedy.
fn argument_problems(tool: &SceneTool, by: &SceneTool, map: &Map<String, Value>) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let known: Vec<&str> = parameters::property_names(&by.parameters).collect();
    let own: Vec<&str> = parameters::property_names(&tool.parameters).collect();
    for (name, value) in map {
        if !known.contains(&name.as_str()) {
            problems.push((format!("{} has no argument {name:?}", by.name), parameters::hint(name, &known)));
        }
        let Some(pointer) = value.as_str().filter(|text| text.starts_with('/')) else { continue };
        match parameters::pointed_argument(pointer) {
            Some(first) if !own.contains(&first.as_str()) => {
                let message = format!("{} has no argument {first:?}", tool.name);
                problems.push((message, parameters::hint(&first, &own)));
            }
            None if !pointer.starts_with("/result/") => {
                let message = format!("{value} points neither into the arguments nor into the result");
                problems.push((message, "write \"/result/…\" or \"/arguments/…\"".to_owned()));
            }
            _ => {}
        }
    }
    problems.extend(parameters::literal_problems(by, map, "/result/id"));
    problems
}
