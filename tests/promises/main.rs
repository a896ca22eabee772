//! The promises of the product, each kept by tests against the real thing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail as tests do")]

mod approvals_api;
mod approvals_lasting;
mod approvals_said;
mod audit;
mod canary;
mod check;
mod cli;
mod confirm;
mod confirm_yes;
mod continuation;
mod conversations;
mod crash;
mod dashboards;
mod degradation;
mod depot;
mod eval;
mod example;
mod figures;
mod full_disk;
mod gateway;
mod keys;
mod keys_approve;
mod llm_faults;
mod old_journals;
mod old_journals_written;
mod openapi;
mod overload;
mod planner_faults;
mod planner_worth;
mod plans_api;
mod plans_cli;
mod prepared;
mod process;
mod python;
mod readme;
mod real_replies;
mod reload;
mod replay_cli;
mod replays;
mod scenarios;
mod scene_faults;
mod sent_again;
mod server_api;
mod server_cli;
mod server_faults;
mod server_limits;
mod server_v1;
mod sessions;
#[path = "../../scenes/shipped.rs"]
mod shipped;
mod store_faults;
mod stranger;
mod streaming;
mod streams_asked;
#[path = "../support/mod.rs"]
mod support;
mod synced;
mod tenants;
mod torn;
mod webhook;
