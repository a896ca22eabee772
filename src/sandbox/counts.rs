//! How executions of programs ended, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(feature = "sandbox")]
use crate::program::{Stop, Unavailable};

/// The ends of an execution, as metrics name them: a call, the end of the program, the codes of faults without `code.`, and
/// the codes without `sandbox.` of executions that did not begin.
const OUTCOMES: [&str; 14] = [
    "call", "finished", "syntax", "error", "time", "memory", "calls", "diverged", "crashed", "arguments",
    "refused", "busy", "unavailable", "other",
];

/// Counts executions by how they ended; clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct ProgramCounts(Arc<[AtomicU64; OUTCOMES.len()]>);

impl ProgramCounts {
    #[cfg(feature = "sandbox")]
    pub(crate) fn record(&self, ended: &Result<Stop, Unavailable>) {
        let outcome = match ended {
            Ok(Stop::Call { .. }) => "call",
            Ok(Stop::Finished(_)) => "finished",
            Ok(Stop::Fault(fault)) => fault.code.trim_start_matches("code."),
            Err(unavailable) => unavailable.code.trim_start_matches("sandbox."),
        };
        let at = OUTCOMES.iter().position(|name| *name == outcome).unwrap_or(OUTCOMES.len() - 1);
        self.0[at].fetch_add(1, Relaxed);
    }

    /// The number of executions by how they ended.
    pub fn by_outcome(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        OUTCOMES.into_iter().zip(self.0.iter().map(|count| count.load(Relaxed)))
    }
}
