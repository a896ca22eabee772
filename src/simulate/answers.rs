//! The answers of the simulated model, and how often each question was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::web::Bytes;
use data_encoding::HEXLOWER;
use moka::sync::Cache;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::embed;
use super::forced;
use super::profile::Profile;
use super::question::{self, NodeTask, QuestionFacts, RefusedRequest};
use super::reply::{ReplyPiece, SimulatedReply, SimulatedUsage};
use crate::llm::functions::REPORT_NODE;
use crate::llm::offline::OfflineModel;
use crate::llm::tokens;
use crate::mutex::lock;
use crate::run::{Reply, ReplyCall};

/// The bytes of the replies that are remembered: about ten thousand of them. A load has at most a thousand texts, but
/// each has several questions, which have the time, to the minute.
const MAX_REMEMBERED_BYTES: u64 = 64 * 1024 * 1024;
/// How long a reply is remembered that is not asked for.
const REMEMBERED: Duration = Duration::from_secs(300);
/// What a remembered reply takes beside its bytes.
const FRAME_BYTES: usize = 1_024;
/// How many questions are counted one by one.
const MAX_COUNTED: usize = 1_000_000;

/// The reply to the question of a flow's node (`FLOW.NODE`) with this task; `None` where none is known.
pub type NodeReply = fn(&str, &str) -> Option<Value>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// `/v1/chat/completions`
    Chat,
    /// `/v1/embeddings`
    Embeddings,
}

/// The reply to a request, ready to be sent.
#[derive(Debug)]
pub(super) struct Answered {
    /// The facts that the fate of the request depends on.
    pub(super) facts: QuestionFacts,
    pub(super) is_streamed: bool,
    /// Whether a stream ends with its usage.
    pub(super) with_usage: bool,
    /// The reply, from which others with faults are made; none for embeddings.
    pub(super) reply: Option<SimulatedReply>,
    /// The reply as it is sent: the events of a stream, or one piece.
    pub(super) pieces: Vec<ReplyPiece>,
    pub(super) usage: SimulatedUsage,
}

/// The replies to equal requests, and the counts of questions.
pub(super) struct Answers {
    nodes: NodeReply,
    remembered: Cache<[u8; 32], Arc<Answered>>,
    counted: Mutex<QuestionCounts>,
}

struct QuestionCounts {
    /// By the beginning of the identity.
    by_identity: HashMap<u64, u32>,
    /// Maximum number of questions in it.
    max: usize,
    /// Of all questions beyond these.
    others: u64,
}

impl QuestionCounts {
    fn new(max: usize) -> Self {
        Self { by_identity: HashMap::new(), max, others: 0 }
    }

    fn count(&mut self, identity: &[u8; 32]) -> u64 {
        let short = identity.first_chunk().copied().map(u64::from_le_bytes).unwrap_or_default();
        if self.by_identity.len() < self.max || self.by_identity.contains_key(&short) {
            let count = self.by_identity.entry(short).or_default();
            *count = count.saturating_add(1);
            return u64::from(*count);
        }
        // With a count of its own, a question whose first fate is a fault would never get another.
        self.others += 1;
        self.others
    }
}

impl Answers {
    /// `nodes` replies to the questions of nodes.
    pub(super) fn new(nodes: NodeReply) -> Self {
        let bytes =
            |_: &[u8; 32], answered: &Arc<Answered>| u32::try_from(answered.bytes()).unwrap_or(u32::MAX);
        let remembered = Cache::builder()
            .weigher(bytes)
            .max_capacity(MAX_REMEMBERED_BYTES)
            .time_to_idle(REMEMBERED)
            .build();
        Self { nodes, remembered, counted: Mutex::new(QuestionCounts::new(MAX_COUNTED)) }
    }

    /// Returns what an earlier request with this body was answered. The prompts of this program have the time, to the minute,
    /// so no later reply depends on it.
    pub(super) fn remembered(&self, endpoint: Endpoint, body: &[u8]) -> Option<Arc<Answered>> {
        self.remembered.get(&key(endpoint, body))
    }

