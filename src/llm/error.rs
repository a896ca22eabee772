//! Errors of model calls.

use std::time::Duration;

use super::{GuardUnavailable, budget, limits};
use crate::run::{Attempt, Fault, FaultClass, Usage};

/// Why a model call failed, which model it was, and its cost. Never contains an API key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model {model:?}: {kind}")]
pub struct Error {
    model: Box<str>,
    kind: ErrorKind,
    usage: Usage,
    attempts: Box<[Attempt]>,
}

/// The closed set of reasons. `detail` holds at most a few hundred characters of the provider's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// No connection: refused, unknown host, TLS, or not made in time. Nothing was sent.
    #[error("could not be reached ({detail}): check `base_url` and that the server is up")]
    Connect {
        /// The network error.
        detail: String,
    },
    /// Connected, but no data arrived in time.
    #[error("was silent for {millis} ms: the server may be overloaded; `{option}` sets the bound")]
    Silence {
        /// The elapsed time.
        millis: u64,
        /// The option that sets the bound.
        option: &'static str,
    },
    /// The reply had not begun in time, and another model is left.
    #[error(
        "had not begun its reply after {millis} ms: `llm.slow_ms` says when the next model is asked instead"
    )]
    Slow {
        /// The elapsed time.
        millis: u64,
    },
    /// The deadline of the whole call, retries included, passed.
    #[error("gave no reply within {millis} ms: `llm.deadline_ms` sets the bound")]
    Timeout {
        /// The deadline, from the start of the call.
        millis: u64,
    },
    /// Too many requests or tokens: 429.
    #[error("limits the rate ({detail}): wait, or configure another model after it")]
    RateLimited {
        /// The delay requested by the server.
        retry_after: Option<Duration>,
        /// The server's message.
        detail: String,
    },
    /// The provider account has no credit left; waiting does not help.
    #[error("says that its quota is used up ({detail}): see to the account, or configure another model")]
    Quota {
        /// The server's message.
        detail: String,
    },
    /// 401 or 403.
    #[error("refused the key with status {status} ({detail}): check the variable named by `api_key_env`")]
    Unauthorized {
        /// The HTTP status.
        status: u16,
        /// The server's message.
        detail: String,
    },
    /// Any other error status.
    #[error("answered with status {status} ({detail})")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The delay requested by the server.
        retry_after: Option<Duration>,
        /// The server's message.
        detail: String,
    },
    /// The request exceeds the model's context window.
    #[error("cannot take a request this long ({detail}): lower `context_window` to what the model has")]
    ContextOverflow {
        /// The server's message.
        detail: String,
    },
    /// Status 200, but neither a chat completion nor embeddings.
    #[error(
        "sent a reply that does not follow the protocol ({detail}): check that `base_url` ends where /chat/completions begins"
    )]
    Malformed {
        /// What was wrong.
        detail: String,
    },
    /// An empty stream with status 200.
    #[error("sent an empty stream: try again, or set `stream = false` for it")]
    EmptyStream,
    /// A stream that ended before the reply was complete.
    #[error("broke off in the middle of its reply: try again")]
    CutStream,
    /// The reply exceeds the size limit.
    #[error("sent more than {limit} bytes: lower `max_output_tokens`")]
    TooLarge {
        /// The size limit in bytes.
        limit: usize,
    },
    /// A budget is exhausted. Nothing was sent.
    #[error("is not asked: {0}")]
    Budget(Box<budget::BudgetRefusal>),
    /// A limit refused the call. Nothing was sent.
    #[error("is not asked: {0}")]
    Limits(Box<limits::LimitRefusal>),
    /// The budget or the limits could not be asked. Nothing was sent.
    #[error("is not asked: {0}")]
    Unavailable(GuardUnavailable),
    /// The circuit breaker is open. Nothing was sent.
    #[error("failed again and again and is left alone for {millis} ms: `llm.breaker` sets when and how long")]
    Open {
        /// The time until the next probe.
        millis: u64,
    },
    /// An operator has switched every model of the purpose off. Nothing was sent.
    #[error("is switched off: `proscenium models enable` switches it on again")]
    Disabled,
    /// The caller cancelled the call.
    #[error("was not waited for: the request was cancelled")]
    Cancelled,
    /// The configuration does not allow the call.
    #[error("cannot be used: {detail}")]
    NotConfigured {
        /// What is missing and where.
        detail: String,
    },
    /// An internal error.
    #[error("could not be asked because of an internal fault ({detail}): please report it")]
    Internal {
        /// The event.
        detail: String,
    },
}

