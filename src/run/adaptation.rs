//! When a model is asked to change the unfinished part of the plan, and when a run ends because it makes no progress.

use super::approval::ApprovalGate;
use super::confirmation::UNCONFIRMED;
use super::consult::ConsultationState;
use super::event::{
    ConsultationChoice, ConsultationSubject, Effect, Event, Fault, FaultClass, Outcome, UnexpectedSubject,
};
use super::state::{CallStatus, RunState, StepState};
use crate::adapt::{ExecutionLevel, PolicyChoice};
use crate::plan::{self, StepStatus};

/// The code that is recorded when a model is asked at the level `autonomous` after a step that succeeded.
const AUTONOMOUS: &str = "level.autonomous";
/// The code of a run whose further steps had no results.
const NO_PROGRESS: &str = "run.no_progress";

impl RunState {
    /// The consultation about the plan that is open, if any. While it is, no step begins and none is blocked, so that
    /// what may be changed stays as it was when a model was asked.
    pub(super) fn open_adaptation(&self) -> Option<u32> {
        let is_open = |consultation: &ConsultationState| {
            !consultation.ended && matches!(consultation.subject, ConsultationSubject::Adaptation { .. })
        };
        let mut open = self.consultations.iter().filter(|(_, consultation)| is_open(consultation));
        open.next().filter(|_| !self.closing).map(|(number, _)| *number)
    }

    /// The event about a step because of which a model is to change the plan, or why none is asked.
    pub(super) fn adaptation_due(&self) -> Option<Event> {
        if !self.may_patch_now() {
            return None;
        }
        let ended = self.plan_steps().filter(|(_, step)| !step.noted && self.is_in_round(step));
        let (number, class, code) = ended.filter_map(|(n, step)| self.reason_to_adapt(*n, step)).next()?;
        let unasked = self.ask_refusal(self.opening_facts());
        let chosen = match unasked {
            None => PolicyChoice::Consult { consultation: self.next_consultation(), kind: None, voters: 1 },
            Some(_) => PolicyChoice::Fail,
        };
        Some(Event::Unexpected {
            subject: UnexpectedSubject::Step { step: number },
            class,
            code,
            weighed: Vec::new(),
            chosen,
            unasked,
            options: Vec::new(),
        })
    }

    /// Whether the plan may be patched now: no person has to decide first, and the bounds allow it.
    fn may_patch_now(&self) -> bool {
        let patches = self.plans.iter().filter(|made| made.patch.is_some()).count();
        let last = self.plans.len() as u32;
        !self.closing
            && self.cancel.is_none()
            && self.may_patch()
            && patches < self.settings().consultations.max_patches as usize
            && self.plans.len() < plan::MAX_VERSIONS
            && self.open_adaptation().is_none()
            && matches!(self.gate_of_version(last), ApprovalGate::Granted | ApprovalGate::Refused { .. })
            // A patch could do by other means what may have been done already, which no duplicate guard recognises.
            && !self.has_uncertain_write()
    }

    /// Why the plan cannot be patched any more although a model is being asked: a write of a step that was running has
    /// become uncertain since.
    pub(super) fn adaptation_obstacle(&self, consultation: &ConsultationState) -> Option<Fault> {
        let about_plan = matches!(consultation.subject, ConsultationSubject::Adaptation { .. });
        (about_plan && self.has_uncertain_write()).then(|| {
            Fault::new("consultation.uncertain_write", "the outcome of a write of this run is unknown")
        })
    }

    /// Whether a write may have been done, and its outcome is unknown.
    fn has_uncertain_write(&self) -> bool {
        self.calls.values().any(|call| {
            call.requested.effect == Effect::Write
                && (call.uncertain
                    || matches!(call.status, CallStatus::Done { outcome: Outcome::Unknown { .. } }))
        })
    }

    /// Why a model is asked to adapt the plan after this step has ended; `None` if it is not asked.
    fn reason_to_adapt(&self, number: u32, step: &StepState) -> Option<(u32, FaultClass, String)> {
        if step.replaced_by.is_some() || self.was_refused(step) {
            return None;
        }
        if self.is_replaceable(step) {
            let fault = self.fault_of_step(step)?;
            return Some((number, fault.class, fault.code.clone()));
        }
        let limits = self.settings().consultations;
        let has_patchable_steps = || self.steps.values().any(|other| self.is_patchable(other));
        (step.status == StepStatus::Completed
            && self.may().replanning
            && self.consulted < limits.max_per_run
            && has_patchable_steps())
        .then(|| (number, FaultClass::Other, AUTONOMOUS.to_owned()))
    }

    /// The fault of a step, or of one of its calls that failed. A tool's own refusal is a result and not a fault.
    pub fn fault_of_step<'a>(&'a self, step: &'a StepState) -> Option<&'a Fault> {
        let failed = |outcome: &'a Outcome| match outcome {
            Outcome::Failed { error } => Some(error),
            Outcome::Refused { error } => Some(error).filter(|error| error.class != FaultClass::Other),
            Outcome::Ok { .. } | Outcome::Unknown { .. } => None,
        };
        let calls = step.calls.iter().filter_map(|call| self.outcome(*call)).filter_map(failed);
        step.error.as_ref().or_else(|| calls.into_iter().next())
    }

    /// Whether a person, a policy or a back end refused something in the step. What was refused is not done by other
    /// means.
    fn was_refused(&self, step: &StepState) -> bool {
        let refuses = |fault: &Fault| {
            fault.class == FaultClass::Denied
                || fault.code.starts_with("policy.")
                || ["approval.refused", "tool.held", "tool.not_done", UNCONFIRMED]
                    .contains(&fault.code.as_str())
        };
        let mut faults = step.calls.iter().filter_map(|call| self.outcome(*call)).filter_map(Outcome::fault);
        step.error.as_ref().is_some_and(refuses) || faults.any(refuses)
    }

    /// The event that ends a run whose further steps had no results, before it begins another.
    pub(super) fn no_progress(&self) -> Option<Event> {
        let idle_steps = self.idle_steps;
        let counts = !self.closing && self.settings().level >= Some(ExecutionLevel::Adaptive);
        (counts && idle_steps >= self.settings().consultations.max_idle_steps).then(|| Event::Unexpected {
            subject: UnexpectedSubject::Run { idle_steps },
            class: FaultClass::Other,
            code: NO_PROGRESS.to_owned(),
            weighed: Vec::new(),
            chosen: PolicyChoice::Fail,
            unasked: None,
            options: Vec::new(),
        })
    }

    /// The fault of the steps that such a run does not begin.
    pub(super) fn no_progress_fault(idle_steps: u32) -> Fault {
        let why = format!("{idle_steps} steps in a row of later plans had no result: nothing more was begun");
        Fault::new(NO_PROGRESS, why)
    }

    /// The choice of a consultation whose patch is in force and whose end was not recorded yet.
    pub(super) fn unrecorded_patch(&self, consultation: &ConsultationState) -> Option<ConsultationChoice> {
        consultation
            .chosen
            .clone()
            .filter(|chosen| !consultation.ended && matches!(chosen, ConsultationChoice::Patch { .. }))
    }
}
