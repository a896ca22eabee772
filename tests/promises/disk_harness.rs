//! A server in its own process on a faulty disk, with the backend and the models of all servers that are
//! started on it one after the other.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::crash::{model_reply, write_shelf_and_desk};
use super::process::{ProcessOutput, RunningProcess, Workspace};
use super::support::disk::Disk;
use super::support::served_engine::Events;
use super::support::{Backend, ReceivedRequest, Reply, Scripted, ScriptedLlm, forced_tool, tool_results};

/// Upper bound for everything that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// The moment of a run at which something happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// It was accepted, and its model is asked for a plan.
    Plan,
    /// The backend is executing a read.
    Look,
    /// The backend is executing a write that must not be repeated.
    Reserve,
    /// The backend is executing a write that may be repeated by its key.
    Renew,
    /// The scene's model has the result of the read and is asked what comes next.
    Between,
    /// The model is asked whether everything is done.
    Check,
}

type Deed = Box<dyn FnOnce() + Send>;

/// An action to run once at a moment.
#[derive(Clone, Default)]
struct PlannedDeed(Arc<Mutex<Option<(Moment, Deed)>>>);

impl PlannedDeed {
    fn reached(&self, moment: Moment) {
        let plot = self.0.lock().unwrap().take_if(|(at, _)| *at == moment);
        if let Some((_, deed)) = plot {
            deed();
        }
    }
}

/// Every request is `Get the book X`: a read, a reservation, and in another scene a renewal.
pub(super) struct DiskHarness {
    pub(super) workspace: Workspace,
    pub(super) disk: Disk,
    pub(super) backend: Backend,
    pub(super) client: reqwest::Client,
    plot: PlannedDeed,
    _llm: ScriptedLlm,
}

impl DiskHarness {
    pub(super) fn open() -> Self {
        Self::with_model(|request, _| model_reply(request))
    }

    /// The same with models that give these replies to their nth request.
    pub(super) fn with_model(play: impl Fn(&Value, usize) -> Scripted + Send + Sync + 'static) -> Self {
        let plot = PlannedDeed::default();
        let hand = plot.clone();
        let backend = Backend::start(move |reached: &ReceivedRequest| {
            match reached.place.as_str() {
                "GET /Look" => hand.reached(Moment::Look),
                "POST /Reserve" => hand.reached(Moment::Reserve),
                "POST /Renew" => hand.reached(Moment::Renew),
                place => panic!("unexpected call of {place}"),
            }
            json!({"done": reached.place})
        });
        let hand = plot.clone();
        let llm = ScriptedLlm::start(move |request, nth| {
            match forced_tool(request) {
                Some("CreateExecutionPlan") => hand.reached(Moment::Plan),
                Some("CheckContinuation") => hand.reached(Moment::Check),
                _ if tool_results(request).len() == 1 => hand.reached(Moment::Between),
                _ => {}
            }
            play(request, nth)
        });
        let workspace = Workspace::bare();
        write_shelf_and_desk(&workspace, backend.address());
        workspace.write_house(&llm, "[server]\ndrain_timeout_ms = 1000\n");
        let disk = Disk::of(&workspace.data());
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
        Self { workspace, disk, backend, client, plot, _llm: llm }
    }

    /// Runs `deed` once, when a run reaches this moment; the model or backend call waits for it.
    pub(super) fn at_moment(&self, moment: Moment, deed: impl FnOnce() + Send + 'static) {
        *self.plot.0.lock().unwrap() = Some((moment, Box::new(deed)));
    }

    /// `serve` with these variables.
    pub(super) fn serve(&self, env: &[(&str, String)]) -> RunningProcess {
        let line = ["serve", "--addr", "127.0.0.1:0", "--config", "house.toml", "--scenes", "scenes"];
        let env: Vec<(&str, String)> = self.disk.env().into_iter().chain(env.iter().cloned()).collect();
        self.workspace.spawn_with(&line, &env)
    }

    /// A server that is ready.
    pub(super) fn start(&self) -> Server {
        match self.try_start(&[]) {
            Ok(server) => server,
            Err(ran) => panic!("{ran:#?}"),
        }
    }

