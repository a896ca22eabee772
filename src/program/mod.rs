//! Programs that are plans: Python that a model wrote, whose calls are calls of the run. And tools in Python, which an author
//! of a scene wrote: their calls are of declared functions of the host.
//!
//! A waiting program is its source and the outcomes of its calls so far: it is executed again from its start with
//! these ([`Interpreter::execute`]), so nothing of an interpreter is stored, and a program may wait for days and over
//! restarts. Everything in this module is pure; the process that executes programs is in `sandbox/`.

pub mod contract;
pub mod module;
pub mod names;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use contract::ProgramResult;

/// A program, everything that it may see, and the outcomes of the calls that it already made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// The Python source.
    pub source: String,
    /// The functions that it may call. Anything else is an unknown name.
    pub functions: Vec<ProgramFunction>,
    /// The time of its clock for as long as it lives, in milliseconds since 1970 UTC.
    pub now_ms: i64,
    /// Tells it from an equal program of another run, which executes in another worker. Programs have no random numbers.
    pub seed: u64,
    /// Its calls in their order, with their outcomes.
    pub calls: Vec<PastCall>,
    /// Bounds of this execution.
    pub limits: ProgramLimits,
    /// For a tool in Python: what is called of the functions that the source defines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<ProgramEntry>,
}

/// The function that a tool in Python is, and its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramEntry {
    /// Its name in the source.
    pub function: String,
    /// Its arguments by name.
    pub arguments: Map<String, Value>,
    /// The value of the name `context`.
    pub context: Value,
    /// Seconds that its local time is ahead of UTC.
    pub utc_offset_s: i32,
}

/// A tool, as a program calls it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFunction {
    /// Its name, as `scene.tool`.
    pub name: String,
    /// The names of its parameters, in the order of its schema. Positional arguments of a call get these names.
    pub parameters: Vec<String>,
}

/// Bounds of the executions of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramLimits {
    /// Processor time of the interpreter in one execution, in milliseconds.
    pub time_ms: u64,
    /// Time of all executions of one program together, in milliseconds. Without the waits for its calls and for a worker.
    pub total_ms: u64,
    /// Memory of the interpreter in one execution, in bytes.
    pub memory_bytes: u64,
    /// What is kept of what it prints, in bytes.
    pub printed_bytes: usize,
    /// Maximum number of calls that it may make.
    pub calls: u32,
}

impl Default for ProgramLimits {
    fn default() -> Self {
        Self {
            time_ms: 2_000,
            total_ms: 30_000,
            memory_bytes: 64 * 1024 * 1024,
            printed_bytes: 8 * 1024,
            calls: 64,
        }
    }
}

/// A call that an earlier execution of the program made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastCall {
    /// The call.
    pub call: ProgramCall,
    /// The outcome that the program gets.
    pub outcome: PastOutcome,
}

/// A call that a program makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramCall {
    /// The name, as `scene.tool`.
    pub function: String,
    /// Its arguments by name, also those that the program wrote by position.
    pub arguments: Map<String, Value>,
}

/// The outcome of a call, as the program sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PastOutcome {
    /// It returned this value.
    Returned(Value),
    /// It raised an exception (`ToolError`) with this message.
    Raised(String),
}

/// Where an execution stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "snake_case")]
pub enum Stop {
    /// At a call whose outcome is not known yet.
    Call {
        /// The call.
        call: ProgramCall,
        /// The line of the program, from 1, where it is known.
        line: Option<u32>,
    },
    /// At its end.
    Finished(Finished),
    /// At an error of the program, or of what it was given.
    Fault(ProgramFault),
}

/// The values that a program left when it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Its output, within the bound.
    pub printed: String,
    /// Whether more was printed than was kept.
    pub cut: bool,
    /// The value of `STATUS`, if there is such a name.
    pub status: Option<Value>,
    /// The value of `answer_text`.
    pub answer_text: Option<Value>,
    /// The value of `answer_rows`.
    pub answer_rows: Option<Value>,
    /// What the function of [`Program::entry`] returned. The names above are not read then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<Value>,
    /// The value of `DRY_RUN`.
    pub dry_run: Option<Value>,
}

/// Why a program did not come to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramFault {
    /// A stable code: `code.syntax`, `code.error`, `code.time`, `code.memory`, `code.calls`, `code.diverged`,
    /// `code.crashed`, `code.arguments`, `code.refused`, `code.call` for the error of the last recorded call, which the
    /// program does not handle; and of the host: `code.contract`, `code.changed`, `code.total_time`.
    pub code: String,
    /// What is wrong, for the author of the program. That of `code.error` contains the message of the exception,
    /// also of one that a call raised and that the program does not handle.
    pub message: String,
    /// The line of the program, from 1, where it is known.
    pub line: Option<u32>,
    /// Its output before, within the bound.
    pub printed: String,
}

/// The outcome of an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutedProgram {
    /// Where it stopped.
    pub stop: Stop,
    /// Milliseconds that it took, without the wait for its turn; `None` counts the wait, too.
    pub millis: Option<u64>,
}

/// Executes programs.
#[async_trait]
pub trait Interpreter: Send + Sync + std::fmt::Debug {
    /// Executes a program from its start until it stops. The same program stops at the same place: what could differ
    /// (the clock) is part of it. A call that differs from the recorded one in name or arguments is
    /// `code.diverged`, as are recorded calls that the program does not make.
    ///
    /// # Errors
    /// Where no program can be executed now: there is no worker, or none is free in time. Nothing happened then.
    async fn execute(&self, program: &Program) -> Result<Stop, Unavailable>;

    /// The same for a tenant, which shares the places of the interpreter with others, and with the time that it took. By
    /// default, as [`Self::execute`].
    ///
    /// # Errors
    /// As [`Self::execute`].
    async fn execute_for(&self, tenant: &str, program: &Program) -> Result<ExecutedProgram, Unavailable> {
        let _ = tenant;
        Ok(ExecutedProgram { stop: self.execute(program).await?, millis: None })
    }

    /// The bounds of executions.
    fn limits(&self) -> ProgramLimits {
        ProgramLimits::default()
    }

    /// What a file of functions has, for scenes with tools in Python that are loaded without a worker of the sandbox. Nothing
    /// of it is executed. Called on a thread that may wait. By default, no file is read.
    ///
    /// # Errors
    /// Where nothing can read files.
    fn read_module(&self, source: &str) -> Result<module::ReadModule, Unavailable> {
        let _ = source;
        let message =
            "this interpreter reads no files: set `sandbox.worker`, or implement `Interpreter::read_module`";
        Err(Unavailable { code: "sandbox.unavailable", message: message.to_owned() })
    }
}

/// Why no program can be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unavailable {
    /// `sandbox.unavailable` or `sandbox.busy`.
    pub code: &'static str,
    /// The missing thing, and the remedy.
    pub message: String,
}
