//! A scene as written, before it is checked: the common form of `scene.toml` and the builder.

use std::sync::Arc;

use serde_json::Value;

use super::ToolApproval;
use super::document::{Located, LocatedTexts, PointerLines};
use super::python::ToolsFile;
use super::tables::TableDraft;
use crate::adapt::ExecutionLevel;
use crate::fault::FaultClass;
use crate::run::{ConfirmPolicy, Effect, PlanningMaker, Repeat};
use crate::tools::{Tool, http};

/// A scene. A required key that is `None` was reported when the document was read.
#[derive(Default)]
pub(super) struct SceneDraft {
    pub(super) name: Option<Located<String>>,
    pub(super) description: Option<Located<String>>,
    pub(super) about: LocatedTexts,
    pub(super) instructions: Option<Located<String>>,
    pub(super) concurrency: Option<Located<u64>>,
    pub(super) mailbox: Option<Located<u64>>,
    pub(super) approval: Option<Located<ToolApproval>>,
    pub(super) confirm: Option<Located<ConfirmPolicy>>,
    pub(super) max_writes: Option<Located<u64>>,
    pub(super) level: Option<Located<ExecutionLevel>>,
    pub(super) summarises: bool,
    pub(super) maker: Option<Located<PlanningMaker>>,
    pub(super) statuses: Vec<Located<String>>,
    pub(super) mixed_writes: bool,
    pub(super) examples: Vec<ExampleDraft>,
    pub(super) settings: Option<Value>,
    pub(super) schema_sql: Option<String>,
    /// The text of `tools.py`.
    pub(super) tools_py: Option<String>,
    pub(super) tables: Vec<TableDraft>,
    pub(super) tools: Vec<ToolDraft>,
}

pub(super) struct ExampleDraft {
    pub(super) say: Option<Located<String>>,
    pub(super) tool: Option<Located<String>>,
}

#[derive(Default)]
pub(super) struct ToolDraft {
    pub(super) name: Option<Located<String>>,
    pub(super) description: Option<Located<String>>,
    pub(super) effect: Option<Located<Effect>>,
    pub(super) repeat: Option<Located<Repeat>>,
    /// Inherited from its scene by default.
    pub(super) approval: Option<Located<ToolApproval>>,
    pub(super) undo: Option<UndoDraft>,
    pub(super) identity: Vec<Located<String>>,
    pub(super) timeout_ms: Option<Located<u64>>,
    pub(super) max_result_bytes: Option<Located<u64>>,
    pub(super) parameters: Option<Located<Value>>,
    /// The lines of the parts of `parameters`.
    pub(super) parameter_lines: PointerLines,
    pub(super) say: LocatedTexts,
    pub(super) confirm: LocatedTexts,
    pub(super) repeatable: Option<Located<bool>>,
    pub(super) volatile: Option<Located<bool>>,
    pub(super) optional: Option<Located<bool>>,
    pub(super) alternatives: Vec<AlternativeDraft>,
    pub(super) choose_by: Option<Located<String>>,
    pub(super) cached: Option<CachedDraft>,
    pub(super) expect: ExpectDraft,
    pub(super) policies: Vec<PolicyDraft>,
    pub(super) call: Option<CallDraft>,
}

/// A policy for failures of one class.
pub(super) struct PolicyDraft {
    pub(super) class: FaultClass,
    pub(super) line: Option<u32>,
    /// As written; absent for what follows from the class.
    pub(super) actions: Option<Vec<Located<String>>>,
    pub(super) attempts: Option<Located<u64>>,
    pub(super) backoff_ms: Option<Located<u64>>,
    pub(super) max_wait_ms: Option<Located<u64>>,
}

/// How long the last good result may be used.
pub(super) struct CachedDraft {
    pub(super) line: Option<u32>,
    pub(super) max_age_s: Option<Located<u64>>,
}

/// The expectations of a tool's results.
#[derive(Default)]
pub(super) struct ExpectDraft {
    pub(super) not_empty: Vec<Located<String>>,
    pub(super) ranges: Option<Located<Value>>,
    pub(super) same: LocatedTexts,
    pub(super) schema: Option<Located<Value>>,
    pub(super) interpret: Option<Located<bool>>,
}

/// The tool that is called in place of one that failed.
pub(super) struct AlternativeDraft {
    pub(super) line: Option<u32>,
    pub(super) tool: Option<Located<String>>,
    pub(super) arguments: Option<Located<Value>>,
    pub(super) same_result: Option<Located<bool>>,
}

/// How a write is undone.
pub(super) struct UndoDraft {
    pub(super) tool: Option<Located<String>>,
    pub(super) arguments: Option<Located<Value>>,
}

/// The target of a tool.
pub(super) enum CallDraft {
    /// A native tool by its registered name.
    Native(Located<String>),
    Http(Box<HttpDraft>),
    Python(PythonDraft),
    /// A summary of documents, which a run makes by itself.
    Summary {
        /// Where that is said.
        line: Option<u32>,
    },
    /// A tool built in Rust.
    Ready(Arc<dyn Tool>),
}

/// A function in `tools.py`.
pub(super) struct PythonDraft {
    /// Where the tool is said to be in Python.
    pub(super) line: Option<u32>,
    /// Named after its tool by default.
    pub(super) function: Option<Located<String>>,
    pub(super) host: Vec<Located<String>>,
    pub(super) requests: Vec<RequestDraft>,
    /// Whether its scene declares tables.
    pub(super) has_tables: bool,
    pub(super) file: ToolsFile,
}

/// An HTTP request that a function in Python makes.
pub(super) struct RequestDraft {
    pub(super) name: Located<String>,
    /// The names of what it is given.
    pub(super) parameters: Vec<Located<String>>,
    pub(super) http: HttpDraft,
}

pub(super) struct HttpDraft {
    pub(super) spec: http::HttpSpec,
    /// The table as written, for the catalogue's hash.
    pub(super) source: Value,
    /// The lines of its parts, by JSON pointer.
    pub(super) source_lines: PointerLines,
}
