//! The question to predefined logic about a failed attempt of a call, and the event that records its answer.

use super::event::{Effect, Event, Fault, FaultClass, Outcome, Repeat, UnexpectedSubject};
use super::state::{CallState, CallStatus, RunState};
use crate::adapt::{
    self, AskRefusal, AskingFacts, CallFailure, Capabilities, ConsultationKind, PolicyAction, PolicyChoice,
    Repetition, ToolPolicies, WeighedAction,
};

/// The fault code of a result that is not as its tool declares.
pub const POSTCONDITION: &str = "tool.postcondition";

/// Fault codes that show this process itself that a call did nothing: it was not sent.
const UNSENT: [&str; 4] = ["scene.busy", "http.unreachable", "tool.disabled", "tool.breaker_open"];

/// Fault codes of calls that would be refused again at once.
const BARRED: [&str; 2] = ["tool.disabled", "tool.breaker_open"];

impl RunState {
    /// Returns whether predefined logic answers what is unexpected: the run has a mode.
    pub(super) fn adapts(&self) -> bool {
        self.settings().mode.is_some()
    }

    /// The event with the decision of predefined logic about a failed attempt; `None` if no decision is due.
    pub(super) fn unexpected(&self, number: u32, call: &CallState) -> Option<Event> {
        if matches!(call.status, CallStatus::Done { outcome: Outcome::Ok { .. } })
            && !call.breaches.is_empty()
        {
            return Some(self.odd_result(number, call));
        }
        let failing = matches!(call.status, CallStatus::Failing { .. });
        // A call whose substitute failed gets its own decision afterwards.
        let others_decide = call.replaces.is_some() || self.steps.get(&call.step).is_some_and(|s| s.stopped);
        self.with_failure(number, call, |failure, declared, may| {
            let defaults = &self.settings().policies;
            let (mut chosen, mut weighed) = adapt::respond(failure, declared, defaults, may);
            let mut options = adapt::recovery_options(failure, declared, defaults, may);
            let decides = self.asks_for_choice(call, (chosen, others_decide), (failure, declared, may));
            let others_decide = others_decide || adapt::is_final(failure.class, declared);
            let kind = match self.asks_for_mapping(call, (chosen, others_decide), may) {
                true => Some(ConsultationKind::Interpretation),
                false => decides.then_some(ConsultationKind::Decision),
            };
            let facts = AskingFacts {
                // Without a mapping, the failure stands.
                decided: others_decide || chosen != PolicyChoice::Fail || call.interpretation_tried,
                person_decides: failure.repetition == Repetition::Unsafe || !failing,
                allowed: may.recovery,
                choices: adapt::recovery_choices(&options, failure.class),
                ..self.opening_facts()
            };
            let unasked = self.ask_refusal(facts).filter(|_| kind.is_none());
            match (unasked, weighed.last_mut()) {
                (None, Some(last)) => {
                    let decides = kind == Some(ConsultationKind::Decision);
                    let voters = if decides { self.voters_now() } else { 1 };
                    chosen = PolicyChoice::Consult { consultation: self.next_consultation(), kind, voters };
                    last.action = chosen.action();
                    match kind {
                        Some(ConsultationKind::Decision) => {
                            options = adapt::decision_options(failure, declared);
                        }
                        Some(_) => options.clear(),
                        None => {}
                    }
                }
                _ => options.clear(),
            }
            let fault = call.fault()?;
            Some(Event::Unexpected {
                subject: UnexpectedSubject::Call { call: number, attempt: call.attempts },
                class: fault.class,
                code: fault.code.clone(),
                weighed,
                chosen,
                unasked: unasked.filter(|_| self.settings().has_rules(5)),
                options,
            })
        })?
    }

