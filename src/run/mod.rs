//! Runs: one plan being carried out for one request, as a pure state machine.
//!
//! **Invariant:** this module is pure and knows only `plan`. No clock, no I/O, no randomness, no
//! actor: time, ids and timers arrive as events.

mod action;
mod admit;
mod apply;
mod approval;
mod attempt;
mod compensate;
mod confirm;
mod context;
mod event;
mod guard;
mod ids;
mod key;
mod next;
mod omitted;
mod plain;
pub mod recovery;
mod session;
mod settings;
mod state;
#[cfg(test)]
mod tests;

pub use action::Action;
pub use admit::Illegal;
pub use approval::{Approval, Decision, EditedCall, Matter, Needed, Undo, shows_call};
pub use attempt::{Attempt, Reserved};
pub use confirm::UNCONFIRMED;
pub use context::{ConfirmedCall, Context, Pending, Turn, TurnCall};
pub use event::{
    Cause, Effect, Envelope, Event, Fault, Idempotency, Maker, NOT_PUT, Outcome, PlanMade, Question, Repeat,
    Reply, ReplyCall, RequestedCall, RunQueued, RunStarted, RunStatus, SCHEMA, Subject, Unconfirmed, Usage,
    Verdict, Word,
};
pub use ids::{ApprovalId, InvalidId, RunId, SessionId, TenantId};
pub use key::{call_key, canonical_json, exact_json, idempotency_key};
pub use session::SessionEvent;
pub use settings::{
    ApprovalPolicy, AskFor, CacheMode, ConfirmPolicy, Duplicates, MAX_WRITES, OutOfScope, RULES, Reader,
    Settings,
};
pub use state::{
    Answer, Ask, AskStatus, CallState, CallStatus, Cancel, Feedback, Planning, Round, RunState, StepState,
};
