//! Flows on the command line: `flows plan`, `chat --flow`, and requests that lead to a flow without a model.

#![cfg(unix)]

use serde_json::json;

use super::process::{Workspace, document};
use super::support::{Scripted, ScriptedLlm};

const FLOW: &str = r#"
name = "outing"
description = "Says whether a day is good for an outing to the hills."
inputs = ["city"]
entries = ["forecast", "greet"]

[[examples]]
say = "Is today a good day for an outing to the hills?"
path = ["forecast", "advise"]
[[examples]]
say = "What can the outing planner do for me?"
path = ["greet"]

[[nodes]]
name = "forecast"
description = "Looks the weather of the city up."
kind = "tool"
inputs = ["city"]
outputs = ["forecast"]
possible_next_nodes = ["advise"]
scene = "Weather"
tool = "WeatherForecast_Get"
arguments = { city = "city" }

[[nodes]]
name = "advise"
description = "Advises by the weather."
kind = "condition"
inputs = ["forecast"]

[[nodes]]
name = "greet"
description = "Says what the flow does."
kind = "condition"
"#;

/// A flow that asks its user for the tables that it may read.
const QUESTION: &str = r#"
name = "archive"
description = "Reads tables of the archive."
inputs = ["tables", "known"]

[[nodes]]
name = "choose"
description = "Lets the user choose tables."
kind = "approval"
by = "user"
inputs = ["tables", "known"]
outputs = ["tables"]
[nodes.values]
tables = "known"
[nodes.question]
en = "May I read these tables?"
"#;

const ASK: &str = "Is it a good day for an outing?";
const STATE: &str = r#"{"city": "Milano"}"#;

fn workspace() -> Workspace {
    let workspace = Workspace::new().with("PROSCENIUM__SCENES__DIR", "scenes");
    workspace.write("scenes/outing/flow.toml", FLOW);
    workspace
}

