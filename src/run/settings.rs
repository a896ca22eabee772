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
    /// Which revision of the rules decides, from 0 to [`RULES`]. Absent in runs that started before
    /// revisions were counted: 0.
    #[serde(skip_serializing_if = "is_default")]
    pub rules: u16,
    /// Which writes the user is asked to confirm. Has an effect from revision 1 on.
    #[serde(skip_serializing_if = "is_default")]
    pub confirm: ConfirmPolicy,
    /// What the tenant asks for at least, whatever a scene says.
    #[serde(skip_serializing_if = "is_default")]
    pub confirm_at_least: Option<ConfirmPolicy>,
    /// Most write calls that a run may begin unasked; any further one has to be confirmed. Has an effect
    /// from revision 1 on.
    #[serde(skip_serializing_if = "is_default")]
    pub max_writes: u32,
}

/// The revision of the rules that new runs freeze. A run keeps the one that it started with.
///
/// | revision | what changed |
/// | --- | --- |
/// | 0 | until 0.1: days of a write are refused unless said; a repeated write shares the first one's outcome; reads are read anew after a write of their own scene; the last round offers no tools |
/// | 1 | unclear writes are confirmed; arguments are traced to their sources; a repeated write in one step is confirmed or, where its tool says so, repeated; reads are read anew after any write; a step that a bound cut makes the run partial; parts that no scene serves are named |
pub const RULES: u16 = 1;

/// Which writes the user is asked to confirm before they are done (`execution.confirm`). Ordered by
/// strictness: where a scene and a tenant differ, the stricter one counts.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmPolicy {
    /// None.
    Never,
    /// Those that were not clearly asked for.
    #[default]
    Unclear,
    /// All.
    Writes,
}

/// Most write calls that a run begins unasked, where nothing else is configured.
pub const MAX_WRITES: u32 = 32;

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
            max_steps: 20,
            max_retries: 3,
            max_replans: 3,
            fallback_enabled: true,
            answer_with_check: true,
            out_of_scope: OutOfScope::Answer,
            reader: Reader::Tolerant,
            temperature: 0.3,
            max_parallel_steps: 4,
            max_rounds: 16,
            max_calls: 64,
            duplicates: Duplicates::Arguments,
            run_timeout_ms: 300_000,
            approval: ApprovalPolicy::default(),
            compensate: false,
            rules: 0,
            confirm: ConfirmPolicy::Unclear,
            confirm_at_least: None,
            max_writes: 0,
        }
    }
}

impl Settings {
    /// Which writes of a scene the user is asked to confirm, of which the scene itself says `own`.
    pub fn confirm_for(&self, own: Option<ConfirmPolicy>) -> ConfirmPolicy {
        let said = own.unwrap_or(self.confirm);
        self.confirm_at_least.map_or(said, |least| said.max(least))
    }

    /// Whether the rules of `revision` or a later one decide.
    pub fn has_rules(&self, revision: u16) -> bool {
        self.rules >= revision
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
