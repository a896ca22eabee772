//! The documents of a run, read from the store for its tools.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;

use crate::run::{Fault, NamedDocument, RunState};
use crate::store::{DocumentOwner, Documents};
use crate::tools::{DocumentSource, Principal, RunDocuments};

/// Reads documents of one user.
struct StoredDocuments {
    documents: Documents,
    principal: Principal,
}

/// The documents that the tools of a run may read, for its requester.
pub(super) fn run_documents(state: &RunState, documents: &Documents, principal: &Principal) -> RunDocuments {
    let named = state.documents();
    if named.is_empty() {
        return RunDocuments::default();
    }
    RunDocuments::new(
        named,
        Arc::new(StoredDocuments { documents: documents.clone(), principal: principal.clone() }),
    )
}

#[async_trait]
impl DocumentSource for StoredDocuments {
    async fn read(&self, document: &NamedDocument, range: Range<u64>) -> Result<Vec<u8>, Fault> {
        let owner = DocumentOwner::user(&self.principal.tenant, &self.principal.user);
        // Looked up at each read: it may have been deleted since the request was accepted.
        let opened = self.documents.open(&owner, document.id).await?;
        let opened = opened.filter(|opened| opened.row().sha256 == document.sha256);
        let Some(opened) = opened else {
            let message =
                format!("the document {} ({}) no longer exists: it was deleted", document.name, document.id);
            return Err(Fault::new("document.deleted", message));
        };
        Ok(opened.read(range).await?)
    }
}
