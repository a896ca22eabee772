//! Reads a `flow.toml`. A flow becomes a scene of the catalogue that models do not see: its tools are those that its
//! nodes call by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::check::{CheckContext, check_flow_tool, check_name};
use super::document::{Located, LocatedTexts, Presence, TableReader, read_toml};
use super::draft::{CallDraft, ToolDraft};
use super::fault::FaultReport;
use super::parse::LEVEL_KEYWORDS;
use super::sentences::{check_sentence, checked_about};
use super::{Scene, SceneExample, SceneTool};
use crate::adapt::ExecutionLevel;
use crate::flow::{
    self, Comparison, DEFAULT_MAX_NODE_STEPS, Decider, EdgeCondition, Flow, Invariant, Node, NodeKind,
    PathExample, ValueTest,
};
use crate::run::Effect;
use crate::schema::{property_names, required_names};
use crate::tools::{Tool, ToolContext, ToolError, phrase};

/// The suffix that makes the name of a model's node the name of its fallback tool, which is called if no model answers.
const FALLBACK_SUFFIX: &str = "_fallback";

/// How many of its examples planners see, who choose among scenes and flows: the first ones. Paths are planned with all.
const SHOWN_EXAMPLES: usize = 8;

/// The kinds of nodes in `flow.toml`.
const KINDS: [(&str, Kind); 5] = [
    ("native", Kind::Native),
    ("llm", Kind::Llm),
    ("tool", Kind::Tool),
    ("approval", Kind::Approval),
    ("condition", Kind::Condition),
];

/// Who gives an approval, in `flow.toml`.
const DECIDERS: [(&str, Decider); 2] = [("approver", Decider::Approver), ("user", Decider::User)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Native,
    Llm,
    Tool,
    Approval,
    Condition,
}

/// The name of the tool that is called in place of a node's model.
pub fn fallback_tool(node: &str) -> String {
    format!("{node}{FALLBACK_SUFFIX}")
}

/// The lines of a flow's parts: of keys of the flow, and of nodes and their keys.
#[derive(Debug, Clone, Default)]
pub(super) struct FlowLines {
    /// The line for parts that have none of their own; `None` for a flow built in Rust.
    first: Option<u32>,
    flow: BTreeMap<&'static str, Option<u32>>,
    nodes: BTreeMap<String, NodeLines>,
}

#[derive(Debug, Clone, Default)]
struct NodeLines {
    line: Option<u32>,
    keys: BTreeMap<&'static str, Option<u32>>,
}

impl FlowLines {
    /// The line of a key, or of the node or the flow that has it.
    pub(super) fn of(&self, node: Option<&str>, key: &str) -> Option<u32> {
        match node.and_then(|node| self.nodes.get(node)) {
            Some(lines) => lines.keys.get(key).copied().unwrap_or(lines.line),
            None => self.flow.get(key).copied().unwrap_or(self.first),
        }
    }
}

/// A flow as read or built, before it is checked, and its lines for what is checked once all scenes are known.
#[derive(Default)]
pub(super) struct FlowDraft {
    pub(super) name: Option<Located<String>>,
    pub(super) lines: FlowLines,
    pub(super) flow: Option<Flow>,
    /// The tools that its nodes call by themselves.
    pub(super) tools: Vec<ToolDraft>,
    pub(super) settings: Option<Value>,
    pub(super) schema_sql: Option<String>,
    pub(super) level: Option<ExecutionLevel>,
    pub(super) about: LocatedTexts,
}

/// Parses a `flow.toml`. Returns `None` if the text is not TOML. Faults are reported.
pub(super) fn parse(text: &str, report: &FaultReport) -> Option<FlowDraft> {
    read_toml(text, report, parse_flow)
}

