//! Holds on API keys by long-lived users such as open streams, which are notified when the key is revoked or
//! gets another role.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use crate::access::Role;
use crate::mutex::lock;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A key with the role that it had when it was held.
pub(super) type HeldKey = (String, Role);

/// The held keys. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyHolds(Arc<Mutex<HashMap<HeldKey, Weak<CancellationToken>>>>);

/// A hold on a key, until it is dropped.
#[derive(Debug, Clone)]
pub struct KeyHold(Arc<CancellationToken>);

impl KeyHold {
    /// Completes when the key is no longer valid.
    pub fn revoked(&self) -> WaitForCancellationFutureOwned {
        self.0.as_ref().clone().cancelled_owned()
    }
}

impl KeyHolds {
    /// Holds the key with this id, as long as it has this role.
    pub(super) fn hold(&self, id: &str, role: Role) -> KeyHold {
        let key = (id.to_owned(), role);
        let mut keys = lock(&self.0);
        let known = keys.get(&key).and_then(Weak::upgrade).filter(|token| !token.is_cancelled());
        let token = known.unwrap_or_else(|| {
            let token = Arc::new(CancellationToken::new());
            keys.insert(key, Arc::downgrade(&token));
            token
        });
        KeyHold(token)
    }

    /// All keys held now.
    pub(super) fn keys(&self) -> Vec<HeldKey> {
        let mut keys = lock(&self.0);
        keys.retain(|_, token| token.strong_count() > 0);
        keys.keys().cloned().collect()
    }

    /// Notifies the holders of these keys that they are no longer valid.
    pub(super) fn revoke<'i>(&self, held: impl IntoIterator<Item = &'i HeldKey>) {
        let mut keys = lock(&self.0);
        for token in held.into_iter().filter_map(|key| keys.remove(key)?.upgrade()) {
            token.cancel();
        }
    }
}
