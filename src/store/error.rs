//! Errors of the store.

use std::path::Path;

use crate::run::Fault;

/// An error of the store: a stable code, and a message that says what failed, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: ErrorCode,
    message: String,
}

/// The closed set of error codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Nothing is stored yet.
    Absent,
    /// A backup is not what its manifest says.
    BackupDamaged,
    /// A document has no file or a damaged one, so no backup can be made.
    BackupDocument,
    /// A newer version of this program took the backup.
    BackupFormat,
    /// A directory is no backup, or files of it are missing.
    BackupIncomplete,
    /// Another process makes the same backup.
    BackupInProgress,
    /// The backup was stopped before its end.
    BackupInterrupted,
    /// The database's log grew too much while its backup was taken.
    BackupLog,
    /// No backup can be made at this place.
    BackupTarget,
    /// The backup took longer than allowed.
    BackupTimeout,
    /// A record that cannot be stored: a bug of the caller.
    BadRecord,
    /// Too many events wait to be written.
    Busy,
    /// Another writer has written to this stream: the epoch is too old, or the sequence number is not the
    /// next one.
    Conflict,
    /// Another run was accepted with the request's idempotency key.
    Duplicate,
    /// The file is damaged or not a database.
    Corrupt,
    /// The document was deleted.
    DocumentDeleted,
    /// A run that has not ended names the document.
    DocumentInUse,
    /// A document without content.
    DocumentEmpty,
    /// A document that is not UTF-8 text, or has a NUL.
    DocumentEncoding,
    /// The name of a document is not allowed.
    DocumentName,
    /// A document with more bytes than are allowed.
    DocumentTooLarge,
    /// Any other database error.
    Failed,
    /// The file belongs to another program.
    Foreign,
    /// No space is left.
    Full,
    /// A sequence number is missing from a stream.
    Gap,
    /// Another process owns the data directory.
    InUse,
    /// The disk or the file system failed.
    Io,
    /// Another connection or process kept the database locked for too long.
    Locked,
    /// The database was moved or deleted while this process uses it.
    Moved,
    /// A newer version of this program wrote the file.
    NewerSchema,
    /// The file must be migrated, which this connection may not do.
    OlderSchema,
    /// The tenant has as many bytes stored as it may.
    Quota,
    /// The directory or the file cannot be written or entered.
    ReadOnly,
    /// A restore was interrupted while it put its files into the data directory.
    RestoreInterrupted,
    /// The data directory has content, so no backup is restored into it.
    RestoreTarget,
    /// The run has not ended.
    RunBusy,
    /// A scene's `schema.sql` cannot be applied.
    SceneSchema,
    /// The session still has an active run.
    SessionBusy,
    /// The journal was stopped, or its actor died.
    Stopped,
    /// The user has as many documents as are allowed.
    TooManyDocuments,
    /// A stored event cannot be decoded.
    Unreadable,
}

impl ErrorCode {
    /// The code as clients and logs see it.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::Absent => "store.absent",
            ErrorCode::BackupDamaged => "backup.damaged",
            ErrorCode::BackupDocument => "backup.document",
            ErrorCode::BackupFormat => "backup.newer_format",
            ErrorCode::BackupIncomplete => "backup.incomplete",
            ErrorCode::BackupInProgress => "backup.in_progress",
            ErrorCode::BackupInterrupted => "backup.interrupted",
            ErrorCode::BackupLog => "backup.log_too_large",
            ErrorCode::BackupTarget => "backup.target",
            ErrorCode::BackupTimeout => "backup.timeout",
            ErrorCode::BadRecord => "store.bad_record",
            ErrorCode::Busy => "store.busy",
            ErrorCode::Conflict => "store.conflict",
            ErrorCode::Duplicate => "request.duplicate",
            ErrorCode::Corrupt => "store.corrupt",
            ErrorCode::DocumentDeleted => "document.deleted",
            ErrorCode::DocumentInUse => "document.in_use",
            ErrorCode::DocumentEmpty => "document.empty",
            ErrorCode::DocumentEncoding => "document.encoding",
            ErrorCode::DocumentName => "document.name",
            ErrorCode::DocumentTooLarge => "document.too_large",
            ErrorCode::Failed => "store.failed",
            ErrorCode::Foreign => "store.foreign",
            ErrorCode::Full => "store.full",
            ErrorCode::Gap => "store.gap",
            ErrorCode::InUse => "store.in_use",
            ErrorCode::Io => "store.io",
            ErrorCode::Locked => "store.locked",
            ErrorCode::Moved => "store.moved",
            ErrorCode::NewerSchema => "store.newer_schema",
            ErrorCode::OlderSchema => "store.older_schema",
            ErrorCode::Quota => "store.quota",
            ErrorCode::ReadOnly => "store.read_only",
            ErrorCode::RestoreInterrupted => "restore.interrupted",
            ErrorCode::RestoreTarget => "restore.target",
            ErrorCode::RunBusy => "store.run_busy",
            ErrorCode::SceneSchema => "store.scene_schema",
            ErrorCode::SessionBusy => "store.session_busy",
            ErrorCode::Stopped => "store.stopped",
            ErrorCode::TooManyDocuments => "document.too_many",
            ErrorCode::Unreadable => "store.unreadable",
        }
    }
}

