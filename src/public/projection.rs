//! The projection from events of the journal to public events.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{EventId, PublicEvent};
use crate::plan::{Plan, StepStatus, TaskId};
use crate::run::{
    Adaptation, ApprovalId, ApprovalSubject, ConsultationSubject, Decision, Effect, Envelope, Event, Outcome,
    PartOutcome, PlanMade, ProgramStop, RequestedCall, RequiredApproval, ResultNotes, RunId, RunStarted,
    RunStatus, UnexpectedSubject, Verdict,
};

/// Maps the events of one run to public events, in order from the first: later events refer to earlier ones
/// (a step's scene, a call's tool). Pure.
#[derive(Debug, Clone, Default)]
pub struct PublicProjection {
    task: Option<TaskId>,
    /// The scene and purpose of each step.
    steps: BTreeMap<u32, (String, String)>,
    /// By the step of a node: the step of its flow, and the position of the node among those that were entered, from 1.
    nodes: BTreeMap<u32, (u32, usize)>,
    /// The step and request of each call.
    calls: BTreeMap<u32, (u32, RequestedCall)>,
    /// For each undo call: the call of the write that it undoes.
    undoes: BTreeMap<u32, u32>,
    /// The calls that were started.
    started: BTreeSet<u32>,
    /// Pending approvals of plans and calls.
    open_approvals: BTreeSet<u32>,
    /// The pending approvals of the current plan.
    plan_approvals: BTreeSet<u32>,
}

impl PublicProjection {
    /// A projection that starts after the run's first event, which contains the public id of the plan.
    pub fn of(task: TaskId) -> Self {
        Self { task: Some(task), ..Self::default() }
    }

    /// The public event, with `offset` 0 in its id; `None` for internal events.
    pub fn project(&mut self, envelope: &Envelope<Event>) -> Option<PublicEvent> {
        self.track(&envelope.body);
        let name = envelope.body.public_name()?;
        let mut data = self.event_data(envelope);
        if let (Value::Object(data), Some(run)) = (&mut data, envelope.run) {
            data.insert("run_id".to_owned(), json!(run));
        }
        Some(PublicEvent {
            id: EventId { epoch: Some(envelope.epoch), seq: envelope.seq, offset: 0 },
            name,
            data,
        })
    }

    /// Records what later events refer to.
    fn track(&mut self, event: &Event) {
        self.track_approvals(event);
        match event {
            Event::RunQueued(queued) => self.task = Some(queued.task),
            Event::ToolStarted { call, .. } => {
                self.started.insert(*call);
            }
            Event::PlanCreated(PlanMade { plan, .. })
            | Event::Replanned(PlanMade { plan, .. })
            | Event::PlanEdited(PlanMade { plan, .. }) => {
                let Plan { steps, .. } = plan;
                let described =
                    steps.iter().map(|s| (s.step_number, (s.label().to_owned(), s.purpose.clone())));
                self.steps.extend(described);
            }
            Event::NodeStarted { step, parent, node, scene, .. } => {
                self.steps.insert(*step, (scene.clone(), node.clone()));
                let before = self.nodes.values().filter(|(flow_step, _)| flow_step == parent).count();
                self.nodes.insert(*step, (*parent, before + 1));
            }
            Event::SceneReplied { step, calls, .. } | Event::Prepared { step, calls, .. } => {
                self.calls.extend(calls.iter().map(|call| (call.call, (*step, call.clone()))));
            }
            Event::ProgramReplied { step, stop: ProgramStop::Call { requested, .. }, .. } => {
                self.calls.insert(requested.call, (*step, (**requested).clone()));
            }
            Event::Adapted { change: Adaptation::Substituted { call, requested } } => {
                let step = self.calls.get(call).map_or(0, |(step, _)| *step);
                self.calls.insert(requested.call, (step, (**requested).clone()));
            }
            Event::Compensating { undoes, requested } => {
                let step = self.calls.get(undoes).map_or(0, |(step, _)| *step);
                self.calls.insert(requested.call, (step, requested.clone()));
                self.undoes.insert(requested.call, *undoes);
            }
            _ => {}
        }
    }

