//! The threads on which providers are called. They are separate from those of callers, so callers on any runtime, or on
//! none, can await a call.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{AbortHandle, JoinHandle};

use super::internal;
use crate::llm::error::Error;
use crate::llm::fair_tasks::FairTasks;

/// Minimum number of tasks that run at the same time on the runtime on which providers are called; it has one thread
/// for each core, and one that queues tasks ([`FairTasks`]).
const THREADS: usize = 2;

/// The runtime on which providers are called.
pub(super) struct Worker {
    /// Absent only while it is dropped.
    runtime: Option<Runtime>,
    pub(super) tasks: FairTasks,
}

impl Worker {
    /// Starts its threads.
    pub(super) fn start() -> Result<Self, Error> {
        let next = AtomicUsize::new(1);
        let places = std::thread::available_parallelism().map_or(THREADS, |n| n.get().max(THREADS));
        let runtime = Builder::new_multi_thread()
            .worker_threads(places + 1)
            .thread_name_fn(move || format!("llm-{}", next.fetch_add(1, Ordering::Relaxed)))
            .enable_all()
            .build();
        let runtime = runtime.map_err(|e| internal(&e))?;
        Ok(Self { runtime: Some(runtime), tasks: FairTasks::new(places) })
    }

    /// Spawns `work`, which must not block.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<JoinHandle<T>, Error> {
        Ok(self.runtime()?.spawn(work))
    }

    pub(super) fn runtime(&self) -> Result<Handle, Error> {
        let runtime = self.runtime.as_ref().ok_or_else(|| internal(&"the gateway has stopped"))?;
        Ok(runtime.handle().clone())
    }

    /// Runs `work` here; ends it when the caller no longer waits.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Error> {
        let task = self.spawn(work)?;
        let _end = AbortOnDrop(task.abort_handle());
        task.await.map_err(|e| internal(&e))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A runtime that is simply dropped waits for its threads, and panics inside another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
