//! The parts that a library user can replace: the planner, the generator of plans for approval, the executor of
//! tool calls, and the policy that is asked about failed calls.
//!
//! A replaced part stands in for a model or for a scene's tools only. Its replies and outcomes are
//! journalled, validated, repaired, approved and recovered like theirs and recorded in the same metrics,
//! so a part cannot run a step twice or write without approval.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::adapt::{ConsultationKind, RecoveryAction};
use crate::llm;
use crate::plan::{Plan, PlanProblem};
pub use crate::planner::{CallAttempts, FailedCall};
use crate::program::Interpreter;
use crate::run::{Fault, Outcome, PlanFeedback, RunId, RunState, SessionId, Subject, TenantId, Verdict};
use crate::scene::Catalogue;

/// A request to a planner or a generator.
#[derive(Debug, Clone)]
pub struct PlannerRequest {
    /// The run so far: its request, the memory of its session, its plans and its completed work. Earlier
    /// unusable replies are in `state.asks`, with their problems.
    pub state: Arc<RunState>,
    /// The available scenes.
    pub catalogue: Arc<Catalogue>,
    /// The request that a model would get: instructions, data and the forced function.
    pub request: llm::Request,
    /// The changes that a person requested to the plan in force, if any.
    pub feedback: Option<PlanFeedback>,
}

/// Decides which scenes take part and whether the request is answered: the two forced decisions.
#[async_trait]
pub trait Planner: Send + Sync {
    /// Creates a plan for the request, or for what the last verdict found missing. Its step numbers continue
    /// those of `question.state`. A plan with problems is returned up to `planning.max_retries` times.
    ///
    /// # Errors
    /// If no plan can be created now. The offline model then plans, if allowed, or the run fails with this
    /// error.
    async fn plan(&self, question: PlannerRequest) -> Result<Plan, Fault>;

    /// Checks whether the completed work answers the request.
    ///
    /// # Errors
    /// If this cannot be decided. The answer then reports the completed work as it is.
    async fn check(&self, question: PlannerRequest) -> Result<Verdict, Fault>;
}

/// Creates the plans that people approve: those requested with `require_approval` (as by
/// `POST /api/plans`), and those that a person asked to change. The planner does this unless replaced.
#[async_trait]
pub trait Generator: Send + Sync {
    /// Creates the plan, or a changed one if `question.feedback` is given.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    async fn generate(&self, question: PlannerRequest) -> Result<Plan, Fault>;
}

/// One tool call to execute. It is validated and, if necessary, approved; the intent of a write is on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolExecution {
    /// The scene.
    pub scene: String,
    /// The tool.
    pub tool: String,
    /// Its validated arguments.
    pub arguments: Value,
    /// The tenant that is charged.
    pub tenant: TenantId,
    /// The requester.
    pub user: String,
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: u32,
    /// The idempotency key, for writes only: repeating a write under the same key has no further effect.
    pub idempotency_key: Option<String>,
}

/// Executes tool calls.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Executes the call. `scene` executes it as it would be done without this executor. Return
    /// [`Outcome::Unknown`] for a write that may have taken effect.
    async fn execute(&self, call: ToolExecution, scene: &dyn ToolRunner) -> Outcome;
}

/// Executes calls with the scene's own tools.
#[async_trait]
pub trait ToolRunner: Send + Sync {
    /// Calls the tool with its timeout, truncates the result and renders its sentence.
    async fn call(&self, call: &ToolExecution) -> Outcome;
}

/// A failed call about which predefined logic has nothing left to do.
#[derive(Debug, Clone)]
pub struct RecoveryRequest {
    /// The failed call, as a model would get it.
    pub failure: FailedCall,
    /// The options, in the order in which they are offered. Nothing else is carried out.
    pub options: Vec<RecoveryAction>,
    /// What was wrong with the last choice about this failure, if it was returned.
    pub problems: Vec<PlanProblem>,
    /// The request that a model would get.
    pub request: llm::Request,
}

/// The choice of a recovery policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryChoice {
    /// One of `options` of the request.
    pub action: RecoveryAction,
    /// Why, for `explain`; at most 300 characters are kept. Never shown to end users.
    pub reason: String,
}

/// Chooses how a run continues after a call failed, where a model would be asked: from the level `adaptive` on, where
/// predefined logic would give the call up, and within the bounds of consultations.
///
/// A choice is journalled and checked like a model's: what was not offered, or is not possible any more, is returned up
/// to `planning.max_retries` times and not carried out.
#[async_trait]
pub trait Recovery: Send + Sync {
    /// Chooses one of `question.options`. Must not block its thread. After `execution.consultations.timeout_ms`, or
    /// after a panic, predefined logic decides.
    ///
    /// # Errors
    /// If there is no choice. Predefined logic then decides, and the run asks no further questions of this kind.
    async fn recover(&self, question: RecoveryRequest) -> Result<RecoveryChoice, Fault>;
}