fn parse_flow(mut fields: TableReader<'_>) -> FlowDraft {
    let mut lines = FlowLines { first: Some(1), ..FlowLines::default() };
    for key in ["name", "entries", "nodes", "max_node_steps", "invariants", "examples", "inputs"] {
        lines.flow.insert(key, fields.line_of(key));
    }
    let name = fields.string("name", Presence::Required);
    let description = fields.string("description", Presence::Required);
    let about = fields.texts("about");
    let inputs = names(fields.strings("inputs"));
    let entries = fields.strings("entries");
    let max = fields.number("max_node_steps");
    let level = fields.keyword("level", Presence::Optional, &LEVEL_KEYWORDS).map(|level| level.value);
    let is_set = fields.has("settings");
    fields.table("settings");
    let settings = is_set.then(|| fields.json("settings")).flatten().map(|(settings, _)| settings.value);
    let examples = fields.tables("examples").into_iter().filter_map(parse_example).collect();
    let invariants = fields.tables("invariants").into_iter().filter_map(parse_invariant).collect();
    let mut nodes = Vec::new();
    let mut tools = Vec::new();
    for table in fields.tables("nodes") {
        nodes.extend(parse_node(table, &mut lines, &mut tools));
    }
    fields.reject_unknown_keys();
    let entries = match entries.is_empty() {
        true => nodes.first().map(|node: &Node| vec![node.name.clone()]).unwrap_or_default(),
        false => names(entries),
    };
    let flow = name.as_ref().zip(description).map(|(name, description)| Flow {
        name: name.value.clone(),
        description: description.value.trim().to_owned(),
        examples,
        inputs,
        entries,
        nodes,
        max_node_steps: max
            .map_or(DEFAULT_MAX_NODE_STEPS, |max| u32::try_from(max.value).unwrap_or(u32::MAX)),
        invariants,
    });
    FlowDraft { name, lines, flow, tools, settings, schema_sql: None, level, about }
}

fn names(located: Vec<Located<String>>) -> Vec<String> {
    located.into_iter().map(|name| name.value).collect()
}

fn parse_example(mut fields: TableReader<'_>) -> Option<PathExample> {
    let say = fields.string("say", Presence::Required);
    let path = names(fields.strings("path"));
    fields.reject_unknown_keys();
    Some(PathExample { say: say?.value, path })
}

fn parse_invariant(mut fields: TableReader<'_>) -> Option<Invariant> {
    let (before, excludes) = (names(fields.strings("before")), names(fields.strings("excludes")));
    let (report, line) = (fields.report(), fields.line());
    fields.reject_unknown_keys();
    match (before.as_slice(), excludes.as_slice()) {
        ([first, then], []) => Some(Invariant::Before { first: first.clone(), then: then.clone() }),
        ([], [node, others @ ..]) if !others.is_empty() => {
            Some(Invariant::Excludes { node: node.clone(), others: others.to_vec() })
        }
        _ => {
            let remedy = "write before = [\"first\", \"then\"], or excludes = [\"node\", \"other\", …]";
            report.error(line, "flow.invariant", "this is not an invariant", remedy);
            None
        }
    }
}

fn parse_node(
    mut fields: TableReader<'_>,
    lines: &mut FlowLines,
    tools: &mut Vec<ToolDraft>,
) -> Option<Node> {
    let mut own = NodeLines { line: fields.line(), ..NodeLines::default() };
    let keys = [
        "name", "description", "inputs", "optional_inputs", "outputs", "possible_next_nodes", "conditions",
        "max_visits", "arguments", "scene", "tool", "fixed", "results", "when", "template", "output",
        "native", "fallback", "values",
    ];
    for key in keys {
        own.keys.insert(key, fields.line_of(key));
    }
    let name = fields.string("name", Presence::Required);
    let description = fields.string("description", Presence::Required);
    let kind = fields.keyword("kind", Presence::Required, &KINDS);
    let mut node = Node {
        name: name.as_ref().map(|name| name.value.clone()).unwrap_or_default(),
        description: description.map(|text| text.value.trim().to_owned()).unwrap_or_default(),
        inputs: names(fields.strings("inputs")),
        optional_inputs: names(fields.strings("optional_inputs")),
        outputs: names(fields.strings("outputs")),
        possible_next_nodes: names(fields.strings("possible_next_nodes")),
        conditions: fields.tables("conditions").into_iter().filter_map(parse_condition).collect(),
        kind: NodeKind::Condition,
        max_visits: fields.number("max_visits").map(|max| u32::try_from(max.value).unwrap_or(u32::MAX)),
    };
    let kind = kind.and_then(|kind| parse_kind(kind.value, &mut fields, &mut node, tools));
    fields.reject_unknown_keys();
    lines.nodes.insert(node.name.clone(), own);
    node.kind = kind?;
    name.map(|_| node)
}

