//! Payloads of a run's first events: the request, the inputs that decisions depend on, and the plans.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::approval::RequiredApproval;
use super::super::context::{ConfirmedCall, Context, PendingQuestion, Turn};
use super::super::document::NamedDocument;
use super::super::guidance::PlanGuidance;
use super::super::ids::RunId;
use super::super::settings::{CacheMode, PlanningMaker, Settings};
use super::payload::UnusableCall;
use crate::adapt::{ExecutionLevel, ExecutionMode};
use crate::flow::Flow;
use crate::plan::{DependsOn, Plan, PlanStatus, TaskId};
use crate::trace_context::TraceParent;

/// The options of a request besides its text: one value from the client to the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestOptions {
    /// The cache mode of its questions, where it differs from the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheMode>,
    /// A person has to approve the plan, whatever the settings say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_approval: bool,
    /// Dry run: writes are reported and not executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// No path is planned: flows follow their graphs by their conditions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unplanned: bool,
    /// Who may be asked when something unexpected happens; has an effect where it is lower than configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ExecutionLevel>,
    /// How much may change when something unexpected happens; has an effect where it is lower than configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ExecutionMode>,
    /// Whether a program may be the plan; has an effect where it is narrower than configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<PlanningMaker>,
}

/// The request as accepted: everything that its execution needs, also after a takeover by another process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunQueued {
    /// The user's text.
    pub request: String,
    /// The requester: taken from the API key or the configuration, never from the text.
    pub user: String,
    /// The public id of the plan.
    pub task: TaskId,
    /// Plan only: the run ends when there is a plan, and the plan stays a draft.
    #[serde(default)]
    pub plan_only: bool,
    /// The client's idempotency key: the request can be sent again without being executed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<Idempotency>,
    /// Hash in hex over the request, its requester and its origin, for clients that retry without an
    /// idempotency key: it identifies a retry after a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The conversation as the client sent it, where it is not stored here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Turn>>,
    /// The chatbot's own instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its options besides its text.
    #[serde(flatten)]
    pub options: RequestOptions,
    /// Constraints of its plan, and the state of things as the caller knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Box<PlanGuidance>>,
    /// The documents that it names, which belong to its requester.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<NamedDocument>,
    /// A plan supplied by the client; no model is then asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// The question that the client's conversation ended with, found by that conversation's content where
    /// it is not stored here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingQuestion>,
    /// The run whose question the user had seen last when this request was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<RunId>,
    /// Its place in its client's trace, as its header `traceparent` said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<TraceParent>,
}

impl RunQueued {
    /// A request of `user` with this text and the configured behaviour.
    pub fn new(request: impl Into<String>, user: impl Into<String>, task: TaskId) -> Self {
        Self {
            request: request.into(),
            user: user.into(),
            task,
            plan_only: false,
            idempotency: None,
            asked: None,
            history: None,
            instructions: None,
            options: RequestOptions::default(),
            guidance: None,
            documents: Vec::new(),
            plan: None,
            pending: None,
            answers: None,
            trace_parent: None,
        }
    }
}

/// Identifies a request that decided about a run, for deduplication; [`RunQueued`] has the same for a
/// request that began one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestIdentity {
    /// The client's idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<Idempotency>,
    /// Hash in hex over the request, its requester and its origin, where it has no idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
}

/// An idempotency key and the request sent under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// 1 to 255 printable ASCII characters. Unique to one request within a tenant.
    pub key: String,
    /// SHA-256 of the canonical request, in hex. Another request under the same key is an error.
    pub hash: String,
}

/// Everything that the run's decisions depend on, frozen when it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The local time that "today" refers to, RFC 9557 (with the time zone's name).
    pub now: jiff::Zoned,
    /// The user's language, ISO 639-1 (`it`), where it could be detected.
    pub language: Option<String>,
    /// The settings.
    pub settings: Settings,
    /// SHA-256 of the catalogue of scenes, in hex.
    pub catalogue: String,
    /// The conversation so far.
    pub context: Context,
    /// The calls that the user confirms with this request: the run executes these and nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<ConfirmedCall>,
    /// The levels of the scenes that declare one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, ExecutionLevel>,
    /// The tools (`Scene.Tool`) that operators had switched off: they are not offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<String>,
}

