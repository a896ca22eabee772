//! Named cases: the races that the design was made for.

use super::journal::pending;
use crate::conversation::input::OpenDecisions;
use crate::conversation::{
    CallerId, ConversationLimits, ConversationState, DriverReport, FactStatement, IncomingRequest, Input,
    LoadedConversation, MAX_PANICS, NewRun, OpenHistories, ReadAttempt, RunCondition, RunReading, SideEffect,
    StoredDecisions, WordDecision,
};
use crate::memory::{self, SummaryJob, stated_fact_id};
use crate::planner::ApproverChoice;
use crate::run::{ApprovalId, Fault, RunId, RunStatus, SessionEvent, SessionId, Turn, Usage};

fn conversation(is_new: bool, max_queued: usize) -> ConversationState {
    let memory = memory::Options { keep_turns: 1, max_turns_in_prompt: 2, ..memory::Options::default() };
    let limits = ConversationLimits { max_queued, memory, window: 100_000, open: OpenHistories::new(10_000) };
    ConversationState::new(SessionId::new("s-1").unwrap(), limits, is_new).0
}

fn run(number: u64) -> RunId {
    RunId(uuid::Uuid::from_u128(u128::from(number)))
}

/// A request of `ada`, whose caller and run have this number.
fn request(number: u64, words: &str) -> Input {
    let (caller, run, words) = (CallerId(number), run(number), Some(words.to_owned()));
    let user = "ada".to_owned();
    Input::Request(IncomingRequest { caller, run, user, own_session: true, words, answered: None })
}

fn command(caller: u64, about: u64) -> Input {
    Input::Command { caller: CallerId(caller), run: run(about) }
}

fn appended(number: u64) -> Input {
    Input::Appended(vec![(run(number), Ok(()))])
}

fn new_run(number: u64, answers: Option<u64>) -> SideEffect {
    SideEffect::Append(vec![NewRun { caller: CallerId(number), run: run(number), answers: answers.map(run) }])
}

fn drive(number: u64, commands: &[u64]) -> SideEffect {
    SideEffect::Drive { run: run(number), commands: commands.iter().copied().map(CallerId).collect() }
}

fn read(number: u64, attempt: ReadAttempt) -> SideEffect {
    SideEffect::ReadRun { run: run(number), attempt }
}

fn finish(number: u64, callers: &[u64]) -> SideEffect {
    let callers = callers.iter().copied().map(CallerId).collect();
    SideEffect::Finish { run: run(number), callers, fault: None }
}

fn accept(number: u64) -> SideEffect {
    SideEffect::Accept { caller: CallerId(number), run: run(number) }
}

fn open(seq: u64) -> OpenDecisions {
    OpenDecisions {
        seq,
        approvals: vec![1],
        lists: None,
        reads_words: false,
        is_shown_whole: true,
        language: None,
    }
}

fn is_read(number: u64, condition: RunCondition) -> Input {
    Input::RunRead { run: run(number), outcome: Ok(RunReading { condition, turns: Vec::new() }) }
}

fn ended(number: u64, condition: RunCondition, seq: u64, turns: Vec<(u64, SessionEvent)>) -> Input {
    let report = DriverReport { condition, seq, turns, decided_by_words: false, broken: None };
    Input::DriverEnded { run: run(number), report }
}

fn turn(seq: u64, number: u64, asks: bool) -> (u64, SessionEvent) {
    let (request, answer) = ("look".to_owned(), "done".to_owned());
    let turn =
        Turn { run: Some(run(number)), request, answer, status: RunStatus::Completed, calls: Vec::new() };
    let pending = asks.then(|| pending(run(number)));
    (seq, SessionEvent::TurnEnded { turn, pending, usage: Usage::default(), origin: None })
}

/// A conversation whose first run waits for a person, as its last answer showed.
fn waiting() -> ConversationState {
    let mut state = conversation(true, 4);
    assert_eq!(state.on(request(1, "book")), [new_run(1, None)]);
    assert_eq!(state.on(appended(1)), [accept(1), drive(1, &[])]);
    let effects = state.on(ended(1, RunCondition::Waiting(open(5)), 5, Vec::new()));
    assert_eq!(effects, [finish(1, &[1]), SideEffect::StartTimer]);
    state
}

