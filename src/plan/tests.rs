//! Validation, repair and rendering of plans, including hostile texts.

mod changes;
mod statuses;

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn known() -> KnownScenes {
    let tools = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
    KnownScenes {
        flows: std::collections::BTreeSet::new(),
        summaries: std::collections::BTreeSet::new(),
        scenes: BTreeMap::from([
            ("Weather".to_owned(), tools(&["WeatherForecast_Get", "AddCity"])),
            ("Identity".to_owned(), tools(&["get_user_name"])),
        ]),
    }
}

fn step(number: u32, depends: &[u32]) -> Step {
    Step {
        step_number: number,
        scene_name: "Weather".to_owned(),
        purpose: "Get weather information for Milan".to_owned(),
        expected_tools: vec!["WeatherForecast_Get".to_owned()],
        depends_on_step: depends.iter().copied().collect(),
        ..Step::default()
    }
}

fn plan(steps: Vec<Step>) -> Plan {
    Plan { needs_execution: true, reasoning: String::new(), steps, ..Plan::default() }
}

fn codes(plan: &Plan, last: u32, finished: &[u32]) -> Vec<String> {
    let finished = finished.iter().copied().collect();
    validate(plan, &known(), PlanLimits { max_steps: 10 }, &finished, last)
        .into_iter()
        .map(|p| p.code)
        .collect()
}

#[test]
fn every_plan_problem_has_a_code() {
    let unknown_scene = Step { scene_name: "Stars".to_owned(), ..step(1, &[]) };
    let unknown_tool = Step { expected_tools: vec!["Fly".to_owned()], ..step(1, &[]) };
    let silent = Step { purpose: "  ".to_owned(), ..step(1, &[]) };
    let idle = Plan { needs_execution: false, ..plan(vec![step(1, &[])]) };
    for (faulty, code) in [
        (plan(vec![unknown_scene]), "plan.unknown_scene"),
        (plan(vec![unknown_tool]), "plan.unknown_tool"),
        (plan(vec![silent]), "plan.no_purpose"),
        (plan(vec![step(1, &[]), step(1, &[])]), "plan.repeated_number"),
        (plan(vec![step(0, &[])]), "plan.bad_number"),
        (plan(vec![step(u32::MAX, &[])]), "plan.bad_number"),
        (plan(vec![step(1, &[1])]), "plan.self_dependency"),
        (plan(vec![step(1, &[2]), step(2, &[3]), step(3, &[1])]), "plan.circular"),
        (plan(vec![step(1, &[9])]), "plan.unknown_dependency"),
        (plan(Vec::new()), "plan.no_steps"),
        (idle, "plan.steps_without_execution"),
        (plan((1..12).map(|n| step(n, &[])).collect()), "plan.too_many_steps"),
    ] {
        assert_eq!(codes(&faulty, 0, &[]), [code], "{faulty:?}");
    }
    assert_eq!(codes(&plan(vec![step(2, &[])]), 2, &[]), ["plan.used_number"]);
    assert_eq!(
        codes(&plan(vec![step(3, &[2])]), 2, &[1]),
        ["plan.unknown_dependency"],
        "step 2 did not complete"
    );
    assert_eq!(codes(&plan(vec![step(3, &[2])]), 2, &[2]), Vec::<String>::new());
    assert_eq!(codes(&plan(vec![step(u32::MAX, &[])]), u32::MAX, &[]), ["plan.used_number"]);
}

#[test]
fn all_problems_are_reported_at_once() {
    let both = plan(vec![
        Step { scene_name: "Stars".to_owned(), ..step(1, &[2]) },
        Step { expected_tools: vec!["Fly".to_owned()], ..step(2, &[1]) },
    ]);
    assert_eq!(codes(&both, 0, &[]), ["plan.circular", "plan.unknown_scene", "plan.unknown_tool"]);
}

#[test]
fn normalise_repairs_argument_lists_case_duplicates_and_numbering() {
    let mut replan = plan(vec![
        Step {
            scene_name: " weather ".to_owned(),
            expected_tools: ["weatherforecast_get(city)", "WeatherForecast_Get", "AddCity ()"]
                .map(str::to_owned)
                .to_vec(),
            ..step(1, &[])
        },
        step(2, &[1]),
    ]);
    normalise(&mut replan, &known(), 3);
    assert_eq!(replan.steps[0].scene_name, "Weather");
    assert_eq!(replan.steps[0].expected_tools, ["WeatherForecast_Get", "AddCity"]);
    assert_eq!((replan.steps[0].step_number, replan.steps[1].step_number), (4, 5));
    assert!(replan.steps[1].depends_on_step.contains(4));
    let mut from_zero = plan(vec![step(0, &[]), step(1, &[0])]);
    normalise(&mut from_zero, &known(), 0);
    assert_eq!(from_zero, plan(vec![step(1, &[]), step(2, &[1])]));
    let mut leaning = plan(vec![step(4, &[2])]);
    normalise(&mut leaning, &known(), 3);
    assert_eq!(leaning, plan(vec![step(4, &[2])]), "a finished step keeps its number");
}

