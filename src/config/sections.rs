//! The sections of the configuration without a separate module: authentication, planning, execution, tenants
//! and telemetry.

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use super::approval::TenantApprovalConfig;
use super::otlp::OtlpConfig;
use crate::adapt::{ConsultationLimits, ExecutionLevel, ExecutionMode, PolicyDefaults, ToolBreakerConfig};
use crate::nearest::nearest;
use crate::run::{
    ConfirmPolicy, Duplicates, LearnMode, MAX_WRITES, OutOfScope, PlanningMaker, PrepareMode, ReaderMode,
    SceneMode, Settings, TenantId,
};
use crate::setting::{DAY_MS, SettingProblem, SettingsReview};
use crate::tools::phrase;

/// `[auth]`: the default user and tenant, for terminals and loopback, and whether a server requires keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// The default user's name in the company's directory.
    pub default_user: String,
    /// The default tenant.
    pub default_tenant: TenantId,
    /// Whether the server accepts requests without a key on any address. If false, a server on loopback
    /// accepts them until the first key is created, and any other server refuses to start without keys.
    pub allow_anonymous: bool,
    /// Whether every request needs a key on loopback, too, from the start: for a server behind a proxy.
    pub require_keys: bool,
    /// The limits of each API key.
    pub limits: KeyLimitsConfig,
}

/// `[auth.limits]`: limits of each API key. Requests without a key to a server that has keys count as those of
/// one key; a server without keys applies none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyLimitsConfig {
    /// Requests that cost something, per minute; not limited if absent.
    pub requests_per_minute: Option<u32>,
    /// Event streams open at once.
    pub open_streams: u32,
}

impl Default for KeyLimitsConfig {
    fn default() -> Self {
        Self { requests_per_minute: None, open_streams: 100 }
    }
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            default_user: "keysersoze".to_owned(),
            default_tenant: tenant_local(),
            allow_anonymous: false,
            require_keys: false,
            limits: KeyLimitsConfig::default(),
        }
    }
}

impl AuthConfig {
    /// Validates these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        let user = &self.default_user;
        if user.trim().is_empty() || user.chars().count() > 128 || user.chars().any(char::is_control) {
            let message = "`auth.default_user` must have 1 to 128 printable characters";
            review.add("auth.default_user", message, "write the user's name in the directory");
        }
        if self.require_keys && self.allow_anonymous {
            let message = "`auth.require_keys` and `auth.allow_anonymous` contradict each other";
            review.add("auth.require_keys", message, "set one of them to false");
        }
        let KeyLimitsConfig { requests_per_minute, open_streams } = self.limits;
        review.range("auth.limits.requests_per_minute", requests_per_minute.unwrap_or(1), 1..=1_000_000);
        review.range("auth.limits.open_streams", open_streams, 1..=1_000_000);
        review.into_problems()
    }
}

#[expect(clippy::expect_used, reason = "a constant with allowed characters")]
fn tenant_local() -> TenantId {
    TenantId::new("local").expect("an allowed name")
}

/// The longest `planning.system_prompt`, in characters: it is sent with every plan.
const MAX_SYSTEM_PROMPT_CHARS: usize = 8_000;

/// `[planning]`: how plans and continuation checks are requested from models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlanningConfig {
    /// Sampling temperature of forced questions, 0 to 2.
    pub temperature: f32,
    /// Maximum number of retries of a forced question.
    pub max_retries: u32,
    /// Whether the offline model plans when the models cannot.
    pub fallback_enabled: bool,
    /// Maximum number of steps in one plan.
    pub max_steps: u32,
    /// Maximum number of plans after the first.
    pub max_replans: u32,
    /// Whether the continuation check includes the answer.
    pub answer_with_check: bool,
    /// The treatment of a request outside every scene.
    pub out_of_scope: OutOfScope,
    /// How a forced reply is parsed.
    pub reader: ReaderMode,
    /// The operator's instructions for the planner, added to its system prompt.
    pub system_prompt: String,
    /// Which calls a plan prepares.
    pub prepare: PrepareMode,
    /// Who makes plans: a planner out of scenes, a model that writes a program, or a planner that may use programs.
    pub maker: PlanningMaker,
    /// The lessons that are drawn from executions.
    pub learn: LearnMode,
    /// How often a plan has to succeed before it is reused without a planner.
    pub learn_after: u32,
    /// The number of scenes that a prompt for a plan describes in full; 0 describes all.
    pub shortlist: u32,
    /// Milliseconds for ranking the scenes of a request by embeddings, where a model offers them; after that, and with
    /// 0 always, its words alone rank them.
    pub embeddings_timeout_ms: u32,
}

