//! While a server owns the data directory, `chat` and `plan` talk to it, and their output is the same as if
//! they ran in their own process.

#![cfg(unix)]

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, mpsc};

use serde_json::{Value, json};

use super::cli::weather_model;
use super::process::{MAIN, ProcessOutput, RunningProcess, Workspace, assert_refused, document};
use super::support::{Scripted, ScriptedLlm, forced_tool};

const BOOK: &str = "Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno";

fn stop(server: RunningProcess) -> ProcessOutput {
    server.signal("TERM");
    let ran = server.end();
    assert_eq!(ran.status, 0, "{ran:?}");
    ran
}

/// The output without durations.
fn without_durations(ran: &ProcessOutput) -> Vec<&str> {
    let lines = ran.err.lines().chain(ran.out.lines()).filter(|line| !line.contains(" model calls, "));
    // A call's line ends with its duration: `… ok {…} (12 ms)`.
    lines
        .map(|line| {
            line.strip_suffix(" ms)").and_then(|line| line.rsplit_once(" (")).map_or(line, |(line, _)| line)
        })
        .collect()
}

/// A model that plans and then never replies; it signals when that starts.
fn silent_model() -> (ScriptedLlm, mpsc::Receiver<()>) {
    let (sender, receiver) = mpsc::sync_channel(8);
    let llm = ScriptedLlm::start(move |request, _| match forced_tool(request) {
        Some(_) => weather_model(request),
        None => {
            sender.send(()).unwrap();
            Scripted::Silence
        }
    });
    (llm, receiver)
}

