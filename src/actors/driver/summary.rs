//! Summaries of documents: reading their text, dividing it into chunks, and giving it to the questions about them.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::OwnedSemaphorePermit;

use super::Driver;
use super::preflight::budget_refusal;
use crate::actors::run_documents::run_documents;
use crate::actors::summary_room::MAX_TEXT;
use crate::llm::{Purpose, Request};
use crate::planner;
use crate::run::{
    Event, Fault, NamedDocument, Outcome, Subject, SummarisedDocument, SummaryOutline, SummaryOwner,
};
use crate::store::{self, DocumentOwner, DocumentRow, MAX_READ_BYTES, Page};
use crate::summary::{self, GROUP, SummarisedText, chunk_bytes, estimate};
use crate::tools::Principal;

/// How long a summary that was not begun waits for room for its text. One with parts that were paid for waits longer.
const WAIT_TO_BEGIN: Duration = Duration::from_secs(5);
const WAIT_TO_GO_ON: Duration = Duration::from_secs(30);
/// Maximum number of documents that a question names.
const MAX_CHOICES: u32 = 10;

/// The text that a step or a call summarises, and its room among all texts.
pub(super) struct HeldText {
    source: Arc<SummarisedText>,
    _room: OwnedSemaphorePermit,
}

impl Driver {
    /// Divides the documents of the request into chunks: the event that says into which, or why they are not summarised.
    pub(super) async fn outline_documents(&mut self, step: u32) -> Event {
        let named = self.state.documents();
        if named.is_empty() {
            return self.ask_for_documents(step).await;
        }
        let owner = SummaryOwner::step(step);
        match self.outline(owner, &named).await {
            Ok(outline) => Event::SummaryPlanned { step, tool_call: None, outline },
            Err(error) => stopped(owner, error),
        }
    }

    /// Returns whether the tool of a call summarises documents.
    pub(super) fn is_summary_tool(&self, call: u32) -> bool {
        let call = self.state.calls.get(&call);
        let tool = call.and_then(|call| self.shared.catalogue.get(&call.scene)?.tool(&call.requested.tool));
        tool.is_some_and(|tool| tool.summarises)
    }

    /// Begins a call that summarises documents: the event that says into which chunks they are divided, or its end.
    pub(super) async fn begin_summary_call(&mut self, call: u32) -> Event {
        let refused = |error| Event::ToolCompleted {
            call,
            outcome: Outcome::Refused { error },
            millis: 0,
            notes: None,
        };
        let step = self.state.calls.get(&call).map_or(0, |call| call.step);
        let named = match self.documents_of_call(call) {
            Ok(named) if named.is_empty() => {
                return refused(Fault::new("summary.no_document", "the request names no document"));
            }
            Ok(named) => named,
            Err(error) => return refused(error),
        };
        match self.outline(SummaryOwner { step, tool_call: Some(call) }, &named).await {
            Ok(outline) => Event::SummaryPlanned { step, tool_call: Some(call), outline },
            Err(error) => {
                let outcome = Outcome::Failed { error };
                Event::ToolCompleted { call, outcome, millis: 0, notes: None }
            }
        }
    }

