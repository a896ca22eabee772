//! The functions of the text_to_sql flow.

use proscenium::tools::NativeTools;

mod access;
mod answer;
mod classification;
mod databases;
mod description_file;
mod explained;
mod folded_text;
mod known_values;
mod nodes;
mod phrases;
mod present;
mod repair;
pub(super) mod rules;
mod schema_text;
#[cfg(test)]
mod scores;
mod settings;
mod simulated;
mod statements;
mod values;
mod without_model;

pub use simulated::reply as simulated_node;

/// Adds the functions under the names that `flow.toml` gives.
pub fn register(tools: NativeTools) -> NativeTools {
    nodes::register(tools)
}
