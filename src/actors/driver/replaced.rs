//! Parts that a library user has put in the place of ours, asked by a driver: what they say becomes a reply
//! or an outcome like any other.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::actors::scene;
use crate::llm::{self, Gateway};
use crate::nested;
use crate::parts::{Execution, Executor, Generator, Planner, Question, Scenes};
use crate::planner::{CHECK_CONTINUATION, CREATE_PLAN};
use crate::run::{Fault, Outcome, Reply, ReplyCall, RunState, Subject};

/// What a reply of a replaced part says it came from.
const MODEL: &str = "replaced";

/// A question to a replaced part.
pub(super) struct Asked {
    part: Part,
    question: Question,
    /// It runs in a task of its own: a panic in it is its own.
    gateway: Gateway,
}

enum Part {
    Plan(Arc<dyn Planner>),
    Generate(Arc<dyn Generator>),
    Check(Arc<dyn Planner>),
}

impl Asked {
    /// The question, where somebody has replaced who is asked about `subject`.
    pub(super) fn of(
        shared: &Shared,
        state: &RunState,
        subject: Subject,
        request: &llm::Request,
    ) -> Option<Self> {
        let feedback = state.planning.as_ref().and_then(|planning| planning.feedback.clone());
        let decided_by_people =
            feedback.is_some() || state.queued.as_ref().is_some_and(|queued| queued.require_approval);
        let (planner, generator) = (&shared.replaced.planner, &shared.replaced.generator);
        let part = match subject {
            Subject::Plan { .. } => match (generator, planner) {
                (Some(generator), _) if decided_by_people => Part::Generate(generator.clone()),
                (_, Some(planner)) => Part::Plan(planner.clone()),
                _ => return None,
            },
            Subject::Continuation { .. } => Part::Check(planner.clone()?),
            Subject::Scene { .. } | Subject::Answer => return None,
        };
        let question = Question {
            state: Arc::new(state.clone()),
            catalogue: shared.catalogue.clone(),
            request: request.clone(),
            feedback,
        };
        Some(Self { part, question, gateway: shared.gateway.clone() })
    }

    /// What it says, as the call of the forced function that a model would have made.
    pub(super) async fn answer(self, stop: &CancellationToken) -> Result<Reply, Fault> {
        let Self { part, question, gateway } = self;
        let work = async move {
            match part {
                Part::Plan(planner) => forced(CREATE_PLAN, &planner.plan(question).await?),
                Part::Generate(generator) => forced(CREATE_PLAN, &generator.generate(question).await?),
                Part::Check(planner) => forced(CHECK_CONTINUATION, &planner.check(question).await?),
            }
        };
        let task = gateway.spawn(work).map_err(Fault::from)?;
        let abort = task.abort_handle();
        tokio::select! {
            said = task => said.unwrap_or_else(|_| {
                Err(Fault::new("planner.panicked", "the planner that was put in place of ours panicked"))
            }),
            () = stop.cancelled() => {
                abort.abort();
                Err(Fault::new("llm.cancelled", "the run ended before this was answered"))
            }
        }
    }
}

fn forced<T: serde::Serialize>(function: &str, said: &T) -> Result<Reply, Fault> {
    let arguments = serde_json::to_string(said)
        .map_err(|error| Fault::new("planner.unwritable", format!("what the planner said: {error}")))?;
    let call = ReplyCall { id: "replaced_1".to_owned(), name: function.to_owned(), arguments };
    Ok(Reply {
        calls: vec![call],
        finish_reason: Some("tool_calls".to_owned()),
        model: MODEL.to_owned(),
        ..Reply::default()
    })
}

/// Has a replaced executor carry a call out.
pub(super) async fn execute(
    gateway: &Gateway,
    executor: Arc<dyn Executor>,
    name: String,
    scene: scene::Handle,
    work: scene::Call,
    writes: bool,
) -> Outcome {
    let execution = Execution {
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
    let own = OwnScene { scene, work };
    let task = gateway.spawn(async move { executor.execute(execution, &own).await });
    let error = match task {
        Ok(task) => match task.await {
            Ok(Outcome::Ok { result, say }) => {
                return Outcome::Ok { result: nested::shallow(result), say };
            }
            Ok(outcome) => return outcome,
            Err(_) => Fault::new("executor.panicked", "the executor that was put in place of ours panicked"),
        },
        // It never began.
        Err(error) => return Outcome::Failed { error: error.into() },
    };
    if writes { Outcome::Unknown { error } } else { Outcome::Failed { error } }
}

struct OwnScene {
    scene: scene::Handle,
    work: scene::Call,
}

#[async_trait]
impl Scenes for OwnScene {
    async fn call(&self, call: &Execution) -> Outcome {
        let work = scene::Call {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            idempotency_key: call.idempotency_key.clone(),
            ..self.work.clone()
        };
        self.scene.call(work).await
    }
}
