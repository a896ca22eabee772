//! The process's limit of open files, of which each connection is one.

/// Raises the limit to what the system allows the process, and returns it; `None` where it is unlimited or unknown. If it
/// cannot be raised, the system refuses connections beyond it.
pub fn raise_limit() -> Option<u64> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        getrlimit(Resource::Nofile).current
    }
    #[cfg(not(unix))]
    None
}
