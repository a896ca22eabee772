//! Backups: a copy of the database and the documents as they were at one moment, taken while a server uses them, and
//! restored.
//!
//! **Invariants:** a backup is whole or not there. A restore changes nothing before the whole backup was verified, and a
//! directory that it did not finish is opened by nothing else. After a restore, no unfinished run does anything before a
//! person has seen to it.

mod changes;
mod commit;
mod confirmations;
mod database;
mod files;
mod keys;
mod manifest;
mod partial;
mod report;
mod restore;
mod take;
#[cfg(test)]
mod tests;
mod watch;

pub(super) use commit::refuse_half_restored;
pub use manifest::{BACKUP_FORMAT, BackedUpFile, BackupCounts, BackupManifest};
pub use report::{
    ChangeSinceKind, ChangedSince, ChangesSince, LaterRun, RestoreReport, RestoredRun, SpentSince,
    UnknownSince,
};
pub use restore::{RestoreOptions, restore_backup, verify_backup};
pub use take::{BackupOptions, take_backup};
pub use watch::{BackupProgress, ProgressSink};
