//! Streamed answers in the OpenAI protocol: chunks as the model produces them.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};

use super::super::intake::{self, AcceptedRequest};
use super::super::key_limits::OpenStream;
use super::super::sse::{self, with_keep_alive};
use super::MODEL;
use super::completion::{self, CompletionUsage};
use super::error::Error;
use super::progress::progress_line;
use crate::config::{ProgressMode, ServerConfig};
use crate::language::Lang;
use crate::public::{PublicEvent, PublicStream};
use crate::run::RunStatus;

struct ChunkStream {
    events: PublicStream,
    accepted: AcceptedRequest,
    head: Value,
    with_usage: bool,
    progress: ProgressMode,
    /// The language of the request, in which progress is told.
    language: Lang,
    /// Whether text of the answer was sent: it cannot be retracted.
    has_sent_text: bool,
    has_sent_role: bool,
}

/// A reply that streams chunks until the run ends or waits for a person.
pub(super) fn chunk_stream_reply(
    options: &ServerConfig,
    accepted: AcceptedRequest,
    events: PublicStream,
    with_usage: bool,
    open: OpenStream,
) -> HttpResponse {
    let (run, session) = (accepted.run, accepted.session.to_string());
    let head = json!({
        "id": completion::completion_id(run), "object": "chat.completion.chunk", "created": completion::unix_seconds(), "model": MODEL,
    });
    let chunks = ChunkStream {
        events,
        accepted,
        head,
        with_usage,
        progress: options.progress,
        language: Lang::En,
        has_sent_text: false,
        has_sent_role: false,
    };
    let lines = with_keep_alive(
        chunks.lines(),
        Duration::from_millis(options.ping_ms),
        Bytes::from_static(b": ping\n\n"),
    );
    HttpResponse::Ok()
        .content_type(sse::MEDIA_TYPE)
        .insert_header(("cache-control", "no-store"))
        .insert_header(("x-accel-buffering", "no"))
        .insert_header(("x-run-id", run.to_string()))
        .insert_header((super::REQUEST_ID, run.to_string()))
        .insert_header(("x-session-id", session))
        .streaming(open.counted(lines))
}

impl ChunkStream {
    fn lines(self) -> impl Stream<Item = Bytes> {
        stream::unfold(Some(self), |chunks| async move {
            let mut chunks = chunks?;
            if !chunks.has_sent_role {
                chunks.has_sent_role = true;
                let line = chunks.chunk(json!({"role": "assistant", "content": ""}));
                return Some((line, Some(chunks)));
            }
            // If the journal cannot be read, the final chunks contain the error.
            while let Some(Ok(event)) = chunks.events.next().await {
                if let Some(line) = chunks.event(&event) {
                    return Some((line, Some(chunks)));
                }
            }
            Some((chunks.final_chunks().await, None))
        })
    }

    fn event(&mut self, event: &PublicEvent) -> Option<Bytes> {
        let text = |name: &str| event.data.get(name).and_then(Value::as_str);
        if event.name == "run_started" {
            self.language = Lang::of(text("language").unwrap_or_default());
        }
        match event.name {
            "answer_delta" => {
                self.has_sent_text = true;
                Some(self.chunk(json!({"content": text("text").unwrap_or_default()})))
            }
            // Sent text cannot be retracted: the answer starts again below it.
            "answer_reset" if self.has_sent_text => Some(self.chunk(json!({"content": "\n\n"}))),
            _ => {
                let line = progress_line(event, self.language)?;
                match self.progress {
                    ProgressMode::Off => None,
                    ProgressMode::Reasoning => Some(self.chunk(json!({"reasoning_content": line}))),
                    ProgressMode::Text => Some(self.chunk(json!({"content": line}))),
                }
            }
        }
    }

    fn chunk(&self, delta: Value) -> Bytes {
        Bytes::from(format_chunk(
            &self.head,
            chunk_choices(delta, None),
            self.with_usage.then_some(Value::Null),
        ))
    }

    /// The chunks after the last event: the end of the answer, or the error.
    async fn final_chunks(mut self) -> Bytes {
        let ended = self.accepted.answered().await;
        self.accepted.mark_delivered();
        let (head, with_usage, has_text) = (self.head, self.with_usage, self.has_sent_text);
        let answer = ended.and_then(|answer| intake::failure_problem(&answer).map_or(Ok(answer), Err));
        let answer = match answer {
            // Waiting and cancelled runs have no answer event: the text is made from the run's state.
            Ok(answer) if matches!(answer.status, RunStatus::Waiting | RunStatus::Cancelled) => {
                let words = answer.answer.clone();
                Ok((answer, words))
            }
            answer => answer.map(|answer| (answer, String::new())),
        };
        let mut end = match answer {
            Ok((answer, words)) => {
                let null = || with_usage.then_some(Value::Null);
                let mut end = String::new();
                if !words.is_empty() {
                    let gap = if has_text { "\n\n" } else { "" };
                    let delta = json!({"content": format!("{gap}{words}")});
                    end.push_str(&format_chunk(&head, chunk_choices(delta, None), null()));
                }
                end.push_str(&format_chunk(&head, chunk_choices(json!({}), Some("stop")), null()));
                if with_usage {
                    // Plain data always serializes.
                    let usage = serde_json::to_value(CompletionUsage::of(&answer.usage)).unwrap_or_default();
                    end.push_str(&format_chunk(&head, json!([]), Some(usage)));
                }
                end
            }
            Err(problem) => {
                let body = serde_json::to_string(&Error::from(problem).body()).unwrap_or_default();
                format!("data: {body}\n\n")
            }
        };
        end.push_str("data: [DONE]\n\n");
        Bytes::from(end)
    }
}

fn chunk_choices(delta: Value, finish: Option<&str>) -> Value {
    json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}])
}

/// One chunk. If usage was requested, every chunk has the field; it is null in all but the last.
fn format_chunk(head: &Value, choices: Value, usage: Option<Value>) -> String {
    let mut body = head.clone();
    if let Some(object) = body.as_object_mut() {
        object.insert("choices".to_owned(), choices);
        if let Some(usage) = usage {
            object.insert("usage".to_owned(), usage);
        }
    }
    format!("data: {body}\n\n")
}
