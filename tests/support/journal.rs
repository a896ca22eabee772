//! Invariants of the stored events of every run.

use proscenium::CallOutcome;
use proscenium::plan::StepStatus;
use proscenium::run::{Attempt, CallStatus, Effect, Event, Outcome, RequestedCall, RunState, Subject, Usage};
use serde_json::{Value, json};

use super::test_engine::FinishedRun;
use proscenium::run::{Envelope, RunId};
use proscenium::scene::Catalogue;

/// Asserts that the fold of the stored events equals the document, and that no forced question was repeated
/// after its answer.
pub fn assert_invariants(finished: &FinishedRun) {
    assert_fold_equals_document(finished);
    assert_no_forced_repeat(finished);
    assert_attempts_add_up(finished);
}

fn assert_fold_equals_document(finished: &FinishedRun) {
    let FinishedRun { answer, state, events } = finished;
    assert_eq!(state.seq, events.len() as u64);
    assert_eq!(state.status, answer.status);
    assert!(state.status.is_terminal());
    assert_eq!(proscenium::answer_text(state), answer.answer);
    assert_eq!(state.error, answer.error);
    assert_eq!(state.queued.as_ref().unwrap().task, answer.task_id);
    let mut steps: Vec<Value> = answer.steps.iter().map(|step| json!(step)).collect();
    let flows: Vec<Value> = steps.iter_mut().map(|step| step["flow"].take()).collect();
    steps.iter_mut().for_each(|step| drop(step.as_object_mut().unwrap().remove("flow")));
    assert_eq!(steps, folded_steps(state), "steps of the document and of the fold");
    for ((_, step), flow) in state.plan_steps().zip(flows) {
        let planned = step.flow().and_then(|work| Some((work, work.planned.as_ref()?)));
        assert_eq!(planned.is_some(), !flow.is_null(), "{flow:#}");
        let Some((work, planned)) = planned else { continue };
        let nodes: Vec<&Value> = flow["nodes"].as_array().into_iter().flatten().map(|n| &n["node"]).collect();
        assert_eq!((&flow["path"], json!(nodes)), (&json!(planned.path), json!(state.entered_nodes(work))));
    }
    // The nodes of flows are part of the path.
    if state.plan_steps().all(|(_, step)| step.flow().is_none()) {
        let planned: Vec<String> = state.steps.values().map(|s| s.step.scene_name.clone()).collect();
        assert_eq!(answer.metadata.planned_execution_path, planned);
        let ended =
            state.steps.values().filter(|s| s.status.is_terminal() && s.status != StepStatus::Blocked);
        assert_eq!(answer.metadata.current_path_index, ended.count());
    }
    match (&answer.plan, state.plans.as_slice()) {
        (None, []) => {}
        (Some(plan), [_, ..]) => {
            let steps: Vec<_> = state.plan_steps().map(|(_, s)| s.step.clone()).collect();
            assert_eq!(plan.steps, steps);
        }
        (finished, kept) => panic!("the document's plan is {finished:?}, the journal's {kept:?}"),
    }
    let usage = usage(finished);
    assert_eq!(usage, state.usage);
    let written = (answer.usage.llm_calls, answer.usage.input_tokens, answer.usage.output_tokens);
    assert_eq!(written, (usage.calls, usage.input_tokens, usage.output_tokens));
    assert_eq!(answer.usage.cost_usd, usage.cost_nano_usd as f64 / 1e9);
}

/// Asserts that a replay of the run makes the same decisions in the same words.
pub fn assert_replayed(run: RunId, events: &[Envelope<Event>], catalogue: &Catalogue) {
    let replayed = proscenium::replay::replay(run, events, catalogue);
    assert!(
        replayed.same && replayed.wordings.is_empty(),
        "{:#?}\n{:#?}",
        replayed.differences,
        replayed.wordings
    );
}

/// The sum of the cost of all questions of the run, from its events.
pub fn usage(finished: &FinishedRun) -> Usage {
    let mut sum = Usage::default();
    for event in &finished.events {
        if let Event::ModelReplied { usage, .. } | Event::ModelFailed { usage, .. } = &event.body {
            sum += *usage;
        }
    }
    sum
}

/// The cost of a question is the sum of its attempts.
fn assert_attempts_add_up(finished: &FinishedRun) {
    for event in &finished.events {
        if let Event::ModelReplied { usage, attempts, .. } | Event::ModelFailed { usage, attempts, .. } =
            &event.body
        {
            assert_eq!(*usage, Attempt::sum(attempts), "{attempts:?}");
            if let Event::ModelReplied { reply, .. } = &event.body {
                let last = attempts.last().unwrap();
                assert_eq!(last.model, reply.model);
                assert!(["ok", "cached", "joined"].contains(&last.outcome.as_str()), "{last:?}");
            }
        }
    }
}

