//! Runs of generated flows: whatever models, tools, people and crashes do, each node is entered along the graph and
//! within its bounds, never around an invariant or an approval, and nothing is done twice.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::cases;
use super::flow_world::{self, FLOWS};
use super::generators;
use super::sim::{asked, new_run, queued, started};
use super::world::Dice;
use crate::flow::{
    Comparison, Flow, Invariant, NodeKind, PathMaker, full_path, path_problems, rules_path, value_at,
};
use crate::plan::{Plan, PlanProblem, Step, StepKind, StepStatus};
use crate::planner::{self, ApproverChoice, Command, CommandAction};
use crate::run::{
    Action, ApprovalPolicy, ApprovalScope, ApprovalSubject, AskStatus, CallStatus, ConfirmPolicy, Decision,
    Effect, Event, Fault, LearnMode, Outcome, PathRecall, RecallOutcome, Reply, RunState, RunStatus,
    Settings, Subject, Usage, Verdict,
};
use crate::scene::Catalogue;

/// More events than any run of two flows within the bounds of their generator needs.
const LIMIT: usize = 4000;

/// What may happen in a world, out of 16 each.
#[derive(Debug, Clone)]
struct FlowFaults {
    /// A model fails or cannot be understood.
    models: u16,
    /// A call ends without its result.
    tools: u16,
    /// A person refuses.
    refusals: u16,
    /// The process crashes.
    crashes: u16,
    /// No path is planned.
    unplanned: bool,
}

/// An execution of a flow, from events alone.
#[derive(Debug, Default)]
struct Execution {
    path: Option<(Vec<String>, PathMaker)>,
    /// The steps of the nodes that were entered, with their names.
    entered: Vec<(u32, String)>,
    ended: bool,
    completed: bool,
}

struct FlowSim {
    faults: FlowFaults,
    dice: Dice,
    flows: Vec<Flow>,
    catalogue: Catalogue,
    settings: Settings,
    state: RunState,
    events: Vec<Event>,
    asks: Vec<u32>,
    calls: Vec<u32>,
    executions: BTreeMap<u32, Execution>,
    /// How each node's step ended.
    nodes: BTreeMap<u32, bool>,
    reopened: bool,
}

impl FlowSim {
    fn new(faults: FlowFaults, tape: Vec<u16>, seed: u64) -> Self {
        let mut dice = Dice::of(tape, seed);
        let flows: Vec<Flow> = FLOWS.iter().map(|name| flow_world::flow(&mut dice, name)).collect();
        let calls = [ApprovalScope::Declared, ApprovalScope::Never][dice.pick(2)];
        let settings = Settings {
            approval: ApprovalPolicy { plans: ApprovalScope::Never, calls, ..ApprovalPolicy::default() },
            fallback_enabled: dice.pick(2) == 1,
            max_parallel_steps: 1 + dice.pick(2) as u32,
            confirm: [ConfirmPolicy::Never, ConfirmPolicy::Unclear][dice.pick(2)],
            learn: [LearnMode::Off, LearnMode::Reuse][dice.pick(2)],
            ..Settings::default()
        };
        let catalogue = flow_world::catalogue(&flows);
        let (state, events) = (new_run(), Vec::new());
        Self {
            faults,
            dice,
            flows,
            catalogue,
            settings,
            state,
            events,
            asks: Vec::new(),
            calls: Vec::new(),
            executions: BTreeMap::new(),
            nodes: BTreeMap::new(),
            reopened: false,
        }
    }

    /// A run of one or two flows, to its end.
    fn run(faults: FlowFaults, tape: Vec<u16>, seed: u64) -> Self {
        let mut sim = Self::new(faults, tape, seed);
        let request = sim.request();
        sim.record(request);
        sim.finish();
        sim
    }

