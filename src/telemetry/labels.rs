//! The closed lists of label values of the metrics of runs. A value's position is its place on the axis.

use strum::{IntoStaticStr, VariantArray};

use super::grid::{Axis, axis};

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

/// How a step ended.
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

/// Why a plan replaced another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum ReplanCause {
    Request,
    Continuation,
    Feedback,
    Edit,
    Adaptation,
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

/// Kinds of plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum PlanKind {
    Scene,
    Learned,
    Fallback,
    None,
    Program,
}

/// How a plan ended.
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

/// What a person edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum EditKind {
    Plan,
    Feedback,
    Arguments,
}

/// Who planned the path through a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum PathLabel {
    Planner,
    Rules,
    Graph,
    Learned,
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
