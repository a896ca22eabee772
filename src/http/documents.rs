//! `/api/documents`: documents of users. Their content is streamed in both directions.

use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::web::{Bytes, Payload};
use actix_web::{HttpRequest, HttpResponse, web};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::body::{AuthenticatedPayload, is_uncompressed, is_utf8};
use super::principal::RequestPrincipal;
use super::problem::Problem;
use super::query::QueryParameters;
use super::{next_cursor, parse_page};
use crate::UploadedDocument;
use crate::access::AccessAction;
use crate::run::{DocumentId, DocumentMedia, RunId, SessionId};
use crate::store::{AddedDocument, DocumentOwner, MAX_PAGE, NewDocument, OpenDocument};

/// How much of a document is read at once, in bytes.
const PIECE_BYTES: u64 = 256 * 1024;
/// How much of a refused upload is still read, so that its client gets the reply: in bytes, and for how long.
const DRAINED_BYTES: usize = 4 << 20;
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// The query of an upload.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadQuery {
    /// The name of the document: 1 to 200 visible characters.
    #[param(required = true, min_length = 1, max_length = 200)]
    pub(crate) name: Option<String>,
}

/// A page of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentQuery {
    /// Maximum number of documents on the page, 1 to 500. Default: 50.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<u32>,
    /// Cursor: the `next` of the previous page.
    pub(crate) after: Option<String>,
}

/// A page of documents.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DocumentList {
    /// Newest first.
    pub(crate) documents: Vec<UploadedDocument>,
    /// The `after` of the next page; absent if this page is not full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Adds a document. The same content of the same user is one document: then this returns that one, with its first name.
#[utoipa::path(post, path = "/api/documents", operation_id = "add_document", tag = "documents", params(UploadQuery),
    request_body(content(("text/plain"), ("text/markdown")), description = "the text, in UTF-8"),
    responses((status = 201, body = UploadedDocument), (status = 200, description = "it was there already", body = UploadedDocument),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn add(
    app: web::Data<App>,
    upload: AuthenticatedPayload,
    QueryParameters(query): QueryParameters<UploadQuery>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let AuthenticatedPayload { who, mut payload } = upload;
    let received = receive(&app, who, &mut payload, query, &request).await;
    let AddedDocument { document, is_new } = match received {
        Ok(added) => added,
        Err(problem) => {
            if !matches!(&*problem.code, "request.slow" | "request.interrupted") {
                drain(payload).await;
            }
            return Err(problem);
        }
    };
    let mut response = if is_new { HttpResponse::Created() } else { HttpResponse::Ok() };
    response.insert_header((header::LOCATION, format!("/api/documents/{}", document.id)));
    Ok(response.json(UploadedDocument::from(document)))
}

async fn receive(
    app: &App,
    who: RequestPrincipal,
    payload: &mut Payload,
    query: UploadQuery,
    request: &HttpRequest,
) -> Result<AddedDocument, Problem> {
    who.authorize_upload()?;
    let media = media_type(request)?;
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if let Some(bytes) = announced.and_then(|length| length.parse().ok()) {
        app.engine.document_limits().check_length(bytes)?;
    }
    let name = query.name.ok_or_else(|| {
        Problem::unprocessable("document.name", "name the document: POST /api/documents?name=notes.md")
    })?;
    let _permit = app.admit_upload(&who.tenant).await?;
    let new = NewDocument { tenant: who.tenant, user: who.user, name, media };
    let (wait, idle) = app.engine.upload_timeouts();
    let mut upload = app.engine.begin_document(new).await?;
    let reading = async {
        loop {
            let next = tokio::time::timeout(idle, payload.next()).await.map_err(|_| {
                let ms = idle.as_millis();
                slow(format!("nothing of the document arrived for {ms} ms (documents.idle_timeout_ms)"))
            })?;
            let Some(chunk) = next else { return Ok::<_, Problem>(()) };
            let chunk = chunk.map_err(|error| {
                let detail = format!("the body could not be read: {error}");
                Problem::new(StatusCode::BAD_REQUEST, "request.interrupted", detail)
            })?;
            upload.write(&chunk).await?;
        }
    };
    tokio::time::timeout(wait, reading).await.map_err(|_| {
        let ms = wait.as_millis();
        slow(format!("the document did not arrive within {ms} ms (documents.upload_timeout_ms)"))
    })??;
    Ok(upload.finish().await?)
}

fn slow(detail: String) -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "request.slow", detail)
}

/// The media type that the client declares.
fn media_type(request: &HttpRequest) -> Result<DocumentMedia, Problem> {
    let value = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let mut parts = value.unwrap_or_default().split(';').map(str::trim);
    let media = parts.next().unwrap_or_default().to_ascii_lowercase().parse::<DocumentMedia>().ok();
    media.filter(|_| is_uncompressed(request) && parts.all(is_utf8)).ok_or_else(|| {
        let detail =
            "a document is text in UTF-8: send `Content-Type: text/plain` or `text/markdown`, uncompressed";
        Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "request.media_type", detail)
    })
}

