//! The state of a run: everything that its events have said.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Serialize;

use super::approval::Approval;
use super::attempt::Reserved;
use super::event::{
    Cause, Effect, Fault, Maker, Outcome, PlanMade, Question, Reply, RequestedCall, RunQueued, RunStarted,
    RunStatus, Subject, Usage, Verdict,
};
use super::ids::RunId;
use super::settings::Settings;
use crate::plan::{PlanStatus, Problem, Step, StepStatus};

/// Times a question is asked once more because its driver panicked (in journals of earlier releases, because
/// the process that asked it died); then it counts as failed, so that a question which itself ends drivers
/// cannot do so for ever. The deaths of processes are counted by [`recovery`](super::recovery).
const LOST_RETRIES: usize = 3;

/// Problems of a reply that the fault at its end names.
const TOLD_PROBLEMS: usize = 3;

/// A run as the fold of its events.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunState {
    /// Its id.
    pub run: RunId,
    /// How many events were applied.
    pub seq: u64,
    /// How many times it was taken over.
    pub epoch: u32,
    /// How many times it was taken over since anything last came of it.
    #[serde(skip_serializing_if = "is_zero")]
    pub stalls: u32,
    /// Why it was put aside: it waits until somebody has it carried on, or cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside: Option<Fault>,
    /// Where it stands.
    pub status: RunStatus,
    /// Where its plan stands.
    pub plan_status: PlanStatus,
    /// The request, once accepted.
    pub queued: Option<RunQueued>,
    /// What was frozen when its turn came.
    pub started: Option<RunStarted>,
    /// The plan to be made now.
    pub planning: Option<Planning>,
    /// Every plan that was in force, oldest first; the last one is.
    pub plans: Vec<PlanMade>,
    /// Every step of every version, by number.
    pub steps: BTreeMap<u32, StepState>,
    /// Every tool call, by ordinal.
    pub calls: BTreeMap<u32, CallState>,
    /// Every question to a model, by ordinal.
    pub asks: BTreeMap<u32, Ask>,
    /// The verdicts of the continuation check, one for each version that was judged.
    pub verdicts: Vec<Verdict>,
    /// Questions asked for the verdict that is due.
    pub check_tries: Vec<u32>,
    /// Questions asked for the answer's words.
    pub answer_tries: Vec<u32>,
    /// No further plan can be made: what there is is the answer's matter.
    pub closing: bool,
    /// The answer.
    pub answer: Option<Answer>,
    /// Somebody, or the deadline, wants it to stop.
    pub cancel: Option<Cancel>,
    /// Why it failed.
    pub error: Option<Fault>,
    /// Tokens and money of all its model calls.
    pub usage: Usage,
    /// What was put to people, by ordinal.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub approvals: BTreeMap<u32, Approval>,
    /// A plan that was only approved has been told to begin.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// Why the last change that somebody wanted could not be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmodified: Option<Fault>,
    /// What it had cost when it last ended: it was carried on since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Usage>,
    /// How many plans had been made when the first tool ended. Later ones may have been shaped by what
    /// tools returned, and nobody asked for a write that only these name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plans_before_results: Option<u32>,
}

/// A plan that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planning {
    /// Its version.
    pub version: u32,
    /// Questions asked for it.
    pub tries: Vec<u32>,
    /// What a person wants changed in the plan in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
}

/// What a person wants changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Feedback {
    /// Who.
    pub by: String,
    /// In these words.
    pub words: String,
}

/// The answer's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// No model wrote it.
    pub degraded: bool,
}

/// A wish to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cancel {
    /// Whose.
    pub by: String,
    /// Time ran out.
    pub deadline: bool,
}

