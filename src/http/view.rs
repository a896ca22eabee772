//! Plans and approvals as their documents show them, made from the journal of their run.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::app::App;
use super::problem::Problem;
use crate::answer::{Answer, AnswerStep, AnswerUsage};
use crate::plan::{Plan, PlanStatus, TaskId, diff};
use crate::run::{
    ApprovalId, CallState, Cause, Effect, Envelope, Event, Fault, Maker, Matter, Outcome, PlanMade, RunId,
    RunState, RunStatus, SessionId, TenantId, idempotency_key,
};
use crate::store::{About, ApprovalState};

/// A plan, its versions, and how far it was carried out.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PlanDocument {
    /// Its public id.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) task_id: TaskId,
    /// The run that it is of.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) run_id: RunId,
    /// The run's conversation.
    #[schema(value_type = String)]
    pub(crate) session_id: SessionId,
    /// Where the plan stands.
    pub(crate) status: PlanStatus,
    /// Where its run stands.
    pub(crate) run_status: RunStatus,
    /// The version in force; 0 as long as none was made.
    pub(crate) version: u32,
    /// The request.
    pub(crate) objective: String,
    /// Who asked.
    pub(crate) user: String,
    /// What an approval covers, where somebody has to approve; sent back with it, it counts for nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hash: Option<String>,
    /// Why somebody has to approve the version in force; empty where nobody has to.
    pub(crate) why_approval: Vec<String>,
    /// The version in force; absent as long as none was made.
    pub(crate) plan: Option<Plan>,
    /// The steps of all versions that were begun, and of the one in force.
    pub(crate) steps: Vec<AnswerStep>,
    /// Every version, the first one first.
    pub(crate) versions: Vec<PlanVersion>,
    /// What about its run a person has to decide.
    #[schema(value_type = Vec<String>)]
    pub(crate) approvals: Vec<ApprovalId>,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<String>,
    /// Why the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Fault>,
    /// Why the last change that somebody wanted could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unmodified: Option<Fault>,
    /// When it was asked for.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) created_at: Timestamp,
    /// When something last happened to it.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) updated_at: Timestamp,
    /// What it cost so far.
    pub(crate) usage: AnswerUsage,
}

/// One version of a plan.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PlanVersion {
    /// From 1.
    pub(crate) version: u32,
    /// Why it was made: `request`, `continuation`, `feedback` or `edit`.
    #[schema(value_type = String)]
    pub(crate) cause: Cause,
    /// Who made it: `deterministic`, `fallback` or `person`.
    #[schema(value_type = String)]
    pub(crate) maker: Maker,
    /// The person who made or wanted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    /// Why, in that person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) at: Timestamp,
    /// What it changes in the version before it, a line each.
    pub(crate) diff: Vec<String>,
    /// The plan.
    pub(crate) plan: Plan,
}

/// Something that a person decides, and what was decided.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ApprovalDocument {
    /// Its id.
    #[schema(value_type = String)]
    pub(crate) approval_id: ApprovalId,
    /// The run that it is of.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) run_id: RunId,
    /// The run's plan.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) task_id: TaskId,
    /// The run's conversation.
    #[schema(value_type = String)]
    pub(crate) session_id: SessionId,
    /// What about.
    pub(crate) about: About,
    /// Who asked for the run.
    pub(crate) user: String,
    /// The request.
    pub(crate) objective: String,
    /// Why somebody is asked.
    pub(crate) why: Vec<String>,
    /// What a yes covers; sent back with the decision, it counts for nothing else. Empty where there is
    /// nothing that could change.
    pub(crate) hash: String,
    /// Where it stands.
    pub(crate) state: ApprovalState,
    /// When it was put.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) created_at: Timestamp,
    /// When it counts as refused, if nobody decides before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub(crate) expires_at: Option<Timestamp>,
    /// What was said: `yes`, `no`, `edited`, `done`, `not_done` or `again`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<String>,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decided_by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub(crate) decided_at: Option<Timestamp>,
    /// Why, in that person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Of a plan: its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u32>,
    /// Of a plan: the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<Plan>,
    /// Of a call: its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step_number: Option<u32>,
    /// Of a call: its scene.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scene: Option<String>,
    /// Of a call: its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    /// Of a call: its exact arguments; those of the decision, where it changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) arguments: Option<Value>,
    /// Of a call: `write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) effect: Option<Effect>,
    /// Of an outcome: how often the call was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attempts: Option<u32>,
    /// Of an outcome: what is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Fault>,
    /// Of an outcome: the key that the call was sent with, by which the other side may know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) idempotency_key: Option<String>,
}