#[test]
fn message_answered_by_the_server_is_shown_as_local() {
    let (workspace, alone) = (Workspace::new(), Workspace::new());
    let server = workspace.serve(&[]);
    let ran = workspace.run(&["chat", MAIN]);
    let here = alone.run(&["chat", MAIN]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert_eq!(without_durations(&ran), without_durations(&here));
    assert!(ran.err.contains(" model calls, ") && ran.err.contains("step 2 VacationManagement: completed"));

    // The document has the same fields, and the same values except for ids and times.
    let ask = ["chat", "--json", "Quali richieste di ferie ho fatto?", "--session", "s-1"];
    let mut documents = [document(&workspace.run(&ask)), document(&alone.run(&ask))];
    for document in &mut documents {
        assert!(document["timings"]["total_ms"].as_f64().unwrap() > 0.0, "{document:#}");
        for own in ["run_id", "task_id", "timings"] {
            assert!(document.as_object_mut().unwrap().remove(own).is_some(), "no {own}");
        }
    }
    let [theirs, ours] = documents;
    let (mut theirs, mut ours) = (theirs, ours);
    let result = |document: &mut Value| document["steps"][0]["tool_calls"].take();
    assert_eq!(
        result(&mut theirs)[0]["result"]["requests"].as_array().map(Vec::len),
        result(&mut ours)[0]["result"]["requests"].as_array().map(Vec::len)
    );
    assert_eq!(theirs, ours);
    stop(server);
    // The run is in the journal of the directory.
    assert!(workspace.run(&["runs"]).out.contains("Voglio sapere il meteo"));
}

#[test]
fn piped_lines_are_turns_of_one_server_conversation() {
    let workspace = Workspace::new();
    let server = workspace.serve(&[]);
    let ran = workspace.pipe(&["chat", "--json"], "Che tempo fa a Milano?\nE a Roma?\n");
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    let turns: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(turns[0]["session_id"], turns[1]["session_id"]);
    assert!(turns[1]["answer"].as_str().unwrap().contains("Roma"), "the second turn knows the first");
    // Another process continues it by its name.
    let session = turns[0]["session_id"].as_str().unwrap();
    let third = document(&workspace.run(&["chat", "--json", "E a Napoli?", "--session", session]));
    assert_eq!(third["session_id"], session);
    assert!(third["answer"].as_str().unwrap().contains("Napoli"), "{third:#}");
    stop(server);
}

#[test]
fn server_plans_and_executes_nothing() {
    let (workspace, alone) = (Workspace::new(), Workspace::new());
    let server = workspace.serve(&[]);
    let ran = workspace.run(&["plan", MAIN]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    let same = |ran: &ProcessOutput| {
        ran.out.lines().filter(|line| !line.starts_with("Task")).map(str::to_owned).collect::<Vec<_>>()
    };
    let here = alone.run(&["plan", MAIN]);
    assert!(ran.out.contains("Status: draft") && ran.out.contains("## Step 2: VacationManagement"));
    let differ = same(&ran).iter().zip(same(&here)).filter(|(ours, theirs)| *ours != theirs).count();
    assert!(differ <= 1, "only the id differs: {}\n{}", ran.out, here.out);
    let draft = document(&workspace.run(&["plan", "--json", MAIN]));
    let ours = document(&alone.run(&["plan", "--json", MAIN]));
    assert_eq!((&draft["plan"], &draft["usage"]), (&ours["plan"], &ours["usage"]));
    let listed = document(&workspace.run(&["chat", "--json", "Quali richieste di ferie ho fatto?"]));
    assert_eq!(listed["steps"][0]["tool_calls"][0]["result"]["count"], 0);
    stop(server);
}

#[test]
fn approval_dry_run_and_yes_work_through_the_server() {
    let workspace = Workspace::new();
    let server = workspace.serve(&[]);
    let ran = workspace.run(&["chat", "--dry-run", BOOK]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert!(ran.err.contains("\"dry_run\":true"), "{}", ran.err);

    let ran = workspace.run(&["chat", "--require-approval", "--session", "s-1", BOOK]);
    assert_eq!((ran.status, ran.problems().as_str()), (3, ""), "{ran:?}");
    for what in
        ["plan: 1 step", "Waits for a person's yes: plan 1", "To decide:\n  proscenium plans approve "]
    {
        assert!(ran.err.contains(what), "no {what:?} in {}", ran.err);
    }
    let ran = workspace.run(&["chat", "--session", "s-1", "Sì"]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    for what in ["plan 1: approved by keysersoze", "MakeRequest {\"from\":\"2026-06-15\"", "completed"] {
        assert!(ran.err.contains(what), "no {what:?} in {}", ran.err);
    }
    assert!(!ran.err.contains("plan: 1 step"), "earlier output is not repeated: {}", ran.err);
    stop(server);
}

#[test]
fn piped_line_with_only_no_decides_at_the_server() {
    let workspace = Workspace::new().with("PROSCENIUM__APPROVAL__PLANS", "writes");
    let server = workspace.serve(&[]);
    for line in [&["chat", "--json"][..], &["chat", "--json", "--require-approval"]] {
        let ran = workspace.pipe(line, &format!("{BOOK}\nno\n"));
        let ends: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&ends[0]["status"], &ends[1]["status"]), (&json!("waiting"), &json!("cancelled")));
        assert_eq!(ends[0]["run_id"], ends[1]["run_id"]);
    }
    stop(server);
}

#[test]
fn ambiguous_yes_is_answered_with_the_exact_command() {
    let workspace = Workspace::new();
    let ambiguous = || {
        let ran = workspace.run(&["chat", "--session", "s-1", "Sì"]);
        let expected =
            ["with `proscenium approvals decide ID yes|no` and one of ", "help: `proscenium approvals`"];
        assert_refused(&ran, 1, "approval.ambiguous", &expected);
        assert!(!ran.err.contains("POST"), "{}", ran.err);
    };
    for _ in 0..2 {
        let ran = workspace.run(&["chat", "--require-approval", "--session", "s-1", BOOK]);
        assert_eq!(ran.status, 3, "{ran:?}");
    }
    let server = workspace.serve(&[]);
    ambiguous();
    stop(server);
    // Locally, one process has to know them both.
    let mut chat = workspace.spawn(&["chat", "--require-approval", "--session", "s-2"]);
    chat.write(&format!("{BOOK}\n{BOOK}\nSì\n"));
    let ran = chat.end();
    assert!(ran.err.contains("error[approval.ambiguous]") && !ran.err.contains("POST"), "{ran:?}");
}

#[test]
fn flags_that_conflict_with_the_running_server_are_refused() {
    let workspace = Workspace::new();
    for name in ["scenes", "others"] {
        std::fs::create_dir(workspace.path().join(name)).unwrap();
    }
    workspace.write("one.toml", "[planning]\nmax_steps = 5\n");
    workspace.write("two.toml", "[planning]\nmax_steps = 5\n");
    let server = workspace.serve(&["--config", "one.toml", "--scenes", "scenes"]);
    let ask = |more: &[&str]| workspace.run(&[&["chat", "Che tempo fa a Milano?"], more].concat());
    assert_refused(&ask(&["--user", "lucia"]), 2, "usage.user", &["PROSCENIUM_API_KEY", "http://127.0.0.1:"]);
    assert_refused(&ask(&["--scenes", "others"]), 2, "usage.scenes", &["/scenes)", "--data-dir"]);
    assert_refused(&ask(&["--config", "two.toml"]), 2, "usage.config", &["/one.toml)", "--data-dir"]);
    let with = |name: &str, value: &str| {
        workspace.spawn_with(&["chat", "Che tempo fa a Milano?"], &[(name, value.to_owned())]).end()
    };
    let ran = with("PROSCENIUM__APPROVAL__PLANS", "writes");
    assert_refused(
        &ran,
        2,
        "usage.environment",
        &["PROSCENIUM__APPROVAL__PLANS (`approval.plans`)", "unset it"],
    );
    assert_refused(
        &with("PROSCENIUM__SCENES__DIR", "others"),
        2,
        "usage.scenes",
        &["PROSCENIUM__SCENES__DIR"],
    );
    let ran = workspace.run(&["plan", MAIN, "--scenes", "others"]);
    assert_refused(&ran, 2, "usage.scenes", &["http://127.0.0.1:"]);
    assert!(
        workspace.run(&["runs"]).out.lines().all(|line| !line.contains("Che tempo")),
        "nothing was requested"
    );
    // Equivalent paths cause no message.
    let ran = ask(&["--scenes", "others/../scenes", "--config", "./one.toml"]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    // In the environment as in the server's file.
    let ran = with("PROSCENIUM__PLANNING__MAX_STEPS", "5");
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    let ran = with("PROSCENIUM__TELEMETRY__LOG", "error");
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    stop(server);
}

#[test]
fn ctrl_c_stops_the_run_at_the_server() {
    let (llm, receiver) = silent_model();
    let workspace = Workspace::new().with("OPENAI_BASE_URL", llm.base_url());
    let server = workspace.serve(&[]);
    let chat = workspace.spawn(&["chat", "Che tempo fa a Milano?"]);
    receiver.recv().unwrap();
    chat.signal("INT");
    let ran = chat.end();
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.err.contains("run: cancelled by keysersoze"), "{ran:?}");
    assert!(ran.err.contains("again to exit immediately"), "{ran:?}");
    let listed = workspace.run(&["runs", "list"]);
    assert!(listed.out.lines().nth(1).unwrap().contains("cancelled"), "{}", listed.out);
    stop(server);
}

/// Accepts every request and never replies, in place of a server; it has set the owner of the data directory.
struct SilentServer {
    listener: TcpListener,
    _owner: RunningProcess,
}

impl SilentServer {
    fn at(workspace: &Workspace) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut owner = workspace.spawn(&["chat"]);
        owner.write("Che tempo fa a Milano?\n");
        owner.read_stderr_until("model calls");
        let address = format!("pid {}\nurl http://{}\n", owner.id(), listener.local_addr().unwrap());
        std::fs::write(workspace.data().join("server"), address).unwrap();
        Self { listener, _owner: owner }
    }

    /// Waits until a request has arrived; the client waits as long as the connection is held.
    fn wait_for_request(&self, line: &str) -> TcpStream {
        let (mut stream, _) = self.listener.accept().unwrap();
        let mut head = vec![0; line.len()];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(String::from_utf8(head).unwrap(), line);
        stream
    }
}

/// Asserts that the second signal ends a process that waits forever.
fn assert_second_signal_exits(mut asking: RunningProcess) {
    asking.signal("INT");
    asking.read_stderr_until("again to exit immediately");
    asking.signal("TERM");
    let ran = asking.end();
    assert!(ran.status == 1 && ran.err.contains("error[chat.left]"), "{ran:?}");
}

#[test]
fn second_ctrl_c_exits_during_a_request_to_a_hanging_server() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run(&["chat", "--require-approval", BOOK]).status, 3);
    let plans = document(&workspace.run(&["plans", "list", "--json"]));
    let task = plans[0]["task_id"].as_str().unwrap();
    let server = SilentServer::at(&workspace);
    let chat = workspace.spawn(&["chat", "Che tempo fa a Roma?"]);
    let process = server.wait_for_request("POST /api/chat HTTP/1.1");
    assert_second_signal_exits(chat);
    drop(process);
    let approve = workspace.spawn(&["plans", "approve", task]);
    let process = server.wait_for_request(&format!("POST /api/plans/{task}/approve"));
    assert_second_signal_exits(approve);
    drop(process);
}

