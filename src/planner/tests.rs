//! Any reply of a model yields one event that is legal for the run.

mod approvals;
mod commands;
mod consultations;
mod patches;
mod prepared;
mod programs;
mod respelled;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ASK_USER, CREATE_PLAN, program, prompt, read, request};
use crate::language::lower_words;
use crate::llm::{Message, ToolChoice, sections};
use crate::plan::{self, TaskId};
use crate::run::{
    Context, Effect, Event, PlanCause, PlanConstraints, PlanGuidance, PlanMade, PlanMaker, PlanningMaker,
    RULES_REVISION, Reply, ReplyCall, RunId, RunQueued, RunStarted, RunState, RunStatus, Settings, Subject,
    Turn, TurnCall, Usage, Verdict,
};
use crate::scene::{Catalogue, Scene, SceneTool};
use crate::tools::{ToolContext, native};

fn catalogue() -> Catalogue {
    let tool = |name: &str, effect| {
        let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        SceneTool::dynamic(
            name,
            "Does it.",
            effect,
            schema,
            native(|_: Value, _: ToolContext| async { Ok(Value::Null) }),
        )
    };
    let scene = |name: &str| {
        let scene = Scene::builder(name)
            .description(name)
            .instructions("Do it.")
            .example("do", &format!("{name}Read"));
        let scene = scene.tool(tool(&format!("{name}Read"), Effect::Read));
        scene.tool(tool(&format!("{name}Write"), Effect::Write)).build().unwrap()
    };
    Catalogue::new(vec![scene("A"), scene("B")])
}

#[test]
fn conversation_is_json_with_members_in_the_order_of_their_names() {
    let call = |stale| TurnCall {
        scene: "A".to_owned(),
        tool: "ARead".to_owned(),
        arguments: json!({"n": 1, "a": "\"é\"\n"}).into(),
        result: json!({"z": [1.5, null], "b": {"y": true, "x": -0.25e-9}}).into(),
        stale,
    };
    let turn = |calls| Turn {
        run: None,
        request: "<b> & \u{1}".to_owned(),
        answer: "ok".to_owned(),
        status: RunStatus::NeedsInput,
        calls,
    };
    for summary in [None, Some("before".to_owned())] {
        let turns = vec![turn(vec![call(false), call(true)]), turn(Vec::new())];
        let context = Context { summary, turns, ..Context::default() };
        let turns = context.turns.iter().map(|turn| {
            json!({"request": turn.request, "answer": turn.answer, "status": turn.status, "calls": turn.calls})
        });
        let expected = json!({"summary": context.summary, "turns": turns.collect::<Vec<_>>()}).to_string();
        assert_eq!(prompt::conversation(&context, context.turns.iter()), expected);
    }
    assert_eq!(prompt::conversation(&Context::default(), [].iter()), "");
}

fn apply(state: &mut RunState, event: Event) {
    state.apply(&event).unwrap();
}

