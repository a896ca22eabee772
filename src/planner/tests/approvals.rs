//! Who is asked for what, by which policy, and what exactly a yes covers.

use serde_json::{Value, json};

use super::super::approval::call_needs;
use super::super::{consent, given, lapsed, plan_needs, preflight};
use crate::plan::{Plan, PlanStatus, Step, TaskId};
use crate::run::{
    ApprovalPolicy, AskFor, Cause, Context, Decision, Effect, Event, Maker, Matter, PlanMade, RunId,
    RunQueued, RunStarted, RunState, Settings,
};
use crate::scene::{Catalogue, Scene, SceneTool, ToolApproval, ToolBuilder};
use crate::tools::{ToolContext, native};

pub const EVERY: [AskFor; 3] = [AskFor::Declared, AskFor::Writes, AskFor::Never];

fn tool(name: &str, what: &str, effect: Effect) -> ToolBuilder {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let does = native(|_: Value, _: ToolContext| async { Ok(Value::Null) });
    SceneTool::dynamic(name, what, effect, schema, does)
}

/// One scene that looks and books; `scene` and `own` say for what somebody is asked.
pub fn catalogue(scene: ToolApproval, own: Option<ToolApproval>, what: &str) -> Catalogue {
    let book = tool("book", what, Effect::Write).identity(&["n"]);
    let book = match own {
        Some(own) => book.approval(own),
        None => book,
    };
    let scene =
        Scene::builder("A").description("A").instructions("Do it.").example("do", "look").approval(scene);
    let scene = scene.tool(tool("look", "Looks.", Effect::Read)).tool(book);
    Catalogue::new([scene.tool(tool("cancel", "Cancels.", Effect::Write)).build().unwrap()])
}

pub fn policy(plans: AskFor, calls: AskFor) -> Settings {
    Settings { approval: ApprovalPolicy { plans, calls, by_oneself: true }, ..Settings::default() }
}

pub fn plan(purpose: &str, tools: &[&str]) -> Plan {
    let step = Step {
        step_number: 1,
        scene_name: "A".to_owned(),
        purpose: purpose.to_owned(),
        expected_tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        depends_on_step: Default::default(),
        prepared_calls: Vec::new(),
        unclear: false,
    };
    Plan { needs_execution: true, reasoning: String::new(), steps: vec![step], ..Plan::default() }
}

pub fn request() -> RunQueued {
    RunQueued::new("book it", "keysersoze", TaskId(uuid::Uuid::from_u128(2)))
}

pub fn apply(state: &mut RunState, event: Event) {
    state.apply(&event).unwrap();
}

/// A run whose first plan is to be made.
pub fn planning(queued: RunQueued, settings: Settings) -> RunState {
    let mut state = RunState::new(RunId(uuid::Uuid::from_u128(1)));
    apply(&mut state, Event::RunQueued(queued));
    let started = RunStarted {
        now: "2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap(),
        language: None,
        settings,
        catalogue: String::new(),
        context: Context::default(),
        confirmed: Vec::new(),
    };
    apply(&mut state, Event::RunStarted(started));
    apply(&mut state, Event::Planning { version: 1, cause: Cause::Request });
    state
}

/// A run whose plan is in force, as far as it goes without anybody's words.
pub fn in_force(settings: Settings, catalogue: &Catalogue, plan: Plan) -> RunState {
    let mut state = planning(RunQueued { plan: Some(plan), ..request() }, settings);
    let made = given(&state, catalogue, 1);
    apply(&mut state, made);
    settle(&mut state);
    state
}

/// What the machine records by itself.
pub fn settle(state: &mut RunState) {
    while let Some(crate::run::Action::Record { event }) = state.next().into_iter().next() {
        apply(state, event);
    }
}

fn why(settings: Settings, catalogue: &Catalogue, maker: Maker, tools: &[&str]) -> Option<Vec<String>> {
    let state = planning(request(), settings);
    let made = PlanMade::new(1, Cause::Request, maker, plan("book it", tools));
    plan_needs(&state, catalogue, &made).map(|needed| needed.why)
}

#[test]
fn a_plan_needs_a_yes_as_scene_tool_and_policy_say() {
    use ToolApproval::{Call, None as Nothing, Plan, Required};
    for scene in [Nothing, Plan, Call, Required] {
        for own in [None, Some(Nothing), Some(Plan), Some(Call), Some(Required)] {
            let catalogue = catalogue(scene, own, "Books.");
            for policy_plans in EVERY {
                let settings = policy(policy_plans, AskFor::Declared);
                let declared = matches!(own.unwrap_or(scene), Plan | Required);
                let asked = match policy_plans {
                    AskFor::Declared => declared,
                    AskFor::Writes => true,
                    AskFor::Never => false,
                };
                let told = why(settings.clone(), &catalogue, Maker::Deterministic, &["look", "book"]);
                let expected = asked.then(|| vec!["step 1: book of A writes".to_owned()]);
                assert_eq!(told, expected, "{scene:?} {own:?} {policy_plans:?}");
                assert_eq!(why(settings, &catalogue, Maker::Deterministic, &["look"]), None);
            }
        }
    }
}

