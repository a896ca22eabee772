//! File permissions of a data directory: only its user may read it.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// Names of the files that this program creates there, besides the database files.
const OWN_FILE_NAMES: [&str; 4] = ["lock", "server", "server.new", "chat_history"];

/// Name of the directory in which a restore prepares its files.
pub(super) const RESTORE_DIR: &str = "restoring";
/// The prefix of directories that keep what was there before a restore.
pub(super) const KEPT_PREFIX: &str = "before-restore-";
pub(super) const REPORT_PREFIX: &str = "restored-";

fn is_own(name: &str) -> bool {
    OWN_FILE_NAMES.contains(&name)
        || name.starts_with(super::DATABASE_FILE)
        || name.starts_with(REPORT_PREFIX)
}

fn is_own_dir(name: &str) -> bool {
    name == super::DOCUMENT_DIR || name == RESTORE_DIR || name.starts_with(KEPT_PREFIX)
}

/// This program's files in a data directory.
struct OwnFiles {
    /// The directory itself and the files of this program.
    own: Vec<(PathBuf, Metadata)>,
    /// Whether the directory holds other files, too, and is not exclusively this program's.
    shared: bool,
}

/// Lists the files; none if the directory cannot be read.
fn list_own_files(dir: &Path) -> OwnFiles {
    let mut content = OwnFiles { own: Vec::new(), shared: false };
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        // For a symbolic link, this is the metadata of the link.
        let Ok(metadata) = entry.metadata() else { continue };
        let name = entry.file_name();
        if metadata.is_dir() && name.to_str().is_some_and(is_own_dir) {
            // Its own mode keeps other users from the files in it.
            content.own.push((entry.path(), metadata));
        } else if name.to_str().is_some_and(is_own) {
            if metadata.is_file() {
                content.own.push((entry.path(), metadata));
            }
        } else {
            content.shared = true;
        }
    }
    if let Ok(metadata) = dir.metadata().map(|metadata| (!content.shared).then_some(metadata))
        && let Some(metadata) = metadata
    {
        content.own.push((dir.to_owned(), metadata));
    }
    content
}

/// The paths of the data directory at `dir` that other users may access, with their modes. The directory
/// itself is omitted if it also holds other files.
#[cfg(unix)]
pub fn exposed_files(dir: &Path) -> Vec<(PathBuf, u32)> {
    use std::os::unix::fs::PermissionsExt;
    let modes = list_own_files(dir)
        .own
        .into_iter()
        .map(|(path, metadata)| (path, metadata.permissions().mode() & 0o777));
    modes.filter(|(_, mode)| mode & 0o077 != 0).collect()
}

/// Empty: this platform has no file modes.
#[cfg(not(unix))]
pub fn exposed_files(_: &Path) -> Vec<(PathBuf, u32)> {
    Vec::new()
}

/// Removes the access of other users. Files owned by another user cannot be changed; `check` reports them.
#[cfg(unix)]
pub(super) fn restrict_permissions(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    for (path, mode) in exposed_files(dir) {
        let private = std::fs::Permissions::from_mode(mode & 0o700);
        match std::fs::set_permissions(&path, private) {
            Ok(()) => {
                tracing::warn!(path = %path.display(), mode = %format!("{mode:o}"), "removed other users' access to this path")
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "other users can access this path, and the permissions could not be changed")
            }
        }
    }
}

#[cfg(not(unix))]
pub(super) fn restrict_permissions(_: &Path) {}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::tests::open;
    use super::super::{DATABASE_FILE, DataDir, inspect};
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[tokio::test]
    async fn existing_directory_and_files_become_private() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("data");
        std::fs::create_dir(&dir).unwrap();
        set(&dir, 0o755);
        for name in ["lock", DATABASE_FILE, "server"] {
            std::fs::write(dir.join(name), "").unwrap();
            set(&dir.join(name), 0o644);
        }
        assert_eq!(exposed_files(&dir).len(), 4);
        let store = open(&dir).await;
        assert_eq!(exposed_files(&dir), []);
        assert_eq!((mode(&dir), mode(&dir.join(DATABASE_FILE))), (0o700, 0o600));
        // SQLite's auxiliary files, too.
        for name in ["proscenium.db-wal", "proscenium.db-shm", "lock"] {
            assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
        }
        store.close().await;
    }

    #[tokio::test]
    async fn shared_directory_keeps_its_mode() {
        let tmp = tempfile::tempdir().unwrap();
        set(tmp.path(), 0o755);
        std::fs::write(tmp.path().join("index.html"), "").unwrap();
        set(&tmp.path().join("index.html"), 0o644);
        let store = open(tmp.path()).await;
        assert_eq!((mode(tmp.path()), mode(&tmp.path().join("index.html"))), (0o755, 0o644));
        assert_eq!(mode(&tmp.path().join(DATABASE_FILE)), 0o600);
        store.close().await;
    }

    #[tokio::test]
    async fn symbolic_link_as_lock_file_is_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("data");
        std::fs::create_dir(&dir).unwrap();
        let other = tmp.path().join("other");
        std::fs::write(&other, "keep this").unwrap();
        symlink(&other, dir.join("lock")).unwrap();
        for error in [DataDir::open(&dir).unwrap_err(), inspect(&dir).await.unwrap_err()] {
            assert_eq!(error.code(), "store.io");
            assert!(error.to_string().contains("symbolic link"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "keep this");
    }
}
