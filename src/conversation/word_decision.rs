//! Which decision the words of the conversation make.

use super::input::OpenDecisions;
use super::side_effect::WordDecision;
use super::{ConversationState, faults};
use crate::language::{self, Lang};
use crate::planner::list_edits::{self, ListReading};
use crate::planner::{ApproverChoice, consent};
use crate::run::{ApprovalId, Fault, RequestOptions};

/// Returns whether the words of a request may decide about a run that waits: a request with a plan of its own, one that only
/// plans and a dry run decide nothing.
pub(crate) fn may_decide_by_words(has_plan: bool, plan_only: bool, options: RequestOptions) -> bool {
    !has_plan && !plan_only && !options.dry_run
}

impl ConversationState {
    /// The decision that a message makes, if it says nothing but yes or no, or how a list of the question is to be
    /// changed, and the last answer showed what is to be decided.
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
            return if parked.is_shown { undecided(message, approval, &parked.open) } else { Ok(None) };
        };
        if let [(approval, parked)] = open[..] {
            let choice = if is_yes { ApproverChoice::Yes } else { ApproverChoice::No };
            let decision = WordDecision { approval, choice, before: parked.open.seq };
            return Ok(Some(decision).filter(|_| parked.is_shown));
        }
        let is_any_shown = self.runs.parked().any(|(_, parked)| parked.is_shown);
        if !is_any_shown && self.history.confirms() {
            // The last answer was a question that is not an approval, and the message answers that.
            return Ok(None);
        }
        let ids: Vec<String> = open.iter().map(|(approval, _)| approval.to_string()).collect();
        Err(faults::ambiguous(&ids))
    }
}

/// The decision of a message that is neither a plain yes nor a plain no: a change of the list in the question. A
/// message that seems to reply to the question without deciding it is an error. It does not become a request of its
/// own, beside the one that waits.
fn undecided(
    message: &str,
    approval: ApprovalId,
    open: &OpenDecisions,
) -> Result<Option<WordDecision>, Fault> {
    let language = || Lang::of(language::detect(message).or(open.language.as_deref()).unwrap_or_default());
    match open.lists.as_ref().map(|lists| list_edits::read(message, lists)) {
        Some(ListReading::Edited(arguments)) => {
            let choice = ApproverChoice::Edited(arguments);
            Ok(Some(WordDecision { approval, choice, before: open.seq }))
        }
        Some(ListReading::Unclear) if open.reads_words => {
            let choice = ApproverChoice::Words(message.to_owned());
            Ok(Some(WordDecision { approval, choice, before: open.seq }))
        }
        Some(ListReading::Unclear) => Err(faults::unclear_change(approval, language())),
        Some(ListReading::Other) | None if consent::is_undecided(message) => {
            Err(faults::undecided(approval, language()))
        }
        Some(ListReading::Other) | None => Ok(None),
    }
}
