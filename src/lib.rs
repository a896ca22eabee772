//! Proscenium: an actor-based multi-agent server and library.
//!
//! A request that spans several domains is planned by a model that is *forced* to answer with a
//! structured plan; each **scene** of the plan is an actor with its own tools; a forced check decides
//! whether the request is answered; one answer goes out. Everything that happens is an event in a
//! journal, appended before it takes effect.
//!
//! [`Engine`] is the way in; [`scene::Scene::builder`] makes a scene in Rust. The map of the crate is
//! in ARCHITECTURE.md.

pub mod access;
pub mod actors;
mod answer;
pub mod config;
mod conversation;
#[cfg(not(feature = "crash-points"))]
mod crash;
#[cfg(feature = "crash-points")]
#[doc(hidden)]
pub mod crash;
mod documents;
pub mod engine;
pub mod http;
pub mod llm;
pub mod memory;
mod nearest;
mod nested;

pub mod notify;
pub mod parts;
pub mod plan;
pub mod planner;
pub mod public;
pub mod replay;
pub mod run;
pub mod scene;
mod schema;
pub mod setting;
pub mod store;
pub mod telemetry;
pub mod tools;
pub mod unseen;

pub use actors::live::Watch;
pub use answer::{
    Answer, AnswerApproval, AnswerCall, AnswerStep, AnswerUsage, CallOutcome, Metadata, Timings,
};
pub use config::Config;
pub use documents::{ApprovalDocument, PlanDocument, PlanSummary, PlanVersion, VersionPage};
pub use engine::{Builder, ChatRequest, Engine, StartError, Submitted, Ticket, fold};
pub use public::{EventId, PublicEvent, PublicStream};
pub use schema::Schema;
