//! Flows of a run: their definitions, the values that their nodes have produced, and where their execution is.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::event::{Effect, Event, Outcome, PlanCause, PlanMade, Subject};
use super::state::{CallState, RunState, StepState};
use super::work::{FlowWork, NodeWork, PlannedPath, StepWork};
use crate::flow::{
    Flow, MAX_EARLIER_REQUEST_CHARS, MAX_EARLIER_REQUESTS, NextNode, Node, NodeKind, Walk, is_part,
    path_index, path_problems, says_no_more,
};
use crate::language::text;
use crate::plan::{DependsOn, Reference, Step, StepKind, StepStatus};

impl StepState {
    /// Returns whether it executes a node, so that it belongs to the step of a flow and to no plan.
    pub fn is_node(&self) -> bool {
        self.node().is_some()
    }
}

impl RunState {
    /// The steps of plans, by number: without those of nodes.
    pub fn plan_steps(&self) -> impl Iterator<Item = (&u32, &StepState)> {
        self.steps.iter().filter(|(_, step)| !step.is_node())
    }

    /// How many nodes the flows of the run have entered.
    pub(super) fn node_steps(&self) -> usize {
        self.steps.values().filter(|step| step.is_node()).count()
    }

    /// The definition of a step's flow, as the plan froze it.
    pub fn flow_of(&self, step: &StepState) -> Option<&Flow> {
        let made = step.version.checked_sub(1).and_then(|at| self.plans.get(at as usize))?;
        made.flows.iter().find(|flow| flow.name == step.step.scene_name)
    }

    /// Returns whether no paths are planned: flows follow their graphs by their conditions.
    pub(super) fn follows_graphs(&self) -> bool {
        self.queued.as_ref().is_some_and(|queued| queued.options.unplanned)
    }

    /// The values that the request gives: the fields of its `current_state`.
    fn current_state(&self) -> Option<&Map<String, Value>> {
        self.queued.as_ref()?.guidance.as_ref()?.current_state.as_ref()?.as_object()
    }

    /// The names of a flow's inputs that the request gives.
    pub fn given_to_flow(&self, flow: &Flow) -> BTreeSet<String> {
        let given = |name: &&String| {
            self.current_state().and_then(|state| state.get(*name)).is_some_and(|value| !value.is_null())
        };
        flow.inputs.iter().filter(given).cloned().collect()
    }

    /// The values of a flow's step: what it is given, and what its nodes have produced since it began.
    pub fn flow_values(&self, number: u32) -> Map<String, Value> {
        let mut values = Map::new();
        let Some((step, flow)) = self.steps.get(&number).and_then(|step| Some((step, self.flow_of(step)?)))
        else {
            return values;
        };
        for name in self.given_to_flow(flow) {
            let value = self.current_state().and_then(|state| state.get(&name)).cloned();
            values.extend(value.map(|value| (name, value)));
        }
        values.insert("request".to_owned(), self.request_of_flow(step).into());
        values.insert("purpose".to_owned(), self.purpose_of_flow(step).into());
        values.insert("earlier_requests".to_owned(), self.earlier_requests().into());
        let now = self.started.as_ref().map(|started| started.now.to_string());
        values.insert("now".to_owned(), json!(now));
        values.insert("language".to_owned(), json!(self.language()));
        let nodes =
            step.flow().into_iter().flat_map(|work| &work.nodes).filter_map(|node| self.steps.get(node));
        for node in nodes.filter(|node| node.status == StepStatus::Completed) {
            let definition = node.node().and_then(|work| flow.node(&work.node));
            let outputs = definition.map(|definition| self.outputs_of(node, definition, &values));
            values.extend(outputs.unwrap_or_default());
        }
        values
    }

    /// The user's last requests before this one, oldest first.
    fn earlier_requests(&self) -> Vec<String> {
        let turns = self.started.as_ref().map_or(&[][..], |started| &started.context.turns);
        let last = turns.get(turns.len().saturating_sub(MAX_EARLIER_REQUESTS)..).unwrap_or_default();
        last.iter().map(|turn| text::shorten(&turn.request, MAX_EARLIER_REQUEST_CHARS).to_owned()).collect()
    }

    /// Returns the part of the user's text that a flow's step serves: all of it, or the step's purpose if the steps of
    /// some plan of this run divide the text among them word by word. A part in an earlier version of the plan stays a
    /// part.
    pub(crate) fn request_of_flow<'a>(&'a self, step: &'a StepState) -> &'a str {
        let purpose = step.step.purpose.trim();
        let divides = |made: &PlanMade| {
            let parts: Vec<&str> = made.plan.steps.iter().map(|step| step.purpose.as_str()).collect();
            is_part(self.request(), purpose, &parts)
        };
        if self.plans.iter().any(divides) { purpose } else { self.request() }
    }

