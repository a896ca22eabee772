//! The forced question for a path through a flow, and the reading of its reply.

use serde::Deserialize;
use serde_json::{Value, json};

use super::prompt::{common, context, conversation, forced};
use super::read::from_arguments;
use super::tools::{PLAN_FLOW_PATH, plan_flow_path};
use crate::flow::{Flow, FlowBrief, MissingNode, PathMaker, path_problems};
use crate::invisible::one_line;
use crate::llm::{OFFLINE, Purpose, Request, reader, sections};
use crate::plan::PlanProblem;
use crate::run::{Event, Reply, RunState, Subject};

/// Maximum length of the name of a suggested node, and of its description and reason, in characters.
const MAX_NAME: usize = 64;
const MAX_WORDS: usize = 300;
/// How many bytes of a description or reason are read at most.
const MAX_READ: usize = 4 * MAX_WORDS;

const PATH: &str = "\
You plan which nodes of a flow a request needs, and in which order. You do not answer the request. Call the function \
PlanFlowPath exactly once.
- <flow> describes the nodes. A path begins with a node of begins_with, goes from each node to one of its next nodes, \
and ends with a node that has none.
- Each value that a node needs was produced by a node before it, or is among <given>.
- Every path keeps to the invariants: with before, first comes before then; with excludes, a path that has node has none \
of others.
- Leave out what the request does not need: where a value is given already, the nodes that would produce it.
- missing_node is null, unless such requests need a node that the flow does not have. It is a suggestion for the flow's author, \
and no path contains it. Describe it without names and values of this request.
- A node may follow another only under its condition. Plan what is most likely; where a condition turns out otherwise, \
the execution takes the other edge by itself.";

const HINTS: &str = "Paths that answered similar requests; words in braces stand for values. They are examples, not \
instructions, and the request below may need another path.";

#[derive(Debug, Deserialize)]
struct PathReply {
    path: Vec<String>,
    /// Read leniently: a suggestion is no reason to return a path.
    #[serde(default)]
    missing_node: Value,
}

/// A suggested node as the model writes it.
#[derive(Debug, Deserialize)]
struct SuggestionReply {
    name: String,
    description: String,
    #[serde(default)]
    why: String,
}

impl SuggestionReply {
    /// The suggestion within its bounds; `None` if it names or describes nothing, or a node that is there.
    fn bounded(self, flow: &Flow) -> Option<MissingNode> {
        let name = self.name.trim().replace([' ', '-'], "_");
        let name: String =
            name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(MAX_NAME).collect();
        let line = |text: &str| one_line(text.get(..text.floor_char_boundary(MAX_READ)).unwrap_or_default());
        let cut = |text: &str| line(text).chars().take(MAX_WORDS).collect::<String>();
        let description = cut(&self.description);
        let is_there = flow.nodes.iter().any(|node| node.name.eq_ignore_ascii_case(&name));
        let says_something = !name.trim_matches('_').is_empty() && !description.is_empty();
        (says_something && !is_there).then(|| MissingNode {
            flow: flow.name.clone(),
            name,
            description,
            why: cut(&self.why),
        })
    }
}

/// The question for the path of a flow's step.
pub(super) fn request(state: &RunState, number: u32) -> Request {
    let mut data = String::new();
    let mut names: Vec<String> = Vec::new();
    let mut words = state.request();
    if let Some((step, flow)) = state.steps.get(&number).and_then(|step| Some((step, state.flow_of(step)?))) {
        sections::push(&mut data, "flow", &json!(FlowBrief::of(flow)).to_string());
        data.push_str(&common(state));
        let context = context(state);
        sections::push(&mut data, "conversation", &conversation(&context, context.turns.iter()));
        let given: Vec<String> = state.given_to_flow(flow).into_iter().collect();
        sections::push(&mut data, "given", &given.join("\n"));
        let hints =
            step.flow().and_then(|work| work.recall.as_ref()).into_iter().flat_map(|recall| &recall.hints);
        let hints: Vec<String> = hints.map(|hint| json!(hint).to_string()).collect();
        if !hints.is_empty() {
            sections::push(&mut data, "similar_paths", &format!("{HINTS}\n{}", hints.join("\n")));
        }
        sections::push(&mut data, "purpose", state.purpose_of_flow(step));
        words = state.request_of_flow(step);
        names = flow.nodes.iter().map(|node| node.name.clone()).collect();
    }
    sections::push(&mut data, "request", words);
    let tries = state.tries(Subject::Path { step: number });
    forced(state, Purpose::Path, PATH.to_owned(), data, plan_flow_path(&names), tries)
}

/// The event that a reply to the question for a path leads to.
///
/// # Errors
/// Every problem of a path that may not be executed.
pub(super) fn read(
    state: &RunState,
    reply: &Reply,
    (call, number): (u32, u32),
    fallback: bool,
) -> Result<Event, Vec<PlanProblem>> {
    let Some(flow) = state.steps.get(&number).and_then(|step| state.flow_of(step)) else {
        let what = format!("step {number} has no flow");
        return Err(vec![PlanProblem::new("flow.unknown", what)]);
    };
    let written = reader::read(reply, PLAN_FLOW_PATH, state.settings().reader)?;
    let PathReply { path, missing_node } = from_arguments(written, PLAN_FLOW_PATH)?;
    // Some models write names in another case.
    let exact = |name: String| {
        let mut same = flow.nodes.iter().filter(|node| node.name.eq_ignore_ascii_case(name.trim()));
        same.next().map_or(name, |node| node.name.clone())
    };
    let path: Vec<String> = path.into_iter().map(exact).collect();
    let problems = path_problems(flow, &path, &state.given_to_flow(flow));
    if !problems.is_empty() {
        let of = |problem: &crate::flow::FlowProblem| PlanProblem::new(problem.code, problem.message.clone());
        return Err(problems.iter().map(of).collect());
    }
    let is_rules = fallback || reply.model == OFFLINE;
    let maker = if is_rules { PathMaker::Rules } else { PathMaker::Planner };
    let suggested = serde_json::from_value::<SuggestionReply>(missing_node).ok();
    let missing_node = suggested.and_then(|suggested| suggested.bounded(flow));
    Ok(Event::FlowPlanned { step: number, path, maker, call: Some(call), missing_node })
}
