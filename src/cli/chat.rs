//! `chat`: one message, an interactive prompt, or each line of a pipe.

use std::io::Write;

use proscenium::run::{RunStatus, SessionId};
use proscenium::{Answer, CallOutcome};

use super::assistant::Assistant;
use super::failure::{Exit, Failure};
use super::follow::{LEFT, Show, ShownRun, follow, left, until_done};
use super::invocation::command;
use super::output::{self, Output};
use super::pending_questions;
use super::signals::Signals;
use super::turns::{NextInput, Turns};

/// Processes requests and shows their answers.
pub struct ChatRunner<'a, W, E> {
    /// The assistant that answers.
    pub assistant: &'a dyn Assistant,
    /// Signals to stop.
    pub signals: &'a mut Signals,
    /// How runs are shown.
    pub show: Show,
    /// The output for answers.
    pub out: &'a mut Output<W>,
    /// The output for progress, costs, open questions and errors.
    pub errors: &'a mut E,
}

impl<W: Write, E: Write> ChatRunner<'_, W, E> {
    /// Sends one message and shows its run; if `turns` is interactive, open questions are asked there. A question
    /// that only another message can answer is followed by the command that sends it. Returns the exit status and
    /// the conversation.
    ///
    /// # Errors
    /// `chat.left` at the second signal, and the assistant's errors.
    pub async fn once(
        &mut self,
        message: &str,
        session: Option<SessionId>,
        turns: &mut dyn Turns,
    ) -> Result<(Exit, SessionId), Failure> {
        let (status, session) = self.turn(message, session, turns).await?;
        if self.show.is_text() && status == RunStatus::NeedsInput {
            let reply = command(&format!("chat --session {session} \"your answer\""));
            writeln!(self.errors, "\nTo answer:\n  {reply}")?;
            self.errors.flush()?;
        }
        Ok((Exit::of(status), session))
    }

    /// Sends one message and shows its run. Returns the run's status and the conversation.
    async fn turn(
        &mut self,
        message: &str,
        session: Option<SessionId>,
        turns: &mut dyn Turns,
    ) -> Result<(RunStatus, SessionId), Failure> {
        let mut stop_signal = None;
        let asked = self.assistant.ask(message, session);
        let ticket = until_done(asked, self.signals, &mut stop_signal, &mut *self.errors).await?;
        let session = ticket.session();
        let run = follow(ticket, self.signals, stop_signal, self.show, &mut *self.errors).await?;
        self.answered(&run.answer)?;
        let run =
            if self.show.is_text() && turns.is_interactive() { self.decide(run, turns).await? } else { run };
        if self.show.is_text() {
            self.show_pending(&run).await?;
        }
        Ok((run.answer.status, session))
    }

    /// Shows a run's answer.
    pub(super) fn answered(&mut self, answer: &Answer) -> Result<(), Failure> {
        match self.show {
            Show::Live | Show::Plain | Show::Quiet => {
                output::answer(self.out, self.errors, answer, self.show.has_progress())?;
            }
            Show::Json | Show::JsonLine => {
                output::document(self.out, answer, self.show == Show::JsonLine)?;
            }
        }
        Ok(())
    }

    /// Shows the open questions of a run and how they are decided.
    async fn show_pending(&mut self, run: &ShownRun) -> Result<(), Failure> {
        let answer = &run.answer;
        let mut calls = answer.steps.iter().flat_map(|step| &step.tool_calls);
        if answer.status == RunStatus::Waiting || calls.any(|call| call.outcome == CallOutcome::Unknown) {
            let state = self.assistant.state(answer.run_id).await?;
            pending_questions::write_all(self.errors, &state, run.shown_plan)?;
        }
        Ok(())
    }

    /// Processes turns until they end. From a pipe, the status is that of the last turn, or `Failed` if any
    /// turn failed; leaving a prompt is a success.
    ///
    /// # Errors
    /// `chat.left` at the second signal during a run, or at one between the lines of a pipe.
    pub async fn conversation(
        &mut self,
        turns: &mut dyn Turns,
        mut session: Option<SessionId>,
    ) -> Result<Exit, Failure> {
        let interactive = turns.is_interactive();
        let mut failed = false;
        let mut last = Exit::Completed;
        if interactive {
            writeln!(self.out, "{GREETING}")?;
        }
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
            match self.turn(&message, session.clone(), turns).await {
                Ok((status, conversation)) => {
                    session = Some(conversation);
                    let exit = Exit::of(status);
                    failed |= exit == Exit::Failed;
                    last = exit;
                    if self.show.is_text() {
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

const GREETING: &str = "Proscenium. Write a request, or /help.";

const HELP: &str = "\
Write a request. /new begins a new conversation, /help shows this, /quit or Ctrl-D ends.";

#[cfg(test)]
mod tests;