/// The replaced parts.
#[derive(Clone, Default)]
pub struct ReplacedParts {
    /// Plans and checks.
    pub planner: Option<Arc<dyn Planner>>,
    /// Creates the plans that people approve.
    pub generator: Option<Arc<dyn Generator>>,
    /// Executes tool calls.
    pub executor: Option<Arc<dyn Executor>>,
    /// Chooses how to continue after a call failed.
    pub recovery: Option<Arc<dyn Recovery>>,
    /// Executes programs.
    pub interpreter: Option<Arc<dyn Interpreter>>,
}

/// The replaced part that answers a question in place of a model.
pub(crate) enum AnsweringPart {
    /// Creates a plan.
    Planner(Arc<dyn Planner>),
    /// Creates a plan that people decide about.
    Generator(Arc<dyn Generator>),
    /// Checks whether the request is answered.
    Checker(Arc<dyn Planner>),
    /// Chooses in this consultation.
    Recovery(Arc<dyn Recovery>, u32),
}

impl ReplacedParts {
    /// Returns the part that answers a question about `subject`; `None` if a model does.
    pub(crate) fn answering(&self, state: &RunState, subject: Subject) -> Option<AnsweringPart> {
        match subject {
            Subject::Plan { .. } => match &self.generator {
                Some(generator) if is_decided_by_people(state) => {
                    Some(AnsweringPart::Generator(generator.clone()))
                }
                _ => self.planner.clone().map(AnsweringPart::Planner),
            },
            Subject::Continuation { .. } => self.planner.clone().map(AnsweringPart::Checker),
            Subject::Consultation { consultation, kind: ConsultationKind::Recovery } => {
                self.recovery.clone().map(|recovery| AnsweringPart::Recovery(recovery, consultation))
            }
            Subject::Scene { .. }
            | Subject::Path { .. }
            | Subject::Node { .. }
            | Subject::Summary { .. }
            | Subject::Program { .. }
            | Subject::Answer
            | Subject::Ranking
            | Subject::Consultation { .. }
            | Subject::Vote { .. } => None,
        }
    }
}

/// Whether people approve the plan that is being made, or asked for its change.
fn is_decided_by_people(state: &RunState) -> bool {
    state.planning.as_ref().is_some_and(|planning| planning.feedback.is_some())
        || state.queued.as_ref().is_some_and(|queued| queued.options.require_approval)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::plan::TaskId;
    use crate::run::{Event, RequestOptions, RunQueued};

    struct Part;

    #[async_trait]
    impl Planner for Part {
        async fn plan(&self, _: PlannerRequest) -> Result<Plan, Fault> {
            Ok(Plan::default())
        }

        async fn check(&self, _: PlannerRequest) -> Result<Verdict, Fault> {
            Ok(Verdict::default())
        }
    }

    #[async_trait]
    impl Generator for Part {
        async fn generate(&self, _: PlannerRequest) -> Result<Plan, Fault> {
            Ok(Plan::default())
        }
    }

    fn queued(require_approval: bool) -> RunState {
        let mut state = RunState::new(RunId(Uuid::nil()));
        let options = RequestOptions { require_approval, ..RequestOptions::default() };
        let queued = RunQueued::new("Go.".to_owned(), "ada".to_owned(), TaskId(Uuid::nil()));
        state.apply(&Event::RunQueued(RunQueued { options, ..queued })).unwrap();
        state
    }

    #[test]
    fn generator_makes_only_the_plans_that_people_approve() {
        let parts = ReplacedParts {
            planner: Some(Arc::new(Part)),
            generator: Some(Arc::new(Part)),
            ..ReplacedParts::default()
        };
        let plan = Subject::Plan { version: 1 };
        assert!(matches!(parts.answering(&queued(true), plan), Some(AnsweringPart::Generator(_))));
        assert!(matches!(parts.answering(&queued(false), plan), Some(AnsweringPart::Planner(_))));
        let generator_alone = ReplacedParts { planner: None, ..parts };
        assert!(generator_alone.answering(&queued(false), plan).is_none());
        assert!(generator_alone.answering(&queued(true), Subject::Continuation { round: 1 }).is_none());
    }

    #[test]
    fn unreplaced_parts_leave_every_question_to_models() {
        let parts = ReplacedParts::default();
        let recovery = Subject::Consultation { consultation: 1, kind: ConsultationKind::Recovery };
        for subject in [Subject::Plan { version: 1 }, Subject::Continuation { round: 1 }, recovery] {
            assert!(parts.answering(&queued(true), subject).is_none());
        }
    }
}
