//! The bounds and choices that a run freezes when it starts.

use serde::{Deserialize, Serialize};

/// Bounds and choices of one run. A changed configuration reaches new runs only.
///
/// What a stored run lacks is read as its default: newer settings may be added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Most steps in one plan.
    pub max_steps: u32,
    /// Additional tries of a forced question after the first.
    pub max_retries: u32,
    /// Most plans made after the first.
    pub max_replans: u32,
    /// Whether the embedded rules may plan when the models cannot.
    pub fallback_enabled: bool,
    /// Whether the continuation check carries the answer.
    pub answer_with_check: bool,
    /// What to do with a request outside every scene.
    pub out_of_scope: OutOfScope,
    /// Whether forced replies are read tolerantly or by plain `serde_json`.
    pub reader: Reader,
    /// Sampling temperature of forced questions.
    pub temperature: f32,
    /// Most steps at work at once.
    pub max_parallel_steps: u32,
    /// Most questions to a scene's model in one step; at the last one no tools are offered.
    pub max_rounds: u32,
    /// Most tool calls in one step.
    pub max_calls: u32,
    /// What makes two calls the same.
    pub duplicates: Duplicates,
    /// Milliseconds from start to the deadline of the whole run.
    pub run_timeout_ms: u64,
    /// Who is asked before something is done.
    #[serde(skip_serializing_if = "is_default")]
    pub approval: ApprovalPolicy,
    /// Whether a run that fails or is cancelled undoes its finished writes where their tools say how.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub compensate: bool,
}

/// Who is asked before something is done (`approval` of the configuration).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApprovalPolicy {
    /// Which plans a person has to approve.
    pub plans: AskFor,
    /// Which calls a person has to approve.
    pub calls: AskFor,
    /// Whether who asked for something may approve it.
    pub by_oneself: bool,
}

impl Default for ApprovalPolicy {
    fn default() -> Self {
        Self { plans: AskFor::Declared, calls: AskFor::Declared, by_oneself: true }
    }
}

/// For what a person is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskFor {
    /// Writes whose scene or tool says `approval = "required"`.
    #[default]
    Declared,
    /// Every write.
    Writes,
    /// Nothing, whatever scenes say.
    Never,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_steps: 10,
            max_retries: 3,
            max_replans: 3,
            fallback_enabled: true,
            answer_with_check: true,
            out_of_scope: OutOfScope::Answer,
            reader: Reader::Tolerant,
            temperature: 0.3,
            max_parallel_steps: 4,
            max_rounds: 6,
            max_calls: 16,
            duplicates: Duplicates::Arguments,
            run_timeout_ms: 300_000,
            approval: ApprovalPolicy::default(),
            compensate: false,
        }
    }
}

/// What to do with a request that no scene can serve (`planning.out_of_scope`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutOfScope {
    /// The model answers from what it knows.
    #[default]
    Answer,
    /// The model declines and says what it can do.
    Decline,
}

/// How a forced reply is read (`planning.reader`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reader {
    /// Whatever can be understood in one way only.
    #[default]
    Tolerant,
    /// The named tool's arguments by plain `serde_json`, for comparison.
    Strict,
}

/// What makes two tool calls of a run the same (`execution.duplicates`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplicates {
    /// Scene, tool and arguments.
    #[default]
    Arguments,
    /// Scene and tool.
    SceneTool,
}

/// How the cache is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheMode {
    /// Not at all.
    #[default]
    Off,
    /// Replies are taken from it and put into it.
    On,
    /// Replies are taken from it only.
    ReadOnly,
    /// Replies are put into it only: whatever is there is made anew.
    WriteOnly,
}

impl CacheMode {
    /// Whether replies are taken from it.
    pub fn reads(self) -> bool {
        matches!(self, CacheMode::On | CacheMode::ReadOnly)
    }

    /// Whether replies are put into it.
    pub fn writes(self) -> bool {
        matches!(self, CacheMode::On | CacheMode::WriteOnly)
    }
}
