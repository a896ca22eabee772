//! Holds on API keys by long-lived users such as open streams, which are notified on revocation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The held keys by id. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyHolds(Arc<Mutex<HashMap<String, Weak<CancellationToken>>>>);

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
    /// Holds the key with this id.
    pub(super) fn hold(&self, id: &str) -> KeyHold {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = keys.get(id).and_then(Weak::upgrade).filter(|token| !token.is_cancelled());
        let token = known.unwrap_or_else(|| {
            let token = Arc::new(CancellationToken::new());
            keys.insert(id.to_owned(), Arc::downgrade(&token));
            token
        });
        KeyHold(token)
    }

    /// The ids of all keys held now.
    pub(super) fn ids(&self) -> Vec<String> {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_, token| token.strong_count() > 0);
        keys.keys().cloned().collect()
    }

    /// Notifies the holders of these keys that they are no longer valid.
    pub(super) fn revoke<'i>(&self, ids: impl IntoIterator<Item = &'i String>) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for token in ids.into_iter().filter_map(|id| keys.remove(id)?.upgrade()) {
            token.cancel();
        }
    }
}
