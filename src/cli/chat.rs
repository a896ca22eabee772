//! `chat`: one message, an interactive prompt, or each line of a pipe.

use std::io::{IsTerminal, Write};

use indicatif::ProgressDrawTarget;
use proscenium::run::SessionId;

use super::assistant::Assistant;
use super::failure::{Exit, Failure};
use super::output::{self, Output};
use super::progress::Progress;
use super::signals::Signals;
use super::turns::{Turn, Turns};

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Signs and spinners, for a terminal.
    Live,
    /// Plain lines.
    Plain,
    /// Only the answer document, over several lines.
    Json,
    /// Only the answer document, on one line.
    JsonLine,
}

impl Show {
    /// What fits standard output.
    pub fn fitting(json: bool, one_message: bool) -> Self {
        match (json, one_message) {
            (true, true) => Show::Json,
            (true, false) => Show::JsonLine,
            (false, _) if std::io::stdout().is_terminal() => Show::Live,
            (false, _) => Show::Plain,
        }
    }
}

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
    /// Asks one message and shows what becomes of it. Gives the status and the conversation.
    ///
    /// # Errors
    /// `chat.left` where somebody wanted to stop twice, and what the assistant says.
    pub async fn once(
        &mut self,
        message: &str,
        session: Option<SessionId>,
    ) -> Result<(Exit, SessionId), Failure> {
        let mut ticket = self.assistant.ask(message, session).await?;
        let session = ticket.session();
        let mut progress = match self.show {
            Show::Live => Some(Progress::live(&mut *self.out, ProgressDrawTarget::stdout())),
            Show::Plain => Some(Progress::plain(&mut *self.out)),
            Show::Json | Show::JsonLine => None,
        };
        let mut stopping = false;
        loop {
            // A run that has just ended is not to be stopped any more.
            let envelope = tokio::select! {
                biased;
                envelope = ticket.next() => envelope,
                name = self.signals.next() => {
                    if stopping {
                        return Err(left());
                    }
                    stopping = true;
                    ticket.cancel(name).await;
                    writeln!(self.errors, "{AGAIN}")?;
                    continue;
                }
            };
            match (envelope, &mut progress) {
                (Some(envelope), Some(progress)) => progress.show(&envelope)?,
                (Some(_), None) => {}
                (None, _) => break,
            }
        }
        if let Some(progress) = progress {
            progress.finish();
        }
        let answer = ticket.answer().await?;
        match self.show {
            Show::Live | Show::Plain => output::answer(self.out, &answer)?,
            Show::Json | Show::JsonLine => {
                output::document(self.out, &answer, self.show == Show::JsonLine)?;
            }
        }
        Ok((Exit::of(answer.status), session))
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
                Turn::End => break,
                Turn::New => {
                    session = None;
                    writeln!(self.out, "A new conversation.")?;
                    continue;
                }
                Turn::Help => {
                    writeln!(self.out, "{HELP}")?;
                    continue;
                }
                Turn::Unknown(command) => {
                    writeln!(self.out, "There is no command {command}. {HELP}")?;
                    continue;
                }
                Turn::Message(message) => message,
            };
            match self.once(&message, session.clone()).await {
                Ok((exit, conversation)) => {
                    session = Some(conversation);
                    failed |= exit == Exit::Failed;
                    last = exit;
                    if matches!(self.show, Show::Live | Show::Plain) {
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

const LEFT: &str = "chat.left";

const AGAIN: &str = "Stopping at the next safe point; once more leaves at once.";

fn left() -> Failure {
    Failure::new(LEFT, "left before the end; what was done is in the journal")
        .help("`proscenium runs list` shows how far it got")
}

const HELP: &str = "\
Write a request. /new begins a new conversation, /help shows this, /quit or Ctrl-D ends.";

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
