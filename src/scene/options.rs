//! The section `scenes` of the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::guard::NetworkPolicy;

/// Which scenes are loaded and what they may reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// A directory with one folder per scene, or the folder of a single scene; `shipped:NAME` is a folder inside the program.
    /// Its scenes are added to the built-in ones and replace those of the same name.
    pub dir: Option<PathBuf>,
    /// Whether the built-in scenes are loaded.
    pub builtin: bool,
    /// By scene (case-insensitive), values that override those of its `[settings]`.
    pub settings: BTreeMap<String, Value>,
    /// Whether HTTP tools may reach loopback, private and link-local addresses.
    pub allow_private_addresses: bool,
    /// Hosts that HTTP tools may reach at any address, as `host` or `host:port`.
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
    /// Sets what HTTP requests of tools may reach.
    pub fn network(&self) -> NetworkPolicy {
        NetworkPolicy { allow_private: self.allow_private_addresses, allow_hosts: self.allow_hosts.clone() }
    }
}
