//! Taking over a run that another process, or a driver that panicked, has left.

use super::Driver;
use crate::actors::gate::Turn;
use crate::run::{Event, Fault, recovery};

impl Driver {
    /// Says that the run is taken over, with what questions that were cut off have cost; puts it aside where
    /// it has ended its server too often.
    pub(super) async fn take_over(&mut self, turn: Turn) -> Result<(), Fault> {
        let gate = match turn {
            Turn::Drive(place) => {
                self.suspect = place.is_suspect();
                self.place = Some(place);
                None
            }
            Turn::Aside(gate) => Some(gate),
        };
        let mut events = Vec::new();
        let mut cost = 0;
        if self.taken_over {
            let resumed = Event::RunResumed { epoch: self.state.epoch + 1, restart: !self.panicked };
            self.state.check(&resumed).map_err(|why| Fault::new("run.illegal_event", why.to_string()))?;
            let mut after = self.state.clone();
            after.apply_checked(&resumed);
            events.push(resumed);
            for (call, reserved) in after.unsettled() {
                let spent = reserved.spent();
                cost += spent.usage.cost_nano_usd;
                let error = Fault::new("llm.interrupted", "the process ended before it heard of the reply");
                let (usage, attempts) = (spent.usage, vec![spent]);
                events.push(Event::ModelFailed { call, error, usage, millis: 0, attempts });
            }
        }
        if gate.is_some() {
            let error = recovery::put_aside();
            tracing::error!(run = %self.state.run, code = %error.code, "{}", error.message);
            events.push(Event::RunPutAside { error });
        }
        if !events.is_empty() {
            self.append_together(events).await?;
        }
        if cost > 0 {
            // What the journal has was added up before: from here on the budget knows of it, too.
            self.shared.gateway.guards().budget.charge(&self.caller(), cost);
        }
        if let Some(gate) = gate {
            gate.was_put_aside(self.state.run).await;
        }
        Ok(())
    }

    /// Whether `events` show that something comes of a run of which that has yet to be seen.
    pub(super) fn is_passed_with(&self, events: &[Event]) -> bool {
        self.suspect && events.iter().any(|event| self.state.brings_something(event))
    }

    /// They are on disk.
    pub(super) fn passed(&mut self) {
        self.suspect = false;
        if let Some(place) = &self.place {
            place.passed();
        }
    }
}