impl Error {
    /// An error with this code and message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The code as an enum.
    pub fn kind(&self) -> ErrorCode {
        self.code
    }

    /// Returns whether an unchanged retry may succeed later, once the disk or another process has changed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self.code, ErrorCode::Full | ErrorCode::Io | ErrorCode::Locked | ErrorCode::ReadOnly)
    }

    /// Returns whether a stream's events are damaged or too new for this program, so that no retry can read them.
    pub(crate) fn is_damaged_stream(&self) -> bool {
        matches!(self.code, ErrorCode::Gap | ErrorCode::Unreadable)
    }

    /// The stable code, such as `store.in_use`.
    pub fn code(&self) -> &'static str {
        self.code.as_str()
    }

    /// Converts an operating system error about `path`, with a remedy.
    pub(crate) fn io(path: &Path, doing: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let path = path.display();
        match error.kind() {
            K::PermissionDenied | K::ReadOnlyFilesystem => Self::new(
                ErrorCode::ReadOnly,
                format!(
                    "{path}: cannot {doing}: {error}; make it readable and writable for this user, or name another directory in `store.data_dir`"
                ),
            ),
            K::StorageFull | K::QuotaExceeded => Self::new(
                ErrorCode::Full,
                format!(
                    "{path}: cannot {doing}: {error}; free some space, or name a directory on another disk in `store.data_dir`"
                ),
            ),
            _ => Self::new(
                ErrorCode::Io,
                format!(
                    "{path}: cannot {doing}: {error}; check the directory named in `store.data_dir` and its disk"
                ),
            ),
        }
    }

    /// Converts a database error about the file at `path`, with a remedy.
    pub(crate) fn database(path: &Path, doing: &str, error: &sqlx::Error) -> Self {
        let (code, remedy) = classify(error);
        Self::new(code, format!("{}: cannot {doing}: {error}; {remedy}", path.display()))
    }
}

impl Error {
    /// Converts an error of a connection to the file at `path` that has no thread of its own, with a remedy.
    pub(super) fn sqlite(path: &Path, doing: &str, error: &rusqlite::Error) -> Self {
        let code = match error {
            rusqlite::Error::SqliteFailure(failure, _) => failure.extended_code,
            _ => 0,
        };
        let (code, remedy) = classify_code(u32::try_from(code).unwrap_or_default());
        Self::new(code, format!("{}: cannot {doing}: {error}; {remedy}", path.display()))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::new(error.code(), error.message)
    }
}

/// `SQLITE_IOERR_SHMSIZE`: no disk space for the index of the write-ahead log.
const SHM_SIZE: u32 = 4874;

/// The code and the remedy of a database error, by SQLite's primary result code.
fn classify(error: &sqlx::Error) -> (ErrorCode, &'static str) {
    let database = match error {
        sqlx::Error::Database(database) => database,
        sqlx::Error::Io(_) => return (ErrorCode::Io, "check the disk of the data directory"),
        sqlx::Error::PoolTimedOut => {
            return (
                ErrorCode::Locked,
                "every connection stayed in use; try again, or find what holds the connections",
            );
        }
        sqlx::Error::PoolClosed => return (ErrorCode::Stopped, "the store was closed"),
        _ => return (ErrorCode::Failed, "see the message"),
    };
    classify_code(database.code().and_then(|code| code.parse::<u32>().ok()).unwrap_or_default())
}

/// The same for an extended result code of SQLite.
fn classify_code(extended: u32) -> (ErrorCode, &'static str) {
    match extended & 0xff {
        _ if extended == SHM_SIZE => (ErrorCode::Full, "free some space on the disk of the data directory"),
        3 | 8 | 14 | 23 => {
            (ErrorCode::ReadOnly, "make the directory and its files readable and writable for this user")
        }
        5 | 6 => (ErrorCode::Locked, "another program keeps the database locked; close it and try again"),
        10 => (ErrorCode::Io, "check the disk of the data directory"),
        11 | 26 => (
            ErrorCode::Corrupt,
            "the file is damaged or not a database: restore it from a backup, or move it away to start with an empty one",
        ),
        13 => (ErrorCode::Full, "free some space on the disk of the data directory"),
        _ => (ErrorCode::Failed, "see the message"),
    }
}
