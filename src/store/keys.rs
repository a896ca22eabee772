//! API keys: creation, listing, revocation and lookup. Only a hash of each key is stored.

use std::collections::HashSet;
use std::fmt;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row as _};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use super::Store;
use super::error::{Error, ErrorCode};
use super::key_holds::HeldKey;
use super::read::{decode, read_optional_time, read_time};
use crate::access::Role;
use crate::invisible::is_invisible;
use crate::run::TenantId;

/// The prefix of every key, so that leaked keys are recognisable.
const PREFIX: &str = "psk_";
/// Random bytes of an id: enough to avoid collisions.
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
/// Maximum length of a user name and of a label, in characters.
const MAX_TEXT: usize = 128;

/// An API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApiKey {
    /// The id: 16 characters from `0-9 a-f`. It is part of the key's text but not secret.
    pub id: String,
    /// The tenant charged for requests with this key.
    pub tenant: TenantId,
    /// The user of the key: tools act on behalf of this user.
    pub user: String,
    /// A free-text description; may be empty.
    pub label: String,
    /// Whether it is forbidden to approve its own user's requests.
    pub no_own_approval: bool,
    /// The role, which defines what the key may do.
    pub role: Role,
    /// Whether it was created before roles existed and its role has not been set since.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub role_migrated: bool,
    /// When it expires; never if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// When it was created.
    pub created: Timestamp,
    /// When it was revoked, if it was. A revoked key is invalid.
    pub revoked: Option<Timestamp>,
}

impl ApiKey {
    /// Whether it is neither revoked nor expired.
    fn is_valid(&self) -> bool {
        self.revoked.is_none() && !self.is_expired(Timestamp::now())
    }

    /// Returns whether it has expired at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// The permissions of a new key, and its expiry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyRules {
    /// Forbids approving requests of the key's own user, whichever key they were made with. Refusing and
    /// cancelling them stay allowed.
    pub no_own_approval: bool,
    /// The role, which defines what the key may do.
    pub role: Role,
    /// When it expires; never if absent.
    pub expires: Option<Timestamp>,
}

/// The full text of a key, `psk_<id>_<secret>`, as clients send it. It is known only at creation, and
/// `Debug` does not show it.
pub struct ApiKeySecret(SecretString);

impl ApiKeySecret {
    /// The key's text, to hand to its user.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for ApiKeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Store {
    /// Creates a key for `user` of `tenant`. Only the return value holds the secret: the database stores its
    /// SHA-256. Unlike a password, the secret has 256 random bits and cannot be guessed, so a plain hash
    /// without salt or key stretching is enough.
    ///
    /// # Errors
    /// `store.bad_record` if the user name (1 to 128 printable characters) or the label (at most 128) is
    /// invalid, `store.read_only`, and database errors.
    pub async fn create_key(
        &self,
        tenant: &TenantId,
        user: &str,
        label: &str,
    ) -> Result<(ApiKey, ApiKeySecret), Error> {
        self.create_key_with(tenant, user, label, KeyRules::default()).await
    }

