//! What the outcome of a call says about its tool.

use super::event::Outcome;
use super::state::{CallState, CallStatus};
use crate::adapt::HealthReport;

/// Codes of outcomes that say nothing about a tool.
const SILENT: [&str; 7] = [
    "tool.breaker_open",
    "tool.disabled",
    "tool.changed",
    "tool.cancelled",
    "tool.interrupted",
    "scene.lost",
    "sandbox.busy",
];

impl CallState {
    /// What an outcome of this call says about its tool; `None` if nothing.
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
