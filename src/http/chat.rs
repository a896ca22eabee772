//! `POST /api/chat`: takes a message, and replies with the answer document or a stream of the run's events.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::app::App;
use super::body::AuthenticatedJson;
use super::messages::{self, ChatRole, TextMessage};
use super::principal::RequestPrincipal;
use super::problem::Problem;
use super::sse;
use super::{access_log, flows, intake};
use crate::adapt::{ExecutionLevel, ExecutionMode};
use crate::llm::cache::Mode;
use crate::plan::Plan;
use crate::run::{DocumentId, PlanConstraints, PlanningMaker, RequestOptions};
use crate::{Answer, ChatRequest};

/// A request to the assistant.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatBody {
    /// The conversation; the last message is the request. The earlier ones are its memory, unless the server
    /// keeps the conversation (`session_id`).
    #[schema(min_items = 1)]
    pub(crate) messages: Vec<ChatMessage>,
    /// Whether to plan. `false` is for a `flow` only: it follows its graph by its conditions, and no path is planned.
    pub(crate) use_planning: Option<bool>,
    /// The flow that is executed, in place of a plan. `current_state` gives its inputs.
    pub(crate) flow: Option<String>,
    /// The conversation that the server keeps: 1 to 128 characters from `A-Z a-z 0-9 . _ : -`.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub(crate) session_id: Option<String>,
    /// Whether to reply with a stream of server-sent events.
    pub(crate) stream: Option<bool>,
    /// Whether a person has to approve the plan first, regardless of the configuration.
    pub(crate) require_approval: Option<bool>,
    /// Dry run: carries the plan out without writing, and reports what would have been written.
    pub(crate) dry_run: Option<bool>,
    /// How to use the cache of model replies, if not as configured.
    pub(crate) cache: Option<Mode>,
    /// How much may change when something unexpected happens; has an effect where it is lower than configured.
    pub(crate) mode: Option<ExecutionMode>,
    /// Who may be asked when something unexpected happens; has an effect where it is lower than configured.
    pub(crate) level: Option<ExecutionLevel>,
    /// Who makes the plan: `scenes`, `auto` or `code`; has an effect where it is narrower than configured, in this order.
    pub(crate) maker: Option<PlanningMaker>,
    /// The constraints of the plan.
    pub(crate) constraints: Option<PlanConstraints>,
    /// The state of things as the caller knows it, for the planner; at most 16 KiB of JSON. With the caller's own key, a
    /// write's values may come from it.
    pub(crate) current_state: Option<Value>,
    /// Ids of the user's documents that the request is about; at most 16. Its tools can read these, and no others.
    #[serde(default)]
    #[schema(value_type = Vec<String>, max_items = 16)]
    pub(crate) documents: Vec<DocumentId>,
}

/// One message.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatMessage {
    /// The author's role.
    pub(crate) role: ChatRole,
    /// The text.
    pub(crate) content: String,
}

impl ChatBody {
    fn check_supported(&self) -> Result<(), Problem> {
        let refuse = |field: &str, why: &str| {
            let detail = format!("`{field}`: {why}");
            Err(Problem::unprocessable("request.unsupported", detail))
        };
        if self.use_planning == Some(false) && self.flow.is_none() {
            return refuse("use_planning", "false needs a `flow`; without one, this server always plans");
        }
        Ok(())
    }

    fn into_request(
        self,
        who: RequestPrincipal,
        idempotency: Option<String>,
        max: usize,
    ) -> Result<ChatRequest, Problem> {
        self.check_supported()?;
        let unplanned = self.use_planning == Some(false);
        let text_message = |message: ChatMessage| TextMessage { role: message.role, text: message.content };
        let guidance = who.guidance(self.constraints, self.current_state);
        let chat = messages::parse_messages(self.messages.into_iter().map(text_message).collect(), max)?;
        let session = self.session_id.as_deref().map(intake::parse_session_id).transpose()?;
        let request = chat.into_request(who, session, idempotency);
        let plan = self.flow.as_ref().map(|flow| Plan::of_flow(flow, &request.message));
        Ok(ChatRequest {
            plan,
            options: RequestOptions {
                cache: self.cache,
                require_approval: self.require_approval.unwrap_or(false),
                dry_run: self.dry_run.unwrap_or(false),
                unplanned,
                level: self.level,
                mode: self.mode,
                maker: self.maker,
            },
            guidance,
            documents: self.documents,
            ..request
        })
    }
}

/// Sends a message to the assistant.
#[utoipa::path(post, path = "/api/chat", tag = "chat", request_body = ChatBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "requests with the same key are carried out once")),
    responses(
        (status = 200, description = "the answer document; with `stream`, server-sent events", content(
            (Answer = "application/json"), (sse::ServerEvent = "text/event-stream"))),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn chat(
    app: web::Data<App>,
    sent: AuthenticatedJson<ChatBody>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let AuthenticatedJson { who, body } = sent;
    let wants = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let streamed = body.stream.unwrap_or_else(|| wants.is_some_and(|media| media.contains(sse::MEDIA_TYPE)));
    who.authorize_chat(&app, body.session_id.as_deref()).await?;
    if let Some(flow) = &body.flow {
        flows::check_named(&app, flow, body.current_state.as_ref())?;
    }
    let tenant = who.tenant.clone();
    let keyed = who.keyed;
    let asked = body.into_request(who, intake::idempotency_header(&request)?, app.options.max_messages)?;
    let stream = streamed.then(|| app.open_stream(&request, keyed)).transpose()?;
    let mut accepted = intake::accept(&app, asked, stream.is_some(), None).await?;
    access_log::note_run(&request, accepted.run, &accepted.session);
    if let Some(stream) = stream {
        let events = app
            .engine
            .stream(&tenant, accepted.run, Some(accepted.after))
            .await
            .map_err(|fault| intake::accepted_problem(fault, accepted.run))?;
        return Ok(sse::event_stream_reply(
            accepted.run, &accepted.session, events, app.options.ping_ms, stream,
        ));
    }
    let answer = accepted.answered().await?;
    if let Some(problem) = intake::failure_problem(&answer) {
        return Err(problem);
    }
    let mut response = HttpResponse::Ok();
    response
        .insert_header(("x-run-id", answer.run_id.to_string()))
        .insert_header(("x-session-id", answer.session_id.to_string()));
    if accepted.is_replay {
        response.insert_header(("idempotent-replayed", "true"));
    }
    Ok(response.json(answer))
}
