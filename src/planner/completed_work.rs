//! Completed work as prompts show it: one line of JSON per step.

use serde::Serialize;
use serde_json::{Value, json};

use super::required_reply::writes_not_called;
use crate::plan::StepStatus;
use crate::run::{CallStatus, Effect, Fault, Outcome, RunState, StepState};
use crate::scene::Catalogue;
use crate::tools::bound;

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

/// Results of completed steps in words. [`completed_work`] has them all, with the same figures.
pub(super) fn results_in_words(state: &RunState) -> impl Iterator<Item = &str> {
    let completed = state.plan_steps().filter(|(_, step)| step.status == StepStatus::Completed);
    completed.filter_map(|(_, step)| step.result.as_deref()).filter(|text| keeps_figures(text))
}

/// Whether JSON keeps the figures of a text: control characters would be escaped with digits.
fn keeps_figures(text: &str) -> bool {
    text.bytes().all(|byte| byte >= b' ' || matches!(byte, b'\n' | b'\r' | b'\t'))
}

/// A step as prompts show it. The fields are sorted by name, like the members of all objects.
#[derive(Serialize)]
struct StepLine<'a> {
    calls: Vec<CallLine<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cut: Vec<CutCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_called: Vec<&'a str>,
    purpose: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
    scene: &'a str,
    status: StepStatus,
    step: u32,
}

/// A call that was left out because of a limit.
#[derive(Serialize)]
struct CutCall<'a> {
    arguments: &'a Value,
    tool: &'a str,
}

#[derive(Serialize)]
struct CallLine<'a> {
    arguments: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    say: Option<&'a str>,
    tool: &'a str,
}

fn work_of_steps(state: &RunState, catalogue: &Catalogue, is_listed: fn(&StepState) -> bool) -> String {
    let mut lines = String::new();
    for (number, step) in state.plan_steps().filter(|(_, step)| is_listed(step)) {
        if !lines.is_empty() {
            lines.push('\n');
        }
        let line = step_line(state, catalogue, *number, step);
        // Serialising plain data cannot fail.
        lines.push_str(&serde_json::to_string(&line).unwrap_or_default());
    }
    lines
}

fn step_line<'a>(
    state: &'a RunState,
    catalogue: &'a Catalogue,
    number: u32,
    step: &'a StepState,
) -> StepLine<'a> {
    let is_completed = step.status == StepStatus::Completed;
    let is_unserved = state.settings().has_rules(3) && is_completed && state.is_unserved(step);
    let scene = catalogue.get(&step.step.scene_name).filter(|_| is_completed);
    let cut = state.cut_calls(step);
    let mut line = StepLine {
        calls: step.calls.iter().filter_map(|call| call_line(state, *call)).collect(),
        cut: cut.map(|c| CutCall { arguments: &c.requested.arguments, tool: &c.requested.tool }).collect(),
        error: None,
        not_called: scene.map(|scene| writes_not_called(state, scene, step)).unwrap_or_default(),
        purpose: &step.step.purpose,
        question: None,
        result: None,
        scene: &step.step.scene_name,
        status: if is_unserved { StepStatus::Failed } else { step.status },
        step: number,
    };
    match (step.status, &step.result, &step.question, &step.error) {
        (StepStatus::Completed, Some(result), _, _) => line.result = Some(result),
        (StepStatus::NeedsInput, _, Some(question), _) => line.question = Some(&question.text),
        (StepStatus::NeedsInput, _, None, Some(asked)) => line.question = Some(&asked.message),
        (_, _, _, Some(error)) => line.error = Some(error_text(state, error)),
        _ => {}
    }
    line
}

/// Why a step did not complete, for an answer; before revision 3, for developers.
fn error_text(state: &RunState, error: &Fault) -> String {
    if state.settings().has_rules(3) { error.user_text(state.language()) } else { error.message.clone() }
}

fn call_line(state: &RunState, call: u32) -> Option<CallLine<'_>> {
    // A substitute is reported with the call whose place it took.
    let of = state.calls.get(&call).filter(|of| of.replaces.is_none())?;
    let by = state.effective_substitute(of).and_then(|by| state.calls.get(&by));
    let mut line = CallLine {
        arguments: &of.requested.arguments,
        as_of: None,
        by: by.map(|by| by.requested.tool.as_str()),
        error: None,
        outcome: "skipped",
        reason: None,
        result: None,
        say: None,
        tool: &of.requested.tool,
    };
    if let CallStatus::Skipped { first } = of.status {
        // A shared outcome is shown with the call that has it. For a write, the duplicate is listed too, to
        // show that it was not done twice.
        let is_listed = state.settings().has_rules(1) && of.requested.effect == Effect::Write;
        line.reason = Some(format!("the same as call {first} of this request, and done once"));
        return is_listed.then_some(line);
    }
    let stale_since = state.calls.get(&state.resolved(call)).and_then(|by| by.stale_since);
    line.as_of = stale_since.map(|at| at.to_string());
    let outcome = state.outcome(call)?;
    line.outcome = match outcome {
        Outcome::Ok { result, say, .. } => {
            // A long result that has a phrase is shown by its phrase only: several such results would fill
            // a small model's context.
            line.result = Some(result).filter(|_| say.is_none() || bound::size(result) <= MAX_RESULT_BYTES);
            line.say = say.as_deref();
            "ok"
        }
        Outcome::Refused { .. } => "refused",
        Outcome::Failed { .. } => "failed",
        Outcome::Unknown { .. } => "unknown",
    };
    if let Some(error) = outcome.fault() {
        let says = state.settings().has_rules(3);
        line.error = Some(if says { outcome.user_text(state.language()) } else { error.message.clone() });
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::keeps_figures;
    use crate::language::figures::untraced_figures;

    proptest! {
        #[test]
        fn figures_of_plain_texts_are_the_same_in_json(
            text in "[0-9 \"\\\\.\n\r\t\u{1}\u{8}\u{c}\u{7f}é/]{0,30}",
            answer in "[0-9 .]{0,20}",
        ) {
            let lost = untraced_figures(&answer, &text);
            let lost_in_json = untraced_figures(&answer, &json!(text).to_string());
            prop_assert!(!keeps_figures(&text) || lost == lost_in_json, "{lost:?}, {lost_in_json:?}");
        }
    }

    #[test]
    fn digits_after_other_control_characters_are_another_figure_in_json() {
        let text = "\u{1}5";
        assert!(!keeps_figures(text) && keeps_figures("5\n12"));
        assert_eq!(json!(text).to_string(), r#""\u00015""#);
    }
}
