//! Writes that are confirmed for what the request says, or that another step did in another spelling.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::read;
use super::approvals::settle;
use super::{apply, planning, replied};
use crate::run::{
    Effect, Event, Outcome, RULES_REVISION, Reply, ReplyCall, RunState, SceneWork, StepWork, Subject,
};
use crate::scene::{Catalogue, Scene, SceneTool};
use crate::tools::{ToolContext, native};

fn desk() -> Catalogue {
    let schema = json!({"type": "object", "required": ["to"], "properties": {
        "to": {"type": "string"}, "note": {"type": "string"}, "fast": {"type": "boolean"},
        "start_date": {"type": "string", "format": "date"}, "end_date": {"type": "string", "format": "date"}}});
    let work = native(|_: Value, _: ToolContext| async { Ok(Value::Null) });
    let scene = Scene::builder("Desk").description("The desk.").instructions("Do it.").example("pay", "Pay");
    let scene = scene.tool(SceneTool::dynamic("Pay", "Pays.", Effect::Write, schema, work));
    Catalogue::new(vec![scene.build().unwrap()])
}

/// Calls `Pay` in a step, as its model asks; whether it has to be confirmed.
fn pays(state: &mut RunState, step: u32, arguments: &Value) -> bool {
    let subject = Subject::Scene { step };
    let call = ReplyCall { id: "c".to_owned(), name: "Pay".to_owned(), arguments: arguments.to_string() };
    let ask = replied(state, subject, Reply { calls: vec![call], ..Reply::default() });
    let event = read(state, &desk(), ask, subject);
    apply(state, event);
    state.calls.values().last().unwrap().requested.confirm.is_some()
}

/// A run whose plan has two steps that do not depend on each other, and which made this write in the first one.
fn paid(rules: u16, arguments: &Value) -> RunState {
    let mut state = planned(rules, "Pay r1, for one and for two");
    assert!(!pays(&mut state, 1, arguments));
    apply(&mut state, Event::ToolStarted { call: 1, attempt: 1 });
    let outcome = Outcome::Ok { result: json!(null), say: None, whole: None };
    apply(&mut state, Event::ToolCompleted { call: 1, outcome, millis: 1, notes: None });
    state
}

/// A run whose plan has two steps that do not depend on each other.
fn planned(rules: u16, request: &str) -> RunState {
    let mut state = planning(request);
    let settings = &mut Arc::make_mut(state.started.as_mut().unwrap()).settings;
    (settings.rules, settings.max_writes) = (rules, 32);
    let step = |number: u32| {
        json!({"step_number": number, "scene_name": "Desk", "purpose": format!("pay {number}"),
            "expected_tools": ["Pay"], "depends_on_step": null})
    };
    let plan = json!({"needs_execution": true, "reasoning": "", "steps": [step(1), step(2)]});
    let subject = Subject::Plan { version: 1 };
    let ask = replied(&mut state, subject, Reply { text: plan.to_string(), ..Reply::default() });
    let made = read(&state, &desk(), ask, subject);
    apply(&mut state, made);
    settle(&mut state);
    state
}

#[test]
fn write_of_a_request_that_only_asks_to_be_told_something_is_confirmed() {
    let is_confirmed =
        |rules: u16, request: &str| pays(&mut planned(rules, request), 1, &json!({"to": "r1"}));
    for request in ["Show me r1", "What is in r1?", "Leggi r1", "Please tell me who r1 is."] {
        assert!(is_confirmed(RULES_REVISION, request), "{request}");
        assert!(!is_confirmed(14, request), "{request} in a run of earlier rules");
    }
    for request in ["Pay r1", "Show me r1 and pay it", "Settle r1", "r1", "I owe something to r1"] {
        assert!(!is_confirmed(RULES_REVISION, request), "{request}");
    }
}

#[test]
fn write_for_one_day_of_several_is_confirmed() {
    let is_confirmed = |rules: u16, request: &str| {
        let one_day = json!({"to": "r1", "start_date": "2026-05-11", "end_date": "2026-05-11"});
        pays(&mut planned(rules, request), 1, &one_day)
    };
    for request in ["Pay r1 for 3 days from 2026-05-11", "Please pay r1 for a week from 2026-05-11"] {
        assert!(is_confirmed(RULES_REVISION, request), "{request}");
        assert!(!is_confirmed(15, request), "{request} in a run of earlier rules");
    }
    for request in [
        "Pay r1 for 2026-05-11",
        "Pay r1 for 2026-05-11, 3 days before it is due",
        "Pay r1 for 2026-05-11 and tell me the weather of 3 days",
    ] {
        assert!(!is_confirmed(RULES_REVISION, request), "{request}");
    }
}

