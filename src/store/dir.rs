//! The data directory and the lock that allows one owner at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::error::{Error, ErrorCode};
use super::{backup, permissions};

/// Name of the lock file.
const LOCK: &str = "lock";

/// A data directory owned by this process. The operating system releases the lock when the value is
/// dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: File,
    /// The directory itself, locked too where the file system allows it: who deletes the lock file frees nothing.
    locked_dir: Option<File>,
}

impl DataDir {
    /// Creates the directory if needed (for this user only, mode 0700) and takes its lock: the file `lock`,
    /// which holds the owner's process id and start time as text, and the directory itself. Removes other users' permissions on an
    /// existing directory.
    ///
    /// # Errors
    /// `store.in_use` when another process owns it, with that process's id; `restore.interrupted` when a restore has not
    /// put all of its files there; `store.read_only`, `store.full` and `store.io` when the directory or the lock file
    /// cannot be created.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let dir = Self::lock(path)?;
        backup::refuse_half_restored(&dir.path)?;
        Ok(dir)
    }

    /// The same, also where a restore was interrupted.
    pub(super) fn lock(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        create_data_dir(&path)?;
        let file = path.join(LOCK);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut lock = private_no_follow(&mut options).open(&file).map_err(|e| lock_error(&file, &e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(&path, &mut lock)),
            Err(TryLockError::Error(e)) => return Err(Error::io(&file, "lock the data directory", &e)),
        }
        let dir = File::open(&path).ok();
        let is_locked = dir.as_ref().map(File::try_lock);
        if matches!(is_locked, Some(Err(TryLockError::WouldBlock))) {
            return Err(in_use(&path, &mut lock));
        }
        let text = format!("pid {}\nsince {}\n", std::process::id(), jiff::Timestamp::now());
        lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| lock.write_all(text.as_bytes())).or_else(
            |error| match error.kind() {
                // The lock works without its owner's name in the file.
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Ok(()),
                _ => Err(Error::io(&file, "write the lock file", &error)),
            },
        )?;
        permissions::restrict_permissions(&path);
        Ok(Self { path, lock, locked_dir: dir })
    }

    /// Creates an empty file that only this user can access, unless it exists. SQLite creates its auxiliary
    /// files with the same permissions.
    pub(super) fn create_private_file(&self, name: &str) -> Result<(), Error> {
        let file = self.path.join(name);
        let mut options = File::options();
        options.write(true).create_new(true);
        match private_no_follow(&mut options).open(&file) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(Error::io(&file, "create the database", &error)),
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // An empty file means for `lock_owner` that the directory has no owner.
        let _ = self.lock.set_len(0);
        // Closing the files releases the locks, but not while another thread starts a process: until that process executes
        // its program, it has all descriptors, too.
        for locked in [self.locked_dir.as_ref(), Some(&self.lock)].into_iter().flatten() {
            let _ = locked.unlock();
        }
    }
}

/// Restricts the file to this user whatever the umask, and refuses to follow a symbolic link.
pub(super) fn private_no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits();
        options.mode(0o600).custom_flags(i32::try_from(no_follow).unwrap_or_default());
    }
    options
}

fn lock_error(file: &Path, error: &std::io::Error) -> Error {
    if file.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
        let what = format!(
            "{}: the lock file is a symbolic link, which is not followed: remove it if no process owns the directory",
            file.display()
        );
        return Error::new(ErrorCode::Io, what);
    }
    Error::io(file, "open the lock file", error)
}

fn create_data_dir(path: &Path) -> Result<(), Error> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|e| Error::io(path, "create the data directory", &e))
}

/// Returns whether the data directory exists. Fails if it does not exist and could not be created.
pub(super) fn exists_or_creatable(path: &Path) -> Result<bool, Error> {
    let cannot = |path: &Path, error: &std::io::Error| Error::io(path, "inspect the data directory", error);
    // Checks the directory itself, or else its nearest existing ancestor.
    for (above, at) in path.ancestors().map(or_current_dir).enumerate() {
        let metadata = match at.metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Nothing can be created at or below a dangling link.
                if at.symlink_metadata().is_ok() {
                    let what = "it is a dangling symbolic link";
                    return Err(cannot(at, &std::io::Error::new(ErrorKind::NotFound, what)));
                }
                continue;
            }
            Err(error) => return Err(cannot(at, &error)),
        };
        if !metadata.is_dir() {
            return Err(cannot(at, &ErrorKind::NotADirectory.into()));
        }
        check_writable(at).map_err(|error| cannot(at, &error))?;
        if above > 0 && is_kernel_filesystem(at) {
            let what = "directories cannot be created there: it is a kernel file system";
            return Err(cannot(at, &std::io::Error::new(ErrorKind::Unsupported, what)));
        }
        return Ok(above == 0);
    }
    Ok(false)
}

