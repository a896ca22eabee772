//! The names of the built-in functions that the planner offers to models. The offline model calls them by these names,
//! and a scene's tools may not take them.

/// The forced function of the planner.
pub const CREATE_PLAN: &str = "CreateExecutionPlan";
/// The forced function of the continuation check.
pub const CHECK_CONTINUATION: &str = "CheckContinuation";
/// The forced function by which a model changes the unfinished part of a plan.
pub const ADAPT_PLAN: &str = "AdaptPlan";
/// The forced function by which a path through a flow is planned.
pub const PLAN_FLOW_PATH: &str = "PlanFlowPath";
/// The forced function by which a node's model returns its result.
pub const REPORT_NODE: &str = "ReportNode";
/// The forced function by which a model says what a user's reply changes in the lists of a question.
pub const CHANGE_LISTS: &str = "ChangeLists";
/// The forced function by which a model reports the facts of a part of a document.
pub const REPORT_FACTS: &str = "ReportFacts";
/// The forced function by which a model chooses the facts that a summary needs.
pub const KEEP_FACTS: &str = "KeepFacts";
/// The forced function by which a model writes the summary of documents.
pub const WRITE_SUMMARY: &str = "WriteSummary";
/// The function by which a scene's model asks the user.
pub const ASK_USER: &str = "AskUser";
/// The forced function of a consultation about a failed call.
pub const CHOOSE_RECOVERY: &str = "ChooseRecovery";
/// The forced function of a consultation about data of another shape.
pub const INTERPRET_DATA: &str = "InterpretData";
/// The forced function of a consultation about which alternative is called.
pub const MAKE_DECISION: &str = "MakeDecision";
/// The forced function by which a scene's model decides what comes next.
pub const NEXT_CALL: &str = "NextCall";