    /// Records which approvals are open, and the calls as people changed them.
    fn track_approvals(&mut self, event: &Event) {
        match event {
            Event::ApprovalRequired { approval, matter: ApprovalSubject::Plan { .. }, .. } => {
                self.open_approvals.insert(*approval);
                self.plan_approvals.insert(*approval);
            }
            Event::ApprovalRequired { approval, matter: ApprovalSubject::Call { .. }, .. } => {
                self.open_approvals.insert(*approval);
            }
            Event::Decided { approval, matter, decision, .. } => {
                self.open_approvals.remove(approval);
                if let Decision::Edited { arguments, .. } = decision {
                    self.change_call(*matter, arguments);
                }
            }
            Event::ApprovalLapsed { approval, matter, edited, .. } => {
                self.open_approvals.remove(approval);
                if let Some(edited) = edited {
                    self.change_call(*matter, &edited.arguments);
                }
            }
            Event::PlanEdited(_) | Event::ModificationAsked { .. } => self.withdraw_plan_approvals(),
            _ => {}
        }
    }

    /// Replaces the arguments of the call that an approval is about.
    fn change_call(&mut self, matter: ApprovalSubject, arguments: &Value) {
        if let ApprovalSubject::Call { call } = matter
            && let Some((_, requested)) = self.calls.get_mut(&call)
        {
            requested.arguments = arguments.clone();
        }
    }

    /// Withdraws the plan's approvals, because the plan will change.
    fn withdraw_plan_approvals(&mut self) {
        for approval in std::mem::take(&mut self.plan_approvals) {
            self.open_approvals.remove(&approval);
        }
    }

    /// The data of the public event, besides its name and run. Empty for events that have no other data.
    fn event_data(&self, envelope: &Envelope<Event>) -> Value {
        match &envelope.body {
            Event::RunStarted(started) => self.start_data(envelope, started),
            Event::Planning { version, cause } => json!({"version": version, "cause": cause}),
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => {
                self.plan_data(made)
            }
            Event::ApprovalRequired { approval, matter, needed } => {
                let id = envelope.run.map(|run| ApprovalId { run, approval: *approval });
                self.approval_data(id, *matter, needed)
            }
            Event::Decided {
                matter: ApprovalSubject::Plan { version },
                decision: Decision::Yes { hold },
                by,
                ..
            } => {
                json!({"task_id": self.task, "version": version, "by": by, "begins": !hold})
            }
            Event::ToolStarted { call, attempt } => self.started_call_data(*call, *attempt),
            Event::ToolCompleted { call, outcome, millis, notes } => {
                let mut data = self.completed_call_data(*call, outcome, *millis);
                if is_unexpected_result(outcome, notes.as_deref()) {
                    data["unexpected_result"] = json!(true);
                }
                data
            }
            Event::Unexpected { subject, class, chosen, .. } => {
                let data = json!({"class": class, "chosen": chosen});
                match subject {
                    UnexpectedSubject::Call { call, attempt } => {
                        self.with_call(*call, json!({"attempt": attempt, "class": class, "chosen": chosen}))
                    }
                    UnexpectedSubject::Step { step } => self.with_step(*step, data),
                    UnexpectedSubject::Run { .. } => data,
                }
            }
            Event::Consultation { .. } => self.consultation_data(&envelope.body),
            Event::BackedOff { call, attempt, delay_ms, .. } => {
                self.with_call(*call, json!({"attempt": attempt, "delay_ms": delay_ms}))
            }
            Event::Adapted { change } => self.adaptation_data(change),
            Event::ToolSkipped { call, first } => self.skipped_call_data(*call, *first),
            Event::Continuation { round, verdict, degraded } => continuation_data(*round, verdict, *degraded),
            Event::Answered { text, degraded, .. } => json!({"answer": text, "degraded": degraded}),
            Event::RunWaiting {} => self.waiting_data(envelope.run),
            Event::RunPutAside { error, .. } => {
                let mut data = self.waiting_data(envelope.run);
                data["error"] = json!(error);
                data
            }
            Event::RunCompleted { status } => json!({"status": status}),
            Event::RunFailed { error } => json!({"status": RunStatus::Failed, "error": error}),
            Event::RunCancelled { by } => json!({"status": RunStatus::Cancelled, "by": by}),
            event => self.step_event_data(event),
        }
    }

