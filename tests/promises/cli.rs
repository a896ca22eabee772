//! The command line, tested with the real program in its own processes.

use serde_json::{Value, json};

use super::process::{MAIN, Workspace};
use super::support::{self, Scripted, ScriptedLlm};

fn calls(answer: &Value) -> Vec<(String, String)> {
    let steps = answer["steps"].as_array().unwrap();
    let calls = steps.iter().flat_map(|step| step["tool_calls"].as_array().unwrap());
    calls
        .map(|call| (call["tool"].as_str().unwrap().to_owned(), call["outcome"].as_str().unwrap().to_owned()))
        .collect()
}

fn result(answer: &Value, tool: &str) -> Value {
    let steps = answer["steps"].as_array().unwrap();
    let mut calls = steps.iter().flat_map(|step| step["tool_calls"].as_array().unwrap());
    calls.find(|call| call["tool"] == tool).unwrap()["result"].clone()
}

fn requests(workspace: &Workspace) -> Value {
    result(&workspace.ask("Quali richieste di ferie ho fatto?", &[]), "ListRequests")
}

#[test]
fn main_request_plans_and_executes_both_scenes_and_answers_once() {
    let workspace = Workspace::new();
    let ran = workspace.run(&["chat", MAIN]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""));
    assert!(!ran.text().contains('\u{1b}'), "a pipe gets no escapes: {}", ran.text());
    let lines: Vec<&str> = ran.err.lines().collect();
    let at = |what: &str| {
        lines
            .iter()
            .position(|line| line.contains(what))
            .unwrap_or_else(|| panic!("no {what:?} in {}", ran.err))
    };
    let order = [
        "plan: 2 steps",
        "  1. Weather: ",
        "  2. VacationManagement: ",
        "step 1 Weather: started",
        "step 1 Weather: WeatherForecast_Get {\"city\":\"Milano\"}: ok",
        "step 1 Weather: completed",
        "step 2 VacationManagement: MakeRequest {\"from\":\"2026-06-15\",\"to\":\"2026-06-17\"}: ok",
        "step 2 VacationManagement: completed",
        "check: the request is answered",
        " model calls, ",
    ];
    let places: Vec<usize> = order.iter().map(|what| at(what)).collect();
    assert!(places.is_sorted(), "{}", ran.err);
    assert!(ran.out.starts_with("Milan") && ran.out.contains("15 giugno 2026"), "{}", ran.out);
    // Nothing is shown twice.
    assert!(ran.out.lines().all(|line| !ran.err.contains(line)), "{}", ran.err);

    let listed = requests(&workspace);
    assert_eq!(listed["count"], 1);
    assert_eq!(listed["requests"][0]["from"], "2026-06-15");
    assert_eq!(listed["for"]["name"], "Alessandro Rapiti");
}

#[test]
fn json_flag_prints_only_the_complete_answer_document() {
    let workspace = Workspace::new();
    let answer = workspace.ask(MAIN, &["--session", "s-1"]);
    let keys = |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let sorted = |names: &[&str]| {
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        names.sort();
        names
    };
    let document = [
        "run_id", "session_id", "task_id", "status", "answer", "plan", "steps", "writes", "metadata",
        "usage", "timings",
    ];
    for (part, names) in [
        ("", &document[..]),
        ("/plan", &["needs_execution", "reasoning", "steps"]),
        (
            "/plan/steps/1",
            &["step_number", "scene_name", "purpose", "expected_tools", "depends_on_step", "prepared_calls"],
        ),
        ("/steps/0", &["step_number", "scene_name", "status", "result", "tool_calls"]),
        ("/steps/0/tool_calls/0", &["tool", "arguments", "outcome", "result"]),
        ("/metadata", &["planned_execution_path", "current_path_index", "decisions"]),
        (
            "/usage",
            &[
                "llm_calls", "input_tokens", "cached_input_tokens", "output_tokens", "cost_usd",
                "session_cost_usd",
            ],
        ),
        ("/timings", &["total_ms", "overhead_ms"]),
    ] {
        let mut found = keys(answer.pointer(part).unwrap());
        found.sort();
        assert_eq!(found, sorted(names), "{part}");
    }
    assert_eq!((&answer["status"], &answer["session_id"]), (&json!("completed"), &json!("s-1")));
    assert_eq!(answer["metadata"]["planned_execution_path"], json!(["Weather", "VacationManagement"]));
    assert_eq!(answer["metadata"]["current_path_index"], 2);
    let first = json!({"purpose": "plan", "model": "offline", "version": 1});
    assert_eq!(answer["metadata"]["decisions"][0], first, "the offline model is named");
    let ok = |tool: &str| (tool.to_owned(), "ok".to_owned());
    assert_eq!(calls(&answer), [ok("WeatherForecast_Get"), ok("MakeRequest")]);
}

