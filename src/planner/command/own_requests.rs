//! Decisions about requests and changes of one's own: who may make them.

use super::refusal::refusal;
use super::{ApproverChoice, Command, CommandAction, CommandRefusal};
use crate::run::{ApprovalSubject, RunState};

pub(super) fn is_requester(state: &RunState, user: &str) -> bool {
    state.queued.as_ref().is_some_and(|queued| queued.user == user)
}

/// Whether a command approves a change made by the same person, who did not request the run.
fn approves_own_change(state: &RunState, command: &Command) -> bool {
    let by = Some(&command.by);
    let of_plan = || state.plan().is_some_and(|made| made.by.as_ref() == by);
    let changed = match &command.action {
        CommandAction::Approve { .. } => of_plan(),
        CommandAction::Decide { approval, .. } => match state.approvals.get(approval).map(|a| a.matter) {
            Some(ApprovalSubject::Plan { .. }) => of_plan(),
            Some(ApprovalSubject::Call { call }) => {
                state.calls.get(&call).is_some_and(|call| call.edited_by.as_ref() == by)
            }
            _ => false,
        },
        _ => false,
    };
    changed && command.is_authenticated && !is_requester(state, &command.by)
}

/// Checks that the person may make the decision of the command: one's own requests and changes only as far as the
/// settings and the key allow. A question that is for the user alone is decided by the requester.
pub(super) fn may_decide(state: &RunState, command: &Command) -> Result<(), CommandRefusal> {
    let asked = is_requester(state, &command.by);
    let asks_user = |approval: &u32| state.approvals.get(approval).is_some_and(|a| a.needed.by_user);
    if asked && matches!(&command.action, CommandAction::Decide { approval, .. } if asks_user(approval)) {
        return Ok(());
    }
    // Changing the plan, or a call's arguments, also makes the person a requester.
    let changed = state.plan().is_some_and(|made| made.by.as_ref() == Some(&command.by))
        || matches!(command.action, CommandAction::Decide { choice: ApproverChoice::Edited(_), .. });
    let own = asked || changed || approves_own_change(state, command);
    // Requesters may always withdraw their own requests.
    let takes_back = matches!(command.action, CommandAction::Decide { choice: ApproverChoice::No, .. });
    if !own || takes_back {
        return Ok(());
    }
    let by = &command.by;
    if approves_own_change(state, command) {
        let what = format!(
            "{by} changed this, so another person must approve it: the requester, or another approver"
        );
        return Err(refusal("approval.own_request", what));
    }
    if !state.settings().approval.by_oneself {
        let what = format!("{by} requested or changed this, so another person must approve it");
        return Err(refusal("approval.own_request", what));
    }
    if command.no_own_approval {
        let what = format!(
            "{by} requested or changed this, and this key of {by} may not approve it: another person must"
        );
        return Err(refusal("approval.own_request", what));
    }
    Ok(())
}
