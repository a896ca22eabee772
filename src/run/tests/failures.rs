//! Failed attempts of calls: what predefined logic decides, and what a later failure says about an earlier attempt.

use serde_json::json;

use super::script::{BOOK, LOOK, LOOK_ELSEWHERE, PAY, Script};
use super::{generators, patches};
use crate::adapt::{
    ExecutionLevel, ExecutionMode, FaultPolicy, PolicyAction, PolicyChoice, PolicyDefaults, ToolPolicies,
};
use crate::plan::Plan;
use crate::run::{
    Action, CallStatus, Decision, Effect, Event, Fault, FaultClass, Outcome, PlanMaker, RULES_REVISION,
    Repeat, RequestedCall, RunStatus, Settings, Subject, TimerSubject, call_key,
};

fn settings(mode: Option<ExecutionMode>) -> Settings {
    Settings { rules: 4, mode, ..Settings::default() }
}

fn unavailable() -> Fault {
    Fault::new("http.status", "503").classed(FaultClass::Unavailable)
}

/// A run whose only call is in flight.
fn calling(call: (&str, Effect, Repeat, u32), settings: Settings) -> Script {
    let mut run = Script::new(settings);
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[call]);
    run
}

fn fire(run: &mut Script) {
    let timer = run.state.next_timer().unwrap().timer;
    run.record(Event::TimerFired { timer });
    run.settle();
}

#[test]
fn answer_that_denies_nothing_names_the_reads_of_steps_without_a_result() {
    let not_found = || Fault::new("http.status", "404").classed(FaultClass::NotFound);
    let line = "look (n: 1): Non \u{e8} stato possibile farlo.";
    let answered = |rules: u16, error: Fault, answer: &str| {
        let mut run = calling(LOOK, Settings { rules, ..Settings::default() });
        run.outcome(1, Outcome::Failed { error });
        run.reply_with_end(1, "Done.", false);
        run.state.with_omissions(answer)
    };
    assert_eq!(answered(RULES_REVISION, unavailable(), "Done."), format!("Done.\n{line}"));
    assert!(answered(RULES_REVISION, not_found(), "Done.").starts_with("Done.\nlook (n: 1): "));
    assert_eq!(answered(14, unavailable(), "Done."), "Done.");
    for told in ["Non sono riuscito a guardare.", "I could not look at it now.", line] {
        assert_eq!(answered(RULES_REVISION, unavailable(), told), told);
    }
}

#[test]
fn keyed_write_that_may_be_done_stays_unknown_when_its_repetition_fails() {
    for (rules, stays) in [(3, false), (4, true)] {
        let mut run = calling(PAY, Settings { rules, ..Settings::default() });
        run.outcome(1, Outcome::Unknown { error: unavailable() });
        run.outcome(1, Outcome::Failed { error: Fault::new("http.unreachable", "refused") });
        let status = &run.state.calls[&1].status;
        let unknown = matches!(status, CallStatus::Done { outcome: Outcome::Unknown { .. } });
        assert_eq!(unknown, stays, "{rules}: {status:?}");
        assert_eq!(run.state.approvals.len(), usize::from(stays), "a person is asked what it did");
    }
}

#[test]
fn interrupted_keyed_write_stays_unknown_when_its_repetition_fails() {
    let mut run = calling(PAY, settings(None));
    run.record(Event::RunResumed { epoch: 1, restart: true, catalogue: None });
    run.settle();
    let refused = || Outcome::Refused { error: Fault::new("pay.limit", "too much") };
    run.outcome(1, refused());
    assert_eq!(run.state.calls[&1].status, CallStatus::InFlight { attempt: 3 }, "its one repetition is left");
    run.outcome(1, refused());
    let status = &run.state.calls[&1].status;
    assert!(matches!(status, CallStatus::Done { outcome: Outcome::Unknown { .. } }), "{status:?}");
}

#[test]
fn repetition_that_a_person_ordered_and_that_fails_leaves_the_write_unknown() {
    let mut run = calling(BOOK, settings(None));
    run.outcome(1, Outcome::Unknown { error: unavailable() });
    run.decide(1, Decision::Again, "lucia");
    run.outcome(1, Outcome::Failed { error: unavailable() });
    assert!(matches!(&run.state.calls[&1].status, CallStatus::Done { outcome: Outcome::Unknown { .. } }));
    run.decide(2, Decision::NotDone, "lucia");
    assert!(matches!(&run.state.calls[&1].status, CallStatus::Done { outcome: Outcome::Refused { .. } }));
}

