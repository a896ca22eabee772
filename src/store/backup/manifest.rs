//! The manifest of a backup: the list of its files with their hashes. Pure.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::error::{Error, ErrorCode};
use super::super::{DATABASE_FILE, DOCUMENT_DIR, schema};
use crate::run::DocumentId;

/// The version of the format of backups that this program writes.
pub const BACKUP_FORMAT: u32 = 1;
/// Name of the file with the manifest.
pub(super) const MANIFEST: &str = "manifest.json";
/// Name of the file with the manifest's hash, as `sha256sum` writes it.
pub(super) const MANIFEST_HASH: &str = "manifest.json.sha256";

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// The version of the format, at most [`BACKUP_FORMAT`].
    pub format: u32,
    /// The version of the program that took it.
    pub version: String,
    /// The schema version of its database.
    pub schema: usize,
    /// When it was taken: what was stored later is not in it.
    pub taken: Timestamp,
    /// How much is in it.
    pub counts: BackupCounts,
    /// All files besides those of the manifest.
    pub files: Vec<BackedUpFile>,
}

/// How much is in a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupCounts {
    /// Runs of all tenants.
    pub runs: u64,
    /// The runs among them that had not ended.
    pub unfinished_runs: u64,
    /// Conversations in which a turn has ended.
    pub conversations: u64,
    /// Documents.
    pub documents: u64,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedUpFile {
    /// `proscenium.db`, or `documents/` and the id of a document.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its content, in lower-case hex.
    pub sha256: String,
}

/// The part of a manifest that every format has.
#[derive(Deserialize)]
struct FormatOnly {
    format: u32,
}

impl BackupManifest {
    /// The content of the two files of the manifest.
    ///
    /// # Errors
    /// `store.failed` if it cannot be written as JSON.
    pub(super) fn to_files(&self) -> Result<(String, String), Error> {
        let mut text = serde_json::to_string_pretty(self).map_err(|error| {
            Error::new(ErrorCode::Failed, format!("the manifest cannot be written as JSON: {error}"))
        })?;
        text.push('\n');
        let hash = format!("{}  {MANIFEST}\n", hash_of(text.as_bytes()));
        Ok((text, hash))
    }

    /// Reads a manifest, given the content of its two files.
    ///
    /// # Errors
    /// `backup.damaged`, `backup.newer_format`, `store.newer_schema`.
    pub(super) fn parse(text: &[u8], hash: &[u8]) -> Result<Self, Error> {
        let named = hash.split(|byte| *byte == b' ').next().unwrap_or_default();
        if named != hash_of(text).as_bytes() {
            return Err(damaged(format!("{MANIFEST} is not what {MANIFEST_HASH} says")));
        }
        let unreadable = |error: serde_json::Error| damaged(format!("{MANIFEST} cannot be read: {error}"));
        let FormatOnly { format } = serde_json::from_slice(text).map_err(unreadable)?;
        if format > BACKUP_FORMAT {
            let what = format!(
                "the backup has format {format}, this program knows up to {BACKUP_FORMAT}: use the newer program that took it"
            );
            return Err(Error::new(ErrorCode::BackupFormat, what));
        }
        let manifest: Self = serde_json::from_slice(text).map_err(unreadable)?;
        let known = schema::MIGRATIONS.len();
        if manifest.schema > known {
            let what = format!(
                "the database of the backup has schema version {}, this program knows up to {known}: use version {} or newer, \
                 which took it",
                manifest.schema, manifest.version
            );
            return Err(Error::new(ErrorCode::NewerSchema, what));
        }
        manifest.check_files()?;
        Ok(manifest)
    }

    /// Checks that the files are those of a data directory, so that nothing is written elsewhere.
    fn check_files(&self) -> Result<(), Error> {
        let mut paths = BTreeSet::new();
        for BackedUpFile { path, sha256, .. } in &self.files {
            if path != DATABASE_FILE && document_of(path).is_none() {
                return Err(damaged(format!("{MANIFEST} names {path:?}, which is not a file of a backup")));
            }
            let is_hash =
                sha256.len() == 64 && sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            if !is_hash || !paths.insert(path.as_str()) {
                return Err(damaged(format!("{MANIFEST} names {path} twice or without a hash")));
            }
        }
        let documents = self.counts.documents;
        if !paths.remove(DATABASE_FILE) || paths.len() as u64 != documents {
            let what = format!("{MANIFEST} does not name one database and {documents} documents");
            return Err(damaged(what));
        }
        Ok(())
    }

