//! Proscenium: an actor-based multi-agent server and library.

mod answer;
pub mod config;
pub mod llm;
pub mod plan;
pub mod run;
pub mod scene;
pub mod tools;

pub use answer::{Answer, AnswerCall, AnswerStep, AnswerUsage, CallOutcome, Metadata, Timings};
