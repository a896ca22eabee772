//! The `llm` section of the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Purpose;
use crate::nearest::nearest;
use crate::setting::{DAY_MS, SettingProblem, SettingsReview, redact_url};

/// The name of the offline model in `llm.purposes`.
pub const OFFLINE: &str = "offline";

/// The variable with the key of a model that no configuration file describes.
pub const KEY_VARIABLE: &str = "OPENAI_API_KEY";
/// The variable with the address of its API.
pub const ADDRESS_VARIABLE: &str = "OPENAI_BASE_URL";
/// The variable with its name at the provider.
pub const MODEL_VARIABLE: &str = "OPENAI_MODEL";

/// A number of tokens that exceeds every model's limits.
const MAX_TOKENS: u32 = 100_000_000;

const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
/// The routes that are appended to an API's address and must not be part of it.
const ROUTES: [&str; 2] = ["/chat/completions", "/embeddings"];
const OPENAI_MODEL: &str = "gpt-4o-mini";

/// The models, their purposes, and how long they are waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The models in the order in which they are asked; the next one serves if one is unavailable. Without any, the
    /// offline model serves.
    pub models: Vec<ModelOptions>,
    /// Other lists, by name, for a purpose: `plan`, `continuation`, `scene`, `answer`, `summary`, `embedding`,
    /// `recovery`, `interpretation`, `decision`, `adaptation`, `path`, `node`.
    /// `offline` names the offline model. Only models with `embeddings` serve `embedding`, and nothing else.
    pub purposes: BTreeMap<Purpose, Vec<String>>,
    /// Milliseconds, by purpose, after which the next model is asked instead of one whose reply has not begun. The last
    /// model of a purpose is always waited for, and so is a reply that has begun.
    pub slow_ms: BTreeMap<Purpose, u64>,
    /// Maximum number of attempts at one model for one call.
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
    /// Upper bound in milliseconds of the random wait before the second attempt; doubled for each further one.
    pub backoff_ms: u64,
    /// When a failing model is not asked for a while.
    pub breaker: super::breaker::Options,
    /// Maximum number of tokens of the conversation if the offline model serves. It has no context window of its own;
    /// this one keeps conversations short.
    pub offline_context_window: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            purposes: BTreeMap::new(),
            slow_ms: BTreeMap::new(),
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
    /// Which replies are streamed.
    pub stream: StreamMode,
    /// USD per million prompt tokens.
    pub input_usd_per_million: f64,
    /// USD per million cached prompt tokens; as others where absent.
    pub cached_input_usd_per_million: Option<f64>,
    /// USD per million completion tokens.
    pub output_usd_per_million: f64,
    /// Tokens that prompt and reply may have together.
    pub context_window: u32,
    /// Maximum number of tokens of a reply.
    pub max_output_tokens: u32,
    /// Whether it is a model of embeddings (`POST {base_url}/embeddings`), which is asked for nothing else.
    pub embeddings: bool,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            base_url: String::new(),
            model: None,
            api_key_env: None,
            forcing: Forcing::Named,
            stream: StreamMode::Shown,
            input_usd_per_million: 0.0,
            cached_input_usd_per_million: None,
            output_usd_per_million: 0.0,
            context_window: 128_000,
            max_output_tokens: 2_048,
            embeddings: false,
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

/// Which replies of a model are streamed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StreamMode {
    /// None: `false`.
    No,
    /// Only answers that a client reads as they are written, and those of a model whose last one took more than a quarter
    /// of `llm.first_token_timeout_ms`: `true`. Everything else is requested whole: every server reports token counts
    /// then, more servers get it right, and it costs less processor time here. A request that a server refuses to stream
    /// is sent again as a whole.
    #[default]
    Shown,
    /// All: `"all"`. A silent model is noticed at its first token, regardless of its value asked.
    All,
}

impl StreamMode {
    const ALL: &str = "all";
}

impl Serialize for StreamMode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            StreamMode::No => to.serialize_bool(false),
            StreamMode::Shown => to.serialize_bool(true),
            StreamMode::All => to.serialize_str(Self::ALL),
        }
    }
}

