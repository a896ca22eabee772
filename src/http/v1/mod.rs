//! The OpenAI protocol: any chatbot can use this server as a model.

mod completion;
mod error;
mod key;
mod request;
mod retry;
mod stream;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::app::App;
use super::sse::ServerEvent;
use super::who::Who;
use super::{body, chat};
use crate::llm::cache::Mode;
use completion::Completion;
pub(crate) use error::{Error, ErrorBody};
use key::Key;
use request::CompletionRequest;
pub(crate) use retry::{Delivery, Tries};

/// The name of this server as a model.
pub(crate) const MODEL: &str = "proscenium";

/// Sends a message to the assistant in the OpenAI protocol.
///
/// Sampling parameters (`temperature`, `max_tokens`, `seed`, …) have no effect: the server's configuration
/// determines how models are called. Parameters that would change the meaning of the answer (`tools`,
/// `response_format`, images, `n`, `stop`) are rejected.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "openai", request_body = CompletionRequest,
    params(
        ("X-Session-Id" = Option<String>, Header, description = "the conversation that the server keeps"),
        ("X-Cache-Mode" = Option<Mode>, Header, description = "how to use the cache of model replies"),
        ("Idempotency-Key" = Option<String>, Header, description = "requests with the same key are carried out once")),
    responses(
        (status = 200, content((Completion = "application/json"), (ServerEvent = "text/event-stream"))),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn completions(
    app: web::Data<App>,
    who: Who,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Error> {
    let body: CompletionRequest = body::json(&request, payload, &app.options).await?;
    body.check()?;
    let (streamed, with_usage) = (body.streamed(), body.with_usage());
    let header = request.headers().get("x-session-id").map(|value| value.to_str().unwrap_or_default());
    let session = header.map(chat::session).transpose()?;
    who.may_ask(&app, header).await?;
    let idempotency = chat::idempotency(&request)?;
    // An idempotency key identifies a retry better than a fingerprint.
    let key = idempotency.is_none().then(|| Key::of(&who, &request, session.as_ref(), &body));
    let cache = chat::cache(&request)?;
    let tenant = who.tenant.clone();
    let mut joined = None;
    if retry::is_further(&request)
        && let Some(mut delivery) = key.as_ref().and_then(|key| app.tries.join(key))
    {
        joined = delivery.run().await.map(|run| (run, delivery));
    }
    let mut accepted = match joined {
        Some((run, delivery)) => chat::join(&app, &tenant, run, delivery).await?,
        None => {
            // First of all, because a retry may follow immediately.
            let delivery = key.clone().map(|key| app.tries.begin(key));
            let talk = body.talk(app.options.max_messages)?;
            let asked = talk.into_request(who, session, idempotency);
            let asked = crate::ChatRequest { cache, asked: key.as_ref().map(Key::mark), ..asked };
            chat::accept(&app, asked, delivery).await.inspect_err(|problem| {
                if let (Some(key), None, Some(seconds)) = (key, problem.run_id, problem.retry_after) {
                    app.tries.refused(key, seconds);
                }
            })?
        }
    };
    let told = |fault| Error::from(chat::told(fault, accepted.run));
    if streamed {
        let events = app.engine.stream(&tenant, accepted.run, Some(accepted.after)).await.map_err(told)?;
        return Ok(stream::reply(&app, tenant, accepted, events, with_usage));
    }
    let (run, session, again) = (accepted.run, accepted.session.clone(), accepted.again);
    let answer = (&mut accepted.answer).await.unwrap_or_else(|_| Err(chat::lost(run)));
    accepted.sent();
    let answer = answer.map_err(|fault| chat::told(fault, run))?;
    if let Some(problem) = chat::failure(&answer) {
        return Err(problem.into());
    }
    let mut response = HttpResponse::Ok();
    response
        .insert_header(("x-run-id", run.to_string()))
        .insert_header(("x-session-id", session.to_string()));
    if again {
        response.insert_header(("idempotent-replayed", "true"));
    }
    let words = chat::words(&app, &tenant, &answer).await.map_err(|fault| chat::told(fault, run))?;
    Ok(response.json(Completion::of(&answer, words)))
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

fn ours() -> ModelView {
    ModelView { id: MODEL.to_owned(), object: "model".to_owned(), created: 0, owned_by: MODEL.to_owned() }
}

/// Lists the models.
#[utoipa::path(get, path = "/v1/models", tag = "openai",
    responses((status = 200, body = ModelList), (status = "default", body = ErrorBody)))]
pub(crate) async fn models(_: Who) -> HttpResponse {
    HttpResponse::Ok().json(ModelList { object: "list".to_owned(), data: vec![ours()] })
}

/// Returns one model.
#[utoipa::path(get, path = "/v1/models/{model}", tag = "openai", params(("model" = String, Path)),
    responses((status = 200, body = ModelView), (status = "default", body = ErrorBody)))]
pub(crate) async fn model(_: Who, name: web::Path<String>) -> Result<HttpResponse, Error> {
    if *name == MODEL { Ok(HttpResponse::Ok().json(ours())) } else { Err(request::no_such_model(&name)) }
}
