//! Which plans and writes need approval under which policy, and what exactly an approval covers.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::approval::required_call_approval;
use super::super::{
    consent, lapsed_approval, plan_problems_before_start, plan_refused, questions_to_afford,
    required_plan_approval, supplied_plan,
};
use crate::llm::budget::{BudgetRefusal, BudgetScope};
use crate::plan::{Plan, PlanStatus, Step, TaskId};
use crate::run::{
    ApprovalPolicy, ApprovalScope, ApprovalSubject, Decision, Effect, Event, PlanCause, PlanMade, PlanMaker,
    RequestOptions, RunId, RunQueued, RunStarted, RunState, Settings,
};
use crate::scene::{Catalogue, Scene, SceneTool, ToolApproval, ToolBuilder};
use crate::tools::{ToolContext, native};

pub const EVERY: [ApprovalScope; 3] = [ApprovalScope::Declared, ApprovalScope::Writes, ApprovalScope::Never];

fn tool(name: &str, what: &str, effect: Effect) -> ToolBuilder {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let does = native(|_: Value, _: ToolContext| async { Ok(Value::Null) });
    SceneTool::dynamic(name, what, effect, schema, does)
}

/// One scene that looks and books; `scene` and `own` declare what needs approval.
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

pub fn policy(plans: ApprovalScope, calls: ApprovalScope) -> Settings {
    Settings { approval: ApprovalPolicy { plans, calls, by_oneself: true }, ..Settings::default() }
}

pub fn plan(purpose: &str, tools: &[&str]) -> Plan {
    let step = Step {
        step_number: 1,
        scene_name: "A".to_owned(),
        purpose: purpose.to_owned(),
        expected_tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        ..Step::default()
    };
    Plan { needs_execution: true, reasoning: String::new(), steps: vec![step], ..Plan::default() }
}

pub fn request() -> RunQueued {
    RunQueued::new("book it", "keysersoze", TaskId(uuid::Uuid::from_u128(2)))
}

pub fn apply(state: &mut RunState, event: Event) {
    state.apply(&event).unwrap();
}

