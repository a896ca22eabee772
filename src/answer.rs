//! The answer document: the result of a request, as `POST /api/chat` and `chat --json` return it.

mod decisions;
mod flow;
mod phrases;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::decisions::AnswerDecision;
pub use self::flow::{AnswerFlow, AnswerNode};
use crate::adapt::{ExecutionLevel, ExecutionMode};
use crate::invisible;
use crate::plan::{Plan, StepStatus, TaskId};
use crate::run::{
    Approval, ApprovalId, ApprovalSubject, CallStatus, Effect, Fault, Outcome, RunId, RunState, RunStatus,
    SessionId, StepState, Usage,
};
use crate::store::About;

/// A run with its answer, as clients get it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Answer {
    /// The run.
    #[schema(value_type = String, format = "uuid")]
    pub run_id: RunId,
    /// The conversation; send it with the next message to continue.
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// The public id of the plan.
    #[schema(value_type = String, format = "uuid")]
    pub task_id: TaskId,
    /// The run's status; `waiting` if a person has to decide first.
    pub status: RunStatus,
    /// The answer's text, in the user's language. For a waiting run: what it waits for and how to decide it; for
    /// a cancelled one: what had been done. Empty only if the run failed or is in progress.
    pub answer: String,
    /// The plan with the steps of all its versions; absent if none could be made.
    pub plan: Option<Plan>,
    /// The steps and their results, in order of their numbers.
    pub steps: Vec<AnswerStep>,
    /// The writes that were started, in order, with their outcomes; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<AnswerWrite>,
    /// The pending approvals; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<AnswerApproval>,
    /// The path of the run through the scenes.
    pub metadata: Metadata,
    /// Usage and cost.
    pub usage: AnswerUsage,
    /// Durations.
    pub timings: Timings,
    /// Why the run failed or was quarantined. Present only if `status` is `failed`, or `waiting` for a
    /// resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
}

/// One step of the answer document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AnswerStep {
    /// Its number in the plan.
    pub step_number: u32,
    /// Its scene.
    pub scene_name: String,
    /// Its status.
    pub status: StepStatus,
    /// Whether it completed without the results of some of its reads, which `tool_calls` has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Its result, or why there is none, as text; absent if it did not end by itself.
    pub result: Option<String>,
    /// Its tool calls, in order; of a flow, those of its nodes.
    pub tool_calls: Vec<AnswerCall>,
    /// Of a step of kind `code` that completed: the rows of its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub rows: Vec<serde_json::Map<String, Value>>,
    /// Of a step of kind `code` that changed nothing, since the request is not clear: the rows that it would change, each with
    /// its table, key, and values before and after; at most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub would_change: Vec<Value>,
    /// Of a flow: its path and its nodes, once the path is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<AnswerFlow>,
    /// Why it did not complete, or the question that it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
}

/// One tool call of the answer document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AnswerCall {
    /// The tool.
    pub tool: String,
    /// The node that made it, in the step of a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its arguments.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// Its status.
    pub outcome: CallOutcome,
    /// Its result; for a skipped call, the result of the equal call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub result: Option<Value>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// How often it was tried, if more than once and the run has a mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Whether it was left out after it failed, because its tool is optional.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
    /// When its result was recorded (RFC 3339), where that is the result of an earlier run, since the tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// Whether a write was done and its result is not as its tool declares.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unexpected_result: bool,
    /// The tool whose call took its place after it failed; that call follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// One write of the answer document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AnswerWrite {
    /// The step.
    pub step_number: u32,
    /// The scene.
    pub scene_name: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// Its outcome.
    pub outcome: CallOutcome,
}

/// One pending approval of the answer document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AnswerApproval {
    /// Its id, for `POST /api/approvals/{id}`.
    #[schema(value_type = String)]
    pub approval_id: ApprovalId,
    /// Its subject.
    pub about: About,
    /// Why approval is required.
    pub why: Vec<String>,
    /// Hash of what is approved. Sent back with the decision, it makes sure that nothing else is approved.
    /// Empty if nothing about it can change.
    pub hash: String,
    /// For a call: the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// For a call: its exact arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    /// For a call: its arguments as text, with invisible and direction-changing characters escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// For a plan: its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Whether the run's requester decides, in words or by `POST /api/approvals/{id}`, whatever the configuration says
    /// about approving one's own requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_user: bool,
    /// The lists among the arguments that may be changed, each with what it may contain besides what it contains
    /// already.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lists: BTreeMap<String, Vec<String>>,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// Done.
    Ok,
    /// The tool refused and did nothing.
    Refused,
    /// The call failed and nothing was done.
    Failed,
    /// A write whose outcome is unknown.
    Unknown,
    /// Not executed, because an equal call of the run was.
    Skipped,
    /// A write that was only reported, because the request was a dry run.
    DryRun,
    /// A write that was undone, because the run failed or was cancelled.
    Undone,
}