/// Reads on for a moment after a refusal: if a connection is closed while its client still sends, the reply may be
/// lost.
async fn drain(mut payload: Payload) {
    let reading = async {
        let mut left = DRAINED_BYTES;
        while let Some(Ok(chunk)) = payload.next().await {
            let Some(rest) = left.checked_sub(chunk.len()) else { return };
            left = rest;
        }
    };
    // The reply is sent however this ended.
    let _ = tokio::time::timeout(DRAIN_TIME, reading).await;
}

/// Lists documents, newest first: the caller's own, or with a role that reads everything those of the tenant.
#[utoipa::path(get, path = "/api/documents", operation_id = "list_documents", tag = "documents", params(DocumentQuery),
    responses((status = 200, body = DocumentList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: RequestPrincipal,
    QueryParameters(query): QueryParameters<DocumentQuery>,
) -> Result<HttpResponse, Problem> {
    let page = parse_page(query.limit, MAX_PAGE, query.after.as_deref(), document_id)?;
    let rows = app.engine.documents(&who.document_owner(), &page).await?;
    let next = next_cursor(&rows, page.limit).map(|last| last.id.to_string());
    let documents = rows.into_iter().map(UploadedDocument::from).collect();
    Ok(HttpResponse::Ok().json(DocumentList { documents, next }))
}

/// Parses an id. Invalid ones give 404, like unknown ones.
fn document_id(text: &str) -> Result<DocumentId, Problem> {
    text.parse().map_err(|_| Problem::not_found("document", text))
}

/// The document of the path, if the caller may do `action` with it.
async fn opened(
    app: &App,
    who: &RequestPrincipal,
    path: &str,
    action: AccessAction,
) -> Result<OpenDocument, Problem> {
    let unknown = || Problem::not_found("document", path);
    let document =
        app.engine.document(&who.document_owner(), document_id(path)?).await?.ok_or_else(unknown)?;
    who.authorize_document(&document.row().user, action, unknown)?;
    Ok(document)
}

/// Returns a document, without its content.
#[utoipa::path(get, path = "/api/documents/{document_id}", operation_id = "get_document", tag = "documents",
    params(("document_id" = String, Path)),
    responses((status = 200, body = UploadedDocument), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let document = opened(&app, &who, &path, AccessAction::Read).await?;
    Ok(HttpResponse::Ok().json(UploadedDocument::from(document.row().clone())))
}

/// Returns the content of a document, as it was uploaded.
#[utoipa::path(get, path = "/api/documents/{document_id}/content", operation_id = "get_document_content", tag = "documents",
    params(("document_id" = String, Path)),
    responses((status = 200, description = "the text", content((String = "text/plain"), (String = "text/markdown"))),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn content(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let document = opened(&app, &who, &path, AccessAction::Read).await?;
    let (length, media) = (document.row().bytes, document.row().media);
    // The first piece is read before the reply begins, so that an error still is a reply.
    let first = document.read(0..PIECE_BYTES).await?;
    let rest = futures::stream::try_unfold((document, first.len() as u64), |(document, at)| async move {
        let piece = document.read(at..at + PIECE_BYTES).await.map_err(Problem::from)?;
        let end = at + piece.len() as u64;
        Ok::<_, Problem>((!piece.is_empty()).then(|| (Bytes::from(piece), (document, end))))
    });
    let pieces = futures::stream::once(async move { Ok(Bytes::from(first)) }).chain(rest);
    let mut response = HttpResponse::Ok();
    response.content_type(format!("{}; charset=utf-8", media.name()));
    response.insert_header((header::CONTENT_DISPOSITION, "attachment"));
    Ok(response.no_chunking(length).streaming(Box::pin(pieces)))
}

/// The data that was deleted with a document.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DeletedView {
    /// The runs that named it, which are erased with their events.
    #[schema(value_type = Vec<String>)]
    pub(crate) erased_runs: Vec<RunId>,
    /// The conversations of these runs. They forgot what the document says; the requests in the user's own words are kept,
    /// and so are the events of later runs, until a conversation is erased (`DELETE /api/sessions/{session_id}`).
    #[schema(value_type = Vec<String>)]
    pub(crate) remembering_sessions: Vec<SessionId>,
}

/// Deletes a document with everything that is derived from it: erases the runs that named it, and what their conversations
/// remember of what it says. Refused with `document.in_use` while one of these runs, or a later one of its conversation, has
/// not ended; nothing is forgotten then. A request that comes in between is waited for: the document is there for no other one
/// any more, and the deletion is completed by asking for it again, or within an hour.
#[utoipa::path(delete, path = "/api/documents/{document_id}", operation_id = "delete_document", tag = "documents",
    params(("document_id" = String, Path)),
    responses((status = 200, body = DeletedView), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let unknown = || Problem::not_found("document", &path);
    let id = document_id(&path)?;
    let row = app.engine.document_to_delete(&who.document_owner(), id).await?.ok_or_else(unknown)?;
    who.authorize_document(&row.user, AccessAction::Erase, unknown)?;
    let owner = DocumentOwner::user(&who.tenant, &row.user);
    let deleted = app.engine.delete_document(&owner, id).await?.ok_or_else(unknown)?;
    Ok(HttpResponse::Ok()
        .json(DeletedView { erased_runs: deleted.runs, remembering_sessions: deleted.sessions }))
}
