//! Sends notifications: polls for undelivered ones and stores which were delivered.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;

use super::message::Message;
use super::target::{Sent, Target};
use crate::run::RunState;
use crate::store::{self, Store, Untold};

/// Maximum number of messages per pass.
const MAX_A_PASS: u32 = 256;
/// Maximum number of concurrent deliveries.
const AT_ONCE: usize = 8;

/// Notifies the webhook of open approvals.
#[derive(Debug, Clone)]
pub struct Messenger {
    store: Store,
}

impl Messenger {
    /// A notifier for the approvals in this store.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Sends the messages that are due, up to a bound, and returns when each was delivered or failed.
    /// Approvals expire, as a refusal, after `expires_s` seconds; never if that is 0.
    ///
    /// # Errors
    /// Store errors.
    pub async fn pass(&self, target: &Target, expires_s: u64) -> Result<(), store::Error> {
        let untold = self.store.untold(Timestamp::now(), MAX_A_PASS).await?;
        let sent = futures::stream::iter(untold).map(|untold| self.tell(target, untold, expires_s));
        sent.buffer_unordered(AT_ONCE).fold(Ok(()), async |all, one| all.and(one)).await
    }

    async fn tell(&self, target: &Target, untold: Untold, expires_s: u64) -> Result<(), store::Error> {
        let Untold { approval: row, attempts } = untold;
        let id = row.id;
        let sent = match self.store.run_events(&row.tenant, id.run).await {
            Ok(events) => {
                let state = RunState::from_events(id.run, events.iter().map(|event| &event.body));
                match Message::of(&row, &state, expires_s).map(|message| serde_json::to_string(&message)) {
                    Some(Ok(body)) => target.send(&id.to_string(), body, attempts).await,
                    Some(Err(error)) => Sent::GivenUp(error.to_string()),
                    None => Sent::GivenUp("its run has no such approval".to_owned()),
                }
            }
            Err(error) if matches!(error.code(), "store.gap" | "store.unreadable") => {
                Sent::GivenUp(error.to_string())
            }
            Err(error) => return Err(error),
        };
        let now = Timestamp::now();
        match sent {
            Sent::Told => self.store.set_told(id, now).await,
            Sent::Again(wait, why) => {
                let next = now.checked_add(wait).unwrap_or(Timestamp::MAX);
                tracing::info!(approval = %id, ?wait, why, "webhook delivery failed; it will be retried");
                self.store.put_off(id, Some(next)).await
            }
            Sent::GivenUp(why) => {
                tracing::warn!(approval = %id, why, "webhook delivery abandoned");
                self.store.put_off(id, None).await
            }
        }
    }

    /// The interval between two passes.
    pub const BETWEEN: Duration = Duration::from_secs(1);
}
