//! Recovery: a model that chooses how to continue after a call failed, judged by what reached it and the back end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::adapt::ConsultationOutcome;
use proscenium::run::{Event, RunStatus};
use serde_json::{Value, json};

use super::fault_matrix::{World, names, place, rules, run_after_a_kill, serve, write_scene};
use super::process::Workspace;
use crate::support::planner_engine::{
    QuestionKind, choice, first_option, offered_options, plan, requests, step,
};
use crate::support::{FaultyBackend, FinishedRun, Gate, Misbehaviour, Scripted, ScriptedLlm, Setup, section};

fn status(status: u16) -> Misbehaviour {
    Misbehaviour::Status(status, Vec::new())
}

/// The first requests to a place, as many as its last part says after `x`, fail with its status, such as `409x2`. What
/// follows after `-` tells places apart.
fn failing(place: &str, nth: usize) -> Misbehaviour {
    let cell = place.rsplit('/').next().unwrap_or_default();
    let (code, times) = cell.split_once('x').unwrap_or((cell, "1"));
    let times = times.split('-').next().unwrap_or_default();
    match nth < times.parse().unwrap_or(usize::MAX) {
        true => status(code.parse().unwrap_or(409)),
        false => Misbehaviour::Answer,
    }
}

/// One attempt by predefined logic, so that a model is asked at the first failure.
fn one_attempt(setup: Setup) -> Setup {
    setup.set("execution.policies.attempts", 1)
}

fn choosing(id: &'static str) -> ScriptedLlm {
    rules().recovery(move |request, _| Scripted::forced(request, choice(id))).start()
}

/// A plan of one step with these calls.
fn prepared(calls: &[(&str, &str)]) -> Value {
    let tools: Vec<&str> = calls.iter().map(|(tool, _)| *tool).collect();
    let calls = calls
        .iter()
        .map(|(tool, cell)| json!({"tool": tool, "arguments": json!({"cell": cell}).to_string()}));
    let mut step = step(1, "Desk", &tools, Value::Null);
    step["prepared_calls"] = calls.collect();
    step["if_needed"] = json!([]);
    plan(json!([step]))
}

async fn world(llm: ScriptedLlm, more: &str) -> World {
    World::of_model(llm, Some("adaptive"), None, more, (failing, one_attempt)).await
}

fn asked(world: &World) -> usize {
    requests(&world.llm, QuestionKind::Recovery).len()
}

#[tokio::test]
async fn chosen_retry_answers_the_request() {
    let world = world(choosing("retry"), "").await;
    let run = world.ask("Look", "409x1").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!((world.wire("Look", "409x1"), asked(&world)), (2, 1));
    assert_eq!(run.consultations(), [(ConsultationOutcome::Asked, Some("retry"))]);
    let Some(Event::Consultation { model, reason, .. }) =
        run.events.iter().map(|event| &event.body).find(|event| matches!(event, Event::Consultation { .. }))
    else {
        panic!("{:#?}", names(&run))
    };
    assert_eq!((model.as_deref(), reason.as_str()), (Some("scripted"), "scripted"));
}

#[tokio::test]
async fn below_the_level_adaptive_no_model_is_asked() {
    for (level, mode) in [(None, None), (None, Some("adaptive")), (Some("basic"), None)] {
        let world = World::of_model(choosing("retry"), level, mode, "", (failing, one_attempt)).await;
        let run = world.ask("Look", "409x1").await;
        assert_eq!((world.wire("Look", "409x1"), asked(&world)), (1, 0), "{level:?} {mode:?}");
        assert!(run.consultations().is_empty());
    }
}

#[tokio::test]
async fn scene_at_basic_is_not_consulted_about() {
    let llm = choosing("retry");
    let (backend, dir) = (FaultyBackend::start(failing), tempfile::TempDir::new().unwrap());
    write_scene(dir.path(), backend.address(), "");
    let scene = dir.path().join("desk/scene.toml");
    let text = std::fs::read_to_string(&scene).unwrap();
    std::fs::write(&scene, text.replace("instructions =", "level = \"basic\"\ninstructions =")).unwrap();
    let setup = Setup::scripted(&llm).alone().scenes(dir.path()).set("scenes.allow_private_addresses", true);
    let test = one_attempt(setup.set("execution.level", "adaptive")).start().await;
    test.chat("s", "Look cell 409x1").await;
    assert_eq!(requests(&llm, QuestionKind::Recovery).len(), 0);
    assert_eq!(backend.requests(&place("Look", "409x1")).len(), 1);
}

