//! The configuration: built-in defaults, then a file, then the environment, then flags. It is parsed and
//! validated as a whole, and all problems are reported at once.
//!
//! `config/default.toml` is embedded in the program and names every key. It documents this module's structs,
//! and a test keeps the two consistent.
//!
//! **Invariant:** this module does not read the process's environment; the caller passes it in.

mod approval;
mod check;
mod documents;
mod fault;
mod file;
mod layers;
mod openai;
mod otel_variables;
mod otlp;
mod read;
mod run_settings;
mod sections;
mod server;
mod tenants;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use approval::{ApprovalConfig, TenantApprovalConfig, WebhookConfig};
pub use documents::DocumentsConfig;
pub use fault::{ConfigFault, ConfigFaults, ValueOrigin};
pub use layers::ConfigFlags;
pub use otlp::{OtlpConfig, OtlpTarget};
pub(crate) use run_settings::RunOffer;
pub use sections::{
    AuthConfig, ExecutionConfig, KeyLimitsConfig, LogFormat, PlanningConfig, TelemetryConfig, TenantConfig,
};
pub use server::{ProgressMode, ServerConfig, is_listen_address};

use crate::run::{Purpose, RULES_REVISION, Settings};
use crate::setting::SettingProblem;

/// The defaults as a commented file with every key.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// The whole configuration. `config/default.toml` documents each key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The HTTP server.
    pub server: ServerConfig,
    /// The default user and tenant, and access without keys.
    pub auth: AuthConfig,
    /// The data directory and its writer.
    pub store: crate::store::Options,
    /// Documents of users.
    pub documents: DocumentsConfig,
    /// The models.
    pub llm: crate::llm::Options,
    /// The cache of model replies.
    pub cache: crate::llm::cache::Options,
    /// Spending limits for models.
    pub budget: crate::llm::budget::Options,
    /// Rate limits for models.
    pub limits: crate::llm::limits::Options,
    /// How plans are made.
    pub planning: PlanningConfig,
    /// How plans are carried out.
    pub execution: ExecutionConfig,
    /// The calls that require approval.
    pub approval: ApprovalConfig,
    /// Overrides by tenant.
    pub tenants: BTreeMap<String, TenantConfig>,
    /// The memory of conversations.
    pub memory: crate::memory::Options,
    /// The processes that execute programs.
    pub sandbox: crate::sandbox::Options,
    /// Where scenes come from.
    pub scenes: crate::scene::Options,
    /// Logging and metrics.
    pub telemetry: TelemetryConfig,
}

/// A loaded configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedConfig {
    /// The values.
    pub config: Config,
    /// Values that are valid but probably unintended.
    pub warnings: Vec<ConfigFault>,
    /// The origin of each key that is not built in, by its dotted name.
    pub sources: BTreeMap<String, ValueOrigin>,
}

impl Config {
    /// Loads and validates the built-in defaults, `file`, the environment and `flags`; later ones override
    /// earlier ones. `env` is the whole environment (`std::env::vars()`); only `PROSCENIUM__…`, `OPENAI_…`,
    /// those of `OTEL_…` that concern the export of traces (below the file), and the variables with keys are read.
    ///
    /// The error contains all problems.
    pub fn load(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        flags: ConfigFlags,
    ) -> Result<LoadedConfig, ConfigFaults> {
        let (loaded, faults) = Self::read(file, env, flags);
        if faults.0.is_empty() { Ok(loaded) } else { Err(faults) }
    }