impl Default for PlanningConfig {
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
            system_prompt: settings.planner_instructions,
            prepare: PrepareMode::Always,
            maker: settings.maker,
            learn: settings.learn,
            learn_after: LEARN_AFTER,
            shortlist: SHORTLIST,
            embeddings_timeout_ms: EMBEDDINGS_TIMEOUT_MS,
        }
    }
}

impl PlanningConfig {
    /// Validates these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        review.range("planning.temperature", self.temperature, 0.0..=2.0);
        review.range("planning.max_retries", self.max_retries, 0..=10);
        review.range("planning.max_steps", self.max_steps, 1..=100);
        review.range("planning.max_replans", self.max_replans, 0..=20);
        review.range("planning.learn_after", self.learn_after, 1..=100);
        review.range("planning.shortlist", self.shortlist, 0..=1000);
        review.range("planning.embeddings_timeout_ms", self.embeddings_timeout_ms, 0..=60_000);
        let length = self.system_prompt.chars().count();
        if length > MAX_SYSTEM_PROMPT_CHARS {
            let message = format!("`planning.system_prompt` has {length} characters");
            review.add("planning.system_prompt", message, format!("use at most {MAX_SYSTEM_PROMPT_CHARS}"));
        }
        review.into_problems()
    }
}

/// Default for the number of successes that prove a plan.
const LEARN_AFTER: u32 = 3;

/// Default for the number of scenes that a prompt for a plan describes in full.
const SHORTLIST: u32 = 24;

/// Default for the milliseconds that a ranking by embeddings may take.
const EMBEDDINGS_TIMEOUT_MS: u32 = 2_000;

/// `[execution]`: how a plan is carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionConfig {
    /// When two tool calls of a run count as duplicates.
    pub duplicates: Duplicates,
    /// Maximum number of parallel steps in a run.
    pub max_parallel_steps: u32,
    /// Maximum number of model calls of a scene in one step.
    pub max_rounds: u32,
    /// Maximum number of tool calls in one step.
    pub max_calls: u32,
    /// Milliseconds from a run's start to its deadline.
    pub run_timeout_ms: u64,
    /// Whether a failed or cancelled run undoes its completed writes, if their tools define an undo.
    pub compensate: bool,
    /// Who may be asked when something unexpected happens; unset: as before there were levels.
    pub level: Option<ExecutionLevel>,
    /// How much may change when something unexpected happens; unset: as before there were modes.
    pub mode: Option<ExecutionMode>,
    /// The policies for failed calls whose tools declare nothing else.
    pub policies: PolicyDefaults,
    /// When a tool that does not answer is not called for a while.
    pub breaker: ToolBreakerConfig,
    /// The bounds of a run's consultations.
    pub consultations: ConsultationLimits,
    /// Which writes the user is asked to confirm.
    pub confirm: ConfirmPolicy,
    /// Whether scenes are asked for what a plan did not prepare.
    pub scenes: SceneMode,
    /// Maximum number of writes that a run may start unconfirmed; any further write has to be confirmed.
    pub max_writes: u32,
    /// Maximum number of queued requests in one conversation; more are rejected.
    pub max_queued_requests: u32,
    /// The time zone of dates and answers: an IANA name, or `system`.
    pub time_zone: String,
    /// The language of requests whose own language, and whose conversation's, is unclear: ISO 639-1.
    pub language: Option<String>,
    /// A fixed clock, for tests and demonstrations.
    pub fixed_now: Option<jiff::Timestamp>,
}