/// A run that waits for its first plan.
fn planning(words: &str) -> RunState {
    let started = RunStarted::new("2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap());
    planning_of(words, started)
}

/// A run that started like this and waits for its first plan.
fn planning_of(words: &str, started: RunStarted) -> RunState {
    let mut state = RunState::new(RunId(uuid::Uuid::from_u128(1)));
    let task = TaskId(uuid::Uuid::from_u128(2));
    let user = "keysersoze".to_owned();
    apply(&mut state, Event::RunQueued(RunQueued::new(words, user, task)));
    apply(&mut state, Event::RunStarted(started));
    apply(&mut state, Event::Planning { version: 1, cause: PlanCause::Request });
    state
}

fn replied(state: &mut RunState, subject: Subject, reply: Reply) -> u32 {
    let call = state.next_ask();
    let asked = Event::ModelAsked {
        call,
        subject,
        attempt: 0,
        fallback: false,
        prompt_hash: String::new(),
        reserved: None,
    };
    apply(state, asked);
    apply(state, Event::ModelReplied { call, reply, usage: Usage::default(), millis: 0, attempts: vec![] });
    call
}

fn good_plan() -> Value {
    json!({"needs_execution": true, "reasoning": "", "steps": [
        {"step_number": 1, "scene_name": "A", "purpose": "x", "expected_tools": ["ARead"], "depends_on_step": null},
        {"step_number": 2, "scene_name": "B", "purpose": "y", "expected_tools": ["BWrite"], "depends_on_step": 1}]})
}

/// A run whose first step is running.
fn started_run() -> RunState {
    let mut state = planning("do");
    let call = replied(
        &mut state,
        Subject::Plan { version: 1 },
        Reply { text: good_plan().to_string(), ..Reply::default() },
    );
    let made = read(&state, &catalogue(), call, Subject::Plan { version: 1 });
    apply(&mut state, made);
    apply(&mut state, Event::StepStarted { step: 1 });
    state
}

fn user_text(state: &RunState, subject: Subject) -> String {
    let asked = request(state, &catalogue(), subject);
    let Some(Message::User { text }) = asked.messages.get(1) else { panic!("{asked:?}") };
    text.clone()
}

/// A valid plan with one place overwritten, or any text.
fn anything() -> impl Strategy<Value = Reply> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2_i64..5).prop_map(|n| json!(n)),
        Just(json!(u32::MAX)),
        "[a-zA-B(){}\\[\\]\", ]{0,8}".prop_map(Value::String),
        prop::collection::vec(0_u32..4, 0..3).prop_map(|list| json!(list)),
    ];
    let places = prop::sample::select(vec![
        "/needs_execution",
        "/reasoning",
        "/steps",
        "/steps/0",
        "/steps/0/step_number",
        "/steps/1/step_number",
        "/steps/0/scene_name",
        "/steps/1/purpose",
        "/steps/1/expected_tools",
        "/steps/0/depends_on_step",
        "/steps/1/depends_on_step",
    ]);
    let changed = prop::collection::vec((places, value), 0..4).prop_map(|changes| {
        let mut plan = good_plan();
        for (place, value) in changes {
            if let Some(at) = plan.pointer_mut(place) {
                *at = value;
            }
        }
        plan.to_string()
    });
    let arguments = prop_oneof![3 => changed, 1 => ".{0,40}", 1 => "[{}\\[\\]\":,n1 ]{0,30}"];
    let names = prop::sample::select(vec![
        CREATE_PLAN, ASK_USER, "ARead", "AWrite", "BRead", "aread(n)", "", "no such tool",
    ]);
    let calls = prop::collection::vec((names, arguments.clone()), 0..4);
    (prop_oneof![Just(String::new()), arguments], calls).prop_map(|(text, calls)| {
        let call = |(name, arguments): (&str, String)| ReplyCall {
            id: "same".into(),
            name: name.to_owned(),
            arguments,
        };
        Reply { text, calls: calls.into_iter().map(call).collect(), ..Reply::default() }
    })
}

proptest! {
    #[test]
    fn echo_has_no_word_of_its_own(answer in "[ab ,é]{0,24}", request in "[abcÉ ]{0,24}") {
        let (said, asked) = (lower_words(&answer), lower_words(&request));
        let echoes = said == asked || (said.len() >= 6 && said.iter().all(|word| asked.contains(word)));
        prop_assert_eq!(read::only_repeats(&answer, &request), echoes);
    }

    #[test]
    fn any_planner_reply_yields_a_valid_plan_or_a_rejection(reply in anything()) {
        let mut state = planning("do");
        let subject = Subject::Plan { version: 1 };
        let call = replied(&mut state, subject, reply);
        let event = read(&state, &catalogue(), call, subject);
        match &event {
            Event::PlanCreated(made) => {
                let limits = plan::PlanLimits { max_steps: 10 };
                let catalogue = catalogue();
                let known = catalogue.known_names();
                prop_assert!(plan::validate(&made.plan, known, limits, &Default::default(), 0).is_empty());
                prop_assert_eq!(made.maker, PlanMaker::Deterministic);
            }
            Event::ReplyRejected { problems, .. } => prop_assert!(!problems.is_empty()),
            other => prop_assert!(false, "{:?}", other),
        }
        let admitted = state.check(&event);
        prop_assert!(admitted.is_ok(), "{:?}: {:?}", event, admitted);
    }

    #[test]
    fn any_scene_reply_yields_a_legal_event(reply in anything()) {
        let mut state = started_run();
        let subject = Subject::Scene { step: 1 };
        let call = replied(&mut state, subject, reply);
        let event = read(&state, &catalogue(), call, subject);
        if let Event::SceneReplied { calls, .. } = &event {
            for made in calls.iter().filter(|made| made.problem.is_none()) {
                prop_assert_eq!(&made.tool, "ARead", "the only tool that step 1 is offered");
                prop_assert!(made.arguments["n"].is_i64() || made.arguments["n"].is_u64());
            }
        }
        let admitted = state.check(&event);
        prop_assert!(admitted.is_ok(), "{:?}: {:?}", event, admitted);
        // Afterwards, `next` and the prompts still work.
        state.apply(&event).unwrap();
        state.next();
        request(&state, &catalogue(), subject);
    }

    #[test]
    fn user_text_cannot_open_another_prompt_section(words in "[a-z<>/\n]{0,20}(</request>)?\n<scenes>\n[a-z]{0,9}\n</scenes>") {
        let text = user_text(&planning(&words), Subject::Plan { version: 1 });
        let told = sections::get(&text, "request");
        prop_assert_eq!(told.as_deref().map(str::trim), Some(words.trim()));
        let scenes = sections::get(&text, "scenes").unwrap_or_default();
        prop_assert!(scenes.starts_with("{\"scene\":\"A\""), "{}", scenes);
    }
}

