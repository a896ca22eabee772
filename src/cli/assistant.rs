//! What the commands need of the engine, and nothing more: so they can be tested without one.

use async_trait::async_trait;
use proscenium::Answer;
use proscenium::plan::{Plan, TaskId};
use proscenium::planner::CommandAction;
use proscenium::run::{Envelope, Event, RunId, RunState, SessionId, Usage};
use serde::{Deserialize, Serialize};

use super::failure::Failure;

/// An engine that is ready.
#[async_trait(?Send)]
pub trait Assistant: Office {
    /// Accepts a message of a conversation; a new conversation where `session` is absent.
    async fn ask(
        &self,
        message: &str,
        session: Option<SessionId>,
    ) -> Result<Box<dyn FollowedTicket>, Failure>;
    /// Makes a plan without carrying it out.
    async fn draft(&self, message: &str) -> Result<PrintedDraft, Failure>;
    /// Writes what is pending and ends.
    async fn stop(self: Box<Self>) -> Result<(), Failure>;
}

/// What holds for every request of a terminal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asking {
    /// A person has to approve the plan.
    pub require_approval: bool,
    /// Nothing is written.
    pub dry_run: bool,
}

/// The number of the event before what was last decided in a run; 0 where nothing was: what a message that
/// may have decided is followed from.
pub fn before_decided(journal: &[Envelope<Event>]) -> u64 {
    // Its last wait may be over already, and another may have begun.
    let decided = journal.iter().rfind(|event| matches!(event.body, Event::Decided { .. }));
    decided.map_or(0, |event| event.seq.saturating_sub(1))
}

/// Where what people decide about runs is carried out.
#[async_trait(?Send)]
pub trait Office {
    /// A run as its journal has it just now.
    async fn state(&self, run: RunId) -> Result<RunState, Failure>;
    /// Has an order carried out, and follows what the run does from there until it ends or waits again.
    async fn order(&self, of: OrderTarget, order: RunOrder) -> Result<Box<dyn FollowedTicket>, Failure>;
}

/// The run that an order is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderTarget {
    /// The run.
    pub run: RunId,
    /// The public id of its plan.
    pub task: TaskId,
}

/// What somebody wants done with a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOrder {
    /// What.
    pub wish: CommandAction,
    /// Why, in their own words.
    pub note: Option<String>,
}

impl From<CommandAction> for RunOrder {
    fn from(wish: CommandAction) -> Self {
        Self { wish, note: None }
    }
}

/// A run that is followed.
#[async_trait(?Send)]
pub trait FollowedTicket {
    /// The conversation.
    fn session(&self) -> SessionId;
    /// What happened in its run before what is told, where it was not told here.
    fn before(&mut self) -> Vec<Envelope<Event>> {
        Vec::new()
    }
    /// The next event of its run; `None` when it has ended or waits for a person.
    async fn next(&mut self) -> Option<Envelope<Event>>;
    /// Asks the run to stop at its next safe point; `by` says whose wish it is.
    async fn cancel(&self, by: &str);
    /// The answer document.
    async fn answer(self: Box<Self>) -> Result<Answer, Failure>;
}

/// A plan that nobody has asked to run: what `plan --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrintedDraft {
    /// The public id of the plan.
    pub task_id: TaskId,
    /// The plan.
    pub plan: Plan,
    /// What making it cost.
    pub usage: Usage,
}
