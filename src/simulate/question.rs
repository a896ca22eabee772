//! Reads a request of the OpenAI protocol back into a question that the offline model answers.

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::llm::functions::{
    ADAPT_PLAN, CHANGE_LISTS, CHECK_CONTINUATION, CHOOSE_RECOVERY, CREATE_PLAN, INTERPRET_DATA, KEEP_FACTS,
    MAKE_DECISION, PLAN_FLOW_PATH, REPORT_FACTS, REPORT_NODE, WRITE_SUMMARY,
};
use crate::llm::{Message, Request, ToolChoice, ToolSpec, sections};
use crate::run::{Purpose, ReplyCall};

/// The kind of a question that is none of this program's.
pub(super) const OTHER: &str = "other";

pub(super) fn kind_name(kind: Option<Purpose>) -> &'static str {
    kind.map_or(OTHER, Purpose::name)
}

/// What a question is for, by the function that it offers. No tool of a scene may have such a name.
const PURPOSES: [(&str, Purpose); 12] = [
    (CREATE_PLAN, Purpose::Plan),
    (CHECK_CONTINUATION, Purpose::Continuation),
    (ADAPT_PLAN, Purpose::Adaptation),
    (PLAN_FLOW_PATH, Purpose::Path),
    (REPORT_NODE, Purpose::Node),
    (CHANGE_LISTS, Purpose::Node),
    (REPORT_FACTS, Purpose::Summary),
    (KEEP_FACTS, Purpose::Summary),
    (WRITE_SUMMARY, Purpose::Summary),
    (CHOOSE_RECOVERY, Purpose::Recovery),
    (INTERPRET_DATA, Purpose::Interpretation),
    (MAKE_DECISION, Purpose::Decision),
];

/// The sections that say what a question is about. The others hold times, results and the conversation, which differ
/// between runs of the same load.
const IDENTIFYING: [&str; 8] =
    ["request", "step", "purpose", "feedback", "missing", "node", TASK, "expected_tools"];
/// The section with what a node has to do.
const TASK: &str = "task";

/// The facts that the fate of a request depends on.
#[derive(Debug, Clone)]
pub(super) struct QuestionFacts {
    /// Its purpose; `None` for requests of other programs.
    pub(super) kind: Option<Purpose>,
    /// Equal for questions about the same, whenever they are asked.
    pub(super) identity: [u8; 32],
    /// The user's words; for a node whose prompt does not have them, which one it is.
    pub(super) words: String,
    /// Whether a function must be called.
    pub(super) is_forced: bool,
    /// Whether its reply calls a function.
    pub(super) calls: bool,
}

/// A request, as it was read.
#[derive(Debug)]
pub(super) struct WireQuestion {
    /// For the offline model.
    pub(super) request: Request,
    /// The facts that its fate depends on.
    pub(super) facts: QuestionFacts,
    /// The model's name, which replies repeat.
    pub(super) model: String,
    pub(super) is_streamed: bool,
    /// Whether a stream is to end with its usage.
    pub(super) with_usage: bool,
    /// Maximum number of tokens of the reply.
    pub(super) max_tokens: Option<u64>,
    /// Whether the arguments of the forced function are the text of the reply (`response_format`).
    pub(super) as_text: bool,
    pub(super) node: Option<NodeTask>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeTask {
    /// `FLOW.NODE`.
    pub(super) node: String,
    /// The text of its prompt.
    pub(super) task: String,
}

/// Why a request is not answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RefusedRequest {
    pub(super) status: u16,
    pub(super) code: &'static str,
    /// The problem, and the remedy.
    pub(super) message: String,
}

impl RefusedRequest {
    /// The request is not of the protocol.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { status: 400, code: "simulate.request", message: message.into() }
    }

    /// The offline model does not answer it.
    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Self { status: 400, code: "simulate.unsupported", message: message.into() }
    }
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `messages`")]
struct AskedChat {
    model: Option<String>,
    messages: Vec<AskedMessage>,
    tools: Option<Vec<AskedTool>>,
    tool_choice: Option<Value>,
    response_format: Option<Value>,
    stream: Option<bool>,
    stream_options: Option<Value>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    n: Option<u64>,
    stop: Option<Value>,
}