    /// The length of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// SHA-256 of the manifest, which names this backup.
    ///
    /// # Errors
    /// `store.failed` if it cannot be written as JSON.
    pub(super) fn sha256(&self) -> Result<String, Error> {
        Ok(hash_of(self.to_files()?.0.as_bytes()))
    }
}

pub(super) fn document_path(id: DocumentId) -> String {
    format!("{DOCUMENT_DIR}/{id}")
}

fn document_of(path: &str) -> Option<DocumentId> {
    let name = path.strip_prefix(DOCUMENT_DIR)?.strip_prefix('/')?;
    // Ids have other spellings, which no backup uses.
    name.parse::<DocumentId>().ok().filter(|id| id.to_string() == name)
}

fn hash_of(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

fn damaged(what: String) -> Error {
    Error::new(ErrorCode::BackupDamaged, format!("the backup is damaged: {what}; use another one"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn manifests() -> impl Strategy<Value = BackupManifest> {
        let files = prop::collection::btree_map(any::<u128>(), any::<(u32, u8)>(), 0..6);
        (any::<u32>(), 0..=schema::MIGRATIONS.len(), files).prop_map(|(seconds, schema, documents)| {
            let file = |path: String, bytes: u32, byte: u8| BackedUpFile {
                path,
                bytes: bytes.into(),
                sha256: hash_of(&[byte]),
            };
            let counts = BackupCounts {
                documents: documents.len() as u64,
                runs: seconds.into(),
                ..BackupCounts::default()
            };
            let documents = documents.into_iter().map(|(id, (bytes, byte))| {
                file(document_path(DocumentId(uuid::Uuid::from_u128(id))), bytes, byte)
            });
            BackupManifest {
                format: BACKUP_FORMAT,
                version: "0.1.0".to_owned(),
                schema,
                taken: Timestamp::from_second(seconds.into()).unwrap(),
                counts,
                files: std::iter::once(file(DATABASE_FILE.to_owned(), 4096, 7)).chain(documents).collect(),
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn manifest_reads_back_equal_and_any_changed_byte_is_found(
            manifest in manifests(), at in any::<prop::sample::Index>(), flip in 1_u8..
        ) {
            let (text, hash) = manifest.to_files().unwrap();
            prop_assert_eq!(BackupManifest::parse(text.as_bytes(), hash.as_bytes()), Ok(manifest));
            let mut changed = text.clone().into_bytes();
            let at_byte = at.index(changed.len());
            changed[at_byte] ^= flip;
            let refused = BackupManifest::parse(&changed, hash.as_bytes()).unwrap_err();
            prop_assert_eq!(refused.code(), "backup.damaged");
            let mut other = hash.into_bytes();
            other[at.index(64)] ^= flip;
            prop_assert_eq!(BackupManifest::parse(text.as_bytes(), &other).unwrap_err().code(), "backup.damaged");
        }
    }

    /// The code with which a changed manifest is refused, although its hash is right.
    fn refused(change: impl FnOnce(&mut BackupManifest)) -> &'static str {
        let database = BackedUpFile { path: DATABASE_FILE.to_owned(), bytes: 1, sha256: hash_of(b"x") };
        let mut manifest = BackupManifest {
            format: BACKUP_FORMAT,
            version: String::new(),
            schema: 1,
            taken: Timestamp::UNIX_EPOCH,
            counts: BackupCounts::default(),
            files: vec![database],
        };
        change(&mut manifest);
        let (text, hash) = manifest.to_files().unwrap();
        BackupManifest::parse(text.as_bytes(), hash.as_bytes()).unwrap_err().code()
    }

    #[test]
    fn foreign_files_and_newer_formats_are_refused() {
        for path in
            ["../../etc/passwd", "/etc/passwd", "documents/../lock", "documents/", "server", "documents"]
        {
            let other = |manifest: &mut BackupManifest| {
                let file = BackedUpFile { path: path.to_owned(), ..manifest.files[0].clone() };
                manifest.files.push(file);
                manifest.counts.documents = 1;
            };
            assert_eq!(refused(other), "backup.damaged", "{path}");
        }
        assert_eq!(refused(|manifest| manifest.files.clear()), "backup.damaged");
        assert_eq!(refused(|manifest| manifest.counts.documents = 1), "backup.damaged");
        assert_eq!(refused(|manifest| manifest.files[0].sha256.clear()), "backup.damaged");
        assert_eq!(refused(|manifest| manifest.files.push(manifest.files[0].clone())), "backup.damaged");
        assert_eq!(refused(|manifest| manifest.format += 1), "backup.newer_format");
        assert_eq!(refused(|manifest| manifest.schema = 99), "store.newer_schema");
    }
}
