//! What an event of the journal is to a client.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{EventId, PublicEvent};
use crate::plan::{Plan, StepStatus, TaskId};
use crate::run::{
    ApprovalId, ApprovalSubject, Decision, Effect, Envelope, Event, Outcome, PlanMade, RequestedCall,
    RunStatus,
};

/// Tells the events of one run, in order from the first: what a later one refers to (a step's scene,
/// a call's tool) was said by an earlier one. Pure.
#[derive(Debug, Clone, Default)]
pub struct Teller {
    task: Option<TaskId>,
    /// Scene and purpose of each step.
    steps: BTreeMap<u32, (String, String)>,
    /// Each call with its step.
    calls: BTreeMap<u32, (u32, RequestedCall)>,
    /// Of a call that undoes a write: that write's call.
    undoes: BTreeMap<u32, u32>,
    /// The calls that were begun.
    begun: BTreeSet<u32>,
    /// What about plans and calls a person has yet to decide.
    open: BTreeSet<u32>,
    /// Those of them that the plan in force waits for.
    plan: BTreeSet<u32>,
}

impl Teller {
    /// A teller of a run whose first event, with the public id of its plan, is not told to it.
    pub fn of(task: TaskId) -> Self {
        Self { task: Some(task), ..Self::default() }
    }

    /// The event for clients, with `offset` 0 in its id; `None` for what stays inside.
    pub fn tell(&mut self, envelope: &Envelope<Event>) -> Option<PublicEvent> {
        self.learn(&envelope.body);
        let name = envelope.body.public_name()?;
        let mut data = self.data(envelope)?;
        if let (Value::Object(data), Some(run)) = (&mut data, envelope.run) {
            data.insert("run_id".to_owned(), json!(run));
        }
        Some(PublicEvent {
            id: EventId { epoch: Some(envelope.epoch), seq: envelope.seq, offset: 0 },
            name,
            data,
        })
    }

    /// Keeps what later events refer to.
    fn learn(&mut self, event: &Event) {
        match event {
            Event::Decided { approval, .. } => {
                self.open.remove(approval);
            }
            Event::PlanEdited(_) => self.withdraw(),
            _ => {}
        }
        match event {
            Event::RunQueued(queued) => self.task = Some(queued.task),
            Event::ToolStarted { call, .. } => {
                self.begun.insert(*call);
            }
            Event::ApprovalRequired { approval, matter: ApprovalSubject::Plan { .. }, .. } => {
                self.open.insert(*approval);
                self.plan.insert(*approval);
            }
            Event::ApprovalRequired { approval, matter: ApprovalSubject::Call { .. }, .. } => {
                self.open.insert(*approval);
            }
            Event::ApprovalLapsed { approval, matter, edited, .. } => {
                self.open.remove(approval);
                if let (ApprovalSubject::Call { call }, Some(edited)) = (matter, edited)
                    && let Some((_, requested)) = self.calls.get_mut(call)
                {
                    requested.arguments = edited.arguments.clone();
                }
            }
            Event::ModificationAsked { .. } => self.withdraw(),
            Event::PlanCreated(PlanMade { plan, .. })
            | Event::Replanned(PlanMade { plan, .. })
            | Event::PlanEdited(PlanMade { plan, .. }) => {
                let Plan { steps, .. } = plan;
                let said = steps.iter().map(|s| (s.step_number, (s.scene_name.clone(), s.purpose.clone())));
                self.steps.extend(said);
            }
            Event::SceneReplied { step, calls, .. } | Event::Prepared { step, calls } => {
                self.calls.extend(calls.iter().map(|call| (call.call, (*step, call.clone()))));
            }
            Event::Compensating { undoes, requested } => {
                let step = self.calls.get(undoes).map_or(0, |(step, _)| *step);
                self.calls.insert(requested.call, (step, requested.clone()));
                self.undoes.insert(requested.call, *undoes);
            }
            Event::Decided {
                matter: ApprovalSubject::Call { call },
                decision: Decision::Edited { arguments, .. },
                ..
            } => {
                if let Some((_, requested)) = self.calls.get_mut(call) {
                    requested.arguments = arguments.clone();
                }
            }
            _ => {}
        }
    }

    /// The plan is to be another: nobody decides about it any more.
    fn withdraw(&mut self) {
        for approval in std::mem::take(&mut self.plan) {
            self.open.remove(&approval);
        }
    }

