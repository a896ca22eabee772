//! Turns a draft into a usable scene and reports all faults at once.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::alternative::{self, DeclaredAlternatives};
use super::document::{Located, LocatedTexts};
use super::draft::{CallDraft, ExampleDraft, HttpDraft, SceneDraft, ToolDraft};
use super::fault::FaultReport;
use super::policies::{self, PolicySubject};
use super::sentences::{self, checked_about};
use super::{
    Scene, SceneExample, SceneTool, ToolApproval, ToolExpectations, expectations, parameters, python,
    summary_tool, tables, undo,
};
use crate::adapt::{self, ExecutionLevel, ToolPolicies};
use crate::llm::functions::{
    ADAPT_PLAN, ASK_USER, CHANGE_LISTS, CHECK_CONTINUATION, CHOOSE_RECOVERY, CREATE_PLAN, INTERPRET_DATA,
    MAKE_DECISION, PLAN_FLOW_PATH, REPORT_NODE,
};
use crate::nearest::{did_you_mean, name_list};
use crate::program::Unavailable;
use crate::program::module::ReadModule;
use crate::run::{Effect, FaultClass};
use crate::sandbox;
use crate::schema::property_names;
use crate::staged::SceneTables;
use crate::tools::bound::MIN_BOUND;
use crate::tools::guard::NetworkPolicy;
use crate::tools::summary::SummaryTool;
use crate::tools::{NativeTools, Tool, http};

pub(super) const DEFAULT_CONCURRENCY: u32 = 32;
pub(super) const DEFAULT_MAILBOX: u32 = 1024;
const DEFAULT_TIMEOUT_MS: u64 = 10_000;
const DEFAULT_MAX_RESULT_BYTES: usize = 16 * 1024;

/// The longest name of a scene or tool that model servers allow.
const MAX_NAME: usize = 64;

/// Names of the engine's own functions for models.
const RESERVED: [&str; 10] = [
    ASK_USER, CHANGE_LISTS, CREATE_PLAN, CHECK_CONTINUATION, CHOOSE_RECOVERY, INTERPRET_DATA, MAKE_DECISION,
    ADAPT_PLAN, PLAN_FLOW_PATH, REPORT_NODE,
];

/// What scenes may refer to: native tools, the network and the environment; and the reader of their `tools.py`.
pub(super) struct CheckContext<'a> {
    pub(super) natives: &'a NativeTools,
    pub(super) policy: NetworkPolicy,
    pub(super) environment: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a `tools.py`.
    pub(super) read_module: &'a dyn Fn(&str) -> Result<ReadModule, Unavailable>,
    /// Created when the first HTTP tool needs it.
    pub(super) network: OnceCell<Result<http::HttpNetwork, String>>,
}

impl<'a> CheckContext<'a> {
    /// For scenes built in Rust: they refer to no configuration and have no files.
    pub(super) fn of_builder(natives: &'a NativeTools) -> Self {
        Self {
            natives,
            policy: NetworkPolicy::default(),
            environment: &|_| None,
            read_module: &without_worker,
            network: OnceCell::new(),
        }
    }
}

/// Rejects every `tools.py`: there is no worker that could read it.
pub(super) fn without_worker(source: &str) -> Result<ReadModule, Unavailable> {
    sandbox::read_module(&sandbox::Options::default(), source)
}

