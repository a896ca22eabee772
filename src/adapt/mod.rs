//! Adaptive execution: who may be asked when something unexpected happens, what may change, and what predefined logic
//! does about a failed call.
//!
//! **Invariant:** this module is pure and knows no run, plan or scene: it takes facts and returns decisions.

mod backoff;
mod capabilities;
mod level;
mod policy;
mod respond;

pub use backoff::{MAX_TIMER_MS, backoff_ms};
pub use capabilities::{Capabilities, capabilities, capabilities_table};
pub use level::{AVAILABLE_LEVELS, AVAILABLE_MODES, ExecutionLevel, ExecutionMode, completed};
pub use policy::{AlternativeTool, CachedResult, FaultPolicy, PolicyAction, PolicyDefaults, ToolPolicies};
pub use respond::{CallFailure, PolicyChoice, RefusedAction, Repetition, WeighedAction, respond};
