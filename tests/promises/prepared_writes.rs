//! The arguments that a plan shows for its writes are used, and so are the approver's edits, with the
//! offline model and without a key or a network.

use serde_json::{Value, json};

use super::process::{ProcessOutput, Workspace};

const TWO: &str = "Vorrei sapere il meteo a Milano e poi richiedere 3 giorni di ferie dal 15 al 17 giugno";

/// Sends a request that waits for approval, and returns the plan's document.
fn waiting_plan(workspace: &Workspace, words: &str) -> Value {
    let asked = workspace.run(&["chat", "--require-approval", "--json", words]);
    let answer: Value = serde_json::from_str(&asked.out).unwrap_or_else(|e| panic!("{e}: {asked:?}"));
    assert_eq!((asked.status, &answer["status"]), (3, &json!("waiting")), "{answer:#}");
    let plan = shown(workspace, answer["task_id"].as_str().unwrap());
    assert_eq!(plan["status"], "pending_approval", "{plan:#}");
    // The question contains what a yes approves.
    for call in prepared(&plan) {
        let arguments = call["arguments"].to_string();
        assert!(answer["answer"].as_str().unwrap().contains(&arguments), "{arguments} in {answer:#}");
    }
    plan
}

fn shown(workspace: &Workspace, task: &str) -> Value {
    let ran = workspace.run(&["plans", "show", task, "--json"]);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// The prepared calls of all steps.
fn prepared(plan: &Value) -> Vec<Value> {
    let steps = plan["plan"]["steps"].as_array().unwrap().iter();
    steps.flat_map(|step| step["prepared_calls"].as_array().cloned().unwrap_or_default()).collect()
}

/// The executed writes with their arguments.
fn written(plan: &Value) -> Vec<Value> {
    let steps = plan["steps"].as_array().unwrap().iter();
    let calls = steps.flat_map(|step| step["tool_calls"].as_array().unwrap());
    let written = calls.filter(|call| call["tool"] == "MakeRequest" && call["outcome"] == "ok");
    written.map(|call| call["arguments"].clone()).collect()
}

fn approved(workspace: &Workspace, plan: &Value, version: &str) -> ProcessOutput {
    let task = plan["task_id"].as_str().unwrap();
    let ran = workspace.run(&["plans", "approve", task, "--version", version]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "no other approval is required: {ran:?}");
    ran
}

#[test]
fn one_approval_covers_the_writes_that_the_plan_shows() {
    let workspace = Workspace::new();
    let plan = waiting_plan(&workspace, TWO);
    let [call] = prepared(&plan).try_into().unwrap();
    assert_eq!(call["tool"], "MakeRequest", "{plan:#}");
    let (from, to) = (&call["arguments"]["from"], &call["arguments"]["to"]);
    assert!(from.as_str().unwrap().ends_with("-06-15") && to.as_str().unwrap().ends_with("-06-17"), "{call}");
    let text = workspace.run(&["plans", "show", plan["task_id"].as_str().unwrap()]).out;
    assert!(text.contains(&format!("Parameters: {}\n", call["arguments"])), "{text}");
    approved(&workspace, &plan, "1");
    let done = shown(&workspace, plan["task_id"].as_str().unwrap());
    assert_eq!((&done["status"], written(&done)), (&json!("completed"), vec![call["arguments"].clone()]));
    assert_eq!(done["approvals"], json!([]));
}

#[test]
fn edited_prepared_call_is_what_is_written() {
    let workspace = Workspace::new();
    let mut plan = waiting_plan(&workspace, TWO);
    let task = plan["task_id"].as_str().unwrap().to_owned();
    let mut call = prepared(&plan).remove(0);
    let day = call["arguments"]["from"].as_str().unwrap().replace("-15", "-16");
    call["arguments"]["to"] = json!(day);
    let steps = plan["plan"]["steps"].as_array_mut().unwrap();
    steps.iter_mut().filter(|step| step["scene_name"] == "VacationManagement").for_each(|step| {
        step["prepared_calls"] = json!([call.clone()]);
    });
    workspace.write("plan.json", &plan["plan"].to_string());
    let changed = workspace.run(&["plans", "modify", &task, "--file", "plan.json"]);
    assert!(
        changed.err.contains("calls +MakeRequest") && changed.err.contains("-MakeRequest"),
        "{changed:?}"
    );
    approved(&workspace, &plan, "2");
    assert_eq!(written(&shown(&workspace, &task)), [call["arguments"].clone()]);
}

#[test]
fn removed_write_is_neither_executed_nor_reported_missing() {
    let workspace = Workspace::new();
    let plan = waiting_plan(&workspace, TWO);
    let task = plan["task_id"].as_str().unwrap();
    let changed = workspace.run(&["plans", "modify", task, "senza il meteo"]);
    assert_eq!(changed.problems(), "", "{changed:?}");
    let now = shown(&workspace, task);
    assert_eq!(now["plan"]["steps"].as_array().unwrap().len(), 1, "{now:#}");
    assert_eq!(prepared(&now), prepared(&plan), "the remaining step keeps its prepared call");
    approved(&workspace, &plan, "2");
    let done = shown(&workspace, task);
    assert_eq!((&done["status"], written(&done).len()), (&json!("completed"), 1), "{done:#}");
    let answer = done["answer"].as_str().unwrap();
    assert!(answer.contains("richiesta di ferie"), "{answer}");
    assert!(!answer.to_lowercase().contains("meteo") && !answer.contains("Milano"), "{answer}");
}

#[test]
fn approver_may_replace_the_requested_days() {
    let workspace = Workspace::new();
    let mut plan = waiting_plan(&workspace, TWO);
    let task = plan["task_id"].as_str().unwrap().to_owned();
    let mut call = prepared(&plan).remove(0);
    for name in ["from", "to"] {
        let day = call["arguments"][name].as_str().unwrap().replace("-06-", "-09-");
        call["arguments"][name] = json!(day);
    }
    let steps = plan["plan"]["steps"].as_array_mut().unwrap();
    steps.iter_mut().filter(|step| step["scene_name"] == "VacationManagement").for_each(|step| {
        step["prepared_calls"] = json!([call.clone()]);
    });
    workspace.write("plan.json", &plan["plan"].to_string());
    assert_eq!(workspace.run(&["plans", "modify", &task, "--file", "plan.json"]).problems(), "");
    approved(&workspace, &plan, "2");
    assert_eq!(written(&shown(&workspace, &task)), [call["arguments"].clone()]);
}
