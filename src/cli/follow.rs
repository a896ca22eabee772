//! Follows a run and shows it, until it ends or waits for a person.

use std::future::Future;
use std::io::{IsTerminal, Write};
use std::pin::pin;

use indicatif::ProgressDrawTarget;
use proscenium::Answer;

use super::assistant::FollowedTicket;
use super::failure::Failure;
use super::progress::ProgressDisplay;
use super::signals::Signals;

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Signs and spinners, for a terminal.
    Live,
    /// Plain lines.
    Plain,
    /// Only a document, over several lines.
    Json,
    /// Only a document, on one line.
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

    /// Whether what happens is told in words.
    pub fn tells(self) -> bool {
        matches!(self, Show::Live | Show::Plain)
    }
}

/// Shows what happens and gives the answer document. The first signal stops the run at its next safe point;
/// `wish` is one that came before there was a run.
///
/// # Errors
/// `chat.left` where somebody wanted to stop twice, and what the ticket says.
pub async fn follow<W: Write, E: Write>(
    mut ticket: Box<dyn FollowedTicket>,
    signals: &mut Signals,
    mut wish: Option<&'static str>,
    show: Show,
    out: &mut W,
    errors: &mut E,
) -> Result<Answer, Failure> {
    let mut progress = match show {
        Show::Live => ProgressDisplay::live(&mut *out, ProgressDrawTarget::stdout()),
        _ => ProgressDisplay::plain(&mut *out),
    };
    for envelope in ticket.before() {
        progress.knows(&envelope);
    }
    if let Some(name) = wish {
        heard(stop(ticket.as_ref(), name), signals, &mut wish, errors).await?;
    }
    loop {
        // A run that has just ended is not to be stopped any more.
        let envelope = tokio::select! {
            biased;
            envelope = ticket.next() => envelope,
            name = signals.next() => {
                again(name, &mut wish, errors)?;
                heard(stop(ticket.as_ref(), name), signals, &mut wish, errors).await?;
                continue;
            }
        };
        match envelope {
            Some(envelope) if show.tells() => progress.show(&envelope)?,
            Some(_) => {}
            None => break,
        }
    }
    progress.finish();
    heard(ticket.answer(), signals, &mut wish, errors).await
}

/// What comes of something that may take long. The first signal is noted in `wish`, where none was before; one
/// more leaves it.
///
/// # Errors
/// `chat.left`, and those of what is waited for.
pub async fn heard<T, E: Write>(
    waited: impl Future<Output = Result<T, Failure>>,
    signals: &mut Signals,
    wish: &mut Option<&'static str>,
    errors: &mut E,
) -> Result<T, Failure> {
    let mut waited = pin!(waited);
    loop {
        tokio::select! {
            biased;
            done = &mut waited => return done,
            name = signals.next() => again(name, wish, errors)?,
        }
    }
}

/// A first wish to stop is noted and told, before anything is done about it that may take long.
fn again<E: Write>(
    name: &'static str,
    wish: &mut Option<&'static str>,
    errors: &mut E,
) -> Result<(), Failure> {
    if wish.replace(name).is_some() {
        return Err(left());
    }
    writeln!(errors, "{AGAIN}")?;
    Ok(errors.flush()?)
}

async fn stop(ticket: &dyn FollowedTicket, by: &str) -> Result<(), Failure> {
    ticket.cancel(by).await;
    Ok(())
}

/// The code of [`left`].
pub const LEFT: &str = "chat.left";

/// What is told when somebody wants a run to stop.
pub const AGAIN: &str = "Stopping at the next safe point; once more leaves at once.";

/// Somebody did not want to wait for the end.
pub fn left() -> Failure {
    Failure::new(LEFT, "left before the end; what was done is in the journal")
        .help("`proscenium runs list` shows how far it got")
}
