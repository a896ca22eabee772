//! Completed work as prompts show it: one line of JSON per step.

use serde_json::{Value, json};

use super::required_reply::writes_not_called;
use crate::plan::StepStatus;
use crate::run::{CallState, CallStatus, Effect, Fault, Outcome, RunState, StepState};
use crate::scene::Catalogue;

/// The longest result, in bytes of JSON, that is included in addition to its phrase once its step has
/// ended.
const MAX_RESULT_BYTES: usize = 2000;

/// Results of the steps that this one depends on, one line each.
pub(super) fn dependency_results(state: &RunState, step: &StepState) -> String {
    let lines: Vec<String> = step
        .step
        .depends_on_step
        .iter()
        .filter_map(|number| state.steps.get(&number).map(|earlier| (number, earlier)))
        .map(|(number, earlier)| {
            let calls: Vec<Value> = earlier
                .calls
                .iter()
                .filter_map(|call| match (state.calls.get(call), state.outcome(*call)) {
                    (Some(of), Some(Outcome::Ok { result, .. })) => Some(
                        json!({"tool": of.requested.tool, "arguments": of.requested.arguments, "result": result}),
                    ),
                    _ => None,
                })
                .collect();
            json!({"step": number, "scene": earlier.step.scene_name, "result": earlier.result, "calls": calls})
                .to_string()
        })
        .collect();
    lines.join("\n")
}

/// Every step that ended, one line each.
///
/// A scene's text may claim a write that was never called, so expected writes that were not called are
/// listed too.
pub(super) fn completed_work(state: &RunState, catalogue: &Catalogue) -> String {
    work_of_steps(state, catalogue, |_| true)
}

/// The same for the steps that have begun.
pub(super) fn begun_work(state: &RunState, catalogue: &Catalogue) -> String {
    work_of_steps(state, catalogue, |step| step.status != StepStatus::Pending)
}

fn work_of_steps(state: &RunState, catalogue: &Catalogue, is_listed: fn(&StepState) -> bool) -> String {
    let lines: Vec<String> = state
        .plan_steps()
        .filter(|(_, step)| is_listed(step))
        .map(|(number, step)| {
            let calls: Vec<Value> = step.calls.iter().filter_map(|call| call_record(state, *call)).collect();
            let mut line = json!({
                "step": number,
                "scene": step.step.scene_name,
                "purpose": step.step.purpose,
                "status": step.status,
                "calls": calls,
            });
            if state.settings().has_rules(3)
                && step.status == StepStatus::Completed
                && state.is_unserved(step)
            {
                line["status"] = "failed".into();
            }
            let scene = catalogue.get(&step.step.scene_name);
            let undone = scene.map(|scene| writes_not_called(state, scene, step)).unwrap_or_default();
            if step.status == StepStatus::Completed && !undone.is_empty() {
                line["not_called"] = json!(undone);
            }
            let cut: Vec<Value> = state.cut_calls(step).map(named).collect();
            if !cut.is_empty() {
                line["cut"] = json!(cut);
            }
            match (step.status, &step.result, &step.question, &step.error) {
                (StepStatus::Completed, Some(result), _, _) => line["result"] = result.as_str().into(),
                (StepStatus::NeedsInput, _, Some(question), _) => {
                    line["question"] = question.text.as_str().into()
                }
                (StepStatus::NeedsInput, _, None, Some(asked)) => {
                    line["question"] = asked.message.as_str().into()
                }
                (_, _, _, Some(error)) => line["error"] = error_text(state, error).into(),
                _ => {}
            }
            line.to_string()
        })
        .collect();
    lines.join("\n")
}

/// Why a step did not complete, for an answer; before revision 3, for developers.
fn error_text(state: &RunState, error: &Fault) -> String {
    if state.settings().has_rules(3) { error.user_text(state.language()) } else { error.message.clone() }
}

fn named(call: &CallState) -> Value {
    json!({"tool": call.requested.tool, "arguments": call.requested.arguments})
}

fn call_record(state: &RunState, call: u32) -> Option<Value> {
    // A substitute is told with the call whose place it took.
    let of = state.calls.get(&call).filter(|of| of.replaces.is_none())?;
    let mut value = named(of);
    if let Some(by) = state.stand_in(of).and_then(|by| state.calls.get(&by)) {
        value["by"] = by.requested.tool.as_str().into();
    }
    if let CallStatus::Skipped { first } = of.status {
        // A shared outcome is shown with the call that has it. For a write, the duplicate is listed too, to
        // show that it was not done twice.
        let is_listed = state.settings().has_rules(1) && of.requested.effect == Effect::Write;
        value["outcome"] = "skipped".into();
        value["reason"] = format!("the same as call {first} of this request, and done once").into();
        return is_listed.then_some(value);
    }
    if let Some(at) = state.calls.get(&state.resolved(call)).and_then(|by| by.stale_since) {
        value["as_of"] = at.to_string().into();
    }
    match state.outcome(call)? {
        Outcome::Ok { result, say, .. } => {
            value["outcome"] = "ok".into();
            // A long result that has a phrase is shown by its phrase only: several such results would fill
            // a small model's context.
            if say.is_none() || result.to_string().len() <= MAX_RESULT_BYTES {
                value["result"] = result.clone();
            }
            if let Some(say) = say {
                value["say"] = say.as_str().into();
            }
        }
        Outcome::Refused { .. } => value["outcome"] = "refused".into(),
        Outcome::Failed { .. } => value["outcome"] = "failed".into(),
        Outcome::Unknown { .. } => value["outcome"] = "unknown".into(),
    }
    if let outcome @ (Outcome::Refused { error } | Outcome::Failed { error } | Outcome::Unknown { error }) =
        state.outcome(call)?
    {
        let says = state.settings().has_rules(3);
        value["error"] =
            if says { outcome.user_text(state.language()).into() } else { error.message.as_str().into() };
    }
    Some(value)
}