    fn request(&mut self) -> Event {
        let count = 1 + self.dice.pick(2);
        let step = |number: usize, flow: &Flow, depends: bool| Step {
            step_number: number as u32,
            kind: StepKind::Flow,
            scene_name: flow.name.clone(),
            purpose: "Do it".to_owned(),
            depends_on_step: (1..number as u32).filter(|_| depends).collect(),
            ..Step::default()
        };
        let depends = self.dice.pick(2) == 1;
        let steps =
            self.flows.iter().take(count).enumerate().map(|(at, flow)| step(at + 1, flow, depends)).collect();
        let Event::RunQueued(mut queued) = queued(false) else { unreachable!("it is a request") };
        // A write that the words of the request do not name is only asked for.
        queued.request = "Look, book it and pay for it".to_owned();
        queued.plan = Some(Plan { needs_execution: true, steps, ..Plan::default() });
        queued.options.unplanned = self.faults.unplanned;
        let given = json!({"v0": self.dice.pick(2), "v1": self.dice.pick(2), "v2": null});
        queued.guidance = crate::run::PlanGuidance::of(None, Some(given), true).map(Box::new);
        Event::RunQueued(queued)
    }

    /// Continues to the end of the run, and once more after a person has resumed it.
    fn finish(&mut self) {
        loop {
            while !self.state.status.is_terminal() {
                self.turn();
                assert!(self.events.len() < LIMIT, "the run does not end: {:#?}", self.state.steps);
            }
            self.at_end();
            if self.reopened || self.dice.pick(3) < 2 {
                return;
            }
            self.reopened = true;
            let open = self.open_outcome().filter(|_| self.dice.clone().pick(2) == 1);
            let action = match open {
                Some(approval) => {
                    CommandAction::Decide { approval, choice: ApproverChoice::Again, hash: None }
                }
                None => CommandAction::Reopen,
            };
            if !self.command(action) {
                return;
            }
        }
    }

    fn open_outcome(&self) -> Option<u32> {
        let is_outcome = |matter: &ApprovalSubject| matches!(matter, ApprovalSubject::Outcome { .. });
        let mut open =
            self.state.approvals.iter().filter(|(_, put)| put.is_open() && is_outcome(&put.matter));
        open.next().map(|(number, _)| *number)
    }

    /// Whether the command had an effect.
    fn command(&mut self, action: CommandAction) -> bool {
        let command = Command::new("keysersoze", action);
        match planner::events_for_command(&self.state, &self.catalogue, &command) {
            Ok(events) => {
                events.into_iter().for_each(|event| self.record(event));
                true
            }
            Err(refused) => {
                assert!(!refused.fault.code.is_empty());
                false
            }
        }
    }

    fn turn(&mut self) {
        if self.dice.chance(self.faults.crashes, 64) {
            return self.crash();
        }
        if self.dice.chance(self.faults.tools, 64)
            && let Some(approval) = self.open_outcome()
        {
            let choices = [ApproverChoice::Done, ApproverChoice::NotDone, ApproverChoice::Again];
            let choice = choices[self.dice.pick(3)].clone();
            self.command(CommandAction::Decide { approval, choice, hash: None });
            return;
        }
        let actions = self.state.next().to_vec();
        let flying = self.asks.len() + self.calls.len();
        if self.state.status == RunStatus::Waiting {
            assert!(actions.is_empty() && flying == 0, "it waits and has something to do: {actions:#?}");
            return self.decide();
        }
        assert!(!actions.is_empty() || flying > 0, "nothing is due: {:#?}", self.state);
        if actions.is_empty() || (flying > 0 && self.dice.pick(2) == 1) {
            return self.complete();
        }
        let action = actions[self.dice.pick(actions.len())].clone();
        self.perform(action);
    }

    /// Somebody decides what the run waits for.
    fn decide(&mut self) {
        let is_call = |matter: &ApprovalSubject| matches!(matter, ApprovalSubject::Call { .. });
        let open = self.state.approvals.iter().find(|(_, put)| put.is_open() && is_call(&put.matter));
        let approval = *open.expect("it waits for a decision about a call").0;
        let refuses = self.dice.chance(self.faults.refusals, 16);
        let choice = if refuses { ApproverChoice::No } else { ApproverChoice::Yes };
        assert!(
            self.command(CommandAction::Decide { approval, choice, hash: None }),
            "the decision is refused"
        );
    }

