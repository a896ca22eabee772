//! Legal commands, illegal commands, and the code of each refusal.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::super::{ApproverChoice, Command, CommandAction, events_for_command};
use super::approvals::{apply, catalogue, in_force, plan, planning, policy, request, settle};
use crate::plan::Plan;
use crate::run::{
    ApprovalPolicy, ApprovalScope, ApprovalSubject, Decision, EXPIRY, Effect, Event, Fault, Outcome,
    PlanCause, RequestedCall, RunState, RunStatus, Settings, Subject, call_key,
};
use crate::scene::{Catalogue, ToolApproval};

fn scenes() -> Catalogue {
    catalogue(ToolApproval::Required, None, "Books.")
}

fn waits() -> RunState {
    in_force(Settings::default(), &scenes(), plan("book it", &["look", "book"]))
}

fn approve(hold: bool) -> CommandAction {
    CommandAction::Approve { version: None, hash: None, hold }
}

fn say(approval: u32, choice: ApproverChoice) -> CommandAction {
    CommandAction::Decide { approval, choice, hash: None }
}

fn edit(plan: Plan) -> CommandAction {
    CommandAction::Edit { plan, version: None }
}

fn modify(words: &str) -> CommandAction {
    CommandAction::Modify { words: words.to_owned(), version: None }
}

fn code(state: &RunState, wish: CommandAction) -> String {
    match events_for_command(state, &scenes(), &Command::new("hockney", wish.clone())) {
        Ok(events) => panic!("{wish:?} was carried out: {events:?}"),
        Err(refused) => {
            assert!(!refused.fault.message.is_empty());
            refused.fault.code
        }
    }
}

fn carry_out(state: &mut RunState, wish: CommandAction) {
    for event in events_for_command(state, &scenes(), &Command::new("hockney", wish)).unwrap() {
        apply(state, event);
    }
    settle(state);
}

/// A run that waits for approval of a write.
fn asks_about_a_call() -> RunState {
    let mut state = waits();
    carry_out(&mut state, approve(false));
    let subject = Subject::Scene { step: 1 };
    apply(
        &mut state,
        Event::ModelAsked {
            call: 1,
            subject,
            attempt: 0,
            fallback: false,
            prompt_hash: String::new(),
            reserved: None,
        },
    );
    let (reply, usage) = (Default::default(), Default::default());
    apply(&mut state, Event::ModelReplied { call: 1, reply, usage, millis: 0, attempts: vec![] });
    let arguments = json!({"n": 1});
    let tool = scenes().get("A").unwrap().tool("book").unwrap().clone();
    let requested = RequestedCall {
        approval: super::super::approval::required_call_approval(
            &state, &state.steps[&1].step, &tool, &arguments, 0, false,
        ),
        ..RequestedCall::new(
            1,
            "book",
            call_key("A", "book", &arguments, &tool.identity),
            arguments,
            Effect::Write,
        )
    };
    let (text, calls) = (String::new(), vec![requested]);
    apply(&mut state, Event::SceneReplied { step: 1, call: 1, text, calls, question: None, next: None });
    settle(&mut state);
    assert_eq!(state.status, RunStatus::Waiting);
    state
}

/// A run with a write of unknown outcome; if `ends`, its deadline has passed.
fn unknown(ends: bool) -> RunState {
    let mut state = asks_about_a_call();
    carry_out(&mut state, say(2, ApproverChoice::Yes));
    apply(&mut state, Event::ToolStarted { call: 1, attempt: 1 });
    let outcome = Outcome::Unknown { error: Fault::new("tool.timeout", "no reply") };
    apply(&mut state, Event::ToolCompleted { call: 1, outcome, millis: 0, notes: None });
    settle(&mut state);
    if ends {
        apply(&mut state, Event::CancelRequested { by: "deadline".to_owned(), deadline: true, note: None });
        settle(&mut state);
        assert_eq!(state.status, RunStatus::Partial);
    }
    state
}

