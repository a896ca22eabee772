//! Proscenium: an actor-based multi-agent server and library.

pub mod config;
pub mod llm;
pub mod plan;
pub mod run;
pub mod scene;
pub mod tools;