    /// The documents that a call names, or all of its request.
    fn documents_of_call(&self, call: u32) -> Result<Vec<NamedDocument>, Fault> {
        let call = self.state.calls.get(&call);
        let ids = call.and_then(|call| call.requested.arguments.get("documents")?.as_array());
        let Some(ids) = ids else { return Ok(self.state.documents()) };
        let documents = run_documents(&self.state, &self.shared.documents, &self.principal);
        let mut named: Vec<NamedDocument> = Vec::new();
        for id in ids.iter().filter_map(serde_json::Value::as_str) {
            let document = documents.get(id).map_err(|error| Fault::new(&error.code, error.message))?;
            if named.iter().all(|other| other.id != document.about().id) {
                named.push(document.about().clone());
            }
        }
        Ok(named)
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
            Err(error) => return stopped(SummaryOwner::step(step), error.into()),
        };
        let more = count.saturating_sub(listed.len() as u64);
        let choices: Vec<NamedDocument> = listed.iter().map(DocumentRow::listed).collect();
        let question = planner::question_for_documents(&self.state, choices, more);
        let error = Fault::new("summary.no_document", "the request names no document");
        Event::SummaryStopped { step, tool_call: None, error, question: Some(question) }
    }

    async fn outline(
        &mut self,
        owner: SummaryOwner,
        named: &[NamedDocument],
    ) -> Result<SummaryOutline, Fault> {
        let documents: Vec<SummarisedDocument> = named.iter().map(summarised).collect();
        let (text, room) = self.text_of(&documents, WAIT_TO_BEGIN).await?;
        let language = named.iter().find_map(|document| document.language.clone());
        let bound = chunk_bytes(self.state.settings().prompt_tokens);
        let (text, spans, ends) = off_thread(move || {
            let spans: Vec<_> = summary::chunks(&text, bound).into_iter().map(|chunk| chunk.span).collect();
            let ends: Vec<u64> = spans.iter().map(|span| span.end).collect();
            (text, spans, ends)
        })
        .await?;
        self.state.check_summary_chunks(spans.len())?;
        if text.trim().is_empty() {
            return Err(Fault::new("summary.nothing", "the documents are empty"));
        }
        let estimate = estimate(&spans);
        let cost =
            self.shared.gateway.most_cost(Purpose::Summary, estimate.input_tokens, estimate.output_tokens);
        let asks = self.state.steps.get(&owner.step).is_some_and(|step| self.state.asks_scene(step));
        let outline = SummaryOutline {
            documents,
            ends,
            group: GROUP,
            language,
            estimate,
            cost_nano_usd: Some(cost).filter(|cost| *cost > 0 && asks),
        };
        self.check_cost(&outline).await?;
        if let Some(source) = outline.read(text) {
            self.summaries.insert(owner, HeldText { source: Arc::new(source), _room: room });
        }
        Ok(outline)
    }

    /// Refuses a summary that the remaining budget does not cover, before anything is spent.
    async fn check_cost(&mut self, outline: &SummaryOutline) -> Result<(), Fault> {
        let Some(cost) = outline.cost_nano_usd else { return Ok(()) };
        let budget = self.shared.gateway.guards().budget.clone();
        let Some(refusal) = budget_refusal(&*budget, self.caller(), cost, "a summary").await else {
            return Ok(());
        };
        let questions = outline.estimate.questions;
        let what = format!(
            "the summary takes up to {questions} questions to models, and the remaining budget does not cover \
             them: {}; nothing was asked",
            refusal.for_clients()
        );
        Err(Fault::new("budget.exceeded", what).after(refusal.retry_after(jiff::Timestamp::now())))
    }

    /// Lets go of the texts of summaries that have ended.
    pub(super) fn drop_ended_summaries(&mut self) {
        let state = &self.state;
        self.summaries.retain(|owner, _| state.is_summarising(*owner));
    }

    /// The text that is summarised: read again where this driver does not have it.
    async fn summary_source(&mut self, owner: SummaryOwner) -> Result<Arc<SummarisedText>, Fault> {
        if let Some(held) = self.summaries.get(&owner) {
            return Ok(held.source.clone());
        }
        let work = self.state.summary_work(owner);
        let Some((work, outline)) = work.and_then(|work| Some((work, work.outline.clone()?))) else {
            return Err(Fault::new("summary.no_document", "nothing is summarised here"));
        };
        let wait = if work.parts.is_empty() { WAIT_TO_BEGIN } else { WAIT_TO_GO_ON };
        let (text, room) = self.text_of(&outline.documents, wait).await?;
        let source = off_thread(move || outline.read(text)).await?;
        let Some(source) = source.map(Arc::new) else {
            return Err(Fault::new(
                "document.changed",
                "the documents are not those of which the summary was begun",
            ));
        };
        self.summaries.insert(owner, HeldText { source: source.clone(), _room: room });
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
        let Some((owner, _)) = SummaryOwner::of(subject) else {
            return Ok(planner::request(&self.state, &self.shared.catalogue, subject));
        };
        match self.summary_source(owner).await {
            Ok(source) => Ok(planner::summary_request(&self.state, Some(&source), subject)),
            Err(error) => Err(stopped(owner, error)),
        }
    }

    /// The event that says what the reply to a question means.
    pub(super) async fn reading_of(&mut self, call: u32, subject: Subject) -> Event {
        let Some((owner, _)) = SummaryOwner::of(subject) else {
            return planner::read(&self.state, &self.shared.catalogue, call, subject);
        };
        match self.summary_source(owner).await {
            Ok(source) => planner::read_summary(&self.state, &source, call, subject),
            Err(error) => stopped(owner, error),
        }
    }
}

fn stopped(owner: SummaryOwner, error: Fault) -> Event {
    Event::SummaryStopped { step: owner.step, tool_call: owner.tool_call, error, question: None }
}

fn summarised(document: &NamedDocument) -> SummarisedDocument {
    SummarisedDocument { id: document.id, sha256: document.sha256.clone(), bytes: document.bytes }
}

/// Work that takes long, on a thread of its own.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Fault::new("summary.failed", format!("the documents could not be read: {error}")))
}
