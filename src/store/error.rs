//! Why something could not be stored or read.

use std::path::Path;

use crate::run::Fault;

/// An error of the store: a stable code, and words that name what, where and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: Code,
    message: String,
}

/// The closed set of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// There is nothing stored yet.
    Absent,
    /// A record that cannot be stored as it is: a bug of its writer.
    BadRecord,
    /// Too much waits to be written.
    Busy,
    /// Another writer has been at this stream: an older epoch, or not the next number.
    Conflict,
    /// Another run was accepted under the request's idempotency key.
    Duplicate,
    /// The file is damaged or no database.
    Corrupt,
    /// Anything else that the database said.
    Failed,
    /// The file belongs to another program.
    Foreign,
    /// No space is left.
    Full,
    /// A number is missing from a stream.
    Gap,
    /// Another process owns the data directory.
    InUse,
    /// The disk or the file system failed.
    Io,
    /// Somebody else kept the database locked for too long.
    Locked,
    /// A newer program made the file.
    NewerSchema,
    /// A program that only looks cannot bring the file up to date.
    OlderSchema,
    /// The directory or the file cannot be written or entered.
    ReadOnly,
    /// The run has not ended.
    RunBusy,
    /// A scene's `schema.sql` cannot be applied.
    SceneSchema,
    /// The session still has a run at work.
    SessionBusy,
    /// The journal was stopped, or its actor died.
    Stopped,
    /// A stored event cannot be understood.
    Unreadable,
}

impl Code {
    /// The code as clients and logs see it.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Absent => "store.absent",
            Code::BadRecord => "store.bad_record",
            Code::Busy => "store.busy",
            Code::Conflict => "store.conflict",
            Code::Duplicate => "request.duplicate",
            Code::Corrupt => "store.corrupt",
            Code::Failed => "store.failed",
            Code::Foreign => "store.foreign",
            Code::Full => "store.full",
            Code::Gap => "store.gap",
            Code::InUse => "store.in_use",
            Code::Io => "store.io",
            Code::Locked => "store.locked",
            Code::NewerSchema => "store.newer_schema",
            Code::OlderSchema => "store.older_schema",
            Code::ReadOnly => "store.read_only",
            Code::RunBusy => "store.run_busy",
            Code::SceneSchema => "store.scene_schema",
            Code::SessionBusy => "store.session_busy",
            Code::Stopped => "store.stopped",
            Code::Unreadable => "store.unreadable",
        }
    }
}

impl Error {
    /// An error with its code and its message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Why, from the closed set.
    pub fn kind(&self) -> Code {
        self.code
    }

    /// Whether the same may succeed later, with nothing of it changed: the disk or who else is at it has to
    /// change.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.code, Code::Full | Code::Io | Code::Locked | Code::ReadOnly)
    }

    /// Whether a stream's events themselves are damaged or beyond this program: no retry reads them.
    pub(crate) fn is_of_the_events(&self) -> bool {
        matches!(self.code, Code::Gap | Code::Unreadable)
    }

    /// The stable code, such as `store.in_use`.
    pub fn code(&self) -> &'static str {
        self.code.as_str()
    }

    /// What `path` and the operating system's error amount to.
    pub(crate) fn io(path: &Path, doing: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let path = path.display();
        match error.kind() {
            K::PermissionDenied | K::ReadOnlyFilesystem => Self::new(
                Code::ReadOnly,
                format!(
                    "{path}: cannot {doing}: {error}; make it readable and writable for this user, or name another directory in `store.data_dir`"
                ),
            ),
            K::StorageFull | K::QuotaExceeded => Self::new(
                Code::Full,
                format!(
                    "{path}: cannot {doing}: {error}; free some space, or name a directory on another disk in `store.data_dir`"
                ),
            ),
            _ => Self::new(
                Code::Io,
                format!(
                    "{path}: cannot {doing}: {error}; check the directory named in `store.data_dir` and its disk"
                ),
            ),
        }
    }

    /// What the database said about the file at `path`, with its remedy.
    pub(crate) fn database(path: &Path, doing: &str, error: &sqlx::Error) -> Self {
        let (code, remedy) = classify(error);
        Self::new(code, format!("{}: cannot {doing}: {error}; {remedy}", path.display()))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::new(error.code(), error.message)
    }
}

/// The code and the remedy for an error of the database, by SQLite's primary result codes.
/// `SQLITE_IOERR_SHMSIZE`: there is no room for the index of the log.
const SHM_SIZE: u32 = 4874;

fn classify(error: &sqlx::Error) -> (Code, &'static str) {
    let database = match error {
        sqlx::Error::Database(database) => database,
        sqlx::Error::Io(_) => return (Code::Io, "check the disk of the data directory"),
        sqlx::Error::PoolTimedOut => {
            return (Code::Locked, "every connection stayed in use; try again, or find what holds them");
        }
        sqlx::Error::PoolClosed => return (Code::Stopped, "the store was closed"),
        _ => return (Code::Failed, "see the message"),
    };
    let extended = database.code().and_then(|code| code.parse::<u32>().ok()).unwrap_or_default();
    match extended & 0xff {
        _ if extended == SHM_SIZE => (Code::Full, "free some space on the disk of the data directory"),
        3 | 8 | 14 | 23 => {
            (Code::ReadOnly, "make the directory and its files readable and writable for this user")
        }
        5 | 6 => (Code::Locked, "another program keeps the database locked; close it and try again"),
        10 => (Code::Io, "check the disk of the data directory"),
        11 | 26 => (
            Code::Corrupt,
            "the file is damaged or no database: restore it from a backup, or move it away to begin with an empty one",
        ),
        13 => (Code::Full, "free some space on the disk of the data directory"),
        _ => (Code::Failed, "see the message"),
    }
}
