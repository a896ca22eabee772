//! The actors, one module each. They pass messages and contain no rules; the rules are in
//! `plan`, `run` and `conversation`.
//!
//! **Invariant:** an actor is used through its handle only; its address and message types stay private to
//! its module, and nothing blocks an arbiter's thread.

pub mod active_runs;
pub(crate) mod answer_feed;
pub(crate) mod clock;
pub mod cost_budget;
pub(crate) mod driver;
pub(crate) mod idle_conversations;
pub mod journal;
pub mod kpis;
pub(crate) mod launch;
pub mod rate_limiter;
pub(crate) mod recovery_gate;
pub mod response_cache;
mod run_documents;
mod runtime_task;
pub(crate) mod scene;
pub(crate) mod scene_manager;
pub(crate) mod scene_vectors;
pub(crate) mod session_registry;
pub(crate) mod stream_end;
pub(crate) mod summary_places;
pub(crate) mod summary_room;
pub(crate) mod supervised;
pub(crate) mod tool_healths;
