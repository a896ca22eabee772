//! What the outcome of a call shows about its tool, and which calls depend on the health of tools.

use std::collections::BTreeSet;

use super::event::Outcome;
use super::state::{CallState, CallStatus, RunState};
use crate::adapt::HealthReport;

/// Codes of outcomes that say nothing about a tool.
const SILENT: [&str; 7] = [
    "tool.breaker_open", "tool.disabled", "tool.changed", "tool.cancelled", "tool.interrupted", "scene.lost",
    "sandbox.busy",
];

impl CallState {
    /// Returns what an outcome of this call shows about the health of its tool; `None` if nothing.
    pub(crate) fn health_report(&self, outcome: &Outcome) -> Option<HealthReport> {
        // A dry run and a refusal by the state machine start nothing.
        let started = self.attempts > 0 || matches!(self.status, CallStatus::InFlight { .. });
        let fault = outcome.fault();
        if !started || fault.is_some_and(|fault| SILENT.contains(&fault.code.as_str())) {
            return None;
        }
        Some(HealthReport::of(fault.map(|fault| fault.class)))
    }
}

impl RunState {
    /// Returns whether a call is refused while the breaker of its tool is open. A call that undoes a write is made
    /// nevertheless, and so is every call of a run without a mode.
    pub fn obeys_breakers(&self, call: &CallState) -> bool {
        self.settings().mode.is_some() && call.undoes.is_none()
    }

    /// The tools that a step is expected to call, whose health is reported when it begins; none in a run without a
    /// mode.
    pub fn tools_to_forecast(&self, step: u32) -> BTreeSet<&str> {
        let step = self.steps.get(&step).filter(|_| self.settings().mode.is_some());
        let tools = step.map(|step| {
            let prepared = step.step.prepared_calls.iter().map(|call| &call.tool);
            step.step.expected_tools.iter().chain(prepared).map(String::as_str).collect()
        });
        tools.unwrap_or_default()
    }
}
