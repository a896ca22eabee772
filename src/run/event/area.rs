//! Which part of a run an event is about: one exhaustive match, which a new event extends.

use super::Event;

/// The part of a run that an event is about. When an event is valid, its effect and its facts are defined area by
/// area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) enum EventArea {
    /// Acceptance, start, waits and end of the run, and what is looked up for it and learned from it.
    Run,
    /// Questions to models.
    Question,
    /// The plan and its versions.
    Planning,
    /// Approvals and other decisions of people.
    Approval,
    Step,
    /// Paths through flows, and their nodes.
    Flow,
    Program,
    Summary,
    Call,
    /// What is done about something unexpected.
    Failure,
    /// The continuation check and the answer.
    Answer,
}

impl Event {
    /// The part of a run that the event is about.
    pub(in crate::run) fn area(&self) -> EventArea {
        match self {
            Self::RunQueued(_) | Self::RunStarted(_) | Self::RunResumed { .. } | Self::RunReopened { .. } => {
                EventArea::Run
            }
            Self::RunPutAside { .. } | Self::RunWaiting {} | Self::CancelRequested { .. } => EventArea::Run,
            Self::RunCompleted { .. } | Self::RunFailed { .. } | Self::RunCancelled { .. } => EventArea::Run,
            Self::PlanRecalled(_) | Self::PlanObserved(_) | Self::PlanRated { .. } => EventArea::Run,
            Self::ModelAsked { .. } | Self::ModelReplied { .. } | Self::ModelFailed { .. } => {
                EventArea::Question
            }
            Self::ScenesRanked { .. } | Self::ReplyRejected { .. } => EventArea::Question,
            Self::Planning { .. } | Self::PlanningFailed { .. } | Self::PlanRefused { .. } => {
                EventArea::Planning
            }
            Self::PlanCreated(_) | Self::Replanned(_) | Self::PlanEdited(_) => EventArea::Planning,
            Self::ModificationAsked { .. } => EventArea::Planning,
            Self::ApprovalRequired { .. } | Self::Decided { .. } | Self::Released { .. } => {
                EventArea::Approval
            }
            Self::ApprovalLapsed { .. } | Self::ListChangeAsked { .. } => EventArea::Approval,
            Self::Forecast { .. } | Self::StepStarted { .. } | Self::SceneReplied { .. } => EventArea::Step,
            Self::Prepared { .. } | Self::StepCompleted { .. } | Self::StepFailed { .. } => EventArea::Step,
            Self::PathRecalled { .. } | Self::PathObserved { .. } | Self::FlowPlanned { .. } => {
                EventArea::Flow
            }
            Self::NodeStarted { .. } | Self::NodeReplied { .. } => EventArea::Flow,
            Self::ProgramWritten { .. } | Self::ProgramReplied { .. } => EventArea::Program,
            Self::SummaryPlanned { .. } | Self::SummaryPart { .. } => EventArea::Summary,
            Self::SummaryStopped { .. } => EventArea::Summary,
            Self::ToolStarted { .. } | Self::ToolCompleted { .. } | Self::ToolSkipped { .. } => {
                EventArea::Call
            }
            Self::Compensating { .. } => EventArea::Call,
            Self::Unexpected { .. } | Self::Voted { .. } | Self::Consultation { .. } => EventArea::Failure,
            Self::BackedOff { .. } | Self::TimerFired { .. } | Self::Adapted { .. } => EventArea::Failure,
            Self::Continuation { .. } | Self::Answered { .. } => EventArea::Answer,
        }
    }
}
