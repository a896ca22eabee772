//! Reads the requests received by a scripted server.

use proscenium::llm::sections;
use serde_json::Value;

/// The function that the request forces, in any forcing mode.
pub fn forced_tool(request: &Value) -> Option<&str> {
    let named = request.pointer("/tool_choice/function/name");
    let required = (request["tool_choice"] == "required").then(|| request.pointer("/tools/0/function/name"));
    let schema = request.pointer("/response_format/json_schema/name");
    named.or(required.flatten()).or(schema)?.as_str()
}

/// The names of the offered functions.
pub fn tool_names(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().filter_map(|tool| tool.pointer("/function/name")?.as_str()).collect()
}

/// The body of a section of the first user message that contains it.
pub fn section(request: &Value, name: &str) -> Option<String> {
    let messages = request["messages"].as_array()?;
    let user = messages.iter().filter(|message| message["role"] == "user");
    user.filter_map(|message| message["content"].as_str()).find_map(|text| sections::get(text, name))
}

/// The whole prompt: each message after its role.
pub fn messages(request: &Value) -> String {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let told = |message: &Value| {
        format!("{}:\n{}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap_or_default())
    };
    messages.iter().map(told).collect::<Vec<_>>().join("\n\n")
}

/// The results of calls in the history, in order; invalid JSON becomes a string.
pub fn tool_results(request: &Value) -> Vec<Value> {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let read =
        |text: &Value| text.as_str().and_then(|t| serde_json::from_str(t).ok()).unwrap_or(text.clone());
    results.map(|message| read(&message["content"])).collect()
}

/// Whether an earlier reply to the same question is in the history.
pub fn is_repair(request: &Value) -> bool {
    request["messages"].as_array().is_some_and(|all| all.iter().any(|m| m["role"] == "assistant"))
}

/// The text of the last message.
pub fn last_message(request: &Value) -> Option<&str> {
    request["messages"].as_array()?.last()?["content"].as_str()
}