    fn crash(&mut self) {
        (self.asks, self.calls) = (Vec::new(), Vec::new());
        let mut state = new_run();
        for event in &self.events {
            let line = serde_json::to_string(event).unwrap();
            state.apply(&serde_json::from_str(&line).unwrap()).unwrap();
        }
        assert_eq!(state, self.state, "a restart wakes up elsewhere");
        self.record(Event::RunResumed { epoch: self.state.epoch + 1, restart: true, catalogue: None });
        let busy = !self.state.next().is_empty() || self.state.status == RunStatus::Waiting;
        assert!(busy, "nothing is due after a restart");
    }

    fn perform(&mut self, action: Action) {
        let event = match action {
            Action::Start => started(&self.settings),
            Action::Record { event } => event,
            Action::Ask { .. } => asked(&action),
            Action::Call { call, attempt } => Event::ToolStarted { call, attempt },
            Action::Take { version } => planner::supplied_plan(&self.state, &self.catalogue, version),
            Action::Prepare { step } => planner::prepared(&self.state, &self.catalogue, step),
            Action::Read { call, subject } => self.read(call, subject),
            Action::LookUpPath { step } => self.recalled(step),
            other => panic!("{other:?} in a world of flows"),
        };
        self.record(event);
    }

    fn read(&mut self, call: u32, subject: Subject) -> Event {
        if self.dice.chance(self.faults.models, 16) {
            return Event::ReplyRejected { call, problems: vec![PlanProblem::new("reply.odd", "odd")] };
        }
        match subject {
            Subject::Path { step } => self.path(call, step),
            Subject::Node { step } => {
                let node = self.state.steps[&step].node().unwrap().node.clone();
                let flow =
                    self.state.flow_of(&self.state.steps[&self.state.steps[&step].node().unwrap().parent]);
                let node = flow.and_then(|flow| flow.node(&node)).unwrap().clone();
                Event::NodeReplied { step, call, output: flow_world::output(&mut self.dice, &node) }
            }
            Subject::Continuation { round } => {
                let verdict =
                    Verdict { can_answer_now: true, answer: Some("done".to_owned()), ..Verdict::default() };
                Event::Continuation { round, verdict, degraded: false }
            }
            Subject::Answer => Event::Answered { text: "answer".to_owned(), degraded: false, error: None },
            other => panic!("{other:?} in a world of flows"),
        }
    }

    /// Any path of earlier executions, or none.
    fn recalled(&mut self, step: u32) -> Event {
        let path = (self.dice.pick(2) == 1).then(|| self.any_path(step));
        let outcome = if path.is_some() { RecallOutcome::Reused } else { RecallOutcome::Unknown };
        let recall = PathRecall { outcome, template: Some("template".to_owned()), path, hints: Vec::new() };
        Event::PathRecalled { step, recall }
    }

    /// Any path along the edges of a step's flow, which may break its other rules.
    fn any_path(&mut self, step: u32) -> Vec<String> {
        let flow = self.state.flow_of(&self.state.steps[&step]).unwrap().clone();
        let given = self.state.given_to_flow(&flow);
        match self.dice.pick(3) {
            0 => full_path(&flow, &given),
            1 => rules_path(&flow, "everything", &given),
            _ => {
                let mut path = vec![flow.entries[0].clone()];
                for _ in 0..self.dice.pick(9) {
                    let last = path.last().and_then(|name| flow.node(name)).unwrap();
                    let next = &last.possible_next_nodes;
                    if next.is_empty() {
                        break;
                    }
                    path.push(next[self.dice.pick(next.len())].clone());
                }
                path
            }
        }
    }

