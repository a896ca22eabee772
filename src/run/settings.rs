//! The settings that a run freezes when it starts.

use serde::{Deserialize, Serialize};

use super::learned::LearnMode;
use crate::adapt::{ConsultationLimits, ExecutionLevel, ExecutionMode, PolicyDefaults};

/// The settings of one run. A changed configuration affects new runs only.
///
/// Fields that a stored run lacks get their defaults, so settings may be added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Maximum number of steps in one plan.
    pub max_steps: u32,
    /// Repair attempts of a forced question after the first attempt.
    pub max_retries: u32,
    /// Maximum number of replans after the first plan.
    pub max_replans: u32,
    /// Whether the offline model may plan when the models fail.
    pub fallback_enabled: bool,
    /// Whether the continuation check carries the answer.
    pub answer_with_check: bool,
    /// The treatment of a request that no scene covers.
    pub out_of_scope: OutOfScope,
    /// Whether forced replies are read tolerantly or by plain `serde_json`.
    pub reader: ReaderMode,
    /// Sampling temperature of forced questions.
    pub temperature: f32,
    /// Maximum number of steps that run in parallel.
    pub max_parallel_steps: u32,
    /// Maximum number of questions to a scene's model in one step; at the last one no tools are offered.
    pub max_rounds: u32,
    /// Maximum number of tool calls in one step.
    pub max_calls: u32,
    /// The rule by which two calls are duplicates.
    pub duplicates: Duplicates,
    /// Milliseconds from start to the deadline of the whole run.
    pub run_timeout_ms: u64,
    /// Which plans and calls need an approval.
    #[serde(skip_serializing_if = "super::is_default")]
    pub approval: ApprovalPolicy,
    /// Whether a failed or cancelled run undoes its finished writes, where their tools declare how.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub compensate: bool,
    /// The revision of the rules that applies, from 0 to [`RULES_REVISION`]. Absent (0) in runs that
    /// started before revisions were counted.
    #[serde(skip_serializing_if = "super::is_default")]
    pub rules: u16,
    /// Which writes the user is asked to confirm. Effective from revision 1 on.
    #[serde(skip_serializing_if = "super::is_default")]
    pub confirm: ConfirmPolicy,
    /// The tenant's minimum confirmation policy, whatever a scene declares.
    #[serde(skip_serializing_if = "super::is_default")]
    pub confirm_at_least: Option<ConfirmPolicy>,
    /// Maximum number of writes that a run may begin without confirmation; any further one has to be confirmed.
    /// Effective from revision 1 on.
    #[serde(skip_serializing_if = "super::is_default")]
    pub max_writes: u32,
    /// The language of requests whose own language is unclear, ISO 639-1.
    #[serde(skip_serializing_if = "super::is_default")]
    pub language: Option<String>,
    /// The operator's instructions for the planner, added to its system prompt.
    #[serde(skip_serializing_if = "super::is_default")]
    pub planner_instructions: String,
    /// Which calls a plan prepares, and whether a step is executed by them without asking its scene.
    #[serde(skip_serializing_if = "super::is_default")]
    pub prepare: PrepareMode,
    /// Whether scenes are asked at all.
    #[serde(skip_serializing_if = "super::is_default")]
    pub scenes: SceneMode,
    /// The number of scenes that a prompt for a plan describes in full; 0 describes all.
    #[serde(skip_serializing_if = "super::is_default")]
    pub shortlist: u32,
    /// The number of tokens that a prompt may have, so that it fits into every model's window; 0 does not limit it.
    #[serde(skip_serializing_if = "super::is_default")]
    pub prompt_tokens: u32,
    /// Milliseconds for the ranking of the scenes by embeddings before the first plan; 0 where it is not asked for: no
    /// model offers embeddings, or the prompt describes all scenes.
    #[serde(skip_serializing_if = "super::is_default")]
    pub embeddings_timeout_ms: u32,
    /// Whether a plan is looked up among those learned from executions before a planner is asked.
    #[serde(skip_serializing_if = "super::is_default")]
    pub learn: LearnMode,
    /// Who may be asked when something unexpected happens.
    #[serde(skip_serializing_if = "super::is_default")]
    pub level: Option<ExecutionLevel>,
    /// How much may change when something unexpected happens. Always set where the level is.
    #[serde(skip_serializing_if = "super::is_default")]
    pub mode: Option<ExecutionMode>,
    /// The policies for failed calls whose tools declare nothing else, and the run's bounds.
    #[serde(skip_serializing_if = "super::is_default")]
    pub policies: PolicyDefaults,
    /// The bounds of the run's consultations.
    #[serde(skip_serializing_if = "super::is_default")]
    pub consultations: ConsultationLimits,
    /// Whether a configured model executes nodes of flows and steps of kind llm: without one, none is asked. Absent in
    /// runs of earlier releases, which asked in any case.
    #[serde(skip_serializing_if = "super::is_default")]
    pub node_model: Option<bool>,
    /// Whether a program may be the plan, or a step of one.
    #[serde(skip_serializing_if = "super::is_default")]
    pub maker: PlanningMaker,
    /// Whether a configured model writes programs: without one, none is asked. Absent in runs of earlier releases.
    #[serde(skip_serializing_if = "super::is_default")]
    pub program_model: Option<bool>,
}

