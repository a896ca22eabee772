//! Answers without a model: a plain list of results, for when no model can write the text.

use std::fmt::Write;

use serde_json::Value;

use super::event::{Effect, Outcome};
use super::state::{CallState, RunState, StepState};
use crate::invisible::one_line;
use crate::plan::StepStatus;
use crate::sentences::FailureKind;

impl RunState {
    /// A step's result from its tool results: as sentences where the scene has phrases for them, otherwise
    /// as JSON.
    pub fn plain_result(&self, step: &StepState) -> String {
        let mut lines = Vec::new();
        for call in &step.calls {
            // Omitted calls are named at the end of the answer, and a substitute is shown as the call that it replaces.
            // The reads of a program are no text for users.
            let is_read_of_program =
                |c: &CallState| step.code().is_some() && c.requested.effect == Effect::Read;
            let is_told = |c: &CallState| !c.left_out && c.replaces.is_none() && !is_read_of_program(c);
            let is_told = self.calls.get(call).is_some_and(is_told);
            let Some(requested) = self.calls.get(&self.resolved(*call)).map(|c| &c.requested) else {
                continue;
            };
            if !is_told {
                continue;
            }
            match self.outcome(*call) {
                Some(Outcome::Ok { say: Some(say), .. }) => lines.push(say.clone()),
                Some(Outcome::Ok { result: Value::String(text), .. }) => lines.push(text.clone()),
                Some(Outcome::Ok { result: Value::Null, .. }) if self.settings().has_rules(18) => {
                    let written = self.calls.get(call).filter(|call| call.requested.effect == Effect::Write);
                    let nothing = || FailureKind::NotFound.sentence(self.language()).to_owned();
                    lines.push(written.map_or_else(nothing, |call| self.describe_call(call)));
                }
                Some(Outcome::Ok { result, .. }) => lines.push(format!("{}: {result}", requested.tool)),
                Some(outcome) if self.settings().has_rules(3) => {
                    let about = outcome.user_text(self.language());
                    // A neutral sentence does not show which of several calls it is about.
                    let is_neutral = outcome.fault().is_some_and(|fault| fault.say.is_none())
                        && outcome.user_sentence(self.language()).is_some();
                    let names = self.settings().has_rules(8) && step.calls.len() > 1 && is_neutral;
                    lines.push(match self.calls.get(call).filter(|_| names) {
                        Some(failed) => format!("{}: {about}", self.describe_call(failed)),
                        None => about,
                    });
                }
                Some(Outcome::Refused { error } | Outcome::Failed { error } | Outcome::Unknown { error }) => {
                    lines.push(error.message.clone())
                }
                None if self.may_have_written(*call) => {
                    lines.push(format!("{}: it is not known whether this was done", requested.tool));
                }
                None => {}
            }
        }
        lines.dedup();
        lines.join("\n")
    }

    /// The results that a step has although it did not complete.
    fn found_results(&self, step: &StepState) -> String {
        let found = |call: &&u32| self.is_effective(**call);
        let calls = step.calls.iter().filter(found).copied().collect();
        self.plain_result(&StepState { calls, ..step.clone() })
    }

    /// An answer that only lists what was done and what was not.
    pub fn plain_answer(&self) -> String {
        let mut out = String::new();
        for (number, step) in self.plan_steps() {
            let scene = step.step.label();
            // Writing into a String cannot fail.
            if let (StepStatus::Completed, Some(result)) = (step.status, &step.result) {
                // The result was worded before a part of it was undone.
                let is_old = || self.undone_writes().any(|write| step.calls.contains(&write));
                let _ = match self.settings().has_rules(12) && is_old() {
                    true => writeln!(out, "{}", self.plain_result(step)),
                    false => writeln!(out, "{result}"),
                };
                continue;
            }
            // A step that did not complete may still have written something, which has to be reported.
            let undone = step.calls.iter().any(|c| self.calls.get(c).is_some_and(|c| c.undoes.is_some()));
            let is_reported = undone || self.has_written(step) || self.adapts() && self.has_result(step);
            if undone || self.has_written(step) {
                let _ = writeln!(out, "{}", self.plain_result(step));
            } else if self.adapts() && self.has_result(step) {
                let _ = writeln!(out, "{}", self.found_results(step));
            }
            // A question to the user needs no prefix.
            if self.settings().has_rules(1)
                && let (StepStatus::NeedsInput, Some(asked)) = (step.status, &step.error)
            {
                let _ = writeln!(out, "{}", asked.message);
                continue;
            }
            let _ = match &step.error {
                Some(error) if self.settings().has_rules(3) => {
                    let about = one_line(&step.step.purpose);
                    writeln!(out, "«{about}»: {}", error.user_text(self.language()))
                }
                Some(error) => writeln!(out, "{number}. {scene}: {}", error.message),
                None if is_reported && self.settings().has_rules(12) => Ok(()),
                None if self.settings().has_rules(12) => {
                    let about = one_line(&step.step.purpose);
                    writeln!(out, "«{about}»: {}", FailureKind::Stopped.sentence(self.language()))
                }
                None => writeln!(out, "{number}. {scene}: …"),
            };
        }
        // The user is asked for missing information even when no model can word the question.
        let asked = self.verdicts.last().filter(|v| !v.should_continue && !v.can_answer_now);
        if let Some(missing) = asked.and_then(|v| v.missing_information.as_deref()) {
            let _ = writeln!(out, "{missing}");
        }
        out.trim_end().to_owned()
    }

    /// The user's language, where known.
    pub fn language(&self) -> Option<&str> {
        self.started.as_ref().and_then(|started| started.language.as_deref())
    }

    fn may_have_written(&self, call: u32) -> bool {
        self.calls.get(&call).is_some_and(|call| self.may_be_done(call))
    }
}
