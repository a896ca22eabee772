//! Commands that fit, commands that do not, and with which code each is refused.

use serde_json::json;

use super::super::{Choice, Command, Wish, command};
use super::approvals::{apply, catalogue, in_force, plan, planning, policy, request, settle};
use crate::plan::Plan;
use crate::run::{
    ApprovalPolicy, AskFor, Cause, Decision, Effect, Event, Fault, Matter, Outcome, Repeat, RequestedCall,
    RunState, RunStatus, Settings, Subject, call_key,
};
use crate::scene::{Catalogue, ToolApproval};

fn scenes() -> Catalogue {
    catalogue(ToolApproval::Required, None, "Books.")
}

fn waits() -> RunState {
    in_force(Settings::default(), &scenes(), plan("book it", &["look", "book"]))
}

fn by(who: &str, wish: Wish) -> Command {
    Command { by: who.to_owned(), note: None, wish, no_own_approval: false, keyed: false }
}

fn approve(hold: bool) -> Wish {
    Wish::Approve { version: None, hash: None, hold }
}

fn say(approval: u32, choice: Choice) -> Wish {
    Wish::Decide { approval, choice, hash: None }
}

fn edit(plan: Plan) -> Wish {
    Wish::Edit { plan, version: None }
}

fn modify(words: &str) -> Wish {
    Wish::Modify { words: words.to_owned(), version: None }
}

/// The code that a wish is refused with.
fn code(state: &RunState, wish: Wish) -> String {
    match command(state, &scenes(), &by("hockney", wish.clone())) {
        Ok(events) => panic!("{wish:?} was carried out: {events:?}"),
        Err(refused) => {
            assert!(!refused.fault.message.is_empty());
            refused.fault.code
        }
    }
}

/// Has a wish carried out.
fn carry_out(state: &mut RunState, wish: Wish) {
    for event in command(state, &scenes(), &by("hockney", wish)).unwrap() {
        apply(state, event);
    }
    settle(state);
}

/// A run that waits for a yes to a write.
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
        call: 1,
        provider_id: String::new(),
        tool: "book".to_owned(),
        key: call_key("A", "book", &arguments, &tool.identity),
        approval: super::super::approval::call_needs(
            &state,
            &state.steps[&1].step,
            &tool,
            &arguments,
            0,
            false,
        ),
        arguments,
        effect: Effect::Write,
        repeat: Repeat::Never,
        problem: None,
        undo: None,
        confirm: None,
        occurrence: 0,
        volatile: false,
    };
    let (text, calls) = (String::new(), vec![requested]);
    apply(&mut state, Event::SceneReplied { step: 1, call: 1, text, calls, question: None, next: None });
    settle(&mut state);
    assert_eq!(state.status, RunStatus::Waiting);
    state
}

/// A run whose write nobody knows the outcome of; `ends` in that its plan's time is over.
fn unknown(ends: bool) -> RunState {
    let mut state = asks_about_a_call();
    carry_out(&mut state, say(2, Choice::Yes));
    apply(&mut state, Event::ToolStarted { call: 1, attempt: 1 });
    let outcome = Outcome::Unknown { error: Fault::new("tool.timeout", "no reply") };
    apply(&mut state, Event::ToolCompleted { call: 1, outcome, millis: 0 });
    settle(&mut state);
    if ends {
        apply(&mut state, Event::CancelRequested { by: "deadline".to_owned(), deadline: true, note: None });
        settle(&mut state);
        assert_eq!(state.status, RunStatus::Partial);
    }
    state
}