#[test]
fn quarantined_run_waits_as_before_after_a_decision_about_it() {
    for copied in [None, Some("2026-05-04T03:00:00Z".parse().unwrap())] {
        let mut state = unknown(false);
        let error = Fault::new("run.put_aside", "waits");
        let open = *state.approvals.iter().find(|(_, put)| put.is_open()).unwrap().0;
        // Quarantined where it continued after a crash.
        state.status = RunStatus::Running;
        apply(&mut state, Event::RunPutAside { error: error.clone(), copied });
        let events = events_for_command(
            &state,
            &scenes(),
            &Command::new("hockney", say(open, ApproverChoice::NotDone)),
        )
        .unwrap();
        let again = Event::RunPutAside { error, copied };
        assert!(matches!(&events[..], [Event::Decided { .. }, last] if *last == again), "{events:?}");
        let released =
            events_for_command(&state, &scenes(), &Command::new("hockney", CommandAction::Reopen)).unwrap();
        assert!(matches!(&released[..], [Event::Released { .. }]), "{released:?}");
    }
}

#[test]
fn invalid_commands_on_a_waiting_plan_are_refused_with_their_codes() {
    let state = waits();
    let seen = |version, hash: Option<&str>| CommandAction::Approve {
        version,
        hash: hash.map(str::to_owned),
        hold: false,
    };
    for (wish, expected) in [
        (seen(Some(2), None), "approval.changed"),
        (seen(Some(1), Some("c0ffee")), "approval.changed"),
        (say(2, ApproverChoice::Yes), "approval.unknown"),
        (say(1, ApproverChoice::Edited(json!({}))), "approval.choice"),
        (say(1, ApproverChoice::Again), "approval.choice"),
        (
            CommandAction::Decide {
                approval: 1,
                choice: ApproverChoice::Yes,
                hash: Some("c0ffee".to_owned()),
            },
            "approval.changed",
        ),
        (modify("  "), "plan.no_feedback"),
        (modify(&"x".repeat(8_001)), "plan.no_feedback"),
        (CommandAction::Modify { words: "two days".to_owned(), version: Some(7) }, "approval.changed"),
        (edit(plan("book it", &["look", "book"])), "plan.unchanged"),
        (edit(plan("book it", &["fly"])), "plan.invalid"),
        (edit(Plan { steps: Vec::new(), ..plan("", &[]) }), "plan.invalid"),
        (CommandAction::Reopen, "run.not_resumable"),
        (CommandAction::Expire { approval: 9 }, "approval.decided"),
    ] {
        assert_eq!(code(&state, wish.clone()), expected, "{wish:?}");
    }
    let note = Some("x".repeat(8_001));
    let refused =
        events_for_command(&state, &scenes(), &Command { note, ..Command::new("hockney", approve(false)) });
    assert_eq!(refused.unwrap_err().fault.code, "approval.note_too_long");
    let right = state.approvals[&1].needed.hash.clone();
    assert!(
        events_for_command(&state, &scenes(), &Command::new("hockney", seen(Some(1), Some(&right)))).is_ok()
    );
}

#[test]
fn first_of_two_conflicting_decisions_counts() {
    let mut state = waits();
    carry_out(&mut state, approve(true));
    assert_eq!(code(&state, approve(true)), "approval.decided");
    assert_eq!(code(&state, say(1, ApproverChoice::No)), "approval.decided");
    assert_eq!(code(&state, CommandAction::Expire { approval: 1 }), "approval.decided");
    // Repeated without `hold`, it begins.
    let released = events_for_command(&state, &scenes(), &Command::new("hockney", approve(false))).unwrap();
    assert_eq!(released, [Event::Released { by: "hockney".to_owned() }]);
    carry_out(&mut state, approve(false));
    for wish in [approve(false), modify("two days"), edit(plan("look", &["look"]))] {
        assert_eq!(code(&state, wish), "plan.illegal_transition");
    }
    let mut state = waits();
    carry_out(&mut state, say(1, ApproverChoice::No));
    assert_eq!(state.status, RunStatus::Cancelled);
    assert_eq!(code(&state, approve(false)), "plan.illegal_transition");
    assert_eq!(code(&state, say(1, ApproverChoice::Yes)), "approval.decided");
    assert_eq!(code(&state, CommandAction::Cancel), "run.ended");
    let refused =
        events_for_command(&state, &scenes(), &Command::new("hockney", CommandAction::Reopen)).unwrap_err();
    assert_eq!(refused.fault.code, "run.not_resumable");
    let why = "this run is cancelled, and only a failed or partial run can be resumed";
    assert_eq!(refused.fault.message, why);
}