/// The checked scene, or `None` if the report has an error.
pub(super) fn check(mut draft: SceneDraft, around: &CheckContext<'_>, report: &FaultReport) -> Option<Scene> {
    python::read_file(&mut draft, around, report);
    if let Some(name) = &draft.name {
        check_name("scene", name, report);
    }
    check_text("description", draft.description.as_ref(), "the planner chooses scenes by it", report);
    check_text(
        "instructions",
        draft.instructions.as_ref(),
        "they are all that the scene's model is told",
        report,
    );
    let about = checked_about(std::mem::take(&mut draft.about), report);
    check_summarises(&draft, report);
    let max_writes = draft
        .max_writes
        .map(|given| positive_count("max_writes", Some(given), crate::run::MAX_WRITES, report));
    let concurrency = positive_count("concurrency", draft.concurrency, DEFAULT_CONCURRENCY, report);
    let mailbox = positive_count("mailbox", draft.mailbox, DEFAULT_MAILBOX, report);
    let names: Vec<Located<String>> = draft.tools.iter().filter_map(|tool| tool.name.clone()).collect();
    check_unique(&names, report);
    let examples = check_examples(draft.examples, &names, report);
    let approval = draft.approval.map(|approval| approval.value).unwrap_or_default();
    let tools = check_tools(draft.tools, approval, around, report);
    check_level(draft.level.as_ref(), &tools, report);
    check_statuses(&draft.statuses, report);
    let declared = tables::check(draft.tables, report);
    let table_tools =
        if declared.is_empty() { Vec::new() } else { tables::functions(&declared, &names, around, report) };
    if report.has_errors() {
        return None;
    }
    let name = draft.name?.value;
    Some(Scene {
        schema_sql: with_declared(&name, &declared, draft.schema_sql),
        tables: Arc::new(declared),
        table_tools,
        name,
        description: draft.description?.value.trim().to_owned(),
        about,
        instructions: draft.instructions?.value.trim().to_owned(),
        examples,
        concurrency,
        mailbox,
        settings: draft.settings.unwrap_or_else(|| Value::Object(Map::new())),
        confirm: draft.confirm.map(|confirm| confirm.value),
        max_writes,
        level: draft.level.map(|level| level.value),
        summarises: draft.summarises,
        maker: draft.maker.map(|maker| maker.value),
        statuses: draft.statuses.into_iter().map(|status| status.value).collect(),
        mixed_writes: draft.mixed_writes,
        tools,
        flow: None,
    })
}

/// The tools of a scene that can be used, with the calls that undo theirs and the alternatives to them. `scene` is the
/// approval that the scene requires of its writes.
fn check_tools(
    drafts: Vec<ToolDraft>,
    scene: ToolApproval,
    around: &CheckContext<'_>,
    report: &FaultReport,
) -> Vec<SceneTool> {
    let (mut tools, mut undos, mut alternatives) = (Vec::<SceneTool>::new(), Vec::new(), Vec::new());
    for mut draft in drafts {
        let undo = draft.undo.take();
        let declared = DeclaredAlternatives {
            drafts: std::mem::take(&mut draft.alternatives),
            choose_by: draft.choose_by.take(),
        };
        let line = declared.drafts.first().map(|draft| draft.line);
        if let Some(tool) = check_tool(draft, line, scene, around, report) {
            undos.extend(undo.map(|undo| (tools.len(), undo)));
            alternatives.push((tools.len(), declared));
            tools.push(tool);
        }
    }
    for (at, draft) in undos {
        let undo = undo::check(&tools, &tools[at], draft, report);
        tools[at].undo = undo;
    }
    for (at, declared) in alternatives {
        let (all, choose_by) = alternative::check(&tools, &tools[at], declared, report);
        let (mut all, policies) = (all.into_iter(), &mut tools[at].policies);
        (policies.alternative, policies.others) = (all.next(), all.collect());
        policies.choose_by = choose_by;
    }
    tools
}

/// The scene's `schema.sql` after the statements for the tables that it declares.
fn with_declared(scene: &str, declared: &SceneTables, own: Option<String>) -> Option<String> {
    if declared.is_empty() {
        return own;
    }
    Some(format!("{}{}", crate::tools::tables::schema(scene, declared), own.unwrap_or_default()))
}

/// The checked tool of a flow's node, or `None` if it cannot be used.
pub(super) fn check_flow_tool(
    draft: ToolDraft,
    around: &CheckContext<'_>,
    report: &FaultReport,
) -> Option<SceneTool> {
    check_tool(draft, None, ToolApproval::None, around, report)
}

