//! `/api/approvals`: what waits for a person, and what people have said.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::body::Sent;
use super::chat;
use super::commands::order;
use super::problem::Problem;
use super::view::Journalled;
use super::who::Who;
use super::{behind, page};
use crate::access::Action;
use crate::documents::ApprovalDocument;
use crate::planner::{Choice, Wish};
use crate::run::{ApprovalId, TenantId};
use crate::store::{About, ApprovalFilter};

/// Which of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalQuery {
    /// Only those of this conversation.
    pub(crate) session_id: Option<String>,
    /// Only those about this: `plan`, `call` or `outcome`.
    #[param(value_type = Option<String>)]
    pub(crate) about: Option<About>,
    /// Also those that were decided, or count no more.
    pub(crate) all: Option<bool>,
    /// Most of them, 1 to 100; 50 unless told.
    #[param(minimum = 1, maximum = 100)]
    pub(crate) limit: Option<u32>,
    /// Only those behind this one: `next` of the page before.
    pub(crate) after: Option<String>,
}

/// A page of what is put to people.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ApprovalList {
    /// The oldest first.
    pub(crate) approvals: Vec<ApprovalDocument>,
    /// What `after` is for the next page; absent where this page is not full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) next: Option<ApprovalId>,
}

/// What is said.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionBody {
    /// `yes` or `no`; of a write whose outcome nobody knows `done`, `not_done` or `again`.
    pub(crate) decision: Said,
    /// With `yes` to a call: the arguments that it is to be done with.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) arguments: Option<serde_json::Map<String, Value>>,
    /// The hash that was seen: a yes to anything else does not count.
    #[serde(default)]
    pub(crate) hash: Option<String>,
    /// Why, in one's own words; at most 8000 characters.
    #[serde(default)]
    #[schema(max_length = 8000)]
    pub(crate) note: Option<String>,
}

/// A decision.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    /// It may be done.
    Yes,
    /// It is not to be done.
    No,
    /// The write was done.
    Done,
    /// The write was not done.
    NotDone,
    /// The write is to be tried again.
    Again,
}

impl DecisionBody {
    fn choice(self) -> Result<(Choice, Option<String>, Option<String>), Problem> {
        let choice = match (self.decision, self.arguments) {
            (Said::Yes, Some(arguments)) => Choice::Edited(Value::Object(arguments)),
            (_, Some(_)) => {
                let detail = "`arguments` goes with `yes` only";
                return Err(Problem::unprocessable("approval.choice", detail));
            }
            (Said::Yes, None) => Choice::Yes,
            (Said::No, None) => Choice::No,
            (Said::Done, None) => Choice::Done,
            (Said::NotDone, None) => Choice::NotDone,
            (Said::Again, None) => Choice::Again,
        };
        Ok((choice, self.hash, self.note))
    }
}

/// Most of one page: each is read from the journal of its run.
const MAX_PAGE: u32 = 100;

/// The id in an address. What is no id is an approval that is not there.
fn id(text: &str) -> Result<ApprovalId, Problem> {
    text.parse().map_err(|_| Problem::unknown("approval", text))
}

fn unknown(id: ApprovalId) -> Problem {
    Problem::unknown("approval", &id.to_string())
}

async fn document(app: &App, tenant: &TenantId, id: ApprovalId) -> Result<ApprovalDocument, Problem> {
    let run = Journalled::read(app, tenant, id.run).await?.ok_or_else(|| unknown(id))?;
    run.approval(app, id).ok_or_else(|| unknown(id))
}

/// What waits for a person, the oldest first.
#[utoipa::path(get, path = "/api/approvals", operation_id = "list_approvals", tag = "approvals", params(ApprovalQuery),
    responses((status = 200, body = ApprovalList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: Who,
    query: web::Query<ApprovalQuery>,
) -> Result<HttpResponse, Problem> {
    let session = query.session_id.as_deref().map(chat::session).transpose()?;
    let (open_only, scope) = (!query.all.unwrap_or(false), who.scope());
    let filter = ApprovalFilter { open_only, session, about: query.about, scope };
    let page = page(query.limit, MAX_PAGE, query.after.as_deref(), id)?;
    let rows = app.engine.store().approvals(&who.tenant, &filter, &page).await?;
    let next = behind(&rows, page.limit).map(|row| row.id);
    let mut approvals = Vec::with_capacity(rows.len());
    let mut last: Option<Journalled> = None;
    for row in rows {
        // Several of one run mostly stand side by side.
        if last.as_ref().is_none_or(|read| read.state.run != row.id.run) {
            // One run that cannot be read hides nothing of the others.
            last = match Journalled::read(&app, &who.tenant, row.id.run).await {
                Ok(read) => read,
                Err(problem) => {
                    tracing::error!(approval = %row.id, code = %problem.code, "what waits cannot be read");
                    None
                }
            };
        }
        // What was erased since is not there any more.
        let Some(read) = &last else { continue };
        approvals.extend(read.approval(&app, row.id));
    }
    Ok(HttpResponse::Ok().json(ApprovalList { approvals, next }))
}

/// One of them.
#[utoipa::path(get, path = "/api/approvals/{approval_id}", operation_id = "get_approval", tag = "approvals",
    params(("approval_id" = String, Path)),
    responses((status = 200, body = ApprovalDocument), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let id = id(&path)?;
    who.may_with_run(&app, id.run, Action::Read, || unknown(id)).await?;
    Ok(HttpResponse::Ok().json(document(&app, &who.tenant, id).await?))
}

/// Decides; of several at once one does, and the others hear who did.
#[utoipa::path(post, path = "/api/approvals/{approval_id}", operation_id = "decide", tag = "approvals",
    params(("approval_id" = String, Path)), request_body = DecisionBody,
    responses((status = 200, body = ApprovalDocument), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn decide(
    app: web::Data<App>,
    sent: Sent<DecisionBody>,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let Sent { who, body } = sent;
    let id = id(&path)?;
    // What is not there, or not for them to see, is told before anything about it.
    who.may_with_run(&app, id.run, Action::Read, || unknown(id)).await?;
    document(&app, &who.tenant, id).await?;
    who.may_with_run(&app, id.run, Action::Decide, || unknown(id)).await?;
    let (choice, hash, note) = body.choice()?;
    let wish = Wish::Decide { approval: id.approval, choice, hash };
    order(&app, &who.tenant, id.run, who.wants(wish, note)).await?;
    Ok(HttpResponse::Ok().json(document(&app, &who.tenant, id).await?))
}
