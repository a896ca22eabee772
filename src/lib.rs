//! Proscenium: an actor-based multi-agent server and library.

pub mod actors;
pub mod llm;
pub mod memory;
pub mod plan;
pub mod run;
pub mod scene;
pub mod store;
pub mod tools;
