//! What a configuration must hold beyond the types of its keys: ranges, and what keys say about
//! each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::RangeInclusive;

use super::Config;
use super::fault::Fault;
use super::layers::KeyPath;
use super::read::{Merged, nearest};

/// The name of the embedded rules, which a purpose may list and a model may not take.
const OFFLINE: &str = "offline";
/// The most that a limit can say; a semaphore holds no more places on any machine.
const MOST_AT_ONCE: u32 = 500_000_000;
const DAY_MS: u64 = 86_400_000;
const MOST_TOKENS: u32 = 100_000_000;

/// Every fault and every warning of a configuration that could be read.
pub(super) fn check(
    config: &Config,
    merged: &Merged,
    env: &BTreeMap<String, String>,
    faults: &mut Vec<Fault>,
    warnings: &mut Vec<Fault>,
) {
    let mut seen = Checker { merged, faults };
    who_and_how(config, &mut seen);
    waiting(config, &mut seen);
    guards(config, &mut seen);
    models(config, &mut seen);
    warn(config, merged, env, warnings);
}

struct Checker<'a> {
    merged: &'a Merged,
    faults: &'a mut Vec<Fault>,
}

impl Checker<'_> {
    fn add(&mut self, key: &str, message: String, remedy: impl Into<String>) {
        let fault = fault(self.merged, "config.value", key, message, remedy);
        // A key whose type is wrong was told already.
        if !self.faults.iter().any(|known| known.key == fault.key) {
            self.faults.push(fault);
        }
    }

    fn is_built_in(&self, key: &str) -> bool {
        let path: KeyPath = key.split('.').map(str::to_owned).collect();
        self.merged.origin(&path) == super::Origin::BuiltIn
    }

    fn range<N: PartialOrd + Display + Copy>(&mut self, key: &str, value: N, range: RangeInclusive<N>) {
        if !range.contains(&value) {
            let bounds = format!("from {} to {}", range.start(), range.end());
            self.add(key, format!("`{key}` = `{value}` is out of range"), format!("set a value {bounds}"));
        }
    }
}

fn fault(
    merged: &Merged,
    code: &'static str,
    key: &str,
    message: String,
    remedy: impl Into<String>,
) -> Fault {
    let path: KeyPath = key.split('.').map(str::to_owned).collect();
    Fault {
        code,
        origin: merged.origin(&path),
        key: key.to_owned(),
        value: merged.written(&path),
        message,
        remedy: remedy.into(),
    }
}

fn who_and_how(config: &Config, seen: &mut Checker<'_>) {
    let user = &config.auth.default_user;
    if user.trim().is_empty() || user.chars().count() > 128 || user.chars().any(char::is_control) {
        let message = "`auth.default_user` must name somebody, in 1 to 128 printable characters".to_owned();
        seen.add("auth.default_user", message, "write the user's name in the directory");
    }
    let planning = &config.planning;
    seen.range("planning.temperature", planning.temperature, 0.0..=2.0);
    seen.range("planning.max_retries", planning.max_retries, 0..=10);
    seen.range("planning.max_steps", planning.max_steps, 1..=100);
    seen.range("planning.max_replans", planning.max_replans, 0..=20);
    let execution = &config.execution;
    seen.range("execution.max_parallel_steps", execution.max_parallel_steps, 1..=64);
    seen.range("execution.max_rounds", execution.max_rounds, 1..=64);
    seen.range("execution.max_calls", execution.max_calls, 1..=256);
    seen.range("execution.run_timeout_ms", execution.run_timeout_ms, 1..=DAY_MS);
    seen.range("execution.max_queued_requests", execution.max_queued_requests, 1..=10_000);
    if let Err(error) = execution.zone() {
        let zone = &execution.time_zone;
        let message = format!("`execution.time_zone` = `{zone}` is no time zone: {error}");
        seen.add("execution.time_zone", message, zone_remedy(zone));
    }
    if let Err(error) = tracing_subscriber::EnvFilter::try_new(&config.telemetry.log) {
        let message = format!("`telemetry.log` = `{}` is no filter: {error}", config.telemetry.log);
        seen.add(
            "telemetry.log",
            message,
            "write a level (`warn`) or levels by module (`info,proscenium::llm=debug`)",
        );
    }
    let memory = &config.memory;
    seen.range("memory.window_share", memory.window_share, 0.05..=0.9);
    seen.range("memory.keep_turns", memory.keep_turns, 1..=1_000);
    seen.range("memory.max_turns_in_prompt", memory.max_turns_in_prompt, 1..=1_000);
    if memory.max_turns_in_prompt <= memory.keep_turns {
        let message = format!(
            "`memory.max_turns_in_prompt` = `{}` is not more than `memory.keep_turns` = `{}`",
            memory.max_turns_in_prompt, memory.keep_turns
        );
        // Told where somebody wrote one of the two.
        let keys = ["memory.max_turns_in_prompt", "memory.keep_turns"];
        let key = if seen.is_built_in(keys[0]) { keys[1] } else { keys[0] };
        seen.add(key, message, "raise the one or lower the other");
    }
    if config.store.data_dir.as_os_str().is_empty() {
        let message = "`store.data_dir` must name a directory".to_owned();
        seen.add("store.data_dir", message, "write a path such as `data`");
    }
    seen.range("store.max_pending", config.store.max_pending, 1..=1_000_000);
    seen.range("store.max_batch", config.store.max_batch, 1..=100_000);
}