    /// Returns the purpose that a flow is told. A model that plans with the results of a flow in view may follow an
    /// instruction hidden in them. So the step's purpose is used only if it says no more than the user did; otherwise
    /// the user's text is used.
    pub(crate) fn purpose_of_flow<'a>(&'a self, step: &'a StepState) -> &'a str {
        let is_after_results = |made: &PlanMade| {
            made.version == step.version
                && matches!(made.cause, PlanCause::Continuation | PlanCause::Adaptation)
        };
        let has_results = |other: &StepState| {
            other.version < step.version && other.flow().is_some_and(|work| !work.nodes.is_empty())
        };
        if !self.plans.iter().any(is_after_results) || !self.steps.values().any(has_results) {
            return &step.step.purpose;
        }
        let turns = self.started.iter().flat_map(|started| &started.context.turns);
        let changes = self.plans.iter().filter_map(|made| made.why.as_deref());
        let user_texts = turns.map(|turn| turn.request.as_str()).chain(changes).chain([self.request()]);
        if says_no_more(user_texts, &step.step.purpose) {
            &step.step.purpose
        } else {
            self.request_of_flow(step)
        }
    }

    /// What a node that has completed produced. An approval that nobody was asked for passes its inputs on.
    fn outputs_of(&self, step: &StepState, node: &Node, values: &Map<String, Value>) -> Map<String, Value> {
        if let Some(output) = step.node().and_then(|work| work.output.as_ref()) {
            return node.outputs_in(output);
        }
        match step.round_calls.last().and_then(|call| self.outcome(*call)) {
            Some(Outcome::Ok { result, whole, .. }) => node.outputs_in(whole.as_ref().unwrap_or(result)),
            _ if matches!(node.kind, NodeKind::Approval { .. }) => {
                node.outputs_in(&Value::Object(node.inputs_of(values)))
            }
            _ => Map::new(),
        }
    }

    /// The names of the nodes that a flow's step has entered, in order.
    pub fn entered_nodes(&self, work: &FlowWork) -> Vec<String> {
        let nodes = work.nodes.iter().filter_map(|number| self.steps.get(number)?.node());
        nodes.map(|node| node.node.clone()).collect()
    }

    /// Where in its planned path a flow's step is: the index of the node that was entered last, or, off the path, of
    /// the last one on it.
    pub fn path_index_of(&self, work: &FlowWork) -> Option<usize> {
        path_index(&work.planned.as_ref()?.path, &self.entered_nodes(work))
    }

    /// Returns what a flow's step keeps when it begins again: its path, and the nodes up to the first that did not complete or
    /// whose write was undone. So no node that has completed is executed a second time with other values.
    pub(super) fn kept_flow(&self, number: u32) -> Option<FlowWork> {
        let mut work = self.steps.get(&number)?.flow()?.clone();
        let is_undone = |node: &StepState| {
            node.calls.iter().filter_map(|call| self.calls.get(call)).any(|call| self.is_undone(call))
        };
        let stands = |number: &u32| {
            let node = self.steps.get(number);
            node.is_some_and(|node| node.status == StepStatus::Completed && !is_undone(node))
        };
        let standing = work.nodes.iter().take_while(|node| stands(node)).count();
        work.nodes.truncate(standing);
        Some(work)
    }

    /// A write of a node is to be made again: the flow that ended with this node runs until it has an outcome.
    pub(super) fn revive_flow_of(&mut self, node: u32) {
        let Some(parent) = self.steps.get(&node).and_then(StepState::node).map(|work| work.parent) else {
            return;
        };
        let flow = self.steps.get(&parent).and_then(StepState::flow);
        if flow.is_some_and(|work| work.nodes.last() == Some(&node)) {
            self.step(parent, StepState::run_again);
        }
    }

    /// Returns whether the node of a step has begun a write before, in the same execution of its flow.
    pub fn has_written_before(&self, step: &StepState) -> bool {
        let Some(own) = step.node() else { return false };
        let others = self.steps.values().filter(|other| {
            let same = |work: &NodeWork| work.parent == own.parent && work.node == own.node;
            other.step.step_number != step.step.step_number && other.node().is_some_and(same)
        });
        let mut calls = others.flat_map(|other| &other.calls).filter_map(|call| self.calls.get(call));
        calls.any(|call| call.requested.effect == Effect::Write && call.attempts > 0)
    }

    /// How many nodes of its planned path a flow's step has passed.
    pub fn nodes_behind(&self, work: &FlowWork) -> usize {
        let last = work.nodes.last().and_then(|node| self.steps.get(node));
        let is_done = last.is_some_and(|node| node.status == StepStatus::Completed);
        self.path_index_of(work).map_or(0, |at| at + usize::from(is_done))
    }

