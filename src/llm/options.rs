//! The `llm` section of the configuration.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Purpose;
use crate::plan::Problem;

/// The name under which `llm.purposes` can speak of the embedded rules.
pub const OFFLINE: &str = "offline";

const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
const OPENAI_MODEL: &str = "gpt-4o-mini";

/// Which models there are, for what, and how long they are waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The models in the order in which they are asked; the next one serves when one is out. With
    /// none, the embedded rules serve.
    pub models: Vec<ModelOptions>,
    /// Other lists, by name, for a purpose: `plan`, `continuation`, `scene`, `answer`, `summary`.
    /// `offline` names the embedded rules.
    pub purposes: BTreeMap<Purpose, Vec<String>>,
    /// Most attempts at one model for one call.
    pub max_attempts: u32,
    /// Milliseconds for a whole call with all its attempts at all models.
    pub deadline_ms: u64,
    /// Milliseconds to get a connection.
    pub connect_timeout_ms: u64,
    /// Milliseconds to the first token of a streamed reply, or to the head of one that is not streamed.
    pub first_token_timeout_ms: u64,
    /// Milliseconds between two pieces of a reply.
    pub between_tokens_timeout_ms: u64,
    /// Milliseconds of `Retry-After` that are waited; a model that asks for more is handed over from.
    pub max_retry_after_ms: u64,
    /// Milliseconds that bound the random wait before the second attempt; doubled for each further one.
    pub backoff_ms: u64,
    /// When a model that fails is left alone.
    pub breaker: super::breaker::Options,
    /// Tokens that the conversation may have when the embedded rules serve. They have no window of
    /// their own; this one keeps conversations short.
    pub offline_context_window: u32,
}

impl Default for Options {
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
            breaker: super::breaker::Options::default(),
            offline_context_window: 128_000,
        }
    }
}

/// One model behind a server of the OpenAI protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelOptions {
    /// Its name here: in `llm.purposes`, in figures and in messages.
    pub name: String,
    /// The server's address up to where `/chat/completions` begins, such as `https://host/v1`.
    pub base_url: String,
    /// The id sent to the server; the name where absent.
    pub model: Option<String>,
    /// The environment variable that holds the key; absent for servers that need none.
    pub api_key_env: Option<String>,
    /// How a call of one function is forced; `check --live` tells which way works.
    pub forcing: Forcing,
    /// Whether replies are streamed.
    pub stream: bool,
    /// USD per million prompt tokens.
    pub input_usd_per_million: f64,
    /// USD per million cached prompt tokens; as others where absent.
    pub cached_input_usd_per_million: Option<f64>,
    /// USD per million completion tokens.
    pub output_usd_per_million: f64,
    /// Tokens that prompt and reply may have together.
    pub context_window: u32,
    /// Most tokens of a reply.
    pub max_output_tokens: u32,
}

impl Default for ModelOptions {
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

impl ModelOptions {
    /// The id that the server knows the model by.
    pub fn id(&self) -> &str {
        self.model.as_deref().unwrap_or(&self.name)
    }
}

/// How a model is made to call one function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forcing {
    /// `tool_choice` names the function.
    #[default]
    Named,
    /// `tool_choice` is `"required"`, and only that function is offered.
    Required,
    /// No function is offered: `response_format` is the strict schema of its arguments.
    JsonSchema,
}

impl std::fmt::Display for Forcing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Forcing::Named => "named",
            Forcing::Required => "required",
            Forcing::JsonSchema => "json_schema",
        })
    }
}

