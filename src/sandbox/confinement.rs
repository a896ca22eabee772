//! The rights that a worker gives up before it reads its first program: files, network, other processes, and time and memory
//! beyond a bound. Each is taken by more than one means, as far as the kernel has them, and tried afterwards.

use std::fs::File;
use std::net::UdpSocket;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::watch::ProcessMemory;

/// Bytes of data that a worker may use beyond the bound of its programs: for the frames, and what the allocator keeps.
const SLACK_BYTES: u64 = 96 * 1024 * 1024;

/// Gives up files and network by rules of the kernel, for this thread and those that it starts. Returns what the kernel does
/// not have.
pub(super) fn restrict_files() -> Vec<String> {
    #[cfg(target_os = "linux")]
    match landlocked() {
        Ok(landlock::RulesetStatus::FullyEnforced) => Vec::new(),
        Ok(landlock::RulesetStatus::PartiallyEnforced) => vec!["landlock (newer rules)".to_owned()],
        Ok(landlock::RulesetStatus::NotEnforced) => vec!["landlock".to_owned()],
        Err(error) => vec![format!("landlock ({error})")],
    }
    #[cfg(not(target_os = "linux"))]
    vec!["landlock".to_owned()]
}

#[cfg(target_os = "linux")]
fn landlocked() -> Result<landlock::RulesetStatus, landlock::RulesetError> {
    use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};

    let abi = ABI::V6;
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?;
    Ok(rules.create()?.restrict_self()?.ruleset)
}

/// Bounds what the process may use, and denies all calls of the system but those that computing takes, for all threads.
/// Returns what the kernel does not have.
///
/// # Errors
/// Which limit cannot be set, or what is still possible although it was given up.
pub(super) fn restrict_process(
    memory: &ProcessMemory,
    memory_bytes: u64,
    seconds: u64,
) -> Result<Vec<String>, String> {
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Cpu, seconds)?;
    if let Some(used) = memory.data_bytes() {
        limit(Resource::Data, used.saturating_add(memory_bytes).saturating_add(SLACK_BYTES))?;
    }
    // No further descriptor, whatever it would be of.
    limit(Resource::Nofile, memory.next_descriptor())?;
    limit(Resource::Nproc, 0)?;
    let missing = filter_calls(memory);
    try_what_is_given_up()?;
    Ok(missing)
}

fn limit(resource: Resource, max: u64) -> Result<(), String> {
    setrlimit(resource, Rlimit { current: Some(max), maximum: Some(max) })
        .map_err(|error| format!("the limit {resource:?} cannot be set: {error}"))
}

fn filter_calls(memory: &ProcessMemory) -> Vec<String> {
    #[cfg(target_os = "linux")]
    match filter::apply(memory.descriptor()) {
        Ok(()) => Vec::new(),
        Err(error) => vec![format!("seccomp ({error})")],
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = memory;
        vec!["seccomp".to_owned()]
    }
}

/// Tries to open a file, a socket and a process.
fn try_what_is_given_up() -> Result<(), String> {
    if File::open("/").is_ok() {
        return Err("files can still be opened".to_owned());
    }
    if UdpSocket::bind("127.0.0.1:0").is_ok() {
        return Err("sockets can still be opened".to_owned());
    }
    let process = Command::new("/proc/self/exe").stdin(Stdio::inherit()).stdout(Stdio::inherit()).spawn();
    match process {
        Ok(_) => Err("processes can still be started".to_owned()),
        Err(_) => Ok(()),
    }
}

/// The calls of the system that a worker may make; all others are denied.
#[cfg(target_os = "linux")]
mod filter {
    use std::collections::BTreeMap;

    use seccompiler::{
        BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
        SeccompFilter, SeccompRule,
    };

    /// Calls that may have any arguments.
    const ALLOWED: [i64; 25] = [
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_madvise,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_nanosleep,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_sigaltstack,
        libc::SYS_getrusage,
        libc::SYS_getcpu,
        libc::SYS_rseq,
        libc::SYS_set_robust_list,
        libc::SYS_membarrier,
    ];

    pub(super) fn apply(statm: Option<i32>) -> Result<(), seccompiler::Error> {
        let filter = SeccompFilter::new(
            rules(statm)?,
            SeccompAction::Errno(libc::EPERM.unsigned_abs()),
            SeccompAction::Allow,
            std::env::consts::ARCH.try_into()?,
        )?;
        let filter: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter_all_threads(&filter)
    }

    fn rules(statm: Option<i32>) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.map(|call| (call, Vec::new())).into();
        rules.insert(libc::SYS_read, vec![equal(0, 0)?]);
        rules.insert(libc::SYS_write, vec![equal(0, 1)?, equal(0, 2)?]);
        if let Some(statm) = statm.and_then(|statm| u64::try_from(statm).ok()) {
            rules.insert(libc::SYS_pread64, vec![equal(0, statm)?]);
        }
        // No memory can be made executable.
        let executable = u64::from(libc::PROT_EXEC.unsigned_abs());
        let not_executable = || masked(2, executable, 0);
        rules.insert(libc::SYS_mmap, vec![not_executable()?]);
        rules.insert(libc::SYS_mprotect, vec![not_executable()?]);
        // A process that aborts signals itself.
        let own = u64::from(std::process::id());
        rules.insert(libc::SYS_tgkill, vec![equal(0, own)?]);
        Ok(rules)
    }

    fn equal(argument: u8, value: u64) -> Result<SeccompRule, BackendError> {
        SeccompRule::new(vec![SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            value,
        )?])
    }

    fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompRule, BackendError> {
        let operator = SeccompCmpOp::MaskedEq(mask);
        SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value)?])
    }
}