#[test]
fn fifty_decisions_pass_a_full_queue_and_a_pending_append() {
    let mut state = conversation(true, 1);
    state.on(request(1, "book"));
    state.on(appended(1));
    assert_eq!(state.on(request(2, "look")), [new_run(2, None)]);
    let full = &state.on(request(3, "look"))[0];
    assert!(
        matches!(full, SideEffect::Refuse { fault, is_shed: true, .. } if fault.code == "session.queue_full")
    );
    for caller in 10..60 {
        let effects = state.on(command(caller, 1));
        assert_eq!(effects, [SideEffect::Deliver { caller: CallerId(caller), run: run(1) }]);
    }
}

#[test]
fn command_about_a_run_being_appended_waits_for_the_append() {
    let mut state = conversation(true, 4);
    state.on(request(1, "book"));
    assert_eq!(state.on(command(2, 1)), []);
    let delivered = SideEffect::Deliver { caller: CallerId(2), run: run(1) };
    assert_eq!(state.on(appended(1)), [accept(1), delivered, drive(1, &[])]);
}

#[test]
fn command_that_meets_a_leaving_driver_starts_another() {
    let mut state = waiting();
    let effects = state.on(command(2, 1));
    assert_eq!(effects, [read(1, ReadAttempt::ForCommand), SideEffect::CancelTimer]);
    assert_eq!(state.on(is_read(1, RunCondition::Waiting(open(5)))), [drive(1, &[2])]);
    state.on(command(3, 1));
    assert_eq!(state.on(Input::CommandNotTaken { caller: CallerId(3), run: run(1) }), []);
    let effects = state.on(ended(1, RunCondition::Ended, 9, vec![turn(1, 1, false)]));
    assert_eq!(effects, [finish(1, &[2]), read(1, ReadAttempt::ForCommand)]);
    assert_eq!(state.on(is_read(1, RunCondition::Ended)), [drive(1, &[3])]);
}

#[test]
fn run_is_ended_after_its_driver_panicked_five_times() {
    let mut state = conversation(true, 4);
    state.on(request(1, "book"));
    state.on(appended(1));
    for _ in 1..MAX_PANICS {
        assert_eq!(state.on(Input::DriverPanicked { run: run(1) }), [read(1, ReadAttempt::AfterPanic)]);
        assert_eq!(state.on(is_read(1, RunCondition::Unfinished)), [drive(1, &[])]);
    }
    assert_eq!(state.on(Input::DriverPanicked { run: run(1) }), [read(1, ReadAttempt::AfterLastPanic)]);
    let effects = state.on(is_read(1, RunCondition::Unfinished));
    let [SideEffect::Finish { callers, fault: Some(fault), .. }, SideEffect::StartTimer] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!((callers.as_slice(), fault.code.as_str()), ([CallerId(1)].as_slice(), "run.crashed"));
}

#[test]
fn unreadable_run_after_a_panic_has_the_conversation_loaded_again() {
    let mut state = conversation(true, 4);
    state.on(request(1, "book"));
    state.on(appended(1));
    state.on(Input::DriverPanicked { run: run(1) });
    let fault = Fault::new("store.full", "the disk is full");
    let outcome = Err(fault.clone());
    let effects = state.on(Input::RunRead { run: run(1), outcome });
    let failed = SideEffect::Finish { run: run(1), callers: vec![CallerId(1)], fault: Some(fault.clone()) };
    assert_eq!(effects, [failed, SideEffect::RequestSleep { received: 1 }]);
    assert_eq!(state.on(request(2, "look")), []);
    assert_eq!(state.on(Input::SleepRefused), [SideEffect::RequestSleep { received: 2 }]);
    let refused = SideEffect::Refuse { caller: CallerId(2), fault, is_shed: false };
    assert_eq!(state.on(Input::SleepAgreed), [refused, SideEffect::Stop]);
}

