//! The whole product in this process: a real engine with the shipped scenes on a fresh data directory.
//!
//! ```ignore
//! let test = Setup::offline().start().await;
//! let finished = test.chat("s-1", "Che tempo fa a Milano?").await;
//! assert_eq!(finished.answer.status, RunStatus::Completed);
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proscenium::access::Role;
use proscenium::adapt::ConsultationOutcome;
use proscenium::config::ConfigFlags;
use proscenium::run::{Envelope, Event, Fault, RunId, RunState, SessionEvent, SessionId, TenantId};
use proscenium::scene::Scene;
use proscenium::store::KeyRules;
use proscenium::tools::NativeTools;
use proscenium::{Answer, Config, Engine, RunTicket, StartError};
use tempfile::TempDir;

use super::ScriptedLlm;
use super::journal;
use proscenium::shipped;

/// The clock of the scenarios.
pub const CLOCK: &str = "2026-05-04T09:00:00+02:00";
/// The time zone of the scenarios.
pub const ZONE: &str = "Europe/Rome";

/// The setup of a [`TestEngine`]: the environment of its configuration, and what a user of the library may
/// add.
pub struct Setup {
    env: BTreeMap<String, String>,
    model: BTreeMap<&'static str, String>,
    /// Further models, as TOML.
    models: Vec<String>,
    flags: ConfigFlags,
    scenes: Vec<Scene>,
    native: NativeTools,
    dir: Arc<TempDir>,
    idle: Option<Duration>,
    max_idle_short: Option<usize>,
}

impl Setup {
    /// Without a model: the offline model serves.
    pub fn offline() -> Self {
        let setup = Self {
            env: BTreeMap::new(),
            model: BTreeMap::new(),
            models: Vec::new(),
            flags: ConfigFlags::default(),
            scenes: Vec::new(),
            native: shipped::tools(),
            dir: Arc::new(tempfile::tempdir().unwrap()),
            idle: None,
            max_idle_short: None,
        };
        setup
            .set("execution.fixed_now", CLOCK)
            .set("execution.time_zone", ZONE)
            .set("scenes.settings.Weather.source", "bundled")
            .set("sandbox.worker", env!("CARGO_BIN_EXE_proscenium"))
    }

    /// With one model, at a scripted server, and without a fallback.
    pub fn scripted(llm: &ScriptedLlm) -> Self {
        Self::offline()
            .model("name", "\"scripted\"")
            .model("base_url", &format!("{:?}", llm.base_url()))
            .set("llm.backoff_ms", 1)
            .set("planning.fallback_enabled", false)
            // Scripted writes are not in the request, and some are repeated to see the second skipped.
            .set("execution.confirm", "never")
    }

    /// Sets a configuration key, by its dotted name, as the environment would.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        let name = format!("PROSCENIUM__{}", key.replace('.', "__"));
        self.env.insert(name, value.to_string());
        self
    }

    /// Sets a configuration key unless the test has set it.
    pub fn unless_set(self, key: &str, value: impl ToString) -> Self {
        let name = format!("PROSCENIUM__{}", key.replace('.', "__"));
        if self.env.contains_key(&name) { self } else { self.set(key, value) }
    }

    /// A key of the model, as TOML.
    pub fn model(mut self, key: &'static str, value: &str) -> Self {
        self.model.insert(key, value.to_owned());
        self
    }

    /// Another model of this name, after those before it.
    pub fn another_model(mut self, name: &str, llm: &ScriptedLlm) -> Self {
        self.models.push(format!("{{name={name:?},base_url={:?},forcing=\"named\"}}", llm.base_url()));
        self
    }

    /// `--scenes DIR`.
    pub fn scenes(mut self, dir: &Path) -> Self {
        self.flags.scenes = Some(dir.to_owned());
        self
    }

    /// Without the shipped scenes.
    pub fn alone(mut self) -> Self {
        self.env.retain(|key, _| !key.contains("__settings__"));
        self.set("scenes.builtin", false)
    }

    /// A scene built in Rust.
    pub fn scene(mut self, scene: Scene) -> Self {
        self.scenes.push(scene);
        self
    }

    /// Further tools in Rust, by the names that `scene.toml` and `flow.toml` files use.
    pub fn native(mut self, name: &str, tool: impl proscenium::tools::Tool + 'static) -> Self {
        self.native = self.native.with(name, tool);
        self
    }

    /// How long an idle conversation stays loaded.
    pub fn idle(mut self, time: Duration) -> Self {
        self.idle = Some(time);
        self
    }

    /// How many idle conversations of one turn stay loaded.
    pub fn max_idle_short(mut self, max: usize) -> Self {
        self.max_idle_short = Some(max);
        self
    }

    /// Uses this data directory instead of a fresh one.
    pub fn on(mut self, dir: &Arc<TempDir>) -> Self {
        self.dir = dir.clone();
        self
    }

    /// Starts the engine, or returns why it cannot start.
    pub async fn try_start(mut self) -> Result<TestEngine, StartError> {
        if !self.model.is_empty() {
            let keys: Vec<String> = self.model.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let first = format!("{{{}}}", keys.join(","));
            let models: Vec<String> = [first].into_iter().chain(std::mem::take(&mut self.models)).collect();
            self = self.set("llm.models", format!("[{}]", models.join(",")));
        }
        self.flags.data_dir = Some(self.dir.path().join("data"));
        let loaded = Config::load(None, self.env.into_iter(), self.flags).unwrap();
        let mut warned = loaded.warnings.iter().filter(|warning| warning.code != "config.clock");
        assert!(warned.next().is_none(), "the test's configuration: {:?}", loaded.warnings);
        let config = loaded.config;
        let tenant = config.auth.default_tenant.clone();
        let builder = Engine::builder(config.clone()).native_tools(self.native);
        let builder = builder.builtin_scenes(&shipped::FOLDERS);
        let builder = self.scenes.into_iter().fold(builder, proscenium::Builder::scene);
        let builder = match self.idle {
            Some(time) => builder.idle(time),
            None => builder,
        };
        let builder = match self.max_idle_short {
            Some(max) => builder.max_idle_short(max),
            None => builder,
        };
        Ok(TestEngine { engine: Arc::new(builder.start().await?), config, tenant, dir: self.dir })
    }

    /// Starts the engine.
    pub async fn start(self) -> TestEngine {
        match self.try_start().await {
            Ok(test) => test,
            Err(StartError::Scenes(faults)) => panic!("{faults}"),
            Err(error) => panic!("the engine does not start: {error}"),
        }
    }
}

