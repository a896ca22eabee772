//! Calls of tools: requested, made, skipped, replaced and undone.

use proscenium::run::{Adaptation, Effect, Event, Outcome, Question, RequestedCall, UNCONFIRMED};

use super::{ARGUMENTS, Mark, NarrationLine, Narrator, RESULT, RequestedToolCall, WORDS, behind, line};
use crate::cli::text::{duration, json, one_line, short};

impl Narrator {
    /// The lines for a call, or what takes its place.
    pub(super) fn narrate_call(&mut self, event: &Event) -> Vec<NarrationLine> {
        match event {
            Event::ToolStarted { call, attempt } if *attempt > 1 => {
                line(Mark::Note, format!("{}: try {attempt}", self.call_label(*call)))
            }
            Event::ToolCompleted { call, outcome, millis, notes } => {
                let breaches = notes.as_ref().map(|notes| notes.breaches.as_slice()).unwrap_or_default();
                self.narrate_outcome(*call, outcome, *millis, breaches)
            }
            Event::ToolSkipped { call, first } => {
                let succeeded = self.calls.get(first).is_some_and(|asked| asked.succeeded);
                self.set_success(*call, succeeded);
                line(
                    Mark::Note,
                    format!("{}: skipped, the same call was already made", self.call_label(*call)),
                )
            }
            Event::Compensating { undoes, requested } => self.narrate_compensation(*undoes, requested),
            Event::Adapted { change: Adaptation::Substituted { call, requested } } => {
                self.narrate_substituted(*call, requested)
            }
            Event::Adapted { change: Adaptation::Recalled { call, found } } => {
                self.narrate_recalled(*call, found.as_deref())
            }
            Event::Adapted { change: Adaptation::Interpreted { call, found } } => {
                self.narrate_interpreted(*call, found.as_deref())
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn narrate_reply(
        &mut self,
        step: u32,
        calls: &[RequestedCall],
        question: Option<&Question>,
    ) -> Vec<NarrationLine> {
        let mut lines = Vec::new();
        for call in calls {
            let refused = call.problem.is_some();
            let (tool, arguments) = (call.tool.clone(), call.arguments.clone());
            let writes = call.effect == Effect::Write;
            let asked = RequestedToolCall {
                step,
                tool,
                arguments,
                refused,
                writes,
                succeeded: false,
                stands_for: None,
            };
            self.calls.insert(call.call, asked);
            if let Some(problem) = &call.problem {
                let text = format!(
                    "{}: not called [{}]{}",
                    self.call_label(call.call),
                    problem.code,
                    behind(&problem.user_text(None))
                );
                lines.push(NarrationLine { mark: Mark::Failed, text });
            }
        }
        self.asks |= question.is_some();
        lines
    }

    fn narrate_outcome(
        &mut self,
        call: u32,
        outcome: &Outcome,
        millis: u64,
        breaches: &[String],
    ) -> Vec<NarrationLine> {
        self.set_success(call, matches!(outcome, Outcome::Ok { .. }));
        if self.calls.get(&call).is_some_and(|asked| asked.refused) {
            return Vec::new();
        }
        let took = duration(millis as f64);
        let (mark, how) = match outcome {
            Outcome::Ok { result, .. } => (Mark::Done, format!("ok {} ({took})", json(result, RESULT))),
            // The question itself ends the step.
            Outcome::Refused { error } if error.code == UNCONFIRMED => {
                (Mark::Asks, "not done before you confirm it".to_owned())
            }
            Outcome::Refused { error } => {
                (Mark::Failed, format!("refused [{}]{} ({took})", error.code, behind(&error.user_text(None))))
            }
            Outcome::Failed { error } => {
                (Mark::Failed, format!("failed [{}]{} ({took})", error.code, behind(&error.user_text(None))))
            }
            Outcome::Unknown { error } => {
                (Mark::Failed, format!("its outcome is unknown [{}] ({took})", error.code))
            }
        };
        let step = self.calls.get(&call).map_or(0, |asked| asked.step);
        let is_told_at_end = match outcome {
            Outcome::Ok { result, say, .. } => self.node_returned(step, result, say.as_deref()),
            Outcome::Refused { error } | Outcome::Failed { error } | Outcome::Unknown { error } => {
                self.node_call_failed(step, &error.code);
                false
            }
        };
        let mut lines = match is_told_at_end {
            true => Vec::new(),
            false => line(mark, format!("{}: {how}", self.call_label(call))),
        };
        if matches!(outcome, Outcome::Ok { .. }) && !breaches.is_empty() {
            let why = short(&breaches.join("; "), WORDS);
            let text = format!("{}: its result is not as expected: {why}", self.call_label(call));
            lines.push(NarrationLine { mark: Mark::Failed, text });
        }
        lines
    }

    fn narrate_compensation(&mut self, undoes: u32, requested: &RequestedCall) -> Vec<NarrationLine> {
        let step = self.calls.get(&undoes).map_or(0, |asked| asked.step);
        let undone = self.call_label(undoes);
        self.calls.insert(
            requested.call,
            RequestedToolCall {
                step,
                tool: requested.tool.clone(),
                arguments: requested.arguments.clone(),
                refused: false,
                // An undo is not counted among the writes of a step.
                writes: false,
                succeeded: true,
                stands_for: None,
            },
        );
        let (tool, arguments) = (one_line(&requested.tool), json(&requested.arguments, ARGUMENTS));
        line(Mark::Note, format!("{undone}: is undone by {tool} {arguments}"))
    }

    pub(super) fn set_success(&mut self, call: u32, succeeded: bool) {
        let Some(asked) = self.calls.get_mut(&call) else { return };
        asked.succeeded = succeeded;
        // If it takes the place of another call, that call counts as successful, too.
        if let (Some(original), true) = (asked.stands_for, succeeded) {
            self.set_success(original, true);
        }
    }
}
