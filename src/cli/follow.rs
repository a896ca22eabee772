//! Follows a run and shows it, until it ends or waits for a person.

use std::future::Future;
use std::io::{IsTerminal, Write};
use std::pin::pin;

use indicatif::ProgressDrawTarget;
use proscenium::Answer;
use proscenium::run::Event;

use super::assistant::FollowedTicket;
use super::failure::Failure;
use super::progress::ProgressDisplay;
use super::signals::Signals;

/// How a run is shown. Progress goes to standard error, the answer to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Signs and spinners, for a terminal.
    Live,
    /// Plain lines.
    Plain,
    /// Only the answer.
    Quiet,
    /// Only a document, over several lines.
    Json,
    /// Only a document, on one line.
    JsonLine,
}

impl Show {
    /// Returns the display that fits standard error.
    pub fn fitting(json: bool, quiet: bool, one_message: bool) -> Self {
        match (json, one_message) {
            (true, true) => Show::Json,
            (true, false) => Show::JsonLine,
            (false, _) if quiet => Show::Quiet,
            (false, _) if std::io::stderr().is_terminal() => Show::Live,
            (false, _) => Show::Plain,
        }
    }

    /// Returns whether the answer is text.
    pub fn is_text(self) -> bool {
        self.has_progress() || self == Show::Quiet
    }

    /// Returns whether events are rendered as text.
    pub fn has_progress(self) -> bool {
        matches!(self, Show::Live | Show::Plain)
    }
}

/// A run that ended, or waits for a person.
#[derive(Debug)]
pub struct ShownRun {
    /// Its answer document.
    pub answer: Answer,
    /// The version of the plan that was shown.
    pub shown_plan: Option<u32>,
}

/// Shows a run's events on `errors`, until it ends or waits. The first signal stops the run at its next safe
/// point; `stop_signal` is a signal that arrived before there was a run.
///
/// # Errors
/// `chat.left` at the second signal, and the ticket's errors.
pub async fn follow<E: Write>(
    mut ticket: Box<dyn FollowedTicket>,
    signals: &mut Signals,
    mut stop_signal: Option<&'static str>,
    show: Show,
    errors: &mut E,
) -> Result<ShownRun, Failure> {
    let mut progress = match show {
        Show::Live => ProgressDisplay::live(&mut *errors, ProgressDrawTarget::stderr()),
        _ => ProgressDisplay::plain(&mut *errors),
    };
    for envelope in ticket.before() {
        progress.knows(&envelope);
    }
    if let Some(name) = stop_signal {
        until_done(stop(ticket.as_ref(), name), signals, &mut stop_signal, &mut progress).await?;
    }
    loop {
        // Events first: a run that has just ended is not cancelled.
        let envelope = tokio::select! {
            biased;
            envelope = ticket.next() => envelope,
            name = signals.next() => {
                again(name, &mut stop_signal, &mut progress)?;
                until_done(stop(ticket.as_ref(), name), signals, &mut stop_signal, &mut progress).await?;
                continue;
            }
        };
        match envelope {
            // A stop that was requested here was acknowledged at once.
            Some(envelope) if stop_signal.is_some() && is_stop(&envelope.body) => progress.follow(&envelope),
            Some(envelope) if show.has_progress() => progress.show(&envelope)?,
            Some(_) => {}
            None => break,
        }
    }
    let shown_plan = progress.shown_plan();
    progress.finish();
    let answer = until_done(ticket.answer(), signals, &mut stop_signal, errors).await?;
    Ok(ShownRun { answer, shown_plan })
}

/// Waits for a future that may take long. The first signal is noted in `stop_signal`; a second one ends the wait.
///
/// # Errors
/// `chat.left` at the second signal, and those of the future.
pub async fn until_done<T, E: Write>(
    waited: impl Future<Output = Result<T, Failure>>,
    signals: &mut Signals,
    stop_signal: &mut Option<&'static str>,
    errors: &mut E,
) -> Result<T, Failure> {
    let mut waited = pin!(waited);
    loop {
        tokio::select! {
            biased;
            done = &mut waited => return done,
            name = signals.next() => again(name, stop_signal, errors)?,
        }
    }
}

/// Notes and acknowledges the first signal before anything slow is done about it; fails at the second.
fn again<E: Write>(
    name: &'static str,
    stop_signal: &mut Option<&'static str>,
    errors: &mut E,
) -> Result<(), Failure> {
    if stop_signal.replace(name).is_some() {
        return Err(left());
    }
    writeln!(errors, "{AGAIN}")?;
    Ok(errors.flush()?)
}

fn is_stop(event: &Event) -> bool {
    matches!(event, Event::CancelRequested { deadline: false, .. })
}

async fn stop(ticket: &dyn FollowedTicket, by: &str) -> Result<(), Failure> {
    ticket.cancel(by).await;
    Ok(())
}

/// The code of [`left`].
pub const LEFT: &str = "chat.left";

/// The acknowledgement of a first signal.
pub const AGAIN: &str = "Stopping at the next safe point; press Ctrl-C again to exit immediately.";

/// The error of a user who did not wait for the end.
pub fn left() -> Failure {
    Failure::new(LEFT, "left before the end; what was done is in the journal")
        .help("`proscenium runs list` shows how far it got")
}
