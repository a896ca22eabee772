//! The state after a server is killed at any boundary of its journal and restarted, judged by what reached an
//! external backend: every write at most once, every accepted request one end.
//!
//! A plain run kills once at each boundary; `SOAK=200 cargo test --test promises crash` kills that many
//! times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proscenium::run::{ApprovalSubject, Effect, Envelope, Event, Outcome, RunState, TenantId};
use proscenium::scene::{Catalogue, load_dir};
use proscenium::store::{Page, RunFilter, Store};
use proscenium::tools::NativeTools;
use proscenium::tools::guard::NetworkPolicy;
use rand::Rng;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use strum::VariantNames;

use super::process::{RunningProcess, Workspace};
use super::support::{
    Backend, ReceivedRequest, Reply, Scripted, ScriptedLlm, forced_tool, journal, section, size, tool_names,
    tool_results,
};

/// Kills at each boundary, unless `SOAK` is set.
const KILLS: u64 = 1;
/// Concurrent requests when a server is killed, in addition to earlier unfinished ones.
const CLIENTS: usize = 2;
/// Upper bound for everything that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Every event of a run of this test, each with a boundary before and after it.
const EVENTS: [&str; 15] = [
    "run_queued", "run_started", "run_resumed", "planning", "model_asked", "model_replied", "plan_created",
    "step_started", "scene_replied", "tool_started", "tool_completed", "step_completed", "continuation",
    "answered", "run_completed",
];

/// Additional events of a run whose plan and writes need approval.
const ASKED: [&str; 3] = ["approval_required", "run_waiting", "decided"];

/// The external backend: what reached it, and an optional request to kill a server while it works.
struct CrashBackend {
    backend: Backend,
    killer: Arc<Killer>,
}

#[derive(Default)]
struct Killer {
    pid: Mutex<Option<u32>>,
    /// How many calls pass first.
    left: AtomicI64,
}

impl CrashBackend {
    fn open() -> Self {
        let killer = Arc::new(Killer::default());
        let hand = killer.clone();
        let backend = Backend::start(move |reached: &ReceivedRequest| {
            if hand.left.fetch_sub(1, Ordering::SeqCst) == 0
                && let Some(pid) = hand.pid.lock().unwrap().take()
            {
                kill(pid);
            }
            json!({"done": reached.place})
        });
        Self { backend, killer }
    }
}

fn kill(pid: u32) {
    let line = format!("kill -KILL {pid}");
    assert!(std::process::Command::new("sh").args(["-c", &line]).status().unwrap().success());
}

pub(super) fn scene(name: &str, tools: &[(&str, &str)], address: &str) -> String {
    let mut scene = format!(
        "name = \"{name}\"\ndescription = \"Keeps the {name}.\"\ninstructions = \"Call the tools.\"\n\
         examples = [{{ say = \"Use the {name}\", tool = \"{}\" }}]\n",
        tools[0].0
    );
    for (tool, kind) in tools {
        let (effect, method) =
            if *kind == "read" { ("effect = \"read\"", "GET") } else { ("effect = \"write\"", "POST") };
        let repeat = if *kind == "key" { "repeat = \"key\"" } else { "" };
        scene.push_str(&format!(
            "[[tools]]\nname = \"{tool}\"\ndescription = \"Does {tool}.\"\n{effect}\n{repeat}\n\
             parameters = {{ type = \"object\", required = [\"book\"], properties = {{ book = {{ type = \"string\" }} }} }}\n\
             [tools.http]\nmethod = \"{method}\"\nurl = \"{address}/{tool}?book={{book}}\"\n"
        ));
    }
    scene
}

/// Writes the scenes Shelf and Desk, whose tools are at this address.
pub(super) fn write_shelf_and_desk(workspace: &Workspace, address: &str) {
    let shelf = scene("Shelf", &[("Look", "read"), ("Reserve", "write")], address);
    workspace.write("scenes/shelf/scene.toml", &shelf);
    workspace.write("scenes/desk/scene.toml", &scene("Desk", &[("Renew", "key")], address));
}

