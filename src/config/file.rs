//! Reads the configuration file.

use std::fs::File;
use std::io::{Error, Read, Result};
use std::path::Path;

/// Maximum size of a configuration file, in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Reads the file's text.
///
/// # Errors
/// Those of the system; for more than 4 MiB; and for a pipe with a name, since opening it could wait for ever for
/// somebody who writes to it. A pipe that this process was given (`/dev/stdin`, `/dev/fd/63`) is read.
pub(super) fn read(path: &Path) -> Result<String> {
    if is_named_pipe(path)? {
        return Err(Error::other("it is a named pipe"));
    }
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Error::other(format!("it has more than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

#[cfg(unix)]
fn is_named_pipe(path: &Path) -> Result<bool> {
    use std::os::unix::fs::FileTypeExt;
    let is_given = path.starts_with("/dev") || path.starts_with("/proc");
    Ok(!is_given && path.metadata()?.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_named_pipe(_: &Path) -> Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large.toml");
        File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(read(&path).unwrap_err().to_string(), "it has more than 4194304 bytes");
        std::fs::write(&path, "[server]").unwrap();
        assert_eq!(read(&path).unwrap(), "[server]");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pipes_and_devices_do_not_block_or_fill_memory() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe.toml");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(read(&pipe).unwrap_err().to_string(), "it is a named pipe");
        assert_eq!(read(Path::new("/dev/null")).unwrap(), "");
        assert!(read(Path::new("/dev/zero")).is_err());
    }
}
