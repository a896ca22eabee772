//! Folds consultations: their opening, the origin of their replies, and their end.

use std::collections::BTreeMap;

use super::super::attempt::Attempt;
use super::super::consult::{AskOrigin, ConsultationState};
use super::super::event::{
    ConsultationChoice, ConsultationSubject, Event, Fault, Question, Reply, Subject, UnexpectedSubject,
};
use super::super::state::{CallStatus, RunState};
use crate::adapt::{self, ConsultationKind, PolicyChoice, RecoveryAction, ReplyOrigin};

impl RunState {
    /// Something unexpected about which a model is to be asked opens a consultation.
    pub(super) fn fold_opening(&mut self, event: &Event) {
        let Event::Unexpected { subject, class, code, chosen, options, .. } = event else { return };
        let PolicyChoice::Consult { consultation, kind, voters } = *chosen else { return };
        let subject = match *subject {
            UnexpectedSubject::Call { call, attempt } if kind == Some(ConsultationKind::Interpretation) => {
                ConsultationSubject::Interpretation { call, attempt }
            }
            UnexpectedSubject::Call { call, attempt } if kind == Some(ConsultationKind::Decision) => {
                ConsultationSubject::Decision { call, attempt }
            }
            UnexpectedSubject::Call { call, attempt } => ConsultationSubject::Recovery { call, attempt },
            UnexpectedSubject::Step { step } => ConsultationSubject::Adaptation { step },
            UnexpectedSubject::Run { .. } => return,
        };
        let shape = match subject {
            ConsultationSubject::Interpretation { call, .. } => self.data_to_map(call).map(adapt::shape),
            _ => None,
        };
        let opened = ConsultationState {
            subject,
            class: *class,
            code: code.clone(),
            options: options.clone(),
            shape,
            voters,
            votes: BTreeMap::new(),
            question: None,
            ended: false,
            chosen: None,
            model: None,
            is_outdated: false,
            unanswered: false,
        };
        self.consultations.insert(consultation, opened);
        self.count_votes(voters);
    }

    /// A question of a consultation was put. Only its first one counts.
    pub(super) fn fold_consultation_question(&mut self, number: u32, question: u32) {
        let Some(consultation) = self.consultations.get_mut(&number) else { return };
        let first = consultation.question.replace(question).is_none();
        self.consulted += u32::from(first && consultation.voters == 1);
    }

    /// Keeps where the reply to a consultation's question came from, or why there was none.
    pub(super) fn keep_origin(&mut self, call: u32, end: Result<&String, &Fault>, attempts: &[Attempt]) {
        let Some(ask) = self.asks.get_mut(&call) else { return };
        if ask.subject.consultation().is_none() {
            return;
        }
        let last = attempts.last();
        let code = end.map_or_else(|error| error.code.as_str(), |_| "");
        let reply = match (code, last) {
            (_, Some(last)) if [Attempt::CACHED, Attempt::JOINED].contains(&last.outcome.as_str()) => {
                ReplyOrigin::Shared
            }
            ("budget.exceeded", _) => ReplyOrigin::NoMoney,
            ("limits.exceeded" | "llm.guard_unavailable", _) => ReplyOrigin::NoTurn,
            ("llm.timeout", None) => ReplyOrigin::NoTurn,
            _ => ReplyOrigin::Sent,
        };
        // A replaced part makes no attempts at a model.
        let part = end.ok().filter(|model| *model == Reply::REPLACED_MODEL);
        let model = last.map(|last| &last.model).or(part).cloned();
        ask.origin = Some(AskOrigin { reply, model });
    }

    /// A consultation has ended. What was chosen decides how its call continues, if that still waits for it.
    pub(super) fn fold_consultation(&mut self, event: &Event) {
        let Event::Consultation { consultation, subject, question, chosen, refused, model, ask, .. } = event
        else {
            return;
        };
        let about = Subject::Consultation { consultation: *consultation, kind: subject.kind() };
        let sent = question.and_then(|question| self.asks.get(&question)?.origin.as_ref());
        // No reply to an equal question in progress says the same about the model.
        let sent = sent.is_none_or(|origin| matches!(origin.reply, ReplyOrigin::Sent | ReplyOrigin::Shared));
        let unanswered = question.is_some() && chosen.is_none() && sent && !self.is_replied(*consultation);
        self.uncount_votes(*consultation);
        self.use_reply_about(about);
        let chosen = chosen.clone().filter(|_| refused.is_none());
        if let Some(ended) = self.consultations.get_mut(consultation) {
            ended.ended = true;
            ended.chosen.clone_from(&chosen);
            ended.model.clone_from(model);
            ended.unanswered = unanswered;
        }
        match *subject {
            ConsultationSubject::Recovery { call, .. } => {
                self.continue_call(call, *consultation, chosen, ask.as_ref());
            }
            ConsultationSubject::Decision { call, .. } => {
                self.call_chosen_alternative(call, *consultation, chosen.as_ref());
            }
            // A mapping is applied next.
            ConsultationSubject::Interpretation { call, .. } if chosen.is_none() => {
                self.decide_without_mapping(call);
            }
            ConsultationSubject::Interpretation { .. } | ConsultationSubject::Adaptation { .. } => {}
        }
    }

    /// The reply to a consultation has put a version of the plan in force.
    pub(super) fn choose_patch(&mut self, number: u32, version: u32) {
        let kind = ConsultationKind::Adaptation;
        self.use_reply_about(Subject::Consultation { consultation: number, kind });
        if let Some(consultation) = self.consultations.get_mut(&number) {
            consultation.chosen = Some(ConsultationChoice::Patch { version });
        }
    }

    fn continue_call(
        &mut self,
        number: u32,
        consultation: u32,
        chosen: Option<ConsultationChoice>,
        ask: Option<&Question>,
    ) {
        let action = chosen.and_then(|chosen| chosen.option());
        let continued = self.calls.change(number, |call| {
            let waits = call.consultation() == Some(consultation);
            let CallStatus::Failing { outcome, .. } = &call.status else { return None };
            if !waits {
                return None;
            }
            let outcome = outcome.clone();
            call.left_out = action == Some(RecoveryAction::Skip);
            call.status = match action {
                Some(RecoveryAction::Retry { delay_ms }) => {
                    CallStatus::Failing { outcome, chosen: Some(PolicyChoice::Retry { delay_ms }) }
                }
                Some(RecoveryAction::Alternative { at }) => {
                    CallStatus::Failing { outcome, chosen: Some(PolicyChoice::Alternative { at }) }
                }
                Some(RecoveryAction::Cached { max_age_s }) => {
                    CallStatus::Failing { outcome, chosen: Some(PolicyChoice::Cached { max_age_s }) }
                }
                Some(RecoveryAction::Skip | RecoveryAction::AskUser | RecoveryAction::Abort) | None => {
                    CallStatus::Done { outcome }
                }
            };
            Some(call.step)
        });
        let Some(Some(step)) = continued else { return };
        self.close_call(number);
        let stops = matches!(action, Some(RecoveryAction::AskUser | RecoveryAction::Abort));
        self.step(step, |step| {
            step.stopped |= stops;
            if let Some(asked) = ask {
                let before = step.question.take().filter(|before| before.text != asked.text);
                let text =
                    before.map_or_else(|| asked.text.clone(), |b| format!("{}\n{}", b.text, asked.text));
                step.question = Some(Question { text, ..asked.clone() });
            }
        });
    }
}
