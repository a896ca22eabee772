//! A plan and what was put to people as JSON: what `plans show --json` and `approvals show --json` print,
//! with the names that the server's documents have.

use proscenium::AnswerUsage;
use proscenium::plan::{TaskId, diff};
use proscenium::run::{
    Approval, ApprovalId, CallStatus, Decision, Effect, Envelope, Event, Fault, Matter, Outcome, RunState,
    idempotency_key,
};
use proscenium::store::{ApprovalRow, PlanRow};
use serde_json::{Map, Value, json};

use super::waits;

/// A run's plan: `state` is the fold of `journal`, `session_cost` what its conversation cost, in nano-USD.
pub fn plan(journal: &[Envelope<Event>], state: &RunState, session_cost: u64) -> Value {
    let (first, last, made) = (journal.first(), journal.last(), state.plan());
    let queued = state.queued.as_ref();
    let put = state.plan_approval().map(|(_, put)| &put.needed);
    let needed = put.or_else(|| made?.approval.as_ref());
    let open: Vec<ApprovalId> = waits::open(state).map(|(id, _)| id).collect();
    filled(json!({
        "task_id": queued.map(|queued| queued.task),
        "run_id": state.run,
        "session_id": first.map(|event| &event.session),
        "status": state.plan_status,
        "run_status": state.status,
        "version": state.plans.len(),
        "objective": state.request(),
        "user": queued.map(|queued| &queued.user),
        "hash": needed.map(|needed| &needed.hash),
        "why_approval": needed.map(|needed| needed.why.clone()).unwrap_or_default(),
        "plan": made.map(|made| &made.plan),
        "steps": steps(state),
        "versions": versions(journal, state),
        "approvals": open,
        "answer": state.answer.as_ref().map(|answer| &answer.text),
        "error": state.error,
        "unmodified": state.unmodified,
        "created_at": first.map(|event| event.at),
        "updated_at": last.map(|event| event.at),
        "usage": AnswerUsage::new(state.usage, session_cost),
    }))
}

/// Without the fields that have no value.
fn filled(document: Value) -> Value {
    match document {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
        }
        other => other,
    }
}

fn steps(state: &RunState) -> Vec<Value> {
    let steps = state.steps.iter().map(|(number, step)| {
        filled(json!({
            "step_number": number,
            "scene_name": step.step.scene_name,
            "status": step.status,
            "result": step.result,
            "tool_calls": step.calls.iter().filter_map(|call| done(state, *call)).collect::<Vec<_>>(),
            "error": step.error,
        }))
    });
    steps.collect()
}

/// A call that ended.
fn done(state: &RunState, number: u32) -> Option<Value> {
    let call = state.calls.get(&number)?;
    let (outcome, result, error) = match state.outcome(number)? {
        Outcome::Ok { result, .. } => ("ok", Some(result), None),
        Outcome::Refused { error } => ("refused", None, Some(error)),
        Outcome::Failed { error } => ("failed", None, Some(error)),
        Outcome::Unknown { error } => ("unknown", None, Some(error)),
    };
    let told_only = state.is_dry_run() && call.requested.effect == Effect::Write && call.attempts == 0;
    let outcome = match call.status {
        CallStatus::Skipped { .. } => "skipped",
        _ if outcome == "ok" && told_only => "dry_run",
        _ if outcome == "ok" && state.is_undone(call) => "undone",
        _ => outcome,
    };
    Some(filled(json!({
        "tool": call.requested.tool,
        "arguments": call.requested.arguments,
        "outcome": outcome,
        "result": result,
        "error": error,
    })))
}

fn versions(journal: &[Envelope<Event>], state: &RunState) -> Vec<Value> {
    let at = |version: u32| {
        journal.iter().find(|event| match &event.body {
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => {
                made.version == version
            }
            _ => false,
        })
    };
    let before = std::iter::once(None).chain(state.plans.iter().map(Some));
    let versions = state.plans.iter().zip(before).map(|(made, before)| {
        filled(json!({
            "version": made.version,
            "cause": made.cause,
            "maker": made.maker,
            "by": made.by,
            "why": made.why,
            "at": at(made.version).map(|event| event.at),
            "diff": before.map(|before| diff(&before.plan, &made.plan)).unwrap_or_default(),
            "plan": made.plan,
        }))
    });
    versions.collect()
}

