//! Steps of kind summary: the questions about the parts of their documents, and what their answers state.

use super::event::{Event, Fault, PartOutcome, Subject};
use super::state::{Ask, AskStatus, DueQuestion, RunState, StepState};
use super::work::{StepWork, SummaryWork, is_about_money};
use crate::plan::{StepKind, StepStatus};
use crate::summary::SummaryPart;

/// How many replies about a summary in a row may be unusable or missing before the models are not asked any more.
const MAX_FAILURES: u32 = 12;

impl StepState {
    /// The progress of a step of kind summary.
    pub fn summary(&self) -> Option<&SummaryWork> {
        match &self.work {
            StepWork::Summary(work) => Some(work),
            _ => None,
        }
    }
}

impl RunState {
    /// The progress of the summary in this step.
    pub fn summary_work(&self, step: u32) -> Option<&SummaryWork> {
        self.steps.get(&step).and_then(StepState::summary)
    }

    /// What is due for a question about a part of a summary. Where no model may be asked, or none is worth asking, the
    /// embedded rules are.
    pub(super) fn due_summary(&self, subject: Subject, by_rules: bool) -> DueQuestion {
        let begins = self.tries(subject).is_empty();
        if begins && (by_rules || !self.may_ask(subject)) && self.settings().fallback_enabled {
            return DueQuestion::Ask { attempt: 0, fallback: true };
        }
        self.due_question(subject, self.settings().max_retries)
    }

    /// The fault of a question about a part of this step's summary that was refused for lack of money.
    pub(super) fn unpaid_summary(&self, step: u32) -> Option<&Fault> {
        self.open_summary_asks(step).find_map(|ask| match &ask.status {
            AskStatus::Failed { error } if is_about_money(&error.code) => Some(error),
            _ => None,
        })
    }

    /// The questions about parts of this step's summary that are not done.
    fn open_summary_asks(&self, step: u32) -> impl Iterator<Item = &Ask> {
        let all = Subject::Summary { step, part: 0 }..=Subject::Summary { step, part: u32::MAX };
        self.tries.range(all).flat_map(|(_, calls)| calls).filter_map(|call| self.asks.get(call))
    }

    /// Whether the models failed at so many parts of a summary that the rest is left to the embedded rules.
    pub(super) fn summary_model_fails(&self, step: u32) -> bool {
        let work = self.summary_work(step);
        work.is_some_and(|work| work.failures >= MAX_FAILURES) && self.settings().fallback_enabled
    }

    /// What a step keeps of its summary when its run is resumed after its end: the parts that have facts.
    pub(super) fn kept_summary(&self, step: u32) -> Option<SummaryWork> {
        let work = self.summary_work(step)?;
        let outline = work.outline.clone()?;
        let parts = work.parts.iter().filter(|(_, outcome)| matches!(outcome, PartOutcome::Facts { .. }));
        let chunks = work.tree()?.chunks();
        // What is made of others is made again.
        let parts =
            parts.filter(|(part, _)| **part <= chunks).map(|(part, outcome)| (*part, outcome.clone()));
        Some(SummaryWork { outline: Some(outline), parts: parts.collect(), ..SummaryWork::default() })
    }

    /// Whether an event about a step of kind summary can follow.
    pub(super) fn admit_summary(&self, event: &Event) -> Result<(), String> {
        let (holds, why) = match event {
            Event::SummaryPlanned { step, outline } => {
                let is_due = self.outlines(*step);
                let grows = outline.ends.windows(2).all(|two| two[0] < two[1]);
                (is_due && grows && !outline.ends.is_empty(), "no documents are divided into chunks now")
            }
            Event::SummaryStopped { step, .. } => {
                let runs = self.steps.get(step).is_some_and(|step| step.status == StepStatus::Running);
                let goes_on = self.summary_work(*step).is_some_and(|work| work.stopped.is_none());
                (runs && goes_on, "no documents are summarised in that step now")
            }
            Event::SummaryPart { step, part, call: Some(call), outcome } => {
                let subject = Subject::Summary { step: *step, part: *part };
                let is_last = self.tries(subject).last() == Some(call);
                let is_replied =
                    self.asks.get(call).is_some_and(|ask| matches!(ask.status, AskStatus::Replied { .. }));
                (
                    is_last && is_replied && self.fits_part(*step, *part, outcome),
                    "there is no such reply to read",
                )
            }
            _ => return self.is_requested(event),
        };
        if holds { Ok(()) } else { Err(why.to_owned()) }
    }

    fn outlines(&self, step: u32) -> bool {
        let running = self.steps.get(&step).filter(|step| step.status == StepStatus::Running);
        running
            .and_then(StepState::summary)
            .is_some_and(|work| work.outline.is_none() && work.stopped.is_none())
    }

    /// Whether the outcome is one that a part may have, and the part has none yet.
    fn fits_part(&self, step: u32, part: u32, outcome: &PartOutcome) -> bool {
        let Some(work) = self.summary_work(step).filter(|work| !work.parts.contains_key(&part)) else {
            return false;
        };
        let kind = work.tree().and_then(|tree| tree.part(part));
        match (kind, outcome) {
            (Some(SummaryPart::Whole(_)), PartOutcome::Text { .. })
            | (Some(SummaryPart::Chunk(_) | SummaryPart::RollUp(_)), PartOutcome::Facts { .. })
            | (Some(_), PartOutcome::Skipped { .. }) => true,
            (Some(_) | None, _) => false,
        }
    }

    /// Folds the chunks of a summary, a part of it, or that it cannot go on.
    pub(super) fn fold_summary(&mut self, event: &Event) {
        let (Event::SummaryPlanned { step, .. }
        | Event::SummaryPart { step, .. }
        | Event::SummaryStopped { step, .. }) = event
        else {
            return;
        };
        // What documents say is known from here on: a later plan follows from it.
        self.plans_before_results.get_or_insert(self.plans.len() as u32);
        if let Event::SummaryPart { part, call: Some(_), .. } = event {
            self.use_reply_about(Subject::Summary { step: *step, part: *part });
        }
        self.step(*step, |state| {
            state.work.fold(event, &[]);
            if let Event::SummaryStopped { question: Some(question), .. } = event {
                state.question = Some(question.clone());
            }
        });
    }

    /// Counts a reply about a part of a summary that could not be used, or did not come.
    pub(super) fn count_summary_failure(&mut self, call: u32) {
        let Some(Subject::Summary { step, .. }) = self.asks.get(&call).map(|ask| ask.subject) else { return };
        self.step(step, |state| {
            if let StepWork::Summary(work) = &mut state.work {
                work.failures = work.failures.saturating_add(1);
            }
        });
    }

    /// Whether all that the run did is to summarise documents, or to ask which: its answer is what the steps made, since every
    /// word of it was verified, and a list is shown as it is.
    pub(super) fn is_only_summary(&self) -> bool {
        let mut done =
            self.plan_steps().map(|(_, step)| step).filter(|step| self.is_in_round(step)).peekable();
        let is_told = |step: &StepState| match step.status {
            StepStatus::Completed => true,
            StepStatus::NeedsInput => step.question.as_ref().is_some_and(|asked| !asked.missing.is_empty()),
            _ => false,
        };
        done.peek().is_some() && done.all(|step| step.step.kind == StepKind::Summary && is_told(step))
    }

    /// Whether a summary leaves out chunks that nobody read.
    pub fn is_partial_summary(&self, step: &StepState) -> bool {
        step.status == StepStatus::Completed
            && step.summary().map(SummaryWork::coverage).is_some_and(|(read, all)| read < all)
    }
}