/// The revision of the rules that new runs freeze. A run keeps the revision that it started with.
///
/// | revision | what changed |
/// | --- | --- |
/// | 0 | until 0.1: days of a write are refused unless the user named them; a repeated write shares the first one's outcome; reads are repeated after a write of their own scene; the last round offers no tools |
/// | 1 | unclear writes are confirmed; arguments are traced to their sources; a repeated write in one step is confirmed or, where its tool declares so, repeated; reads are repeated after any write; a step cut short by a limit makes the run partial; parts that no scene serves are listed |
/// | 2 | an answer ends with every open question; a question, an echo or a summary written by a model is no source of a write's arguments; undeclared arguments of writes are dropped; spelling variants of a write are repetitions |
/// | 3 | failures are worded for users, in prompts for answers and in answers without a model; a step whose calls failed is shown as failed there; a write whose undo arguments its result does not contain is reported as not undone; a plan may contain the answer to a request that needs no scene; prompts begin with what is the same for every request |
/// | 4 | a write is unknown once an attempt may have taken effect and none has succeeded, also if a later attempt fails; a prepared write that the plan makes conditional is not made by the plan alone |
/// | 5 | what is unexpected says why no model is asked about it |
/// | 6 | prose inside a result, and figures that a model made up in an earlier answer, are no source of a write's arguments; a write whose attempts failed without effect, and that was to be called again when its run ended, is not done, and nobody is asked about it |
/// | 7 | a write that the request forbids or only asks about is confirmed; an answer that denies nothing names the writes that failed, and says so where an expected write was not made; the thoughts of a model are no part of its words |
/// | 8 | an answer is compared with what was done clause by clause, whatever verb it claims a write in, also where the plan only read; a read without a result makes the run partial, and the answer names it |
/// | 9 | the end of a run that crashes its process is worded for users |
/// | 10 | what a tool or a person refused is an answer: a run without results is partial then, also where no model is asked after the plan; what constraints do not allow is said to be beyond them |
/// | 11 | plans are told which tools are switched off, and name what the request asks of them: the answer says that it is not available now; a read that found nothing is an answer, as a refusal is |
/// | 12 | a write that another step, or an earlier plan, did in another spelling is a repetition, too; an answer without a model says what was undone, and names the steps that were stopped in words |
/// | 13 | an address in a write's arguments that was not said or found as it is, but only its words, is confirmed; "24.50" may be an amount, and not only a time; invisible characters that a model adds to words that were said or found are removed from the arguments of its calls, and other ones in a write's arguments need a source; authors of programs are told which tools are switched off |
/// | 14 | authors of programs are told what constraints do not allow; where every tool that a program could call is switched off or not allowed, the answer names their scenes |
/// | 15 | a word in a write's arguments with letters or digits that look like others (Greek or Cyrillic beside Latin, fullwidth) is confirmed unless it was said or found so; a write that differs from one that was done only by optional arguments that say nothing, or by a flag, is a repetition; a write that no word names is confirmed where the request only asks to be told something; an answer that denies nothing names the reads of steps without a result |
/// | 16 | days with short names of months in Italian, French and Spanish have a source in the words that say them: "15 gen"; a write for one day is confirmed where the request asks for several |
/// | 17 | days that several words name ("pasado mañana"), and more names of holidays ("Heiligabend", "Año Nuevo"), have a source in these words; a plan for approval whose calls have their arguments as text is read, where the text is an object; an answer of a dry run that denies nothing says that nothing was changed |
/// | 18 | a run whose answer no model could word, without steps, fails with what kept the model from it, such as `budget.exceeded`, and not with `llm.no_answer`; a result that is null is told in words; questions for missing values have no formats and lists of values of descriptions, and name values in the user's language; where the answer may tell what can be done, its prompt has what scenes say about themselves in the user's language |
pub const RULES_REVISION: u16 = 18;

