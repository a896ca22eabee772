//! From a request to a plan, and from replies to events: the two forced decisions, the scenes' own
//! loop and the words of the answer.
//!
//! **Invariant:** pure. Prompts are functions of a run's state and the catalogue; reading a reply
//! gives exactly one event. Who sends them is `actors`' matter.

mod approval;
mod command;
mod confirm;
pub mod consent;
mod executed;
mod founded;
mod given;
mod grounding;
mod prompt;
mod read;
mod shown;
#[cfg(test)]
mod tests;
mod tools;
mod wanted;

#[cfg(test)]
pub(crate) use approval::{call_needs, with_approval};
pub use approval::{expects_writes, lapsed, plan_needs, preflight};
pub use command::{Choice, Command, Lapse, Refused, Wish, command};
pub use confirm::{confirmed, prepared};
pub use given::given;
pub use prompt::{offered, prompt_hash, request};
pub use read::read;
pub use shown::Shown;
pub use tools::{ASK_USER, CHECK_CONTINUATION, CREATE_PLAN, NEXT_CALL};