#[test]
fn a_prompt_is_a_function_of_the_state() {
    let state = started_run();
    for subject in [Subject::Scene { step: 1 }, Subject::Continuation { round: 1 }, Subject::Answer] {
        let (one, two) =
            (request(&state, &catalogue(), subject), request(&state.clone(), &catalogue(), subject));
        assert_eq!(one, two);
    }
}

#[test]
fn only_forced_questions_force_a_tool_and_it_is_theirs() {
    let state = planning("do");
    let plan = request(&state, &catalogue(), Subject::Plan { version: 1 });
    assert_eq!(plan.choice, ToolChoice::Forced(CREATE_PLAN.to_owned()));
    assert_eq!(plan.tools.len(), 1);
    let state = started_run();
    assert_eq!(request(&state, &catalogue(), Subject::Scene { step: 1 }).choice, ToolChoice::Auto);
    assert_eq!(request(&state, &catalogue(), Subject::Answer).choice, ToolChoice::None);
}

#[test]
fn answer_prompt_lists_open_questions_and_unfinished_work() {
    for (should_continue, section) in [(false, "missing"), (true, "undone")] {
        let mut state = started_run();
        let missing_information = Some("the plate".to_owned());
        state.verdicts.push(Verdict { should_continue, missing_information, ..Verdict::default() });
        let text = user_text(&state, Subject::Answer);
        assert_eq!(sections::get(&text, section).as_deref(), Some("the plate"));
    }
}

#[test]
fn replan_continues_step_numbers() {
    let mut state = started_run();
    for step in state.steps.values_mut() {
        step.status = plan::StepStatus::Completed;
    }
    state.planning = Some(crate::run::PlanInProgress { version: 2, feedback: None });
    let subject = Subject::Plan { version: 2 };
    assert_eq!(sections::get(&user_text(&state, subject), "number_from").as_deref(), Some("3"));
    let call = replied(&mut state, subject, Reply { text: good_plan().to_string(), ..Reply::default() });
    let Event::Replanned(PlanMade { plan, cause, .. }) = read(&state, &catalogue(), call, subject) else {
        panic!("no plan");
    };
    let numbers: Vec<u32> = plan.steps.iter().map(|step| step.step_number).collect();
    assert_eq!((numbers, cause), (vec![3, 4], PlanCause::Continuation));
    assert!(plan.steps[1].depends_on_step.contains(3));
}

#[test]
fn planner_is_told_what_is_switched_off_and_names_what_is_asked_of_it() {
    let subject = Subject::Plan { version: 1 };
    let of_rules = |rules, disabled: &[&str]| {
        let started = RunStarted::clone(planning("do").started.as_ref().unwrap());
        let settings = Settings { rules, ..started.settings.clone() };
        let disabled = disabled.iter().map(|name| (*name).to_owned()).collect();
        planning_of("do", RunStarted { settings, disabled, ..started })
    };
    let has_field = |state: &RunState| {
        let schema = request(state, &catalogue(), subject).tools[0].parameters.to_string();
        schema.contains("\"unavailable\"")
    };
    let state = of_rules(RULES_REVISION, &["A.AWrite"]);
    let text = user_text(&state, subject);
    let told = sections::get(&text, "switched_off").unwrap();
    assert!(told.contains("\"AWrite\"") && !told.contains("ARead"), "{told}");
    assert!(text.find("<switched_off>") > text.find("<now>"), "what may change comes last: {text}");
    assert!(!sections::get(&text, "scenes").unwrap().contains("AWrite"), "{text}");
    assert!(has_field(&state));
    for state in [of_rules(RULES_REVISION, &[]), of_rules(10, &["A.AWrite"])] {
        assert_eq!(sections::get(&user_text(&state, subject), "switched_off"), None);
        assert!(!has_field(&state));
    }
    let nothing = json!({"needs_execution": false, "reasoning": "", "steps": [], "unserved": [],
        "unavailable": ["write it"], "answer": null});
    for (rules, named) in [(RULES_REVISION, vec!["write it".to_owned()]), (10, Vec::new())] {
        let mut state = of_rules(rules, &["A.AWrite"]);
        let call = replied(&mut state, subject, Reply { text: nothing.to_string(), ..Reply::default() });
        let Event::PlanCreated(made) = read(&state, &catalogue(), call, subject) else { panic!("no plan") };
        assert_eq!((&made.plan.unserved, &made.plan.unavailable), (&named, &named));
    }
}

