//! The question of a consultation holds no values of the run, and any reply to it yields one legal event.

use proptest::prelude::*;
use serde_json::json;

use super::super::{CHOOSE_RECOVERY, is_as_expected, read, request};
use super::{apply, catalogue, good_plan, replied};
use crate::adapt::{
    AlternativeTool, ConsultationKind, ExecutionLevel, ExecutionMode, FaultPolicy, PolicyAction,
    PolicyDefaults, ToolPolicies,
};
use crate::fault::{Fault, FaultClass};
use crate::llm::{Message, Request, RequestDigest};
use crate::plan::{StepExpectation, TaskId};
use crate::run::{
    Action, ConsultationChoice, Effect, Event, Outcome, PlanCause, Reply, ReplyCall, RequestedCall, RunId,
    RunQueued, RunStarted, RunState, Settings, Subject, call_key,
};
use crate::scene::{Catalogue, Scene, SceneTool};

const ABOUT: Subject = Subject::Consultation { consultation: 1, kind: ConsultationKind::Recovery };
const DECISION: Subject = Subject::Consultation { consultation: 1, kind: ConsultationKind::Decision };

/// What differs between runs and may not be told.
#[derive(Debug, Clone)]
struct Told {
    run: u128,
    words: String,
    user: String,
    language: Option<String>,
    now: i64,
    argument: i64,
    message: String,
    /// How many of the calls before it succeeded.
    earlier: u32,
}

fn told() -> impl Strategy<Value = Told> {
    let words = ("[a-z ]{1,20}", "[a-z]{1,8}", proptest::option::of("(it|en|de)"));
    (any::<u128>(), words, 0..1_000_000_i64, any::<i64>(), ".{0,30}", 1..3_u32).prop_map(
        |(run, (words, user, language), now, argument, message, earlier)| Told {
            run,
            words,
            user,
            language,
            now,
            argument,
            message,
            earlier,
        },
    )
}

fn requested(call: u32, argument: i64) -> RequestedCall {
    let arguments = json!({"n": argument, "call": call});
    RequestedCall::new(call, "ARead", call_key("A", "ARead", &arguments, &[]), arguments, Effect::Read)
}

/// A run whose last call has failed, about which a model is to be consulted.
fn consulting(told: &Told) -> RunState {
    consulting_at(told, ExecutionLevel::Adaptive, None)
}

/// The same at another level, where the tool declares this.
fn consulting_at(told: &Told, level: ExecutionLevel, declared: Option<&ToolPolicies>) -> RunState {
    let mut state = RunState::new(RunId(uuid::Uuid::from_u128(told.run)));
    let task = TaskId(uuid::Uuid::from_u128(2));
    apply(&mut state, Event::RunQueued(RunQueued::new(&told.words, &told.user, task)));
    let now =
        jiff::Timestamp::from_second(1_800_000_000 + told.now).unwrap().to_zoned(jiff::tz::TimeZone::UTC);
    let policies = PolicyDefaults { attempts: 1, ..PolicyDefaults::default() };
    let (level, mode) = (Some(level), Some(ExecutionMode::Adaptive));
    let started = RunStarted {
        language: told.language.clone(),
        settings: Settings { rules: 5, level, mode, policies, ..Settings::default() },
        ..RunStarted::new(now)
    };
    apply(&mut state, Event::RunStarted(started));
    apply(&mut state, Event::Planning { version: 1, cause: PlanCause::Request });
    let plan = Reply { text: good_plan().to_string(), ..Reply::default() };
    let call = replied(&mut state, Subject::Plan { version: 1 }, plan);
    let made = read(&state, &catalogue(), call, Subject::Plan { version: 1 });
    apply(&mut state, made);
    apply(&mut state, Event::StepStarted { step: 1 });
    let call = replied(&mut state, Subject::Scene { step: 1 }, Reply::default());
    let policies = declared.cloned().map(Box::new);
    let calls = (1..=told.earlier + 1)
        .map(|call| RequestedCall { policies: policies.clone(), ..requested(call, told.argument) })
        .collect();
    apply(
        &mut state,
        Event::SceneReplied { step: 1, call, text: String::new(), calls, question: None, next: None },
    );
    for call in 1..=told.earlier + 1 {
        let outcome = match call > told.earlier {
            true => {
                Outcome::Failed { error: Fault::new("http.status", &told.message).classed(FaultClass::Other) }
            }
            false => Outcome::Ok { result: json!(told.argument), say: None, whole: None },
        };
        apply(&mut state, Event::ToolStarted { call, attempt: 1 });
        apply(&mut state, Event::ToolCompleted { call, outcome, millis: 1, notes: None });
    }
    let [Action::Record { event }] = state.next() else { panic!("{:?}", state.next()) };
    let event = event.clone();
    apply(&mut state, event);
    state
}

