//! Encodes a [`Request`] in the protocol so that any server accepts it.
//!
//! Histories are made valid, whatever earlier replies were like: every call gets a unique id and exactly one
//! result, arguments are JSON, and names contain only valid characters.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::super::options::{Forcing, ModelOptions};
use super::super::{Message, Request, ToolChoice, ToolSpec};
use super::form::Form;
use crate::run::ReplyCall;
use crate::schema::OrderedSchema;

/// The body of `POST /chat/completions`. Large parts are borrowed: a schema is written as it is.
#[derive(Debug, Serialize)]
pub(super) struct ChatRequestBody<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<FunctionSpec<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Debug, Serialize)]
struct FunctionSpec<'a> {
    r#type: &'a str,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: OrderedSchema<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

/// The required form of a reply.
#[derive(Debug, Serialize)]
struct ResponseFormat<'a> {
    r#type: &'a str,
    json_schema: EncodedSchema<'a>,
}

#[derive(Debug, Serialize)]
struct EncodedSchema<'a> {
    name: &'a str,
    strict: bool,
    schema: OrderedSchema<'a>,
}

/// A request in the protocol's form.
pub(super) fn body<'a>(request: &'a Request, model: &'a ModelOptions, form: Form) -> ChatRequestBody<'a> {
    let max = Some(request.max_output_tokens.unwrap_or(model.max_output_tokens));
    // OpenAI's newer models refuse the old name; other servers often know no other.
    let newer = model.base_url.to_ascii_lowercase().contains("api.openai.com")
        && reqwest::Url::parse(&model.base_url).is_ok_and(|url| url.host_str() == Some("api.openai.com"));
    let (max_tokens, max_completion_tokens) = if newer { (None, max) } else { (max, None) };
    let forced = match &request.choice {
        ToolChoice::Forced(name) => request.tools.iter().find(|tool| tool.name == *name),
        ToolChoice::None | ToolChoice::Auto => None,
    };
    let as_text = forced.is_some() && model.forcing == Forcing::JsonSchema;
    let mut body = ChatRequestBody {
        model: model.id(),
        max_tokens,
        max_completion_tokens,
        // Through text: 0.3_f32 is 0.30000001192092896 as a double.
        temperature: request.temperature.map(|t| t.to_string().parse().unwrap_or_default()),
        stream: form.is_streamed().then_some(true),
        stream_options: (form == Form::Streamed).then(|| json!({"include_usage": true})),
        tools: Vec::new(),
        tool_choice: None,
        parallel_tool_calls: None,
        response_format: None,
        messages: if as_text { self::as_text(&request.messages) } else { with_calls(&request.messages) },
    };
    match (forced, model.forcing) {
        (Some(tool), Forcing::Named) => {
            body.tools = request.tools.iter().map(offered).collect();
            body.tool_choice = Some(json!({"type": "function", "function": {"name": tool.name}}));
            body.parallel_tool_calls = Some(false);
        }
        (Some(tool), Forcing::Required) => {
            body.tools = vec![offered(tool)];
            body.tool_choice = Some(json!("required"));
        }
        (Some(tool), Forcing::JsonSchema) => {
            let schema =
                EncodedSchema { name: &tool.name, strict: true, schema: OrderedSchema(&tool.parameters) };
            body.response_format = Some(ResponseFormat { r#type: "json_schema", json_schema: schema });
        }
        (None, _) if request.tools.is_empty() => {}
        (None, _) => {
            body.tools = request.tools.iter().map(offered).collect();
            body.tool_choice = Some(json!(if request.choice == ToolChoice::None { "none" } else { "auto" }));
        }
    }
    body
}

fn offered(tool: &ToolSpec) -> FunctionSpec<'_> {
    let ToolSpec { name, description, parameters, strict } = tool;
    let parameters = OrderedSchema(parameters);
    FunctionSpec { r#type: "function", function: Function { name, description, parameters, strict: *strict } }
}

/// A message as the protocol has it.
#[derive(Debug, Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    /// Also if it is empty: some servers refuse null beside calls, others a missing member.
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
}

#[derive(Debug, Serialize)]
struct WireCall<'a> {
    id: String,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Debug, Serialize)]
struct CalledFunction<'a> {
    name: String,
    arguments: Cow<'a, str>,
}

impl<'a> WireMessage<'a> {
    fn text(role: &'static str, content: impl Into<Cow<'a, str>>) -> Self {
        Self { role, tool_call_id: None, content: content.into(), tool_calls: Vec::new() }
    }

    fn result(id: String, content: impl Into<Cow<'a, str>>) -> Self {
        Self { tool_call_id: Some(id), ..Self::text("tool", content) }
    }
}

