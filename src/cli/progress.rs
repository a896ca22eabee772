//! Shows a run while it executes: plain lines in a pipe, a line and a spinner for each running step
//! on a terminal.
//!
//! Lines go to standard error, so that standard output is the answer alone.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use console::Style;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use proscenium::run::{Envelope, Event, SubjectFacts};

use super::narrate::{Mark, NarrationLine, Narrator};
use super::table;
use super::text::{one_line, short};

/// Shows the events of one run, in order.
pub struct ProgressDisplay<W> {
    out: W,
    narrator: Narrator,
    spinners: Option<Spinners>,
    /// The line between events that is not complete.
    line: Vec<u8>,
    /// The version of the last plan that was shown.
    shown_plan: Option<u32>,
}

impl<W: Write> ProgressDisplay<W> {
    /// Plain lines: no escapes, one line for each event that is shown.
    pub fn plain(out: W) -> Self {
        Self { out, narrator: Narrator::default(), spinners: None, line: Vec::new(), shown_plan: None }
    }

    /// Lines with signs in front, and spinners below them drawn on `target`.
    pub fn live(out: W, target: ProgressDrawTarget) -> Self {
        Self { spinners: Some(Spinners::new(target)), ..Self::plain(out) }
    }

    /// Processes an event without showing it.
    pub fn knows(&mut self, envelope: &Envelope<Event>) {
        self.narrator.narrate(envelope);
    }

    /// The version of the last plan that was shown.
    pub fn shown_plan(&self) -> Option<u32> {
        self.shown_plan
    }

    /// Processes an event of which the user knows: only the spinners follow it.
    pub fn follow(&mut self, envelope: &Envelope<Event>) {
        self.narrator.narrate(envelope);
        if let Some(spinners) = &mut self.spinners {
            spinners.follow(&envelope.body, &self.narrator);
        }
    }

    /// Shows the lines for an event.
    pub fn show(&mut self, envelope: &Envelope<Event>) -> io::Result<()> {
        if let Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) = &envelope.body {
            self.shown_plan = Some(made.version);
        }
        let lines = self.narrator.narrate(envelope);
        let Self { out, narrator, spinners, .. } = self;
        match spinners {
            None => {
                for line in &lines {
                    writeln!(out, "{}", line.text)?;
                }
            }
            Some(spinners) => {
                spinners.all.suspend(|| {
                    lines.iter().try_for_each(|line| writeln!(out, "{} {}", sign(line), line.text))?;
                    out.flush()
                })?;
                spinners.follow(&envelope.body, narrator);
            }
        }
        // Each line is visible at once, also through a pipe.
        out.flush()
    }

    /// Removes the spinners and returns the writer.
    pub fn finish(mut self) -> W {
        self.spinners = None;
        self.out
    }
}

/// Text between the events is written above the spinners, in whole lines: the spinners are drawn below each.
impl<W: Write> Write for ProgressDisplay<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(spinners) = &self.spinners else { return self.out.write(bytes) };
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            let lines: Vec<u8> = self.line.drain(..=end).collect();
            spinners.all.suspend(|| self.out.write_all(&lines).and_then(|()| self.out.flush()))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The spinners that are drawn, so that log lines are written above them.
static DRAWN: Mutex<Option<MultiProgress>> = Mutex::new(None);

