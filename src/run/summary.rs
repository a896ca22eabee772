//! Summaries of documents, by steps of kind summary and by calls: the questions about their parts, and the results of
//! these.

use std::collections::BTreeMap;

use serde_json::json;

use super::action::Action;
use super::event::{Event, Fault, Outcome, PartOutcome, ResultNotes, Subject, SummaryOutline, SummaryOwner};
use super::next::record;
use super::state::{Ask, AskStatus, CallState, CallStatus, DueQuestion, RunState, StepState};
use super::work::{DueSummary, StepWork, SummaryWork, is_about_money};
use crate::plan::{StepKind, StepStatus};
use crate::summary::{MAX_CHUNKS, QuotedFact, SummaryPart};

/// Maximum number of sources that the result of a call lists.
const MAX_SOURCES: usize = 60;

/// How many replies about a summary in a row may be unusable or missing before the models are not asked any more.
const MAX_FAILURES: u32 = 12;

impl CallState {
    /// Returns whether its result is a summary without chunks that nobody read.
    pub(super) fn is_partial_summary(&self) -> bool {
        let is_done = matches!(self.status, CallStatus::Done { outcome: Outcome::Ok { .. } });
        is_done && self.summary.as_ref().map(|work| work.coverage()).is_some_and(|(read, all)| read < all)
    }
}

impl RunState {
    /// The progress of a summary.
    pub fn summary_work(&self, owner: SummaryOwner) -> Option<&SummaryWork> {
        match owner.tool_call {
            None => self.steps.get(&owner.step).and_then(StepState::summary),
            Some(call) => self.calls.get(&call).and_then(|call| call.summary.as_deref()),
        }
    }

    /// Checks that documents with so many `chunks` may be summarised beside those that the run has divided already.
    ///
    /// # Errors
    /// `summary.too_large`.
    pub fn check_summary_chunks(&self, chunks: usize) -> Result<(), Fault> {
        let of_steps = self.steps.values().filter_map(|step| step.summary()?.outline.as_ref());
        let of_calls = self.calls.values().filter_map(|call| call.summary.as_ref()?.outline.as_ref());
        let all = of_steps.chain(of_calls).map(|outline| outline.ends.len()).sum::<usize>() + chunks;
        if all <= MAX_CHUNKS as usize {
            return Ok(());
        }
        let what =
            format!("the documents have {all} parts, and at most {MAX_CHUNKS} are summarised in one request");
        Err(Fault::new("summary.too_large", what))
    }

    /// Returns the purpose of a summary: that of its step, or that which its call names.
    pub fn summary_purpose(&self, owner: SummaryOwner) -> &str {
        let call = owner.tool_call.and_then(|call| self.calls.get(&call));
        let named = call.and_then(|call| call.requested.arguments.get("purpose")?.as_str());
        let step = || self.steps.get(&owner.step).map_or("", |step| step.step.purpose.as_str());
        named.filter(|named| !named.trim().is_empty()).unwrap_or_else(step)
    }

    /// Returns whether a summary is in progress.
    pub fn is_summarising(&self, owner: SummaryOwner) -> bool {
        match owner.tool_call {
            None => self.steps.get(&owner.step).is_some_and(|step| !step.status.is_terminal()),
            Some(call) => self.calls.is_open(call),
        }
    }

    /// Returns what is due for a call in flight that summarises documents; nothing for any other.
    pub(super) fn summary_call_actions(&self, number: u32, call: &CallState) -> Vec<Action> {
        let owner = SummaryOwner { step: call.step, tool_call: Some(number) };
        let Some((work, due)) = call.summary.as_deref().and_then(|work| Some((work, work.due(self, owner)?)))
        else {
            return Vec::new();
        };
        let (outcome, notes) = match due {
            DueSummary::Parts(actions) => return actions,
            DueSummary::Failed(error) => (Outcome::Failed { error }, None),
            DueSummary::Completed(text) => summary_result(work, text),
        };
        vec![record(Event::ToolCompleted { call: number, outcome, millis: 0, notes })]
    }

    /// Returns what is due for a question about a part of a summary. If no model may be asked, or the models failed too
    /// often, the offline model is asked.
    pub(super) fn due_summary(&self, subject: Subject, by_rules: bool) -> DueQuestion {
        let begins = self.tries(subject).is_empty();
        if begins && (by_rules || !self.may_ask(subject)) && self.settings().fallback_enabled {
            return DueQuestion::Ask { attempt: 0, fallback: true };
        }
        self.due_question(subject, self.settings().max_retries)
    }

