//! The interface that the commands need of an engine, so that they can be tested without one.

use std::io::Write;

use async_trait::async_trait;
use proscenium::plan::{Plan, TaskId};
use proscenium::planner::CommandAction;
use proscenium::run::{Envelope, Event, RunId, RunState, SessionId, Usage};
use proscenium::{Answer, AnswerFlow};
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::signals::Signals;

/// An engine that is ready.
#[async_trait(?Send)]
pub trait Assistant: CommandExecutor {
    /// Accepts a message of a conversation; a new conversation if `session` is absent.
    async fn ask(
        &self,
        message: &str,
        session: Option<SessionId>,
    ) -> Result<Box<dyn FollowedTicket>, Failure>;
    /// Makes a plan without executing it; with a flow, the path of the message through it. The first signal stops it at
    /// its next safe point, which `errors` acknowledges.
    async fn draft(
        &self,
        message: &str,
        signals: &mut Signals,
        errors: &mut dyn Write,
    ) -> Result<PrintedDraft, Failure>;
    /// Flushes the journal and stops.
    async fn stop(self: Box<Self>) -> Result<(), Failure>;
}

/// The sequence number of the event before a run's last decision; 0 without one. A run is followed from there after a
/// message that may have been a decision.
pub fn before_decided(journal: &[Envelope<Event>]) -> u64 {
    // The run may have continued since, and wait again.
    let decided = journal.iter().rfind(|event| matches!(event.body, Event::Decided { .. }));
    decided.map_or(0, |event| event.seq.saturating_sub(1))
}

/// Executes people's commands for runs.
#[async_trait(?Send)]
pub trait CommandExecutor {
    /// The current state of a run.
    async fn state(&self, run: RunId) -> Result<RunState, Failure>;
    /// Executes a command and follows the run until it ends or waits again.
    async fn command(
        &self,
        of: CommandTarget,
        command: CommandWithNote,
    ) -> Result<Box<dyn FollowedTicket>, Failure>;
}

/// The target of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandTarget {
    /// The run.
    pub run: RunId,
    /// The public id of its plan.
    pub task: TaskId,
}

/// A command for a run, with an optional note.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandWithNote {
    /// The action that is wanted.
    pub action: CommandAction,
    /// The reason, in the user's words.
    pub note: Option<String>,
}

impl From<CommandAction> for CommandWithNote {
    fn from(action: CommandAction) -> Self {
        Self { action, note: None }
    }
}

/// A run that is followed.
#[async_trait(?Send)]
pub trait FollowedTicket {
    /// The conversation.
    fn session(&self) -> SessionId;
    /// Earlier events of the run that this process has not shown.
    fn before(&mut self) -> Vec<Envelope<Event>> {
        Vec::new()
    }
    /// The next event of its run; `None` when it has ended or waits for a person.
    async fn next(&mut self) -> Option<Envelope<Event>>;
    /// Asks the run to stop at its next safe point; `by` is the user.
    async fn cancel(&self, by: &str);
    /// The answer document.
    async fn answer(self: Box<Self>) -> Result<Answer, Failure>;
}

/// A plan that is not executed: what `plan --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrintedDraft {
    /// The public id of the plan.
    pub task_id: TaskId,
    /// The plan.
    pub plan: Plan,
    /// The paths through the flows of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<AnswerFlow>,
    /// The cost of making it.
    pub usage: Usage,
}