    /// A reply with any path. What is not possible is never admitted.
    fn path(&mut self, call: u32, step: u32) -> Event {
        let path = self.any_path(step);
        let flow = self.state.flow_of(&self.state.steps[&step]).unwrap();
        let given = self.state.given_to_flow(flow);
        let maker = if self.state.asks[&call].fallback { PathMaker::Rules } else { PathMaker::Planner };
        let problems = path_problems(flow, &path, &given);
        let event = Event::FlowPlanned { step, path, maker, call: Some(call), missing_node: None };
        if problems.is_empty() {
            return event;
        }
        assert!(self.state.check(&event).is_err(), "a path with problems is admitted: {problems:#?}");
        let problems = problems.iter().map(|problem| PlanProblem::new(problem.code, problem.message.clone()));
        Event::ReplyRejected { call, problems: problems.collect() }
    }

    /// Something under way ends.
    fn complete(&mut self) {
        let at = self.dice.pick(self.asks.len() + self.calls.len());
        let event = match self.asks.get(at) {
            Some(call) if self.dice.chance(self.faults.models, 16) => Event::ModelFailed {
                call: *call,
                error: Fault::new("llm.down", "nobody is there"),
                usage: Usage::default(),
                millis: 1,
                attempts: Vec::new(),
            },
            Some(call) => Event::ModelReplied {
                call: *call,
                reply: Reply::default(),
                usage: Usage::default(),
                millis: 1,
                attempts: Vec::new(),
            },
            None => {
                let call = self.calls[at - self.asks.len()];
                let outcome = self.outcome(call);
                Event::ToolCompleted { call, outcome, millis: 1, notes: None }
            }
        };
        self.record(event);
    }

    /// The outcome of a call: a node's outputs, its arguments, or anything.
    fn outcome(&mut self, number: u32) -> Outcome {
        let call = self.state.calls[&number].clone();
        let node = self.state.steps[&call.step].node().unwrap().clone();
        let parent = &self.state.steps[&node.parent];
        let definition = self.state.flow_of(parent).and_then(|flow| flow.node(&node.node)).unwrap().clone();
        if matches!(definition.kind, NodeKind::Approval { .. }) {
            return Outcome::Ok { result: call.requested.arguments, say: None, whole: None };
        }
        let failed = self.dice.chance(self.faults.tools, 16);
        if failed || matches!(definition.kind, NodeKind::Tool { .. }) {
            return generators::outcome(&mut self.dice, if failed { 16 } else { 0 });
        }
        let result = flow_world::output(&mut self.dice, &definition);
        Outcome::Ok { result, say: None, whole: None }
    }

    fn record(&mut self, event: Event) {
        assert_eq!(self.state.check(&event), Ok(()), "{event:?}");
        self.before(&event);
        self.state.apply(&event).unwrap();
        self.after();
        match &event {
            Event::ModelAsked { call, .. } => self.asks.push(*call),
            Event::ToolStarted { call, .. } => self.calls.push(*call),
            _ => {}
        }
        let state = &self.state;
        self.asks.retain(|ask| state.asks[ask].status == AskStatus::InFlight);
        self.calls.retain(|call| matches!(state.calls[call].status, CallStatus::InFlight { .. }));
        if event.is_terminal() {
            (self.asks, self.calls) = (Vec::new(), Vec::new());
        }
        self.events.push(event);
    }

