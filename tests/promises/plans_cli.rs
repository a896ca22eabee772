//! Plans are controlled from the command line, with the real program in its own processes.

use serde_json::{Value, json};

use super::process::{ProcessOutput, Workspace, document};
use super::support::Backend;

const SCENE: &str = include_str!("../scenarios/library/scene.toml");
const RESERVE: &str = "Reserve the book \"Emma\" from 3 July for 21 days at the station branch";

/// A library whose reservations need approval.
pub struct Library {
    backend: Backend,
    pub workspace: Workspace,
}

impl Library {
    /// `approval` is the setting of its writing tool.
    pub fn with_approval(approval: &str) -> Self {
        let backend = Backend::start(|reached| {
            let mut reservation = reached.body.clone();
            reservation["code"] = "R-7".into();
            json!({"reservation": reservation, "books": []})
        });
        let scene = SCENE
            .replace("http://library.invalid", backend.address())
            .replace("effect = \"write\"", &format!("effect = \"write\"\napproval = \"{approval}\""));
        let workspace = Workspace::new()
            .with("PROSCENIUM__SCENES__DIR", "scenes")
            .with("PROSCENIUM__SCENES__ALLOW_PRIVATE_ADDRESSES", "true");
        workspace.write("scenes/library/scene.toml", &scene);
        Self { backend, workspace }
    }

    /// The bodies of the reservations since the last call.
    pub fn reserved(&self) -> Vec<Value> {
        let taken = self.backend.take_requests().into_iter();
        taken.filter(|reached| reached.place == "POST /reservations").map(|reached| reached.body).collect()
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        document(&self.workspace.run(&[arguments, &["--json"]].concat()))
    }

    /// Requests a reservation, which waits. Returns the plan's id.
    pub fn request_reservation(&self) -> String {
        let ran = self.workspace.run(&["chat", RESERVE]);
        assert_eq!((ran.status, ran.problems().as_str()), (3, ""), "{ran:?}");
        assert_shows(&ran, &["Waits for a person's yes: ", "To decide:\n  proscenium "]);
        assert!(self.reserved().is_empty(), "nothing is executed before approval");
        let plans = self.json(&["plans", "list"]);
        plans[0]["task_id"].as_str().unwrap().to_owned()
    }
}

fn assert_shows(ran: &ProcessOutput, expected: &[&str]) {
    let text = ran.text();
    for what in expected {
        assert!(text.contains(what), "no {what:?} in {text}");
    }
}

fn assert_refused(ran: &ProcessOutput, code: &str, expected: &str) {
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.err.contains(&format!("error[{code}]")) && ran.err.contains(expected), "{}", ran.err);
}

#[test]
fn plan_waits_for_approval_and_executes_once() {
    let library = Library::with_approval("plan");
    let workspace = &library.workspace;
    let task = library.request_reservation();
    let listed = workspace.run(&["plans"]);
    let row = listed.out.lines().nth(1).unwrap();
    assert!(row.starts_with(&task) && row.contains("pending_approval") && row.ends_with(RESERVE), "{row}");
    assert_eq!(library.json(&["plans", "list", "--status", "completed"]), json!([]));
    let shown = workspace.run(&["plans", "show", &task]);
    assert_eq!((shown.status, shown.err.as_str()), (0, ""));
    assert_shows(
        &shown,
        &[
            "Status: pending_approval\n",
            "## Step 1: Library\n",
            "Waits for a person's yes: plan 1, ",
            "why: step 1: ReserveBook of Library writes",
            &format!("  proscenium plans approve {task} --version 1 --hash "),
        ],
    );
    let chart = workspace.run(&["plans", "show", &task, "--mermaid"]);
    assert!(chart.out.starts_with("flowchart TD\n    s1[\"1. Library: "), "{}", chart.out);

    let approved = workspace.run(&["plans", "approve", &task, "--version", "1", "--note", "she may"]);
    assert_eq!((approved.status, approved.problems().as_str()), (0, ""), "{approved:?}");
    assert_shows(
        &approved,
        &[
            "plan 1: approved by keysersoze: she may\n",
            "step 1 Library: started\n",
            "step 1 Library: ReserveBook {",
            "(code R-7)",
            " model calls, ",
        ],
    );
    assert!(!approved.err.contains("plan: 1 step"), "earlier output is not repeated: {}", approved.err);
    assert_eq!(library.reserved().len(), 1);
    assert_refused(&workspace.run(&["plans", "approve", &task]), "plan.illegal_transition", "completed");
    assert!(library.reserved().is_empty());
    let plan = library.json(&["plans", "show", &task]);
    assert_eq!((&plan["status"], &plan["run_status"]), (&json!("completed"), &json!("completed")));
    assert_eq!(plan["steps"][0]["tool_calls"][0]["outcome"], "ok");
    let run = plan["run_id"].as_str().unwrap();
    let shown = workspace.run(&["runs", "show", run]);
    assert_shows(&shown, &[&format!("{run}.1 plan 1\n"), "approved by keysersoze, 20"]);
}

