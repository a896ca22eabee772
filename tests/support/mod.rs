//! What the tests of `tests/promises` share. A test asserts what a user would notice, with the real program or
//! the real engine behind its real border; only models and back ends are scripted.
//!
//! **Start the product**
//!
//! | with | what runs | for |
//! | --- | --- | --- |
//! | [`Setup`] → [`TestEngine`] | an engine in this process, with a data directory of its own | answers, journals, settings |
//! | [`ServedEngine`] | the same behind a server on loopback, with an HTTP client | the HTTP interfaces |
//! | `promises/process.rs`: `Workspace` | the program in processes of its own | the command line, restarts, kills |
//! | `crashing.rs` | the program with crash points | a kill or panic at a chosen event |
//!
//! **Script a model.** [`ScriptedLlm`] is a server that answers each request with a [`Scripted`] reply, also a
//! broken one. [`model_script::ModelScript`] is a sensible model: plans and calls by request, as YAML.
//!
//! ```ignore
//! let llm = ScriptedLlm::start(|request, nth| match support::forced_tool(request) {
//!     Some("CreateExecutionPlan") => Scripted::forced(request, json!({"needs_execution": false})),
//!     _ if nth == 3 => Scripted::status(503),
//!     _ => Scripted::Text("It is sunny.".into()),
//! });
//! let gateway = Gateway::new(llm.options(), Arc::new(support::NoModel)).unwrap();
//! …
//! assert_eq!(llm.count(), 2);
//! assert_eq!(support::section(&llm.request(0), "request").as_deref(), Some("hello"));
//! ```
//!
//! **Take a world** of scenes with its model: [`Shelf`] (a run held at a chosen place), [`Office`] (approvals; a
//! back end over HTTP), [`workshop`] (every outcome of a call), [`planner_engine`] (a town of three scenes).
//! [`embeddings`] simulates a model of embeddings. [`Backend`] is an HTTP back end, [`FaultyBackend`] one that misbehaves,
//! [`otlp_receiver`] takes traces, [`disk`] is a disk that is full or loses power, [`prometheus`] a real Prometheus,
//! [`postgres`] a real PostgreSQL.
//!
//! **Order events.** A [`Gate`] holds one side until the other has come to a place. Where only a result can be
//! seen, [`eventually`] asks for it and fails if it never comes. Never sleep for a time in which something
//! should have happened: such a test fails on a slow machine, or passes without a proof. That something does
//! *not* happen is asserted after something else that takes longer has happened.
//!
//! **Judge.** [`journal`] has the invariants of every stored run, [`wire`] those of every request to a model,
//! [`exposition`] those of `/metrics`.

#![expect(unused_imports, reason = "not every test module uses every helper")]

mod backend;
pub mod corruption;
pub mod dashboard;
pub mod depot;
pub mod disk;
pub mod embeddings;
pub mod eval;
mod eventually;
pub mod exposition;
pub mod faulty_backend;
mod gate;
pub mod guards;
pub mod journal;
mod loopback_server;
pub mod model_script;
pub mod nginx;
mod office;
pub mod old_release;
pub mod otlp_receiver;
pub mod planner_engine;
pub mod postgres;
pub mod prometheus;
pub mod promql;
pub mod recordings;
mod request;
pub mod sandbox_programs;
pub mod scenario;
mod scripted;
mod scripted_llm;
pub mod served_engine;
pub mod shelf;
pub mod sql_pair;
pub mod sql_pairs;
pub mod stored;
pub mod test_engine;
pub mod wire;
pub mod workshop;

use async_trait::async_trait;
use proscenium::llm::{CallControl, Completion, Error, ErrorKind, Provider, Request};

pub use backend::{Backend, ReceivedRequest};
pub use eventually::eventually;
pub use faulty_backend::{FaultyBackend, Misbehaviour};
pub use gate::Gate;
pub use office::Office;
pub use request::{forced_tool, is_repair, last_message, messages, section, tool_names, tool_results};
pub use scripted::{
    ReportedUsage, Scripted, ScriptedCall, StreamEnd, arguments, calls, chunk, finish, words,
};
pub use scripted_llm::ScriptedLlm;
pub use served_engine::{Reply, ServedEngine, Sse};
pub use shelf::Shelf;
pub use test_engine::{FinishedRun, Setup, TestEngine};

/// How many kills, rounds or requests a test makes: `SOAK` if it is set, else `usual`.
pub fn size(usual: usize) -> usize {
    std::env::var("SOAK").ok().and_then(|size| size.parse().ok()).unwrap_or(usual)
}

/// Takes the place of the offline model and fails every call, for tests of what precedes them.
pub struct NoModel;

#[async_trait]
impl Provider for NoModel {
    fn name(&self) -> &str {
        "none"
    }

    async fn complete(&self, _: &Request, _: &CallControl) -> Result<Completion, Error> {
        Err(Error::new("none", ErrorKind::NotConfigured { detail: "this test has no offline model".into() }))
    }
}
