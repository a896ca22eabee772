//! What predefined logic is asked about a failed attempt of a call, and the event that records its answer.

use super::event::{Effect, Event, Fault, FaultClass, Outcome, Repeat, UnexpectedSubject};
use super::state::{CallState, CallStatus, RunState};
use crate::adapt::{self, CallFailure, PolicyAction, PolicyChoice, Repetition, WeighedAction};

/// The fault code of a result that is not as its tool declares.
pub const POSTCONDITION: &str = "tool.postcondition";

/// Fault codes by which this process itself knows that a call did nothing: it was not sent.
const UNSENT: [&str; 2] = ["scene.busy", "http.unreachable"];

impl RunState {
    /// Whether predefined logic answers what is unexpected: the run has a mode.
    pub(super) fn adapts(&self) -> bool {
        self.settings().mode.is_some()
    }

    /// The event with what predefined logic decides about a failed attempt. `None` if none is left to be decided.
    pub(super) fn unexpected(&self, number: u32, call: &CallState) -> Option<Event> {
        let (CallStatus::Failing { outcome, .. } | CallStatus::Done { outcome }) = &call.status else {
            return None;
        };
        let subject = UnexpectedSubject::Call { call: number, attempt: call.attempts };
        if matches!(outcome, Outcome::Ok { .. }) && !call.breaches.is_empty() {
            // It was done: it is neither repeated nor replaced.
            let weighed = vec![WeighedAction { action: PolicyAction::Fail, refused: None }];
            let (class, code) = (FaultClass::BadData, POSTCONDITION.to_owned());
            return Some(Event::Unexpected { subject, class, code, weighed, chosen: PolicyChoice::Fail });
        }
        let fault = outcome.fault()?;
        let mut may = self.may();
        // A confirmation executes exactly the confirmed calls.
        if self.is_confirmation() {
            (may.alternatives, may.cached, may.skips) = (false, false, false);
        }
        let seed = format!("{}.{}.{number}.{}", self.run, call.step, call.attempts);
        let failure = CallFailure {
            class: fault.class,
            repetition: repetition(call, outcome, fault),
            attempts: call.attempts.saturating_sub(call.interruptions),
            retries_in_run: self.retries,
            waited_ms: self.waited_ms,
            asked_ms: fault.retry_after_ms,
            left_ms: self.left_ms(),
            used_alternative: self.has_used_alternative(number, call),
            used_cached: call.recalled,
            wrote: self.has_begun_a_write(),
            seed: &seed,
        };
        let declared = call.requested.policies.as_deref();
        let (chosen, weighed) = adapt::respond(&failure, declared, &self.settings().policies, may);
        Some(Event::Unexpected { subject, class: fault.class, code: fault.code.clone(), weighed, chosen })
    }

    /// The event that begins the wait for the next attempt of a call.
    pub(super) fn back_off_event(number: u32, call: &CallState, delay_ms: u64) -> Event {
        let asked_ms = match &call.status {
            CallStatus::Failing { outcome, .. } => outcome.fault().and_then(|fault| fault.retry_after_ms),
            _ => None,
        };
        Event::BackedOff { call: number, attempt: call.attempts + 1, delay_ms, asked_ms }
    }
}

/// Whether the call may be made again after an attempt that ended with `outcome`.
fn repetition(call: &CallState, outcome: &Outcome, fault: &Fault) -> Repetition {
    let keyed = call.requested.repeat == Repeat::Key;
    let may_be_done = call.uncertain || matches!(outcome, Outcome::Unknown { .. });
    // A server that asks to come back later has not accepted the request.
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