    /// Answers a request, and remembers the reply.
    ///
    /// # Errors
    /// See [`question::read`] and [`embed::answer`].
    pub(super) fn answer(
        &self,
        profile: &Profile,
        endpoint: Endpoint,
        body: &[u8],
    ) -> Result<Arc<Answered>, RefusedRequest> {
        let answered = Arc::new(match endpoint {
            Endpoint::Chat => chat(profile, self.nodes, body)?,
            Endpoint::Embeddings => {
                let (facts, body, usage) = embed::answer(body)?;
                let pieces = vec![ReplyPiece { bytes: body, tokens: 0 }];
                Answered { facts, is_streamed: false, with_usage: false, reply: None, pieces, usage }
            }
        });
        self.remembered.insert(key(endpoint, body), answered.clone());
        Ok(answered)
    }

    /// Counts a question; returns how often it was asked by now. Questions beyond the first million share one count.
    pub(super) fn count(&self, question: &QuestionFacts) -> u64 {
        // Plain numbers: no update can panic half-way.
        lock(&self.counted).count(&question.identity)
    }
}

impl Answered {
    /// What it takes in memory.
    fn bytes(&self) -> usize {
        let pieces: usize = self.pieces.iter().map(|piece| piece.bytes.len() + size_of::<ReplyPiece>()).sum();
        let reply = self.reply.as_ref().map_or(0, |reply| {
            reply.reply.text.len() + reply.reply.calls.iter().map(|call| call.arguments.len()).sum::<usize>()
        });
        FRAME_BYTES + self.facts.words.len() + pieces + reply
    }
}

fn key(endpoint: Endpoint, body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update([endpoint as u8]);
    hash.update(body);
    hash.finalize().into()
}

fn chat(profile: &Profile, nodes: NodeReply, body: &[u8]) -> Result<Answered, RefusedRequest> {
    let mut asked = question::read(body)?;
    let answer = match &asked.node {
        Some(task) => node_reply(nodes, task)?,
        // The rules know no function of another program: they would ask for its arguments.
        None if asked.facts.kind.is_none() => {
            forced::obeying(&asked.request, OfflineModel.complete(&asked.request).reply)
        }
        None => OfflineModel.complete(&asked.request).reply,
    };
    asked.facts.calls = !answer.calls.is_empty();
    let prompt = tokens::request(&asked.request);
    let usage = SimulatedUsage {
        prompt,
        cached: (prompt as f64 * profile.cached_share) as u64,
        completion: tokens::reply(&answer),
    };
    let id = asked.facts.identity.get(..12).map(|bytes| HEXLOWER.encode(bytes)).unwrap_or_default();
    let mut reply = SimulatedReply {
        id: format!("chatcmpl-{id}"),
        model: asked.model,
        reply: answer,
        as_text: asked.as_text,
        is_cut: false,
        usage,
        usage_reported: profile.usage_reported,
    };
    if let Some(max) = asked.max_tokens {
        reply.cut_at(max);
    }
    let (is_streamed, with_usage) = (asked.is_streamed, asked.with_usage);
    let (pieces, usage) = (sent(profile, &reply, is_streamed, with_usage), reply.usage);
    Ok(Answered { facts: asked.facts, is_streamed, with_usage, reply: Some(reply), pieces, usage })
}

fn node_reply(nodes: NodeReply, asked: &NodeTask) -> Result<Reply, RefusedRequest> {
    let Some(result) = nodes(&asked.node, &asked.task) else {
        let name = if asked.node.is_empty() { "without a name" } else { asked.node.as_str() };
        return Err(RefusedRequest::unsupported(format!(
            "the offline model has no reply for the node {name} of a flow. Where it declares a `fallback`, the server \
             executes that; to have it answered, use a real model"
        )));
    };
    let call = ReplyCall {
        id: "simulated-1".to_owned(),
        name: REPORT_NODE.to_owned(),
        arguments: result.to_string(),
    };
    let finish_reason = Some("tool_calls".to_owned());
    Ok(Reply { text: String::new(), calls: vec![call], finish_reason, model: String::new() })
}

