//! The unexpected events of a run, and what followed: a fold of its journal alone.

mod consulted;
mod entries;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use self::consulted::ExplainedConsultation;
use self::entries::Entries;
use crate::adapt::{ExecutionLevel, ExecutionMode};
use crate::answer::AnswerFlow;
use crate::run::{Envelope, Event, FaultClass, RunId, RunState, RunStatus};

/// The explanation of a run: each unexpected event with its options, the decision, who made it and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The run.
    #[schema(value_type = String, format = "uuid")]
    pub run_id: RunId,
    /// Its status.
    pub status: RunStatus,
    /// The request.
    pub request: String,
    /// Who could be asked when something unexpected happened, if that was limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ExecutionLevel>,
    /// How much could change when something unexpected happened, if that was limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ExecutionMode>,
    /// The flows of its steps: their paths, the nodes that were entered and skipped, and where a path was left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<AnswerFlow>,
    /// The unexpected events, in order. Empty if there were none.
    pub unexpected: Vec<ExplainedEvent>,
    /// The cost of everything unexpected.
    pub cost: ExplainedCost,
}

/// Something unexpected, and what followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedEvent {
    /// When it happened.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    /// The kind of its subject.
    pub about: ExplainedSubject,
    /// The step that it belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u32>,
    /// The step's scene.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scene_name: Option<String>,
    /// The tool of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The call's ordinal in the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// The call's arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    /// Which attempt it was, from 1; absent where nothing was attempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The kind of failure.
    pub class: FaultClass,
    /// The fault's stable code.
    pub code: String,
    /// The sentence for the user, in the user's language.
    pub say: String,
    /// The detail, for callers who may read everything of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The possible actions, in the order of consideration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<ExplainedOption>,
    /// Whether a model was consulted about it, where level and mode are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consultation: Option<ExplainedConsultation>,
    /// The action; absent as long as it is not decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// The tool that was called in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    /// Who decided that.
    pub decided_by: ExplainedDecider,
    /// The person's name, if a person decided; the model's, if a model or, as `replaced`, a policy did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Its outcome.
    pub then: ExplainedResult,
    /// Its cost.
    pub cost: ExplainedCost,
}

/// The subject of something unexpected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExplainedSubject {
    /// A tool call had no result.
    Call,
    /// It is not known whether a write took effect.
    Outcome,
    /// A model gave no reply.
    Model,
    /// A model's reply could not be used.
    Reply,
    /// No plan could be made.
    Plan,
    /// A program could not be used.
    Program,
    /// A step ended, and a model could change the rest of the plan.
    Step,
    /// Further steps had no results.
    Run,
    /// Tools of a step that is about to begin do not work at present.
    Forecast,
}

/// The author of the decision on what followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExplainedDecider {
    /// The policies of the tool and the operator.
    Policy,
    /// The rules that hold in every run: nothing was to be chosen.
    Rules,
    /// A person.
    Person,
    /// A model that was consulted.
    Model,
    /// A recovery policy of the program, in place of a model.
    Part,
}

/// Something that could have been done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedOption {
    /// Its name, such as `retry`.
    pub action: String,
    /// Whether it was allowed.
    pub allowed: bool,
    /// Why, or why not.
    pub why: String,
}

/// The result of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExplainedResult {
    /// It is not decided, or in progress.
    Pending,
    /// The next attempt succeeded.
    Succeeded,
    /// The next attempt had no result, either; a later entry is about it.
    FailedAgain,
    /// It was not attempted again.
    GivenUp,
    /// The call was left out.
    LeftOut,
    /// The tool that was called in its place succeeded.
    Replaced,
    /// The tool in its place writes, so the user is asked first.
    PutToUser,
    /// The user was asked how to continue.
    AskedUser,
    /// A model said where the expected values are in the result.
    Interpreted,
    /// The unfinished part of the plan was changed.
    PlanChanged,
    /// The unfinished part of the plan stayed as it was.
    PlanKept,
    /// A person was asked what the write did.
    PutToPerson,
    /// The offline model answered in place of the models.
    EmbeddedRules,
    /// The question was asked again.
    AskedAgain,
    /// A person said what the write did.
    Decided,
    /// The user was told, and the step began.
    Told,
}

