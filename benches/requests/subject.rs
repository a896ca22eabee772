//! What executes a flow: a bare client, the library, or the server.

use std::sync::Arc;

use proscenium::http::Server;
use proscenium::run::RunStatus;
use proscenium::{Answer, Config, Engine};
use serde_json::{Value, json};

use super::flow::{self, CALLS, Kind};
use super::{Failure, fail};

/// Executes flows.
#[derive(Clone)]
pub enum Subject {
    /// Sends what the engine sends, in the same order, and does nothing else.
    Bare { http: reqwest::Client, url: String, bodies: Arc<Bodies> },
    /// The engine in this process.
    Library { engine: Arc<Engine>, kind: Kind },
    /// The engine behind its server, over kept connections.
    Client { http: reqwest::Client, url: String, kind: Kind },
}

/// The bodies of one flow.
pub struct Bodies {
    plan: Value,
    /// The questions of each scene, in order.
    scenes: Vec<Vec<Value>>,
    check: Value,
}

impl Bodies {
    /// Sorts the bodies of a recorded flow.
    pub fn of(recorded: &[String]) -> Result<Self, Failure> {
        let containing = |what: &str| -> Result<Vec<Value>, Failure> {
            let which = recorded.iter().filter(|body| body.contains(what));
            Ok(which.map(|body| serde_json::from_str(body)).collect::<Result<_, _>>()?)
        };
        let one = |mut all: Vec<Value>| match (all.pop(), all.len()) {
            (Some(body), 0) => Ok(body),
            _ => Err(fail("a recorded flow must have one plan and one check")),
        };
        let scenes = vec![containing("You are the scene Weather")?, containing("You are the scene Leave")?];
        if recorded.len() as u64 != CALLS || scenes.iter().any(|scene| scene.len() != 2) {
            return Err(fail(format!("a recorded flow has {} calls, not {CALLS}", recorded.len())));
        }
        Ok(Self {
            plan: one(containing("You plan how")?)?,
            scenes,
            check: one(containing("You judge whether")?)?,
        })
    }
}

/// A client that keeps its connections.
pub fn http() -> Result<reqwest::Client, Failure> {
    Ok(reqwest::Client::builder().no_proxy().build()?)
}

/// The server over an engine.
pub async fn serve(mut config: Config) -> Result<Server, Failure> {
    config.server.addr = "127.0.0.1:0".to_owned();
    let engine = flow::engine(config.clone())?.start().await?;
    Ok(Server::start(Arc::new(engine), &config).await?)
}

impl Subject {
    /// Executes flow number `n`.
    ///
    /// # Errors
    /// If it does not end as expected: a subject that does less must not count as faster.
    pub async fn flow(&self, n: u64) -> Result<(), Failure> {
        match self {
            Subject::Bare { http, url, bodies } => {
                let ask = async |body: &Value| -> Result<(), Failure> {
                    let reply: Value =
                        http.post(url).json(body).send().await?.error_for_status()?.json().await?;
                    if reply["choices"][0]["message"].is_object() { Ok(()) } else { Err(fail("no message")) }
                };
                let scene = async |bodies: &[Value]| -> Result<(), Failure> {
                    for body in bodies {
                        ask(body).await?;
                    }
                    Ok(())
                };
                ask(&bodies.plan).await?;
                futures::future::try_join_all(bodies.scenes.iter().map(|bodies| scene(bodies))).await?;
                ask(&bodies.check).await
            }
            Subject::Library { engine, kind } => {
                let request = engine.request(&flow::message(n, *kind), None);
                checked(&engine.chat(request).await?, *kind)
            }
            Subject::Client { http, url, kind } => {
                let body = json!({"messages": [{"role": "user", "content": flow::message(n, *kind)}]});
                let reply = http.post(url).json(&body).send().await?;
                let status = reply.status();
                let bytes = reply.bytes().await?;
                if !status.is_success() {
                    return Err(fail(format!("{status}: {}", String::from_utf8_lossy(&bytes))));
                }
                checked(&serde_json::from_slice(&bytes)?, *kind)
            }
        }
    }
}

fn checked(answer: &Answer, kind: Kind) -> Result<(), Failure> {
    let whole = answer.status == RunStatus::Completed
        && answer.steps.len() == 2
        && answer.steps.iter().all(|step| step.tool_calls.len() == 1)
        && u64::from(answer.usage.llm_calls) == kind.calls();
    if whole { Ok(()) } else { Err(fail(format!("a flow ended unexpectedly: {answer:?}"))) }
}