    fn data(&self, envelope: &Envelope<Event>) -> Option<Value> {
        Some(match &envelope.body {
            Event::RunStarted(started) => json!({
                "session_id": envelope.session, "task_id": self.task, "now": started.now,
                "language": started.language,
            }),
            Event::Planning { version, cause } => json!({"version": version, "cause": cause}),
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => {
                let mut data = json!({
                    "task_id": self.task, "version": made.version, "cause": made.cause, "maker": made.maker,
                    "plan": made.plan,
                });
                if let Some(by) = &made.by {
                    data["by"] = json!(by);
                }
                data
            }
            Event::ApprovalRequired { approval, matter, needed } => {
                let asked = json!({
                    "approval_id": envelope.run.map(|run| ApprovalId { run, approval: *approval }),
                    "task_id": self.task, "hash": needed.hash, "why": needed.why,
                });
                match matter {
                    ApprovalSubject::Plan { version } => with(asked, "plan", "version", json!(version)),
                    ApprovalSubject::Call { call } => {
                        self.call(*call, with(asked, "call", "effect", json!(Effect::Write)))
                    }
                    ApprovalSubject::Outcome { call } => {
                        self.call(*call, with(asked, "outcome", "effect", json!(Effect::Write)))
                    }
                }
            }
            Event::Decided {
                matter: ApprovalSubject::Plan { version },
                decision: Decision::Yes { hold },
                by,
                ..
            } => {
                json!({"task_id": self.task, "version": version, "by": by, "begins": !hold})
            }
            Event::StepStarted { step } => {
                let purpose = self.steps.get(step).map(|(_, purpose)| purpose.as_str());
                self.step(*step, json!({"purpose": purpose.unwrap_or_default()}))
            }
            Event::ToolStarted { call, attempt } => {
                let effect = self.calls.get(call).map(|(_, requested)| requested.effect);
                let mut data = self.call(*call, json!({"effect": effect, "attempt": attempt}));
                if let Some(undoes) = self.undoes.get(call) {
                    data["undoes"] = json!(undoes);
                }
                data
            }
            Event::ToolCompleted { call, outcome, millis } => {
                let mut data = self.call(*call, told(outcome));
                // Only a dry run has results of what was never begun.
                if matches!(outcome, Outcome::Ok { .. }) && !self.begun.contains(call) {
                    data["outcome"] = json!("dry_run");
                }
                data["duration_ms"] = json!(millis);
                data
            }
            Event::ToolSkipped { call, first } => {
                self.call(*call, json!({"outcome": "skipped", "first_call": first}))
            }
            Event::StepCompleted { step, result } => {
                self.step(*step, json!({"status": StepStatus::Completed, "result": result}))
            }
            Event::StepFailed { step, status, error } => {
                self.step(*step, json!({"status": status, "error": error}))
            }
            Event::Continuation { round, verdict, degraded } => json!({
                "round": round, "should_continue": verdict.should_continue,
                "can_answer_now": verdict.can_answer_now, "reasoning": verdict.reasoning,
                "missing_information": verdict.missing_information, "degraded": degraded,
            }),
            Event::Answered { text, degraded } => json!({"answer": text, "degraded": degraded}),
            Event::RunWaiting {} => {
                let id = |approval: &u32| Some(ApprovalId { run: envelope.run?, approval: *approval });
                let open: Vec<ApprovalId> = self.open.iter().filter_map(id).collect();
                json!({"status": RunStatus::Waiting, "task_id": self.task, "approvals": open})
            }
            Event::RunPutAside { error } => {
                json!({"status": RunStatus::Waiting, "task_id": self.task, "approvals": [], "error": error})
            }
            Event::RunCompleted { status } => json!({"status": status}),
            Event::RunFailed { error } => json!({"status": RunStatus::Failed, "error": error}),
            Event::RunCancelled { by } => json!({"status": RunStatus::Cancelled, "by": by}),
            Event::RunQueued(_)
            | Event::RunResumed { .. }
            | Event::ModelAsked { .. }
            | Event::ModelReplied { .. }
            | Event::ModelFailed { .. }
            | Event::PlanningFailed { .. }
            | Event::ReplyRejected { .. }
            | Event::SceneReplied { .. }
            | Event::Prepared { .. }
            | Event::Decided { .. }
            | Event::ModificationAsked { .. }
            | Event::ApprovalLapsed { .. }
            | Event::Released { .. }
            | Event::PlanRefused { .. }
            | Event::RunReopened { .. }
            | Event::Compensating { .. }
            | Event::CancelRequested { .. } => return None,
        })
    }

    /// `data` with the step and its scene.
    fn step(&self, step: u32, mut data: Value) -> Value {
        data["step_number"] = json!(step);
        data["scene_name"] = json!(self.steps.get(&step).map_or("", |(scene, _)| scene.as_str()));
        data
    }

    /// `data` with the call: its number, its step, and tool and arguments as in the answer document.
    fn call(&self, call: u32, mut data: Value) -> Value {
        data["call"] = json!(call);
        let Some((step, requested)) = self.calls.get(&call) else { return data };
        data["tool"] = json!(requested.tool);
        data["arguments"] = requested.arguments.clone();
        self.step(*step, data)
    }
}

/// `data` with what is asked about, and one thing more.
fn with(mut data: Value, about: &str, name: &str, value: Value) -> Value {
    data["about"] = json!(about);
    data[name] = value;
    data
}

/// How a call ended, as in the answer document.
fn told(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Ok { result, .. } => json!({"outcome": "ok", "result": result}),
        Outcome::Refused { error } => json!({"outcome": "refused", "error": error}),
        Outcome::Failed { error } => json!({"outcome": "failed", "error": error}),
        Outcome::Unknown { error } => json!({"outcome": "unknown", "error": error}),
    }
}
