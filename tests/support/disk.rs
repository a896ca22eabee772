//! The disk under a data directory, as a test wants it: full, or with a power failure that takes what was
//! written and not synced. It stands between one process and its C library (`disk.c`, by `LD_PRELOAD`), so it
//! needs Linux and a C compiler.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

/// What a disk writes as a whole.
const SECTOR: usize = 4096;

/// What a power failure takes of what was written and not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// All of it.
    Everything,
    /// Some sectors of it, and others not.
    Some,
}

/// The disk of one data directory.
pub struct Disk {
    dir: TempDir,
    data: PathBuf,
}

impl Disk {
    /// The disk of the data directory `data`, which is made.
    pub fn of(data: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(data).unwrap();
        std::fs::create_dir(dir.path().join("synced")).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/disk.c");
        // Whatever links the tests.
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(dir.path().join("disk.so"))
            .args([source, "-ldl", "-lpthread"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self { dir, data: data.canonicalize().unwrap() }
    }

    /// What a process is started with that writes to this disk.
    pub fn env(&self) -> Vec<(&'static str, String)> {
        let place = |name: &str| self.dir.path().join(name).display().to_string();
        vec![
            ("LD_PRELOAD", place("disk.so")),
            ("DISK_DIR", self.data.display().to_string()),
            ("DISK_FULL", place("full")),
            ("DISK_LIES", place("lies")),
            ("DISK_SYNCED", place("synced")),
        ]
    }

    /// The file that says that there is no room while it exists.
    pub fn full(&self) -> Flag {
        Flag(self.dir.path().join("full"))
    }

    /// The file that says that syncs do nothing while it exists.
    pub fn lies(&self) -> Flag {
        Flag(self.dir.path().join("lies"))
    }

    /// How often something was synced so far.
    pub fn syncs(&self) -> u64 {
        std::fs::metadata(self.dir.path().join("synced/.syncs")).map_or(0, |file| file.len())
    }

    /// The power fails: the data directory becomes what the disk has of it. Nobody may be at work in it.
    /// Gives how many bytes were not synced and differ.
    pub fn fail(&self, loss: Loss, dice: &mut ChaCha8Rng) -> usize {
        let names = std::fs::read_dir(&self.data).unwrap().map(|entry| entry.unwrap().file_name());
        let names: BTreeSet<String> = names.map(|name| name.into_string().unwrap()).collect();
        let mut unsynced = 0;
        for name in names {
            let (file, synced) = (self.data.join(&name), self.dir.path().join("synced").join(&name));
            // What processes share of the log lies in memory.
            if name.ends_with("-shm") || !synced.with_file_name(format!("{name}.named")).exists() {
                std::fs::remove_file(&file).unwrap();
                continue;
            }
            let written = std::fs::read(&file).unwrap();
            let kept = std::fs::read(&synced).unwrap_or_default();
            unsynced += written.iter().zip(&kept).filter(|(one, other)| one != other).count();
            unsynced += written.len().abs_diff(kept.len());
            let left = match loss {
                Loss::Everything => kept,
                Loss::Some => mixed(&written, &kept, dice),
            };
            std::fs::write(&file, left).unwrap();
        }
        unsynced
    }
}

/// Each sector as it was written or as it was synced; the end is one or the other's.
fn mixed(written: &[u8], kept: &[u8], dice: &mut ChaCha8Rng) -> Vec<u8> {
    let length = if dice.random() { written.len() } else { kept.len() };
    let mut mixed = Vec::with_capacity(length);
    while mixed.len() < length {
        let (from, to) = (mixed.len(), (mixed.len() + SECTOR).min(length));
        let source = if dice.random() { written } else { kept };
        let sector = source.get(from..to.min(source.len())).unwrap_or_default();
        mixed.extend_from_slice(sector);
        // A sector that was given to the file and never written.
        mixed.resize(to, 0);
    }
    mixed
}

/// A file that says something by being there.
#[derive(Clone)]
pub struct Flag(PathBuf);

impl Flag {
    pub fn set(&self) {
        std::fs::write(&self.0, "").unwrap();
    }

    pub fn clear(&self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}
