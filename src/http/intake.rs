//! Takes requests in, for every route that starts a run: reads what their headers name, has the engine accept them,
//! joins runs that an earlier equal request started, and words what happens to a run after it was accepted.

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderValue;
use actix_web::{HttpRequest, web};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot;

use super::app::{AdmissionPermit, App};
use super::messages::ParsedChat;
use super::principal::RequestPrincipal;
use super::problem::{Problem, status_of};
use super::v1::Delivery;
use crate::Submitted;
use crate::adapt::{ExecutionLevel, ExecutionMode};
use crate::answer::lost_run_fault;
use crate::engine::FeedFollowerGuard;
use crate::llm::cache::Mode;
use crate::public::EventId;
use crate::run::{DocumentId, Fault, RunId, RunStatus, SessionId, TenantId};
use crate::store::RunRow;
use crate::{Answer, ChatRequest};

impl ParsedChat {
    /// Makes the request to the engine. If the server keeps the conversation, the store has its memory.
    pub(crate) fn into_request(
        self,
        who: RequestPrincipal,
        session: Option<SessionId>,
        idempotency: Option<String>,
    ) -> ChatRequest {
        let history = session.is_none().then_some(self.turns);
        let instructions = self.instructions;
        ChatRequest { session, history, instructions, idempotency, ..who.chat_request(self.request) }
    }
}

pub(crate) fn parse_session_id(name: &str) -> Result<SessionId, Problem> {
    SessionId::new(name).map_err(|error| Problem::unprocessable("request.session", error.to_string()))
}

/// Reads the header `X-Cache-Mode`: `off`, `on`, `read_only` or `write_only`.
pub(crate) fn cache_mode(request: &HttpRequest) -> Result<Option<Mode>, Problem> {
    word_header(request, "X-Cache-Mode", "request.cache_mode", "`off`, `on`, `read_only` or `write_only`")
}

/// Reads the header `X-Execution-Level`.
pub(crate) fn execution_level(request: &HttpRequest) -> Result<Option<ExecutionLevel>, Problem> {
    let words = "`basic`, `adaptive`, `intelligent` or `autonomous`";
    word_header(request, "X-Execution-Level", "request.level", words)
}

/// Reads the header `X-Execution-Mode`.
pub(crate) fn execution_mode(request: &HttpRequest) -> Result<Option<ExecutionMode>, Problem> {
    word_header(request, "X-Execution-Mode", "request.mode", "`strict`, `adaptive` or `creative`")
}

/// Reads the header `X-Documents`: ids of documents, separated by commas.
pub(crate) fn document_ids(request: &HttpRequest) -> Result<Vec<DocumentId>, Problem> {
    let Some(value) = single_header(request, "X-Documents", "request.documents")? else {
        return Ok(Vec::new());
    };
    let ids = value.to_str().unwrap_or("?").split(',').map(str::trim).filter(|id| !id.is_empty());
    let invalid = |_| {
        let detail = "the header `X-Documents` must be ids of documents, separated by commas";
        Problem::unprocessable("request.documents", detail)
    };
    ids.map(|id| id.parse::<DocumentId>().map_err(invalid)).collect()
}

/// A header that may occur once: if there are two, a proxy may have checked the other one.
///
/// # Errors
/// `code` if it occurs more than once.
pub(crate) fn single_header<'a>(
    request: &'a HttpRequest,
    name: &str,
    code: &str,
) -> Result<Option<&'a HeaderValue>, Problem> {
    let mut values = request.headers().get_all(name);
    let first = values.next();
    match values.next() {
        Some(_) => {
            let detail = format!("the header `{name}` occurs more than once: send it once");
            Err(Problem::unprocessable(code, detail))
        }
        None => Ok(first),
    }
}

/// Reads a header that is one of a fixed set of words.
fn word_header<T: DeserializeOwned>(
    request: &HttpRequest,
    name: &str,
    code: &str,
    words: &str,
) -> Result<Option<T>, Problem> {
    let Some(value) = single_header(request, name, code)? else { return Ok(None) };
    let word = value.to_str().ok().and_then(|text| serde_json::from_value(Value::from(text)).ok());
    let unknown = || Problem::unprocessable(code, format!("the header `{name}` must be {words}"));
    word.map(Some).ok_or_else(unknown)
}

/// Reads the header `Idempotency-Key`.
pub(crate) fn idempotency_header(request: &HttpRequest) -> Result<Option<String>, Problem> {
    const CODE: &str = "request.idempotency_key";
    let Some(value) = single_header(request, "Idempotency-Key", CODE)? else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=255).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => {
            let detail = "the header `Idempotency-Key` must have 1 to 255 printable ASCII characters";
            Err(Problem::unprocessable(CODE, detail))
        }
    }
}