/// A step and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepState {
    /// The step.
    pub step: Step,
    /// The version that brought it.
    pub version: u32,
    /// Where it stands.
    pub status: StepStatus,
    /// How often its scene's model has replied.
    pub rounds: u32,
    /// Model questions asked since that last reply.
    pub tries: Vec<u32>,
    /// What its scene's model said so far, a round each.
    pub history: Vec<Round>,
    /// Ordinals of all its calls.
    pub calls: Vec<u32>,
    /// Ordinals of the calls of the last reply.
    pub round_calls: Vec<u32>,
    /// The last reply's words.
    pub text: String,
    /// What only the user can say.
    pub question: Option<Question>,
    /// The tool that its scene's model decided for and has not yet called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether its scene's model has decided: it is asked to at most once in a step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub decided: bool,
    /// Its result, once completed.
    pub result: Option<String>,
    /// Why it ended otherwise.
    pub error: Option<Fault>,
    /// Its calls were known without a question to its scene's model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prepared: bool,
}

/// One reply of a scene's model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Round {
    /// Its words.
    pub text: String,
    /// Ordinals of the calls it asked for.
    pub calls: Vec<u32>,
}

/// A tool call and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallState {
    /// The step it belongs to.
    pub step: u32,
    /// The step's scene.
    pub scene: String,
    /// What was asked for.
    pub requested: RequestedCall,
    /// The embedded rules asked for it in place of failed models: it may not write.
    pub fallback: bool,
    /// How far it is.
    pub status: CallStatus,
    /// A write of its scene ended after it: its outcome is not shared any more.
    pub stale: bool,
    /// How often it was started.
    pub attempts: u32,
    /// How many of these were cut off by the end of the process: they say nothing against the call.
    #[serde(skip_serializing_if = "is_zero")]
    pub interruptions: u32,
    /// The write that it undoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u32>,
    /// The call that undoes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<u32>,
    /// Who wrote its arguments, where that is neither a model nor who asked for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<String>,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum CallStatus {
    /// Asked for.
    Requested,
    /// Under way.
    InFlight {
        /// From 1.
        attempt: u32,
    },
    /// To be started once more, which is safe.
    Again {
        /// The attempt to come.
        attempt: u32,
    },
    /// Ended.
    Done {
        /// How.
        outcome: Outcome,
    },
    /// Not executed: it shares the outcome of an equal call.
    Skipped {
        /// That call.
        first: u32,
    },
}

/// A question to a model and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ask {
    /// What about.
    pub subject: Subject,
    /// 0, then the number of the repair.
    pub attempt: u32,
    /// Whether the embedded rules were asked in place of the models.
    pub fallback: bool,
    /// What became of it.
    pub status: AskStatus,
    /// What was set aside for it and not yet charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Reserved>,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum AskStatus {
    /// Under way.
    InFlight,
    /// A reply came and is to be read.
    Replied {
        /// The reply.
        reply: Reply,
    },
    /// The reply was read and used.
    Used {
        /// The reply; kept where the scene's conversation goes on with it.
        reply: Reply,
    },
    /// The reply could not be used.
    Rejected {
        /// The reply, shown to the model with the problems.
        reply: Reply,
        /// Why.
        problems: Vec<Problem>,
    },
    /// No reply came.
    Failed {
        /// Why.
        error: Fault,
    },
    /// The process that asked has died.
    Lost,
}

/// What is to be done about a question that is due.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Due {
    /// Something is under way.
    Wait,
    /// Read this reply.
    Read(u32),
    /// Ask.
    Ask {
        /// The number of the try.
        attempt: u32,
        /// Whether the embedded rules are asked.
        fallback: bool,
    },
    /// All tries have failed.
    GiveUp(Fault),
}

