//! The fixture of the journals in `tests/replays/release-0.1`: the scenes and the model they were written
//! with, and servers on their data directories.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proscenium::scene::{Catalogue, load_dir};
use proscenium::tools::NativeTools;
use proscenium::tools::guard::NetworkPolicy;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::model_script::ModelScript;
use super::test_engine::{CLOCK, Setup, ZONE};
use super::{
    Backend, ReceivedRequest, Reply, Scripted, ScriptedLlm, forced_tool, section, stored, tool_names,
    tool_results,
};
use crate::process::{RunningProcess, Workspace};

/// The backend's port in the tools' definitions of `model.sql`.
pub const PORT: u16 = 28_710;
/// The same for interrupted journals.
pub const CUT_PORT: u16 = 28_711;

/// A file or folder beside the journals.
pub fn fixture_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/replays/release-0.1").join(name)
}

/// The schema file of a journal: scenes have their own tables.
pub fn schema(journal: &str) -> &'static str {
    if journal.starts_with("rules") { "rules.schema" } else { "model.schema" }
}

/// A data directory with the dependencies of its servers.
pub struct ReleaseFixture {
    pub workspace: Workspace,
    backend: Option<Backend>,
    /// While it is set, the model of the diary fails.
    pub broken: Arc<AtomicBool>,
    _llm: Option<ScriptedLlm>,
    client: reqwest::Client,
}

impl ReleaseFixture {
    /// The shipped scenes without a model: the offline model serves.
    pub fn with_rules() -> Self {
        Self {
            workspace: Workspace::new(),
            backend: None,
            broken: Arc::default(),
            _llm: None,
            client: client(),
        }
    }

    /// A till and a diary at this port, and a scripted model.
    pub fn with_model(port: u16) -> Self {
        let backend = Backend::start_at(port, |reached| {
            if reached.place == "POST /Transfer" {
                // Longer than the timeout of a transfer.
                let (_silent, message) = std::sync::mpsc::sync_channel::<()>(1);
                assert!(message.recv_timeout(Duration::from_millis(800)).is_err());
            }
            json!({"done": reached.place})
        });
        let broken = Arc::new(AtomicBool::new(false));
        let (out, script) = (
            broken.clone(),
            ModelScript::parse(&std::fs::read_to_string(fixture_path("mind.yaml")).unwrap()),
        );
        let llm = ScriptedLlm::start(move |request, _| reply(request, &script, out.load(Ordering::SeqCst)));
        let workspace = workspace(port, llm.base_url());
        Self { workspace, backend: Some(backend), broken, _llm: Some(llm), client: client() }
    }

    /// The same without running dependencies, for reading only.
    pub fn read_only(port: u16) -> Self {
        let workspace = workspace(port, "http://127.0.0.1:9/v1");
        Self { workspace, backend: None, broken: Arc::default(), _llm: None, client: client() }
    }

    /// The scenes of its servers: the shipped ones, or those of its directory.
    pub async fn catalogue(&self) -> Arc<Catalogue> {
        static SHIPPED: OnceCell<Arc<Catalogue>> = OnceCell::const_new();
        let dir = self.workspace.path().join("scenes");
        if !dir.exists() {
            let start = || async { Setup::offline().start().await.engine.catalogue() };
            return SHIPPED.get_or_init(start).await.clone();
        }
        let policy = NetworkPolicy { allow_private: true, allow_hosts: Vec::new() };
        let loaded = load_dir(&dir, &NativeTools::new(), &policy);
        assert!(!loaded.has_errors(), "{:#?}", loaded.faults);
        Arc::new(Catalogue::new(loaded.scenes))
    }

    /// Loads a journal of that release into the data directory.
    pub async fn load(&self, name: &str) {
        let text = |name: &str| std::fs::read_to_string(fixture_path(&format!("{name}.sql"))).unwrap();
        stored::load(&self.workspace.data(), &text(schema(name)), &text(name)).await;
    }

    /// A server with these additional settings.
    pub fn serve(&self, env: &[(&str, &str)]) -> Server<'_> {
        let env: Vec<(&str, String)> = env.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut process = self.workspace.spawn_with(&["serve", "--addr", "127.0.0.1:0"], &env);
        let address = process.served_at();
        Server { process, address, client: &self.client }
    }

    /// The requests that reached the backend since the last call, one per line.
    pub fn reached(&self) -> String {
        let taken = self.backend.as_ref().map(Backend::take_requests).unwrap_or_default();
        taken.iter().map(line).collect()
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap()
}

/// A directory with the scenes, whose tools use this port, and a model at this address.
fn workspace(port: u16, base_url: &str) -> Workspace {
    let model = format!("[{{name=\"scripted\",base_url=\"{base_url}\",forcing=\"named\"}}]");
    let workspace = Workspace::bare()
        .with("PROSCENIUM__EXECUTION__FIXED_NOW", CLOCK)
        .with("PROSCENIUM__EXECUTION__TIME_ZONE", ZONE)
        .with("PROSCENIUM__SCENES__BUILTIN", "false")
        .with("PROSCENIUM__SCENES__DIR", "scenes")
        .with("PROSCENIUM__SCENES__ALLOW_PRIVATE_ADDRESSES", "true")
        .with("PROSCENIUM__PLANNING__FALLBACK_ENABLED", "false")
        .with("PROSCENIUM__LLM__MAX_ATTEMPTS", "1")
        .with("PROSCENIUM__LLM__MODELS", &model);
    for scene in ["till", "diary"] {
        let name = format!("scenes/{scene}/scene.toml");
        let text = std::fs::read_to_string(fixture_path(&name)).unwrap();
        workspace.write(&name, &text.replace("@PORT@", &port.to_string()));
    }
    workspace
}

