//! The documents of a request, as its tools read them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::ToolError;
use crate::mutex::lock;
use crate::run::{DocumentId, DocumentText, Fault, NamedDocument};

/// Reads the content of documents for one requester.
#[async_trait]
pub trait DocumentSource: Send + Sync {
    /// The bytes of `range`, as far as the document reaches; at most a mebibyte.
    ///
    /// # Errors
    /// `document.deleted` if it no longer exists, or is not the requester's; errors of the store.
    async fn read(&self, document: &NamedDocument, range: Range<u64>) -> Result<Vec<u8>, Fault>;
}

/// The documents that a request named: all that its tools can read. What they say, their names and headings included, is
/// data. A result of a tool that looked at them is no evidence for the values of a write.
#[derive(Clone, Default)]
pub struct RunDocuments {
    named: Arc<[NamedDocument]>,
    source: Option<Arc<dyn DocumentSource>>,
    /// Those that a tool looked at.
    looked_at: Arc<Mutex<BTreeSet<DocumentId>>>,
}

impl RunDocuments {
    /// These documents, read from `source`.
    pub fn new(named: Vec<NamedDocument>, source: Arc<dyn DocumentSource>) -> Self {
        Self { named: named.into(), source: Some(source), looked_at: Arc::default() }
    }

    /// All of them, in the order in which the request named them.
    pub fn all(&self) -> Vec<ToolDocument> {
        self.named.iter().map(|about| self.opened(about)).collect()
    }

    /// The document with this id.
    ///
    /// # Errors
    /// `document.unknown` if the request named none with this id.
    pub fn get(&self, id: &str) -> Result<ToolDocument, ToolError> {
        let found = id.trim().parse::<DocumentId>().ok();
        let found = found.and_then(|id| self.named.iter().find(|about| about.id == id));
        found.map(|about| self.opened(about)).ok_or_else(|| {
            let named: Vec<String> = self.named.iter().map(|about| about.id.to_string()).collect();
            let named = if named.is_empty() { "none".to_owned() } else { named.join(", ") };
            let id: String = id.chars().take(80).collect();
            let message = format!("the request names no document {id:?}; it names {named}");
            ToolError::refused("document.unknown", message)
        })
    }

    /// The documents that tools looked at so far.
    pub(crate) fn looked_at(&self) -> Vec<DocumentId> {
        lock(&self.looked_at).iter().copied().collect()
    }

    fn opened(&self, about: &NamedDocument) -> ToolDocument {
        lock(&self.looked_at).insert(about.id);
        ToolDocument { about: about.clone(), source: self.source.clone() }
    }
}

impl std::fmt::Debug for RunDocuments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.named.iter().map(|about| about.id)).finish()
    }
}

/// One of these documents.
#[derive(Clone)]
pub struct ToolDocument {
    about: NamedDocument,
    source: Option<Arc<dyn DocumentSource>>,
}

impl ToolDocument {
    /// Returns what is known of it.
    pub fn about(&self) -> &NamedDocument {
        &self.about
    }

    /// The bytes of `range`, as far as the document reaches; at most a mebibyte.
    ///
    /// # Errors
    /// `document.deleted` if it no longer exists; errors of the store.
    pub async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, ToolError> {
        let source = self.source.as_ref().ok_or_else(|| deleted("there is no store of documents"))?;
        source.read(&self.about, range).await.map_err(|fault| ToolError::failed(&fault.code, fault.message))
    }

    /// The whole characters of `range`, at most a mebibyte.
    ///
    /// # Errors
    /// As [`ToolDocument::read`].
    pub async fn text(&self, range: Range<u64>) -> Result<DocumentText, ToolError> {
        let bytes = self.read(range.clone()).await?;
        DocumentText::of(range.start, &bytes)
            .ok_or_else(|| deleted("its content is not the text that was stored"))
    }
}

impl std::fmt::Debug for ToolDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.about.fmt(f)
    }
}

fn deleted(why: &str) -> ToolError {
    ToolError::failed("document.deleted", format!("the document cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::DocumentMedia;

    struct OneText(&'static str);

    #[async_trait]
    impl DocumentSource for OneText {
        async fn read(&self, _: &NamedDocument, range: Range<u64>) -> Result<Vec<u8>, Fault> {
            let end = (range.end as usize).min(self.0.len());
            Ok(self.0.as_bytes()[range.start as usize..end].to_vec())
        }
    }

    fn named(n: u128) -> NamedDocument {
        NamedDocument {
            id: DocumentId(uuid::Uuid::from_u128(n)),
            sha256: String::new(),
            name: format!("{n}.txt"),
            media: DocumentMedia::Text.name().to_owned(),
            bytes: 9,
            language: None,
            heading: None,
        }
    }

    #[tokio::test]
    async fn tools_read_only_what_the_request_named_and_that_is_noted() {
        let documents = RunDocuments::new(vec![named(1), named(2)], Arc::new(OneText("più di ieri")));
        let refused = documents.get(&named(3).id.to_string()).unwrap_err();
        assert_eq!(refused.code, "document.unknown");
        assert!(refused.message.contains(&named(2).id.to_string()), "{refused}");
        assert!(documents.looked_at().is_empty());
        let other = documents.clone();
        let text = other.get(&named(2).id.to_string()).unwrap().text(3..8).await.unwrap();
        assert_eq!((text.start, text.text.as_str()), (4, " di "));
        assert_eq!(documents.looked_at(), [named(2).id]);
        assert_eq!(documents.all().len(), 2);
        assert_eq!(documents.looked_at(), [named(1).id, named(2).id]);
        assert_eq!(RunDocuments::default().get("x").unwrap_err().code, "document.unknown");
    }
}