#[tokio::test]
async fn mode_strict_offers_nothing_but_the_same_call_the_user_and_the_end() {
    let llm = rules().recovery(|request, _| Scripted::forced(request, first_option(request))).start();
    let more = "optional = true";
    let world = World::of_model(llm, Some("adaptive"), Some("strict"), more, (failing, one_attempt)).await;
    world.ask("Look", "409x9").await;
    let offered = offered_options(&requests(&world.llm, QuestionKind::Recovery)[0]);
    assert_eq!(offered, ["retry", "ask_user", "abort"]);
    let world = self::world(choosing("abort"), more).await;
    world.ask("Look", "409x9").await;
    let offered = offered_options(&requests(&world.llm, QuestionKind::Recovery)[0]);
    assert_eq!(offered, ["skip", "retry", "ask_user", "abort"]);
}

#[tokio::test]
async fn retry_is_not_offered_where_it_cannot_help() {
    let world = world(choosing("abort"), "").await;
    world.ask("Look", "422x9").await;
    let offered = offered_options(&requests(&world.llm, QuestionKind::Recovery)[0]);
    assert_eq!(offered, ["ask_user", "abort"]);
}

#[tokio::test]
async fn forged_choice_is_sent_back_and_the_next_one_counts() {
    let llm = rules()
        .recovery(|request, nth| {
            Scripted::forced(request, choice(["do_it_twice", "skip", "retry"][nth.min(2)]))
        })
        .start();
    let world = world(llm, "").await;
    let run = world.ask("Look", "409x1").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!((world.wire("Look", "409x1"), asked(&world)), (2, 3));
    let second = requests(&world.llm, QuestionKind::Recovery)[1].to_string();
    assert!(second.contains("choice must be one of: retry, ask_user, abort"), "{second}");
}

#[tokio::test]
async fn prose_and_silence_leave_the_decision_to_predefined_logic() {
    let llm = rules().recovery(|_, _| Scripted::Text("I would try again.".to_owned())).start();
    let world = self::world(llm, "").await;
    let run = world.ask("Look", "409x1").await;
    assert_ne!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!(world.wire("Look", "409x1"), 1);
    assert_eq!(asked(&world), 4, "one question and its repairs");
    assert_eq!(run.consultations(), [(ConsultationOutcome::Asked, None)]);
    let down = rules().recovery(|_, _| Scripted::status(400)).start();
    let world = self::world(down, "").await;
    let run = world.ask("Look", "409x1").await;
    assert_ne!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!(world.wire("Look", "409x1"), 1);
    assert_eq!(asked(&world), 1);
    let gate = Gate::closed();
    let held = gate.clone();
    let hangs =
        rules().recovery(move |request, _| Scripted::forced(request, choice("retry")).held(&held)).start();
    let set = |setup: Setup| one_attempt(setup).set("execution.consultations.timeout_ms", 300);
    let world = World::of_model(hangs, Some("adaptive"), None, "", (failing, set)).await;
    let run = world.ask("Look", "409x1").await;
    assert_ne!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!(world.wire("Look", "409x1"), 1);
    gate.open();
}

#[tokio::test]
async fn user_is_asked_in_our_words_and_no_model_reads_the_back_ends() {
    let world = world(choosing("ask_user"), "").await;
    let run = world.ask("Look", "422x9").await;
    assert_eq!(run.answer.status, RunStatus::NeedsInput, "{:#?}", names(&run));
    let text = &run.answer.answer;
    assert!(text.contains("Look (cell: 422x9) could not be done"), "{text}");
    assert!(text.contains("Should it be tried again"), "{text}");
    let question = requests(&world.llm, QuestionKind::Recovery)[0].clone();
    let messages = question["messages"].to_string();
    for hidden in ["422x9", "127.0.0.1", "Look cell"] {
        assert!(!messages.contains(hidden), "{hidden} is in {messages}");
    }
    let failure: Value = serde_json::from_str(&section(&question, "failure").unwrap()).unwrap();
    assert_eq!((&failure["class"], &failure["code"]), (&json!("bad_data"), &json!("http.status")));
}