    /// Like [`Store::create_key`], with a role, restrictions and an expiry.
    ///
    /// # Errors
    /// The errors of [`Store::create_key`].
    pub async fn create_key_with(
        &self,
        tenant: &TenantId,
        user: &str,
        label: &str,
        rules: KeyRules,
    ) -> Result<(ApiKey, ApiKeySecret), Error> {
        check_printable("the user", user)?;
        check_distinguishable(user)?;
        check_printable("the label", label)?;
        if user.trim().is_empty() {
            return Err(Error::new(ErrorCode::BadRecord, "the user of a key must have a name"));
        }
        let id = HEXLOWER.encode(&random::<ID_BYTES>()?);
        let secret = HEXLOWER.encode(&random::<SECRET_BYTES>()?);
        let key = ApiKey {
            id,
            tenant: tenant.clone(),
            user: user.to_owned(),
            label: label.to_owned(),
            no_own_approval: rules.no_own_approval,
            role: rules.role,
            role_migrated: false,
            expires: rules.expires,
            created: Timestamp::now(),
            revoked: None,
        };
        let failed = |e| Error::database(self.path(), "store the key", &e);
        let mut writing = self.writer("store the key").await?;
        sqlx::query(
            "INSERT INTO api_keys (id, tenant, user, label, hash, created, no_own_approval, role, expires, \
             role_migrated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
        )
        .bind(&key.id)
        .bind(tenant.as_str())
        .bind(user)
        .bind(label)
        .bind(hash_secret(&secret).to_vec())
        .bind(nanoseconds(key.created)?)
        .bind(key.no_own_approval)
        .bind(key.role.name())
        .bind(key.expires.map(nanoseconds).transpose()?)
        .execute(writing.connection().await.map_err(failed)?)
        .await
        .map_err(failed)?;
        let whole = format!("{PREFIX}{}_{secret}", key.id);
        Ok((key, ApiKeySecret(SecretString::from(whole))))
    }

