//! The configuration: built-in defaults, then a file, then the environment, then flags; read as a
//! whole and checked as a whole, with every problem told at once.
//!
//! `config/default.toml` is part of the program and names every key; it is the documentation of
//! this module's structs, and a test holds the two together.
//!
//! **Invariant:** nothing here reads the process's environment; it is passed in.

mod approval;
mod check;
mod fault;
mod layers;
mod openai;
mod read;
mod sections;
mod server;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use approval::{Approval, TenantApproval, Webhook};
pub use fault::{Fault, Faults, Origin};
pub use layers::Flags;
pub use sections::{Auth, Execution, LogFormat, Planning, Telemetry, Tenant};
pub use server::{Progress, Server};

use crate::run::{RULES_REVISION, Settings, TenantId};
use crate::setting::{Review, Wrong};

/// The defaults as a commented file, every key named.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// Everything that can be configured. `config/default.toml` says what each key means.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the server listens.
    pub server: Server,
    /// Who asks where nobody has to say it.
    pub auth: Auth,
    /// The data directory and its writer.
    pub store: crate::store::Options,
    /// The models.
    pub llm: crate::llm::Options,
    /// Which replies of models are kept.
    pub cache: crate::llm::cache::Options,
    /// What may be spent on models.
    pub budget: crate::llm::budget::Options,
    /// How much may be asked of models.
    pub limits: crate::llm::limits::Options,
    /// How plans are asked for.
    pub planning: Planning,
    /// How plans are carried out.
    pub execution: Execution,
    /// What a person has to say yes to.
    pub approval: Approval,
    /// What is different for a tenant, by its name.
    pub tenants: BTreeMap<String, Tenant>,
    /// How much of a conversation is remembered.
    pub memory: crate::memory::Options,
    /// Where scenes come from.
    pub scenes: crate::scene::Options,
    /// What the program says about itself.
    pub telemetry: Telemetry,
}

/// A configuration that was read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// What is probably not what was meant, but works.
    pub warnings: Vec<Fault>,
    /// Where each key comes from that is not built in, by its name with dots.
    pub sources: BTreeMap<String, Origin>,
}

impl Config {
    /// Reads and checks the built-in defaults, `file`, the environment and `flags`, the later over
    /// the earlier. `env` is the whole environment (`std::env::vars()`); of it only
    /// `PROSCENIUM__…`, `OPENAI_…` and the variables that hold keys are looked at.
    ///
    /// The error holds every problem that there is.
    pub fn load(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        flags: Flags,
    ) -> Result<Loaded, Faults> {
        let (loaded, faults) = Self::read(file, env, flags);
        if faults.0.is_empty() { Ok(loaded) } else { Err(faults) }
    }

    /// As [`Config::load`], but gives what could be read beside every problem: where a value is wrong,
    /// its default stands. For looking at what depends on the configuration, never for running.
    pub fn read(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        flags: Flags,
    ) -> (Loaded, Faults) {
        let env: BTreeMap<String, String> = env.collect();
        let (mut faults, mut warnings) = (Vec::new(), Vec::new());
        let mut layers = vec![layers::toml_layer("built-in", DEFAULT_TOML, None, &mut faults)];
        if let Some(path) = file {
            match std::fs::read_to_string(path) {
                Ok(text) => layers.push(layers::toml_layer("file", &text, Some(path), &mut faults)),
                Err(error) => faults.push(Fault {
                    code: "config.file",
                    origin: Origin::File { path: path.to_owned(), line: None },
                    key: String::new(),
                    value: None,
                    message: format!("the configuration cannot be read: {error}"),
                    remedy: "give an existing TOML file with --config".to_owned(),
                }),
            }
        }
        let models = ["llm".to_owned(), "models".to_owned()];
        let has_models = layers.iter().any(|layer| layer.places.contains_key(models.as_slice()));
        layers.push(layers::env_layer(&env, &read::shape(), has_models, &mut warnings));
        layers.push(layers::flag_layer(&flags));

        let merged = read::Merged::new(layers);
        let config = merged.config(&mut faults);
        check::check(&config, &merged, &env, &mut faults, &mut warnings);
        // As one reads: the file from its top, then the environment, then the flags.
        faults.sort_by(|a, b| a.origin.cmp(&b.origin));
        for fault in faults.iter_mut().chain(&mut warnings) {
            fault.hide_passwords();
        }
        (Loaded { config, warnings, sources: merged.sources() }, Faults(faults))
    }

    /// Everything that is wrong with these values, each told by the module that owns it.
    pub fn problems(&self) -> Vec<Wrong> {
        let mut problems = self.server.problems();
        problems.extend(self.auth.problems());
        problems.extend(self.store.problems());
        problems.extend(self.llm.problems());
        problems.extend(self.cache.problems());
        problems.extend(self.budget.problems());
        problems.extend(self.limits.problems(self.llm.models.iter().map(|model| model.name.as_str())));
        problems.extend(self.planning.problems());
        problems.extend(self.execution.problems());
        problems.extend(self.approval.problems());
        let mut review = Review::default();
        for tenant in self.tenants.keys().filter(|tenant| TenantId::new(tenant).is_err()) {
            let message = format!("`{tenant}` is no name of a tenant");
            review.add(format!("tenants.{tenant}"), message, "use A-Z a-z 0-9 . _ : -");
        }
        problems.extend(review.end());
        problems.extend(self.memory.problems());
        problems.extend(self.telemetry.problems());
        problems
    }

    /// The bounds and choices that a run freezes when it starts.
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
        }
    }
}

#[cfg(test)]
mod tests;
