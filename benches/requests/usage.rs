//! Processor time and memory of this process, as Linux tells them.

use serde::{Deserialize, Serialize};

use super::{Failure, fail};

/// What was used.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Milliseconds of processor time, of all threads together.
    pub cpu_ms: f64,
    /// The most memory that was resident, in MiB.
    pub peak_mib: f64,
}

/// Reads what was used since it was made.
pub struct Meter {
    began: f64,
}

/// Milliseconds of one tick of `/proc/self/stat`; the kernel shows 100 in a second everywhere.
const TICK_MS: f64 = 10.0;

impl Meter {
    /// Begins to count; the peak of memory is forgotten.
    pub fn start() -> Result<Self, Failure> {
        // Where this is refused, the peak is that of the whole life.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Ok(Self { began: cpu_ms()? })
    }

    /// What was used since.
    pub fn read(&self) -> Result<Usage, Failure> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().split(' ').next()).ok_or_else(|| fail("no VmHWM"))?;
        Ok(Usage { cpu_ms: cpu_ms()? - self.began, peak_mib: kib.parse::<f64>()? / 1024.0 })
    }
}

fn cpu_ms() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may hold blanks; user and system time are the 12th and 13th field behind it.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks: f64 = fields.map(str::parse::<f64>).sum::<Result<_, _>>()?;
    Ok(ticks * TICK_MS)
}