impl<'de> Deserialize<'de> for StreamMode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ReadMode;

        impl Visitor<'_> for ReadMode {
            type Value = StreamMode;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(to, "true, false or {:?}", StreamMode::ALL)
            }

            fn visit_bool<E: de::Error>(self, shown: bool) -> Result<StreamMode, E> {
                Ok(if shown { StreamMode::Shown } else { StreamMode::No })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<StreamMode, E> {
                match text {
                    StreamMode::ALL => Ok(StreamMode::All),
                    other => Err(E::invalid_value(Unexpected::Str(other), &self)),
                }
            }
        }

        from.deserialize_any(ReadMode)
    }
}

impl ModelOptions {
    /// The model that `OPENAI_API_KEY`, `OPENAI_BASE_URL` and `OPENAI_MODEL` describe: a key or an
    /// address makes one, a model's name alone does not. `get` looks up a variable; an empty one
    /// counts as absent. The key itself stays where it is.
    pub fn from_environment(get: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| get(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        let (key, address) = (set(KEY_VARIABLE), set(ADDRESS_VARIABLE));
        if key.is_none() && address.is_none() {
            return None;
        }
        Some(Self {
            name: set(MODEL_VARIABLE).unwrap_or_else(|| OPENAI_MODEL.to_owned()),
            base_url: address.unwrap_or_else(|| OPENAI_BASE_URL.to_owned()),
            api_key_env: key.map(|_| KEY_VARIABLE.to_owned()),
            ..Self::default()
        })
    }

    /// Checks that routes can be appended to the address.
    fn review_address(&self, key: &str, review: &mut SettingsReview) {
        let url = reqwest::Url::parse(&self.base_url).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let fault = match url {
            None => "is not an http or https address",
            Some(url) if url.query().is_some() || url.fragment().is_some() => {
                "has a query or a fragment, behind which no route can be added"
            }
            Some(url) if ROUTES.iter().any(|route| url.path().trim_end_matches('/').ends_with(route)) => {
                "is the address of a route, which is added to that of the API"
            }
            Some(_) => return,
        };
        let message = format!("`{key}` = `{}` {fault}", redact_url(&self.base_url));
        review.add(key, message, format!("write the API's address, such as `{OPENAI_BASE_URL}`"));
    }

    /// Checks the bounds of the model, number `index` of the list.
    fn review(&self, index: usize, review: &mut SettingsReview) {
        let key = |field: &str| format!("llm.models.{index}.{field}");
        for (field, value) in [("name", &self.name), ("base_url", &self.base_url)] {
            if value.trim().is_empty() {
                let message = format!("`{}` is missing", key(field));
                review.add(key(field), message, format!("add `{field} = \"…\"` to this model"));
            }
        }
        if !self.base_url.trim().is_empty() {
            self.review_address(&key("base_url"), review);
        }
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        if self.api_key_env.as_deref().is_some_and(|name| !is_name(name)) {
            // It may be the key itself, so it is not repeated.
            let message = format!("`{}` is not the name of an environment variable", key("api_key_env"));
            let remedy = format!(
                "set a variable such as {KEY_VARIABLE} to the key, and write the variable's name here"
            );
            review.add(key("api_key_env"), message, remedy);
        }
        for (field, price) in [
            ("input_usd_per_million", Some(self.input_usd_per_million)),
            ("cached_input_usd_per_million", self.cached_input_usd_per_million),
            ("output_usd_per_million", Some(self.output_usd_per_million)),
        ] {
            review.range(&key(field), price.unwrap_or_default(), 0.0..=100_000.0);
        }
        review.range(&key("context_window"), self.context_window, 256..=MAX_TOKENS);
        if self.embeddings && self.output_usd_per_million != 0.0 {
            let message =
                format!("`{}` is set, but embeddings have no output tokens", key("output_usd_per_million"));
            review.add(
                key("output_usd_per_million"),
                message,
                "remove it; `input_usd_per_million` is the price",
            );
        }
        // Embeddings have no output.
        if !self.embeddings {
            let max = self.context_window.clamp(2, MAX_TOKENS) - 1;
            review.range(&key("max_output_tokens"), self.max_output_tokens, 1..=max);
        }
    }
}

impl Options {
    /// Tokens that a prompt may have, so that it and a reply fit into every model's window; 0 without models, since the
    /// offline model has no such limit.
    pub fn prompt_tokens(&self) -> u32 {
        let prompted = self.models.iter().filter(|model| !model.embeddings);
        let windows = prompted.map(|model| model.context_window.saturating_sub(model.max_output_tokens));
        windows.min().unwrap_or(0)
    }

