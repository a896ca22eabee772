//! Shows open questions at the prompt and reads their decisions.

use std::io::Write;

use proscenium::planner::{ApproverChoice, CommandAction};
use proscenium::run::{Approval, ApprovalId, ApprovalSubject, RunState, RunStatus};
use serde_json::Value;

use super::assistant::CommandTarget;
use super::chat::ChatRunner;
use super::failure::Failure;
use super::follow::{LEFT, ShownRun, follow, left, until_done};
use super::pending_questions;
use super::text::{one_line, whole_json};
use super::turns::Turns;

const QUESTION: &str = "Approve? [y]es / [n]o / [e]dit / [l]ater ";
const ARGUMENTS: &str = "arguments> ";
const CHANGE: &str = "what is to change> ";

/// The user's reply to one question.
enum DecisionInput {
    Command(CommandAction),
    /// Not now.
    Later,
}

impl<W: Write, E: Write> ChatRunner<'_, W, E> {
    /// Asks every question that blocks a run, until none is left or the user postpones one. Returns the
    /// run as it is then.
    ///
    /// # Errors
    /// `chat.left` at a second signal, and errors of the terminal.
    pub(super) async fn decide(
        &mut self,
        mut run: ShownRun,
        turns: &mut dyn Turns,
    ) -> Result<ShownRun, Failure> {
        let of = CommandTarget { run: run.answer.run_id, task: run.answer.task_id };
        // Arguments that were refused, for another edit.
        let mut refused: Option<String> = None;
        while run.answer.status == RunStatus::Waiting {
            let state = self.assistant.state(of.run).await?;
            let Some((id, put)) = pending_questions::first_blocking(&state) else { break };
            let input = match (refused.take(), put.matter) {
                (Some(text), ApprovalSubject::Call { .. }) => self.arguments(turns, id, put, text).await?,
                _ => {
                    writeln!(self.out)?;
                    pending_questions::describe(self.out, &state, put, run.shown_plan)?;
                    self.out.flush()?;
                    self.question(turns, &state, id, put).await?
                }
            };
            let DecisionInput::Command(action) = input else { break };
            let given = match &action {
                CommandAction::Decide { choice: ApproverChoice::Edited(arguments), .. } => {
                    Some(arguments.to_string())
                }
                _ => None,
            };
            let changes = matches!(action, CommandAction::Modify { .. });
            let mut stop = None;
            let executed = self.assistant.command(of, action.into());
            let ticket = match until_done(executed, self.signals, &mut stop, &mut *self.errors).await {
                Ok(ticket) => ticket,
                // Read the question again: it may have changed.
                Err(failure) if failure.code != LEFT => {
                    failure.write(&mut *self.errors)?;
                    refused = given.filter(|_| failure.code == "approval.arguments");
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            run = follow(ticket, self.signals, stop, self.show, &mut *self.errors).await?;
            if changes {
                self.unmodified(of).await?;
            } else {
                self.answered(&run.answer)?;
            }
        }
        Ok(run)
    }

    async fn unmodified(&mut self, of: CommandTarget) -> Result<(), Failure> {
        if let Some(fault) = self.assistant.state(of.run).await?.unmodified {
            writeln!(self.out, "{}", one_line(&pending_questions::unmodified_text(&fault)))?;
        }
        Ok(())
    }

    async fn question(
        &mut self,
        turns: &mut dyn Turns,
        state: &RunState,
        id: ApprovalId,
        put: &Approval,
    ) -> Result<DecisionInput, Failure> {
        loop {
            let Some(line) = self.line(turns, QUESTION, "").await? else { return Ok(DecisionInput::Later) };
            match line.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(decided(id, put, ApproverChoice::Yes)),
                "n" | "no" => return Ok(decided(id, put, ApproverChoice::No)),
                "l" | "later" => return Ok(DecisionInput::Later),
                "e" | "edit" => match put.matter {
                    ApprovalSubject::Call { call } => {
                        let call = state.calls.get(&call);
                        let now = call.map(|call| whole_json(&call.requested.arguments)).unwrap_or_default();
                        return self.arguments(turns, id, put, now).await;
                    }
                    ApprovalSubject::Plan { version } => {
                        let words = self.line(turns, CHANGE, "").await?;
                        if let Some(words) = words.filter(|words| !words.trim().is_empty()) {
                            return Ok(DecisionInput::Command(CommandAction::Modify {
                                words,
                                version: Some(version),
                            }));
                        }
                    }
                    ApprovalSubject::Outcome { .. } => return Ok(DecisionInput::Later),
                },
                "" => {}
                _ => writeln!(self.out, "Please type y, n, e or l.")?,
            }
        }
    }

    /// Lets the user edit the arguments of a call on one line, until they are JSON.
    async fn arguments(
        &mut self,
        turns: &mut dyn Turns,
        id: ApprovalId,
        put: &Approval,
        mut text: String,
    ) -> Result<DecisionInput, Failure> {
        while let Some(line) = self.line(turns, ARGUMENTS, &text).await? {
            match proscenium::long_integers::parse(line.as_bytes()) {
                Ok(arguments @ Value::Object(_)) => {
                    return Ok(decided(id, put, ApproverChoice::Edited(arguments)));
                }
                Ok(_) => writeln!(self.out, "Arguments are a JSON object: {{\"name\": value}}.")?,
                Err(error) => writeln!(self.out, "That is not valid JSON: {error}.")?,
            }
            text = line;
        }
        Ok(DecisionInput::Later)
    }

    /// Reads a reply; a signal ends the dialogue.
    async fn line(
        &mut self,
        turns: &mut dyn Turns,
        question: &str,
        initial: &str,
    ) -> Result<Option<String>, Failure> {
        tokio::select! {
            line = turns.ask(question, initial) => line,
            _ = self.signals.next() => Err(left()),
        }
    }
}

/// A decision about exactly what was shown.
fn decided(id: ApprovalId, put: &Approval, choice: ApproverChoice) -> DecisionInput {
    DecisionInput::Command(CommandAction::Decide {
        approval: id.approval,
        choice,
        hash: Some(put.needed.hash.clone()),
    })
}

#[cfg(test)]
mod tests;