fn folded_steps(state: &RunState) -> Vec<Value> {
    let steps = state.plan_steps().map(|(number, step)| {
        // The calls of a flow's step are those of its nodes.
        let nodes = step.flow().into_iter().flat_map(|work| &work.nodes).map(|node| &state.steps[node]);
        let calls = step.calls.iter().chain(nodes.flat_map(|node| &node.calls));
        let calls: Vec<Value> = calls.filter_map(|call| folded_call(state, *call)).collect();
        // Its scene's words complete a step, whatever became of its calls.
        let is_unserved = state.settings().has_rules(3) && state.is_unserved(step);
        let status = if step.status == StepStatus::Completed && is_unserved {
            StepStatus::Failed
        } else {
            step.status
        };
        let mut value = json!({"step_number": number, "scene_name": step.step.scene_name,
            "status": status, "result": step.result, "tool_calls": calls});
        if let Some(error) = &step.error {
            value["error"] = json!(error);
        }
        if state.is_partly_read(step) {
            value["partial"] = json!(true);
        }
        let end = step.code().and_then(|work| work.result(state));
        if let Some(end) = end.filter(|end| !end.answer_rows.is_empty()) {
            value["rows"] = json!(end.answer_rows);
        }
        if let Some(end) = end.filter(|end| !end.would_change.is_empty()) {
            value["would_change"] = json!(end.would_change);
        }
        value
    });
    steps.collect()
}

fn folded_call(state: &RunState, number: u32) -> Option<Value> {
    let call = &state.calls[&number];
    let told = match &call.status {
        CallStatus::Done { outcome } => outcome,
        _ => state.outcome(number)?,
    };
    let (outcome, key, finished) = match told {
        Outcome::Ok { result, .. } => (CallOutcome::Ok, "result", json!(result)),
        Outcome::Refused { error } => (CallOutcome::Refused, "error", json!(error)),
        Outcome::Failed { error } => (CallOutcome::Failed, "error", json!(error)),
        Outcome::Unknown { error } => (CallOutcome::Unknown, "error", json!(error)),
    };
    let skipped = matches!(call.status, CallStatus::Skipped { .. });
    let dry_run_only = state.is_dry_run()
        && call.attempts == 0
        && call.requested.effect == Effect::Write
        && outcome == CallOutcome::Ok;
    let outcome = match outcome {
        _ if skipped => CallOutcome::Skipped,
        _ if dry_run_only => CallOutcome::DryRun,
        _ if outcome == CallOutcome::Ok && state.is_undone(call) => CallOutcome::Undone,
        outcome => outcome,
    };
    let RequestedCall { tool, arguments, .. } = &call.requested;
    let mut value = json!({"tool": tool, "arguments": arguments, "outcome": outcome, key: finished});
    if let Some(node) = state.steps.get(&call.step).and_then(|step| step.node()) {
        value["node"] = json!(node.node);
    }
    if state.settings().mode.is_some() && call.attempts > 1 {
        value["attempts"] = json!(call.attempts);
    }
    if call.left_out {
        value["left_out"] = json!(true);
    }
    if let Some(at) = call.stale_since {
        value["as_of"] = json!(at);
    }
    if !call.breaches.is_empty() {
        value["unexpected_result"] = json!(true);
    }
    let by = call.replaced_by.map(|by| &state.calls[&by]).filter(|by| {
        let failed = matches!(&by.status, CallStatus::Done { outcome: Outcome::Failed { .. } });
        !failed && by.requested.problem.is_none()
    });
    if let Some(by) = by {
        value["by"] = json!(by.requested.tool);
    }
    Some(value)
}

/// A forced question is repeated only after its reply was rejected, failed or was lost.
fn assert_no_forced_repeat(finished: &FinishedRun) {
    let mut asked: Option<Subject> = None;
    for event in &finished.events {
        match &event.body {
            Event::ModelAsked { subject, .. } => {
                assert_ne!(Some(*subject), asked, "repeated after its answer: {subject:?}");
            }
            Event::PlanCreated(made) | Event::Replanned(made) => {
                asked = Some(Subject::Plan { version: made.version });
            }
            Event::Continuation { round, .. } => asked = Some(Subject::Continuation { round: *round }),
            _ => {}
        }
    }
}