#[test]
fn failed_read_backs_off_and_is_called_again() {
    let mut run = calling(LOOK, settings(Some(ExecutionMode::Strict)));
    run.outcome(1, Outcome::Failed { error: unavailable() });
    assert_eq!(run.state.next(), [], "it waits");
    assert!(run.state.has_work_in_flight(), "a running timer is work");
    let timer = run.state.next_timer().unwrap();
    assert_eq!(timer.timer, TimerSubject::Retry { call: 1, attempt: 2 });
    let early = Event::TimerFired { timer: TimerSubject::Retry { call: 1, attempt: 3 } };
    assert!(run.state.check(&early).is_err(), "another timer does not run");
    fire(&mut run);
    assert_eq!(run.state.calls[&1].status, CallStatus::InFlight { attempt: 2 });
    run.done(1, json!("sunny"));
    assert_eq!(run.state.calls[&1].attempts, 2);
}

#[test]
fn reads_that_fail_at_once_share_the_retries_and_the_wait_of_the_run() {
    let whole = PolicyDefaults::default();
    for policies in [
        PolicyDefaults { max_retries: 1, ..whole },
        // Each of them waits for at least half of this.
        PolicyDefaults { max_wait_per_run_ms: whole.backoff_ms - 1, ..whole },
    ] {
        let mut run = Script::new(Settings { policies, ..settings(Some(ExecutionMode::Strict)) });
        run.plan(PlanMaker::Deterministic, &[("A", &[])]);
        run.reply_with_calls(1, &[LOOK, LOOK_ELSEWHERE]);
        for call in [1, 2] {
            let outcome = Outcome::Failed { error: unavailable() };
            run.record(Event::ToolCompleted { call, outcome, millis: 3, notes: None });
        }
        run.settle();
        let is_retried = |call| matches!(run.state.calls[&call].status, CallStatus::BackedOff { .. });
        assert_eq!([1, 2].map(is_retried), [true, false], "{policies:?}");
    }
}

#[test]
fn backoff_survives_a_crash_and_ends_with_a_cancellation() {
    let mut run = calling(LOOK, settings(Some(ExecutionMode::Strict)));
    run.outcome(1, Outcome::Failed { error: unavailable() });
    run.crash();
    assert!(run.state.next_timer().is_some(), "the wait is in the journal");
    run.record(Event::CancelRequested { by: "lucia".to_owned(), deadline: false, note: None });
    assert_eq!(run.state.next_timer(), None);
    assert!(matches!(run.state.next(), [Action::Record { event: Event::RunCancelled { .. } }]));
    run.settle();
    let status = &run.state.calls[&1].status;
    assert!(matches!(status, CallStatus::Done { outcome: Outcome::Failed { .. } }), "{status:?}");
}

#[test]
fn uncertain_write_that_backs_off_at_the_end_is_referred_to_a_person() {
    let mut run = calling(PAY, settings(Some(ExecutionMode::Adaptive)));
    run.outcome(1, Outcome::Unknown { error: unavailable() });
    assert!(matches!(run.state.calls[&1].status, CallStatus::BackedOff { .. }));
    run.cancel(false);
    assert_eq!(run.state.approvals.len(), 1);
    assert!(matches!(&run.state.calls[&1].status, CallStatus::Done { outcome: Outcome::Unknown { .. } }));
}

#[test]
fn equal_write_of_a_parallel_step_waits_for_one_that_backs_off() {
    let mut run = Script::new(settings(Some(ExecutionMode::Adaptive)));
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("A", &[])]);
    run.reply_with_calls(1, &[PAY]);
    run.outcome(1, Outcome::Unknown { error: unavailable() });
    run.reply_with_calls(2, &[PAY, ("pay", Effect::Write, Repeat::Key, 2)]);
    assert_eq!(run.begun().len(), 1, "neither the equal write nor another one of the tool begins");
    fire(&mut run);
    run.done(1, json!({"id": 7}));
    run.done(3, json!({"id": 8}));
    assert_eq!(run.state.calls[&2].status, CallStatus::Skipped { first: 1 });
    assert_eq!(run.state.calls[&1].attempts + run.state.calls[&2].attempts, 2);
}

#[test]
fn unknown_plain_write_is_referred_to_a_person_and_the_decision_is_recorded() {
    let mut run = calling(BOOK, settings(Some(ExecutionMode::Adaptive)));
    run.outcome(1, Outcome::Unknown { error: unavailable() });
    assert_eq!((run.state.approvals.len(), run.state.next_timer()), (1, None));
    let call = &run.state.calls[&1];
    assert!(!call.unnoted && call.uncertain, "its end was recorded as unexpected");
}

#[test]
fn journal_that_waits_longer_than_any_release_may_is_read() {
    let mut run = calling(LOOK, settings(Some(ExecutionMode::Strict)));
    run.state.apply_checked(
        &Event::ToolCompleted {
            call: 1,
            outcome: Outcome::Failed { error: unavailable() },
            millis: 1,
            notes: None,
        },
        jiff::Timestamp::MAX,
    );
    let waits = Event::BackedOff { call: 1, attempt: 2, delay_ms: u64::MAX, asked_ms: Some(u64::MAX) };
    run.state.apply_checked(&waits, jiff::Timestamp::MAX);
    assert_eq!(run.state.next_timer().unwrap().delay_ms, crate::adapt::MAX_TIMER_MS);
}

