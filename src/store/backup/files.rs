//! Copying and verifying files, and what the file system says about directories.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::super::dir::private_no_follow;
use super::super::error::{Error, ErrorCode};
use super::super::room::free_space;
use super::watch::CopyWatch;

/// How much is read at once, in bytes.
const PIECE_BYTES: usize = 256 * 1024;
/// Room that is left on a disk besides the files themselves, in bytes.
const SPARE_BYTES: u64 = 16 * 1024 * 1024;

/// Length and hash of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileDigest {
    pub(super) bytes: u64,
    /// SHA-256, in lower-case hex.
    pub(super) sha256: String,
}

/// An error about a file outside the data directory.
pub(super) fn file_error(path: &Path, doing: &str, error: &std::io::Error) -> Error {
    let (code, remedy) = match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            (ErrorCode::ReadOnly, "make it accessible for this user")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => (ErrorCode::Full, "free some space"),
        _ => (ErrorCode::Io, "check the disk"),
    };
    Error::new(code, format!("{}: cannot {doing}: {error}; {remedy}", path.display()))
}

/// Opens a file for reading. Symbolic links are not followed. `None` if there is none.
fn open(path: &Path) -> Result<Option<File>, Error> {
    match private_no_follow(File::options().read(true)).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error(path, "read the file", &error)),
    }
}

/// Hashes a file; `None` if there is none.
pub(super) fn digest(path: &Path, watch: &CopyWatch) -> Result<Option<FileDigest>, Error> {
    let Some(file) = open(path)? else { return Ok(None) };
    digest_into(file, path, &mut std::io::sink(), path, watch).map(Some)
}

pub(super) fn sync_and_digest(path: &Path, watch: &CopyWatch) -> Result<FileDigest, Error> {
    let synced = File::options().write(true).open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| file_error(path, "sync the file", &error))?;
    digest(path, watch)?.ok_or_else(|| file_error(path, "read the file", &ErrorKind::NotFound.into()))
}

/// Copies a file to a new one that only this user may read, and syncs it; `None` if there is no file to copy.
pub(super) fn copy(from: &Path, to: &Path, watch: &CopyWatch) -> Result<Option<FileDigest>, Error> {
    let Some(source) = open(from)? else { return Ok(None) };
    let mut target = create(to)?;
    let digest = digest_into(source, from, &mut target, to, watch)?;
    target.sync_all().map_err(|error| file_error(to, "sync the copy", &error))?;
    Ok(Some(digest))
}

fn digest_into(
    mut source: File,
    from: &Path,
    target: &mut impl Write,
    to: &Path,
    watch: &CopyWatch,
) -> Result<FileDigest, Error> {
    let (mut hash, mut bytes, mut piece) = (Sha256::new(), 0_u64, vec![0; PIECE_BYTES]);
    loop {
        watch.check()?;
        let length = match source.read(&mut piece) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(file_error(from, "read the file", &error)),
        };
        let read = piece.get(..length).unwrap_or_default();
        if read.is_empty() {
            return Ok(FileDigest { bytes, sha256: HEXLOWER.encode(&hash.finalize()) });
        }
        hash.update(read);
        target.write_all(read).map_err(|error| file_error(to, "write the copy", &error))?;
        bytes += length as u64;
        watch.advance(length as u64);
    }
}

/// Creates a file that only this user may read.
fn create(path: &Path) -> Result<File, Error> {
    let mut options = File::options();
    options.write(true).create_new(true);
    private_no_follow(&mut options).open(path).map_err(|error| file_error(path, "create the file", &error))
}

/// Writes a new file that only this user may read, and syncs it.
pub(super) fn write_new(path: &Path, content: &[u8]) -> Result<(), Error> {
    let mut file = create(path)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    written.map_err(|error| file_error(path, "write the file", &error))
}

/// Creates a directory that only this user may enter.
pub(super) fn create_dir(path: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Syncs the entries of a directory.
pub(super) fn sync_dir(path: &Path) -> Result<(), Error> {
    // Elsewhere, directories cannot be synced.
    if cfg!(unix) {
        let synced = File::open(path).and_then(|dir| dir.sync_all());
        synced.map_err(|error| file_error(path, "sync the directory", &error))?;
    }
    Ok(())
}

/// The directory that holds `path`; the working directory for a bare name.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What this process may still write on the disk of a directory, in bytes; `None` if its file system does not say.
fn free_bytes(dir: &Path) -> Option<u64> {
    free_space(dir).map(|free| free.usable)
}

/// Returns whether the disk of a directory has at least so many bytes free.
pub(super) fn check_free(dir: &Path, bytes: u64) -> bool {
    free_bytes(dir).is_none_or(|free| free >= bytes)
}

/// Checks that the disk of a directory has room for so many bytes. A file system that does not say has room.
///
/// # Errors
/// `store.full`.
pub(super) fn check_room(dir: &Path, bytes: u64) -> Result<(), Error> {
    let needed = bytes.saturating_add(SPARE_BYTES);
    let Some(free) = free_bytes(dir).filter(|free| *free < needed) else { return Ok(()) };
    let what = format!(
        "the disk of {} has {free} bytes free, and {needed} are needed: free some space, or use another disk",
        dir.display()
    );
    Err(Error::new(ErrorCode::Full, what))
}
