//! Checks `alternative` of a tool: the tools of the same scene that are called in its place when it fails.

use serde_json::{Map, Value};

use super::SceneTool;
use super::document::Located;
use super::draft::AlternativeDraft;
use super::fault::FaultReport;
use super::parameters::derived_argument_problems;
use crate::adapt::{AlternativeTool, MAX_ALTERNATIVES};
use crate::nearest::{did_you_mean, name_list};

/// Maximum length of the criteria by which a model chooses, in characters.
const MAX_CRITERIA: usize = 300;

pub(super) struct DeclaredAlternatives {
    pub(super) drafts: Vec<AlternativeDraft>,
    pub(super) choose_by: Option<Located<String>>,
}

/// The checked alternatives of `tool`, whose scene has `tools`, and the criteria by which a model chooses among them.
/// Invalid ones are reported and left out.
pub(super) fn check(
    tools: &[SceneTool],
    tool: &SceneTool,
    declared: DeclaredAlternatives,
    report: &FaultReport,
) -> (Vec<AlternativeTool>, String) {
    let DeclaredAlternatives { drafts, choose_by } = declared;
    let criteria = check_criteria(tool, choose_by, drafts.len(), report);
    if let Some(draft) = drafts.get(MAX_ALTERNATIVES) {
        let message = format!("{} has more than {MAX_ALTERNATIVES} alternatives", tool.name);
        report.error(draft.line, "alternative_tool", message, "remove some of them");
    }
    let mut all: Vec<AlternativeTool> = Vec::new();
    for draft in drafts {
        let line = draft.line;
        let Some(alternative) = check_one(tools, tool, draft, report) else { continue };
        if all.iter().any(|earlier| earlier.tool == alternative.tool) {
            let message = format!("{} is an alternative of {} twice", alternative.tool, tool.name);
            report.error(line, "alternative_tool", message, "name another tool, or remove one of them");
        }
        all.push(alternative);
    }
    (all, criteria)
}

/// The criteria, which only count among several alternatives.
fn check_criteria(
    tool: &SceneTool,
    given: Option<Located<String>>,
    alternatives: usize,
    report: &FaultReport,
) -> String {
    let Some(given) = given else { return String::new() };
    let text = given.value.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() || text.chars().count() > MAX_CRITERIA {
        let message = format!("choose_by of {} has {} characters", tool.name, text.chars().count());
        let remedy = format!("write a sentence of 1 to {MAX_CRITERIA} characters");
        report.error(given.line, "alternative_criteria", message, remedy);
    }
    if alternatives < 2 {
        let message = format!("{} says by what to choose among alternatives, and has no two", tool.name);
        let remedy = "add another [[tools.alternative]], or remove `choose_by`";
        report.warning(given.line, "policy_unused", message, remedy);
    }
    text
}

/// The checked alternative of `tool`, whose scene has `tools`; `None` if an error was reported.
fn check_one(
    tools: &[SceneTool],
    tool: &SceneTool,
    draft: AlternativeDraft,
    report: &FaultReport,
) -> Option<AlternativeTool> {
    let named = draft.tool?;
    let by = alternative_tool(tools, tool, &named, report)?;
    if tool.volatile != by.volatile {
        let message = format!("of {} and its alternative {}, only one is volatile", tool.name, by.name);
        report.warning(named.line, "alternative_volatile", message, "set `volatile` for both or for neither");
    }
    let given = draft.arguments.unwrap_or_else(|| Located::without_line(Value::Object(Map::new())));
    let Value::Object(map) = given.value else {
        let message = format!("the arguments of the alternative of {} are not a table", tool.name);
        let remedy = "write arguments = { city = \"/arguments/city\" }";
        report.error(given.line, "alternative_arguments", message, remedy);
        return None;
    };
    let line = given.line.or(draft.line);
    let problems = derived_argument_problems(tool, by, &map, false);
    let fits = problems.is_empty();
    for (message, remedy) in problems {
        report.error(line, "alternative_arguments", message, remedy);
    }
    fits.then(|| AlternativeTool {
        tool: by.name.clone(),
        arguments: map.into_iter().collect(),
        same_result: draft.same_result.is_some_and(|flag| flag.value),
    })
}

/// The tool with this name, if it may replace `tool`.
fn alternative_tool<'a>(
    tools: &'a [SceneTool],
    tool: &SceneTool,
    named: &Located<String>,
    report: &FaultReport,
) -> Option<&'a SceneTool> {
    let wrong = |message: String, remedy: String| {
        report.error(named.line, "alternative_tool", message, remedy);
        None
    };
    let fitting = || tools.iter().filter(|by| by.name != tool.name && by.effect == tool.effect);
    let Some(by) = tools.iter().find(|by| by.name == named.value) else {
        let names = || fitting().map(|by| by.name.as_str());
        let hint = did_you_mean(&named.value, names());
        let remedy = match hint.is_empty() {
            true => format!("name a tool of this scene: {}", name_list(names())),
            false => hint,
        };
        return wrong(
            format!(
                "the alternative of {} is {:?}, which is not a tool of its scene",
                tool.name, named.value
            ),
            remedy,
        );
    };
    if by.name == tool.name {
        return wrong(format!("{} is its own alternative", tool.name), "name another tool".to_owned());
    }
    if by.effect != tool.effect {
        let message =
            format!("of {} and its alternative {}, one reads and the other writes", tool.name, by.name);
        return wrong(message, "name a tool with the same `effect`".to_owned());
    }
    if by.repeatable != tool.repeatable {
        let message = format!("of {} and its alternative {}, only one is repeatable", tool.name, by.name);
        return wrong(message, "set `repeatable` for both or for neither".to_owned());
    }
    Some(by)
}
