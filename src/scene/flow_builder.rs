//! Flows built in Rust, for users of the library.
//!
//! Built flows pass the same checks as a `flow.toml`.

use std::collections::BTreeMap;
use std::future::Future;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::builder::ToolBuilder;
use super::check::CheckContext;
use super::document::Located;
use super::draft::ToolDraft;
use super::fault::{FaultReport, SceneFaults};
use super::flow::{
    Echo, FlowDraft, build, check_model, check_questions, fallback_tool, inputs_schema, object_of,
    outputs_of_approval,
};
use super::{Scene, SceneTool};
use crate::adapt::ExecutionLevel;
use crate::flow::{
    DEFAULT_MAX_NODE_STEPS, Decider, EdgeCondition, Flow, Invariant, Node, NodeKind, PathExample, ValueTest,
};
use crate::run::Effect;
use crate::schema::{is_required, property_names};
use crate::tools::{NativeTools, Tool, ToolContext, ToolError};

/// Builds a flow; see [`Flow::builder`].
#[must_use = "call `build` to create the flow"]
pub struct FlowBuilder {
    flow: Flow,
    nodes: Vec<NodeBuilder>,
    settings: Option<Value>,
    schema_sql: Option<String>,
    level: Option<ExecutionLevel>,
}

/// Builds a node of a flow; see [`Node::native`], [`Node::llm`], [`Node::tool`], [`Node::approval`] and
/// [`Node::condition`].
#[must_use = "add the node to a flow"]
pub struct NodeBuilder {
    node: Node,
    /// The function of a native node, or the one that is called where no model answers.
    function: Option<ToolDraft>,
    timeout_ms: Option<u64>,
    max_result_bytes: Option<u64>,
    say: BTreeMap<String, String>,
    /// Settings that do not apply to this kind of node, each with the kind that it is for.
    misplaced: Vec<(&'static str, &'static str)>,
}

impl std::fmt::Debug for FlowBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowBuilder").field("flow", &self.flow.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for NodeBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeBuilder").field("node", &self.node.name).finish_non_exhaustive()
    }
}

impl Flow {
    /// A builder for a flow called `name`, which is unique over scenes and flows (1 to 64 characters from
    /// `A-Z a-z 0-9 _ -`). What it builds is added to an engine with [`Builder::scene`](crate::Builder::scene).
    ///
    /// ```
    /// # use proscenium::flow::{Flow, Node, ValueTest};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Classify {
    ///     /// The user's words.
    ///     request: String,
    /// }
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Find {
    ///     number: u32,
    /// }
    /// let order = Flow::builder("order_status")
    ///     .description("Says where an order is.")
    ///     .inputs(&["number"])
    ///     .example("Where is it?", &["find"])
    ///     .entries(&["classify", "find"])
    ///     .node(
    ///         Node::native("classify", "Finds the number in the request.", |said: Classify, _| async move {
    ///             let number: Option<u32> = said.request.split(' ').find_map(|word| word.parse().ok());
    ///             Ok(serde_json::json!({"number": number}))
    ///         })
    ///         .outputs(&["number"])
    ///         .next_if("find", ValueTest::exists("number"))
    ///         .next(&["ask"]),
    ///     )
    ///     .node(
    ///         Node::native("find", "Looks the order up.", |order: Find, _| async move {
    ///             Ok(serde_json::json!({"place": format!("shelf {}", order.number)}))
    ///         })
    ///         .outputs(&["place"])
    ///         .say("en", "It is on {{ place }}."),
    ///     )
    ///     .node(Node::condition("ask", "Ends where no order is named."))
    ///     .build()
    ///     .unwrap();
    /// assert_eq!(order.flow.unwrap().node("find").unwrap().inputs, ["number"]);
    /// ```
    pub fn builder(name: &str) -> FlowBuilder {
        let flow = Flow { name: name.to_owned(), max_node_steps: DEFAULT_MAX_NODE_STEPS, ..Flow::default() };
        FlowBuilder { flow, nodes: Vec::new(), settings: None, schema_sql: None, level: None }
    }
}

impl FlowBuilder {
    /// Its purpose, as the planner reads it. Required.
    pub fn description(mut self, text: &str) -> Self {
        self.flow.description = text.trim().to_owned();
        self
    }