impl ErrorKind {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            ErrorKind::Connect { .. } => "llm.connect",
            ErrorKind::Silence { .. } => "llm.silence",
            ErrorKind::Slow { .. } => "llm.too_slow",
            ErrorKind::Timeout { .. } => "llm.timeout",
            ErrorKind::RateLimited { .. } => "llm.rate_limited",
            ErrorKind::Quota { .. } => "llm.quota",
            ErrorKind::Unauthorized { .. } => "llm.unauthorized",
            ErrorKind::Status { .. } => "llm.status",
            ErrorKind::ContextOverflow { .. } => "llm.context_overflow",
            ErrorKind::Malformed { .. } => "llm.malformed",
            ErrorKind::EmptyStream => "llm.empty_stream",
            ErrorKind::CutStream => "llm.cut_stream",
            ErrorKind::TooLarge { .. } => "llm.too_large",
            ErrorKind::Budget(_) => "budget.exceeded",
            ErrorKind::Limits(_) => "limits.exceeded",
            ErrorKind::Unavailable(_) => "llm.guard_unavailable",
            ErrorKind::Open { .. } => "llm.breaker_open",
            ErrorKind::Disabled => "llm.disabled",
            ErrorKind::Cancelled => "llm.cancelled",
            ErrorKind::NotConfigured { .. } => "llm.not_configured",
            ErrorKind::Internal { .. } => "llm.internal",
        }
    }

    /// The code without its first part, as attempts in the journal and metrics have it: one of
    /// [`CLASSES`](Self::CLASSES).
    pub fn class(&self) -> &'static str {
        let code = self.code();
        match self {
            ErrorKind::Budget(_) => "budget",
            ErrorKind::Limits(_) => "limits",
            _ => code.split_once('.').map_or(code, |(_, class)| class),
        }
    }

    /// All classes.
    pub const CLASSES: [&str; 21] = [
        "connect", "silence", "too_slow", "timeout", "rate_limited", "quota", "unauthorized", "status",
        "context_overflow", "malformed", "empty_stream", "cut_stream", "too_large", "budget", "limits",
        "guard_unavailable", "breaker_open", "disabled", "cancelled", "not_configured", "internal",
    ];

    /// The class of the fault that the journal gets.
    pub fn fault_class(&self) -> FaultClass {
        match self {
            ErrorKind::RateLimited { .. } | ErrorKind::Limits(_) => FaultClass::RateLimit,
            ErrorKind::Silence { .. } | ErrorKind::Slow { .. } | ErrorKind::Timeout { .. } => {
                FaultClass::Timeout
            }
            ErrorKind::Connect { .. }
            | ErrorKind::EmptyStream
            | ErrorKind::CutStream
            | ErrorKind::Unavailable(_)
            | ErrorKind::Open { .. }
            | ErrorKind::Disabled => FaultClass::Unavailable,
            ErrorKind::Quota { .. }
            | ErrorKind::Unauthorized { .. }
            | ErrorKind::Budget(_)
            | ErrorKind::NotConfigured { .. } => FaultClass::Denied,
            ErrorKind::Malformed { .. } | ErrorKind::TooLarge { .. } | ErrorKind::ContextOverflow { .. } => {
                FaultClass::BadData
            }
            ErrorKind::Status { status, .. } => FaultClass::of_status(*status),
            ErrorKind::Cancelled | ErrorKind::Internal { .. } => FaultClass::Other,
        }
    }

    /// Returns whether the model never started to work, so that the call is free.
    pub fn is_free(&self) -> bool {
        matches!(
            self,
            ErrorKind::Connect { .. }
                | ErrorKind::RateLimited { .. }
                | ErrorKind::Quota { .. }
                | ErrorKind::Unauthorized { .. }
                | ErrorKind::Status { .. }
                | ErrorKind::ContextOverflow { .. }
                | ErrorKind::Budget(_)
                | ErrorKind::Open { .. }
                | ErrorKind::Disabled
                | ErrorKind::Limits(_)
                | ErrorKind::Unavailable(_)
                | ErrorKind::NotConfigured { .. }
        )
    }
}

impl Error {
    /// An error of `model` (its configured name) that cost nothing.
    pub fn new(model: &str, kind: ErrorKind) -> Self {
        Self { model: model.into(), kind, usage: Usage::default(), attempts: Box::default() }
    }

    /// The same error, having cost `usage`.
    #[must_use]
    pub fn costing(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The same error after these attempts, with their total cost.
    #[must_use]
    pub fn after(mut self, attempts: Vec<Attempt>) -> Self {
        self.usage = Attempt::sum(&attempts);
        self.attempts = attempts.into();
        self
    }

    /// All attempts, once the question is over.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// The stable code, such as `llm.timeout`.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// The reason.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The configured name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The cost, failed attempts included.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns whether the same model may be retried: the request did no harm and the error may be transient.
    pub fn is_retryable(&self) -> bool {
        match &self.kind {
            ErrorKind::Connect { .. }
            | ErrorKind::Silence { .. }
            | ErrorKind::RateLimited { .. }
            | ErrorKind::Malformed { .. }
            | ErrorKind::EmptyStream
            | ErrorKind::CutStream => true,
            ErrorKind::Status { status, .. } => {
                matches!(status, 408 | 409 | 425) || (*status >= 500 && *status != 501)
            }
            _ => false,
        }
    }

    /// Returns whether another model may be called instead.
    pub fn may_hand_over(&self) -> bool {
        match &self.kind {
            ErrorKind::Cancelled | ErrorKind::Timeout { .. } | ErrorKind::Internal { .. } => false,
            // A tenant's limit is the same in front of every model.
            ErrorKind::Limits(refusal) => refusal.models,
            _ => true,
        }
    }

    /// The delay requested by the server or by a limit.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.kind {
            ErrorKind::Limits(refusal) => refusal.retry_after,
            ErrorKind::Open { millis } => Some(Duration::from_millis(*millis)),
            ErrorKind::RateLimited { retry_after, .. } | ErrorKind::Status { retry_after, .. } => {
                *retry_after
            }
            ErrorKind::Budget(refusal) => refusal.retry_after(jiff::Timestamp::now()),
            _ => None,
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        // Faults are journalled, and shown to the user.
        let message = match &error.kind {
            ErrorKind::Budget(refusal) => {
                format!("model {:?}: is not asked: {}", error.model, refusal.for_clients())
            }
            _ => error.to_string(),
        };
        Fault::new(error.code(), message).classed(error.kind.fault_class()).after(error.retry_after())
    }
}
