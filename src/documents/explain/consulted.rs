//! Consultations in the explanation of a run.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::entries::Entries;
use super::{ExplainedDecider, ExplainedEvent, ExplainedResult, ExplainedSubject};
use crate::adapt::{self, AskRefusal, ConsultationKind, PolicyChoice, RecoveryAction};
use crate::run::{
    ConsultationChoice, ConsultationSubject, Event, Fault, FaultClass, Reply, UnexpectedSubject,
};

/// The consultation of a model about something unexpected, if there was one, and what it chose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedConsultation {
    /// Whether a model was asked, or why not: `policy`, `cached`, `asked`, `over_budget`, `rate_limited`, `not_allowed`;
    /// absent as long as the question is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// Why no model was asked, such as `level` or `run_limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<String>,
    /// The choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// Who voted for what, where several models did, such as `main: alternative_2 (GetForecast)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<String>,
    /// Where a model found the expected values, such as `/rows/*/temp from /forecast/*/temperature`; for callers who may
    /// read everything of the tenant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mapping: Vec<String>,
    /// Why that could not be done any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The model that chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model's reason, for callers who may read everything of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Entries<'_> {
    /// Returns what a model may choose about the last failed attempt of the call, or why none is asked.
    pub(super) fn offered(
        &mut self,
        call: u32,
        (unasked, chosen): (Option<AskRefusal>, PolicyChoice),
        options: &[RecoveryAction],
    ) {
        let consults = matches!(chosen, PolicyChoice::Consult { .. });
        let decides = matches!(chosen, PolicyChoice::Consult { kind: Some(ConsultationKind::Decision), .. });
        let offered = options.iter().map(|option| match option {
            RecoveryAction::Alternative { at } if decides => self.alternative(call, *at),
            option => option.id().to_owned(),
        });
        let offered = offered.collect();
        if unasked.is_none() && options.is_empty() && !consults {
            return;
        }
        let Some(entry) = self.call_entry(call) else { return };
        // An earlier question about the same failure is in the entry already.
        if entry.consultation.is_some() && !consults {
            return;
        }
        entry.consultation = Some(ExplainedConsultation {
            how: unasked.map(|why| why.outcome().name().to_owned()),
            why: unasked.map(|why| why.name().to_owned()),
            offered,
            ..ExplainedConsultation::default()
        });
    }

    /// The id of an alternative of a call, with its tool: `alternative_1 (GetForecast)`.
    fn alternative(&self, call: u32, at: u32) -> String {
        let policies = self.state.calls.get(&call).and_then(|call| call.requested.policies.as_ref());
        let tool = policies.and_then(|policies| policies.alternative_at(at)).map(|by| by.tool.as_str());
        format!("{} ({})", adapt::decision_id(at), tool.unwrap_or_default())
    }

    fn votes(&self, consultation: u32) -> Vec<String> {
        let own = self.state.consultations.get(&consultation);
        let votes =
            own.into_iter().flat_map(|own| own.votes.values().map(move |vote| (own.subject.call(), vote)));
        let told = votes.map(|(call, vote)| {
            let option = self.alternative(call.unwrap_or_default(), vote.at);
            format!("{}: {option}", vote.model.as_deref().unwrap_or_default())
        });
        told.collect()
    }

    /// A consultation has ended.
    pub(super) fn consulted(&mut self, event: &Event) {
        let Event::Consultation { consultation, subject, how, chosen, refused, reason, model, error, .. } =
            event
        else {
            return;
        };
        let (usage, millis) = self.cost_of(*consultation);
        let votes = self.votes(*consultation);
        let with_messages = self.with_messages;
        let entry = match subject {
            ConsultationSubject::Recovery { call, .. }
            | ConsultationSubject::Interpretation { call, .. }
            | ConsultationSubject::Decision { call, .. } => self.call_entry(*call),
            ConsultationSubject::Adaptation { step } => {
                self.of_step.get(step).and_then(|index| self.entries.get_mut(*index))
            }
        };
        let Some(entry) = entry else { return };
        entry.cost.waited_ms += millis;
        entry.cost.llm_calls += usage.calls;
        entry.cost.cost_usd += usage.cost_nano_usd as f64 / 1e9;
        let told = entry.consultation.get_or_insert_default();
        told.how = Some(how.name().to_owned());
        told.why = error.as_ref().map(|error| error.code.clone());
        told.chosen = chosen.as_ref().map(|chosen| chosen.id().to_owned());
        told.refused = refused.map(|refused| refused.reason().to_owned());
        told.model.clone_from(model);
        told.votes = votes;
        told.reason = Some(reason.clone()).filter(|reason| with_messages && !reason.is_empty());
        if let Some(ConsultationChoice::Interpretation { mapping }) =
            chosen.as_ref().filter(|_| with_messages)
        {
            told.mapping = mapping.iter().map(|place| format!("{} from {}", place.to, place.from)).collect();
        }
        let Some(chosen) = chosen.as_ref().filter(|_| refused.is_none()) else { return };
        entry.chosen = Some(chosen.id().to_owned());
        entry.decided_by = match model.as_deref() {
            Some(Reply::REPLACED_MODEL) => ExplainedDecider::Part,
            _ => ExplainedDecider::Model,
        };
        entry.by.clone_from(model);
        entry.then = match chosen {
            ConsultationChoice::Recovery { action } => match action {
                RecoveryAction::Skip => ExplainedResult::LeftOut,
                RecoveryAction::AskUser => ExplainedResult::AskedUser,
                RecoveryAction::Abort => ExplainedResult::GivenUp,
                _ => ExplainedResult::Pending,
            },
            ConsultationChoice::Interpretation { .. } | ConsultationChoice::Decision { .. } => {
                ExplainedResult::Pending
            }
            ConsultationChoice::Patch { .. } => ExplainedResult::PlanChanged,
        };
    }

    /// A step ended because of which a model could change the rest of the plan, or the run made no progress.
    pub(super) fn step_ended(
        &mut self,
        at: Timestamp,
        subject: UnexpectedSubject,
        (class, code): (FaultClass, &str),
        unasked: Option<AskRefusal>,
    ) {
        let (about, step) = match subject {
            UnexpectedSubject::Step { step } => (ExplainedSubject::Step, Some(step)),
            _ => (ExplainedSubject::Run, None),
        };
        let entry = self.entry(at, about, &Fault::new(code, code).classed(class));
        if let Some(step) = step {
            self.of_step.insert(step, self.entries.len());
        }
        self.entries.push(ExplainedEvent {
            step_number: step,
            scene_name: step.and_then(|step| self.scene(step)),
            consultation: unasked.map(|why| ExplainedConsultation {
                how: Some(why.outcome().name().to_owned()),
                why: Some(why.name().to_owned()),
                ..ExplainedConsultation::default()
            }),
            then: ExplainedResult::PlanKept,
            ..entry
        });
    }
}