impl RunStarted {
    /// A start at this time with the default settings, in a new conversation.
    pub fn new(now: jiff::Zoned) -> Self {
        Self {
            now,
            language: None,
            settings: Settings::default(),
            catalogue: String::new(),
            context: Context::default(),
            confirmed: Vec::new(),
            levels: BTreeMap::new(),
            disabled: Vec::new(),
        }
    }
}

/// Why a plan is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PlanCause {
    /// The request itself.
    Request,
    /// The continuation check asked for more.
    Continuation,
    /// A person asked for a change in free text.
    Feedback,
    /// A person changed it.
    Edit,
    /// A model changed its unfinished part: the rest of the version before goes on.
    Adaptation,
}

/// The maker of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PlanMaker {
    /// The planner, with a configured model.
    #[strum(serialize = "planner")]
    Deterministic,
    /// Earlier executions: the plan is proven for requests like this one.
    Learned,
    /// Nobody: the plan is one step, for which a model writes a program.
    Code,
    /// The offline model, after the models failed: never writes without a person's approval.
    Fallback,
    /// A person.
    Person,
}

/// A plan and its origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanMade {
    /// From 1; each replan raises it.
    pub version: u32,
    /// Why it was made.
    pub cause: PlanCause,
    /// Who made it.
    pub maker: PlanMaker,
    /// The plan, valid.
    pub plan: Plan,
    /// Why a person has to approve it, where one has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<RequiredApproval>,
    /// The person who made or requested it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason of that person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The definitions of the flows among its steps, each once: the run follows these, whatever the catalogue says later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flow>,
    /// What it changes in the version before, which it continues; set where the cause is an adaptation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<PlanPatch>,
    /// The calls that its author prepared and that cannot be made as they are written. Their scenes are asked, and told why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unusable: Vec<UnusableCall>,
}

/// A map of numbers as a list of pairs: keys of JSON objects are text, which is not read as numbers within a tagged event.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        map: &BTreeMap<u32, u32>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<u32, u32>, D::Error> {
        Vec::<(u32, u32)>::deserialize(deserializer).map(|pairs| pairs.into_iter().collect())
    }
}

/// A change of the unfinished part of a plan. The new steps are those of the plan that carries it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPatch {
    /// The consultation that it comes from.
    pub consultation: u32,
    /// Steps that are not executed any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<u32>,
    /// Steps that a new one takes the place of, each with the new one: the step that the consultation is about, or
    /// steps that have not begun.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "pairs")]
    pub replaced: BTreeMap<u32, u32>,
    /// Steps that depended on a replaced one and depend on its replacement now. They expect no write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<u32>,
}

impl PlanPatch {
    /// Returns what it changes besides its new steps, one line each, for people.
    pub fn changes(&self) -> Vec<String> {
        let replaced =
            self.replaced.iter().map(|(old, new)| format!("step {new} takes the place of step {old}"));
        let removed = self.removed.iter().map(|step| format!("step {step} is not done any more"));
        replaced.chain(removed).collect()
    }

    /// The dependencies of a step, once the replaced ones are exchanged.
    pub fn repointed(&self, depends: &DependsOn) -> DependsOn {
        depends.iter().map(|step| self.replaced.get(&step).copied().unwrap_or(step)).collect()
    }
}

impl PlanMade {
    /// A plan that needs no approval.
    pub fn new(version: u32, cause: PlanCause, maker: PlanMaker, plan: Plan) -> Self {
        Self {
            version,
            cause,
            maker,
            plan,
            approval: None,
            by: None,
            why: None,
            flows: Vec::new(),
            patch: None,
            unusable: Vec::new(),
        }
    }

    /// The plan's status when this version is made.
    pub(super) fn initial_status(&self) -> PlanStatus {
        if self.approval.is_some() { PlanStatus::Draft } else { PlanStatus::Approved }
    }
}