#[test]
fn what_does_not_fit_a_plan_that_waits_is_refused_with_its_code() {
    let state = waits();
    let seen =
        |version, hash: Option<&str>| Wish::Approve { version, hash: hash.map(str::to_owned), hold: false };
    for (wish, expected) in [
        (seen(Some(2), None), "approval.changed"),
        (seen(Some(1), Some("c0ffee")), "approval.changed"),
        (say(2, Choice::Yes), "approval.unknown"),
        (say(1, Choice::Edited(json!({}))), "approval.choice"),
        (say(1, Choice::Again), "approval.choice"),
        (
            Wish::Decide { approval: 1, choice: Choice::Yes, hash: Some("c0ffee".to_owned()) },
            "approval.changed",
        ),
        (modify("  "), "plan.no_feedback"),
        (modify(&"x".repeat(8_001)), "plan.no_feedback"),
        (Wish::Modify { words: "two days".to_owned(), version: Some(7) }, "approval.changed"),
        (edit(plan("book it", &["look", "book"])), "plan.unchanged"),
        (edit(plan("book it", &["fly"])), "plan.invalid"),
        (edit(Plan { steps: Vec::new(), ..plan("", &[]) }), "plan.invalid"),
        (Wish::Reopen, "run.not_resumable"),
        (Wish::Expire { approval: 9 }, "approval.decided"),
    ] {
        assert_eq!(code(&state, wish.clone()), expected, "{wish:?}");
    }
    let note = Some("x".repeat(8_001));
    let refused = command(&state, &scenes(), &Command { note, ..by("hockney", approve(false)) });
    assert_eq!(refused.unwrap_err().fault.code, "approval.note_too_long");
    let right = state.approvals[&1].needed.hash.clone();
    assert!(command(&state, &scenes(), &by("hockney", seen(Some(1), Some(&right)))).is_ok());
}

#[test]
fn of_decisions_that_exclude_each_other_the_first_counts() {
    let mut state = waits();
    carry_out(&mut state, approve(true));
    assert_eq!(code(&state, approve(true)), "approval.decided");
    assert_eq!(code(&state, say(1, Choice::No)), "approval.decided");
    assert_eq!(code(&state, Wish::Expire { approval: 1 }), "approval.decided");
    // Said again without `hold`, it begins.
    let released = command(&state, &scenes(), &by("hockney", approve(false))).unwrap();
    assert_eq!(released, [Event::Released { by: "hockney".to_owned() }]);
    carry_out(&mut state, approve(false));
    for wish in [approve(false), modify("two days"), edit(plan("look", &["look"]))] {
        assert_eq!(code(&state, wish), "plan.illegal_transition");
    }
    let mut state = waits();
    carry_out(&mut state, say(1, Choice::No));
    assert_eq!(state.status, RunStatus::Cancelled);
    assert_eq!(code(&state, approve(false)), "plan.illegal_transition");
    assert_eq!(code(&state, say(1, Choice::Yes)), "approval.decided");
    assert_eq!(code(&state, Wish::Cancel), "run.ended");
    assert_eq!(code(&state, Wish::Reopen), "run.not_resumable");
}

