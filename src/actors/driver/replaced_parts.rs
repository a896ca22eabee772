//! Calls of the parts that a library user has replaced. Their results become ordinary replies and outcomes.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::RunServices;
use crate::actors::scene::{self, CallEnd};
use crate::llm::{self, Gateway};
use crate::nesting;
use crate::parts::{Executor, Generator, Planner, PlannerRequest, ToolExecution, ToolRunner};
use crate::planner::{CHECK_CONTINUATION, CREATE_PLAN};
use crate::run::{Fault, Outcome, Reply, ReplyCall, RunState, Subject};

/// The model name in the reply of a replaced part.
const REPLACED_MODEL: &str = "replaced";

/// A request to a replaced part.
pub(super) struct PartRequest {
    part: PartCall,
    question: PlannerRequest,
    /// Spawns the part's task, so that a panic in it does not affect the driver.
    gateway: Gateway,
}

enum PartCall {
    Plan(Arc<dyn Planner>),
    Generate(Arc<dyn Generator>),
    Check(Arc<dyn Planner>),
}

impl PartRequest {
    /// The request for `subject`, if the part that answers it was replaced.
    pub(super) fn for_subject(
        shared: &RunServices,
        state: &RunState,
        subject: Subject,
        request: &llm::Request,
    ) -> Option<Self> {
        let feedback = state.planning.as_ref().and_then(|planning| planning.feedback.clone());
        let decided_by_people =
            feedback.is_some() || state.queued.as_ref().is_some_and(|queued| queued.options.require_approval);
        let (planner, generator) = (&shared.replaced.planner, &shared.replaced.generator);
        let part = match subject {
            Subject::Plan { .. } => match (generator, planner) {
                (Some(generator), _) if decided_by_people => PartCall::Generate(generator.clone()),
                (_, Some(planner)) => PartCall::Plan(planner.clone()),
                _ => return None,
            },
            Subject::Continuation { .. } => PartCall::Check(planner.clone()?),
            Subject::Scene { .. }
            | Subject::Path { .. }
            | Subject::Node { .. }
            | Subject::Answer
            | Subject::Ranking
            | Subject::Consultation { .. } => {
                return None;
            }
        };
        let question = PlannerRequest {
            state: Arc::new(state.clone()),
            catalogue: shared.catalogue.clone(),
            request: request.clone(),
            feedback,
        };
        Some(Self { part, question, gateway: shared.gateway.clone() })
    }

    /// The part's answer, as the call of the forced function that a model would have made.
    pub(super) async fn answer(self, stop: &CancellationToken) -> Result<Reply, Fault> {
        let Self { part, question, gateway } = self;
        let work = async move {
            match part {
                PartCall::Plan(planner) => forced_call_reply(CREATE_PLAN, &planner.plan(question).await?),
                PartCall::Generate(generator) => {
                    forced_call_reply(CREATE_PLAN, &generator.generate(question).await?)
                }
                PartCall::Check(planner) => {
                    forced_call_reply(CHECK_CONTINUATION, &planner.check(question).await?)
                }
            }
        };
        let task = gateway.spawn(work).map_err(Fault::from)?;
        let abort = task.abort_handle();
        tokio::select! {
            said = task => said.unwrap_or_else(|_| {
                Err(Fault::new("planner.panicked", "the custom planner panicked"))
            }),
            () = stop.cancelled() => {
                abort.abort();
                Err(Fault::new("llm.cancelled", "the run ended before this was answered"))
            }
        }
    }
}

fn forced_call_reply<T: serde::Serialize>(function: &str, said: &T) -> Result<Reply, Fault> {
    let arguments = serde_json::to_string(said).map_err(|error| {
        Fault::new("planner.unwritable", format!("the custom planner's reply cannot be serialized: {error}"))
    })?;
    let call = ReplyCall { id: "replaced_1".to_owned(), name: function.to_owned(), arguments };
    Ok(Reply {
        calls: vec![call],
        finish_reason: Some("tool_calls".to_owned()),
        model: REPLACED_MODEL.to_owned(),
        ..Reply::default()
    })
}

/// Executes a call with a replaced executor.
pub(super) async fn execute_with(
    gateway: &Gateway,
    executor: Arc<dyn Executor>,
    name: String,
    scene: scene::Handle,
    work: scene::SceneCall,
    writes: bool,
) -> CallEnd {
    let execution = ToolExecution {
        scene: name,
        tool: work.tool.clone(),
        arguments: work.arguments.clone(),
        tenant: work.principal.tenant.clone(),
        user: work.principal.user.clone(),
        session: work.session.clone(),
        run: work.run,
        step: work.step,
        idempotency_key: work.idempotency_key.clone(),
    };
    let own = Arc::new(OriginalScene { scene, work, last: Mutex::default() });
    let within = own.clone();
    let task = gateway.spawn(async move { executor.execute(execution, &*within).await });
    let error = match task {
        Ok(task) => match task.await {
            Ok(outcome) => return own.end_of(outcome),
            Err(_) => Fault::new("executor.panicked", "the custom executor panicked"),
        },
        // The call never started.
        Err(error) => return Outcome::Failed { error: error.into() }.into(),
    };
    if writes { Outcome::Unknown { error }.into() } else { Outcome::Failed { error }.into() }
}

struct OriginalScene {
    scene: scene::Handle,
    work: scene::SceneCall,
    /// How the scene's own tool ended, if it was called.
    last: Mutex<Option<CallEnd>>,
}

impl OriginalScene {
    /// The end of the call with the outcome that the executor gave. What the scene's own tool returned was compared with
    /// what it declares when it was whole.
    fn end_of(&self, outcome: Outcome) -> CallEnd {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        let own = last.filter(|end| end.outcome == outcome);
        match (own, outcome) {
            (Some(end), Outcome::Ok { result, say, .. }) => {
                let is_whole = end.is_whole && !matches!(end.outcome, Outcome::Ok { whole: Some(_), .. });
                CallEnd { outcome: Outcome::Ok { result, say, whole: None }, is_whole, ..end }
            }
            (Some(end), _) => end,
            (None, Outcome::Ok { result, say, .. }) => {
                self.scene.judged(&self.work, nesting::truncate_deep(result), say)
            }
            (None, outcome) => outcome.into(),
        }
    }
}

#[async_trait]
impl ToolRunner for OriginalScene {
    async fn call(&self, call: &ToolExecution) -> Outcome {
        let work = scene::SceneCall {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            idempotency_key: call.idempotency_key.clone(),
            ..self.work.clone()
        };
        let end = self.scene.call(work).await;
        let outcome = end.outcome.clone();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        outcome
    }
}