    /// The keys of one tenant or of all tenants, including revoked ones, oldest first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn keys(&self, tenant: Option<&TenantId>) -> Result<Vec<ApiKey>, Error> {
        let failed = |e| Error::database(self.path(), "read the keys", &e);
        sqlx::query_as(
            "SELECT id, tenant, user, label, created, revoked, no_own_approval, role, role_migrated, expires \
             FROM api_keys WHERE ?1 IS NULL OR tenant = ?1 ORDER BY created, id",
        )
        .bind(tenant.map(TenantId::as_str))
        .fetch_all(self.pool())
        .await
        .map_err(failed)
    }

    /// Revokes a key permanently. A running server applies it within a second. Returns whether the key
    /// exists; revoking it again changes nothing.
    ///
    /// # Errors
    /// `store.read_only`, and database errors.
    pub async fn revoke_key(&self, id: &str) -> Result<bool, Error> {
        let failed = |e| Error::database(self.path(), "revoke the key", &e);
        let mut writing = self.writer("revoke the key").await?;
        let done = sqlx::query("UPDATE api_keys SET revoked = coalesce(revoked, ?) WHERE id = ?")
            .bind(nanoseconds(Timestamp::now())?)
            .bind(id)
            .execute(writing.connection().await.map_err(failed)?)
            .await
            .map_err(failed)?;
        drop(writing);
        self.inner.key_changes.send_modify(|changes| *changes += 1);
        Ok(done.rows_affected() > 0)
    }

    /// Changes whenever a key is revoked, or gets another role, through this store; not when another process does that.
    pub(super) fn key_changes(&self) -> watch::Receiver<u64> {
        self.inner.key_changes.subscribe()
    }

    /// The subset of these keys that are still valid and have the same role.
    pub(super) async fn valid_keys(&self, held: &[HeldKey]) -> Result<HashSet<HeldKey>, Error> {
        let failed = |e| Error::database(self.path(), "look up keys", &e);
        let keys: Vec<ApiKey> = sqlx::query_as(
            "SELECT id, tenant, user, label, created, revoked, no_own_approval, role, role_migrated, expires \
             FROM api_keys \
             WHERE id IN (SELECT value FROM json_each(?))",
        )
        .bind(serde_json::Value::from_iter(held.iter().map(|(id, _)| id.as_str())).to_string())
        .fetch_all(self.pool())
        .await
        .map_err(failed)?;
        Ok(keys.into_iter().filter(ApiKey::is_valid).map(|key| (key.id, key.role)).collect())
    }

    /// Sets the role of a key. A running server applies it within a second. Returns whether the key exists.
    ///
    /// # Errors
    /// `store.read_only`, and database errors.
    pub async fn set_role(&self, id: &str, role: Role) -> Result<bool, Error> {
        let failed = |e| Error::database(self.path(), "set the role of the key", &e);
        let mut writing = self.writer("set the role of the key").await?;
        let done = sqlx::query("UPDATE api_keys SET role = ?, role_migrated = 0 WHERE id = ?")
            .bind(role.name())
            .bind(id)
            .execute(writing.connection().await.map_err(failed)?)
            .await
            .map_err(failed)?;
        self.inner.key_changes.send_modify(|changes| *changes += 1);
        Ok(done.rows_affected() > 0)
    }

    /// The key whose text is `presented`; `None` for a wrong format, an unknown id, a wrong secret or a
    /// revoked key. These cases are indistinguishable by result and by timing: each does one lookup and one
    /// constant-time comparison.
    ///
    /// An expired key is found: the caller must check [`ApiKey::is_expired`].
    ///
    /// # Errors
    /// Database errors.
    pub async fn find_key(&self, presented: &str) -> Result<Option<ApiKey>, Error> {
        let failed = |e| Error::database(self.path(), "look up a key", &e);
        // A text of another format is looked up under the empty id, which no key has.
        let (id, secret) = split_key(presented).unwrap_or_default();
        let given = hash_secret(secret);
        let row = sqlx::query(
            "SELECT id, tenant, user, label, created, revoked, no_own_approval, role, role_migrated, expires, \
             hash FROM api_keys WHERE id = ?",
        )
        .bind(id)
        .fetch_optional(self.pool())
        .await
        .map_err(failed)?;
        let (key, stored) = match &row {
            Some(row) => {
                let stored: Vec<u8> = row.try_get("hash").map_err(failed)?;
                (Some(ApiKey::from_row(row).map_err(failed)?), stored)
            }
            None => (None, vec![0; given.len()]),
        };
        let same = bool::from(stored.ct_eq(&given));
        // An expired key is returned, so that the client learns that it has expired.
        Ok(key.filter(|key| same && key.revoked.is_none()))
    }

    /// The tenants with a valid key in the order of their names, at most so many.
    ///
    /// # Errors
    /// Database errors.
    pub async fn tenants_with_keys(&self, max: u32) -> Result<Vec<TenantId>, Error> {
        let failed = |e| Error::database(self.path(), "read the keys", &e);
        let names: Vec<String> = sqlx::query_scalar(
            "SELECT DISTINCT tenant FROM api_keys WHERE revoked IS NULL AND (expires IS NULL OR expires > ?) \
             ORDER BY tenant LIMIT ?",
        )
        .bind(nanoseconds(Timestamp::now())?)
        .bind(max)
        .fetch_all(self.pool())
        .await
        .map_err(failed)?;
        let read = |name: String| TenantId::new(&name).map_err(|e| sqlx::Error::Decode(Box::new(e)));
        names.into_iter().map(read).collect::<Result<_, _>>().map_err(failed)
    }

    /// Returns whether a key was ever created, including revoked ones.
    ///
    /// # Errors
    /// Database errors.
    pub async fn has_keys(&self) -> Result<bool, Error> {
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM api_keys)")
            .fetch_one(self.pool())
            .await
            .map_err(|e| Error::database(self.path(), "read the keys", &e))
    }
}

/// Splits a text in the format of a key into id and secret.
fn split_key(presented: &str) -> Option<(&str, &str)> {
    let (id, secret) = presented.strip_prefix(PREFIX)?.split_once('_')?;
    let fits = |text: &str, bytes: usize| {
        text.len() == 2 * bytes && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    (fits(id, ID_BYTES) && fits(secret, SECRET_BYTES)).then_some((id, secret))
}

fn hash_secret(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Random bytes from the operating system, suitable for secrets.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).map_err(|e| {
        Error::new(
            ErrorCode::Failed,
            format!("no key can be created: the system provides no random bytes: {e}"),
        )
    })?;
    Ok(bytes)
}

pub(super) fn check_printable(what: &str, text: &str) -> Result<(), Error> {
    if text.chars().count() > MAX_TEXT || text.chars().any(char::is_control) {
        let message = format!("{what} of a key has at most {MAX_TEXT} characters, all of them printable");
        return Err(Error::new(ErrorCode::BadRecord, message));
    }
    Ok(())
}

