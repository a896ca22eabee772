//! Read-only inspection of a data directory: whether it can be used.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

use super::error::{Error, ErrorCode};
use super::{BUSY_TIMEOUT, DATABASE_FILE, backup, dir, schema};

/// Largest file that is fully checked for damage, in bytes.
const MAX_CHECKED_BYTES: u64 = 256 * 1024 * 1024;

/// The report on a usable data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDirReport {
    /// The current owner as text: `process 12, since …`.
    pub owner: Option<String>,
    /// What the directory contains.
    pub contents: DataDirContents,
    /// The schema version that this program needs.
    pub needed: usize,
    /// Number of valid keys that were created before roles existed and whose role has not been set since.
    pub migrated_keys: u64,
}

/// The contents of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataDirContents {
    /// Nothing yet: the database is created on first use.
    Empty,
    /// A database with this schema version, at most the program's own. The next owner migrates an older one.
    Schema(usize),
}

/// Inspects the data directory at `path` without creating, changing or locking anything and without
/// disturbing another process. If a killed process left a log, SQLite creates an index file beside it. A
/// database without an owner is checked for damage, unless it is large.
///
/// # Errors
/// The error with which [`super::DataDir::open`] or [`super::Store::open`] would refuse it:
/// `store.newer_schema`, `store.foreign`, `store.corrupt`, `store.read_only`, `store.io`.
pub async fn inspect(path: &Path) -> Result<DataDirReport, Error> {
    let needed = schema::MIGRATIONS.len();
    if !dir::exists_or_creatable(path)? {
        return Ok(DataDirReport { owner: None, contents: DataDirContents::Empty, needed, migrated_keys: 0 });
    }
    backup::refuse_half_restored(path)?;
    let owner = dir::lock_owner(path)?;
    let file = path.join(DATABASE_FILE);
    let size = match std::fs::File::options().read(true).write(true).open(&file).and_then(|f| f.metadata()) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(DataDirReport { owner, contents: DataDirContents::Empty, needed, migrated_keys: 0 });
        }
        Err(error) => return Err(Error::io(&file, "open the database", &error)),
    };
    // Changes not yet checkpointed by a process that was killed or is running.
    let apart = path.join(format!("{DATABASE_FILE}-wal")).metadata().is_ok_and(|wal| wal.len() > 0);
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .read_only(true)
        // Otherwise SQLite would create files beside the database.
        .immutable(owner.is_none() && !apart)
        .busy_timeout(BUSY_TIMEOUT);
    let failed = |error| Error::database(&file, "read the database", &error);
    let mut connection = SqliteConnection::connect_with(&options).await.map_err(failed)?;
    let version = schema::version(&mut connection, &file, schema::MIGRATIONS).await;
    let sound = match &version {
        Ok(_) if owner.is_none() && size <= MAX_CHECKED_BYTES => {
            check_integrity(&mut connection, &file).await
        }
        _ => Ok(()),
    };
    let migrated_keys = match (&version, &sound) {
        (Ok(version), Ok(())) => count_migrated(&mut connection, *version).await,
        _ => Ok(0),
    };
    // Nothing was written, so a failed close loses nothing.
    let _ = connection.close().await;
    let version = version?;
    sound?;
    let migrated_keys = migrated_keys.map_err(failed)?;
    Ok(DataDirReport { owner, contents: DataDirContents::Schema(version), needed, migrated_keys })
}

/// The schema version that added keys.
const KEYS_VERSION: usize = 2;
/// The schema version that added roles to keys.
const ROLES_VERSION: usize = 9;

/// The number of keys created before roles existed: all keys, if the schema has no roles yet.
async fn count_migrated(connection: &mut SqliteConnection, version: usize) -> Result<u64, sqlx::Error> {
    let sql = match version {
        ROLES_VERSION.. => "SELECT count(*) FROM api_keys WHERE revoked IS NULL AND role_migrated",
        KEYS_VERSION.. => "SELECT count(*) FROM api_keys WHERE revoked IS NULL",
        _ => return Ok(0),
    };
    let count: i64 = sqlx::query_scalar(sql).fetch_one(connection).await?;
    Ok(u64::try_from(count).unwrap_or_default())
}