fn plain() -> Told {
    Told {
        run: 1,
        words: "do it".to_owned(),
        user: "keysersoze".to_owned(),
        language: None,
        now: 0,
        argument: 4711,
        message: "GET http://127.0.0.1 answered 409: choose retry".to_owned(),
        earlier: 1,
    }
}

#[test]
fn earlier_result_has_to_be_what_the_step_expects() {
    let mut state = consulting(&plain());
    let is_expected = |state: &RunState, result| is_as_expected(state, &catalogue(), 1, &result);
    assert!(is_expected(&state, json!({"city": ""})), "nothing is expected");
    let expected = StepExpectation {
        tool: "ARead".to_owned(),
        not_empty: vec!["/city".to_owned()],
        ..StepExpectation::default()
    };
    state.steps.get_mut(&1).unwrap().step.expect = vec![expected];
    assert!(is_expected(&state, json!({"city": "Milan"})));
    assert!(!is_expected(&state, json!({"city": ""})) && !is_expected(&state, json!({})));
}

#[test]
fn question_says_which_tool_failed_and_what_can_be_done() {
    let asked = request(&consulting(&plain()), &catalogue(), ABOUT);
    let [Message::System { .. }, Message::User { text }] = asked.messages.as_slice() else {
        panic!("{asked:?}")
    };
    for told in ["<failure>", "<options>", "http.status", "retry", "abort"] {
        assert!(text.contains(told), "{told}: {text}");
    }
    for hidden in ["127.0.0.1", "4711", "keysersoze", "do it"] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    let choices = asked.tools[0].parameters.pointer("/properties/choice/enum").unwrap();
    assert!(choices.as_array().unwrap().iter().all(|id| text.contains(id.as_str().unwrap())), "{choices}");
    assert_eq!((asked.tools[0].name.as_str(), asked.max_output_tokens), (CHOOSE_RECOVERY, Some(400)));
}

#[test]
fn changed_definition_is_another_question() {
    let state = consulting(&plain());
    let digest = |catalogue: &Catalogue| RequestDigest::of(&request(&state, catalogue, ABOUT)).hex();
    let changed = |change: &dyn Fn(&mut SceneTool)| {
        let before = catalogue();
        let scenes = before.iter().map(|scene| {
            let mut scene = Scene::clone(scene);
            scene.tools.iter_mut().filter(|tool| tool.name == "ARead").for_each(change);
            scene
        });
        Catalogue::new(scenes.collect::<Vec<_>>())
    };
    assert_eq!(digest(&catalogue()), digest(&changed(&|_| {})));
    let takes_more = json!({"type": "object", "properties": {"n": {}, "more": {"type": "string"}}});
    assert_ne!(digest(&catalogue()), digest(&changed(&|tool| tool.parameters = takes_more.clone().into())));
    assert_ne!(digest(&catalogue()), digest(&changed(&|tool| tool.description = "Another.".to_owned())));
    let other = |tool: &mut SceneTool| tool.say = [("en".to_owned(), "So it is.".to_owned())].into();
    assert_eq!(digest(&catalogue()), digest(&changed(&other)), "how it is told is no part of the question");
}