    /// The rules, checked before an event is applied.
    fn before(&mut self, event: &Event) {
        match event {
            Event::FlowPlanned { step, path, maker, .. } => {
                let execution = self.executions.entry(*step).or_default();
                assert!(execution.path.is_none() && execution.entered.is_empty(), "a path is planned twice");
                let is_planned = matches!(maker, PathMaker::Planner | PathMaker::Learned);
                assert!(!is_planned || !self.faults.unplanned);
                let flow = self.state.flow_of(&self.state.steps[step]).unwrap();
                let problems = path_problems(flow, path, &self.state.given_to_flow(flow));
                assert!(problems.is_empty() || *maker == PathMaker::Graph, "{maker:?}: {problems:#?}");
                execution.path = Some((path.clone(), *maker));
            }
            Event::NodeStarted { step, parent, node, left, .. } => {
                self.entered(*step, *parent, node, left.is_some())
            }
            Event::ToolStarted { call, .. } => self.tool_started(*call),
            Event::StepCompleted { step, .. } => match self.executions.get_mut(step) {
                Some(execution) => {
                    let flow = &self.state.flow_of(&self.state.steps[step]).unwrap();
                    let last = execution.entered.last().expect("a flow ends with a node");
                    assert!(flow.node(&last.1).unwrap().is_end(), "a flow ends with {}", last.1);
                    assert_eq!(self.nodes.get(&last.0), Some(&true), "it ends before its last node");
                    (execution.ended, execution.completed) = (true, true);
                }
                None => assert_eq!(self.nodes.insert(*step, true), None, "a node ends twice"),
            },
            Event::StepFailed { step, .. } => match self.executions.get_mut(step) {
                Some(execution) => execution.ended = true,
                None => _ = self.nodes.insert(*step, false),
            },
            Event::RunReopened { .. } => {
                for execution in self.executions.values_mut() {
                    let done =
                        execution.entered.iter().take_while(|(step, _)| self.nodes.get(step) == Some(&true));
                    let done = done.count();
                    execution.entered.truncate(done);
                    execution.ended &= execution.completed;
                }
            }
            Event::Decided {
                matter: ApprovalSubject::Outcome { call }, decision: Decision::Again, ..
            } => {
                // Its node is taken up again, and with it the flow that ended there.
                let step = self.state.calls[call].step;
                self.nodes.remove(&step);
                let parent = self.state.steps[&step].node().map(|node| node.parent);
                if let Some(execution) = parent.and_then(|parent| self.executions.get_mut(&parent)) {
                    execution.ended &= execution.entered.last().is_none_or(|(last, _)| *last != step);
                }
            }
            _ => {}
        }
    }

    /// A node is entered along an edge whose conditions hold, within its bounds, and around no invariant.
    fn entered(&mut self, step: u32, parent: u32, name: &str, is_off_path: bool) {
        let flow = self.state.flow_of(&self.state.steps[&parent]).unwrap().clone();
        let values = self.state.flow_values(parent);
        let execution = self.executions.entry(parent).or_default();
        assert!(!execution.ended, "{name} is entered after the end");
        let node = flow.node(name).expect("a declared node");
        match execution.entered.last() {
            None => assert!(flow.entries.iter().any(|entry| entry == name), "{name} is no entry"),
            Some((before, last)) => {
                assert_eq!(
                    self.nodes.get(before),
                    Some(&true),
                    "{name} is entered before {last} has completed"
                );
                let last = flow.node(last).unwrap();
                assert!(last.possible_next_nodes.iter().any(|next| next == name), "there is no such edge");
                for test in last.conditions_of(name) {
                    let found = value_at(&values, &test.value).cloned().unwrap_or_default();
                    let holds = match &test.test {
                        Comparison::Is(other) => found == *other,
                        Comparison::IsNot(other) => found != *other,
                        Comparison::Exists(wanted) => {
                            let empty = [json!(null), json!([]), json!({}), json!("")];
                            empty.contains(&found) != *wanted
                        }
                    };
                    assert!(holds, "{name} is entered against {}", test.text());
                }
            }
        }
        let visits = execution.entered.iter().filter(|(_, known)| known == name).count();
        assert!(node.max_visits.is_none_or(|max| visits < max as usize), "{name} is entered too often");
        assert!(execution.entered.len() < flow.max_node_steps as usize, "too many nodes");
        let was = |name: &str| execution.entered.iter().any(|(_, known)| known == name);
        for invariant in &flow.invariants {
            match invariant {
                Invariant::Before { first, then } => {
                    assert!(then != name || was(first), "{name} before {first}")
                }
                Invariant::Excludes { node, others } => {
                    assert!(node != name || !others.iter().any(|other| was(other)), "{name} is excluded");
                    assert!(!others.iter().any(|other| other == name) || !was(node), "{name} is excluded");
                }
            }
        }
        for input in &node.inputs {
            assert!(values.contains_key(input), "{name} is entered without {input}");
        }
        let (path, maker) = execution.path.as_ref().expect("a path, planned or not");
        let follows = path.get(execution.entered.len()).is_some_and(|planned| planned == name);
        let was_on_path = execution.entered.iter().zip(path).all(|((_, known), planned)| known == planned);
        if *maker != PathMaker::Graph && was_on_path && !execution.entered.is_empty() {
            assert_eq!(follows, !is_off_path, "whether {name} leaves the path {path:?} is told wrongly");
        }
        execution.entered.push((step, name.to_owned()));
    }

