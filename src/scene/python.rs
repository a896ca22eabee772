//! Checks the tools of a scene that are functions in Python, and the `tools.py` that defines them. Nothing of it is
//! executed.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::check::{CheckContext, compile_http_tool};
use super::document::Located;
use super::draft::{CallDraft, PythonDraft, RequestDraft, SceneDraft};
use super::fault::FaultReport;
use crate::nearest::{did_you_mean, name_list};
use crate::program::module::{ModuleFunction, PythonModule, ReadModule};
use crate::program::names;
use crate::run::{Effect, Repeat};
use crate::schema::is_required;
use crate::tools::Tool;
use crate::tools::http::HttpToolTerms;
use crate::tools::python::host::{CHANGES, HostRequest, REFUSE, REQUESTS, TABLE_FUNCTIONS};
use crate::tools::python::{PythonTool, PythonToolTerms, TOOLS_FILE};

/// The modules that a file may import.
const MODULES: [&str; 13] = [
    "__future__", "base64", "binascii", "collections", "dataclasses", "datetime", "functools", "itertools",
    "json", "math", "re", "typing", "unicodedata",
];

/// The `tools.py` of a scene.
#[derive(Debug, Clone, Default)]
pub(super) enum ToolsFile {
    /// There is none.
    #[default]
    Missing,
    /// It cannot be used, which was reported.
    Faulty,
    /// It can be used.
    Read(Arc<ReadToolsFile>),
}

/// The text of a `tools.py`, and its definitions.
#[derive(Debug)]
pub(super) struct ReadToolsFile {
    source: Arc<str>,
    module: PythonModule,
    /// SHA-256 of the text, in hex.
    digest: String,
}

/// Reads the file for the tools that are in Python.
pub(super) fn read_file(draft: &mut SceneDraft, around: &CheckContext<'_>, report: &FaultReport) {
    let text = draft.tools_py.take();
    let has_tables = !draft.tables.is_empty();
    let calls = draft.tools.iter_mut().filter_map(|tool| tool.call.as_mut());
    let mut python: Vec<&mut PythonDraft> = calls
        .filter_map(|call| match call {
            CallDraft::Python(python) => Some(python),
            _ => None,
        })
        .collect();
    let Some(first) = python.first().map(|draft| draft.line) else {
        return warn_of_unused(text.is_some(), report);
    };
    let tables = python.iter().flat_map(|draft| &draft.host).map(|name| name.value.clone());
    let requests = python.iter().flat_map(|draft| &draft.requests);
    let requests = requests.map(|request| format!("{REQUESTS}{}", request.name.value));
    let declared: Vec<String> = tables.chain(requests).collect();
    let file = match text {
        None if report.has_errors_beside(TOOLS_FILE) => ToolsFile::Faulty,
        None => ToolsFile::Missing,
        Some(text) => match (around.read_module)(&text) {
            Ok(found) => read(&text, found, &declared, report),
            Err(error) => {
                let message =
                    format!("the scene has tools in Python, and nothing can read {TOOLS_FILE}: {error}");
                let remedy = "name a program that is a worker as `sandbox.worker`, in a build with the feature `sandbox`, \
                              or make the tools native or HTTP requests";
                report.error(first, "python_worker", message, remedy);
                ToolsFile::Faulty
            }
        },
    };
    for draft in &mut python {
        draft.file = file.clone();
        draft.has_tables = has_tables;
    }
}

/// Warns about a `tools.py` without a tool that uses it.
pub(super) fn warn_of_unused(has_file: bool, report: &FaultReport) {
    if has_file {
        let inside = report.beside(TOOLS_FILE);
        let remedy =
            format!("write kind = \"python\" in the tool of a scene that it is for, or remove {TOOLS_FILE}");
        inside.warning(None, "python_unused", "no tool of a scene here is in Python", remedy);
        report.absorb(inside);
    }
}

fn read(text: &str, found: ReadModule, declared: &[String], report: &FaultReport) -> ToolsFile {
    let inside = report.beside(TOOLS_FILE);
    let file = match found {
        Err(problem) => {
            let remedy = "fix this first: the rest of the file is checked afterwards";
            inside.error(problem.line, "python_syntax", problem.message, remedy);
            ToolsFile::Faulty
        }
        Ok(module) => {
            check_imports(&module, &inside);
            check_uses(&module, declared, &inside);
            let digest = HEXLOWER.encode(&Sha256::digest(text));
            ToolsFile::Read(Arc::new(ReadToolsFile { source: text.into(), module, digest }))
        }
    };
    report.absorb(inside);
    file
}

