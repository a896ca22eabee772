//! Summaries of documents: reading their text, dividing it into chunks, and giving it to the questions about them.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::OwnedSemaphorePermit;

use super::Driver;
use crate::actors::summary_room::MAX_TEXT;
use crate::language::{Lang, questions};
use crate::llm::budget::BudgetError;
use crate::llm::{Purpose, Request};
use crate::planner::{self, SummarySource};
use crate::run::{
    Event, Fault, NamedDocument, Question, Subject, SummarisedDocument, SummaryOutline, SummaryWork,
};
use crate::store::{self, DocumentOwner, DocumentRow, MAX_READ_BYTES, Page};
use crate::summary::{self, CHUNK_BYTES, GROUP, MAX_CHUNKS, estimate};
use crate::tools::Principal;

/// How long a summary that was not begun waits for room for its text. One with parts that were paid for waits longer.
const WAIT_TO_BEGIN: Duration = Duration::from_secs(5);
const WAIT_TO_GO_ON: Duration = Duration::from_secs(30);
/// The most documents that a question names.
const MAX_CHOICES: u32 = 10;
/// The share of a model's window that a chunk may take.
const WINDOW_SHARE: usize = 3;

/// The text that a step summarises, and its room among all texts.
pub(super) struct HeldText {
    source: Arc<SummarySource>,
    _room: OwnedSemaphorePermit,
}

impl Driver {
    /// Divides the documents of the request into chunks: the event that says into which, or why they are not summarised.
    pub(super) async fn outline_documents(&mut self, step: u32) -> Event {
        if self.state.documents().is_empty() {
            return self.ask_for_documents(step).await;
        }
        match self.outline(step).await {
            Ok(outline) => Event::SummaryPlanned { step, outline },
            Err(error) => stopped(step, error),
        }
    }

    /// The question which documents are meant: the user's newest ones are named.
    async fn ask_for_documents(&mut self, step: u32) -> Event {
        let Principal { tenant, user } = &self.principal;
        let (owner, page) = (DocumentOwner::user(tenant, user), Page { limit: MAX_CHOICES, after: None });
        let documents = &self.shared.documents;
        let listed = async {
            Ok::<_, store::Error>((documents.list(&owner, &page).await?, documents.count(&owner).await?))
        };
        let (listed, count) = match listed.await {
            Ok(listed) => listed,
            Err(error) => return stopped(step, error.into()),
        };
        let more = count.saturating_sub(listed.len() as u64);
        // What is in a document is shown only where it was named.
        let choice = |row: &DocumentRow| NamedDocument { heading: None, ..row.named() };
        let choices: Vec<NamedDocument> = listed.iter().map(choice).collect();
        let lines: Vec<(String, u64)> = choices.iter().map(|one| (one.name.clone(), one.bytes)).collect();
        let language = Lang::of(self.state.language().unwrap_or_default());
        let question = Question {
            text: questions::ask_for_document(&lines, more, language),
            tool: None,
            missing: vec![questions::DOCUMENT.to_owned()],
            known: serde_json::Value::Null,
            choices,
        };
        let error = Fault::new("summary.no_document", "the request names no document");
        Event::SummaryStopped { step, error, question: Some(question) }
    }

    async fn outline(&mut self, step: u32) -> Result<SummaryOutline, Fault> {
        let named = self.state.documents();
        let documents: Vec<SummarisedDocument> = named.iter().map(summarised).collect();
        let (text, room) = self.text_of(&documents, WAIT_TO_BEGIN).await?;
        let language = named.iter().find_map(|document| document.language.clone());
        let bound = self.chunk_bytes();
        let (text, spans, ends) = off_thread(move || {
            let spans: Vec<_> = summary::chunks(&text, bound).into_iter().map(|chunk| chunk.span).collect();
            let ends: Vec<u64> = spans.iter().map(|span| span.end).collect();
            (text, spans, ends)
        })
        .await?;
        let earlier = self.state.steps.values().filter_map(|step| step.summary()?.outline.as_ref());
        let all = earlier.map(|outline| outline.ends.len()).sum::<usize>() + spans.len();
        if all > MAX_CHUNKS as usize {
            let what = format!(
                "the documents have {all} parts, and at most {MAX_CHUNKS} are summarised in one request"
            );
            return Err(Fault::new("summary.too_large", what));
        }
        if text.trim().is_empty() {
            return Err(Fault::new("summary.nothing", "the documents are empty"));
        }
        let estimate = estimate(&spans);
        let cost =
            self.shared.gateway.most_cost(Purpose::Summary, estimate.input_tokens, estimate.output_tokens);
        let asks = self.state.steps.get(&step).is_some_and(|step| self.state.asks_scene(step));
        let outline = SummaryOutline {
            documents,
            ends,
            group: GROUP,
            language,
            estimate,
            cost_nano_usd: Some(cost).filter(|cost| *cost > 0 && asks),
        };
        self.check_cost(&outline).await?;
        let work = SummaryWork { outline: Some(outline.clone()), ..SummaryWork::default() };
        if let Some(source) = SummarySource::new(text, &work) {
            self.summaries.insert(step, HeldText { source: Arc::new(source), _room: room });
        }
        Ok(outline)
    }

    /// The most bytes of a chunk, so that a question about it fits into every model's window.
    fn chunk_bytes(&self) -> usize {
        let window = self.state.settings().prompt_tokens;
        let tokens = usize::try_from(window).unwrap_or(usize::MAX) / WINDOW_SHARE;
        if tokens == 0 { CHUNK_BYTES } else { CHUNK_BYTES.min(tokens.saturating_mul(7) / 2) }
    }

