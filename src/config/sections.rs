//! The sections of the configuration that belong to no other module: who asks, how plans are made
//! and carried out, what is logged.

use serde::{Deserialize, Serialize};

use crate::run::{Duplicates, OutOfScope, Reader, Settings, TenantId};

/// `[auth]`: who asks where nobody has to say it, on a terminal and on loopback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// The user's name in the company's directory.
    pub default_user: String,
    /// Who pays.
    pub default_tenant: TenantId,
}

impl Default for Auth {
    fn default() -> Self {
        Self { default_user: "keysersoze".to_owned(), default_tenant: tenant_local() }
    }
}

#[expect(clippy::expect_used, reason = "a constant with allowed characters")]
fn tenant_local() -> TenantId {
    TenantId::new("local").expect("an allowed name")
}

/// `[planning]`: how a plan and the continuation check are asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Planning {
    /// Sampling temperature of forced questions, 0 to 2.
    pub temperature: f32,
    /// Additional tries of a forced question after the first.
    pub max_retries: u32,
    /// Whether the embedded rules plan when the models cannot.
    pub fallback_enabled: bool,
    /// Most steps in one plan.
    pub max_steps: u32,
    /// Most plans made after the first.
    pub max_replans: u32,
    /// Whether the continuation check carries the answer.
    pub answer_with_check: bool,
    /// What to do with a request outside every scene.
    pub out_of_scope: OutOfScope,
    /// How a forced reply is read.
    pub reader: Reader,
}

impl Default for Planning {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            temperature: settings.temperature,
            max_retries: settings.max_retries,
            fallback_enabled: settings.fallback_enabled,
            max_steps: settings.max_steps,
            max_replans: settings.max_replans,
            answer_with_check: settings.answer_with_check,
            out_of_scope: settings.out_of_scope,
            reader: settings.reader,
        }
    }
}

/// `[execution]`: how a plan is carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Execution {
    /// What makes two tool calls of a run the same.
    pub duplicates: Duplicates,
    /// Most steps of a run at work at once.
    pub max_parallel_steps: u32,
    /// Most questions to a scene's model in one step.
    pub max_rounds: u32,
    /// Most tool calls in one step.
    pub max_calls: u32,
    /// Milliseconds from a run's start to its deadline.
    pub run_timeout_ms: u64,
    /// Most requests of one conversation that wait for their turn; more are refused.
    pub max_queued_requests: u32,
    /// The time zone of dates and answers: an IANA name, or `system`.
    pub time_zone: String,
    /// A clock that stands still, for tests and demonstrations.
    pub fixed_now: Option<jiff::Timestamp>,
}

impl Default for Execution {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            duplicates: settings.duplicates,
            max_parallel_steps: settings.max_parallel_steps,
            max_rounds: settings.max_rounds,
            max_calls: settings.max_calls,
            run_timeout_ms: settings.run_timeout_ms,
            max_queued_requests: 32,
            time_zone: "system".to_owned(),
            fixed_now: None,
        }
    }
}

impl Execution {
    /// The time zone that `time_zone` names. Errors where the name is unknown; a loaded
    /// configuration has been checked for that.
    pub fn zone(&self) -> Result<jiff::tz::TimeZone, jiff::Error> {
        match self.time_zone.as_str() {
            "system" => Ok(jiff::tz::TimeZone::system()),
            name => jiff::tz::TimeZone::get(name),
        }
    }
}

/// `[telemetry]`: what the program says about itself, on standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// A filter such as `warn` or `info,proscenium::llm=debug`.
    pub log: String,
    /// How a log line looks.
    pub log_format: LogFormat,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { log: "warn".to_owned(), log_format: LogFormat::Text }
    }
}

/// How a log line looks (`telemetry.log_format`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}
