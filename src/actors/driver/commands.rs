//! Commands to a run: active, or resumed to handle the command.

use jiff::Timestamp;

use super::Driver;
use crate::actors::active_runs::{CommandReceiver, RunCommand};
use crate::planner::{self, Command, CommandAction};
use crate::run::{Action, Event, Fault};

impl Driver {
    pub(super) async fn handle_pending_commands(&mut self) -> Result<(), Fault> {
        while let Some(command) = self.commands.as_mut().and_then(|commands| commands.try_recv().ok()) {
            self.handle_command(*command).await?;
        }
        Ok(())
    }

    /// Leaves the run if no command and no cancel request is pending. A later one resumes the run.
    pub(super) fn leave_if_idle(&mut self) -> bool {
        let ended = self.state.status.is_terminal();
        let Some(commands) = &mut self.commands else { return true };
        self.live.leave_if_idle(commands, || !ended && self.cancel_requests.has_changed().unwrap_or(false))
    }

    /// Handles one command. Its events are on disk before it is answered.
    pub(super) async fn handle_command(&mut self, received: RunCommand) -> Result<(), Fault> {
        let RunCommand { command, mut request, reply } = received;
        if !matches!(command.action, CommandAction::Expire { .. }) {
            self.refuse_overdue_approvals().await?;
        }
        let mut events = match planner::events_for_command(&self.state, &self.shared.catalogue, &command) {
            Ok(events) => events,
            Err(mut refused) => {
                if let Some(lapse) = refused.record.take() {
                    self.record_lapse(lapse.0).await?;
                    // The approver then finds the current approval request.
                    self.record_approval_requests().await?;
                }
                self.refused_commands.push((reply, refused));
                return Ok(());
            }
        };
        self.decided_by_words |= request.is_some();
        for event in &mut events {
            // In the same commit as the decision, so that a retry of the request is recognized.
            if let Event::Decided { word, .. } | Event::ListChangeAsked { word, .. } = event {
                *word = request.take();
            }
            self.reopened |= matches!(event, Event::RunReopened { .. });
        }
        // The planner returns a legal sequence. It is appended atomically: a run reopened for a decision
        // always has that decision.
        self.append_together(events).await?;
        // The requester may have disconnected.
        let _ = reply.send(Ok(()));
        Ok(())
    }

    /// Refuses what nobody decided in time. The engine does so every second and, after a start, once it serves: a decision that
    /// is quicker than that is too late as well.
    async fn refuse_overdue_approvals(&mut self) -> Result<(), Fault> {
        let Some(limit) = self.shared.approval.expires() else { return Ok(()) };
        for approval in self.state.overdue_approvals(Timestamp::now(), limit) {
            let expired = Command::expire(approval);
            // What cannot be refused now is left to the engine.
            if let Ok(events) = planner::events_for_command(&self.state, &self.shared.catalogue, &expired) {
                self.append_together(events).await?;
            }
        }
        Ok(())
    }

    /// Records the lapse of approvals whose tools have changed.
    pub(super) async fn record_lapsed_approvals(&mut self) -> Result<(), Fault> {
        while let Some(event) = planner::lapsed_approval(&self.state, &self.shared.catalogue) {
            self.record_lapse(event).await?;
        }
        Ok(())
    }

    async fn record_lapse(&mut self, lapse: Event) -> Result<(), Fault> {
        let again = self.state.parked_again(std::slice::from_ref(&lapse));
        self.record_together(std::iter::once(lapse).chain(again).collect()).await
    }

    /// Records the approval requests that are due.
    async fn record_approval_requests(&mut self) -> Result<(), Fault> {
        while let Some(Action::Record {
            event: event @ (Event::ApprovalRequired { .. } | Event::RunWaiting {}),
        }) = self.state.next().first()
        {
            self.append(event.clone()).await?;
        }
        Ok(())
    }
}

/// The next command; pending forever if there is no command channel.
pub(super) async fn next_command(commands: &mut Option<CommandReceiver>) -> Option<Box<RunCommand>> {
    match commands {
        Some(commands) => commands.recv().await,
        None => std::future::pending().await,
    }
}
