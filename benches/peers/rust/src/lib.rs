//! What the compared Rust programs have in common: the flow, the load, and the orders that `benches/peers/run` gives.

pub mod drive;
pub mod flow;
#[path = "../../../shared/instant.rs"]
pub mod instant;
pub mod orders;

/// Why a measurement failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A failure with these words.
pub fn fail(why: impl Into<String>) -> Failure {
    why.into().into()
}

/// A failure of a framework, whose errors may not be shared between threads.
pub fn failed(error: impl std::fmt::Display) -> Failure {
    error.to_string().into()
}
