//! Runs whose events cannot be read, because of a damaged file or another release: they can still be
//! cancelled.

use jiff::Timestamp;

use super::Engine;
use crate::run::{Envelope, Event, Fault, RunId, TenantId};
use crate::store::{Record, StreamId};

/// Returns whether a fault means that a run's events are damaged or of an unknown format.
pub(super) fn is_unreadable(fault: &Fault) -> bool {
    matches!(fault.code.as_str(), "store.unreadable" | "store.gap")
}

impl Engine {
    /// Cancels a tenant's unreadable run, so that it can be erased. What it did is unknown. False if it is
    /// readable or has ended.
    pub(super) async fn cancel_unreadable(
        &self,
        tenant: &TenantId,
        run: RunId,
        by: &str,
    ) -> Result<bool, Fault> {
        match self.events_of(tenant, run).await {
            Err(fault) if is_unreadable(&fault) => {}
            Err(fault) => return Err(fault),
            Ok(_) => return Ok(false),
        }
        let row = self.parts.store.run(tenant, run).await?;
        let Some(row) = row.filter(|row| !row.status.is_terminal()) else { return Ok(false) };
        let journal = &self.system.journal;
        journal.reopen(StreamId::Run(run)).await?;
        let (seq, epoch, session) = (row.last_seq + 1, row.epoch + 1, &row.session);
        let cancelled = Event::RunCancelled { by: by.to_owned() };
        let end = Envelope::of_run(run, &row.tenant, session, seq, epoch, Timestamp::now(), cancelled);
        tracing::warn!(%run, %session, %tenant, by, "an unreadable run was cancelled");
        journal.append(vec![Record::Run(end.into())], true).await?;
        Ok(true)
    }
}