fn check_imports(module: &PythonModule, inside: &FaultReport) {
    for import in &module.imports {
        let root = import.module.split('.').next().unwrap_or_default();
        if !MODULES.contains(&root) {
            let message = format!("{:?} cannot be imported", import.module);
            let remedy = format!("there are {}", MODULES.join(", "));
            inside.error(Some(import.line), "python_import", message, remedy);
        }
    }
}

/// Checks that each function of the host that the file names is declared by a tool.
fn check_uses(module: &PythonModule, declared: &[String], inside: &FaultReport) {
    for found in &module.uses {
        let name = format!("{}.{}", found.object, found.attribute);
        if !["tables", "tool", "requests"].contains(&found.object.as_str())
            || declared.contains(&name)
            || name == REFUSE
        {
            continue;
        }
        let remedy = if found.object == "requests" {
            format!("declare it as [tools.requests.{}] of the tool", found.attribute)
        } else if TABLE_FUNCTIONS.contains(&name.as_str()) {
            format!("add {name:?} to `host` of the tool")
        } else {
            format!("there are {} and {REFUSE}", TABLE_FUNCTIONS.join(", "))
        };
        let message = format!("no tool declares `{name}`");
        inside.error(Some(found.line), "python_host", message, remedy);
    }
}

/// The implementation and the source of a tool that is a function in Python. All rules for HTTP requests apply to
/// functions as well.
pub(super) fn compile(
    draft: PythonDraft,
    tool: &str,
    terms: HttpToolTerms<'_>,
    around: &CheckContext<'_>,
    report: &FaultReport,
) -> Option<(Arc<dyn Tool>, Value)> {
    check_host(&draft, tool, terms.effect, report);
    let written: Map<String, Value> =
        draft.requests.iter().map(|one| (one.name.value.clone(), one.http.source.clone())).collect();
    let requests: Vec<Option<HostRequest>> =
        draft.requests.into_iter().map(|one| request(one, terms, around, report)).collect();
    let file = match draft.file {
        ToolsFile::Read(file) => file,
        ToolsFile::Faulty => return None,
        ToolsFile::Missing => {
            let message =
                format!("{tool} is in Python, and there is no {TOOLS_FILE} beside the scene's file");
            let remedy =
                format!("add {TOOLS_FILE} with the function, or make the tool native or an HTTP request");
            report.error(draft.line, "python_file", message, remedy);
            return None;
        }
    };
    let name =
        draft.function.unwrap_or_else(|| Located { value: names::function_name(tool), line: draft.line });
    let inside = report.beside(TOOLS_FILE);
    let function = find(&file.module, &name, (tool, terms.parameters), report, &inside);
    if let Some(function) = function {
        check_parameters(function, tool, terms.parameters, &inside);
    }
    let is_faulty = inside.has_errors();
    report.absorb(inside);
    let parameters = names::parameters(terms.parameters).into_iter();
    let host: Vec<String> = draft.host.into_iter().map(|name| name.value).collect();
    let mut source = json!({"python": {"function": name.value, "host": host, "sha256": file.digest}});
    if !written.is_empty() {
        source["python"]["requests"] = Value::Object(written);
    }
    let made = PythonTool::new(PythonToolTerms {
        source: file.source.clone(),
        function: function?.name.clone(),
        parameters: parameters.map(|(name, python)| (name.to_owned(), python)).collect(),
        host,
        requests: requests.into_iter().collect::<Option<_>>()?,
        writes: terms.effect == Effect::Write,
        timeout_ms: terms.timeout_ms,
    });
    (!is_faulty).then(|| (Arc::new(made) as Arc<dyn Tool>, source))
}

/// A request that a function makes. `None` if it cannot be made, which is reported.
fn request(
    draft: RequestDraft,
    terms: HttpToolTerms<'_>,
    around: &CheckContext<'_>,
    report: &FaultReport,
) -> Option<HostRequest> {
    let RequestDraft { name, parameters, http } = draft;
    let mut properties = Map::new();
    for name in [&name].into_iter().chain(&parameters) {
        if !names::is_python_name(&name.value) {
            let message = format!("{:?} is not a name in Python", name.value);
            report.error(name.line, "python_request", message, "use letters, digits and _");
        }
    }
    for parameter in &parameters {
        properties.insert(parameter.value.clone(), json!({}));
    }
    let required: Vec<&String> = properties.keys().collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let terms = HttpToolTerms { parameters: &schema, effect: Effect::Read, repeat: Repeat::Never, ..terms };
    let tool = compile_http_tool(&http, terms, around, report)?;
    let parameters = parameters.into_iter().map(|parameter| parameter.value).collect();
    Some(HostRequest { name: name.value, parameters, tool })
}

