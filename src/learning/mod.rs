//! Learning from executions: requests of one kind, the plans that succeeded for them, and when such a plan may be used
//! again without a planner.
//!
//! A request's *template* is its words with typed placeholders for its values. A plan is learned only where each argument
//! of its calls comes from exactly one placeholder, from words that every request of the template has, or from the result
//! of an earlier call. So a reused plan holds nothing of another request, and nothing that this one does not say.
//!
//! A path through a flow is learned like a plan, by the template of what the flow's step is for. It holds names of nodes
//! and no value.
//!
//! **Invariant:** pure. What is known of a template comes from the store, and enters a run as an event.

mod binding;
mod filling;
mod lesson;
mod path;
mod similarity;
mod standing;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use lesson::lessons;
pub(crate) use path::{PathLookUp, PathTemplate, template_of_path};
pub(crate) use similarity::hints;
pub use standing::LearnedStanding;
pub(crate) use standing::{PlanHistory, counted, recalled, standing};
pub(crate) use template::{RequestTemplate, template_of_run, user_hash};
