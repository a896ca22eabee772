//! Documents of users: adding, reading and deleting them, and what prompts show of those that a request names.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::ticket::Intake;
use super::{ChatRequest, Engine};
use crate::actors::{journal, session_registry};
use crate::run::{DocumentId, Fault, NamedDocument, SessionId, TenantId};
use crate::store::{
    ConversationHold, DeletedDocument, DocumentLimits, DocumentOwner, DocumentRow, DocumentUpload, Documents,
    NewDocument, OpenDocument, Page,
};

/// Maximum number of documents that a request may name.
const MAX_DOCUMENTS: usize = 16;

impl Engine {
    /// Begins to add a document. The same content of the same user is one document, with its first name.
    ///
    /// # Errors
    /// `document.name`, `store.full`, `store.quota`; errors of the store.
    pub async fn begin_document(&self, new: NewDocument) -> Result<DocumentUpload, Fault> {
        Ok(self.parts.store.documents().begin(new, self.document_limits()).await?)
    }

    /// How large documents may be, and how many a user may have, as configured now.
    pub fn document_limits(&self) -> DocumentLimits {
        self.parts.current.load().config.documents.limits()
    }

    /// How long an upload may take, and how long nothing may arrive, as configured now.
    pub(crate) fn upload_timeouts(&self) -> (Duration, Duration) {
        let current = self.parts.current.load();
        let documents = &current.config.documents;
        (Duration::from_millis(documents.upload_timeout_ms), Duration::from_millis(documents.idle_timeout_ms))
    }

    /// How many uploads may be in progress.
    pub(crate) fn max_uploads(&self) -> usize {
        self.parts.current.load().config.documents.max_uploads
    }

    /// An owner's documents, newest first.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn documents(
        &self,
        owner: &DocumentOwner<'_>,
        page: &Page<DocumentId>,
    ) -> Result<Vec<DocumentRow>, Fault> {
        Ok(self.parts.store.documents().list(owner, page).await?)
    }

    /// Opens a document for reading; `None` if the owner has none with this id.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn document(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
    ) -> Result<Option<OpenDocument>, Fault> {
        Ok(self.parts.store.documents().open(owner, id).await?)
    }

    /// A document of the owner, also one whose deletion has begun and has not ended; `None` if there is none with this id.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn document_to_delete(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
    ) -> Result<Option<DocumentRow>, Fault> {
        Ok(self.parts.store.documents().get_to_delete(owner, id).await?)
    }

    /// Deletes a document and everything that is derived from it: the runs that named it, and what their conversations
    /// remember of what it says. `None` if the owner has no such document.
    ///
    /// # Errors
    /// `document.in_use` if a run that named it, or a later one of its conversation, has not ended; then nothing was forgotten,
    /// or, if that run came in between, the rest is forgotten once it has ended. Errors of the store.
    pub async fn delete_document(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
    ) -> Result<Option<DeletedDocument>, Fault> {
        self.system.journal.flush().await?;
        let hold = RegistryHold { registry: &self.system.registry, journal: &self.system.journal };
        self.parts.store.documents().delete_holding(owner, id, &hold).await
    }

    /// Deletes documents that were neither uploaded nor named for `documents.keep_days` before `now`, at most a thousand;
    /// none of these if they are kept for ever. Completes deletions that were begun. A running engine does so at its start and
    /// every hour, and goes on until no more are left. Returns their number.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn expire_documents(&self, now: Timestamp) -> Result<usize, Fault> {
        let days = self.parts.current.load().config.documents.keep_days;
        self.system.journal.flush().await?;
        let hold = RegistryHold { registry: &self.system.registry, journal: &self.system.journal };
        expire(&self.parts.store.documents(), &hold, days, now).await
    }
}

/// Holds conversations of a running engine, whose actors remember what is about to be erased.
pub(super) struct RegistryHold<'a> {
    pub(super) registry: &'a session_registry::Address,
    pub(super) journal: &'a journal::Handle,
}

#[async_trait::async_trait]
impl ConversationHold for RegistryHold<'_> {
    type Error = Fault;

    async fn hold(&self, tenant: &TenantId, session: &SessionId) -> Result<Box<dyn Send>, Fault> {
        let held = self.registry.hold(tenant.clone(), session.clone()).await;
        let held =
            held.map_err(|fault| if fault.code == "store.session_busy" { in_use(session) } else { fault })?;
        self.journal.flush().await?;
        Ok(Box::new(held))
    }

    fn code(error: &Fault) -> &str {
        &error.code
    }
}

fn in_use(session: &SessionId) -> Fault {
    let what = format!(
        "no request finds the document any more, but session {session}, which remembers it, is active: it forgets the document \
         within an hour, or when you repeat the deletion after its request has ended"
    );
    Fault::new("document.in_use", what)
}

/// Deletes documents whose deletion has begun, or that were not used for `days` before `now`; 0 for none of these.
pub(super) async fn expire(
    documents: &Documents,
    hold: &RegistryHold<'_>,
    days: u32,
    now: Timestamp,
) -> Result<usize, Fault> {
    // At 0, and for an unrepresentable time, nothing is older.
    let since = match days {
        0 => Timestamp::UNIX_EPOCH,
        days => {
            now.checked_sub(SignedDuration::from_hours(24 * i64::from(days))).unwrap_or(Timestamp::UNIX_EPOCH)
        }
    };
    documents.delete_unused_holding(since, hold).await
}

/// Returns what the prompts of a run show of the documents that its request names, and marks these as used.
///
/// # Errors
/// `request.documents` if there are too many; `document.unknown` if one does not exist or is another user's; errors of
/// the store.
pub(super) async fn named_documents(
    intake: &Intake,
    request: &ChatRequest,
) -> Result<Vec<NamedDocument>, Fault> {
    if request.documents.len() > MAX_DOCUMENTS {
        let message =
            format!("a request may name {MAX_DOCUMENTS} documents, not {}", request.documents.len());
        return Err(Fault::new("request.documents", message));
    }
    let documents = intake.store.documents();
    let mut named: Vec<NamedDocument> = Vec::new();
    let owner = DocumentOwner::user(&request.tenant, &request.user);
    for id in &request.documents {
        let row = documents.get(&owner, *id).await?.ok_or_else(|| unknown(*id))?;
        if named.iter().all(|other| other.id != row.id) {
            named.push(row.named());
        }
    }
    documents.mark_used(&owner, &request.documents, Timestamp::now()).await?;
    Ok(named)
}

fn unknown(id: DocumentId) -> Fault {
    Fault::new("document.unknown", format!("there is no document `{id}`; GET /api/documents lists yours"))
}
