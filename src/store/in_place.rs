//! Whether the database is still where it was opened. A process goes on writing to a file that was moved or deleted, and what
//! it writes to a deleted one is lost when it ends.

use std::path::Path;

use super::error::{Error, ErrorCode};
use super::{Store, dir};

/// Which file is at a path, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The file at `path`; `None` if there is none, or the system does not say.
    #[cfg(unix)]
    pub(super) fn at(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::metadata(path).ok()?;
        Some(Self { device: file.dev(), inode: file.ino() })
    }

    #[cfg(not(unix))]
    pub(super) fn at(_: &Path) -> Option<Self> {
        None
    }
}

impl Store {
    /// Checks that the database that this process opened is still at its path. Reads the status of one file.
    ///
    /// # Errors
    /// `store.moved`.
    pub(super) fn check_in_place(&self) -> Result<(), Error> {
        if self.inner.opened.is_none() || FileIdentity::at(self.path()) == self.inner.opened {
            return Ok(());
        }
        let message = format!(
            "{}: the database was moved, deleted or replaced while this process uses it, and what is stored now may be lost: \
             put it back, or stop this process, restore the data directory, and start again",
            self.path().display()
        );
        Err(Error::new(ErrorCode::Moved, message))
    }

    /// Checks that the data directory is still in its place and can be written. Reads the status of two files.
    ///
    /// # Errors
    /// `store.moved`, `store.read_only`, `store.io`.
    pub(crate) fn check_place(&self) -> Result<(), Error> {
        self.check_in_place()?;
        match self.path().parent() {
            Some(parent) if self.is_owner() => dir::check_writable(parent)
                .map_err(|error| Error::io(parent, "write to the data directory", &error)),
            _ => Ok(()),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::tests::open;

    #[tokio::test]
    async fn database_that_was_moved_or_replaced_is_reported_until_it_is_back() {
        let above = tempfile::tempdir().unwrap();
        let (dir, away) = (above.path().join("data"), above.path().join("away"));
        let store = open(&dir).await;
        store.check_place().unwrap();
        std::fs::rename(&dir, &away).unwrap();
        let refused =
            |checked: Result<(), super::Error>| assert_eq!(checked.unwrap_err().code(), "store.moved");
        refused(store.check_place());
        refused(store.check_room());
        std::fs::create_dir(&dir).unwrap();
        std::fs::copy(away.join("proscenium.db"), dir.join("proscenium.db")).unwrap();
        refused(store.check_place());
        std::fs::remove_dir_all(&dir).unwrap();
        std::fs::rename(&away, &dir).unwrap();
        store.check_place().unwrap();
        store.check_room().unwrap();
        std::fs::remove_file(dir.join("proscenium.db")).unwrap();
        refused(store.check_place());
    }

    #[tokio::test]
    async fn directory_that_cannot_be_written_is_reported_until_it_can() {
        use std::os::unix::fs::PermissionsExt;
        let above = tempfile::tempdir().unwrap();
        let dir = above.path().join("data");
        let store = open(&dir).await;
        let set_mode = |mode| std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o500);
        if std::fs::write(dir.join("probe"), "x").is_ok() {
            return; // The superuser writes everywhere.
        }
        assert_eq!(store.check_place().unwrap_err().code(), "store.read_only");
        set_mode(0o700);
        store.check_place().unwrap();
    }
}
