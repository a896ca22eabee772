//! Runs in which decisions, crashes and late outcomes collide at the worst moment.

use serde_json::json;

use super::generators;
use super::script::{BOOK, LOOK, PAY, Script, undo};
use super::sim::queued;
use crate::plan::{PlanStatus, StepStatus};
use crate::run::{
    Action, ApprovalSubject, Decision, Effect, Event, Fault, Outcome, PlanMaker, Repeat, RequiredApproval,
    RunStatus, Settings,
};

const OTHER: (&str, Effect, Repeat, u32) = ("book", Effect::Write, Repeat::Never, 2);
const YES: Decision = Decision::Yes { hold: false };

fn unknown() -> Outcome {
    Outcome::Unknown { error: Fault::new("tool.timeout", "no reply") }
}

fn refused() -> Outcome {
    Outcome::Refused { error: Fault::new("tool.full", "nothing is free") }
}

fn script() -> Script {
    Script::new(Settings::default())
}

fn undoing() -> Script {
    Script::new(Settings { compensate: true, ..Settings::default() })
}

fn open(run: &Script) -> Vec<ApprovalSubject> {
    run.state.approvals.values().filter(|a| a.is_open()).map(|a| a.matter).collect()
}

#[test]
fn refused_plan_stays_refused_when_its_run_is_resumed() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[LOOK]);
    run.done(1, json!("sunny"));
    run.reply_with_end(1, "Sunny.", false);
    run.check(Some("the booking"), false, None);
    run.asks_plans = true;
    run.plan(PlanMaker::Deterministic, &[("B", &[1])]);
    assert_eq!(run.state.status, RunStatus::Waiting);
    run.decide(1, Decision::No, "fenster");
    run.answer("Sunny.");
    assert_eq!(run.state.status, RunStatus::Partial);
    run.reopen();
    assert_eq!(run.state.steps[&2].status, StepStatus::Cancelled);
    run.answer("Sunny.");
    assert_eq!((run.state.status, run.begun().len()), (RunStatus::Partial, 1));
}

#[test]
fn release_of_an_earlier_version_does_not_begin_a_held_later_one() {
    let mut run = script();
    run.asks_plans = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.decide(1, Decision::Yes { hold: true }, "hockney");
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Waiting, PlanStatus::Approved));
    run.record(Event::Released { by: "hockney".to_owned() });
    run.settle();
    run.reply_with_calls(1, &[LOOK]);
    run.done(1, json!("sunny"));
    run.reply_with_end(1, "Sunny.", false);
    run.check(Some("the booking"), false, None);
    run.plan(PlanMaker::Deterministic, &[("B", &[1])]);
    run.decide(2, Decision::Yes { hold: true }, "hockney");
    assert!(run.state.is_held());
    assert_eq!((run.state.status, run.state.steps[&2].status), (RunStatus::Waiting, StepStatus::Pending));
}

#[test]
fn writes_of_parallel_steps_are_sent_for_approval_one_by_one() {
    let mut run = script();
    run.asks_calls = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.reply_with_calls(2, &[BOOK]);
    assert_eq!(open(&run), [ApprovalSubject::Call { call: 1 }, ApprovalSubject::Call { call: 2 }]);
    assert_eq!(run.state.status, RunStatus::Waiting);
    let mut run = script();
    run.asks_calls = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[])]);
    // Both are due at once.
    run.reply_with_calls(1, &[LOOK, BOOK]);
    run.reply_with_calls(2, &[("look", Effect::Read, Repeat::Never, 2), BOOK]);
    for call in [1, 3] {
        run.record(Event::ToolCompleted {
            call,
            outcome: Outcome::Ok { result: json!(1), say: None, whole: None },
            millis: 0,
            notes: None,
        });
    }
    let puts = run
        .state
        .next()
        .iter()
        .filter(|action| matches!(action, Action::Record { event: Event::ApprovalRequired { .. } }));
    assert_eq!(puts.count(), 1);
    run.settle();
    assert_eq!(open(&run), [ApprovalSubject::Call { call: 2 }, ApprovalSubject::Call { call: 4 }]);
}

#[test]
fn approval_does_not_cover_a_changed_tool_definition() {
    let mut run = script();
    run.asks_calls = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.decide(1, YES, "hockney");
    run.outcome(1, refused());
    run.reply_with_calls(1, &[BOOK]);
    assert_eq!(run.begun().len(), 2, "the very same write, which nothing came of: nobody is asked again");
    run.outcome(2, refused());
    run.reply_with_calls(1, &[BOOK]);
    // As if the third had been requested after the tool's definition changed.
    let mut other = run.state.clone();
    let tools = [("A.book".to_owned(), "another".to_owned())].into();
    other.calls.change(3, |call| {
        call.requested.approval = Some(RequiredApproval { tools, ..generators::needed("call 3") });
        call.status = crate::run::CallStatus::Requested;
    });
    let step = other.calls[&3].step;
    other.steps.get_mut(&step).unwrap().open_calls.push(3);
    let put = |a: &Action| matches!(a, Action::Record { event: Event::ApprovalRequired { .. } });
    assert!(other.next().iter().any(put), "{:?}", other.next());
}

