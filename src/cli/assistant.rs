//! What the commands need of the engine, and nothing more: so they can be tested without one.

use async_trait::async_trait;
use proscenium::Answer;
use proscenium::plan::{Plan, TaskId};
use proscenium::run::{Envelope, Event, SessionId, Usage};
use serde::{Deserialize, Serialize};

use super::failure::Failure;

/// An engine that is ready.
#[async_trait(?Send)]
pub trait Assistant {
    /// Accepts a message of a conversation; a new conversation where `session` is absent.
    async fn ask(&self, message: &str, session: Option<SessionId>) -> Result<Box<dyn Ticket>, Failure>;
    /// Makes a plan without carrying it out.
    async fn draft(&self, message: &str) -> Result<Draft, Failure>;
    /// Writes what is pending and ends.
    async fn stop(self: Box<Self>) -> Result<(), Failure>;
}

/// A message that was accepted.
#[async_trait(?Send)]
pub trait Ticket {
    /// The conversation.
    fn session(&self) -> SessionId;
    /// The next event of its run; `None` when it has ended.
    async fn next(&mut self) -> Option<Envelope<Event>>;
    /// Asks the run to stop at its next safe point; `by` says whose wish it is.
    async fn cancel(&self, by: &str);
    /// The answer document.
    async fn answer(self: Box<Self>) -> Result<Answer, Failure>;
}

/// A plan that nobody has asked to run: what `plan --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// The public id of the plan.
    pub task_id: TaskId,
    /// The plan.
    pub plan: Plan,
    /// What making it cost.
    pub usage: Usage,
}
