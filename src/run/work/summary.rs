//! The work of a summary, of a step or of a call: the questions about its parts, some at a time, and its end.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::action::Action;
use super::super::event::{Event, Fault, PartOutcome, SummaryOutline, SummaryOwner};
use super::super::next::record;
use super::super::state::{DueQuestion, RunState, StepState};
use crate::plan::StepStatus;
use crate::summary::{GROUP, PART_BYTES, QuotedFact, SummaryPart, SummaryTree, fitting};

/// How many questions about parts of one summary are in flight at once. The gateway's limits apply besides.
const MAX_IN_FLIGHT: usize = 4;

/// The work that is due for a summary.
pub(in crate::run) enum DueSummary {
    /// These actions; none while everything is in flight.
    Parts(Vec<Action>),
    /// It is complete: its text.
    Completed(String),
    /// There is none.
    Failed(Fault),
}

/// The progress of a summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SummaryWork {
    /// The chunks, once the documents were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outline: Option<SummaryOutline>,
    /// What came of the parts so far, by their numbers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<u32, PartOutcome>,
    /// How many replies about it in a row were unusable or missing.
    #[serde(skip_serializing_if = "crate::run::is_default")]
    pub failures: u32,
    /// Why it cannot go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Fault>,
}

impl SummaryWork {
    pub(in crate::run) fn fold(&mut self, event: &Event) {
        match event {
            Event::SummaryPlanned { outline, .. } => self.outline = Some(outline.clone()),
            Event::SummaryPart { part, call, outcome, .. } => {
                if call.is_some() {
                    self.failures = 0;
                }
                self.parts.insert(*part, outcome.clone());
            }
            Event::SummaryStopped { error, .. } => self.stopped = Some(error.clone()),
            _ => {}
        }
    }

    /// The tree of its parts, once its chunks are known.
    pub fn tree(&self) -> Option<SummaryTree> {
        let chunks = self.outline.as_ref()?.ends.len();
        let group = self.outline.as_ref().map_or(GROUP, |outline| outline.group);
        Some(SummaryTree::new(u32::try_from(chunks).unwrap_or(u32::MAX), group))
    }

    /// The facts of these parts, in their order in the text.
    pub fn facts_of(&self, parts: std::ops::Range<u32>) -> Vec<&QuotedFact> {
        let facts = |part| match self.parts.get(&part) {
            Some(PartOutcome::Facts { facts, .. }) => facts.as_slice(),
            Some(PartOutcome::Text { .. } | PartOutcome::Skipped { .. }) | None => &[],
        };
        parts.flat_map(facts).collect()
    }

    /// How many bytes of the text were read for their facts, and how many it has.
    pub fn coverage(&self) -> (u64, u64) {
        let ends = self.outline.as_ref().map_or(&[][..], |outline| &outline.ends);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let is_read = |part: u32| matches!(self.parts.get(&part), Some(PartOutcome::Facts { .. }));
        let read = starts.zip(ends).zip(1..).filter(|(_, part)| is_read(*part));
        (read.map(|((start, end), _)| end.saturating_sub(start)).sum(), ends.last().copied().unwrap_or(0))
    }

    /// In a step: reading the documents, the questions about parts whose own parts are done, or the end.
    pub(super) fn actions(&self, run: &RunState, number: u32, _: &StepState) -> Vec<Action> {
        match self.due(run, SummaryOwner::step(number)) {
            None => vec![Action::OutlineDocuments { step: number }],
            Some(DueSummary::Parts(actions)) => actions,
            Some(DueSummary::Completed(result)) => {
                vec![record(Event::StepCompleted { step: number, result })]
            }
            Some(DueSummary::Failed(error)) => {
                let status = StepStatus::Failed;
                vec![record(Event::StepFailed { step: number, status, error })]
            }
        }
    }

    /// Returns what is due: the questions about parts whose own parts are done, or the end. `None` before the documents were
    /// read.
    pub(in crate::run) fn due(&self, run: &RunState, owner: SummaryOwner) -> Option<DueSummary> {
        if let Some(error) = &self.stopped {
            return Some(DueSummary::Failed(error.clone()));
        }
        let tree = self.tree()?;
        Some(match self.parts.get(&tree.parts()) {
            Some(PartOutcome::Text { text, .. }) => DueSummary::Completed(text.clone()),
            Some(PartOutcome::Skipped { .. } | PartOutcome::Facts { .. }) => {
                DueSummary::Failed(self.fault_of_parts(run, owner))
            }
            None => DueSummary::Parts(self.part_actions(run, owner, &tree)),
        })
    }

    /// The sources of the text, in the order of their numbers.
    pub fn sources(&self) -> &[QuotedFact] {
        match self.tree().and_then(|tree| self.parts.get(&tree.parts())) {
            Some(PartOutcome::Text { sources, .. }) => sources,
            _ => &[],
        }
    }

    /// The chunks whose facts are known, of a summary that is begun again.
    pub(in crate::run) fn read_chunks(&self) -> BTreeMap<u32, PartOutcome> {
        let chunks = self.tree().map_or(0, |tree| tree.chunks());
        let parts = self.parts.iter().filter(|(_, outcome)| matches!(outcome, PartOutcome::Facts { .. }));
        // Parts made of other parts are made again.
        parts.filter(|(part, _)| **part <= chunks).map(|(part, outcome)| (*part, outcome.clone())).collect()
    }

