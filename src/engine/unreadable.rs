//! Runs whose events cannot be read, as of a damaged file or of another release: they can still be ended.

use jiff::Timestamp;

use super::Engine;
use crate::actors::driver::store_fault;
use crate::run::{Envelope, Event, Fault, RunId, SCHEMA, TenantId};
use crate::store::{Record, Stream};

/// Whether a fault says that a run's events are damaged or beyond this program.
pub(super) fn is_unreadable(fault: &Fault) -> bool {
    matches!(fault.code.as_str(), "store.unreadable" | "store.gap")
}

impl Engine {
    /// Ends a tenant's run whose events cannot be read: its list then has it as cancelled, and it can be
    /// erased. Nothing of what it did is known here. False where it can be read, or has ended.
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
        let row = self.parts.store.run(tenant, run).await.map_err(|error| store_fault(&error))?;
        let Some(row) = row.filter(|row| !row.status.is_terminal()) else { return Ok(false) };
        let journal = &self.system.journal;
        journal.reopen(Stream::Run(run)).await.map_err(|error| store_fault(&error))?;
        let end = Envelope {
            seq: row.last_seq + 1,
            run: Some(run),
            session: row.session,
            tenant: row.tenant,
            at: Timestamp::now(),
            epoch: row.epoch + 1,
            schema: SCHEMA,
            body: Event::RunCancelled { by: by.to_owned() },
        };
        tracing::warn!(%run, by, "a run that cannot be read was cancelled");
        journal.append(vec![Record::Run(end.into())], true).await.map_err(|error| store_fault(&error))?;
        Ok(true)
    }
}
