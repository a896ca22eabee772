//! The promises of the product, each kept by tests against the real thing.

mod llm_faults;
#[path = "../support/mod.rs"]
mod support;
