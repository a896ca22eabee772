//! Erasing conversations: one that somebody names, and those that were kept as long as is configured.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Engine;
use crate::actors::driver::store_fault;
use crate::actors::session_registry;
use crate::run::{Fault, SessionId, TenantId};
use crate::store::Store;

/// Most conversations that are erased in one pass for their age.
const MAX_EXPIRED: u32 = 1000;
/// How often the janitor looks for them.
const BETWEEN_PASSES: Duration = Duration::from_secs(3600);

impl Engine {
    /// Erases a conversation with all that hangs on it: its runs, their events, its memory, and the
    /// idempotency keys of its requests. Rows that its tools wrote are the company's data and stay.
    /// Returns whether there was such a conversation.
    ///
    /// A request that comes after this one begins the conversation anew.
    ///
    /// # Errors
    /// `store.session_busy` where a request of it is at work or waits; the store's.
    pub async fn erase(&self, tenant: &TenantId, session: &SessionId) -> Result<bool, Fault> {
        // A name that nobody used is not worth waking anything.
        if !self.parts.store.knows_session(tenant, session).await.map_err(|error| store_fault(&error))? {
            return Ok(false);
        }
        self.system.registry.erase(tenant.clone(), session.clone(), None).await
    }

    /// Erases conversations that have not changed for `store.keep_sessions_days` before `now`, the
    /// oldest first and at most a thousand; none where they are kept for ever. A running engine does so
    /// by itself, at its start and every hour. Returns how many were erased.
    ///
    /// # Errors
    /// The store's.
    pub async fn expire_sessions(&self, now: Timestamp) -> Result<usize, Fault> {
        let janitor = Janitor {
            store: self.parts.store.clone(),
            registry: self.system.registry.clone(),
            days: self.parts.current.load().config.store.keep_sessions_days,
        };
        janitor.pass(now).await
    }
}

/// Erases what was kept long enough.
pub(super) struct Janitor {
    pub(super) store: Store,
    pub(super) registry: session_registry::Address,
    /// 0 for ever.
    pub(super) days: u32,
}

impl Janitor {
    /// A pass now and every hour, until the task is dropped with its runtime.
    pub(super) async fn work(self) {
        if self.days == 0 {
            return;
        }
        let mut ticks = tokio::time::interval(BETWEEN_PASSES);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.pass(Timestamp::now()).await {
                Ok(0) => {}
                Ok(erased) => tracing::info!(erased, days = self.days, "conversations were kept long enough"),
                Err(fault) => {
                    tracing::warn!(code = %fault.code, "old conversations could not be erased: {}", fault.message);
                }
            }
        }
    }

    async fn pass(&self, now: Timestamp) -> Result<usize, Fault> {
        if self.days == 0 {
            return Ok(0);
        }
        // So long ago that there is no such time: nothing is older.
        let Ok(since) = now.checked_sub(SignedDuration::from_hours(24 * i64::from(self.days))) else {
            return Ok(0);
        };
        let old =
            self.store.unchanged_sessions(since, MAX_EXPIRED).await.map_err(|error| store_fault(&error))?;
        let mut erased = 0;
        for (tenant, session) in old {
            match self.registry.erase(tenant, session, Some(since)).await {
                Ok(done) => erased += usize::from(done),
                // It was taken up again just now.
                Err(fault) if fault.code == "store.session_busy" => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(erased)
    }
}
