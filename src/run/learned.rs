//! Payloads of events about what executions teach for requests of one kind. The rules are in `learning`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::plan::{Plan, Reference};

/// Maximum number of ratings of one plan; each person has one.
pub const MAX_RATINGS: usize = 64;

/// The lessons that are drawn from executions (`planning.learn`). Each mode includes the ones before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LearnMode {
    /// Nothing.
    #[default]
    Off,
    /// The planner is shown plans that succeeded for similar requests.
    Hints,
    /// A request for which a plan is proven needs no planner.
    Reuse,
}

/// A plan with placeholders in place of the values of its request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedPlan {
    /// The steps, in order.
    pub steps: Vec<LearnedStep>,
    /// SHA-256 in hex of the definition of each tool, by `Scene.tool`.
    pub definitions: BTreeMap<String, String>,
}

/// A step of a learned plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedStep {
    /// Its number in the plan.
    pub number: u32,
    /// The scene.
    pub scene: String,
    /// The steps that it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u32>,
    /// The first and the last element of the template that form its purpose; absent if the whole request does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<(u32, u32)>,
    /// All its calls.
    pub calls: Vec<LearnedCall>,
    /// The nodes of the path, in order, where the step is a flow's; empty for a scene.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
}

impl LearnedPlan {
    /// A path through a flow, for requests in which these elements form the purpose of the flow's step.
    pub fn of_path(
        flow: &str,
        path: Vec<String>,
        words: Option<(u32, u32)>,
        definitions: BTreeMap<String, String>,
    ) -> Self {
        let (scene, after, calls) = (flow.to_owned(), Vec::new(), Vec::new());
        Self { steps: vec![LearnedStep { number: 1, scene, after, words, calls, path }], definitions }
    }

    /// The flow and the nodes of the path, where it is not a plan over scenes but a path through a flow.
    pub fn flow_path(&self) -> Option<(&str, &[String])> {
        let step = self.steps.first().filter(|step| !step.path.is_empty())?;
        Some((&step.scene, &step.path))
    }
}

/// A call of a learned plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedCall {
    /// The tool.
    pub tool: String,
    /// Where each argument comes from.
    pub arguments: BTreeMap<String, ValueBinding>,
}

/// Where a value of a call comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum ValueBinding {
    /// A placeholder of the template.
    Span {
        /// Its index, from 0.
        span: u32,
        /// How its value is written.
        form: SpanForm,
    },
    /// Words that every request of the template has.
    Words {
        /// As the call had them.
        text: String,
    },
    /// The result of an earlier call.
    Result {
        /// The place in that result.
        reference: Reference,
    },
    /// A list.
    List {
        /// Its items.
        items: Vec<ValueBinding>,
    },
    /// An object.
    Object {
        /// Its members.
        members: BTreeMap<String, ValueBinding>,
    },
}

/// How the value of a placeholder is written as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanForm {
    /// `2027-06-15`.
    Date,
    /// `18:30`.
    Time,
    /// `18:30:00`.
    TimeWithSeconds,
    /// A JSON number.
    Number,
    /// Text as written in the request.
    Text,
}

/// Why a learned plan is not used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Demotion {
    /// It failed; enough further successes prove it again.
    Failure,
    /// A tool has changed; enough further successes prove it again.
    Definition,
    /// A person rated it badly; only a good rating ends this.
    Rating,
}

/// How a look-up of a learned plan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RecallOutcome {
    /// A proven plan was found and is used.
    Reused,
    /// No plan may be reused for this request: see `learning`.
    Unfit,
    /// Nothing is known about such a request, or only from too few other users.
    Unknown,
    /// It has not succeeded often enough.
    Unproven,
    /// It failed or was rated badly.
    Demoted,
    /// One of its tools was out of service a short time ago.
    Suspended,
    /// A tool has changed since; the plan is demoted.
    Changed,
    /// With the values of this request, the plan is not valid.
    Unusable,
    /// The store could not be read in time.
    Unavailable,
    /// Only hints were looked for.
    Hints,
}

/// The knowledge about requests like this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecall {
    /// How the look-up ended.
    pub outcome: RecallOutcome,
    /// The request's template, SHA-256 in hex, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The plan with this request's values, if it is reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Plans that succeeded for similar requests, the most similar first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<PlanHint>,
}

impl PlanRecall {
    /// Nothing, and why: the request has no template, or what is known could not be read.
    pub(crate) fn none(outcome: RecallOutcome) -> Self {
        Self { outcome, template: None, plan: None, hints: Vec::new() }
    }

    /// No plan for the requests of a template, and why.
    pub(crate) fn without_plan(outcome: RecallOutcome, template: &str) -> Self {
        Self { template: Some(template.to_owned()), ..Self::none(outcome) }
    }
}

/// A plan that succeeded for a similar request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanHint {
    /// The request with placeholders.
    pub request: String,
    /// Its steps.
    pub steps: Vec<HintStep>,
}

/// A step of a [`PlanHint`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HintStep {
    /// The scene.
    pub scene: String,
    /// The tools that it called, in order.
    pub tools: Vec<String>,
}

/// The knowledge about paths through a flow for requests like this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRecall {
    /// How the look-up ended.
    pub outcome: RecallOutcome,
    /// The template of what the flow's step is for, SHA-256 in hex, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The nodes of the path, in order, if one is reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<String>>,
    /// Paths that succeeded for similar requests, the most similar first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<PathHint>,
}

impl PathRecall {
    /// Nothing, and why: the flow's step has no template, or what is known could not be read.
    pub(crate) fn none(outcome: RecallOutcome) -> Self {
        Self { outcome, template: None, path: None, hints: Vec::new() }
    }

    /// No path for the steps of a template, and why.
    pub(crate) fn without_path(outcome: RecallOutcome, template: &str) -> Self {
        Self { template: Some(template.to_owned()), ..Self::none(outcome) }
    }
}

/// A path through the flow that succeeded for a similar request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathHint {
    /// The request with placeholders.
    pub request: String,
    /// The names of its nodes, in order.
    pub path: Vec<String>,
}

/// The lesson of a run's end for the plan of its template, or for the path of a flow's step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLesson {
    /// The template, SHA-256 in hex.
    pub template: String,
    /// The request with placeholders.
    pub words: String,
    /// The plan with placeholders, or the path; absent where it was recalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<LearnedPlan>,
    /// What it did.
    pub result: LessonResult,
    /// SHA-256 in hex of the user's name.
    pub user: String,
}

/// The result of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LessonResult {
    /// It answered the request.
    Success,
    /// It did not suit the request.
    Failure,
    /// A tool was out of service; the plan may be right.
    Outage,
}

/// A person's judgement of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i8", into = "i8")]
pub enum PlanScore {
    /// -1.
    Bad,
    /// 1.
    Good,
}

impl TryFrom<i8> for PlanScore {
    type Error = &'static str;

    fn try_from(score: i8) -> Result<Self, Self::Error> {
        match score {
            -1 => Ok(Self::Bad),
            1 => Ok(Self::Good),
            _ => Err("a score is 1 (good) or -1 (bad)"),
        }
    }
}

impl From<PlanScore> for i8 {
    fn from(score: PlanScore) -> Self {
        match score {
            PlanScore::Bad => -1,
            PlanScore::Good => 1,
        }
    }
}
