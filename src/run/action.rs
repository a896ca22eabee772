//! Actions: what the state machine asks its driver to do now.

use serde::Serialize;

use super::event::{Event, Subject};

/// Something that the driver of a run has to do. Actions are level-triggered: one stays in `RunState::next`
/// until the event that reports it was applied, so a driver may forget them all and ask again.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a handful of actions exist at once, briefly")]
pub enum Action {
    /// Freeze settings, time and memory, and append `run_started`.
    Start,
    /// Append this event, which the state machine decided by itself, and apply it.
    Record {
        /// The event.
        event: Event,
    },
    /// Ask a model: append `model_asked`, send, append the reply or the failure.
    Ask {
        /// The question's ordinal.
        call: u32,
        /// The subject of the question.
        subject: Subject,
        /// 0, then the number of the repair.
        attempt: u32,
        /// Whether to ask the offline model instead of the configured models.
        fallback: bool,
    },
    /// Look for plans of earlier executions, and append `plan_recalled`.
    LookUpPlan,
    /// Look for paths of earlier executions of a flow, and append `path_recalled`.
    LookUpPath {
        /// The flow's step.
        step: u32,
    },
    /// Read the documents that a step summarises, and append `summary_planned` or `summary_stopped`.
    OutlineDocuments {
        /// The step.
        step: u32,
    },
    /// Validate the plan that came with the request or was recalled, and append the event that puts it in force, rejects
    /// it or withdraws it.
    Take {
        /// Its version.
        version: u32,
    },
    /// Prepare the calls of a step that are known without its scene's model, and append `prepared`.
    Prepare {
        /// The step.
        step: u32,
    },
    /// Request the call of the alternative tool that takes the place of a failed call, and append `adapted`.
    Substitute {
        /// The failed call's ordinal.
        call: u32,
    },
    /// Look for the last good result of an equal call, and append `adapted`.
    Recall {
        /// The failed call's ordinal.
        call: u32,
    },
    /// Apply the mapping that a model chose to the result of a failed read, and append `adapted`.
    Interpret {
        /// The failed call's ordinal.
        call: u32,
    },
    /// Execute the program of a step with the outcomes of its calls so far, and append `program_replied`. It changes
    /// nothing, so it may be performed any number of times.
    Execute {
        /// The step.
        step: u32,
    },
    /// Read a reply, and append the one event that says what it means.
    Read {
        /// The question's ordinal.
        call: u32,
        /// What it was about.
        subject: Subject,
    },
    /// Call a tool: append `tool_started`, call, append the outcome.
    Call {
        /// The call's ordinal.
        call: u32,
        /// From 1.
        attempt: u32,
    },
}

impl Action {
    /// A name that is stable for the same action of the same run.
    pub fn id(&self) -> String {
        match self {
            Action::Start => "start".to_owned(),
            Action::LookUpPlan => "look_up_plan".to_owned(),
            Action::LookUpPath { step } => format!("look_up_path/{step}"),
            Action::OutlineDocuments { step } => format!("outline_documents/{step}"),
            Action::Record { event } => format!("record/{}", event.key()),
            Action::Ask { call, .. } => format!("ask/{call}"),
            Action::Take { version } => format!("take/{version}"),
            Action::Prepare { step } => format!("prepare/{step}"),
            Action::Substitute { call } => format!("substitute/{call}"),
            Action::Recall { call } => format!("recall/{call}"),
            Action::Interpret { call } => format!("interpret/{call}"),
            Action::Execute { step } => format!("execute/{step}"),
            Action::Read { call, .. } => format!("read/{call}"),
            Action::Call { call, attempt } => format!("call/{call}/{attempt}"),
        }
    }
}
