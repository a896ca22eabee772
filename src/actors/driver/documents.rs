//! Which documents a reply to the question for documents names.

use std::time::Duration;

use jiff::Timestamp;

use super::Driver;
use crate::conversation::ChosenDocuments;
use crate::run::{Context, DocumentId, NamedDocument};
use crate::store::{self, DocumentOwner, DocumentRow, Documents, MAX_PAGE, Page};
use crate::tools::Principal;

/// The longest time that documents are looked for.
const LOOK_UP_TIMEOUT: Duration = Duration::from_millis(500);

/// How many documents of a user are looked at, the newest first.
const MAX_LOOKED_AT: usize = 2_000;

impl Driver {
    /// A reply to a question that lists documents names some of the user's: the request is about these.
    pub(super) async fn name_chosen_documents(&mut self, context: &mut Context, listed: &[NamedDocument]) {
        if context.pending.is_none() || listed.is_empty() {
            return;
        }
        let reply = self.state.request();
        let all = documents_of_user(&self.shared.documents, &self.principal);
        let chosen = match tokio::time::timeout(LOOK_UP_TIMEOUT, all).await {
            Ok(Ok(all)) => ChosenDocuments::of(reply, listed, &all),
            missed => {
                let why = match missed {
                    Ok(Err(error)) => error.to_string(),
                    _ => format!("no answer within {LOOK_UP_TIMEOUT:?}"),
                };
                tracing::warn!(run = %self.state.run, why, "the documents of a user cannot be looked up");
                ChosenDocuments::of_listed(reply, listed)
            }
        };
        let ids: Vec<DocumentId> = chosen.named.iter().map(|one| one.id).collect();
        chosen.add_to(context);
        let Principal { tenant, user } = &self.principal;
        let owner = DocumentOwner::user(tenant, user);
        let used = self.shared.documents.mark_used(&owner, &ids, Timestamp::now());
        if let Ok(Err(error)) = tokio::time::timeout(LOOK_UP_TIMEOUT, used).await {
            tracing::warn!(run = %self.state.run, code = error.code(), %error, "the use of a document is not noted");
        }
    }
}

/// The documents of the run's user, the newest first.
async fn documents_of_user(
    documents: &Documents,
    user: &Principal,
) -> Result<Vec<NamedDocument>, store::Error> {
    let owner = DocumentOwner::user(&user.tenant, &user.user);
    let mut all: Vec<NamedDocument> = Vec::new();
    while all.len() < MAX_LOOKED_AT {
        let page = Page { limit: MAX_PAGE, after: all.last().map(|last| last.id) };
        let rows = documents.list(&owner, &page).await?;
        let is_last = rows.len() < MAX_PAGE as usize;
        all.extend(rows.iter().map(DocumentRow::listed));
        if is_last {
            break;
        }
    }
    Ok(all)
}
