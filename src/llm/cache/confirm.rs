//! Whether the reader of a reply could use it. The cache keeps the reply only if so.

use std::sync::Arc;

use super::{CacheKey, CachedReply, ReplyCache};

/// Waits for the verdict of a reply's reader. Dropped without one, nothing is stored.
#[derive(Default)]
pub struct Confirm(Option<Box<UnconfirmedReply>>);

struct UnconfirmedReply {
    cache: Arc<dyn ReplyCache>,
    key: CacheKey,
    /// The reply to store.
    reply: Option<CachedReply>,
}

impl Confirm {
    pub(super) fn of(cache: Arc<dyn ReplyCache>, key: CacheKey, reply: Option<CachedReply>) -> Self {
        Self(Some(Box::new(UnconfirmedReply { cache, key, reply })))
    }

    /// The reply could be used: equal questions may get it.
    pub fn accepted(self) {
        if let Some(pending) = self.0
            && let Some(reply) = pending.reply
        {
            pending.cache.store(pending.key, reply);
        }
    }

    /// The reply could not be used: no other waiter gets it.
    pub fn rejected(self) {
        if let Some(pending) = self.0 {
            pending.cache.reject(pending.key);
        }
    }
}

impl std::fmt::Debug for Confirm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_stored = self.0.as_ref().is_some_and(|pending| pending.reply.is_some());
        f.debug_struct("Confirm").field("is_stored", &is_stored).finish()
    }
}
