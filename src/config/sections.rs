//! The sections of the configuration that belong to no other module: who asks, how plans are made
//! and carried out, what is logged.

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::nearest::nearest;
use crate::run::{ConfirmPolicy, Duplicates, MAX_WRITES, OutOfScope, ReaderMode, Settings, TenantId};
use crate::setting::{DAY_MS, Review, Wrong};

/// `[auth]`: who asks where nobody has to say it, on a terminal and on loopback, and whether a server
/// wants keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// The user's name in the company's directory.
    pub default_user: String,
    /// Who pays.
    pub default_tenant: TenantId,
    /// Whether a server takes requests without a key wherever it listens. Without it, a server on
    /// loopback takes them as long as no key was made, and any other refuses to start without keys.
    pub allow_anonymous: bool,
}

impl Default for Auth {
    fn default() -> Self {
        Self { default_user: "keysersoze".to_owned(), default_tenant: tenant_local(), allow_anonymous: false }
    }
}

impl Auth {
    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<Wrong> {
        let mut review = Review::default();
        let user = &self.default_user;
        if user.trim().is_empty() || user.chars().count() > 128 || user.chars().any(char::is_control) {
            let message = "`auth.default_user` must name somebody, in 1 to 128 printable characters";
            review.add("auth.default_user", message, "write the user's name in the directory");
        }
        review.end()
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
    pub reader: ReaderMode,
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

impl Planning {
    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<Wrong> {
        let mut review = Review::default();
        review.range("planning.temperature", self.temperature, 0.0..=2.0);
        review.range("planning.max_retries", self.max_retries, 0..=10);
        review.range("planning.max_steps", self.max_steps, 1..=100);
        review.range("planning.max_replans", self.max_replans, 0..=20);
        review.end()
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
    /// Whether a run that fails or is cancelled undoes its finished writes, where their tools say how.
    pub compensate: bool,
    /// Which writes the user is asked to confirm.
    pub confirm: ConfirmPolicy,
    /// Most write calls that a run may begin unasked; any further one has to be confirmed.
    pub max_writes: u32,
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
            compensate: settings.compensate,
            confirm: settings.confirm,
            max_writes: MAX_WRITES,
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

    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<Wrong> {
        let mut review = Review::default();
        review.range("execution.max_parallel_steps", self.max_parallel_steps, 1..=64);
        review.range("execution.max_rounds", self.max_rounds, 1..=64);
        review.range("execution.max_calls", self.max_calls, 1..=256);
        review.range("execution.max_writes", self.max_writes, 1..=10_000);
        review.range("execution.run_timeout_ms", self.run_timeout_ms, 1..=DAY_MS);
        review.range("execution.max_queued_requests", self.max_queued_requests, 1..=10_000);
        if let Err(error) = self.zone() {
            let zone = &self.time_zone;
            let message = format!("`execution.time_zone` = `{zone}` is no time zone: {error}");
            review.add("execution.time_zone", message, zone_remedy(zone));
        }
        review.end()
    }
}

fn zone_remedy(zone: &str) -> String {
    let names: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    match nearest(zone, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write an IANA name such as `Europe/Rome`, or `system`".to_owned(),
    }
}

/// `[tenants.NAME]`: what is different for one tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tenant {
    /// As `execution.confirm`. A scene may be stricter, and never less strict.
    pub confirm: Option<ConfirmPolicy>,
}

/// `[telemetry]`: what the program says about itself: on standard error, and in figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// A filter such as `warn` or `info,proscenium::llm=debug`.
    pub log: String,
    /// How a log line looks.
    pub log_format: LogFormat,
    /// Whether figures are kept for `/metrics`.
    pub metrics: bool,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { log: "warn".to_owned(), log_format: LogFormat::Text, metrics: true }
    }
}

impl Telemetry {
    /// What is logged, as a filter. Errors of `async_openai` quote replies, which may hold what is
    /// nobody else's business; they are left out unless `log` names that module.
    ///
    /// # Errors
    /// Where `log` is no filter.
    pub fn filter(&self) -> Result<EnvFilter, ParseError> {
        let quiet = if self.log.contains("async_openai") { "" } else { ",async_openai=off" };
        // Alone first: a fault is told of what was written.
        EnvFilter::builder().parse(&self.log)?;
        EnvFilter::builder().parse(format!("{}{quiet}", self.log))
    }

    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<Wrong> {
        let mut review = Review::default();
        if let Err(error) = self.filter() {
            let message = format!("`telemetry.log` = `{}` is no filter: {error}", self.log);
            let remedy = "write a level (`warn`) or levels by module (`info,proscenium::llm=debug`)";
            review.add("telemetry.log", message, remedy);
        }
        review.end()
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