    /// Like [`Config::load`], but also returns what could be read: invalid values are replaced by their
    /// defaults. For inspection only, never for running.
    pub fn read(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        flags: ConfigFlags,
    ) -> (LoadedConfig, ConfigFaults) {
        let env: BTreeMap<String, String> = env.collect();
        let (mut faults, mut warnings) = (Vec::new(), Vec::new());
        let mut layers = vec![layers::toml_layer("built-in", DEFAULT_TOML, None, &mut faults)];
        layers.push(otel_variables::layer(&env, &mut warnings));
        if let Some(path) = file {
            match file::read(path) {
                Ok(text) => layers.push(layers::toml_layer("file", &text, Some(path), &mut faults)),
                Err(error) => faults.push(ConfigFault {
                    code: "config.file",
                    origin: ValueOrigin::File { path: path.to_owned(), line: None },
                    key: String::new(),
                    value: None,
                    message: format!("the configuration cannot be read: {error}"),
                    remedy: "give an existing TOML file with --config".to_owned(),
                }),
            }
        }
        let models = ["llm".to_owned(), "models".to_owned()];
        let has_models = layers.iter().any(|layer| layer.origins.contains_key(models.as_slice()));
        layers.push(layers::env_layer(&env, &read::default_values(), has_models, &mut warnings));
        layers.push(layers::flag_layer(&flags));

        let merged = read::MergedLayers::new(layers);
        let config = merged.config(&mut faults);
        check::check(&config, &merged, &env, &mut faults, &mut warnings);
        // In reading order: the file from its top, then the environment, then the flags.
        faults.sort_by(|a, b| a.origin.cmp(&b.origin));
        for fault in faults.iter_mut().chain(&mut warnings) {
            fault.redact_passwords();
        }
        (LoadedConfig { config, warnings, sources: merged.sources() }, ConfigFaults(faults))
    }

    /// Validates these values; each module reports the problems of its settings.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut problems = self.server.problems();
        problems.extend(self.auth.problems());
        problems.extend(self.store.problems());
        problems.extend(self.documents.problems());
        problems.extend(self.llm.problems());
        problems.extend(self.cache.problems());
        problems.extend(self.budget.problems());
        problems.extend(self.limits.problems(self.llm.models.iter().map(|model| model.name.as_str())));
        problems.extend(self.planning.problems());
        problems.extend(self.execution.problems());
        problems.extend(self.approval.problems());
        problems.extend(tenants::problems(self));
        problems.extend(self.memory.problems());
        problems.extend(self.sandbox.problems());
        problems.extend(self.telemetry.problems());
        problems
    }

    /// The limits and choices that a run freezes when it starts.
    pub fn run_settings(&self) -> Settings {
        Settings {
            max_steps: self.planning.max_steps,
            max_retries: self.planning.max_retries,
            max_replans: self.planning.max_replans,
            fallback_enabled: self.planning.fallback_enabled,
            answer_with_check: self.planning.answer_with_check,
            out_of_scope: self.planning.out_of_scope,
            reader: self.planning.reader,
            temperature: self.planning.temperature,
            max_parallel_steps: self.execution.max_parallel_steps,
            max_rounds: self.execution.max_rounds,
            max_calls: self.execution.max_calls,
            duplicates: self.execution.duplicates,
            run_timeout_ms: self.execution.run_timeout_ms,
            compensate: self.execution.compensate,
            approval: self.approval.policy(),
            rules: RULES_REVISION,
            confirm: self.execution.confirm,
            confirm_at_least: None,
            max_writes: self.execution.max_writes,
            language: self.execution.language.clone(),
            prepare: self.planning.prepare,
            shortlist: self.planning.shortlist,
            prompt_tokens: self.llm.prompt_tokens(),
            embeddings_timeout_ms: match self.llm.offers_embeddings() {
                true => self.planning.embeddings_timeout_ms,
                false => 0,
            },
            scenes: self.execution.scenes,
            learn: self.planning.learn,
            level: self.execution.level,
            mode: self.execution.mode,
            policies: self.execution.policies,
            consultations: self.execution.consultations,
            node_model: Some(self.llm.has_model_for(Purpose::Node)),
            maker: self.planning.maker,
            program_model: Some(self.llm.has_model_for(Purpose::Program)),
            planner_instructions: self.planning.system_prompt.trim().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