    /// The fault of a question about a part of this summary that was refused for lack of money.
    pub(super) fn unpaid_summary(&self, owner: SummaryOwner) -> Option<&Fault> {
        self.open_summary_asks(owner).find_map(|ask| match &ask.status {
            AskStatus::Failed { error } if is_about_money(&error.code) => Some(error),
            _ => None,
        })
    }

    /// The questions about parts of this summary that are not done.
    fn open_summary_asks(&self, owner: SummaryOwner) -> impl Iterator<Item = &Ask> {
        let all = owner.subject(0)..=owner.subject(u32::MAX);
        self.tries.range(all).flat_map(|(_, calls)| calls).filter_map(|call| self.asks.get(call))
    }

    /// Returns whether the models failed at so many parts of a summary that the rest is left to the offline model.
    pub(super) fn summary_model_fails(&self, owner: SummaryOwner) -> bool {
        let work = self.summary_work(owner);
        work.is_some_and(|work| work.failures >= MAX_FAILURES) && self.settings().fallback_enabled
    }

    /// Returns what a step keeps of its summary when its run is resumed after its end: the parts that have facts.
    pub(super) fn kept_summary(&self, step: u32) -> Option<SummaryWork> {
        let work = self.summary_work(SummaryOwner::step(step))?;
        let outline = work.outline.clone()?;
        Some(SummaryWork { outline: Some(outline), parts: work.read_chunks(), ..SummaryWork::default() })
    }

    /// Checks that an event about a summary can follow.
    pub(super) fn admit_summary(&self, event: &Event) -> Result<(), String> {
        let (holds, why) = match event {
            Event::SummaryPlanned { step, tool_call, outline } => {
                let is_due = match tool_call {
                    None => self.outlines(*step),
                    Some(call) => self.is_in_flight(*step, *call, |work| work.is_none()),
                };
                let grows = outline.ends.windows(2).all(|two| two[0] < two[1]);
                (is_due && grows && !outline.ends.is_empty(), "no documents are divided into chunks now")
            }
            Event::SummaryStopped { step, tool_call: Some(call), .. } => {
                let goes_on = |work: Option<&SummaryWork>| work.is_some_and(|work| work.stopped.is_none());
                (self.is_in_flight(*step, *call, goes_on), "no documents are summarised for that call now")
            }
            Event::SummaryStopped { step, .. } => {
                let runs = self.steps.get(step).is_some_and(|step| step.status == StepStatus::Running);
                let work = self.summary_work(SummaryOwner::step(*step));
                let goes_on = work.is_some_and(|work| work.stopped.is_none());
                (runs && goes_on, "no documents are summarised in that step now")
            }
            Event::SummaryPart { step, tool_call, part, call: Some(call), outcome } => {
                let owner = SummaryOwner { step: *step, tool_call: *tool_call };
                let subject = owner.subject(*part);
                let is_last = self.tries(subject).last() == Some(call);
                let is_replied =
                    self.asks.get(call).is_some_and(|ask| matches!(ask.status, AskStatus::Replied { .. }));
                (
                    is_last && is_replied && self.fits_part(owner, *part, outcome),
                    "there is no such reply to read",
                )
            }
            _ => return self.is_requested(event),
        };
        if holds { Ok(()) } else { Err(why.to_owned()) }
    }

    fn is_in_flight(&self, step: u32, call: u32, is_so: impl Fn(Option<&SummaryWork>) -> bool) -> bool {
        self.calls.get(&call).is_some_and(|call| {
            let is_begun = matches!(call.status, CallStatus::InFlight { .. });
            call.step == step && is_begun && is_so(call.summary.as_deref())
        })
    }

    fn outlines(&self, step: u32) -> bool {
        let running = self.steps.get(&step).filter(|step| step.status == StepStatus::Running);
        running
            .and_then(StepState::summary)
            .is_some_and(|work| work.outline.is_none() && work.stopped.is_none())
    }

