//! The spans of questions to models, and of each attempt at one.

use jiff::{SignedDuration, Timestamp};

use super::content;
use super::fold::{TraceFold, usd};
use super::span::{AttributeValue, OpenSpan, SpanRole, word};
use crate::llm::OFFLINE;
use crate::run::{Attempt, Fault, Purpose, Reply, Subject, Usage};
use crate::trace_context::{SpanId, SpanKey};

/// A question that is not answered yet.
pub(super) struct OpenModelCall {
    pub(super) span: OpenSpan,
    /// `chat` or `embeddings`.
    operation: &'static str,
}

impl OpenModelCall {
    pub(super) fn begin(
        fold: &TraceFold,
        call: u32,
        subject: Subject,
        repair: u32,
        parent: Option<SpanId>,
        at: Timestamp,
    ) -> Self {
        let purpose = subject.facts().purpose;
        let operation = if purpose == Purpose::Embedding { "embeddings" } else { "chat" };
        let mut span = fold.span(SpanKey::ModelCall { call }, parent, operation.to_owned(), at);
        span.set_word("gen_ai.operation.name", operation);
        span.set_word("proscenium.purpose", purpose.name());
        span.set("proscenium.model_call", AttributeValue::count(call.into()));
        span.set("proscenium.repair", AttributeValue::count(repair.into()));
        Self { span, operation }
    }
}

impl TraceFold {
    pub(super) fn model_ended(
        &mut self,
        call: u32,
        end: Result<&Reply, &Fault>,
        usage: Usage,
        attempts: &[Attempt],
        at: Timestamp,
    ) {
        let Some(OpenModelCall { mut span, operation }) = self.model_calls.remove(&call) else { return };
        self.add_attempts(call, &span, attempts, at);
        let asked = attempts.iter().rev().find(|attempt| attempt.was_sent()).or(attempts.last());
        let model = match (end, asked) {
            (Ok(reply), _) if !reply.model.is_empty() => reply.model.as_str(),
            (_, Some(attempt)) => attempt.model.as_str(),
            _ => "",
        };
        self.say_model(&mut span, operation, model);
        if let Some(attempt) = attempts.last().filter(|attempt| !attempt.was_sent()) {
            span.set_word("proscenium.cache", &attempt.outcome);
        }
        if usage != Usage::default() {
            span.set("gen_ai.usage.input_tokens", AttributeValue::count(usage.input_tokens));
            span.set("gen_ai.usage.output_tokens", AttributeValue::count(usage.output_tokens));
            span.set(
                "gen_ai.usage.cache_read.input_tokens",
                AttributeValue::count(usage.cached_input_tokens),
            );
            span.set("proscenium.cost_usd", AttributeValue::Real(usd(usage)));
        }
        match end {
            Ok(reply) => {
                span.set_word("gen_ai.response.model", &self.model_id(&reply.model));
                if let Some(reason) = &reply.finish_reason {
                    span.set("gen_ai.response.finish_reasons", AttributeValue::List(vec![word(reason)]));
                }
                if let Some(first) = asked.and_then(|attempt| attempt.first_token_millis) {
                    span.set("gen_ai.request.stream", AttributeValue::Flag(true));
                    span.set("gen_ai.response.time_to_first_chunk", AttributeValue::Real(first as f64 / 1e3));
                }
                if self.options.content {
                    span.set("gen_ai.output.messages", content::reply(reply));
                }
            }
            Err(error) => span.fail(&error.code),
        }
        self.finish(span, at);
    }

    /// Adds the attributes of the model that was asked.
    fn say_model(&self, span: &mut OpenSpan, operation: &str, model: &str) {
        let server = self.options.models.get(model);
        // The conventions use this name for any server that speaks the protocol of OpenAI. The offline model, and
        // parts that replace a model, are in this process.
        let is_remote = !model.is_empty() && model != OFFLINE && model != Reply::REPLACED_MODEL;
        span.set_word("gen_ai.provider.name", if is_remote { "openai" } else { "proscenium" });
        if is_remote {
            span.set_role(SpanRole::Client);
        }
        if model.is_empty() {
            return;
        }
        let id = self.model_id(model);
        span.rename(format!("{operation} {id}"));
        span.set_word("gen_ai.request.model", &id);
        span.set_word("proscenium.model", model);
        if let Some((host, port)) = server.and_then(|server| server.address) {
            span.set_word("server.address", &host);
            span.set("server.port", AttributeValue::count(port.into()));
        }
    }

    /// The id under which its server knows a model.
    fn model_id(&self, model: &str) -> String {
        self.options.models.get(model).map_or_else(|| model.to_owned(), |server| server.id)
    }

    /// A span for each request that was sent.
    fn add_attempts(&mut self, call: u32, asked: &OpenSpan, attempts: &[Attempt], at: Timestamp) {
        let offsets = offsets(attempts);
        let total = offsets.iter().zip(attempts).map(|(after, attempt)| after.saturating_add(attempt.millis));
        let total = total.max().unwrap_or_default();
        let mut sent = 0_u64;
        for (index, (attempt, after)) in (0..).zip(attempts.iter().zip(offsets)) {
            if !attempt.was_sent() || attempt.model == OFFLINE {
                continue;
            }
            let started = before(at, total.saturating_sub(after)).max(asked.started());
            let ended = before(at, total.saturating_sub(after.saturating_add(attempt.millis)));
            let key = SpanKey::ModelAttempt { call, index };
            let mut span = self.span(key, Some(asked.id()), "POST".to_owned(), started);
            span.set_role(SpanRole::Client);
            span.set_word("http.request.method", "POST");
            if sent > 0 {
                span.set("http.request.resend_count", AttributeValue::count(sent));
            }
            sent += 1;
            if let Some((host, port)) =
                self.options.models.get(&attempt.model).and_then(|model| model.address)
            {
                span.set_word("server.address", &host);
                span.set("server.port", AttributeValue::count(port.into()));
            }
            span.set_word("proscenium.model", &attempt.model);
            span.set("proscenium.attempt", AttributeValue::count(u64::from(index) + 1));
            span.set("proscenium.cost_usd", AttributeValue::Real(usd(attempt.usage)));
            if attempt.outcome != Attempt::OK {
                span.fail(&attempt.outcome);
            }
            self.finish(span, ended);
        }
    }
}

/// How many milliseconds after the first one each attempt began. Events of earlier releases lack this: each attempt is
/// then assumed to follow the previous one at once.
fn offsets(attempts: &[Attempt]) -> Vec<u64> {
    if attempts.iter().any(|attempt| attempt.after_millis > 0) {
        return attempts.iter().map(|attempt| attempt.after_millis).collect();
    }
    let mut next = 0_u64;
    let begin = |attempt: &Attempt| {
        let begun = next;
        next = next.saturating_add(attempt.millis);
        begun
    };
    attempts.iter().map(begin).collect()
}

fn before(at: Timestamp, millis: u64) -> Timestamp {
    let millis = SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
    at.checked_sub(millis).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(millis: u64, after_millis: u64) -> Attempt {
        Attempt { millis, after_millis, ..Attempt::default() }
    }

    #[test]
    fn attempts_of_earlier_releases_follow_each_other_at_once() {
        assert_eq!(offsets(&[attempt(5, 0), attempt(7, 0), attempt(1, 0)]), [0, 5, 12]);
        assert_eq!(offsets(&[attempt(5, 0), attempt(7, 9)]), [0, 9]);
        assert_eq!(before(Timestamp::UNIX_EPOCH, u64::MAX), Timestamp::MIN);
    }
}
