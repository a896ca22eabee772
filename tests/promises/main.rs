//! The promises of the product, each kept by tests against the real thing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail as tests do")]

mod conversations;
mod llm_faults;
mod scenarios;
#[path = "../../scenes/shipped.rs"]
mod shipped;
mod stranger;
mod continuation;
mod degradation;
mod llm_faults;
mod planner_faults;
mod planner_worth;
mod scene_faults;
#[path = "../support/mod.rs"]
mod support;