#[derive(Deserialize)]
struct AskedMessage {
    role: String,
    content: Option<Value>,
    tool_calls: Option<Vec<AskedCall>>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct AskedCall {
    #[serde(default)]
    id: String,
    function: AskedFunction,
}

#[derive(Deserialize)]
struct AskedTool {
    function: AskedFunction,
}

/// A function that is offered or was called.
#[derive(Deserialize)]
struct AskedFunction {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
    strict: Option<bool>,
    arguments: Option<Value>,
}

/// Reads the body of `POST /v1/chat/completions`.
///
/// # Errors
/// `simulate.request`: it is not of the protocol. `simulate.unsupported`: the offline model answers no such question.
pub(super) fn read(body: &[u8]) -> Result<WireQuestion, RefusedRequest> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let chat: AskedChat = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        RefusedRequest::invalid(format!(
            "the body is no request for a chat completion: {error}; fix it there"
        ))
    })?;
    if chat.n.is_some_and(|n| n != 1) || chat.stop.as_ref().is_some_and(|stop| !stop.is_null()) {
        return Err(RefusedRequest::invalid(
            "the simulated model knows no `stop`, and `n` only as 1: remove them",
        ));
    }
    let messages: Vec<Message> = chat.messages.into_iter().map(message).collect::<Result<_, _>>()?;
    let mut tools: Vec<ToolSpec> =
        chat.tools.unwrap_or_default().into_iter().map(|tool| offered(tool.function)).collect();
    let schema = chat.response_format.as_ref().and_then(required_form);
    let as_text = schema.is_some();
    let (choice, is_forced) = match schema {
        Some(tool) => {
            let name = tool.name.clone();
            tools = vec![tool];
            (ToolChoice::Forced(name), true)
        }
        None => choice(chat.tool_choice.as_ref(), &tools)?,
    };
    let data = data(&messages);
    let kind = purpose(&tools, data);
    if kind == Some(Purpose::Program) {
        return Err(RefusedRequest::unsupported(
            "the offline model writes no programs: use a real model, or `planning.maker = \"scenes\"`",
        ));
    }
    let section = |name: &str| sections::get(data, name).unwrap_or_default();
    let node = (kind == Some(Purpose::Node)).then(|| NodeTask { node: section("node"), task: section(TASK) });
    // The prompt of a node has no words of the user by themselves.
    let others = || node.as_ref().map_or_else(|| last_words(&messages).to_owned(), |node| node.node.clone());
    let words = sections::get(data, "request").unwrap_or_else(others);
    let identity = identity(kind, data, &words, messages.len());
    let include_usage = chat.stream_options.as_ref().and_then(|options| options.get("include_usage"));
    Ok(WireQuestion {
        facts: QuestionFacts { kind, identity, words, is_forced, calls: false },
        model: chat.model.unwrap_or_else(|| "simulated".to_owned()),
        is_streamed: chat.stream.unwrap_or_default(),
        with_usage: include_usage.and_then(Value::as_bool).unwrap_or_default(),
        max_tokens: chat.max_completion_tokens.or(chat.max_tokens),
        as_text,
        node,
        request: Request {
            purpose: kind.unwrap_or(if tools.is_empty() { Purpose::Answer } else { Purpose::Scene }),
            messages,
            tools,
            choice,
            temperature: None,
            max_output_tokens: None,
        },
    })
}

