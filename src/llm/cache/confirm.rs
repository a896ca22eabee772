//! What a reader found of a reply.

use super::{Cache, CacheKey, CachedReply};

/// Waits for the verdict of a reply's reader. Dropped without one, nothing is kept.
#[derive(Default)]
pub struct Confirm(Option<Box<UnconfirmedReply>>);

struct UnconfirmedReply {
    cache: Cache,
    key: CacheKey,
    /// What is to be kept.
    kept: Option<CachedReply>,
}

impl Confirm {
    pub(super) fn of(cache: Cache, key: CacheKey, kept: Option<CachedReply>) -> Self {
        Self(Some(Box::new(UnconfirmedReply { cache, key, kept })))
    }

    /// The reply could be used: equal questions may get it.
    pub async fn accepted(self) {
        if let Some(pending) = self.0
            && let Some(kept) = pending.kept
        {
            pending.cache.keep(pending.key, kept).await;
        }
    }

    /// The reply could not be used: no one else shall get it.
    pub async fn rejected(self) {
        if let Some(pending) = self.0 {
            pending.cache.drop_rejected(&pending.key).await;
        }
    }
}

impl std::fmt::Debug for Confirm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keeps = self.0.as_ref().is_some_and(|pending| pending.kept.is_some());
        f.debug_struct("Confirm").field("keeps", &keeps).finish()
    }
}