#[test]
fn runs_of_an_earlier_process_go_before_early_requests() {
    let mut state = conversation(false, 4);
    assert_eq!(state.on(request(8, "look")), []);
    assert_eq!(state.on(Input::Resume { caller: CallerId(9) }), []);
    let unfinished = vec![run(1), run(2)];
    let loaded = LoadedConversation { unfinished, ..LoadedConversation::default() };
    let ready = SideEffect::ReplyReady { caller: CallerId(9) };
    assert_eq!(state.on(Input::Loaded(Box::new(loaded))), [ready, new_run(8, None), drive(1, &[])]);
    assert_eq!(state.on(appended(8)), [accept(8)]);
    let effects = state.on(ended(1, RunCondition::Ended, 4, vec![turn(1, 1, false)]));
    assert_eq!(effects, [finish(1, &[]), drive(2, &[])]);
    let effects = state.on(ended(2, RunCondition::Waiting(open(4)), 4, Vec::new()));
    let done = SideEffect::ReplyResumed { caller: CallerId(9) };
    assert_eq!(effects, [finish(2, &[]), done, drive(8, &[])]);
}

#[test]
fn yes_decides_only_while_the_last_answer_showed_it() {
    let mut state = waiting();
    let approval = ApprovalId { run: run(1), approval: 1 };
    let decision = WordDecision { approval, choice: ApproverChoice::Yes, before: 5 };
    let mut other = waiting();
    let effects = other.on(request(2, "yes"));
    assert_eq!(effects[0], SideEffect::DecideByWords { caller: CallerId(2), decision });
    // Another run's answer comes between.
    state.on(request(2, "look"));
    state.on(appended(2));
    state.on(ended(2, RunCondition::Ended, 4, vec![turn(1, 2, false)]));
    assert_eq!(state.on(request(3, "yes"))[0], new_run(3, None));
}

#[test]
fn refused_decision_does_not_show_again_what_another_answer_hid() {
    let mut state = waiting();
    state.on(request(2, "look"));
    state.on(appended(2));
    state.on(command(3, 1));
    state.on(is_read(1, RunCondition::Waiting(open(5))));
    state.on(ended(2, RunCondition::Ended, 4, vec![turn(1, 2, false)]));
    // The driver refused the command, so the run is as it was.
    state.on(ended(1, RunCondition::Waiting(open(5)), 5, Vec::new()));
    assert_eq!(state.on(request(4, "yes"))[0], new_run(4, None));
}

#[test]
fn yes_passes_a_request_that_is_being_appended() {
    let mut state = waiting();
    state.on(request(2, "look"));
    let effects = state.on(request(3, "yes"));
    assert!(matches!(effects[0], SideEffect::DecideByWords { caller: CallerId(3), .. }), "{effects:?}");
    assert_eq!(effects[1], read(1, ReadAttempt::ForCommand));
}

#[test]
fn stored_decision_counts_as_shown_only_if_it_came_last_and_unchanged() {
    let since = |second| jiff::Timestamp::from_second(second).unwrap();
    for (last, is_changed, decides) in [(3, false, true), (9, false, false), (3, true, false)] {
        let mut state = conversation(false, 4);
        let stored = StoredDecisions { run: run(1), open: open(5), since: since(5), is_changed };
        let (last_event_at, waiting) = (Some(since(last)), vec![stored]);
        let loaded = LoadedConversation { last_event_at, waiting, ..LoadedConversation::default() };
        state.on(Input::Loaded(Box::new(loaded)));
        let effects = state.on(request(2, "yes"));
        assert_eq!(matches!(effects[0], SideEffect::DecideByWords { .. }), decides, "{effects:?}");
    }
}

#[test]
fn request_answers_the_question_of_a_published_answer() {
    let mut state = conversation(true, 4);
    state.on(request(1, "book"));
    state.on(appended(1));
    // The driver has not left, but the answer was read.
    let Input::Request(mut second) = request(2, "yes") else { unreachable!() };
    second.answered = Some(run(1));
    assert_eq!(state.on(Input::Request(second)), [new_run(2, Some(1))]);
}

#[test]
fn turns_are_remembered_in_the_order_of_the_stream() {
    let mut state = waiting();
    state.on(request(2, "look"));
    state.on(appended(2));
    state.on(command(3, 1));
    state.on(is_read(1, RunCondition::Waiting(open(5))));
    state.on(ended(2, RunCondition::Ended, 4, vec![turn(2, 2, false)]));
    let remembered = |state: &ConversationState| state.history.peeked(|known| known.memory.clone()).unwrap();
    assert_eq!(remembered(&state).total_turns(), 0);
    state.on(ended(1, RunCondition::Ended, 9, vec![turn(1, 1, false)]));
    let runs: Vec<_> = remembered(&state).turns().filter_map(|turn| turn.run).collect();
    assert_eq!(runs, [run(1), run(2)]);
}

