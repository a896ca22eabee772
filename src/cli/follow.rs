//! Follows a run and shows it, until it ends or waits for a person.

use std::io::{IsTerminal, Write};

use indicatif::ProgressDrawTarget;
use proscenium::Answer;

use super::assistant::Ticket;
use super::failure::Failure;
use super::progress::Progress;
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

/// Shows what happens and gives the answer document. The first signal stops the run at its next safe point.
///
/// # Errors
/// `chat.left` where somebody wanted to stop twice, and what the ticket says.
pub async fn follow<W: Write, E: Write>(
    mut ticket: Box<dyn Ticket>,
    signals: &mut Signals,
    show: Show,
    out: &mut W,
    errors: &mut E,
) -> Result<Answer, Failure> {
    let mut progress = match show {
        Show::Live => Progress::live(&mut *out, ProgressDrawTarget::stdout()),
        _ => Progress::plain(&mut *out),
    };
    for envelope in ticket.before() {
        progress.knows(&envelope);
    }
    let mut stopping = false;
    loop {
        // A run that has just ended is not to be stopped any more.
        let envelope = tokio::select! {
            biased;
            envelope = ticket.next() => envelope,
            name = signals.next() => {
                if stopping {
                    return Err(left());
                }
                stopping = true;
                ticket.cancel(name).await;
                writeln!(errors, "{AGAIN}")?;
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
    ticket.answer().await
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
