//! A scene as it was written, before it is checked: what `scene.toml` and the builder have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::ToolApproval;
use super::document::{At, Places};
use crate::run::{ConfirmPolicy, Effect, Repeat};
use crate::tools::{Tool, http};

/// A scene. What is `None` and required was told of when it was read.
#[derive(Default)]
pub(super) struct SceneDraft {
    pub(super) name: Option<At<String>>,
    pub(super) description: Option<At<String>>,
    pub(super) instructions: Option<At<String>>,
    pub(super) concurrency: Option<At<u64>>,
    pub(super) mailbox: Option<At<u64>>,
    pub(super) approval: Option<At<ToolApproval>>,
    pub(super) confirm: Option<At<ConfirmPolicy>>,
    pub(super) max_writes: Option<At<u64>>,
    pub(super) examples: Vec<ExampleDraft>,
    pub(super) settings: Option<Value>,
    pub(super) schema_sql: Option<String>,
    pub(super) tools: Vec<ToolDraft>,
}

pub(super) struct ExampleDraft {
    pub(super) say: Option<At<String>>,
    pub(super) tool: Option<At<String>>,
}

pub(super) struct ToolDraft {
    pub(super) name: Option<At<String>>,
    pub(super) description: Option<At<String>>,
    pub(super) effect: Option<At<Effect>>,
    pub(super) repeat: Option<At<Repeat>>,
    /// As its scene says, unless told.
    pub(super) approval: Option<At<ToolApproval>>,
    pub(super) undo: Option<UndoDraft>,
    pub(super) identity: Vec<At<String>>,
    pub(super) timeout_ms: Option<At<u64>>,
    pub(super) max_result_bytes: Option<At<u64>>,
    pub(super) parameters: Option<At<Value>>,
    /// Where the parts of `parameters` stand.
    pub(super) places: Places,
    pub(super) say: BTreeMap<String, At<String>>,
    pub(super) confirm: BTreeMap<String, At<String>>,
    pub(super) repeatable: Option<At<bool>>,
    pub(super) volatile: Option<At<bool>>,
    pub(super) call: Option<CallDraft>,
}

/// How a write is undone.
pub(super) struct UndoDraft {
    pub(super) tool: Option<At<String>>,
    pub(super) arguments: Option<At<Value>>,
}

/// What a tool calls.
pub(super) enum CallDraft {
    /// A native tool by its registered name.
    Native(At<String>),
    /// An HTTP request.
    Http(Box<HttpDraft>),
    /// A tool at hand.
    Ready(Arc<dyn Tool>),
}

pub(super) struct HttpDraft {
    pub(super) spec: http::Spec,
    /// The table as it was written, for the catalogue's hash.
    pub(super) source: Value,
    /// The lines of its parts, by JSON pointer.
    pub(super) places: Places,
}