#[test]
fn held_conversation_starts_nothing_and_is_read_again() {
    let mut state = waiting();
    let hold = |number: u64| Input::Hold { caller: CallerId(number) };
    assert_eq!(state.on(hold(2)), [SideEffect::CancelTimer, SideEffect::Hold { caller: CallerId(2) }]);
    assert_eq!(state.on(request(3, "look")), []);
    assert_eq!(state.on(command(4, 1)), []);
    assert!(matches!(state.on(hold(5))[..], [SideEffect::Refuse { caller: CallerId(5), .. }]));
    assert_eq!(state.on(Input::Released), [SideEffect::Load]);
    let decisions =
        StoredDecisions { run: run(1), open: open(5), since: jiff::Timestamp::UNIX_EPOCH, is_changed: false };
    let owner = Some("ada".to_owned());
    let loaded = LoadedConversation { owner, waiting: vec![decisions], ..LoadedConversation::default() };
    let effects = state.on(Input::Loaded(Box::new(loaded)));
    assert_eq!(effects, [read(1, ReadAttempt::ForCommand), new_run(3, None)]);
    // While a request is at work, it cannot be held.
    assert!(matches!(state.on(hold(6))[..], [SideEffect::Refuse { caller: CallerId(6), .. }]));
}

fn statement(caller: u64) -> Input {
    let at = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
    let (claim, by) = ("the limit is 5 euros".to_owned(), "ada".to_owned());
    let statement = FactStatement { claim, corrects: None, by, at };
    Input::State { caller: CallerId(caller), statement: Box::new(statement) }
}

#[test]
fn fact_waits_for_a_turn_that_a_driver_will_report() {
    let mut state = waiting();
    state.on(request(2, "look"));
    state.on(appended(2));
    state.on(command(3, 1));
    state.on(is_read(1, RunCondition::Waiting(open(5))));
    state.on(ended(2, RunCondition::Ended, 4, vec![turn(2, 2, false)]));
    assert_eq!(state.on(statement(4)), []);
    let effects = state.on(ended(1, RunCondition::Ended, 9, vec![turn(1, 1, false)]));
    assert!(
        matches!(effects[..], [SideEffect::Finish { .. }, SideEffect::AppendFact { .. }, ..]),
        "{effects:?}"
    );
}

#[test]
fn statement_made_twice_is_one_fact() {
    let mut state = waiting();
    let Some(SideEffect::AppendFact { fact, .. }) = state.on(statement(2)).into_iter().next() else {
        panic!("the first one is appended");
    };
    let event = (1, SessionEvent::Fact { fact });
    let replied = |caller: u64| SideEffect::ReplyStated { caller: CallerId(caller), fact: stated_fact_id(1) };
    let effects = state.on(Input::FactAppended { caller: CallerId(2), result: Box::new(Ok(event)) });
    assert_eq!(effects.first(), Some(&replied(2)));
    assert_eq!(state.on(statement(3)).first(), Some(&replied(3)));
}

#[test]
fn conversation_that_is_not_updated_is_read_again() {
    let mut state = waiting();
    for number in [2, 3] {
        state.on(request(number, "look"));
        state.on(appended(number));
    }
    // The turn before this one is on disk, and its driver did not learn that.
    let effects = state.on(ended(2, RunCondition::Ended, 4, vec![turn(2, 2, false)]));
    let behind = |effect: &SideEffect| match effect {
        SideEffect::Finish { fault: Some(fault), .. } | SideEffect::Refuse { fault, .. } => {
            fault.code == "session.behind"
        }
        _ => false,
    };
    // The queued run is continued by the next actor.
    assert_eq!(effects[0], finish(2, &[2]));
    assert!(behind(&effects[1]), "{effects:?}");
    assert_eq!(effects[2..], [SideEffect::RequestSleep { received: 3 }]);
    assert_eq!(state.on(statement(4)), []);
    assert_eq!(state.on(Input::SleepRefused), [SideEffect::RequestSleep { received: 4 }]);
    let effects = state.on(Input::SleepAgreed);
    assert!(behind(&effects[0]) && effects[1..] == [SideEffect::Stop], "{effects:?}");
}