/// The models' replies: always the same two steps.
pub(super) fn model_reply(request: &Value) -> Scripted {
    let words = section(request, "request").unwrap_or_default();
    let book = words.rsplit(' ').next().unwrap_or_default().to_owned();
    let reply = match forced_tool(request) {
        Some("CreateExecutionPlan") => Scripted::forced(
            request,
            json!({"needs_execution": true, "reasoning": "Both.", "steps": [
                {"step_number": 1, "scene_name": "Shelf", "purpose": "Reserve it",
                 "expected_tools": ["Look", "Reserve"], "depends_on_step": null},
                {"step_number": 2, "scene_name": "Desk", "purpose": "Renew it",
                 "expected_tools": ["Renew"], "depends_on_step": 1}]}),
        ),
        Some("CheckContinuation") => Scripted::answered(request, "Everything was done."),
        _ => {
            let done = tool_results(request).len();
            let offered = tool_names(request);
            let next =
                ["Look", "Reserve", "Renew"].into_iter().filter(|tool| offered.contains(tool)).nth(done);
            match next {
                Some(tool) => Scripted::call(tool, json!({ "book": book })),
                None => Scripted::Text("It is done.".into()),
            }
        }
    };
    reply.metered(1_000, 0, 100)
}

/// A workspace on which servers are killed, with the backend and the models of all of them.
struct CrashHarness {
    workspace: Workspace,
    ledger: CrashBackend,
    _llm: ScriptedLlm,
    client: reqwest::Client,
    /// Every request with its key.
    asked: Vec<(String, String)>,
    /// Every plan and every write is approved by a person.
    approved: bool,
}

impl CrashHarness {
    fn open() -> Self {
        Self::open_with(false)
    }

    fn open_with(approved: bool) -> Self {
        let ledger = CrashBackend::open();
        let llm = ScriptedLlm::start(|request, _| model_reply(request));
        let workspace = Workspace::bare();
        write_shelf_and_desk(&workspace, ledger.backend.address());
        let approval = "[approval]\nplans = \"writes\"\ncalls = \"writes\"\n";
        workspace.write_priced_house(&llm, if approved { approval } else { "" });
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
        Self { workspace, ledger, _llm: llm, client, asked: Vec::new(), approved }
    }

    fn start(&self, env: &[(&str, String)]) -> Server {
        self.try_start(env).unwrap()
    }

    /// `None` if it ended during recovery, before it was ready.
    fn try_start(&self, env: &[(&str, String)]) -> Option<Server> {
        let line = ["serve", "--addr", "127.0.0.1:0", "--config", "house.toml", "--scenes", "scenes"];
        let mut process = self.workspace.spawn_with(&line, env);
        let Some(address) = process.try_served_at() else {
            let ran = process.end();
            assert_eq!((ran.status, ran.err.contains("error[")), (-1, false), "{ran:?}");
            return None;
        };
        Some(Server { process: Some(process), address })
    }

    /// The life of one server: requests arrive, and it is killed, at the boundary if it reaches it. Returns
    /// whether it reached the boundary before its clients had their answers.
    async fn serve_until_killed(&mut self, env: &[(&str, String)], calls_before: Option<i64>) -> bool {
        let Some(server) = self.try_start(env) else { return true };
        if let Some(left) = calls_before {
            self.ledger.killer.left.store(left, Ordering::SeqCst);
            *self.ledger.killer.pid.lock().unwrap() = server.process.as_ref().map(RunningProcess::id);
        }
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let number = self.asked.len();
            let (words, key) = (format!("Get the book b{number}"), format!("k{number}"));
            self.asked.push((words.clone(), key.clone()));
            clients.push(server.ask_and_approve(&self.client, words, key));
        }
        // They end with an answer or with a broken connection.
        let ended = tokio::time::timeout(PATIENCE, futures::future::join_all(clients)).await.unwrap();
        *self.ledger.killer.pid.lock().unwrap() = None;
        // A connection breaks a moment before the process has ended.
        if ended.iter().any(Result::is_err) { server.await_end().await } else { server.kill() }
    }

    /// A server that is not killed: every run ends, every retrying client gets an answer, and the journal and
    /// the backend agree.
    async fn finish_all(self) {
        let mut reached: Vec<ReceivedRequest> = Vec::new();
        let server = self.start(&[]);
        server.until_idle(&self.client).await;
        for (words, key) in &self.asked {
            let reply = server.ask_and_approve(&self.client, words.clone(), key.clone()).await.unwrap();
            let document = reply.json();
            let document = if reply.status == 200 { &document } else { &document["document"] };
            let status = document["status"].as_str().unwrap_or_else(|| panic!("{reply:#?}"));
            // A write of unknown outcome and a quarantined run are reported as such.
            assert!(["completed", "partial", "failed"].contains(&status), "{document:#}");
        }
        let usage = server.get(&self.client, "/api/usage").await;
        let metrics = server.get(&self.client, "/metrics").await.body;
        server.end();
        reached.extend(self.ledger.backend.take_requests());
        let policy = NetworkPolicy { allow_private: true, allow_hosts: Vec::new() };
        let scenes = load_dir(&self.workspace.path().join("scenes"), &NativeTools::new(), &policy);
        let catalogue = Catalogue::new(scenes.scenes);
        let tenant = TenantId::new("local").unwrap();
        let store = Store::open_read_only(&self.workspace.data()).await.unwrap();
        let mut spent = 0;
        let mut runs = 0;
        let mut after = None;
        loop {
            let page = Page { limit: 500, after };
            let rows = store.runs(&tenant, &RunFilter::default(), &page).await.unwrap();
            let Some(last) = rows.last() else { break };
            after = Some(last.run);
            for row in &rows {
                let events = store.run_events(&tenant, row.run).await.unwrap();
                spent += check_run(&events, &reached);
                if self.approved {
                    check_approvals(&events);
                }
                journal::assert_replayed(row.run, &events, &catalogue);
                runs += 1;
            }
        }
        // Each request was accepted once, however often it was sent.
        assert_eq!(runs, self.asked.len());
        let stored = usage.json()["cost_usd"].as_f64().unwrap();
        assert!((stored - spent as f64 / 1e9).abs() < 1e-9, "{stored} of {spent}");
        let line =
            metrics.lines().find(|line| line.starts_with("proscenium_budget_spent_usd{scope=\"day\"}"));
        let budget: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        assert!((budget - spent as f64 / 1e9).abs() < 1e-9, "{budget} of {spent}");
    }
}

