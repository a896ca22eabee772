//! The engine behind the commands.

use proscenium::config::Loaded;

use super::assistant::Assistant;
use super::check::{Finding, Found};
use super::failure::Failure;

/// Starts an engine.
pub async fn start(loaded: Loaded) -> Result<Box<dyn Assistant>, Failure> {
    let dir = loaded.config.store.data_dir.display().to_string();
    Err(Failure::new("engine.absent", format!("this build has no engine that could use {dir}")))
}

/// Looks at the scenes, and with `live` asks the models.
pub async fn inspect(loaded: &Loaded, live: bool) -> (Found, Vec<Finding>) {
    let _ = live;
    (Found::of(loaded), Vec::new())
}
