//! The messages between a worker and its parent. Frames are in `frame`.

use serde::{Deserialize, Serialize};

use crate::program::Stop;

/// The version of this protocol; a worker of another release is not used.
pub(super) const PROTOCOL: u32 = 3;

/// The largest frame to a worker, in bytes: a program with the results of its calls.
pub(super) const MAX_PROGRAM_BYTES: usize = 16 * 1024 * 1024;

/// The largest frame of a worker, in bytes: what a program leaves, what it printed, and some words.
pub(super) const MAX_REPLY_BYTES: usize = MAX_VALUE_BYTES + 256 * 1024;

/// The largest source of a program, in bytes.
pub(super) const MAX_SOURCE_BYTES: usize = 64 * 1024;

/// The largest arguments of a call, as JSON in bytes.
pub(super) const MAX_ARGUMENT_BYTES: usize = 256 * 1024;

/// The largest values that a program may leave, all together, as JSON in bytes.
pub(super) const MAX_VALUE_BYTES: usize = 1024 * 1024;

/// The longest message of a fault, in characters.
pub(super) const MAX_MESSAGE_CHARS: usize = 600;

/// Milliseconds beyond the time of an execution after which its worker ends itself: what is not the
/// interpreter's time (parsing, conversions), and what the interpreter does between two looks at the clock.
pub(super) const WORKER_GRACE_MS: u64 = 250;

/// Milliseconds beyond that after which the parent kills the worker.
pub(super) const PARENT_GRACE_MS: u64 = 750;

/// Milliseconds after which a worker gives up to read a file of functions: the machine is busy.
pub(super) const READ_TIME_MS: u64 = 30_000;

/// Seconds of processor time that a worker may use to read a file of functions.
pub(super) const READ_SECONDS: u64 = 5;

/// Mebibytes that a worker may use to read a file of functions.
pub(super) const READ_MEMORY_MIB: u64 = 192;

/// The exit code of a worker that used too much time.
pub(super) const TIME_EXIT: i32 = 66;

/// The exit code of a worker that used too much memory.
pub(super) const MEMORY_EXIT: i32 = 65;

/// The exit code of a worker that could not confine itself.
pub(super) const CONFINEMENT_EXIT: i32 = 78;

/// The exit code of a worker whose interpreter panicked.
pub(super) const PANIC_EXIT: i32 = 70;

/// The first frame of a worker, when it is confined. Programs follow, each answered by a [`WorkerReply`]; or the text of one file
/// of functions, answered by what it has ([`ReadModule`](crate::program::module::ReadModule)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hello {
    /// [`PROTOCOL`].
    pub(super) protocol: u32,
    /// What the kernel does not have of what confines a worker.
    pub(super) missing: Vec<String>,
}

/// The outcome of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkerReply {
    /// The number of the program among those of its worker, from 1.
    pub(super) number: u32,
    /// Where it stopped.
    pub(super) stop: Stop,
    /// Whether the worker may execute another program.
    pub(super) reusable: bool,
}