#[test]
fn ctrl_c_ends_waiting_for_a_draft_of_the_server() {
    let workspace = Workspace::new();
    let server = SilentServer::at(&workspace);
    let plan = workspace.spawn(&["plan", "Che tempo fa a Roma?"]);
    let process = server.wait_for_request("POST /api/planning/plan");
    plan.signal("TERM");
    let ran = plan.end();
    assert!(ran.status == 1 && ran.err.contains("error[chat.left]"), "{ran:?}");
    assert!(ran.err.contains("does not execute it"), "{ran:?}");
    drop(process);
}

#[test]
fn second_ctrl_c_exits_a_run_of_a_hanging_server() {
    let (llm, _told) = silent_model();
    let workspace = Workspace::new().with("OPENAI_BASE_URL", llm.base_url());
    let server = workspace.serve(&[]);
    let mut chat = workspace.spawn(&["chat", "Che tempo fa a Milano?"]);
    chat.read_stderr_until("step 1 Weather: started");
    server.signal("STOP");
    assert_second_signal_exits(chat);
    server.signal("CONT");
    server.kill();
}

#[test]
fn key_determines_user_and_tenant_at_the_server() {
    let workspace = Workspace::new();
    let made = document(&workspace.run(&["keys", "create", "--tenant", "acme", "--user", "lucia", "--json"]));
    let key = made["key"].as_str().unwrap().to_owned();
    let server = workspace.serve(&[]);
    assert_refused(&workspace.run(&["chat", MAIN]), 1, "auth.missing", &["PROSCENIUM_API_KEY"]);
    assert_refused(&workspace.run(&["plan", MAIN]), 1, "auth.missing", &["PROSCENIUM_API_KEY"]);
    let shown = [("PROSCENIUM_API_KEY", key.clone())];
    let ran = workspace.spawn_with(&["chat", "Che tempo fa a Milano?"], &shown).end();
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert!(ran.err.contains("step 1 Weather: WeatherForecast_Get {\"city\":\"Milano\"}: ok"), "{}", ran.err);
    assert!(!ran.text().contains(&key));
    let ran = workspace.spawn_with(&["plan", "--json", MAIN], &shown).end();
    assert_eq!(document(&ran)["plan"]["steps"].as_array().map(Vec::len), Some(2), "{ran:?}");
    assert!(!workspace.run(&["runs"]).out.contains("Milano"), "the run is the other tenant's");
    // The printed commands work with the same key, and show what the key can access.
    let with_key = |line: &[&str]| {
        let ran = workspace.spawn_with(line, &shown).end();
        assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{line:?}: {ran:?}");
        ran
    };
    let listed = with_key(&["runs"]);
    assert!(listed.out.contains("Milano"), "{}", listed.out);
    let run = listed.out.lines().nth(1).and_then(|row| row.split_whitespace().next()).unwrap();
    assert!(with_key(&["runs", "show", run]).out.contains("tenant acme, asked by lucia"));
    assert!(with_key(&["replay", run]).out.contains("the current code decides the same"));
    let ran = workspace.spawn_with(&["chat", "--require-approval", BOOK], &shown).end();
    assert_eq!((ran.status, ran.problems().as_str()), (3, ""), "{ran:?}");
    let waits = document(&with_key(&["approvals", "list", "--json"]));
    let task = waits[0]["task_id"].as_str().unwrap();
    assert!(with_key(&["plans", "show", task]).out.contains("Status: pending_approval"));
    assert!(with_key(&["plans"]).out.contains(task));
    assert!(with_key(&["plans", "approve", task]).err.contains("plan 1: approved by lucia"));
    with_key(&["plans", "delete", task]);
    stop(server);
    // Without a server no key is required, and it determines no tenant.
    assert!(!with_key(&["runs"]).out.contains("Milano"));
}

