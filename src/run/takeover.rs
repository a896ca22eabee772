//! The records of a run that is taken over from an earlier process, or from a driver that panicked.

use super::admit::Illegal;
use super::event::{Event, Outcome};
use super::state::{CallState, CallStatus, RunState};

/// The record of a takeover.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Takeover {
    /// Its events, to be appended together.
    pub events: Vec<Event>,
    /// What the questions that were in flight may have cost, in nano-USD.
    pub cost_nano_usd: u64,
    /// The writes whose outcomes become unknown by it: the number of each call, and the code of its fault.
    pub interrupted_writes: Vec<(u32, String)>,
}

impl RunState {
    /// The record of a takeover of this run. `restart` if the process that executed it ended, and not only its driver;
    /// `loaded` is the hash of the scenes that are loaded now.
    ///
    /// # Errors
    /// Why the run cannot be taken over: it has ended, or has not begun.
    pub fn takeover(&self, restart: bool, loaded: &str) -> Result<Takeover, Illegal> {
        let catalogue = self.changed_catalogue(loaded);
        let resumed = Event::RunResumed { epoch: self.epoch + 1, restart, catalogue };
        self.check(&resumed)?;
        let mut after = self.clone();
        after.apply_checked(&resumed, after.at);
        let mut takeover = Takeover {
            events: vec![resumed],
            cost_nano_usd: 0,
            interrupted_writes: self.newly_unknown(&after),
        };
        for (usage, interrupted) in after.interrupted_questions() {
            takeover.cost_nano_usd = takeover.cost_nano_usd.saturating_add(usage.cost_nano_usd);
            takeover.events.push(interrupted);
        }
        Ok(takeover)
    }

    /// The calls whose outcome is unknown in `after`, a later state, and was not here.
    fn newly_unknown(&self, after: &RunState) -> Vec<(u32, String)> {
        let was_unknown = |number: &u32| self.calls.get(number).is_some_and(|call| unknown(call).is_some());
        let now = after.calls.iter().filter_map(|(number, call)| Some((*number, unknown(call)?)));
        now.filter(|(number, _)| !was_unknown(number)).map(|(n, code)| (n, code.to_owned())).collect()
    }
}

/// Why the outcome of a call is unknown, as the code of its fault, if it is.
fn unknown(call: &CallState) -> Option<&str> {
    match &call.status {
        CallStatus::Done { outcome: Outcome::Unknown { error } } => Some(&error.code),
        _ => None,
    }
}
