//! Tests how a model can be forced to call a function, or whether it embeds texts.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::openai::OpenAi;
use super::options::Forcing;
use super::provider::{CallControl, Provider};
use super::{Message, Purpose, Request, ToolChoice, ToolSpec, embeddings, reader};
use crate::run::{Fault, ReaderMode, Reply};

const TOOL: &str = "PickColour";
const COLOURS: [&str; 3] = ["red", "green", "blue"];

/// The result for one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Its configured name.
    pub model: String,
    /// Each way of forcing and its result, in the order of preference.
    pub tried: Vec<Tried>,
    /// How fast the fastest usable reply was; absent without any.
    pub latency: Option<Latency>,
    /// The setting to use; absent if no way works.
    pub recommended: Option<Forcing>,
    /// For a model of embeddings, which is not forced at all: the number of dimensions of its vectors, or why it gave
    /// none.
    pub embedding: Option<Result<usize, Fault>>,
}

/// One way of forcing, tried once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The way.
    pub forcing: Forcing,
    /// Its result.
    pub worked: Worked,
    /// How long the reply took, in milliseconds.
    pub millis: u64,
}

/// The result of one way of forcing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worked {
    /// The reply followed the protocol exactly.
    Exactly,
    /// The reply could be understood, but deviated from the protocol.
    Understood,
    /// It did not work.
    No(Fault),
}

/// How fast a small reply was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Latency {
    /// Within two seconds.
    Fast,
    /// Within ten seconds.
    Moderate,
    /// Slower: raise `llm.first_token_timeout_ms` and `llm.deadline_ms`, or stream.
    Slow,
}

impl Latency {
    fn of(millis: u64) -> Self {
        match millis {
            0..2_000 => Latency::Fast,
            2_000..10_000 => Latency::Moderate,
            _ => Latency::Slow,
        }
    }
}

/// Tries every way once, without retries.
pub(super) async fn probe(server: &OpenAi, deadline_ms: u64) -> Probe {
    if server.offers_embeddings() {
        return probe_embeddings(server, deadline_ms).await;
    }
    let mut tried = Vec::new();
    for forcing in [Forcing::Named, Forcing::Required, Forcing::JsonSchema] {
        let begun = Instant::now();
        let ctl = CallControl::new(CancellationToken::new(), deadline_ms);
        let forced = server.forced_by(forcing);
        let question = question();
        let worked = match ctl.within(forced.complete(&question, &ctl)).await {
            Ok(Ok(completion)) => judge(&completion.reply, forcing),
            Ok(Err(error)) => Worked::No(error.into()),
            Err(kind) => Worked::No(Fault::new(kind.code(), kind.to_string())),
        };
        tried.push(Tried { forcing, worked, millis: millis(begun.elapsed()) });
    }
    let first = |wanted: fn(&Worked) -> bool| tried.iter().find(|t| wanted(&t.worked)).map(|t| t.forcing);
    let recommended = first(|w| *w == Worked::Exactly).or_else(|| first(|w| *w == Worked::Understood));
    let usable = tried.iter().filter(|t| !matches!(t.worked, Worked::No(_)));
    let latency = usable.map(|t| Latency::of(t.millis)).min();
    Probe { model: server.name().to_owned(), tried, latency, recommended, embedding: None }
}

/// Embeds one small text.
async fn probe_embeddings(server: &OpenAi, deadline_ms: u64) -> Probe {
    let begun = Instant::now();
    let ctl = CallControl::new(CancellationToken::new(), deadline_ms);
    let request = embeddings::request(["Good morning!"]);
    let embedding = match ctl.within(server.complete(&request, &ctl)).await {
        Ok(Ok(completion)) => embeddings::read(&completion.reply.text, 1)
            .map(|vectors| vectors.first().map_or(0, embeddings::Vector::dimensions))
            .map_err(|why| Fault::new("llm.malformed", why)),
        Ok(Err(error)) => Err(error.into()),
        Err(kind) => Err(Fault::new(kind.code(), kind.to_string())),
    };
    let latency = embedding.is_ok().then(|| Latency::of(millis(begun.elapsed())));
    let (model, tried) = (server.name().to_owned(), Vec::new());
    Probe { model, tried, latency, recommended: None, embedding: Some(embedding) }
}

/// A greeting: no model would reply to it with a colour unless it was forced.
fn question() -> Request {
    Request {
        purpose: Purpose::Plan,
        messages: vec![
            Message::System { text: "You are a friendly assistant.".to_owned() },
            Message::User { text: "Good morning! How are you?".to_owned() },
        ],
        tools: vec![ToolSpec {
            name: TOOL.to_owned(),
            description: "Picks the colour of the next lamp.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {"colour": {"type": "string", "enum": COLOURS}},
                "required": ["colour"],
                "additionalProperties": false,
            })
            .into(),
            strict: true,
        }],
        choice: ToolChoice::Forced(TOOL.to_owned()),
        temperature: Some(0.0),
        max_output_tokens: Some(64),
    }
}

fn judge(reply: &Reply, forcing: Forcing) -> Worked {
    let is_colour = |value: &Value| {
        value.get("colour").and_then(Value::as_str).is_some_and(|colour| COLOURS.contains(&colour))
    };
    let exact = match forcing {
        Forcing::JsonSchema => serde_json::from_str(&reply.text).ok(),
        _ => reader::read(reply, TOOL, ReaderMode::Strict).ok().filter(|_| reply.calls.len() == 1),
    };
    if exact.is_some_and(|value| is_colour(&value)) {
        return Worked::Exactly;
    }
    match reader::read(reply, TOOL, ReaderMode::Tolerant) {
        Ok(value) if is_colour(&value) => Worked::Understood,
        Ok(value) => Worked::No(Fault::new(
            "reply.schema",
            format!("the reply does not follow the schema: {:.80}", value.to_string()),
        )),
        Err(problems) => {
            let fault = problems.into_iter().next().map(|p| Fault::new(&p.code, p.message));
            Worked::No(fault.unwrap_or_else(|| Fault::new("reply.no_json", "there is no call")))
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
