//! `OPENAI_API_KEY`, `OPENAI_BASE_URL` and `OPENAI_MODEL`: a model without a configuration file.

use std::collections::BTreeMap;

use figment::value::{Dict, Value};

use super::fault::{ConfigFault, ValueOrigin};
use super::layers::ConfigLayer;
use crate::llm::{ADDRESS_VARIABLE, KEY_VARIABLE, MODEL_VARIABLE, ModelOptions};

/// Adds the model that the three variables describe, unless models are configured.
pub(super) fn add(
    layer: &mut ConfigLayer,
    env: &BTreeMap<String, String>,
    has_models: bool,
    warnings: &mut Vec<ConfigFault>,
) {
    let read = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let mut unused = |name: &str, message: &str, remedy: &str| {
        if let Some(value) = read(name) {
            warnings.push(ConfigFault {
                code: "config.unused",
                origin: ValueOrigin::Variable(name.to_owned()),
                key: "llm.models".to_owned(),
                value: Some(value.to_owned()),
                message: format!("{name} is not used: {message}"),
                remedy: remedy.to_owned(),
            });
        }
    };
    if has_models {
        for name in [ADDRESS_VARIABLE, MODEL_VARIABLE] {
            let remedy = "change `base_url` and `model` there, or remove `llm.models`";
            unused(name, "`llm.models` is configured", remedy);
        }
        return;
    }
    let Some(model) = ModelOptions::from_environment(|name| env.get(name).cloned()) else {
        let message = "neither a key nor a base URL is set, so the offline model is used";
        unused(MODEL_VARIABLE, message, "set OPENAI_API_KEY or OPENAI_BASE_URL too");
        return;
    };
    let mut one = Dict::new();
    one.insert("name".to_owned(), Value::from(model.name));
    one.insert("base_url".to_owned(), Value::from(model.base_url));
    if let Some(variable) = model.api_key_env {
        one.insert("api_key_env".to_owned(), Value::from(variable));
    }
    let path = ["llm".to_owned(), "models".to_owned()];
    let from = |name: &str| ValueOrigin::Variable(name.to_owned());
    let whole = if read(KEY_VARIABLE).is_some() { KEY_VARIABLE } else { ADDRESS_VARIABLE };
    layer.set(&path, Value::from(vec![Value::from(one)]), from(whole));
    for (field, variable) in
        [("name", MODEL_VARIABLE), ("base_url", ADDRESS_VARIABLE), ("api_key_env", KEY_VARIABLE)]
    {
        let place = ["llm", "models", "0", field].map(str::to_owned).to_vec();
        if read(variable).is_some() {
            layer.origins.insert(place, from(variable));
        }
    }
}
