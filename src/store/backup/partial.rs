//! The directory in which a backup is made, beside its target.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::super::dir::private_no_follow;
use super::super::error::{Error, ErrorCode};
use super::files::{create_dir, file_error, parent, sync_dir};

/// What the names of such directories begin with; that of the target follows.
const PREFIX: &str = ".proscenium-partial-";
/// Name of the file in it that its process has locked.
const LOCK: &str = "lock";

/// A backup that is being made. It is removed when it is dropped before it was published.
#[derive(Debug)]
pub(super) struct PartialBackup {
    path: PathBuf,
    lock: Option<File>,
}

/// Checks that a backup can be made at `target`: nothing or an empty directory is there, and it is not in the data
/// directory.
///
/// # Errors
/// `backup.target`.
pub(super) fn check_target(data: &Path, target: &Path) -> Result<(), Error> {
    let refused =
        |why: &str| Err(Error::new(ErrorCode::BackupTarget, format!("{}: {why}", target.display())));
    if target.file_name().is_none() {
        return refused("a backup needs a directory of its own: name one that does not exist yet");
    }
    let Ok(place) = parent(target).canonicalize() else {
        return refused("the directory that is to hold the backup does not exist: create it");
    };
    if data.canonicalize().is_ok_and(|data| place.starts_with(data)) {
        return refused(
            "a backup in the data directory is lost with it: name another place, on another disk",
        );
    }
    match std::fs::read_dir(target) {
        Err(error) if error.kind() == ErrorKind::NotFound && target.symlink_metadata().is_err() => Ok(()),
        Ok(mut entries) if !target.is_symlink() => match entries.next() {
            None => Ok(()),
            Some(_) => refused("it is not empty: name a directory that does not exist yet"),
        },
        _ => refused("it is not a directory: name one that does not exist yet"),
    }
}

impl PartialBackup {
    /// Creates the directory. Removes what backups beside it left that were killed.
    ///
    /// # Errors
    /// `backup.in_progress`, `store.full`, `store.read_only`, `store.io`.
    pub(super) fn create(target: &Path) -> Result<Self, Error> {
        let mut name = OsString::from(PREFIX);
        name.push(target.file_name().unwrap_or_default());
        let path = parent(target).join(name);
        remove_left(parent(target), &path);
        match create_dir(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(file_error(&path, "create the directory", &error));
            }
            _ => {}
        }
        let lock = lock(&path)?.ok_or_else(|| {
            let what = format!("{}: another process makes this backup: wait for it", target.display());
            Error::new(ErrorCode::BackupInProgress, what)
        })?;
        let partial = Self { path, lock: Some(lock) };
        partial.clear()?;
        Ok(partial)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what a killed backup of this target left.
    fn clear(&self) -> Result<(), Error> {
        let failed = |error: std::io::Error| file_error(&self.path, "empty the directory", &error);
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            match entry.file_type().map_err(failed)?.is_dir() {
                true => std::fs::remove_dir_all(&path).map_err(failed)?,
                false if entry.file_name() != LOCK => std::fs::remove_file(&path).map_err(failed)?,
                false => {}
            }
        }
        Ok(())
    }

    /// Gives the backup its final name. It is on disk when this returns.
    ///
    /// # Errors
    /// `backup.target` if something came there in the meantime, `store.io`.
    pub(super) fn publish(mut self, target: &Path) -> Result<(), Error> {
        let failed = |error: std::io::Error| file_error(&self.path, "finish the backup", &error);
        sync_dir(&self.path)?;
        // With the lock file, so that no other backup takes the directory for one that was left. An empty directory is
        // replaced.
        std::fs::rename(&self.path, target).map_err(|error| match error.kind() {
            ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => {
                let what = format!("{}: it is no longer empty", target.display());
                Error::new(ErrorCode::BackupTarget, what)
            }
            _ => failed(error),
        })?;
        // It means nothing there, so it may stay.
        let _ = std::fs::remove_file(target.join(LOCK));
        self.lock = None;
        sync_dir(target)?;
        sync_dir(parent(target))
    }
}

impl Drop for PartialBackup {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // What cannot be removed is removed by the next backup.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Takes the lock of a directory; `None` if another process has it.
fn lock(dir: &Path) -> Result<Option<File>, Error> {
    let path = dir.join(LOCK);
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    let file = private_no_follow(&mut options)
        .open(&path)
        .map_err(|error| file_error(&path, "open the lock file", &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(file_error(&path, "lock the file", &error)),
    }
}

/// Removes what killed backups left, but for `own`: copies of what people said are not kept longer than needed.
fn remove_left(beside: &Path, own: &Path) {
    for entry in std::fs::read_dir(beside).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_left = is_dir
            && entry.file_name().to_string_lossy().starts_with(PREFIX)
            && path.file_name() != own.file_name();
        // Without a lock file, its process has just begun.
        if is_left && path.join(LOCK).is_file() && matches!(lock(&path), Ok(Some(_))) {
            tracing::info!(path = %path.display(), "removing what an interrupted backup left");
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}
