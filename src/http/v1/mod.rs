//! The OpenAI protocol: any chatbot can use this server as a model.

mod completion;
mod error;
mod fingerprint;
mod lenient;
mod progress;
mod request;
mod retry;
mod stream;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::app::App;
use super::key_limits::OpenStream;
use super::principal::RequestPrincipal;
use super::problem::Problem;
use super::sse::ServerEvent;
use super::{access_log, body, intake};
use crate::adapt::{ExecutionLevel, ExecutionMode};
use crate::llm::cache::Mode;
use crate::run::{RequestOptions, TenantId};
use completion::ChatCompletion;
pub(crate) use error::{Error, ErrorBody};
use fingerprint::RequestFingerprint;
use request::CompletionRequest;
pub(crate) use retry::{Delivery, RetryRegistry};

/// The name of this server as a model.
pub(crate) const MODEL: &str = "proscenium";

/// The header that the official clients show as `request_id` of a reply or an error: the id of its run.
const REQUEST_ID: &str = "x-request-id";

/// Sends a message to the assistant in the OpenAI protocol.
///
/// Sampling parameters (`temperature`, `max_tokens`, `seed`, …) have no effect: the server's configuration
/// determines how models are called. Parameters that would change the meaning of the answer (`tools`,
/// `response_format`, images, `n`, `stop`, `web_search_options`, …) are rejected. Of more than
/// `server.max_messages` messages the oldest are left out, except instructions.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "openai", request_body = CompletionRequest,
    params(
        ("X-Session-Id" = Option<String>, Header, description = "the conversation that the server keeps"),
        ("X-Cache-Mode" = Option<Mode>, Header, description = "how to use the cache of model replies"),
        ("X-Execution-Level" = Option<ExecutionLevel>, Header, description = "who may be asked when something unexpected happens; has an effect where it is lower than configured"),
        ("X-Execution-Mode" = Option<ExecutionMode>, Header, description = "what may change when something unexpected happens; has an effect where it is lower than configured"),
        ("X-Documents" = Option<String>, Header, description = "ids of the user's documents that the request is about, separated by commas; at most 16"),
        ("Idempotency-Key" = Option<String>, Header, description = "requests with the same key are carried out once")),
    responses(
        (status = 200, content((ChatCompletion = "application/json"), (ServerEvent = "text/event-stream"))),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn completions(
    app: web::Data<App>,
    who: RequestPrincipal,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Error> {
    let body: CompletionRequest = body::json(&request, payload, &app.options).await?;
    body.check_supported()?;
    let (streamed, with_usage) = (body.is_streamed(), body.with_usage());
    let header = intake::single_header(&request, "X-Session-Id", "request.session")?;
    let header = header.map(|value| value.to_str().unwrap_or_default());
    let session = header.map(intake::parse_session_id).transpose()?;
    who.authorize_chat(&app, header).await?;
    let idempotency = intake::idempotency_header(&request)?;
    // An idempotency key identifies a retry better than a fingerprint.
    let key = idempotency.is_none().then(|| RequestFingerprint::of(&who, &request, session.as_ref(), &body));
    let cache = intake::cache_mode(&request)?;
    let level = intake::execution_level(&request)?;
    let mode = intake::execution_mode(&request)?;
    let documents = intake::document_ids(&request)?;
    let tenant = who.tenant.clone();
    let open = streamed.then(|| open_stream(&app, &request, who.keyed, key.as_ref())).transpose()?;
    let mut joined = None;
    if retry::is_retry(&request)
        && let Some(mut delivery) = key.as_ref().and_then(|key| app.tries.join(key))
    {
        joined = delivery.run().await.map(|run| (run, delivery));
    }
    let accepted = match joined {
        Some((run, delivery)) => intake::join_run(&app, &tenant, run, delivery).await?,
        None => {
            // First of all, because a retry may follow immediately.
            let delivery = key.clone().map(|key| app.tries.track(key));
            let (talk, omitted) = body.into_chat(app.options.max_messages)?;
            let asked = talk.into_request(who, session, idempotency);
            let asked = crate::ChatRequest {
                options: RequestOptions { cache, level, mode, ..RequestOptions::default() },
                documents,
                fingerprint: key.as_ref().map(RequestFingerprint::to_hex),
                ..asked
            };
            let accepted =
                intake::accept(&app, asked, open.is_some(), delivery).await.inspect_err(|problem| {
                    if let (Some(key), None, Some(seconds)) = (key, problem.run_id, problem.retry_after) {
                        app.tries.record_refusal(key, seconds.into());
                    }
                })?;
            log_omitted(&accepted, &tenant, omitted);
            accepted
        }
    };
    access_log::note_run(&request, accepted.run, &accepted.session);
    if let Some(open) = open {
        let events = app.engine.stream(&tenant, accepted.run, Some(accepted.after)).await;
        let events = events.map_err(|fault| intake::accepted_problem(fault, accepted.run))?;
        return Ok(stream::chunk_stream_reply(&app.options, accepted, events, with_usage, open));
    }
    completion_reply(accepted).await
}

/// Logs how many messages a run does not see.
fn log_omitted(accepted: &intake::AcceptedRequest, tenant: &TenantId, omitted: usize) {
    if omitted > 0 {
        let (run, session) = (accepted.run, &accepted.session);
        tracing::info!(%run, %session, %tenant, omitted, "the oldest messages were left out (server.max_messages)");
    }
}

/// Waits for the answer of an accepted request that is not streamed.
async fn completion_reply(mut accepted: intake::AcceptedRequest) -> Result<HttpResponse, Error> {
    let (run, session, again) = (accepted.run, accepted.session.clone(), accepted.is_replay);
    let answer = accepted.answered().await;
    accepted.mark_delivered();
    let answer = answer?;
    if let Some(problem) = intake::failure_problem(&answer) {
        return Err(problem.into());
    }
    let mut response = HttpResponse::Ok();
    response
        .insert_header(("x-run-id", run.to_string()))
        .insert_header((REQUEST_ID, run.to_string()))
        .insert_header(("x-session-id", session.to_string()));
    if again {
        response.insert_header(("idempotent-replayed", "true"));
    }
    Ok(response.json(ChatCompletion::of(&answer, answer.answer.clone())))
}

/// Opens an event stream for the key of a request; `fingerprint` is the request's, if it has one.
fn open_stream(
    app: &App,
    request: &HttpRequest,
    is_keyed: bool,
    fingerprint: Option<&RequestFingerprint>,
) -> Result<OpenStream, Problem> {
    app.open_stream(request, is_keyed).inspect_err(|problem| {
        // Only of a first attempt: a retry may belong to a run whose broken stream still counts as open.
        if let (Some(key), Some(seconds), false) =
            (fingerprint, problem.retry_after, retry::is_retry(request))
        {
            app.tries.record_refusal(key.clone(), seconds.into());
        }
    })
}

/// The list of models: this server is the only one.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ModelList {
    /// `list`.
    pub(crate) object: String,
    /// Exactly one model.
    pub(crate) data: Vec<ModelView>,
}

/// A model.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ModelView {
    /// `proscenium`.
    pub(crate) id: String,
    /// `model`.
    pub(crate) object: String,
    /// Always 0.
    pub(crate) created: i64,
    /// `proscenium`.
    pub(crate) owned_by: String,
}

fn own_model() -> ModelView {
    ModelView { id: MODEL.to_owned(), object: "model".to_owned(), created: 0, owned_by: MODEL.to_owned() }
}

/// Lists the models.
#[utoipa::path(get, path = "/v1/models", tag = "openai",
    responses((status = 200, body = ModelList), (status = "default", body = ErrorBody)))]
pub(crate) async fn models(_: RequestPrincipal) -> HttpResponse {
    HttpResponse::Ok().json(ModelList { object: "list".to_owned(), data: vec![own_model()] })
}

/// Returns one model.
#[utoipa::path(get, path = "/v1/models/{model}", tag = "openai", params(("model" = String, Path)),
    responses((status = 200, body = ModelView), (status = "default", body = ErrorBody)))]
pub(crate) async fn model(_: RequestPrincipal, name: web::Path<String>) -> Result<HttpResponse, Error> {
    if *name == MODEL { Ok(HttpResponse::Ok().json(own_model())) } else { Err(request::unknown_model(&name)) }
}