fn parse_condition(mut fields: TableReader<'_>) -> Option<EdgeCondition> {
    let next = fields.string("next", Presence::Required);
    let when = parse_test(&mut fields);
    fields.reject_unknown_keys();
    Some(EdgeCondition { next: next?.value, when: when? })
}

/// A test: `value` and one of `is`, `is_not` and `exists`.
fn parse_test(fields: &mut TableReader<'_>) -> Option<ValueTest> {
    let value = fields.string("value", Presence::Required);
    let is = fields.json("is").map(|(value, _)| Comparison::Is(value.value));
    let is_not = fields.json("is_not").map(|(value, _)| Comparison::IsNot(value.value));
    let exists = fields.flag("exists").map(|flag| Comparison::Exists(flag.value));
    let mut tests: Vec<Comparison> = [is, is_not, exists].into_iter().flatten().collect();
    if tests.len() != 1 {
        let remedy = "write exactly one of `is`, `is_not` and `exists`";
        fields.report().error(
            fields.line(),
            "flow.condition",
            "this tests nothing, or several things",
            remedy,
        );
        return None;
    }
    Some(ValueTest { value: value?.value, test: tests.remove(0) })
}

/// Reads what is particular to a kind of node, and adds the tools that the node calls by itself.
fn parse_kind(
    kind: Kind,
    fields: &mut TableReader<'_>,
    node: &mut Node,
    tools: &mut Vec<ToolDraft>,
) -> Option<NodeKind> {
    match kind {
        Kind::Native => {
            let native = fields.string("native", Presence::Required)?;
            let kind = NodeKind::Native { native: native.value.clone() };
            tools.push(tool_draft(fields, &node.name, node, inputs_schema(node), CallDraft::Native(native)));
            Some(kind)
        }
        Kind::Llm => parse_model_node(fields, node, tools),
        Kind::Tool => parse_tool_node(fields),
        Kind::Approval => Some(parse_approval_node(fields, node, tools)),
        Kind::Condition => Some(NodeKind::Condition),
    }
}

/// A node that asks a model. Its tools check the reply, and replace the model if none answers.
fn parse_model_node(
    fields: &mut TableReader<'_>,
    node: &Node,
    tools: &mut Vec<ToolDraft>,
) -> Option<NodeKind> {
    let template = fields.string("template", Presence::Required);
    let (output, places) = fields.json("output").unzip();
    let fallback = fields.string("fallback", Presence::Optional);
    let template = template?;
    let Some(output) = output else {
        let message = format!("{} has no schema of what its model returns", node.name);
        fields.report().error(fields.line(), "flow.output", message, "add a table [nodes.output]");
        return None;
    };
    check_model(node, &template, &output, fields.report());
    let kind = NodeKind::Llm {
        template: template.value,
        output: output.value.clone(),
        fallback: fallback.as_ref().map(|name| name.value.clone()),
    };
    let mut reply = tool_draft(fields, &node.name, node, output.value.clone(), echo());
    reply.parameters = Some(output);
    reply.parameter_lines = places.unwrap_or_default();
    tools.push(reply);
    if let Some(native) = fallback {
        let name = fallback_tool(&node.name);
        tools.push(tool_draft(fields, &name, node, inputs_schema(node), CallDraft::Native(native)));
    }
    Some(kind)
}

/// A node that calls a tool of a scene.
fn parse_tool_node(fields: &mut TableReader<'_>) -> Option<NodeKind> {
    let scene = fields.string("scene", Presence::Required);
    let tool = fields.string("tool", Presence::Required);
    let arguments = values_of(fields.texts("arguments"));
    let results = values_of(fields.texts("results"));
    fields.table("fixed");
    let fixed = fields.json("fixed").map(|(fixed, _)| fixed.value);
    let fixed = fixed.and_then(|fixed| fixed.as_object().cloned()).unwrap_or_default();
    Some(NodeKind::Tool { scene: scene?.value, tool: tool?.value, arguments, fixed, results })
}

