//! Lines about failed calls: what was unexpected, what a model was asked about it, and what took a call's place.

use proscenium::adapt::{ConsultationOutcome, PolicyChoice, decision_id};
use proscenium::run::{
    ConsultationSubject, Event, InterpretedResult, RecalledResult, RequestedCall, UnexpectedSubject,
};

use super::{ARGUMENTS, Mark, NarrationLine, Narrator, RESULT, line};
use crate::cli::text::{count, duration, json, one_line};

impl Narrator {
    /// Narrates what was unexpected, and what a model was asked about it.
    pub(super) fn narrate_failure(&self, event: &Event) -> Vec<NarrationLine> {
        match event {
            Event::Unexpected { subject, chosen, .. } => self.unexpected(*subject, *chosen),
            Event::Voted { consultation, model, at, .. } => {
                let (model, option) = (one_line(model.as_deref().unwrap_or("a model")), decision_id(*at));
                line(Mark::Note, format!("consultation {consultation}: {model} votes for {option}"))
            }
            _ => self.consultation(event),
        }
    }

    fn unexpected(&self, subject: UnexpectedSubject, chosen: PolicyChoice) -> Vec<NarrationLine> {
        let call = match subject {
            UnexpectedSubject::Call { call, .. } => call,
            UnexpectedSubject::Step { .. } => return Vec::new(),
            UnexpectedSubject::Run { idle_steps } => {
                return line(
                    Mark::Note,
                    format!(
                        "{} in a row had no result: no more are begun",
                        count(idle_steps as usize, "step")
                    ),
                );
            }
        };
        let called = self.call_label(call);
        match chosen {
            PolicyChoice::Retry { delay_ms } => {
                line(Mark::Note, format!("{called}: tries again in {}", duration(delay_ms as f64)))
            }
            PolicyChoice::Skip => line(Mark::Note, format!("{called}: left out, since it is optional")),
            // What takes its place, or the end of the consultation, follows.
            PolicyChoice::Alternative { .. }
            | PolicyChoice::Cached { .. }
            | PolicyChoice::Fail
            | PolicyChoice::Consult { .. } => Vec::new(),
        }
    }

    /// The last good result in place of a failed call, if there is one.
    pub(super) fn narrate_recalled(
        &mut self,
        call: u32,
        found: Option<&RecalledResult>,
    ) -> Vec<NarrationLine> {
        let called = self.call_label(call);
        let Some(found) = found else {
            return line(Mark::Note, format!("{called}: there is no earlier result"));
        };
        self.set_success(call, true);
        line(
            Mark::Note,
            format!("{called}: its result of {:.0} is used {}", found.at, json(&found.result, RESULT)),
        )
    }

    /// Narrates what a mapping made of the result of a failed call.
    pub(super) fn narrate_interpreted(
        &mut self,
        call: u32,
        found: Option<&InterpretedResult>,
    ) -> Vec<NarrationLine> {
        let called = self.call_label(call);
        let Some(found) = found else {
            return line(Mark::Note, format!("{called}: what was found is not as expected, either"));
        };
        self.set_success(call, true);
        line(Mark::Note, format!("{called}: its result is read as {}", json(&found.result, RESULT)))
    }

    /// A call that takes the place of a failed one.
    pub(super) fn narrate_substituted(&mut self, call: u32, requested: &RequestedCall) -> Vec<NarrationLine> {
        let step = self.calls.get(&call).map_or(0, |asked| asked.step);
        let (tool, arguments) = (one_line(&requested.tool), json(&requested.arguments, ARGUMENTS));
        let mut lines =
            line(Mark::Note, format!("{}: {tool} {arguments} takes its place", self.call_label(call)));
        lines.extend(self.narrate_reply(step, std::slice::from_ref(requested), None));
        if let Some(asked) = self.calls.get_mut(&requested.call) {
            asked.stands_for = Some(call);
        }
        lines
    }

    /// What a model chose, or why none did.
    fn consultation(&self, event: &Event) -> Vec<NarrationLine> {
        let Event::Consultation { subject, how, chosen, refused, error, .. } = event else {
            return Vec::new();
        };
        let called = match *subject {
            ConsultationSubject::Recovery { call, .. }
            | ConsultationSubject::Interpretation { call, .. }
            | ConsultationSubject::Decision { call, .. } => self.call_label(call),
            ConsultationSubject::Adaptation { step } => self.step_label(step),
        };
        let text = match (chosen, refused) {
            (Some(chosen), None) => {
                let what = match chosen.id() {
                    "retry" => "to try again",
                    "alternative" => "to call its alternative",
                    "cached" => "to use the last good result",
                    "skip" => "to leave it out",
                    "ask_user" => "to ask the user",
                    id if id.starts_with("alternative_") => "another tool in its place",
                    "mapping" => "where the expected values are in its result",
                    "patch" => "to change the plan",
                    _ => "to end this part",
                };
                format!("{called}: a model chose {what}")
            }
            (Some(_), Some(_)) => format!("{called}: what a model chose is not possible any more"),
            (None, _) if error.is_none() && subject.call().is_some() => {
                format!("{called}: a model did not find the expected values in its result")
            }
            (None, _) if error.is_none() => format!("{called}: a model left the plan as it is"),
            (None, _) => match how {
                ConsultationOutcome::OverBudget => format!("{called}: no model was asked (limit or budget)"),
                ConsultationOutcome::RateLimited => format!("{called}: no model was asked (rate limit)"),
                ConsultationOutcome::Policy => format!("{called}: no model was asked"),
                _ => format!("{called}: no model chose how to continue"),
            },
        };
        line(Mark::Note, text)
    }
}