impl Default for ExecutionConfig {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            duplicates: settings.duplicates,
            max_parallel_steps: settings.max_parallel_steps,
            max_rounds: settings.max_rounds,
            max_calls: settings.max_calls,
            run_timeout_ms: settings.run_timeout_ms,
            compensate: settings.compensate,
            level: settings.level,
            mode: settings.mode,
            policies: settings.policies,
            breaker: ToolBreakerConfig::default(),
            consultations: settings.consultations,
            confirm: settings.confirm,
            scenes: settings.scenes,
            max_writes: MAX_WRITES,
            max_queued_requests: 32,
            time_zone: "system".to_owned(),
            language: None,
            fixed_now: None,
        }
    }
}

impl ExecutionConfig {
    /// The time zone that `time_zone` names. An unknown name is an error, which cannot happen in a validated
    /// configuration.
    pub fn zone(&self) -> Result<jiff::tz::TimeZone, jiff::Error> {
        match self.time_zone.as_str() {
            "system" => Ok(jiff::tz::TimeZone::system()),
            name => jiff::tz::TimeZone::get(name),
        }
    }

    /// Validates these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        review.range("execution.max_parallel_steps", self.max_parallel_steps, 1..=64);
        review.range("execution.max_rounds", self.max_rounds, 1..=64);
        review.range("execution.max_calls", self.max_calls, 1..=256);
        review.range("execution.max_writes", self.max_writes, 1..=10_000);
        let PolicyDefaults { attempts, backoff_ms, max_wait_ms, max_retries, max_wait_per_run_ms } =
            self.policies;
        review.range("execution.policies.attempts", attempts, 1..=10);
        review.range("execution.policies.backoff_ms", backoff_ms, 0..=60_000);
        review.range("execution.policies.max_wait_ms", max_wait_ms, 0..=600_000);
        review.range("execution.policies.max_retries", max_retries, 0..=1000);
        review.range("execution.policies.max_wait_per_run_ms", max_wait_per_run_ms, 0..=DAY_MS);
        review.range("execution.breaker.failures", self.breaker.failures, 0..=10_000);
        review.range("execution.breaker.pause_ms", self.breaker.pause_ms, 0..=300_000);
        let ConsultationLimits { max_per_run, timeout_ms, max_patches, max_idle_steps, vote } =
            self.consultations;
        review.range("execution.consultations.max_per_run", max_per_run, 0..=100);
        review.range("execution.consultations.timeout_ms", timeout_ms, 100..=120_000);
        review.range("execution.consultations.max_patches", max_patches, 0..=20);
        review.range("execution.consultations.max_idle_steps", max_idle_steps, 1..=50);
        review.range("execution.consultations.vote", vote, 1..=5);
        review.range("execution.run_timeout_ms", self.run_timeout_ms, 1..=DAY_MS);
        review.range("execution.max_queued_requests", self.max_queued_requests, 1..=10_000);
        if let Some(language) = self.language.as_deref().filter(|code| !phrase::is_language(code)) {
            let message = format!("`execution.language` = `{language}` is not a language code");
            let remedy = "use the two letters of ISO 639-1 in lower case, such as it or en";
            review.add("execution.language", message, remedy);
        }
        if let Err(error) = self.zone() {
            let zone = &self.time_zone;
            let message = format!("`execution.time_zone` = `{zone}` is not a time zone: {error}");
            review.add("execution.time_zone", message, zone_remedy(zone));
        }
        review.into_problems()
    }
}

fn zone_remedy(zone: &str) -> String {
    let names: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    match nearest(zone, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write an IANA name such as `Europe/Rome`, or `system`".to_owned(),
    }
}

/// `[tenants.NAME]`: overrides for one tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantConfig {
    /// As `execution.confirm`. A scene may be stricter, but not less strict.
    pub confirm: Option<ConfirmPolicy>,
    /// As `execution.level`, where it is lower.
    pub level: Option<ExecutionLevel>,
    /// As `execution.mode`, where it is lower.
    pub mode: Option<ExecutionMode>,
    /// As `planning.maker`, where it is narrower.
    pub maker: Option<PlanningMaker>,
    /// As `planning.learn`, in place of it.
    pub learn: Option<LearnMode>,
    /// As `[approval]`.
    pub approval: TenantApprovalConfig,
}