#[tokio::test]
async fn end_of_a_step_keeps_its_writes_from_beginning() {
    let llm = rules()
        .plan(|request, _| Scripted::forced(request, prepared(&[("Look", "409x9"), ("Book", "1x0")])))
        .recovery(|request, _| Scripted::forced(request, choice("abort")));
    let world = world(llm.start(), "").await;
    let run = world.test.chat("s", "Look at cell 409x9 and then book cell 1x0.").await;
    assert_eq!((world.wire("Look", "409x9"), world.wire("Book", "1x0")), (1, 0), "{:#?}", names(&run));
    assert_ne!(run.answer.status, RunStatus::Completed);
}

#[tokio::test]
async fn write_that_may_be_done_is_referred_to_a_person_and_no_model_is_asked() {
    let world = world(choosing("retry"), "").await;
    let run = world.ask("Book", "503x9").await;
    assert_eq!((run.answer.approvals.len(), asked(&world)), (1, 0), "{:#?}", names(&run));
    assert_eq!(world.wire("Book", "503x9"), 1);
}

#[tokio::test]
async fn keyed_write_gets_one_more_attempt_with_the_same_key() {
    let world = world(choosing("retry"), "").await;
    let run = world.ask("Pay", "503x2").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    let requests = world.backend.requests(&place("Pay", "503x2"));
    assert_eq!((requests.len(), asked(&world)), (3, 1));
    assert!(requests.windows(2).all(|pair| pair[0].key.is_some() && pair[0].key == pair[1].key));
}

#[tokio::test]
async fn alternative_is_called_where_a_model_chooses_it() {
    let more = "alternative = { tool = \"{tool}Elsewhere\", arguments = { cell = \"/arguments/cell\" } }";
    let script = |place: &str, nth: usize| match place.contains("Elsewhere") {
        true => Misbehaviour::Answer,
        false => failing(place, nth),
    };
    let world =
        World::of_model(choosing("alternative"), Some("adaptive"), None, more, (script, one_attempt)).await;
    let run = world.ask("Look", "409x9").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", names(&run));
    assert_eq!((world.wire("Look", "409x9"), world.wire("LookElsewhere", "409x9")), (1, 1));
    // A refusal is not walked around by another source.
    world.ask("Look", "403x9").await;
    let offered = offered_options(requests(&world.llm, QuestionKind::Recovery).last().unwrap());
    assert_eq!(offered, ["ask_user", "abort"]);
}

#[tokio::test]
async fn offline_model_chooses_the_first_option() {
    let llm = rules().start();
    let set = |setup: Setup| one_attempt(setup).set("llm.purposes.recovery", "[\"offline\"]");
    let world = World::of_model(llm, Some("adaptive"), None, "", (failing, set)).await;
    let run = world.ask("Look", "409x1").await;
    assert_eq!(
        (run.answer.status, world.wire("Look", "409x1")),
        (RunStatus::Completed, 2),
        "{:#?}",
        names(&run)
    );
    assert_eq!(asked(&world), 0, "no model was asked");
}

/// A killed server with a consulted call, and the next one, which finishes the run.
async fn finished_after_a_kill(tool: &str, place_of_kill: &str) -> (FaultyBackend, usize, Value) {
    let cell = if tool == "Pay" { "503x2" } else { "409x1" };
    // The plan is asked for first.
    let skipped = u32::from(place_of_kill.contains("model"));
    let (words, killed_at) = (format!("{tool} cell {cell}"), (place_of_kill, skipped));
    finished_after_a_restart(choosing("retry"), &words, killed_at, |_| {}).await
}

/// A server that is killed there, and the next one, which finishes the run with the scenes as they are by then.
async fn finished_after_a_restart(
    llm: ScriptedLlm,
    words: &str,
    killed_at: (&str, u32),
    edit: impl FnOnce(&Path),
) -> (FaultyBackend, usize, Value) {
    let (backend, workspace) = (FaultyBackend::start(failing), Workspace::bare());
    write_scene(&workspace.path().join("scenes"), backend.address(), "");
    workspace.write_house(
        &llm,
        "[planning]\nfallback_enabled = false\n\
         [execution]\nlevel = \"adaptive\"\nconfirm = \"never\"\n\
         [execution.policies]\nbackoff_ms = 20\nattempts = 1\n",
    );
    let scene = workspace.path().join("scenes/desk/scene.toml");
    let run = run_after_a_kill(&workspace, killed_at, words, || edit(&scene)).await;
    let asked = requests(&llm, QuestionKind::Recovery).len();
    (backend, asked, run)
}