#[test]
fn path_of_a_request_is_printed_without_executing_it() {
    let workspace = workspace();
    let ran = workspace.run(&["flows", "plan", "outing", ASK, "--state", STATE]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    let is_fixed = |line: &&str| !line.starts_with("Task ID: ") && !line.contains(" model call");
    let shown: Vec<&str> = ran.out.lines().filter(is_fixed).collect();
    insta::assert_snapshot!(shown.join("\n").trim_end(), @r"
    # Execution Plan: Is it a good day for an outing?
    Status: draft

    ## Step 1: outing
    Input: Is it a good day for an outing?

    Path of step 1 through outing (planned by the offline model):
      1. forecast
      2. advise
    ");
    let planned = document(&workspace.run(&["flows", "plan", "outing", ASK, "--state", STATE, "--json"]));
    assert_eq!(planned["flows"][0]["path"], json!(["forecast", "advise"]), "{planned:#}");
    let ran = workspace.run(&["flows", "plan", "outing", ASK, "--state", "[1]"]);
    assert!(ran.status == 2 && ran.err.contains("write a JSON object"), "{ran:?}");
    assert_eq!(planned["flows"][0]["planned_by"], "rules");
    let planned =
        document(&workspace.run(&["flows", "plan", "outing", "What can this planner do?", "--json"]));
    assert_eq!(planned["flows"][0]["path"], json!(["greet"]), "{planned:#}");
    let runs = workspace.run(&["runs", "show", &run_of_last_plan(&workspace), "--events"]);
    assert!(runs.out.contains("flow_planned") && !runs.out.contains("node_started"), "{}", runs.out);
}

fn run_of_last_plan(workspace: &Workspace) -> String {
    let plans = document(&workspace.run(&["plans", "list", "--json"]));
    plans[0]["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn server_plans_the_same_path() {
    let workspace = workspace();
    let server = workspace.serve(&[]);
    let there = document(&workspace.run(&["flows", "plan", "outing", ASK, "--state", STATE, "--json"]));
    assert_eq!(there["flows"][0]["path"], json!(["forecast", "advise"]), "{there:#}");
    let unknown = workspace.run(&["flows", "plan", "journey", ASK]);
    assert!(unknown.status == 1 && unknown.err.contains("flow.unknown"), "{unknown:?}");
    let answer = document(&workspace.run(&["chat", "--flow", "outing", "--state", STATE, "--json", ASK]));
    assert_eq!(answer["metadata"]["planned_execution_path"], json!(["forecast", "advise"]), "{answer:#}");
    server.signal("TERM");
    assert_eq!(server.end().status, 0);
}

#[test]
fn flow_that_is_asked_for_by_name_serves_each_message() {
    let workspace = workspace();
    let answer = workspace.ask(ASK, &["--flow", "outing", "--state", STATE]);
    assert_eq!(answer["metadata"]["planned_execution_path"], json!(["forecast", "advise"]), "{answer:#}");
    assert!(answer["answer"].as_str().unwrap().contains("Milano"), "{answer:#}");
    let step = &answer["steps"][0];
    assert_eq!(step["tool_calls"][0]["node"], "forecast", "{answer:#}");
    assert_eq!(step["flow"]["skipped"], json!(["greet"]));
    let unknown = workspace.run(&["chat", "--flow", "outings", ASK]);
    assert!(unknown.status == 1 && unknown.err.contains("the flows are: outing"), "{unknown:?}");
    let unknown = workspace.run(&["flows", "plan", "outings", ASK]);
    assert!(
        unknown.err.contains("error[flow.unknown]") && unknown.err.contains("the flows are: outing"),
        "{unknown:?}"
    );
}

#[test]
fn without_a_model_a_request_leads_to_a_flow_by_itself() {
    let workspace = workspace();
    for (words, path) in [
        ("Is today a good day for an outing to the hills?", vec!["forecast", "advise"]),
        ("Is tomorrow a good day for an outing?", vec!["forecast", "advise"]),
        ("What can the outing planner do?", vec!["greet"]),
        ("What is the weather in Milan?", vec!["Weather"]),
    ] {
        let answer = workspace.ask(words, &["--state", STATE]);
        assert_eq!(answer["metadata"]["planned_execution_path"], json!(path), "{words}: {answer:#}");
        assert_eq!(answer["status"], "completed", "{answer:#}");
    }
}

#[test]
fn progress_explanation_and_flowchart_name_the_nodes() {
    let workspace = workspace();
    let ran = workspace.run(&["chat", "--flow", "outing", "--state", STATE, ASK]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    for expected in [
        "step 1 outing: path forecast → advise (planned by the offline model)",
        "step 1 outing, forecast: WeatherForecast_Get: ",
        "step 1 outing, advise: completed (",
        "step 1 outing: skipped greet",
        "step 1 outing: completed",
    ] {
        assert!(ran.err.contains(expected), "no {expected:?} in {}", ran.err);
    }
    let of_nodes: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("step 1 outing, ")).collect();
    assert_eq!(of_nodes.len(), 2, "one line for each node: {}", ran.err);
    assert!(of_nodes.iter().all(|line| line.chars().count() <= 80), "{}", ran.err);
    let run = run_of_last_plan(&workspace);
    let told = ["path: forecast → advise", "ran: forecast → advise", "skipped: greet"];
    let explained = workspace.run(&["explain", &run]);
    let shown = workspace.run(&["runs", "show", &run]);
    let chart = workspace.run(&["runs", "show", &run, "--mermaid"]);
    for ran in [explained, shown, chart] {
        assert!(told.iter().all(|told| ran.out.contains(told)), "{}", ran.out);
    }
}

/// The text without what depends on the machine: how long something took.
fn without_times(text: &str) -> String {
    let has_time = |line: &str| line.ends_with(" ms)") || line.ends_with(" s)");
    let line = |line: &str| match line.rfind(" (").filter(|_| has_time(line)) {
        Some(at) => format!("{} (…)", &line[..at]),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn nodes_are_narrated_line_by_line_in_the_width_of_a_terminal() {
    let ran = Workspace::new().run(&["chat", "How many orders were placed in March 2026?"]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    let told: Vec<&str> = ran.err.lines().take_while(|line| !line.starts_with("check: ")).collect();
    assert!(told.iter().all(|line| line.chars().count() <= 80), "{}", ran.err);
    insta::assert_snapshot!(without_times(&told.join("\n")));
}

#[test]
fn lists_that_may_be_changed_are_shown_with_their_approval() {
    let workspace = workspace();
    workspace.write("scenes/archive/flow.toml", QUESTION);
    let state = r#"{"tables": ["orders", "customers"], "known": ["orders", "payments"]}"#;
    let ran = workspace.run(&["chat", "--flow", "archive", "--state", state, "Read them"]);
    assert_eq!(ran.status, 3, "{ran:?}");
    let listed = document(&workspace.run(&["approvals", "list", "--json"]));
    assert_eq!(listed[0]["lists"], json!({"tables": ["orders", "payments"]}), "{listed:#}");
    let shown = workspace.run(&["approvals", "show", listed[0]["approval_id"].as_str().unwrap()]);
    let line = "tables may be changed; now: orders, customers; it may also contain: payments";
    assert!(shown.out.lines().any(|shown| shown == line), "{shown:?}");
    assert!(ran.text().contains(line), "{ran:?}");
}

#[test]
fn flow_is_shown_with_the_nodes_that_a_model_missed() {
    let llm = ScriptedLlm::start(|request, _| {
        let missing =
            json!({"name": "pack", "description": "Lists what\u{7} to bring.", "why": "They ask for it."});
        Scripted::forced(request, json!({"reasoning": "", "path": ["greet"], "missing_node": missing}))
    });
    let workspace = workspace().with("OPENAI_BASE_URL", llm.base_url()).with("OPENAI_MODEL", "some-model");
    let before = workspace.run(&["flows", "show", "outing"]);
    assert!(before.status == 0 && before.out.contains("then advise"), "{before:?}");
    assert!(!before.out.contains("missed"), "nothing is stored yet: {before:?}");
    let planned = workspace.run(&["flows", "plan", "outing", "What should I bring?"]);
    assert!(planned.out.contains("planned by a model"), "{planned:?}");
    assert!(planned.out.contains("as the planner suggests: pack: Lists what to bring."), "{planned:?}");
    let shown = workspace.run(&["flows", "show", "outing"]);
    let run = run_of_last_plan(&workspace);
    assert!(shown.out.contains("  - pack (20"), "{shown:?}");
    assert!(
        shown.out.contains(&format!("run {run}): Lists what to bring.\n    They ask for it.\n")),
        "{shown:?}"
    );
    let shown = document(&workspace.run(&["flows", "show", "outing", "--json"]));
    assert_eq!(shown["missing_nodes"][0]["run_id"], json!(run), "{shown:#}");
}
