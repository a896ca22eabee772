//! Sends notifications: polls for undelivered ones and stores which were delivered.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;

use super::message::ApprovalMessage;
use super::webhook::{DeliveryOutcome, WebhookTarget};
use crate::run::RunState;
use crate::store::{self, PendingNotification, Store};

/// Maximum number of messages per pass.
const MAX_PER_PASS: u32 = 256;
/// Maximum number of concurrent deliveries.
const MAX_CONCURRENT: usize = 8;

/// Notifies the webhook of open approvals.
#[derive(Debug, Clone)]
pub struct WebhookNotifier {
    store: Store,
}

impl WebhookNotifier {
    /// A notifier for the approvals in this store.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Sends the messages that are due, up to a bound, and returns when each was delivered or failed.
    /// Approvals expire, as a refusal, after `expires_s` seconds; never if that is 0.
    ///
    /// # Errors
    /// Store errors.
    pub async fn send_pending(&self, target: &WebhookTarget, expires_s: u64) -> Result<(), store::Error> {
        let untold = self.store.pending_notifications(Timestamp::now(), MAX_PER_PASS).await?;
        let sent = futures::stream::iter(untold).map(|untold| self.notify(target, untold, expires_s));
        sent.buffer_unordered(MAX_CONCURRENT).fold(Ok(()), async |all, one| all.and(one)).await
    }

    async fn notify(
        &self,
        target: &WebhookTarget,
        untold: PendingNotification,
        expires_s: u64,
    ) -> Result<(), store::Error> {
        let PendingNotification { approval: row, attempts } = untold;
        let (id, run, session, tenant) = (row.id, row.id.run, &row.session, &row.tenant);
        let sent = match self.store.run_events(&row.tenant, id.run).await {
            Ok(events) => {
                let state = RunState::from_journal(id.run, &events);
                match ApprovalMessage::of(&row, &state, expires_s)
                    .map(|message| serde_json::to_string(&message))
                {
                    Some(Ok(body)) => target.send(&id.to_string(), body, attempts).await,
                    Some(Err(error)) => DeliveryOutcome::Abandoned(error.to_string()),
                    None => DeliveryOutcome::Abandoned("its run has no such approval".to_owned()),
                }
            }
            Err(error) if matches!(error.code(), "store.gap" | "store.unreadable") => {
                DeliveryOutcome::Abandoned(error.to_string())
            }
            Err(error) => return Err(error),
        };
        let now = Timestamp::now();
        match sent {
            DeliveryOutcome::Delivered => self.store.set_notified(id, now).await,
            DeliveryOutcome::Retry(wait, why) => {
                let next = now.checked_add(wait).unwrap_or(Timestamp::MAX);
                tracing::info!(approval = %id, %run, %session, %tenant, ?wait, why, "webhook delivery failed; it will be retried");
                self.store.postpone_notification(id, Some(next)).await
            }
            DeliveryOutcome::Abandoned(why) => {
                tracing::warn!(approval = %id, %run, %session, %tenant, why, "webhook delivery abandoned");
                self.store.postpone_notification(id, None).await
            }
        }
    }

    /// The interval between two passes.
    pub const BETWEEN: Duration = Duration::from_secs(1);
}
