//! The question that a client's own conversation ended with: where a conversation is not kept here, a plain yes
//! is known by the question's own words.

use jiff::{Timestamp, ToSpan};

use super::ChatRequest;
use super::once::Guard;
use super::ticket::Intake;
use crate::actors::driver::store_fault;
use crate::llm::offline;
use crate::memory;
use crate::planner::consent;
use crate::run::{Fault, Pending, RunQueued, RunState, Turn};

/// How many minutes a question can be answered by a client that keeps its conversation itself.
const MINUTES: i64 = 15;

/// A question that a request answers. Nobody else can answer it while this is held.
pub(super) struct Found {
    pub(super) pending: Pending,
    _guard: Guard,
}

/// The question that a plain yes answers: that of a run of late of the same user, whose answer is the last
/// thing that was said, after the same conversation. Each is answered once.
///
/// # Errors
/// The store's; `engine.busy` where too many wait.
pub(super) async fn question(intake: &Intake, request: &ChatRequest) -> Result<Option<Found>, Fault> {
    let history = request.history.as_deref().unwrap_or_default();
    let speaks = request.session.is_none() && request.plan.is_none() && !request.plan_only;
    let Some((last, before)) = history.split_last().filter(|_| speaks) else { return Ok(None) };
    // A task that the chatbot sets about the conversation, such as to name it, answers nothing.
    let instructions = request.instructions.as_deref().unwrap_or_default();
    let is_task = offline::is_background_task(&request.message, instructions);
    if is_task || consent::said(&request.message) != Some(true) {
        return Ok(None);
    }
    let failed = |error| store_fault(&error);
    let since = Timestamp::now().checked_sub(MINUTES.minutes()).unwrap_or(Timestamp::UNIX_EPOCH);
    let tenant = &request.tenant;
    let mut found: Option<Found> = None;
    for run in intake.store.questions(tenant, &last.request, since).await.map_err(failed)? {
        let events = intake.store.run_events(tenant, run).await.map_err(failed)?;
        let state = RunState::of(run, events.iter().map(|event| &event.body));
        if !is_the_one(&state, request, last, before) {
            continue;
        }
        let Some(pending) = memory::pending(&state).filter(|pending| !pending.unconfirmed.is_empty()) else {
            continue;
        };
        // An answer that was made anew has the same question: it is answered once, whichever it came from.
        let guard = match found.take() {
            Some(Found { _guard: guard, .. }) => guard,
            None => intake.locks.lock(tenant, &format!("\u{0}question {}", last.answer.trim())).await?,
        };
        if intake.store.is_answered(tenant, run, since).await.map_err(failed)? {
            return Ok(None);
        }
        found = Some(Found { pending, _guard: guard });
    }
    Ok(found)
}

/// Whether a run is the one whose answer the client has as the last one of its conversation.
fn is_the_one(state: &RunState, request: &ChatRequest, last: &Turn, before: &[Turn]) -> bool {
    let Some(queued) = &state.queued else { return false };
    let RunQueued { request: words, user, history, .. } = queued;
    let said = |turn: &Turn| (turn.request.trim().to_owned(), turn.answer.trim().to_owned());
    let earlier = history.as_deref().unwrap_or_default();
    let answer = state.answer.as_ref().map_or("", |answer| answer.text.as_str());
    *user == request.user
        && words.trim() == last.request.trim()
        && answer.trim() == last.answer.trim()
        // A client may send only the newest of a long conversation.
        && earlier.len() >= before.len()
        && earlier.iter().rev().zip(before.iter().rev()).all(|(one, other)| said(one) == said(other))
}
