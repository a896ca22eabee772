//! Renders the questions of a run that wait for a person: the subject, the reasons, and the commands that
//! decide it.

use std::io::{self, Write};

use proscenium::invisible;
use proscenium::run::{
    Approval, ApprovalId, ApprovalSubject, CallState, CallStatus, Decision, Fault, Outcome, RunState,
    RunStatus,
};
use serde_json::Value;

use super::invocation::command;
use super::narrate::steps_of;
use super::text::{one_line, short, whole_json};

/// Maximum width of a reason, in columns.
const WHY: usize = 400;

/// The open questions of a run, in the order in which they were asked.
pub fn open(state: &RunState) -> impl Iterator<Item = (ApprovalId, &Approval)> {
    state
        .approvals
        .iter()
        .filter(|(_, put)| put.is_open())
        .map(|(number, put)| (ApprovalId { run: state.run, approval: *number }, put))
}

/// The first question that blocks the run.
pub fn first_blocking(state: &RunState) -> Option<(ApprovalId, &Approval)> {
    open(state).find(|(_, put)| !matches!(put.matter, ApprovalSubject::Outcome { .. }))
}

/// Writes what the question is about and why it is asked; the steps of the plan only if it is not the version
/// that was just shown.
pub fn describe(
    out: &mut impl Write,
    state: &RunState,
    put: &Approval,
    shown_plan: Option<u32>,
) -> io::Result<()> {
    match put.matter {
        ApprovalSubject::Plan { version } => {
            writeln!(out, "Waits for a person's yes: plan {version}, executed as shown")?;
            let made = version.checked_sub(1).and_then(|at| state.plans.get(at as usize));
            let made = made.filter(|_| shown_plan != Some(version));
            for step in made.map(|made| steps_of(&made.plan)).unwrap_or_default() {
                writeln!(out, "{step}")?;
            }
        }
        ApprovalSubject::Call { call } => {
            let (what, arguments) = called(state, call);
            writeln!(out, "Waits for a person's yes: {what} with exactly these arguments\n{arguments}")?;
            for list in changeable_lists(state, call, put) {
                writeln!(out, "{list}")?;
            }
        }
        ApprovalSubject::Outcome { call } => {
            let (what, arguments) = called(state, call);
            writeln!(out, "Waits for a person to say what became of it: {what} with\n{arguments}")?;
            if let Some(CallStatus::Done { outcome: Outcome::Unknown { error } }) =
                state.calls.get(&call).map(|call| &call.status)
            {
                writeln!(out, "known [{}]: {}", error.code, short(&error.message, WHY))?;
            }
        }
    }
    for why in &put.needed.why {
        writeln!(out, "why: {}", short(why, WHY))?;
    }
    Ok(())
}

/// `step 2 VacationManagement: MakeRequest`, and its arguments over several indented lines.
fn called(state: &RunState, call: u32) -> (String, String) {
    let Some(call) = state.calls.get(&call) else { return (format!("call {call}"), String::new()) };
    let CallState { step, scene, requested, .. } = call;
    let arguments: Vec<String> =
        invisible::escape_json_lines(&requested.arguments).lines().map(|line| format!("  {line}")).collect();
    (format!("step {step} {}: {}", one_line(scene), one_line(&requested.tool)), arguments.join("\n"))
}

/// A line for each list that may be changed: what it contains, and what else it may contain.
fn changeable_lists(state: &RunState, call: u32, put: &Approval) -> Vec<String> {
    let arguments = state.calls.get(&call).map(|call| &call.requested.arguments);
    let line = |(name, allowed): (&String, &Vec<String>)| {
        let now = arguments.and_then(|arguments| arguments.get(name)?.as_array());
        let now: Vec<&str> = now.into_iter().flatten().filter_map(Value::as_str).collect();
        let more: Vec<&str> = allowed.iter().map(String::as_str).filter(|text| !now.contains(text)).collect();
        let also = match more.is_empty() {
            true => String::new(),
            false => format!("; it may also contain: {}", more.join(", ")),
        };
        short(&format!("{name} may be changed; now: {}{also}", now.join(", ")), WHY)
    };
    put.needed.lists.iter().map(line).collect()
}

