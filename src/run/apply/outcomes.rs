//! Folds the end of an attempt of a call, what predefined logic decided about it, and its timers.

use jiff::SignedDuration;

use super::super::event::{
    Adaptation, Effect, Event, Fault, FaultClass, Outcome, Repeat, ResultNotes, RunStatus, TimerSubject,
    UnexpectedSubject,
};
use super::super::guard::mark_reads_stale;
use super::super::state::{CallState, CallStatus, RunState};
use crate::adapt::{ConsultationKind, MAX_TIMER_MS, PolicyChoice};

/// Whether a model is consulted in this way.
fn is_consultation(chosen: PolicyChoice, about: ConsultationKind) -> bool {
    matches!(chosen, PolicyChoice::Consult { kind: Some(kind), .. } if kind == about)
}

/// Maximum number of attempts of a write with an idempotency key, in a run without a mode.
const MAX_KEYED_ATTEMPTS: u32 = 2;

impl CallState {
    /// Whether its next attempt is the first repetition of a write that may have taken effect and has a key: it is not
    /// counted among the retries of the run.
    pub(in crate::run) fn is_first_keyed_retry(&self) -> bool {
        self.uncertain && self.attempts.saturating_sub(self.interruptions) < MAX_KEYED_ATTEMPTS
    }
}

impl RunState {
    pub(super) fn complete_call(&mut self, number: u32, outcome: &Outcome, notes: Option<&ResultNotes>) {
        let Some(call) = self.calls.get(&number) else { return };
        let breaches = notes.map(|notes| notes.breaches.as_slice()).unwrap_or_default();
        let quotes_documents = notes.is_some_and(|notes| !notes.documents.is_empty());
        let (outcome, uncertain) = self.settled_outcome(call, outcome);
        let unknown = matches!(outcome, Outcome::Unknown { .. });
        // A write that was only reported (dry run) was never begun.
        let done = matches!(outcome, Outcome::Ok { .. }) && call.attempts > 0;
        let wrote = call.requested.effect == Effect::Write && (unknown || done);
        let scene = call.scene.clone();
        // A read whose result is not as expected has failed. A write was done, which nothing changes any more.
        let expects = self.steps.get(&call.step).is_some_and(|step| !step.step.expect.is_empty());
        let odd = if done && wrote && (self.adapts() || expects) { breaches.to_vec() } else { Vec::new() };
        let (status, unnoted) = self.status_after(call, outcome);
        let unnoted = unnoted || (!odd.is_empty() && self.adapts());
        let is_failing = matches!(status, CallStatus::Failing { .. });
        let odd_data =
            notes.filter(|notes| notes.mappable && is_failing).and_then(|notes| notes.rejected.clone());
        self.calls.change(number, |call| {
            call.breaches = odd;
            call.odd_data = odd_data;
            call.quotes_documents |= quotes_documents;
            call.status = status;
            call.uncertain = uncertain;
            call.unnoted = unnoted;
        });
        self.close_call(number);
        if wrote {
            mark_reads_stale(self, &scene);
        }
        // After the undo, an equal call is a new one.
        let undone = self.calls.get(&number).filter(|call| self.is_undone_by(call)).and_then(|c| c.undoes);
        if let Some(write) = undone {
            self.calls.change(write, |write| write.stale = true);
        }
    }

    /// The outcome as it counts, and whether an attempt may have taken effect and none has succeeded. A read changes
    /// nothing, so its unknown outcome is a failure. From revision 4 on, a write of which an earlier attempt may have
    /// taken effect stays unknown when a later attempt fails.
    fn settled_outcome(&self, call: &CallState, outcome: &Outcome) -> (Outcome, bool) {
        let writes = call.requested.effect == Effect::Write;
        let counts = self.settings().has_rules(4) && writes;
        match outcome {
            Outcome::Unknown { error } if !writes => (Outcome::Failed { error: error.clone() }, false),
            Outcome::Failed { error } | Outcome::Refused { error } if counts && call.uncertain => {
                (Outcome::Unknown { error: error.clone() }, true)
            }
            Outcome::Unknown { .. } => (outcome.clone(), counts),
            _ => (outcome.clone(), false),
        }
    }

    /// The call's status after an attempt that ended with `outcome`, and whether that end is unexpected although the
    /// call has ended: a write that nothing makes safe to repeat is put to a person at once.
    fn status_after(&self, call: &CallState, outcome: Outcome) -> (CallStatus, bool) {
        let keyed = call.requested.repeat == Repeat::Key;
        let unknown = matches!(outcome, Outcome::Unknown { .. });
        let unexpected = self.is_unexpected(call, &outcome);
        let attempts = call.attempts.saturating_sub(call.interruptions);
        if unexpected && (!unknown || keyed) {
            return (CallStatus::Failing { outcome, chosen: None }, false);
        }
        if !unexpected && unknown && keyed && attempts < MAX_KEYED_ATTEMPTS {
            return (CallStatus::Again { attempt: call.attempts + 1 }, false);
        }
        (CallStatus::Done { outcome }, unexpected)
    }

    /// Whether predefined logic decides about the end of an attempt: in a run with a mode, where the tool or its
    /// back end failed. A scene's own refusal, which has no class, is a result.
    fn is_unexpected(&self, call: &CallState, outcome: &Outcome) -> bool {
        let failed = match outcome {
            Outcome::Ok { .. } => false,
            Outcome::Failed { .. } | Outcome::Unknown { .. } => true,
            Outcome::Refused { error } => error.class != FaultClass::Other,
        };
        failed && self.adapts() && call.attempts > 0 && call.undoes.is_none()
    }