/// One thing that was put to a person.
pub fn approval(journal: &[Envelope<Event>], state: &RunState, id: ApprovalId, put: &Approval) -> Value {
    let number = id.approval;
    let asked = journal
        .iter()
        .find(|event| matches!(&event.body, Event::ApprovalRequired { approval, .. } if *approval == number));
    let decided = journal.iter().find_map(|event| match &event.body {
        Event::Decided { approval, note, .. } if *approval == number => Some((event.at, note)),
        _ => None,
    });
    let queued = state.queued.as_ref();
    let mut document = json!({
        "approval_id": id,
        "run_id": id.run,
        "task_id": queued.map(|queued| queued.task),
        "session_id": journal.first().map(|event| &event.session),
        "about": about(put.matter),
        "user": queued.map(|queued| &queued.user),
        "objective": state.request(),
        "why": put.needed.why,
        "hash": put.needed.hash,
        "state": standing(put),
        "created_at": asked.map(|event| event.at),
        "decision": put.decided.as_ref().map(|(decision, _)| decision.name()),
        "decided_by": put.decided.as_ref().map(|(_, by)| by),
        "decided_at": decided.map(|(at, _)| at),
        "note": decided.and_then(|(_, note)| note.as_ref()),
    });
    match put.matter {
        Matter::Plan { version } => {
            document["version"] = json!(version);
            let made = version.checked_sub(1).and_then(|at| state.plans.get(at as usize));
            document["plan"] = json!(made.map(|made| &made.plan));
        }
        Matter::Call { call: number } | Matter::Outcome { call: number } => {
            if let Some(call) = state.calls.get(&number) {
                let arguments = match &put.decided {
                    Some((Decision::Edited { arguments, .. }, _)) => arguments,
                    _ => &call.requested.arguments,
                };
                document["step_number"] = json!(call.step);
                document["scene"] = json!(call.scene);
                document["tool"] = json!(call.requested.tool);
                document["arguments"] = arguments.clone();
                document["effect"] = json!(call.requested.effect);
                if matches!(put.matter, Matter::Outcome { .. }) {
                    document["attempts"] = json!(call.attempts);
                    document["error"] = json!(unknown(journal, number));
                    document["idempotency_key"] = json!(idempotency_key(state.run, call.step, number));
                }
            }
        }
    }
    filled(document)
}

/// What was known of a call when its outcome was put to a person.
fn unknown(journal: &[Envelope<Event>], number: u32) -> Option<&Fault> {
    journal.iter().rev().find_map(|envelope| match &envelope.body {
        Event::ToolCompleted { call, outcome: Outcome::Unknown { error }, .. } if *call == number => {
            Some(error)
        }
        _ => None,
    })
}

/// `plan`, `call` or `outcome`.
pub fn about(matter: Matter) -> &'static str {
    match matter {
        Matter::Plan { .. } => "plan",
        Matter::Call { .. } => "call",
        Matter::Outcome { .. } => "outcome",
    }
}

/// Where it stands: `open`, `decided` or `lapsed`.
pub fn standing(put: &Approval) -> &'static str {
    match (&put.decided, put.lapsed) {
        (Some(_), _) => "decided",
        (None, true) => "lapsed",
        (None, false) => "open",
    }
}

/// A plan in a list.
pub fn plan_row(row: &PlanRow) -> Value {
    json!({
        "task_id": row.task,
        "run_id": row.run,
        "session_id": row.session,
        "user": row.user,
        "objective": row.objective,
        "status": row.status,
        "version": row.version,
        "created_at": row.created,
        "updated_at": row.updated,
    })
}

/// What was put to a person, in a list.
pub fn approval_row(row: &ApprovalRow, state: &RunState) -> Value {
    let put = state.approvals.get(&row.id.approval);
    filled(json!({
        "approval_id": row.id,
        "run_id": row.id.run,
        "task_id": row.task,
        "session_id": row.session,
        "user": row.user,
        "about": row.about,
        "what": put.map(|put| waits::line(state, put.matter)),
        "state": row.state,
        "created_at": row.created,
        "decided_at": row.decided,
    }))
}

/// What is left of a plan that was deleted.
pub fn deleted(task: TaskId) -> Value {
    json!({"task_id": task, "deleted": true})
}
