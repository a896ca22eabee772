//! API keys of a restored store: what another data directory knows of them is carried over, whatever the schema of either.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::super::error::Error;
use super::super::{BUSY_TIMEOUT, DATABASE_FILE, Store};

/// A key as the other directory knows it.
struct KnownKey {
    id: String,
    role: String,
    expires: Option<i64>,
    no_own_approval: bool,
    revoked: Option<i64>,
}

/// Gives the keys of a store the revocation, role, expiry and limits that they have in the data directory at `old`; returns
/// how many were revoked. Keys that only one of them has are left as they are.
///
/// # Errors
/// The other directory cannot be read, or has no roles yet; database errors.
pub(super) async fn carry_keys(store: &Store, old: &Path) -> Result<u64, Error> {
    let known = known_keys(old).await?;
    let doing = "carry the keys over";
    let failed = |e| Error::database(store.path(), doing, &e);
    let mut writing = store.writer(doing).await?;
    let connection = writing.connection().await.map_err(failed)?;
    let mut revoked = 0;
    for key in &known {
        if let Some(at) = key.revoked {
            let query = sqlx::query("UPDATE api_keys SET revoked = ? WHERE id = ? AND revoked IS NULL");
            let done = query.bind(at).bind(&key.id).execute(&mut *connection).await.map_err(failed)?;
            revoked += done.rows_affected();
        } else {
            let query =
                sqlx::query("UPDATE api_keys SET role = ?, expires = ?, no_own_approval = ? WHERE id = ?");
            let query = query.bind(&key.role).bind(key.expires).bind(key.no_own_approval).bind(&key.id);
            query.execute(&mut *connection).await.map_err(failed)?;
        }
    }
    Ok(revoked)
}

async fn known_keys(old: &Path) -> Result<Vec<KnownKey>, Error> {
    let path = old.join(DATABASE_FILE);
    let failed = |error| Error::database(&path, "read its keys", &error);
    let options = SqliteConnectOptions::new().filename(&path).read_only(true).busy_timeout(BUSY_TIMEOUT);
    let mut connection = SqliteConnection::connect_with(&options).await.map_err(failed)?;
    let rows = sqlx::query("SELECT id, role, expires, no_own_approval, revoked FROM api_keys")
        .fetch_all(&mut connection)
        .await;
    connection.close().await.map_err(failed)?;
    let rows = rows.map_err(failed)?;
    let read = |row: &SqliteRow| -> Result<KnownKey, sqlx::Error> {
        Ok(KnownKey {
            id: row.try_get("id")?,
            role: row.try_get("role")?,
            expires: row.try_get("expires")?,
            no_own_approval: row.try_get("no_own_approval")?,
            revoked: row.try_get("revoked")?,
        })
    };
    rows.iter().map(read).collect::<Result<_, _>>().map_err(failed)
}

/// Revokes all keys of a store; returns how many were valid.
pub(super) async fn revoke_all(store: &Store) -> Result<u64, Error> {
    let mut revoked = 0;
    for key in store.keys(None).await?.iter().filter(|key| key.revoked.is_none()) {
        revoked += u64::from(store.revoke_key(&key.id).await?);
    }
    Ok(revoked)
}