    /// Refuses a summary that the remaining budget does not cover, before anything is spent.
    async fn check_cost(&mut self, outline: &SummaryOutline) -> Result<(), Fault> {
        let Some(cost) = outline.cost_nano_usd else { return Ok(()) };
        let budget = self.shared.gateway.guards().budget.clone();
        match budget.affords(&self.caller(), cost).await {
            Ok(()) => Ok(()),
            Err(BudgetError::Refused(refusal)) => {
                let questions = outline.estimate.questions;
                let what = format!(
                    "the summary takes up to {questions} questions to models, and the remaining budget does not cover \
                     them: {refusal}; nothing was asked"
                );
                Err(Fault::new("budget.exceeded", what))
            }
            // Each question reserves its cost, so nothing is spent beyond the budget.
            Err(BudgetError::Unavailable(error)) => {
                tracing::warn!(%error, "a summary was not checked against the budget");
                Ok(())
            }
        }
    }

    /// Lets go of the texts of steps that have ended.
    pub(super) fn drop_ended_summaries(&mut self) {
        let steps = &self.state.steps;
        self.summaries.retain(|step, _| steps.get(step).is_some_and(|step| !step.status.is_terminal()));
    }

    /// The text that a step summarises: read again where this driver does not have it.
    async fn summary_source(&mut self, step: u32) -> Result<Arc<SummarySource>, Fault> {
        if let Some(held) = self.summaries.get(&step) {
            return Ok(held.source.clone());
        }
        let Some(work) = self.state.summary_work(step).cloned() else {
            return Err(Fault::new("summary.no_document", "the step summarises nothing"));
        };
        let documents = work.outline.as_ref().map(|outline| outline.documents.clone()).unwrap_or_default();
        let wait = if work.parts.is_empty() { WAIT_TO_BEGIN } else { WAIT_TO_GO_ON };
        let (text, room) = self.text_of(&documents, wait).await?;
        let source = off_thread(move || SummarySource::new(text, &work)).await?;
        let Some(source) = source.map(Arc::new) else {
            return Err(Fault::new(
                "document.changed",
                "the documents are not those of which the summary was begun",
            ));
        };
        self.summaries.insert(step, HeldText { source: source.clone(), _room: room });
        Ok(source)
    }

    /// The text of these documents, one after the other, and the room that it takes, which is waited for.
    async fn text_of(
        &mut self,
        documents: &[SummarisedDocument],
        wait: Duration,
    ) -> Result<(String, OwnedSemaphorePermit), Fault> {
        let all = documents.iter().map(|document| document.bytes).fold(0, u64::saturating_add);
        if all > MAX_TEXT {
            let what = format!(
                "the documents have {all} bytes together, and at most {MAX_TEXT} are summarised at once"
            );
            return Err(Fault::new("summary.too_large", what));
        }
        // A run that holds a text waits for no further one: several would wait for each other.
        let wait = if self.summaries.is_empty() { wait } else { Duration::ZERO };
        let mut cancel_requests = self.cancel_requests.clone();
        let room = tokio::select! {
            room = self.shared.summary_room.take(all, wait) => room?,
            Ok(()) = cancel_requests.changed() => {
                return Err(Fault::new("summary.busy", "the run was cancelled while it waited for room"));
            }
        };
        let mut bytes = Vec::new();
        for document in documents {
            let own = self.content_of(document).await?;
            bytes.extend_from_slice(&own);
        }
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| Fault::new("document.changed", "a document is no text any more"))?;
        Ok((text, room))
    }

    async fn content_of(&mut self, document: &SummarisedDocument) -> Result<Vec<u8>, Fault> {
        let gone =
            || Fault::new("document.deleted", format!("the document {} no longer exists", document.id));
        let Principal { tenant, user } = &self.principal;
        let opened = self.shared.documents.open(&DocumentOwner::user(tenant, user), document.id).await?;
        let opened = opened.ok_or_else(gone)?;
        let (mut bytes, mut at) = (Vec::new(), 0);
        while at < document.bytes {
            let read = opened.read(at..at.saturating_add(MAX_READ_BYTES)).await?;
            if read.is_empty() {
                break;
            }
            at += read.len() as u64;
            bytes.extend_from_slice(&read);
        }
        let (bytes, hash) = off_thread(move || {
            let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes));
            (bytes, hash)
        })
        .await?;
        if hash == document.sha256 {
            return Ok(bytes);
        }
        let what = format!("the document {} is not what it was when its summary was begun", document.id);
        Err(Fault::new("document.changed", what))
    }

    /// The question about `subject`. The error is an event that ends what it is about.
    pub(super) async fn request_about(&mut self, subject: Subject) -> Result<Request, Event> {
        let Subject::Summary { step, .. } = subject else {
            return Ok(planner::request(&self.state, &self.shared.catalogue, subject));
        };
        match self.summary_source(step).await {
            Ok(source) => Ok(planner::summary_request(&self.state, Some(&source), subject)),
            Err(error) => Err(stopped(step, error)),
        }
    }

    /// The event that says what the reply to a question means.
    pub(super) async fn reading_of(&mut self, call: u32, subject: Subject) -> Event {
        let Subject::Summary { step, .. } = subject else {
            return planner::read(&self.state, &self.shared.catalogue, call, subject);
        };
        match self.summary_source(step).await {
            Ok(source) => planner::read_summary(&self.state, &source, call, subject),
            Err(error) => stopped(step, error),
        }
    }
}

fn stopped(step: u32, error: Fault) -> Event {
    Event::SummaryStopped { step, error, question: None }
}

fn summarised(document: &NamedDocument) -> SummarisedDocument {
    SummarisedDocument { id: document.id, sha256: document.sha256.clone(), bytes: document.bytes }
}

/// Work that takes long, on a thread of its own.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Fault::new("summary.failed", format!("the documents could not be read: {error}")))
}