    fn part_actions(&self, run: &RunState, owner: SummaryOwner, tree: &SummaryTree) -> Vec<Action> {
        let spent = self.spent(run, owner);
        let by_rules = spent.is_some() || run.summary_model_fails(owner);
        let (mut actions, mut in_flight, mut asked) = (Vec::new(), 0, false);
        for part in (1..=tree.parts()).filter(|part| !self.parts.contains_key(part)) {
            let Some(kind) = tree.part(part) else { break };
            let below = match &kind {
                SummaryPart::Chunk(_) => 0..0,
                SummaryPart::RollUp(below) | SummaryPart::Whole(below) => below.clone(),
            };
            if below.clone().any(|part| !self.parts.contains_key(&part)) {
                continue;
            }
            if let Some(outcome) = self.unasked(&kind, by_rules) {
                actions.push(record(part_done(owner, part, outcome)));
                continue;
            }
            let subject = owner.subject(part);
            match run.due_summary(subject, by_rules) {
                DueQuestion::Wait => in_flight += 1,
                due @ DueQuestion::Read(_) => actions.extend(run.question_actions(due, subject)),
                // No money or time is left: chunks that nobody was asked about stay unread.
                DueQuestion::Ask { .. } if spent.is_some() && below.is_empty() => {
                    let code = spent.clone().unwrap_or_default();
                    actions.push(record(part_done(owner, part, PartOutcome::Skipped { code })));
                }
                // One question at a time, so that each has the next ordinal.
                due @ DueQuestion::Ask { .. } if !asked && in_flight < MAX_IN_FLIGHT => {
                    asked = true;
                    actions.extend(run.question_actions(due, subject));
                }
                DueQuestion::Ask { .. } => {}
                DueQuestion::GiveUp(error) => {
                    actions.push(record(part_done(owner, part, PartOutcome::Skipped { code: error.code })));
                }
            }
            if asked && in_flight >= MAX_IN_FLIGHT {
                break;
            }
        }
        actions
    }

    /// The result of a part that needs no question: facts that fit as they are, as many as fit if no model is asked, or
    /// nothing if there are none.
    fn unasked(&self, kind: &SummaryPart, by_rules: bool) -> Option<PartOutcome> {
        let (below, is_whole) = match kind {
            SummaryPart::Chunk(_) => return None,
            SummaryPart::RollUp(below) => (below, false),
            SummaryPart::Whole(below) => (below, true),
        };
        let facts = self.facts_of(below.clone());
        if is_whole {
            return facts.is_empty().then(|| PartOutcome::Skipped { code: NOTHING.to_owned() });
        }
        let size: usize = facts.iter().map(|fact| fact.size()).sum();
        (by_rules || size <= PART_BYTES).then(|| {
            let (facts, dropped) = fitted_facts(facts.into_iter().cloned().collect());
            PartOutcome::Facts { facts, dropped }
        })
    }

    /// Why no more chunks are read: the fault code of a question that was refused for lack of money, or that of the
    /// deadline once the remaining time is needed for the parts that were read.
    fn spent(&self, run: &RunState, owner: SummaryOwner) -> Option<String> {
        let skipped = self.parts.values().find_map(|outcome| match outcome {
            PartOutcome::Skipped { code } if is_about_money(code) || code == DEADLINE => Some(code.clone()),
            _ => None,
        });
        let unpaid = || run.unpaid_summary(owner).map(|error| error.code.clone());
        let is_late = run.left_ms() < run.settings().run_timeout_ms / LATE_SHARE;
        skipped.or_else(unpaid).or_else(|| is_late.then(|| DEADLINE.to_owned()))
    }

    /// Why there is no summary: the reason of a part without facts.
    fn fault_of_parts(&self, run: &RunState, owner: SummaryOwner) -> Fault {
        let code = self.parts.values().find_map(|outcome| match outcome {
            PartOutcome::Skipped { code } if code != NOTHING => Some(code.clone()),
            _ => None,
        });
        match (code, run.unpaid_summary(owner)) {
            (_, Some(error)) => error.clone(),
            (Some(code), None) => Fault::new(&code, "no part of the documents could be summarised"),
            (None, None) => Fault::new(NOTHING, "nothing in the documents can be summarised"),
        }
    }
}

/// The code of the run's deadline.
const DEADLINE: &str = "run.deadline";
/// The share of the run's time that is kept for putting together what was read.
const LATE_SHARE: u64 = 5;
/// The code of a summary without a single fact.
const NOTHING: &str = "summary.nothing";

/// Returns whether the code is that of a question for which no money is left.
pub(in crate::run) fn is_about_money(code: &str) -> bool {
    code.starts_with("budget.")
}

fn part_done(owner: SummaryOwner, part: u32, outcome: PartOutcome) -> Event {
    Event::SummaryPart { step: owner.step, tool_call: owner.tool_call, part, call: None, outcome }
}

/// The facts that fit into a part, with the number of those that do not.
pub fn fitted_facts(facts: Vec<QuotedFact>) -> (Vec<QuotedFact>, u32) {
    let all = facts.len();
    let kept = fitting(facts, PART_BYTES);
    let dropped = u32::try_from(all - kept.len()).unwrap_or(u32::MAX);
    (kept, dropped)
}
