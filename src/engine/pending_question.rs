//! Finds the question that a plain "yes" answers, and the run that a plain yes or no decides, if the client keeps the
//! conversation itself: they are recognized by their text.

use jiff::{Timestamp, ToSpan};

use super::ChatRequest;
use super::idempotency::KeyLockGuard;
use super::ticket::Intake;
use crate::answer::answer_text;
use crate::language;
use crate::memory;
use crate::planner::consent;
use crate::planner::list_edits::{self, ListReading};
use crate::run::{Fault, PendingQuestion, RunQueued, RunState, SessionId, Turn};

/// How long such a question can be answered, in minutes.
const ANSWER_WINDOW_MINUTES: i64 = 15;

/// The longest reply, in bytes, that is taken for a change of a list.
const MAX_LIST_CHANGE_BYTES: usize = 1024;

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
    let Some((last, before)) = last_exchange(request) else { return Ok(None) };
    if consent::parse_consent(&request.message) != Some(true) {
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

/// Finds the conversation in which a reply decides about a waiting run: a run of the same user, whose last answer in the
/// request's history showed what it waits for. The newest one, if an answer was regenerated. The reply is a plain yes or
/// no, a change of the list that the user was asked about, or words that do not decide ("not yet"), which that conversation
/// refuses; anything else is a request of its own.
///
/// # Errors
/// Errors of the store.
pub(super) async fn find_waiting_conversation(
    intake: &Intake,
    request: &ChatRequest,
) -> Result<Option<SessionId>, Fault> {
    let Some((last, before)) = last_exchange(request) else { return Ok(None) };
    if request.options.dry_run || !may_decide(&request.message, &last.answer) {
        return Ok(None);
    }
    for run in intake.store.waiting_runs(&request.tenant, &last.request).await? {
        let events = intake.store.run_events(&request.tenant, run).await?;
        let state = RunState::from_journal(run, &events);
        if matches_conversation(&state, request, last, before) && is_about(&state, &request.message) {
            return Ok(events.first().map(|first| first.session.clone()));
        }
    }
    Ok(None)
}

/// Returns whether the message may be about a decision that an answer with this text shows. Only then is it worth
/// looking for such a run.
fn may_decide(message: &str, shown: &str) -> bool {
    let has_list = shown.lines().any(|line| line.starts_with("- "));
    is_consent(message) || (has_list && message.len() <= MAX_LIST_CHANGE_BYTES)
}

/// Returns whether the message is a plain yes or no, or does not say which of these it is.
fn is_consent(message: &str) -> bool {
    consent::parse_consent(message).is_some() || consent::is_undecided(message)
}

/// Returns whether the message is about the decision that the run waits for.
fn is_about(state: &RunState, message: &str) -> bool {
    let changes = |lists| !matches!(list_edits::read(message, &lists), ListReading::Other);
    is_consent(message) || state.only_lists_of_user().is_some_and(changes)
}

/// The last exchange of the conversation that the client keeps, and those before it, if the message may reply to it.
fn last_exchange(request: &ChatRequest) -> Option<(&Turn, &[Turn])> {
    let history = request.history.as_deref().unwrap_or_default();
    let speaks = request.session.is_none() && request.plan.is_none() && !request.plan_only;
    // A chatbot's background task, such as naming the conversation, answers nothing.
    let instructions = request.instructions.as_deref().unwrap_or_default();
    history.split_last().filter(|_| speaks && !language::is_background_task(&request.message, instructions))
}

/// Whether the run's answer is the last one in the client's conversation.
fn matches_conversation(state: &RunState, request: &ChatRequest, last: &Turn, before: &[Turn]) -> bool {
    let Some(queued) = &state.queued else { return false };
    let RunQueued { request: words, user, history, .. } = queued;
    let exchange = |turn: &Turn| (turn.request.trim().to_owned(), turn.answer.trim().to_owned());
    let earlier = history.as_deref().unwrap_or_default();
    let answer = answer_text(state);
    *user == request.user
        && words.trim() == last.request.trim()
        && ends_with_answer(last.answer.trim(), answer.trim())
        // A client may send only the newest part of a long conversation.
        && earlier.len() >= before.len()
        && earlier.iter().rev().zip(before.iter().rev()).all(|(one, other)| exchange(one) == exchange(other))
}

/// Whether the text that a client kept ends with this answer. Lines before it are the progress of the plan, if it is
/// streamed as text, or an answer that began and was replaced.
fn ends_with_answer(kept: &str, answer: &str) -> bool {
    kept.strip_suffix(answer).is_some_and(|before| before.is_empty() || before.ends_with('\n'))
}