/// Checks that the words for `STATUS` are valid names.
fn check_statuses(statuses: &[Located<String>], report: &FaultReport) {
    for status in statuses {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if status.value.is_empty() || status.value.len() > MAX_NAME || !status.value.chars().all(is_word) {
            let message = format!("{:?} is not a valid word for STATUS", status.value);
            report.error(status.line, "bad_status", message, "use 1 to 64 characters from a-z 0-9 _");
        }
    }
}

/// Warns about reads without a sentence, at a level at which no model words their results.
fn check_level(level: Option<&Located<ExecutionLevel>>, tools: &[SceneTool], report: &FaultReport) {
    let Some(level) = level else { return };
    if level.value != ExecutionLevel::Basic {
        return;
    }
    for tool in tools.iter().filter(|tool| tool.effect == Effect::Read && tool.say.is_empty()) {
        let message =
            format!("{} has no sentence: at the level `basic`, its results are shown as JSON", tool.name);
        report.warning(level.line, "level_no_say", message, "add `say` to the tool");
    }
}

pub(super) fn check_name(what: &str, name: &Located<String>, report: &FaultReport) {
    let text = &name.value;
    let fits = (1..=MAX_NAME).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !fits {
        let message = format!("{text:?} is not a valid {what} name");
        report.error(name.line, "name", message, "use 1 to 64 characters from A-Z a-z 0-9 _ -");
    }
}

fn check_text(key: &str, text: Option<&Located<String>>, why: &str, report: &FaultReport) {
    if let Some(text) = text
        && text.value.trim().is_empty()
    {
        report.error(text.line, "empty", format!("`{key}` is empty"), format!("fill it in: {why}"));
    }
}

/// Checks that no two tools have one name.
pub(super) fn check_unique(names: &[Located<String>], report: &FaultReport) {
    let mut seen: BTreeMap<String, Option<u32>> = BTreeMap::new();
    for name in names {
        if let Some(first) = seen.get(&name.value.to_lowercase()) {
            let at = first.map(|line| format!(" on line {line}")).unwrap_or_else(|| " before it".to_owned());
            let message = format!("{:?} is the name of two tools; the other one is{at}", name.value);
            report.error(
                name.line,
                "duplicate_tool",
                message,
                "give each tool a unique name (case-insensitive)",
            );
        } else {
            seen.insert(name.value.to_lowercase(), name.line);
        }
    }
}

fn check_examples(
    drafts: Vec<ExampleDraft>,
    tools: &[Located<String>],
    report: &FaultReport,
) -> Vec<SceneExample> {
    if drafts.is_empty() {
        report.warning(
            None,
            "no_examples",
            "the scene has no examples",
            "add [[examples]] with say = \"…\": requests are routed by them",
        );
    }
    let known = || tools.iter().map(|name| name.value.as_str());
    let mut examples = Vec::new();
    for draft in drafts {
        if let Some(tool) = draft.tool.as_ref().filter(|tool| !known().any(|name| name == tool.value)) {
            let hint = did_you_mean(&tool.value, known());
            let remedy =
                if hint.is_empty() { format!("its tools are: {}", name_list(known())) } else { hint };
            let message =
                format!("the example names the tool {:?}, which the scene does not have", tool.value);
            report.error(tool.line, "example_tool", message, remedy);
        }
        check_text("say", draft.say.as_ref(), "a request in the user's words", report);
        if let Some(say) = draft.say {
            examples.push(SceneExample { say: say.value, tool: draft.tool.map(|tool| tool.value) });
        }
    }
    examples
}