fn zone_remedy(zone: &str) -> String {
    let names: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match nearest(zone, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write an IANA name such as `Europe/Rome`, or `system`".to_owned(),
    }
}

fn waiting(config: &Config, seen: &mut Checker<'_>) {
    let llm = &config.llm;
    seen.range("llm.max_attempts", llm.max_attempts, 1..=20);
    seen.range("llm.deadline_ms", llm.deadline_ms, 1..=DAY_MS);
    seen.range("llm.connect_timeout_ms", llm.connect_timeout_ms, 1..=DAY_MS);
    seen.range("llm.first_token_timeout_ms", llm.first_token_timeout_ms, 1..=DAY_MS);
    seen.range("llm.between_tokens_timeout_ms", llm.between_tokens_timeout_ms, 1..=DAY_MS);
    seen.range("llm.max_retry_after_ms", llm.max_retry_after_ms, 0..=DAY_MS);
    seen.range("llm.backoff_ms", llm.backoff_ms, 0..=60_000);
    seen.range("llm.breaker.failures", llm.breaker.failures, 0..=10_000);
    seen.range("llm.breaker.pause_ms", llm.breaker.pause_ms, 0..=DAY_MS);
    seen.range("llm.offline_context_window", llm.offline_context_window, 256..=MOST_TOKENS);
}

fn guards(config: &Config, seen: &mut Checker<'_>) {
    seen.range("cache.max_bytes", config.cache.max_bytes, 0..=1 << 40);
    seen.range("cache.ttl_s", config.cache.ttl_s, 1..=30 * 86_400);
    let limits = &config.limits;
    seen.range("limits.max_wait_ms", limits.max_wait_ms, 0..=DAY_MS);
    let models = limits.models.iter().map(|(name, rates)| (format!("limits.models.{name}"), rates));
    for (section, rates) in models.chain([("limits.tenant".to_owned(), &limits.tenant)]) {
        for (field, value) in [
            ("requests_per_minute", rates.requests_per_minute),
            ("tokens_per_minute", rates.tokens_per_minute),
            ("concurrent", rates.concurrent),
        ] {
            seen.range(&format!("{section}.{field}"), value.unwrap_or(1), 1..=MOST_AT_ONCE);
        }
    }
    let known: Vec<&str> = config.llm.models.iter().map(|model| model.name.as_str()).collect();
    for name in limits.models.keys().filter(|name| !known.contains(&name.as_str())) {
        let key = format!("limits.models.{name}");
        let remedy = match nearest(name, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write the `name` of one of `llm.models`".to_owned(),
        };
        seen.add(&key, format!("`{key}` limits a model that is not configured"), remedy);
    }
    let budget = &config.budget;
    for (key, usd) in [
        ("budget.run_usd", budget.run_usd),
        ("budget.session_usd", budget.session_usd),
        ("budget.tenant_usd", budget.tenant_usd),
        ("budget.day_usd", budget.day_usd),
    ] {
        seen.range(key, usd.unwrap_or_default(), 0.0..=1_000_000_000.0);
    }
}