#[test]
fn pending_approval_stays_open_while_its_tool_is_held() {
    let mut run = script();
    run.asks_calls = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("A", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.reply_with_calls(2, &[OTHER]);
    run.decide(1, YES, "hockney");
    run.outcome(1, unknown());
    assert_eq!(open(&run), [ApprovalSubject::Call { call: 2 }, ApprovalSubject::Outcome { call: 1 }]);
    run.decide(3, Decision::Done, "hockney");
    run.decide(2, YES, "hockney");
    assert_eq!(run.begun(), [r#"book {"n":1}"#, r#"book {"n":2}"#]);
}

#[test]
fn retried_write_does_not_displace_other_calls_of_its_round() {
    let mut run = script();
    run.asks_calls = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[BOOK, PAY]);
    run.decide(1, YES, "hockney");
    run.outcome(1, unknown());
    assert_eq!(open(&run), [ApprovalSubject::Outcome { call: 1 }, ApprovalSubject::Call { call: 2 }]);
    run.decide(2, Decision::Again, "hockney");
    run.done(1, json!({ "id": 7 }));
    run.decide(3, YES, "hockney");
    run.done(2, json!({ "id": 8 }));
    run.reply_with_end(1, "Booked and paid.", false);
    run.check(None, true, Some("Booked and paid."));
    assert_eq!(run.state.status, RunStatus::Completed);
}

#[test]
fn write_with_unknown_outcome_again_is_sent_for_approval_again() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.outcome(1, unknown());
    run.decide(1, Decision::Again, "hockney");
    run.outcome(1, unknown());
    assert_eq!(open(&run), [ApprovalSubject::Outcome { call: 1 }]);
    assert_eq!(run.state.calls[&1].attempts, 2);
    run.decide(2, Decision::Done, "hockney");
    run.reply_with_end(1, "Booked.", false);
    run.check(None, true, Some("Booked."));
    assert_eq!(run.state.status, RunStatus::Completed);
}

#[test]
fn answer_in_progress_is_discarded_when_a_write_is_retried() {
    let mut run = Script::new(Settings { answer_with_check: false, ..Settings::default() });
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.outcome(1, unknown());
    run.reply_with_end(1, "Nobody knows.", false);
    run.check(None, true, None);
    run.decide(1, Decision::Again, "hockney");
    run.done(1, json!({ "id": 7 }));
    run.reply_with_end(1, "Booked.", false);
    assert_eq!(run.state.verdicts, []);
    run.check(None, true, Some("Booked."));
    assert_eq!(run.state.status, RunStatus::Completed);
}

#[test]
fn ending_run_cannot_retry_a_write() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[BOOK, LOOK]);
    run.outcome(1, unknown());
    let again = |run: &Script| {
        let (matter, decision) = (ApprovalSubject::Outcome { call: 1 }, Decision::Again);
        run.state.check(&Event::Decided {
            approval: 1,
            matter,
            decision,
            by: String::new(),
            note: None,
            word: None,
        })
    };
    assert_eq!(again(&run), Ok(()));
    run.record(Event::CancelRequested { by: "keysersoze".to_owned(), deadline: false, note: None });
    assert!(again(&run).unwrap_err().why.contains("being cancelled"));
}

#[test]
fn run_past_its_deadline_resumes_despite_work_in_flight() {
    let mut run = script();
    run.asks_calls = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[])]);
    run.reply_with_calls(1, &[LOOK]);
    run.cancel(true);
    assert_eq!(run.state.status, RunStatus::Failed);
    run.reopen();
    run.reply_with_calls(1, &[LOOK]);
    assert_eq!(run.state.calls[&2].attempts, 1, "it does not wait for the one that is heard of no more");
    run.done(2, json!("sunny"));
    run.reply_with_end(1, "Sunny.", false);
    run.reply_with_calls(2, &[BOOK]);
    assert_eq!(run.state.status, RunStatus::Waiting, "nothing of before is under way");
    run.decide(1, YES, "hockney");
    run.done(3, json!({ "id": 7 }));
    run.reply_with_end(2, "Booked.", false);
    run.check(None, true, Some("Sunny, and booked."));
    assert_eq!(run.state.status, RunStatus::Completed);
}