/// A node at which a person decides. Its tool checks what is decided.
fn parse_approval_node(
    fields: &mut TableReader<'_>,
    node: &mut Node,
    tools: &mut Vec<ToolDraft>,
) -> NodeKind {
    let question = fields.texts("question");
    check_questions(&node.name, &question, fields.line(), fields.report());
    let parameters = fields.json("parameters").map(|(schema, _)| schema.value);
    let by = fields.keyword("by", Presence::Optional, &DECIDERS);
    let by = by.map(|by| by.value).unwrap_or_default();
    let values = values_of(fields.texts("values"));
    let when = fields.table("when").and_then(|mut table| {
        let test = parse_test(&mut table);
        table.reject_unknown_keys();
        test
    });
    outputs_of_approval(node, &values);
    let schema = parameters.clone().unwrap_or_else(|| object_of(&node.outputs));
    tools.push(tool_draft(fields, &node.name, node, schema, echo()));
    NodeKind::Approval { question: values_of(question), parameters, when, by, values }
}

/// Texts by name, without their lines.
fn values_of(texts: LocatedTexts) -> BTreeMap<String, String> {
    texts.into_iter().map(|(name, text)| (name, text.value)).collect()
}

/// Checks the template of a model's node, and that its outputs are properties of what the model returns.
pub(super) fn check_model(
    node: &Node,
    template: &Located<String>,
    output: &Located<Value>,
    report: &FaultReport,
) {
    if let Err(error) = phrase::check_template(&template.value) {
        let message = format!("the template of {} cannot be used: {error}", node.name);
        report.error(template.line, "flow.template", message, "correct it");
    }
    let properties = output.value.get("properties").and_then(Value::as_object);
    for name in node.outputs.iter().filter(|name| !properties.is_some_and(|all| all.contains_key(*name))) {
        let message = format!("the output {name} of {} is not a property of its schema", node.name);
        report.error(output.line, "flow.output", message, format!("add {name} to [nodes.output.properties]"));
    }
}

/// Checks what an approval asks; `line` is that of the node.
pub(super) fn check_questions(node: &str, question: &LocatedTexts, line: Option<u32>, report: &FaultReport) {
    for (language, text) in question {
        check_sentence(node, language, text, report);
    }
    if question.is_empty() {
        let message = format!("{node} asks nothing");
        let remedy = "add a table [nodes.question] with the words by language";
        report.error(line, "flow.question", message, remedy);
    }
}

/// Returns the inputs that are approved and passed on, without those that only list what a list may contain (`values`,
/// by list).
pub(super) fn outputs_of_approval(node: &mut Node, values: &BTreeMap<String, String>) {
    if node.outputs.is_empty() {
        let only_listed = |name: &String| !values.contains_key(name) && values.values().any(|of| of == name);
        let inputs = node.inputs.iter().chain(&node.optional_inputs);
        node.outputs = inputs.filter(|name| !only_listed(name)).cloned().collect();
    }
}

/// An object with the inputs of a node, of any type.
pub(super) fn inputs_schema(node: &Node) -> Value {
    object_of(node.inputs.iter().chain(&node.optional_inputs))
}

/// An object with these properties, of any type.
pub(super) fn object_of<'a>(names: impl IntoIterator<Item = &'a String>) -> Value {
    let properties: Map<String, Value> = names.into_iter().map(|name| (name.clone(), json!({}))).collect();
    json!({"type": "object", "properties": properties})
}

fn tool_draft(
    fields: &mut TableReader<'_>,
    name: &str,
    node: &Node,
    parameters: Value,
    call: CallDraft,
) -> ToolDraft {
    ToolDraft {
        name: Some(Located { value: name.to_owned(), line: fields.line_of("name") }),
        description: Some(Located { value: node.description.clone(), line: fields.line_of("description") }),
        effect: Some(Located::without_line(Effect::Read)),
        timeout_ms: fields.number("timeout_ms"),
        max_result_bytes: fields.number("max_result_bytes"),
        parameters: Some(Located { value: parameters, line: fields.line() }),
        say: fields.texts("say"),
        call: Some(call),
        ..ToolDraft::default()
    }
}

/// A tool that returns its arguments.
pub(super) struct Echo;