#[tokio::test]
async fn consultation_survives_a_kill_and_nothing_is_sent_twice() {
    for (tool, cell, attempts) in [("Look", "409x1", 2), ("Pay", "503x2", 3)] {
        for at in ["after:unexpected", "after:model_asked", "after:model_replied", "after:consultation"] {
            let (backend, asked, run) = finished_after_a_kill(tool, at).await;
            let requests = backend.requests(&place(tool, cell));
            assert_eq!(run["status"], "completed", "{tool} {at}: {run:#}");
            // A read whose end was not on disk may be made again.
            let repeated = requests.len() == attempts + 1 && tool == "Look";
            assert!(requests.len() == attempts || repeated, "{tool} {at}: {}", requests.len());
            assert!(requests.windows(2).all(|pair| pair[0].key == pair[1].key), "{tool} {at}");
            // The back end answers the repeated read, so that nobody need be asked.
            let min = usize::from(tool == "Pay");
            assert!((min..=2).contains(&asked), "{tool} {at}: {asked}");
        }
    }
}

#[tokio::test]
async fn model_is_asked_again_by_a_resumed_run_whose_tool_has_changed() {
    let two_steps = || {
        let mut second = prepared(&[("Look", "409x1-b")])["steps"][0].take();
        (second["step_number"], second["depends_on_step"]) = (json!(2), json!(1));
        plan(json!([prepared(&[("Look", "409x1-a")])["steps"][0], second]))
    };
    let rules = rules().plan(move |request, _| Scripted::forced(request, two_steps()));
    let llm = rules.recovery(|request, _| Scripted::forced(request, choice("retry"))).start();
    let words = "Look at the cells 409x1-a and 409x1-b";
    let (_backend, asked, run) = finished_after_a_restart(llm, words, ("after:backed_off", 0), |scene| {
        let before = std::fs::read_to_string(scene).unwrap();
        std::fs::write(scene, before.replace("Look something up", "Look something else up")).unwrap();
    })
    .await;
    assert_eq!((&run["status"], asked), (&json!("completed"), 2), "{run:#}");
}

/// A model that answers a consultation only when the gate opens.
fn gated(gate: &Gate, id: &'static str) -> ScriptedLlm {
    let held = gate.clone();
    rules().recovery(move |request, _| Scripted::forced(request, choice(id)).held(&held)).start()
}

/// Starts so many runs whose calls fail alike, waits until all wait for the consultation, opens the gate, and returns
/// the ended runs.
async fn storm(world: &World, gate: &Gate, runs: usize) -> Vec<FinishedRun> {
    let submitted = (0..runs)
        .map(async |n| world.test.submit(&format!("s{n}"), &format!("Look cell 409x1-{n}")).await.unwrap());
    let tickets = futures::future::join_all(submitted).await;
    crate::support::eventually("every run waits for the consultation", async || {
        let mut waiting = 0;
        for ticket in &tickets {
            let events = world.test.events(ticket.run).await;
            let asks = events.iter().filter(|event| matches!(event.body, Event::ModelAsked { .. })).count();
            waiting += usize::from(asks == 2);
        }
        waiting == runs
    })
    .await;
    gate.open();
    futures::future::join_all(tickets.into_iter().map(|ticket| world.test.finish(ticket))).await
}

fn patient(setup: Setup) -> Setup {
    one_attempt(setup).set("execution.consultations.timeout_ms", 60_000)
}

#[tokio::test]
async fn equal_failures_of_many_runs_are_one_question() {
    let (gate, runs) = (Gate::closed(), 60);
    let world = World::of_model(gated(&gate, "retry"), Some("adaptive"), None, "", (failing, patient)).await;
    let finished = storm(&world, &gate, runs).await;
    assert_eq!(asked(&world), 1, "one flight");
    let shared =
        finished.iter().filter(|run| run.consultations()[0].0 == ConsultationOutcome::Cached).count();
    assert_eq!(shared, runs - 1);
    assert!(finished.iter().all(|run| run.answer.status == RunStatus::Completed));
}