fn line(reached: &ReceivedRequest) -> String {
    let query: Vec<String> = reached.query.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    let key = reached.idempotency_key.as_ref().map(|key| format!(" key={key}")).unwrap_or_default();
    format!("{}{}{key}\n", reached.place, query.concat())
}

/// The model's reply: as in `mind.yaml`, except where it fails, continues with the rest, or looks first.
fn reply(request: &Value, script: &ModelScript, broken: bool) -> Scripted {
    let words = section(request, "request").unwrap_or_default();
    let forced = forced_tool(request);
    let scene = section(request, "scene");
    let fails = ["Tell the balance of account a1", "Deposit 5 into account a1"].contains(&words.as_str())
        || scene.is_some() && (words == "look in vain" || broken && scene.as_deref() == Some("Diary"));
    let feedback = section(request, "feedback").filter(|_| forced == Some("CreateExecutionPlan"));
    match forced {
        _ if fails => Scripted::status(500),
        Some(_) if feedback.is_some() => {
            let mut plan: Value = serde_json::from_str(&section(request, "plan").unwrap()).unwrap();
            plan["steps"][0]["expected_tools"] = json!(["Balance", "Deposit"]);
            plan["steps"][0]["purpose"] = json!("Tell the balance, then deposit");
            Scripted::forced(request, plan)
        }
        Some(forced) if words.ends_with("and see to the rest") => rest(request, forced, script),
        // The last question to a scene offers no tools.
        None if scene.is_some() && tool_names(request).is_empty() => {
            Scripted::Text(format!("{} calls came back.", tool_results(request).len()))
        }
        _ => script.reply(request),
    }
}

/// A plan of the first step; a check that asks for the rest, once; a plan of the second step.
fn rest(request: &Value, forced: &str, script: &ModelScript) -> Scripted {
    let step = |number: usize| {
        let reply = script.plan(request);
        let mut step = reply["steps"][number - 1].clone();
        step["step_number"] = json!(number);
        json!({"needs_execution": true, "reasoning": "as the user asked", "steps": [step]})
    };
    let executed = section(request, "executed").unwrap_or_default();
    match forced {
        "CreateExecutionPlan" if section(request, "missing").is_some() => Scripted::forced(request, step(2)),
        "CreateExecutionPlan" => Scripted::forced(request, step(1)),
        "CheckContinuation" if executed.lines().count() < 2 => Scripted::forced(
            request,
            json!({"should_continue": true, "can_answer_now": false, "reasoning": "The rest is left.",
                "missing_information": "The rest was not seen to.", "answer": null}),
        ),
        _ => script.reply(request),
    }
}

/// A running server.
pub struct Server<'w> {
    process: RunningProcess,
    address: String,
    client: &'w reqwest::Client,
}

impl Server<'_> {
    /// `None` if it died before it replied.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Reply> {
        let request = self.client.request(method, format!("{}{path}", self.address));
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = request.send().await.ok()?;
        Some(Reply::of(response).await)
    }

    pub async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, None).await.unwrap().json()
    }

    pub async fn post(&self, path: &str, body: &Value) -> Value {
        self.send(Method::POST, path, Some(body)).await.unwrap().json()
    }

    /// Sends words in a conversation; returns the run's document, whatever its status.
    pub async fn chat(&self, session: &str, words: &str) -> Option<Value> {
        self.ask(session, words, &json!({})).await
    }

    /// The same with additional fields of the request.
    pub async fn ask(&self, session: &str, words: &str, more: &Value) -> Option<Value> {
        let mut body = json!({"messages": [{"role": "user", "content": words}], "session_id": session});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = self.send(Method::POST, "/api/chat", Some(&body)).await?.json();
        Some(if reply["document"].is_object() { reply["document"].clone() } else { reply })
    }

    /// Words of a client that sends the conversation and has its own instructions.
    pub async fn complete(&self, words: &str) -> Option<Reply> {
        let message = |role: &str, words: &str| json!({"role": role, "content": words});
        let messages = [
            message("system", "You are the assistant of a bank. Be brief."),
            message("user", "hello"),
            message("assistant", "Good day."),
            message("user", words),
        ];
        let body = json!({"model": "proscenium", "messages": messages});
        self.send(Method::POST, "/v1/chat/completions", Some(&body)).await
    }

    /// Makes a plan in a conversation.
    pub async fn plan(&self, session: &str, words: &str) -> Value {
        self.post("/api/plans", &json!({"message": words, "session_id": session})).await
    }

    /// The run's document once it has ended or waits.
    pub async fn settled_run(&self, run: &str) -> Value {
        self.send(Method::GET, &format!("/api/runs/{run}/events"), None).await.unwrap();
        self.get(&format!("/api/runs/{run}")).await
    }

    /// Kills it as a power failure would.
    pub fn kill(self) {
        self.process.kill();
    }

    /// Stops it gracefully.
    pub fn stop(self) {
        self.process.signal("TERM");
        let ran = self.process.end();
        assert_eq!(ran.status, 0, "{ran:?}");
    }
}
