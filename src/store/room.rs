//! Free space on the disk of the data directory.

use super::Store;
use super::error::{Error, ErrorCode};

/// With less free space, no run begins. A log that was checkpointed is written again from its start, so some
/// events still fit on a disk without room; but a run that begins there may have to stop in the middle.
const MIN_FREE_BYTES: u64 = 64 * 1024;

impl Store {
    /// Whether there is room for a run to begin. A file system that does not say has room.
    ///
    /// # Errors
    /// `store.full`.
    pub(crate) fn check_room(&self) -> Result<(), Error> {
        let Ok(disk) = rustix::fs::statvfs(self.path().parent().unwrap_or(self.path())) else {
            return Ok(());
        };
        // Blocks that are reserved for root count: whether they can be used, only a write can tell.
        let free = disk.f_bfree.saturating_mul(disk.f_frsize);
        if disk.f_blocks == 0 || free >= MIN_FREE_BYTES {
            return Ok(());
        }
        let message = format!(
            "the disk of {} has {free} bytes free: free some space on the disk of the data directory",
            self.path().display()
        );
        Err(Error::new(ErrorCode::Full, message))
    }
}
