//! Replies to the question for a patch: what is read, and what is sent back.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::patch::{PatchReply, read};
use super::super::{ADAPT_PLAN, CREATE_PLAN};
use super::{apply, catalogue, planning, replied};
use crate::adapt::{ExecutionLevel, ExecutionMode};
use crate::llm::{Message, sections};
use crate::plan::StepStatus;
use crate::run::{
    ApprovalScope, Event, Fault, PlanCause, PlanMade, RULES_REVISION, Reply, ReplyCall, RunState, Subject,
};

fn forced(tool: &str, arguments: &Value) -> Reply {
    let call = ReplyCall { id: "call_0".to_owned(), name: tool.to_owned(), arguments: arguments.to_string() };
    Reply { calls: vec![call], ..Reply::default() }
}

fn step(number: u32, tool: &str, depends: &Value) -> Value {
    json!({"step_number": number, "scene_name": &tool[..1], "purpose": format!("use {tool} for {number}"),
        "expected_tools": [tool], "depends_on_step": depends})
}

/// A run whose first step failed: 2 reads and 3 writes after it, and 4 reads after 2.
fn failed() -> RunState {
    let mut state = planning("do");
    let settings = &mut Arc::make_mut(state.started.as_mut().unwrap()).settings;
    settings.rules = RULES_REVISION;
    settings.level = Some(ExecutionLevel::Intelligent);
    settings.mode = Some(ExecutionMode::Creative);
    let plan = json!({"needs_execution": true, "reasoning": "", "steps": [step(1, "ARead", &Value::Null),
        step(2, "BRead", &json!(1)), step(3, "BWrite", &json!(1)), step(4, "BRead", &json!(2))]});
    let subject = Subject::Plan { version: 1 };
    let call = replied(&mut state, subject, forced(CREATE_PLAN, &plan));
    let made = super::super::read(&state, &catalogue(), call, subject);
    apply(&mut state, made);
    let step = state.steps.get_mut(&1).unwrap();
    step.status = StepStatus::Failed;
    step.error = Some(Fault::new("http.status", "503 at 10.0.0.7"));
    state
}

fn read_reply(state: &RunState, reply: &Value) -> Result<PlanMade, Vec<String>> {
    match read(state, &catalogue(), &forced(ADAPT_PLAN, reply), (1, 1), false) {
        Ok(PatchReply::Changed(made)) => Ok(*made),
        Ok(PatchReply::Unchanged { .. }) => panic!("nothing is changed by {reply}"),
        Err(problems) => Err(problems.into_iter().map(|problem| problem.code).collect()),
    }
}

fn patch(replace: &[(u32, Value)], remove: &[u32], add: &[Value]) -> Value {
    let replace: Vec<Value> =
        replace.iter().map(|(step, with)| json!({"step": step, "with": with})).collect();
    json!({"reason": "so", "replace": replace, "remove": remove, "add": add})
}

#[test]
fn numbers_continue_and_dependencies_on_a_replaced_step_follow_its_replacement() {
    let state = failed();
    // Models give the replacement the number of what it replaces.
    let reply = patch(&[(1, step(1, "BRead", &Value::Null))], &[], &[step(2, "ARead", &json!(1))]);
    let made = read_reply(&state, &reply).unwrap();
    assert_eq!((made.version, made.cause), (2, PlanCause::Adaptation));
    let numbers: Vec<u32> = made.plan.steps.iter().map(|step| step.step_number).collect();
    assert_eq!(numbers, [5, 6]);
    assert!(made.plan.steps[1].depends_on_step.contains(5));
    let of = made.patch.unwrap();
    assert_eq!((of.replaced, of.removed), ([(1, 5)].into(), vec![]));
    assert_eq!(of.dependants, [2], "what writes does not follow");
    let reply = patch(&[(1, step(5, "BRead", &Value::Null))], &[], &[step(6, "ARead", &json!([1, 4]))]);
    let made = read_reply(&state, &reply).unwrap();
    assert_eq!(made.plan.steps[1].depends_on_step.iter().collect::<Vec<_>>(), [5, 4]);
}

#[test]
fn patch_that_cannot_be_executed_is_sent_back() {
    let state = failed();
    let new = || step(5, "BRead", &Value::Null);
    for (reply, code) in [
        (patch(&[], &[2], &[]), "plan.orphaned"),
        (patch(&[], &[1], &[]), "plan.fixed"),
        (patch(&[(9, new())], &[], &[]), "plan.fixed"),
        (patch(&[(1, new()), (1, step(6, "BWrite", &Value::Null))], &[], &[]), "plan.fixed"),
        (patch(&[(1, step(5, "ARead", &Value::Null))], &[], &[]), "reply.shape"),
        (patch(&[], &[], &[step(5, "BRead", &json!(77))]), "plan.unknown_dependency"),
        (patch(&[], &[], &[step(5, "BRead", &json!(1))]), "plan.unknown_dependency"),
        (patch(&[], &[], &[step(5, "BNone", &Value::Null)]), "plan.unknown_tool"),
        (json!({"reason": "so", "replace": [{"step": 1}]}), "reply.shape"),
        (json!({"reason": "so", "remove": "all"}), "reply.shape"),
    ] {
        let mut reply = reply;
        if code == "reply.shape" && reply["add"] == json!([]) {
            reply["replace"][0]["with"] = json!("another");
        }
        assert_eq!(
            read_reply(&state, &reply).unwrap_err().first().map(String::as_str),
            Some(code),
            "{reply}"
        );
    }
    // 4 and 2 together leave nothing behind; 3 is as blocked as without the patch.
    let made = read_reply(&state, &patch(&[], &[2, 4], &[])).unwrap();
    assert_eq!(made.patch.unwrap().removed, [2, 4]);
}