/// Compares one run with the backend's requests; returns its cost.
pub(super) fn check_run(events: &[Envelope<Event>], reached: &[ReceivedRequest]) -> u64 {
    let run = events[0].run.unwrap();
    let terminal = events.iter().filter(|event| event.body.is_terminal()).count();
    assert_eq!(terminal, 1, "{run}");
    assert!(events.last().unwrap().body.is_terminal(), "{run}");
    let mut state = RunState::new(run);
    let mut step_starts: BTreeMap<u32, usize> = BTreeMap::new();
    let mut done: BTreeSet<u32> = BTreeSet::new();
    for event in events {
        match &event.body {
            Event::StepStarted { step } => *step_starts.entry(*step).or_default() += 1,
            Event::StepCompleted { step, .. } => _ = done.insert(*step),
            Event::ToolStarted { call, .. } => {
                assert!(!done.contains(&state.calls[call].step), "{run}: a completed step ran again");
            }
            _ => {}
        }
        state.apply(&event.body).unwrap();
    }
    assert!(step_starts.values().all(|times| *times == 1), "{run}: {step_starts:?}");
    let book = state.request().rsplit(' ').next().unwrap().to_owned();
    for tool in ["Reserve", "Renew"] {
        let place = format!("POST /{tool}");
        let here =
            || reached.iter().filter(|call| call.place == place && call.query.get("book") == Some(&book));
        let keys: BTreeSet<_> = here().map(|call| call.idempotency_key.clone()).collect();
        // The backend recognises a repeated call by its key.
        let times = if tool == "Renew" { keys.len() } else { here().count() };
        assert!(times <= 1, "{run}: {tool} of {book} reached the backend {times} times: {keys:?}");
        let calls = state.calls.iter().filter(|(_, call)| call.requested.tool == tool);
        let outcomes: Vec<Option<&Outcome>> = calls.map(|(number, _)| state.outcome(*number)).collect();
        let ok = outcomes.iter().any(|outcome| matches!(outcome, Some(Outcome::Ok { .. })));
        let unknown = outcomes.iter().any(|outcome| matches!(outcome, Some(Outcome::Unknown { .. })));
        assert!(!ok || times == 1, "{run}: {tool} is reported as completed and never reached the backend");
        assert!(
            times == 0 || ok || unknown,
            "{run}: {tool} reached the backend without a known outcome: {outcomes:?}"
        );
    }
    let writes = state.calls.values().filter(|call| call.requested.effect == Effect::Write);
    let started: Vec<u32> = writes.map(|call| call.attempts).collect();
    // A keyed write is repeated under its key, however often its server died.
    assert!(started.iter().all(|attempts| *attempts <= 7), "{run}: {started:?}");
    state.usage.cost_nano_usd
}