#[test]
fn write_that_another_step_did_in_another_spelling_is_confirmed() {
    let first = json!({"to": "r1", "note": "one"});
    let is_confirmed = |rules: u16, version: u32, again: Value| {
        let mut state = paid(rules, &first);
        state.steps.get_mut(&2).unwrap().version = version;
        pays(&mut state, 2, &again)
    };
    // Nobody said "r1x": its invisible character is not removed.
    let unsaid = json!({"to": "r1\u{200b}x", "note": "one"});
    assert!(is_confirmed(RULES_REVISION, 2, unsaid));
    let hidden = json!({"to": "r1\u{200b}", "note": "one"});
    assert!(is_confirmed(12, 1, hidden.clone()) && is_confirmed(12, 2, hidden.clone()));
    assert!(!is_confirmed(11, 2, hidden));
    for spelling in ["R1", "r1 "] {
        let again = json!({"to": spelling, "note": "one"});
        assert!(is_confirmed(RULES_REVISION, 1, again.clone()), "{spelling:?} in a step beside it");
        assert!(is_confirmed(RULES_REVISION, 2, again.clone()), "{spelling:?} in a further plan");
        assert!(!is_confirmed(11, 2, again), "{spelling:?} in a run of earlier rules");
    }
    for again in [json!({"to": "r1", "note": "two"}), json!({"to": "r1"})] {
        assert!(!is_confirmed(RULES_REVISION, 1, again.clone()), "{again}: the plan has both");
        assert!(is_confirmed(RULES_REVISION, 2, again.clone()), "{again}: a further plan adds to it");
    }
    // A resumed step begins anew.
    let mut state = paid(RULES_REVISION, &first);
    state.steps.get_mut(&1).unwrap().work = StepWork::Scene(SceneWork::default());
    assert!(pays(&mut state, 1, &json!({"to": "R1"})));
    // The duplicate guard has it share the outcome.
    assert!(!is_confirmed(RULES_REVISION, 2, first.clone()));
    assert!(!is_confirmed(RULES_REVISION, 2, json!({"to": "one"})));
}

#[test]
fn write_that_is_repeated_with_optional_arguments_that_say_nothing_is_confirmed() {
    let is_confirmed = |rules: u16, again: Value| {
        let mut state = paid(rules, &json!({"to": "r1"}));
        pays(&mut state, 1, &again)
    };
    for again in [json!({"to": "r1", "fast": true}), json!({"to": "R1", "fast": false, "note": " "})] {
        assert!(is_confirmed(RULES_REVISION, again.clone()), "{again}");
        assert!(!is_confirmed(14, again.clone()), "{again} in a run of earlier rules");
    }
    // Steps of one plan may differ in them on purpose.
    let mut state = paid(RULES_REVISION, &json!({"to": "r1"}));
    assert!(!pays(&mut state, 2, &json!({"to": "r1", "fast": true})));
    let mut state = paid(RULES_REVISION, &json!({"to": "r1"}));
    assert!(pays(&mut state, 2, &json!({"to": "r1", "fast": false})));
}

#[test]
fn invisible_characters_that_a_model_adds_to_what_was_said_are_removed() {
    let first = json!({"to": "r1", "note": "one"});
    for spelling in ["r1\u{200b}", "\u{202e}r1", "r\u{ad}1", "R1\u{feff}"] {
        let mut state = paid(RULES_REVISION, &first);
        state.steps.get_mut(&2).unwrap().version = 2;
        let is_asked = pays(&mut state, 2, &json!({"to": spelling, "note": "one"}));
        let sent = &state.calls.values().last().unwrap().requested.arguments;
        let visible = if spelling.starts_with('R') { "R1" } else { "r1" };
        assert_eq!(*sent, json!({"to": visible, "note": "one"}), "{spelling:?}");
        assert_eq!(is_asked, visible == "R1", "the write that was done is not made again: {spelling:?}");
    }
    let mut state = paid(12, &first);
    pays(&mut state, 2, &json!({"to": "r1\u{200b}"}));
    assert_eq!(state.calls.values().last().unwrap().requested.arguments, json!({"to": "r1\u{200b}"}));
}
