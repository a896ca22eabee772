//! From a request to a plan, and from replies to events: the two forced decisions, the scenes' loop and the
//! text of the answer.
//!
//! **Invariant:** pure. Prompts are functions of a run's state and the catalogue; reading a reply gives
//! exactly one event. `actors` sends the prompts.

mod answer_figures;
mod answer_preview;
mod approval;
mod command;
mod completed_work;
mod confirmation;
pub mod consent;
mod constraints;
mod consult;
mod decide;
mod documents;
mod facts;
mod failed_call;
mod flow_node;
mod flow_path;
mod flow_plan;
mod grounding;
mod interpret;
mod list_change;
pub mod list_edits;
mod patch;
mod plan_prompt;
mod plan_reply;
mod planned_calls;
mod preflight;
mod program;
mod program_functions;
mod program_tables;
mod prompt;
mod read;
mod recall;
mod repair;
mod required_reply;
mod scene_reply;
mod shortlist;
mod step_expectations;
mod substitute;
mod summary;
mod supplied_plan;
mod synthesis;
#[cfg(test)]
mod tests;
mod tool_changes;
mod tools;
mod unchanged;
mod window;

pub use answer_preview::AnswerPreview;
pub use approval::{expects_writes, lapsed_approval, required_plan_approval, tool_definitions};
#[cfg(test)]
pub(crate) use approval::{required_call_approval, with_approval};
pub use command::{ApproverChoice, Command, CommandAction, CommandRefusal, LapseEvent, events_for_command};
pub use confirmation::confirmed;
pub use constraints::check_constraints;
pub(crate) use documents::question_for_documents;
pub use failed_call::{CallAttempts, FailedCall, consulted_call};
pub use flow_plan::path_writes;
pub use interpret::interpreted;
#[cfg(test)]
pub(crate) use patch::{PatchReply, read as read_patch};
pub use planned_calls::prepared;
pub use preflight::plan_problems_before_start;
pub(crate) use preflight::{plan_refused, questions_to_afford};
#[cfg(test)]
pub(crate) use program::read as read_program;
pub use program::{program, program_replied, within_total_time};
pub use prompt::{offered, request};
pub(crate) use read::is_usable_reading;
pub use read::read;
pub use recall::recall_key;
pub use shortlist::{MAX_RANKED, needs_shortlist};
pub use step_expectations::{is_as_expected, step_expectations};
pub use substitute::substitute;
pub use summary::{read_summary, summary_request};
pub use supplied_plan::{supplied_plan, usable_learned_plan};
pub use tool_changes::{changed_tool, scene_levels};
pub use tools::{
    ADAPT_PLAN, ASK_USER, CHANGE_LISTS, CHECK_CONTINUATION, CHOOSE_RECOVERY, CREATE_PLAN, INTERPRET_DATA,
    MAKE_DECISION, NEXT_CALL, PLAN_FLOW_PATH, REPORT_NODE,
};
pub use window::unfit_request;