/// No question is asked twice, no decision is made twice, and no write happens without one.
fn check_approvals(events: &[Envelope<Event>]) {
    let run = events[0].run.unwrap();
    let mut asked = BTreeSet::new();
    let mut decided = BTreeSet::new();
    let mut state = RunState::new(run);
    for event in events {
        match &event.body {
            Event::ApprovalRequired { matter, .. } => {
                assert!(asked.insert(*matter), "{run}: {matter:?} asked twice")
            }
            Event::Decided { matter, .. } => {
                assert!(decided.insert(*matter), "{run}: {matter:?} decided twice")
            }
            Event::StepStarted { .. } => {
                assert!(
                    decided.contains(&ApprovalSubject::Plan { version: 1 }),
                    "{run}: a step without approval"
                );
            }
            Event::ToolStarted { call, .. } if state.calls[call].requested.effect == Effect::Write => {
                assert!(
                    decided.contains(&ApprovalSubject::Call { call: *call }),
                    "{run}: a write without approval"
                );
            }
            _ => {}
        }
        state.apply(&event.body).unwrap();
    }
}

struct Server {
    process: Option<RunningProcess>,
    address: String,
}

impl Server {
    fn ask(
        &self,
        client: &reqwest::Client,
        words: &str,
        key: &str,
    ) -> impl Future<Output = Result<Reply, reqwest::Error>> + use<> {
        self.ask_in(key, client, words, key)
    }

    fn ask_in(
        &self,
        session: &str,
        client: &reqwest::Client,
        words: &str,
        key: &str,
    ) -> impl Future<Output = Result<Reply, reqwest::Error>> + use<> {
        let body = json!({"messages": [{"role": "user", "content": words}], "session_id": session});
        let request =
            client.post(format!("{}/api/chat", self.address)).header("Idempotency-Key", key).json(&body);
        async move { Ok(Reply::of(request.send().await?).await) }
    }

