//! Calls of alternative tools: they take the place of failed calls, and both count as one act.

use serde_json::json;

use super::script::{BOOK, LOOK, PAY, Script, ScriptedCall, unavailable};
use crate::adapt::{AlternativeTool, ExecutionMode, FaultPolicy, PolicyAction, ToolPolicies};
use crate::plan::Reference;
use crate::run::{
    ApprovalPolicy, ApprovalScope, ApprovalSubject, CallStatus, Decision, Effect, Event, Fault, FaultClass,
    Outcome, PlanMaker, Repeat, RunStatus, Settings, TimerSubject, UNCONFIRMED,
};

const PEEK: ScriptedCall = ("peek", Effect::Read, Repeat::Never, 1);

fn settings() -> Settings {
    Settings { rules: 4, mode: Some(ExecutionMode::Adaptive), max_writes: 8, ..Settings::default() }
}

/// Policies that do `actions` after an outage; `by` is the alternative.
fn declared(by: &str, actions: &[PolicyAction]) -> Box<ToolPolicies> {
    let policy = FaultPolicy { actions: Some(actions.to_vec()), ..FaultPolicy::default() };
    let arguments = [("n".to_owned(), json!("/arguments/n"))].into();
    let alternative = AlternativeTool { tool: by.to_owned(), arguments, same_result: false };
    Box::new(ToolPolicies {
        by_class: [(FaultClass::Unavailable, policy)].into(),
        alternative: Some(alternative),
        ..ToolPolicies::default()
    })
}

/// A run with a step for each scene; each step requests its calls. Each tool's alternative is the other tool with the
/// same effect.
fn calling(settings: Settings, steps: &[(&str, &[ScriptedCall])], actions: &[PolicyAction]) -> Script {
    let mut run = Script::new(settings);
    let scenes: Vec<(&str, &[u32])> = steps.iter().map(|(scene, _)| (*scene, &[] as &[u32])).collect();
    run.plan(PlanMaker::Deterministic, &scenes);
    for (step, (_, calls)) in (1..).zip(steps) {
        run.reply_with_calls(step, calls);
    }
    for number in run.state.calls.keys().copied().collect::<Vec<_>>() {
        run.state.calls.change(number, |call| {
            let tools = [("look", "peek"), ("peek", "look"), ("book", "pay"), ("pay", "book")];
            let by = tools.iter().find(|(name, _)| *name == call.requested.tool).unwrap().1;
            call.requested.policies = Some(declared(by, actions));
        });
    }
    run
}

fn unknown() -> Outcome {
    Outcome::Unknown { error: Fault::new("http.status", "503").classed(FaultClass::Unavailable) }
}

#[test]
fn alternative_answers_in_place_of_a_failed_read() {
    let mut run = calling(settings(), &[("A", &[LOOK])], &[PolicyAction::Alternative]);
    run.outcome(1, unavailable());
    assert_eq!(run.begun(), ["look {\"n\":1}", "peek {\"n\":1}"]);
    assert_eq!(run.state.outcome(1), None, "it is not known yet");
    run.done(2, json!("sunny"));
    let ok = |call| matches!(run.state.outcome(call), Some(Outcome::Ok { result, .. }) if *result == json!("sunny"));
    assert!(ok(1) && ok(2), "{:#?}", run.state.calls);
    assert_eq!(run.state.resolved(1), 2);
    assert_eq!(run.state.steps[&1].round_calls, [1], "the scene's model sees its own call answered");
}

#[test]
fn write_refers_to_another_tools_result_only_where_that_is_the_same() {
    for same in [false, true] {
        let mut run = calling(settings(), &[("A", &[LOOK])], &[PolicyAction::Alternative]);
        run.state.calls.change(1, |call| {
            let policies = call.requested.policies.as_mut().unwrap();
            policies.alternative.as_mut().unwrap().same_result = same;
        });
        run.outcome(1, unavailable());
        run.done(2, json!({"id": 7}));
        let id = Reference { step: 1, tool: "look".to_owned(), pointer: "/id".to_owned() };
        assert_eq!(run.state.referenced(&id, Effect::Read), Ok(json!(7)));
        assert_eq!(run.state.referenced(&id, Effect::Write).is_ok(), same);
        let by_name = Reference { tool: "peek".to_owned(), ..id };
        assert!(run.state.referenced(&by_name, Effect::Read).is_err(), "the plan did not call it");
    }
}

