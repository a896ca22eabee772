//! Work that holds a connection to the database, on an actor's thread.

use std::future::Future;

/// Carries `work` out as a task of the thread's own runtime, and waits for it.
///
/// When a thread of actors ends, what its actors wait for is dropped after the runtime was left, and a
/// connection that is dropped there cannot be given back to its pool: it panics. A task of the runtime
/// is dropped inside of it.
pub(crate) async fn aside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and whoever waits here ends with it.
            Err(_) => std::future::pending().await,
        },
    }
}