    /// A call is made by the node that is open, and after the yes that it needs.
    fn tool_started(&self, number: u32) {
        let call = &self.state.calls[&number];
        let node = self.state.steps[&call.step].node().expect("only nodes call in this world");
        let last = self.executions[&node.parent].entered.last();
        assert!(
            last.is_some_and(|(step, _)| *step == call.step) || self.reopened,
            "a node that is not open calls"
        );
        if call.requested.approval.is_some() {
            let said = |same: &dyn Fn(u32) -> bool| {
                let of = self.state.approvals.values().filter(|put| match put.matter {
                    ApprovalSubject::Call { call } => same(call),
                    _ => false,
                });
                of.filter_map(|put| put.decided.as_ref())
                    .map(|(decision, _)| decision.clone())
                    .collect::<Vec<_>>()
            };
            let equal = |other: u32| {
                let other = &self.state.calls[&other];
                (&other.scene, &other.requested.key) == (&call.scene, &call.requested.key)
            };
            let decisions = said(&equal);
            assert!(!decisions.contains(&Decision::No) && !decisions.is_empty(), "{call:?} was not approved");
        }
        let is_write = call.requested.effect == Effect::Write;
        let done = self.state.calls.values().filter(|other| {
            is_write
                && (&other.scene, &other.requested.key) == (&call.scene, &call.requested.key)
                && other.requested.occurrence == call.requested.occurrence
                && matches!(other.status, CallStatus::Done { outcome: Outcome::Ok { .. } })
        });
        assert_eq!(done.count(), 0, "a write is done twice: {call:?}");
    }

    /// The rules of the state after any event.
    fn after(&self) {
        for (number, execution) in &self.executions {
            let Some(work) = self.state.steps.get(number).and_then(|step| step.flow()) else { continue };
            let entered: Vec<String> = execution.entered.iter().map(|(_, name)| name.clone()).collect();
            assert_eq!(self.state.entered_nodes(work), entered, "the state knows other nodes");
            let Some((path, _)) = &execution.path else { continue };
            let index = self.state.path_index_of(work);
            let on_path =
                entered.iter().zip(path).take_while(|(entered, planned)| entered == planned).count();
            if on_path == entered.len() {
                assert_eq!(index, entered.len().checked_sub(1), "{path:?} {entered:?}");
            }
            assert!(index.is_none_or(|at| entered.contains(&path[at])), "{path:?} {entered:?} {index:?}");
            assert!(self.state.nodes_behind(work) <= path.len());
        }
        let (path, ended) = crate::answer::execution_path(&self.state);
        assert!(ended <= path.len(), "{ended} of {path:?}");
    }

    fn at_end(&self) {
        assert_eq!(self.state.next(), [], "a run that has ended wants more");
        let open = |step: &&crate::run::StepState| !step.status.is_terminal();
        assert_eq!(self.state.steps.values().find(open), None, "a step is left open");
        for (number, step) in self.state.plan_steps() {
            if step.status == StepStatus::Completed {
                assert!(self.executions[number].ended, "step {number} completed without its end");
            }
        }
    }
}

fn faults() -> impl Strategy<Value = FlowFaults> {
    let often = || prop_oneof![2 => Just(0u16), 1 => 1..4u16, 1 => 4..10u16];
    (often(), often(), often(), often(), prop::bool::weighted(0.2)).prop_map(
        |(models, tools, refusals, crashes, unplanned)| FlowFaults {
            models,
            tools,
            refusals,
            crashes,
            unplanned,
        },
    )
}