/// A number of at least 1 that fits into a `u32`.
fn positive_count(key: &str, given: Option<Located<u64>>, default: u32, report: &FaultReport) -> u32 {
    let Some(given) = given else { return default };
    match u32::try_from(given.value) {
        Ok(n) if n > 0 => n,
        _ => {
            let message = format!("{key} = {} is out of bounds", given.value);
            report.error(
                given.line,
                "bound",
                message,
                format!("use 1 or more, or omit it for the default {default}"),
            );
            default
        }
    }
}

fn no_parameters() -> Located<Value> {
    Located::without_line(json!({"type": "object", "properties": {}}))
}

/// A scene that summarises documents has only tools for programs; any other scene has at least one tool.
fn check_summarises(draft: &SceneDraft, report: &FaultReport) {
    let is_summary = |tool: &ToolDraft| matches!(tool.call, Some(CallDraft::Summary { .. }));
    if draft.summarises && !draft.tools.iter().all(is_summary) {
        let message = "a scene with `summarises` has tools that nobody would call";
        let remedy = "keep only tools with kind = \"summary\", which programs call, or remove `summarises`";
        report.error(None, "summarises", message, remedy);
    }
    if draft.tools.is_empty() && !draft.summarises {
        report.warning(None, "no_tools", "the scene has no tools", "add a table [[tools]]");
    }
}

/// `alternative` is the line of the first declared alternative, if there is one.
fn check_tool(
    mut draft: ToolDraft,
    alternative: Option<Option<u32>>,
    scene: ToolApproval,
    around: &CheckContext<'_>,
    report: &FaultReport,
) -> Option<SceneTool> {
    let shown = draft.name.as_ref().map_or("the tool", |name| name.value.as_str()).to_owned();
    if let Some(name) = &draft.name {
        check_tool_name(name, report);
    }
    summary_tool::complete(&mut draft, &shown, report);
    check_text("description", draft.description.as_ref(), "models choose tools by it", report);
    let timeout_ms = timeout_ms(draft.timeout_ms.as_ref(), &shown, report);
    let max_result_bytes = max_result_bytes(draft.max_result_bytes.as_ref(), &shown, report);
    let effect = draft.effect.as_ref().map(|effect| effect.value);
    let repeat = draft.repeat.as_ref().map(|repeat| repeat.value).unwrap_or_default();
    warn_of_write_keys(&draft, &shown, report);
    check_flag("repeatable", draft.repeatable.as_ref(), effect, Effect::Write, &shown, report);
    check_flag("volatile", draft.volatile.as_ref(), effect, Effect::Read, &shown, report);
    let parameters = draft.parameters.take().unwrap_or_else(no_parameters);
    let validator = parameters::compile(&shown, &parameters, &draft.parameter_lines, report);
    check_identity(&draft.identity, &parameters.value, &shown, report);
    sentences::check(&shown, &draft.say, &draft.confirm, &parameters.value, report);
    let (expectations, policies) =
        check_responses(&mut draft, alternative, &shown, &parameters.value, report);
    let call = draft.call?;
    let summarises = matches!(call, CallDraft::Summary { .. });
    // The rules for HTTP requests apply to functions in Python as well.
    let terms = |assumed: Option<Effect>| {
        let effect = effect.or(assumed)?;
        Some(http::HttpToolTerms { parameters: &parameters.value, effect, repeat, timeout_ms })
    };
    let (tool, source) = compile_call(call, &shown, terms, around, report)?;
    Some(SceneTool {
        name: draft.name?.value,
        description: draft.description?.value.trim().to_owned(),
        parameters: parameters.value.into(),
        effect: effect?,
        repeat,
        approval: tool_approval(effect?, draft.approval.map(|approval| approval.value), scene),
        undo: None,
        identity: draft.identity.into_iter().map(|argument| argument.value).collect(),
        timeout_ms,
        max_result_bytes,
        say: draft.say.into_iter().map(|(language, template)| (language, template.value)).collect(),
        repeatable: draft.repeatable.is_some_and(|flag| flag.value) && effect == Some(Effect::Write),
        volatile: draft.volatile.is_some_and(|flag| flag.value) && effect == Some(Effect::Read),
        confirm: draft.confirm.into_iter().map(|(language, template)| (language, template.value)).collect(),
        policies,
        expectations,
        summarises,
        source,
        tool,
        validator: Arc::new(validator?),
    })
}

