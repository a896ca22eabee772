//! Converts an ended run to the turn that its conversation remembers.

use super::quotes::summary_quotes;
use crate::language::text;
use crate::plan::{StepKind, StepStatus};
use crate::run::{
    CallOrigin, CallStatus, ConfirmedCall, Event, Fault, Outcome, PendingQuestion, Question, RunState,
    RunStatus, SessionEvent, Turn, TurnCall, TurnOrigin,
};

/// Maximum length of a tool's sentence that a turn's origin holds, in characters.
const MAX_SAY_CHARS: usize = 300;

/// The session event for the run's end; `None` if there is nothing to remember, because the run has not
/// ended or only a plan was requested.
pub fn turn_ended(state: &RunState) -> Option<SessionEvent> {
    turn_with(state, state.status, state.error.as_ref())
}

/// [`turn_ended`] of the run after `end`, its terminal event that is not folded yet; `None` also if that is not valid now.
pub(crate) fn turn_after(state: &RunState, end: &Event) -> Option<SessionEvent> {
    // The end of a run changes its calls only where some have not ended.
    if state.calls.open().next().is_some() {
        return turn_after_fold(state, end);
    }
    state.check(end).ok()?;
    match end {
        Event::RunCompleted { status } => turn_with(state, *status, state.error.as_ref()),
        Event::RunFailed { error } => turn_with(state, RunStatus::Failed, Some(error)),
        Event::RunCancelled { .. } => turn_with(state, RunStatus::Cancelled, state.error.as_ref()),
        _ => turn_after_fold(state, end),
    }
}

/// [`turn_after`] by definition. It copies the state.
fn turn_after_fold(state: &RunState, end: &Event) -> Option<SessionEvent> {
    let mut ended = state.clone();
    ended.apply_at(end, state.at).ok()?;
    turn_ended(&ended)
}

/// The cost of a run in nano-USD that the turns of its conversation do not include: that of a run that waits, or only
/// made a plan.
pub(crate) fn cost_outside_turns(state: &RunState) -> u64 {
    if state.status.is_terminal() && !state.is_plan_only() {
        return 0;
    }
    let before = state.usage_at_last_end.unwrap_or_default();
    state.usage.since(before).cost_nano_usd
}

/// The turn of a run with this status and fault in place of those of its state.
fn turn_with(state: &RunState, status: RunStatus, error: Option<&Fault>) -> Option<SessionEvent> {
    if !status.is_terminal() || state.is_plan_only() {
        return None;
    }
    let (calls, places) = remembered_calls(state);
    let answer = match (&state.answer, error) {
        (Some(answer), _) => answer.text.clone(),
        // The text that the user read, so that later prompts contain the same.
        (None, Some(error)) => error.user_text(state.language()),
        (None, None) => String::new(),
    };
    let turn = Turn { run: Some(state.run), request: state.request().to_owned(), answer, status, calls };
    // A resumed run already has a turn with its usage up to its earlier end.
    let before = state.usage_at_last_end.unwrap_or_default();
    let usage = state.usage.since(before);
    Some(SessionEvent::TurnEnded {
        turn,
        pending: question_with(state, status),
        usage,
        origin: origin(state, places),
    })
}

/// The calls that are remembered, and their places in the run.
fn remembered_calls(state: &RunState) -> (Vec<TurnCall>, Vec<CallOrigin>) {
    let calls = state.calls.iter();
    // A write of a dry run was reported but never started.
    let calls = calls.filter(|(_, call)| call.attempts > 0);
    // The results of a flow's own functions are no source for later writes.
    let calls = calls.filter(|(_, call)| !state.is_of_flow(call));
    let remembered = calls.filter_map(|(number, call)| match &call.status {
        CallStatus::Done { outcome: Outcome::Ok { result, say, .. } } => Some((
            TurnCall {
                scene: call.scene.clone(),
                tool: call.requested.tool.clone(),
                arguments: (&call.requested.arguments).into(),
                result: result.into(),
                stale: call.stale_since.is_some()
                    || call.interpreted
                    || call.is_untraced
                    || call.is_from_documents(),
            },
            CallOrigin {
                step: call.step,
                call: *number,
                effect: call.requested.effect,
                say: say.as_deref().map(|say| text::shorten(say, MAX_SAY_CHARS).to_owned()),
                void: state.is_undone(call) || !call.breaches.is_empty(),
                quotes_documents: call.quotes_documents,
            },
        )),
        _ => None,
    });
    remembered.unzip()
}