#[test]
fn while_a_plan_is_changed_it_cannot_be_approved_or_changed_and_what_was_seen_before_is_told_apart() {
    let mut state = waits();
    carry_out(&mut state, edit(plan("book two days", &["look", "book"])));
    assert_eq!(code(&state, say(1, Choice::Yes)), "approval.lapsed");
    let old = Wish::Approve { version: Some(1), hash: None, hold: false };
    let refused = command(&state, &scenes(), &by("hockney", old)).unwrap_err();
    assert_eq!(refused.difference, [r#"~ step 1 A: purpose "book it" -> "book two days""#]);
    carry_out(&mut state, modify("three days"));
    assert_eq!(code(&state, approve(false)), "plan.not_made");
    assert_eq!(code(&state, modify("four days")), "plan.not_changeable");
    assert_eq!(code(&state, edit(plan("look", &["look"]))), "plan.not_changeable");
}

#[test]
fn nothing_is_decided_in_a_run_that_is_being_cancelled_or_was_not_planned() {
    let mut state = waits();
    apply(&mut state, Event::CancelRequested { by: "keysersoze".to_owned(), deadline: false, note: None });
    for wish in [approve(false), say(1, Choice::Yes), say(1, Choice::No), Wish::Expire { approval: 1 }] {
        assert_eq!(code(&state, wish), "run.not_now");
    }
    let early = planning(request(), Settings::default());
    assert_eq!(code(&early, approve(false)), "plan.not_made");
    assert_eq!(code(&early, modify("two days")), "plan.not_changeable");
}

#[test]
fn whoever_asked_for_something_approves_it_only_where_that_is_allowed() {
    let approval = ApprovalPolicy { by_oneself: false, ..ApprovalPolicy::default() };
    let settings = Settings { approval, ..Settings::default() };
    let state = in_force(settings, &scenes(), plan("book it", &["book"]));
    for wish in [approve(false), say(1, Choice::Yes)] {
        let own = command(&state, &scenes(), &by("keysersoze", wish.clone())).unwrap_err();
        assert_eq!(own.fault.code, "approval.own_request");
        assert!(command(&state, &scenes(), &by("hockney", wish)).is_ok());
    }
    assert!(command(&waits(), &scenes(), &by("keysersoze", approve(false))).is_ok());
    // What they asked for they may take back.
    for wish in [say(1, Choice::No), Wish::Cancel] {
        assert!(command(&state, &scenes(), &by("keysersoze", wish)).is_ok());
    }
}

#[test]
fn of_several_versions_only_the_one_that_was_seen_is_approved() {
    let mut state = waits();
    assert!(command(&state, &scenes(), &by("fenster", approve(false))).is_ok(), "there is one only");
    carry_out(&mut state, edit(plan("book two", &["book"])));
    let hash = state.plan_approval().unwrap().1.needed.hash.clone();
    for hold in [false, true] {
        let refused = command(&state, &scenes(), &by("fenster", approve(hold))).unwrap_err();
        assert_eq!(refused.fault.code, "plan.version_required");
        assert!(refused.fault.message.contains("version 2") && refused.fault.message.contains(&hash));
        for (version, hash) in [(Some(2), None), (None, Some(hash.clone()))] {
            let seen = Wish::Approve { version, hash, hold };
            assert!(command(&state, &scenes(), &by("fenster", seen)).is_ok());
        }
    }
    // A yes that held it back was to a version, too; the next one begins one.
    carry_out(&mut state, Wish::Approve { version: Some(2), hash: None, hold: true });
    let begins = command(&state, &scenes(), &by("fenster", approve(false))).unwrap_err();
    assert_eq!(begins.fault.code, "plan.version_required");
}

#[test]
fn whoever_changes_a_plan_or_a_call_does_not_approve_the_change_where_that_is_barred() {
    let approval = ApprovalPolicy { by_oneself: false, ..ApprovalPolicy::default() };
    let settings = Settings { approval, ..Settings::default() };
    let mut state = in_force(settings, &scenes(), plan("book it", &["book"]));
    carry_out(&mut state, edit(plan("book two", &["book"])));
    let barred = |who: &str, wish: Wish| Command { no_own_approval: true, ..by(who, wish) };
    let open = state.approvals.iter().find(|(_, put)| put.is_open()).map(|(number, _)| *number).unwrap();
    let second = Wish::Approve { version: Some(2), hash: None, hold: false };
    for wish in [second, say(open, Choice::Yes)] {
        for own in ["keysersoze", "hockney"] {
            assert_eq!(
                command(&state, &scenes(), &by(own, wish.clone())).unwrap_err().fault.code,
                "approval.own_request"
            );
        }
        assert!(command(&state, &scenes(), &by("fenster", wish.clone())).is_ok());
        assert!(command(&state, &scenes(), &barred("fenster", wish)).is_ok());
    }
    assert!(command(&state, &scenes(), &by("hockney", say(open, Choice::No))).is_ok());
    // Other arguments are a wish of one's own.
    let call = asks_about_a_call();
    let edited = say(2, Choice::Edited(json!({"n": 2})));
    let own = command(&call, &scenes(), &barred("fenster", edited.clone())).unwrap_err();
    assert_eq!(own.fault.code, "approval.own_request");
    assert!(command(&call, &scenes(), &barred("fenster", say(2, Choice::Yes))).is_ok());
    assert!(command(&call, &scenes(), &by("fenster", edited)).is_ok());
}

#[test]
fn whoever_speaks_with_a_key_that_may_not_approves_nothing_of_their_own() {
    let barred = |who: &str, wish: Wish| Command { no_own_approval: true, ..by(who, wish) };
    let state = waits();
    for wish in [approve(false), approve(true), say(1, Choice::Yes)] {
        let own = command(&state, &scenes(), &barred("keysersoze", wish.clone())).unwrap_err();
        assert_eq!(own.fault.code, "approval.own_request");
        assert!(command(&state, &scenes(), &barred("hockney", wish)).is_ok());
    }
    for wish in [say(1, Choice::No), Wish::Cancel, modify("two days"), edit(plan("look", &["look"]))] {
        assert!(command(&state, &scenes(), &barred("keysersoze", wish)).is_ok());
    }
    let call = asks_about_a_call();
    for choice in [Choice::Yes, Choice::Edited(json!({"n": 2}))] {
        let own = command(&call, &scenes(), &barred("keysersoze", say(2, choice))).unwrap_err();
        assert_eq!(own.fault.code, "approval.own_request");
    }
    let again = command(&unknown(true), &scenes(), &barred("keysersoze", say(3, Choice::Again))).unwrap_err();
    assert_eq!(again.fault.code, "approval.own_request", "the write would be done once more");
}

#[test]
fn tools_that_have_changed_are_told_and_recorded_before_anything_is_approved() {
    let state = waits();
    let other = catalogue(ToolApproval::Required, None, "Books at once.");
    let refused = command(&state, &other, &by("hockney", approve(false))).unwrap_err();
    assert_eq!(refused.fault.code, "approval.changed");
    assert_eq!(refused.difference, ["~ A.book has another definition now"]);
    let lapse = refused.record.unwrap().0;
    let mut state = state;
    apply(&mut state, lapse);
    settle(&mut state);
    // What is asked then is what there is now, and only who names its hash has seen it.
    let unseen = command(&state, &other, &by("hockney", approve(false))).unwrap_err();
    assert_eq!(unseen.fault.code, "approval.changed");
    let hash = state.plan_approval().map(|(_, put)| put.needed.hash.clone());
    let seen = Wish::Approve { version: Some(1), hash, hold: false };
    assert!(command(&state, &other, &by("hockney", seen)).is_ok());
    // A no needs no second look.
    assert!(command(&waits(), &other, &by("hockney", say(1, Choice::No))).is_ok());
}

#[test]
fn edited_arguments_are_held_to_the_tools_schema_and_make_the_calls_key() {
    let state = asks_about_a_call();
    assert_eq!(code(&state, say(2, Choice::Edited(json!({"n": "two"})))), "approval.arguments");
    assert_eq!(code(&state, say(2, Choice::Done)), "approval.choice");
    let edited = say(2, Choice::Edited(json!({"n": 2})));
    let events = command(&state, &scenes(), &by("hockney", edited)).unwrap();
    let [Event::Decided { approval: 2, matter, decision, .. }] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(*matter, Matter::Call { call: 1 });
    let key = call_key("A", "book", &json!({"n": 2}), &["n".to_owned()]);
    assert_eq!(*decision, Decision::Edited { arguments: json!({"n": 2}), key });
    let expired = command(&state, &scenes(), &by("expiry", Wish::Expire { approval: 2 })).unwrap();
    assert!(matches!(expired.as_slice(), [Event::Decided { decision: Decision::No, .. }]));
}

#[test]
fn what_became_of_a_write_can_be_said_whenever_somebody_knows() {
    for ended in [false, true] {
        let state = unknown(ended);
        let open = 3;
        assert_eq!(state.approvals[&open].matter, Matter::Outcome { call: 1 });
        assert_eq!(code(&state, say(open, Choice::Yes)), "approval.choice");
        assert_eq!(code(&state, Wish::Expire { approval: open }), "approval.decided");
        for (choice, decision) in [(Choice::Done, Decision::Done), (Choice::NotDone, Decision::NotDone)] {
            let events = command(&state, &scenes(), &by("hockney", say(open, choice))).unwrap();
            assert!(
                matches!(events.as_slice(), [Event::Decided { decision: said, .. }] if *said == decision)
            );
        }
        let events = command(&state, &scenes(), &by("hockney", say(open, Choice::Again))).unwrap();
        let names: Vec<&str> = events.iter().map(Event::name).collect();
        assert_eq!(names, if ended { vec!["run_reopened", "decided"] } else { vec!["decided"] });
        let mut state = state;
        for event in events {
            apply(&mut state, event);
        }
        assert_eq!(state.next(), [crate::run::Action::Call { call: 1, attempt: 2 }]);
        assert_eq!(code(&state, say(open, Choice::Done)), "approval.decided");
    }
}

#[test]
fn a_plan_of_the_rules_that_a_person_approved_may_write() {
    // Nobody is asked for single writes here: the yes to the plan is the yes to what it does.
    let catalogue = catalogue(ToolApproval::None, None, "Books.");
    let mut state = planning(request(), policy(AskFor::Writes, AskFor::Never));
    let made =
        crate::run::PlanMade::new(1, Cause::Request, crate::run::Maker::Fallback, plan("book it", &["book"]));
    let made = super::super::with_approval(&state, &catalogue, made);
    assert!(made.approval.is_some());
    let subject = Subject::Plan { version: 1 };
    super::replied(&mut state, subject, Default::default());
    apply(&mut state, Event::PlanCreated(made));
    settle(&mut state);
    carry_out_with(&mut state, &catalogue, approve(false));
    let call = super::replied(&mut state, Subject::Scene { step: 1 }, Default::default());
    let arguments = json!({"n": 1});
    let requested = RequestedCall {
        call: 1,
        provider_id: String::new(),
        tool: "book".to_owned(),
        key: call_key("A", "book", &arguments, &[]),
        arguments,
        effect: Effect::Write,
        repeat: Repeat::Never,
        problem: None,
        approval: None,
        undo: None,
        confirm: None,
        occurrence: 0,
        volatile: false,
    };
    let (text, calls) = (String::new(), vec![requested]);
    apply(&mut state, Event::SceneReplied { step: 1, call, text, calls, question: None, next: None });
    assert_eq!(state.next(), [crate::run::Action::Call { call: 1, attempt: 1 }]);
}

#[test]
fn a_write_whose_tool_is_another_than_the_plan_was_approved_with_is_asked_about() {
    let before = catalogue(ToolApproval::Plan, None, "Books.");
    let now = catalogue(ToolApproval::Plan, None, "Books at once.");
    let mut state = planning(request(), policy(AskFor::Declared, AskFor::Declared));
    let made = crate::run::PlanMade::new(
        1,
        Cause::Request,
        crate::run::Maker::Deterministic,
        plan("book it", &["book"]),
    );
    let made = super::super::with_approval(&state, &before, made);
    super::replied(&mut state, Subject::Plan { version: 1 }, Default::default());
    apply(&mut state, Event::PlanCreated(made));
    settle(&mut state);
    carry_out_with(&mut state, &before, approve(false));
    let needs = |scenes: &Catalogue| {
        let tool = scenes.get("A").unwrap().tool("book").unwrap();
        super::super::call_needs(&state, &state.steps[&1].step, tool, &json!({"n": 1}), 0, false)
    };
    assert_eq!(needs(&before), None);
    let why = needs(&now).unwrap().why;
    assert!(why[1].contains("another definition"), "{why:?}");
}

fn carry_out_with(state: &mut RunState, catalogue: &Catalogue, wish: Wish) {
    for event in command(state, catalogue, &by("hockney", wish)).unwrap() {
        apply(state, event);
    }
    settle(state);
}