/// Refuses a user whose name looks like another one's.
fn check_distinguishable(user: &str) -> Result<(), Error> {
    if user != user.trim() || user.chars().any(is_invisible) {
        let message =
            "the user of a key must not begin or end with a blank, nor contain invisible characters";
        return Err(Error::new(ErrorCode::BadRecord, message));
    }
    Ok(())
}

pub(super) fn nanoseconds(at: Timestamp) -> Result<i64, Error> {
    i64::try_from(at.as_nanosecond())
        .map_err(|_| Error::new(ErrorCode::BadRecord, format!("the time {at} cannot be stored")))
}

impl FromRow<'_, SqliteRow> for ApiKey {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            tenant: decode(TenantId::new(row.try_get("tenant")?))?,
            user: row.try_get("user")?,
            label: row.try_get("label")?,
            no_own_approval: row.try_get("no_own_approval")?,
            // An unknown role falls back to the one with the fewest permissions.
            role: Role::from_name(row.try_get("role")?).unwrap_or_default(),
            role_migrated: row.try_get("role_migrated")?,
            expires: read_optional_time(row, "expires")?,
            created: read_time(row, "created")?,
            revoked: read_optional_time(row, "revoked")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fresh, open, tenant};
    use super::*;

    #[tokio::test]
    async fn key_is_found_only_by_its_full_text() {
        let (_tmp, store) = fresh().await;
        assert!(!store.has_keys().await.unwrap());
        let (key, secret) = store.create_key(&tenant(), "keysersoze", "the chatbot").await.unwrap();
        let (other, another) = store.create_key(&tenant(), "keysersoze", "").await.unwrap();
        assert!(store.has_keys().await.unwrap());
        let text = secret.expose();
        assert_eq!(store.find_key(text).await.unwrap().as_ref(), Some(&key));
        let (id, own) = split_key(text).unwrap();
        let (_, foreign) = split_key(another.expose()).unwrap();
        assert_eq!((id, own.len()), (key.id.as_str(), 64));
        for wrong in [
            format!("{PREFIX}{id}_{foreign}"),
            format!("{PREFIX}{}_{own}", other.id),
            format!("{PREFIX}0000000000000000_{own}"),
            format!("{PREFIX}{id}_"),
            format!("{PREFIX}_{own}"),
            format!("{text} "),
            text.to_uppercase(),
            text[..text.len() - 1].to_owned(),
            own.to_owned(),
            format!("{PREFIX}{}", "x".repeat(100_000)),
            String::new(),
        ] {
            assert_eq!(store.find_key(&wrong).await.unwrap(), None, "{wrong:.100}");
        }
    }

    #[tokio::test]
    async fn revoked_key_is_invalid_but_still_listed() {
        let (_tmp, store) = fresh().await;
        let (key, secret) = store.create_key(&tenant(), "u", "").await.unwrap();
        assert!(store.revoke_key(&key.id).await.unwrap());
        assert_eq!(store.find_key(secret.expose()).await.unwrap(), None);
        let first = store.keys(None).await.unwrap();
        assert!(first[0].revoked.is_some());
        // Revoking again changes nothing, not even the time.
        assert!(store.revoke_key(&key.id).await.unwrap());
        assert_eq!(store.keys(Some(&tenant())).await.unwrap(), first);
        assert!(store.has_keys().await.unwrap());
        assert!(!store.revoke_key("0000000000000000").await.unwrap());
        assert_eq!(store.keys(Some(&TenantId::new("other").unwrap())).await.unwrap(), []);
    }

    #[tokio::test]
    async fn unprintable_names_are_refused() {
        let (_tmp, store) = fresh().await;
        let long = "x".repeat(MAX_TEXT + 1);
        for (user, label) in [("", ""), (" ", ""), ("a\nb", ""), ("a", "b\u{1b}"), (&long, ""), ("a", &long)]
        {
            let error = store.create_key(&tenant(), user, label).await.unwrap_err();
            assert_eq!(error.code(), "store.bad_record", "{user:?} {label:?}");
        }
        assert!(!store.has_keys().await.unwrap());
    }

    #[tokio::test]
    async fn secret_is_neither_stored_nor_shown_by_debug() {
        let (tmp, store) = fresh().await;
        let (key, secret) = store.create_key(&tenant(), "u", "").await.unwrap();
        let (_, own) = split_key(secret.expose()).unwrap();
        let stored: Vec<u8> = [super::super::DATABASE_FILE, "proscenium.db-wal"]
            .iter()
            .flat_map(|name| std::fs::read(tmp.path().join(name)).unwrap_or_default())
            .collect();
        let holds = |what: &str| stored.windows(what.len()).any(|window| window == what.as_bytes());
        assert!(holds(&key.id));
        assert!(!holds(own));
        assert!(!format!("{secret:?} {key:?}").contains(own));
    }

    #[tokio::test]
    async fn shared_store_creates_and_revokes_keys_beside_owner() {
        let tmp = tempfile::tempdir().unwrap();
        assert_eq!(Store::open_shared(tmp.path()).await.unwrap_err().code(), "store.absent");
        let owner = open(tmp.path()).await;
        let beside = Store::open_shared(tmp.path()).await.unwrap();
        let (key, secret) = beside.create_key(&tenant(), "u", "").await.unwrap();
        assert_eq!(owner.find_key(secret.expose()).await.unwrap(), Some(key.clone()));
        assert!(beside.revoke_key(&key.id).await.unwrap());
        assert_eq!(owner.find_key(secret.expose()).await.unwrap(), None);
        sqlx::query("PRAGMA user_version = 1").execute(owner.pool()).await.unwrap();
        let error = Store::open_shared(tmp.path()).await.unwrap_err();
        assert_eq!(error.code(), "store.older_schema");
        assert!(error.to_string().contains("stop the process"), "{error}");
    }

    #[tokio::test]
    async fn key_created_before_roles_keeps_its_permissions() {
        let tmp = tempfile::tempdir().unwrap();
        let owner = super::super::DataDir::open(tmp.path()).unwrap();
        let old = Store::open_with(owner, &super::super::schema::MIGRATIONS[..4]).await.unwrap();
        sqlx::query(
            "INSERT INTO api_keys (id, tenant, user, label, hash, created) VALUES ('0123456789abcdef', 'acme', 'u', '', ?, 0)",
        )
        .bind(hash_secret(&"0".repeat(64)).to_vec())
        .execute(old.pool())
        .await
        .unwrap();
        old.close().await;
        let store = open(tmp.path()).await;
        let found = store.find_key(&format!("{PREFIX}0123456789abcdef_{}", "0".repeat(64))).await.unwrap();
        let found = found.unwrap();
        assert!(!found.no_own_approval);
        assert_eq!((found.role, found.role_migrated, found.expires), (Role::Approver, true, None));
        let expires = Some(Timestamp::UNIX_EPOCH);
        let rules = KeyRules { no_own_approval: true, role: Role::Auditor, expires };
        let (key, secret) = store.create_key_with(&tenant(), "u", "", rules).await.unwrap();
        assert!(key.no_own_approval);
        assert!(key.is_expired(Timestamp::now()) && key.role == Role::Auditor && !key.role_migrated);
        assert_eq!(store.find_key(secret.expose()).await.unwrap(), Some(key));
        assert!(store.set_role("0123456789abcdef", Role::User).await.unwrap());
        assert!(!store.set_role("fedcba9876543210", Role::User).await.unwrap());
        let set = &store.keys(None).await.unwrap()[0];
        assert_eq!((set.role, set.role_migrated), (Role::User, false));
        let listed: Vec<bool> =
            store.keys(None).await.unwrap().iter().map(|key| key.no_own_approval).collect();
        assert_eq!(listed, [false, true]);
    }
}