fn origin(state: &RunState, calls: Vec<CallOrigin>) -> Option<TurnOrigin> {
    let (queued, started) = (state.queued.as_ref()?, state.started.as_ref()?);
    Some(TurnOrigin {
        now: started.now.clone(),
        user: queued.user.clone(),
        by_model: state.answer.as_ref().is_some_and(|answer| !answer.degraded),
        quotes: summary_quotes(state),
        has_made_values: state.steps.values().any(|step| step.step.kind != StepKind::Scene),
        calls,
    })
}

/// The writes that the run ended with a question about. Users never see the questions of a run that ended
/// otherwise.
fn unconfirmed(state: &RunState, status: RunStatus) -> Vec<ConfirmedCall> {
    if status != RunStatus::NeedsInput {
        return Vec::new();
    }
    let asks = state.steps.values().filter(|step| step.status == StepStatus::NeedsInput);
    let mut seen: Vec<(&str, u32)> = Vec::new();
    let mut found = Vec::new();
    for call in asks.flat_map(|step| state.unconfirmed(step)) {
        // A later plan may have requested the same write again.
        let act = (call.requested.key.as_str(), call.requested.occurrence);
        if let Some(confirm) = call.requested.confirm.as_ref().filter(|_| !seen.contains(&act)) {
            seen.push(act);
            found.push(ConfirmedCall {
                scene: call.scene.clone(),
                tool: call.requested.tool.clone(),
                arguments: call.requested.arguments.clone(),
                definition: confirm.tool.clone(),
                question: confirm.question.clone(),
            });
        }
    }
    found
}

/// The question that the run ended with, if a scene asked one or a write must be confirmed.
pub fn pending_question(state: &RunState) -> Option<PendingQuestion> {
    question_with(state, state.status)
}

fn question_with(state: &RunState, status: RunStatus) -> Option<PendingQuestion> {
    // A step that asks has ended: the end of the run leaves it as it is.
    let asks = || state.steps.values().filter(|step| step.status == StepStatus::NeedsInput);
    let unconfirmed = unconfirmed(state, status);
    let asked = asks().next_back()?;
    let question = match (&asked.question, unconfirmed.last()) {
        (Some(question), _) => question.clone(),
        (None, Some(call)) => Question {
            text: call.question.clone(),
            tool: Some(call.tool.clone()),
            missing: Vec::new(),
            known: call.arguments.clone(),
            choices: Vec::new(),
        },
        (None, None) => return None,
    };
    let is_asked = !unconfirmed.is_empty();
    Some(PendingQuestion {
        request: state.request().to_owned(),
        scene: asked.step.label().to_owned(),
        purpose: asked.step.purpose.clone(),
        question,
        user: state.queued.as_ref().filter(|_| is_asked).map_or_else(String::new, |q| q.user.clone()),
        run: is_asked.then_some(state.run),
        unconfirmed,
        documents: state.documents(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::run::tests::{ends, worlds};
    use crate::run::{RunId, Usage};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn turn_of_an_end_is_that_of_the_folded_state(world in worlds()) {
            for (before, end) in ends(world, 3) {
                prop_assert_eq!(turn_after(&before, &end), turn_after_fold(&before, &end));
            }
        }
    }

    #[test]
    fn cost_of_a_run_is_in_its_turn_or_outside_of_turns() {
        let mut state = RunState::new(RunId(uuid::Uuid::from_u128(1)));
        state.usage.cost_nano_usd = 7;
        state.status = RunStatus::Waiting;
        assert_eq!((turn_ended(&state), cost_outside_turns(&state)), (None, 7));
        state.usage_at_last_end = Some(Usage { cost_nano_usd: 5, ..Usage::default() });
        assert_eq!(cost_outside_turns(&state), 2);
        state.status = RunStatus::Failed;
        let Some(SessionEvent::TurnEnded { usage, .. }) = turn_ended(&state) else {
            panic!("a failed run is remembered");
        };
        assert_eq!((usage.cost_nano_usd, cost_outside_turns(&state)), (2, 0));
    }

    #[test]
    fn turn_of_a_failed_run_has_the_sentence_that_its_user_read() {
        let mut state = RunState::new(RunId(uuid::Uuid::from_u128(1)));
        state.status = RunStatus::Failed;
        let fault = Fault::new("store.failed", "disk I/O error at /var/lib/prosc/journal.db");
        let Some(SessionEvent::TurnEnded { turn, .. }) = turn_with(&state, state.status, Some(&fault)) else {
            panic!("a failed run is remembered");
        };
        assert_eq!(turn.answer, fault.user_sentence(None).unwrap());
        assert!(!turn.answer.contains("journal.db"));
    }
}
