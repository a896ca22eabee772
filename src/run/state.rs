//! The state of a run: the fold of its events.

mod call;
mod questions;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, OnceLock};

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::action::Action;
use super::approval::Approval;
use super::calls::Calls;
use super::consult::ConsultationState;
use super::context::PendingQuestion;
use super::document::NamedDocument;
use super::event::{
    Effect, Event, Fault, Outcome, PlanCause, PlanMade, PlanMaker, RequestedCall, RunQueued, RunStarted,
    RunStatus, Subject, UnexpectedSubject, Usage, Verdict,
};
use super::ids::RunId;
use super::learned::{LearnMode, PlanRecall, PlanScore};
use super::settings::Settings;
use super::work::{SceneWork, StepWork};
use crate::flow::PathMaker;
use crate::plan::{Plan, PlanStatus, Reference, StepStatus};

pub use call::{CallState, CallStatus};
pub(super) use questions::DueQuestion;
pub use questions::{Ask, AskStatus};
pub use step::StepState;

/// A run as the fold of its events.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunState {
    /// Its id.
    pub run: RunId,
    /// How many events were applied.
    pub seq: u64,
    /// How many times it was taken over.
    pub epoch: u32,
    /// How many times it was taken over since it last made progress.
    #[serde(skip_serializing_if = "super::is_default")]
    pub stalls: u32,
    /// Why it was quarantined: it waits until a person resumes or cancels it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside: Option<Fault>,
    /// While it waits because it was restored from a backup: when that was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied: Option<Timestamp>,
    /// Its status.
    pub status: RunStatus,
    /// Its plan's status.
    pub plan_status: PlanStatus,
    /// The request, once accepted.
    pub queued: Option<RunQueued>,
    /// The facts that were frozen when it started. Shared by clones: it contains what the run knows of the conversation.
    pub started: Option<Arc<RunStarted>>,
    /// The plan being made.
    pub planning: Option<PlanInProgress>,
    /// The names of the scenes that resemble the request most, by embeddings, the best first; absent where these
    /// were not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Vec<String>>,
    /// SHA-256 in hex of the scenes that are loaded, where they have changed since the run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<String>,
    /// The knowledge about requests like this one, once it was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<PlanRecall>,
    /// The template about whose plan the run's end said something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The judgements of the plan, by person.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ratings: BTreeMap<String, PlanScore>,
    /// Every plan that was in force, oldest first; the last one is in force now.
    pub plans: Vec<PlanMade>,
    /// Every step of every version, by number.
    pub steps: BTreeMap<u32, StepState>,
    /// Every tool call, by ordinal.
    pub calls: Calls,
    /// Every question to a model, by ordinal.
    pub asks: BTreeMap<u32, Ask>,
    /// The verdicts of the continuation check, one for each version that was checked.
    pub verdicts: Vec<Verdict>,
    /// Ordinals of the questions asked about each subject since its last result.
    #[serde(serialize_with = "by_subject", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) tries: BTreeMap<Subject, Vec<u32>>,
    /// No further plan is made: the answer reports what there is.
    pub closing: bool,
    /// The answer.
    pub answer: Option<FinalAnswer>,
    /// The requested cancellation, by a person or the deadline.
    pub cancel: Option<Cancellation>,
    /// Why it failed.
    pub error: Option<Fault>,
    /// Tokens and cost of all its model calls.
    pub usage: Usage,
    /// The approvals that were requested, by ordinal.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub approvals: BTreeMap<u32, Approval>,
    /// Whether an approved and held plan was released.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// The call about whose lists the user's last reply was not understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_words: Option<u32>,
    /// Why the last requested change of the plan could not be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmodified: Option<Fault>,
    /// Its usage when it last ended, where it was resumed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "told")]
    pub usage_at_last_end: Option<Usage>,
    /// How many plans had been made when the first tool call ended. Tool results may have influenced later
    /// plans, so a write that only these name was not requested by the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plans_before_results: Option<u32>,
    /// How many retries policies have begun since it last began or was resumed after its end.
    #[serde(skip_serializing_if = "super::is_default")]
    pub retries: u32,
    /// How long it has waited for these, in milliseconds.
    #[serde(skip_serializing_if = "super::is_default")]
    pub waited_ms: u64,
    /// How many steps in a row, of plans after the first, had no result. Counted from the level `adaptive` on.
    #[serde(skip_serializing_if = "super::is_default")]
    pub idle_steps: u32,
    /// What was left to do whenever a plan was put in force, where the plan may be patched.
    #[serde(skip)]
    pub(super) plan_fingerprints: BTreeSet<String>,
    /// The consultations, by ordinal.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub consultations: BTreeMap<u32, ConsultationState>,
    /// How many of them put a question since the run began or was resumed after its end.
    #[serde(skip_serializing_if = "super::is_default")]
    pub consulted: u32,
    /// When its last event was appended; the epoch where only events are folded. Never goes back.
    #[serde(skip)]
    pub at: Timestamp,
    /// Since when its time limit counts, where times are known.
    #[serde(skip)]
    pub(super) time_since: Option<Timestamp>,
    /// Questions in flight.
    #[serde(skip)]
    pub(super) open_asks: BTreeSet<u32>,
    /// The actions that are due, once they were asked for. Every event forgets them.
    #[serde(skip)]
    pub(super) due: DueActions,
}