/// An accepted run, for this request or for an earlier equal one.
pub(crate) struct AcceptedRequest {
    pub(crate) run: RunId,
    pub(crate) session: SessionId,
    /// The run's last event before the request. Later events belong to the request.
    pub(crate) after: EventId,
    /// Whether an earlier equal request had started the run.
    pub(crate) is_replay: bool,
    answer: oneshot::Receiver<Result<Answer, Fault>>,
    /// Of a request that will be streamed: keeps the answer streamed until somebody reads it.
    _follower: Option<FeedFollowerGuard>,
    /// Tracks whether the answer reaches its client, if retries are recognized.
    delivery: Option<Delivery>,
}

impl AcceptedRequest {
    /// Waits for the answer, or the problem of a run that stopped without one.
    pub(crate) async fn answered(&mut self) -> Result<Answer, Problem> {
        let answer = (&mut self.answer).await.unwrap_or_else(|_| Err(lost_run_fault(self.run)));
        answer.map_err(|fault| accepted_problem(fault, self.run))
    }

    /// Records that the answer was handed to the connection.
    pub(crate) fn mark_delivered(self) {
        if let Some(delivery) = self.delivery {
            delivery.mark_sent();
        }
    }
}

/// Has the engine accept a request, whose answer is `streamed` or sent as a whole. An accepted run continues even if
/// its client disconnects; with a `delivery`, a retry finds it.
pub(crate) async fn accept(
    app: &web::Data<App>,
    request: ChatRequest,
    streamed: bool,
    delivery: Option<Delivery>,
) -> Result<AcceptedRequest, Problem> {
    let permit = app.admit(&request.tenant).await?;
    // In a separate task: a client that disconnects drops this future, and the run would be lost track of.
    let task = actix_web::rt::spawn(submit_with_permit(app.clone(), request, streamed, delivery, permit));
    task.await.unwrap_or_else(|_| {
        let detail = "the request could not be accepted because of an internal error; see the server's log";
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "server.failed", detail))
    })
}

async fn submit_with_permit(
    app: web::Data<App>,
    request: ChatRequest,
    streamed: bool,
    delivery: Option<Delivery>,
    permit: AdmissionPermit,
) -> Result<AcceptedRequest, Problem> {
    let tenant = request.tenant.clone();
    let mut accepted = match app.engine.submit_once(request).await? {
        Submitted::New(mut ticket) => {
            let (sender, answer) = oneshot::channel();
            let (run, session, after) = (ticket.run, ticket.session.clone(), ticket.after());
            let _follower = ticket.take_follower().filter(|_| streamed);
            actix_web::rt::spawn(async move {
                // The client may have disconnected.
                let _ = sender.send(ticket.answer().await);
                drop(permit);
            });
            AcceptedRequest { run, session, after, is_replay: false, answer, _follower, delivery: None }
        }
        Submitted::Duplicate { run, after, .. } => {
            AcceptedRequest { after, ..wait_for_existing(&app, tenant, run, permit).await? }
        }
    };
    accepted.delivery = delivery.map(|mut delivery| {
        delivery.set_run(accepted.run);
        delivery
    });
    Ok(accepted)
}

/// Joins a run that an earlier request started.
pub(crate) async fn join_run(
    app: &web::Data<App>,
    tenant: &TenantId,
    run: RunId,
    delivery: Delivery,
) -> Result<AcceptedRequest, Problem> {
    let permit = app.admit(tenant).await?;
    match wait_for_existing(app, tenant.clone(), run, permit).await {
        Ok(accepted) => {
            let after = app.engine.event_before_request(tenant, run, &delivery.fingerprint_hex()).await;
            let after = after.map_err(|fault| accepted_problem(fault, run))?;
            Ok(AcceptedRequest { after, delivery: Some(delivery), ..accepted })
        }
        Err(problem) => {
            // "No answer will come" is a final reply, too. Errors of the store are not.
            if matches!(&*problem.code, INTERRUPTED | "run.unknown") {
                delivery.mark_sent();
            }
            Err(problem)
        }
    }
}

/// Starts waiting for the answer of an existing run.
async fn wait_for_existing(
    app: &web::Data<App>,
    tenant: TenantId,
    run: RunId,
    permit: AdmissionPermit,
) -> Result<AcceptedRequest, Problem> {
    let (mut row, mut will_answer) = load_status(app, &tenant, run).await?;
    if !will_answer {
        app.engine.wait_until_resumed(&tenant, &row.session, run).await;
        (row, will_answer) = load_status(app, &tenant, run).await?;
    }
    if !will_answer {
        return Err(accepted_problem(interrupted_fault(run), run));
    }
    let (sender, answer) = oneshot::channel();
    let app = app.clone();
    actix_web::rt::spawn(async move {
        let answer = match app.engine.wait(&tenant, run).await {
            Ok(answer) if is_unfinished(answer.status) => Err(interrupted_fault(run)),
            answer => answer,
        };
        // The client may have disconnected.
        let _ = sender.send(answer);
        drop(permit);
    });
    Ok(AcceptedRequest {
        run,
        session: row.session,
        after: EventId::default(),
        is_replay: true,
        answer,
        _follower: None,
        delivery: None,
    })
}