/// A run as its journal has it.
pub(crate) struct Journalled {
    pub(crate) events: Vec<Envelope<Event>>,
    pub(crate) state: RunState,
}

impl Journalled {
    /// With all that was told to the journal so far; `None` where the tenant has no such run.
    pub(crate) async fn read(app: &App, tenant: &TenantId, run: RunId) -> Result<Option<Self>, Problem> {
        let events = app.engine.events_of(tenant, run).await?;
        let state = crate::engine::fold(run, &events);
        Ok((!events.is_empty()).then_some(Self { events, state }))
    }

    /// The document of its plan.
    pub(crate) async fn plan(&self, app: &App, tenant: &TenantId) -> Result<PlanDocument, Problem> {
        let session = self.session()?;
        let cost = app.engine.store().session_usage(tenant, session).await?;
        Ok(self.document(session, cost.cost_nano_usd))
    }

    fn document(&self, session: &SessionId, session_cost: u64) -> PlanDocument {
        let state = &self.state;
        let answer = Answer::new(state, session, session_cost, Default::default(), Default::default());
        let made = state.plan();
        let put = state.plan_approval().map(|(_, put)| &put.needed);
        let needed = put.or_else(|| made?.approval.as_ref());
        let at = |envelope: Option<&Envelope<Event>>| envelope.map(|e| e.at).unwrap_or_default();
        PlanDocument {
            task_id: answer.task_id,
            run_id: state.run,
            session_id: session.clone(),
            status: state.plan_status,
            run_status: state.status,
            version: made.map_or(0, |made| made.version),
            objective: state.request().to_owned(),
            user: state.queued.as_ref().map(|queued| queued.user.clone()).unwrap_or_default(),
            hash: needed.map(|needed| needed.hash.clone()),
            why_approval: needed.map(|needed| needed.why.clone()).unwrap_or_default(),
            plan: made.map(|made| made.plan.clone()),
            steps: answer.steps,
            versions: self.versions(),
            approvals: answer.approvals.into_iter().map(|approval| approval.approval_id).collect(),
            answer: state.answer.as_ref().map(|answer| answer.text.clone()),
            error: state.error.clone(),
            unmodified: state.unmodified.clone(),
            created_at: at(self.events.first()),
            updated_at: at(self.events.last()),
            usage: answer.usage,
        }
    }

    fn versions(&self) -> Vec<PlanVersion> {
        let made = self.events.iter().filter_map(|envelope| match &envelope.body {
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => {
                Some((envelope.at, made))
            }
            _ => None,
        });
        let mut before: Option<&PlanMade> = None;
        let mut versions = Vec::new();
        for (at, made) in made {
            versions.push(PlanVersion {
                version: made.version,
                cause: made.cause,
                maker: made.maker,
                by: made.by.clone(),
                why: made.why.clone(),
                at,
                diff: before.map(|before| diff(&before.plan, &made.plan)).unwrap_or_default(),
                plan: made.plan.clone(),
            });
            before = Some(made);
        }
        versions
    }

