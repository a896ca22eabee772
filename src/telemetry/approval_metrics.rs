//! Metrics of human decisions in a run: how long approvals wait, and what people edit.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::labels::{DecisionLabel, EditKind};
use super::run_metrics::RunMetrics;
use super::wait_time::seconds;
use crate::plan::{Plan, diff};
use crate::run::{Decision, Event, PlanCause, PlanMade};

/// The `by` of a decision made by expiry.
const EXPIRY: &str = "expiry";

/// The open approvals of one run.
#[derive(Debug, Default)]
pub(super) struct ApprovalTracker {
    /// When each open approval was requested, by its ordinal.
    waiting_since: BTreeMap<u32, Timestamp>,
    /// The current plan, if a person can change it.
    editable_plan: Option<Plan>,
}

impl ApprovalTracker {
    /// Records an event of the run at time `at`.
    pub(super) fn observe(&mut self, event: &Event, at: Timestamp, metrics: Option<&RunMetrics>) {
        match event {
            Event::ApprovalRequired { approval, .. } => _ = self.waiting_since.insert(*approval, at),
            Event::ApprovalLapsed { approval, .. } => _ = self.waiting_since.remove(approval),
            Event::Decided { approval, decision, by, .. } => {
                let since = self.waiting_since.remove(approval);
                let Some(metrics) = metrics else { return };
                if matches!(decision, Decision::Edited { .. }) {
                    metrics.decisions.edits.inc([EditKind::Arguments as usize]);
                }
                if let Some(since) = since {
                    let nanos = at.as_nanosecond() - since.as_nanosecond();
                    metrics
                        .decisions
                        .approval_wait
                        .observe([decision_label(decision, by) as usize], seconds(nanos.max(0)));
                }
            }
            Event::ModificationAsked { .. } => {
                if let Some(metrics) = metrics {
                    metrics.decisions.edits.inc([EditKind::Feedback as usize]);
                }
            }
            Event::PlanCreated(made) => self.set_plan(made),
            Event::Replanned(made) => {
                if made.cause == PlanCause::Feedback {
                    self.observe_changed_steps(EditKind::Feedback, made, metrics);
                }
                self.set_plan(made);
            }
            Event::PlanEdited(made) => {
                if let Some(metrics) = metrics {
                    metrics.decisions.edits.inc([EditKind::Plan as usize]);
                }
                self.observe_changed_steps(EditKind::Plan, made, metrics);
                self.set_plan(made);
            }
            _ => {}
        }
    }

    fn set_plan(&mut self, made: &PlanMade) {
        self.editable_plan = made.approval.is_some().then(|| made.plan.clone());
    }

    fn observe_changed_steps(&self, action: EditKind, made: &PlanMade, metrics: Option<&RunMetrics>) {
        if let (Some(before), Some(metrics)) = (&self.editable_plan, metrics) {
            metrics
                .decisions
                .edited_steps
                .observe([action as usize], changed_steps(before, &made.plan) as f64);
        }
    }
}

/// Number of steps that differ, counted by step number.
fn changed_steps(before: &Plan, now: &Plan) -> usize {
    // A line of the diff looks like `+ step 2 Weather: …`.
    let number = |line: &String| line.split_whitespace().nth(2).map(|n| n.trim_end_matches(':').to_owned());
    diff(before, now).iter().filter_map(number).collect::<BTreeSet<String>>().len()
}

fn decision_label(decision: &Decision, by: &str) -> DecisionLabel {
    match decision {
        Decision::No if by == EXPIRY => DecisionLabel::Expired,
        Decision::Yes { .. } => DecisionLabel::Yes,
        Decision::No => DecisionLabel::No,
        Decision::Edited { .. } => DecisionLabel::Edited,
        Decision::Done => DecisionLabel::Done,
        Decision::NotDone => DecisionLabel::NotDone,
        Decision::Again => DecisionLabel::Again,
    }
}
