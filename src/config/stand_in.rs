//! The sections that other modules read: the models, the store, the memory, the scenes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::llm::Purpose;

/// `[llm]`: which models are asked, and how long they are waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Llm {
    /// The models, in the order in which they are tried.
    pub models: Vec<Model>,
    /// For a purpose, the names of the models to try, in order; other purposes try all.
    pub purposes: BTreeMap<Purpose, Vec<String>>,
    /// Most attempts at one model for one call.
    pub max_attempts: u32,
    /// Milliseconds for one call, all attempts and models included.
    pub deadline_ms: u64,
    /// Milliseconds to connect.
    pub connect_timeout_ms: u64,
    /// Milliseconds from sending to the first token.
    pub first_token_timeout_ms: u64,
    /// Milliseconds between two tokens of a stream.
    pub between_tokens_timeout_ms: u64,
    /// Longest `Retry-After` that is waited for, in milliseconds.
    pub max_retry_after_ms: u64,
    /// Milliseconds that bound the random wait before the second attempt; doubled for each further one.
    pub backoff_ms: u64,
    /// Tokens that the conversation may have when the embedded rules serve.
    pub offline_context_window: u32,
}

impl Default for Llm {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            purposes: BTreeMap::new(),
            max_attempts: 3,
            deadline_ms: 120_000,
            connect_timeout_ms: 5_000,
            first_token_timeout_ms: 60_000,
            between_tokens_timeout_ms: 30_000,
            max_retry_after_ms: 20_000,
            backoff_ms: 250,
            offline_context_window: 128_000,
        }
    }
}

/// `[[llm.models]]`: one model of one provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// What it is called here, unique.
    pub name: String,
    /// The address of an OpenAI-compatible API, `/v1` included.
    pub base_url: String,
    /// What the provider calls it; the name where absent.
    pub model: Option<String>,
    /// The environment variable that holds the key; absent for a server that wants none.
    pub api_key_env: Option<String>,
    /// How it is made to call one function.
    pub forcing: Forcing,
    /// Whether its replies are streamed.
    pub stream: bool,
    /// US dollars for a million prompt tokens.
    pub input_usd_per_million: f64,
    /// US dollars for a million prompt tokens that the provider had cached; as others where absent.
    pub cached_input_usd_per_million: Option<f64>,
    /// US dollars for a million completion tokens.
    pub output_usd_per_million: f64,
    /// Tokens that prompt and reply may have together.
    pub context_window: u32,
    /// Most tokens of a reply.
    pub max_output_tokens: u32,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            name: String::new(),
            base_url: String::new(),
            model: None,
            api_key_env: None,
            forcing: Forcing::Named,
            stream: false,
            input_usd_per_million: 0.0,
            cached_input_usd_per_million: None,
            output_usd_per_million: 0.0,
            context_window: 128_000,
            max_output_tokens: 2_048,
        }
    }
}

/// How a model is made to call one function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forcing {
    /// `tool_choice` names the function.
    #[default]
    Named,
    /// `tool_choice` is `required`, and one function is offered.
    Required,
    /// The reply's format is a JSON Schema.
    JsonSchema,
}

/// `[store]`: the data directory and its writer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// The directory of everything that lasts; made on first use.
    pub data_dir: PathBuf,
    /// Most events waiting to be written.
    pub max_pending: usize,
    /// Most events written in one transaction.
    pub max_batch: usize,
}

impl Default for Store {
    fn default() -> Self {
        Self { data_dir: PathBuf::from("data"), max_pending: 8_192, max_batch: 512 }
    }
}

/// `[memory]`: how much of a conversation a run is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// The share of a model's window that the conversation may take, 0.05 to 0.9.
    pub window_share: f64,
    /// The last turns that are never summarised.
    pub keep_turns: usize,
    /// Most turns told word for word.
    pub max_turns_in_prompt: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Self { window_share: 0.5, keep_turns: 4, max_turns_in_prompt: 20 }
    }
}

/// `[scenes]`: where scenes come from and what they may reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenes {
    /// A directory with a folder a scene, beside those built in.
    pub dir: Option<PathBuf>,
    /// Whether the scenes of the program are loaded.
    pub builtin: bool,
    /// Settings by scene, laid over `[settings]` of its `scene.toml`.
    pub settings: BTreeMap<String, Value>,
    /// Whether HTTP tools may reach loopback, link-local and private addresses.
    pub allow_private_addresses: bool,
    /// Hosts that HTTP tools may reach wherever they are.
    pub allow_hosts: Vec<String>,
}

impl Default for Scenes {
    fn default() -> Self {
        Self {
            dir: None,
            builtin: true,
            settings: BTreeMap::new(),
            allow_private_addresses: false,
            allow_hosts: Vec::new(),
        }
    }
}