/// The path of the run through the scenes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Metadata {
    /// The scenes of the plan, in order of the steps.
    pub planned_execution_path: Vec<String>,
    /// How many of these steps have ended.
    pub current_path_index: usize,
    /// Who could be asked when something unexpected happened, if that was limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ExecutionLevel>,
    /// How much could change when something unexpected happened, if that was limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ExecutionMode>,
    /// Which model decided what, in order: one entry for each question whose reply was used, the last 64 of them. Absent
    /// where no model and no rules were asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<AnswerDecision>,
}

/// The usage and cost of the run, and the cost of its conversation so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AnswerUsage {
    /// Number of model calls.
    pub llm_calls: u32,
    /// Prompt tokens, including cached ones.
    pub input_tokens: u64,
    /// Prompt tokens from the provider's cache.
    pub cached_input_tokens: u64,
    /// Completion tokens.
    pub output_tokens: u64,
    /// Cost of this run in US dollars.
    pub cost_usd: f64,
    /// Cost of the whole conversation in US dollars, including this run.
    pub session_cost_usd: f64,
}

impl AnswerUsage {
    /// A run's usage, with the cost of its whole conversation in nano-USD.
    pub fn new(run: Usage, session_cost_nano_usd: u64) -> Self {
        Self {
            llm_calls: run.calls,
            input_tokens: run.input_tokens,
            cached_input_tokens: run.cached_input_tokens,
            output_tokens: run.output_tokens,
            cost_usd: usd(run.cost_nano_usd),
            session_cost_usd: usd(session_cost_nano_usd),
        }
    }
}

impl Answer {
    /// The document of a run. `session_cost_nano_usd` is the cost of its conversation, including this run;
    /// `total` is measured from the request's arrival.
    pub(crate) fn new(
        state: &RunState,
        session: &SessionId,
        session_cost_nano_usd: u64,
        total: Duration,
        overhead: Duration,
    ) -> Self {
        let steps: Vec<AnswerStep> =
            state.plan_steps().map(|(number, step)| answer_step(state, *number, step)).collect();
        let last = state.plan().map(|made| &made.plan);
        let (planned_execution_path, current_path_index) = execution_path(state);
        Self {
            run_id: state.run,
            session_id: session.clone(),
            task_id: state.queued.as_ref().map_or(TaskId(state.run.0), |q| q.task),
            status: state.status,
            answer: answer_text(state),
            plan: state.plans.first().map(|first| Plan {
                needs_execution: state.plans.iter().any(|made| made.plan.needs_execution),
                reasoning: last.map_or_else(|| first.plan.reasoning.clone(), |plan| plan.reasoning.clone()),
                steps: state.plan_steps().map(|(_, s)| s.step.clone()).collect(),
                unserved: state.unserved().map(str::to_owned).collect(),
                unavailable: state.unavailable().map(str::to_owned).collect(),
                // It is in the field `answer`.
                answer: None,
            }),
            metadata: Metadata {
                planned_execution_path,
                current_path_index,
                level: state.level(),
                mode: state.settings().mode,
                decisions: decisions::decisions(state),
            },
            steps,
            writes: state.calls.keys().filter_map(|call| answer_write(state, *call)).collect(),
            approvals: open_approvals(state)
                .map(|(id, approval)| answer_approval(state, id, approval))
                .collect(),
            usage: AnswerUsage::new(state.usage, session_cost_nano_usd),
            timings: Timings { total_ms: millis(total), overhead_ms: millis(overhead) },
            error: state.aside.clone().or_else(|| state.error.clone()),
        }
    }
}

/// The fault of a run that does not exist, or is another tenant's.
pub(crate) fn unknown_run_fault(run: RunId) -> Fault {
    Fault::new("run.unknown", format!("there is no run {run}"))
}