/// The history with calls and results as the protocol has them.
fn with_calls(messages: &[Message]) -> Vec<WireMessage<'_>> {
    let mut out = Vec::with_capacity(messages.len());
    // Calls without a result: the original id and the id that was sent.
    let mut open: Vec<(&str, String)> = Vec::new();
    let mut ordinal = 0_usize;
    for message in messages {
        if let Message::Tool { call_id, text } = message {
            out.push(match open.iter().position(|(written, _)| written == call_id) {
                Some(at) => WireMessage::result(open.remove(at).1, text),
                None => WireMessage::text("user", text),
            });
            continue;
        }
        close(&mut open, &mut out);
        match message {
            Message::System { text } => out.push(WireMessage::text("system", text)),
            Message::User { text } => out.push(WireMessage::text("user", text)),
            Message::Assistant { text, calls } => {
                let mut tool_calls = Vec::with_capacity(calls.len());
                for call in calls {
                    ordinal += 1;
                    let id = format!("call_{ordinal}");
                    let function = CalledFunction { name: name(&call.name), arguments: arguments(call) };
                    tool_calls.push(WireCall { id: id.clone(), r#type: "function", function });
                    open.push((&call.id, id));
                }
                out.push(WireMessage { tool_calls, ..WireMessage::text("assistant", text) });
            }
            Message::Tool { .. } => {}
        }
    }
    close(&mut open, &mut out);
    out
}

/// Adds a result for every call without one, because servers refuse such calls.
fn close(open: &mut Vec<(&str, String)>, out: &mut Vec<WireMessage<'_>>) {
    let skipped = r#"{"outcome":"skipped","reason":"not executed"}"#;
    out.extend(open.drain(..).map(|(_, id)| WireMessage::result(id, skipped)));
}

/// The history for a server that is offered no functions: calls and results as plain messages.
fn as_text(messages: &[Message]) -> Vec<WireMessage<'_>> {
    fn message_as_text(message: &Message) -> WireMessage<'_> {
        match message {
            Message::System { text } => WireMessage::text("system", text),
            Message::User { text } | Message::Tool { text, .. } => WireMessage::text("user", text),
            Message::Assistant { text, calls } => {
                let words =
                    std::iter::once(text.as_str()).chain(calls.iter().map(|call| call.arguments.as_str()));
                let words: Vec<&str> = words.filter(|words| !words.is_empty()).collect();
                WireMessage::text("assistant", words.join("\n"))
            }
        }
    }
    messages.iter().map(message_as_text).collect()
}

/// Templates of some servers parse the arguments of earlier calls and fail if they are not valid JSON.
fn arguments(call: &ReplyCall) -> Cow<'_, str> {
    match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(_)) => call.arguments.as_str().into(),
        _ if call.arguments.trim().is_empty() => "{}".into(),
        _ => json!({"invalid_json": call.arguments}).to_string().into(),
    }
}

fn name(written: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = written.chars().take(64).map(allowed).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::super::super::Purpose;
    use super::*;

    fn tool(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: "does it".into(),
            parameters: json!({"type": "object"}).into(),
            strict: true,
        }
    }

    fn call(id: &str, arguments: &str) -> ReplyCall {
        ReplyCall { id: id.into(), name: "functions.plan".into(), arguments: arguments.into() }
    }

    fn request() -> Request {
        Request {
            purpose: Purpose::Plan,
            messages: vec![
                Message::System { text: "s".into() },
                Message::User { text: "u".into() },
                Message::Assistant { text: String::new(), calls: vec![call("x", "{broken"), call("x", "")] },
                Message::Tool { call_id: "x".into(), text: "first".into() },
                Message::Assistant { text: "t".into(), calls: vec![call("x", "{}")] },
                Message::Tool { call_id: "x".into(), text: "second".into() },
                Message::Tool { call_id: "lost".into(), text: "orphan".into() },
            ],
            tools: vec![tool("plan"), tool("other")],
            choice: ToolChoice::Forced("plan".into()),
            temperature: Some(0.3),
            max_output_tokens: None,
        }
    }

    fn encoded(request: &Request, forcing: Forcing) -> Value {
        let model = ModelOptions { name: "m".into(), forcing, ..ModelOptions::default() };
        serde_json::to_value(body(request, &model, Form::Whole)).unwrap()
    }

    /// What every server checks: each call has a unique id and exactly one result right after it.
    fn assert_valid(messages: &Value) {
        let mut open: Vec<String> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for message in messages.as_array().unwrap() {
            if message["role"] == "tool" {
                let id = message["tool_call_id"].as_str().unwrap();
                open.remove(open.iter().position(|o| o == id).expect(id));
                continue;
            }
            assert!(open.is_empty(), "no result for {open:?} in {messages:#}");
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let id = call["id"].as_str().unwrap().to_owned();
                assert!(seen.insert(id.clone()), "{id} repeats");
                let arguments = call["function"]["arguments"].as_str().unwrap();
                assert!(serde_json::from_str::<Map<String, Value>>(arguments).is_ok());
                open.push(id);
            }
        }
        assert!(open.is_empty());
    }

    #[test]
    fn named_forcing_names_the_function() {
        let body = encoded(&request(), Forcing::Named);
        assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "plan"}}));
        assert_eq!(body["parallel_tool_calls"], false);
        assert_eq!(body["tools"].as_array().unwrap().len(), 2);
        assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.3), &json!(2048)));
        assert_valid(&body["messages"]);
    }

    #[test]
    fn required_forcing_offers_only_that_function() {
        let body = encoded(&request(), Forcing::Required);
        assert_eq!(body["tool_choice"], "required");
        assert_eq!(body["tools"].as_array().unwrap().len(), 1);
        assert_eq!(body["tools"][0]["function"]["name"], "plan");
        assert_valid(&body["messages"]);
    }

    #[test]
    fn schema_forcing_offers_no_function_and_renders_history_as_text() {
        let body = encoded(&request(), Forcing::JsonSchema);
        assert!(body.get("tools").is_none() && body.get("tool_choice").is_none());
        assert_eq!(body["response_format"]["json_schema"]["strict"], true);
        let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "user", "assistant", "user", "user"]);
        assert_eq!(body["messages"][2]["content"], "{broken");
    }

    #[test]
    fn a_free_question_keeps_its_tools_under_every_forcing() {
        for forcing in [Forcing::Named, Forcing::Required, Forcing::JsonSchema] {
            let body = encoded(&Request { choice: ToolChoice::Auto, ..request() }, forcing);
            assert_eq!(body["tool_choice"], "auto");
            assert!(body.get("response_format").is_none());
            assert_valid(&body["messages"]);
            let last = encoded(&Request { choice: ToolChoice::None, tools: vec![], ..request() }, forcing);
            assert!(last.get("tools").is_none() && last.get("tool_choice").is_none());
        }
    }
}
