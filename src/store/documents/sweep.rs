//! Cleaning up after a crash, and after files that were lost.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::super::error::Error;
use super::content::blocking;
use super::erase::delete_rows;
use super::upload::PART;
use super::{DocumentOwner, Documents};
use crate::run::{DocumentId, TenantId};

/// What was found in the directory of documents.
#[derive(Debug, Default)]
struct FoundFiles {
    /// Files of whole documents.
    whole: BTreeSet<DocumentId>,
    /// Files of documents that were being uploaded.
    parts: Vec<PathBuf>,
    /// Whether the directory is there.
    exists: bool,
}

impl Documents {
    /// Makes files and rows agree, before anything else uses them: removes what interrupted uploads and deletions left,
    /// and the rows of documents whose file is gone. Other files are not touched, and if the whole directory is gone (as
    /// after a database was restored without it), neither are the rows. What cannot be done is logged.
    pub(in crate::store) async fn sweep(&self) {
        if let Err(error) = self.try_sweep().await {
            tracing::warn!(code = error.code(), %error, "documents were not cleaned up; the next start tries again");
        }
    }

    async fn try_sweep(&self) -> Result<(), Error> {
        let dir = self.dir();
        let found = blocking(move || find_files(&dir)).await?;
        let rows: Vec<(String, String)> = sqlx::query_as("SELECT id, tenant FROM documents")
            .fetch_all(self.store.pool())
            .await
            .map_err(|e| self.read_error(&e))?;
        let mut known = BTreeSet::new();
        for (id, tenant) in rows {
            let (Ok(id), Ok(tenant)) = (id.parse::<DocumentId>(), TenantId::new(&tenant)) else { continue };
            known.insert(id);
            if !found.exists {
                continue;
            }
            if !found.whole.contains(&id) {
                self.delete_without_file(&tenant, id).await?;
            }
        }
        if !found.exists && !known.is_empty() {
            let (path, documents) = (self.dir().display().to_string(), known.len());
            tracing::error!(
                path,
                documents,
                "the directory of documents is gone, and they cannot be read: restore it"
            );
        }
        let orphans = found.whole.difference(&known).map(|id| self.file(*id));
        let orphans: Vec<PathBuf> = orphans.chain(found.parts).collect();
        if orphans.is_empty() {
            return Ok(());
        }
        tracing::info!(
            files = orphans.len(),
            "removing files of documents that were not stored or are deleted"
        );
        blocking(move || {
            let remove = |path: &PathBuf| match std::fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(Error::io(path, "remove the file of a document", &error))
                }
                _ => Ok(()),
            };
            orphans.iter().try_for_each(remove)
        })
        .await
    }

    /// Deletes the row of a document whose file is gone.
    async fn delete_without_file(&self, tenant: &TenantId, id: DocumentId) -> Result<(), Error> {
        let doing = "delete the row of a document without a file";
        let failed = |e| Error::database(self.store.path(), doing, &e);
        let mut writing = self.store.writer(doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        let mut tx = sqlx::Connection::begin_with(connection, "BEGIN IMMEDIATE").await.map_err(failed)?;
        delete_rows(&mut tx, &DocumentOwner::anyone(tenant), id).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        tracing::warn!(%tenant, document = %id, "the file of a document is gone: the document was deleted");
        Ok(())
    }
}

fn find_files(dir: &Path) -> Result<FoundFiles, Error> {
    let failed = |error: std::io::Error| Error::io(dir, "read the directory of documents", &error);
    let mut found = FoundFiles::default();
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(failed(error)),
    };
    found.exists = true;
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        // Ids have other spellings, which this program does not use for files.
        let id = |name: &str| name.parse::<DocumentId>().ok().filter(|id| id.to_string() == name);
        let part = name.strip_suffix(PART).and_then(|name| name.strip_suffix('.'));
        if let Some(id) = id(name) {
            found.whole.insert(id);
        } else if part.and_then(id).is_some() {
            found.parts.push(entry.path());
        }
    }
    Ok(found)
}
