//! Calls of the parts that a library user has replaced. Their results become ordinary replies and outcomes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::RunServices;
use crate::actors::scene;
use crate::llm::{self, Gateway};
use crate::mutex::lock;
use crate::nesting;
use crate::parts::{
    AnsweringPart, Executor, Generator, Planner, PlannerRequest, Recovery, RecoveryChoice, RecoveryRequest,
    ToolExecution, ToolRunner,
};
use crate::planner::{self, CHECK_CONTINUATION, CHOOSE_RECOVERY, CREATE_PLAN};
use crate::run::{AskStatus, Fault, FaultClass, Outcome, Reply, ReplyCall, RunState, Subject};
use crate::scene::CallEnd;

pub(super) struct PartRequest {
    part: PartCall,
    timeout: Duration,
    /// Spawns the part's task, so that a panic in it does not affect the driver.
    gateway: Gateway,
}

enum PartCall {
    Plan(Arc<dyn Planner>, PlannerRequest),
    Generate(Arc<dyn Generator>, PlannerRequest),
    Check(Arc<dyn Planner>, PlannerRequest),
    Recover(Arc<dyn Recovery>, RecoveryRequest),
}

/// Plans and checks end with their run.
const UNLIMITED: Duration = Duration::MAX;

impl PartRequest {
    /// The request for `subject`, if a replaced part answers it.
    pub(super) fn new(
        shared: &RunServices,
        state: &RunState,
        subject: Subject,
        request: &llm::Request,
    ) -> Option<Self> {
        let question = || PlannerRequest {
            state: Arc::new(state.clone()),
            catalogue: shared.catalogue.clone(),
            request: request.clone(),
            feedback: state.planning.as_ref().and_then(|planning| planning.feedback.clone()),
        };
        let mut timeout = UNLIMITED;
        let part = match shared.replaced.answering(state, subject)? {
            AnsweringPart::Planner(planner) => PartCall::Plan(planner, question()),
            AnsweringPart::Generator(generator) => PartCall::Generate(generator, question()),
            AnsweringPart::Checker(planner) => PartCall::Check(planner, question()),
            AnsweringPart::Recovery(recovery, consultation) => {
                timeout = Duration::from_millis(state.settings().consultations.timeout_ms);
                PartCall::Recover(
                    recovery,
                    recovery_request(shared, state, (subject, consultation), request)?,
                )
            }
        };
        Some(Self { part, timeout, gateway: shared.gateway.clone() })
    }

    /// The part's answer, as the call of the forced function that a model would have made.
    pub(super) async fn answer(self, stop: &CancellationToken) -> Result<Reply, Fault> {
        let Self { part, timeout, gateway } = self;
        let name = part.name();
        let task = gateway.spawn(part.answer().in_current_span()).map_err(Fault::from)?;
        let abort = task.abort_handle();
        tokio::select! {
            reply = task => reply.unwrap_or_else(|_| {
                Err(Fault::new(&format!("{name}.panicked"), format!("the custom {name} panicked")))
            }),
            () = stop.cancelled() => {
                abort.abort();
                Err(Fault::new("llm.cancelled", "the run ended before this was answered"))
            }
            () = tokio::time::sleep(timeout) => {
                abort.abort();
                let message = format!("the custom {name} gave no reply within {} ms", timeout.as_millis());
                Err(Fault::new(&format!("{name}.timeout"), message).classed(FaultClass::Timeout))
            }
        }
    }
}

impl PartCall {
    /// Its name in codes and messages of its faults.
    fn name(&self) -> &'static str {
        match self {
            Self::Plan(..) | Self::Generate(..) | Self::Check(..) => "planner",
            Self::Recover(..) => "recovery",
        }
    }

    async fn answer(self) -> Result<Reply, Fault> {
        match self {
            Self::Plan(planner, question) => forced_call_reply(CREATE_PLAN, &planner.plan(question).await?),
            Self::Generate(generator, question) => {
                forced_call_reply(CREATE_PLAN, &generator.generate(question).await?)
            }
            Self::Check(planner, question) => {
                forced_call_reply(CHECK_CONTINUATION, &planner.check(question).await?)
            }
            Self::Recover(recovery, question) => {
                // A code of the gateway would count as its refusal to ask.
                let failed = |fault: Fault| {
                    Fault::new("recovery.failed", format!("{}: {}", fault.code, fault.message))
                };
                let RecoveryChoice { action, reason } = recovery.recover(question).await.map_err(failed)?;
                forced_call_reply(CHOOSE_RECOVERY, &json!({"reason": reason, "choice": action.id()}))
            }
        }
    }
}

/// The facts about a failed call that a policy of the library's user gets: the same as a model gets.
fn recovery_request(
    shared: &RunServices,
    state: &RunState,
    (subject, consultation): (Subject, u32),
    request: &llm::Request,
) -> Option<RecoveryRequest> {
    let last = state.tries(subject).last().and_then(|call| state.asks.get(call));
    let problems = match last.map(|ask| &ask.status) {
        Some(AskStatus::Rejected { problems, .. }) => problems.clone(),
        _ => Vec::new(),
    };
    Some(RecoveryRequest {
        failure: planner::consulted_call(state, &shared.catalogue, consultation)?,
        options: state.consultations.get(&consultation)?.options.clone(),
        problems,
        request: request.clone(),
    })
}

fn forced_call_reply<T: serde::Serialize>(function: &str, reply: &T) -> Result<Reply, Fault> {
    let arguments = serde_json::to_string(reply).map_err(|error| {
        Fault::new("planner.unwritable", format!("the custom planner's reply cannot be serialized: {error}"))
    })?;
    let call = ReplyCall { id: "replaced_1".to_owned(), name: function.to_owned(), arguments };
    Ok(Reply {
        calls: vec![call],
        finish_reason: Some("tool_calls".to_owned()),
        model: Reply::REPLACED_MODEL.to_owned(),
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
    let original = Arc::new(OriginalScene { scene, work, last: Mutex::default() });
    let runner = original.clone();
    let execution = async move { executor.execute(execution, &*runner).await };
    let task = gateway.spawn(execution.in_current_span());
    let error = match task {
        Ok(task) => match task.await {
            Ok(outcome) => return original.end_of(outcome),
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
    /// The end of the call with the outcome that the executor gave. A result of the scene's own tool was compared with its
    /// declaration before it was cut.
    fn end_of(&self, outcome: Outcome) -> CallEnd {
        let last = lock(&self.last).take();
        let unchanged = last.filter(|end| end.outcome == outcome);
        match (unchanged, outcome) {
            (Some(end), Outcome::Ok { result, say, .. }) => {
                let is_whole = end.is_whole && !matches!(end.outcome, Outcome::Ok { whole: Some(_), .. });
                CallEnd { outcome: Outcome::Ok { result, say, whole: None }, is_whole, ..end }
            }
            (Some(end), _) => end,
            (None, Outcome::Ok { result, say, .. }) => {
                self.scene.end_with_given_result(&self.work, nesting::truncate_deep(result), say)
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
        *lock(&self.last) = Some(end);
        outcome
    }
}
