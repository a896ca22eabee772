//! Runs in which people, crashes and late outcomes meet at the worst moment.

use serde_json::json;

use super::script::{Script, undo};
use super::sim::queued;
use super::words;
use crate::plan::{PlanStatus, StepStatus};
use crate::run::{
    Action, Decision, Effect, Event, Fault, Maker, Matter, Needed, Outcome, Repeat, RunStatus, Settings,
};

const LOOK: (&str, Effect, Repeat, u32) = ("look", Effect::Read, Repeat::Never, 1);
const BOOK: (&str, Effect, Repeat, u32) = ("book", Effect::Write, Repeat::Never, 1);
const OTHER: (&str, Effect, Repeat, u32) = ("book", Effect::Write, Repeat::Never, 2);
const PAY: (&str, Effect, Repeat, u32) = ("pay", Effect::Write, Repeat::Key, 1);
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

/// The questions that are open, by what they are about.
fn open(run: &Script) -> Vec<Matter> {
    run.state.approvals.values().filter(|a| a.is_open()).map(|a| a.matter).collect()
}

#[test]
fn a_plan_that_was_refused_stays_refused_when_its_run_is_carried_on() {
    let mut run = script();
    run.plan(Maker::Deterministic, &[("A", &[])]);
    run.calls(1, &[LOOK]);
    run.done(1, json!("sunny"));
    run.ends(1, "Sunny.", false);
    run.check(Some("the booking"), false, None);
    run.asks_plans = true;
    run.plan(Maker::Deterministic, &[("B", &[1])]);
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
fn a_later_version_that_is_only_approved_does_not_begin_because_an_earlier_one_was_told_to() {
    let mut run = script();
    run.asks_plans = true;
    run.plan(Maker::Deterministic, &[("A", &[])]);
    run.decide(1, Decision::Yes { hold: true }, "hockney");
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Waiting, PlanStatus::Approved));
    run.tell(Event::Released { by: "hockney".to_owned() });
    run.settle();
    run.calls(1, &[LOOK]);
    run.done(1, json!("sunny"));
    run.ends(1, "Sunny.", false);
    run.check(Some("the booking"), false, None);
    run.plan(Maker::Deterministic, &[("B", &[1])]);
    run.decide(2, Decision::Yes { hold: true }, "hockney");
    assert!(run.state.is_held());
    assert_eq!((run.state.status, run.state.steps[&2].status), (RunStatus::Waiting, StepStatus::Pending));
}

#[test]
fn two_writes_of_steps_side_by_side_are_put_one_after_the_other() {
    let mut run = script();
    run.asks_calls = true;
    run.plan(Maker::Deterministic, &[("A", &[]), ("B", &[])]);
    run.calls(1, &[BOOK]);
    run.calls(2, &[BOOK]);
    assert_eq!(open(&run), [Matter::Call { call: 1 }, Matter::Call { call: 2 }]);
    assert_eq!(run.state.status, RunStatus::Waiting);
    let mut run = script();
    run.asks_calls = true;
    run.plan(Maker::Deterministic, &[("A", &[]), ("B", &[])]);
    // Both are due at once.
    run.calls(1, &[LOOK, BOOK]);
    run.calls(2, &[("look", Effect::Read, Repeat::Never, 2), BOOK]);
    for call in [1, 3] {
        run.tell(Event::ToolCompleted {
            call,
            outcome: Outcome::Ok { result: json!(1), say: None },
            millis: 0,
        });
    }
    let puts = run
        .state
        .next()
        .into_iter()
        .filter(|action| matches!(action, Action::Record { event: Event::ApprovalRequired { .. } }));
    assert_eq!(puts.count(), 1);
    run.settle();
    assert_eq!(open(&run), [Matter::Call { call: 2 }, Matter::Call { call: 4 }]);
}

#[test]
fn a_yes_to_one_definition_of_a_tool_is_none_to_another() {
    let mut run = script();
    run.asks_calls = true;
    run.plan(Maker::Deterministic, &[("A", &[])]);
    run.calls(1, &[BOOK]);
    run.decide(1, YES, "hockney");
    run.outcome(1, refused());
    run.calls(1, &[BOOK]);
    assert_eq!(run.begun().len(), 2, "the very same write, which nothing came of: nobody is asked again");
    run.outcome(2, refused());
    run.calls(1, &[BOOK]);
    // As if the third had been asked for after the tool got another definition.
    let mut other = run.state.clone();
    let tools = [("A.book".to_owned(), "another".to_owned())].into();
    let call = other.calls.get_mut(&3).unwrap();
    call.requested.approval = Some(Needed { tools, ..words::needed("call 3") });
    call.status = crate::run::CallStatus::Requested;
    let put = |a: &Action| matches!(a, Action::Record { event: Event::ApprovalRequired { .. } });
    assert!(other.next().iter().any(put), "{:?}", other.next());
}

