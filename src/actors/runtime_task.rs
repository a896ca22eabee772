//! Runs work that holds a database connection on an actor's thread.

use std::future::Future;

/// Runs `work` as a task of the thread's own runtime and waits for it.
///
/// When an actor's thread ends, the futures that its actors await are dropped outside the runtime. A
/// database connection dropped there cannot return to its pool and panics. A spawned task is dropped
/// inside the runtime instead.
pub(crate) async fn run_as_task<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and the caller with it.
            Err(_) => std::future::pending().await,
        },
    }
}
