//! Taking over a run from an earlier process or from a driver that panicked.

use super::Driver;
use crate::actors::recovery_gate::{GateOutcome, RunPermit};
use crate::llm::budget::AccountKey;
use crate::run::{Event, Fault, Takeover, recovery};

impl Driver {
    /// Records the takeover and the cost of interrupted model calls. Quarantines a run that has crashed its
    /// server too often.
    pub(super) async fn take_over(&mut self, turn: GateOutcome) -> Result<(), Fault> {
        let gate = match turn {
            GateOutcome::Drive(permit) => {
                self.permit = Some(permit);
                None
            }
            GateOutcome::Quarantine(gate) => Some(gate),
        };
        let mut events = Vec::new();
        let mut cost = 0;
        if self.taken_over {
            let takeover = self.state.takeover(!self.panicked, &self.shared.catalogue_hash);
            let takeover = takeover.map_err(|why| Fault::new("run.illegal_event", why.to_string()))?;
            self.log_interrupted_writes(&takeover);
            (events, cost) = (takeover.events, takeover.cost_nano_usd);
        }
        if gate.is_some() {
            let error = recovery::quarantine_fault();
            tracing::error!(code = %error.code, "{}", error.message);
            events.push(Event::RunPutAside { error, copied: None });
        }
        // The budget was restored from the journal before these events, so their cost is added here, but for
        // what an earlier driver of this process was charged when it ended.
        let budget = self.shared.gateway.guards().budget.clone();
        let charged = budget.unrecorded(&AccountKey::Run(self.principal.tenant.clone(), self.state.run));
        if !events.is_empty() {
            self.append_together(events).await?;
        }
        if cost > charged {
            budget.charge(&self.caller(), cost - charged);
        }
        if let Some(gate) = gate {
            gate.record_quarantine(self.state.run).await;
        }
        Ok(())
    }

    fn log_interrupted_writes(&self, takeover: &Takeover) {
        for (number, code) in &takeover.interrupted_writes {
            let Some(call) = self.state.calls.get(number) else { continue };
            let (scene, tool) = (call.scene.as_str(), call.requested.tool.as_str());
            tracing::warn!(call = number, scene, tool, code, "the outcome of a write is unknown");
        }
    }

    /// Returns whether the run is suspected of having crashed an earlier process, and has made no progress since. Its first
    /// progress event is appended durably.
    pub(super) fn is_suspect(&self) -> bool {
        self.permit.as_ref().is_some_and(RunPermit::is_suspect)
    }

    /// Returns whether `events` are the first progress of a suspect run.
    pub(super) fn clears_suspicion(&self, events: &[Event]) -> bool {
        self.is_suspect() && events.iter().any(|event| self.state.is_progress(event))
    }

    /// Clears the suspicion, once that progress is on disk.
    pub(super) fn clear_suspicion(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.mark_progressed();
        }
    }
}