#[test]
fn a_write_needs_a_yes_as_scene_tool_and_policy_say() {
    use ToolApproval::{Call, None as Nothing, Plan, Required};
    for scene in [Nothing, Plan, Call, Required] {
        for own in [None, Some(Nothing), Some(Plan), Some(Call), Some(Required)] {
            let catalogue = catalogue(scene, own, "Books.");
            let tool = |name: &str| catalogue.get("A").unwrap().tool(name).unwrap().clone();
            for (calls, by_rules) in EVERY.into_iter().flat_map(|calls| [(calls, false), (calls, true)]) {
                let state = planning(request(), policy(AskFor::Declared, calls));
                let needs = |tool| {
                    call_needs(
                        &state,
                        &plan("book it", &["book"]).steps[0],
                        &tool,
                        &json!({"n": 1}),
                        0,
                        by_rules,
                    )
                };
                let asked = match calls {
                    AskFor::Declared => by_rules || matches!(own.unwrap_or(scene), Call | Required),
                    AskFor::Writes => true,
                    AskFor::Never => false,
                };
                assert_eq!(needs(tool("book")).is_some(), asked, "{scene:?} {own:?} {calls:?} {by_rules}");
                assert_eq!(needs(tool("look")), None);
            }
        }
    }
}

#[test]
fn a_request_that_asks_and_a_change_need_a_yes_too_and_a_plan_of_the_rules_by_itself_does_not() {
    let catalogue = catalogue(ToolApproval::None, None, "Books.");
    // Its reads need nobody's yes, and each of its writes is asked about by itself.
    assert_eq!(why(Settings::default(), &catalogue, Maker::Fallback, &["look", "book"]), None);
    let writes = policy(AskFor::Writes, AskFor::Declared);
    assert_eq!(why(writes, &catalogue, Maker::Fallback, &["book"]).unwrap().len(), 1);

    let needs = |queued: RunQueued, cause| {
        let state = planning(queued, policy(AskFor::Never, AskFor::Never));
        let made = PlanMade::new(1, cause, Maker::Person, plan("look", &["look"]));
        plan_needs(&state, &catalogue, &made).map(|needed| needed.why)
    };
    let asks = || RunQueued { require_approval: true, ..request() };
    assert_eq!(needs(asks(), Cause::Request).unwrap(), ["the request asks for it"]);
    assert_eq!(needs(request(), Cause::Request), None);
    for change in [Cause::Edit, Cause::Feedback] {
        assert_eq!(needs(request(), change).unwrap(), ["the plan was changed"]);
    }
    assert_eq!(needs(RunQueued { dry_run: true, ..asks() }, Cause::Request), None);
    assert_eq!(needs(RunQueued { plan_only: true, ..asks() }, Cause::Request), None);
}

#[test]
fn a_yes_covers_the_version_each_step_and_the_definition_of_each_tool() {
    let scenes = catalogue(ToolApproval::Required, None, "Books.");
    let other = catalogue(ToolApproval::Required, None, "Books at once.");
    let state = planning(request(), Settings::default());
    let hash = |catalogue: &Catalogue, version, plan: Plan| {
        let made = PlanMade::new(version, Cause::Request, Maker::Deterministic, plan);
        plan_needs(&state, catalogue, &made).unwrap().hash
    };
    let one = hash(&scenes, 1, plan("book it", &["book"]));
    assert_eq!((one.len(), &one), (64, &hash(&scenes, 1, plan("book it", &["book"]))));
    let mut reasoned = plan("book it", &["book"]);
    reasoned.reasoning = "because".to_owned();
    assert_eq!(one, hash(&scenes, 1, reasoned), "what it says of itself is not carried out");
    let mut after = plan("book it", &["book"]);
    after.steps[0].depends_on_step = [7].into_iter().collect();
    for another in [
        hash(&scenes, 2, plan("book it", &["book"])),
        hash(&scenes, 1, plan("book two", &["book"])),
        hash(&scenes, 1, plan("book it", &["book", "look"])),
        hash(&scenes, 1, after),
        hash(&other, 1, plan("book it", &["book"])),
    ] {
        assert_ne!(one, another);
    }
    let call = |catalogue: &Catalogue, n: f64| {
        let tool = catalogue.get("A").unwrap().tool("book").unwrap();
        call_needs(&state, &plan("book it", &["book"]).steps[0], tool, &json!({"n": n}), 0, false)
            .unwrap()
            .hash
    };
    assert_eq!(call(&scenes, 1.0), call(&scenes, 1e0));
    assert_ne!(call(&scenes, 1.0), call(&scenes, 2.0));
    assert_ne!(call(&scenes, 1.0), call(&other, 1.0));
}

