//! Prepared calls of a plan: what its approval covers, how they are validated, and when they are requested.

use serde_json::{Value, json};

use super::super::approval::required_call_approval;
use super::super::unchanged::with_unchanged;
use super::super::{
    ApproverChoice, CREATE_PLAN, Command, CommandAction, events_for_command, lapsed_approval,
    plan_problems_before_start, read, request, supplied_plan,
};
use super::approvals::{apply, catalogue, in_force, plan, planning, policy, settle};
use super::replied;
use crate::llm::Message;
use crate::plan::{Plan, PreparedCall};
use crate::run::{
    Action, ApprovalScope, ApprovalSubject, Event, NO_APPROVAL, Outcome, PlanMade, RULES_REVISION, Reply,
    ReplyCall, RequestOptions, RequiredApproval, RunQueued, RunState, RunStatus, Settings, Subject,
};
use crate::scene::{Catalogue, ToolApproval};

fn prepared(arguments: &Value) -> PreparedCall {
    PreparedCall { tool: "book".to_owned(), arguments: arguments.as_object().unwrap().clone() }
}

fn booking(arguments: &[Value]) -> Plan {
    let mut plan = plan("book it", &["look", "book"]);
    plan.steps[0].prepared_calls = arguments.iter().map(prepared).collect();
    plan
}

/// A run whose plan was approved, so that its step is running.
fn approved(settings: Settings, scenes: &Catalogue, plan: Plan) -> RunState {
    let mut state = in_force(settings, scenes, plan);
    assert_eq!(state.status, RunStatus::Waiting);
    let wish = CommandAction::Approve { version: None, hash: None, hold: false };
    let events = events_for_command(&state, scenes, &Command::new("hockney", wish)).unwrap();
    events.into_iter().for_each(|event| apply(&mut state, event));
    settle(&mut state);
    state
}

#[test]
fn plan_approval_covers_only_the_writes_it_showed() {
    use ToolApproval::{None as Nothing, Plan as PlanOnly, Required};
    let shown = [json!({"n": 1.0}), json!({"n": 2})];
    for (declared, calls, by_rules) in [Nothing, PlanOnly, Required]
        .into_iter()
        .flat_map(|declared| {
            [ApprovalScope::Declared, ApprovalScope::Writes, ApprovalScope::Never]
                .map(|calls| (declared, calls))
        })
        .flat_map(|(declared, calls)| [false, true].map(|rules| (declared, calls, rules)))
    {
        let scenes = catalogue(declared, None, "Books.");
        let state = approved(policy(ApprovalScope::Writes, calls), &scenes, booking(&shown));
        let tool = scenes.get("A").unwrap().tool("book").unwrap();
        let needs = |n: Value| {
            required_call_approval(&state, &state.steps[&1].step, tool, &json!({"n": n}), 0, by_rules)
        };
        let what = format!("{declared:?} {calls:?} {by_rules}");
        assert_eq!(needs(json!(1)), None, "{what}: it was shown, whatever else asks");
        assert_eq!(needs(json!(2)), None, "{what}: so was the other");
        let asked = match calls {
            ApprovalScope::Never => false,
            ApprovalScope::Writes => true,
            ApprovalScope::Declared => declared != PlanOnly || by_rules,
        };
        let why = needs(json!(3)).map(|needed| needed.why[1].clone());
        let told = "the plan was approved without these arguments".to_owned();
        assert_eq!(why, asked.then_some(told), "{what}");
    }
}

#[test]
fn plan_approval_covers_a_write_only_while_its_tool_is_unchanged() {
    let scenes = catalogue(ToolApproval::Required, None, "Books.");
    let other = catalogue(ToolApproval::Required, None, "Books at once.");
    let state = approved(Settings::default(), &scenes, booking(&[json!({"n": 1})]));
    let needs = |scenes: &Catalogue| {
        let tool = scenes.get("A").unwrap().tool("book").unwrap();
        required_call_approval(&state, &state.steps[&1].step, tool, &json!({"n": 1}), 0, false)
    };
    assert_eq!(needs(&scenes), None);
    assert!(needs(&other).unwrap().why[1].contains("another definition"));
}

#[test]
fn plan_without_approval_covers_nothing() {
    let scenes = catalogue(ToolApproval::Call, None, "Books.");
    let state = in_force(Settings::default(), &scenes, booking(&[json!({"n": 1})]));
    let tool = scenes.get("A").unwrap().tool("book").unwrap();
    assert!(
        required_call_approval(&state, &state.steps[&1].step, tool, &json!({"n": 1}), 0, false).is_some()
    );
}

