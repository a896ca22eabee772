//! The promises of the product, each kept by tests against the real thing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail as tests do")]

mod gateway;
mod llm_faults;
#[path = "../support/mod.rs"]
mod support;
