//! API key lookup for a server, which happens on every request: results are cached for a moment.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use sha2::{Digest, Sha256};

use super::Store;
use super::error::Error;
use super::key_holds::{KeyHold, KeyHolds};
use super::keys::ApiKey;
use crate::run::TenantId;

/// How long lookups are cached: a revoked key is rejected at most a second later.
const CACHE_TTL: Duration = Duration::from_secs(1);
/// How often held keys are checked again, since another process may have revoked one.
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of cached lookups, including failed ones.
const MAX_REMEMBERED: u64 = 10_000;

/// The keys of a store. Clones share the cache.
#[derive(Clone)]
pub struct KeyRing {
    store: Store,
    /// Keyed by the SHA-256 of the presented text: an invalid key may be a secret of another system and is
    /// not kept in memory.
    cache: Cache<[u8; 32], Option<Arc<ApiKey>>>,
    any_key: Cache<(), bool>,
    tenants: Cache<(), Arc<[TenantId]>>,
    holds: KeyHolds,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("store", &self.store).finish_non_exhaustive()
    }
}

impl KeyRing {
    /// The keys in `store`, cached for at most a second.
    pub fn new(store: Store) -> Self {
        Self::with_ttl(store, CACHE_TTL)
    }

    fn with_ttl(store: Store, life: Duration) -> Self {
        Self {
            store,
            cache: Cache::builder().max_capacity(MAX_REMEMBERED).time_to_live(life).build(),
            any_key: Cache::builder().max_capacity(1).time_to_live(life).build(),
            tenants: Cache::builder().max_capacity(1).time_to_live(life).build(),
            holds: KeyHolds::default(),
        }
    }

    /// Like [`Store::has_keys`], cached.
    ///
    /// # Errors
    /// Database errors; they are not cached.
    pub async fn has_keys(&self) -> Result<bool, Error> {
        self.any_key.try_get_with((), self.store.has_keys()).await.map_err(|error| error.as_ref().clone())
    }

    /// The tenants with a valid key; of several, two of them. Cached.
    ///
    /// # Errors
    /// Database errors; they are not cached.
    pub async fn tenants(&self) -> Result<Arc<[TenantId]>, Error> {
        let read = async { Ok::<_, Error>(self.store.tenants_with_keys(2).await?.into()) };
        self.tenants.try_get_with((), read).await.map_err(|error: Arc<Error>| error.as_ref().clone())
    }

    /// Like [`Store::find_key`], cached. Concurrent equal lookups share one query.
    ///
    /// # Errors
    /// Database errors; they are not cached.
    pub async fn find(&self, presented: &str) -> Result<Option<Arc<ApiKey>>, Error> {
        let digest: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        let look = async { Ok::<_, Error>(self.store.find_key(presented).await?.map(Arc::new)) };
        self.cache.try_get_with(digest, look).await.map_err(|error: Arc<Error>| error.as_ref().clone())
    }

    /// Holds a key: the hold ends when the key is revoked, expires or gets another role, as long as
    /// [`KeyRing::watch_revocations`] runs.
    pub fn hold(&self, key: &ApiKey) -> KeyHold {
        self.holds.hold(&key.id, key.role)
    }

    /// Ends the holds of keys that are no longer valid or have another role: at once if the key was changed
    /// through this store, within a second if another process changed it. Never returns.
    pub async fn watch_revocations(self) {
        let mut changed = self.store.key_changes();
        loop {
            // The sender cannot be dropped: it lives as long as the store, which is held here.
            if let Ok(Ok(())) = tokio::time::timeout(RECHECK_INTERVAL, changed.changed()).await {
                self.cache.invalidate_all();
            }
            let held = self.holds.keys();
            if held.is_empty() {
                continue;
            }
            match self.store.valid_keys(&held).await {
                Ok(valid) if held.iter().all(|key| valid.contains(key)) => {}
                Ok(valid) => {
                    // Invalidate first: a client that sees its stream end must no longer be authenticated.
                    self.cache.invalidate_all();
                    self.holds.revoke(held.iter().filter(|key| !valid.contains(*key)));
                }
                // The next round checks again.
                Err(error) => tracing::debug!(%error, "the keys of open streams could not be checked"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fresh, tenant};
    use super::*;
    use crate::access::Role;

    #[tokio::test]
    async fn lookups_are_cached_whether_found_or_not() {
        let (_tmp, store) = fresh().await;
        let (key, secret) = store.create_key(&tenant(), "u", "").await.unwrap();
        let ring = KeyRing::with_ttl(store.clone(), Duration::from_secs(3600));
        assert_eq!(ring.find("psk_nonsense").await.unwrap(), None);
        assert_eq!(ring.find(secret.expose()).await.unwrap().as_deref(), Some(&key));
        // The store is closed, so only cached lookups can succeed.
        store.close().await;
        assert_eq!(ring.find("psk_nonsense").await.unwrap(), None);
        assert_eq!(ring.find(secret.expose()).await.unwrap().as_deref(), Some(&key));
        assert_eq!(ring.find("psk_other").await.unwrap_err().code(), "store.stopped");
    }

    #[tokio::test]
    async fn revoked_key_leaves_the_cache() {
        let (_tmp, store) = fresh().await;
        let (key, secret) = store.create_key(&tenant(), "u", "").await.unwrap();
        let ring = KeyRing::with_ttl(store.clone(), Duration::from_millis(20));
        assert!(ring.find(secret.expose()).await.unwrap().is_some());
        store.revoke_key(&key.id).await.unwrap();
        while ring.find(secret.expose()).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn key_hold_ends_on_revocation_and_on_change_of_role() {
        let (tmp, store) = fresh().await;
        let ring = KeyRing::new(store.clone());
        let watch = tokio::spawn(ring.clone().watch_revocations());
        let mut held = Vec::new();
        for _ in 0..4 {
            let (key, _) = store.create_key(&tenant(), "u", "").await.unwrap();
            held.push((ring.hold(&key), ring.hold(&key), key));
        }
        store.revoke_key(&held[0].2.id).await.unwrap();
        held[0].0.revoked().await;
        held[0].1.revoked().await;
        let beside = Store::open_shared(tmp.path()).await.unwrap();
        beside.revoke_key(&held[1].2.id).await.unwrap();
        held[1].0.revoked().await;
        beside.set_role(&held[3].2.id, Role::Auditor).await.unwrap();
        held[3].0.revoked().await;
        assert!(futures::FutureExt::now_or_never(held[2].0.revoked()).is_none());
        drop(held);
        assert!(ring.holds.keys().is_empty());
        watch.abort();
    }
}
