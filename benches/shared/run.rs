//! What benchmarks that measure in a runtime have in common.

use std::process::ExitCode;

/// Why a measurement failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Measures in a runtime; the argument says whether `--quick` was given.
pub fn run<F: Future<Output = Result<(), Failure>>>(measure: impl FnOnce(bool) -> F) -> ExitCode {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::from);
    match runtime.and_then(|runtime| runtime.block_on(measure(quick))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
