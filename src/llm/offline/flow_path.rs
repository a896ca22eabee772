//! The path through a flow: that of the example which is most like the request.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::prompt::PromptText;
use crate::flow::{FlowBrief, rules_path};

/// The arguments of `PlanFlowPath`; `None` where no flow is described or no path is possible.
pub(super) fn path(prompt: &PromptText) -> Option<Value> {
    let brief: FlowBrief = serde_json::from_str(&prompt.get("flow")).ok()?;
    let given = prompt.get("given");
    let given: BTreeSet<String> =
        given.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let path = rules_path(&brief.graph(), &prompt.request(), &given);
    (!path.is_empty()).then(|| json!({"reasoning": "", "path": path}))
}
