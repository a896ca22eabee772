//! Reads of the store for the server and the command line: lists, owners, usage and keys.

use jiff::Timestamp;

use super::Engine;
use crate::plan::TaskId;
use crate::run::{ApprovalId, Fault, RunId, SessionId, TenantId};
use crate::store::{
    ApprovalFilter, ApprovalRow, KeyRing, MAX_PAGE, Page, PlanFilter, PlanRow, RunFilter, RunOwner, RunRow,
    SessionRow, UsageRow,
};

impl Engine {
    /// A run's row in the list of runs; `None` if the tenant has no such run.
    pub(crate) async fn run_row(&self, tenant: &TenantId, run: RunId) -> Result<Option<RunRow>, Fault> {
        Ok(self.parts.store.run(tenant, run).await?)
    }

    /// A page of a tenant's runs, newest first.
    pub(crate) async fn runs(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
        page: &Page<RunId>,
    ) -> Result<Vec<RunRow>, Fault> {
        Ok(self.parts.store.runs(tenant, filter, page).await?)
    }

    /// Returns who asked for a run; `None` if the tenant has no such run.
    pub(crate) async fn run_owner(&self, tenant: &TenantId, run: RunId) -> Result<Option<RunOwner>, Fault> {
        Ok(self.parts.store.run_owner(tenant, run).await?)
    }

    /// Why a run's events cannot be read, if that was noticed since the start.
    pub(crate) fn unreadable_reason(&self, run: RunId) -> Option<String> {
        self.parts.store.unreadable_reason(run)
    }

    /// A page of a tenant's plans, newest first.
    pub(crate) async fn plan_rows(
        &self,
        tenant: &TenantId,
        filter: &PlanFilter,
        page: &Page<TaskId>,
    ) -> Result<Vec<PlanRow>, Fault> {
        Ok(self.parts.store.plans(tenant, filter, page).await?)
    }

    /// A page of a tenant's approvals, oldest first.
    pub(crate) async fn approvals(
        &self,
        tenant: &TenantId,
        filter: &ApprovalFilter,
        page: &Page<ApprovalId>,
    ) -> Result<Vec<ApprovalRow>, Fault> {
        Ok(self.parts.store.approvals(tenant, filter, page).await?)
    }

    /// The open approvals of a tenant's run, oldest first.
    pub(crate) async fn open_approvals_of(
        &self,
        tenant: &TenantId,
        run: RunId,
    ) -> Result<Vec<ApprovalRow>, Fault> {
        let filter = ApprovalFilter { open_only: true, run: Some(run), ..ApprovalFilter::default() };
        self.approvals(tenant, &filter, &Page { limit: MAX_PAGE, after: None }).await
    }

    /// A conversation's row in the list of conversations; `None` if the tenant has no such conversation.
    pub(crate) async fn session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Option<SessionRow>, Fault> {
        Ok(self.parts.store.session(tenant, session).await?)
    }

    /// A page of a tenant's conversations, most recently changed first; with `owner`, only those of this user.
    pub(crate) async fn sessions(
        &self,
        tenant: &TenantId,
        owner: Option<&str>,
        page: &Page<SessionId>,
    ) -> Result<Vec<SessionRow>, Fault> {
        Ok(self.parts.store.sessions_of(tenant, owner, page).await?)
    }

    /// The user who started a conversation; `None` if the tenant has no such conversation.
    pub(crate) async fn session_owner(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Option<String>, Fault> {
        Ok(self.parts.store.session_owner(tenant, session).await?)
    }

    /// Returns what a conversation's model calls have cost so far, in billionths of a US dollar.
    pub(crate) async fn session_cost(&self, tenant: &TenantId, session: &SessionId) -> Result<u64, Fault> {
        Ok(self.parts.store.session_usage(tenant, session).await?.cost_nano_usd)
    }

    /// A tenant's model calls from `since` until before `until`, summed by day in the configured time zone, model
    /// and purpose.
    pub(crate) async fn usage_between(
        &self,
        tenant: &TenantId,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<UsageRow>, Fault> {
        let (store, zone) = (&self.parts.store, self.zone());
        Ok(store.usage_breakdown(tenant, Some(since), Some(until), &zone).await?)
    }

    /// How many bytes a tenant's events take in the store.
    pub(crate) async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, Fault> {
        Ok(self.parts.store.tenant_bytes(tenant).await?)
    }

    /// The API keys, with a cache of their own.
    pub(crate) fn key_ring(&self) -> KeyRing {
        KeyRing::new(self.parts.store.clone())
    }
}
