//! The callers of a conversation and their reply channels. A caller may have disconnected; then its reply is
//! dropped, and nothing else changes.

use tokio::sync::oneshot;

use super::SceneManager;
use super::messages::{Acceptance, HeldConversation, RequestMessage};
use crate::actors::active_runs::{CommandRejected, RunCommand, RunWatch};
use crate::answer::Answer;
use crate::conversation::{CallerId, Input, WordDecision};
use crate::planner::{Command, CommandAction};
use crate::run::{Fault, RequestIdentity, RunId};
use crate::telemetry::Component;

pub(super) enum WaitingCaller {
    /// For its request to be accepted or refused.
    Request(Box<RequestMessage>),
    /// For its request to be in the journal.
    Appended {
        reply: oneshot::Sender<Result<Acceptance, Fault>>,
        accepted: Box<Acceptance>,
        answer: AnswerSender,
    },
    /// For a driver to take its command.
    Command(Box<CommandCaller>),
    /// For the answer of a run.
    Answer(AnswerSender),
    /// For a stated fact to be in the session's stream.
    Statement(oneshot::Sender<Result<String, Fault>>),
    /// For the conversation to be erased.
    Erase(oneshot::Sender<Result<bool, Fault>>),
    /// For the conversation to be held.
    Hold(oneshot::Sender<Result<HeldConversation, Fault>>),
    /// For the runs of an earlier process.
    Resume { ready: Option<oneshot::Sender<()>>, done: oneshot::Sender<()> },
}

/// Receives what a run results in.
pub(super) type AnswerSender = oneshot::Sender<Result<Answer, Fault>>;

pub(super) struct CommandCaller {
    pub(super) command: RunCommand,
    /// Gets the run's answer when it ends or waits again.
    pub(super) answer: Option<AnswerSender>,
    /// Gets the run to follow, from before the command.
    pub(super) follow: Option<oneshot::Sender<RunWatch>>,
}

impl SceneManager {
    pub(super) fn add_caller(&mut self, caller: WaitingCaller) -> CallerId {
        self.last_caller += 1;
        let id = CallerId(self.last_caller);
        self.callers.insert(id, caller);
        id
    }

    pub(super) fn accept(&mut self, caller: CallerId) {
        if let Some(WaitingCaller::Appended { reply, accepted, answer }) = self.callers.remove(&caller) {
            let _ = reply.send(Ok(*accepted));
            self.callers.insert(caller, WaitingCaller::Answer(answer));
        }
    }

    pub(super) fn refuse(&mut self, caller: CallerId, fault: Fault, is_shed: bool) {
        let Some(caller) = self.callers.remove(&caller) else { return };
        if is_shed {
            self.options.server_metrics.shed(Component::SceneManager);
        }
        match caller {
            WaitingCaller::Request(mut request) => {
                // It no longer counts as waiting when its caller gets the reply.
                request.waiting = None;
                let _ = request.reply.send(Err(fault));
            }
            WaitingCaller::Appended { reply, .. } => drop(reply.send(Err(fault))),
            WaitingCaller::Command(waiting) => {
                let _ = waiting.command.reply.send(Err(fault.into()));
            }
            WaitingCaller::Statement(reply) => drop(reply.send(Err(fault))),
            WaitingCaller::Erase(reply) => drop(reply.send(Err(fault))),
            WaitingCaller::Hold(reply) => drop(reply.send(Err(fault))),
            WaitingCaller::Answer(_) | WaitingCaller::Resume { .. } => {}
        }
    }

    pub(super) fn answer(&mut self, caller: CallerId, result: Result<Answer, Fault>) {
        if let Some(WaitingCaller::Answer(answer)) = self.callers.remove(&caller) {
            let _ = answer.send(result);
        }
    }

    pub(super) fn reply_stated(&mut self, caller: CallerId, fact: String) {
        if let Some(WaitingCaller::Statement(reply)) = self.callers.remove(&caller) {
            let _ = reply.send(Ok(fact));
        }
    }

