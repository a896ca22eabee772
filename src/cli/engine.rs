//! The engine behind the commands.

use proscenium::config::Loaded;
use proscenium::scene::Catalogue;

use super::assistant::Assistant;
use super::check::{self, Finding, Found};
use super::failure::Failure;

/// Starts an engine.
pub async fn start(loaded: Loaded) -> Result<Box<dyn Assistant>, Failure> {
    let dir = loaded.config.store.data_dir.display().to_string();
    Err(Failure::new("engine.absent", format!("this build has no engine that could use {dir}")))
}

/// Looks at the scenes, and with `live` asks the models.
pub async fn inspect(loaded: &Loaded, live: bool) -> (Found, Vec<Finding>) {
    let catalogue = Catalogue::default();
    let mut found = Found::of(loaded);
    found.scenes = catalogue.iter().map(|scene| check::scene(scene)).collect();
    if live {
        for (_, told) in &mut found.models {
            told.push("not asked".to_owned());
        }
    }
    (found, Vec::new())
}