#[test]
fn held_plan_starts_later_and_a_second_approval_names_the_first() {
    let library = Library::with_approval("plan");
    let workspace = &library.workspace;
    let task = library.request_reservation();
    let ran = workspace.run(&["plans", "approve", &task, "--only", "--user", "lucia"]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert_shows(&ran, &["approved, to begin later by lucia", "waits to be started"]);
    assert!(library.reserved().is_empty());
    assert_eq!(library.json(&["plans", "show", &task])["status"], "approved");
    let again = workspace.run(&["plans", "approve", &task, "--only"]);
    assert_refused(&again, "approval.decided", "lucia has decided this already: yes");
    let ran = workspace.run(&["plans", "approve", &task]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_shows(&ran, &["the plan starts, says keysersoze"]);
    assert_eq!(library.reserved().len(), 1);
}

#[test]
fn plan_is_replaced_from_a_file_and_unseen_versions_are_refused() {
    let library = Library::with_approval("plan");
    let workspace = &library.workspace;
    let task = library.request_reservation();
    let mut plan = library.json(&["plans", "show", &task]);
    let purpose = "Reserve the book \"Emma\" from 3 July for 7 days at the station branch";
    plan["plan"]["steps"][0]["purpose"] = purpose.into();
    workspace.write("plan.json", &plan.to_string());
    let ran = workspace.run(&["plans", "modify", &task, "--file", "plan.json", "--note", "a week will do"]);
    assert_eq!((ran.status, ran.problems().as_str()), (3, ""), "{ran:?}");
    assert_shows(
        &ran,
        &[
            "plan 2, changed by hand: 1 step (by keysersoze): a week will do\n",
            "  ~ step 1 Library: purpose \"",
            &format!("  proscenium plans approve {task} --version 2 --hash "),
        ],
    );
    let shown = workspace.run(&["plans", "show", &task]);
    assert_shows(
        &shown,
        &["Version 2, changed by hand by keysersoze: a week will do\n  ~ step 1 Library: purpose"],
    );
    let plan = library.json(&["plans", "show", &task]);
    assert_eq!((&plan["version"], &plan["versions"][1]["cause"]), (&json!(2), &json!("edit")));
    assert_eq!(plan["versions"][1]["diff"].as_array().unwrap().len(), 1);

    let stale = workspace.run(&["plans", "approve", &task, "--version", "1"]);
    assert_refused(&stale, "approval.changed", "~ step 1 Library: purpose");
    // The file contains the version it was based on, which is outdated by now.
    let stale = workspace.run(&["plans", "modify", &task, "--file", "plan.json"]);
    assert_refused(&stale, "approval.changed", "~ step 1 Library: purpose");
    assert_eq!(library.json(&["plans", "show", &task])["version"], 2);
    for (text, expected) in [("{\"steps\": [{}]}", "holds no plan"), ("no", "holds no plan")] {
        workspace.write("bad.json", text);
        let ran = workspace.run(&["plans", "modify", &task, "--file", "bad.json"]);
        assert!(ran.status == 2 && ran.err.contains(expected), "{ran:?}");
    }
    let unknown = r#"{"needs_execution": true, "steps": [{"step_number": 1, "scene_name": "Attic"}]}"#;
    let ran = workspace.pipe(&["plans", "modify", &task, "--file", "-"], unknown);
    assert_refused(&ran, "plan.invalid", "Attic");
    assert!(library.reserved().is_empty());
    let ran = workspace.run(&["plans", "approve", &task, "--version", "2"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(library.reserved().len(), 1);
}

#[test]
fn multi_version_plan_is_approved_by_one_version_only() {
    let library = Library::with_approval("plan");
    let workspace = &library.workspace;
    let task = library.request_reservation();
    let mut plan = library.json(&["plans", "show", &task]);
    plan["plan"]["steps"][0]["purpose"] = json!("Reserve the book \"Emma\" for 7 days at the station branch");
    workspace.write("plan.json", &plan.to_string());
    let ran = workspace.run(&["plans", "modify", &task, "--file", "plan.json"]);
    assert_eq!(ran.status, 3, "{ran:?}");
    assert_refused(&workspace.run(&["plans", "approve", &task]), "plan.version_required", "version 2");
    assert!(library.reserved().is_empty());
    // An approval chosen by its own id is shown first, and has one version.
    let listed = library.json(&["approvals", "list"]);
    let id = listed[0]["approval_id"].as_str().unwrap();
    let ran = workspace.run(&["approvals", "decide", id, "yes"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_shows(&ran, &[&format!("Decides {id}:\nWaits for a person's yes: plan 2"), "for 7 days"]);
    assert_eq!(library.reserved().len(), 1);
}

#[test]
fn approval_is_selected_by_a_unique_id_prefix() {
    let library = Library::with_approval("call");
    let workspace = &library.workspace;
    library.request_reservation();
    let ran = workspace.run(&["chat", &RESERVE.replace("Emma", "Persuasion")]);
    assert_eq!(ran.status, 3, "{ran:?}");
    let listed = library.json(&["approvals", "list"]);
    let ids: Vec<&str> = [0, 1].map(|at| listed[at]["approval_id"].as_str().unwrap()).to_vec();
    let differ = ids[0].bytes().zip(ids[1].bytes()).position(|(one, other)| one != other).unwrap();
    let (common, only) = (&ids[0][..differ], &ids[0][..=differ]);
    for (name, status, code) in
        [(common, 2, "approval.ambiguous"), ("", 2, "approval.ambiguous"), ("ffff", 1, "approval.unknown")]
    {
        let ran = workspace.run(&["approvals", "decide", name, "yes"]);
        assert!(ran.status == status && ran.err.contains(&format!("error[{code}]")), "{name:?}: {ran:?}");
    }
    assert!(library.reserved().is_empty());
    let shown = workspace.run(&["approvals", "show", only]);
    assert_shows(&shown, &[&format!("Approval: {}\n", ids[0])]);
    let ran = workspace.run(&["approvals", "decide", only, "yes"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_shows(
        &ran,
        &[&format!("Decides {}:\n", ids[0]), "with exactly these arguments\n  {\n", "\"Emma\""],
    );
    let reserved = library.reserved();
    assert_eq!((reserved.len(), &reserved[0]["title"]), (1, &json!("Emma")), "{reserved:?}");
    // Only one of them is pending: their common prefix identifies it now.
    let ran = workspace.run(&["approvals", "decide", common, "no"]);
    assert_shows(&ran, &[&format!("Decides {}:\n", ids[1])]);
}

#[test]
fn waiting_plan_is_cancelled_and_then_deleted() {
    let library = Library::with_approval("plan");
    let workspace = &library.workspace;
    let task = library.request_reservation();
    assert_refused(
        &workspace.run(&["plans", "delete", &task]),
        "plan.active",
        &format!("plans cancel {task}"),
    );
    let ran = workspace.run(&["plans", "cancel", &task[..13]]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert_shows(&ran, &["run: cancelled by keysersoze", &format!("Plan {task} is cancelled.")]);
    assert_eq!(library.json(&["plans", "list"])[0]["status"], "cancelled");
    assert_refused(&workspace.run(&["plans", "approve", &task]), "plan.illegal_transition", "cancelled");
    assert_refused(&workspace.run(&["plans", "resume", &task]), "run.not_resumable", "cancelled");
    assert!(workspace.run(&["approvals"]).out.starts_with("No approval is pending."));
    let ran = workspace.run(&["plans", "delete", &task]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert_refused(&workspace.run(&["plans", "show", &task]), "plan.unknown", "plans list");
    assert!(workspace.run(&["plans"]).out.starts_with("There are no such plans."));
    assert!(library.reserved().is_empty());
}

#[test]
fn call_is_shown_and_runs_with_the_approvers_arguments() {
    let library = Library::with_approval("call");
    let workspace = &library.workspace;
    library.request_reservation();
    let listed = library.json(&["approvals", "list"]);
    assert_eq!((&listed[0]["about"], &listed[0]["state"]), (&json!("call"), &json!("open")));
    let id = listed[0]["approval_id"].as_str().unwrap().to_owned();
    let table = workspace.run(&["approvals", "list"]);
    assert!(table.out.lines().nth(1).unwrap().starts_with(&id), "{}", table.out);
    let shown = workspace.run(&["approvals", "show", &id]);
    assert_shows(
        &shown,
        &["with exactly these arguments\n  {\n", "    \"days\": 21", "    \"title\": \"Emma\""],
    );
    let document = library.json(&["approvals", "show", &id]);
    let mut arguments = document["arguments"].clone();
    arguments["days"] = json!("many");
    let decide = |arguments: &Value| {
        workspace.run(&[
            "approvals",
            "decide",
            &id,
            "yes",
            "--arguments",
            &arguments.to_string(),
            "--note",
            "no more",
        ])
    };
    assert_refused(&decide(&arguments), "approval.arguments", "days");
    assert!(library.reserved().is_empty());
    arguments["days"] = json!(7);
    let ran = decide(&arguments);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert_shows(&ran, &["approved with other arguments by keysersoze: no more", "\"days\":7"]);
    let reserved = library.reserved();
    assert_eq!((reserved.len(), &reserved[0]["days"]), (1, &json!(7)), "{reserved:?}");
    assert_refused(&workspace.run(&["approvals", "decide", &id, "yes"]), "approval.decided", "keysersoze");
    let ran = workspace.run(&["approvals", "list", "--all"]);
    assert!(ran.out.contains("decided"), "{}", ran.out);
    assert_shows(
        &workspace.run(&["approvals", "show", &id]),
        &["approved with other arguments by keysersoze", ": no more"],
    );
    let ran = workspace.run(&["approvals", "show", "01976c8e-0000-7000-8000-000000000001.1"]);
    assert_refused(&ran, "approval.unknown", "approvals list");
}

#[test]
fn piped_line_with_only_yes_or_no_decides() {
    let library = Library::with_approval("plan");
    let ran = library.workspace.pipe(&["chat"], &format!("{RESERVE}\nYes, please.\n"));
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert_shows(&ran, &["plan 1: approved by keysersoze", "step 1 Library: ReserveBook {", "(code R-7)"]);
    assert_eq!(library.reserved().len(), 1);
    let ran = library.workspace.pipe(&["chat"], &format!("{RESERVE}\nno\n"));
    assert_eq!(ran.status, 1, "{ran:?}");
    assert_shows(&ran, &["plan 1: not approved by keysersoze"]);
    assert!(library.reserved().is_empty());
}

#[test]
fn approval_and_dry_run_flags_work_on_the_command_line() {
    let library = Library::with_approval("none");
    let workspace = &library.workspace;
    let ran = workspace.run(&["chat", "--dry-run", RESERVE]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert_shows(&ran, &["\"dry_run\":true"]);
    assert!(library.reserved().is_empty());
    let ran = workspace.run(&["chat", "--require-approval", "--json", RESERVE]);
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.status, &answer["status"]), (3, &json!("waiting")));
    let task = answer["task_id"].as_str().unwrap();
    assert_eq!(library.json(&["plans", "approve", task])["run_status"], "completed");
    assert_eq!(library.reserved().len(), 1);
}

#[test]
fn plans_are_read_only_while_another_process_owns_the_directory() {
    let library = Library::with_approval("plan");
    let workspace = &library.workspace;
    let task = library.request_reservation();
    // As a killed server would leave it.
    std::fs::write(workspace.data().join("server"), "pid 1\nurl http://127.0.0.1:9\n").unwrap();
    let mut owner = workspace.spawn(&["chat"]);
    owner.write("Che tempo fa a Milano?\n");
    owner.read_stderr_until("model calls");
    assert_shows(&workspace.run(&["plans"]), &[&task]);
    for line in [&["plans", "approve", &task][..], &["plans", "delete", &task]] {
        assert_refused(&workspace.run(line), "store.in_use", "not a server that is ready");
    }
    assert_eq!(owner.end().status, 0);
    assert_eq!(workspace.run(&["plans", "approve", &task]).status, 0);
    assert_eq!(library.reserved().len(), 1);
}

#[cfg(unix)]
#[test]
fn decisions_are_sent_to_the_server_that_owns_the_directory() {
    let library = Library::with_approval("plan");
    let workspace = &library.workspace;
    let (task, changed, cancelled) =
        (library.request_reservation(), library.request_reservation(), library.request_reservation());
    let server = workspace.serve(&[]);
    let ran = workspace.run(&["plans", "approve", &task, "--user", "lucia"]);
    assert!(ran.status == 2 && ran.err.contains("error[usage.user]"), "{ran:?}");
    let ran = workspace.run(&["plans", "approve", &task, "--version", "1", "--note", "she may"]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert_shows(
        &ran,
        &[
            "plan 1: approved by keysersoze: she may\n",
            "step 1 Library: ReserveBook {",
            "(code R-7)",
            " model calls, ",
        ],
    );
    assert_eq!(library.reserved().len(), 1);
    assert_refused(&workspace.run(&["plans", "approve", &task]), "plan.illegal_transition", "completed");

    let mut plan = library.json(&["plans", "show", &changed]);
    plan["plan"]["steps"][0]["purpose"] = "Reserve the book \"Emma\" from 3 July for 7 days".into();
    workspace.write("plan.json", &plan.to_string());
    let ran = workspace.run(&["plans", "modify", &changed, "--file", "plan.json"]);
    assert_eq!((ran.status, ran.problems().as_str()), (3, ""), "{ran:?}");
    assert_shows(
        &ran,
        &["plan 2, changed by hand: 1 step (by keysersoze)", "  ~ step 1 Library: purpose \""],
    );
    let stale = workspace.run(&["plans", "approve", &changed, "--version", "1"]);
    assert_refused(&stale, "approval.changed", "~ step 1 Library: purpose");
    assert_eq!(stale.err.matches("~ step 1 Library: purpose").count(), 1, "{}", stale.err);

    assert_refused(&workspace.run(&["plans", "delete", &cancelled]), "plan.active", "cancel");
    let ran = workspace.run(&["plans", "cancel", &cancelled]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert_shows(&ran, &[&format!("Plan {cancelled} is cancelled.")]);
    assert_eq!(workspace.run(&["plans", "delete", &cancelled]).status, 0);
    assert_refused(&workspace.run(&["plans", "show", &cancelled]), "plan.unknown", "plans list");

    let id = library.json(&["approvals", "list"])[0]["approval_id"].as_str().unwrap().to_owned();
    let ran = workspace.run(&["approvals", "decide", &id, "no"]);
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert_shows(&ran, &["plan 2: not approved by keysersoze"]);
    assert!(library.reserved().is_empty());
    server.signal("TERM");
    assert_eq!(server.end().status, 0);
    assert!(!workspace.data().join("server").exists(), "its address file is removed with it");
}

#[cfg(unix)]
#[test]
fn key_of_the_environment_is_sent_to_a_server_with_keys() {
    let library = Library::with_approval("plan");
    let workspace = &library.workspace;
    let task = library.request_reservation();
    let made = workspace
        .run(&["keys", "create", "--tenant", "local", "--user", "lucia", "--role", "approver", "--json"]);
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let key = made["key"].as_str().unwrap().to_owned();
    let _server = workspace.serve(&[]);
    assert_refused(&workspace.run(&["plans", "approve", &task]), "auth.missing", "PROSCENIUM_API_KEY");
    assert!(library.reserved().is_empty());
    let ran =
        workspace.spawn_with(&["plans", "approve", &task], &[("PROSCENIUM_API_KEY", key.clone())]).end();
    assert_eq!((ran.status, ran.problems().as_str()), (0, ""), "{ran:?}");
    assert_shows(&ran, &["plan 1: approved by lucia\n", "(code R-7)"]);
    assert_eq!(library.reserved().len(), 1);
    assert!(!ran.out.contains(&key), "{}", ran.out);
    // Not a configuration key, although its name looks like one.
    let ran = workspace.spawn_with(&["check"], &[("PROSCENIUM_API_KEY", key.clone())]).end();
    assert!(ran.status == 0 && !ran.out.contains("PROSCENIUM_API_KEY"), "{ran:?}");
}