#[tokio::test]
async fn cancelled_leader_leaves_the_question_to_the_next_run() {
    let (gate, first) = (Gate::closed(), Arc::new(AtomicUsize::new(0)));
    let (held, counted) = (gate.clone(), first.clone());
    let llm = rules()
        .recovery(move |request, _| {
            let reply = Scripted::forced(request, choice("abort"));
            if counted.fetch_add(1, Ordering::SeqCst) == 0 { reply.held(&held) } else { reply }
        })
        .start();
    let world = world(llm, "").await;
    let leader = world.test.submit("a", "Look cell 409x9").await.unwrap();
    crate::support::eventually("the leader asks", async || asked(&world) == 1).await;
    let follower = world.test.submit("b", "Look cell 409x8").await.unwrap();
    let waits = async || {
        let events = world.test.events(follower.run).await;
        events.iter().filter(|event| matches!(event.body, Event::ModelAsked { .. })).count() == 2
    };
    crate::support::eventually("the follower waits", waits).await;
    world.test.engine.cancel(&world.test.tenant, leader.run, "keysersoze").await.unwrap();
    let led = world.test.finish(leader).await;
    let followed = world.test.finish(follower).await;
    gate.open();
    assert_eq!(led.answer.status, RunStatus::Cancelled);
    assert_eq!(followed.consultations(), [(ConsultationOutcome::Asked, Some("abort"))]);
    assert_eq!(asked(&world), 2);
}

#[tokio::test]
async fn outage_of_the_model_is_one_failure_for_all_that_wait() {
    let gate = Gate::closed();
    let held = gate.clone();
    let llm = rules().recovery(move |_, _| Scripted::status(500).held(&held)).start();
    let world = World::of_model(llm, Some("adaptive"), None, "", (failing, patient)).await;
    let finished = storm(&world, &gate, 20).await;
    assert!(finished.iter().all(|run| run.answer.status != RunStatus::Completed));
    assert!(asked(&world) <= 4, "the attempts of one question: {}", asked(&world));
    let shared = finished.iter().filter(|run| run.consultations()[0] == (ConsultationOutcome::Cached, None));
    assert_eq!(shared.count(), 19, "one question was put");
}

#[tokio::test]
async fn spent_budget_and_full_limits_leave_the_decision_to_predefined_logic() {
    // The question for the plan spends what there is, but for a short reply.
    let priced = |setup: Setup| {
        let setup = setup.model("input_usd_per_million", "0.001").model("output_usd_per_million", "1000.0");
        one_attempt(setup).set("budget.run_usd", "5.0")
    };
    let llm = rules()
        .plan(|request, _| Scripted::forced(request, prepared(&[("Look", "409x9")])).metered(1_000, 0, 4_900))
        .start();
    let world = World::of_model(llm, Some("adaptive"), None, "", (failing, priced)).await;
    let run = world.ask("Look", "409x9").await;
    assert_eq!(asked(&world), 0, "{:#?}", names(&run));
    assert_eq!(run.consultations(), [(ConsultationOutcome::OverBudget, None)]);
    let limited = |setup: Setup| {
        let setup = one_attempt(setup).set("limits.max_wait_ms", 0);
        setup.set("limits.tenant.requests_per_minute", 1)
    };
    let world = World::of_model(choosing("retry"), Some("adaptive"), None, "", (failing, limited)).await;
    let run = world.ask("Look", "409x9").await;
    assert_eq!(asked(&world), 0, "{:#?}", names(&run));
    assert_eq!(run.consultations(), [(ConsultationOutcome::RateLimited, None)]);
}

