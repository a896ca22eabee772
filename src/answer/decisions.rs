//! Which model decided what: the questions of a run whose replies were used, as the answer document lists them.

use serde::{Deserialize, Serialize};

use crate::adapt::{ConsultationKind, decision_id};
use crate::run::{
    Ask, AskStatus, ConsultationChoice, ConsultationState, ConsultationSubject, Purpose, RunState, Subject,
};

/// Maximum number of decisions of a document; the last ones are kept.
const MAX_DECISIONS: usize = 64;

/// One question of the run whose reply was used. Replies that were returned for repair decided nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AnswerDecision {
    /// The purpose of the question, as in `llm.purposes`: `plan`, `scene`, `continuation`, `answer`, `recovery`, …
    #[schema(value_type = String)]
    pub purpose: Purpose,
    /// The configured name of the model; `offline` for the offline model, `replaced` for a part of the library's user.
    pub model: String,
    /// The step that it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u32>,
    /// That step's scene.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scene_name: Option<String>,
    /// The tool of the failed call that it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The version of the plan that it led to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The decision: for a check, `answer` or `continue`; for a consultation, the id of the option, such as `retry`,
    /// or `none` where predefined logic decided after all; for the plan, `patch` or `unchanged`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<String>,
}

/// The decisions of a run, in order of their questions. Choices that a later consultation shared with an earlier one follow.
pub(super) fn decisions(state: &RunState) -> Vec<AnswerDecision> {
    let asked = state.asks.values().filter_map(|ask| match &ask.status {
        AskStatus::Used { reply } => Some(decision(state, ask, reply.model.clone())),
        _ => None,
    });
    let shared = state.consultations.values().filter(|own| own.question.is_none());
    let shared = shared.filter_map(|own| {
        let model = own.model.clone()?;
        let purpose = Subject::Consultation { consultation: 0, kind: own.subject.kind() }.facts().purpose;
        Some(consulted(state, own, AnswerDecision::new(purpose, model)))
    });
    let mut all: Vec<AnswerDecision> = asked.chain(shared).collect();
    all.drain(..all.len().saturating_sub(MAX_DECISIONS));
    all
}

fn decision(state: &RunState, ask: &Ask, model: String) -> AnswerDecision {
    let facts = ask.subject.facts();
    let decision = AnswerDecision::new(facts.purpose, model);
    match ask.subject {
        Subject::Plan { version } => AnswerDecision { version: Some(version), ..decision },
        Subject::Scene { step }
        | Subject::Path { step }
        | Subject::Summary { step, .. }
        | Subject::Program { step } => decision.about_step(state, step),
        // The step of a node is none of the plan: its flow is named.
        Subject::Node { step } => {
            let parent = state.steps.get(&step).and_then(|step| step.node()).map(|node| node.parent);
            decision.about_step(state, parent.unwrap_or(step))
        }
        Subject::Continuation { round } => {
            let verdict = state.verdicts.get(round.saturating_sub(1) as usize);
            let decided = verdict.map(|verdict| if verdict.should_continue { "continue" } else { "answer" });
            AnswerDecision { decided: decided.map(str::to_owned), ..decision }
        }
        Subject::Consultation { consultation, .. } => match state.consultations.get(&consultation) {
            Some(own) => consulted(state, own, decision),
            None => decision,
        },
        Subject::Vote { consultation, voter } => match state.consultations.get(&consultation) {
            Some(own) => voted(state, own, voter, decision),
            None => decision,
        },
        Subject::Answer | Subject::Ranking => decision,
    }
}

/// The decision with what a consultation was about and what was chosen in it.
fn consulted(state: &RunState, own: &ConsultationState, decision: AnswerDecision) -> AnswerDecision {
    let call = own.subject.call().and_then(|call| state.calls.get(&call));
    let step = match own.subject {
        ConsultationSubject::Adaptation { step } => Some(step),
        _ => call.map(|call| call.step),
    };
    let version = match own.chosen {
        Some(ConsultationChoice::Patch { version }) => Some(version),
        _ => None,
    };
    // Without a patch the plan stays as it was, which is a choice, too.
    let unchosen = if own.subject.kind() == ConsultationKind::Adaptation { "unchanged" } else { "none" };
    let decided = own.chosen.as_ref().map_or(unchosen, ConsultationChoice::id);
    let decision = match step {
        Some(step) => decision.about_step(state, step),
        None => decision,
    };
    AnswerDecision {
        tool: call.map(|call| call.requested.tool.clone()),
        version,
        decided: own.ended.then(|| decided.to_owned()),
        ..decision
    }
}

/// The decision with what one of several models voted for.
fn voted(state: &RunState, own: &ConsultationState, voter: u32, decision: AnswerDecision) -> AnswerDecision {
    let vote = own.votes.get(&voter).map(|vote| decision_id(vote.at).to_owned());
    AnswerDecision { decided: vote, ..consulted(state, own, decision) }
}

impl AnswerDecision {
    fn new(purpose: Purpose, model: String) -> Self {
        Self { purpose, model, step_number: None, scene_name: None, tool: None, version: None, decided: None }
    }

    fn about_step(self, state: &RunState, step: u32) -> Self {
        let scene_name = state.steps.get(&step).map(|step| step.step.label().to_owned());
        Self { step_number: Some(step), scene_name, ..self }
    }
}