/// The expectations of a tool's results and the policies for its failures, checked against its parameters.
/// `alternative` as for [`check_tool`].
fn check_responses(
    draft: &mut ToolDraft,
    alternative: Option<Option<u32>>,
    tool: &str,
    parameters: &Value,
    report: &FaultReport,
) -> (ToolExpectations, ToolPolicies) {
    let effect = draft.effect.as_ref().map(|effect| effect.value);
    let (expect, policies) = (std::mem::take(&mut draft.expect), std::mem::take(&mut draft.policies));
    let expectations = expectations::check(expect, tool, (parameters, effect), report);
    let subject = PolicySubject {
        tool,
        effect,
        repeat: draft.repeat.as_ref().map(|repeat| repeat.value).unwrap_or_default(),
        optional: draft.optional.as_ref(),
        alternative,
        cached: draft.cached.as_ref(),
        volatile: draft.volatile.as_ref().is_some_and(|flag| flag.value),
    };
    let policies = policies::check(policies, &subject, report);
    let policies = ToolPolicies { interpret: expectations.interpret, ..policies };
    warn_of_unused_interpretation(&policies, tool, report);
    (expectations, policies)
}

/// The approval that a tool requires, where its scene requires `scene` for writes.
fn tool_approval(effect: Effect, own: Option<ToolApproval>, scene: ToolApproval) -> ToolApproval {
    match (effect, own) {
        (Effect::Read, Some(approval)) if approval.requires_call_approval() => ToolApproval::Call,
        (Effect::Read, _) => ToolApproval::None,
        (Effect::Write, own) => own.unwrap_or(scene),
    }
}

/// Warns about results that are to be interpreted if a policy ends the call before that.
fn warn_of_unused_interpretation(policies: &ToolPolicies, tool: &str, report: &FaultReport) {
    if policies.interpret && adapt::is_final(FaultClass::BadData, Some(policies)) {
        let message =
            format!("the results of {tool} are to be interpreted, and its policy for bad_data says \"fail\"");
        let remedy =
            "remove \"fail\" from the `do` of [tools.policies.bad_data], or `interpret` from [tools.expect]";
        report.warning(None, "policy_unused", message, remedy);
    }
}

/// The implementation of a tool, and its source.
fn compile_call<'a>(
    call: CallDraft,
    shown: &str,
    terms: impl Fn(Option<Effect>) -> Option<http::HttpToolTerms<'a>>,
    around: &CheckContext<'_>,
    report: &FaultReport,
) -> Option<(Arc<dyn Tool>, Value)> {
    Some(match call {
        CallDraft::Ready(tool) => (tool, json!({"rust": shown})),
        CallDraft::Native(native) => {
            (resolve_native_tool(&native, around, report)?, json!({"native": native.value}))
        }
        CallDraft::Http(draft) => {
            // If the effect is invalid, which was reported, the faults of the request are reported as well.
            let terms = terms(Some(Effect::Read))?;
            (compile_http_tool(&draft, terms, around, report)?, json!({"http": draft.source}))
        }
        CallDraft::Python(draft) => python::compile(draft, shown, terms(None)?, around, report)?,
        CallDraft::Summary { .. } => (Arc::new(SummaryTool), json!({"kind": "summary"})),
    })
}

fn check_tool_name(name: &Located<String>, report: &FaultReport) {
    check_name("tool", name, report);
    if RESERVED.contains(&name.value.as_str()) {
        let message = format!("{:?} is reserved by the engine", name.value);
        report.error(name.line, "reserved_name", message, "choose another name");
    }
}

