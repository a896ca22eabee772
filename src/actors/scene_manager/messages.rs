//! The messages of a conversation's actor, all by way of the registry.

use std::time::Instant;

use actix::prelude::*;
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use uuid::Uuid;

use super::SceneManager;
use super::callers::{CommandCaller, WaitingCaller};
use crate::actors::active_runs::{RunCommand, RunWatch};
use crate::answer::Answer;
use crate::conversation::{FactStatement, IncomingRequest, Input, may_decide_by_words};
use crate::planner::{Command, CommandRefusal};
use crate::run::{Fault, RunId, RunQueued};
use crate::telemetry::QueueGuard;

/// A request to a conversation.
pub(crate) struct RequestMessage {
    /// What its run begins with.
    pub(crate) queued: RunQueued,
    /// The conversation was named just now: nothing of it can be in the store.
    pub(crate) is_first: bool,
    /// Whether a yes may not approve what the same user requested.
    pub(crate) no_own_approval: bool,
    /// Whether the conversation must be its user's, or a new one.
    pub(crate) own_session: bool,
    pub(crate) received: Instant,
    pub(crate) reply: oneshot::Sender<Result<Acceptance, Fault>>,
    /// Counts it as waiting until its run starts.
    pub(crate) waiting: Option<QueueGuard>,
}

/// A request that is in the journal and will end in exactly one way.
pub(crate) struct Acceptance {
    /// Follows the run from its first event; if the request decided about an older run, from the decision.
    pub(crate) watch: RunWatch,
    /// The sequence number of the last event before the request; 0 if the run begins with it.
    pub(crate) before: u64,
    pub(crate) answer: oneshot::Receiver<Result<Answer, Fault>>,
}

/// A person's command about a run of the conversation.
pub(crate) struct CommandMessage {
    pub(crate) run: RunId,
    pub(crate) command: Command,
    /// Gets the result once it is on disk.
    pub(crate) reply: oneshot::Sender<Result<(), CommandRefusal>>,
    /// Gets the run's answer when it ends or waits again.
    pub(crate) answer: Option<oneshot::Sender<Result<Answer, Fault>>>,
}

/// States a fact of the conversation, or corrects one.
pub(crate) struct StatementMessage {
    pub(crate) statement: FactStatement,
    /// Gets the fact's id, once it is on disk.
    pub(crate) reply: oneshot::Sender<Result<String, Fault>>,
}

/// Erases the conversation, unless it changed at `since` or later.
pub(crate) struct EraseMessage {
    pub(crate) since: Option<Timestamp>,
    /// Gets whether anything was erased.
    pub(crate) reply: oneshot::Sender<Result<bool, Fault>>,
}

pub(crate) struct HoldMessage {
    /// Gets the hold: nothing happens in the conversation until it is dropped.
    pub(crate) reply: oneshot::Sender<Result<HeldConversation, Fault>>,
}

/// Nothing happens in a conversation while this exists; then it is read again.
pub(crate) struct HeldConversation {
    /// Dropped with it, which the actor notices.
    pub(super) _held: oneshot::Sender<()>,
}

/// Waits for the runs that an earlier process left unfinished.
pub(crate) struct ResumeMessage {
    /// Notified when all of them can be followed.
    pub(crate) ready: oneshot::Sender<()>,
    /// Notified when none of them is left.
    pub(crate) done: oneshot::Sender<()>,
}

/// A message, and its place in the mailbox. Requests and everything else have places of their own, so that
/// requests cannot fill the mailbox for people's decisions.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct SessionDelivery {
    pub(crate) message: SessionMessage,
    pub(crate) place: OwnedSemaphorePermit,
}

/// A message that can be delivered to a conversation.
pub(crate) enum SessionMessage {
    Request(Box<RequestMessage>),
    Command(Box<CommandMessage>),
    Statement(Box<StatementMessage>),
    Erase(EraseMessage),
    Hold(HoldMessage),
    Resume(ResumeMessage),
}

impl SessionMessage {
    /// Replies that the message did not reach the conversation.
    pub(crate) fn refuse(self, fault: Fault) {
        match self {
            Self::Request(mut request) => {
                // It no longer counts as waiting when its caller gets the reply.
                request.waiting = None;
                let _ = request.reply.send(Err(fault));
            }
            Self::Command(command) => {
                let _ = command.reply.send(Err(fault.into()));
            }
            Self::Statement(statement) => drop(statement.reply.send(Err(fault))),
            Self::Erase(erase) => drop(erase.reply.send(Err(fault))),
            Self::Hold(hold) => drop(hold.reply.send(Err(fault))),
            // The runs are resumed when the conversation is loaded for another reason.
            Self::Resume(_) => {}
        }
    }
}

impl Handler<SessionDelivery> for SceneManager {
    type Result = ();

    fn handle(&mut self, delivery: SessionDelivery, ctx: &mut Context<Self>) {
        let SessionDelivery { message, place } = delivery;
        drop(place);
        let input = match message {
            SessionMessage::Request(request) => self.request(request),
            SessionMessage::Command(command) => {
                let CommandMessage { run, command, reply, answer } = *command;
                let command = RunCommand { command, request: None, reply };
                let waiting = CommandCaller { command, answer, follow: None };
                let caller = self.add_caller(WaitingCaller::Command(Box::new(waiting)));
                Input::Command { caller, run }
            }
            SessionMessage::Statement(message) => {
                let StatementMessage { statement, reply } = *message;
                let caller = self.add_caller(WaitingCaller::Statement(reply));
                Input::State { caller, statement: Box::new(statement) }
            }
            SessionMessage::Erase(EraseMessage { since, reply }) => {
                Input::Erase { caller: self.add_caller(WaitingCaller::Erase(reply)), since }
            }
            SessionMessage::Hold(HoldMessage { reply }) => {
                Input::Hold { caller: self.add_caller(WaitingCaller::Hold(reply)) }
            }
            SessionMessage::Resume(ResumeMessage { ready, done }) => {
                Input::Resume { caller: self.add_caller(WaitingCaller::Resume { ready: Some(ready), done }) }
            }
        };
        self.feed(input, ctx);
    }
}

impl SceneManager {
    fn request(&mut self, request: Box<RequestMessage>) -> Input {
        // The answer of a run may be read before its driver has left.
        let is_published = |run: &RunId| self.runs.get(run).is_some_and(|entry| entry.is_answer_published());
        let answered = self.state.current_run().filter(is_published);
        let queued = &request.queued;
        let may_decide = may_decide_by_words(queued.plan.is_some(), queued.plan_only, queued.options);
        let words = may_decide.then(|| queued.request.clone());
        let (user, own_session) = (queued.user.clone(), request.own_session);
        let caller = self.add_caller(WaitingCaller::Request(request));
        let run = RunId(Uuid::now_v7());
        Input::Request(IncomingRequest { caller, run, user, own_session, words, answered })
    }
}