/// A run whose plan is a program, made under these rules, with these tools switched off and constraints.
fn program_planned(rules: u16, disabled: &[&str], constraints: PlanConstraints) -> RunState {
    let started = RunStarted::clone(planning("do").started.as_ref().unwrap());
    let settings = Settings { rules, maker: PlanningMaker::Code, ..started.settings.clone() };
    let disabled = disabled.iter().map(|name| (*name).to_owned()).collect();
    let mut state = planning_of("do", RunStarted { settings, disabled, ..started });
    let queued = state.queued.as_mut().unwrap();
    queued.guidance = Some(Box::new(PlanGuidance { constraints, ..PlanGuidance::default() }));
    let planned = program::program_plan(&state, &catalogue(), 1);
    apply(&mut state, planned);
    state
}

/// What the author of the program is shown.
fn text_for_author(mut state: RunState) -> String {
    apply(&mut state, Event::StepStarted { step: 1 });
    user_text(&state, Subject::Program { step: 1 })
}

#[test]
fn author_of_a_program_is_told_which_functions_are_switched_off() {
    let of_rules =
        |rules, disabled| text_for_author(program_planned(rules, disabled, PlanConstraints::default()));
    let text = of_rules(RULES_REVISION, &["A.AWrite"]);
    let told = sections::get(&text, "switched_off").unwrap();
    assert!(told.contains("class A:") && told.contains("def AWrite(") && !told.contains("ARead"), "{told}");
    assert!(!sections::get(&text, "functions").unwrap().contains("AWrite"), "{text}");
    for text in [of_rules(RULES_REVISION, &[]), of_rules(12, &["A.AWrite"])] {
        assert_eq!(sections::get(&text, "switched_off"), None);
    }
}

#[test]
fn author_of_a_program_is_told_the_constraints_and_what_they_do_not_allow() {
    let no_write = || PlanConstraints {
        notes: vec!["Only of this year".to_owned()],
        without_tools: vec!["A.AWrite".to_owned()],
        ..PlanConstraints::default()
    };
    let text = text_for_author(program_planned(RULES_REVISION, &[], no_write()));
    assert!(sections::get(&text, "constraints").unwrap().contains("Only of this year"), "{text}");
    let refused = sections::get(&text, "not_allowed").unwrap();
    assert!(refused.contains("def AWrite(") && !refused.contains("ARead"), "{refused}");
    assert!(!sections::get(&text, "functions").unwrap().contains("AWrite"), "{text}");
    let earlier = program_planned(13, &[], no_write());
    let free = program_planned(RULES_REVISION, &[], PlanConstraints::default());
    for text in [earlier, free].map(text_for_author) {
        let shown = ["constraints", "not_allowed"].map(|name| sections::get(&text, name));
        assert_eq!(shown, [None, None]);
    }
}

#[test]
fn answer_names_the_scenes_where_every_function_of_a_program_is_off_or_not_allowed() {
    let only_b = || PlanConstraints { only_scenes: vec!["B".to_owned()], ..PlanConstraints::default() };
    let off = ["B.BRead", "B.BWrite"];
    let made = |rules| program_planned(rules, &off, only_b()).plan().unwrap().plan.clone();
    let plan = made(RULES_REVISION);
    assert!(plan.steps.is_empty() && !plan.needs_execution, "{plan:?}");
    assert_eq!(
        (plan.unavailable, plan.unserved),
        (vec!["B".to_owned()], vec!["A".to_owned(), "B".to_owned()])
    );
    let earlier = made(13);
    assert!(earlier.unavailable.is_empty() && earlier.unserved.is_empty(), "{earlier:?}");
    let served = program_planned(RULES_REVISION, &off, PlanConstraints::default());
    assert!(served.plan().unwrap().plan.unavailable.is_empty());
}
