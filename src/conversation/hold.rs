//! Holding the conversation: nothing happens in it while its stream is rewritten, and then it is read again.

use super::commands::refuse;
use super::input::CallerId;
use super::side_effect::SideEffect;
use super::{Awake, ConversationState, Phase, SessionHistory, faults};

impl ConversationState {
    pub(super) fn on_hold(&mut self, caller: CallerId, out: &mut Vec<SideEffect>) {
        self.received += 1;
        let can_begin = matches!(self.phase, Phase::Loading | Phase::Awake(_));
        if self.is_busy() || !can_begin || self.backlog.hold.is_some() {
            return refuse(caller, faults::session_busy(&self.session), out);
        }
        if matches!(self.phase, Phase::Awake(Awake { summarising: true, .. })) {
            out.push(SideEffect::CancelSummary);
        }
        self.backlog.hold = Some(caller);
    }

    /// Holds the conversation for the caller in the backlog, or refuses it if something came between.
    pub(super) fn hold_for_backlog(&mut self, out: &mut Vec<SideEffect>) {
        let Some(caller) = self.backlog.hold.take() else { return };
        if self.is_working() {
            return refuse(caller, faults::session_busy(&self.session), out);
        }
        self.cancel_timer(out);
        self.phase = Phase::Held;
        out.push(SideEffect::Hold { caller });
    }

    /// The stream may have other events now.
    pub(super) fn on_released(&mut self, out: &mut Vec<SideEffect>) {
        if matches!(self.phase, Phase::Held) {
            self.history = SessionHistory::new(self.limits.memory.clone(), self.limits.open.clone());
            self.runs.clear();
            self.phase = Phase::Loading;
            out.push(SideEffect::Load);
        }
    }
}