#[test]
fn alternative_that_fails_leaves_the_rest_of_the_list() {
    let list = [PolicyAction::Alternative, PolicyAction::Retry];
    let mut run = calling(settings(), &[("A", &[LOOK])], &list);
    run.outcome(1, unavailable());
    run.outcome(2, Outcome::Failed { error: Fault::new("tool.broken", "no") });
    let timer = run.state.next_timer().unwrap().timer;
    assert_eq!(timer, TimerSubject::Retry { call: 1, attempt: 2 });
    run.record(Event::TimerFired { timer });
    run.settle();
    run.outcome(1, unavailable());
    assert_eq!(run.state.calls.len(), 2, "the alternative is called once");
}

#[test]
fn alternative_that_writes_waits_for_its_own_yes() {
    // In scene B, nobody has to approve `pay`: the user confirms it.
    let mut run = calling(settings(), &[("B", &[BOOK])], &[PolicyAction::Alternative]);
    run.outcome(1, unavailable());
    assert_eq!(run.refusal(2), Some(UNCONFIRMED));
    let step = &run.state.steps[&1];
    let asked: Vec<&str> = run.state.unconfirmed(step).map(|call| call.requested.tool.as_str()).collect();
    assert_eq!(asked, ["pay"]);
    assert_eq!(run.begun(), ["book {\"n\":1}"]);
    let why = &run.state.calls[&2].requested.confirm.as_ref().unwrap().why;
    assert!(why.contains(&"it stands in for book, which failed".to_owned()), "{why:?}");
}

#[test]
fn alternative_needs_the_approver_of_the_first_call() {
    // In scene A, each call of `pay` is approved.
    let mut run = calling(settings(), &[("A", &[BOOK])], &[PolicyAction::Alternative]);
    run.outcome(1, unavailable());
    assert_eq!(run.state.approvals.len(), 1);
    assert!(run.state.approvals[&1].needed.why.iter().any(|why| why.contains("stands in for book")));
    run.decide(1, Decision::Yes { hold: false }, "lucia");
    assert_eq!(run.begun(), ["book {\"n\":1}", "pay {\"n\":1}"]);
    run.done(2, json!({"id": 7}));
    assert_eq!(run.state.writes_asked_for(), 1, "both are one act");
    // The same act again, by either tool.
    run.reply_with_calls(1, &[BOOK, PAY]);
    assert_eq!(run.state.calls[&3].status, CallStatus::Skipped { first: 1 });
    assert_eq!(run.state.calls[&4].status, CallStatus::Skipped { first: 2 });
    assert_eq!(run.begun().len(), 2);
}

#[test]
fn alternative_in_an_approved_plan_needs_an_approval_of_its_own() {
    let policy = |plans| ApprovalPolicy { plans, ..ApprovalPolicy::default() };
    for (asks_plans, approval) in [(true, ApprovalPolicy::default()), (false, policy(ApprovalScope::Writes))]
    {
        let mut run = Script::new(Settings { approval, ..settings() });
        run.asks_plans = asks_plans;
        run.plan(PlanMaker::Deterministic, &[("B", &[])]);
        if asks_plans {
            run.decide(1, Decision::Yes { hold: false }, "lucia");
        }
        run.reply_with_calls(1, &[BOOK]);
        run.state.calls.change(1, |call| {
            call.requested.policies = Some(declared("pay", &[PolicyAction::Alternative]));
        });
        run.outcome(1, unavailable());
        let last = run.state.approvals.values().next_back().unwrap();
        assert_eq!(last.matter, ApprovalSubject::Call { call: 2 });
        assert_eq!(run.begun().len(), 1);
    }
}

#[test]
fn write_that_may_be_done_has_no_alternative() {
    for call in [BOOK, PAY] {
        let mut run = calling(settings(), &[("A", &[call])], &[PolicyAction::Alternative]);
        run.outcome(1, unknown());
        assert_eq!(run.state.calls.len(), 1, "{call:?}");
    }
}

#[test]
fn alternative_that_may_be_done_counts_after_reopening() {
    let mut run = calling(settings(), &[("A", &[BOOK])], &[PolicyAction::Alternative]);
    run.outcome(1, unavailable());
    run.decide(1, Decision::Yes { hold: false }, "lucia");
    // The run ends while the alternative is in flight.
    for event in run.state.forced_end(Fault::new("run.unrecoverable", "no more")) {
        run.record(event);
    }
    assert_eq!(run.state.status, RunStatus::Failed);
    run.reopen();
    run.reply_with_calls(1, &[BOOK]);
    assert_eq!(run.state.calls[&3].status, CallStatus::Skipped { first: 1 });
    assert!(matches!(run.state.outcome(3), Some(Outcome::Unknown { .. })));
    assert_eq!(run.begun().len(), 2);
}