/// A reply as it is sent.
pub(super) fn sent(
    profile: &Profile,
    reply: &SimulatedReply,
    is_streamed: bool,
    with_usage: bool,
) -> Vec<ReplyPiece> {
    if is_streamed {
        return reply.events(profile.chunks, with_usage);
    }
    let bytes: Bytes = reply.whole();
    vec![ReplyPiece { bytes, tokens: reply.usage.completion }]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(words: &str) -> Vec<u8> {
        json!({"model": "m", "messages": [{"role": "user", "content": words}]}).to_string().into_bytes()
    }

    #[test]
    fn equal_requests_are_answered_from_memory_and_counted_by_what_they_ask() {
        let (answers, profile) =
            (Answers::new(|_, _| None), Profile { cached_share: 0.5, ..Profile::default() });
        assert!(answers.remembered(Endpoint::Chat, &body("hello")).is_none());
        let first = answers.answer(&profile, Endpoint::Chat, &body("hello")).unwrap();
        let again = answers.remembered(Endpoint::Chat, &body("hello")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert!(answers.remembered(Endpoint::Embeddings, &body("hello")).is_none());
        let whole: Value = serde_json::from_slice(&first.pieces[0].bytes).unwrap();
        assert!(!whole["choices"][0]["message"]["content"].as_str().unwrap().is_empty());
        assert_eq!(whole["usage"]["prompt_tokens"], first.usage.prompt);
        assert_eq!(first.usage.cached, first.usage.prompt / 2);
        let other = answers.answer(&profile, Endpoint::Chat, &body("good morning")).unwrap();
        let counts = [&first, &other, &again].map(|answered| answers.count(&answered.facts));
        assert_eq!(counts, [1, 1, 2]);
    }

    #[test]
    fn forced_function_of_another_program_is_called() {
        let (answers, profile) = (Answers::new(|_, _| None), Profile::default());
        let colour = json!({"type": "string", "enum": ["red", "green"]});
        let parameters = json!({"type": "object", "properties": {"colour": colour}, "required": ["colour"]});
        let function = json!({"name": "PickColour", "parameters": parameters});
        let mut asked: Value = serde_json::from_slice(&body("Good morning! How are you?")).unwrap();
        let mut said = |name: &str, value: Value| {
            asked[name] = value;
            let body = asked.to_string().into_bytes();
            answers.answer(&profile, Endpoint::Chat, &body).unwrap().reply.clone().unwrap().reply
        };
        said("tools", json!([{"type": "function", "function": function}]));
        for choice in [json!("required"), json!({"type": "function", "function": {"name": "PickColour"}})] {
            let reply = said("tool_choice", choice);
            let [call] = reply.calls.as_slice() else { panic!("{reply:?}") };
            assert_eq!((&*call.name, &*call.arguments), ("PickColour", r#"{"colour":"red"}"#));
        }
        let free = said("tool_choice", json!("none"));
        assert!(free.calls.is_empty() && !free.text.is_empty(), "{free:?}");
    }

    #[test]
    fn remembered_replies_and_counted_questions_are_bounded() {
        let (answers, profile) = (Answers::new(|_, _| None), Profile::default());
        let answered = answers.answer(&profile, Endpoint::Chat, &body("hello")).unwrap();
        answers.remembered.run_pending_tasks();
        assert_eq!(answers.remembered.weighted_size(), answered.bytes() as u64);
        assert!(answered.bytes() > FRAME_BYTES + answered.pieces[0].bytes.len());
        let mut counts = QuestionCounts::new(2);
        let counted = [1, 2, 3, 4, 3, 1].map(|n| counts.count(&[n; 32]));
        assert_eq!(counted, [1, 1, 1, 2, 3, 2], "3 and 4 share a count");
    }
}
