//! Keys as a server looks them up: with every request, so what was found is remembered for a moment.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use sha2::{Digest, Sha256};

use super::Store;
use super::error::Error;
use super::held::{Held, HeldKeys};
use super::keys::ApiKey;

/// How long what was found is believed: a revoked key opens nothing a second later.
const LIFE: Duration = Duration::from_secs(1);
/// How often the keys that something lasting holds on to are looked at again: another process may have
/// revoked one.
const LOOK: Duration = Duration::from_millis(500);
/// Most texts of which the outcome is remembered; wrong ones count, too.
const MAX_REMEMBERED: u64 = 10_000;

/// The keys of a store. Clones share what they remember.
#[derive(Clone)]
pub struct KeyRing {
    store: Store,
    /// By SHA-256 of the presented text: what is no key may be a secret of something else, and is not
    /// kept in memory.
    found: Cache<[u8; 32], Option<Arc<ApiKey>>>,
    any: Cache<(), bool>,
    held: HeldKeys,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("store", &self.store).finish_non_exhaustive()
    }
}

impl KeyRing {
    /// The keys in `store`, remembered for at most a second.
    pub fn new(store: Store) -> Self {
        Self::with_life(store, LIFE)
    }

    fn with_life(store: Store, life: Duration) -> Self {
        Self {
            store,
            found: Cache::builder().max_capacity(MAX_REMEMBERED).time_to_live(life).build(),
            any: Cache::builder().max_capacity(1).time_to_live(life).build(),
            held: HeldKeys::default(),
        }
    }

    /// As [`Store::has_keys`].
    ///
    /// # Errors
    /// Those of the database; they are not remembered.
    pub async fn any(&self) -> Result<bool, Error> {
        self.any.try_get_with((), self.store.has_keys()).await.map_err(|error| error.as_ref().clone())
    }

    /// As [`Store::find_key`]; equal lookups at the same time are made once.
    ///
    /// # Errors
    /// Those of the database; they are not remembered.
    pub async fn find(&self, presented: &str) -> Result<Option<Arc<ApiKey>>, Error> {
        let digest: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        let look = async { Ok::<_, Error>(self.store.find_key(presented).await?.map(Arc::new)) };
        self.found.try_get_with(digest, look).await.map_err(|error: Arc<Error>| error.as_ref().clone())
    }

    /// Holds on to a key: whoever does is told when it is revoked, as long as [`KeyRing::watch`] runs.
    pub fn hold(&self, key: &ApiKey) -> Held {
        self.held.hold(&key.id)
    }

    /// Tells whoever holds a key that it was revoked: at once where that was done through this store,
    /// within a second where another process did it. It never ends.
    pub async fn watch(self) {
        let mut changed = self.store.key_changes();
        loop {
            // The sender lives as long as the store, which is held here.
            if let Ok(Ok(())) = tokio::time::timeout(LOOK, changed.changed()).await {
                self.found.invalidate_all();
            }
            let ids = self.held.ids();
            if ids.is_empty() {
                continue;
            }
            match self.store.valid_keys(&ids).await {
                Ok(valid) if ids.iter().all(|id| valid.contains(id)) => {}
                Ok(valid) => {
                    // Before its streams end: who sees one end is let in no more.
                    self.found.invalidate_all();
                    self.held.revoke(ids.iter().filter(|id| !valid.contains(*id)));
                }
                // It is asked again in a moment.
                Err(error) => tracing::debug!(%error, "the keys of open streams could not be looked at"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{open, tenant};
    use super::*;

    #[tokio::test]
    async fn what_was_found_is_remembered_and_what_was_not_as_well() {
        let tmp = tempfile::tempdir().unwrap();
        let store = open(tmp.path()).await;
        let (key, secret) = store.create_key(&tenant(), "u", "").await.unwrap();
        let ring = KeyRing::with_life(store.clone(), Duration::from_secs(3600));
        assert_eq!(ring.find("psk_nonsense").await.unwrap(), None);
        assert_eq!(ring.find(secret.expose()).await.unwrap().as_deref(), Some(&key));
        // Nothing is asked of the store any more.
        store.close().await;
        assert_eq!(ring.find("psk_nonsense").await.unwrap(), None);
        assert_eq!(ring.find(secret.expose()).await.unwrap().as_deref(), Some(&key));
        assert_eq!(ring.find("psk_other").await.unwrap_err().code(), "store.stopped");
    }

    #[tokio::test]
    async fn a_revoked_key_is_soon_forgotten() {
        let tmp = tempfile::tempdir().unwrap();
        let store = open(tmp.path()).await;
        let (key, secret) = store.create_key(&tenant(), "u", "").await.unwrap();
        let ring = KeyRing::with_life(store.clone(), Duration::from_millis(20));
        assert!(ring.find(secret.expose()).await.unwrap().is_some());
        store.revoke_key(&key.id).await.unwrap();
        while ring.find(secret.expose()).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn who_holds_a_key_is_told_that_it_was_revoked_here_or_beside() {
        let tmp = tempfile::tempdir().unwrap();
        let store = open(tmp.path()).await;
        let ring = KeyRing::new(store.clone());
        let watch = tokio::spawn(ring.clone().watch());
        let mut held = Vec::new();
        for _ in 0..3 {
            let (key, _) = store.create_key(&tenant(), "u", "").await.unwrap();
            held.push((ring.hold(&key), ring.hold(&key), key));
        }
        store.revoke_key(&held[0].2.id).await.unwrap();
        held[0].0.revoked().await;
        held[0].1.revoked().await;
        let beside = Store::open_beside(tmp.path()).await.unwrap();
        beside.revoke_key(&held[1].2.id).await.unwrap();
        held[1].0.revoked().await;
        assert!(futures::FutureExt::now_or_never(held[2].0.revoked()).is_none());
        drop(held);
        assert!(ring.held.ids().is_empty());
        watch.abort();
    }
}
