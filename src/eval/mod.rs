//! Evaluation: labelled requests are executed over any model, and compared with their labels.
//!
//! [`read_files`] reads labelled requests and scenarios, [`Evaluation`] executes them, and an [`EvalReport`] says how many
//! were executed as labelled, and what went wrong in the others. `tests/eval/README.md` describes the files.
//!
//! **Invariant:** judging, counting and comparing are pure; only `execute` starts anything.

mod backend;
mod compare;
mod counts;
mod execute;
mod executed;
mod expected;
mod fault;
mod interval;
mod judge;
mod junit;
mod known;
mod labels;
mod mentions;
mod read;
mod report;
mod require;
mod rows;
mod scenario;
mod scenes;
mod spending;
#[cfg(test)]
mod testing;
mod text;

pub use compare::{ChangedRequest, EvalComparison};
pub use counts::{EvalCounts, NO_SCENE, PartOfWhole, SetCounts};
pub use execute::{EvalOptions, Evaluation, RealHttpTool};
pub use executed::{ExecutedCall, ExecutedRequest, ExecutedStep};
pub use fault::{EvalError, EvalFileFault};
pub use interval::ShareInterval;
pub use judge::{EvalFault, EvalFaultKind, Judgement, SetMatch, judge};
pub use junit::junit;
pub use labels::{
    EarlierTurn, EvalSet, ExpectedTool, LabelledCall, LabelledConversation, LabelledRequest, OUT_OF_SCOPE,
    Surroundings,
};
pub use read::{read_files, read_scenarios};
pub use report::{
    ClassCounts, EvalReport, EvalSubject, JudgedRequest, LatencyFigures, REPORT_FORMAT, RepetitionReport,
    RequestReport,
};
pub use require::EvalRequirement;
pub use scenario::{RepeatedTurn, Scenario, ScenarioTurn};
pub use spending::SpendingLimits;
pub use text::{comparison_text, report_text};