#[test]
fn failed_stream_waits_for_driven_runs_and_drops_the_queue() {
    let mut state = waiting();
    state.on(command(2, 1));
    state.on(is_read(1, RunCondition::Waiting(open(5))));
    for (seq, number) in [(1, 3), (2, 4)] {
        state.on(request(number, "look"));
        state.on(appended(number));
        state.on(ended(number, RunCondition::Ended, 4, vec![turn(seq, number, false)]));
    }
    // A summary is made, and after one more turn it is overdue.
    state.on(request(5, "look"));
    assert_eq!(state.on(appended(5)), [accept(5), drive(5, &[])]);
    assert_eq!(state.on(ended(5, RunCondition::Ended, 4, vec![turn(3, 5, false)])), [finish(5, &[5])]);
    state.on(request(6, "look"));
    assert_eq!(state.on(appended(6)), [accept(6), SideEffect::HurrySummary]);
    let fault = Fault::new("store.conflict", "somebody else writes");
    let failed = SideEffect::Finish { run: run(6), callers: vec![CallerId(6)], fault: Some(fault.clone()) };
    assert_eq!(state.on(Input::StreamFailed(fault)), [failed]);
    let effects = state.on(ended(1, RunCondition::Waiting(open(5)), 5, Vec::new()));
    assert_eq!(effects, [finish(1, &[2]), SideEffect::RequestSleep { received: 6 }]);
}

fn summarised(seq: u64, job: &SummaryJob) -> Input {
    let (summary, usage) = (job.fallback(), Usage::default());
    let (through, attempts, sources) = (job.through, Vec::new(), Vec::new());
    let event = SessionEvent::Summarised { through, summary, usage, attempts, sources };
    Input::Summarised { turns: vec![(seq, event)] }
}

/// A conversation of two turns, which a prompt may have, and the summary that began after them.
fn summarising() -> (ConversationState, SummaryJob) {
    let mut state = conversation(true, 4);
    state.on(request(1, "look"));
    state.on(appended(1));
    state.on(ended(1, RunCondition::Ended, 4, vec![turn(1, 1, false)]));
    state.on(request(2, "look"));
    state.on(appended(2));
    let mut effects = state.on(ended(2, RunCondition::Ended, 4, vec![turn(2, 2, false)]));
    let Some(SideEffect::Summarise(job)) = effects.pop() else { panic!("{effects:?}") };
    (state, job)
}

#[test]
fn request_waits_for_a_summary_only_if_it_is_overdue() {
    let (mut state, job) = summarising();
    state.on(request(3, "look"));
    assert_eq!(state.on(appended(3)), [accept(3), drive(3, &[])]);
    state.on(request(4, "look"));
    assert_eq!(state.on(appended(4)), [accept(4)]);
    // With its turn there are more than a prompt may have.
    let effects = state.on(ended(3, RunCondition::Ended, 4, vec![turn(3, 3, false)]));
    assert_eq!(effects, [finish(3, &[3]), SideEffect::HurrySummary]);
    state.on(request(5, "look"));
    assert_eq!(state.on(appended(5)), [accept(5)]);
    // The first turn is summarised; the two that are left fit, and the next summary is made beside.
    let effects = state.on(summarised(4, &job));
    assert!(
        matches!(&effects[..], [first, SideEffect::Summarise(_)] if *first == drive(4, &[])),
        "{effects:?}"
    );
    let memory = state.history.peeked(|known| known.memory.clone()).unwrap();
    assert_eq!((memory.covered(), memory.turns().len()), (1, 2));
}

