//! Processor time and memory of this process, as Linux reports them.

use serde::{Deserialize, Serialize};

use super::{Failure, fail};

/// Resource usage.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Milliseconds of processor time, of all threads together.
    pub cpu_ms: f64,
    /// Peak resident memory in MiB.
    pub peak_mib: f64,
}

/// Measures usage since it was created.
pub struct Meter {
    began: f64,
}

/// Milliseconds of one tick of `/proc/self/stat`; the kernel uses 100 ticks per second on every platform.
const TICK_MS: f64 = 10.0;

impl Meter {
    /// Starts measuring and resets the peak of memory.
    pub fn start() -> Result<Self, Failure> {
        // If this is refused, the peak covers the whole life of the process.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Ok(Self { began: cpu_ms()? })
    }

    /// Usage since the start.
    pub fn read(&self) -> Result<Usage, Failure> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().split(' ').next()).ok_or_else(|| fail("no VmHWM"))?;
        Ok(Usage { cpu_ms: cpu_ms()? - self.began, peak_mib: kib.parse::<f64>()? / 1024.0 })
    }
}

fn cpu_ms() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may contain spaces; user and system time are the 12th and 13th field after it.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks: f64 = fields.map(str::parse::<f64>).sum::<Result<_, _>>()?;
    Ok(ticks * TICK_MS)
}
