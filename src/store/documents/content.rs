//! Reading the content of documents, a part at a time.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::super::error::{Error, ErrorCode};
use super::DocumentRow;
use crate::run::DocumentText;

/// Maximum number of bytes that one read returns.
pub const MAX_READ_BYTES: u64 = 1024 * 1024;

/// A document that can be read. It holds no file open: once the document is deleted, reads fail.
#[derive(Debug, Clone)]
pub struct OpenDocument {
    row: DocumentRow,
    path: PathBuf,
}

impl OpenDocument {
    pub(super) fn new(path: PathBuf, row: DocumentRow) -> Self {
        Self { row, path }
    }

    /// Returns what is known of it.
    pub fn row(&self) -> &DocumentRow {
        &self.row
    }

    /// The bytes of `range`, as far as the document reaches, and at most [`MAX_READ_BYTES`].
    ///
    /// # Errors
    /// `document.deleted` if it no longer exists; `store.corrupt` if its file is shorter than it was; `store.io`.
    pub async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let end = range.end.min(self.row.bytes).min(range.start.saturating_add(MAX_READ_BYTES));
        let Some(length) = end.checked_sub(range.start).filter(|length| *length > 0) else {
            return Ok(Vec::new());
        };
        let (path, start) = (self.path.clone(), range.start);
        // What is bounded by MAX_READ_BYTES fits.
        let length = usize::try_from(length).unwrap_or_default();
        blocking(move || read_at(&path, start, length)).await
    }

    /// The characters of `range`, at most [`MAX_READ_BYTES`] of them: those that the range cuts are left out.
    ///
    /// # Errors
    /// As [`OpenDocument::read`].
    pub async fn text(&self, range: Range<u64>) -> Result<DocumentText, Error> {
        let bytes = self.read(range.clone()).await?;
        DocumentText::of(range.start, &bytes)
            .ok_or_else(|| damaged(&self.path, "it is not the text that was stored"))
    }
}

fn read_at(path: &Path, start: u64, length: usize) -> Result<Vec<u8>, Error> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => {
            Error::new(ErrorCode::DocumentDeleted, "the document no longer exists: it was deleted")
        }
        ErrorKind::UnexpectedEof => damaged(path, "it is shorter than what was stored"),
        _ => Error::io(path, "read a document", &error),
    };
    let mut file = File::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn damaged(path: &Path, what: &str) -> Error {
    let message = format!("{}: the file of a document is damaged: {what}; add it again", path.display());
    Error::new(ErrorCode::Corrupt, message)
}

/// Runs file operations on a thread for blocking work.
pub(in crate::store) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Error::new(ErrorCode::Stopped, "the process is ending")))
}
