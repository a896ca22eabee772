//! The bound on the number of a run's events.

use super::action::Action;
use super::event::Fault;
use super::state::RunState;

/// Returned by [`RunState::bounded`]: what a driver does about the next action of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BoundedAction {
    Perform,
    /// Starts nothing, and records the outcome of the write in flight.
    AwaitWrite,
    /// Ends the run by force.
    End(Fault),
}

impl RunState {
    /// Returns what is done about `action` in a run that may have `max` events. Beyond these, only what the machine itself
    /// records is performed.
    pub(crate) fn bounded(&self, action: &Action, max: u64) -> BoundedAction {
        if self.seq <= max || matches!(action, Action::Record { .. }) {
            BoundedAction::Perform
        } else if self.write_in_flight() {
            BoundedAction::AwaitWrite
        } else {
            let message = format!("more than {max} events: the run was stopped");
            BoundedAction::End(Fault::new("run.too_many_events", message))
        }
    }
}
