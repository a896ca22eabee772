//! The key under which the last good result of a call is kept.

use serde_json::json;

use super::approval::{definition, hash};
use crate::run::{RequestedCall, RunState};
use crate::scene::Catalogue;

/// The key of the result of a call for a tenant: equal for calls that would return the same. Its user, language, scene and
/// settings, the tool's definition and the arguments belong to it. `None` for a tool that does not declare that its last
/// result may be used.
pub fn recall_key(state: &RunState, catalogue: &Catalogue, call: u32, tenant: &str) -> Option<String> {
    let call = state.calls.get(&call)?;
    let RequestedCall { tool, arguments, policies, .. } = &call.requested;
    policies.as_ref()?.cached?;
    let scene = catalogue.get(&call.scene)?;
    let tool = scene.tool(tool)?;
    let user = state.queued.as_ref().map(|queued| queued.user.as_str());
    Some(hash(&json!({
        "tenant": tenant, "user": user, "language": state.language(), "scene": scene.name,
        "settings": scene.settings, "tool": definition(tool), "arguments": arguments,
    })))
}