    /// The data of an event about a step or a node.
    fn step_event_data(&self, event: &Event) -> Value {
        match event {
            Event::Forecast { step, tools } => self.with_step(*step, json!({"tools": tools})),
            Event::StepStarted { step } => self.started_step_data(*step),
            Event::FlowPlanned { step, path, maker, .. } => {
                self.with_step(*step, json!({"path": path, "maker": maker}))
            }
            Event::NodeStarted { step, node, left, .. } => {
                let part = self.nodes.get(step).map_or(1, |(_, part)| *part);
                self.with_step(*step, json!({"part": part, "node": node, "left_path": left}))
            }
            Event::SummaryPlanned { step, tool_call, outline } => {
                let data = json!({"parts": outline.estimate.questions, "estimate": outline.estimate,
                    "cost_nano_usd": outline.cost_nano_usd});
                self.with_step(*step, of_call(data, *tool_call))
            }
            Event::SummaryPart { step, tool_call, part, outcome, .. } => {
                let data =
                    json!({"part": part, "is_skipped": matches!(outcome, PartOutcome::Skipped { .. })});
                self.with_step(*step, of_call(data, *tool_call))
            }
            Event::ProgramWritten { step, source, .. } => self.with_step(*step, json!({"source": source})),
            Event::ProgramReplied { step, stop, .. } => self.with_step(*step, program_data(stop)),
            Event::StepCompleted { step, result } => {
                self.with_step(*step, json!({"status": StepStatus::Completed, "result": result}))
            }
            Event::StepFailed { step, status, error } => {
                self.with_step(*step, json!({"status": status, "error": error}))
            }
            _ => json!({}),
        }
    }

    /// What took the place of a call, or of its result.
    fn adaptation_data(&self, change: &Adaptation) -> Value {
        match change {
            Adaptation::Substituted { call, requested } => {
                let RequestedCall { call: number, tool, arguments, .. } = &**requested;
                let by = json!({"call": number, "tool": tool, "arguments": arguments});
                self.with_call(*call, json!({"change": "substituted", "by": by}))
            }
            Adaptation::Recalled { call, found } => {
                let at = found.as_ref().map(|found| found.at);
                self.with_call(*call, json!({"change": "recalled", "as_of": at}))
            }
            Adaptation::Interpreted { call, found } => {
                self.with_call(*call, json!({"change": "interpreted", "found": found.is_some()}))
            }
        }
    }

    fn start_data(&self, envelope: &Envelope<Event>, started: &RunStarted) -> Value {
        json!({
            "session_id": envelope.session, "task_id": self.task, "now": started.now,
            "language": started.language,
        })
    }

    fn started_step_data(&self, step: u32) -> Value {
        let purpose = self.steps.get(&step).map(|(_, purpose)| purpose.as_str());
        self.with_step(step, json!({"purpose": purpose.unwrap_or_default()}))
    }

    fn plan_data(&self, made: &PlanMade) -> Value {
        let mut data = json!({
            "task_id": self.task, "version": made.version, "cause": made.cause, "maker": made.maker,
            "plan": made.plan,
        });
        if let Some(by) = &made.by {
            data["by"] = json!(by);
        }
        if let Some(patch) = &made.patch {
            data["patch"] = json!({"removed": patch.removed, "replaced": patch.replaced});
        }
        data
    }

    fn approval_data(
        &self,
        id: Option<ApprovalId>,
        matter: ApprovalSubject,
        needed: &RequiredApproval,
    ) -> Value {
        let data = json!({
            "approval_id": id, "task_id": self.task, "hash": needed.hash, "why": needed.why,
        });
        match matter {
            ApprovalSubject::Plan { version } => with_subject(data, "plan", "version", json!(version)),
            ApprovalSubject::Call { call } => {
                self.with_call(call, with_subject(data, "call", "effect", json!(Effect::Write)))
            }
            ApprovalSubject::Outcome { call } => {
                self.with_call(call, with_subject(data, "outcome", "effect", json!(Effect::Write)))
            }
        }
    }

    fn started_call_data(&self, call: u32, attempt: u32) -> Value {
        let effect = self.calls.get(&call).map(|(_, requested)| requested.effect);
        let mut data = self.with_call(call, json!({"effect": effect, "attempt": attempt}));
        if let Some(undoes) = self.undoes.get(&call) {
            data["undoes"] = json!(undoes);
        }
        data
    }

    fn completed_call_data(&self, call: u32, outcome: &Outcome, millis: u64) -> Value {
        let mut data = self.with_call(call, outcome_data(outcome));
        // Only dry runs have results of calls that were never started.
        if matches!(outcome, Outcome::Ok { .. }) && !self.started.contains(&call) {
            data["outcome"] = json!("dry_run");
        }
        data["duration_ms"] = json!(millis);
        data
    }