fn message(asked: AskedMessage) -> Result<Message, RefusedRequest> {
    let text = asked.content.as_ref().map(flat_text).unwrap_or_default();
    Ok(match asked.role.as_str() {
        "system" | "developer" => Message::System { text },
        "user" => Message::User { text },
        "assistant" => {
            let calls = asked.tool_calls.unwrap_or_default().into_iter().map(|call| ReplyCall {
                id: call.id,
                name: call.function.name,
                arguments: match call.function.arguments {
                    Some(Value::String(text)) => text,
                    Some(object) => object.to_string(),
                    None => String::new(),
                },
            });
            Message::Assistant { text, calls: calls.collect() }
        }
        "tool" => Message::Tool { call_id: asked.tool_call_id.unwrap_or_default(), text },
        other => {
            let message =
                format!("the role {other:?} is not known: use system, developer, user, assistant or tool");
            return Err(RefusedRequest::invalid(message));
        }
    })
}

/// The text of a message's content: a string, or the texts of its parts.
fn flat_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(flat_text).collect(),
        Value::Object(part) => part.get("text").map(flat_text).unwrap_or_default(),
        _ => String::new(),
    }
}

fn offered(function: AskedFunction) -> ToolSpec {
    ToolSpec {
        name: function.name,
        description: function.description.unwrap_or_default(),
        parameters: function.parameters.unwrap_or_else(|| serde_json::json!({"type": "object"})).into(),
        strict: function.strict.unwrap_or_default(),
    }
}

/// The function whose arguments the whole reply must be.
fn required_form(format: &Value) -> Option<ToolSpec> {
    let form = format.get("json_schema")?;
    Some(ToolSpec {
        name: form.get("name").and_then(Value::as_str).unwrap_or("reply").to_owned(),
        description: String::new(),
        parameters: form.get("schema")?.clone().into(),
        strict: true,
    })
}

/// The choice of a function, and whether one must be called. Of several functions of which any must be called, the
/// rules choose.
fn choice(asked: Option<&Value>, tools: &[ToolSpec]) -> Result<(ToolChoice, bool), RefusedRequest> {
    let auto = if tools.is_empty() { ToolChoice::None } else { ToolChoice::Auto };
    match asked {
        None | Some(Value::Null) => Ok((auto, false)),
        Some(Value::String(word)) => match (word.as_str(), tools) {
            ("none", _) => Ok((ToolChoice::None, false)),
            ("auto", _) => Ok((auto, false)),
            ("required", [only]) => Ok((ToolChoice::Forced(only.name.clone()), true)),
            ("required", [_, ..]) => Ok((ToolChoice::Auto, true)),
            _ => Err(RefusedRequest::invalid(format!(
                "`tool_choice` is {word:?}: write \"none\", \"auto\", \"required\" with `tools`, or a function"
            ))),
        },
        Some(named) => {
            let name = named.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
            if !tools.iter().any(|tool| tool.name == name) {
                let message =
                    format!("`tool_choice` names {name:?}, which is not in `tools`: offer it there");
                return Err(RefusedRequest::invalid(message));
            }
            Ok((ToolChoice::Forced(name.to_owned()), true))
        }
    }
}

/// The message with the prompt's sections, or else an empty text.
fn data(messages: &[Message]) -> &str {
    let users = messages.iter().filter_map(|message| match message {
        Message::User { text } => Some(text.as_str()),
        _ => None,
    });
    users
        .into_iter()
        .find(|text| text.trim_start().starts_with('<') || text.contains("\n<"))
        .unwrap_or_default()
}

fn last_words(messages: &[Message]) -> &str {
    let users = messages.iter().rev().find_map(|message| match message {
        Message::User { text } => Some(text.as_str()),
        _ => None,
    });
    users.unwrap_or_default()
}

fn purpose(tools: &[ToolSpec], data: &str) -> Option<Purpose> {
    let built_in = PURPOSES.iter().find(|(name, _)| tools.iter().any(|tool| tool.name == *name));
    if let Some((_, purpose)) = built_in {
        return Some(*purpose);
    }
    let has = |name: &str| sections::get(data, name).is_some();
    let by_section = [("scene", Purpose::Scene), ("modules", Purpose::Program), ("mode", Purpose::Answer)];
    by_section.into_iter().find(|(name, _)| has(name)).map(|(_, purpose)| purpose)
}