/// The names of the lists that a decision may change, in brackets; empty if there are none.
pub fn changeable_names(put: &Approval) -> String {
    let names: Vec<&str> = put.needed.lists.keys().map(String::as_str).collect();
    if names.is_empty() {
        String::new()
    } else {
        one_line(&format!(" (may be changed: {})", names.join(", ")))
    }
}

/// The subject of a question, on one line.
pub fn subject_line(state: &RunState, matter: ApprovalSubject) -> String {
    match matter {
        ApprovalSubject::Plan { version } => format!("plan {version}"),
        ApprovalSubject::Call { call } | ApprovalSubject::Outcome { call } => match state.calls.get(&call) {
            Some(call) => format!(
                "step {} {}: {} {}",
                call.step,
                one_line(&call.scene),
                one_line(&call.requested.tool),
                whole_json(&call.requested.arguments)
            ),
            None => format!("call {call}"),
        },
    }
}

/// A decision in words.
pub fn decision_text(decision: &Decision) -> &'static str {
    match decision {
        Decision::Yes { hold: true } => "approved, to begin later",
        Decision::Yes { hold: false } => "approved",
        Decision::Edited { .. } => "approved with other arguments",
        Decision::No => "not approved",
        Decision::Done => "it was done",
        Decision::NotDone => "it was not done",
        Decision::Again => "to be tried again",
    }
}

/// Why a plan was not changed as a person wanted. Replies that no model could correct mean that the words were not
/// understood; their problems are written for models.
pub fn unmodified_text(fault: &Fault) -> String {
    match fault.code.as_str() {
        "llm.unusable" => "this change was not understood; the plan is as it was".to_owned(),
        code => format!("the plan is as it was [{code}]: {}", fault.message),
    }
}

/// The commands that decide `put`.
pub fn commands(state: &RunState, id: ApprovalId, put: &Approval) -> Vec<String> {
    match put.matter {
        ApprovalSubject::Plan { version } => {
            let Some(task) = state.queued.as_ref().map(|queued| queued.task) else { return Vec::new() };
            vec![
                command(&format!("plans approve {task} --version {version} --hash {}", put.needed.hash)),
                command(&format!("plans modify {task} --version {version} \"what is to change\"")),
                command(&format!("plans cancel {task}")),
            ]
        }
        ApprovalSubject::Call { .. } => vec![
            command(&format!("approvals decide {id} yes")),
            command(&format!("approvals decide {id} yes --arguments '{{…}}'")),
            command(&format!("approvals decide {id} no")),
        ],
        ApprovalSubject::Outcome { .. } => ["done", "not_done", "again"]
            .map(|word| command(&format!("approvals decide {id} {word}")))
            .to_vec(),
    }
}

/// Writes every open question of a run and the commands that decide it; nothing if none is open. `shown_plan` is
/// the version of the plan that was just shown.
pub fn write_all(out: &mut impl Write, state: &RunState, shown_plan: Option<u32>) -> io::Result<()> {
    for (id, put) in open(state) {
        write_one(out, state, id, put, shown_plan)?;
    }
    if state.status == RunStatus::Waiting && state.is_held() {
        writeln!(out, "\nThe plan is approved and waits to be started.")?;
        if let Some(task) = state.queued.as_ref().map(|queued| queued.task) {
            let begin = command(&format!("plans approve {task} --version {}", state.plans.len()));
            decided_by(out, &[begin, command(&format!("plans cancel {task}"))])?;
        }
    }
    out.flush()
}

/// Writes one question and the commands that decide it.
pub fn write_one(
    out: &mut impl Write,
    state: &RunState,
    id: ApprovalId,
    put: &Approval,
    shown_plan: Option<u32>,
) -> io::Result<()> {
    writeln!(out)?;
    describe(out, state, put, shown_plan)?;
    decided_by(out, &commands(state, id, put))
}

fn decided_by(out: &mut impl Write, commands: &[String]) -> io::Result<()> {
    writeln!(out, "To decide:")?;
    commands.iter().try_for_each(|command| writeln!(out, "  {command}"))
}