/// Reads a run's row, and whether it is in progress or has ended.
async fn load_status(app: &web::Data<App>, tenant: &TenantId, run: RunId) -> Result<(RunRow, bool), Problem> {
    // In this order: a run that ends in between has ended in the store, too.
    let live = app.engine.watch(tenant, run).is_some();
    let row = app.engine.store().run(tenant, run).await;
    let row = row.map_err(|error| Problem { run_id: Some(run), ..error.into() })?;
    let row = row.ok_or_else(|| Problem::not_found("run", &run.to_string()))?;
    let will_answer = live || !is_unfinished(row.status);
    Ok((row, will_answer))
}

/// The code of a run that has not ended and is not in progress.
const INTERRUPTED: &str = "run.interrupted";

/// Whether a run of this status has to be in progress somewhere.
fn is_unfinished(status: RunStatus) -> bool {
    matches!(status, RunStatus::Queued | RunStatus::Running)
}

fn interrupted_fault(run: RunId) -> Fault {
    let message = format!(
        "run {run} was accepted, was interrupted when the server stopped and has not been resumed; \
         check what it did before you ask again: GET /api/runs/{run}"
    );
    Fault::new(INTERRUPTED, message)
}

/// How codes begin whose messages are for operators and developers.
const INTERNAL: [&str; 10] = [
    "http.", "tool.", "llm.", "python.", "code.", "flow.", "sandbox.", "step.", "run.illegal_event",
    "run.poisonous",
];

/// The problem to reply with if the run failed. It contains what the run did, so that nothing is done twice.
pub(crate) fn failure_problem(answer: &Answer) -> Option<Problem> {
    if answer.status != RunStatus::Failed {
        return None;
    }
    let mut fault = answer.error.clone().unwrap_or_else(|| Fault::new("run.failed", "the run failed"));
    // Chatbots show the message to end users. That of a back end, a database, a program or a model's provider, with its
    // address, belongs in the journal and the document only, and so do failures of the server itself.
    let is_internal = fault.say.is_some() || INTERNAL.iter().any(|part| fault.code.starts_with(part));
    if is_internal && let Some(sentence) = fault.user_sentence(None) {
        fault.message = Some(answer.answer.clone()).filter(|text| !text.is_empty()).unwrap_or(sentence);
    }
    let mut problem = Problem::from(fault);
    // The request was accepted, so the run's failure is not a client error.
    if problem.status().is_client_error() && problem.status() != StatusCode::TOO_MANY_REQUESTS {
        problem = Problem::new(StatusCode::BAD_GATEWAY, &problem.code, problem.detail);
    }
    problem.run_id = Some(answer.run_id);
    problem.document = serde_json::to_value(answer).ok().map(Box::new);
    Some(problem)
}

/// A problem after acceptance of the request: it names the run, and is never a client error.
pub(crate) fn accepted_problem(fault: Fault, run: RunId) -> Problem {
    let mut problem = Problem::from(fault);
    if status_of(&problem.code).is_client_error() {
        problem = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, &problem.code, problem.detail);
    }
    problem.run_id = Some(run);
    problem
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use serde_json::json;

    use super::*;

    #[test]
    fn words_for_operators_are_in_the_document_alone() {
        let words = "model \"main\": refused the key with status 401 (Incorrect API key provided: sk-1)";
        let of = |error: Value| {
            json!({
                "run_id": "01976c8e-0000-7000-8000-000000000001", "session_id": "s-1",
                "task_id": "01976c8e-0000-7000-8000-000000000002", "status": "failed", "answer": "", "plan": null, "steps": [],
                "error": error,
                "metadata": {"planned_execution_path": [], "current_path_index": 0},
                "usage": {"llm_calls": 0, "input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0,
                    "session_cost_usd": 0.0},
                "timings": {"total_ms": 1.0, "overhead_ms": 1.0},
            })
        };
        let neutral = "The service is not available now; please try again later.";
        for (code, say, detail) in [
            ("llm.unauthorized", None, neutral),
            ("sql.engine.connection", Some("The database does not answer."), "The database does not answer."),
            ("python.exception", None, "This could not be done."),
            ("vacation.overlap", None, words),
        ] {
            let answer = of(json!({"code": code, "message": words, "say": say}));
            let problem = failure_problem(&serde_json::from_value(answer).unwrap()).unwrap();
            assert_eq!((&*problem.code, &*problem.detail), (code, detail));
            assert_eq!(problem.document.unwrap()["error"]["message"], words);
        }
    }

    #[test]
    fn idempotency_key_that_occurs_twice_is_refused() {
        let with = |keys: &[&str]| {
            let mut request = TestRequest::default();
            for key in keys {
                request = request.append_header(("Idempotency-Key", *key));
            }
            idempotency_header(&request.to_http_request())
        };
        assert_eq!(with(&[]).unwrap(), None);
        assert_eq!(with(&["a"]).unwrap().as_deref(), Some("a"));
        for keys in [["a", "b"], ["a", "a"]] {
            assert_eq!(&*with(&keys).unwrap_err().code, "request.idempotency_key");
        }
    }
}