    /// Adds values that a caller may give, besides the [`STANDARD_INPUTS`](crate::flow::STANDARD_INPUTS).
    pub fn inputs(mut self, names: &[&str]) -> Self {
        self.flow.inputs.extend(owned(names));
        self
    }

    /// Adds a request that the flow serves, with the nodes that it needs in order. Requests are routed by examples, and
    /// without a model their paths are chosen by them. Without nodes, the example only says what the flow is for.
    pub fn example(mut self, say: &str, path: &[&str]) -> Self {
        self.flow.examples.push(PathExample { say: say.to_owned(), path: owned(path) });
        self
    }

    /// Adds nodes that a path may begin with; the first node by default.
    pub fn entries(mut self, names: &[&str]) -> Self {
        self.flow.entries.extend(owned(names));
        self
    }

    /// Adds a node.
    pub fn node(mut self, node: NodeBuilder) -> Self {
        self.nodes.push(node);
        self
    }

    /// Maximum number of nodes that one execution enters, 1 to 1000; 24 by default.
    pub fn max_node_steps(mut self, max: u32) -> Self {
        self.flow.max_node_steps = max;
        self
    }

    /// No execution enters `then` without having completed `first`.
    pub fn before(mut self, first: &str, then: &str) -> Self {
        self.flow.invariants.push(Invariant::Before { first: first.to_owned(), then: then.to_owned() });
        self
    }

    /// No execution enters `node` and one of `others`.
    pub fn excludes(mut self, node: &str, others: &[&str]) -> Self {
        self.flow.invariants.push(Invariant::Excludes { node: node.to_owned(), others: owned(others) });
        self
    }

    /// Sets who may be asked about its nodes, if fewer than configured.
    pub fn level(mut self, level: ExecutionLevel) -> Self {
        self.level = Some(level);
        self
    }

    /// A JSON object that its functions get in their context.
    pub fn settings(mut self, settings: Value) -> Self {
        self.settings = Some(settings);
        self
    }

    /// SQL that creates its tables, run at every start (`CREATE TABLE IF NOT EXISTS …`).
    pub fn schema_sql(mut self, sql: &str) -> Self {
        self.schema_sql = Some(sql.to_owned());
        self
    }

    /// Builds the scene that stands for the flow: plans name it as they name a scene. What its nodes call of other
    /// scenes is checked when the engine starts.
    ///
    /// # Errors
    /// Every fault found in it.
    pub fn build(self) -> Result<Scene, SceneFaults> {
        let Self { mut flow, nodes, settings, schema_sql, level } = self;
        let report = FaultReport::new(label(&flow.name));
        let mut tools = Vec::new();
        for node in nodes {
            flow.nodes.push(node.finish(&mut tools, &report));
        }
        if flow.entries.is_empty() {
            flow.entries.extend(flow.nodes.first().map(|node| node.name.clone()));
        }
        let draft = FlowDraft {
            name: Some(Located::without_line(flow.name.clone())),
            flow: Some(flow),
            tools,
            settings,
            schema_sql,
            level,
            ..FlowDraft::default()
        };
        let natives = NativeTools::new();
        let around = CheckContext::of_builder(&natives);
        build(draft, &around, &report).ok_or_else(|| SceneFaults(report.into_faults()))
    }
}

/// Returns the label of a flow built in Rust, which its faults have in place of a file.
pub(super) fn label(name: &str) -> String {
    format!("flow {name:?}")
}

impl Node {
    /// A node that calls an async function, which reads and does not write. The type of its argument defines the node's
    /// inputs: required fields are inputs, optional ones are optional inputs. A result that is an object has the outputs
    /// as fields; any other result is the only output.
    pub fn native<A, F, R, V>(name: &str, description: &str, function: F) -> NodeBuilder
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<V, ToolError>> + Send + 'static,
        V: Serialize,
    {
        let function = SceneTool::native(name, description, Effect::Read, function);
        NodeBuilder::of(name, description, native(name)).calling(function)
    }

