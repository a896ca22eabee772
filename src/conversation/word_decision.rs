//! Which decision a yes or a no of the conversation makes.

use super::side_effect::WordDecision;
use super::{ConversationState, faults};
use crate::language::{self, Lang};
use crate::planner::consent;
use crate::run::{ApprovalId, Fault};

impl ConversationState {
    /// The decision that a message makes, if it says nothing but yes or no and the last answer showed what
    /// is to be decided.
    ///
    /// # Errors
    /// Several decisions are open, so the message does not say which one it means; or one is open, and the message
    /// neither agrees nor refuses.
    pub(super) fn decision_by_words(&self, message: &str) -> Result<Option<WordDecision>, Fault> {
        let mut open = Vec::new();
        for (run, parked) in self.runs.parked() {
            let id = |approval: &u32| (ApprovalId { run, approval: *approval }, parked);
            open.extend(parked.open.approvals.iter().map(id));
        }
        if open.is_empty() {
            return Ok(None);
        }
        let Some(is_yes) = consent::parse_consent(message) else {
            let [(approval, parked)] = open[..] else { return Ok(None) };
            // As a request of its own it would be a second wish beside the one that waits.
            if !parked.is_shown || !consent::is_undecided(message) {
                return Ok(None);
            }
            let language = language::detect(message).or(parked.open.language.as_deref());
            return Err(faults::undecided(approval, Lang::of(language.unwrap_or_default())));
        };
        if let [(approval, parked)] = open[..] {
            let decision = WordDecision { approval, is_yes, before: parked.open.seq };
            return Ok(Some(decision).filter(|_| parked.is_shown));
        }
        let is_any_shown = self.runs.parked().any(|(_, parked)| parked.is_shown);
        let asks = |pending: &crate::run::PendingQuestion| !pending.unconfirmed.is_empty();
        if !is_any_shown && self.history.memory().pending().is_some_and(asks) {
            // The last answer was a question that is not an approval, and the message answers that.
            return Ok(None);
        }
        let ids: Vec<String> = open.iter().map(|(approval, _)| approval.to_string()).collect();
        Err(faults::ambiguous(&ids))
    }
}