#[test]
fn runs_of_another_tenant_are_shown_without_a_key_and_not_with_a_key_of_another() {
    let workspace = Workspace::new();
    let made = |tenant: &str| {
        let made = document(&workspace.run(&["keys", "create", "--tenant", tenant, "--json"]));
        [("PROSCENIUM_API_KEY", made["key"].as_str().unwrap().to_owned())]
    };
    let (acme, umbrella) = (made("acme"), made("umbrella"));
    let server = workspace.serve(&[]);
    let ran = workspace.spawn_with(&["chat", "--require-approval", BOOK], &acme).end();
    assert_eq!((ran.status, ran.problems().as_str()), (3, ""), "{ran:?}");
    let shows: [&[&str]; 3] = [&["runs", "list"], &["plans", "list"], &["approvals", "list"]];
    for show in shows {
        let line = [show, &["--json", "--tenant", "acme"]].concat();
        assert_eq!(document(&workspace.run(&line)).as_array().map(Vec::len), Some(1), "{line:?}");
        assert_eq!(document(&workspace.run(&[show, &["--json"]].concat())), json!([]), "{show:?}");
        let own = workspace.spawn_with(&line, &acme).end();
        assert_eq!(document(&own).as_array().map(Vec::len), Some(1), "{line:?}");
        let refused = workspace.spawn_with(&line, &umbrella).end();
        assert_refused(&refused, 2, "usage.tenant", &["is of the tenant umbrella, not of acme"]);
    }
    let run = document(&workspace.run(&["runs", "list", "--json", "--tenant", "acme"]))[0]["run_id"].clone();
    let run = run.as_str().unwrap();
    for show in ["explain", "replay"] {
        assert_refused(&workspace.run(&[show, run]), 1, "run.unknown", &["`--tenant` names another one"]);
        let line = [show, run, "--tenant", "acme"];
        assert_eq!(workspace.run(&line).status, 0, "{line:?}");
        let refused = workspace.spawn_with(&line, &umbrella).end();
        assert_refused(&refused, 2, "usage.tenant", &["is of the tenant umbrella, not of acme"]);
    }
    let task =
        document(&workspace.run(&["plans", "list", "--json", "--tenant", "acme"]))[0]["task_id"].clone();
    let approve = ["plans", "approve", task.as_str().unwrap(), "--tenant", "acme"];
    assert_refused(&workspace.run(&approve), 2, "usage.tenant", &["PROSCENIUM_API_KEY"]);
    let parked = workspace.run(&["runs", "--parked"]).out;
    assert!(parked.contains("Runs of other tenants wait, too; --tenant names one: acme\n"), "{parked}");
    let parked = workspace.spawn_with(&["runs", "--parked"], &umbrella).end().out;
    assert!(!parked.contains("acme"), "{parked}");
    stop(server);
}

