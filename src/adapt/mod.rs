//! Adaptive execution: who may be asked when something unexpected happens, what may change, and what predefined logic
//! does about a failed call, and whether a model is asked about it; what a mapping makes of data of another shape; how
//! well tools work lately, and when they are not called.
//!
//! **Invariant:** this module is pure and knows no run, plan or scene: it takes facts and returns decisions.

mod backoff;
mod capabilities;
mod consult;
mod health;
mod level;
mod mapping;
mod policy;
mod respond;
mod vote;

pub use backoff::{MAX_TIMER_MS, backoff_ms};
pub use capabilities::{Capabilities, capabilities, capabilities_table};
pub use consult::{
    AskRefusal, AskingFacts, ConsultationKind, ConsultationLimits, ConsultationOutcome, ReplyOrigin,
    whether_to_ask,
};
pub use health::{HealthReport, ToolBreakerConfig, ToolBreakerState, ToolForecast, ToolHealth, ToolUse};
pub use level::{ExecutionLevel, ExecutionMode, completed};
pub use mapping::{MAX_MAPPED_BYTES, MappedPlace, MappingProblem, map_data, shape};
pub(crate) use policy::resolved_arguments;
pub use policy::{
    AlternativeTool, CachedResult, FaultPolicy, MAX_ALTERNATIVES, PolicyAction, PolicyDefaults, ToolPolicies,
};
pub(crate) use respond::is_one;
pub use respond::{
    CallFailure, PolicyChoice, RecoveryAction, RefusedAction, Repetition, WeighedAction, decision_id,
    decision_options, decision_refusal, is_final, recovery_choices, recovery_options, recovery_refusal,
    respond,
};
pub use vote::{settled, winner};