/// The memo of [`RunState::next`], which follows from the rest of the state.
#[derive(Debug, Default)]
pub(super) struct DueActions(pub(super) OnceLock<Vec<Action>>);

impl Clone for DueActions {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for DueActions {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A plan that is being made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanInProgress {
    /// Its version.
    pub version: u32,
    /// The change of the plan in force that a person asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<PlanFeedback>,
}

/// A person's request to change the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanFeedback {
    /// The person.
    pub by: String,
    /// The person's text.
    pub words: String,
}

/// The answer's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FinalAnswer {
    /// The text.
    pub text: String,
    /// No model wrote it.
    pub degraded: bool,
}

/// A requested cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cancellation {
    /// The requester; `deadline` for the deadline.
    pub by: String,
    /// Whether the deadline passed.
    pub deadline: bool,
}

/// Serialises a map whose keys are subjects.
fn by_subject<S: Serializer>(tries: &BTreeMap<Subject, Vec<u32>>, serializer: S) -> Result<S::Ok, S::Error> {
    struct Key(Subject);
    impl Serialize for Key {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.serialize_key(serializer)
        }
    }
    serializer.collect_map(tries.iter().map(|(subject, tries)| (Key(*subject), tries)))
}

impl RunState {
    /// A run without events.
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            seq: 0,
            epoch: 0,
            stalls: 0,
            aside: None,
            copied: None,
            status: RunStatus::Queued,
            plan_status: PlanStatus::Draft,
            queued: None,
            started: None,
            planning: None,
            ranking: None,
            recall: None,
            template: None,
            catalogue: None,
            ratings: BTreeMap::new(),
            plans: Vec::new(),
            steps: BTreeMap::new(),
            calls: Calls::default(),
            asks: BTreeMap::new(),
            verdicts: Vec::new(),
            tries: BTreeMap::new(),
            closing: false,
            answer: None,
            cancel: None,
            error: None,
            usage: Usage::default(),
            approvals: BTreeMap::new(),
            released: false,
            unread_words: None,
            unmodified: None,
            usage_at_last_end: None,
            plans_before_results: None,
            retries: 0,
            waited_ms: 0,
            idle_steps: 0,
            plan_fingerprints: BTreeSet::new(),
            consultations: BTreeMap::new(),
            consulted: 0,
            at: Timestamp::UNIX_EPOCH,
            time_since: None,
            open_asks: BTreeSet::new(),
            due: DueActions::default(),
        }
    }

    /// The frozen settings; the defaults before the start.
    pub fn settings(&self) -> &Settings {
        static DEFAULTS: LazyLock<Settings> = LazyLock::new(Settings::default);
        self.started.as_ref().map_or(&DEFAULTS, |s| &s.settings)
    }

    /// The request's text.
    pub fn request(&self) -> &str {
        self.queued.as_ref().map_or("", |q| q.request.as_str())
    }

    /// The documents that its tools may read: those of the request, and those of the question that the request may
    /// answer.
    pub fn documents(&self) -> Vec<NamedDocument> {
        let mut all: Vec<NamedDocument> = Vec::new();
        let own = self.queued.iter().flat_map(|queued| &queued.documents);
        let pending = self.started.iter().filter_map(|started| started.context.pending.as_ref());
        for document in own.chain(pending.flat_map(|pending| &pending.documents)) {
            if all.iter().all(|other| other.id != document.id) {
                all.push(document.clone());
            }
        }
        all
    }

    /// The question for documents that is asked again without a planner, because the request only names documents of
    /// its list that were deleted.
    pub fn repeated_document_question(&self) -> Option<&PendingQuestion> {
        let queued = self.queued.as_ref()?;
        let context = &self.started.as_ref()?.context;
        let names_nothing_else = queued.plan.is_none() && queued.documents.is_empty();
        context.pending.as_ref().filter(|_| context.names_deleted && names_nothing_else)
    }

    /// Returns whether a read that is requested now may have its arguments from documents: a call has looked at some, or they
    /// were summarised.
    pub(super) fn follows_documents(&self, requested: &RequestedCall) -> bool {
        let is_summarised =
            |step: &StepState| matches!(&step.work, StepWork::Summary(work) if !work.parts.is_empty());
        requested.effect == Effect::Read
            && (self.calls.values().any(CallState::is_from_documents)
                || self.steps.values().any(is_summarised))
    }

    /// Returns whether the request is only for a plan.
    pub fn is_plan_only(&self) -> bool {
        self.queued.as_ref().is_some_and(|q| q.plan_only)
    }

    pub(crate) fn concerns_write(&self, event: &Event) -> bool {
        let call = match event {
            Event::ToolStarted { call, .. } | Event::ToolCompleted { call, .. } => Some(*call),
            Event::Unexpected { subject: UnexpectedSubject::Call { call, .. }, .. } => Some(*call),
            Event::Consultation { subject, .. } => subject.call(),
            _ => None,
        };
        let call = call.and_then(|call| self.calls.get(&call));
        call.is_some_and(|call| call.requested.effect == Effect::Write)
    }

    /// Returns whether an event about work in flight is still recorded when the run ends: the cost of a question, and
    /// the outcome of a write.
    pub fn is_recorded_at_end(&self, event: &Event) -> bool {
        matches!(event, Event::ModelReplied { .. } | Event::ModelFailed { .. }) || self.concerns_write(event)
    }

    /// Returns whether something must happen now: the run has not ended and waits for nobody.
    pub fn is_unfinished(&self) -> bool {
        !self.status.is_terminal() && self.status != RunStatus::Waiting
    }

    /// Returns whether writes are reported and not executed.
    pub fn is_dry_run(&self) -> bool {
        self.queued.as_ref().is_some_and(|q| q.options.dry_run)
    }

    /// Returns whether plans of earlier executions are looked up now: once, before the first plan.
    pub(super) fn must_look_up_plan(&self) -> bool {
        self.settings().learn != LearnMode::Off && self.recall.is_none() && !self.is_plan_only()
    }

    /// The plan of earlier executions that serves the request.
    pub fn recalled_plan(&self) -> Option<&Plan> {
        self.recall.as_ref().and_then(|recall| recall.plan.as_ref())
    }

    /// The template of the plan, if one was recalled or learned from it.
    pub fn learned_template(&self) -> Option<&str> {
        let recalled = self.recalled_plan().and_then(|_| self.recall.as_ref()?.template.as_deref());
        self.template.as_deref().or(recalled)
    }

    /// Returns whether the plan that added `step`, or the path on which it is a node, comes from earlier executions.
    pub fn is_planned_by_learning(&self, step: u32) -> bool {
        let Some(step) = self.steps.get(&step) else { return false };
        let flow = step.node().and_then(|node| self.steps.get(&node.parent)?.flow());
        let path = flow.and_then(|work| work.planned.as_ref());
        let plan = (step.version as usize).checked_sub(1).and_then(|at| self.plans.get(at));
        plan.is_some_and(|plan| plan.maker == PlanMaker::Learned)
            || path.is_some_and(|path| path.maker == PathMaker::Learned)
    }

    /// The plan in force.
    pub fn plan(&self) -> Option<&PlanMade> {
        self.plans.last()
    }

    /// The highest step number used so far; 0 before the first plan.
    pub fn last_step(&self) -> u32 {
        self.last_fixed_step(false)
    }

    /// The highest step number that the next plan cannot use: a person's change replaces steps that have
    /// not begun, any other plan continues the numbering.
    pub fn last_fixed_step(&self, changes: bool) -> u32 {
        let fixed = |s: &&StepState| !changes || !s.is_untouched();
        let used = self.steps.values().filter(fixed).map(|s| s.step.step_number);
        // A number is never used twice, although patches take steps out.
        let patches = self.plans.iter().filter_map(|made| made.patch.as_ref());
        let taken_out = patches.flat_map(|patch| patch.removed.iter().chain(patch.replaced.keys()));
        used.chain(taken_out.copied()).max().unwrap_or(0)
    }

    /// How many plans were made for the request and its continuations. Changes by people are versions, not
    /// rounds.
    pub fn rounds(&self) -> u32 {
        self.plans.iter().filter(|p| matches!(p.cause, PlanCause::Request | PlanCause::Continuation)).count()
            as u32
    }

    /// The numbers of the completed steps.
    pub fn finished_steps(&self) -> std::collections::BTreeSet<u32> {
        self.plan_steps().filter(|(_, s)| s.status == StepStatus::Completed).map(|(n, _)| *n).collect()
    }

    /// The ordinal of the next tool call.
    pub fn next_call(&self) -> u32 {
        self.calls.keys().next_back().copied().unwrap_or(0) + 1
    }

    /// The outcome of a call: its own, the one it shares, or that of the call which took its place; `None` while it has
    /// none.
    pub fn outcome(&self, call: u32) -> Option<&Outcome> {
        match &self.calls.get(&self.resolved(call))?.status {
            CallStatus::Done { outcome } => Some(outcome),
            _ => None,
        }
    }

    /// The value that a reference of a prepared call stands for. Where another tool answered in place of the one that
    /// is referred to, a write may only refer to it if the tools' results have the same meaning.
    ///
    /// # Errors
    /// Why there is none: the call was not made, failed, was made several times, or has no such value.
    pub fn referenced(&self, reference: &Reference, by: Effect) -> Result<Value, String> {
        let Reference { step, tool, pointer } = reference;
        if let Some(flow) = self.steps.get(step).filter(|state| state.flow().is_some()) {
            return self.referenced_in_flow(flow, reference, by);
        }
        if let Some(program) = self.steps.get(step).filter(|state| state.code().is_some()) {
            return self.referenced_in_program(program, reference, by);
        }
        if let Some((state, work)) = self.steps.get(step).and_then(|state| Some((state, state.synthesis()?)))
        {
            return self.referenced_in_synthesis(work, state.status, reference, by);
        }
        let calls = self.steps.get(step).map(|state| state.calls.as_slice()).unwrap_or_default();
        let mut found = calls.iter().filter(|number| {
            let called = |call: &CallState| call.requested.tool == *tool && call.replaces.is_none();
            self.calls.get(number).is_some_and(called) && self.is_effective(**number)
        });
        let result = match (found.next(), found.next()) {
            (Some(call), None) if by == Effect::Write && !self.has_own_result(*call) => {
                return Err(format!("in step {step}, another tool answered in place of {tool}"));
            }
            (Some(call), None) => match self.outcome(*call) {
                Some(Outcome::Ok { result, whole, .. }) => whole.as_ref().unwrap_or(result),
                _ => return Err(format!("step {step} has no result of {tool}")),
            },
            (Some(_), Some(_)) => return Err(format!("step {step} has several results of {tool}")),
            (None, _) => return Err(format!("step {step} has no result of {tool}")),
        };
        let value = result.pointer(pointer).filter(|value| !value.is_null());
        value
            .cloned()
            .ok_or_else(|| format!("the result of {tool} in step {step} has nothing at {pointer:?}"))
    }

    /// Returns whether a write is under way.
    pub fn write_in_flight(&self) -> bool {
        self.calls.open().any(|(_, call)| {
            call.requested.effect == Effect::Write && matches!(call.status, CallStatus::InFlight { .. })
        })
    }

    /// The status of each step of the plans.
    pub fn step_statuses(&self) -> BTreeMap<u32, StepStatus> {
        self.plan_steps().map(|(n, s)| (*n, s.status)).collect()
    }

    /// The status of a step as displayed: the reply of its scene ends a step, regardless of its calls, but a
    /// step that did not achieve its purpose is shown as failed.
    pub fn reported_step_status(&self, step: &StepState) -> StepStatus {
        let ended = self.settings().has_rules(3) && step.status == StepStatus::Completed;
        if ended && self.is_unserved(step) { StepStatus::Failed } else { step.status }
    }

    /// The displayed status of each step.
    pub fn reported_step_statuses(&self) -> BTreeMap<u32, StepStatus> {
        self.plan_steps().map(|(n, s)| (*n, self.reported_step_status(s))).collect()
    }

    /// The displayed status of the plan: a run that asks its user, or did a part, did not fail.
    pub fn reported_plan_status(&self) -> &'static str {
        self.status.reported_plan_status(self.plan_status)
    }

    /// Returns whether the offline model made the plan that added `step` in place of failed models.
    pub fn is_planned_by_rules(&self, step: u32) -> bool {
        let version = self.steps.get(&step).map_or(0, |s| s.version as usize);
        version.checked_sub(1).and_then(|i| self.plans.get(i)).is_some_and(|p| p.maker == PlanMaker::Fallback)
    }

    /// Returns whether a write of `step` was done, or may have been, and was not undone.
    pub(super) fn has_written(&self, step: &StepState) -> bool {
        step.calls.iter().filter_map(|c| self.calls.get(c)).any(|c| {
            c.requested.effect == Effect::Write
                && c.undoes.is_none()
                && !self.is_undone(c)
                && match &c.status {
                    CallStatus::Done { outcome: Outcome::Ok { .. } } => c.attempts > 0,
                    CallStatus::Done { outcome } => matches!(outcome, Outcome::Unknown { .. }),
                    _ => self.may_be_done(c),
                }
        })
    }

    /// Returns whether a write that has not ended may have taken effect. From revision 6 on, one whose attempts all failed
    /// without effect has not, although it is to be called again.
    pub(super) fn may_be_done(&self, call: &CallState) -> bool {
        call.requested.effect == Effect::Write
            && match call.status {
                CallStatus::InFlight { .. } => true,
                CallStatus::Again { .. } => call.uncertain || !self.settings().has_rules(6),
                CallStatus::Failing { .. } | CallStatus::BackedOff { .. } => call.uncertain,
                CallStatus::Requested | CallStatus::Done { .. } | CallStatus::Skipped { .. } => false,
            }
    }

    /// Returns whether a tool was called in a step of the plan in force.
    pub(super) fn has_run_a_call(&self) -> bool {
        let calls = self.steps.values().filter(|s| self.is_in_round(s)).flat_map(|s| &s.calls);
        calls.filter_map(|c| self.calls.get(c)).any(|c| c.attempts > 0)
    }

    /// Returns whether the check may ask for another plan: bounded, and not after a round in which no new
    /// call ran.
    pub fn may_replan(&self) -> bool {
        let bounded = self.rounds() <= self.settings().max_replans && self.may().check_replans;
        !self.closing && self.cancel.is_none() && bounded && self.has_run_a_call()
    }

    /// The progress of a scene's step.
    pub fn scene_work(&self, step: u32) -> Option<&SceneWork> {
        self.steps.get(&step)?.scene()
    }

    /// Returns whether the next question to a step's model is the last one: no tools are offered with it.
    pub fn is_last_round(&self, step: u32) -> bool {
        self.scene_work(step).is_some_and(|work| work.rounds + 1 >= self.settings().max_rounds)
    }
}
