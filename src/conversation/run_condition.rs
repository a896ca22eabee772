//! The condition of a run that no driver has, as far as its conversation has to know it.

use jiff::Timestamp;

use super::input::{OpenDecisions, RunCondition, StoredDecisions};
use crate::run::{ApprovalSubject, PlanCause, RunState, RunStatus};

impl RunCondition {
    /// Where a run without a driver is. `is_shown_whole`: its answer shows everything that is to be decided.
    pub(crate) fn of(state: &RunState, is_shown_whole: bool) -> Self {
        match state.status {
            RunStatus::Waiting => Self::Waiting(OpenDecisions::of(state, is_shown_whole)),
            status if status.is_terminal() => Self::Ended,
            _ => Self::Unfinished,
        }
    }
}

impl OpenDecisions {
    /// Returns what a run waits for.
    pub(crate) fn of(state: &RunState, is_shown_whole: bool) -> Self {
        let asks = |matter: ApprovalSubject| !matches!(matter, ApprovalSubject::Outcome { .. });
        let open = state.approvals.iter().filter(|(_, approval)| approval.is_open() && asks(approval.matter));
        Self {
            seq: state.seq,
            approvals: open.map(|(approval, _)| *approval).collect(),
            lists: state.only_lists_of_user(),
            reads_words: state.may_read_list_change(),
            is_shown_whole: state.aside.is_none() && is_shown_whole,
            language: state.language().map(str::to_owned),
        }
    }
}

impl StoredDecisions {
    /// Returns what a stored run waits for since `since`. A plan that a person changed since then may differ from the one that
    /// the conversation showed.
    pub(crate) fn of(state: &RunState, since: Timestamp, is_shown_whole: bool) -> Self {
        let is_changed =
            state.plan().is_some_and(|made| matches!(made.cause, PlanCause::Feedback | PlanCause::Edit));
        let has_lapsed = state.approvals.values().any(|approval| approval.lapsed);
        Self {
            run: state.run,
            open: OpenDecisions::of(state, is_shown_whole),
            since,
            is_changed: is_changed || has_lapsed,
        }
    }
}