/// Writes log lines to standard error.
#[derive(Debug, Clone, Copy)]
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let drawn = drawn().clone();
        match drawn {
            Some(all) => all.suspend(|| io::stderr().write_all(bytes))?,
            None => io::stderr().write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// The lock may be poisoned by a thread that panicked; that must not make other threads panic, too.
fn drawn() -> MutexGuard<'static, Option<MultiProgress>> {
    DRAWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sign(line: &NarrationLine) -> String {
    // A plan's steps are indented already.
    if line.text.starts_with(' ') {
        return " ".to_owned();
    }
    let (sign, style) = match line.mark {
        Mark::Plan => ("▸", Style::new().for_stderr().bold()),
        Mark::Begun => ("·", Style::new().for_stderr().dim()),
        Mark::Done => ("✓", Style::new().for_stderr().green()),
        Mark::Failed => ("✗", Style::new().for_stderr().red()),
        Mark::Asks => ("?", Style::new().for_stderr().yellow()),
        Mark::Note => ("!", Style::new().for_stderr().yellow()),
    };
    style.apply_to(sign).to_string()
}

/// One spinner for the run itself, and one for each running step.
struct Spinners {
    all: MultiProgress,
    run: ProgressBar,
    steps: BTreeMap<u32, ProgressBar>,
}

impl Spinners {
    fn new(target: ProgressDrawTarget) -> Self {
        let all = MultiProgress::with_draw_target(target);
        *drawn() = Some(all.clone());
        let run = spinner(&all, "starting".to_owned());
        Self { all, run, steps: BTreeMap::new() }
    }

    fn follow(&mut self, event: &Event, narrator: &Narrator) {
        match event {
            Event::RunQueued(_) => self.run.set_message("waiting for its turn"),
            Event::Planning { .. } => self.run.set_message("planning"),
            Event::ModelAsked { subject, attempt, fallback, .. } => {
                let again = if *attempt > 0 { format!(" (try {})", attempt + 1) } else { String::new() };
                let rules = if *fallback { " by the offline model" } else { "" };
                match subject.facts() {
                    SubjectFacts { step: Some(step), .. } => self.say(step, narrator, narrator.purpose(step)),
                    SubjectFacts { activity, .. } => {
                        self.run.set_message(format!("{activity}{rules}{again}"))
                    }
                }
            }
            Event::PlanCreated(_) | Event::Replanned(_) | Event::PlanEdited(_) => {
                self.run.set_message("at work");
            }
            Event::ModificationAsked { .. } => self.run.set_message("planning"),
            Event::Decided { .. } | Event::Released { .. } | Event::RunReopened { .. } => {
                self.run.set_message("at work");
            }
            Event::CancelRequested { .. } => self.run.set_message("stopping at the next safe point"),
            Event::Compensating { .. } => self.run.set_message("undoing what was written"),
            Event::RunWaiting {} | Event::RunPutAside { .. } => self.run.set_message("waiting for a person"),
            Event::StepStarted { step } => {
                let bar = spinner(&self.all, String::new());
                if let Some(old) = self.steps.insert(*step, bar) {
                    old.finish_and_clear();
                }
                self.say(*step, narrator, narrator.purpose(*step));
            }
            Event::NodeStarted { parent, node, .. } => self.say(*parent, narrator, node),
            Event::ToolStarted { call, .. } => {
                if let Some(asked) = narrator.call(*call) {
                    self.say(asked.step, narrator, &asked.tool);
                }
            }
            Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } => {
                if let Some(bar) = self.steps.remove(step) {
                    bar.finish_and_clear();
                    self.all.remove(&bar);
                }
            }
            Event::Answered { .. }
            | Event::RunCompleted { .. }
            | Event::RunFailed { .. }
            | Event::RunCancelled { .. } => self.run.set_message("done"),
            _ => {}
        }
    }

    fn say(&self, step: u32, narrator: &Narrator, what: &str) {
        if let Some(bar) = self.steps.get(&step) {
            let text = format!("{}: {}", narrator.step_label(step), one_line(what));
            bar.set_message(short(&text, room()));
        }
    }
}

/// Also when the caller no longer waits for the run's end, so that no spinner stays behind.
impl Drop for Spinners {
    fn drop(&mut self) {
        for bar in self.steps.values() {
            bar.finish_and_clear();
        }
        self.run.finish_and_clear();
        *drawn() = None;
        // A closed terminal needs no clearing.
        let _ = self.all.clear();
    }
}

/// Columns of a spinner's message. A terminal shows `^C` behind the last spinner, and a row that this fills would
/// be two rows, of which only one is cleared.
fn room() -> usize {
    table::stderr_width().unwrap_or(80).saturating_sub(24).clamp(16, 120)
}

fn spinner(all: &MultiProgress, message: String) -> ProgressBar {
    let bar = all.add(ProgressBar::new_spinner());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(message);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests;
