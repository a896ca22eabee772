//! Erases conversations on request, and conversations and documents after the configured retention.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Engine, documents};
use crate::actors::{journal, session_registry};
use crate::run::{Fault, SessionId, TenantId};
use crate::store::{ErrorCode, Store};

/// Maximum number of expired conversations erased in one pass, and of documents deleted.
const MAX_EXPIRED: u32 = 1000;
/// Time between two passes.
const BETWEEN_PASSES: Duration = Duration::from_secs(3600);
/// Time until the next pass where more is left, as with thousands of conversations an hour.
const BETWEEN_FULL_PASSES: Duration = Duration::from_secs(10);

impl Engine {
    /// Erases a conversation with its runs, their events, its memory, and the idempotency keys of its
    /// requests. Rows that its tools wrote are business data and are kept. Returns whether there was such a
    /// conversation.
    ///
    /// A later request starts the conversation again.
    ///
    /// # Errors
    /// `store.session_busy` if one of its requests is in progress or waits; errors of the store.
    pub async fn erase(&self, tenant: &TenantId, session: &SessionId) -> Result<bool, Fault> {
        // Do not load an actor for a name that was never used.
        if !self.parts.store.has_session(tenant, session).await? {
            return Ok(false);
        }
        self.system.registry.erase(tenant.clone(), session.clone(), None).await
    }

    /// Erases conversations that have not changed for `store.keep_sessions_days` before `now`, oldest first
    /// and at most a thousand; none if they are kept for ever. A running engine does so at its start and
    /// every hour, and goes on until no more are left. Returns the number of erased conversations.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn expire_sessions(&self, now: Timestamp) -> Result<usize, Fault> {
        let retention = RetentionTask {
            store: self.parts.store.clone(),
            registry: self.system.registry.clone(),
            days: self.parts.current.load().config.store.keep_sessions_days,
            document_days: 0,
            journal: self.system.journal.clone(),
        };
        retention.pass(now).await
    }
}

/// Erases expired conversations and documents.
pub(super) struct RetentionTask {
    pub(super) store: Store,
    pub(super) registry: session_registry::Address,
    /// How long conversations are kept; 0 for ever.
    pub(super) days: u32,
    /// How long unused documents are kept; 0 for ever.
    pub(super) document_days: u32,
    pub(super) journal: journal::Handle,
}

impl RetentionTask {
    /// Runs a pass now and every hour, until the task is dropped with its runtime.
    pub(super) async fn run_forever(self) {
        loop {
            let conversations = self.erase_conversations().await;
            let documents = self.delete_documents().await;
            tokio::time::sleep(pause_after(conversations.max(documents))).await;
        }
    }

    /// Erases expired conversations. Returns how many; errors are logged.
    async fn erase_conversations(&self) -> usize {
        match self.pass(Timestamp::now()).await {
            Ok(0) => 0,
            Ok(erased) => {
                tracing::info!(erased, days = self.days, "expired conversations were erased");
                erased
            }
            Err(fault) => {
                // Otherwise the engine is closing.
                if fault.code != ErrorCode::Stopped.as_str() {
                    tracing::warn!(code = %fault.code, "old conversations could not be erased: {}", fault.message);
                }
                0
            }
        }
    }

    /// Deletes unused documents. Returns how many; errors are logged.
    async fn delete_documents(&self) -> usize {
        match self.expire_documents(Timestamp::now()).await {
            Ok(0) => 0,
            Ok(deleted) => {
                tracing::info!(
                    deleted,
                    days = self.document_days,
                    "unused documents, or those whose deletion had begun, were deleted"
                );
                deleted
            }
            Err(fault) => {
                // Otherwise the engine is closing.
                if fault.code != ErrorCode::Stopped.as_str() {
                    tracing::warn!(code = %fault.code, "unused documents could not be deleted: {}", fault.message);
                }
                0
            }
        }
    }

    async fn expire_documents(&self, now: Timestamp) -> Result<usize, Fault> {
        // The runs that named a document are erased with it: none of their events may be pending.
        self.journal.flush().await?;
        let hold = documents::RegistryHold { registry: &self.registry, journal: &self.journal };
        documents::expire(&self.store.documents(), &hold, self.document_days, now).await
    }

    async fn pass(&self, now: Timestamp) -> Result<usize, Fault> {
        if self.days == 0 {
            return Ok(0);
        }
        // An unrepresentable time: nothing is older.
        let Ok(since) = now.checked_sub(SignedDuration::from_hours(24 * i64::from(self.days))) else {
            return Ok(0);
        };
        let old = self.store.unchanged_sessions(since, MAX_EXPIRED).await?;
        let mut erased = 0;
        for (tenant, session) in old {
            match self.registry.erase(tenant, session, Some(since)).await {
                Ok(done) => erased += usize::from(done),
                // It just became active again.
                Err(fault) if fault.code == "store.session_busy" => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(erased)
    }
}

/// The time until the next pass, after one that erased or deleted so many. Some of those that were due may have been at work,
/// so a pass need not be full.
fn pause_after(erased: usize) -> Duration {
    if erased >= MAX_EXPIRED as usize / 2 { BETWEEN_FULL_PASSES } else { BETWEEN_PASSES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_follow_each_other_soon_while_more_is_left() {
        let most = MAX_EXPIRED as usize;
        assert_eq!([most, most - 10].map(pause_after), [BETWEEN_FULL_PASSES; 2]);
        assert_eq!([0, 1].map(pause_after), [BETWEEN_PASSES; 2]);
    }
}