/// Runs SQLite's integrity check.
async fn check_integrity(connection: &mut SqliteConnection, file: &Path) -> Result<(), Error> {
    let report: String = sqlx::query_scalar("PRAGMA quick_check(1)")
        .fetch_one(connection)
        .await
        .map_err(|error| Error::database(file, "read the database", &error))?;
    if report == "ok" {
        return Ok(());
    }
    let first = report.lines().find(|line| !line.starts_with("***")).unwrap_or(&report);
    let what = format!(
        "{}: the database is damaged: {first}; restore it from a backup, or move it away to start with an empty one",
        file.display()
    );
    Err(Error::new(ErrorCode::Corrupt, what))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::{fresh, open, tenant};
    use super::super::{DataDir, Store};
    use super::*;

    /// The files of a directory with their contents.
    fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
        let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
    }

    /// Inspects, and asserts that no file has changed.
    async fn inspect_unchanged(dir: &Path) -> Result<DataDirReport, Error> {
        let before = files(dir);
        let standing = inspect(dir).await;
        assert!(files(dir) == before, "inspection changes nothing");
        standing
    }

    fn schema(version: usize) -> DataDirContents {
        DataDirContents::Schema(version)
    }

    #[tokio::test]
    async fn inspection_leaves_directory_unchanged() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("a/b");
        assert_eq!(inspect(&dir).await.unwrap().contents, DataDirContents::Empty);
        assert!(!tmp.path().join("a").exists(), "nothing is created");
        let store = open(&dir).await;
        store.create_key(&tenant(), "u", "").await.unwrap();
        let owned = inspect(&dir).await.unwrap();
        assert!(owned.owner.unwrap().contains(&format!("process {}", std::process::id())));
        assert_eq!(owned.contents, schema(owned.needed));
        store.close().await;
        let free = inspect_unchanged(&dir).await.unwrap();
        assert_eq!((free.owner, free.contents, free.migrated_keys), (None, schema(free.needed), 0));
    }

    #[tokio::test]
    async fn inspection_sees_and_keeps_files_of_killed_process() {
        let tmp = tempfile::tempdir().unwrap();
        let copy = tempfile::tempdir().unwrap();
        let store = open(tmp.path()).await;
        store.create_key(&tenant(), "u", "").await.unwrap();
        // As after a kill: even the schema may be only in the log.
        for name in [DATABASE_FILE, "proscenium.db-wal"] {
            std::fs::copy(tmp.path().join(name), copy.path().join(name)).unwrap();
        }
        std::fs::write(copy.path().join("lock"), "pid 1\nsince 2026-01-01T00:00:00Z\n").unwrap();
        let before = files(copy.path());
        let found = inspect(copy.path()).await.unwrap();
        assert_eq!((found.owner, found.contents), (None, schema(found.needed)));
        let after = files(copy.path());
        assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)));
        store.close().await;
    }

    #[tokio::test]
    async fn older_schema_is_reported_newer_and_foreign_are_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let owner = DataDir::open(tmp.path()).unwrap();
        let old = Store::open_with(owner, &schema::MIGRATIONS[..2]).await.unwrap();
        let key = "INSERT INTO api_keys (id, tenant, user, label, hash, created) \
                   VALUES ('0123456789abcdef', 'acme', 'u', '', zeroblob(32), 0)";
        sqlx::query(key).execute(old.pool()).await.unwrap();
        old.close().await;
        let found = inspect_unchanged(tmp.path()).await.unwrap();
        assert_eq!((found.contents, found.migrated_keys), (schema(2), 1));
        for (pragma, code) in
            [("user_version = 99", "store.newer_schema"), ("application_id = 7", "store.foreign")]
        {
            let options = SqliteConnectOptions::new().filename(tmp.path().join(DATABASE_FILE));
            let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
            sqlx::raw_sql(sqlx::AssertSqlSafe(format!("PRAGMA {pragma}")))
                .execute(&mut connection)
                .await
                .unwrap();
            connection.close().await.unwrap();
            let refused = inspect_unchanged(tmp.path()).await.unwrap_err();
            assert_eq!(refused.code(), code);
            let opened = Store::open(DataDir::open(tmp.path()).unwrap()).await.unwrap_err();
            assert_eq!(opened.code(), code);
        }
    }

    #[tokio::test]
    async fn inspection_finds_damage_that_opening_misses() {
        let (tmp, store) = fresh().await;
        for _ in 0..200 {
            store.create_key(&tenant(), "u", &"x".repeat(100)).await.unwrap();
        }
        store.close().await;
        assert!(inspect_unchanged(tmp.path()).await.is_ok());
        let file = tmp.path().join(DATABASE_FILE);
        let mut bytes = std::fs::read(&file).unwrap();
        let end = bytes.len();
        bytes[end - 8192..].fill(0x5a);
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(inspect_unchanged(tmp.path()).await.unwrap_err().code(), "store.corrupt");
        std::fs::write(&file, b"This is no database. ".repeat(500)).unwrap();
        assert_eq!(inspect_unchanged(tmp.path()).await.unwrap_err().code(), "store.corrupt");
    }

    #[tokio::test]
    async fn non_directory_or_unwritable_path_is_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert_eq!(inspect(&file).await.unwrap_err().code(), "store.io");
        assert_eq!(inspect(&file.join("below")).await.unwrap_err().code(), "store.io");
        let dir = tmp.path().join("dir");
        std::fs::create_dir_all(dir.join("lock")).unwrap();
        assert_eq!(inspect(&dir).await.unwrap_err().code(), "store.io");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(tmp.path(), std::fs::Permissions::from_mode(0o500)).unwrap();
            if std::fs::write(tmp.path().join("probe"), "x").is_ok() {
                return; // The superuser writes everywhere.
            }
            assert_eq!(inspect(tmp.path()).await.unwrap_err().code(), "store.read_only");
            assert_eq!(inspect(&tmp.path().join("new")).await.unwrap_err().code(), "store.read_only");
        }
    }
}
