//! Among which alternatives a model may choose, where predefined logic would call one of several.

use super::{CallFailure, Capabilities, RecoveryAction, RefusedAction, ToolPolicies, alternative};

/// The ids of alternatives in a question, by their place. As many as a tool may declare.
const IDS: [&str; super::super::policy::MAX_ALTERNATIVES] =
    ["alternative_1", "alternative_2", "alternative_3", "alternative_4"];

/// The id of the alternative at this place, from 0: `alternative_1` to `alternative_4`.
pub fn decision_id(at: u32) -> &'static str {
    IDS.get(at as usize).copied().unwrap_or("alternative")
}

/// The alternatives among which a model may choose, in their order; empty where there is no choice, or the tool does not
/// say by what to choose.
pub fn decision_options(failure: &CallFailure<'_>, declared: Option<&ToolPolicies>) -> Vec<RecoveryAction> {
    let has_criteria = declared.is_some_and(|declared| !declared.choose_by.is_empty());
    let open = failure.open_alternatives;
    if !has_criteria || open.len() < 2 {
        return Vec::new();
    }
    open.iter().map(|at| RecoveryAction::Alternative { at: *at }).collect()
}

/// Why this alternative cannot be called now, if so.
pub fn decision_refusal(
    option: RecoveryAction,
    failure: &CallFailure<'_>,
    declared: Option<&ToolPolicies>,
    may: Capabilities,
) -> Option<RefusedAction> {
    let RecoveryAction::Alternative { at } = option else { return Some(RefusedAction::NotDeclared) };
    let is_used = !failure.open_alternatives.contains(&at);
    alternative(failure, declared, may).err().or(is_used.then_some(RefusedAction::Used))
}
