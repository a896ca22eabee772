//! The promises of the product, each kept by tests against the real thing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail as tests do")]

mod continuation;
mod conversations;
mod degradation;
mod llm_faults;
mod planner_faults;
mod planner_worth;
mod scenarios;
mod scene_faults;
#[path = "../../scenes/shipped.rs"]
mod shipped;
mod stranger;
#[path = "../support/mod.rs"]
mod support;
