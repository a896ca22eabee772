//! Checks `undo` of a tool: the tool of the same scene that reverts a completed write.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::SceneTool;
use super::document::Located;
use super::draft::UndoDraft;
use super::fault::FaultReport;
use super::parameters::derived_argument_problems;
use crate::nearest::{did_you_mean, name_list};
use crate::run::{Effect, Undo};
use crate::schema::required_names;

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
    let problems = derived_argument_problems(tool, by, &map, true);
    let fits = problems.is_empty();
    for (message, remedy) in problems {
        report.error(given.line, "undo_arguments", message, remedy);
    }
    let arguments: BTreeMap<String, Value> = map.into_iter().collect();
    fits.then(|| Undo {
        tool: by.name.clone(),
        arguments,
        repeat: by.repeat,
        required: required_names(&by.parameters).map(str::to_owned).collect(),
        identity: by.identity.clone(),
    })
}
