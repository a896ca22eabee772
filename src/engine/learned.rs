//! Learned plans for operators.

use jiff::Timestamp;

use super::Engine;
use crate::documents::LearnedDocument;
use crate::run::{Fault, TenantId};

impl Engine {
    /// A page of a tenant's learned plans, by id.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn learned_plans(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<LearnedDocument>, Fault> {
        let rows = self.parts.store.learned_plans(tenant, after, limit).await?;
        let (proven_after, now) = (self.proven_after(), Timestamp::now());
        Ok(rows.into_iter().map(|row| LearnedDocument::new(row, proven_after, now)).collect())
    }

    /// A learned plan; `None` if the tenant has none with this id.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn learned_plan(&self, tenant: &TenantId, id: &str) -> Result<Option<LearnedDocument>, Fault> {
        let row = self.parts.store.learned_plan(tenant, id, "").await?;
        Ok(row.map(|row| LearnedDocument::new(row, self.proven_after(), Timestamp::now())))
    }

    /// Deletes a learned plan. Returns whether the tenant had it.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn delete_learned(&self, tenant: &TenantId, id: &str) -> Result<bool, Fault> {
        Ok(self.parts.store.delete_learned(tenant, id).await?)
    }

    /// How many successes prove a plan, as configured now.
    pub(super) fn proven_after(&self) -> u32 {
        self.parts.current.load().config.planning.learn_after
    }
}