#[test]
fn only_an_optional_call_is_left_out_and_not_in_mode_strict() {
    let policy = FaultPolicy { actions: Some(vec![PolicyAction::Skip]), ..FaultPolicy::default() };
    let declared = |optional| ToolPolicies {
        by_class: [(FaultClass::Unavailable, policy.clone())].into(),
        optional,
        ..ToolPolicies::default()
    };
    for (mode, optional, left_out) in [
        (ExecutionMode::Adaptive, true, true),
        (ExecutionMode::Adaptive, false, false),
        (ExecutionMode::Strict, true, false),
    ] {
        let mut run = calling(LOOK, settings(Some(mode)));
        run.state.calls.change(1, |call| call.requested.policies = Some(Box::new(declared(optional))));
        let failed = Event::ToolCompleted {
            call: 1,
            outcome: Outcome::Failed { error: unavailable() },
            millis: 1,
            notes: None,
        };
        run.state.apply(&failed).unwrap();
        let [Action::Record { event: event @ Event::Unexpected { chosen, .. } }] = run.state.next() else {
            panic!("{:?}", run.state.next())
        };
        assert_eq!(*chosen == PolicyChoice::Skip, left_out, "{mode:?} {optional}");
        let event = event.clone();
        run.state.apply(&event).unwrap();
        assert_eq!(run.state.calls[&1].left_out, left_out);
    }
}

/// A run whose only step has a call in flight that its plan prepared, where no model is asked about it.
fn calling_prepared(settings: Settings) -> Script {
    let mut run = Script::new(settings);
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    let arguments = json!({ "n": 1 });
    let call = RequestedCall {
        provider_id: "call_1".to_owned(),
        ..RequestedCall::new(1, "look", call_key("A", "look", &arguments, &[]), arguments, Effect::Read)
    };
    run.record(Event::Prepared { step: 1, calls: vec![call], unprepared: Vec::new(), question: None });
    run.settle();
    run
}

#[test]
fn refusal_of_a_tool_is_an_answer_and_no_failure_of_the_run() {
    let basic = |rules| Settings {
        rules,
        level: Some(ExecutionLevel::Basic),
        mode: Some(ExecutionMode::Adaptive),
        ..Settings::default()
    };
    let refused = || Outcome::Refused { error: Fault::new("python.refused", "There is no item glue.") };
    for (rules, status) in [(9, RunStatus::Failed), (10, RunStatus::Partial)] {
        let mut run = calling_prepared(basic(rules));
        run.outcome(1, refused());
        assert_eq!(run.state.status, status, "revision {rules}");
        let answer = &run.state.answer.as_ref().unwrap().text;
        assert!(answer.contains("There is no item glue."), "{answer}");
    }
    for rules in [10, 11] {
        let mut run = calling_prepared(basic(rules));
        run.outcome(1, Outcome::Failed { error: Fault::new("python.error", "line 3: ValueError") });
        assert_eq!(run.state.status, RunStatus::Failed, "a failure of the tool stays one");
    }
}

#[test]
fn read_that_found_nothing_is_an_answer_and_no_failure_of_the_run() {
    let basic = |rules| Settings {
        rules,
        level: Some(ExecutionLevel::Basic),
        mode: Some(ExecutionMode::Adaptive),
        ..Settings::default()
    };
    let status = |class| Outcome::Failed { error: Fault::new("http.status", "404").classed(class) };
    for (rules, class, ended) in [
        (10, FaultClass::NotFound, RunStatus::Failed),
        (11, FaultClass::NotFound, RunStatus::Partial),
        (11, FaultClass::Denied, RunStatus::Failed),
    ] {
        let mut run = calling_prepared(basic(rules));
        run.outcome(1, status(class));
        assert_eq!(run.state.status, ended, "revision {rules}, {class:?}");
    }
}

#[test]
fn plan_that_the_budget_does_not_cover_fails_with_the_time_to_wait_for() {
    let problem = |code: &str| crate::plan::PlanProblem::new(code, "no");
    for (problems, wait) in [
        (vec![problem("budget.exceeded")], Some(7_000)),
        (vec![problem("budget.exceeded"), problem("preflight.scene")], None),
    ] {
        let mut run = Script::new(settings(None));
        run.reply(Subject::Plan { version: 1 });
        let plan =
            Plan { needs_execution: true, steps: vec![patches::step(1, "book", &[])], ..Plan::default() };
        run.record(Event::PlanCreated(generators::made(&run.state, plan, PlanMaker::Deterministic)));
        let refused = Event::PlanRefused { version: 1, problems, retry_after_ms: Some(7_000) };
        run.state.check(&refused).unwrap();
        run.record(refused);
        let errors: Vec<Option<u64>> =
            run.state.steps.values().filter_map(|step| Some(step.error.as_ref()?.retry_after_ms)).collect();
        assert_eq!(errors, [wait]);
    }
}