fn timeout_ms(given: Option<&Located<u64>>, tool: &str, report: &FaultReport) -> u64 {
    match given {
        Some(given) if given.value == 0 => {
            let remedy = format!("use 1 or more, or omit it for the default {DEFAULT_TIMEOUT_MS}");
            report.error(given.line, "bound", format!("the timeout_ms of {tool} is 0"), remedy);
            DEFAULT_TIMEOUT_MS
        }
        Some(given) => given.value,
        None => DEFAULT_TIMEOUT_MS,
    }
}

fn max_result_bytes(given: Option<&Located<u64>>, tool: &str, report: &FaultReport) -> usize {
    match given {
        Some(given) => {
            let max = usize::try_from(given.value).unwrap_or(usize::MAX);
            if max < MIN_BOUND {
                let message = format!("the max_result_bytes of {tool} is less than {MIN_BOUND}");
                let remedy =
                    format!("use {MIN_BOUND} or more, or omit it for the default {DEFAULT_MAX_RESULT_BYTES}");
                report.error(given.line, "bound", message, remedy);
            }
            max
        }
        None => DEFAULT_MAX_RESULT_BYTES,
    }
}

/// Warns about keys of a read that only writes need.
fn warn_of_write_keys(draft: &ToolDraft, tool: &str, report: &FaultReport) {
    if draft.effect.as_ref().map(|effect| effect.value) != Some(Effect::Read) {
        return;
    }
    if let Some(repeat) = &draft.repeat {
        let message = format!("{tool} only reads, and reads may always be repeated");
        report.warning(repeat.line, "repeat", message, "remove `repeat`, or set effect = \"write\"");
    }
    if let Some(question) = draft.confirm.values().next() {
        let message = format!("{tool} only reads, and nothing is asked before a read");
        report.warning(
            question.line,
            "confirm",
            message,
            "remove [tools.confirm], or set effect = \"write\"",
        );
    }
    if let Some(approval) = draft.approval.as_ref().filter(|approval| approval.value == ToolApproval::Plan) {
        let message = format!("{tool} only reads, and a plan needs no approval for reads");
        report.warning(approval.line, "approval", message, "write `approval = \"call\"`, or remove it");
    }
}

/// Checks that the arguments that identify a call are properties of the tool.
fn check_identity(identity: &[Located<String>], parameters: &Value, tool: &str, report: &FaultReport) {
    let known: Vec<&str> = property_names(parameters).collect();
    for argument in identity {
        if !known.contains(&argument.value.as_str()) {
            let message = format!(
                "the identity of {tool} names {:?}, which is not among its properties",
                argument.value
            );
            report.error(argument.line, "identity", message, parameters::hint(&argument.value, &known));
        }
    }
}

/// Warns about a flag that does not apply to a tool with this effect.
fn check_flag(
    key: &str,
    flag: Option<&Located<bool>>,
    effect: Option<Effect>,
    meant: Effect,
    tool: &str,
    report: &FaultReport,
) {
    let Some(flag) = flag.filter(|flag| flag.value && effect.is_some_and(|effect| effect != meant)) else {
        return;
    };
    let kind = if meant == Effect::Write { "writes" } else { "reads" };
    let message = format!("`{key}` of {tool} has no effect: it is for {kind}");
    report.warning(flag.line, key, message, format!("remove `{key}`, or change `effect`"));
}

fn resolve_native_tool(
    name: &Located<String>,
    around: &CheckContext<'_>,
    report: &FaultReport,
) -> Option<Arc<dyn Tool>> {
    let found = around.natives.get(&name.value);
    if found.is_none() {
        let hint = did_you_mean(&name.value, around.natives.names());
        let remedy = if hint.is_empty() {
            format!("registered are: {}", name_list(around.natives.names()))
        } else {
            hint
        };
        let message = format!("no native tool is registered as {:?}", name.value);
        report.error(name.line, "native_unknown", message, remedy);
    }
    found
}

