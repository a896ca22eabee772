//! The configuration of a server, so that clients can report where their own environment differs. Values
//! are published as hashes.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use proscenium::config::{Config, ConfigFlags, LoadedConfig, ValueOrigin};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Sections that every process has for itself, and the directory of scenes, which is compared by path.
const OWN: [&str; 3] = ["store.", "telemetry.", "scenes.dir"];

/// Characters of a published hash.
const HASH: usize = 16;

/// A hash of the value of each key that is not at its built-in default.
pub fn value_hashes(loaded: &LoadedConfig) -> BTreeMap<String, String> {
    let config = values(&loaded.config);
    let keys = loaded.sources.keys().filter(|key| !is_own(key) && !key.contains(char::is_whitespace));
    keys.map(|key| (key.clone(), hash(&config, key))).collect()
}

/// The keys that environment variables set to other values than a server with the hashes `theirs` has, with
/// the variables.
pub fn differing<'l>(loaded: &'l LoadedConfig, theirs: &BTreeMap<String, String>) -> Vec<(&'l str, &'l str)> {
    let ours = values(&loaded.config);
    // A server publishes no hash for a key at its default.
    let builtin = Config::read(None, std::iter::empty(), ConfigFlags::default()).0;
    let builtin = values(&builtin.config);
    let set = loaded.sources.iter().filter_map(|(key, origin)| match origin {
        ValueOrigin::Variable(name) if !is_own(key) => Some((key.as_str(), name.as_str())),
        _ => None,
    });
    set.filter(|(key, _)| {
        let theirs = theirs.get(*key).cloned().unwrap_or_else(|| hash(&builtin, key));
        hash(&ours, key) != theirs
    })
    .collect()
}

fn is_own(key: &str) -> bool {
    OWN.iter().any(|own| key.starts_with(own))
}

fn values(config: &Config) -> Value {
    // Plain data, which always serializes.
    serde_json::to_value(config).unwrap_or_default()
}

fn hash(config: &Value, key: &str) -> String {
    let value = key.split('.').try_fold(config, |section, name| section.get(name));
    let text = value.map(Value::to_string).unwrap_or_default();
    let digits = HEXLOWER.encode(&Sha256::digest(text.as_bytes()));
    digits.chars().take(HASH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(env: &[(&str, &str)]) -> LoadedConfig {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(None, env, ConfigFlags::default()).unwrap()
    }

    #[test]
    fn only_what_a_server_does_not_have_differs() {
        let server = value_hashes(&loaded(&[
            ("PROSCENIUM__APPROVAL__PLANS", "writes"),
            ("PROSCENIUM__SCENES__SETTINGS__Weather__SOURCE", "bundled"),
            ("PROSCENIUM__STORE__DATA_DIR", "there"),
        ]));
        assert_eq!(server.keys().filter(|key| key.starts_with("store.")).count(), 0);
        let asks = loaded(&[
            ("PROSCENIUM__APPROVAL__PLANS", "writes"),
            ("PROSCENIUM__SCENES__SETTINGS__Weather__SOURCE", "another"),
            // As it is built in.
            ("PROSCENIUM__AUTH__DEFAULT_USER", "keysersoze"),
            ("PROSCENIUM__AUTH__DEFAULT_TENANT", "acme"),
            ("PROSCENIUM__STORE__DATA_DIR", "here"),
            ("PROSCENIUM__TELEMETRY__LOG", "debug"),
        ]);
        let differing: Vec<&str> = differing(&asks, &server).into_iter().map(|(_, name)| name).collect();
        assert_eq!(
            differing,
            ["PROSCENIUM__AUTH__DEFAULT_TENANT", "PROSCENIUM__SCENES__SETTINGS__Weather__SOURCE"]
        );
    }
}
