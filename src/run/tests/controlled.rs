//! Named runs with decisions by people, each with a snapshot of its events and statuses.

use serde_json::json;

use super::script::{BOOK, LOOK, PAY, Script};
use super::sim::queued;
use crate::plan::{Plan, PlanStatus, Step, StepStatus};
use crate::run::{
    ApprovalSubject, Decision, Event, Fault, Outcome, PlanCause, PlanMade, PlanMaker, RULES_REVISION,
    RunStatus, Settings, Subject, Usage, call_key,
};

const YES: Decision = Decision::Yes { hold: false };

/// A run whose plan waits for approval.
fn waits() -> Script {
    let mut run = Script::new(Settings::default());
    run.asks_plans = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Waiting, PlanStatus::PendingApproval));
    run
}

fn books_and_ends(run: &mut Script, step: u32) {
    run.reply_with_calls(step, &[BOOK]);
    let call = run.state.next_call() - 1;
    run.done(call, json!({ "id": 7 }));
    run.reply_with_end(step, "Booked.", false);
    run.check(None, true, Some("It is booked."));
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Completed, PlanStatus::Completed));
}

#[test]
fn approved_plan_is_executed() {
    let mut run = waits();
    run.decide(1, YES, "hockney");
    books_and_ends(&mut run, 1);
    insta::assert_snapshot!(run.summary());
}

#[test]
fn refused_plan_ends_with_nothing_done() {
    let mut run = waits();
    run.decide(1, Decision::No, "fenster");
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Cancelled, PlanStatus::Cancelled));
    assert_eq!((run.begun().len(), run.state.steps[&1].status), (0, StepStatus::Cancelled));
    insta::assert_snapshot!(run.summary());
}

#[test]
fn plan_changed_by_feedback_is_approved_again_and_executed() {
    let mut run = waits();
    run.modify("two days only");
    assert_eq!(run.state.plan_status, PlanStatus::Draft);
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    let made = &run.state.plans[1];
    assert_eq!(
        (made.cause, made.by.as_deref(), made.why.as_deref()),
        (PlanCause::Feedback, Some("hockney"), Some("two days only"))
    );
    run.decide(2, YES, "hockney");
    books_and_ends(&mut run, 1);
    insta::assert_snapshot!(run.summary());
}

#[test]
fn failed_plan_change_leaves_the_plan_unchanged() {
    let mut run = Script::new(Settings { fallback_enabled: false, ..Settings::default() });
    run.asks_plans = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.modify("go to the moon");
    let call = run.question(Subject::Plan { version: 2 });
    let error = Fault::new("llm.unreachable", "nobody is there");
    run.record(Event::ModelFailed { call, error, usage: Usage::default(), millis: 9, attempts: vec![] });
    run.settle();
    assert_eq!((run.state.status, run.state.plans.len()), (RunStatus::Waiting, 1));
    assert_eq!(run.state.unmodified.as_ref().unwrap().code, "llm.unreachable");
    run.decide(2, YES, "hockney");
    books_and_ends(&mut run, 1);
    insta::assert_snapshot!(run.summary());
}

#[test]
fn held_edited_plan_begins_when_released() {
    let mut run = waits();
    let step = Step {
        step_number: 1,
        scene_name: "B".to_owned(),
        purpose: "something else".to_owned(),
        expected_tools: vec!["book".to_owned()],
        ..Step::default()
    };
    let plan = Plan { needs_execution: true, reasoning: String::new(), steps: vec![step], ..Plan::default() };
    let by = Some("hockney".to_owned());
    let approval = Some(super::generators::needed("plan 2"));
    let made = PlanMade::new(2, PlanCause::Edit, PlanMaker::Person, plan);
    run.record(Event::PlanEdited(PlanMade { by, approval, ..made }));
    run.settle();
    run.decide(2, Decision::Yes { hold: true }, "hockney");
    assert!(run.state.is_held() && run.state.status == RunStatus::Waiting);
    run.crash();
    assert_eq!(run.state.plan_status, PlanStatus::Approved);
    run.record(Event::Released { by: "hockney".to_owned() });
    run.settle();
    books_and_ends(&mut run, 1);
    insta::assert_snapshot!(run.summary());
}

