//! Refusals of commands.

use std::fmt::Write;

use crate::plan::{self, PlanStatus};
use crate::planner::supplied_plan::invalid_plan_fault;
use crate::run::{Decision, Event, Fault, RunState};

/// Why a command is refused, and what its client had not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRefusal {
    /// A stable code and a message.
    pub fault: Fault,
    /// The changes since what the client had seen, one line each.
    pub difference: Box<[String]>,
    /// An event that has to be recorded nevertheless: an approval that lapsed.
    pub record: Option<Box<LapseEvent>>,
}

impl From<Fault> for CommandRefusal {
    /// A refusal of a command whose client had seen everything.
    fn from(fault: Fault) -> Self {
        Self { fault, difference: Box::default(), record: None }
    }
}

/// An event that has to be recorded together with a refusal.
#[derive(Debug, Clone, PartialEq)]
pub struct LapseEvent(pub Event);

impl Eq for LapseEvent {}

/// The plan of a person has problems.
pub(super) fn invalid_plan(problems: &[plan::PlanProblem]) -> CommandRefusal {
    invalid_plan_fault(problems).into()
}

/// The refusal of a decision about something that changed since the client saw it: `difference` has the changes, one line each.
pub(super) fn changed_since_seen(what: String, difference: Vec<String>) -> CommandRefusal {
    let mut message = what;
    for line in &difference {
        // Writing into a String cannot fail.
        let _ = write!(message, "\n{line}");
    }
    CommandRefusal {
        fault: Fault::new("approval.changed", message),
        difference: difference.into(),
        record: None,
    }
}

/// Somebody has decided it before.
pub(super) fn already_decided(decision: &Decision, who: &str) -> CommandRefusal {
    let said = match decision {
        Decision::No => "no".to_owned(),
        Decision::Yes { .. } | Decision::Edited { .. } => "yes".to_owned(),
        other => other.name().to_owned(),
    };
    refusal("approval.decided", format!("{who} has decided this already: {said}"))
}

/// The plan cannot get that status now.
pub(super) fn illegal_transition(state: &RunState, to: PlanStatus) -> CommandRefusal {
    let what = match state.plan_status.transition_to(to) {
        Err(illegal) => illegal.to_string(),
        Ok(_) => format!("a plan that is {} does not wait for approval", state.plan_status.name()),
    };
    refusal("plan.illegal_transition", what)
}

pub(super) fn run_ended(state: &RunState) -> CommandRefusal {
    refusal("run.ended", format!("the run has ended: it is {}", state.status))
}

pub(super) fn refusal(code: &str, message: impl Into<String>) -> CommandRefusal {
    Fault::new(code, message).into()
}
