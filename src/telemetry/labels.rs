//! The closed lists of label values of the metrics of runs. A value's position is its place on the axis.

use strum::{IntoStaticStr, VariantArray};

use super::grid::{Axis, axis};
use crate::plan::StepStatus;
use crate::run::RunStatus;

/// A label with a closed list of values.
pub(super) trait ClosedLabel: VariantArray + Copy + Into<&'static str> {
    /// The value in the exposition and in log lines.
    fn name(self) -> &'static str {
        self.into()
    }

    /// All values, in order.
    fn axis() -> Axis {
        axis(Self::VARIANTS.iter().map(|value| value.name()))
    }
}

impl<L: VariantArray + Copy + Into<&'static str>> ClosedLabel for L {}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum RunOutcome {
    Completed,
    Partial,
    NeedsInput,
    Failed,
    Cancelled,
}

/// How much of a request scenes serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum RequestScope {
    /// All of it.
    Served,
    /// A part of it; the plan names another one that no scene serves.
    Partly,
    /// Nothing of it: it is out of scope.
    Unserved,
    /// It needs no scene: a greeting, or a question that the conversation answers.
    Conversation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum StepOutcome {
    Completed,
    Failed,
    NeedsInput,
    Blocked,
    Cancelled,
}

/// How a requested tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum ToolOutcome {
    Ok,
    Refused,
    Failed,
    Unknown,
    Skipped,
}

/// A person's judgement of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum RatingLabel {
    Good,
    Bad,
}

/// Kinds of tokens; each token has exactly one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum TokenKind {
    Input,
    CachedInput,
    Output,
}

/// States of runs that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum InFlightState {
    Queued,
    Running,
    Waiting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum PlanKind {
    Scene,
    Learned,
    Fallback,
    None,
    Program,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum PlanOutcome {
    Completed,
    Partial,
    NeedsInput,
    Failed,
    Cancelled,
    Draft,
    NotMade,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum EditKind {
    Plan,
    Feedback,
    Arguments,
}

/// Decisions on approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum DecisionLabel {
    Yes,
    No,
    Edited,
    Expired,
    Done,
    NotDone,
    Again,
}

impl From<StepStatus> for StepOutcome {
    fn from(status: StepStatus) -> Self {
        match status {
            StepStatus::Completed => Self::Completed,
            StepStatus::NeedsInput => Self::NeedsInput,
            StepStatus::Blocked => Self::Blocked,
            StepStatus::Cancelled => Self::Cancelled,
            StepStatus::Failed | StepStatus::Pending | StepStatus::Running => Self::Failed,
        }
    }
}

impl From<RunStatus> for RunOutcome {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Partial => Self::Partial,
            RunStatus::NeedsInput => Self::NeedsInput,
            RunStatus::Failed => Self::Failed,
            RunStatus::Cancelled => Self::Cancelled,
            RunStatus::Completed | RunStatus::Queued | RunStatus::Running | RunStatus::Waiting => {
                Self::Completed
            }
        }
    }
}
