//! Processor time and memory of this process, as Linux reports them.

use std::io;

use serde::{Deserialize, Serialize};

/// The resources that a process used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Milliseconds of processor time, of all threads together.
    pub cpu_ms: f64,
    /// Peak resident memory in MiB.
    pub peak_mib: f64,
}

/// Measures usage since it was created.
#[derive(Debug)]
pub struct ProcessMeter {
    began: f64,
}

/// Milliseconds of one tick of `/proc/self/stat`; the kernel uses 100 ticks per second on every platform.
const TICK_MS: f64 = 10.0;

impl ProcessMeter {
    /// Starts measuring and resets the peak of memory.
    ///
    /// # Errors
    /// If the system has no `/proc`.
    pub fn start() -> io::Result<Self> {
        // If this is refused, the peak covers the whole life of the process.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Ok(Self { began: cpu_ms()? })
    }

    /// Usage since the start.
    ///
    /// # Errors
    /// If the system has no `/proc`, or another one than Linux.
    pub fn read(&self) -> io::Result<ProcessUsage> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().split(' ').next()?.parse::<f64>().ok());
        let kib = kib.ok_or_else(|| io::Error::other("/proc/self/status has no VmHWM"))?;
        Ok(ProcessUsage { cpu_ms: cpu_ms()? - self.began, peak_mib: kib / 1024.0 })
    }
}

fn cpu_ms() -> io::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may contain spaces; user and system time are the 12th and 13th field after it.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks = fields.map(str::parse::<f64>).sum::<Result<f64, _>>().map_err(io::Error::other)?;
    Ok(ticks * TICK_MS)
}
