//! `chat`: one message, an interactive prompt, or each line of a pipe.

use std::io::Write;

use proscenium::run::{RunStatus, SessionId};
use proscenium::{Answer, CallOutcome};

use super::assistant::Assistant;
use super::failure::{Exit, Failure};
use super::follow::{LEFT, Show, follow, heard, left};
use super::output::{self, Output};
use super::signals::Signals;
use super::turns::{NextInput, Turns};
use super::waits;

/// Where requests are taken and answers given.
pub struct Desk<'a, W, E> {
    /// Who answers.
    pub assistant: &'a dyn Assistant,
    /// Wishes to stop.
    pub signals: &'a mut Signals,
    /// How runs are shown.
    pub show: Show,
    /// Where runs and answers go.
    pub out: &'a mut Output<W>,
    /// Where everything else goes.
    pub errors: &'a mut E,
}

impl<W: Write, E: Write> Desk<'_, W, E> {
    /// Asks one message and shows what becomes of it; where a person sits at `turns`, what waits for a yes
    /// is asked there. Gives the status and the conversation.
    ///
    /// # Errors
    /// `chat.left` where somebody wanted to stop twice, and what the assistant says.
    pub async fn once(
        &mut self,
        message: &str,
        session: Option<SessionId>,
        turns: &mut dyn Turns,
    ) -> Result<(Exit, SessionId), Failure> {
        let mut wish = None;
        let asked = self.assistant.ask(message, session);
        let ticket = heard(asked, self.signals, &mut wish, &mut *self.errors).await?;
        let session = ticket.session();
        let answer = follow(ticket, self.signals, wish, self.show, &mut *self.out, &mut *self.errors).await?;
        self.answered(&answer)?;
        let answer = if self.show.tells() && turns.is_interactive() {
            self.decide(answer, turns).await?
        } else {
            answer
        };
        if self.show.tells() {
            self.waits(&answer).await?;
        }
        Ok((Exit::of(answer.status), session))
    }

    /// Shows what a run came to.
    pub(super) fn answered(&mut self, answer: &Answer) -> Result<(), Failure> {
        match self.show {
            Show::Live | Show::Plain => output::answer(self.out, answer)?,
            Show::Json | Show::JsonLine => {
                output::document(self.out, answer, self.show == Show::JsonLine)?;
            }
        }
        Ok(())
    }

    /// Tells what of a run waits for a person, and how it is decided.
    async fn waits(&mut self, answer: &Answer) -> Result<(), Failure> {
        let mut calls = answer.steps.iter().flat_map(|step| &step.tool_calls);
        if answer.status == RunStatus::Waiting || calls.any(|call| call.outcome == CallOutcome::Unknown) {
            let state = self.assistant.state(answer.run_id).await?;
            waits::tell(self.out, &state)?;
        }
        Ok(())
    }

    /// Asks turn after turn until they end. From a pipe, the status is that of the last turn, or
    /// `Failed` where any turn failed; a prompt that was left ends well.
    ///
    /// # Errors
    /// `chat.left` where somebody wanted to stop a run twice, or to stop between the lines of a pipe.
    pub async fn conversation(
        &mut self,
        turns: &mut dyn Turns,
        mut session: Option<SessionId>,
    ) -> Result<Exit, Failure> {
        let interactive = turns.is_interactive();
        let mut failed = false;
        let mut last = Exit::Completed;
        while !self.out.is_gone() {
            let turn = tokio::select! {
                turn = turns.next() => turn?,
                _ = self.signals.next() => return Err(left()),
            };
            let message = match turn {
                NextInput::End => break,
                NextInput::New => {
                    session = None;
                    writeln!(self.out, "A new conversation.")?;
                    continue;
                }
                NextInput::Help => {
                    writeln!(self.out, "{HELP}")?;
                    continue;
                }
                NextInput::Unknown(command) => {
                    writeln!(self.out, "There is no command {command}. {HELP}")?;
                    continue;
                }
                NextInput::Message(message) => message,
            };
            match self.once(&message, session.clone(), turns).await {
                Ok((exit, conversation)) => {
                    session = Some(conversation);
                    failed |= exit == Exit::Failed;
                    last = exit;
                    if self.show.tells() {
                        writeln!(self.out)?;
                    }
                }
                Err(failure) if failure.code == LEFT => return Err(failure),
                // One refused message does not end a conversation.
                Err(failure) => {
                    failure.write(&mut *self.errors)?;
                    failed = true;
                }
            }
        }
        Ok(match (interactive, failed) {
            (true, _) => Exit::Completed,
            (false, true) => Exit::Failed,
            (false, false) => last,
        })
    }
}

const HELP: &str = "\
Write a request. /new begins a new conversation, /help shows this, /quit or Ctrl-D ends.";

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
