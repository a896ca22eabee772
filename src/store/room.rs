//! The space that the data directory takes on its disk, and the free space there.

use std::path::Path;
use std::time::{Duration, Instant};

use super::Store;
use super::error::{Error, ErrorCode};
use crate::mutex::lock;

/// With less free space, no run begins. A log that was checkpointed is written again from its start, so some
/// events still fit on a disk without room; but a run that begins there may have to stop in the middle.
const MIN_FREE_BYTES: u64 = 64 * 1024;

/// With as much free space, it is not read again for [`ROOMY_TIME`]: less than this is written meanwhile.
const ROOMY_BYTES: u64 = 4 * 1024 * 1024 * 1024;
const ROOMY_TIME: Duration = Duration::from_millis(500);

/// The space that the database takes on its disk, in bytes; `None` for what the file system does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// The database without its write-ahead log.
    pub database_bytes: Option<u64>,
    /// The write-ahead log; 0 if there is none.
    pub wal_bytes: Option<u64>,
    /// The bytes that this process may still write.
    pub free_bytes: Option<u64>,
}

impl Store {
    /// Returns what the database takes on its disk, and what is free there. Reads the sizes of two files.
    pub fn disk_usage(&self) -> DiskUsage {
        let wal = std::fs::metadata(self.wal_path());
        DiskUsage {
            database_bytes: std::fs::metadata(self.path()).ok().map(|file| file.len()),
            wal_bytes: match wal {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(0),
                wal => wal.ok().map(|file| file.len()),
            },
            free_bytes: self.free_space().map(|free| free.usable),
        }
    }

    /// Checks that there is room for a run to begin, in a database that is still in its place. A file system that does not say
    /// has room.
    ///
    /// # Errors
    /// `store.full`, `store.moved`.
    pub(crate) fn check_room(&self) -> Result<(), Error> {
        let now = Instant::now();
        let mut roomy_until = lock(&self.inner.roomy_until);
        if roomy_until.is_some_and(|until| now < until) {
            return Ok(());
        }
        self.check_in_place()?;
        // Whether what is reserved for root can be used, only a write can tell.
        let free = self.free_space().map(|free| free.with_reserved);
        *roomy_until = free.filter(|free| *free >= ROOMY_BYTES).and_then(|_| now.checked_add(ROOMY_TIME));
        drop(roomy_until);
        let Some(free) = free.filter(|free| *free < MIN_FREE_BYTES) else { return Ok(()) };
        let message = format!(
            "the disk of {} has {free} bytes free: free some space on the disk of the data directory",
            self.path().display()
        );
        Err(Error::new(ErrorCode::Full, message))
    }

    fn free_space(&self) -> Option<FreeSpace> {
        free_space(self.path().parent().unwrap_or(self.path()))
    }
}

/// The free bytes of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FreeSpace {
    /// The bytes that this process may still write.
    pub(super) usable: u64,
    /// With the blocks that are reserved for root.
    pub(super) with_reserved: u64,
}

/// The free bytes on the disk of a directory; `None` if its file system does not say, as one without blocks.
pub(super) fn free_space(dir: &Path) -> Option<FreeSpace> {
    let disk = rustix::fs::statvfs(dir).ok().filter(|disk| disk.f_blocks > 0)?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    Some(FreeSpace { usable: bytes(disk.f_bavail), with_reserved: bytes(disk.f_bfree) })
}

#[cfg(test)]
mod tests {
    use super::super::tests::fresh;

    #[tokio::test]
    async fn disk_usage_has_the_sizes_of_the_files() {
        let (dir, store) = fresh().await;
        let size = |name: &str| dir.path().join(name).metadata().unwrap().len();
        let usage = store.disk_usage();
        assert_eq!(usage.database_bytes, Some(size("proscenium.db")));
        assert_eq!(usage.wal_bytes, Some(size("proscenium.db-wal")));
        assert!(usage.free_bytes.is_some_and(|free| free > 0));
    }
}