#[test]
fn write_waits_for_edited_approval_while_another_step_continues() {
    let mut run = Script::new(Settings::default());
    run.asks_calls = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    assert_eq!(run.state.status, RunStatus::Running, "the other step goes on");
    run.reply_with_calls(2, &[LOOK]);
    run.done(2, json!("sunny"));
    run.reply_with_end(2, "Sunny.", false);
    assert_eq!(run.state.status, RunStatus::Waiting);
    let arguments = json!({ "n": 3 });
    let key = call_key("A", "book", &arguments, &[]);
    run.decide(1, Decision::Edited { arguments, key }, "hockney");
    assert_eq!(run.begun(), [r#"book {"n":3}"#, r#"look {"n":1}"#]);
    run.done(1, json!({ "id": 7 }));
    run.reply_with_end(1, "Booked.", false);
    run.check(None, true, Some("Sunny, and booked."));
    insta::assert_snapshot!(run.summary());
}

#[test]
fn refusing_a_write_refuses_every_equal_write() {
    let mut run = Script::new(Settings::default());
    run.asks_calls = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("A", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.reply_with_calls(2, &[BOOK]);
    run.decide(1, Decision::No, "fenster");
    let refused = |call| match run.state.outcome(call) {
        Some(Outcome::Refused { error }) => error.code.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!([refused(1), refused(2)], ["approval.refused", "approval.refused"]);
    run.reply_with_end(1, "It was not approved.", false);
    run.reply_with_end(2, "It was not approved.", false);
    run.check(None, true, Some("Nothing was booked."));
    assert_eq!(run.state.status, RunStatus::Partial);
    assert_eq!((run.begun().len(), run.state.approvals.len()), (0, 1));
    insta::assert_snapshot!(run.summary());
}

#[test]
fn write_with_unknown_outcome_is_retried_after_the_end() {
    let mut run = Script::new(Settings::default());
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.outcome(1, Outcome::Unknown { error: Fault::new("tool.timeout", "no reply") });
    run.reply_with_end(1, "Nobody knows.", false);
    run.check(None, true, Some("Nobody knows whether it was booked."));
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Partial, PlanStatus::Failed));
    assert!(
        run.state.approvals[&1].is_open()
            && run.state.approvals[&1].matter == ApprovalSubject::Outcome { call: 1 }
    );
    run.record(Event::RunReopened { by: "hockney".to_owned() });
    run.decide(1, Decision::Again, "hockney");
    run.done(1, json!({ "id": 7 }));
    run.reply_with_end(1, "Booked.", false);
    run.check(None, true, Some("It is booked."));
    assert_eq!((run.state.status, run.begun().len()), (RunStatus::Completed, 1));
    assert_eq!(run.state.calls[&1].attempts, 2);
    insta::assert_snapshot!(run.summary());
}

#[test]
fn cancelled_run_undoes_its_writes_in_reverse_order() {
    let mut run = Script::new(Settings { compensate: true, ..Settings::default() });
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[1])]);
    run.reply_with_calls(1, &[BOOK, PAY]);
    run.done(1, json!({ "id": 7 }));
    run.done(2, json!({ "id": 8 }));
    run.reply_with_end(1, "Booked and paid.", false);
    run.reply_with_calls(2, &[BOOK]);
    run.cancel(false);
    assert_eq!(run.begun().len(), 3, "a write under way is awaited");
    run.done(3, json!({ "id": 9 }));
    run.done(4, json!({}));
    run.crash();
    // The process crashed while undoing the payment: the outcome is unknown.
    run.done(6, json!({}));
    let begun = run.begun();
    assert_eq!(begun[3..], [r#"unbook {"id":9}"#, r#"unbook {"id":8}"#, r#"unbook {"id":7}"#]);
    assert_eq!(run.state.status, RunStatus::Cancelled);
    insta::assert_snapshot!(run.summary());
}

#[test]
fn answer_says_what_was_undone_and_which_steps_were_stopped() {
    for (rules, expected) in [
        (RULES_REVISION, "book: {\"id\":7}\nunbook: {\"gone\":7}\n«something»: Questo non è stato eseguito."),
        (11, "Booked.\n2. B: …"),
    ] {
        let mut run = Script::new(Settings { compensate: true, rules, ..Settings::default() });
        run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[1])]);
        run.reply_with_calls(1, &[BOOK]);
        run.done(1, json!({ "id": 7 }));
        run.reply_with_end(1, "Booked.", false);
        run.cancel(true);
        run.done(2, json!({ "gone": 7 }));
        assert_eq!(run.begun(), [r#"book {"n":1}"#, r#"unbook {"id":7}"#]);
        assert_eq!(run.state.answer.map(|answer| answer.text).as_deref(), Some(expected));
    }
}

#[test]
fn dry_run_reports_what_it_would_write() {
    let Event::RunQueued(request) = queued(false) else { panic!("no request") };
    let request = crate::run::RunQueued {
        options: crate::run::RequestOptions { dry_run: true, ..request.options },
        ..request
    };
    let mut run = Script::of(Event::RunQueued(request), Settings { compensate: true, ..Settings::default() });
    run.asks_calls = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[LOOK, BOOK]);
    run.done(1, json!("sunny"));
    run.reply_with_end(1, "It would be booked.", false);
    run.check(None, true, Some("It would be booked."));
    assert_eq!((run.begun(), run.state.status), (vec![r#"look {"n":1}"#.to_owned()], RunStatus::Completed));
    assert_eq!(run.state.approvals.len(), 0);
    insta::assert_snapshot!(run.summary());
}

#[test]
fn failed_run_resumes_from_the_failed_step() {
    let mut run = Script::new(Settings::default());
    run.asks_plans = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[1])]);
    run.decide(1, YES, "hockney");
    run.reply_with_calls(1, &[BOOK]);
    run.done(1, json!({ "id": 7 }));
    run.reply_with_end(1, "Booked.", false);
    run.reply_with_calls(2, &[PAY]);
    run.outcome(2, Outcome::Failed { error: Fault::new("tool.down", "nobody is there") });
    run.reply_with_end(2, "", false);
    run.check(None, true, Some("Booked, not paid."));
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Partial, PlanStatus::Failed));
    run.reopen();
    assert_eq!(run.state.plan_status, PlanStatus::Executing);
    run.reply_with_calls(2, &[BOOK, PAY]);
    run.done(3, json!({ "id": 8 }));
    run.done(4, json!({}));
    run.reply_with_end(2, "Paid.", false);
    run.check(None, true, Some("Booked and paid."));
    assert_eq!((run.state.status, run.state.plan_status), (RunStatus::Completed, PlanStatus::Completed));
    assert_eq!(run.state.approvals.len(), 1, "nobody is asked again");
    insta::assert_snapshot!(run.summary());
}
