//! The scenes that the program ships: their folders, and the tools beside them that are written in
//! Rust. They use nothing but the library's public API.

use include_dir::{Dir, include_dir};
use proscenium::tools::NativeTools;
use serde_json::Value;

#[path = "identity/tools.rs"]
mod identity;
#[path = "inventory/tools.rs"]
mod inventory;
#[cfg(test)]
#[path = "testing.rs"]
mod testing;
#[path = "text_to_sql/tools.rs"]
mod text_to_sql;
#[path = "vacation_management/tools.rs"]
mod vacation_management;
#[path = "weather/tools.rs"]
mod weather;

/// The scene folders, as they are in the source tree.
pub static FOLDERS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/scenes");

/// What the rules of the shipped scenes reply in place of a model to the question of a flow's node (`FLOW.NODE`) with this
/// task; `None` where they know no reply. For the simulated model.
pub fn simulated_node(node: &str, task: &str) -> Option<Value> {
    text_to_sql::simulated_node(node, task)
}

/// The tools of all shipped scenes.
pub fn tools() -> NativeTools {
    let tools = vacation_management::register(identity::register(NativeTools::new()));
    text_to_sql::register(inventory::register(weather::register(tools)))
}