impl Options {
    /// With no model configured, takes one from `OPENAI_API_KEY`, `OPENAI_BASE_URL` and `OPENAI_MODEL`
    /// if the key or the address is set. `get` looks up a variable. The key itself stays where it is.
    #[must_use]
    pub fn with_environment(mut self, get: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| get(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        let key = set("OPENAI_API_KEY");
        let address = set("OPENAI_BASE_URL");
        if self.models.is_empty() && (key.is_some() || address.is_some()) {
            self.models.push(ModelOptions {
                name: set("OPENAI_MODEL").unwrap_or_else(|| OPENAI_MODEL.to_owned()),
                base_url: address.unwrap_or_else(|| OPENAI_BASE_URL.to_owned()),
                api_key_env: key.map(|_| "OPENAI_API_KEY".to_owned()),
                ..ModelOptions::default()
            });
        }
        self
    }

    /// Everything that is wrong, with the key it is at and what would be right; empty when all is well.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |what: String| problems.push(Problem::new("config.llm", what));
        let mut names = BTreeSet::from([OFFLINE]);
        for (i, model) in self.models.iter().enumerate() {
            let at = format!("llm.models[{i}]");
            let name = model.name.as_str();
            if name.trim().is_empty() {
                wrong(format!("{at}.name is empty: give every model a name"));
            } else if !names.insert(name) {
                wrong(format!("{at}.name: {name:?} is taken: give every model another name"));
            }
            match reqwest::Url::parse(&model.base_url) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => {}
                _ => wrong(format!("{at}.base_url: {:?} is no http address", model.base_url)),
            }
            let prices = [
                ("input_usd_per_million", Some(model.input_usd_per_million)),
                ("cached_input_usd_per_million", model.cached_input_usd_per_million),
                ("output_usd_per_million", Some(model.output_usd_per_million)),
            ];
            for (key, price) in prices {
                if price.is_some_and(|usd| !(0.0..1e6).contains(&usd)) {
                    wrong(format!("{at}.{key}: a price is 0 or more, and less than a million"));
                }
            }
            if model.max_output_tokens == 0 || model.max_output_tokens >= model.context_window {
                wrong(format!(
                    "{at}.max_output_tokens: {} must be at least 1 and less than context_window ({})",
                    model.max_output_tokens, model.context_window
                ));
            }
        }
        for (purpose, list) in &self.purposes {
            if list.is_empty() {
                wrong(format!("llm.purposes.{purpose} is empty: name a model, or leave it out"));
            }
            for name in list.iter().filter(|name| !names.contains(name.as_str())) {
                wrong(format!("llm.purposes.{purpose}: there is no model {name:?} in llm.models"));
            }
        }
        let at_least_one = [
            ("max_attempts", u64::from(self.max_attempts)),
            ("deadline_ms", self.deadline_ms),
            ("connect_timeout_ms", self.connect_timeout_ms),
            ("first_token_timeout_ms", self.first_token_timeout_ms),
            ("between_tokens_timeout_ms", self.between_tokens_timeout_ms),
            ("offline_context_window", u64::from(self.offline_context_window)),
        ];
        for (key, _) in at_least_one.iter().filter(|(_, value)| *value == 0) {
            wrong(format!("llm.{key} is 0: it must be at least 1"));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment<'a>(set: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
    }

    #[test]
    fn a_key_alone_means_the_default_model_and_stays_out_of_what_is_shown() {
        let options = Options::default().with_environment(environment(&[("OPENAI_API_KEY", "sk-secret")]));
        assert_eq!(options.models[0].name, "gpt-4o-mini");
        assert_eq!(options.models[0].base_url, "https://api.openai.com/v1");
        let shown = format!("{options:?} {}", serde_json::to_string(&options).unwrap());
        assert!(!shown.contains("secret"), "{shown}");
        assert_eq!(options.validate(), []);
    }

    #[test]
    fn an_address_alone_means_a_server_that_needs_no_key() {
        let set = [("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"), ("OPENAI_MODEL", "qwen")];
        let options = Options::default().with_environment(environment(&set));
        assert_eq!((options.models[0].name.as_str(), &options.models[0].api_key_env), ("qwen", &None));
    }

    #[test]
    fn a_configured_model_or_an_empty_environment_leaves_things_as_they_are() {
        let own = Options { models: vec![ModelOptions::default()], ..Options::default() };
        assert_eq!(own.clone().with_environment(environment(&[("OPENAI_API_KEY", "k")])), own);
        let none = Options::default().with_environment(environment(&[("OPENAI_API_KEY", " ")]));
        assert_eq!(none, Options::default());
    }

    #[test]
    fn every_fault_is_named_at_once() {
        let options = Options {
            models: vec![
                ModelOptions { name: "a".into(), base_url: "http://host/v1".into(), ..Default::default() },
                ModelOptions { name: "a".into(), base_url: "host".into(), ..Default::default() },
            ],
            purposes: BTreeMap::from([(Purpose::Plan, vec!["b".into(), "offline".into()])]),
            max_attempts: 0,
            ..Options::default()
        };
        let problems = options.validate();
        assert_eq!(problems.len(), 4, "{problems:#?}");
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let read = toml::from_str::<Options>("deadline = 3");
        assert!(read.is_err());
        let read: Options =
            toml::from_str("purposes.plan = ['x']\n[[models]]\nname = 'x'\nforcing = 'json_schema'").unwrap();
        assert_eq!(read.models[0].forcing, Forcing::JsonSchema);
        assert_eq!(read.purposes[&Purpose::Plan], ["x"]);
    }
}
