//! Commands of people: handed to the run's driver, or, if the run waits or has ended, to a driver that is
//! started for them.

use super::input::CallerId;
use super::side_effect::{ReadAttempt, SideEffect};
use super::slots::{RunSlot, ScheduledRun};
use super::{ConversationState, MAX_COMMANDS, Phase, faults};
use crate::run::{Fault, RunId};

impl ConversationState {
    pub(super) fn on_command(&mut self, caller: CallerId, run: RunId, out: &mut Vec<SideEffect>) {
        self.received += 1;
        if self.takes_command_about(run) {
            self.command(caller, run, out);
        } else if self.backlog.commands.len() < MAX_COMMANDS {
            self.backlog.commands.push_back((caller, run));
        } else {
            refuse(caller, faults::too_many_commands(), out);
        }
    }

    /// Handles the commands of the backlog that need not wait any more.
    pub(super) fn handle_held_commands(&mut self, out: &mut Vec<SideEffect>) {
        for (caller, run) in std::mem::take(&mut self.backlog.commands) {
            if self.takes_command_about(run) {
                self.command(caller, run, out);
            } else {
                self.backlog.commands.push_back((caller, run));
            }
        }
    }

    fn takes_command_about(&mut self, run: RunId) -> bool {
        // A run that is being appended would be found in the journal, and driven before it is queued.
        if self.appending().is_some_and(|appending| appending.runs.iter().any(|new| new.run == run)) {
            return false;
        }
        match &self.phase {
            Phase::Awake(_) => true,
            // It waits for the runs that are active, and starts nothing.
            Phase::Failing { .. } => {
                matches!(self.runs.get_mut(run), Some(RunSlot::Reading { .. } | RunSlot::Driven { .. }))
            }
            Phase::Loading | Phase::Erasing { .. } | Phase::Held | Phase::Stopped => false,
        }
    }

    /// Hands a command to the run's driver, or has the run read and driven for it.
    pub(super) fn command(&mut self, caller: CallerId, run: RunId, out: &mut Vec<SideEffect>) {
        let parked = match self.runs.get_mut(run) {
            Some(RunSlot::Queued { active, .. } | RunSlot::Driven { active, .. }) => {
                active.callers.push(caller);
                return out.push(SideEffect::Deliver { caller, run });
            }
            Some(RunSlot::Reading { active, .. }) => return hold(active, caller, out),
            Some(RunSlot::Parked(parked)) => Some(parked.clone()),
            None => None,
        };
        let active = ScheduledRun::commanded(vec![caller]);
        self.runs.insert(run, RunSlot::Reading { active, parked });
        out.push(SideEffect::ReadRun { run, attempt: ReadAttempt::ForCommand });
    }

    /// The driver was leaving the run, which [`Input::DriverEnded`](super::Input::DriverEnded) will say.
    pub(super) fn on_command_not_taken(&mut self, caller: CallerId, run: RunId, out: &mut Vec<SideEffect>) {
        match self.runs.get_mut(run) {
            Some(
                RunSlot::Queued { active, .. }
                | RunSlot::Reading { active, .. }
                | RunSlot::Driven { active, .. },
            ) => {
                active.callers.retain(|waiting| *waiting != caller);
                hold(active, caller, out);
            }
            Some(RunSlot::Parked(_)) | None => self.command(caller, run, out),
        }
    }
}

fn hold(active: &mut ScheduledRun, caller: CallerId, out: &mut Vec<SideEffect>) {
    if active.held.len() < MAX_COMMANDS {
        active.held.push(caller);
    } else {
        refuse(caller, faults::too_many_commands(), out);
    }
}

pub(super) fn refuse(caller: CallerId, fault: Fault, out: &mut Vec<SideEffect>) {
    out.push(SideEffect::Refuse { caller, fault, is_shed: false });
}