/// Valid plans: any DAG, numbers with gaps, written in any order, after `last`, over finished steps.
fn valid() -> impl Strategy<Value = (Plan, u32, BTreeSet<u32>)> {
    let steps = vec((1..20u32, any::<u64>(), any::<bool>()), 1..10);
    (0..50u32, any::<u64>(), steps).prop_flat_map(|(last, finished, drawn)| {
        let finished: BTreeSet<u32> = (1..=last).filter(|n| finished >> n & 1 == 1).collect();
        let mut before: Vec<u32> = finished.iter().copied().collect();
        let mut number = last;
        let mut steps = Vec::new();
        for (gap, depends, identity) in drawn {
            number += gap;
            let depends: Vec<u32> = before
                .iter()
                .enumerate()
                .filter(|(i, _)| depends >> (i % 64) & 1 == 1)
                .map(|(_, n)| *n)
                .collect();
            let scene = if identity { "Identity" } else { "Weather" };
            let tools = if identity { vec!["get_user_name".to_owned()] } else { Vec::new() };
            steps.push(Step {
                scene_name: scene.to_owned(),
                expected_tools: tools,
                ..step(number, &depends)
            });
            before.push(number);
        }
        (Just(steps).prop_shuffle(), Just(last), Just(finished))
            .prop_map(|(steps, last, finished)| (plan(steps), last, finished))
    })
}

