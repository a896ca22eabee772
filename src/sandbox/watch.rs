//! The first thread of a worker: it looks at the time and memory of the program that another thread executes, and ends
//! the process where the interpreter does not end the program itself.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use monty_types::{BASELINE_MEMORY, LIVE_MEMORY};

use super::protocol::{MEMORY_EXIT, TIME_EXIT, WORKER_GRACE_MS};
use crate::mutex::lock;
use crate::program::ProgramLimits;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(2);

/// The program that is being executed, if one is.
#[derive(Debug, Default)]
pub(super) struct ExecutionWatch {
    watched: Mutex<Option<Watched>>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy)]
struct Watched {
    since: Instant,
    time: Duration,
    memory_bytes: u64,
}

impl ExecutionWatch {
    /// Says that an execution begins.
    pub(super) fn begin(&self, limits: &ProgramLimits) {
        let time = Duration::from_millis(limits.time_ms.saturating_add(WORKER_GRACE_MS));
        LIVE_MEMORY.store(0, Relaxed);
        *self.lock() = Some(Watched { since: Instant::now(), time, memory_bytes: limits.memory_bytes });
        self.changed.notify_one();
    }

    /// Says that the execution ended.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    /// Watches until the process ends.
    #[expect(
        clippy::disallowed_methods,
        reason = "this thread does nothing else than to wait between two looks"
    )]
    pub(super) fn watch(&self, memory: &ProcessMemory) -> ! {
        // What the interpreter compares with its bound is what the worker uses beyond itself.
        BASELINE_MEMORY.store(0, Relaxed);
        loop {
            let watched = *self.lock();
            match watched {
                Some(watched) => {
                    watched.look(memory);
                    std::thread::sleep(INTERVAL);
                }
                None => {
                    let idle = self.changed.wait_while(self.lock(), |watched| watched.is_none());
                    drop(idle.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Watched>> {
        lock(&self.watched)
    }
}

impl Watched {
    /// Tells the interpreter what is used, and ends the process if it is far beyond the bound: the interpreter does not
    /// look while it computes one large value.
    #[expect(
        clippy::disallowed_methods,
        reason = "the other thread cannot be ended otherwise, and owns nothing"
    )]
    fn look(&self, memory: &ProcessMemory) {
        if self.since.elapsed() > self.time {
            std::process::exit(TIME_EXIT);
        }
        let used = memory.grown_bytes();
        LIVE_MEMORY.store(usize::try_from(used).unwrap_or(usize::MAX), Relaxed);
        if used > self.memory_bytes.saturating_add(self.memory_bytes / 4) {
            std::process::exit(MEMORY_EXIT);
        }
    }
}

/// The memory of this process, as the kernel counts it. Where the kernel does not, nothing is known, and only the
/// interpreter's own checks and the limits of the process remain.
#[derive(Debug)]
pub(super) struct ProcessMemory {
    statm: Option<File>,
    page: u64,
    at_start: u64,
}

impl ProcessMemory {
    /// Opens the kernel's figures. What is used now is not counted later.
    pub(super) fn open() -> Self {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let mut memory = Self { statm: File::open("/proc/self/statm").ok(), page, at_start: 0 };
        memory.at_start = memory.pages(1).unwrap_or(0);
        memory
    }

    /// Bytes in memory beyond those at the start.
    pub(super) fn grown_bytes(&self) -> u64 {
        self.pages(1).unwrap_or(0).saturating_sub(self.at_start).saturating_mul(self.page)
    }

    /// Bytes of data, as the limit of the process counts them.
    pub(super) fn data_bytes(&self) -> Option<u64> {
        self.pages(5).map(|pages| pages.saturating_mul(self.page))
    }

    /// The descriptor of the kernel's figures.
    pub(super) fn descriptor(&self) -> Option<i32> {
        self.statm.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// The number of descriptors that stay possible: up to the one of the kernel's figures.
    pub(super) fn next_descriptor(&self) -> u64 {
        self.descriptor()
            .and_then(|descriptor| u64::try_from(descriptor).ok())
            .map_or(3, |descriptor| descriptor + 1)
    }

    /// A figure of `statm`, in pages.
    fn pages(&self, field: usize) -> Option<u64> {
        let mut bytes = [0; 128];
        let read = self.statm.as_ref()?.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(bytes.get(..read)?).ok()?;
        text.split_ascii_whitespace().nth(field)?.parse().ok()
    }
}