fn models(config: &Config, seen: &mut Checker<'_>) {
    let mut names: BTreeSet<&str> = BTreeSet::from([OFFLINE]);
    for (index, model) in config.llm.models.iter().enumerate() {
        let key = |field: &str| format!("llm.models.{index}.{field}");
        for (field, value) in [("name", &model.name), ("base_url", &model.base_url)] {
            if value.trim().is_empty() {
                let message = format!("`{}` is missing", key(field));
                seen.add(&key(field), message, format!("add `{field} = \"…\"` to this model"));
            }
        }
        if model.name == OFFLINE {
            let message = format!("`{}` = `{OFFLINE}` is the name of the embedded model", key("name"));
            seen.add(&key("name"), message, "choose another name");
        } else if !model.name.is_empty() && !names.insert(&model.name) {
            let message =
                format!("`{}` = `{}` is the name of an earlier model, too", key("name"), model.name);
            seen.add(&key("name"), message, "give each model a name of its own");
        }
        if !model.base_url.trim().is_empty() {
            let fits = reqwest::Url::parse(&model.base_url)
                .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            if !fits {
                let message =
                    format!("`{}` = `{}` is no http or https address", key("base_url"), model.base_url);
                seen.add(
                    &key("base_url"),
                    message,
                    "write the API's address, such as `https://api.openai.com/v1`",
                );
            }
        }
        for (field, price) in [
            ("input_usd_per_million", Some(model.input_usd_per_million)),
            ("cached_input_usd_per_million", model.cached_input_usd_per_million),
            ("output_usd_per_million", Some(model.output_usd_per_million)),
        ] {
            seen.range(&key(field), price.unwrap_or_default(), 0.0..=100_000.0);
        }
        seen.range(&key("context_window"), model.context_window, 256..=MOST_TOKENS);
        let most = model.context_window.clamp(2, MOST_TOKENS) - 1;
        seen.range(&key("max_output_tokens"), model.max_output_tokens, 1..=most);
    }
    let names: Vec<&str> = names.into_iter().collect();
    for (purpose, list) in &config.llm.purposes {
        let purpose = match serde_json::to_value(purpose) {
            Ok(serde_json::Value::String(name)) => name,
            _ => continue,
        };
        if list.is_empty() {
            let key = format!("llm.purposes.{purpose}");
            seen.add(&key, format!("`{key}` names no model"), "name one, or leave it out to try all");
        }
        for (index, name) in list.iter().enumerate() {
            if !names.contains(&name.as_str()) {
                let key = format!("llm.purposes.{purpose}.{index}");
                let remedy = match nearest(name, &names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the models are {}", names.join(", ")),
                };
                seen.add(&key, format!("`{key}` = `{name}` is the name of no model"), remedy);
            }
        }
    }
}

fn warn(config: &Config, merged: &Merged, env: &BTreeMap<String, String>, warnings: &mut Vec<Fault>) {
    for (index, model) in config.llm.models.iter().enumerate() {
        let key = |field: &str| format!("llm.models.{index}.{field}");
        let name = &model.name;
        if let Some(variable) = &model.api_key_env
            && env.get(variable).is_none_or(|value| value.trim().is_empty())
        {
            let message = format!("the key of model `{name}` is to be in {variable}, which is not set");
            let remedy = format!("set {variable}, or remove `api_key_env` if the server wants no key");
            warnings.push(fault(merged, "config.key", &key("api_key_env"), message, remedy));
        }
        let Ok(url) = reqwest::Url::parse(&model.base_url) else { continue };
        let near = url.host_str().is_some_and(|host| {
            host == "localhost"
                || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        });
        if !near && url.scheme() == "http" {
            let message = format!("model `{name}` is asked without encryption at {}", model.base_url);
            warnings.push(fault(merged, "config.insecure", &key("base_url"), message, "use https"));
        }
        if !near && model.input_usd_per_million == 0.0 && model.output_usd_per_million == 0.0 {
            let message = format!("no prices are known of model `{name}`, so its cost is told as 0");
            let remedy = "set `input_usd_per_million` and `output_usd_per_million` of the model";
            warnings.push(fault(merged, "config.price", &key("name"), message, remedy));
        }
    }
    if let Some(now) = config.execution.fixed_now {
        let message = format!("the clock stands still at {now}");
        let remedy = "remove `execution.fixed_now` outside tests and demonstrations";
        warnings.push(fault(merged, "config.clock", "execution.fixed_now", message, remedy));
    }
}
