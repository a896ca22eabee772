//! Runs: one plan being carried out for one request, as a pure state machine.
//!
//! **Invariant:** this module is pure and knows only `plan`. No clock, no I/O, no randomness, no
//! actor: time, ids and timers arrive as events.

mod context;
mod event;
mod ids;
mod session;
mod settings;

pub use context::{Context, Pending, Turn, TurnCall};
pub use event::{
    Cause, Effect, Envelope, Event, Fault, Maker, Outcome, PlanMade, Question, Repeat, Reply, ReplyCall,
    RequestedCall, RunQueued, RunStarted, RunStatus, SCHEMA, Subject, Usage, Verdict,
};
pub use ids::{InvalidId, RunId, SessionId, TenantId};
pub use session::SessionEvent;
pub use settings::{Duplicates, OutOfScope, Reader, Settings};