    /// Returns what follows in a flow's step.
    pub(super) fn next_node_of(&self, number: u32, flow: &Flow, planned: &PlannedPath) -> NextNode {
        let work = self.steps.get(&number).and_then(StepState::flow);
        let entered = work.map(|work| self.entered_nodes(work)).unwrap_or_default();
        let values = self.flow_values(number);
        Walk { flow, path: planned.followed(), entered: &entered, values: &values }.next_node()
    }

    /// Returns whether a call is one of a flow's own functions or approvals. Its result is no source of values, because
    /// it may repeat what a model wrote.
    pub fn is_of_flow(&self, call: &CallState) -> bool {
        let step = self.steps.get(&call.step);
        let parent = step.and_then(StepState::node).and_then(|node| self.steps.get(&node.parent));
        parent.is_some_and(|parent| parent.step.scene_name == call.scene)
    }

    /// Returns whether a model may be asked for the path of a flow's step.
    pub(crate) fn may_plan_path(&self, step: u32) -> bool {
        self.may_ask(Subject::Path { step })
    }

    /// Returns whether a flow's step may follow a path of earlier executions: the path is possible, and no node on it
    /// needs a model that may not be asked.
    pub(crate) fn may_follow(&self, step: u32, flow: &Flow, path: &[String]) -> bool {
        let has_functions = self.settings().fallback_enabled;
        let works = self.may_plan_path(step) || flow.works_without_model(path, has_functions);
        works && path_problems(flow, path, &self.given_to_flow(flow)).is_empty()
    }

    /// The templates of the paths of the plan's flows, as far as a path was recalled or learned.
    pub fn learned_paths(&self) -> Vec<String> {
        let flows = self.plan_steps().filter_map(|(_, step)| step.flow());
        flows.filter_map(|work| work.learned_template().map(str::to_owned)).collect()
    }

    /// Folds an event about the path of a flow's step: the recall, the path, the entry of a node, or the reply of its
    /// model.
    pub(super) fn fold_flow(&mut self, event: &Event) {
        match event {
            Event::PathRecalled { step, .. } | Event::PathObserved { step, .. } => {
                self.step(*step, |state| state.work.fold(event, &[]));
            }
            Event::FlowPlanned { step, .. } => {
                self.use_reply_about(Subject::Path { step: *step });
                self.step(*step, |state| state.work.fold(event, &[]));
            }
            Event::NodeReplied { step, .. } => {
                self.use_reply_about(Subject::Node { step: *step });
                self.step(*step, |state| state.work.fold(event, &[]));
            }
            _ => self.enter_node(event),
        }
    }

    /// The value that a reference to a flow's step stands for: a part of what its nodes produced.
    pub(super) fn referenced_in_flow(
        &self,
        flow: &StepState,
        reference: &Reference,
        by: Effect,
    ) -> Result<Value, String> {
        let (number, name) = (reference.step, flow.step.label());
        if by == Effect::Write {
            return Err(format!("what the flow {name} of step {number} produced is no source of a write"));
        }
        if flow.status != StepStatus::Completed {
            return Err(format!("the flow {name} of step {number} did not complete"));
        }
        let values = Value::Object(self.flow_values(number));
        let value = values.pointer(&reference.pointer).filter(|value| !value.is_null()).cloned();
        value
            .ok_or_else(|| format!("the flow {name} of step {number} has nothing at {:?}", reference.pointer))
    }

    /// Records when the step of a node ended.
    pub(super) fn end_node(&mut self, number: u32) {
        let at = self.at;
        self.step(number, |step| {
            if let StepWork::Node(work) = &mut step.work {
                work.ended_at = Some(at);
            }
        });
    }

    /// Adds the step of a node that is entered.
    pub(super) fn enter_node(&mut self, event: &Event) {
        let Event::NodeStarted { step: number, parent, node, scene, left } = event else { return };
        let Some(flow_step) = self.steps.get(parent) else { return };
        let definition = self.flow_of(flow_step).and_then(|flow| flow.node(node));
        let expected_tools = match definition.map(|node| &node.kind) {
            Some(NodeKind::Tool { tool, .. }) => vec![tool.clone()],
            _ => Vec::new(),
        };
        let step = Step {
            step_number: *number,
            kind: StepKind::Node,
            scene_name: scene.clone(),
            purpose: definition.map(|node| node.description.clone()).unwrap_or_default(),
            expected_tools,
            depends_on_step: DependsOn::default(),
            unclear: flow_step.step.unclear,
            ..Step::default()
        };
        let version = flow_step.version;
        let mut state = StepState::pending(step, version);
        state.status = StepStatus::Running;
        state.work = StepWork::Node(NodeWork {
            parent: *parent,
            node: node.clone(),
            left: left.clone(),
            started_at: self.at,
            ..NodeWork::default()
        });
        self.steps.insert(*number, state);
        self.step(*parent, |step| step.work.fold(event, &[]));
    }
}
