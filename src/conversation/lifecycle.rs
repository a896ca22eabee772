//! The life of a conversation: how it proceeds, sleeps or gives up without losing what is on its way to it.

use super::commands::refuse;
use super::side_effect::SideEffect;
use super::{Awake, ConversationState, Phase, ResumeCaller, faults};
use crate::run::{Fault, SessionEvent};

/// Returns whether the registry lets a conversation's actor stop: it has received every message that was sent to it.
///
/// `known` is the generation of the actor that the registry knows and the number of messages sent to it; `asking` are the
/// generation of the actor that asks and the number that it received. No message reaches an actor that the registry does
/// not know any more.
pub(crate) fn may_sleep(known: Option<(usize, u64)>, asking: (usize, u64)) -> bool {
    known.is_none_or(|known| known == asking || known.0 != asking.0)
}

impl ConversationState {
    /// Starts what is due. It is level-triggered: it can be called after any input.
    pub(super) fn proceed(&mut self, out: &mut Vec<SideEffect>) {
        self.report_resumed(out);
        match &self.phase {
            Phase::Awake(_) => self.proceed_awake(out),
            Phase::Failing { .. } => self.proceed_failing(out),
            Phase::Loading | Phase::Erasing { .. } | Phase::Held | Phase::Stopped => {}
        }
    }

    fn proceed_awake(&mut self, out: &mut Vec<SideEffect>) {
        self.handle_held_commands(out);
        if !self.is_summarising() {
            self.erase_backlog(None, out);
            if matches!(self.phase, Phase::Awake(_)) {
                self.hold_for_backlog(out);
            }
        }
        if !matches!(self.phase, Phase::Awake(_)) {
            return;
        }
        if self.is_behind_for_good() {
            self.fail(&faults::behind(&self.session), out);
            return self.proceed_failing(out);
        }
        self.append_statement(out);
        self.admit_backlog(out);
        self.append_admitted(out);
        self.start_next(out);
        match self.is_idle() {
            true if !self.sleep_requested => self.start_timer(out),
            true => {}
            false => self.cancel_timer(out),
        }
    }

    /// Whether the stream has events that nothing in progress here will report: an append that was reported as failed may
    /// be on disk. Only reading the stream again can tell.
    fn is_behind_for_good(&self) -> bool {
        let may_report = self.runs.has_begun() || self.is_summarising() || self.is_stating();
        self.history.is_behind() && !may_report
    }

    /// Starts the next queued run, and beside it a summary that is due: it is made in the time in which the user thinks. A run
    /// waits for it only if the memory is overdue.
    fn start_next(&mut self, out: &mut Vec<SideEffect>) {
        // A turn that is known and cannot be folded yet is what the next request may be about.
        if self.history.is_behind() {
            return;
        }
        let window = self.limits.window;
        let is_summarising = self.is_summarising();
        let due = if is_summarising { None } else { self.history.needs_summary(window) };
        // Where no summary can be made, nothing waits for one.
        let waits = (is_summarising || due.is_some()) && self.history.is_overdue(window);
        let is_next = self.runs.of_the_queue().is_none() && self.runs.queued() > 0;
        if is_next
            && !waits
            && let Some((run, active)) = self.runs.dequeue()
        {
            self.drive(run, active, None, out);
        }
        if let (Some(job), Phase::Awake(awake)) = (due, &mut self.phase) {
            awake.summarising = true;
            out.push(SideEffect::Summarise(job));
        }
        if is_next && waits {
            self.hurry_summary(out);
        }
    }

    /// Lets the summary in progress go before those of other conversations.
    fn hurry_summary(&mut self, out: &mut Vec<SideEffect>) {
        if let Phase::Awake(Awake { summarising: true, hurried, .. }) = &mut self.phase
            && !std::mem::replace(hurried, true)
        {
            out.push(SideEffect::HurrySummary);
        }
    }

    pub(super) fn on_summarised(&mut self, turns: Vec<(u64, SessionEvent)>) {
        self.history.extend(turns);
        self.end_summary();
    }

    pub(super) fn on_stream_failed(&mut self, fault: &Fault, out: &mut Vec<SideEffect>) {
        self.end_summary();
        self.fail(fault, out);
    }

    fn end_summary(&mut self) {
        match &mut self.phase {
            Phase::Awake(awake) => (awake.summarising, awake.hurried) = (false, false),
            Phase::Failing { summarising, .. } => *summarising = false,
            Phase::Loading | Phase::Erasing { .. } | Phase::Held | Phase::Stopped => {}
        }
    }

    /// Marks the memory as doubtful, since it may differ from the stream: nothing starts until the stream is read
    /// again.
    pub(super) fn fail(&mut self, fault: &Fault, out: &mut Vec<SideEffect>) {
        self.cancel_timer(out);
        // Everything waits for its end.
        self.hurry_summary(out);
        let Phase::Awake(awake) = &mut self.phase else { return };
        let (appending, summarising, stating) = (awake.appending.take(), awake.summarising, awake.stating);
        self.backlog.requests.append(&mut awake.admitted);
        self.phase = Phase::Failing { fault: fault.clone(), appending, summarising, stating };
        self.drop_queue(fault, out);
    }