/// The fault of a run that stopped without an answer.
pub(crate) fn lost_run_fault(run: RunId) -> Fault {
    Fault::new("run.lost", format!("run {run} stopped without an answer; its events show how far it got"))
}

/// Returns what is executed, in order: scenes, and the nodes of flows whose paths are planned; and how many of these have ended.
pub(crate) fn execution_path(state: &RunState) -> (Vec<String>, usize) {
    let (mut path, mut ended) = (Vec::new(), 0);
    for (_, step) in state.plan_steps() {
        let flow = step.flow().and_then(|work| Some((work, work.planned.as_ref()?)));
        let nodes = match flow {
            Some((_, planned)) if !planned.path.is_empty() => planned.path.clone(),
            _ => vec![step.step.label().to_owned()],
        };
        ended += match (step.status.is_terminal() && step.status != StepStatus::Blocked, flow) {
            (true, _) if step.status == StepStatus::Completed || flow.is_none() => nodes.len(),
            (_, Some((work, _))) => state.nodes_behind(work).min(nodes.len()),
            (_, None) => 0,
        };
        path.extend(nodes);
    }
    (path, ended)
}

/// The text of a run's answer: the model's, with what people found out since about writes whose outcome was
/// unknown; else what the run waits for, or what it had done when it was cancelled. Empty where there is none.
pub fn answer_text(state: &RunState) -> String {
    match (&state.answer, state.status) {
        (Some(answer), _) => phrases::with_findings(state, &answer.text),
        (None, RunStatus::Waiting) => phrases::render_waiting(state),
        (None, RunStatus::Cancelled) => phrases::render_stopped(state),
        (None, _) => String::new(),
    }
}

/// Returns whether the text about a waiting run shows everything that it waits for.
pub(crate) fn is_shown_whole(state: &RunState) -> bool {
    phrases::is_shown_whole(state)
}

/// The pending approvals of a run.
fn open_approvals(state: &RunState) -> impl Iterator<Item = (ApprovalId, &Approval)> {
    let run = state.run;
    let open = state.approvals.iter().filter(|(_, approval)| approval.is_open());
    open.map(move |(number, approval)| (ApprovalId { run, approval: *number }, approval))
}

fn answer_approval(state: &RunState, approval_id: ApprovalId, approval: &Approval) -> AnswerApproval {
    let (call, version) = match approval.matter {
        ApprovalSubject::Plan { version } => (None, Some(version)),
        ApprovalSubject::Call { call } | ApprovalSubject::Outcome { call } => (state.calls.get(&call), None),
    };
    AnswerApproval {
        approval_id,
        about: approval.matter.into(),
        why: approval.needed.why.clone(),
        hash: approval.needed.hash.clone(),
        tool: call.map(|call| call.requested.tool.clone()),
        arguments: call.map(|call| call.requested.arguments.clone()),
        shown: call.map(|call| invisible::escape_json_lines(&call.requested.arguments)),
        version,
        by_user: approval.needed.by_user,
        lists: approval.needed.lists.clone(),
    }
}

fn answer_step(state: &RunState, number: u32, step: &StepState) -> AnswerStep {
    let nodes = step.flow().into_iter().flat_map(|work| &work.nodes).filter_map(|node| state.steps.get(node));
    let calls = step.calls.iter().chain(nodes.flat_map(|node| &node.calls));
    let program = step.code().and_then(|work| work.result(state));
    AnswerStep {
        step_number: number,
        scene_name: step.step.label().to_owned(),
        status: state.reported_step_status(step),
        partial: state.is_partly_read(step),
        result: step.result.clone(),
        tool_calls: calls.filter_map(|call| answer_call(state, *call)).collect(),
        rows: program.map(|end| end.answer_rows.clone()).unwrap_or_default(),
        would_change: program.map(|end| end.would_change.clone()).unwrap_or_default(),
        flow: AnswerFlow::of(state, number, step),
        error: step.error.clone(),
    }
}