    /// Returns whether a configured model, and not only the offline one, may answer for `purpose`.
    pub fn has_model_for(&self, purpose: Purpose) -> bool {
        match self.purposes.get(&purpose) {
            Some(names) => names.iter().any(|name| name != OFFLINE),
            None => {
                let embeds = purpose == Purpose::Embedding;
                self.models.iter().any(|model| model.embeddings == embeds)
            }
        }
    }

    /// Returns whether a configured model offers embeddings.
    pub fn offers_embeddings(&self) -> bool {
        self.models.iter().any(|model| model.embeddings)
    }

    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        review.range("llm.max_attempts", self.max_attempts, 1..=20);
        review.range("llm.deadline_ms", self.deadline_ms, 1..=DAY_MS);
        review.range("llm.connect_timeout_ms", self.connect_timeout_ms, 1..=DAY_MS);
        review.range("llm.first_token_timeout_ms", self.first_token_timeout_ms, 1..=DAY_MS);
        review.range("llm.between_tokens_timeout_ms", self.between_tokens_timeout_ms, 1..=DAY_MS);
        review.range("llm.max_retry_after_ms", self.max_retry_after_ms, 0..=DAY_MS);
        review.range("llm.backoff_ms", self.backoff_ms, 0..=60_000);
        review.range("llm.offline_context_window", self.offline_context_window, 256..=MAX_TOKENS);
        review.range("llm.breaker.failures", self.breaker.failures, 0..=10_000);
        review.range("llm.breaker.pause_ms", self.breaker.pause_ms, 0..=DAY_MS);
        let mut names = BTreeSet::from([OFFLINE]);
        for (index, model) in self.models.iter().enumerate() {
            model.review(index, &mut review);
            let key = format!("llm.models.{index}.name");
            if model.name == OFFLINE {
                let message = format!("`{key}` = `{OFFLINE}` is the name of the offline model");
                review.add(key, message, "choose another name");
            } else if !model.name.is_empty() && !names.insert(&model.name) {
                let message = format!("`{key}` = `{}` is the name of an earlier model, too", model.name);
                review.add(key, message, "give each model a name of its own");
            }
        }
        self.review_purposes(&names, &mut review);
        self.review_slow(&mut review);
        self.review_embeddings(&mut review);
        review.into_problems()
    }