#[test]
fn resumed_run_reads_again_but_repeats_no_step_that_wrote() {
    let find = ("find", Effect::Read, Repeat::Never, 1);
    for (first, status) in [(BOOK, StepStatus::Completed), (find, StepStatus::Running)] {
        let mut run = Script::new(Settings { rules: crate::run::RULES_REVISION, ..Settings::default() });
        run.plan(PlanMaker::Deterministic, &[("A", &[])]);
        run.reply_with_calls(1, &[first, LOOK]);
        run.done(1, json!({ "id": 7 }));
        run.outcome(2, Outcome::Failed { error: Fault::new("tool.down", "no reply") });
        run.reply_with_end(1, "Done, and the weather is unknown.", false);
        run.check(None, true, Some("Done, and the weather is unknown."));
        assert_eq!(run.state.status, RunStatus::Partial);
        run.reopen();
        assert_eq!(run.state.steps[&1].status, status, "{first:?}");
    }
}

#[test]
fn undone_writes_are_redone_when_the_run_is_resumed() {
    let mut run = undoing();
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[1])]);
    run.reply_with_calls(1, &[BOOK]);
    run.done(1, json!({ "id": 7 }));
    run.reply_with_end(1, "Booked.", false);
    run.reply_with_calls(2, &[PAY]);
    run.outcome(2, refused());
    run.reply_with_end(2, "It could not be paid.", false);
    run.check(None, true, Some("Booked, not paid."));
    run.done(3, json!({}));
    assert_eq!((run.state.status, run.begun()[2].as_str()), (RunStatus::Partial, r#"unbook {"id":7}"#));
    run.reopen();
    run.reply_with_calls(1, &[BOOK]);
    assert_eq!(run.state.calls[&4].attempts, 1, "the booking that was undone is no booking to be shared");
    run.done(4, json!({ "id": 8 }));
    run.reply_with_end(1, "Booked.", false);
    run.reply_with_calls(2, &[PAY]);
    run.done(5, json!({}));
    run.reply_with_end(2, "Paid.", false);
    run.check(None, true, Some("Booked and paid."));
    assert_eq!(run.state.status, RunStatus::Completed);
    assert_eq!(run.state.answer.unwrap().text, "Booked and paid.");
}

#[test]
fn step_with_an_undone_write_is_not_completed() {
    let mut run = undoing();
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.done(1, json!({ "id": 7 }));
    run.reply_with_end(1, "Booked.", false);
    run.reply_with_calls(2, &[PAY]);
    run.outcome(2, unknown());
    run.outcome(2, unknown());
    run.reply_with_end(2, "Nobody knows whether it was paid.", false);
    run.check(None, true, Some("Booked."));
    // While the booking is being undone, a person finds that it was paid after all.
    run.record(Event::Decided {
        approval: 1,
        matter: ApprovalSubject::Outcome { call: 2 },
        decision: Decision::Done,
        by: "hockney".to_owned(),
        note: None,
        word: None,
    });
    run.settle();
    run.done(3, json!({}));
    assert_eq!(run.state.status, RunStatus::Partial);
}

#[test]
fn write_with_unknown_outcome_is_never_undone() {
    let mut run = undoing();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[BOOK, OTHER, LOOK]);
    run.done(1, json!({ "reference": 7 }));
    run.done(2, json!({ "id": 9 }));
    run.cancel(false);
    run.done(4, json!({}));
    assert_eq!(run.state.status, RunStatus::Cancelled);
    assert_eq!(run.begun().last().unwrap(), r#"unbook {"id":9}"#);
    assert_eq!(undo().arguments_for(&json!({}), &json!({ "id": null })), None);
}

#[test]
fn write_due_for_retry_at_run_end_is_sent_for_approval() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[PAY]);
    // Its second attempt would be due now.
    run.record(Event::ToolCompleted { call: 1, outcome: unknown(), millis: 0, notes: None });
    run.cancel(false);
    assert_eq!(run.state.status, RunStatus::Cancelled);
    assert_eq!(open(&run), [ApprovalSubject::Outcome { call: 1 }]);
    run.decide(1, Decision::NotDone, "hockney");
    assert!(matches!(run.state.outcome(1), Some(Outcome::Refused { .. })));
}

#[test]
fn waiting_run_survives_any_number_of_restarts() {
    let mut run = script();
    run.asks_plans = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    for _ in 0..5 {
        run.crash();
    }
    assert_eq!((run.state.status, open(&run).len()), (RunStatus::Waiting, 1));
}