/// `None` for a call that never ended.
fn answer_call(state: &RunState, number: u32) -> Option<AnswerCall> {
    let call = state.calls.get(&number)?;
    let by = state.effective_substitute(call).and_then(|by| state.calls.get(&by));
    let told = match &call.status {
        // Its own outcome: what took its place is a call of its own here.
        CallStatus::Done { outcome } => outcome,
        _ => state.outcome(number)?,
    };
    let (mut outcome, result, error) = match told {
        Outcome::Ok { result, .. } => (CallOutcome::Ok, Some(result.clone()), None),
        Outcome::Refused { error } => (CallOutcome::Refused, None, Some(error.clone())),
        Outcome::Failed { error } => (CallOutcome::Failed, None, Some(error.clone())),
        Outcome::Unknown { error } => (CallOutcome::Unknown, None, Some(error.clone())),
    };
    match &call.status {
        CallStatus::Skipped { .. } => outcome = CallOutcome::Skipped,
        // It was never started.
        CallStatus::Done { outcome: Outcome::Ok { .. } }
            if call.requested.effect == Effect::Write && call.attempts == 0 && state.is_dry_run() =>
        {
            outcome = CallOutcome::DryRun;
        }
        CallStatus::Done { outcome: Outcome::Ok { .. } } if state.is_undone(call) => {
            outcome = CallOutcome::Undone;
        }
        _ => {}
    }
    let node = state.steps.get(&call.step).and_then(StepState::node);
    Some(AnswerCall {
        tool: call.requested.tool.clone(),
        node: node.map(|work| work.node.clone()),
        arguments: call.requested.arguments.clone(),
        outcome,
        result,
        error,
        attempts: Some(call.attempts).filter(|n| *n > 1 && state.settings().mode.is_some()),
        left_out: call.left_out,
        as_of: call.stale_since.map(|at| at.to_string()),
        unexpected_result: !call.breaches.is_empty(),
        by: by.map(|by| by.requested.tool.clone()),
    })
}

/// `None` for reads, and for writes that were never started.
fn answer_write(state: &RunState, number: u32) -> Option<AnswerWrite> {
    let call = state.calls.get(&number)?;
    if call.requested.effect != Effect::Write || call.attempts == 0 {
        return None;
    }
    let AnswerCall { tool, arguments, outcome, .. } = answer_call(state, number)?;
    Some(AnswerWrite { step_number: call.step, scene_name: call.scene.clone(), tool, arguments, outcome })
}

/// Rounded to microseconds.
fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

fn usd(nano: u64) -> f64 {
    nano as f64 / 1e9
}

/// How long the run took, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Timings {
    /// From the acceptance of the request to its answer.
    pub total_ms: f64,
    /// Of that, the time without waiting for a model, a tool or a person.
    pub overhead_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published document: names, order and shapes are a stable interface.
    const DOCUMENT: &str = r#"{
  "run_id": "01976c8e-0000-7000-8000-000000000001",
  "session_id": "s-1",
  "task_id": "01976c8e-0000-7000-8000-000000000002",
  "status": "completed",
  "answer": "Fatto.",
  "plan": {
    "needs_execution": true,
    "reasoning": "Weather is asked for",
    "steps": [
      {
        "step_number": 1,
        "scene_name": "Weather",
        "purpose": "Get the weather",
        "expected_tools": [
          "WeatherForecast_Get"
        ],
        "depends_on_step": null
      }
    ]
  },
  "steps": [
    {
      "step_number": 1,
      "scene_name": "Weather",
      "status": "completed",
      "result": "Sole.",
      "tool_calls": [
        {
          "tool": "WeatherForecast_Get",
          "arguments": {
            "city": "Milan"
          },
          "outcome": "ok",
          "result": {
            "max_c": 24
          }
        }
      ]
    }
  ],
  "metadata": {
    "planned_execution_path": [
      "Weather"
    ],
    "current_path_index": 1
  },
  "usage": {
    "llm_calls": 3,
    "input_tokens": 1200,
    "cached_input_tokens": 200,
    "output_tokens": 90,
    "cost_usd": 0.0006,
    "session_cost_usd": 0.001
  },
  "timings": {
    "total_ms": 12.5,
    "overhead_ms": 2.5
  }
}"#;

    #[test]
    fn answer_document_keeps_field_names_and_order() {
        let answer: Answer = serde_json::from_str(DOCUMENT).unwrap();
        assert_eq!(serde_json::to_string_pretty(&answer).unwrap(), DOCUMENT);
    }

    #[test]
    fn costs_are_reported_in_dollars() {
        let usage = Usage { calls: 2, cost_nano_usd: 600_000, ..Usage::default() };
        let told = AnswerUsage::new(usage, 1_000_000);
        assert_eq!((told.cost_usd, told.session_cost_usd), (0.0006, 0.001));
    }
}