#[async_trait]
impl Tool for Echo {
    async fn call(&self, _: ToolContext, arguments: Value) -> Result<Value, ToolError> {
        Ok(arguments)
    }
}

fn echo() -> CallDraft {
    CallDraft::Ready(Arc::new(Echo))
}

/// The scene that stands for the flow, or `None` if the report has an error.
pub(super) fn build(draft: FlowDraft, around: &CheckContext<'_>, report: &FaultReport) -> Option<Scene> {
    let flow = draft.flow?;
    let name = Located { value: flow.name.clone(), line: draft.lines.of(None, "name") };
    check_name("flow", &name, report);
    if flow.description.is_empty() {
        let remedy = "fill it in: the planner chooses flows by it";
        report.error(draft.lines.of(None, "description"), "empty", "`description` is empty", remedy);
    }
    let about = checked_about(draft.about, report);
    for problem in flow::check(&flow) {
        let line = draft.lines.of(problem.node.as_deref(), problem.key);
        report.error_as(line, problem.code, problem.message, problem.remedy);
    }
    let names: Vec<Located<String>> = draft.tools.iter().filter_map(|tool| tool.name.clone()).collect();
    super::check::check_unique(&names, report);
    let tools: Vec<SceneTool> =
        draft.tools.into_iter().filter_map(|tool| check_flow_tool(tool, around, report)).collect();
    if report.has_errors() {
        return None;
    }
    let example = |example: &PathExample| SceneExample { say: example.say.clone(), tool: None };
    Some(Scene {
        name: flow.name.clone(),
        description: flow.description.clone(),
        about,
        instructions: String::new(),
        examples: flow.examples.iter().take(SHOWN_EXAMPLES).map(example).collect(),
        concurrency: super::check::DEFAULT_CONCURRENCY,
        mailbox: super::check::DEFAULT_MAILBOX,
        settings: draft.settings.unwrap_or_else(|| Value::Object(Map::new())),
        schema_sql: draft.schema_sql,
        tables: Arc::default(),
        table_tools: Vec::new(),
        confirm: None,
        max_writes: None,
        level: draft.level,
        summarises: false,
        maker: None,
        statuses: Vec::new(),
        mixed_writes: false,
        tools,
        flow: Some(Arc::new(flow)),
    })
}

/// Returns what the tool nodes of a flow call that is not there, as (node, key, message, remedy).
pub(super) fn unlinked(flow: &Flow, scenes: &[Scene]) -> Vec<(String, &'static str, String, String)> {
    let mut faults = Vec::new();
    for node in &flow.nodes {
        let NodeKind::Tool { scene, tool, arguments, fixed, .. } = &node.kind else { continue };
        let mut fault = |key, message, remedy| faults.push((node.name.clone(), key, message, remedy));
        let known = || scenes.iter().filter(|scene| scene.flow.is_none());
        let Some(found) = known().find(|known| known.name == *scene) else {
            let names: Vec<&str> = known().map(|scene| scene.name.as_str()).collect();
            let message = format!("{} calls a tool of {scene:?}, which is not a scene", node.name);
            fault("scene", message, format!("the scenes are: {}", names.join(", ")));
            continue;
        };
        let Some(tool) = found.tool(tool) else {
            let names: Vec<&str> = found.tools.iter().map(|tool| tool.name.as_str()).collect();
            let message = format!("{} calls {tool:?}, which {scene} does not have", node.name);
            fault("tool", message, format!("its tools are: {}", names.join(", ")));
            continue;
        };
        let given: BTreeSet<&str> = arguments.keys().chain(fixed.keys()).map(String::as_str).collect();
        let declared: Vec<&str> = property_names(&tool.parameters).collect();
        for name in given.iter().filter(|name| !declared.contains(*name)) {
            let message = format!("{} of {scene} has no argument {name:?}", tool.name);
            fault("arguments", message, format!("its arguments are: {}", declared.join(", ")));
        }
        for name in required_names(&tool.parameters).filter(|name| !given.contains(name)) {
            let message = format!("{} does not give {name} of {}", node.name, tool.name);
            fault("arguments", message, format!("add {name} to [nodes.arguments] or [nodes.fixed]"));
        }
    }
    faults
}
