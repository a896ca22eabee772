//! Erasing the conversation: every request comes either before or after it.

use jiff::Timestamp;

use super::commands::refuse;
use super::input::CallerId;
use super::side_effect::SideEffect;
use super::{Awake, ConversationState, Phase, SessionHistory, faults};
use crate::run::Fault;

impl ConversationState {
    pub(super) fn on_erase(&mut self, caller: CallerId, since: Option<Timestamp>, out: &mut Vec<SideEffect>) {
        self.received += 1;
        if self.is_busy() || self.backlog.erasures.len() >= self.limits.max_queued {
            return refuse(caller, faults::session_busy(&self.session), out);
        }
        if matches!(self.phase, Phase::Awake(Awake { summarising: true, .. }))
            && self.backlog.erasures.is_empty()
        {
            out.push(SideEffect::CancelSummary);
        }
        self.backlog.erasures.push((caller, since));
    }

    /// Erases the conversation for the callers in the backlog, or refuses them if something came between.
    pub(super) fn erase_backlog(&mut self, unreadable: Option<Fault>, out: &mut Vec<SideEffect>) {
        let erasures = std::mem::take(&mut self.backlog.erasures);
        if erasures.is_empty() {
            return;
        }
        if self.is_working() {
            for (caller, _) in erasures {
                refuse(caller, faults::session_busy(&self.session), out);
            }
            return;
        }
        // A person's request to erase takes precedence over the age of the conversation.
        let is_asked = erasures.iter().any(|(_, since)| since.is_none());
        let since = if is_asked { None } else { erasures.iter().filter_map(|(_, since)| *since).max() };
        self.cancel_timer(out);
        out.push(SideEffect::Erase { since });
        let erasures = erasures.into_iter().map(|(caller, _)| caller).collect();
        self.phase = Phase::Erasing { erasures, unreadable };
    }

    pub(super) fn on_erased(&mut self, result: Result<bool, Fault>, out: &mut Vec<SideEffect>) {
        let Phase::Erasing { erasures, unreadable } = std::mem::replace(&mut self.phase, Phase::Stopped)
        else {
            return;
        };
        let is_erased = result == Ok(true);
        if is_erased {
            self.history = SessionHistory::new(self.limits.memory.clone(), self.limits.open.clone());
            self.runs.clear();
            out.push(SideEffect::Reset);
        }
        for caller in erasures {
            out.push(match &result {
                Ok(erased) => SideEffect::ReplyErased { caller, erased: *erased },
                Err(fault) => SideEffect::Refuse { caller, fault: fault.clone(), is_shed: false },
            });
        }
        self.phase = match unreadable {
            Some(fault) if !is_erased => Phase::failing(fault),
            _ => Phase::Awake(Awake::default()),
        };
        if self.is_idle() {
            self.request_sleep(out);
        }
    }
}