/// The cost of something unexpected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedCost {
    /// How long the failed attempt took, in milliseconds.
    pub took_ms: u64,
    /// How long the run waited because of it, in milliseconds.
    pub waited_ms: u64,
    /// Calls of models in vain.
    pub llm_calls: u32,
    /// Their cost in US dollars.
    pub cost_usd: f64,
}

impl Explanation {
    /// Explains a run: `state` is the fold of `journal`. Messages of faults are for those who may read the journal;
    /// without them, only the users' sentences are included.
    pub fn new(journal: &[Envelope<Event>], state: &RunState, with_messages: bool) -> Self {
        let mut entries = Entries::new(state, with_messages);
        for envelope in journal {
            entries.fold(envelope);
        }
        let unexpected = entries.into_entries();
        let mut flows = AnswerFlow::of_run(state);
        for node in flows.iter_mut().flat_map(|flow| &mut flow.nodes).filter(|_| !with_messages) {
            // Their messages may be those of back ends.
            (node.result, node.error) = (None, None);
        }
        Self {
            flows,
            run_id: state.run,
            status: state.status,
            request: state.request().to_owned(),
            level: state.level(),
            mode: state.settings().mode,
            cost: unexpected.iter().fold(ExplainedCost::default(), |sum, entry| sum.plus(entry.cost)),
            unexpected,
        }
    }

    /// A note for each step in which something unexpected happened to a call, such as
    /// `GetForecast retried 2×, then succeeded`; and for each step of a flow, its nodes.
    pub fn step_notes(&self) -> BTreeMap<u32, Vec<String>> {
        let mut calls: BTreeMap<u32, Vec<&ExplainedEvent>> = BTreeMap::new();
        for entry in &self.unexpected {
            if let Some(call) = entry.call {
                calls.entry(call).or_default().push(entry);
            }
        }
        let mut notes: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for entries in calls.values() {
            let Some(last) = entries.last() else { continue };
            let Some(step) = last.step_number else { continue };
            // What happens in a node is listed at its flow's step.
            let flow = self.flows.iter().find(|flow| flow.nodes.iter().any(|node| node.step_number == step));
            let step = flow.map_or(step, |flow| flow.step_number);
            let retried = entries.iter().filter(|entry| entry.chosen.as_deref() == Some("retry")).count();
            let mut words = last.tool.clone().unwrap_or_default();
            if retried > 0 {
                words.push_str(&format!(" retried {retried}×,"));
            }
            words.push_str(match last.then {
                ExplainedResult::Succeeded => " then succeeded",
                ExplainedResult::LeftOut => " left out",
                ExplainedResult::Interpreted => " interpreted",
                ExplainedResult::Replaced => " replaced by ",
                ExplainedResult::PutToUser => " to be replaced, if the user agrees, by ",
                ExplainedResult::PutToPerson => " outcome unknown",
                ExplainedResult::Decided => " outcome decided by a person",
                ExplainedResult::Pending => " not decided yet",
                _ => " failed",
            });
            let is_replaced = matches!(last.then, ExplainedResult::Replaced | ExplainedResult::PutToUser);
            words.push_str(last.replaced_by.as_deref().filter(|_| is_replaced).unwrap_or_default());
            notes.entry(step).or_default().push(words);
        }
        for flow in &self.flows {
            let lines = notes.entry(flow.step_number).or_default();
            drop(lines.splice(0..0, flow.lines()));
        }
        notes
    }
}

impl ExplainedCost {
    fn plus(self, more: Self) -> Self {
        Self {
            took_ms: self.took_ms.saturating_add(more.took_ms),
            waited_ms: self.waited_ms.saturating_add(more.waited_ms),
            llm_calls: self.llm_calls.saturating_add(more.llm_calls),
            cost_usd: self.cost_usd + more.cost_usd,
        }
    }
}
