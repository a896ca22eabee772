//! Payloads of events about the programs of steps of kind code.

use serde::{Deserialize, Serialize};

use super::{Fault, RequestedCall};
use crate::program::{ProgramCall, ProgramFault, ProgramResult};

/// Where an execution of a program stopped, and what that means for its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "stop", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ProgramStop {
    /// At a call whose outcome the program needs.
    Call {
        /// The call as the program wrote it: what it has to make again when it is executed again.
        written: ProgramCall,
        /// The line of the program, from 1, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
        /// Of a read: whether a value of its arguments is neither said nor found, so that its result grounds nothing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_untraced: bool,
        /// The call as it is made.
        requested: Box<RequestedCall>,
        /// What the program came to, where the call commits what it staged: once that is done, the program is not executed again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ends: Option<Box<ProgramResult>>,
    },
    /// At its end, with what the contract asks for.
    Finished {
        /// What it came to.
        result: ProgramResult,
        /// What it printed, within a bound.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        printed: String,
        /// Whether more was printed than was kept.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
    },
    /// At a fault of the program: also an end that breaks the contract.
    Fault {
        /// The fault.
        fault: ProgramFault,
    },
    /// Nothing was executed: there is no sandbox.
    Unavailable {
        /// The reason.
        error: Fault,
    },
}

impl ProgramStop {
    /// Its name in the journal.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