proptest! {
    #![proptest_config(cases(80))]

    // `FlowSim` asserts the rules itself, at every event of every run.
    #[test]
    fn flows_keep_to_their_graphs_in_every_case(faults in faults(), tape in vec(any::<u16>(), 0..200), seed: u64) {
        let sim = FlowSim::run(faults, tape, seed);
        prop_assert!(sim.state.status.is_terminal());
    }

    #[test]
    fn without_faults_flows_are_not_interrupted(tape in vec(any::<u16>(), 0..200), seed: u64) {
        let calm = FlowFaults { models: 0, tools: 0, refusals: 0, crashes: 0, unplanned: false };
        let sim = FlowSim::run(calm, tape, seed);
        // Only a graph whose conditions lead nowhere, paths that are not possible, a bound, or a question to the user end a
        // step otherwise.
        for (_, step) in sim.state.plan_steps() {
            let code = step.error.as_ref().map_or("", |error| error.code.as_str());
            let may = ["", "flow.no_edge", "flow.no_entry", "flow.max_node_steps", "confirm.required", "llm.unusable"];
            let is_bound = code.starts_with("bound.") || step.status == StepStatus::Blocked;
            prop_assert!(may.contains(&code) || is_bound, "{code}: {:?}", step.error);
        }
    }
}

/// The properties say something of all kinds of nodes, of loops, approvals and left paths, because there are such runs.
#[test]
fn generated_worlds_have_loops_writes_approvals_and_left_paths() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 1..200u64 {
        let faults = FlowFaults { models: 1, tools: 1, refusals: 2, crashes: 1, unplanned: seed % 5 == 0 };
        let sim = FlowSim::run(faults, Vec::new(), seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for event in &sim.events {
            let what = match event {
                Event::NodeStarted { left: Some(_), .. } => "left",
                Event::NodeReplied { .. } => "replied",
                Event::ApprovalRequired { matter: ApprovalSubject::Call { .. }, .. } => "approval",
                Event::ToolStarted { call, .. }
                    if sim.state.calls[call].requested.effect == Effect::Write =>
                {
                    "write"
                }
                Event::RunResumed { .. } => "crash",
                Event::RunReopened { .. } => "reopened",
                Event::FlowPlanned { maker: PathMaker::Graph, .. } => "graph",
                Event::FlowPlanned { maker: PathMaker::Planner, .. } => "planned",
                Event::FlowPlanned { maker: PathMaker::Learned, .. } => "learned",
                _ => continue,
            };
            *seen.entry(what).or_default() += 1;
        }
        for execution in sim.executions.values() {
            let mut names: Vec<&String> = execution.entered.iter().map(|(_, name)| name).collect();
            let count = names.len();
            names.sort();
            names.dedup();
            if names.len() < count {
                *seen.entry("loop").or_default() += 1;
            }
        }
    }
    let all =
        ["left", "replied", "approval", "write", "crash", "reopened", "graph", "planned", "learned", "loop"];
    assert!(all.iter().all(|what| seen.get(what).is_some_and(|times| *times > 2)), "{seen:?}");
}

#[test]
fn all_flows_of_a_run_have_a_bound_together() {
    let calm = FlowFaults { models: 0, tools: 0, refusals: 0, crashes: 0, unplanned: true };
    let mut sim = FlowSim::new(calm, Vec::new(), 0);
    sim.flows = FLOWS.iter().map(|name| flow_world::endless(name)).collect();
    sim.catalogue = flow_world::catalogue(&sim.flows);
    let Event::RunQueued(mut queued) = sim.request() else { unreachable!("it is a request") };
    let plan = queued.plan.as_mut().unwrap();
    let second = Step { step_number: 2, scene_name: FLOWS[1].to_owned(), ..plan.steps[0].clone() };
    plan.steps = vec![plan.steps[0].clone(), second];
    sim.settings.max_parallel_steps = 1;
    sim.record(Event::RunQueued(queued));
    while !sim.state.status.is_terminal() {
        sim.turn();
    }
    let code = |step: u32| sim.state.steps[&step].error.as_ref().unwrap().code.clone();
    assert_eq!((code(1), code(2)), ("flow.max_node_steps".to_owned(), "flow.too_many_nodes".to_owned()));
    assert_eq!(sim.nodes.len(), 1000);
}