    /// Whether the outcome is one that a part may have, and the part has none yet.
    fn fits_part(&self, owner: SummaryOwner, part: u32, outcome: &PartOutcome) -> bool {
        let Some(work) = self.summary_work(owner).filter(|work| !work.parts.contains_key(&part)) else {
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
        let (Event::SummaryPlanned { step, tool_call, .. }
        | Event::SummaryPart { step, tool_call, .. }
        | Event::SummaryStopped { step, tool_call, .. }) = event
        else {
            return;
        };
        let owner = SummaryOwner { step: *step, tool_call: *tool_call };
        // What documents say is known from here on, and later plans may follow from it.
        self.plans_before_results.get_or_insert(self.plans.len() as u32);
        if let Event::SummaryPart { part, call: Some(_), .. } = event {
            self.use_reply_about(owner.subject(*part));
        }
        if let Some(call) = owner.tool_call {
            return self.fold_summary_of_call(call, owner, event);
        }
        self.step(*step, |state| {
            state.work.fold(event, &[]);
            if let Event::SummaryStopped { question: Some(question), .. } = event {
                state.question = Some(question.clone());
            }
        });
    }

    fn fold_summary_of_call(&mut self, number: u32, owner: SummaryOwner, event: &Event) {
        if let Event::SummaryPlanned { outline, .. } = event {
            let parts = self.read_before(number, outline);
            self.tries.retain(|subject, _| SummaryOwner::of(*subject).is_none_or(|(of, _)| of != owner));
            let work = SummaryWork { outline: Some(outline.clone()), parts, ..SummaryWork::default() };
            self.calls.change(number, |call| call.summary = Some(Box::new(work)));
            return;
        }
        self.calls.change(number, |call| {
            if let Some(work) = &mut call.summary {
                work.fold(event);
            }
        });
    }

    /// The chunks of the same text whose facts an equal call found before.
    fn read_before(&self, number: u32, outline: &SummaryOutline) -> BTreeMap<u32, PartOutcome> {
        let Some(call) = self.calls.get(&number) else { return BTreeMap::new() };
        let equal = self.calls.with_key(&call.requested.key).filter_map(|(_, call)| call.summary.as_deref());
        let same = equal.filter(|work| work.outline.as_ref().is_some_and(|of| of.is_same_text(outline)));
        same.map(SummaryWork::read_chunks).max_by_key(BTreeMap::len).unwrap_or_default()
    }

    /// Counts a reply about a part of a summary that could not be used, or did not come.
    pub(super) fn count_summary_failure(&mut self, call: u32) {
        let subject = self.asks.get(&call).map(|ask| ask.subject);
        let Some((owner, _)) = subject.and_then(SummaryOwner::of) else { return };
        if let Some(call) = owner.tool_call {
            self.calls.change(call, |call| {
                if let Some(work) = &mut call.summary {
                    work.failures = work.failures.saturating_add(1);
                }
            });
            return;
        }
        self.step(owner.step, |state| {
            if let StepWork::Summary(work) = &mut state.work {
                work.failures = work.failures.saturating_add(1);
            }
        });
    }

    /// Returns whether the run only summarised documents, or asked which ones. Then the results of its steps are its
    /// answer, because every word of a summary was verified, and a list of documents is shown as it is.
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

    /// Returns whether a summary does not cover chunks that nobody read.
    pub fn is_partial_summary(&self, step: &StepState) -> bool {
        step.status == StepStatus::Completed
            && step.summary().map(SummaryWork::coverage).is_some_and(|(read, all)| read < all)
    }
}

/// The result of a call that summarised documents: the text, how much of them was read, and its sources.
fn summary_result(work: &SummaryWork, text: String) -> (Outcome, Option<Box<ResultNotes>>) {
    let (read, all) = work.coverage();
    let outline = work.outline.as_ref();
    let source = |(at, fact): (usize, &QuotedFact)| {
        let (document, span) = outline?.place_of(fact.span)?;
        Some(json!({"n": at + 1, "document": document.id, "start": span.start, "end": span.end}))
    };
    let sources: Vec<_> = work.sources().iter().take(MAX_SOURCES).enumerate().filter_map(source).collect();
    let result = json!({"summary": text, "coverage": {"read_bytes": read, "bytes": all}, "sources": sources});
    let documents =
        outline.iter().flat_map(|outline| &outline.documents).map(|document| document.id).collect();
    let notes = ResultNotes { documents, ..ResultNotes::default() };
    (Outcome::Ok { result, say: Some(text), whole: None }, Some(Box::new(notes)))
}
