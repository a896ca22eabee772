//! Why something failed, and what kind of failure it is.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The innermost cause of an error: the outer ones only say that there was an error.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

/// The kind of a failure: what decides whether a retry, another source or nothing helps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, strum::IntoStaticStr, strum::EnumIter, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FaultClass {
    /// Too many requests: a later one may succeed.
    RateLimit,
    /// No answer in time.
    Timeout,
    /// It cannot be reached, or has a problem of its own.
    Unavailable,
    /// What was asked for does not exist.
    NotFound,
    /// The arguments or the answer do not have the expected form.
    BadData,
    /// Credentials, a policy or an exhausted budget forbid it.
    Denied,
    /// Anything else, and every fault that was recorded before there were classes.
    #[default]
    Other,
}

impl FaultClass {
    /// The class of an HTTP response by its status.
    pub fn of_status(status: u16) -> Self {
        match status {
            425 | 429 => Self::RateLimit,
            408 | 504 => Self::Timeout,
            404 | 410 => Self::NotFound,
            401 | 402 | 403 | 407 | 451 => Self::Denied,
            400 | 406 | 411..=416 | 422 | 431 => Self::BadData,
            500..=599 => Self::Unavailable,
            _ => Self::Other,
        }
    }

    /// Returns whether a later attempt may succeed by itself: what was called was busy or out of service.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::RateLimit | Self::Timeout | Self::Unavailable)
    }

    /// The name, such as `rate_limit`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde demands")]
    fn is_other(&self) -> bool {
        *self == Self::Other
    }
}

/// Why something failed: a stable code, and a message that says what, where and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Fault {
    /// Stable, such as `tool.timeout`.
    pub code: String,
    /// For people and models.
    pub message: String,
    /// The kind of failure. `other` is left out.
    #[serde(default, skip_serializing_if = "FaultClass::is_other")]
    pub class: FaultClass,
    /// Milliseconds after which a retry may succeed, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The sentence for end users, in their language, where the tool words it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// A fault of class `other` with its stable code and its message.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            class: FaultClass::Other,
            retry_after_ms: None,
            say: None,
        }
    }

    /// The same fault with its class.
    #[must_use]
    pub fn classed(self, class: FaultClass) -> Self {
        Self { class, ..self }
    }

    /// The same fault with the sentence for end users.
    #[must_use]
    pub fn saying(self, say: Option<String>) -> Self {
        Self { say, ..self }
    }

    /// The same fault with a retry delay, at most what every reader of JSON can read.
    #[must_use]
    pub fn after(mut self, wait: Option<Duration>) -> Self {
        const MAX: u64 = (1 << 53) - 1;
        self.retry_after_ms = wait.map(|wait| u64::try_from(wait.as_millis()).map_or(MAX, |ms| ms.min(MAX)));
        self
    }
}