    /// The runs stay in the journal, and the actor that loads the conversation next continues them.
    pub(super) fn drop_queue(&mut self, fault: &Fault, out: &mut Vec<SideEffect>) {
        while let Some((run, active)) = self.runs.dequeue() {
            self.abandon(run, active, fault, out);
        }
    }

    fn proceed_failing(&mut self, out: &mut Vec<SideEffect>) {
        if self.is_working() || self.is_summarising() {
            return;
        }
        // A stream that cannot be read is not rewritten.
        if let Some(caller) = self.backlog.hold.take() {
            let Phase::Failing { fault, .. } = &self.phase else { return };
            refuse(caller, fault.clone(), out);
        }
        // A conversation that cannot be read can still be erased.
        if !self.backlog.erasures.is_empty() {
            let Phase::Failing { fault, .. } = &self.phase else { return };
            let fault = fault.clone();
            return self.erase_backlog(Some(fault), out);
        }
        // First the registry forgets this actor, so that a caller that is refused and tries again meets one
        // that reads the conversation again.
        self.request_sleep(out);
    }

    pub(super) fn on_idle_elapsed(&mut self, out: &mut Vec<SideEffect>) {
        if let Phase::Awake(awake) = &mut self.phase {
            awake.timer = false;
        }
        // The timer may have fired just as something arrived.
        if self.is_idle() {
            self.request_sleep(out);
        }
    }

    pub(super) fn on_sleep_agreed(&mut self, out: &mut Vec<SideEffect>) {
        self.sleep_requested = false;
        // The registry agrees only if nothing arrived since it was asked, unless it has ended itself.
        let is_settled = !self.is_working() && !self.is_summarising();
        match &self.phase {
            Phase::Failing { fault, .. } if is_settled => {
                let fault = fault.clone();
                self.refuse_backlog(&fault, out);
            }
            Phase::Awake(_) if self.is_idle() => self.cancel_timer(out),
            _ => return,
        }
        // Waiters for runs of an earlier process find them in the journal.
        let callers = self.resume_callers.drain(..);
        out.extend(callers.map(|ResumeCaller { caller, .. }| SideEffect::ReplyResumed { caller }));
        out.push(SideEffect::Stop);
        self.phase = Phase::Stopped;
    }

    fn refuse_backlog(&mut self, fault: &Fault, out: &mut Vec<SideEffect>) {
        let backlog = std::mem::take(&mut self.backlog);
        let commands = backlog.commands.into_iter().map(|(caller, _)| caller);
        let commands = commands.chain(backlog.statements.into_iter().map(|(caller, _)| caller));
        let erasures = backlog.erasures.into_iter().map(|(caller, _)| caller).chain(backlog.hold);
        let requests = backlog.requests.into_iter().map(|request| request.caller);
        for caller in commands.chain(erasures).chain(requests) {
            refuse(caller, fault.clone(), out);
        }
    }

    /// Returns whether it is awake, nothing is in progress and nothing waits.
    pub(super) fn is_idle(&self) -> bool {
        let is_awake = matches!(self.phase, Phase::Awake(_));
        is_awake && self.backlog.is_empty() && !self.is_working() && !self.is_summarising()
    }

    /// Returns whether a run is queued, read, driven or being appended, or a fact is.
    pub(super) fn is_working(&self) -> bool {
        self.runs.has_active() || self.appending().is_some() || self.is_stating()
    }

    /// Returns whether work is in progress or waits in the backlog, so that its stream can be neither erased nor rewritten.
    pub(super) fn is_busy(&self) -> bool {
        self.is_working() || !self.backlog.requests.is_empty() || !self.backlog.statements.is_empty()
    }

    pub(super) fn is_summarising(&self) -> bool {
        matches!(
            self.phase,
            Phase::Awake(Awake { summarising: true, .. }) | Phase::Failing { summarising: true, .. }
        )
    }

    pub(super) fn request_sleep(&mut self, out: &mut Vec<SideEffect>) {
        if !std::mem::replace(&mut self.sleep_requested, true) {
            out.push(SideEffect::RequestSleep { received: self.received });
        }
    }

    fn start_timer(&mut self, out: &mut Vec<SideEffect>) {
        if let Phase::Awake(awake) = &mut self.phase
            && !std::mem::replace(&mut awake.timer, true)
        {
            out.push(SideEffect::StartTimer);
        }
    }

    pub(super) fn cancel_timer(&mut self, out: &mut Vec<SideEffect>) {
        if let Phase::Awake(awake) = &mut self.phase
            && std::mem::take(&mut awake.timer)
        {
            out.push(SideEffect::CancelTimer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::may_sleep;

    #[test]
    fn actor_stops_only_after_its_last_message() {
        assert!(may_sleep(Some((3, 7)), (3, 7)));
        assert!(!may_sleep(Some((3, 8)), (3, 7)), "a message is on its way");
        assert!(may_sleep(Some((4, 8)), (3, 7)), "messages go to a later actor");
        assert!(may_sleep(None, (3, 7)));
    }
}