/// Which calls a plan prepares (`planning.prepare`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrepareMode {
    /// None, unless a person sees the plan before it begins.
    Never,
    /// The writes of plans that a person may have to approve. Scenes still make the calls.
    #[default]
    Approval,
    /// Reads and writes of every plan; of a plan that a person may have to approve, its writes. A step whose calls are
    /// complete, valid and allowed is executed by them, without asking its scene.
    Always,
}

/// The maker of plans (`planning.maker`). Ordered by how much may be left to programs: where several settings differ, the
/// narrowest applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanningMaker {
    /// A planner, out of steps of scenes. No program is written.
    #[default]
    Scenes,
    /// A planner, which may have a program written for a step that loops, filters or computes.
    Auto,
    /// Nobody: a model writes a program that is the plan.
    Code,
}

impl PlanningMaker {
    /// The narrower of a setting and a wish.
    #[must_use]
    pub fn narrowed(self, wish: Option<Self>) -> Self {
        wish.map_or(self, |wish| self.min(wish))
    }
}

/// How the calls of steps come about (`execution.scenes`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SceneMode {
    /// A scene's model is asked for what the plan did not prepare.
    #[default]
    Model,
    /// Only calls that the plan prepared are made: a step that needs others fails.
    Prepared,
}

/// Which writes the user is asked to confirm before they are executed (`execution.confirm`). Ordered by
/// strictness: where a scene and a tenant differ, the stricter policy applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmPolicy {
    /// None.
    Never,
    /// Writes that were not clearly requested.
    #[default]
    Unclear,
    /// All.
    Writes,
}

/// Default of the maximum number of writes that a run begins without confirmation.
pub const MAX_WRITES: u32 = 32;

/// Which plans and calls need an approval (`approval` of the configuration).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApprovalPolicy {
    /// Which plans a person has to approve.
    pub plans: ApprovalScope,
    /// Which calls a person has to approve.
    pub calls: ApprovalScope,
    /// Whether requesters may approve their own requests.
    pub by_oneself: bool,
}

impl Default for ApprovalPolicy {
    fn default() -> Self {
        Self { plans: ApprovalScope::Declared, calls: ApprovalScope::Declared, by_oneself: true }
    }
}

/// Which writes need an approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// Writes whose scene or tool declares `approval = "required"`.
    #[default]
    Declared,
    /// Every write.
    Writes,
    /// None, whatever scenes declare.
    Never,
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
            reader: ReaderMode::Tolerant,
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
            language: None,
            planner_instructions: String::new(),
            prepare: PrepareMode::Approval,
            scenes: SceneMode::Model,
            shortlist: 0,
            prompt_tokens: 0,
            embeddings_timeout_ms: 0,
            learn: LearnMode::Off,
            level: None,
            mode: None,
            policies: PolicyDefaults::default(),
            consultations: ConsultationLimits::default(),
            node_model: None,
            maker: PlanningMaker::Scenes,
            program_model: None,
        }
    }
}

impl Settings {
    /// The confirmation policy for a scene that declares `own`.
    pub fn confirm_for(&self, own: Option<ConfirmPolicy>) -> ConfirmPolicy {
        let configured = own.unwrap_or(self.confirm);
        self.confirm_at_least.map_or(configured, |minimum| configured.max(minimum))
    }

    /// Returns whether the rules of `revision` or a later one apply.
    pub fn has_rules(&self, revision: u16) -> bool {
        self.rules >= revision
    }
}

/// The treatment of a request that no scene can serve (`planning.out_of_scope`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutOfScope {
    /// The model answers from its own knowledge.
    #[default]
    Answer,
    /// The model declines and says what the assistant can do.
    Decline,
}

/// How a forced reply is read (`planning.reader`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReaderMode {
    /// Accept everything that has only one possible meaning.
    #[default]
    Tolerant,
    /// Parse the named tool's arguments with plain `serde_json`, for comparison.
    Strict,
}

/// The rule by which two tool calls of a run are duplicates (`execution.duplicates`).
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
    /// Replies are read from and written to it.
    On,
    /// Replies are only read from it.
    ReadOnly,
    /// Replies are only written to it, and replace existing entries.
    WriteOnly,
}

impl CacheMode {
    /// Returns whether replies are read from the cache.
    pub fn reads(self) -> bool {
        matches!(self, CacheMode::On | CacheMode::ReadOnly)
    }

    /// Returns whether replies are written to the cache.
    pub fn writes(self) -> bool {
        matches!(self, CacheMode::On | CacheMode::WriteOnly)
    }
}
