//! Executes programs of others ([`Program`](crate::program::Program)) in worker processes that have nothing: no
//! environment, no files, no network, no other process, and bounded time and memory.
//!
//! A worker is a process of its own because an interpreter that fails takes its process with it. It confines itself
//! before it reads its first program ([`worker_main`]), gets a program with the outcomes of its calls so far in one frame,
//! and replies in one frame where the program stopped. After an error it is discarded. [`Pool`] is the parent's
//! side: a bounded number of workers, a bounded wait for one, which tenants share in turn, and a deadline after which a worker
//! is killed.
//!
//! **Invariant:** nothing of a program is executed or parsed in the process that asks for it.

#[cfg(feature = "sandbox")]
mod confinement;
mod counts;
#[cfg(feature = "sandbox")]
mod execution;
#[cfg(feature = "sandbox")]
mod frame;
#[cfg(feature = "sandbox")]
mod module;
#[cfg(feature = "sandbox")]
mod module_reader;
mod options;
#[cfg(feature = "sandbox")]
mod places;
#[cfg(feature = "sandbox")]
mod pool;
#[cfg(feature = "sandbox")]
mod printed;
#[cfg(feature = "sandbox")]
mod protocol;
#[cfg(feature = "sandbox")]
mod source;
#[cfg(feature = "sandbox")]
mod values;
#[cfg(feature = "sandbox")]
mod watch;
#[cfg(feature = "sandbox")]
mod worker;
#[cfg(feature = "sandbox")]
mod worker_process;

use std::sync::Arc;

use crate::program::module::ReadModule;
use crate::program::{Interpreter, Unavailable};

pub use counts::ProgramCounts;
pub use options::Options;
#[cfg(feature = "sandbox")]
pub use pool::Pool;
#[cfg(feature = "sandbox")]
pub use worker::{WORKER_COMMAND, worker_main};

/// Returns what executes programs, with these settings. Processes are watched on `runtime`. None without a worker, and in a build
/// without the feature `sandbox`.
pub fn interpreter(
    options: &Options,
    runtime: &tokio::runtime::Handle,
    counts: ProgramCounts,
) -> Option<Arc<dyn Interpreter>> {
    #[cfg(feature = "sandbox")]
    return options.worker.is_some().then(|| {
        let pool: Arc<dyn Interpreter> =
            Arc::new(Pool::new(options.clone()).on(runtime.clone()).counted(counts));
        pool
    });
    #[cfg(not(feature = "sandbox"))]
    {
        let _ = (options, runtime, counts);
        None
    }
}

/// Reads what a file of functions has, or why the interpreter does not take it. A worker reads it, and executes nothing of it;
/// this waits for that.
///
/// # Errors
/// `sandbox.unavailable` if there is no worker, and in a build without the feature `sandbox`.
pub fn read_module(options: &Options, source: &str) -> Result<ReadModule, Unavailable> {
    #[cfg(feature = "sandbox")]
    return module_reader::read(options.worker.as_deref(), source);
    #[cfg(not(feature = "sandbox"))]
    {
        let _ = (options, source);
        let message = "this build has no sandbox: use one with the feature `sandbox`".to_owned();
        Err(Unavailable { code: "sandbox.unavailable", message })
    }
}

/// The same in this process, for tests of what a file may have.
#[cfg(all(test, feature = "sandbox"))]
pub(crate) fn read_module_here(source: &str) -> Result<ReadModule, Unavailable> {
    Ok(module::tests::read_here(source))
}