#[test]
fn request_waits_for_the_turn_before_it_where_the_summary_is_not_reported() {
    let (mut state, job) = summarising();
    state.on(request(3, "look"));
    state.on(appended(3));
    // The summary is on disk before the turn, and only its own report tells so.
    state.on(ended(3, RunCondition::Ended, 4, vec![turn(4, 3, false)]));
    state.on(request(4, "and there?"));
    assert_eq!(state.on(appended(4)), [accept(4)]);
    let effects = state.on(summarised(3, &job));
    assert!(
        matches!(&effects[..], [first, SideEffect::Summarise(_)] if *first == drive(4, &[])),
        "{effects:?}"
    );
    let memory = state.history.peeked(|known| known.memory.clone()).unwrap();
    assert_eq!(memory.turns().last().unwrap().run, Some(run(3)));
}

#[test]
fn erasure_waits_for_the_summary_and_not_for_a_request_that_is_refused_then() {
    let (mut state, job) = summarising();
    let erase = |number: u64| Input::Erase { caller: CallerId(number), since: None };
    assert_eq!(state.on(erase(3)), [SideEffect::CancelSummary]);
    // A request that comes between is answered beside the summary, and begins before the erasure.
    state.on(request(4, "look"));
    assert_eq!(state.on(appended(4)), [accept(4), drive(4, &[])]);
    assert!(matches!(state.on(erase(5))[..], [SideEffect::Refuse { caller: CallerId(5), .. }]));
    let effects = state.on(ended(4, RunCondition::Ended, 4, vec![turn(3, 4, false)]));
    assert_eq!(effects, [finish(4, &[4])]);
    assert_eq!(state.on(summarised(4, &job)), [SideEffect::Erase { since: None }]);
}

#[test]
fn erasure_ends_a_summary_and_is_refused_if_a_request_comes_between() {
    for comes_between in [false, true] {
        let mut state = conversation(true, 4);
        for (seq, number) in [(1, 3), (2, 4)] {
            state.on(request(number, "look"));
            state.on(appended(number));
            state.on(ended(number, RunCondition::Ended, 4, vec![turn(seq, number, false)]));
        }
        let erase = Input::Erase { caller: CallerId(5), since: None };
        assert_eq!(state.on(erase), [SideEffect::CancelSummary]);
        if comes_between {
            state.on(request(6, "look"));
        }
        let effects = state.on(Input::Summarised { turns: Vec::new() });
        match comes_between {
            false => assert_eq!(effects, [SideEffect::Erase { since: None }]),
            true => {
                assert!(matches!(effects[0], SideEffect::Refuse { caller: CallerId(5), .. }), "{effects:?}")
            }
        }
    }
}

#[test]
fn unreadable_conversation_can_be_erased_and_begins_again() {
    let mut state = conversation(false, 4);
    state.on(Input::Erase { caller: CallerId(1), since: None });
    let fault = Fault::new("store.unreadable", "it is broken");
    assert_eq!(state.on(Input::LoadFailed(fault)), [SideEffect::Erase { since: None }]);
    assert_eq!(state.on(request(2, "look")), []);
    let erased = SideEffect::ReplyErased { caller: CallerId(1), erased: true };
    assert_eq!(state.on(Input::Erased(Ok(true))), [SideEffect::Reset, erased, new_run(2, None)]);
}

#[test]
fn another_users_request_is_refused_while_the_first_is_appended() {
    let mut state = conversation(true, 4);
    state.on(request(1, "book"));
    let Input::Request(mut other) = request(2, "look") else { unreachable!() };
    other.user = "bob".to_owned();
    let effects = state.on(Input::Request(other.clone()));
    assert!(matches!(&effects[0], SideEffect::Refuse { fault, .. } if fault.code == "session.unknown"));
    // The first request is rejected, so the conversation is nobody's.
    state.on(Input::Appended(vec![(run(1), Err(Fault::new("store.full", "the disk is full")))]));
    assert_eq!(state.on(Input::Request(other))[0], new_run(2, None));
}

#[test]
fn message_on_its_way_keeps_the_actor_awake() {
    let mut state = waiting();
    assert_eq!(state.on(Input::IdleElapsed), [SideEffect::RequestSleep { received: 1 }]);
    assert_eq!(state.on(Input::SleepRefused), [SideEffect::StartTimer]);
    assert_eq!(state.on(Input::IdleElapsed), [SideEffect::RequestSleep { received: 1 }]);
    assert_eq!(state.on(Input::SleepAgreed), [SideEffect::Stop]);
}
