//! One call of a tool: at work on the tools' threads, within its time, and its outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::places::HeldPlace;
use super::{Options, SceneCall};
use crate::nesting;
use crate::run::{Effect, Fault, Outcome};
use crate::scene::{CallEnd, Scene, SceneTool};
use crate::tools::{ToolContext, ToolError};

/// A tool at work on the tools' threads, with what its call holds. If nobody waits for it any more, a read is
/// aborted, and a write completes within its time.
struct ToolTask {
    /// Absent once it has ended or was given up.
    running: Option<(JoinHandle<Result<Value, ToolError>>, HeldPlace)>,
    effect: Effect,
    limit: Duration,
    workers: tokio::runtime::Handle,
}

enum ToolEnd {
    Returned(Result<Value, ToolError>),
    Panicked,
    /// Given up, because its run was cancelled.
    Cancelled,
    /// Given up, because its time is over.
    TimedOut,
}

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
        let Some((task, _)) = &mut self.running else { return ToolEnd::Cancelled };
        let end = tokio::select! {
            ended = tokio::time::timeout(self.limit, &mut *task) => match ended {
                Ok(Ok(returned)) => ToolEnd::Returned(returned),
                Ok(Err(_panic)) => ToolEnd::Panicked,
                Err(_elapsed) => ToolEnd::TimedOut,
            },
            () = cancelled_if_read(cancelled, self.effect) => ToolEnd::Cancelled,
        };
        // Of a tool that has ended, this does nothing.
        task.abort();
        self.running = None;
        end
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
    let Some(tool) = scene.program_tool(&call.tool) else {
        let message = format!("scene {} has no tool {}", scene.name, call.tool);
        return Outcome::Refused { error: Fault::new("tool.unknown", message) }.into();
    };
    // A call whose run was cancelled while it waited has certainly done nothing, so it is not started.
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
    let end = match ToolTask::start(tool, &call, context, held, options).end(&call.cancelled).await {
        ToolEnd::Returned(Ok(result)) => tool.end_with_result(call.terms(), nesting::truncate_deep(result)),
        ToolEnd::Returned(Err(error)) => tool.end_with_error(error),
        ToolEnd::Panicked => {
            let message = format!("{} failed with an internal error", tool.name);
            tool.end_unfinished("tool.panicked", message)
        }
        ToolEnd::Cancelled => {
            let message = format!("{} was cancelled with its run", tool.name);
            tool.end_unfinished("tool.cancelled", message)
        }
        ToolEnd::TimedOut => {
            let message = format!("{} did not answer within {} ms", tool.name, tool.timeout_ms);
            tool.end_unfinished("tool.timeout", message)
        }
    };
    tracing::debug!(scene = %scene.name, tool = %tool.name, elapsed = ?started.elapsed(), "tool call ended");
    end
}

/// Resolves when a read's run is cancelled. A write is never interrupted once it has started.
async fn cancelled_if_read(cancelled: &CancellationToken, effect: Effect) {
    match effect {
        Effect::Read => cancelled.cancelled().await,
        Effect::Write => std::future::pending().await,
    }
}
