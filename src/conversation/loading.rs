//! The conversation as the store has it, and what an earlier process left unfinished.

use super::input::{CallerId, LoadedConversation, StoredDecisions};
use super::side_effect::SideEffect;
use super::slots::{ParkedRun, RunSlot, ScheduledRun};
use super::{Awake, ConversationState, Phase, ResumeCaller};
use crate::run::RunStatus;

/// Returns whether a process takes up an unfinished run when it loads the conversation. Only a serving process resumes runs; any
/// process can decide about one that waits for a person.
pub(crate) fn is_taken_up(status: RunStatus, resumes_runs: bool) -> bool {
    resumes_runs || status == RunStatus::Waiting
}

impl ConversationState {
    pub(super) fn on_loaded(&mut self, loaded: LoadedConversation) {
        let LoadedConversation { events, last_event_at, owner, unfinished, waiting } = loaded;
        self.history.load(events);
        self.history.owner = owner;
        let newest = waiting.iter().map(|stored| stored.since).max();
        for StoredDecisions { run, open, since, is_changed } in waiting {
            // Of several runs that wait, the last one's answer was the last one given, unless a turn ended
            // after it.
            let is_last_answer = Some(since) == newest && last_event_at.is_none_or(|last| last < since);
            let parked = ParkedRun::new(open, is_last_answer && !is_changed);
            self.runs.insert(run, RunSlot::Parked(parked));
        }
        // Before everything that waits in the backlog.
        for run in unfinished {
            self.runs.enqueue(run, ScheduledRun::queued(None));
        }
        self.phase = Phase::Awake(Awake::default());
    }

    pub(super) fn on_resume(&mut self, caller: CallerId) {
        self.received += 1;
        self.resume_callers.push(ResumeCaller { caller, is_ready: false });
    }

    /// Replies to the callers that wait for the runs of an earlier process.
    pub(super) fn report_resumed(&mut self, out: &mut Vec<SideEffect>) {
        if !matches!(self.phase, Phase::Awake(_)) {
            return;
        }
        for ResumeCaller { caller, is_ready } in &mut self.resume_callers {
            if !std::mem::replace(is_ready, true) {
                out.push(SideEffect::ReplyReady { caller: *caller });
            }
        }
        if !self.runs.has_recovered() {
            let done = self.resume_callers.drain(..);
            out.extend(done.map(|ResumeCaller { caller, .. }| SideEffect::ReplyResumed { caller }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_serving_process_resumes_runs_and_any_process_takes_up_those_that_wait() {
        assert!(is_taken_up(RunStatus::Running, true) && is_taken_up(RunStatus::Waiting, true));
        assert!(is_taken_up(RunStatus::Waiting, false));
        assert!(!is_taken_up(RunStatus::Running, false) && !is_taken_up(RunStatus::Queued, false));
    }
}
