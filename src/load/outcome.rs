//! The outcome of one request.

use std::time::Duration;

use uuid::Uuid;

/// One request and its reply, as its client saw them.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestOutcome {
    /// How it ended.
    pub end: RequestEnd,
    /// The run that the reply names.
    pub run: Option<Uuid>,
    /// From sending it to the first text of the answer, if the answer was streamed.
    pub first_token: Option<Duration>,
    /// What the answer says about its making.
    pub usage: RequestUsage,
    /// Whether the server said that an earlier request with the same key had been answered.
    pub is_replay: bool,
    /// Whether it was refused for its API key, with 401 or 403.
    pub is_denied: bool,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestEnd {
    /// Its answer arrived completely. `status` is that of the run, such as `completed`; `ok` where the protocol has none.
    Answered {
        /// The status.
        status: String,
    },
    /// It was refused before it was accepted, with 429 or 503: the same request may succeed later.
    Shed {
        /// The stable code of the refusal.
        code: String,
        /// The seconds of its `Retry-After`, if it had one.
        retry_after_s: Option<u32>,
    },
    /// It was refused for another reason, or failed.
    Failed {
        /// The server's stable code, `http.` and a status, or `client.` and what the client saw.
        code: String,
    },
}

/// The figures of an answer about its making; absent ones are zero or `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RequestUsage {
    /// Calls of models.
    pub llm_calls: u64,
    /// Prompt tokens.
    pub input_tokens: u64,
    /// Prompt tokens from the provider's cache.
    pub cached_input_tokens: u64,
    /// Completion tokens.
    pub output_tokens: u64,
    /// Its cost in US dollars.
    pub cost_usd: Option<f64>,
    /// How long the server says that it took.
    pub times: Option<ServerTimes>,
}

/// How long a server says that a run took, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServerTimes {
    /// From the acceptance of the request to its answer.
    pub total_ms: f64,
    /// Of that, the time without waiting for a model, a tool or a person.
    pub overhead_ms: f64,
}

impl ServerTimes {
    /// Returns the part of a latency that a client saw that is no wait for a model, a tool or a person: also the time on the way,
    /// before acceptance and after the answer, which the server does not see.
    pub fn seen_overhead(&self, latency: Duration) -> Duration {
        let waited =
            Duration::try_from_secs_f64((self.total_ms - self.overhead_ms) / 1000.0).unwrap_or_default();
        latency.saturating_sub(waited)
    }

    /// The server's own figure.
    pub fn overhead(&self) -> Duration {
        Duration::try_from_secs_f64(self.overhead_ms / 1000.0).unwrap_or_default()
    }
}

impl RequestOutcome {
    /// An end without anything else.
    pub fn of(end: RequestEnd) -> Self {
        Self {
            end,
            run: None,
            first_token: None,
            usage: RequestUsage::default(),
            is_replay: false,
            is_denied: false,
        }
    }

    /// A failure with this code.
    pub fn failed(code: impl Into<String>) -> Self {
        Self::of(RequestEnd::Failed { code: code.into() })
    }

    /// Returns whether the answer arrived.
    pub fn is_answered(&self) -> bool {
        matches!(self.end, RequestEnd::Answered { .. })
    }

    /// Returns whether it took as long as it took because no answer came: it counts among the latencies.
    pub fn is_unanswered(&self) -> bool {
        matches!(&self.end, RequestEnd::Failed { code } if code == TIMEOUT || code == CUT)
    }

    /// Returns whether it is unknown whether the server accepted the request: no reply says so.
    pub fn is_silent(&self) -> bool {
        matches!(&self.end, RequestEnd::Failed { code } if code.starts_with("client.") && code != CONNECT)
    }
}

/// The code of a request for which no connection could be made: it was not sent.
pub const CONNECT: &str = "client.connect";
/// The code of a request without a complete reply in time.
pub const TIMEOUT: &str = "client.timeout";
/// The code of a reply that broke off.
pub const CUT: &str = "client.cut";
/// The code of a reply that is not one of the protocol.
pub const REPLY: &str = "client.reply";