/// The implementation of an HTTP tool.
pub(super) fn compile_http_tool(
    draft: &HttpDraft,
    terms: http::HttpToolTerms<'_>,
    around: &CheckContext<'_>,
    report: &FaultReport,
) -> Option<Arc<dyn Tool>> {
    let line = |at: &str| draft.source_lines.line(&format!("/{}", at.replacen('.', "/", 1)));
    if terms.effect == Effect::Write && draft.spec.method == "GET" {
        let remedy = "use another `method`, or set effect = \"read\"";
        report.warning(
            line("method"),
            "http_method",
            "a GET request is not meant to change anything",
            remedy,
        );
    }
    let network = around
        .network
        .get_or_init(|| http::HttpNetwork::new(&around.policy).map_err(|error| error.to_string()));
    let network = match network {
        Ok(network) => network,
        Err(error) => {
            let message = format!("no HTTP request can be made: {error}");
            report.error(
                line(""),
                "http_client",
                message,
                "check that the system's TLS certificates are readable",
            );
            return None;
        }
    };
    check_localhost(draft, &around.policy, report);
    check_request_texts(draft, terms.parameters, report);
    match http::HttpTool::new(&draft.spec, terms, network, around.environment) {
        Ok(tool) => Some(Arc::new(tool)),
        Err(problems) => {
            for problem in problems {
                report.error(line(&problem.at), problem.code, problem.message, problem.remedy);
            }
            None
        }
    }
}

/// Checks the texts of a valid request: sentences about statuses, and braces that were probably meant for an argument.
fn check_request_texts(draft: &HttpDraft, parameters: &Value, report: &FaultReport) {
    let lines = &draft.source_lines;
    for (status, texts) in &draft.spec.on_status {
        let locate = |(language, text): (&String, &String)| {
            let line = lines.line(&format!("/on_status/{status}/{language}"));
            (language.clone(), Located { value: text.clone(), line })
        };
        let texts: LocatedTexts = texts.iter().map(locate).collect();
        sentences::check_variables_of_call("`on_status`", &texts, &["status"], parameters, report);
    }
    let known: Vec<&str> = property_names(parameters).collect();
    for (pointer, text) in texts_of(&draft.source) {
        for name in sentences::braced(text, "{{", "}}").filter(|name| known.contains(name)) {
            let message = format!("{{{{{name}}}}} is sent as the text {{{name}}}, without the argument");
            let remedy = format!("write {{{name}}} for the argument");
            report.warning(lines.line(&pointer), "http_placeholder", message, remedy);
        }
    }
}

/// The texts of a request in which arguments are replaced, with their JSON pointers.
fn texts_of(source: &Value) -> Vec<(String, &str)> {
    let mut texts = Vec::new();
    for key in ["url", "query", "headers", "body"] {
        let mut open: Vec<(String, &Value)> =
            source.get(key).map(|value| (format!("/{key}"), value)).into_iter().collect();
        while let Some((pointer, value)) = open.pop() {
            match value {
                Value::String(text) => texts.push((pointer, text.as_str())),
                Value::Array(items) => {
                    open.extend(items.iter().enumerate().map(|(at, item)| (format!("{pointer}/{at}"), item)));
                }
                Value::Object(fields) => open.extend(fields.iter().map(|(name, value)| {
                    (format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")), value)
                })),
                _ => {}
            }
        }
    }
    texts
}

/// Reports a request to this machine by name, which is refused by `policy` whenever it is made.
fn check_localhost(draft: &HttpDraft, policy: &NetworkPolicy, report: &FaultReport) {
    let Ok(url) = reqwest::Url::parse(&draft.spec.url) else { return };
    if let Err(refused) = policy.check_localhost(&url) {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = format!("{}{port}", url.host_str().unwrap_or_default());
        let remedy = format!("write a public host, or add {host:?} to `scenes.allow_hosts`");
        report.error(draft.source_lines.line("/url"), "http_private_address", refused.message, remedy);
    }
}