#[test]
fn plan_being_changed_cannot_be_approved_or_changed() {
    let mut state = waits();
    carry_out(&mut state, edit(plan("book two days", &["look", "book"])));
    assert_eq!(code(&state, say(1, ApproverChoice::Yes)), "approval.lapsed");
    let old = CommandAction::Approve { version: Some(1), hash: None, hold: false };
    let refused = events_for_command(&state, &scenes(), &Command::new("hockney", old)).unwrap_err();
    assert_eq!(*refused.difference, [r#"~ step 1 A: purpose "book it" -> "book two days""#]);
    carry_out(&mut state, modify("three days"));
    assert_eq!(code(&state, approve(false)), "plan.not_made");
    assert_eq!(code(&state, modify("four days")), "plan.not_changeable");
    assert_eq!(code(&state, edit(plan("look", &["look"]))), "plan.not_changeable");
}

#[test]
fn approval_is_overdue_once_its_time_has_passed_and_it_is_open() {
    let limit = Duration::from_secs(60);
    let mut state = waits();
    state.approvals.get_mut(&1).unwrap().requested = Timestamp::from_second(1_000).unwrap();
    let overdue = |state: &RunState, second: i64| {
        state.overdue_approvals(Timestamp::from_second(second).unwrap(), limit)
    };
    assert_eq!(overdue(&state, 1_060), [0_u32; 0]);
    assert_eq!(overdue(&state, 900), [0_u32; 0], "the clock went back");
    assert_eq!(overdue(&state, 1_061), [1]);
    let refused = events_for_command(&state, &scenes(), &Command::expire(1)).unwrap();
    assert!(matches!(&refused[..], [Event::Decided { decision: Decision::No, by, .. }] if by == EXPIRY));
    refused.iter().for_each(|event| apply(&mut state, event.clone()));
    assert_eq!(overdue(&state, 1_061), [0_u32; 0]);
    assert_eq!(code(&state, say(1, ApproverChoice::Yes)), "approval.decided");
    let put = Event::ApprovalRequired {
        approval: 1,
        matter: ApprovalSubject::Plan { version: 1 },
        needed: state.approvals[&1].needed.clone(),
    };
    let mut state = in_force(Settings::default(), &scenes(), plan("book it", &["look", "book"]));
    state.approvals.clear();
    let at = Timestamp::from_second(2_000).unwrap();
    state.apply_checked(&put, at);
    assert_eq!(state.approvals[&1].requested, at);
}

#[test]
fn no_decisions_in_cancelled_or_unplanned_runs() {
    let mut state = waits();
    apply(&mut state, Event::CancelRequested { by: "keysersoze".to_owned(), deadline: false, note: None });
    for wish in [
        approve(false),
        say(1, ApproverChoice::Yes),
        say(1, ApproverChoice::No),
        CommandAction::Expire { approval: 1 },
    ] {
        assert_eq!(code(&state, wish), "run.not_now");
    }
    let early = planning(request(), Settings::default());
    assert_eq!(code(&early, approve(false)), "plan.not_made");
    assert_eq!(code(&early, modify("two days")), "plan.not_changeable");
}

#[test]
fn requester_approves_own_request_only_where_allowed() {
    let approval = ApprovalPolicy { by_oneself: false, ..ApprovalPolicy::default() };
    let settings = Settings { approval, ..Settings::default() };
    let state = in_force(settings, &scenes(), plan("book it", &["book"]));
    for wish in [approve(false), say(1, ApproverChoice::Yes)] {
        let own =
            events_for_command(&state, &scenes(), &Command::new("keysersoze", wish.clone())).unwrap_err();
        assert_eq!(own.fault.code, "approval.own_request");
        assert!(events_for_command(&state, &scenes(), &Command::new("hockney", wish)).is_ok());
    }
    assert!(events_for_command(&waits(), &scenes(), &Command::new("keysersoze", approve(false))).is_ok());
    // Requesters may withdraw their own requests.
    for wish in [say(1, ApproverChoice::No), CommandAction::Cancel] {
        assert!(events_for_command(&state, &scenes(), &Command::new("keysersoze", wish)).is_ok());
    }
}

#[test]
fn only_the_version_that_was_seen_is_approved() {
    let mut state = waits();
    assert!(
        events_for_command(&state, &scenes(), &Command::new("fenster", approve(false))).is_ok(),
        "there is one only"
    );
    carry_out(&mut state, edit(plan("book two", &["book"])));
    let hash = state.plan_approval().unwrap().1.needed.hash.clone();
    for hold in [false, true] {
        let refused =
            events_for_command(&state, &scenes(), &Command::new("fenster", approve(hold))).unwrap_err();
        assert_eq!(refused.fault.code, "plan.version_required");
        assert!(refused.fault.message.contains("version 2") && refused.fault.message.contains(&hash));
        for (version, hash) in [(Some(2), None), (None, Some(hash.clone()))] {
            let seen = CommandAction::Approve { version, hash, hold };
            assert!(events_for_command(&state, &scenes(), &Command::new("fenster", seen)).is_ok());
        }
    }
    // A held approval was also of a version; the release must name it too.
    carry_out(&mut state, CommandAction::Approve { version: Some(2), hash: None, hold: true });
    let begins = events_for_command(&state, &scenes(), &Command::new("fenster", approve(false))).unwrap_err();
    assert_eq!(begins.fault.code, "plan.version_required");
}

#[test]
fn editor_cannot_approve_own_change_where_barred() {
    let approval = ApprovalPolicy { by_oneself: false, ..ApprovalPolicy::default() };
    let settings = Settings { approval, ..Settings::default() };
    let mut state = in_force(settings, &scenes(), plan("book it", &["book"]));
    carry_out(&mut state, edit(plan("book two", &["book"])));
    let barred =
        |who: &str, wish: CommandAction| Command { no_own_approval: true, ..Command::new(who, wish) };
    let open = state.approvals.iter().find(|(_, put)| put.is_open()).map(|(number, _)| *number).unwrap();
    let second = CommandAction::Approve { version: Some(2), hash: None, hold: false };
    for wish in [second, say(open, ApproverChoice::Yes)] {
        for own in ["keysersoze", "hockney"] {
            assert_eq!(
                events_for_command(&state, &scenes(), &Command::new(own, wish.clone()))
                    .unwrap_err()
                    .fault
                    .code,
                "approval.own_request"
            );
        }
        assert!(events_for_command(&state, &scenes(), &Command::new("fenster", wish.clone())).is_ok());
        assert!(events_for_command(&state, &scenes(), &barred("fenster", wish)).is_ok());
    }
    assert!(
        events_for_command(&state, &scenes(), &Command::new("hockney", say(open, ApproverChoice::No)))
            .is_ok()
    );
    // Editing arguments makes the editor a requester.
    let call = asks_about_a_call();
    let edited = say(2, ApproverChoice::Edited(json!({"n": 2})));
    let own = events_for_command(&call, &scenes(), &barred("fenster", edited.clone())).unwrap_err();
    assert_eq!(own.fault.code, "approval.own_request");
    assert!(events_for_command(&call, &scenes(), &barred("fenster", say(2, ApproverChoice::Yes))).is_ok());
    assert!(events_for_command(&call, &scenes(), &Command::new("fenster", edited)).is_ok());
}

#[test]
fn key_without_permission_cannot_approve_own_requests() {
    let barred =
        |who: &str, wish: CommandAction| Command { no_own_approval: true, ..Command::new(who, wish) };
    let state = waits();
    for wish in [approve(false), approve(true), say(1, ApproverChoice::Yes)] {
        let own = events_for_command(&state, &scenes(), &barred("keysersoze", wish.clone())).unwrap_err();
        assert_eq!(own.fault.code, "approval.own_request");
        assert!(events_for_command(&state, &scenes(), &barred("hockney", wish)).is_ok());
    }
    for wish in
        [say(1, ApproverChoice::No), CommandAction::Cancel, modify("two days"), edit(plan("look", &["look"]))]
    {
        assert!(events_for_command(&state, &scenes(), &barred("keysersoze", wish)).is_ok());
    }
    let call = asks_about_a_call();
    for choice in [ApproverChoice::Yes, ApproverChoice::Edited(json!({"n": 2}))] {
        let own = events_for_command(&call, &scenes(), &barred("keysersoze", say(2, choice))).unwrap_err();
        assert_eq!(own.fault.code, "approval.own_request");
    }
    let again =
        events_for_command(&unknown(true), &scenes(), &barred("keysersoze", say(3, ApproverChoice::Again)))
            .unwrap_err();
    assert_eq!(again.fault.code, "approval.own_request", "the write would be done once more");
}

#[test]
fn changed_tools_are_reported_and_recorded_before_approval() {
    let state = waits();
    let other = catalogue(ToolApproval::Required, None, "Books at once.");
    let refused = events_for_command(&state, &other, &Command::new("hockney", approve(false))).unwrap_err();
    assert_eq!(refused.fault.code, "approval.changed");
    assert_eq!(*refused.difference, ["~ A.book has another definition now"]);
    let lapse = refused.record.unwrap().0;
    let mut state = state;
    apply(&mut state, lapse);
    settle(&mut state);
    // The new approval covers the current definitions, and only its hash proves that they were seen.
    let unseen = events_for_command(&state, &other, &Command::new("hockney", approve(false))).unwrap_err();
    assert_eq!(unseen.fault.code, "approval.changed");
    let hash = state.plan_approval().map(|(_, put)| put.needed.hash.clone());
    let seen = CommandAction::Approve { version: Some(1), hash, hold: false };
    assert!(events_for_command(&state, &other, &Command::new("hockney", seen)).is_ok());
    // A refusal does not need the current hash.
    assert!(
        events_for_command(&waits(), &other, &Command::new("hockney", say(1, ApproverChoice::No))).is_ok()
    );
}

#[test]
fn edited_arguments_are_validated_and_change_the_call_key() {
    let state = asks_about_a_call();
    assert_eq!(code(&state, say(2, ApproverChoice::Edited(json!({"n": "two"})))), "approval.arguments");
    assert_eq!(code(&state, say(2, ApproverChoice::Done)), "approval.choice");
    let edited = say(2, ApproverChoice::Edited(json!({"n": 2})));
    let events = events_for_command(&state, &scenes(), &Command::new("hockney", edited)).unwrap();
    let [Event::Decided { approval: 2, matter, decision, .. }] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(*matter, ApprovalSubject::Call { call: 1 });
    let key = call_key("A", "book", &json!({"n": 2}), &["n".to_owned()]);
    assert_eq!(*decision, Decision::Edited { arguments: json!({"n": 2}), key });
    let expired =
        events_for_command(&state, &scenes(), &Command::new("expiry", CommandAction::Expire { approval: 2 }))
            .unwrap();
    assert!(matches!(expired.as_slice(), [Event::Decided { decision: Decision::No, .. }]));
}

#[test]
fn unknown_write_can_be_resolved_at_any_time() {
    for ended in [false, true] {
        let state = unknown(ended);
        let open = 3;
        assert_eq!(state.approvals[&open].matter, ApprovalSubject::Outcome { call: 1 });
        assert_eq!(code(&state, say(open, ApproverChoice::Yes)), "approval.choice");
        assert_eq!(code(&state, CommandAction::Expire { approval: open }), "approval.decided");
        for (choice, decision) in
            [(ApproverChoice::Done, Decision::Done), (ApproverChoice::NotDone, Decision::NotDone)]
        {
            let events =
                events_for_command(&state, &scenes(), &Command::new("hockney", say(open, choice))).unwrap();
            assert!(
                matches!(events.as_slice(), [Event::Decided { decision: said, .. }] if *said == decision)
            );
        }
        let events =
            events_for_command(&state, &scenes(), &Command::new("hockney", say(open, ApproverChoice::Again)))
                .unwrap();
        let names: Vec<&str> = events.iter().map(Event::name).collect();
        assert_eq!(names, if ended { vec!["run_reopened", "decided"] } else { vec!["decided"] });
        let mut state = state;
        for event in events {
            apply(&mut state, event);
        }
        assert_eq!(state.next(), [crate::run::Action::Call { call: 1, attempt: 2 }]);
        assert_eq!(code(&state, say(open, ApproverChoice::Done)), "approval.decided");
    }
}

#[test]
fn approved_fallback_plan_may_write() {
    // Single writes need no approval here: the plan's approval covers them.
    let catalogue = catalogue(ToolApproval::None, None, "Books.");
    let mut state = planning(request(), policy(ApprovalScope::Writes, ApprovalScope::Never));
    let made = crate::run::PlanMade::new(
        1,
        PlanCause::Request,
        crate::run::PlanMaker::Fallback,
        plan("book it", &["book"]),
    );
    let made = super::super::with_approval(&state, &catalogue, made);
    assert!(made.approval.is_some());
    let subject = Subject::Plan { version: 1 };
    super::replied(&mut state, subject, Default::default());
    apply(&mut state, Event::PlanCreated(made));
    settle(&mut state);
    carry_out_with(&mut state, &catalogue, approve(false));
    let call = super::replied(&mut state, Subject::Scene { step: 1 }, Default::default());
    let arguments = json!({"n": 1});
    let requested =
        RequestedCall::new(1, "book", call_key("A", "book", &arguments, &[]), arguments, Effect::Write);
    let (text, calls) = (String::new(), vec![requested]);
    apply(&mut state, Event::SceneReplied { step: 1, call, text, calls, question: None, next: None });
    assert_eq!(state.next(), [crate::run::Action::Call { call: 1, attempt: 1 }]);
}

#[test]
fn write_with_changed_tool_needs_its_own_approval() {
    let before = catalogue(ToolApproval::Plan, None, "Books.");
    let now = catalogue(ToolApproval::Plan, None, "Books at once.");
    let mut state = planning(request(), policy(ApprovalScope::Declared, ApprovalScope::Declared));
    let made = crate::run::PlanMade::new(
        1,
        PlanCause::Request,
        crate::run::PlanMaker::Deterministic,
        plan("book it", &["book"]),
    );
    let made = super::super::with_approval(&state, &before, made);
    super::replied(&mut state, Subject::Plan { version: 1 }, Default::default());
    apply(&mut state, Event::PlanCreated(made));
    settle(&mut state);
    carry_out_with(&mut state, &before, approve(false));
    let needs = |scenes: &Catalogue| {
        let tool = scenes.get("A").unwrap().tool("book").unwrap();
        super::super::required_call_approval(&state, &state.steps[&1].step, tool, &json!({"n": 1}), 0, false)
    };
    assert_eq!(needs(&before), None);
    let why = needs(&now).unwrap().why;
    assert!(why[1].contains("another definition"), "{why:?}");
}

fn carry_out_with(state: &mut RunState, catalogue: &Catalogue, wish: CommandAction) {
    for event in events_for_command(state, catalogue, &Command::new("hockney", wish)).unwrap() {
        apply(state, event);
    }
    settle(state);
}