    /// A server that is ready, or its output if it ended before.
    pub(super) fn try_start(&self, env: &[(&str, String)]) -> Result<Server, ProcessOutput> {
        let mut process = self.serve(env);
        let Some(address) = process.try_served_at() else { return Err(process.end()) };
        Ok(Server { process, address, client: self.client.clone() })
    }

    /// Requests that reached the backend since the last call.
    pub(super) fn reached(&self) -> Vec<ReceivedRequest> {
        self.backend.take_requests()
    }
}

/// A server that accepts requests.
pub(super) struct Server {
    process: RunningProcess,
    address: String,
    client: reqwest::Client,
}

impl Server {
    /// Requests `Get the book X` in the conversation of this name.
    pub(super) fn ask(
        &self,
        book: &str,
        session: &str,
    ) -> impl Future<Output = Result<Reply, reqwest::Error>> + use<> {
        let request = self.request(book, session, false);
        async move {
            let response = request.send().await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            Ok(Reply { status, headers, body: response.text().await? })
        }
    }

    /// The same, answered with the run's events as they arrive. The reply's head tells the client that the
    /// request was accepted.
    pub(super) fn ask_streamed(
        &self,
        book: &str,
        session: &str,
    ) -> impl Future<Output = Result<(String, Events), reqwest::Error>> + use<> {
        let request = self.request(book, session, true);
        async move {
            let response = request.send().await?;
            let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
            Ok((run, Events::of(response)))
        }
    }

    fn request(&self, book: &str, session: &str, stream: bool) -> reqwest::RequestBuilder {
        let body = json!({"messages": [{"role": "user", "content": format!("Get the book {book}")}],
            "session_id": session, "stream": stream});
        // A key for retries.
        let key = format!("key of {book}");
        let request = self.client.post(format!("{}/api/chat", self.address));
        request.header("Idempotency-Key", key).json(&body).timeout(PATIENCE)
    }

    /// The same words over the OpenAI protocol.
    pub(super) async fn complete(&self, words: &str) -> Reply {
        let body = json!({"model": "proscenium", "messages": [{"role": "user", "content": words}]});
        let request = self.client.post(format!("{}/v1/chat/completions", self.address));
        Reply::of(request.json(&body).timeout(PATIENCE).send().await.unwrap()).await
    }

    pub(super) async fn get(&self, path: &str) -> Reply {
        let request = self.client.get(format!("{}{path}", self.address)).timeout(PATIENCE);
        Reply::of(request.send().await.unwrap()).await
    }

    pub(super) async fn send(&self, method: &str, path: &str) -> Reply {
        let request = self.client.request(method.parse().unwrap(), format!("{}{path}", self.address));
        Reply::of(request.timeout(PATIENCE).send().await.unwrap()).await
    }

    /// A run's events after this one, as they arrive.
    pub(super) async fn events(&self, run: &str, last: &str) -> Events {
        let request = self.client.get(format!("{}/api/runs/{run}/events", self.address)).timeout(PATIENCE);
        Events::of(request.header("Last-Event-ID", last).send().await.unwrap())
    }

    /// Polls until `is_so` returns a value.
    pub(super) async fn until<T>(&self, path: &str, is_so: impl Fn(&Reply) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            let reply = self.get(path).await;
            if let Some(found) = is_so(&reply) {
                return found;
            }
            assert!(began.elapsed() < PATIENCE, "{path} stays {reply:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// All runs, once none is in progress.
    pub(super) async fn settled_runs(&self) -> Vec<Value> {
        self.until("/api/runs", |reply| {
            let runs = reply.json()["runs"].as_array().unwrap().clone();
            let left =
                runs.iter().any(|run| ["queued", "running"].contains(&run["status"].as_str().unwrap()));
            (!left).then_some(runs)
        })
        .await
    }

    /// Kills it as a power failure would, and returns whether it had ended before.
    pub(super) fn kill(mut self) -> bool {
        let had_ended = self.process.has_ended();
        self.process.kill();
        had_ended
    }

    /// Waits until it has ended by itself, which is a moment after its connections broke.
    pub(super) async fn await_end(mut self) -> bool {
        let began = Instant::now();
        while !self.process.has_ended() {
            assert!(began.elapsed() < PATIENCE, "connections broke, and the server goes on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        true
    }

    /// Stops it and waits for its end.
    pub(super) fn end(self) -> ProcessOutput {
        self.process.signal("TERM");
        self.process.end()
    }
}