#[test]
fn an_approval_lapses_when_a_tool_that_it_covers_is_another_or_gone() {
    let scenes = catalogue(ToolApproval::Required, None, "Books.");
    let other = catalogue(ToolApproval::Required, None, "Books at once.");
    let mut state = in_force(Settings::default(), &scenes, plan("book it", &["look", "book"]));
    assert_eq!(state.plan_status, PlanStatus::PendingApproval);
    assert_eq!(lapsed(&state, &scenes), None);
    let before = state.approvals[&1].needed.hash.clone();
    for (now, told) in [
        (&other, vec!["~ A.book has another definition now"]),
        (&Catalogue::default(), vec!["- A.book is not there any more", "- A.look is not there any more"]),
    ] {
        let Some(event @ Event::ApprovalLapsed { approval: 1, .. }) = lapsed(&state, now) else { panic!() };
        let Event::ApprovalLapsed { why, needed, .. } = &event else { panic!() };
        assert_eq!(why, &told);
        assert_ne!(needed.hash, before);
        assert_eq!(state.check(&event), Ok(()));
    }
    // A yes lapses as well, and what is asked then is asked with what there is now.
    let (matter, decision) = (Matter::Plan { version: 1 }, Decision::Yes { hold: true });
    apply(
        &mut state,
        Event::Decided { approval: 1, matter, decision, by: "b".to_owned(), note: None, word: None },
    );
    let event = lapsed(&state, &other).unwrap();
    apply(&mut state, event);
    settle(&mut state);
    assert!(state.approvals[&1].lapsed && state.approvals[&2].is_open());
    assert_eq!(lapsed(&state, &other), None);
    // A no stays, whatever its tools become.
    let decision = Decision::No;
    apply(
        &mut state,
        Event::Decided { approval: 2, matter, decision, by: "b".to_owned(), note: None, word: None },
    );
    assert_eq!(lapsed(&state, &scenes), None);
}

#[test]
fn a_plan_that_nobody_can_carry_out_is_seen_before_its_first_step() {
    let scenes = catalogue(ToolApproval::None, None, "Books.");
    let mut state = planning(request(), policy(AskFor::Never, AskFor::Never));
    let made = PlanMade::new(1, Cause::Request, Maker::Fallback, plan("book it", &["look", "book"]));
    apply(
        &mut state,
        Event::ModelAsked {
            call: 1,
            subject: crate::run::Subject::Plan { version: 1 },
            attempt: 0,
            fallback: false,
            prompt_hash: String::new(),
            reserved: None,
        },
    );
    apply(
        &mut state,
        Event::ModelReplied {
            call: 1,
            reply: Default::default(),
            usage: Default::default(),
            millis: 0,
            attempts: vec![],
        },
    );
    apply(&mut state, Event::PlanCreated(made));
    let codes = |catalogue: &Catalogue| -> Vec<String> {
        preflight(&state, catalogue).into_iter().map(|problem| problem.code).collect()
    };
    assert_eq!(codes(&scenes), Vec::<String>::new());
    assert_eq!(codes(&Catalogue::default()), ["preflight.scene"]);
    let looks = Scene::builder("A").description("A").instructions("Do it.").example("do", "look");
    let looks = Catalogue::new([looks.tool(tool("look", "Looks.", Effect::Read)).build().unwrap()]);
    assert_eq!(codes(&looks), ["preflight.tool"]);
}

#[test]
fn only_words_that_say_nothing_else_are_a_yes_or_a_no() {
    for (message, said) in [
        ("YES!", Some(true)),
        ("ok, go ahead; thanks", Some(true)),
        ("please do it", Some(true)),
        ("sì", Some(true)),
        ("no.\nno!", Some(false)),
        ("no thank you", Some(false)),
        ("yes and no", None),
        ("yes please book three days", None),
        ("not yes", None),
        ("yes?", None),
        ("yesterday", None),
        ("nothing", None),
        ("no problem", None),
        ("danken", None),
        ("approve plan 2", None),
        ("…", None),
    ] {
        assert_eq!(consent::said(message), said, "{message:?}");
    }
}
