//! Words of the conversation that decide about a run of it which waits.

use actix::prelude::*;
use tokio::sync::oneshot;

use super::decide::{Parked, Waiter};
use super::{Accepted, SceneManager, Submit};
use crate::actors::active_runs::RunCommand;
use crate::planner::{ApproverChoice, Command, CommandAction};
use crate::run::{ApprovalId, Fault, RequestIdentity};

/// Words that only say yes or no to what waits.
pub(super) struct Said {
    approval: ApprovalId,
    yes: bool,
    /// The number of the last event before it is decided.
    before: u64,
}

impl SceneManager {
    /// What a message decides, if it says nothing but yes or no and something of the conversation waits.
    ///
    /// # Errors
    /// Where it cannot be told which of several things is meant.
    pub(super) fn says(&self, message: &str) -> Result<Option<Said>, Fault> {
        if self.parked.is_empty() {
            return Ok(None);
        }
        let Some(yes) = crate::planner::consent::parse_consent(message) else { return Ok(None) };
        let of = |parked: &Parked| {
            let before = parked.seq;
            let said = move |approval: &ApprovalId| Said { approval: *approval, yes, before };
            parked.open.iter().map(said).collect::<Vec<_>>()
        };
        let mut open: Vec<Said> = self.parked.values().flat_map(of).collect();
        match open.len() {
            // A yes or a no is about what was said last.
            0 | 1 => {
                let is_told = |said: &Said| self.parked.get(&said.approval.run).is_some_and(|p| p.told);
                Ok(open.pop().filter(is_told))
            }
            // What was said last is a question that is no approval.
            _ if !self.parked.values().any(|parked| parked.told)
                && self
                    .memory
                    .as_ref()
                    .and_then(|m| m.pending())
                    .is_some_and(|p| !p.unconfirmed.is_empty()) =>
            {
                Ok(None)
            }
            many => {
                let ids: Vec<String> = open.iter().map(|said| said.approval.to_string()).collect();
                let message = format!(
                    "{} decisions wait in this conversation: say which one is meant, with POST /api/approvals/{{id}} \
                     and one of {}",
                    many,
                    ids.join(", ")
                );
                Err(Fault::new("approval.ambiguous", message))
            }
        }
    }

    /// Decides by a message of the conversation; its answer is what the run comes to.
    pub(super) fn decide(&mut self, said: &Said, submit: Submit, ctx: &mut Context<Self>) {
        let ApprovalId { run, approval } = said.approval;
        let choice = if said.yes { ApproverChoice::Yes } else { ApproverChoice::No };
        let wish = CommandAction::Decide { approval, choice, hash: None };
        let (by, no_own_approval, keyed) = (submit.user, submit.no_own_approval, submit.own_session);
        let command = Command {
            by,
            note: Some(submit.message),
            action: wish,
            no_own_approval,
            is_authenticated: keyed,
        };
        let word = RequestIdentity { idempotency: submit.idempotency, asked: submit.asked };
        let (reply, decided) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let (follow, followed) = oneshot::channel();
        let (submitted, before) = (submit.reply, said.before);
        let waiter = Waiter { answer: Some(answer), follow: Some(follow) };
        self.take_order(run, RunCommand { command, word: Some(word), reply }, waiter, ctx);
        let told = async move {
            let accepted = match (decided.await, followed.await) {
                (Ok(Ok(())), Ok(watch)) => Ok(Accepted { watch, before, answer: answered }),
                (Ok(Err(refused)), _) => Err(refused.fault),
                _ => Err(Fault::new("run.not_reached", "the run could not be taken up; try again")),
            };
            // Whoever asked may have gone.
            let _ = submitted.send(accepted);
        };
        ctx.spawn(told.into_actor(self));
    }
}
