//! Puts restored files into a data directory: by renames, of which the database's is the last.
//!
//! The directory itself keeps its place, since it may be a mount point or a link. Everything is prepared in the directory
//! `restoring` in it. From the moment at which the marker is there, no process opens the data directory; a further restore
//! of the same backup finishes what was begun. A log of the earlier database never stays beside the restored one.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::super::error::{Error, ErrorCode};
use super::super::{DATABASE_FILE, DOCUMENT_DIR, permissions};
use super::files::{create_dir, file_error, sync_dir, write_new};
use super::report::RestoreReport;

/// The file that says that files are being put into place; it holds the report.
const MARKER: &str = "committing";
/// The directory of restored files, and that of the earlier ones.
const NEW: &str = "new";
const OLD: &str = "old";
/// The endings of SQLite's files beside a database.
const AUXILIARY: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Refuses a data directory into which a restore has not put all of its files.
///
/// # Errors
/// `restore.interrupted`.
pub(in crate::store) fn refuse_half_restored(data: &Path) -> Result<(), Error> {
    match data.join(permissions::RESTORE_DIR).join(MARKER).symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        _ => Err(interrupted(data)),
    }
}

pub(super) fn interrupted(data: &Path) -> Error {
    let what = format!(
        "{}: a restore was interrupted while it put its files there: run `proscenium restore` with the same backup again, which \
         finishes it",
        data.display()
    );
    Error::new(ErrorCode::RestoreInterrupted, what)
}

/// The data directory into which a backup is restored.
#[derive(Debug, Clone)]
pub(super) struct RestorePlace {
    data: PathBuf,
}

impl RestorePlace {
    pub(super) fn new(data: &Path) -> Self {
        Self { data: data.to_owned() }
    }

    fn work(&self) -> PathBuf {
        self.data.join(permissions::RESTORE_DIR)
    }

    /// Where the restored files are prepared.
    pub(super) fn prepared(&self) -> PathBuf {
        self.work().join(NEW)
    }

    /// Lists what is stored in the directory, by name.
    pub(super) fn content(&self) -> Vec<String> {
        let database = std::iter::once(String::new()).chain(AUXILIARY.map(str::to_owned));
        let names = database.map(|ending| format!("{DATABASE_FILE}{ending}"));
        let mut found: Vec<String> = names.filter(|name| exists(&self.data.join(name))).collect();
        let documents = std::fs::read_dir(self.data.join(DOCUMENT_DIR));
        if documents.is_ok_and(|mut entries| entries.next().is_some()) {
            found.push(DOCUMENT_DIR.to_owned());
        }
        found
    }

    /// The report of a restore that was interrupted while it put its files into place.
    ///
    /// # Errors
    /// `store.corrupt` if its marker cannot be read.
    pub(super) fn unfinished(&self) -> Result<Option<RestoreReport>, Error> {
        let marker = self.work().join(MARKER);
        let text = match std::fs::read(&marker) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(file_error(&marker, "read the file", &error)),
        };
        let report = serde_json::from_slice(&text).map_err(|error| {
            let what =
                format!("{}: the marker of an interrupted restore cannot be read: {error}", marker.display());
            Error::new(ErrorCode::Corrupt, what)
        })?;
        Ok(Some(report))
    }

    /// Removes what is left of a restore that changed nothing.
    pub(super) fn clear(&self) -> Result<(), Error> {
        match std::fs::remove_dir_all(self.work()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(file_error(&self.work(), "remove what is left of a restore", &error))
            }
            _ => Ok(()),
        }
    }

    /// Creates the empty directory for the restored files.
    ///
    /// # Errors
    /// `store.full`, `store.read_only`, `store.io`.
    pub(super) fn prepare(&self) -> Result<PathBuf, Error> {
        self.clear()?;
        for dir in [self.work(), self.prepared(), self.prepared().join(DOCUMENT_DIR)] {
            create_dir(&dir).map_err(|error| file_error(&dir, "create the directory", &error))?;
        }
        Ok(self.prepared())
    }

    /// Puts the prepared files into place, and earlier ones aside.
    ///
    /// # Errors
    /// `store.full`, `store.io`. The same restore can be repeated then.
    pub(super) fn commit(&self, report: &RestoreReport) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(report).map_err(|error| {
            Error::new(ErrorCode::Failed, format!("the report cannot be written as JSON: {error}"))
        })?;
        write_new(&self.prepared().join(report.file_name()), &text)?;
        sync_dir(&self.prepared())?;
        sync_dir(&self.prepared().join(DOCUMENT_DIR))?;
        let (part, marker) = (self.work().join("marker"), self.work().join(MARKER));
        write_new(&part, &text)?;
        rename(&part, &marker)?;
        sync_dir(&self.work())?;
        sync_dir(&self.data)?;
        self.finish(report)
    }

    /// Continues with what [`RestorePlace::commit`] has begun, wherever it stopped.
    pub(super) fn finish(&self, report: &RestoreReport) -> Result<(), Error> {
        let (new, old) = (self.prepared(), self.work().join(OLD));
        // Once the database is in place, so is everything else.
        if exists(&new.join(DATABASE_FILE)) {
            self.make_old_dir(&old)?;
            for ending in AUXILIARY {
                let name = format!("{DATABASE_FILE}{ending}");
                self.put_aside(&name, &old)?;
            }
            for name in [DOCUMENT_DIR.to_owned(), report.file_name()] {
                if exists(&new.join(&name)) {
                    self.put_aside(&name, &old)?;
                    rename(&new.join(&name), &self.data.join(&name))?;
                    // In this order, whenever the machine fails.
                    sync_dir(&self.data)?;
                }
            }
            self.keep_database(&old)?;
            rename(&new.join(DATABASE_FILE), &self.data.join(DATABASE_FILE))?;
        }
        if let Some(moved_to) = &report.moved_to
            && exists(&old)
        {
            rename(&old, Path::new(moved_to))?;
        }
        sync_dir(&self.data)?;
        let marker = self.work().join(MARKER);
        std::fs::remove_file(&marker).map_err(|error| file_error(&marker, "remove the marker", &error))?;
        self.clear()?;
        sync_dir(&self.data)
    }

    fn make_old_dir(&self, old: &Path) -> Result<(), Error> {
        match create_dir(old) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(file_error(old, "create the directory", &error))
            }
            _ => Ok(()),
        }
    }

    /// Keeps the earlier database under a second name, so that one is always there, or moves it where there are no links.
    fn keep_database(&self, old: &Path) -> Result<(), Error> {
        let (from, to) = (self.data.join(DATABASE_FILE), old.join(DATABASE_FILE));
        if !exists(&from) || exists(&to) {
            return Ok(());
        }
        match std::fs::hard_link(&from, &to) {
            Ok(()) => sync_dir(old),
            Err(_) => self.put_aside(DATABASE_FILE, old),
        }
    }

    /// Moves an earlier file of the data directory aside, if there is one.
    fn put_aside(&self, name: &str, old: &Path) -> Result<(), Error> {
        let from = self.data.join(name);
        if !exists(&from) {
            return Ok(());
        }
        rename(&from, &old.join(name))?;
        sync_dir(old)
    }

    /// Where the earlier files will be kept: a new directory, as the report names it.
    pub(super) fn kept_at(&self, stamp: &str) -> String {
        let mut kept = self.data.join(format!("{}{stamp}", permissions::KEPT_PREFIX));
        while exists(&kept) {
            kept.as_mut_os_string().push("+");
        }
        kept.display().to_string()
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::rename(from, to)
        .map_err(|error| file_error(from, &format!("move it to {}", to.display()), &error))
}
