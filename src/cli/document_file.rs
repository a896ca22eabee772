//! A file on this machine that becomes a document.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use futures::{Stream, StreamExt};
use proscenium::run::DocumentMedia;
use proscenium::store::{AddedDocument, DocumentUpload, NewDocument};
use proscenium::{Engine, UploadedDocument};

use super::failure::Failure;
use super::text::one_line;

/// How much is read at once, in bytes.
const PIECE_BYTES: usize = 256 * 1024;

/// An open file.
#[derive(Debug)]
pub struct DocumentFile {
    /// The name of the document.
    pub name: String,
    /// Its kind, by the ending of its name.
    pub media: DocumentMedia,
    file: File,
}

impl DocumentFile {
    /// Opens a file. The document is named after it, or as `name` says.
    ///
    /// # Errors
    /// `document.file` if it cannot be opened.
    pub fn open(path: &Path, name: Option<&str>) -> Result<Self, Failure> {
        let own = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.map(str::to_owned).or(own).unwrap_or_default();
        let failed = |error: io::Error| {
            let what = format!("{}: the file cannot be read: {error}", one_line(&path.to_string_lossy()));
            Failure::usage("document.file", what)
        };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        Ok(Self { media: DocumentMedia::of_file(&name), name, file })
    }

    /// Its content, read on threads for blocking work.
    pub fn pieces(self) -> impl Stream<Item = io::Result<Vec<u8>>> + Send + 'static {
        futures::stream::try_unfold(self.file, |mut file| async move {
            let read = tokio::task::spawn_blocking(move || {
                let mut piece = vec![0; PIECE_BYTES];
                let length = file.read(&mut piece)?;
                piece.truncate(length);
                Ok::<_, io::Error>((piece, file))
            });
            let (piece, file) = read.await.map_err(io::Error::other)??;
            Ok((!piece.is_empty()).then_some((piece, file)))
        })
    }

    /// Writes its content into an upload, and stores that.
    ///
    /// # Errors
    /// `document.file`, and those of the store.
    pub async fn store(self, mut upload: DocumentUpload) -> Result<AddedDocument, Failure> {
        let name = self.name.clone();
        let mut pieces = std::pin::pin!(self.pieces());
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| {
                Failure::new(
                    "document.file",
                    format!("{}: the file cannot be read: {error}", one_line(&name)),
                )
            })?;
            upload.write(&piece).await?;
        }
        Ok(upload.finish().await?)
    }

    /// Adds it to the documents of an engine's default user.
    ///
    /// # Errors
    /// As [`DocumentFile::store`].
    pub async fn add_to(self, engine: &Engine) -> Result<UploadedDocument, Failure> {
        let (tenant, user) = engine.default_principal();
        let new = NewDocument { tenant, user, name: self.name.clone(), media: self.media };
        let upload = engine.begin_document(new).await;
        let upload = upload.map_err(|fault| Failure::new(&fault.code, fault.message))?;
        Ok(self.store(upload).await?.document.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn file_is_read_in_pieces_and_named_after_itself() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("Notes.MD");
        std::fs::write(&path, vec![b'x'; PIECE_BYTES + 1]).unwrap();
        let file = DocumentFile::open(&path, None).unwrap();
        assert_eq!((file.name.as_str(), file.media), ("Notes.MD", DocumentMedia::Markdown));
        let pieces: Vec<usize> = file.pieces().map(|piece| piece.unwrap().len()).collect().await;
        assert_eq!(pieces.iter().sum::<usize>(), PIECE_BYTES + 1);
        assert_eq!(DocumentFile::open(&path, Some("plain")).unwrap().media, DocumentMedia::Text);
        for wrong in [tmp.path().to_owned(), tmp.path().join("none")] {
            assert_eq!(DocumentFile::open(&wrong, None).unwrap_err().code, "document.file");
        }
    }
}
