//! The subject of a question to a model, and everything that depends on its kind alone.

use serde::{Deserialize, Serialize, Serializer};

use crate::adapt::ConsultationKind;

/// The subject of a question to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Subject {
    /// The plan of this version.
    Plan {
        /// From 1.
        version: u32,
    },
    /// A step's next calls, question or result.
    Scene {
        /// The step's number.
        step: u32,
    },
    /// The path through a flow.
    Path {
        /// The number of the flow's step.
        step: u32,
    },
    /// What a node of a flow returns.
    Node {
        /// The number of the node's step.
        step: u32,
    },
    /// The program of a step of kind code.
    Program {
        /// The step's number.
        step: u32,
    },
    /// A part of a summary of documents.
    Summary {
        /// The number of the step.
        step: u32,
        /// The ordinal of the step's call that the summary is the result of; absent where it is that of the step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call: Option<u32>,
        /// The part, from 1: the chunks first, the summary itself last.
        part: u32,
    },
    /// Whether the request is answered.
    Continuation {
        /// From 1.
        round: u32,
    },
    /// The text of the answer.
    Answer,
    /// Which scenes resemble the request, by embeddings.
    Ranking,
    /// Something unexpected about which a model is consulted.
    Consultation {
        /// The consultation's ordinal, from 1.
        consultation: u32,
        /// Its kind.
        kind: ConsultationKind,
    },
    /// The vote of one of several models in a decision.
    Vote {
        /// The consultation's ordinal.
        consultation: u32,
        /// The voter, from 1: its place among the models for decisions.
        voter: u32,
    },
}

/// The facts that follow from a subject's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubjectFacts {
    /// The purpose of the question, which chooses the model.
    pub purpose: Purpose,
    /// The ordinal of the plan version, step, round or consultation; 0 for the answer.
    pub number: u32,
    /// The step that the question belongs to.
    pub step: Option<u32>,
    /// What is in progress while the question is, for displays.
    pub activity: &'static str,
}

/// The purpose of a model call. Models, limits, caching and metrics can differ by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Purpose {
    /// Make a plan.
    Plan,
    /// Decide whether the request is answered.
    Continuation,
    /// Execute a step with a scene's tools.
    Scene,
    /// Word the answer.
    Answer,
    /// Summarise a conversation, or a part of documents.
    Summary,
    /// Embed texts. Only models with `embeddings = true` serve it.
    Embedding,
    /// Choose how to continue after a call failed.
    Recovery,
    /// Say where the values of the expected result are in data of another shape.
    Interpretation,
    /// Choose which of several alternatives is called in place of a failed call.
    Decision,
    /// Change the part of the plan that is not finished.
    Adaptation,
    /// Plan a path through a flow.
    Path,
    /// Execute a node of a flow.
    Node,
    /// Write a program that calls tools.
    Program,
}

impl Purpose {
    /// Its name in the configuration, the journal and metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns whether it decides about something unexpected: what helps now may not help in an hour.
    pub fn is_consultation(self) -> bool {
        matches!(self, Purpose::Recovery | Purpose::Interpretation | Purpose::Decision | Purpose::Adaptation)
    }
}

impl Subject {
    /// In a vote, the place of the only model that is asked, from 0.
    pub fn voter(self) -> Option<usize> {
        match self {
            Self::Vote { voter, .. } => Some(voter.saturating_sub(1) as usize),
            _ => None,
        }
    }

    /// Returns what follows from its kind.
    pub fn facts(self) -> SubjectFacts {
        let facts = |purpose, number, activity| SubjectFacts { purpose, number, step: None, activity };
        match self {
            Subject::Plan { version } => facts(Purpose::Plan, version, "planning"),
            Subject::Scene { step } => {
                SubjectFacts { step: Some(step), ..facts(Purpose::Scene, step, "executing a step") }
            }
            Subject::Path { step } => {
                SubjectFacts { step: Some(step), ..facts(Purpose::Path, step, "planning a path") }
            }
            Subject::Node { step } => {
                SubjectFacts { step: Some(step), ..facts(Purpose::Node, step, "executing a node") }
            }
            Subject::Program { step } => {
                SubjectFacts { step: Some(step), ..facts(Purpose::Program, step, "writing a program") }
            }
            Subject::Summary { step, part, .. } => {
                SubjectFacts { step: Some(step), ..facts(Purpose::Summary, part, "summarising") }
            }
            Subject::Continuation { round } => facts(Purpose::Continuation, round, "checking"),
            Subject::Answer => facts(Purpose::Answer, 0, "wording the answer"),
            Subject::Ranking => facts(Purpose::Embedding, 0, "ranking the scenes"),
            Subject::Consultation { consultation, kind } => {
                let purpose = match kind {
                    ConsultationKind::Recovery => Purpose::Recovery,
                    ConsultationKind::Interpretation => Purpose::Interpretation,
                    ConsultationKind::Decision => Purpose::Decision,
                    ConsultationKind::Adaptation => Purpose::Adaptation,
                };
                facts(purpose, consultation, "consulting")
            }
            Subject::Vote { consultation, .. } => facts(Purpose::Decision, consultation, "consulting"),
        }
    }

    /// Returns whether the offline model is asked when no model answers. Without it, predefined logic decides, or the
    /// function that a node declares, and no program is written.
    pub fn has_fallback(self) -> bool {
        !matches!(
            self,
            Subject::Consultation { .. }
                | Subject::Vote { .. }
                | Subject::Node { .. }
                | Subject::Program { .. }
        )
    }

    /// The ordinal of the consultation that it belongs to, if any.
    pub fn consultation(self) -> Option<u32> {
        match self {
            Subject::Consultation { consultation, .. } | Subject::Vote { consultation, .. } => {
                Some(consultation)
            }
            _ => None,
        }
    }

    /// Serialises the subject as a key of a map, such as `scene/2`, or `decision/1/3` for a vote.
    ///
    /// # Errors
    /// Errors of the serialiser.
    pub fn serialize_key<S: Serializer>(self, serializer: S) -> Result<S::Ok, S::Error> {
        let SubjectFacts { purpose, number, .. } = self.facts();
        match self {
            Subject::Vote { voter, .. } => {
                serializer.collect_str(&format_args!("{purpose}/{number}/{voter}"))
            }
            Subject::Summary { step, tool_call: None, part } => {
                serializer.collect_str(&format_args!("{purpose}/{step}/{part}"))
            }
            Subject::Summary { step, tool_call: Some(call), part } => {
                serializer.collect_str(&format_args!("{purpose}/{step}/call/{call}/{part}"))
            }
            _ => serializer.collect_str(&format_args!("{purpose}/{number}")),
        }
    }
}
