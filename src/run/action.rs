//! What must happen now: the other half of the state machine's mouth.

use serde::Serialize;

use super::event::{Event, Subject};

/// Something that the driver of a run has to do. Actions are level-triggered: one stays in
/// `RunState::next` until an event that tells of it was applied, so a driver may forget them all and
/// ask again.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a handful of actions exist at once, briefly")]
pub enum Action {
    /// Freeze settings, time and memory: append `run_started`.
    Start,
    /// Append this event and apply it: the machine decided it by itself.
    Record {
        /// The event.
        event: Event,
    },
    /// Ask a model: append `model_asked`, send, append what came.
    Ask {
        /// The question's ordinal.
        call: u32,
        /// What about.
        subject: Subject,
        /// 0, then the number of the repair.
        attempt: u32,
        /// Ask the embedded rules in place of the configured models.
        fallback: bool,
    },
    /// Take the plan that came with the request: append the event that says whether it is in force.
    Take {
        /// Its version.
        version: u32,
    },
    /// Prepare the calls of a step that are known without its scene's model: append `prepared`.
    Prepare {
        /// The step.
        step: u32,
    },
    /// Read a reply that came: append the one event that says what it means.
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
    /// A name that is the same whenever the same thing is to be done in the same run.
    pub fn id(&self) -> String {
        match self {
            Action::Start => "start".to_owned(),
            Action::Record { event } => format!("record/{}", event.key()),
            Action::Ask { call, .. } => format!("ask/{call}"),
            Action::Take { version } => format!("take/{version}"),
            Action::Prepare { step } => format!("prepare/{step}"),
            Action::Read { call, .. } => format!("read/{call}"),
            Action::Call { call, attempt } => format!("call/{call}/{attempt}"),
        }
    }
}