#[tokio::test]
async fn run_has_a_bound_of_consultations() {
    let cells = ["409x9-a", "409x9-b", "409x9-c", "409x9-d", "409x9-e"];
    let llm = rules()
        .plan(move |request, _| Scripted::forced(request, prepared(&cells.map(|cell| ("Look", cell)))))
        .recovery(|request, _| Scripted::forced(request, choice("retry")))
        .start();
    let set = |setup: Setup| one_attempt(setup).set("execution.consultations.max_per_run", 1);
    let world = World::of_model(llm, Some("adaptive"), None, "", (failing, set)).await;
    let run = world.test.chat("s", &format!("Look at the cells {}.", cells.join(", "))).await;
    assert_eq!(asked(&world), 1, "equal failures are one question: {:#?}", run.consultations());
    let over = |(how, _): &&(ConsultationOutcome, Option<&str>)| *how == ConsultationOutcome::OverBudget;
    let ends = run.consultations();
    // After the chosen retry, each call fails once more: another scenario, beyond the bound.
    assert_eq!(ends.iter().filter(over).count(), 5, "{ends:#?}");
    assert_eq!(ends.len(), 10, "{ends:#?}");
}

/// How many runs wait for a model to say how to continue, as the server on `address` explains them.
async fn waiting_for_a_choice(client: &reqwest::Client, address: &str) -> usize {
    let get = async |path: String| -> Value {
        client.get(format!("{address}{path}")).send().await.unwrap().json().await.unwrap()
    };
    let list = get("/api/runs?limit=100".to_owned()).await;
    let mut waiting = 0;
    for run in list["runs"].as_array().unwrap() {
        let explained = get(format!("/api/runs/{}/explain", run["run_id"].as_str().unwrap())).await;
        let last = explained["unexpected"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        waiting += usize::from(last["consultation"].is_object() && last["consultation"]["how"].is_null());
    }
    waiting
}

#[tokio::test]
async fn runs_that_wait_for_one_consultation_when_the_server_is_killed_all_end_with_one_answer() {
    const RUNS: usize = 16;
    let (backend, workspace, gate) = (FaultyBackend::start(failing), Workspace::bare(), Gate::closed());
    let llm = gated(&gate, "retry");
    write_scene(&workspace.path().join("scenes"), backend.address(), "");
    workspace.write_house(
        &llm,
        "[planning]\nfallback_enabled = false\n\
         [execution]\nlevel = \"adaptive\"\nconfirm = \"never\"\n\
         [execution.policies]\nbackoff_ms = 20\nattempts = 1\n\
         [execution.consultations]\ntimeout_ms = 60000\n[execution.breaker]\nfailures = 0\n",
    );
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let (killed, address) = serve(&workspace, &[]);
    let cell = |n: usize| format!("503x2-{n}");
    let sent: Vec<_> = (0..RUNS)
        .map(|n| {
            let words = format!("Pay cell {}", cell(n));
            let body =
                json!({"messages": [{"role": "user", "content": words}], "session_id": format!("s{n}")});
            tokio::spawn(client.post(format!("{address}/api/chat")).json(&body).send())
        })
        .collect();
    crate::support::eventually("every run waits for the consultation", async || {
        waiting_for_a_choice(&client, &address).await == RUNS
    })
    .await;
    crate::support::eventually("a model is asked", async || {
        requests(&llm, QuestionKind::Recovery).len() == 1
    })
    .await;
    killed.kill();
    for request in sent {
        assert!(request.await.unwrap().is_err(), "nobody was answered before");
    }
    let (_server, address) = serve(&workspace, &[]);
    crate::support::eventually("every run waits again", async || {
        waiting_for_a_choice(&client, &address).await == RUNS
    })
    .await;
    gate.open();
    let mut runs = Vec::new();
    crate::support::eventually("every run ends", async || {
        let list = client.get(format!("{address}/api/runs?limit=100")).send().await.unwrap();
        runs = list.json::<Value>().await.unwrap()["runs"].as_array().unwrap().clone();
        runs.iter().all(|run| !matches!(run["status"].as_str(), Some("running" | "queued") | None))
    })
    .await;
    assert_eq!(runs.len(), RUNS);
    assert!(runs.iter().all(|run| run["status"] == "completed"), "{runs:#?}");
    assert_eq!(requests(&llm, QuestionKind::Recovery).len(), 2, "one question of each server");
    for n in 0..RUNS {
        let requests = backend.requests(&place("Pay", &cell(n)));
        assert_eq!(requests.len(), 3, "{n}: two failed before, and one more was chosen");
        assert!(requests.windows(2).all(|pair| pair[0].key.is_some() && pair[0].key == pair[1].key), "{n}");
    }
}
