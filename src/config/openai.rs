//! `OPENAI_API_KEY`, `OPENAI_BASE_URL` and `OPENAI_MODEL`: a model without a configuration file.

use std::collections::BTreeMap;

use figment::value::{Dict, Value};

use super::fault::{Fault, Origin};
use super::layers::Layer;

const KEY: &str = "OPENAI_API_KEY";
const ADDRESS: &str = "OPENAI_BASE_URL";
const MODEL: &str = "OPENAI_MODEL";
const DEFAULT_ADDRESS: &str = "https://api.openai.com/v1";
const DEFAULT_MODEL: &str = "gpt-4o-mini";

/// Adds the model that the three variables describe, unless models are configured: a key or an
/// address makes one, a model's name alone does not.
pub(super) fn add(
    layer: &mut Layer,
    env: &BTreeMap<String, String>,
    has_models: bool,
    warnings: &mut Vec<Fault>,
) {
    let read = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let (key, address, model) = (read(KEY), read(ADDRESS), read(MODEL));
    let unused = |name: &str, value: &str, message: &str, remedy: &str| Fault {
        code: "config.unused",
        origin: Origin::Variable(name.to_owned()),
        key: "llm.models".to_owned(),
        value: Some(value.to_owned()),
        message: format!("{name} {message}"),
        remedy: remedy.to_owned(),
    };
    if has_models {
        for (name, value) in [(ADDRESS, address), (MODEL, model)] {
            if let Some(value) = value {
                warnings.push(unused(
                    name,
                    value,
                    "is not used: `llm.models` is configured",
                    "change `base_url` and `model` there, or remove `llm.models`",
                ));
            }
        }
        return;
    }
    if key.is_none() && address.is_none() {
        if let Some(model) = model {
            warnings.push(unused(
                MODEL,
                model,
                "is not used: there is neither a key nor an address, so the embedded offline model serves",
                "set OPENAI_API_KEY or OPENAI_BASE_URL too",
            ));
        }
        return;
    }
    let named = model.unwrap_or(DEFAULT_MODEL);
    let mut one = Dict::new();
    one.insert("name".to_owned(), Value::from(named.to_owned()));
    one.insert("base_url".to_owned(), Value::from(address.unwrap_or(DEFAULT_ADDRESS).to_owned()));
    if key.is_some() {
        one.insert("api_key_env".to_owned(), Value::from(KEY.to_owned()));
    }
    let path = ["llm".to_owned(), "models".to_owned()];
    let from = |name: &str| Origin::Variable(name.to_owned());
    let whole = if key.is_some() { from(KEY) } else { from(ADDRESS) };
    layer.set(&path, Value::from(vec![Value::from(one)]), whole);
    for (field, variable) in [("name", MODEL), ("base_url", ADDRESS), ("api_key_env", KEY)] {
        let place = ["llm", "models", "0", field].map(str::to_owned).to_vec();
        if read(variable).is_some() {
            layer.places.insert(place, from(variable));
        }
    }
}