#[test]
fn invalid_key_is_refused_by_every_command_alike() {
    let workspace = Workspace::new();
    let made = |more: &[&str]| {
        let line = [&["keys", "create", "--tenant", "acme", "--json"], more].concat();
        document(&workspace.run(&line))["key"].as_str().unwrap().to_owned()
    };
    let (valid, revoked) = (made(&[]), made(&[]));
    assert_eq!(workspace.run(&["chat", "Che tempo fa a Milano?"]).status, 0);
    let listed = document(&workspace.run(&["plans", "list", "--json"]));
    let (task, run) = (listed[0]["task_id"].as_str().unwrap(), listed[0]["run_id"].as_str().unwrap());
    let server = workspace.serve(&[]);
    assert_eq!(workspace.run(&["keys", "revoke", &revoked]).status, 0);
    let unknown = format!("psk_{}_{}", "0".repeat(16), "0".repeat(64));
    let commands: [&[&str]; 12] = [
        &["chat", MAIN],
        &["plan", MAIN],
        &["runs"],
        &["runs", "show", run],
        &["plans"],
        &["plans", "list", "--json"],
        &["plans", "show", task],
        &["plans", "approve", task],
        &["plans", "delete", task],
        &["approvals"],
        &["approvals", "list", "--json"],
        &["replay", run],
    ];
    for key in ["bad", unknown.as_str(), revoked.as_str()] {
        let shown = [("PROSCENIUM_API_KEY", key.to_owned())];
        for command in commands {
            let ran = workspace.spawn_with(command, &shown).end();
            assert_refused(&ran, 1, "auth.key", &["unknown or was revoked", "PROSCENIUM_API_KEY"]);
            assert!(!ran.err.contains(key) || key == "bad", "{}", ran.err);
        }
    }
    let ran = workspace.spawn_with(&["runs"], &[("PROSCENIUM_API_KEY", valid)]).end();
    assert!(ran.status == 0 && !ran.out.contains("Milano"), "{ran:?}");
    stop(server);
}

