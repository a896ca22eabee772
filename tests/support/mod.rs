//! A scripted model server over the wire.
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

#![expect(unused_imports, reason = "not every test module uses every helper")]

mod backend;
pub mod corruption;
pub mod dashboard;
pub mod disk;
pub mod eval;
pub mod exposition;
mod gate;
pub mod guards;
pub mod journal;
pub mod mentions;
pub mod model_script;
mod office;
pub mod old_release;
pub mod planner_engine;
pub mod prometheus;
pub mod promql;
pub mod recordings;
mod request;
pub mod scenario;
mod scripted;
mod scripted_llm;
pub mod served_engine;
pub mod shelf;
pub mod stored;
pub mod test_engine;
pub mod wire;
pub mod workshop;

use async_trait::async_trait;
use proscenium::llm::{CallControl, Completion, Error, ErrorKind, Provider, Request};

pub use backend::{Backend, ReceivedRequest};
pub use gate::Gate;
pub use office::Office;
pub use request::{forced_tool, is_repair, last_message, section, tool_names, tool_results};
pub use scripted::{ReportedUsage, Scripted, ScriptedCall, StreamEnd, arguments, chunk, finish, words};
pub use scripted_llm::ScriptedLlm;
pub use served_engine::{Reply, ServedEngine, Sse};
pub use shelf::Shelf;
pub use test_engine::{FinishedRun, Setup, TestEngine};

/// Takes the place of the embedded rules and fails every call, for tests of what precedes them.
pub struct NoModel;

#[async_trait]
impl Provider for NoModel {
    fn name(&self) -> &str {
        "none"
    }

    async fn complete(&self, _: &Request, _: &CallControl) -> Result<Completion, Error> {
        Err(Error::new("none", ErrorKind::NotConfigured { detail: "this test has no embedded rules".into() }))
    }
}