    pub(super) fn reply_erased(&mut self, caller: CallerId, erased: bool) {
        if let Some(WaitingCaller::Erase(reply)) = self.callers.remove(&caller) {
            let _ = reply.send(Ok(erased));
        }
    }

    /// Hands the hold to the caller. What is returned ends when the hold is dropped: at once if nobody waits for it any more.
    pub(super) fn reply_held(&mut self, caller: CallerId) -> oneshot::Receiver<()> {
        let (held, released) = oneshot::channel();
        if let Some(WaitingCaller::Hold(reply)) = self.callers.remove(&caller) {
            let _ = reply.send(Ok(HeldConversation { _held: held }));
        }
        released
    }

    pub(super) fn reply_ready(&mut self, caller: CallerId) {
        if let Some(WaitingCaller::Resume { ready, .. }) = self.callers.get_mut(&caller)
            && let Some(ready) = ready.take()
        {
            let _ = ready.send(());
        }
    }

    pub(super) fn reply_resumed(&mut self, caller: CallerId) {
        self.reply_ready(caller);
        if let Some(WaitingCaller::Resume { done, .. }) = self.callers.remove(&caller) {
            let _ = done.send(());
        }
    }

    /// Hands a caller's command to the run's driver. If the driver is leaving, the result is an input.
    pub(super) fn deliver(&mut self, caller: CallerId, run: RunId) -> Option<Input> {
        let Some(WaitingCaller::Command(waiting)) = self.callers.remove(&caller) else { return None };
        let CommandCaller { command, answer, follow } = *waiting;
        let live = self.options.shared.load().live.clone();
        // Before the command, so that no event that follows from it is missed.
        let watch = live.watch(&self.tenant, run).map(RunWatch::following);
        match live.send_command(&self.tenant, run, command) {
            Ok(()) => {
                if let (Some(follow), Some(watch)) = (follow, watch) {
                    let _ = follow.send(watch);
                }
                if let Some(answer) = answer {
                    self.callers.insert(caller, WaitingCaller::Answer(answer));
                }
                None
            }
            // The reply channel was dropped with the command: its caller gets an error.
            Err(CommandRejected::Full) => None,
            Err(CommandRejected::NotActive(command)) => {
                let waiting = CommandCaller { command: *command, answer, follow };
                self.callers.insert(caller, WaitingCaller::Command(Box::new(waiting)));
                Some(Input::CommandNotTaken { caller, run })
            }
        }
    }

    /// Makes a request the command that its words mean. Its answer is what the run results in.
    pub(super) fn decide_by_words(&mut self, caller: CallerId, decision: WordDecision) {
        let Some(WaitingCaller::Request(request)) = self.callers.remove(&caller) else { return };
        let WordDecision { approval, choice, before } = decision;
        let action = CommandAction::Decide { approval: approval.approval, choice, hash: None };
        let (by, no_own_approval, is_authenticated) =
            (request.queued.user, request.no_own_approval, request.own_session);
        let command =
            Command { by, note: Some(request.queued.request), action, no_own_approval, is_authenticated };
        let identity =
            RequestIdentity { idempotency: request.queued.idempotency, asked: request.queued.asked };
        let (reply, decided) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let (follow, followed) = oneshot::channel();
        let requester = request.reply;
        let command = RunCommand { command, request: Some(identity), reply };
        let waiting = CommandCaller { command, answer: Some(answer), follow: Some(follow) };
        self.callers.insert(caller, WaitingCaller::Command(Box::new(waiting)));
        let accepted = async move {
            let accepted = match (decided.await, followed.await) {
                (Ok(Ok(())), Ok(watch)) => Ok(Acceptance { watch, before, answer: answered }),
                (Ok(Err(refused)), _) => Err(refused.fault),
                _ => Err(Fault::new("run.not_reached", "the run could not be taken up; try again")),
            };
            let _ = requester.send(accepted);
        };
        actix::spawn(accepted);
    }
}
