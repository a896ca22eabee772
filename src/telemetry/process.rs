//! Figures of this process, under the names that Prometheus' own clients use. Read when they are asked for: a
//! few files of the kernel and system calls, which take some ten microseconds.
//!
//! Only Linux has them; elsewhere, and if one cannot be read, it is left out.

use super::exposition::Exposition;

/// What the kernel says about this process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct ProcessFigures {
    cpu_seconds: Option<f64>,
    resident_bytes: Option<f64>,
    virtual_bytes: Option<f64>,
    open_files: Option<f64>,
    /// The limit of open files; absent without one.
    max_files: Option<f64>,
    threads: Option<f64>,
    /// Seconds since the Unix epoch.
    started: Option<f64>,
}

/// Adds the figures of this process.
pub fn add_process(to: &mut Exposition) {
    let ProcessFigures {
        cpu_seconds,
        resident_bytes,
        virtual_bytes,
        open_files,
        max_files,
        threads,
        started,
    } = ProcessFigures::read();
    to.process_counter(
        "process_cpu_seconds_total",
        "Processor time of the process in seconds, user and system.",
        cpu_seconds,
    );
    for (name, help, value) in [
        ("process_resident_memory_bytes", "Memory of the process that is in RAM, in bytes.", resident_bytes),
        (
            "process_virtual_memory_bytes",
            "Size of the address space of the process, in bytes.",
            virtual_bytes,
        ),
        ("process_open_fds", "Open file descriptors, connections included.", open_files),
        ("process_max_fds", "The limit of open file descriptors.", max_files),
        ("process_threads", "Threads of the process.", threads),
        ("process_start_time_seconds", "When the process started, in seconds since the Unix epoch.", started),
    ] {
        to.process_gauge(name, help, value);
    }
}

/// The fields of `/proc/PID/stat` (see proc_pid_stat(5)) that are used.
#[cfg(any(target_os = "linux", test))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessStat {
    threads: u64,
    /// Ticks after the boot.
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

#[cfg(any(target_os = "linux", test))]
impl ProcessStat {
    /// Reads the file's text. The program's name is in parentheses and may have any character.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first of them is the third of the file.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            threads: field(20)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// The time of the boot, in seconds since the Unix epoch, of the text of `/proc/stat`.
#[cfg(any(target_os = "linux", test))]
fn boot_seconds(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(not(target_os = "linux"))]
impl ProcessFigures {
    fn read() -> Self {
        Self::default()
    }
}

#[cfg(target_os = "linux")]
impl ProcessFigures {
    fn read() -> Self {
        use std::sync::OnceLock;

        /// It does not change, and `/proc/stat` is long on large machines.
        static STARTED: OnceLock<Option<f64>> = OnceLock::new();
        let stat = std::fs::read_to_string("/proc/self/stat").ok();
        let stat = stat.and_then(|text| ProcessStat::parse(&text));
        let started = STARTED.get_or_init(|| {
            let boot = boot_seconds(&std::fs::read_to_string("/proc/stat").ok()?)?;
            let ticks = rustix::param::clock_ticks_per_second().max(1);
            Some(boot as f64 + stat?.start_ticks as f64 / ticks as f64)
        });
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Self {
            cpu_seconds: Some(cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9),
            resident_bytes: stat.map(|stat| stat.resident_pages as f64 * rustix::param::page_size() as f64),
            virtual_bytes: stat.map(|stat| stat.virtual_bytes as f64),
            open_files: open_files(),
            max_files: limit.current.map(|max| max as f64),
            threads: stat.map(|stat| stat.threads as f64),
            started: *started,
        }
    }
}

/// The number of open file descriptors: since Linux 6.2 it is the size of their directory, before that they are counted.
#[cfg(target_os = "linux")]
fn open_files() -> Option<f64> {
    const FILES: &str = "/proc/self/fd";
    match std::fs::metadata(FILES).ok()?.len() {
        // Without the descriptor that reads the directory.
        0 => Some(std::fs::read_dir(FILES).ok()?.count().saturating_sub(1) as f64),
        files => Some(files as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_whatever_the_program_is_called() {
        let text = "4711 (a) b (c)) S 1 4711 4711 0 -1 4194560 90 0 0 0 7 3 0 0 20 0 12 0 8899 1048576 256 18446744073709551615 1";
        let read =
            ProcessStat { threads: 12, start_ticks: 8899, virtual_bytes: 1_048_576, resident_pages: 256 };
        assert_eq!(ProcessStat::parse(text), Some(read));
        for broken in ["", "4711 (a", "4711 (a) S 1", "1 (a) S 1 1 1 0 -1 1 1 1 1 1 1 1 1 1 1 1 x 0 1 1 1"] {
            assert_eq!(ProcessStat::parse(broken), None, "{broken}");
        }
        assert_eq!(boot_seconds("cpu 1 2\nbtime 1700000000\nprocesses 3\n"), Some(1_700_000_000));
        assert_eq!(boot_seconds("cpu 1 2\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn figures_of_this_process_are_plausible() {
        let figures = ProcessFigures::read();
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        let then = ProcessFigures::read();
        assert!(then.open_files.unwrap() >= 4.0, "three of the system and one of the test");
        drop(file);
        assert!(then.max_files.is_none_or(|max| max >= then.open_files.unwrap()));
        assert!(then.cpu_seconds >= figures.cpu_seconds && figures.cpu_seconds.unwrap() > 0.0);
        assert!(figures.resident_bytes.unwrap() > 1e6 && figures.virtual_bytes > figures.resident_bytes);
        assert!(figures.threads.unwrap() >= 1.0);
        let now = jiff::Timestamp::now().as_second() as f64;
        let age = now - figures.started.unwrap();
        // Boot times are whole seconds, and clocks are set.
        assert!((-5.0..86_400.0).contains(&age), "{age}");
    }
}