    /// Folds what predefined logic decided about a failed attempt, the wait for the next one, or its end.
    pub(super) fn fold_failure(&mut self, event: &Event) {
        match event {
            Event::Unexpected { subject: UnexpectedSubject::Call { call, .. }, chosen, .. } => {
                self.fold_opening(event);
                self.calls.change(*call, |call| {
                    call.unnoted = false;
                    call.interpretation_tried |= is_consultation(*chosen, ConsultationKind::Interpretation);
                    call.decision_tried |= is_consultation(*chosen, ConsultationKind::Decision);
                    let CallStatus::Failing { outcome, .. } = &call.status else { return };
                    let outcome = outcome.clone();
                    call.left_out = *chosen == PolicyChoice::Skip;
                    call.status = match chosen {
                        PolicyChoice::Retry { .. }
                        | PolicyChoice::Alternative { .. }
                        | PolicyChoice::Cached { .. }
                        | PolicyChoice::Consult { .. } => {
                            CallStatus::Failing { outcome, chosen: Some(*chosen) }
                        }
                        PolicyChoice::Skip | PolicyChoice::Fail => CallStatus::Done { outcome },
                    };
                });
                self.close_call(*call);
            }
            Event::Unexpected { subject: UnexpectedSubject::Step { step }, .. } => {
                self.fold_opening(event);
                self.step(*step, |step| step.noted = true);
            }
            Event::Unexpected { subject: UnexpectedSubject::Run { idle_steps }, .. } => {
                self.stop_planning(&Self::no_progress_fault(*idle_steps));
            }
            Event::Voted { .. } => self.fold_vote(event),
            Event::Consultation { .. } => self.fold_consultation(event),
            Event::BackedOff { call, attempt, delay_ms, .. } => self.back_off(*call, *attempt, *delay_ms),
            Event::TimerFired { timer: TimerSubject::Retry { call, attempt } } => {
                self.calls.change(*call, |call| call.status = CallStatus::Again { attempt: *attempt });
            }
            Event::Adapted { change: Adaptation::Substituted { call, requested } } => {
                self.substitute(*call, requested);
            }
            Event::Adapted { change: Adaptation::Recalled { call, found } } => {
                self.recall(*call, found.as_deref());
            }
            Event::Adapted { change: Adaptation::Interpreted { call, found } } => {
                self.interpret(*call, found.as_deref());
            }
            _ => {}
        }
    }

    fn back_off(&mut self, number: u32, attempt: u32, delay_ms: u64) {
        // A journal may have been written under other bounds.
        let delay_ms = delay_ms.min(MAX_TIMER_MS);
        let wait = SignedDuration::from_millis(i64::try_from(delay_ms).unwrap_or(i64::MAX));
        let until = self.at.saturating_add(wait).unwrap_or(self.at);
        let changed = self.calls.change(number, |call| {
            let CallStatus::Failing { outcome, .. } = &call.status else { return None };
            let outcome = outcome.clone();
            let is_first_keyed = call.is_first_keyed_retry();
            call.status = CallStatus::BackedOff { attempt, until, delay_ms, outcome };
            Some(is_first_keyed)
        });
        let Some(Some(is_first_keyed)) = changed else { return };
        self.waited_ms = self.waited_ms.saturating_add(delay_ms);
        self.retries += u32::from(!is_first_keyed);
    }

    /// Ends the calls that have not ended with their run: the outcome of a write in flight, or of one that was to be
    /// repeated, will never be known now.
    pub(super) fn end_calls(&mut self) {
        let (counts, told_apart) = (self.settings().has_rules(4), self.settings().has_rules(6));
        for number in self.calls.unrecorded_failures().map(|(number, _)| number).collect::<Vec<_>>() {
            self.calls.change(number, |call| call.unnoted = false);
        }
        self.calls.change_open(|call| {
            let begun = match call.status {
                CallStatus::InFlight { .. } => true,
                CallStatus::Again { .. } => call.uncertain || !told_apart,
                _ => false,
            };
            let (failed, outcome) = match &call.status {
                CallStatus::Failing { outcome, .. } | CallStatus::BackedOff { outcome, .. } => {
                    (true, Some(outcome.clone()))
                }
                _ => (false, None),
            };
            let writes = call.requested.effect == Effect::Write;
            if writes && (begun || (failed && call.uncertain)) {
                let error =
                    Fault::new("tool.unresolved", "the run ended before it was known whether this was done");
                call.status = CallStatus::Done { outcome: Outcome::Unknown { error } };
                call.uncertain = counts;
            } else if writes && matches!(call.status, CallStatus::Again { .. }) {
                let error = Fault::new("tool.not_repeated", "the run ended before it was called again");
                call.status = CallStatus::Done { outcome: Outcome::Failed { error } };
            } else if let Some(outcome) = outcome {
                call.status = CallStatus::Done { outcome };
            }
        });
    }

    /// A takeover and a resumption restart the time limit, and so does a person's decision: the driver that follows
    /// begins anew.
    pub(super) fn restart_time_limit(&mut self, event: &Event, waited: bool) {
        let anew =
            matches!(event, Event::RunStarted(_) | Event::RunResumed { .. } | Event::RunReopened { .. });
        if (anew || (waited && self.status == RunStatus::Running)) && self.at > jiff::Timestamp::UNIX_EPOCH {
            self.time_since = Some(self.at);
        }
    }
}