#[test]
fn plan_command_shows_the_plan_and_executes_nothing() {
    let workspace = Workspace::new();
    let ran = workspace.run(&["plan", MAIN]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""));
    assert!(
        ran.out.contains("Status: draft") && ran.out.contains("## Step 2: VacationManagement"),
        "{}",
        ran.out
    );
    let ran = workspace.run(&["plan", "--json", MAIN]);
    let draft: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(draft["plan"]["steps"][0]["scene_name"], "Weather");
    assert_eq!(draft["plan"]["steps"][1]["depends_on_step"], 1);
    assert_eq!(requests(&workspace)["count"], 0);
}

#[test]
fn exit_status_distinguishes_completed_failed_usage_and_needs_input() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run(&["chat", "Che tempo fa a Milano?"]).status, 0);
    assert_eq!(workspace.run(&["chat", "Vorrei richiedere tre giorni di ferie"]).status, 3);
    for line in [
        &["chat", "--jsn", "Ciao"][..],
        &["chat", "  "],
        &["cook"],
        &[],
        &["runs", "show", "no-id"],
        &["chat", "Ciao", "--config", "none.toml"],
    ] {
        let ran = workspace.run(line);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{line:?}: {ran:?}");
        assert!(!ran.err.is_empty());
    }
    let unreachable = Workspace::new()
        .with("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        .with("PROSCENIUM__PLANNING__FALLBACK_ENABLED", "false")
        .with("PROSCENIUM__LLM__MAX_ATTEMPTS", "1");
    let ran = unreachable.run(&["chat", "Che tempo fa a Milano?"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.err.contains("The run failed [") && ran.out.is_empty(), "{ran:?}");
    let document = unreachable.ask("Che tempo fa a Milano?", &[]);
    assert_eq!(document["status"], "failed");
    assert!(document["error"]["code"].is_string() && document["plan"].is_null(), "{document:#}");
}

#[test]
fn conversation_continues_in_another_process() {
    let workspace = Workspace::new();
    workspace.ask("Che tempo fa a Milano?", &["--session", "s"]);
    let answer = workspace.ask("E a Roma?", &["--session", "s"]);
    assert_eq!(result(&answer, "WeatherForecast_Get")["city"], "Rome");
    workspace.ask("Vorrei richiedere tre giorni di ferie", &["--session", "t"]);
    let answer = workspace.ask("Dal 6 all'8 luglio", &["--session", "t"]);
    assert_eq!(answer["status"], "completed", "{answer:#}");
    assert_eq!(requests(&workspace)["requests"][0]["from"], "2026-07-06");
}

#[test]
fn piped_lines_are_turns_of_one_conversation() {
    let workspace = Workspace::new();
    let ran = workspace.pipe(&["chat", "--json"], "Che tempo fa a Milano?\n\nE a Roma?\n");
    assert_eq!(ran.status, 0, "{ran:?}");
    let answers: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0]["session_id"], answers[1]["session_id"]);
    assert_eq!(result(&answers[1], "WeatherForecast_Get")["city"], "Rome");
    assert_eq!(workspace.pipe(&["chat"], "").status, 0);
}

