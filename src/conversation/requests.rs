//! A request's way into the queue: it is accepted when its run is in the journal.

use super::input::{CallerId, IncomingRequest};
use super::side_effect::{NewRun, SideEffect};
use super::slots::ScheduledRun;
use super::{Appending, Awake, ConversationState, Phase, faults};
use crate::run::{Fault, RunId};

impl ConversationState {
    pub(super) fn on_request(&mut self, request: IncomingRequest, out: &mut Vec<SideEffect>) {
        self.received += 1;
        match self.phase {
            // Words are judged at once: a decision does not wait until a request before it is appended.
            Phase::Awake(_) => self.admit(request, out),
            _ if self.backlog.requests.len() < self.limits.max_queued => {
                self.backlog.requests.push_back(request)
            }
            _ => self.shed(request.caller, out),
        }
    }

    /// Admits the requests that waited until the conversation was awake.
    pub(super) fn admit_backlog(&mut self, out: &mut Vec<SideEffect>) {
        for request in std::mem::take(&mut self.backlog.requests) {
            self.admit(request, out);
        }
    }

    fn admit(&mut self, request: IncomingRequest, out: &mut Vec<SideEffect>) {
        let caller = request.caller;
        if let Err(fault) = self.check_owner(&request) {
            return out.push(SideEffect::Refuse { caller, fault, is_shed: false });
        }
        match request.words.as_deref().map_or(Ok(None), |words| self.decision_by_words(words)) {
            Ok(None) => {}
            Ok(Some(decision)) => {
                let run = decision.approval.run;
                out.push(SideEffect::DecideByWords { caller, decision });
                return self.command(caller, run, out);
            }
            Err(fault) => return out.push(SideEffect::Refuse { caller, fault, is_shed: false }),
        }
        let appending = self.appending().map_or(0, |appending| appending.runs.len());
        let waiting = self.runs.queued() + appending;
        match &mut self.phase {
            Phase::Awake(awake) if waiting + awake.admitted.len() < self.limits.max_queued => {
                awake.admitted.push_back(request);
            }
            _ => self.shed(caller, out),
        }
    }

    /// Appends the admitted requests, unless an append is in progress: appends follow each other, so that
    /// the order of arrival is the order in the journal.
    pub(super) fn append_admitted(&mut self, out: &mut Vec<SideEffect>) {
        let Phase::Awake(awake) = &mut self.phase else { return };
        if awake.appending.is_some() {
            return;
        }
        let admitted = std::mem::take(&mut awake.admitted);
        let claims_ownership = self.history.owner.is_none();
        let mut runs = Vec::new();
        for request in admitted {
            // An earlier request of this batch may have made another user the owner.
            if let Err(fault) = self.check_owner(&request) {
                out.push(SideEffect::Refuse { caller: request.caller, fault, is_shed: false });
                continue;
            }
            let answers = if runs.is_empty() { self.last_question(request.answered) } else { None };
            self.history.owner.get_or_insert(request.user);
            runs.push(NewRun { caller: request.caller, run: request.run, answers });
        }
        if let (Phase::Awake(awake), false) = (&mut self.phase, runs.is_empty()) {
            out.push(SideEffect::Append(runs.clone()));
            awake.appending = Some(Appending { runs, claims_ownership });
        }
    }

    pub(super) fn on_appended(
        &mut self,
        results: Vec<(RunId, Result<(), Fault>)>,
        out: &mut Vec<SideEffect>,
    ) {
        let (Phase::Awake(Awake { appending, .. }) | Phase::Failing { appending, .. }) = &mut self.phase
        else {
            return;
        };
        let Some(Appending { runs, claims_ownership }) = appending.take() else { return };
        if claims_ownership && results.iter().all(|(_, result)| result.is_err()) {
            self.history.owner = None;
        }
        for (NewRun { caller, run, .. }, (_, result)) in runs.into_iter().zip(results) {
            match result {
                Ok(()) => {
                    out.push(SideEffect::Accept { caller, run });
                    self.runs.enqueue(run, ScheduledRun::queued(Some(caller)));
                }
                Err(fault) => {
                    out.push(SideEffect::Finish { run, callers: Vec::new(), fault: None });
                    out.push(SideEffect::Refuse { caller, fault, is_shed: false });
                }
            }
        }
        if let Phase::Failing { fault, .. } = &self.phase {
            let fault = fault.clone();
            self.drop_queue(&fault, out);
        }
    }

    pub(super) fn appending(&self) -> Option<&Appending> {
        match &self.phase {
            Phase::Awake(Awake { appending, .. }) | Phase::Failing { appending, .. } => appending.as_ref(),
            _ => None,
        }
    }

    /// Another user's request neither decides by words here nor learns what is remembered.
    fn check_owner(&self, request: &IncomingRequest) -> Result<(), Fault> {
        match &self.history.owner {
            Some(owner) if request.own_session && *owner != request.user => {
                Err(faults::unknown_session(&self.session))
            }
            _ => Ok(()),
        }
    }

    /// The run whose question the user saw last, if the next request may be about it: no later run is
    /// active or waits. The current run's answer may be published before its driver has left; `answered`
    /// is that run.
    fn last_question(&self, answered: Option<RunId>) -> Option<RunId> {
        if self.runs.queued() > 0 {
            return None;
        }
        let last = match self.runs.of_the_queue() {
            Some(run) => Some(run).filter(|run| answered == Some(*run))?,
            None => self.history.asked_by()?,
        };
        (!self.runs.has_later_than(last)).then_some(last)
    }

    fn shed(&self, caller: CallerId, out: &mut Vec<SideEffect>) {
        let fault = faults::queue_full(self.limits.max_queued);
        out.push(SideEffect::Refuse { caller, fault, is_shed: true });
    }
}