/// `[telemetry]`: the log on standard error, metrics and traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// A filter such as `warn` or `info,proscenium::llm=debug`.
    pub log: String,
    /// The format of log lines.
    pub log_format: LogFormat,
    /// Whether metrics are recorded for `/metrics`.
    pub metrics: bool,
    /// Maximum number of tenants whose requests and spending have metrics of their own; the others count together.
    pub max_tenant_labels: usize,
    /// The traces of runs.
    pub otlp: OtlpConfig,
}

/// What a server says about itself, which is no log: logged unless `telemetry.log` names it.
const NOTICES: &str = "proscenium::server=info,proscenium::panic=error";

/// The same, unless `telemetry.log` is `off`: the ids of runs, conversations and tenants on the lines about them, and requests
/// if `server.access_log` is on.
const LINES_ANYWAY: &str = ",proscenium::context=error,proscenium::access=info";

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            log: "warn".to_owned(),
            log_format: LogFormat::Text,
            metrics: true,
            max_tenant_labels: 50,
            otlp: OtlpConfig::default(),
        }
    }
}

/// The levels of `telemetry.log`.
const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

impl TelemetryConfig {
    /// The log filter. Errors of `async_openai` quote replies, which may contain confidential data, so they
    /// are not logged unless `log` names that module. Nor are those of connections, which are about malformed requests,
    /// such as those of scanners, unless it names their module or is as detailed as `debug`.
    ///
    /// # Errors
    /// If `log` is not a valid filter.
    pub fn filter(&self) -> Result<EnvFilter, ParseError> {
        let names = |words: &[&str]| words.iter().any(|word| self.log.contains(word));
        let replies = if names(&["async_openai"]) { "" } else { ",async_openai=off" };
        let connections = names(&["actix_http", "debug", "trace"]);
        let connections = if connections { "" } else { ",actix_http::h1::dispatcher=off" };
        let log = if self.log.trim().is_empty() { "error" } else { &self.log };
        // First without the additions, so that errors quote what was configured.
        EnvFilter::builder().parse(log)?;
        let lines = if log.trim() == "off" { "" } else { LINES_ANYWAY };
        // Of two rules for a target, the later one counts.
        EnvFilter::builder().parse(format!("{NOTICES}{lines},{log}{replies}{connections}"))
    }

    /// A part of the filter that is probably meant as a level and is none: it cannot be the name of a module, resembles a
    /// level, or is one word and the whole filter. The name of this program is none of these.
    fn misspelled_level(&self) -> Option<&str> {
        let is_level = |word: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
        let is_meant = |word: &str| {
            let is_whole = self.log.trim() == word && word.chars().all(|c| c.is_ascii_alphabetic());
            !word.chars().all(is_name) || is_whole || nearest(word, LEVELS).is_some()
        };
        // Parts with an equals sign or a bracket say what they are about.
        let mut words = self.log.split(',').map(str::trim).filter(|part| !part.contains(['=', '[', ']']));
        words.find(|word| !word.is_empty() && *word != "proscenium" && !is_level(word) && is_meant(word))
    }

    /// Validates these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        if let Err(error) = self.filter() {
            let message = format!("`telemetry.log` = `{}` is not a valid filter: {error}", self.log);
            let remedy = "write a level (`warn`) or levels by module (`info,proscenium::llm=debug`)";
            review.add("telemetry.log", message, remedy);
        } else if let Some(word) = self.misspelled_level() {
            // The filter would take it for the name of a module, of which there are no lines.
            let message = format!("`telemetry.log` = `{word}` is not a level");
            let remedy = match nearest(word, LEVELS) {
                Some(level) => format!("did you mean `{level}`?"),
                None => format!("the levels are {}", LEVELS.join(", ")),
            };
            review.add("telemetry.log", message, remedy);
        }
        review.range("telemetry.max_tenant_labels", self.max_tenant_labels, 0..=1000);
        self.otlp.review(&mut review);
        review.into_problems()
    }
}

/// The format of log lines (`telemetry.log_format`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}
