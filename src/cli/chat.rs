//! `chat`: one message, an interactive prompt, or each line of a pipe.

use std::io::{IsTerminal, Write};

use indicatif::ProgressDrawTarget;
use proscenium::run::SessionId;

use super::assistant::Assistant;
use super::failure::{Exit, Failure};
use super::output::{self, Output};
use super::progress::Progress;
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

/// Asks one message and shows what becomes of it. Gives the status and the conversation.
pub async fn once<W: Write>(
    assistant: &dyn Assistant,
    message: &str,
    session: Option<SessionId>,
    show: Show,
    out: &mut Output<W>,
) -> Result<(Exit, SessionId), Failure> {
    let mut ticket = assistant.ask(message, session).await?;
    let session = ticket.session();
    match show {
        Show::Live | Show::Plain => {
            let mut progress = match show {
                Show::Live => Progress::live(&mut *out, ProgressDrawTarget::stdout()),
                _ => Progress::plain(&mut *out),
            };
            while let Some(envelope) = ticket.next().await {
                progress.show(&envelope)?;
            }
            progress.finish();
            let answer = ticket.answer().await?;
            output::answer(out, &answer)?;
            Ok((Exit::of(answer.status), session))
        }
        Show::Json | Show::JsonLine => {
            while ticket.next().await.is_some() {}
            let answer = ticket.answer().await?;
            output::document(out, &answer, show == Show::JsonLine)?;
            Ok((Exit::of(answer.status), session))
        }
    }
}

/// Asks turn after turn until they end. From a pipe, the status is that of the last turn, or
/// `Failed` where any turn failed; a prompt that was left ends well.
pub async fn conversation<W: Write>(
    assistant: &dyn Assistant,
    turns: &mut dyn Turns,
    mut session: Option<SessionId>,
    show: Show,
    out: &mut Output<W>,
    errors: &mut dyn Write,
) -> Result<Exit, Failure> {
    let interactive = turns.is_interactive();
    let mut failed = false;
    let mut last = Exit::Completed;
    while !out.is_gone() {
        let message = match turns.next().await? {
            Turn::End => break,
            Turn::New => {
                session = None;
                writeln!(out, "A new conversation.")?;
                continue;
            }
            Turn::Help => {
                writeln!(out, "{HELP}")?;
                continue;
            }
            Turn::Unknown(command) => {
                writeln!(out, "There is no command {command}. {HELP}")?;
                continue;
            }
            Turn::Message(message) => message,
        };
        match once(assistant, &message, session.clone(), show, out).await {
            Ok((exit, conversation)) => {
                session = Some(conversation);
                failed |= exit == Exit::Failed;
                last = exit;
                if show == Show::Live || show == Show::Plain {
                    writeln!(out)?;
                }
            }
            // One refused message does not end a conversation.
            Err(failure) => {
                failure.write(&mut *errors)?;
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

const HELP: &str = "\
Write a request. /new begins a new conversation, /help shows this, /quit or Ctrl-D ends.";

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