/// The codes with which a person's plan is refused.
fn refused(scenes: &Catalogue, plan: Plan) -> Option<String> {
    let state = planning(
        RunQueued { plan: Some(plan), ..super::approvals::request() },
        policy(ApprovalScope::Never, ApprovalScope::Never),
    );
    match supplied_plan(&state, scenes, 1) {
        Event::PlanCreated(_) => None,
        Event::PlanningFailed { error, .. } => Some(error.message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn prepared_arguments_must_be_valid_but_may_be_incomplete() {
    let scenes = catalogue(ToolApproval::None, None, "Books.");
    for fits in [json!({}), json!({"n": 3}), json!({"n": 3, "note": "x"}), json!({"n": null})] {
        assert_eq!(refused(&scenes, booking(std::slice::from_ref(&fits))), None, "{fits}");
    }
    let said = refused(&scenes, booking(&[json!({"n": 1}), json!({"n": "three"})])).unwrap();
    assert!(said.contains("step 1") && said.contains("book") && said.contains("/n must be"), "{said}");
    let mut strange = booking(&[json!({"n": 1})]);
    strange.steps[0].expected_tools = vec!["look".to_owned()];
    let said = refused(&scenes, strange).unwrap();
    assert!(said.contains("\"book\", which is not among its expected_tools"), "{said}");
}

#[test]
fn preflight_checks_prepared_arguments_against_current_tools() {
    let scenes = catalogue(ToolApproval::None, None, "Books.");
    let state =
        in_force(policy(ApprovalScope::Never, ApprovalScope::Never), &scenes, plan("book it", &["book"]));
    assert_eq!(plan_problems_before_start(&state, &scenes), []);
    // The tool accepted any arguments when the plan was made.
    let mut planned = state.clone();
    let mut made: PlanMade = planned.plans[0].clone();
    made.plan = booking(&[json!({"n": "three"})]);
    planned.plans[0] = made;
    planned.steps.get_mut(&1).unwrap().status = crate::plan::StepStatus::Pending;
    let problems = plan_problems_before_start(&planned, &scenes);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].code, "plan.prepared_arguments");
}

fn reply_with(plan: &Plan) -> Reply {
    let arguments = serde_json::to_string(plan).unwrap();
    let call = ReplyCall { id: "1".to_owned(), name: CREATE_PLAN.to_owned(), arguments };
    Reply { calls: vec![call], ..Reply::default() }
}

#[test]
fn invalid_prepared_arguments_are_reported_then_dropped_at_the_last_attempt() {
    let scenes = catalogue(ToolApproval::Required, None, "Books.");
    let settings = Settings { max_retries: 1, ..Settings::default() };
    let mut state = planning(super::approvals::request(), settings);
    let subject = Subject::Plan { version: 1 };
    let call = replied(&mut state, subject, reply_with(&booking(&[json!({"n": "three"})])));
    let sent_back = read(&state, &scenes, call, subject);
    let Event::ReplyRejected { problems, .. } = &sent_back else { panic!("{sent_back:?}") };
    assert_eq!(problems[0].code, "plan.prepared_arguments");
    apply(&mut state, sent_back);
    let call = state.next_ask();
    let asked = Event::ModelAsked {
        call,
        subject,
        attempt: 1,
        fallback: false,
        prompt_hash: String::new(),
        reserved: None,
    };
    apply(&mut state, asked);
    let (reply, usage) = (reply_with(&booking(&[json!({"n": "three"})])), Default::default());
    apply(&mut state, Event::ModelReplied { call, reply, usage, millis: 0, attempts: vec![] });
    let Event::PlanCreated(made) = read(&state, &scenes, call, subject) else { panic!() };
    assert_eq!(made.plan, booking(&[]));
    assert!(made.approval.is_some());
}

#[test]
fn prepared_arguments_may_be_written_as_text() {
    let scenes = catalogue(ToolApproval::Required, None, "Books.");
    let subject = Subject::Plan { version: 1 };
    let read_text = |arguments: &str, rules: u16| {
        let mut state = planning(super::approvals::request(), Settings { rules, ..Settings::default() });
        let mut written = serde_json::to_value(booking(&[json!({})])).unwrap();
        written["steps"][0]["prepared_calls"][0]["arguments"] = json!(arguments);
        let reply =
            ReplyCall { id: "1".to_owned(), name: CREATE_PLAN.to_owned(), arguments: written.to_string() };
        let call = replied(&mut state, subject, Reply { calls: vec![reply], ..Reply::default() });
        read(&state, &scenes, call, subject)
    };
    let Event::PlanCreated(made) = read_text(r#"{"n": 3}"#, RULES_REVISION) else { panic!() };
    assert_eq!(made.plan, booking(&[json!({"n": 3})]));
    for (arguments, rules) in [("three", RULES_REVISION), (r#"{"n": 3}"#, 16)] {
        let rejected = read_text(arguments, rules);
        assert!(matches!(rejected, Event::ReplyRejected { .. }), "{rejected:?}");
    }
}

#[test]
fn prepared_arguments_are_requested_only_when_approval_is_possible() {
    let asks = |queued: RunQueued, settings: Settings, scenes: &Catalogue| {
        let state = planning(queued, settings);
        let asked = request(&state, scenes, Subject::Plan { version: 1 });
        let schema = asked.tools[0].parameters.to_string();
        let Message::System { text } = &asked.messages[0] else { panic!() };
        assert_eq!(schema.contains("prepared_calls"), text.contains("prepared_calls"));
        assert_eq!(asked.tools[0].strict, !schema.contains("prepared_calls"));
        schema.contains("prepared_calls")
    };
    let plain = super::approvals::request;
    let [none, required, call] = [ToolApproval::None, ToolApproval::Required, ToolApproval::Call]
        .map(|declared| catalogue(declared, None, "Books."));
    let never = || policy(ApprovalScope::Never, ApprovalScope::Never);
    let (wants, dry) = (
        RunQueued {
            options: RequestOptions { require_approval: true, ..RequestOptions::default() },
            ..plain()
        },
        RunQueued {
            options: RequestOptions { require_approval: true, dry_run: true, ..RequestOptions::default() },
            ..plain()
        },
    );
    assert!(!asks(plain(), Settings::default(), &none));
    assert!(!asks(plain(), Settings::default(), &call));
    assert!(asks(plain(), Settings::default(), &required));
    assert!(!asks(plain(), never(), &required));
    assert!(asks(plain(), policy(ApprovalScope::Writes, ApprovalScope::Never), &none));
    assert!(asks(wants, never(), &none));
    assert!(!asks(dry, Settings::default(), &required));
}

#[test]
fn scene_prompt_includes_approved_calls() {
    let scenes = catalogue(ToolApproval::Required, None, "Books.");
    let told = |plan: Plan| {
        let state = approved(Settings::default(), &scenes, plan);
        let asked = request(&state, &scenes, Subject::Scene { step: 1 });
        asked.messages.iter().map(|message| format!("{message:?}\n")).collect::<String>()
    };
    let with = told(booking(&[json!({"n": 7})]));
    assert!(with.contains(r#"<prepared>\n{\"arguments\":{\"n\":7},\"tool\":\"book\"}"#), "{with}");
    assert!(!told(booking(&[])).contains("<prepared>"));
}

#[test]
fn check_and_answer_prompts_include_changes_by_people() {
    let scenes = catalogue(ToolApproval::None, None, "Books.");
    let mut state = in_force(Settings::default(), &scenes, plan("book it", &["look"]));
    let told = |state: &RunState, subject| {
        let asked = request(state, &scenes, subject);
        asked.messages.iter().map(|message| format!("{message:?}\n")).collect::<String>()
    };
    let (check, answer) = (Subject::Continuation { round: 1 }, Subject::Answer);
    for subject in [check, answer] {
        assert!(!told(&state, subject).contains("changed"), "{subject:?}");
    }
    state = in_force(
        policy(ApprovalScope::Writes, ApprovalScope::Declared),
        &scenes,
        booking(&[json!({"n": 1})]),
    );
    let wish = CommandAction::Edit { plan: plan("look only", &["look"]), version: None };
    let note = Some("no booking".to_owned());
    for event in
        events_for_command(&state, &scenes, &Command { note, ..Command::new("hockney", wish) }).unwrap()
    {
        apply(&mut state, event);
    }
    for subject in [check, answer] {
        let told = told(&state, subject);
        assert!(told.contains("no booking") && told.contains("purpose"), "{told}");
        assert!(told.contains("tools -book"), "{told}");
        assert!(told.contains("calls -book {"), "{told}");
    }
}

/// One reply of a scene's model with these calls.
fn asks_for(state: &mut RunState, scenes: &Catalogue, calls: &[Value]) {
    let subject = Subject::Scene { step: 1 };
    let calls = calls.iter().map(|arguments| ReplyCall {
        id: "call_0".to_owned(),
        name: "book".to_owned(),
        arguments: arguments.to_string(),
    });
    let reply = Reply { calls: calls.collect(), ..Reply::default() };
    let call = replied(state, subject, reply);
    let event = read(state, scenes, call, subject);
    apply(state, event);
    settle(state);
}

#[test]
fn waiting_write_needs_approval_after_its_tool_changes() {
    let scenes = catalogue(ToolApproval::Required, None, "Books.");
    let other = catalogue(ToolApproval::Required, None, "Books at once.");
    let mut state = approved(Settings::default(), &scenes, booking(&[json!({"n": 1})]));
    asks_for(&mut state, &scenes, &[json!({"n": 2}), json!({"n": 1})]);
    let asked = |state: &RunState| -> Vec<ApprovalSubject> {
        state.approvals.values().filter(|put| put.is_open()).map(|put| put.matter).collect()
    };
    assert_eq!(asked(&state), [ApprovalSubject::Call { call: 1 }]);
    assert_eq!(lapsed_approval(&state, &scenes), None);
    while let Some(event) = lapsed_approval(&state, &other) {
        assert_eq!(state.check(&event), Ok(()));
        apply(&mut state, event);
    }
    settle(&mut state);
    // Writes of one reply are executed one by one.
    let wish = CommandAction::Decide { approval: 3, choice: ApproverChoice::Yes, hash: None };
    let yes = Command::new("hockney", wish);
    events_for_command(&state, &other, &yes).unwrap().into_iter().for_each(|event| apply(&mut state, event));
    settle(&mut state);
    assert!(matches!(state.next()[..], [Action::Call { call: 1, .. }]), "{:?}", state.next());
    apply(&mut state, Event::ToolStarted { call: 1, attempt: 1 });
    let outcome = Outcome::Ok { result: json!(null), say: None, whole: None };
    apply(&mut state, Event::ToolCompleted { call: 1, outcome, millis: 1, notes: None });
    settle(&mut state);
    assert_eq!(asked(&state), [ApprovalSubject::Call { call: 2 }]);
    assert!(state.calls[&2].requested.approval.as_ref().unwrap().why[1].contains("another definition"));
    // Without coverage, nothing lapses.
    let none = Event::ApprovalLapsed {
        approval: NO_APPROVAL,
        matter: ApprovalSubject::Call { call: 1 },
        why: Vec::new(),
        needed: RequiredApproval::default(),
        edited: None,
        read: None,
    };
    assert!(state.check(&none).is_err());
}

#[test]
fn unshown_null_is_not_covered() {
    let scenes = catalogue(ToolApproval::Required, None, "Books.");
    let state = approved(Settings::default(), &scenes, booking(&[json!({"n": 1})]));
    let tool = scenes.get("A").unwrap().tool("book").unwrap();
    let needs =
        |arguments: Value| required_call_approval(&state, &state.steps[&1].step, tool, &arguments, 0, false);
    assert_eq!(needs(json!({"n": 1})), None);
    assert!(needs(json!({"n": 1, "manager": null})).is_some());
}

#[test]
fn prepared_calls_bind_a_scene_only_after_approval() {
    let scenes = catalogue(ToolApproval::None, None, "Books.");
    let mut state = planning(super::approvals::request(), Settings::default());
    let call = replied(&mut state, Subject::Plan { version: 1 }, reply_with(&booking(&[json!({"n": 7})])));
    let made = read(&state, &scenes, call, Subject::Plan { version: 1 });
    assert!(matches!(&made, Event::PlanCreated(made) if made.approval.is_none()), "{made:?}");
    apply(&mut state, made);
    settle(&mut state);
    let asked = request(&state, &scenes, Subject::Scene { step: 1 });
    let told: String = asked.messages.iter().map(|message| format!("{message:?}")).collect();
    assert!(!told.contains("prepared"), "{told}");
}

#[test]
fn answer_of_a_dry_run_says_that_nothing_was_changed() {
    let scenes = catalogue(ToolApproval::None, None, "Books.");
    let after = |rules: u16, answer: &str| {
        let options = RequestOptions { dry_run: true, ..RequestOptions::default() };
        let queued = RunQueued { plan: Some(booking(&[])), options, ..super::approvals::request() };
        let mut state = planning(queued, Settings { rules, ..Settings::default() });
        let made = supplied_plan(&state, &scenes, 1);
        apply(&mut state, made);
        settle(&mut state);
        asks_for(&mut state, &scenes, &[json!({"n": 1})]);
        assert!(state.calls.values().all(|call| call.attempts == 0));
        with_unchanged(&state, &scenes, answer.to_owned())
    };
    assert_eq!(after(RULES_REVISION, "I booked it."), "I booked it.\nNothing was changed.");
    for (rules, answer) in [(16, "I booked it."), (RULES_REVISION, "Dry run: nothing was booked.")] {
        assert_eq!(after(rules, answer), answer);
    }
}
