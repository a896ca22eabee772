//! The flows of a plan: what of them is frozen with it, and whether they can be executed under the request's constraints.

use std::collections::BTreeSet;

use super::constraints::{FORBIDDEN, forbidden_nodes};
use crate::flow::{Flow, NodeKind, full_path};
use crate::plan::{Plan, PlanProblem, StepKind};
use crate::run::{Effect, RunState};
use crate::scene::Catalogue;

/// Largest definitions of all flows of one plan, in bytes of their JSON: each version of the plan has them.
const MAX_FLOWS_BYTES: usize = 512 * 1024;

/// The definitions of the flows among a plan's steps, each once, without the nodes that the request's constraints
/// forbid: no path leads through these.
pub(super) fn frozen_flows(state: &RunState, catalogue: &Catalogue, plan: &Plan) -> Vec<Flow> {
    let allowed = |flow: &Flow| match forbidden_nodes(state, catalogue, flow) {
        forbidden if forbidden.is_empty() => flow.clone(),
        forbidden => flow.without(&forbidden),
    };
    names(plan).into_iter().filter_map(|name| catalogue.flow(name).map(|flow| allowed(flow))).collect()
}

/// Flows of a plan that cannot be executed without what the request's constraints forbid, and too large ones.
pub(super) fn flow_problems(state: &RunState, catalogue: &Catalogue, plan: &Plan) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    for step in plan.steps.iter().filter(|step| step.kind == StepKind::Flow) {
        let Some(flow) = catalogue.flow(&step.scene_name) else { continue };
        let forbidden = forbidden_nodes(state, catalogue, flow);
        let given = state.given_to_flow(flow);
        if !forbidden.is_empty() && full_path(&flow.without(&forbidden), &given).is_empty() {
            let nodes: Vec<&str> = forbidden.iter().map(String::as_str).collect();
            let what = format!(
                "step {}: every path through {} needs one of its nodes {}, whose tools the constraints of the request do \
                 not allow",
                step.step_number,
                flow.name,
                nodes.join(", ")
            );
            problems.push(PlanProblem::new(FORBIDDEN, what));
        }
    }
    let sizes = names(plan).into_iter().filter_map(|name| catalogue.flow(name)).map(|flow| flow.size());
    let bytes = sizes.fold(0, usize::saturating_add);
    if bytes > MAX_FLOWS_BYTES {
        let what = format!(
            "the flows of the plan have {bytes} bytes of JSON together, and at most {MAX_FLOWS_BYTES} are accepted: use \
             fewer flows in one plan"
        );
        problems.push(PlanProblem::new("plan.flows_too_large", what));
    }
    problems
}

/// Returns whether a node of the path calls a tool that writes.
pub fn path_writes(catalogue: &Catalogue, flow: &Flow, path: &[String]) -> bool {
    let writes = |node: &NodeKind| match node {
        NodeKind::Tool { scene, tool, .. } => {
            let tool = catalogue.get(scene).and_then(|scene| scene.tool(tool));
            tool.is_some_and(|tool| tool.effect == Effect::Write)
        }
        _ => false,
    };
    path.iter().filter_map(|name| flow.node(name)).any(|node| writes(&node.kind))
}

fn names(plan: &Plan) -> BTreeSet<&str> {
    let flows = plan.steps.iter().filter(|step| step.kind == StepKind::Flow);
    flows.map(|step| step.scene_name.as_str()).collect()
}
