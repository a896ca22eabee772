//! The arguments of `tools`, `models` and `tenants`.

use clap::{Args, Subcommand};
use proscenium::run::TenantId;

use super::arg_values::{label, tenant, user};

/// `tools` and `models`
#[derive(Debug, Clone, Args)]
pub struct Switches {
    /// The subcommand; the default is `list`
    #[command(subcommand)]
    pub what: Option<SwitchCommand>,
    /// Who does it, instead of auth.default_user
    #[arg(long, global = true, value_name = "NAME", value_parser = user)]
    pub user: Option<String>,
}

/// `tenants`
#[derive(Debug, Clone, Args)]
pub struct Tenants {
    /// The subcommand; the default is `list`
    #[command(subcommand)]
    pub what: Option<DrainCommand>,
    /// Who does it, instead of auth.default_user
    #[arg(long, global = true, value_name = "NAME", value_parser = user)]
    pub user: Option<String>,
}

/// `list`, `disable` and `enable`
#[derive(Debug, Clone, Subcommand)]
pub enum SwitchCommand {
    /// Lists them, with who switched them off, when and why
    List {
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Switches one off; a running server applies it within a second, and it stays off after a restart
    Disable {
        /// Its name, as `list` shows it; a tool is named SCENE.TOOL
        #[arg(value_parser = switch_name)]
        name: String,
        /// Why
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = label)]
        reason: String,
    },
    /// Switches one on again
    Enable {
        /// Its name, as `list` shows it; a tool is named SCENE.TOOL
        #[arg(value_parser = switch_name)]
        name: String,
        /// Why
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = label)]
        reason: String,
    },
}

/// `list`, `drain` and `resume`
#[derive(Debug, Clone, Subcommand)]
pub enum DrainCommand {
    /// Lists the tenants with a key, a section of the configuration or a switch
    List {
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Refuses new requests of a tenant with 503 and Retry-After; runs under way end
    Drain {
        /// The tenant
        #[arg(value_parser = tenant)]
        name: TenantId,
        /// Why
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = label)]
        reason: String,
    },
    /// Accepts requests of the tenant again
    Resume {
        /// The tenant
        #[arg(value_parser = tenant)]
        name: TenantId,
        /// Why
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = label)]
        reason: String,
    },
}

fn switch_name(given: &str) -> Result<String, String> {
    match given.trim() {
        "" => Err("give a name, as `list` shows it".to_owned()),
        name => label(name),
    }
}
