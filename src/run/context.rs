//! The context that a run gets of its conversation. `memory` limits its size; `run_started` freezes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::compact_json::CompactJson;
use super::document::NamedDocument;
use super::event::{Question, RunStatus};
use super::fact::KnownFact;
use super::ids::RunId;

/// The memory of the conversation when a run starts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Context {
    /// A summary of the turns before those in `turns`.
    pub summary: Option<String>,
    /// The last turns, oldest first.
    #[serde(default)]
    pub turns: Vec<Turn>,
    /// The question that the previous run ended with, if any.
    pub pending: Option<PendingQuestion>,
    /// Facts of the conversation that the request is about and the turns do not show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<KnownFact>,
    /// The turns whose answers may contain values that a flow or a step without a tool made up: these are no source of
    /// values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfounded: Vec<RunId>,
    /// Whether the request only names documents of the pending question's list that were deleted since. Then the
    /// question is asked again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub names_deleted: bool,
}

/// One request and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The run that served it; absent when the client sent the history.
    pub run: Option<RunId>,
    /// The user's text.
    pub request: String,
    /// The answer's text.
    pub answer: String,
    /// How it ended.
    pub status: RunStatus,
    /// The tool calls that succeeded, in order.
    #[serde(default)]
    pub calls: Vec<TurnCall>,
}

/// A tool call of an earlier turn: where facts such as a user name come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnCall {
    /// The scene.
    pub scene: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: CompactJson,
    /// Its result, shortened.
    pub result: CompactJson,
    /// Whether the result is no evidence for the values of a write: it came from an earlier run because the tool
    /// failed, a model interpreted it, or it repeats what documents say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
}

/// A question that the user has not answered yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingQuestion {
    /// The request that led to it.
    pub request: String,
    /// The scene that asks.
    pub scene: String,
    /// The purpose of its step.
    pub purpose: String,
    /// Its question.
    pub question: Question,
    /// The calls that a plain yes of the same user confirms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconfirmed: Vec<ConfirmedCall>,
    /// The user who was asked; empty if nothing is to be confirmed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The run that asked, where something is to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The documents of the request, which the answer to the question is about, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<NamedDocument>,
}

/// A call that the user was asked to confirm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmedCall {
    /// The scene.
    pub scene: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, all of them.
    pub arguments: Value,
    /// SHA-256 in hex of the tool's definition when it was asked about.
    pub definition: String,
    /// The question that was asked.
    pub question: String,
}