    /// The event about a write that was done and whose result is not as its tool declares: it is neither repeated nor
    /// replaced.
    fn odd_result(&self, number: u32, call: &CallState) -> Event {
        Event::Unexpected {
            subject: UnexpectedSubject::Call { call: number, attempt: call.attempts },
            class: FaultClass::BadData,
            code: POSTCONDITION.to_owned(),
            weighed: vec![WeighedAction { action: PolicyAction::Fail, refused: None }],
            chosen: PolicyChoice::Fail,
            unasked: Some(AskRefusal::Decided).filter(|_| self.settings().has_rules(5)),
            options: Vec::new(),
        }
    }

    /// Passes the facts of a failed attempt to `decide`, with what its tool declares and what may happen in its step.
    /// `None` if the call has not failed.
    pub(super) fn with_failure<T>(
        &self,
        number: u32,
        call: &CallState,
        decide: impl FnOnce(&CallFailure<'_>, Option<&ToolPolicies>, Capabilities) -> T,
    ) -> Option<T> {
        let (CallStatus::Failing { outcome, .. } | CallStatus::Done { outcome }) = &call.status else {
            return None;
        };
        let fault = outcome.fault()?;
        let mut may = self.steps.get(&call.step).map_or_else(|| self.may(), |step| self.may_in(step));
        // A confirmation executes exactly the confirmed calls.
        if self.is_confirmation() {
            (may.alternatives, may.cached, may.skips) = (false, false, false);
        }
        let seed = format!("{}.{}.{number}.{}", self.run, call.step, call.attempts);
        let open_alternatives = self.open_alternatives(number, call);
        let (due, due_ms) = self.due_retries(number);
        let failure = CallFailure {
            class: fault.class,
            repetition: repetition(call, outcome, fault),
            is_barred: BARRED.contains(&fault.code.as_str()),
            attempts: call.attempts.saturating_sub(call.interruptions),
            retries_in_run: self.retries.saturating_add(due),
            waited_ms: self.waited_ms.saturating_add(due_ms),
            asked_ms: fault.retry_after_ms,
            left_ms: self.left_ms(),
            used_alternative: self.has_used_alternative(number, call),
            open_alternatives: &open_alternatives,
            used_cached: call.recalled,
            wrote: self.has_begun_a_write(),
            seed: &seed,
        };
        Some(decide(&failure, call.requested.policies.as_deref(), may))
    }

    /// The retries of other calls that are chosen and have not begun their wait, and how long they wait, in milliseconds: of
    /// calls that failed at once, each would fit alone.
    fn due_retries(&self, number: u32) -> (u32, u64) {
        let due = self.calls.open().filter_map(|(other, call)| match call.status {
            CallStatus::Failing { chosen: Some(PolicyChoice::Retry { delay_ms }), .. } if other != number => {
                Some((u32::from(!call.is_first_keyed_retry()), delay_ms))
            }
            _ => None,
        });
        due.fold((0, 0), |(retries, waits), (retry, wait)| (retries + retry, waits.saturating_add(wait)))
    }

    /// The event that begins the wait for the next attempt of a call.
    pub(super) fn back_off_event(number: u32, call: &CallState, delay_ms: u64) -> Event {
        let asked_ms = call.fault().and_then(|fault| fault.retry_after_ms);
        Event::BackedOff { call: number, attempt: call.attempts + 1, delay_ms, asked_ms }
    }
}

/// Whether the call may be made again after an attempt that ended with `outcome`.
fn repetition(call: &CallState, outcome: &Outcome, fault: &Fault) -> Repetition {
    let keyed = call.requested.repeat == Repeat::Key;
    let may_be_done = call.uncertain || matches!(outcome, Outcome::Unknown { .. });
    // A server that asks the client to come back later has not accepted the request.
    let sent_away = fault.class == FaultClass::RateLimit && fault.code.starts_with("http.");
    let unsent = sent_away || UNSENT.contains(&fault.code.as_str());
    match (call.requested.effect, may_be_done) {
        (Effect::Read, _) => Repetition::Harmless,
        (Effect::Write, true) if keyed => Repetition::Keyed,
        (Effect::Write, true) => Repetition::Unsafe,
        (Effect::Write, false) if keyed || unsent => Repetition::SurelyNothingDone,
        (Effect::Write, false) => Repetition::NothingDone,
    }
}
