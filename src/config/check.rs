//! Locates the problems of a configuration, and warns of values that are probably unintended. The rules
//! themselves are in the modules that own the settings.

use std::collections::BTreeMap;

use reqwest::header::HeaderValue;

use super::Config;
use super::fault::{ConfigFault, ValueOrigin};
use super::layers::KeyPath;
use super::read::MergedLayers;
use super::tenants;
use crate::run::{LearnMode, PrepareMode};
use crate::setting::{SettingProblem, redact_url};

/// Collects all faults and warnings of a parsed configuration.
pub(super) fn check(
    config: &Config,
    merged: &MergedLayers,
    env: &BTreeMap<String, String>,
    faults: &mut Vec<ConfigFault>,
    warnings: &mut Vec<ConfigFault>,
) {
    for wrong in config.problems() {
        let fault = locate_problem(merged, &wrong);
        // A key of the wrong type is already reported.
        if !faults.iter().any(|known| known.key == fault.key) {
            faults.push(fault);
        }
    }
    let webhook = &config.approval.webhook;
    if !webhook.url.is_empty()
        && !webhook.secret_env.is_empty()
        && let Err(message) = webhook.secret(|name| env.get(name).cloned())
    {
        let remedy =
            format!("set {} to the secret that the receiver checks signatures with", webhook.secret_env);
        faults.push(fault(merged, "config.webhook", "approval.webhook.secret_env", message, remedy));
    }
    if !faults.iter().any(|known| known.key == "telemetry.otlp.endpoint")
        && let Err(message) = config.telemetry.otlp.target(|name| env.get(name).cloned())
    {
        let remedy = "set it to the headers that the receiver asks for, such as `authorization=Bearer%20…`";
        faults.push(fault(merged, "config.otlp", "telemetry.otlp.headers_env", message, remedy));
    }
    warn(config, merged, env, warnings);
}

/// Places a problem at the first of its keys that is not built in.
fn locate_problem(merged: &MergedLayers, wrong: &SettingProblem) -> ConfigFault {
    let written = wrong.keys.iter().find(|key| merged.origin(&path(key)) != ValueOrigin::BuiltIn);
    let key = written.or(wrong.keys.first()).map_or("", String::as_str);
    fault(merged, "config.value", key, wrong.message.clone(), wrong.remedy.as_str())
}

fn path(key: &str) -> KeyPath {
    key.split('.').map(str::to_owned).collect()
}

fn fault(
    merged: &MergedLayers,
    code: &'static str,
    key: &str,
    message: String,
    remedy: impl Into<String>,
) -> ConfigFault {
    let path = path(key);
    ConfigFault {
        code,
        origin: merged.origin(&path),
        key: key.to_owned(),
        value: merged.written_value(&path),
        message,
        remedy: remedy.into(),
    }
}

fn warn(
    config: &Config,
    merged: &MergedLayers,
    env: &BTreeMap<String, String>,
    warnings: &mut Vec<ConfigFault>,
) {
    warn_of_models(config, merged, env, warnings);
    if let Ok(url) = reqwest::Url::parse(&config.approval.webhook.url)
        && url.scheme() == "http"
        && !is_local(&url)
    {
        // Without the path, which some receivers use as a secret.
        let host = url.origin().ascii_serialization();
        let message = format!("notifications of pending approvals are sent without encryption to {host}");
        warnings.push(fault(merged, "config.insecure", "approval.webhook.url", message, "use https"));
    }
    let learns = config.planning.learn != LearnMode::Off
        || config.tenants.values().any(|tenant| tenant.learn.is_some_and(|learn| learn != LearnMode::Off));
    if learns && config.planning.prepare != PrepareMode::Always && config.execution.level.is_none() {
        let message = "only plans that prepare every call can be learned".to_owned();
        let remedy = "set planning.prepare = \"always\", or planning.learn = \"off\"";
        warnings.push(fault(merged, "config.no_effect", "planning.learn", message, remedy));
    }
    for (key, message) in tenants::without_effect(config) {
        warnings.push(fault(merged, "config.no_effect", &key, message, "remove it, or lower it"));
    }
    for name in config.approval.tenants.keys() {
        let message = format!("the settings of the tenant `{name}` have moved to `tenants.{name}.approval`");
        let key = format!("approval.tenants.{name}");
        warnings.push(fault(merged, "config.moved", &key, message, "move them there"));
    }
    if let Some(now) = config.execution.fixed_now {
        let message = format!("the clock is fixed at {now}");
        let remedy = "remove `execution.fixed_now` outside tests and demonstrations";
        warnings.push(fault(merged, "config.clock", "execution.fixed_now", message, remedy));
    }
}

/// Models without a key, encryption or prices.
fn warn_of_models(
    config: &Config,
    merged: &MergedLayers,
    env: &BTreeMap<String, String>,
    warnings: &mut Vec<ConfigFault>,
) {
    for (index, model) in config.llm.models.iter().enumerate() {
        let key = |field: &str| format!("llm.models.{index}.{field}");
        let name = &model.name;
        if let Some(variable) = &model.api_key_env
            && env.get(variable).is_none_or(|value| value.trim().is_empty())
        {
            let message = format!("the API key of model `{name}` is read from {variable}, which is not set");
            let remedy = format!("set {variable}, or remove `api_key_env` if the server requires no key");
            warnings.push(fault(merged, "config.key", &key("api_key_env"), message, remedy));
        }
        let unsendable = |value: &String| HeaderValue::from_str(value.trim()).is_err();
        if let Some(variable) =
            model.api_key_env.as_ref().filter(|name| env.get(*name).is_some_and(unsendable))
        {
            let message = format!("the API key of model `{name}` in {variable} cannot be sent in a header");
            let remedy = format!("set {variable} to the key alone, in one line");
            warnings.push(fault(merged, "config.key", &key("api_key_env"), message, remedy));
        }
        let Ok(url) = reqwest::Url::parse(&model.base_url) else { continue };
        let near = is_local(&url);
        if !near && url.scheme() == "http" {
            let message =
                format!("model `{name}` is called without encryption at {}", redact_url(&model.base_url));
            warnings.push(fault(merged, "config.insecure", &key("base_url"), message, "use https"));
        }
        if !near && model.input_usd_per_million == 0.0 && model.output_usd_per_million == 0.0 {
            let message = format!(
                "no prices are known for model `{name}`, so its cost is reported as 0, and no budget limits it"
            );
            let remedy = match model.embeddings {
                true => "set `input_usd_per_million` of the model",
                false => "set `input_usd_per_million` and `output_usd_per_million` of the model",
            };
            warnings.push(fault(merged, "config.price", &key("name"), message, remedy));
        }
    }
}

/// Whether the URL points to this machine.
fn is_local(url: &reqwest::Url) -> bool {
    url.host_str().is_some_and(|host| {
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}
