//! Finds the question that a plain "yes" answers if the client keeps the conversation itself: the question is
//! recognized by its text.

use jiff::{Timestamp, ToSpan};

use super::ChatRequest;
use super::idempotency::KeyLockGuard;
use super::ticket::Intake;
use crate::language;
use crate::memory;
use crate::planner::consent;
use crate::run::{Fault, PendingQuestion, RunQueued, RunState, Turn};

/// How long such a question can be answered, in minutes.
const ANSWER_WINDOW_MINUTES: i64 = 15;

/// A question that a request answers. While this is held, no other request can answer it.
pub(super) struct AnsweredQuestion {
    pub(super) pending: PendingQuestion,
    _guard: KeyLockGuard,
}

/// Finds the question that a plain "yes" answers: a recent run of the same user asked it, its text is the
/// last answer in the request's history, and the earlier history matches. Each question is answered once.
///
/// # Errors
/// Errors of the store; `engine.busy` if too many requests wait.
pub(super) async fn find_question(
    intake: &Intake,
    request: &ChatRequest,
) -> Result<Option<AnsweredQuestion>, Fault> {
    let history = request.history.as_deref().unwrap_or_default();
    let speaks = request.session.is_none() && request.plan.is_none() && !request.plan_only;
    let Some((last, before)) = history.split_last().filter(|_| speaks) else { return Ok(None) };
    // A chatbot's background task, such as naming the conversation, answers nothing.
    let instructions = request.instructions.as_deref().unwrap_or_default();
    let is_task = language::is_background_task(&request.message, instructions);
    if is_task || consent::parse_consent(&request.message) != Some(true) {
        return Ok(None);
    }
    let since =
        Timestamp::now().checked_sub(ANSWER_WINDOW_MINUTES.minutes()).unwrap_or(Timestamp::UNIX_EPOCH);
    let tenant = &request.tenant;
    let mut found: Option<AnsweredQuestion> = None;
    for run in intake.store.runs_with_question(tenant, &last.request, since).await? {
        let events = intake.store.run_events(tenant, run).await?;
        let state = RunState::from_journal(run, &events);
        if !matches_conversation(&state, request, last, before) {
            continue;
        }
        let Some(pending) =
            memory::pending_question(&state).filter(|pending| !pending.unconfirmed.is_empty())
        else {
            continue;
        };
        // A regenerated answer asks the same question, which is answered once for all of them.
        let guard = match found.take() {
            Some(AnsweredQuestion { _guard: guard, .. }) => guard,
            None => intake.locks.lock(tenant, &format!("\u{0}question {}", last.answer.trim())).await?,
        };
        if intake.store.is_answered(tenant, run, since).await? {
            return Ok(None);
        }
        found = Some(AnsweredQuestion { pending, _guard: guard });
    }
    Ok(found)
}

/// Whether the run's answer is the last one in the client's conversation.
fn matches_conversation(state: &RunState, request: &ChatRequest, last: &Turn, before: &[Turn]) -> bool {
    let Some(queued) = &state.queued else { return false };
    let RunQueued { request: words, user, history, .. } = queued;
    let exchange = |turn: &Turn| (turn.request.trim().to_owned(), turn.answer.trim().to_owned());
    let earlier = history.as_deref().unwrap_or_default();
    let answer = state.answer.as_ref().map_or("", |answer| answer.text.as_str());
    *user == request.user
        && words.trim() == last.request.trim()
        && answer.trim() == last.answer.trim()
        // A client may send only the newest part of a long conversation.
        && earlier.len() >= before.len()
        && earlier.iter().rev().zip(before.iter().rev()).all(|(one, other)| exchange(one) == exchange(other))
}
