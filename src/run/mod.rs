//! Runs: the execution of one request's plan, as a pure state machine.
//!
//! **Invariant:** this module is pure and knows only `plan`, `flow`, `program`, the rules of `adapt` and the fixed `sentences`. No clock, no
//! I/O, no randomness, no actor: ids and timers arrive as events, and time with their envelopes.

mod action;
mod adaptation;
mod admit;
mod answer_text;
mod apply;
mod approval;
mod attempt;
mod calls;
mod compact_json;
mod compensation;
mod confirmation;
mod consult;
mod context;
mod decision;
mod document;
mod event;
mod event_bound;
mod fact;
mod failed_writes;
mod failure;
mod failure_text;
mod flow;
mod guard;
mod guidance;
mod ids;
mod interpretation;
mod key;
mod learned;
mod levels;
mod list_change;
mod missed_reads;
mod next;
mod omissions;
mod patch;
mod plain_text;
mod program;
mod question_terms;
mod recall;
pub mod recovery;
mod refusal;
mod restored;
mod round;
mod session;
mod settings;
mod state;
mod substitution;
mod summary;
mod synthesis;
mod takeover;
#[cfg(test)]
pub(crate) mod tests;
mod timers;
mod tool_report;
mod vote;
mod work;

pub use crate::sentences::FailureKind;
pub use action::Action;
pub use admit::Illegal;
pub(crate) use answer_text::{AnswerChunk, AnswerCursor, AnswerText};
pub use approval::{
    ApprovableLists, Approval, ApprovalSubject, Decision, EXPIRY, EditedCall, ListChangeWords,
    RequiredApproval, Undo, shows_call,
};
pub use attempt::{AskReservation, Attempt};
pub use calls::Calls;
pub use compact_json::CompactJson;
pub(crate) use compact_json::plain_leaves;
pub use confirmation::UNCONFIRMED;
pub use consult::{AskOrigin, ConsultationState};
pub use context::{ConfirmedCall, Context, PendingQuestion, Turn, TurnCall};
pub use document::{DocumentId, DocumentMedia, DocumentText, NamedDocument};
pub use event::{
    Adaptation, ConsultationChoice, ConsultationSubject, Durability, Effect, Envelope, Event, EventFacts,
    Fault, FaultClass, Idempotency, InterpretedResult, NO_APPROVAL, Origin, Outcome, PartOutcome, PlanCause,
    PlanMade, PlanMaker, PlanPatch, ProgramStop, Purpose, Question, RecalledResult, Repeat, Reply, ReplyCall,
    RequestIdentity, RequestOptions, RequestedCall, ResultNotes, RunQueued, RunStarted, RunStatus, SCHEMA,
    StatusChange, Subject, SubjectFacts, SummarisedDocument, SummaryOutline, SummaryOwner, TimerSubject,
    Unconfirmed, UnexpectedSubject, UnpreparedCall, UnusableCall, Usage, Verdict, parse_event,
};
pub(crate) use event_bound::BoundedAction;
pub use fact::{
    CallOrigin, DocumentQuote, DocumentSpan, FactEvidence, FactKind, FactSource, KnownFact, StatedFact,
    TurnOrigin,
};
pub use failure::POSTCONDITION;
pub use guidance::{PlanConstraints, PlanGuidance};
pub use ids::{ApprovalId, InvalidId, RunId, SessionId, TenantId};
pub use key::{call_key, canonical_json, exact_json, idempotency_key};
pub use learned::{
    Demotion, HintStep, LearnMode, LearnedCall, LearnedPlan, LearnedStep, LessonResult, MAX_RATINGS,
    PathHint, PathRecall, PlanHint, PlanLesson, PlanRecall, PlanScore, RecallOutcome, SpanForm, ValueBinding,
};
pub(crate) use omissions::visible_text;
pub use patch::PatchScope;
pub use question_terms::QuestionTerms;
pub use restored::{RESTORED, unreadable_restored_events, writes_since};
pub use session::{SessionEvent, TurnSpan};
pub use settings::{
    ApprovalPolicy, ApprovalScope, CacheMode, ConfirmPolicy, Duplicates, MAX_WRITES, OutOfScope,
    PlanningMaker, PrepareMode, RULES_REVISION, ReaderMode, SceneMode, Settings,
};
pub use state::{
    Ask, AskStatus, CallState, CallStatus, Cancellation, FinalAnswer, PlanFeedback, PlanInProgress, RunState,
    StepState,
};
pub use takeover::Takeover;
pub use timers::RunTimer;
pub(crate) use timers::TimerDriver;
pub use vote::Vote;
pub use work::{
    CodeWork, FlowWork, NodeWork, PlannedPath, ProgramStepCall, Round, STAGED_CONFLICT, SceneWork, StepWork,
    SummaryWork, SynthesisWork, WrittenProgram, fitted_facts,
};

/// Returns whether a value is that of its type's default, which is not written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
