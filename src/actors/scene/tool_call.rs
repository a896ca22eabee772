//! One call of a tool: at work on the tools' threads, within its time, and its outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::places::HeldPlace;
use super::{CallEnd, Options, SceneCall};
use crate::adapt::MAX_MAPPED_BYTES;
use crate::nesting;
use crate::run::{Effect, Fault, FaultClass, Outcome, POSTCONDITION, ResultNotes};
use crate::scene::{Scene, SceneTool};
use crate::tools::{ToolContext, ToolError, ToolErrorKind, bound, phrase};

/// A tool at work on the tools' threads, with what its call holds. If nobody waits for it any more, a read is
/// aborted, and a write completes within its time.
struct ToolTask {
    /// Absent once it has ended or was given up.
    running: Option<(JoinHandle<Result<Value, ToolError>>, HeldPlace)>,
    effect: Effect,
    limit: Duration,
    workers: tokio::runtime::Handle,
}

/// How a tool ended: with its result, unless it panicked, or was given up with a code.
type ToolEnd = Result<Result<Result<Value, ToolError>, tokio::task::JoinError>, &'static str>;

impl ToolTask {
    fn start(
        tool: &SceneTool,
        call: &SceneCall,
        context: ToolContext,
        held: HeldPlace,
        options: &Options,
    ) -> Self {
        let (body, arguments) = (tool.tool.clone(), call.arguments.clone());
        let workers = options.workers.clone();
        let task = workers.spawn(async move { body.call(context, arguments).await }.in_current_span());
        let limit = Duration::from_millis(tool.timeout_ms);
        Self { running: Some((task, held)), effect: tool.effect, limit, workers }
    }

    /// Waits for the end. What the call holds is returned then, because its caller may call again at once.
    async fn end(mut self, cancelled: &CancellationToken) -> ToolEnd {
        let Some((task, _)) = &mut self.running else { return Err("tool.cancelled") };
        let ended = tokio::select! {
            ended = tokio::time::timeout(self.limit, &mut *task) => ended.map_err(|_| "tool.timeout"),
            () = cancelled_if_read(cancelled, self.effect) => Err("tool.cancelled"),
        };
        if ended.is_err() {
            task.abort();
        }
        self.running = None;
        ended
    }
}

impl Drop for ToolTask {
    fn drop(&mut self) {
        let Some((task, held)) = self.running.take() else { return };
        if self.effect == Effect::Read {
            return task.abort();
        }
        let (limit, abort) = (self.limit, task.abort_handle());
        self.workers.spawn(async move {
            if tokio::time::timeout(limit, task).await.is_err() {
                abort.abort();
            }
            drop(held);
        });
    }
}

/// Executes one call, with its timeout and its result bound. A panic of the tool is an ordinary outcome.
pub(super) async fn run_tool(
    scene: &Arc<Scene>,
    options: &Options,
    call: SceneCall,
    held: HeldPlace,
) -> CallEnd {
    let Some(tool) = scene.program_tool(&call.tool).cloned() else {
        let message = format!("scene {} has no tool {}", scene.name, call.tool);
        return Outcome::Refused { error: Fault::new("tool.unknown", message) }.into();
    };
    // A call whose run was cancelled while it waited has certainly done nothing: it stays so.
    if call.cancelled.is_cancelled() {
        let message = format!("{} was cancelled before it began", tool.name);
        return Outcome::Failed { error: Fault::new("tool.cancelled", message) }.into();
    }
    let context = ToolContext {
        principal: call.principal.clone(),
        now: call.now.clone(),
        language: call.language.clone(),
        session: call.session.clone(),
        run: call.run,
        step: call.step,
        idempotency_key: call.idempotency_key.clone(),
        store: options.store.clone().with_tables(&scene.name, scene.tables.clone()),
        documents: call.documents.clone(),
        http: options.http.clone(),
        interpreter: options.interpreter.clone(),
        settings: scene.settings.clone(),
        cancelled: call.cancelled.clone(),
        trace_parent: call.trace_parent,
    };
    let started = Instant::now();
    let ended = ToolTask::start(&tool, &call, context, held, options).end(&call.cancelled).await;
    let end = match ended {
        Ok(Ok(Ok(result))) => end_with_result(&tool, &call, nesting::truncate_deep(result)),
        Ok(Ok(Err(error))) => error_outcome(error, tool.effect).into(),
        Ok(Err(_panic)) => {
            let message = format!("{} failed with an internal error", tool.name);
            unfinished_outcome(&tool, "tool.panicked", message).into()
        }
        Err("tool.cancelled") => {
            let message = format!("{} was cancelled with its run", tool.name);
            unfinished_outcome(&tool, "tool.cancelled", message).into()
        }
        Err(code) => {
            let message = format!("{} did not answer within {} ms", tool.name, tool.timeout_ms);
            unfinished_outcome(&tool, code, message).into()
        }
    };
    tracing::debug!(scene = %scene.name, tool = %tool.name, elapsed = ?started.elapsed(), "tool call ended");
    end
}

