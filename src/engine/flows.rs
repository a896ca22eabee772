//! Flows for operators.

use super::Engine;
use crate::documents::{FlowDocument, MAX_MISSING_NODES};
use crate::run::{Fault, TenantId};

impl Engine {
    /// A flow with the nodes that were suggested for it in a tenant's runs; with `user`, in that user's alone. `None` if
    /// there is no such flow.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn flow_document(
        &self,
        tenant: &TenantId,
        flow: &str,
        user: Option<&str>,
    ) -> Result<Option<FlowDocument>, Fault> {
        let catalogue = self.catalogue();
        let Some(flow) = catalogue.flow(flow) else { return Ok(None) };
        let missing = self.parts.store.missing_nodes(tenant, &flow.name, user, MAX_MISSING_NODES).await?;
        let missing_nodes = missing.into_iter().map(Into::into).collect();
        Ok(Some(FlowDocument { missing_nodes, ..FlowDocument::of(flow) }))
    }
}