    /// Checks that the lists of the purposes name models that can serve them. `names` are all names.
    fn review_purposes(&self, names: &BTreeSet<&str>, review: &mut SettingsReview) {
        for (purpose, list) in &self.purposes {
            let key = format!("llm.purposes.{purpose}");
            if list.is_empty() {
                let message = format!("`{key}` names no model");
                review.add(key.as_str(), message, "name one, or leave it out to try all");
            }
            for (index, name) in list.iter().enumerate().filter(|(_, name)| !names.contains(name.as_str())) {
                let remedy = match nearest(name, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!("use one of: {}", names.iter().copied().collect::<Vec<_>>().join(", "))
                    }
                };
                let key = format!("{key}.{index}");
                let message = format!("`{key}` = `{name}` is the name of no model");
                review.add(key, message, remedy);
            }
            for (index, name) in list.iter().enumerate().filter(|(_, name)| names.contains(name.as_str())) {
                let embeds = self.models.iter().any(|model| model.name == *name && model.embeddings);
                let key = format!("{key}.{index}");
                let (what, remedy) = match (embeds, *purpose == Purpose::Embedding) {
                    (true, false) => (
                        "offers only embeddings",
                        "name it in `llm.purposes.embedding` only, or remove `embeddings`",
                    ),
                    (false, true) => (
                        "offers no embeddings",
                        "name a model with `embeddings = true`, or leave the list out",
                    ),
                    _ => continue,
                };
                review.add(key.as_str(), format!("`{key}` = `{name}` {what}"), remedy);
            }
        }
    }

    /// Checks the times after which another model is asked.
    fn review_slow(&self, review: &mut SettingsReview) {
        for (purpose, millis) in &self.slow_ms {
            let key = format!("llm.slow_ms.{purpose}");
            if *purpose == Purpose::Embedding {
                let message = format!("`{key}` is set, but one model alone serves `embedding`");
                review.add(key, message, "remove it; `planning.embeddings_timeout_ms` bounds the wait");
                continue;
            }
            review.range(&key, *millis, 1..=self.deadline_ms.max(1));
        }
    }

    /// Checks that one model of embeddings is chosen: vectors of different models cannot be compared.
    fn review_embeddings(&self, review: &mut SettingsReview) {
        let offered = self.models.iter().filter(|model| model.embeddings).count();
        let chosen = self.purposes.get(&Purpose::Embedding).map(Vec::len);
        if chosen.unwrap_or(offered) > 1 {
            let message = "more than one model is to serve `embedding`, and vectors of different models cannot be \
                           compared";
            review.add(
                "llm.purposes.embedding",
                message,
                "name exactly one model in `llm.purposes.embedding`",
            );
        }
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
        let model = ModelOptions::from_environment(environment(&[("OPENAI_API_KEY", "sk-secret")])).unwrap();
        assert_eq!(model.name, "gpt-4o-mini");
        assert_eq!(model.base_url, "https://api.openai.com/v1");
        let options = Options { models: vec![model], ..Options::default() };
        let shown = format!("{options:?} {}", serde_json::to_string(&options).unwrap());
        assert!(!shown.contains("secret"), "{shown}");
        assert_eq!(options.problems(), []);
    }

    fn with_embeddings(names: &[&str]) -> Options {
        let model = |name: &str, embeddings| ModelOptions {
            name: name.to_owned(),
            base_url: "https://host/v1".to_owned(),
            embeddings,
            ..ModelOptions::default()
        };
        let own = names.iter().map(|name| model(name, true));
        Options { models: std::iter::once(model("main", false)).chain(own).collect(), ..Options::default() }
    }

    fn told(options: &Options) -> Vec<String> {
        options.problems().iter().map(|problem| format!("{}: {}", problem.message, problem.remedy)).collect()
    }

    #[test]
    fn key_in_place_of_the_name_of_its_variable_is_refused_and_not_repeated() {
        let mut options = with_embeddings(&[]);
        options.models[0].api_key_env = Some("MY_KEY_2".to_owned());
        assert_eq!(told(&options), [""; 0]);
        options.models[0].api_key_env = Some("sk-proj-hunter2".to_owned());
        let told = told(&options).join("\n");
        assert!(
            told.contains("`llm.models.0.api_key_env` is not the name of an environment variable"),
            "{told}"
        );
        assert!(told.contains("OPENAI_API_KEY") && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn model_of_embeddings_serves_nothing_else() {
        let mut options = with_embeddings(&["vectors"]);
        assert_eq!(told(&options), [""; 0]);
        assert!(options.offers_embeddings() && !with_embeddings(&[]).offers_embeddings());
        options.models[1].context_window = 512;
        assert_eq!(told(&options), [""; 0], "its replies take nothing of its window");
        assert_eq!(options.prompt_tokens(), 128_000 - 2_048, "its window does not bound prompts");
        options.purposes = BTreeMap::from([
            (Purpose::Plan, vec!["main".into(), "vectors".into()]),
            (Purpose::Embedding, vec!["main".into()]),
        ]);
        assert_eq!(
            told(&options),
            [
                "`llm.purposes.plan.1` = `vectors` offers only embeddings: name it in `llm.purposes.embedding` only, or \
                 remove `embeddings`",
                "`llm.purposes.embedding.0` = `main` offers no embeddings: name a model with `embeddings = true`, or \
                 leave the list out",
            ]
        );
        options.purposes = BTreeMap::from([(Purpose::Embedding, vec!["offline".into()])]);
        assert!(told(&options)[0].contains("offers no embeddings"), "{:?}", told(&options));
        options.purposes = BTreeMap::from([(Purpose::Embedding, vec!["vectors".into()])]);
        options.models[1].output_usd_per_million = 0.1;
        assert!(told(&options)[0].contains("embeddings have no output tokens"), "{:?}", told(&options));
    }

    #[test]
    fn embedded_model_is_no_configured_one() {
        let node = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Options { purposes: BTreeMap::from([(Purpose::Node, names)]), ..with_embeddings(&[]) }
        };
        for (options, expected) in [
            (Options::default(), false),
            (with_embeddings(&[]), true),
            (node(&["offline"]), false),
            (node(&["offline", "main"]), true),
        ] {
            assert_eq!(options.has_model_for(Purpose::Node), expected, "{options:?}");
        }
        assert!(!with_embeddings(&[]).has_model_for(Purpose::Embedding));
    }

    #[test]
    fn one_model_of_embeddings_is_chosen() {
        let mut options = with_embeddings(&["one", "two"]);
        assert!(told(&options)[0].contains("cannot be compared: name exactly one"), "{:?}", told(&options));
        options.purposes = BTreeMap::from([(Purpose::Embedding, vec!["two".into()])]);
        assert_eq!(told(&options), [""; 0]);
        options.purposes = BTreeMap::from([(Purpose::Embedding, vec!["two".into(), "one".into()])]);
        assert!(told(&options)[0].contains("name exactly one"), "{:?}", told(&options));
    }

    #[test]
    fn an_address_alone_means_a_server_that_needs_no_key() {
        let set = [("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"), ("OPENAI_MODEL", "qwen")];
        let model = ModelOptions::from_environment(environment(&set)).unwrap();
        assert_eq!((model.name.as_str(), &model.api_key_env), ("qwen", &None));
    }

    #[test]
    fn an_empty_key_or_a_name_alone_makes_no_model() {
        for set in [&[][..], &[("OPENAI_API_KEY", " ")], &[("OPENAI_MODEL", "m")]] {
            assert_eq!(ModelOptions::from_environment(environment(set)), None);
        }
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
        let problems = options.problems();
        assert_eq!(problems.len(), 4, "{problems:#?}");
    }

    #[test]
    fn address_that_no_route_can_be_added_to_is_refused() {
        let faults = |base_url: &str| {
            let model = ModelOptions { name: "a".into(), base_url: base_url.into(), ..Default::default() };
            Options { models: vec![model], ..Options::default() }.problems().len()
        };
        for right in ["http://host/v1", "https://host/v1/", "http://host", "https://host/completions/v1"] {
            assert_eq!(faults(right), 0, "{right}");
        }
        for wrong in [
            "https://host/v1/chat/completions",
            "https://host/v1/embeddings/",
            "https://host/v1?api-version=1",
        ] {
            assert_eq!(faults(wrong), 1, "{wrong}");
        }
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

    #[test]
    fn stream_is_true_false_or_all() {
        for (written, stream) in
            [("true", StreamMode::Shown), ("false", StreamMode::No), ("\"all\"", StreamMode::All)]
        {
            let read: ModelOptions = toml::from_str(&format!("stream = {written}")).unwrap();
            assert_eq!((read.stream, serde_json::to_string(&stream).unwrap().as_str()), (stream, written));
        }
        for wrong in ["\"some\"", "1"] {
            let error = toml::from_str::<ModelOptions>(&format!("stream = {wrong}")).unwrap_err();
            assert!(error.to_string().contains("true, false or \"all\""), "{error}");
        }
        assert_eq!(ModelOptions::default().stream, StreamMode::Shown);
    }
}