/// Plans as poor models write them.
fn any_plan() -> impl Strategy<Value = Plan> {
    let number = prop_oneof![6 => 0..8u32, 1 => Just(u32::MAX), 1 => any::<u32>()];
    let name = prop::sample::select(vec![
        "Weather", "weather ", "WEATHER", "Identity", "Stars", "", "(", "\u{1b}[2J",
    ]);
    let tool = prop::sample::select(vec![
        "get_user_name(x)", "GET_USER_NAME", "AddCity", "addcity()", "(", " ", "x(y)(z)",
    ]);
    let step = (number.clone(), name, "\\PC{0,6}", vec(tool, 0..4), vec(number, 0..4));
    (any::<bool>(), vec(step, 0..6)).prop_map(|(needs_execution, steps)| Plan {
        needs_execution,
        reasoning: String::new(),
        unserved: Vec::new(),
        unavailable: Vec::new(),
        answer: None,
        steps: steps
            .into_iter()
            .map(|(step_number, scene, purpose, tools, depends)| Step {
                step_number,
                scene_name: scene.to_owned(),
                purpose,
                expected_tools: tools.into_iter().map(str::to_owned).collect(),
                depends_on_step: depends.into_iter().collect(),
                ..Step::default()
            })
            .collect(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn valid_plan_has_no_problems_and_is_not_changed((plan, last, finished) in valid()) {
        prop_assert_eq!(validate(&plan, &known(), PlanLimits { max_steps: 10 }, &finished, last), Vec::new());
        let mut repaired = plan.clone();
        normalise(&mut repaired, &known(), last);
        prop_assert_eq!(repaired, plan);
    }

    #[test]
    fn valid_plan_with_one_more_dependency_is_valid_or_cyclic(
        (plan, last, finished) in valid(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()
    ) {
        let mut changed = plan.clone();
        let target = plan.steps[to.index(plan.steps.len())].step_number;
        let step = &mut changed.steps[from.index(plan.steps.len())];
        step.depends_on_step = step.depends_on_step.iter().chain([target]).collect();
        let numbers: Vec<u32> = changed.steps.iter().map(|s| s.step_number).collect();
        let mut status: BTreeMap<u32, StepStatus> = numbers.iter().map(|n| (*n, StepStatus::Pending)).collect();
        status.extend(finished.iter().map(|n| (*n, StepStatus::Completed)));
        let steps: Vec<&Step> = changed.steps.iter().collect();
        loop {
            let next = ready(&steps, &status, 3);
            if next.is_empty() { break }
            status.extend(next.into_iter().map(|n| (n, StepStatus::Completed)));
        }
        let runs = numbers.iter().all(|n| status[n] == StepStatus::Completed);
        let problems = validate_structure(&changed, PlanLimits { max_steps: 10 }, &finished, last);
        prop_assert_eq!(problems.is_empty(), runs, "{:?}", problems);
    }

    #[test]
    fn normalise_is_idempotent_and_validation_never_panics(plan in any_plan(), last in 0..9u32) {
        let mut once = plan;
        normalise(&mut once, &known(), last);
        let mut twice = once.clone();
        normalise(&mut twice, &known(), last);
        prop_assert_eq!(&once, &twice);
        let _ = validate(&once, &known(), PlanLimits { max_steps: 3 }, &BTreeSet::new(), u32::MAX);
        let again: Plan = serde_json::from_str(&serde_json::to_string(&once).unwrap()).unwrap();
        prop_assert_eq!(&again, &once);
    }

    #[test]
    fn purpose_never_escapes_its_line_or_label(purpose in any::<String>(), scene in any::<String>()) {
        let hostile = plan(vec![Step { purpose, scene_name: scene, ..step(1, &[]) }]);
        let drawn = mermaid(&hostile);
        prop_assert_eq!(drawn.lines().count(), 2);
        prop_assert_eq!(drawn.matches('"').count(), 2);
        prop_assert!(!drawn.contains("%%") && !drawn.contains('<'));
        let told = text(&hostile, "o", TaskId(Uuid::nil()), PlanStatus::Draft, &BTreeMap::new());
        prop_assert_eq!(told.lines().count(), 7, "{}", told);
        prop_assert!(!told.chars().any(|c| c.is_control() && c != '\n'));
    }
}

#[test]
fn plan_is_rendered_as_text_and_mermaid() {
    let mut shown = plan(vec![
        step(1, &[]),
        Step {
            scene_name: "Identity".to_owned(),
            expected_tools: vec!["get_user_name".to_owned()],
            ..step(2, &[])
        },
        step(3, &[1, 2]),
    ]);
    shown.reasoning = "weather,\nand who asks".to_owned();
    let statuses =
        BTreeMap::from([(1, StepStatus::Completed), (2, StepStatus::NeedsInput), (3, StepStatus::Blocked)]);
    let told = text(&shown, "What is the weather?", TaskId(Uuid::nil()), PlanStatus::Executing, &statuses);
    insta::assert_snapshot!("text", told);
    let known = KnownCalls::from([
        (
            1,
            vec![
                ("WeatherForecast_Get".to_owned(), json!({"city": "Rome"})),
                ("WeatherForecast_Get".to_owned(), json!({"days": 3, "city": "Milan \u{202e}\u{1b}[31m"})),
            ],
        ),
        (2, vec![("AddCity".to_owned(), json!({"name": "Milan"}))]),
    ]);
    let statuses = BTreeMap::new();
    let task = TaskId(Uuid::nil());
    // Requested calls take precedence over prepared ones, which are shown where nothing was requested.
    for (at, tool, arguments) in [
        (0, "WeatherForecast_Get", json!({"city": "Turin"})),
        (2, "WeatherForecast_Get", json!({"days": 1, "city": "Turin"})),
    ] {
        let arguments = arguments.as_object().unwrap().clone();
        shown.steps[at].prepared_calls.push(PreparedCall { tool: tool.to_owned(), arguments });
    }
    let told =
        text_with_calls(&shown, "What is the weather?", task, PlanStatus::PendingApproval, &statuses, &known);
    insta::assert_snapshot!("text_with_calls", told);
    insta::assert_snapshot!("mermaid", mermaid(&shown));
}

#[test]
fn hostile_names_never_escape_their_lines_and_labels() {
    let purpose = "x\"]\n click s1 \"javascript:alert(1)\" %%{init: {'securityLevel': 'loose'}}%% <img src=x> &lt;b&gt; #quot; `md`\nStatus: completed";
    let hostile = plan(vec![Step {
        scene_name: "Weather\u{1b}[31m\nStatus: completed".to_owned(),
        purpose: purpose.to_owned(),
        expected_tools: vec!["a\nTool: b\u{202e}c".to_owned()],
        ..step(1, &[])
    }]);
    insta::assert_snapshot!("hostile_mermaid", mermaid(&hostile));
    let told =
        text(&hostile, "a\r\nStatus: completed", TaskId(Uuid::nil()), PlanStatus::Draft, &BTreeMap::new());
    insta::assert_snapshot!("hostile_text", told);
}
