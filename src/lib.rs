//! Proscenium: an actor-based multi-agent server and library.
//!
//! A model plans a request that spans several domains; it is *forced* to reply with a structured plan. Each
//! **scene** of the plan is an actor with its own tools. A forced continuation check decides whether the
//! request is answered, and the user gets one answer. Everything that happens is an event in a journal,
//! appended before it takes effect.
//!
//! [`Engine`] is the entry point; [`scene::Scene::builder`] builds a scene in Rust. `examples/two_tools.rs` is a
//! complete program. ARCHITECTURE.md has the map of the crate.
//!
//! # A conversation
//!
//! A program uses a running engine like this. [`Engine::request`] makes a request of the configured default user,
//! [`ChatRequest::new`] one of any other user:
//!
//! ```no_run
//! use futures::StreamExt as _;
//! use proscenium::{ChatRequest, Engine, run::RequestOptions};
//!
//! # async fn example(engine: Engine) -> Result<(), Box<dyn std::error::Error>> {
//! // Once, after the start: runs that an earlier process left unfinished continue in the background.
//! engine.resume_unfinished().await?;
//!
//! // Text is shown as it is written. The other events describe the plan, its steps and calls, see `public`.
//! let mut ticket = engine.submit(engine.request("Where is order 12?", None)).await?;
//! let (run, session) = (ticket.run, ticket.session.clone());
//! let mut events = ticket.stream();
//! while let Some(event) = events.next().await {
//!     let event = event?;
//!     match event.name {
//!         "answer_delta" => print!("{}", event.data["text"].as_str().unwrap_or_default()),
//!         "answer_reset" => println!(), // the text so far is void
//!         _ => {}
//!     }
//! }
//! let answer = ticket.answer().await?; // the whole answer document, as `POST /api/chat` returns it
//! println!("{}: {}", answer.status, answer.answer);
//!
//! // The next turn of the conversation. Its plan waits for a person, who approves or cancels it.
//! let options = RequestOptions { require_approval: true, ..RequestOptions::default() };
//! let request = ChatRequest { options, ..engine.request("And cancel it", Some(session)) };
//! let waiting = engine.chat(request).await?;
//! let plans = engine.plans();
//! let plan = plans.status(waiting.task_id).await?;
//! let done = plans.approve(plan.task_id, plan.version).await?;
//! println!("{}", done.answer.unwrap_or_default());
//!
//! // What happened: the journal of a run, and the metrics of the engine in the text format of Prometheus.
//! let (tenant, _) = engine.default_principal();
//! for event in engine.store().run_events(&tenant, run).await? {
//!     println!("{} {} {}", event.seq, event.at, event.body.name());
//! }
//! println!("{}", engine.metrics().await.unwrap_or_default());
//! engine.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Config`] has the same settings as the configuration file of the program, with the same bounds; a model is an entry of
//! `config.llm.models` ([`llm::ModelOptions`]). Errors that a request can end with are [`run::Fault`]s with a stable code; a
//! [`StartError`] has one, too. [`Engine::cancel`] cancels a run, [`Engine::stream`] follows one again after [`EventId`], and
//! [`Engine::submit_once`] executes a request with an idempotency key once.

#![cfg_attr(
    not(feature = "server"),
    expect(dead_code, reason = "some of what the engine offers within the crate is for the server alone")
)]

// The shipped scenes name this crate as library users do.
#[cfg(feature = "scenes")]
extern crate self as proscenium;

pub mod access;
pub mod actors;
pub mod adapt;
mod answer;
#[cfg(any(feature = "eval", feature = "load"))]
mod bound;
pub mod config;
mod conversation;
#[cfg(not(any(feature = "crash-points", debug_assertions)))]
mod crash;
#[cfg(any(feature = "crash-points", debug_assertions))]
#[doc(hidden)]
pub mod crash;
mod documents;
pub mod engine;
#[cfg(feature = "eval")]
pub mod eval;
pub(crate) mod fairness;
mod fault;
pub mod flow;
mod host;
#[cfg(feature = "server")]
pub mod http;
mod language;
mod learning;
pub mod llm;
#[cfg(feature = "load")]
pub mod load;
pub mod long_integers;
pub mod memory;
mod mutex;
mod nearest;
mod nesting;

pub mod invisible;
pub mod notify;
pub mod parts;
pub mod plan;
pub mod planner;
pub mod program;
pub mod public;
pub mod replay;
mod retry_after;
pub mod run;
pub mod sandbox;
pub mod scene;
mod schema;
mod sentences;
pub mod setting;
#[cfg(feature = "scenes")]
#[path = "../scenes/shipped.rs"]
pub mod shipped;
#[cfg(feature = "server")]
pub mod simulate;
pub mod sql_engine;
pub mod sql_guard;
pub mod staged;
pub mod store;
pub mod summary;
pub mod telemetry;
pub mod tools;
pub mod trace_context;

pub use actors::active_runs::RunWatch;
pub use answer::{
    Answer, AnswerApproval, AnswerCall, AnswerDecision, AnswerFlow, AnswerNode, AnswerStep, AnswerUsage,
    AnswerWrite, CallOutcome, Metadata, Timings, answer_text,
};
pub use config::Config;
pub use documents::{
    ApprovalDecision, ApprovalDocument, CallDocument, ExplainedConsultation, ExplainedCost, ExplainedDecider,
    ExplainedEvent, ExplainedOption, ExplainedResult, ExplainedSubject, Explanation, FactFilter, FactPage,
    FlowDocument, FlowEdgeDocument, FlowNodeDocument, LearnedDocument, MissingNodeDocument, PlanDocument,
    PlanSummary, PlanVersion, RatingDocument, SubjectDocument, UploadedDocument, VersionPage,
};
pub use engine::{
    Builder, ChatRequest, Engine, PlanModification, RunTicket, StartError, Submitted, UserPlans, fold,
};
pub use language::number_word;
pub use learning::LearnedStanding;
pub use public::{EventId, PublicEvent, PublicStream};
pub use schema::Schema;

/// Unit tests allocate as the program does, which takes less time.
#[cfg(all(test, feature = "cli"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