#[test]
fn quiet_chat_prints_only_the_answer() {
    let workspace = Workspace::new();
    let ran = workspace.run(&["chat", "--quiet", "Che tempo fa a Milano?"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{ran:?}");
    assert!(ran.out.starts_with("Milano") && ran.out.ends_with('\n'), "{}", ran.out);
    // An open question is not an answer, and is shown all the same.
    let ran = workspace.run(&[
        "chat",
        "-q",
        "--require-approval",
        "Vorrei richiedere un giorno di ferie il 3 luglio",
    ]);
    assert_eq!((ran.status, ran.out.as_str()), (3, ""), "{ran:?}");
    let question = ["Waits for a person's yes", "1. VacationManagement", "To decide:"];
    assert!(question.iter().all(|what| ran.err.contains(what)), "{}", ran.err);
}

#[test]
fn runs_command_lists_runs_and_shows_events_or_a_chart() {
    let workspace = Workspace::new();
    let ran = workspace.run(&["runs"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("error[store.absent]"), "{}", ran.err);
    let answer = workspace.ask(MAIN, &[]);
    let run = answer["run_id"].as_str().unwrap();
    let ran = workspace.run(&["runs", "list"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let row = ran.out.lines().nth(1).unwrap();
    assert!(row.starts_with(run) && row.contains("completed") && row.ends_with(MAIN), "{row}");
    let listed: Value = serde_json::from_str(&workspace.run(&["runs", "list", "--json"]).out).unwrap();
    let short: Value = serde_json::from_str(&workspace.run(&["runs", "--json"]).out).unwrap();
    assert_eq!(short, listed);
    assert_eq!(workspace.run(&["runs", "--parked", "--json"]).out.trim(), "[]");
    assert_eq!((&listed[0]["run_id"], &listed[0]["llm_calls"]), (&answer["run_id"], &json!(2)));
    let shown: Value = serde_json::from_str(&workspace.run(&["runs", "show", run, "--json"]).out).unwrap();
    assert_eq!((&shown["answer"], &shown["steps"]), (&answer["answer"], &answer["steps"]));

    // A unique prefix is enough; several candidates are listed.
    for line in [&["runs", "show", &run[..13]][..], &["replay", &run[..13]]] {
        assert_eq!(workspace.run(line).status, 0, "{line:?}");
    }
    let other = workspace.ask("Che tempo fa a Roma?", &[]);
    let ids = [run, other["run_id"].as_str().unwrap()];
    let ran = workspace.run(&["runs", "show", &run[..4]]);
    assert!(ran.status == 2 && ran.err.contains("error[run.ambiguous]"), "{ran:?}");
    assert!(ids.iter().all(|id| ran.err.contains(id)), "{}", ran.err);
    assert!(workspace.run(&["runs", "show", "ffff"]).err.contains("error[run.unknown]"));

    let ran = workspace.run(&["runs", "show", run]);
    for expected in ["Status: completed", "## Step 1: Weather", "2 tool calls:", "Answer:"] {
        assert!(ran.out.contains(expected), "no {expected:?} in {}", ran.out);
    }
    let ran = workspace.run(&["runs", "show", run, "--events"]);
    for expected in
        ["run_queued {", "plan_created {", "tool_started {", "run_completed {\"status\":\"completed\"}"]
    {
        assert!(ran.out.contains(expected), "no {expected:?} in {}", ran.out);
    }
    let ran = workspace.run(&["runs", "show", run, "--mermaid"]);
    assert!(ran.out.starts_with("flowchart TD\n") && ran.out.contains("s1 --> s2"), "{}", ran.out);
    let ran = workspace.run(&["runs", "show", "01976c8e-0000-7000-8000-000000000001"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("error[run.unknown]") && ran.err.contains("runs list"), "{}", ran.err);
}

#[test]
fn data_directory_has_one_owner_and_stays_readable() {
    let workspace = Workspace::new();
    let mut owner = workspace.spawn(&["chat"]);
    owner.write("Che tempo fa a Milano?\n");
    owner.read_stderr_until("model calls");
    let ran = workspace.run(&["chat", "Ciao"]);
    assert_eq!((ran.status, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("error[store.in_use]") && ran.err.contains("process "), "{}", ran.err);
    let ran = workspace.run(&["runs"]);
    assert!(ran.status == 0 && ran.out.contains("Che tempo fa a Milano?"), "{ran:?}");
    owner.write("E a Roma?\n");
    let ran = owner.end();
    assert!(ran.status == 0 && ran.out.contains("Roma"), "{ran:?}");
    assert_eq!(workspace.run(&["chat", "Che tempo fa a Milano?"]).status, 0);
}

#[test]
fn wrong_flags_and_keys_are_reported_together_with_suggestions() {
    let workspace = Workspace::new();
    let ran = workspace.run(&["chat", "--sesion", "s", "Ciao"]);
    assert!(ran.status == 2 && ran.err.contains("--session"), "{}", ran.err);
    workspace.write("site.toml", "[planing]\nmax_steps = 3\n\n[execution]\nmax_cals = 3\nmax_rounds = 0\n");
    let workspace = workspace.with("PROSCENIUM__STORE__DATADIR", "x");
    let ran = workspace.run(&["chat", "Ciao", "--config", "site.toml"]);
    assert_eq!((ran.status, ran.out.as_str()), (2, ""));
    for expected in [
        "site.toml:1: error[config.unknown_key]",
        "did you mean `planning`?",
        "site.toml:5: error[config.unknown_key]",
        "did you mean `execution.max_calls`?",
        "site.toml:6: error[config.value]",
        "set a value from 1 to 64",
        "environment variable PROSCENIUM__STORE__DATADIR: error[config.unknown_key]",
    ] {
        assert!(ran.err.contains(expected), "no {expected:?} in {}", ran.err);
    }
    assert!(!workspace.data().exists(), "nothing was started");
}

/// Plans a weather lookup, executes it and answers, as a good model would.
pub fn weather_model(request: &Value) -> Scripted {
    match support::forced_tool(request) {
        Some("CreateExecutionPlan") => {
            let step = json!({"step_number": 1, "scene_name": "Weather", "purpose": "Get the weather",
                "expected_tools": ["WeatherForecast_Get"], "depends_on_step": null});
            Scripted::forced(
                request,
                json!({"needs_execution": true, "reasoning": "weather", "steps": [step]}),
            )
        }
        Some(_) => Scripted::answered(request, "Words of the scripted model."),
        None if support::tool_results(request).is_empty() => {
            Scripted::call("WeatherForecast_Get", json!({"city": "Milano"}))
        }
        None => Scripted::Text("Mild.".to_owned()),
    }
}

#[test]
fn environment_configures_another_model_and_its_key_stays_hidden() {
    const CANARY: &str = "sk-canary-5f2c9e7b";
    let llm = ScriptedLlm::start(|request, _| weather_model(request));
    let workspace = Workspace::new()
        .with("OPENAI_BASE_URL", llm.base_url())
        .with("OPENAI_API_KEY", CANARY)
        .with("OPENAI_MODEL", "some-model")
        .with("PROSCENIUM__TELEMETRY__LOG", "trace");
    let ran = workspace.run(&["chat", "Che tempo fa a Milano?"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.out.contains("Words of the scripted model."), "{}", ran.out);
    assert_eq!(llm.count(), 4);
    assert_eq!(llm.request(0)["model"], "some-model");
    assert_eq!(support::section(&llm.request(0), "request").as_deref(), Some("Che tempo fa a Milano?"));
    for nth in 0..llm.count() {
        assert_eq!(llm.authorization(nth).as_deref(), Some(format!("Bearer {CANARY}").as_str()));
    }
    let shown = workspace.run(&["runs", "show", &run_of(&workspace), "--events"]);
    let checked = workspace.run(&["check"]);
    assert_eq!(checked.status, 0, "{checked:?}");
    let stored = String::from_utf8_lossy(&workspace.stored()).into_owned();
    for text in [&ran.out, &ran.err, &shown.out, &shown.err, &checked.out, &checked.err, &stored] {
        assert!(!text.contains(CANARY), "the key was sent");
    }
}

fn run_of(workspace: &Workspace) -> String {
    let listed = workspace.run(&["runs", "list"]);
    listed.out.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn model_replies_stay_out_of_the_log() {
    const CANARY: &str = "said-in-confidence-81c4";
    let llm = ScriptedLlm::start(|request, nth| match nth {
        0 => Scripted::Malformed(format!("{{\"choices\": [{{\"{CANARY}")),
        _ => weather_model(request),
    });
    let workspace = Workspace::new()
        .with("OPENAI_BASE_URL", llm.base_url())
        .with("PROSCENIUM__LLM__BACKOFF_MS", "1")
        .with("PROSCENIUM__TELEMETRY__LOG", "info");
    let ran = workspace.run(&["chat", "Che tempo fa a Milano?"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(!ran.err.contains(CANARY), "{}", ran.err);
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_run_at_its_next_safe_point() {
    let (sender, receiver) = std::sync::mpsc::sync_channel(8);
    let llm = ScriptedLlm::start(move |request, _| match support::forced_tool(request) {
        Some(_) => weather_model(request),
        None => {
            sender.send(()).unwrap();
            Scripted::Silence
        }
    });
    let workspace = Workspace::new().with("OPENAI_BASE_URL", llm.base_url());
    for (signal, name) in [("INT", "Ctrl-C"), ("TERM", "SIGTERM")] {
        let chat = workspace.spawn(&["chat", "Che tempo fa a Milano?"]);
        receiver.recv().unwrap();
        chat.signal(signal);
        let ran = chat.end();
        assert_eq!(ran.status, 1, "{ran:?}");
        assert!(ran.err.contains(&format!("run: cancelled by {name}")), "{ran:?}");
        assert!(ran.err.contains("again to exit immediately"), "{ran:?}");
        let listed = workspace.run(&["runs", "list"]);
        assert!(listed.out.lines().nth(1).unwrap().contains("cancelled"), "{}", listed.out);
    }
}

#[cfg(unix)]
#[test]
fn signal_cancels_a_draft_and_leaves_nothing_to_resume() {
    let (sender, receiver) = std::sync::mpsc::sync_channel(8);
    let llm = ScriptedLlm::start(move |_, _| {
        sender.send(()).unwrap();
        Scripted::Silence
    });
    let workspace = Workspace::new().with("OPENAI_BASE_URL", llm.base_url());
    for signal in ["INT", "TERM"] {
        let plan = workspace.spawn(&["plan", "Che tempo fa a Milano?"]);
        receiver.recv().unwrap();
        plan.signal(signal);
        let ran = plan.end();
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.err.contains("again to exit immediately"), "{ran:?}");
        assert!(ran.err.contains("error[plan.cancelled]"), "{ran:?}");
        let listed = workspace.run(&["runs", "list"]);
        assert!(listed.out.lines().nth(1).unwrap().contains("cancelled"), "{}", listed.out);
    }
}

#[cfg(unix)]
#[test]
fn signal_ends_a_live_check() {
    let (sender, receiver) = std::sync::mpsc::sync_channel(8);
    let llm = ScriptedLlm::start(move |_, _| {
        sender.send(()).unwrap();
        Scripted::Silence
    });
    let workspace = Workspace::new().with("OPENAI_BASE_URL", llm.base_url());
    for (signal, name) in [("INT", "Ctrl-C"), ("TERM", "SIGTERM")] {
        let check = workspace.spawn(&["check", "--live"]);
        receiver.recv().unwrap();
        check.signal(signal);
        let ran = check.end();
        assert_eq!(ran.status, 1, "{ran:?}");
        assert!(ran.err.contains(&format!("error[check.interrupted]: stopped by {name}")), "{ran:?}");
    }
}

#[test]
fn question_ends_with_the_command_that_answers_it() {
    let workspace = Workspace::new();
    let ran = workspace.run(&["chat", "Vorrei richiedere tre giorni di ferie"]);
    assert_eq!(ran.status, 3, "{ran:?}");
    let question = ran.out.trim();
    assert!(!question.is_empty() && !ran.err.contains(question), "the question is asked once: {ran:?}");
    // Nothing failed; the documents keep their values.
    let listed = workspace.run(&["plans"]).out;
    assert!(listed.contains("needs_input") && !listed.contains("failed"), "{listed}");
    let document: Value = serde_json::from_str(&workspace.run(&["plans", "list", "--json"]).out).unwrap();
    assert_eq!(document[0]["status"], "failed");
    let shown = workspace.run(&["plans", "show", document[0]["task_id"].as_str().unwrap()]).out;
    assert!(shown.contains("\nStatus: needs_input\n") && !shown.contains("Status: failed"), "{shown}");
    let (_, command) = ran.err.split_once("proscenium chat --session ").unwrap_or_else(|| panic!("{ran:?}"));
    let session = command.split_whitespace().next().unwrap();
    let ran = workspace.run(&["chat", "--session", session, "dal 15 al 17 giugno"]);
    assert_eq!((ran.status, ran.err.contains("To answer:")), (0, false), "{ran:?}");
    assert_eq!(requests(&workspace)["count"], 1);
    // In a conversation the next line answers.
    let ran = workspace.pipe(&["chat"], "Vorrei richiedere tre giorni di ferie\n");
    assert!(ran.status == 3 && !ran.err.contains("To answer:"), "{ran:?}");
}
