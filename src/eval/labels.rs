//! Labels: requests with what has to come of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::run::RunStatus;

/// The class of requests that no scene serves: a tool call of theirs counts apart.
pub const OUT_OF_SCOPE: &str = "out_of_scope";

/// Requests that are executed by one engine.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalSet {
    /// Where they are executed.
    pub surroundings: Surroundings,
    /// Their conversations; each begins without a memory.
    pub conversations: Vec<LabelledConversation>,
}

/// Where requests are executed: the clock and the scenes. What is absent is as configured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Surroundings {
    /// The fixed time.
    pub clock: Option<Timestamp>,
    /// The time zone, an IANA name.
    pub time_zone: Option<String>,
    /// Folders of scenes, in addition to the built-in ones: each is the folder of a scene, or contains such folders, or is
    /// `shipped:NAME`.
    pub scenes: Vec<PathBuf>,
    /// Whether the built-in scenes are loaded.
    pub builtin: Option<bool>,
    /// By scene, values in place of those of its `[settings]`.
    pub settings: BTreeMap<String, Value>,
}

/// Requests of one conversation, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledConversation {
    /// The requests.
    pub turns: Vec<LabelledRequest>,
}

/// A request with what has to come of it. What has no label is not judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelledRequest {
    /// Unique among all requests of an evaluation.
    pub id: String,
    /// The user's words.
    pub say: String,
    /// Its language, for readers of the file.
    pub lang: Option<String>,
    /// The kind of request, by which the report has a line; `out_of_scope` for what no scene serves.
    pub class: Option<String>,
    /// Whether it was written without knowledge of what is tested; for readers of the file.
    #[serde(default)]
    pub blind: bool,
    /// Whether it is plain and complete: a question about it is needless.
    #[serde(default)]
    pub plain: bool,
    /// The chatbot's instructions.
    pub system: Option<String>,
    /// The conversation before it, as a client sends it.
    #[serde(default)]
    pub history: Vec<EarlierTurn>,
    /// Rows that are inserted into tables of scenes before it, by table. The columns `tenant` and `user` are the request's
    /// unless they are given.
    #[serde(default)]
    pub rows: BTreeMap<String, Vec<Map<String, Value>>>,
    /// The exact set of scenes that take part.
    pub scenes: Option<Vec<String>>,
    /// The exact set of scenes that complete.
    pub completes: Option<Vec<String>>,
    /// Every call that has to be executed. No other write is allowed.
    pub calls: Option<Vec<LabelledCall>>,
    /// Tools that may be called in addition to `calls`, if they only read.
    #[serde(default)]
    pub optional: Vec<String>,
    /// Tools that have to be called with success; other calls are allowed.
    #[serde(default)]
    pub tools: Vec<ExpectedTool>,
    /// Pairs of scenes or tools: the first has ended before the second begins.
    #[serde(default)]
    pub before: Vec<[String; 2]>,
    /// Texts that the answer contains; `|` separates alternatives.
    #[serde(default)]
    pub answer_mentions: Vec<String>,
    /// Whether no write may be started.
    #[serde(default)]
    pub nothing_written: bool,
    /// What must not happen: `any tool call`, `TOOL twice`, `the same tool with the same arguments twice`. Anything else
    /// is for people, and not judged.
    #[serde(default)]
    pub never: Vec<String>,
    /// Whether it has to end with a question, with nothing written.
    #[serde(default)]
    pub asks: bool,
    /// Whether a question is as good as the calls.
    #[serde(default)]
    pub may_ask: bool,
    /// What the answer names as not done; `|` separates alternatives.
    #[serde(default)]
    pub undone: Vec<String>,
    /// The status with which it ends.
    pub status: Option<RunStatus>,
    /// Conditions in words for people, which are not judged.
    #[serde(default)]
    pub check: Vec<String>,
    /// How often a load test sends it, relative to the others; it is not evaluated more often.
    #[serde(skip_serializing)]
    pub weight: Option<u32>,
    /// Its file.
    #[serde(skip)]
    pub file: PathBuf,
    /// The line where it begins, from 1.
    #[serde(skip)]
    pub line: usize,
}

/// An earlier request of the conversation, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierTurn {
    /// The user's words.
    pub user: String,
    /// The answer.
    pub assistant: String,
}

/// A call with the arguments that the words determine; `|` in a text separates alternatives. Calls with a first day
/// `from` and a last day `to` are equivalent to any others that cover the same days.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelledCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: BTreeMap<String, Value>,
}

/// A tool that has to be called with success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedTool {
    /// Its name.
    pub name: String,
    /// Texts of its arguments: alternatives separated by `|`, or the end of a date (`06-15`).
    #[serde(default)]
    pub args: BTreeMap<String, String>,
}

impl LabelledRequest {
    /// All words: the request and the conversation before it.
    pub fn words(&self) -> String {
        let earlier = self.history.iter().flat_map(|turn| [turn.user.as_str(), turn.assistant.as_str()]);
        earlier.chain([self.say.as_str()]).collect::<Vec<_>>().join("\n")
    }

    /// The labelled calls; none if they have no label.
    pub fn labelled_calls(&self) -> &[LabelledCall] {
        self.calls.as_deref().unwrap_or_default()
    }

    /// A hash in hex of its words and labels: two evaluations with the same one judge alike.
    pub fn fingerprint(&self) -> String {
        use data_encoding::HEXLOWER;
        use sha2::{Digest, Sha256};
        // It is plain data, so serialization cannot fail.
        let hash = Sha256::digest(serde_json::to_vec(self).unwrap_or_default());
        HEXLOWER.encode(&hash[..8])
    }

    /// Returns whether no scene serves it.
    pub fn is_out_of_scope(&self) -> bool {
        self.class.as_deref() == Some(OUT_OF_SCOPE)
    }
}