/// A running engine.
pub struct TestEngine {
    pub engine: Arc<Engine>,
    pub config: Config,
    pub tenant: TenantId,
    pub dir: Arc<TempDir>,
}

/// A request that has ended.
pub struct FinishedRun {
    pub answer: Answer,
    pub state: RunState,
    pub events: Vec<Envelope<Event>>,
}

impl FinishedRun {
    /// The ends of its consultations: how, and what was chosen.
    pub fn consultations(&self) -> Vec<(ConsultationOutcome, Option<&'static str>)> {
        let ends = self.events.iter().filter_map(|event| match &event.body {
            Event::Consultation { how, chosen, .. } => {
                Some((*how, chosen.as_ref().map(|chosen| chosen.id())))
            }
            _ => None,
        });
        ends.collect()
    }

    /// The nodes of flows that it entered, in order.
    pub fn entered(&self) -> Vec<String> {
        let nodes = self.events.iter().filter_map(|event| match &event.body {
            Event::NodeStarted { node, .. } => Some(node.clone()),
            _ => None,
        });
        nodes.collect()
    }
}

impl TestEngine {
    /// Submits a request of the default user.
    pub async fn submit(&self, session: &str, words: &str) -> Result<RunTicket, Fault> {
        self.engine.submit(self.engine.request(words, Some(SessionId::new(session).unwrap()))).await
    }

    /// Executes one request to its end, and checks the invariants of its journal.
    pub async fn chat(&self, session: &str, words: &str) -> FinishedRun {
        let ticket = self.submit(session, words).await.unwrap();
        self.finish(ticket).await
    }

    /// Waits for the end of an accepted request.
    pub async fn finish(&self, ticket: RunTicket) -> FinishedRun {
        let answer = ticket.answer().await.unwrap();
        let events = self.events(answer.run_id).await;
        let state = self.engine.run(&self.tenant, answer.run_id).await.unwrap();
        let finished = FinishedRun { answer, state, events };
        journal::assert_invariants(&finished);
        journal::assert_replayed(finished.answer.run_id, &finished.events, &self.engine.catalogue());
        finished
    }

    /// Creates a key for a user of a tenant: its id, and its text.
    pub async fn create_key(&self, tenant: &str, user: &str, rules: KeyRules) -> (String, String) {
        let tenant = TenantId::new(tenant).unwrap();
        let (key, secret) = self.engine.store().create_key_with(&tenant, user, "", rules).await.unwrap();
        (key.id, secret.expose().to_owned())
    }

    /// The text of a new key with this role.
    pub async fn key(&self, tenant: &str, user: &str, role: Role) -> String {
        self.create_key(tenant, user, KeyRules { role, ..KeyRules::default() }).await.1
    }

    /// The stored events of a run.
    pub async fn events(&self, run: RunId) -> Vec<Envelope<Event>> {
        self.engine.store().run_events(&self.tenant, run).await.unwrap()
    }

    /// The stored events of a conversation.
    pub async fn session(&self, session: &str) -> Vec<SessionEvent> {
        let session = SessionId::new(session).unwrap();
        let events = self.engine.store().session_events(&self.tenant, &session).await.unwrap();
        events.into_iter().map(|envelope| envelope.body).collect()
    }

    /// `(user, first day, last day)` of every active vacation request of all tenants.
    pub async fn vacations(&self) -> Vec<(String, String, String)> {
        let sql =
            "SELECT user, first_day, last_day FROM vacation_requests WHERE cancelled_at IS NULL ORDER BY id";
        sqlx::query_as(sql).fetch_all(self.engine.store().pool()).await.unwrap()
    }

    /// Stops the engine and returns the data directory.
    pub async fn stop(self) -> Arc<TempDir> {
        self.engine.shut_down().await.unwrap();
        self.dir
    }
}