/// Whatever fails is followed by one of two alternatives.
fn two_alternatives() -> ToolPolicies {
    let policy = FaultPolicy { actions: Some(vec![PolicyAction::Alternative]), ..FaultPolicy::default() };
    let [first, second] = ["APeek", "AGlance"].map(|tool| AlternativeTool {
        tool: tool.to_owned(),
        arguments: [("n".to_owned(), json!("/arguments/n"))].into(),
        same_result: tool == "AGlance",
    });
    ToolPolicies {
        by_class: [(FaultClass::Other, policy)].into(),
        alternative: Some(first),
        others: vec![second],
        choose_by: "Prefer the one that is free of charge.".to_owned(),
        ..ToolPolicies::default()
    }
}

/// The usual scenes, of which A has two further reads.
fn with_alternatives() -> Catalogue {
    let before = catalogue();
    let scenes = before.iter().map(|scene| {
        let mut scene = Scene::clone(scene);
        let read = scene.tools.iter().find(|tool| tool.name == "ARead").cloned();
        for (name, description) in [("APeek", "Peeks, for a fee."), ("AGlance", "Glances.")] {
            scene.tools.extend(read.clone().map(|tool| SceneTool {
                name: name.to_owned(),
                description: description.to_owned(),
                ..tool
            }));
        }
        scene
    });
    Catalogue::new(scenes.collect::<Vec<_>>())
}

/// The messages and the forced tool of a question.
fn shown(asked: &Request) -> String {
    let messages = asked.messages.iter().map(|message| match message {
        Message::System { text } | Message::User { text } => text.clone(),
        other => format!("{other:?}"),
    });
    let tool = &asked.tools[0];
    let forced = format!("{}: {}", tool.name, serde_json::to_string_pretty(&*tool.parameters).unwrap());
    messages.chain([forced]).collect::<Vec<_>>().join("\n---\n")
}

#[test]
fn prompt_of_a_recovery_is_as_reviewed() {
    insta::assert_snapshot!(shown(&request(&consulting(&plain()), &catalogue(), ABOUT)));
}

#[test]
fn prompt_of_a_decision_is_as_reviewed() {
    let state = consulting_at(&plain(), ExecutionLevel::Intelligent, Some(&two_alternatives()));
    insta::assert_snapshot!(shown(&request(&state, &with_alternatives(), DECISION)));
}

fn forced(arguments: &str) -> Reply {
    let call =
        ReplyCall { id: "1".to_owned(), name: CHOOSE_RECOVERY.to_owned(), arguments: arguments.to_owned() };
    Reply { calls: vec![call], ..Reply::default() }
}

#[test]
fn reply_is_read_in_any_case_and_its_reason_is_cut() {
    let mut state = consulting(&plain());
    let reason = "x\u{202e}".repeat(400);
    let reply = forced(&json!({"choice": " RETRY ", "reason": reason}).to_string());
    let call = replied(&mut state, ABOUT, reply);
    let event = read(&state, &catalogue(), call, ABOUT);
    let Event::Consultation { chosen: Some(ConsultationChoice::Recovery { action }), reason, .. } = &event
    else {
        panic!("{event:?}")
    };
    assert_eq!((action.id(), reason.chars().count()), ("retry", 300));
    assert!(!reason.contains('\u{202e}'));
    state.check(&event).unwrap();
}

proptest! {
    #[test]
    fn equal_failures_of_different_runs_are_the_same_question(one in told(), other in told()) {
        let digest = |told: &Told| RequestDigest::of(&request(&consulting(told), &catalogue(), ABOUT)).hex();
        prop_assert_eq!(digest(&one), digest(&other));
    }

    #[test]
    fn any_reply_is_one_legal_event(choice in "(retry|skip|ask_user|abort|ABORT|.{0,10})", text in any::<bool>(), extra in ".{0,20}") {
        let mut state = consulting(&plain());
        let said = json!({"choice": choice, "reason": extra, "delay_ms": 5}).to_string();
        let reply = match text {
            true => Reply { text: format!("{extra}{said}"), ..Reply::default() },
            false => forced(&said),
        };
        let call = replied(&mut state, ABOUT, reply);
        let event = read(&state, &catalogue(), call, ABOUT);
        prop_assert!(state.check(&event).is_ok(), "{event:?}");
    }
}
