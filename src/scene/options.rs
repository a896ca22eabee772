//! The section `scenes` of the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::guard::NetworkPolicy;

/// Which scenes there are and what they may reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// A directory with one folder a scene, added to the built-in ones; a scene in it replaces a
    /// built-in one of the same name. Or the folder of a single scene.
    pub dir: Option<PathBuf>,
    /// Whether the built-in scenes are there.
    pub builtin: bool,
    /// By scene (upper and lower case are the same), values that replace those of its `[settings]`.
    pub settings: BTreeMap<String, Value>,
    /// Whether HTTP tools may reach loopback, private and link-local addresses.
    pub allow_private_addresses: bool,
    /// Hosts that HTTP tools may reach wherever they are, as `host` or `host:port`.
    pub allow_hosts: Vec<String>,
}

impl Default for Options {
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

impl Options {
    /// What HTTP requests of tools may reach.
    pub fn network(&self) -> NetworkPolicy {
        NetworkPolicy { allow_private: self.allow_private_addresses, allow_hosts: self.allow_hosts.clone() }
    }
}