#[test]
fn refusals_and_superseded_approvals_do_not_lapse() {
    let mut run = script();
    run.asks_plans = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    let lapsed = |approval, matter| Event::ApprovalLapsed {
        approval,
        matter,
        why: Vec::new(),
        needed: generators::needed("another"),
        edited: None,
        read: None,
    };
    run.modify("two days");
    run.plan(PlanMaker::Deterministic, &[("B", &[])]);
    assert!(run.state.check(&lapsed(1, ApprovalSubject::Plan { version: 1 })).is_err());
    assert_eq!(run.state.check(&lapsed(2, ApprovalSubject::Plan { version: 2 })), Ok(()));
    run.record(Event::Decided {
        approval: 2,
        matter: ApprovalSubject::Plan { version: 2 },
        decision: Decision::No,
        by: "fenster".to_owned(),
        note: None,
        word: None,
    });
    assert!(run.state.check(&lapsed(2, ApprovalSubject::Plan { version: 2 })).is_err());
    run.settle();
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Cancelled, PlanStatus::Cancelled));
}

#[test]
fn plan_only_run_leaves_a_draft() {
    let mut run = Script::of(queued(true), Settings::default());
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Completed, PlanStatus::Draft));
}

#[test]
fn released_plan_continues_when_approval_of_one_write_lapses() {
    let mut run = script();
    (run.asks_plans, run.asks_calls) = (true, true);
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.decide(1, Decision::Yes { hold: true }, "hockney");
    run.record(Event::Released { by: "hockney".to_owned() });
    run.settle();
    run.reply_with_calls(1, &[BOOK]);
    let (matter, needed) = (ApprovalSubject::Call { call: 1 }, generators::needed("another"));
    run.record(Event::ApprovalLapsed {
        approval: 2,
        matter,
        why: Vec::new(),
        needed,
        edited: None,
        read: None,
    });
    run.settle();
    assert!(!run.state.is_held());
    assert_eq!((run.state.status, open(&run)), (RunStatus::Waiting, vec![matter]));
    run.decide(3, YES, "hockney");
    assert_eq!(run.begun().len(), 1);
}

#[test]
fn retried_write_waits_for_calls_in_flight_of_its_round() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[BOOK, LOOK, PAY]);
    run.outcome(1, unknown());
    assert_eq!(run.state.calls[&2].attempts, 1);
    run.decide(1, Decision::Again, "hockney");
    assert_eq!(run.state.calls[&1].attempts, 1);
    run.done(2, json!("sunny"));
    assert_eq!((run.state.calls[&1].attempts, run.state.calls[&3].attempts), (2, 0));
    run.done(1, json!({ "id": 7 }));
    assert_eq!(run.state.calls[&3].attempts, 1);
}

#[test]
fn unrecoverable_run_asks_people_about_writes_in_flight() {
    let lost = || Fault::new("run.too_many_events", "it goes in circles");
    let matters = |events: &[Event]| -> Vec<ApprovalSubject> {
        let put = |event: &Event| match event {
            Event::ApprovalRequired { matter, .. } => Some(*matter),
            _ => None,
        };
        events.iter().filter_map(put).collect()
    };
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[]), ("C", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.reply_with_calls(2, &[LOOK]);
    run.reply_with_calls(3, &[PAY]);
    // It is due for a retry with its key, which will never happen.
    run.record(Event::ToolCompleted { call: 3, outcome: unknown(), millis: 1, notes: None });
    let end = run.state.forced_end(lost());
    assert_eq!(matters(&end), [ApprovalSubject::Outcome { call: 1 }, ApprovalSubject::Outcome { call: 3 }]);
    assert_eq!(end.last(), Some(&Event::RunFailed { error: lost() }));
    end.into_iter().for_each(|event| run.record(event));
    assert_eq!((run.state.status, run.state.next()), (RunStatus::Failed, &[] as &[Action]));
    assert_eq!(open(&run), [ApprovalSubject::Outcome { call: 1 }, ApprovalSubject::Outcome { call: 3 }]);
    run.decide(1, Decision::Done, "hockney");
    run.decide(2, Decision::NotDone, "hockney");
    assert!(matches!(run.state.outcome(1), Some(Outcome::Ok { .. })));
    assert!(matches!(run.state.outcome(3), Some(Outcome::Refused { .. })));

    // Known outcomes and open approvals are not requested again at the end.
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.outcome(1, unknown());
    run.reply_with_calls(2, &[OTHER]);
    run.done(2, json!({}));
    assert_eq!(open(&run), [ApprovalSubject::Outcome { call: 1 }]);
    assert_eq!(run.state.forced_end(lost()), [Event::RunFailed { error: lost() }]);
}