/// Checks that files can be created in a directory, without creating one.
#[cfg(unix)]
pub(super) fn check_writable(dir: &Path) -> std::io::Result<()> {
    use rustix::fs::{Access, access};
    Ok(access(dir, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(not(unix))]
pub(super) fn check_writable(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Whether a directory is in `/proc` or `/sys`, where not even the superuser can create directories.
#[cfg(target_os = "linux")]
fn is_kernel_filesystem(dir: &Path) -> bool {
    const SYSFS: u64 = 0x6265_6572;
    rustix::fs::statfs(dir).is_ok_and(|found| {
        let kind = u64::try_from(found.f_type).unwrap_or_default();
        kind == u64::try_from(rustix::fs::PROC_SUPER_MAGIC).unwrap_or_default() || kind == SYSFS
    })
}

#[cfg(not(target_os = "linux"))]
fn is_kernel_filesystem(_: &Path) -> bool {
    false
}

/// `.` for the empty path, which is how [`Path::ancestors`] represents the working directory.
fn or_current_dir(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// The current owner of the directory, without taking the lock.
pub(super) fn lock_owner(path: &Path) -> Result<Option<String>, Error> {
    let file = path.join(LOCK);
    // Opened as the owner would open it, so that missing permissions surface here.
    let mut lock = match private_no_follow(File::options().read(true).write(true)).open(&file) {
        Ok(lock) => lock,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(lock_error(&file, &error)),
    };
    // An owner that released the lock has emptied the file. So the lock is tried only if it is held or its
    // owner was killed, which avoids disturbing a process that is just starting.
    if lock.metadata().is_ok_and(|metadata| metadata.len() == 0) {
        return Ok(None);
    }
    match lock.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(describe_owner(&mut lock))),
        Err(TryLockError::Error(error)) => Err(Error::io(&file, "inspect the lock", &error)),
    }
}

/// The owner as the lock file names it.
fn describe_owner(lock: &mut File) -> String {
    let mut text = String::new();
    // The owner may have taken the lock and not yet written its name.
    let _ = lock.take(200).read_to_string(&mut text);
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match (field("pid "), field("since ")) {
        (Some(pid), Some(since)) => format!("process {pid}, since {since}"),
        _ => "another process".to_owned(),
    }
}

fn in_use(path: &Path, lock: &mut File) -> Error {
    Error::new(
        ErrorCode::InUse,
        format!(
            "the data directory {} is in use by {}: stop that process, or name another directory in `store.data_dir`",
            path.display(),
            describe_owner(lock)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_owner_error_names_first_owner_and_remedy() {
        let tmp = tempfile::tempdir().unwrap();
        let first = DataDir::open(tmp.path().join("data")).unwrap();
        let error = DataDir::open(tmp.path().join("data")).unwrap_err();
        assert_eq!(error.code(), "store.in_use");
        let message = error.to_string();
        assert!(message.contains(&first.path().display().to_string()), "{message}");
        assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
        assert!(message.contains("store.data_dir"), "{message}");
    }

    #[test]
    fn directory_is_free_after_owner_drops() {
        let tmp = tempfile::tempdir().unwrap();
        drop(DataDir::open(tmp.path()).unwrap());
        DataDir::open(tmp.path()).unwrap();
    }

    /// A process that another thread starts has the descriptors until it executes its program.
    #[test]
    fn directory_is_free_while_a_started_process_still_has_its_descriptors() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = DataDir::open(tmp.path()).unwrap();
        let inherited = (dir.lock.try_clone().unwrap(), dir.locked_dir.as_ref().map(File::try_clone));
        drop(dir);
        DataDir::open(tmp.path()).unwrap();
        drop(inherited);
    }

    #[cfg(unix)]
    #[test]
    fn deleted_lock_file_does_not_free_the_directory() {
        let tmp = tempfile::tempdir().unwrap();
        let first = DataDir::open(tmp.path()).unwrap();
        std::fs::remove_file(tmp.path().join("lock")).unwrap();
        assert_eq!(DataDir::open(tmp.path()).unwrap_err().code(), "store.in_use");
        drop(first);
        DataDir::open(tmp.path()).unwrap();
    }

    #[test]
    fn stale_lock_file_does_not_block_opening() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("lock"), "pid 1\nsince 2026-01-01T00:00:00Z\n and more text").unwrap();
        let dir = DataDir::open(tmp.path()).unwrap();
        let text = std::fs::read_to_string(dir.path().join("lock")).unwrap();
        assert!(text.starts_with(&format!("pid {}\n", std::process::id())), "{text}");
        assert!(!text.contains("more text"));
    }

    #[cfg(unix)]
    #[test]
    fn new_data_directory_has_private_mode() {
        use std::os::unix::fs::PermissionsExt;
        let tmp = tempfile::tempdir().unwrap();
        let dir = DataDir::open(tmp.path().join("a/b")).unwrap();
        let mode = std::fs::metadata(dir.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn file_in_place_of_directory_is_reported() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("data");
        std::fs::write(&path, "x").unwrap();
        let error = DataDir::open(&path).unwrap_err();
        assert_eq!(error.code(), "store.io");
        assert!(error.to_string().contains(&path.display().to_string()));
    }

    #[cfg(unix)]
    #[test]
    fn unwritable_directory_is_reported() {
        use std::os::unix::fs::PermissionsExt;
        let tmp = tempfile::tempdir().unwrap();
        std::fs::set_permissions(tmp.path(), std::fs::Permissions::from_mode(0o500)).unwrap();
        if std::fs::write(tmp.path().join("probe"), "x").is_ok() {
            return; // The superuser writes everywhere.
        }
        let error = DataDir::open(tmp.path().join("data")).unwrap_err();
        assert_eq!(error.code(), "store.read_only");
    }
}
