//! The work of a driver that is under way. Dropping it ends it.

use std::collections::BTreeSet;
use std::pin::Pin;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use super::{EndedExecution, FinishedAction};

type UnderWay<T> = FuturesUnordered<Pin<Box<dyn Future<Output = T> + Send>>>;

/// Questions to models and calls of tools.
#[derive(Default)]
pub(super) struct ActionsUnderWay {
    all: UnderWay<FinishedAction>,
    stop: CancellationToken,
}

impl ActionsUnderWay {
    pub(super) fn start(&mut self, action: impl Future<Output = FinishedAction> + Send + 'static) {
        self.all.push(Box::pin(action));
    }

    /// What tells an action that its outcome is no longer needed.
    pub(super) fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Tells all actions so. They still have to be awaited or dropped.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// The next one that ends; `None` if none is under way.
    pub(super) async fn next(&mut self) -> Option<FinishedAction> {
        self.all.next().await
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// Executions of programs, at most one of a step.
#[derive(Default)]
pub(super) struct ExecutionsUnderWay {
    all: UnderWay<EndedExecution>,
    steps: BTreeSet<u32>,
}

impl ExecutionsUnderWay {
    /// Starts to execute the program of a step.
    pub(super) fn start(
        &mut self,
        step: u32,
        execution: impl Future<Output = EndedExecution> + Send + 'static,
    ) {
        self.steps.insert(step);
        self.all.push(Box::pin(execution));
    }

    /// The next one that ends; `None` if none is under way.
    pub(super) async fn next(&mut self) -> Option<EndedExecution> {
        let ended = self.all.next().await?;
        self.steps.remove(&ended.0);
        Some(ended)
    }

    pub(super) fn is_executing(&self, step: u32) -> bool {
        self.steps.contains(&step)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
