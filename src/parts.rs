//! What a library user can replace: who plans, who makes plans that people decide, and who carries calls
//! out.
//!
//! A replaced part takes the place of a model or of a scene's tools and of nothing else: what it gives is
//! a reply or an outcome like theirs, is journalled, validated, repaired, approved and recovered in the
//! same way, and shows in the same figures. So none of them can run a step twice or write unapproved.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::llm;
use crate::plan::Plan;
use crate::run::{Fault, Feedback, Outcome, RunId, RunState, SessionId, TenantId, Verdict};
use crate::scene::Catalogue;

/// What a planner or a generator is asked.
#[derive(Clone)]
pub struct Question {
    /// The run so far: its request, what is remembered of the conversation, its plans and what was done.
    /// Earlier replies that could not be used are in `state.asks`, with the problems found.
    pub state: Arc<RunState>,
    /// The scenes there are.
    pub catalogue: Arc<Catalogue>,
    /// What a model would be asked: instructions, data, and the forced function.
    pub request: llm::Request,
    /// What a person wants changed in the plan in force, if that is asked.
    pub feedback: Option<Feedback>,
}

/// Who decides which scenes take part, and whether the request is answered: the two forced decisions.
#[async_trait]
pub trait Planner: Send + Sync {
    /// A plan for the request, or for what the last verdict found missing. Its step numbers continue those
    /// of `question.state`. A plan with problems is sent back up to `planning.max_retries` times.
    ///
    /// # Errors
    /// Where none can be made now: the embedded rules plan, if they may, or the run fails with it.
    async fn plan(&self, question: Question) -> Result<Plan, Fault>;

    /// Whether what was executed answers the request.
    ///
    /// # Errors
    /// Where it cannot be judged: what was done is then told as it is.
    async fn check(&self, question: Question) -> Result<Verdict, Fault>;
}

/// Who makes the plans that people decide: those asked for with `require_approval` (as by
/// `POST /api/plans`), and those that a person wants changed in words. The planner, unless replaced.
#[async_trait]
pub trait Generator: Send + Sync {
    /// The plan, or the changed one where `question.feedback` says what is to change.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    async fn generate(&self, question: Question) -> Result<Plan, Fault>;
}

/// One call to be carried out: it was checked, approved where it has to be, and for a write its intent is
/// on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// The scene.
    pub scene: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, valid.
    pub arguments: Value,
    /// Who pays.
    pub tenant: TenantId,
    /// Who asks.
    pub user: String,
    /// The conversation.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: u32,
    /// For a write: the key under which doing it twice is doing it once.
    pub idempotency_key: Option<String>,
}

/// Who carries calls out.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Carries the call out; `scene` does it as it would be done without this executor. A write that may
    /// have been done and of which nobody knows is [`Outcome::Unknown`].
    async fn execute(&self, call: Execution, scene: &dyn Scenes) -> Outcome;
}

/// The scene's own way to carry a call out.
#[async_trait]
pub trait Scenes: Send + Sync {
    /// Calls the tool: bounded in time, its result cut to size and phrased.
    async fn call(&self, call: &Execution) -> Outcome;
}

/// The parts that were replaced.
#[derive(Clone, Default)]
pub struct Replaced {
    /// Who plans and checks.
    pub planner: Option<Arc<dyn Planner>>,
    /// Who makes the plans that people decide.
    pub generator: Option<Arc<dyn Generator>>,
    /// Who carries calls out.
    pub executor: Option<Arc<dyn Executor>>,
}