    /// The document of something that was put to a person in it; `None` where there is no such thing.
    pub(crate) fn approval(&self, app: &App, id: ApprovalId) -> Result<Option<ApprovalDocument>, Problem> {
        let session = self.session()?;
        let Some(approval) = self.state.approvals.get(&id.approval) else { return Ok(None) };
        let mut created_at = Timestamp::default();
        let mut decided = None;
        for envelope in &self.events {
            match &envelope.body {
                Event::ApprovalRequired { approval, .. } if *approval == id.approval => {
                    created_at = envelope.at;
                }
                Event::Decided { approval, note, .. } if *approval == id.approval => {
                    decided = Some((envelope.at, note.clone()));
                }
                _ => {}
            }
        }
        let state = match &approval.decided {
            Some(_) => ApprovalState::Decided,
            None if approval.lapsed => ApprovalState::Lapsed,
            None => ApprovalState::Open,
        };
        let (decided_at, note) = decided.map_or((None, None), |(at, note)| (Some(at), note));
        let said = approval.decided.as_ref();
        let expires =
            matches!(approval.matter, Matter::Plan { .. } | Matter::Call { .. }) && approval.is_open();
        let queued = self.state.queued.as_ref();
        let mut document = ApprovalDocument {
            approval_id: id,
            run_id: id.run,
            task_id: queued.map_or(TaskId(id.run.0), |queued| queued.task),
            session_id: session.clone(),
            about: approval.matter.into(),
            user: queued.map(|queued| queued.user.clone()).unwrap_or_default(),
            objective: self.state.request().to_owned(),
            why: approval.needed.why.clone(),
            hash: approval.needed.hash.clone(),
            state,
            created_at,
            expires_at: app.engine.approvals_expire().filter(|_| expires).and_then(|after| {
                // So late that there is no such time: never.
                created_at.checked_add(after).ok()
            }),
            decision: said.map(|(decision, _)| decision.name().to_owned()),
            decided_by: said.map(|(_, by)| by.clone()),
            decided_at,
            note,
            version: None,
            plan: None,
            step_number: None,
            scene: None,
            tool: None,
            arguments: None,
            effect: None,
            attempts: None,
            error: None,
            idempotency_key: None,
        };
        match approval.matter {
            Matter::Plan { version } => {
                document.version = Some(version);
                let made = self.state.plans.iter().find(|made| made.version == version);
                document.plan = made.map(|made| made.plan.clone());
            }
            Matter::Call { call } => document.with_call(self.state.calls.get(&call)),
            Matter::Outcome { call } => {
                let number = call;
                let call = self.state.calls.get(&number);
                document.with_call(call);
                document.attempts = call.map(|call| call.attempts);
                document.error = self.unknown(number);
                document.idempotency_key =
                    call.map(|call| idempotency_key(self.state.run, call.step, number));
            }
        }
        Ok(Some(document))
    }

    /// What was known of a call when its outcome was put to a person.
    fn unknown(&self, number: u32) -> Option<Fault> {
        let own = self.events.iter().rev().find_map(|envelope| match &envelope.body {
            Event::ToolCompleted { call, outcome: Outcome::Unknown { error }, .. } if *call == number => {
                Some(error.clone())
            }
            _ => None,
        });
        // One that a crash cut off has no end of its own.
        own.or_else(|| match self.state.outcome(number) {
            Some(Outcome::Unknown { error }) => Some(error.clone()),
            _ => None,
        })
    }

    pub(crate) fn session(&self) -> Result<&SessionId, Problem> {
        let run = self.state.run.to_string();
        self.events.first().map(|event| &event.session).ok_or_else(|| Problem::unknown("run", &run))
    }
}

impl ApprovalDocument {
    fn with_call(&mut self, call: Option<&CallState>) {
        let Some(call) = call else { return };
        self.step_number = Some(call.step);
        self.scene = Some(call.scene.clone());
        self.tool = Some(call.requested.tool.clone());
        self.arguments = Some(call.requested.arguments.clone());
        self.effect = Some(call.requested.effect);
    }
}

/// Why a plan was not changed as somebody wanted it.
pub(crate) fn not_modified(document: &PlanDocument) -> Option<Problem> {
    let fault = document.unmodified.as_ref()?;
    let detail = format!("the plan could not be changed, and is as it was: {}", fault.message);
    let mut problem = Problem::unprocessable("plan.not_modified", detail);
    problem.run_id = Some(document.run_id);
    Some(problem)
}
