//! Who sends the messages: looks again and again for what was not told, and remembers what arrived.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;

use super::message::Message;
use super::target::{Sent, Target};
use crate::run::RunState;
use crate::store::{self, Store, Untold};

/// Most messages of one pass.
const MAX_A_PASS: u32 = 256;
/// Most of them under way at once.
const AT_ONCE: usize = 8;

/// Tells of what waits for people.
#[derive(Debug, Clone)]
pub struct Messenger {
    store: Store,
}

impl Messenger {
    /// Of what waits in this store.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Sends what is to be sent now, a bounded number of messages; ends when each of them arrived or did
    /// not. What nobody decides in `expires_s` counts as refused, where that is not 0.
    ///
    /// # Errors
    /// The store's.
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
                    None => Sent::GivenUp("its run does not know it".to_owned()),
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
                tracing::info!(approval = %id, ?wait, why, "a webhook did not take a message; it is sent again");
                self.store.put_off(id, Some(next)).await
            }
            Sent::GivenUp(why) => {
                tracing::warn!(approval = %id, why, "a webhook was not told of what waits for a person");
                self.store.put_off(id, None).await
            }
        }
    }

    /// How long to wait between two passes.
    pub const BETWEEN: Duration = Duration::from_secs(1);
}