    /// A node that calls a tool of one's own with its inputs, which have to be named.
    pub fn dynamic(name: &str, description: &str, tool: impl Tool + 'static) -> NodeBuilder {
        let function = SceneTool::dynamic(name, description, Effect::Read, Value::Null, tool);
        NodeBuilder::of(name, description, native(name)).calling(function)
    }

    /// A node that asks a model: `template` is minijinja over the node's inputs, `output` the JSON Schema of the object
    /// that the model returns. Its properties are the outputs, unless [`NodeBuilder::outputs`] names some of them.
    pub fn llm(name: &str, description: &str, template: &str, output: Value) -> NodeBuilder {
        let kind = NodeKind::Llm { template: template.to_owned(), output, fallback: None };
        NodeBuilder::of(name, description, kind)
    }

    /// A node that calls a tool of a scene, which may write.
    pub fn tool(name: &str, description: &str, scene: &str, tool: &str) -> NodeBuilder {
        let kind = NodeKind::Tool {
            scene: scene.to_owned(),
            tool: tool.to_owned(),
            arguments: BTreeMap::new(),
            fixed: Map::new(),
            results: BTreeMap::new(),
        };
        NodeBuilder::of(name, description, kind)
    }

    /// A node in which a person approves the inputs, and may change them. They become its outputs.
    pub fn approval(name: &str, description: &str) -> NodeBuilder {
        let kind = NodeKind::Approval {
            question: BTreeMap::new(),
            parameters: None,
            when: None,
            by: Decider::default(),
            values: BTreeMap::new(),
        };
        NodeBuilder::of(name, description, kind)
    }

    /// A node that does nothing: its conditions choose what follows.
    pub fn condition(name: &str, description: &str) -> NodeBuilder {
        NodeBuilder::of(name, description, NodeKind::Condition)
    }
}

impl NodeBuilder {
    fn of(name: &str, description: &str, kind: NodeKind) -> Self {
        let node = Node {
            name: name.to_owned(),
            description: description.trim().to_owned(),
            inputs: Vec::new(),
            optional_inputs: Vec::new(),
            outputs: Vec::new(),
            possible_next_nodes: Vec::new(),
            conditions: Vec::new(),
            kind,
            max_visits: None,
        };
        Self {
            node,
            function: None,
            timeout_ms: None,
            max_result_bytes: None,
            say: BTreeMap::new(),
            misplaced: Vec::new(),
        }
    }

    fn calling(mut self, function: ToolBuilder) -> Self {
        self.function = Some(function.into_draft());
        self
    }

    /// Adds values that it needs.
    pub fn inputs(mut self, names: &[&str]) -> Self {
        self.node.inputs.extend(owned(names));
        self
    }

    /// Adds values that it uses where they exist.
    pub fn optional_inputs(mut self, names: &[&str]) -> Self {
        self.node.optional_inputs.extend(owned(names));
        self
    }

    /// Adds values that it produces.
    pub fn outputs(mut self, names: &[&str]) -> Self {
        self.node.outputs.extend(owned(names));
        self
    }

    /// Adds nodes that may follow, the preferred one first. Without any, the flow ends here.
    pub fn next(mut self, names: &[&str]) -> Self {
        self.node.possible_next_nodes.extend(owned(names));
        self
    }

    /// Adds a node that may follow where the test holds. With several tests of one node, all have to hold.
    pub fn next_if(mut self, next: &str, test: ValueTest) -> Self {
        if !self.node.possible_next_nodes.iter().any(|known| known == next) {
            self.node.possible_next_nodes.push(next.to_owned());
        }
        self.node.conditions.push(EdgeCondition { next: next.to_owned(), when: test });
        self
    }