    /// What was chosen and how that came about. The model, its reason and a fault are not for clients.
    fn consultation_data(&self, event: &Event) -> Value {
        let Event::Consultation { consultation, subject, how, chosen, refused, .. } = event else {
            return json!({});
        };
        let mut data = json!({"consultation": consultation, "kind": subject.kind(), "how": how});
        if let Some(chosen) = chosen {
            data["chosen"] = json!(chosen.id());
        }
        if let Some(refused) = refused {
            data["refused"] = json!(refused);
        }
        match *subject {
            ConsultationSubject::Recovery { call, .. }
            | ConsultationSubject::Interpretation { call, .. }
            | ConsultationSubject::Decision { call, .. } => self.with_call(call, data),
            ConsultationSubject::Adaptation { step } => self.with_step(step, data),
        }
    }

    fn skipped_call_data(&self, call: u32, first: u32) -> Value {
        self.with_call(call, json!({"outcome": "skipped", "first_call": first}))
    }

    fn waiting_data(&self, run: Option<RunId>) -> Value {
        let id = |approval: &u32| Some(ApprovalId { run: run?, approval: *approval });
        let open: Vec<ApprovalId> = self.open_approvals.iter().filter_map(id).collect();
        json!({"status": RunStatus::Waiting, "task_id": self.task, "approvals": open})
    }

    /// Adds the step and its scene to `data`; to that of a node, also the flow and its step.
    fn with_step(&self, step: u32, mut data: Value) -> Value {
        let scene = |step: &u32| json!(self.steps.get(step).map_or("", |(scene, _)| scene.as_str()));
        data["step_number"] = json!(step);
        data["scene_name"] = scene(&step);
        if let Some((flow_step, _)) = self.nodes.get(&step) {
            data["flow_step"] = json!(flow_step);
            data["flow"] = scene(flow_step);
        }
        data
    }

    /// Adds the call to `data`: its number, its step, and its tool and arguments as in the answer document.
    fn with_call(&self, call: u32, mut data: Value) -> Value {
        data["call"] = json!(call);
        let Some((step, requested)) = self.calls.get(&call) else { return data };
        data["tool"] = json!(requested.tool);
        data["arguments"] = requested.arguments.clone();
        let mut data = self.with_step(*step, data);
        // A step that is a program belongs to no scene.
        if let Some(scene) = &requested.scene {
            data["scene_name"] = json!(scene);
        }
        data
    }
}

/// The data with the call that a summary is the result of, if it is one.
fn of_call(mut data: Value, call: Option<u32>) -> Value {
    if let Some(call) = call {
        data["call"] = json!(call);
    }
    data
}

/// Where a program stopped: its result, or why it has none.
fn program_data(stop: &ProgramStop) -> Value {
    let mut data = json!({"stop": stop.name()});
    match stop {
        ProgramStop::Call { requested, line, .. } => {
            data["call"] = json!(requested.call);
            data["line"] = json!(line);
        }
        ProgramStop::Finished { result, .. } => {
            data["status"] = json!(result.status);
            data["answer_rows"] = json!(result.answer_rows);
            if result.dry_run {
                data["would_change"] = json!(result.would_change);
            }
        }
        ProgramStop::Fault { fault } => {
            data["error"] = json!({"code": fault.code, "message": fault.message});
            data["line"] = json!(fault.line);
        }
        ProgramStop::Unavailable { error } => {
            data["error"] = json!({"code": error.code, "message": error.message});
        }
    }
    data
}

fn continuation_data(round: u32, verdict: &Verdict, degraded: bool) -> Value {
    json!({
        "round": round, "should_continue": verdict.should_continue,
        "can_answer_now": verdict.can_answer_now, "reasoning": verdict.reasoning,
        "missing_information": verdict.missing_information, "degraded": degraded,
    })
}

/// Adds what the approval is about, and one more field, to `data`.
fn with_subject(mut data: Value, about: &str, name: &str, value: Value) -> Value {
    data["about"] = json!(about);
    data[name] = value;
    data
}

/// Whether a call was done, and its result is not as its tool declares.
fn is_unexpected_result(outcome: &Outcome, notes: Option<&ResultNotes>) -> bool {
    matches!(outcome, Outcome::Ok { .. }) && notes.is_some_and(|notes| !notes.breaches.is_empty())
}

/// A call's outcome, as in the answer document.
fn outcome_data(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Ok { result, .. } => json!({"outcome": "ok", "result": result}),
        Outcome::Refused { error } => json!({"outcome": "refused", "error": error}),
        Outcome::Failed { error } => json!({"outcome": "failed", "error": error}),
        Outcome::Unknown { error } => json!({"outcome": "unknown", "error": error}),
    }
}