/// A run whose first plan is being made.
pub fn planning(queued: RunQueued, settings: Settings) -> RunState {
    let mut state = RunState::new(RunId(uuid::Uuid::from_u128(1)));
    apply(&mut state, Event::RunQueued(queued));
    let started =
        RunStarted { settings, ..RunStarted::new("2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap()) };
    apply(&mut state, Event::RunStarted(started));
    apply(&mut state, Event::Planning { version: 1, cause: PlanCause::Request });
    state
}

/// A run whose plan is in force, advanced as far as possible without input.
pub fn in_force(settings: Settings, catalogue: &Catalogue, plan: Plan) -> RunState {
    let mut state = planning(RunQueued { plan: Some(plan), ..request() }, settings);
    let made = supplied_plan(&state, catalogue, 1);
    apply(&mut state, made);
    settle(&mut state);
    state
}

/// Applies what the state machine records by itself.
pub fn settle(state: &mut RunState) {
    while let Some(crate::run::Action::Record { event }) = state.next().first().cloned() {
        apply(state, event);
    }
}

fn why(settings: Settings, catalogue: &Catalogue, maker: PlanMaker, tools: &[&str]) -> Option<Vec<String>> {
    let state = planning(request(), settings);
    let made = PlanMade::new(1, PlanCause::Request, maker, plan("book it", tools));
    required_plan_approval(&state, catalogue, &made).map(|needed| needed.why)
}

#[test]
fn plan_approval_follows_scene_tool_and_policy() {
    use ToolApproval::{Call, None as Nothing, Plan, Required};
    for scene in [Nothing, Plan, Call, Required] {
        for own in [None, Some(Nothing), Some(Plan), Some(Call), Some(Required)] {
            let catalogue = catalogue(scene, own, "Books.");
            for policy_plans in EVERY {
                let settings = policy(policy_plans, ApprovalScope::Declared);
                let declared = matches!(own.unwrap_or(scene), Plan | Required);
                let asked = match policy_plans {
                    ApprovalScope::Declared => declared,
                    ApprovalScope::Writes => true,
                    ApprovalScope::Never => false,
                };
                let told = why(settings.clone(), &catalogue, PlanMaker::Deterministic, &["look", "book"]);
                let expected = asked.then(|| vec!["step 1: book of A writes".to_owned()]);
                assert_eq!(told, expected, "{scene:?} {own:?} {policy_plans:?}");
                assert_eq!(why(settings, &catalogue, PlanMaker::Deterministic, &["look"]), None);
            }
        }
    }
}

#[test]
fn write_approval_follows_scene_tool_and_policy() {
    use ToolApproval::{Call, None as Nothing, Plan, Required};
    for scene in [Nothing, Plan, Call, Required] {
        for own in [None, Some(Nothing), Some(Plan), Some(Call), Some(Required)] {
            let catalogue = catalogue(scene, own, "Books.");
            let tool = |name: &str| catalogue.get("A").unwrap().tool(name).unwrap().clone();
            for (calls, by_rules) in EVERY.into_iter().flat_map(|calls| [(calls, false), (calls, true)]) {
                let state = planning(request(), policy(ApprovalScope::Declared, calls));
                let needs = |tool| {
                    required_call_approval(
                        &state,
                        &plan("book it", &["book"]).steps[0],
                        &tool,
                        &json!({"n": 1}),
                        0,
                        by_rules,
                    )
                };
                let asked = match calls {
                    ApprovalScope::Declared => by_rules || matches!(own.unwrap_or(scene), Call | Required),
                    ApprovalScope::Writes => true,
                    ApprovalScope::Never => false,
                };
                assert_eq!(needs(tool("book")).is_some(), asked, "{scene:?} {own:?} {calls:?} {by_rules}");
                assert_eq!(needs(tool("look")), None);
            }
        }
    }
}

#[test]
fn requested_and_changed_plans_need_approval_but_fallback_plans_do_not() {
    let catalogue = catalogue(ToolApproval::None, None, "Books.");
    // Its reads need no approval, and each of its writes needs a separate one.
    assert_eq!(why(Settings::default(), &catalogue, PlanMaker::Fallback, &["look", "book"]), None);
    let writes = policy(ApprovalScope::Writes, ApprovalScope::Declared);
    assert_eq!(why(writes, &catalogue, PlanMaker::Fallback, &["book"]).unwrap().len(), 1);

    let needs = |queued: RunQueued, cause| {
        let state = planning(queued, policy(ApprovalScope::Never, ApprovalScope::Never));
        let made = PlanMade::new(1, cause, PlanMaker::Person, plan("look", &["look"]));
        required_plan_approval(&state, &catalogue, &made).map(|needed| needed.why)
    };
    let asks = || RunQueued {
        options: RequestOptions { require_approval: true, ..RequestOptions::default() },
        ..request()
    };
    assert_eq!(needs(asks(), PlanCause::Request).unwrap(), ["the request asks for it"]);
    assert_eq!(needs(request(), PlanCause::Request), None);
    for change in [PlanCause::Edit, PlanCause::Feedback] {
        assert_eq!(needs(request(), change).unwrap(), ["the plan was changed"]);
    }
    assert_eq!(
        needs(
            RunQueued { options: RequestOptions { dry_run: true, ..asks().options }, ..asks() },
            PlanCause::Request
        ),
        None
    );
    assert_eq!(needs(RunQueued { plan_only: true, ..asks() }, PlanCause::Request), None);
}

#[test]
fn only_plans_with_writes_have_to_be_affordable_before_they_begin() {
    let scenes = catalogue(ToolApproval::None, None, "Books.");
    let questions = |tools: &[&str], reads_cache| {
        let state = in_force(Settings::default(), &scenes, plan("book it", tools));
        questions_to_afford(&state, &scenes, reads_cache).map(|questions| questions.len())
    };
    assert_eq!(questions(&["look", "book"], false), Some(1));
    assert_eq!(questions(&["look"], false), None);
    assert_eq!(questions(&["look", "book"], true), None);
    let options = RequestOptions { dry_run: true, ..RequestOptions::default() };
    let queued = RunQueued { plan: Some(plan("book it", &["book"])), options, ..request() };
    let mut dry = planning(queued, Settings::default());
    let made = supplied_plan(&dry, &scenes, 1);
    apply(&mut dry, made);
    assert_eq!(questions_to_afford(&dry, &scenes, false), None);
}

#[test]
fn approval_covers_version_steps_and_tool_definitions() {
    let scenes = catalogue(ToolApproval::Required, None, "Books.");
    let other = catalogue(ToolApproval::Required, None, "Books at once.");
    let state = planning(request(), Settings::default());
    let hash = |catalogue: &Catalogue, version, plan: Plan| {
        let made = PlanMade::new(version, PlanCause::Request, PlanMaker::Deterministic, plan);
        required_plan_approval(&state, catalogue, &made).unwrap().hash
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
        required_call_approval(&state, &plan("book it", &["book"]).steps[0], tool, &json!({"n": n}), 0, false)
            .unwrap()
            .hash
    };
    assert_eq!(call(&scenes, 1.0), call(&scenes, 1e0));
    assert_ne!(call(&scenes, 1.0), call(&scenes, 2.0));
    assert_ne!(call(&scenes, 1.0), call(&other, 1.0));
}

#[test]
fn approval_lapses_when_a_covered_tool_changes_or_disappears() {
    let scenes = catalogue(ToolApproval::Required, None, "Books.");
    let other = catalogue(ToolApproval::Required, None, "Books at once.");
    let mut state = in_force(Settings::default(), &scenes, plan("book it", &["look", "book"]));
    assert_eq!(state.plan_status, PlanStatus::PendingApproval);
    assert_eq!(lapsed_approval(&state, &scenes), None);
    let before = state.approvals[&1].needed.hash.clone();
    for (now, told) in [
        (&other, vec!["~ A.book has another definition now"]),
        (&Catalogue::default(), vec!["- A.book is not there any more", "- A.look is not there any more"]),
    ] {
        let Some(event @ Event::ApprovalLapsed { approval: 1, .. }) = lapsed_approval(&state, now) else {
            panic!()
        };
        let Event::ApprovalLapsed { why, needed, .. } = &event else { panic!() };
        assert_eq!(why, &told);
        assert_ne!(needed.hash, before);
        assert_eq!(state.check(&event), Ok(()));
    }
    // A granted approval lapses as well, and the new one covers the current definitions.
    let (matter, decision) = (ApprovalSubject::Plan { version: 1 }, Decision::Yes { hold: true });
    apply(
        &mut state,
        Event::Decided { approval: 1, matter, decision, by: "b".to_owned(), note: None, word: None },
    );
    let event = lapsed_approval(&state, &other).unwrap();
    apply(&mut state, event);
    settle(&mut state);
    assert!(state.approvals[&1].lapsed && state.approvals[&2].is_open());
    assert_eq!(lapsed_approval(&state, &other), None);
    // A refusal stays, even if its tools change.
    let decision = Decision::No;
    apply(
        &mut state,
        Event::Decided { approval: 2, matter, decision, by: "b".to_owned(), note: None, word: None },
    );
    assert_eq!(lapsed_approval(&state, &scenes), None);
}

/// A run whose plan is to look and book.
fn run_with_plan() -> RunState {
    let mut state = planning(request(), policy(ApprovalScope::Never, ApprovalScope::Never));
    let made = PlanMade::new(1, PlanCause::Request, PlanMaker::Fallback, plan("book it", &["look", "book"]));
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
    state
}

/// The scene of that plan without the tool that books.
fn only_looks() -> Catalogue {
    let scene = Scene::builder("A").description("A").instructions("Do it.").example("do", "look");
    Catalogue::new([scene.tool(tool("look", "Looks.", Effect::Read)).build().unwrap()])
}

#[test]
fn preflight_detects_a_plan_that_cannot_be_executed() {
    let (state, scenes) = (run_with_plan(), catalogue(ToolApproval::None, None, "Books."));
    let codes = |catalogue: &Catalogue| -> Vec<String> {
        plan_problems_before_start(&state, catalogue).into_iter().map(|problem| problem.code).collect()
    };
    assert_eq!(codes(&scenes), Vec::<String>::new());
    assert_eq!(codes(&Catalogue::default()), ["preflight.scene"]);
    assert_eq!(codes(&only_looks()), ["preflight.tool"]);
}

#[test]
fn plan_beyond_the_budget_may_be_tried_later_unless_something_else_is_wrong() {
    let (state, scenes) = (run_with_plan(), catalogue(ToolApproval::None, None, "Books."));
    let refused = |catalogue: &Catalogue, refusal| {
        let event = plan_refused(&state, catalogue, refusal, Timestamp::UNIX_EPOCH)?;
        let Event::PlanRefused { problems, retry_after_ms, .. } = event else { panic!("{event:?}") };
        let codes: Vec<String> = problems.into_iter().map(|problem| problem.code).collect();
        Some((codes.join(" "), retry_after_ms.is_some()))
    };
    let over_budget = BudgetRefusal {
        scope: BudgetScope::Run,
        of: "r".to_owned(),
        limit: 10,
        spent: 0,
        reserved: 9,
        wanted: 5,
        renews: None,
    };
    assert_eq!(refused(&scenes, None), None);
    assert_eq!(refused(&scenes, Some(&over_budget)), Some(("budget.exceeded".to_owned(), true)));
    let both = Some(("preflight.tool budget.exceeded".to_owned(), false));
    assert_eq!(refused(&only_looks(), Some(&over_budget)), both);
}

#[test]
fn only_unambiguous_words_are_consent() {
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
        assert_eq!(consent::parse_consent(message), said, "{message:?}");
    }
}