impl StepState {
    /// Whether nothing of it was ever begun. A step that begins anew has what it did before.
    pub fn is_untouched(&self) -> bool {
        self.status == StepStatus::Pending && self.calls.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl RunState {
    /// A run of which nothing has happened yet.
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            seq: 0,
            epoch: 0,
            stalls: 0,
            aside: None,
            status: RunStatus::Queued,
            plan_status: PlanStatus::Draft,
            queued: None,
            started: None,
            planning: None,
            plans: Vec::new(),
            steps: BTreeMap::new(),
            calls: BTreeMap::new(),
            asks: BTreeMap::new(),
            verdicts: Vec::new(),
            check_tries: Vec::new(),
            answer_tries: Vec::new(),
            closing: false,
            answer: None,
            cancel: None,
            error: None,
            usage: Usage::default(),
            approvals: BTreeMap::new(),
            released: false,
            unmodified: None,
            told: None,
            plans_before_results: None,
        }
    }

    /// The frozen settings; the defaults before the start.
    pub fn settings(&self) -> &Settings {
        static DEFAULTS: LazyLock<Settings> = LazyLock::new(Settings::default);
        self.started.as_ref().map_or(&DEFAULTS, |s| &s.settings)
    }

    /// The request's words.
    pub fn request(&self) -> &str {
        self.queued.as_ref().map_or("", |q| q.request.as_str())
    }

    /// Whether only a plan is wanted.
    pub fn is_plan_only(&self) -> bool {
        self.queued.as_ref().is_some_and(|q| q.plan_only)
    }

    /// Whether writes are told and not done.
    pub fn is_dry_run(&self) -> bool {
        self.queued.as_ref().is_some_and(|q| q.dry_run)
    }

    /// The plan in force.
    pub fn plan(&self) -> Option<&PlanMade> {
        self.plans.last()
    }

    /// The highest step number used so far; 0 before the first plan.
    pub fn last_step(&self) -> u32 {
        self.steps.keys().next_back().copied().unwrap_or(0)
    }

    /// The highest step number that the next plan cannot use: a person's change replaces what has not
    /// begun, any other plan continues the numbers.
    pub fn last_fixed_step(&self, changes: bool) -> u32 {
        let fixed = |s: &&StepState| !changes || !s.is_untouched();
        self.steps.values().filter(fixed).map(|s| s.step.step_number).max().unwrap_or(0)
    }

    /// How many plans were made for the request and for what it turned out to miss; people's changes of
    /// these are versions, and no rounds.
    pub fn rounds(&self) -> u32 {
        self.plans.iter().filter(|p| matches!(p.cause, Cause::Request | Cause::Continuation)).count() as u32
    }

    /// The numbers of the completed steps.
    pub fn finished_steps(&self) -> std::collections::BTreeSet<u32> {
        self.steps.iter().filter(|(_, s)| s.status == StepStatus::Completed).map(|(n, _)| *n).collect()
    }

    /// The ordinal of the next question to a model.
    pub fn next_ask(&self) -> u32 {
        self.asks.keys().next_back().copied().unwrap_or(0) + 1
    }

    /// The ordinal of the next tool call.
    pub fn next_call(&self) -> u32 {
        self.calls.keys().next_back().copied().unwrap_or(0) + 1
    }