#[test]
fn last_reply_whose_calls_do_not_fit_is_not_read_as_the_step_that_failed() {
    let state = failed();
    let mut again = step(1, "ARead", &Value::Null);
    again["prepared_calls"] = json!([{"tool": "ARead", "arguments": {"n": "many"}}]);
    let reply = forced(ADAPT_PLAN, &patch(&[(1, again)], &[], &[]));
    for (is_last_try, code) in [(false, "plan.prepared_arguments"), (true, "plan.repeated")] {
        let Err(problems) = read(&state, &catalogue(), &reply, (1, 1), is_last_try) else { panic!("{code}") };
        assert!(problems.iter().any(|problem| problem.code == code), "{problems:?}");
    }
}

#[test]
fn replaced_pending_step_takes_what_writes_after_it_along() {
    let mut state = failed();
    let depends = serde_json::from_value(json!(2)).unwrap();
    state.steps.get_mut(&3).unwrap().step.depends_on_step = depends;
    let with = |number: u32, tool: &str| step(number, tool, &Value::Null);
    let alone = patch(&[(2, with(5, "ARead"))], &[], &[]);
    assert_eq!(read_reply(&state, &alone).unwrap_err(), ["plan.orphaned"]);
    let both = patch(&[(2, with(5, "ARead")), (3, step(6, "AWrite", &json!(5)))], &[], &[]);
    let made = read_reply(&state, &both).unwrap();
    assert_eq!(made.patch.unwrap().dependants, [4]);
}

#[test]
fn write_of_a_patch_is_approved_again_where_the_plan_was_approved() {
    let mut state = failed();
    let reply = patch(&[(1, step(5, "BWrite", &Value::Null))], &[], &[]);
    assert_eq!(read_reply(&state, &reply).unwrap().approval, None);
    let settings = &mut Arc::make_mut(state.started.as_mut().unwrap()).settings;
    settings.approval.plans = ApprovalScope::Writes;
    let needed = read_reply(&state, &reply).unwrap().approval.unwrap();
    let other = patch(&[(1, step(5, "BWrite", &Value::Null))], &[4], &[]);
    assert_ne!(
        needed.hash,
        read_reply(&state, &other).unwrap().approval.unwrap().hash,
        "it covers the change"
    );
}

#[test]
fn prompt_names_what_may_change_and_nothing_that_a_back_end_said() {
    let mut state = failed();
    state.steps.get_mut(&4).unwrap().version = 9;
    let asked = super::super::patch::request(&state, &catalogue(), 1, &[]);
    let Some(Message::User { text }) = asked.messages.get(1) else { panic!("{asked:?}") };
    let pending = sections::get(text, "pending").unwrap();
    assert_eq!((pending.lines().count(), pending.matches("\"fixed\":true").count()), (3, 1), "{pending}");
    assert_eq!(sections::get(text, "number_from").as_deref(), Some("5"));
    assert!(!text.contains("10.0.0.7"), "{text}");
    let schema = &asked.tools[0].parameters;
    assert_eq!(schema["properties"]["remove"]["items"]["enum"], json!([2, 3]));
    assert_eq!(schema["properties"]["replace"]["items"]["properties"]["step"]["enum"], json!([1, 2, 3]));
    for step in state.steps.values_mut().filter(|step| step.status == StepStatus::Pending) {
        step.status = StepStatus::Running;
    }
    let asked = super::super::patch::request(&state, &catalogue(), 1, &[]);
    assert_eq!(asked.tools[0].parameters["properties"].get("remove"), None);
}

#[test]
fn prompt_of_a_patch_is_as_reviewed() {
    let asked = super::super::patch::request(&failed(), &catalogue(), 1, &[]);
    let messages = asked.messages.iter().map(|message| match message {
        Message::System { text } | Message::User { text } => text.clone(),
        other => format!("{other:?}"),
    });
    insta::assert_snapshot!(messages.collect::<Vec<_>>().join("\n---\n"));
}

#[test]
fn empty_lists_leave_the_plan_as_it_is() {
    let state = failed();
    for reply in [patch(&[], &[], &[]), json!({"reason": "so"}), json!({"reason": "so", "remove": null})] {
        let read = read(&state, &catalogue(), &forced(ADAPT_PLAN, &reply), (1, 1), false);
        assert!(matches!(read, Ok(PatchReply::Unchanged { reason }) if reason == "so"), "{reply}");
    }
    assert!(
        !state
            .next()
            .iter()
            .any(|action| matches!(action, crate::run::Action::Record { event: Event::Replanned(_) }))
    );
}
