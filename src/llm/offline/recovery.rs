//! How to continue after a call failed, and which alternative is called in its place.

use serde_json::{Value, json};

use super::Request;

/// The first option of the forced function: what predefined logic would do if it could.
pub(super) fn choose(request: &Request) -> Value {
    let first = request.tools.first().and_then(|tool| tool.parameters.pointer("/properties/choice/enum/0"));
    json!({"choice": first.cloned().unwrap_or_default(), "reason": "the first option"})
}