/// Checks that the declared functions of the host exist and fit the effect of their tool.
fn check_host(draft: &PythonDraft, tool: &str, effect: Effect, report: &FaultReport) {
    for name in &draft.host {
        let error = |message: String, remedy: String| {
            report.error(name.line, "python_host", message, remedy);
        };
        let text = name.value.as_str();
        if text == REFUSE {
            error(format!("{REFUSE} is there for each tool"), "remove it from `host`".to_owned());
        } else if !TABLE_FUNCTIONS.contains(&text) {
            let hint = did_you_mean(text, TABLE_FUNCTIONS);
            let remedy =
                if hint.is_empty() { format!("there are {}", TABLE_FUNCTIONS.join(", ")) } else { hint };
            error(format!("{text:?} is not a function of the host"), remedy);
        } else if !draft.has_tables {
            let remedy = "declare [[tables]], or remove it from `host`".to_owned();
            error(format!("{tool} calls {text}, and its scene declares no tables"), remedy);
        } else if effect == Effect::Read && CHANGES.contains(&text) {
            let remedy = format!("set effect = \"write\", or remove {text:?} from `host`");
            error(format!("{tool} only reads, and {text} changes something"), remedy);
        }
    }
    let changes = || draft.host.iter().any(|name| CHANGES.contains(&name.value.as_str()));
    if effect == Effect::Write && !changes() {
        let message =
            format!("{tool} writes, and a function in Python changes nothing but tables of its scene");
        let remedy = format!(
            "declare one of {} in `host`, or make it native or an HTTP request, or set effect = \"read\"",
            CHANGES.join(", ")
        );
        report.error(draft.line, "python_write", message, remedy);
    }
}

/// The function of a tool.
fn find<'m>(
    module: &'m PythonModule,
    name: &Located<String>,
    (tool, parameters): (&str, &Value),
    report: &FaultReport,
    inside: &FaultReport,
) -> Option<&'m ModuleFunction> {
    if !names::is_python_name(&name.value) {
        let message = format!("{:?} is not a name of a function", name.value);
        report.error(name.line, "python_function", message, "use letters, digits and _");
        return None;
    }
    // A later definition replaces an earlier one.
    let found = module.functions.iter().rev().find(|function| function.name == name.value);
    if found.is_some() {
        return found;
    }
    let known = || module.functions.iter().map(|function| function.name.as_str());
    let hint = did_you_mean(&name.value, known());
    let message = format!("the file does not define `{}`, the function of {tool}", name.value);
    let add = format!("add `{}`", signature(&name.value, parameters));
    let remedy = match hint.is_empty() {
        true => format!("{add}, or name another with `function`; it defines {}", name_list(known())),
        false => format!("{hint} If not, {add}"),
    };
    inside.error(None, "python_function", message, remedy);
    None
}

/// The first line of a function with these parameters.
fn signature(function: &str, parameters: &Value) -> String {
    let all = names::parameters(parameters).into_iter().map(|(name, python)| {
        let default = if is_required(parameters, name) { "" } else { "=None" };
        format!("{python}{default}")
    });
    format!("def {function}({}):", all.collect::<Vec<_>>().join(", "))
}

/// Checks that the parameters of a function are exactly those of its tool's schema.
fn check_parameters(function: &ModuleFunction, tool: &str, parameters: &Value, inside: &FaultReport) {
    let expected = names::parameters(parameters);
    let own = |name: &str| function.parameters.iter().find(|own| own.name == name);
    let mut wrong = Vec::new();
    for (name, python) in &expected {
        match own(python) {
            None => wrong.push(format!("it has no parameter `{python}`")),
            Some(own) if !own.is_optional && !is_required(parameters, name) => {
                wrong.push(format!("`{python}` has no default, and the tool may be called without it"));
            }
            Some(_) => {}
        }
    }
    let is_known = |name: &str| expected.iter().any(|(_, python)| python == name);
    let more = function.parameters.iter().filter(|own| !is_known(&own.name));
    wrong.extend(more.map(|own| format!("`{}` is not a parameter of the tool", own.name)));
    if function.takes_others {
        wrong.push("it takes arguments without a name or under any name".to_owned());
    }
    if !wrong.is_empty() {
        let message =
            format!("`{}` does not fit the parameters of {tool}: {}", function.name, wrong.join("; "));
        let remedy =
            format!("write `{}`, or change [tools.parameters]", signature(&function.name, parameters));
        inside.error(Some(function.line), "python_parameters", message, remedy);
    }
}

#[cfg(all(test, feature = "sandbox"))]
mod tests;