#[test]
fn alternative_that_equals_another_call_of_its_round_is_not_made_twice() {
    let mut run = calling(settings(), &[("A", &[LOOK, PEEK])], &[PolicyAction::Alternative]);
    run.outcome(1, unavailable());
    assert_eq!(run.state.calls[&3].status, CallStatus::Requested, "it waits for the equal call in flight");
    run.done(2, json!("sunny"));
    assert_eq!(run.state.calls[&3].status, CallStatus::Skipped { first: 2 });
    assert_eq!((run.state.resolved(1), run.begun().len()), (2, 2));
    // Two equal writes were requested, so one in place of another call is confirmed.
    let mut run = calling(settings(), &[("A", &[BOOK, PAY])], &[PolicyAction::Alternative]);
    run.outcome(1, unavailable());
    assert_eq!(run.refusal(3), Some(UNCONFIRMED));
    assert_eq!(run.begun(), ["book {\"n\":1}", "pay {\"n\":1}"], "the equal call of the round is made");
}

#[test]
fn alternatives_of_each_other_do_not_wait_for_each_other() {
    let steps: [(&str, &[ScriptedCall]); 2] = [("A", &[LOOK]), ("A", &[PEEK])];
    let mut run = calling(settings(), &steps, &[PolicyAction::Alternative]);
    run.outcome(1, unavailable());
    assert_eq!(run.state.calls[&3].status, CallStatus::Requested, "it waits for the equal call in flight");
    run.outcome(2, unavailable());
    run.outcome(4, Outcome::Failed { error: Fault::new("tool.broken", "no") });
    let done = |call: u32| matches!(run.state.calls[&call].status, CallStatus::Done { .. });
    assert!((1..=4).all(done), "{:#?}", run.state.calls);
    assert_eq!(run.begun().len(), 3);
}

#[test]
fn repetition_that_a_person_orders_keeps_open_alternatives() {
    let mut run = calling(settings(), &[("A", &[BOOK])], &[PolicyAction::Fail]);
    run.outcome(1, unknown());
    run.asks_calls = true;
    run.reply_with_calls(1, &[("pay", Effect::Write, Repeat::Never, 2)]);
    run.decide(2, Decision::Yes { hold: false }, "lucia");
    let mut policies = declared("unbook", &[PolicyAction::Alternative]);
    let by = policies.alternative.as_mut().unwrap();
    by.arguments = [("id".to_owned(), json!("/arguments/n"))].into();
    run.state.calls.change(2, |call| call.requested.policies = Some(policies));
    run.outcome(2, unavailable());
    assert_eq!((run.state.calls[&3].replaces, run.state.approvals.len()), (Some(2), 3));
    run.decide(1, Decision::Again, "lucia");
    run.done(1, json!({"id": 6}));
    run.decide(3, Decision::Yes { hold: false }, "lucia");
    assert_eq!(run.state.calls[&3].status, CallStatus::InFlight { attempt: 1 });
    run.done(3, json!(null));
    assert!(matches!(run.state.outcome(2), Some(Outcome::Ok { .. })));
}

#[test]
fn alternative_is_undone_in_the_place_of_the_call_and_may_then_be_done_again() {
    let compensates = Settings { compensate: true, ..settings() };
    let mut run = calling(compensates, &[("A", &[BOOK])], &[PolicyAction::Alternative]);
    run.outcome(1, unavailable());
    run.decide(1, Decision::Yes { hold: false }, "lucia");
    run.done(2, json!({"id": 7}));
    run.reply_with_calls(1, &[("look", Effect::Read, Repeat::Never, 5)]);
    run.cancel(true);
    let undo = run.state.calls.values().find(|call| call.undoes.is_some()).unwrap();
    assert_eq!((undo.undoes, &undo.requested.tool), (Some(2), &"unbook".to_owned()));
    run.done(4, json!(null));
    assert!(run.state.outcome(1).is_some(), "it has ended");
    run.reopen();
    run.reply_with_calls(1, &[BOOK]);
    let last = *run.state.calls.keys().next_back().unwrap();
    assert_eq!(
        run.state.calls[&last].status,
        CallStatus::InFlight { attempt: 1 },
        "what was undone may be done"
    );
}

#[test]
fn mode_strict_calls_no_other_tool() {
    let strict = Settings { mode: Some(ExecutionMode::Strict), ..settings() };
    let mut run = calling(strict, &[("A", &[LOOK])], &[PolicyAction::Alternative]);
    run.outcome(1, unavailable());
    assert_eq!(run.state.calls.len(), 1);
    assert!(matches!(run.state.outcome(1), Some(Outcome::Failed { .. })));
}
