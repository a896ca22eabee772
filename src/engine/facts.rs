//! The facts of conversations: read from the store, and stated or corrected by people.

use super::Engine;
use crate::conversation::FactStatement;
use crate::memory::{FactLedger, LedgerFact, MAX_CLAIM_CHARS};
use crate::run::{Fault, SessionId, TenantId};

impl Engine {
    /// The facts of a tenant's conversation; `None` if there is no such conversation.
    ///
    /// # Errors
    /// Errors of the store, also if pending events could not be written.
    pub async fn facts(&self, tenant: &TenantId, session: &SessionId) -> Result<Option<FactLedger>, Fault> {
        if !self.parts.store.has_session(tenant, session).await? {
            return Ok(None);
        }
        self.system.journal.flush_for_read().await?;
        let events = self.parts.store.session_events(tenant, session).await?;
        let fold = move || FactLedger::from_events(events.iter().map(|event| (event.seq, &event.body)));
        let folded = tokio::task::spawn_blocking(fold).await;
        folded
            .map(Some)
            .map_err(|error| Fault::new("store.failed", format!("the facts were not read: {error}")))
    }

    /// Adds a fact that the user `by` states to a conversation. If it `corrects` another one, given by its id or the
    /// beginning of it, it takes that one's place. When this returns, it is on disk, and requests from now on know it.
    ///
    /// # Errors
    /// `fact.claim` if the claim is empty or has more than [`MAX_CLAIM_CHARS`] characters; `session.unknown`;
    /// `fact.unknown` and `fact.superseded` if the other fact is not there, or was superseded; errors of the store.
    pub async fn state_fact(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        by: &str,
        claim: &str,
        corrects: Option<&str>,
    ) -> Result<LedgerFact, Fault> {
        let claim = claim.split_whitespace().collect::<Vec<_>>().join(" ");
        if claim.is_empty() || claim.chars().count() > MAX_CLAIM_CHARS {
            let what = format!("`claim` must have 1 to {MAX_CLAIM_CHARS} characters");
            return Err(Fault::new("fact.claim", what));
        }
        let unknown = || Fault::new("session.unknown", format!("there is no session `{session}`"));
        // Do not load an actor for a name that was never used.
        if !self.parts.store.has_session(tenant, session).await? {
            return Err(unknown());
        }
        let at = self.parts.clock.now();
        let (by, corrects) = (by.to_owned(), corrects.map(str::to_owned));
        let statement = FactStatement { claim, corrects, by, at };
        let id = self.system.registry.state_fact(tenant.clone(), session.clone(), statement).await?;
        let ledger = self.facts(tenant, session).await?.ok_or_else(unknown)?;
        let stated = ledger.find(&id).cloned();
        stated.map_err(|_| Fault::new("fact.unknown", "the fact was erased meanwhile"))
    }
}
