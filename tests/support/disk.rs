//! The disk under a data directory, controlled by a test: full, or with a power failure that removes unsynced
//! writes. It is a library between one process and its C library (`disk.c`, through `LD_PRELOAD`), so it
//! needs Linux and a C compiler.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

/// The unit that a disk writes atomically.
const SECTOR: usize = 4096;

/// How much of the unsynced writes a power failure removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// All of it.
    Everything,
    /// Some sectors, but not others.
    Some,
}

/// The disk of one data directory.
pub struct Disk {
    dir: TempDir,
    data: PathBuf,
}

impl Disk {
    /// The disk of the data directory `data`, which is created.
    pub fn of(data: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(data).unwrap();
        std::fs::create_dir(dir.path().join("synced")).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/disk.c");
        // The compiler driver that also links the tests.
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(dir.path().join("disk.so"))
            .args([source, "-ldl", "-lpthread"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self { dir, data: data.canonicalize().unwrap() }
    }

    /// The environment of a process that uses this disk.
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

    /// While this file exists, there is no space.
    pub fn full(&self) -> FlagFile {
        FlagFile(self.dir.path().join("full"))
    }

    /// While this file exists, syncs do nothing.
    pub fn lies(&self) -> FlagFile {
        FlagFile(self.dir.path().join("lies"))
    }

    /// The number of syncs so far.
    pub fn syncs(&self) -> u64 {
        std::fs::metadata(self.dir.path().join("synced/.syncs")).map_or(0, |file| file.len())
    }

    /// A power failure: the data directory is reset to what was synced. No process may use it. Returns how
    /// many unsynced bytes differed.
    pub fn fail(&self, loss: Loss, dice: &mut ChaCha8Rng) -> usize {
        let names = std::fs::read_dir(&self.data).unwrap().map(|entry| entry.unwrap().file_name());
        let names: BTreeSet<String> = names.map(|name| name.into_string().unwrap()).collect();
        let mut unsynced = 0;
        for name in names {
            let (file, synced) = (self.data.join(&name), self.dir.path().join("synced").join(&name));
            // The shared part of the log is in memory only.
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

/// Each sector as written or as synced; the length is one of both.
fn mixed(written: &[u8], kept: &[u8], dice: &mut ChaCha8Rng) -> Vec<u8> {
    let length = if dice.random() { written.len() } else { kept.len() };
    let mut mixed = Vec::with_capacity(length);
    while mixed.len() < length {
        let (from, to) = (mixed.len(), (mixed.len() + SECTOR).min(length));
        let source = if dice.random() { written } else { kept };
        let sector = source.get(from..to.min(source.len())).unwrap_or_default();
        mixed.extend_from_slice(sector);
        // A sector that was allocated and never written.
        mixed.resize(to, 0);
    }
    mixed
}

/// A file whose existence is the flag.
#[derive(Clone)]
pub struct FlagFile(PathBuf);

impl FlagFile {
    pub fn set(&self) {
        std::fs::write(&self.0, "").unwrap();
    }

    pub fn clear(&self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}