    /// How often one execution may enter it. Required on every loop.
    pub fn max_visits(mut self, max: u32) -> Self {
        self.node.max_visits = Some(max);
        self
    }

    /// Of a node that asks a model: the async function that is called where no model answers. Its argument is that of
    /// [`Node::native`].
    pub fn fallback<A, F, R, V>(mut self, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<V, ToolError>> + Send + 'static,
        V: Serialize,
    {
        let name = fallback_tool(&self.node.name);
        let NodeKind::Llm { fallback, .. } = &mut self.node.kind else {
            return self.misplaced("fallback", "asks a model");
        };
        *fallback = Some(name.clone());
        let tool = SceneTool::native(&name, &self.node.description, Effect::Read, function);
        self.calling(tool)
    }

    /// Of a node that calls a tool of a scene: an argument, and the value that it gets, by name and pointer (`found/id`).
    /// The value becomes an input, unless it is an optional one.
    pub fn argument(mut self, argument: &str, value: &str) -> Self {
        let NodeKind::Tool { arguments, .. } = &mut self.node.kind else {
            return self.misplaced("argument", "calls a tool");
        };
        arguments.insert(argument.to_owned(), value.to_owned());
        self
    }

    /// Of a node that calls a tool of a scene: a constant argument.
    pub fn fixed(mut self, argument: &str, value: Value) -> Self {
        let NodeKind::Tool { fixed, .. } = &mut self.node.kind else {
            return self.misplaced("fixed", "calls a tool");
        };
        fixed.insert(argument.to_owned(), value);
        self
    }

    /// Of a node that calls a tool of a scene: adds an output, and its place in the result as a JSON Pointer (RFC 6901).
    pub fn result(mut self, output: &str, pointer: &str) -> Self {
        let NodeKind::Tool { results, .. } = &mut self.node.kind else {
            return self.misplaced("result", "calls a tool");
        };
        results.insert(output.to_owned(), pointer.to_owned());
        add(&mut self.node.outputs, output);
        self
    }

    /// Of an approval: what a person is asked in one language, as a minijinja template over the node's inputs. Required
    /// in at least one language.
    pub fn question(mut self, language: &str, template: &str) -> Self {
        let NodeKind::Approval { question, .. } = &mut self.node.kind else {
            return self.misplaced("question", "asks for approval");
        };
        question.insert(language.to_owned(), template.to_owned());
        self
    }

    /// Of an approval: the JSON Schema that bounds what a person may change.
    pub fn parameters(mut self, schema: Value) -> Self {
        let NodeKind::Approval { parameters, .. } = &mut self.node.kind else {
            return self.misplaced("parameters", "asks for approval");
        };
        *parameters = Some(schema);
        self
    }

    /// Of an approval: a person is asked only where this holds.
    pub fn when(mut self, test: ValueTest) -> Self {
        let NodeKind::Approval { when, .. } = &mut self.node.kind else {
            return self.misplaced("when", "asks for approval");
        };
        *when = Some(test);
        self
    }

    /// Of an approval: who is asked.
    pub fn by(mut self, decider: Decider) -> Self {
        let NodeKind::Approval { by, .. } = &mut self.node.kind else {
            return self.misplaced("by", "asks for approval");
        };
        *by = decider;
        self
    }

    /// Of an approval: a list of texts among its inputs that the person may change, and the input that lists what it may
    /// contain, as a name or a name and a pointer (`tables`, `schema/tables`).
    pub fn editable(mut self, list: &str, allowed: &str) -> Self {
        let NodeKind::Approval { values, .. } = &mut self.node.kind else {
            return self.misplaced("editable", "asks for approval");
        };
        values.insert(list.to_owned(), allowed.to_owned());
        self
    }

    /// The timeout of its call, in milliseconds; 10,000 by default. Tools of scenes have their own.
    pub fn timeout_ms(mut self, max: u64) -> Self {
        self.timeout_ms = Some(max);
        self
    }

    /// How much of its result is shown in prompts, in bytes of JSON, at least 256; 16,384 by default.
    pub fn max_result_bytes(mut self, max: u64) -> Self {
        self.max_result_bytes = Some(max);
        self
    }

    /// The template of the sentence for its result in one language, over the result's fields and `arguments`.
    pub fn say(mut self, language: &str, template: &str) -> Self {
        self.say.insert(language.to_owned(), template.to_owned());
        self
    }

    fn misplaced(mut self, what: &'static str, meant: &'static str) -> Self {
        self.misplaced.push((what, meant));
        self
    }

    /// The node, whose tools are added to `tools`.
    fn finish(mut self, tools: &mut Vec<ToolDraft>, report: &FaultReport) -> Node {
        for (what, meant) in &self.misplaced {
            let message = format!("`{what}` of {} is for a node that {meant}", self.node.name);
            report.error(
                None,
                "unknown_key",
                message,
                format!("remove `{what}`, or use another kind of node"),
            );
        }
        self.add_inputs();
        let function = self.function.take();
        let node = &mut self.node;
        let mut own = Vec::new();
        match &node.kind {
            NodeKind::Llm { template, output, .. } => {
                if node.outputs.is_empty() {
                    node.outputs = property_names(output).map(str::to_owned).collect();
                }
                let (template, output) = (template.clone(), Located::without_line(output.clone()));
                check_model(node, &Located::without_line(template), &output, report);
                own.push(echo(node, output.value));
            }
            NodeKind::Approval { question, parameters, values, .. } => {
                let (values, question) = (values.clone(), question.iter());
                let question =
                    question.map(|(language, text)| (language.clone(), Located::without_line(text.clone())));
                check_questions(&node.name, &question.collect(), None, report);
                let schema = parameters.clone();
                outputs_of_approval(node, &values);
                own.push(echo(node, schema.unwrap_or_else(|| object_of(&node.outputs))));
            }
            NodeKind::Native { .. } | NodeKind::Tool { .. } | NodeKind::Condition => {}
        }
        own.extend(function.map(|mut function| {
            // What the type does not describe may be anything.
            let described = function.parameters.take().map(|schema| schema.value);
            let described = described.filter(|schema| property_names(schema).next().is_some());
            let schema = described.unwrap_or_else(|| inputs_schema(node));
            function.parameters = Some(Located::without_line(schema));
            function
        }));
        for tool in &mut own {
            tool.timeout_ms = self.timeout_ms.map(Located::without_line);
            tool.max_result_bytes = self.max_result_bytes.map(Located::without_line);
            let say = self.say.iter();
            tool.say = say.map(|(l, text)| (l.clone(), Located::without_line(text.clone()))).collect();
        }
        tools.extend(own);
        self.node
    }

    /// Adds the inputs that its function or its arguments name.
    fn add_inputs(&mut self) {
        let node = &mut self.node;
        let mut needed: Vec<String> = Vec::new();
        if let NodeKind::Tool { arguments, .. } = &node.kind {
            needed.extend(arguments.values().filter_map(|value| value.split('/').next()).map(str::to_owned));
        }
        let mut optional: Vec<String> = Vec::new();
        if let Some(schema) = self.function.as_ref().and_then(|function| function.parameters.as_ref()) {
            for name in property_names(&schema.value) {
                let list = if is_required(&schema.value, name) { &mut needed } else { &mut optional };
                list.push(name.to_owned());
            }
        }
        for name in needed.iter().filter(|name| !node.optional_inputs.contains(name)) {
            add(&mut node.inputs, name);
        }
        for name in optional.iter().filter(|name| !node.inputs.contains(name)) {
            add(&mut node.optional_inputs, name);
        }
    }
}

fn native(name: &str) -> NodeKind {
    NodeKind::Native { native: name.to_owned() }
}

/// The tool that returns what a model or a person gave, after it was checked.
fn echo(node: &Node, schema: Value) -> ToolDraft {
    SceneTool::dynamic(&node.name, &node.description, Effect::Read, schema, Echo).into_draft()
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn add(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests;