#[test]
fn server_with_another_default_tenant_is_followed() {
    let workspace = Workspace::new();
    workspace.write("acme.toml", "[auth]\ndefault_tenant = \"acme\"\n");
    let server = workspace.serve(&["--config", "acme.toml"]);
    let ran = workspace.run(&["chat", "--require-approval", BOOK]);
    assert_eq!((ran.status, ran.problems().as_str()), (3, ""), "{ran:?}");
    assert!(ran.err.contains("Waits for a person's yes: plan 1"), "{}", ran.err);
    let plans = document(&workspace.run(&["plans", "list", "--json"]));
    let ran = workspace.run(&["plans", "approve", plans[0]["task_id"].as_str().unwrap()]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    // The default tenant of the client may differ.
    let mut server = server;
    workspace.write("acme.toml", "[auth]\ndefault_tenant = \"umbrella\"\n");
    server.signal("HUP");
    server.read_stderr_until("configuration and scenes were read again");
    let ran = workspace.run(&["chat", "Che tempo fa a Milano?"]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert!(workspace.run(&["runs"]).out.contains("Milano"));
    stop(server);
    assert!(
        workspace.run(&["runs"]).out.lines().all(|line| !line.contains("Milano")),
        "its own default tenant again"
    );
}

#[test]
fn run_of_a_killed_server_is_reported_as_unfinished() {
    let (llm, receiver) = silent_model();
    let workspace = Workspace::new().with("OPENAI_BASE_URL", llm.base_url());
    let server = workspace.serve(&[]);
    let chat = workspace.spawn(&["chat", "Che tempo fa a Milano?"]);
    receiver.recv().unwrap();
    server.kill();
    let ran = chat.end();
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.err.contains("error[server.gone]") && ran.err.contains("proscenium serve"), "{}", ran.err);
}

#[test]
fn run_finished_during_drain_is_shown_to_its_end() {
    let (sender, receiver) = mpsc::sync_channel(8);
    let (release, released) = mpsc::sync_channel::<()>(1);
    let released = Mutex::new(released);
    let llm = ScriptedLlm::start(move |request, _| {
        if forced_tool(request).is_none() {
            sender.send(()).unwrap();
            // Until the test releases it.
            let _ = released.lock().unwrap().recv();
        }
        weather_model(request)
    });
    let workspace = Workspace::new().with("OPENAI_BASE_URL", llm.base_url());
    let mut server = workspace.serve(&[]);
    let chat = workspace.spawn(&["chat", "Che tempo fa a Milano?"]);
    receiver.recv().unwrap();
    server.signal("TERM");
    server.read_stderr_until("finishing accepted requests");
    drop(release);
    let ran = chat.end();
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert!(
        ran.err.contains("step 1 Weather: completed") && ran.err.contains(" model calls, "),
        "{}",
        ran.err
    );
    assert_eq!(server.end().status, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_and_approval_documents_are_equal_locally_and_remotely() {
    let workspace = Workspace::new().with("PROSCENIUM__APPROVAL__EXPIRES_S", "86400");
    let server = workspace.serve(&[]);
    let url = server.address();
    let get = async |path: String| -> Value {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        client.get(format!("{url}{path}")).send().await.unwrap().json().await.unwrap()
    };
    assert_eq!(workspace.run(&["chat", "--require-approval", BOOK]).status, 3);
    let plans = document(&workspace.run(&["plans", "list", "--json"]));
    assert_eq!(plans, get("/api/plans".to_owned()).await["plans"]);
    let task = plans[0]["task_id"].as_str().unwrap();
    let shown = document(&workspace.run(&["plans", "show", task, "--json"]));
    assert_eq!(shown, get(format!("/api/plans/{task}")).await);
    let id = shown["approvals"][0].as_str().unwrap();
    for done in [false, true] {
        if done {
            assert_eq!(workspace.run(&["approvals", "decide", id, "no", "--note", "not now"]).status, 0);
        }
        let approval = document(&workspace.run(&["approvals", "show", id, "--json"]));
        assert_eq!(approval, get(format!("/api/approvals/{id}")).await);
        assert_eq!(approval["expires_at"].is_string(), !done, "{approval:#}");
        let all = document(&workspace.run(&["approvals", "list", "--all", "--json"]));
        assert_eq!(all, json!([approval]));
    }
    stop(server);
}