    /// Sends the request and approves everything that waits for it, until there is an answer.
    fn ask_and_approve(
        &self,
        client: &reqwest::Client,
        words: String,
        key: String,
    ) -> impl Future<Output = Result<Reply, reqwest::Error>> + use<> {
        let (client, address) = (client.clone(), self.address.clone());
        let asked = self.ask(&client, &words, &key);
        let again = Self { process: None, address: address.clone() };
        async move {
            let began = Instant::now();
            let mut reply = asked.await?;
            while reply.json()["status"] == "waiting" {
                assert!(began.elapsed() < PATIENCE, "{reply:#?}");
                if reply.json()["error"]["code"] == "run.put_aside" {
                    let run = reply.json()["run_id"].as_str().unwrap().to_owned();
                    client.post(format!("{address}/api/runs/{run}/resume")).send().await?;
                }
                let waits = client.get(format!("{address}/api/approvals?session_id={key}")).send().await?;
                let waits = Reply::of(waits).await.json();
                for approval in waits["approvals"].as_array().unwrap() {
                    // A person who does not know the outcome of a write does not decide.
                    if approval["about"] == "outcome" {
                        continue;
                    }
                    let id = approval["approval_id"].as_str().unwrap();
                    let yes = client
                        .post(format!("{address}/api/approvals/{id}"))
                        .json(&json!({"decision": "yes"}));
                    let decided = Reply::of(yes.send().await?).await;
                    // A previous server may have accepted it.
                    assert!([200, 409].contains(&decided.status), "{decided:#?}");
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
                reply = again.ask(&client, &words, &key).await?;
            }
            Ok(reply)
        }
    }

    async fn get(&self, client: &reqwest::Client, path: &str) -> Reply {
        Reply::of(client.get(format!("{}{path}", self.address)).send().await.unwrap()).await
    }

    /// Waits until no run is in progress.
    async fn until_idle(&self, client: &reqwest::Client) {
        let began = Instant::now();
        loop {
            let mut left = 0;
            for status in ["queued", "running"] {
                let listed = self.get(client, &format!("/api/runs?status={status}")).await;
                left += listed.json()["runs"].as_array().unwrap().len();
            }
            if left == 0 {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{left} runs do not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until it has ended by itself.
    async fn await_end(mut self) -> bool {
        let Some(mut process) = self.process.take() else { return true };
        let began = Instant::now();
        while !process.has_ended() {
            assert!(began.elapsed() < PATIENCE, "connections broke, and the server goes on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        true
    }

    /// Kills it and returns whether it had ended before.
    fn kill(mut self) -> bool {
        let Some(mut process) = self.process.take() else { return true };
        let ended = process.has_ended();
        process.kill();
        ended
    }

    fn end(mut self) {
        if let Some(process) = self.process.take() {
            process.signal("TERM");
            let ran = process.end();
            assert_eq!(ran.status, 0, "{ran:?}");
        }
    }
}

fn kills() -> u64 {
    size(KILLS as usize) as u64
}

/// Kills servers at a boundary, each on the data of the previous one.
async fn kill_at(place: &str) {
    kill_in(CrashHarness::open(), place).await;
}

async fn kill_in(mut harness: CrashHarness, place: &str) {
    let mut hit = 0;
    for seed in 0..kills() {
        let mut dice = ChaCha8Rng::seed_from_u64(seed ^ place.len() as u64);
        // The first kill is where it surely happens.
        let mut skip: u32 = if seed == 0 { 0 } else { dice.random_range(0..4) };
        if place.ends_with("run_queued") {
            // The event occurs once per request.
            skip %= CLIENTS as u32;
        }
        if place.ends_with("run_resumed") {
            // There has to be an unfinished run.
            let env = [("CRASH_POINT_AT", "after:step_started".to_owned())];
            harness.serve_until_killed(&env, None).await;
            skip = 0;
        }
        let env = [("CRASH_POINT_AT", place.to_owned()), ("CRASH_POINT_SKIP", skip.to_string())];
        hit += u64::from(harness.serve_until_killed(&env, None).await);
    }
    // A boundary that is never reached proves nothing.
    assert!(hit > 0 && hit * 4 >= kills(), "{place} was reached {hit} times");
    harness.finish_all().await;
}

async fn kill_around(events: &[&str]) {
    for event in events {
        for when in ["before", "after"] {
            kill_at(&format!("{when}:{event}")).await;
        }
    }
}

#[tokio::test]
async fn kills_around_acceptance_and_plan_lose_or_repeat_nothing() {
    kill_around(&EVENTS[..7]).await;
}

#[tokio::test]
async fn kills_around_steps_and_calls_lose_or_repeat_nothing() {
    kill_around(&EVENTS[7..12]).await;
}

#[tokio::test]
async fn kills_around_check_and_end_lose_or_repeat_nothing() {
    kill_around(&EVENTS[12..]).await;
}

#[tokio::test]
async fn kills_around_decisions_lose_or_repeat_nothing() {
    for event in ASKED {
        for when in ["before", "after"] {
            kill_in(CrashHarness::open_with(true), &format!("{when}:{event}")).await;
        }
    }
}

#[tokio::test]
async fn kills_during_backend_calls_lose_or_repeat_nothing() {
    let mut harness = CrashHarness::open();
    let mut hit = 0;
    for seed in 0..kills() {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        hit += u64::from(harness.serve_until_killed(&[], Some(dice.random_range(0..6))).await);
    }
    assert!(hit > 0 && hit * 4 >= kills(), "{hit}");
    harness.finish_all().await;
}

/// The names above are event names: any other name would never be reached.
#[test]
fn boundary_names_are_event_names() {
    for event in EVENTS.into_iter().chain(ASKED) {
        assert!(Event::VARIANTS.contains(&event), "{event}");
    }
}

fn poisoned_env(panics: bool) -> Vec<(&'static str, String)> {
    let mut env = vec![
        ("CRASH_POINT_AT", "before:step_started".to_owned()),
        ("CRASH_POINT_WORDS", "poison".to_owned()),
    ];
    if panics {
        env.push(("CRASH_POINT_PANICS", "100".to_owned()));
    }
    env
}

#[tokio::test]
async fn request_that_repeatedly_crashes_its_server_is_quarantined() {
    let harness = CrashHarness::open();
    let server = harness.start(&poisoned_env(false));
    server.ask(&harness.client, "Get the poison p1", "k1").await.unwrap_err();
    server.kill();
    for _ in 0..2 {
        // It resumes the unfinished run first; it may die before it prints its address.
        if let Some(mut server) = harness.try_start(&poisoned_env(false)) {
            let ran = server.process.take().unwrap().end();
            assert_eq!(ran.status, -1, "{ran:?}");
        }
    }
    let server = harness.start(&poisoned_env(false));
    let reply = server.ask(&harness.client, "Get the poison p1", "k1").await.unwrap();
    let document = reply.json();
    assert_eq!(
        (&document["status"], &document["error"]["code"]),
        (&json!("waiting"), &json!("run.put_aside"))
    );
    assert!(document["error"]["message"].as_str().unwrap().contains("3 times"), "{document:#}");
    let reply = server.ask(&harness.client, "Get the book b1", "k2").await.unwrap();
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("completed")));
    server.end();
    assert!(harness.ledger.backend.take_requests().iter().all(|call| call.query["book"] != "p1"));

    // It waits over a restart, too, until a person resumes it: then nothing is lost.
    let server = harness.start(&[]);
    let run = document["run_id"].as_str().unwrap();
    let path = format!("{}/api/runs/{run}/resume", server.address);
    let resumed = Reply::of(harness.client.post(&path).send().await.unwrap()).await;
    assert_eq!(resumed.status, 202, "{resumed:#?}");
    server.until_idle(&harness.client).await;
    let document = server.get(&harness.client, &format!("/api/runs/{run}")).await.json();
    assert_eq!(document["status"], "completed", "{document:#}");
    let again = Reply::of(harness.client.post(&path).send().await.unwrap()).await;
    assert_eq!(again.status, 409, "{again:#?}");
    server.end();
}

#[tokio::test]
async fn run_with_a_journal_gap_ends_and_its_conversation_continues() {
    let harness = CrashHarness::open();
    // Up to the intent of the first write, which is on disk.
    let env = [("CRASH_POINT_AT", "after:tool_started".to_owned()), ("CRASH_POINT_SKIP", "1".to_owned())];
    let server = harness.start(&env);
    server.ask(&harness.client, "Get the book b1", "k1").await.unwrap_err();
    server.kill();
    let file = format!("sqlite://{}", harness.workspace.data().join("proscenium.db").display());
    let pool = sqlx::SqlitePool::connect(&file).await.unwrap();
    let sql = "DELETE FROM journal WHERE stream LIKE 'run:%' AND seq = 3";
    assert_eq!(sqlx::query(sql).execute(&pool).await.unwrap().rows_affected(), 1);
    pool.close().await;

    let server = harness.start(&[]);
    server.until_idle(&harness.client).await;
    let listed = server.get(&harness.client, "/api/runs").await.json();
    assert_eq!(listed["runs"][0]["status"], "failed", "{listed:#}");
    // An approval that cannot be decided any more is not pending.
    let waits = server.get(&harness.client, "/api/approvals").await.json();
    assert_eq!(waits["approvals"], json!([]), "{waits:#}");
    let reply = server.ask_in("k1", &harness.client, "Get the book b2", "k2").await.unwrap();
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("completed")));
    server.end();
    let pool = sqlx::SqlitePool::connect(&file).await.unwrap();
    let sql = "SELECT count(*) FROM journal WHERE body LIKE '%run.unrecoverable%store.gap%' \
               OR body LIKE '%run.unrecoverable%is missing%'";
    let stored: i64 = sqlx::query_scalar(sql).fetch_one(&pool).await.unwrap();
    assert_eq!(stored, 1, "the reason is its last event");
    let sql = "SELECT count(*) FROM journal WHERE body LIKE '%run_failed%nobody knows whether Reserve of %'";
    let stored: i64 = sqlx::query_scalar(sql).fetch_one(&pool).await.unwrap();
    assert_eq!(stored, 1, "so is the write of unknown outcome");
}

#[tokio::test]
async fn run_with_a_panicking_actor_is_quarantined_alone() {
    let harness = CrashHarness::open();
    let server = harness.start(&poisoned_env(true));
    let neighbours =
        (0..8).map(|n| server.ask(&harness.client, &format!("Get the book b{n}"), &format!("n{n}")));
    let neighbours = futures::future::join_all(neighbours);
    let poison = server.ask(&harness.client, "Get the poison p1", "k1");
    let (poison, neighbours) = tokio::join!(poison, neighbours);
    let problem = poison.unwrap().json();
    assert_eq!(problem["code"], "run.poisonous", "{problem:#}");
    // What the user reads is in their words; the document keeps the reason.
    assert_eq!(problem["detail"], "This could not be completed because of an internal error.");
    let error = problem["document"]["error"]["message"].as_str().unwrap();
    assert!(error.contains("3 times in a row"), "{problem:#}");
    for reply in neighbours {
        assert_eq!(reply.unwrap().json()["status"], "completed");
    }
    // In its own conversation, too.
    let reply = server.ask_in("k1", &harness.client, "Get the book b9", "k9").await.unwrap();
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("completed")));
    server.end();
}
