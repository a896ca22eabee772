//! The tasks of processes of their own.

#[path = "../shared/worker.rs"]
mod process;

use serde::{Deserialize, Serialize};

use super::{Failure, recovery, sleeping};

pub use process::{WORD, done};

/// What a worker does.
#[derive(Debug, Serialize, Deserialize)]
pub enum Work {
    /// Resumes unfinished runs, and then executes fresh requests.
    Recover(recovery::Work),
    /// Starts conversations and lets them be unloaded.
    Converse(sleeping::Work),
}

/// The main function of a worker.
pub fn main() -> Result<(), Failure> {
    process::main(|work: Work| async move {
        Ok(match work {
            Work::Recover(work) => serde_json::to_value(work.carry_out().await?)?,
            Work::Converse(work) => serde_json::to_value(work.carry_out().await?)?,
        })
    })
}
