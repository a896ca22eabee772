//! Requirements on every request that an OpenAI-compatible server receives.

use serde_json::Value;

use super::{ScriptedLlm, forced_tool, is_repair};

/// Asserts that every recorded request is well formed: each call in its history has its reply, and none
/// forces a function that its history has answered.
pub fn assert_valid_requests(llm: &ScriptedLlm) {
    for request in llm.requests() {
        assert_every_call_has_its_reply(&request);
        if forced_tool(&request).is_some() {
            assert!(!is_repair(&request), "forced again after a valid reply: {request:#}");
        } else {
            assert_ne!(request["tool_choice"], "required", "{request:#}");
        }
    }
}

/// A message with calls is followed by exactly the replies to these calls, before anything else.
pub fn assert_every_call_has_its_reply(request: &Value) {
    let messages = request["messages"].as_array().unwrap();
    let mut waited_for: Vec<&str> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            let at = waited_for.iter().position(|waiting| *waiting == id);
            waited_for.remove(at.unwrap_or_else(|| panic!("{id} answers no call: {request:#}")));
            continue;
        }
        assert!(waited_for.is_empty(), "{waited_for:?} got no reply: {request:#}");
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        waited_for = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
        let mut ids = waited_for.clone();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), waited_for.len(), "ids repeat within one message: {request:#}");
    }
    assert!(waited_for.is_empty(), "{waited_for:?} got no reply: {request:#}");
}
