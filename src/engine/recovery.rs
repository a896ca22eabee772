//! Resumes runs that an earlier process left unfinished.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use futures::StreamExt;

use super::Engine;
use crate::actors::active_runs::RunWatch;
use crate::run::{Fault, RunId, RunStatus, TenantId};

/// Maximum number of conversations whose unfinished runs are resumed concurrently, besides those that
/// requests load.
const MAX_CONCURRENT_SESSIONS: usize = 64;

impl Engine {
    /// Resumes every run that an earlier process accepted and did not finish, oldest first. Returns their
    /// number at once; the work continues in the background, a limited number of conversations at a time. A
    /// request to one of the other conversations loads it and waits behind its unfinished runs.
    ///
    /// The serving process calls this before it accepts requests, as soon as it is able to serve. From then
    /// until shutdown its crashes are counted (see [`crate::run::recovery`]). If the disk is full, the runs
    /// wait for space.
    ///
    /// # Errors
    /// Errors of the store, if the unfinished runs cannot be listed.
    pub async fn resume_unfinished(&self) -> Result<usize, Fault> {
        let runs = self.parts.store.unfinished_runs().await?;
        // Runs that wait for a person keep waiting.
        let runs: Vec<_> = runs.into_iter().filter(|run| run.status != RunStatus::Waiting).collect();
        let count = runs.len();
        let gate = self.parts.recovery_gate.clone();
        let unfinished = runs.iter().map(|run| run.run).collect();
        gate.close(unfinished).await?;
        self.parts.is_serving.store(true, Ordering::Release);
        self.system.services.load().prepare_ranking();
        if count > 0 {
            tracing::info!(runs = count, "resuming runs of an earlier process");
        }
        let mut seen = BTreeSet::new();
        let sessions = runs.into_iter().map(|run| (run.tenant, run.session));
        let sessions: Vec<_> = sessions.filter(|session| seen.insert(session.clone())).collect();
        let registry = self.system.registry.clone();
        self.system.spawn(async move {
            gate.open().await;
            let resumed = futures::stream::iter(sessions).map(|(tenant, session)| {
                let registry = registry.clone();
                async move { registry.resume(tenant, session).await }
            });
            resumed.buffer_unordered(MAX_CONCURRENT_SESSIONS).collect::<()>().await;
            gate.finish_recovery().await;
        });
        Ok(count)
    }

    /// Records that the process is shutting down: from now on its end does not count as a crash. Call this on
    /// the shutdown signal; [`Engine::stop`] does it, too.
    pub async fn begin_shutdown(&self) {
        self.parts.recovery_gate.stop().await;
    }

    /// Subscribes to a tenant's run from now on. Resumes the run first if an earlier process left it
    /// unfinished. `None` if the run is neither in progress nor unfinished.
    pub(super) async fn watch_or_resume(
        &self,
        tenant: &TenantId,
        run: RunId,
    ) -> Result<Option<RunWatch>, Fault> {
        let watch = self.watch(tenant, run);
        if watch.is_some() || !self.parts.is_serving.load(Ordering::Acquire) {
            return Ok(watch);
        }
        let row = self.parts.store.run(tenant, run).await?;
        let Some(row) = row.filter(|row| !row.status.is_terminal() && row.status != RunStatus::Waiting)
        else {
            return Ok(None);
        };
        self.system.registry.wake(tenant.clone(), row.session).await;
        Ok(self.watch(tenant, run))
    }
}
