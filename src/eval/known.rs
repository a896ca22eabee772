//! Checks that labels name scenes, tools and arguments of the catalogue.

use std::collections::BTreeSet;

use super::fault::EvalFileFault;
use super::labels::LabelledRequest;
use super::read::fault;
use crate::nearest::{did_you_mean, name_list};
use crate::run::Effect;
use crate::scene::{Catalogue, SceneTool};

/// Labels that name scenes, tools or arguments which do not exist.
pub(super) fn unknown_labels(request: &LabelledRequest, catalogue: &Catalogue) -> Vec<EvalFileFault> {
    let scenes: BTreeSet<&str> = catalogue.all().map(|scene| scene.name.as_str()).collect();
    let tools: BTreeSet<&str> =
        catalogue.all().flat_map(|scene| &scene.tools).map(|tool| tool.name.as_str()).collect();
    let (mut found, mut found_writes) = (Vec::new(), Vec::new());
    let mut add = |code: &'static str, what: &str, name: &str, known: &BTreeSet<&str>| {
        let message = format!("{}: there is no {what} {name:?}", request.id);
        let near = did_you_mean(name, known.iter().copied());
        let remedy =
            if near.is_empty() { format!("one of: {}", name_list(known.iter().copied())) } else { near };
        found.push(fault(request, code, message, &remedy));
    };
    for name in [&request.scenes, &request.completes].into_iter().flatten().flatten() {
        if !scenes.contains(name.as_str()) {
            add("eval.unknown_scene", "scene", name, &scenes);
        }
    }
    let either: BTreeSet<&str> = scenes.union(&tools).copied().collect();
    for name in request.before.iter().flatten() {
        if !either.contains(name.as_str()) {
            add("eval.unknown_scene", "scene or tool", name, &either);
        }
    }
    let calls =
        request.labelled_calls().iter().map(|call| (&call.tool, call.arguments.keys().collect::<Vec<_>>()));
    let tools_called = request.tools.iter().map(|tool| (&tool.name, tool.args.keys().collect()));
    let named = calls.chain(tools_called).chain(request.optional.iter().map(|tool| (tool, Vec::new())));
    for (name, arguments) in named {
        let Some(tool) = find(catalogue, name) else {
            add("eval.unknown_tool", "tool", name, &tools);
            continue;
        };
        let known = tool.parameters["properties"].as_object();
        let known: BTreeSet<&str> = known.into_iter().flat_map(|p| p.keys()).map(String::as_str).collect();
        if tool.effect == Effect::Write && request.optional.contains(name) {
            let message = format!("{}: `optional` has the tool {name:?}, which writes", request.id);
            let remedy = "only reads may be optional: label the write in `calls`, or remove it";
            found_writes.push(fault(request, "eval.labels", message, remedy));
        }
        for argument in arguments.into_iter().filter(|argument| !known.contains(argument.as_str())) {
            add("eval.unknown_argument", &format!("argument of {name}"), argument, &known);
        }
    }
    found.extend(found_writes);
    found
}

/// The tool of this name, in whichever scene.
fn find<'a>(catalogue: &'a Catalogue, name: &str) -> Option<&'a SceneTool> {
    catalogue.all().find_map(|scene| scene.tool(name))
}
