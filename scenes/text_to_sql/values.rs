//! What the nodes of the flow receive and return.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// What a request needs, as `classify_prompt` decides it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptKind {
    /// Data, or a query for it.
    #[default]
    Question,
    /// A statement of the request is run, checked or corrected.
    Sql,
    /// A statement of the request is explained.
    Explain,
    /// Rows that are there are shown.
    Rows,
    /// No data.
    General,
}

/// What is to be done with a statement next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SqlState {
    /// It may be executed.
    Valid,
    /// It is valid, and not to be executed.
    Checked,
    /// It was executed.
    Done,
    /// Another one has to be written.
    ToRepair,
    /// A person has to approve the tables that it reads.
    ToApprove,
    /// It is not valid, and no other one is written.
    GivenUp,
}

/// A statement that was not valid or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedSql {
    /// The statement.
    pub sql: String,
    /// What is wrong with it; no values of the data.
    pub error: String,
    /// The tables that it reads and may not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// The values of a flow that its nodes may receive. A null is like a missing one.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct NodeInput {
    /// The user's words.
    #[serde(default, deserialize_with = "or_default")]
    pub request: String,
    /// What the planner says that the step is for.
    #[serde(default, deserialize_with = "or_default")]
    pub purpose: String,
    /// The question, rewritten.
    #[serde(default, deserialize_with = "or_default")]
    pub question: String,
    /// What the request needs.
    #[serde(default, deserialize_with = "or_default")]
    pub kind: PromptKind,
    /// Whether data is to be read.
    #[serde(default, deserialize_with = "or_default")]
    pub run: bool,
    /// Whether the statement is to be corrected.
    #[serde(default, deserialize_with = "or_default")]
    pub fix: bool,
    /// The statement.
    #[serde(default, deserialize_with = "or_default")]
    pub sql: String,
    /// How the statement stands.
    pub sql_state: Option<SqlState>,
    /// Why no statement was written.
    #[serde(default, deserialize_with = "or_default")]
    pub declined: String,
    /// What the statement gives, in words.
    #[serde(default, deserialize_with = "or_default")]
    pub understood: String,
    /// Statements that failed before.
    #[serde(default, deserialize_with = "or_default")]
    pub attempts: Vec<FailedSql>,
    /// The database that is asked, if not the usual one.
    pub database: Option<String>,
    /// The tables that may be read, as far as none of them needs a yes.
    #[serde(default, deserialize_with = "or_default")]
    pub tables: Vec<String>,
    /// What of these a person is asked about, or has been.
    #[serde(default, deserialize_with = "or_default")]
    pub to_approve: Vec<String>,
    /// Tables that the caller has approved.
    #[serde(default, deserialize_with = "or_default")]
    pub approved_tables: Vec<String>,
    /// Rows of an earlier answer, as the caller gives them.
    pub rows: Option<Value>,
    /// What was found.
    pub result: Option<Value>,
}

impl NodeInput {
    /// The question, as far as it was rewritten.
    pub fn asked(&self) -> &str {
        if self.question.trim().is_empty() { &self.request } else { &self.question }
    }
}

fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