#[test]
fn what_a_person_was_asked_stays_theirs_though_its_tool_is_held_meanwhile() {
    let mut run = script();
    run.asks_calls = true;
    run.plan(Maker::Deterministic, &[("A", &[]), ("A", &[])]);
    run.calls(1, &[BOOK]);
    run.calls(2, &[OTHER]);
    run.decide(1, YES, "hockney");
    run.outcome(1, unknown());
    assert_eq!(open(&run), [Matter::Call { call: 2 }, Matter::Outcome { call: 1 }]);
    run.decide(3, Decision::Done, "hockney");
    run.decide(2, YES, "hockney");
    assert_eq!(run.begun(), [r#"book {"n":1}"#, r#"book {"n":2}"#]);
}

#[test]
fn a_write_tried_again_leaves_the_other_calls_of_its_round_their_turn() {
    let mut run = script();
    run.asks_calls = true;
    run.plan(Maker::Deterministic, &[("A", &[])]);
    run.calls(1, &[BOOK, PAY]);
    run.decide(1, YES, "hockney");
    run.outcome(1, unknown());
    assert_eq!(open(&run), [Matter::Outcome { call: 1 }, Matter::Call { call: 2 }]);
    run.decide(2, Decision::Again, "hockney");
    run.done(1, json!({ "id": 7 }));
    run.decide(3, YES, "hockney");
    run.done(2, json!({ "id": 8 }));
    run.ends(1, "Booked and paid.", false);
    run.check(None, true, Some("Booked and paid."));
    assert_eq!(run.state.status, RunStatus::Completed);
}

#[test]
fn a_write_that_is_unknown_once_more_is_put_once_more() {
    let mut run = script();
    run.plan(Maker::Deterministic, &[("A", &[])]);
    run.calls(1, &[BOOK]);
    run.outcome(1, unknown());
    run.decide(1, Decision::Again, "hockney");
    run.outcome(1, unknown());
    assert_eq!(open(&run), [Matter::Outcome { call: 1 }]);
    assert_eq!(run.state.calls[&1].attempts, 2);
    run.decide(2, Decision::Done, "hockney");
    run.ends(1, "Booked.", false);
    run.check(None, true, Some("Booked."));
    assert_eq!(run.state.status, RunStatus::Completed);
}

#[test]
fn an_answer_under_way_does_not_outlive_a_write_that_is_tried_again() {
    let mut run = Script::new(Settings { answer_with_check: false, ..Settings::default() });
    run.plan(Maker::Deterministic, &[("A", &[])]);
    run.calls(1, &[BOOK]);
    run.outcome(1, unknown());
    run.ends(1, "Nobody knows.", false);
    run.check(None, true, None);
    run.decide(1, Decision::Again, "hockney");
    run.done(1, json!({ "id": 7 }));
    run.ends(1, "Booked.", false);
    assert_eq!(run.state.verdicts, []);
    run.check(None, true, Some("Booked."));
    assert_eq!(run.state.status, RunStatus::Completed);
}

#[test]
fn a_write_cannot_be_tried_again_by_a_run_that_is_about_to_end() {
    let mut run = script();
    run.plan(Maker::Deterministic, &[("A", &[])]);
    run.calls(1, &[BOOK, LOOK]);
    run.outcome(1, unknown());
    let again = |run: &Script| {
        let (matter, decision) = (Matter::Outcome { call: 1 }, Decision::Again);
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
    run.tell(Event::CancelRequested { by: "keysersoze".to_owned(), deadline: false, note: None });
    assert!(again(&run).unwrap_err().why.contains("being cancelled"));
}

#[test]
fn a_run_that_ended_at_its_deadline_is_carried_on_though_reads_and_questions_were_under_way() {
    let mut run = script();
    run.asks_calls = true;
    run.plan(Maker::Deterministic, &[("A", &[]), ("B", &[])]);
    run.calls(1, &[LOOK]);
    run.cancel(true);
    assert_eq!(run.state.status, RunStatus::Failed);
    run.reopen();
    run.calls(1, &[LOOK]);
    assert_eq!(run.state.calls[&2].attempts, 1, "it does not wait for the one that is heard of no more");
    run.done(2, json!("sunny"));
    run.ends(1, "Sunny.", false);
    run.calls(2, &[BOOK]);
    assert_eq!(run.state.status, RunStatus::Waiting, "nothing of before is under way");
    run.decide(1, YES, "hockney");
    run.done(3, json!({ "id": 7 }));
    run.ends(2, "Booked.", false);
    run.check(None, true, Some("Sunny, and booked."));
    assert_eq!(run.state.status, RunStatus::Completed);
}

#[test]
fn what_was_undone_is_done_again_when_the_run_is_carried_on() {
    let mut run = undoing();
    run.plan(Maker::Deterministic, &[("A", &[]), ("B", &[1])]);
    run.calls(1, &[BOOK]);
    run.done(1, json!({ "id": 7 }));
    run.ends(1, "Booked.", false);
    run.calls(2, &[PAY]);
    run.outcome(2, refused());
    run.ends(2, "It could not be paid.", false);
    run.check(None, true, Some("Booked, not paid."));
    run.done(3, json!({}));
    assert_eq!((run.state.status, run.begun()[2].as_str()), (RunStatus::Partial, r#"unbook {"id":7}"#));
    run.reopen();
    run.calls(1, &[BOOK]);
    assert_eq!(run.state.calls[&4].attempts, 1, "the booking that was undone is no booking to be shared");
    run.done(4, json!({ "id": 8 }));
    run.ends(1, "Booked.", false);
    run.calls(2, &[PAY]);
    run.done(5, json!({}));
    run.ends(2, "Paid.", false);
    run.check(None, true, Some("Booked and paid."));
    assert_eq!(run.state.status, RunStatus::Completed);
    assert_eq!(run.state.answer.unwrap().text, "Booked and paid.");
}

#[test]
fn a_step_whose_write_was_undone_did_not_do_what_it_was_for() {
    let mut run = undoing();
    run.plan(Maker::Deterministic, &[("A", &[]), ("B", &[])]);
    run.calls(1, &[BOOK]);
    run.done(1, json!({ "id": 7 }));
    run.ends(1, "Booked.", false);
    run.calls(2, &[PAY]);
    run.outcome(2, unknown());
    run.outcome(2, unknown());
    run.ends(2, "Nobody knows whether it was paid.", false);
    run.check(None, true, Some("Booked."));
    // While the booking is undone, somebody finds that it was paid after all.
    run.tell(Event::Decided {
        approval: 1,
        matter: Matter::Outcome { call: 2 },
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
fn nothing_is_undone_of_which_it_is_not_known_what() {
    let mut run = undoing();
    run.plan(Maker::Deterministic, &[("A", &[])]);
    run.calls(1, &[BOOK, OTHER, LOOK]);
    run.done(1, json!({ "reference": 7 }));
    run.done(2, json!({ "id": 9 }));
    run.cancel(false);
    run.done(4, json!({}));
    assert_eq!(run.state.status, RunStatus::Cancelled);
    assert_eq!(run.begun().last().unwrap(), r#"unbook {"id":9}"#);
    assert_eq!(undo().arguments_for(&json!({}), &json!({ "id": null })), None);
}

#[test]
fn a_write_that_was_to_be_repeated_when_its_run_ends_is_put_to_a_person() {
    let mut run = script();
    run.plan(Maker::Deterministic, &[("A", &[])]);
    run.calls(1, &[PAY]);
    // Its second attempt would be due now.
    run.tell(Event::ToolCompleted { call: 1, outcome: unknown(), millis: 0 });
    run.cancel(false);
    assert_eq!(run.state.status, RunStatus::Cancelled);
    assert_eq!(open(&run), [Matter::Outcome { call: 1 }]);
    run.decide(1, Decision::NotDone, "hockney");
    assert!(matches!(run.state.outcome(1), Some(Outcome::Refused { .. })));
}

#[test]
fn a_run_that_waits_outlives_any_number_of_processes() {
    let mut run = script();
    run.asks_plans = true;
    run.plan(Maker::Deterministic, &[("A", &[])]);
    for _ in 0..5 {
        run.crash();
    }
    assert_eq!((run.state.status, open(&run).len()), (RunStatus::Waiting, 1));
}

#[test]
fn a_no_does_not_lapse_and_neither_does_what_is_not_in_force() {
    let mut run = script();
    run.asks_plans = true;
    run.plan(Maker::Deterministic, &[("A", &[])]);
    let lapsed = |approval, matter| Event::ApprovalLapsed {
        approval,
        matter,
        why: Vec::new(),
        needed: words::needed("another"),
        edited: None,
    };
    run.modify("two days");
    run.plan(Maker::Deterministic, &[("B", &[])]);
    assert!(run.state.check(&lapsed(1, Matter::Plan { version: 1 })).is_err());
    assert_eq!(run.state.check(&lapsed(2, Matter::Plan { version: 2 })), Ok(()));
    run.tell(Event::Decided {
        approval: 2,
        matter: Matter::Plan { version: 2 },
        decision: Decision::No,
        by: "fenster".to_owned(),
        note: None,
        word: None,
    });
    assert!(run.state.check(&lapsed(2, Matter::Plan { version: 2 })).is_err());
    run.settle();
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Cancelled, PlanStatus::Cancelled));
}

#[test]
fn a_plan_that_is_only_wanted_stays_a_draft() {
    let mut run = Script::of(queued(true), Settings::default());
    run.plan(Maker::Deterministic, &[("A", &[])]);
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Completed, PlanStatus::Draft));
}

#[test]
fn a_plan_that_was_told_to_begin_goes_on_though_a_yes_to_one_of_its_writes_lapses() {
    let mut run = script();
    (run.asks_plans, run.asks_calls) = (true, true);
    run.plan(Maker::Deterministic, &[("A", &[])]);
    run.decide(1, Decision::Yes { hold: true }, "hockney");
    run.tell(Event::Released { by: "hockney".to_owned() });
    run.settle();
    run.calls(1, &[BOOK]);
    let (matter, needed) = (Matter::Call { call: 1 }, words::needed("another"));
    run.tell(Event::ApprovalLapsed { approval: 2, matter, why: Vec::new(), needed, edited: None });
    run.settle();
    assert!(!run.state.is_held());
    assert_eq!((run.state.status, open(&run)), (RunStatus::Waiting, vec![matter]));
    run.decide(3, YES, "hockney");
    assert_eq!(run.begun().len(), 1);
}

#[test]
fn a_write_tried_again_waits_for_what_its_round_has_under_way() {
    let mut run = script();
    run.plan(Maker::Deterministic, &[("A", &[])]);
    run.calls(1, &[BOOK, LOOK, PAY]);
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
fn a_run_that_nobody_can_carry_on_puts_the_writes_that_are_under_way_to_people_with_its_end() {
    let lost = || Fault::new("run.too_many_events", "it goes in circles");
    let matters = |events: &[Event]| -> Vec<Matter> {
        let put = |event: &Event| match event {
            Event::ApprovalRequired { matter, .. } => Some(*matter),
            _ => None,
        };
        events.iter().filter_map(put).collect()
    };
    let mut run = script();
    run.plan(Maker::Deterministic, &[("A", &[]), ("B", &[]), ("C", &[])]);
    run.calls(1, &[BOOK]);
    run.calls(2, &[LOOK]);
    run.calls(3, &[PAY]);
    // It is to be tried again with its key, and never will be.
    run.tell(Event::ToolCompleted { call: 3, outcome: unknown(), millis: 1 });
    let end = run.state.forced_end(lost());
    assert_eq!(matters(&end), [Matter::Outcome { call: 1 }, Matter::Outcome { call: 3 }]);
    assert_eq!(end.last(), Some(&Event::RunFailed { error: lost() }));
    end.into_iter().for_each(|event| run.tell(event));
    assert_eq!((run.state.status, run.state.next()), (RunStatus::Failed, Vec::<Action>::new()));
    assert_eq!(open(&run), [Matter::Outcome { call: 1 }, Matter::Outcome { call: 3 }]);
    run.decide(1, Decision::Done, "hockney");
    run.decide(2, Decision::NotDone, "hockney");
    assert!(matches!(run.state.outcome(1), Some(Outcome::Ok { .. })));
    assert!(matches!(run.state.outcome(3), Some(Outcome::Refused { .. })));

    // What is known, or put already, is not put with the end.
    let mut run = script();
    run.plan(Maker::Deterministic, &[("A", &[]), ("B", &[])]);
    run.calls(1, &[BOOK]);
    run.outcome(1, unknown());
    run.calls(2, &[OTHER]);
    run.done(2, json!({}));
    assert_eq!(open(&run), [Matter::Outcome { call: 1 }]);
    assert_eq!(run.state.forced_end(lost()), [Event::RunFailed { error: lost() }]);
}