    /// The outcome of a call, its own or the one it shares; `None` while it has none.
    pub fn outcome(&self, call: u32) -> Option<&Outcome> {
        match &self.calls.get(&call)?.status {
            CallStatus::Done { outcome } => Some(outcome),
            CallStatus::Skipped { first } => match &self.calls.get(first)?.status {
                CallStatus::Done { outcome } => Some(outcome),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a write is under way.
    pub fn write_in_flight(&self) -> bool {
        self.calls
            .values()
            .any(|c| c.requested.effect == Effect::Write && matches!(c.status, CallStatus::InFlight { .. }))
    }

    /// The status of each step.
    pub fn step_statuses(&self) -> BTreeMap<u32, StepStatus> {
        self.steps.iter().map(|(n, s)| (*n, s.status)).collect()
    }

    /// Whether the plan in force was made by the embedded rules in place of failed models.
    pub fn plan_is_fallback(&self) -> bool {
        self.plan().is_some_and(|p| p.maker == Maker::Fallback)
    }

    /// Whether the plan that brought `step` was made by the embedded rules in place of failed models.
    pub fn is_planned_by_rules(&self, step: u32) -> bool {
        let version = self.steps.get(&step).map_or(0, |s| s.version as usize);
        version.checked_sub(1).and_then(|i| self.plans.get(i)).is_some_and(|p| p.maker == Maker::Fallback)
    }

    /// Whether a write of `step` was done, or may have been, and was not undone.
    pub(super) fn wrote(&self, step: &StepState) -> bool {
        step.calls.iter().filter_map(|c| self.calls.get(c)).any(|c| {
            c.requested.effect == Effect::Write
                && c.undoes.is_none()
                && !self.is_undone(c)
                && match &c.status {
                    CallStatus::Done { outcome: Outcome::Ok { .. } } => c.attempts > 0,
                    CallStatus::Done { outcome } => matches!(outcome, Outcome::Unknown { .. }),
                    CallStatus::InFlight { .. } | CallStatus::Again { .. } => true,
                    CallStatus::Requested | CallStatus::Skipped { .. } => false,
                }
        })
    }

    /// Whether a tool was called in a step of the plan in force.
    pub(super) fn ran_a_call(&self) -> bool {
        let made = self.plans.len() as u32;
        let calls = self.steps.values().filter(|s| s.version == made).flat_map(|s| &s.calls);
        calls.filter_map(|c| self.calls.get(c)).any(|c| c.attempts > 0)
    }

    /// Whether the check may ask for another plan: bounded, and not after a round in which no new
    /// call ran.
    pub fn may_replan(&self) -> bool {
        let bounded = self.rounds() <= self.settings().max_replans;
        !self.closing && self.cancel.is_none() && bounded && self.ran_a_call()
    }

    /// Whether the next question to a step's model is the last one: no tools are offered with it.
    pub fn is_last_round(&self, step: u32) -> bool {
        self.steps.get(&step).is_some_and(|s| s.rounds + 1 >= self.settings().max_rounds)
    }

    /// What is due for a question of which `tries` were made: `retries` repairs at most, then the
    /// embedded rules once where the settings allow, then nothing more.
    pub(super) fn due(&self, tries: &[u32], retries: u32) -> Due {
        let tried = || tries.iter().filter_map(|call| self.asks.get(call));
        let Some(last) = tries.last().and_then(|call| self.asks.get(call).map(|ask| (*call, ask))) else {
            return Due::Ask { attempt: 0, fallback: false };
        };
        let (call, ask) = last;
        let repairs =
            tried().filter(|a| matches!(a.status, AskStatus::Rejected { .. }) && !a.fallback).count();
        let fault = match &ask.status {
            AskStatus::InFlight => return Due::Wait,
            AskStatus::Replied { .. } | AskStatus::Used { .. } => return Due::Read(call),
            AskStatus::Lost if tried().filter(|a| a.status == AskStatus::Lost).count() <= LOST_RETRIES => {
                return Due::Ask { attempt: ask.attempt, fallback: ask.fallback };
            }
            AskStatus::Lost => Fault::new("llm.interrupted", "the process ended each time this was asked"),
            AskStatus::Rejected { problems, .. } => {
                if !ask.fallback && repairs <= retries as usize {
                    return Due::Ask { attempt: ask.attempt + 1, fallback: false };
                }
                let told: Vec<&str> =
                    problems.iter().map(|p| p.message.as_str()).take(TOLD_PROBLEMS).collect();
                let more = match problems.len().saturating_sub(told.len()) {
                    0 => String::new(),
                    more => format!("; and {more} more like these"),
                };
                Fault::new(
                    "llm.unusable",
                    format!("{repairs} replies could not be used; the last: {}{more}", told.join("; ")),
                )
            }
            AskStatus::Failed { error } => error.clone(),
        };
        if self.settings().fallback_enabled && !tried().any(|a| a.fallback) {
            Due::Ask { attempt: ask.attempt + 1, fallback: true }
        } else {
            Due::GiveUp(fault)
        }
    }
}