/// The end of a call with its whole result.
fn end_with_result(tool: &SceneTool, call: &SceneCall, result: Value) -> CallEnd {
    match judged(tool, call, &result) {
        Ok(rejected) => rejected,
        Err(breaches) => {
            let say = phrase::say(&tool.say, call.language.as_deref(), &result, &call.arguments);
            let (outcome, is_whole) = stored_result(result, tool.max_result_bytes, say);
            CallEnd { outcome, notes: notes(breaches), is_whole }
        }
    }
}

/// The end of a read whose result is not as its tool declares or its step expects: it has failed.
///
/// # Errors
/// Not an end: the result counts. A write was done, so what its result breaches is only noted.
pub(super) fn judged(tool: &SceneTool, call: &SceneCall, result: &Value) -> Result<CallEnd, Vec<String>> {
    let declared = call.is_judged.then_some(&tool.expectations);
    let all = declared.into_iter().chain(call.expected.as_deref());
    let breaches: Vec<String> = all.flat_map(|expected| expected.breaches(&call.arguments, result)).collect();
    if breaches.is_empty() || tool.effect == Effect::Write {
        return Err(breaches);
    }
    let message = format!("the result of {} is not as expected: {}", tool.name, breaches.join("; "));
    let error = Fault::new(POSTCONDITION, message).classed(FaultClass::BadData);
    // A model may be asked about the shape of the whole.
    let mappable = tool.expectations.is_to_be_interpreted(result) && bound::size(result) <= MAX_MAPPED_BYTES;
    let most = if mappable { MAX_MAPPED_BYTES } else { tool.max_result_bytes };
    let rejected = Some(bound::truncate(result.clone(), most));
    let notes = Some(Box::new(ResultNotes { breaches, rejected, mappable, ..ResultNotes::default() }));
    Ok(CallEnd { outcome: Outcome::Failed { error }, notes, is_whole: true })
}

/// What was found about a result that counts, if anything.
pub(super) fn notes(breaches: Vec<String>) -> Option<Box<ResultNotes>> {
    (!breaches.is_empty()).then(|| Box::new(ResultNotes { breaches, ..ResultNotes::default() }))
}

/// The outcome with a result, and with the whole of it where a model is shown less; and whether the whole is there.
fn stored_result(result: Value, shown_bytes: usize, say: Option<String>) -> (Outcome, bool) {
    let size = bound::size(&result);
    let is_shown = size <= shown_bytes.max(bound::MIN_BOUND);
    let whole = (!is_shown && size <= bound::MAX_STORED_BYTES).then(|| result.clone());
    let is_whole = is_shown || whole.is_some();
    (Outcome::Ok { result: bound::truncate(result, shown_bytes), say, whole }, is_whole)
}

/// Resolves when a read's run is cancelled. A write is never interrupted once it has started.
async fn cancelled_if_read(cancelled: &CancellationToken, effect: Effect) {
    match effect {
        Effect::Read => cancelled.cancelled().await,
        Effect::Write => std::future::pending().await,
    }
}

fn error_outcome(error: ToolError, effect: Effect) -> Outcome {
    let fault = Fault::new(&error.code, error.message)
        .classed(error.class)
        .after(error.retry_after)
        .saying(error.say);
    match (error.kind, effect) {
        (ToolErrorKind::Refused, _) => Outcome::Refused { error: fault },
        (ToolErrorKind::Unknown, Effect::Write) => Outcome::Unknown { error: fault },
        // A read has no effect, so an unknown outcome is a failure.
        (ToolErrorKind::Failed, _) | (ToolErrorKind::Unknown, Effect::Read) => {
            Outcome::Failed { error: fault }
        }
    }
}

fn unfinished_outcome(tool: &SceneTool, code: &str, message: String) -> Outcome {
    let class = if code == "tool.timeout" { FaultClass::Timeout } else { FaultClass::Other };
    match tool.effect {
        Effect::Read => Outcome::Failed { error: Fault::new(code, message).classed(class) },
        Effect::Write => Outcome::Unknown {
            error: Fault::new(code, format!("{message}; whether it took effect is unknown")).classed(class),
        },
    }
}
