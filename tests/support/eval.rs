//! The labelled requests of `tests/eval`.

use std::path::{Path, PathBuf};

use proscenium::eval::{self, EvalSet};
use proscenium::scene::SceneFolder;

/// Its files, by name.
fn files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/eval");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == "yaml")).collect();
    files.sort();
    files
}

/// All requests; files with the same scenes share a set.
pub fn sets() -> Vec<EvalSet> {
    eval::read_files(&files()).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// The folders of all scenes that are added to the shipped ones.
pub fn folders() -> Vec<SceneFolder> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let dirs = [tests.join("eval/scenes"), tests.join("scenarios/library")];
    dirs.iter().flat_map(|dir| SceneFolder::read(dir).0).collect()
}
