//! Carrying on what an earlier process left unfinished.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use futures::StreamExt;

use super::Engine;
use crate::actors::driver::store_fault;
use crate::actors::live::Watch;
use crate::run::{Fault, RunId, RunStatus, TenantId};

/// Most conversations whose unfinished runs are carried on at once, beside those that requests wake.
const AT_ONCE: usize = 64;

impl Engine {
    /// Has every run that an earlier process accepted and did not finish carried on from its journal, the
    /// oldest first; gives how many there are. They go on whoever waits for this, a bounded number of
    /// conversations at once; a request to one of the others wakes it, and comes after what was left
    /// unfinished in it. To be called before requests are taken, by the process that serves, and once it
    /// can: from here on its death counts (see [`crate::run::recovery`]), until it is told to stop. Where
    /// the disk has no room, they wait for it.
    ///
    /// # Errors
    /// The store's, where the unfinished runs cannot be listed.
    pub async fn carry_on(&self) -> Result<usize, Fault> {
        let runs = self.parts.store.unfinished_runs().await.map_err(|error| store_fault(&error))?;
        // What waits for a person waits on, until somebody decides.
        let runs: Vec<_> = runs.into_iter().filter(|run| run.status != RunStatus::Waiting).collect();
        let count = runs.len();
        let gate = self.parts.gate.clone();
        let unfinished = runs.iter().map(|run| run.run).collect();
        gate.close(unfinished).await.map_err(|error| store_fault(&error))?;
        self.parts.carries_on.store(true, Ordering::Release);
        if count > 0 {
            tracing::info!(runs = count, "runs of an earlier process are carried on");
        }
        let mut seen = BTreeSet::new();
        let sessions = runs.into_iter().map(|run| (run.tenant, run.session));
        let sessions: Vec<_> = sessions.filter(|session| seen.insert(session.clone())).collect();
        let registry = self.system.registry.clone();
        self.system.spawn(async move {
            gate.begin().await;
            let carried = futures::stream::iter(sessions).map(|(tenant, session)| {
                let registry = registry.clone();
                async move { registry.carry_on(tenant, session).await }
            });
            carried.buffer_unordered(AT_ONCE).collect::<()>().await;
            gate.recovered().await;
        });
        Ok(count)
    }

    /// The process was told to stop: however it ends from here on, it has not died. To be called when that
    /// is told; [`Engine::stop`] does it, too.
    pub async fn stops(&self) {
        self.parts.gate.stop().await;
    }

    /// Follows a tenant's run from now on, also one that an earlier process left unfinished and that is
    /// still to be carried on here; `None` where it is neither.
    pub(super) async fn follow(&self, tenant: &TenantId, run: RunId) -> Result<Option<Watch>, Fault> {
        let watch = self.watch(tenant, run);
        if watch.is_some() || !self.parts.carries_on.load(Ordering::Acquire) {
            return Ok(watch);
        }
        let row = self.parts.store.run(tenant, run).await.map_err(|error| store_fault(&error))?;
        let Some(row) = row.filter(|row| !row.status.is_terminal() && row.status != RunStatus::Waiting)
        else {
            return Ok(None);
        };
        self.system.registry.wake(tenant.clone(), row.session).await;
        Ok(self.watch(tenant, run))
    }
}