/// A hash of what a question is about.
fn identity(kind: Option<Purpose>, data: &str, words: &str, messages: usize) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut add = |part: &str| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    };
    add(kind_name(kind));
    add(words);
    for name in IDENTIFYING {
        let text = sections::get(data, name).unwrap_or_default();
        add(&if name == TASK { without_times(&text) } else { text });
    }
    // A later round of a step is another question. Elsewhere, messages are added only where a reply was sent back.
    let round = if matches!(kind, None | Some(Purpose::Scene)) { messages } else { 0 };
    add(&round.to_string());
    hash.finalize().into()
}

/// A text without the moments in it: a node may be told the time within its task.
fn without_times(text: &str) -> String {
    let is_moment = |word: &&str| {
        let mut parts = word.splitn(3, '-');
        let year =
            parts.next().is_some_and(|year| year.len() == 4 && year.bytes().all(|b| b.is_ascii_digit()));
        year && parts.nth(1).is_some_and(|rest| rest.contains('T') && rest.contains(':'))
    };
    text.split(' ').filter(|word| !is_moment(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::llm::offline::OfflineModel;

    fn body(changes: &[(&str, Value)]) -> Vec<u8> {
        let data =
            "<now>\n2026-05-04T09:00:00+02:00[Europe/Rome] Monday\n</now>\n<request>\nhello\n</request>\n";
        let tool =
            json!({"type": "function", "function": {"name": CREATE_PLAN, "parameters": {"type": "object"}}});
        let mut body = json!({
            "model": "m", "tools": [tool],
            "tool_choice": {"type": "function", "function": {"name": CREATE_PLAN}},
            "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": data}],
        });
        for (name, value) in changes {
            body[*name] = value.clone();
        }
        body.to_string().into_bytes()
    }

    fn code(changes: &[(&str, Value)]) -> &'static str {
        read(&body(changes)).unwrap_err().code
    }

    #[test]
    fn purpose_follows_from_the_offered_function_or_the_sections() {
        let plan = read(&body(&[])).unwrap();
        assert_eq!((plan.facts.kind, plan.facts.words.as_str()), (Some(Purpose::Plan), "hello"));
        assert_eq!(plan.request.choice, ToolChoice::Forced(CREATE_PLAN.to_owned()));
        assert!(plan.facts.is_forced && !plan.as_text && !plan.is_streamed);
        for (text, kind) in [
            ("<scene>\nWeather\n</scene>\n", Some(Purpose::Scene)),
            ("<mode>\nanswer\n</mode>\n", Some(Purpose::Answer)),
            ("What is the weather?", None),
        ] {
            let messages = json!([{"role": "user", "content": [{"type": "text", "text": text}]}]);
            let asked =
                read(&body(&[("messages", messages), ("tools", json!([])), ("tool_choice", json!(null))]));
            assert_eq!(asked.unwrap().facts.kind, kind, "{text}");
        }
        let weather = json!([{"type": "function", "function": {"name": "GetWeather"}}]);
        let other = read(&body(&[("tools", weather), ("tool_choice", json!("auto"))])).unwrap();
        assert_eq!((other.facts.kind, other.request.purpose), (None, Purpose::Scene));
    }

    #[test]
    fn required_function_is_read_in_every_form() {
        let forced = ToolChoice::Forced(CREATE_PLAN.to_owned());
        let required = read(&body(&[("tool_choice", json!("required"))])).unwrap();
        assert_eq!((required.request.choice, required.facts.is_forced), (forced.clone(), true));
        let schema = json!({"type": "json_schema", "json_schema": {"name": CREATE_PLAN, "schema": {"type": "object"}}});
        let text =
            read(&body(&[("tools", json!(null)), ("tool_choice", json!(null)), ("response_format", schema)]));
        let text = text.unwrap();
        assert_eq!((text.request.choice, text.facts.kind), (forced, Some(Purpose::Plan)));
        assert!(text.as_text && text.facts.is_forced);
    }

    #[test]
    fn time_of_a_question_is_not_part_of_its_identity() {
        let at = |time: &str, words: &str| {
            let data = format!("<now>\n{time}\n</now>\n<request>\n{words}\n</request>\n");
            read(&body(&[("messages", json!([{"role": "user", "content": data}]))])).unwrap().facts.identity
        };
        assert_eq!(at("2026-05-04T09:00:00Z", "hello"), at("2027-01-01T00:00:00Z", "hello"));
        assert_ne!(at("2026-05-04T09:00:00Z", "hello"), at("2026-05-04T09:00:00Z", "good bye"));
    }

    #[test]
    fn node_has_its_task_and_the_time_in_it_is_not_part_of_its_identity() {
        let at = |time: &str| {
            let data = format!("<node>\nlookup.find\n</node>\n<task>\nIt is now {time}. Find it.\n</task>\n");
            let tools = json!([{"function": {"name": REPORT_NODE}}]);
            let messages = json!([{"role": "user", "content": data}]);
            read(&body(&[("messages", messages), ("tools", tools), ("tool_choice", json!("required"))]))
                .unwrap()
        };
        let asked = at("2026-05-04T09:00:00.25+02:00[Europe/Rome]");
        assert_eq!(asked.facts.words, "lookup.find");
        let node = asked.node.unwrap();
        assert!(node.node == "lookup.find" && node.task.starts_with("It is now 2026"), "{node:?}");
        assert_eq!(asked.facts.identity, at("2027-01-01T00:00:00Z").facts.identity);
    }

    #[test]
    fn unanswerable_question_is_refused_with_a_code() {
        assert_eq!(code(&[("messages", json!("hello"))]), "simulate.request");
        assert_eq!(code(&[("messages", json!([{"role": "robot"}]))]), "simulate.request");
        assert_eq!(code(&[("tool_choice", json!({"function": {"name": "Other"}}))]), "simulate.request");
        assert_eq!(code(&[("tools", json!([])), ("tool_choice", json!("required"))]), "simulate.request");
        let program = json!([{"role": "user", "content": "<modules>\njson\n</modules>\n"}]);
        let written = [("messages", program), ("tools", json!([])), ("tool_choice", json!(null))];
        assert_eq!(code(&written), "simulate.unsupported");
        assert_eq!(read(b"not json").unwrap_err().code, "simulate.request");
        assert_eq!(code(&[("n", json!(2))]), "simulate.request");
        assert_eq!(code(&[("stop", json!("."))]), "simulate.request");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            Just(json!(1)),
            Just(json!(true)),
            prop_oneof![
                Just("user"),
                Just("tool"),
                Just("required"),
                Just(CREATE_PLAN),
                Just("<scene>\nx\n</scene>")
            ]
            .prop_map(|text| json!(text)),
        ];
        let keys = [
            "role", "content", "function", "name", "parameters", "tool_calls", "json_schema", "schema",
            "text",
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let object =
                proptest::collection::btree_map(proptest::sample::select(keys.to_vec()), inner.clone(), 0..4);
            prop_oneof![
                proptest::collection::vec(inner, 0..3).prop_map(Value::from),
                object.prop_map(|object| json!(object)),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_in_any_place_is_answered_or_refused(
            place in proptest::sample::select(&["messages", "tools", "tool_choice", "response_format", "stream"][..]),
            value in any_json(),
        ) {
            match read(&body(&[(place, value)])) {
                Ok(asked) => prop_assert!(OfflineModel.complete(&asked.request).reply.finish_reason.is_some()),
                Err(refused) => prop_assert_eq!((refused.status, refused.message.is_empty()), (400, false)),
            }
        }
    }
}
