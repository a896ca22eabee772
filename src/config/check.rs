//! Where what is wrong with a configuration was written, and what is hardly meant. The rules stand
//! with the modules that own the settings.

use std::collections::BTreeMap;

use super::Config;
use super::fault::{Fault, Origin};
use super::layers::KeyPath;
use super::read::Merged;
use crate::setting::{Wrong, url_without_passwords};

/// Every fault and every warning of a configuration that could be read.
pub(super) fn check(
    config: &Config,
    merged: &Merged,
    env: &BTreeMap<String, String>,
    faults: &mut Vec<Fault>,
    warnings: &mut Vec<Fault>,
) {
    for wrong in config.problems() {
        let fault = located(merged, &wrong);
        // A key whose type is wrong was told already.
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
    warn(config, merged, env, warnings);
}

/// At the first of the keys that somebody wrote.
fn located(merged: &Merged, wrong: &Wrong) -> Fault {
    let written = wrong.keys.iter().find(|key| merged.origin(&path(key)) != Origin::BuiltIn);
    let key = written.or(wrong.keys.first()).map_or("", String::as_str);
    fault(merged, "config.value", key, wrong.message.clone(), wrong.remedy.as_str())
}

fn path(key: &str) -> KeyPath {
    key.split('.').map(str::to_owned).collect()
}

fn fault(
    merged: &Merged,
    code: &'static str,
    key: &str,
    message: String,
    remedy: impl Into<String>,
) -> Fault {
    let path = path(key);
    Fault {
        code,
        origin: merged.origin(&path),
        key: key.to_owned(),
        value: merged.written(&path),
        message,
        remedy: remedy.into(),
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
        let near = is_near(&url);
        if !near && url.scheme() == "http" {
            let message = format!(
                "model `{name}` is asked without encryption at {}",
                url_without_passwords(&model.base_url)
            );
            warnings.push(fault(merged, "config.insecure", &key("base_url"), message, "use https"));
        }
        if !near && model.input_usd_per_million == 0.0 && model.output_usd_per_million == 0.0 {
            let message = format!("no prices are known of model `{name}`, so its cost is told as 0");
            let remedy = "set `input_usd_per_million` and `output_usd_per_million` of the model";
            warnings.push(fault(merged, "config.price", &key("name"), message, remedy));
        }
    }
    if let Ok(url) = reqwest::Url::parse(&config.approval.webhook.url)
        && url.scheme() == "http"
        && !is_near(&url)
    {
        // Without the path, which is a secret at some receivers.
        let host = url.origin().ascii_serialization();
        let message = format!("what waits for a person is told without encryption at {host}");
        warnings.push(fault(merged, "config.insecure", "approval.webhook.url", message, "use https"));
    }
    if let Some(now) = config.execution.fixed_now {
        let message = format!("the clock stands still at {now}");
        let remedy = "remove `execution.fixed_now` outside tests and demonstrations";
        warnings.push(fault(merged, "config.clock", "execution.fixed_now", message, remedy));
    }
}

/// Whether it leads to this machine.
fn is_near(url: &reqwest::Url) -> bool {
    url.host_str().is_some_and(|host| {
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}
