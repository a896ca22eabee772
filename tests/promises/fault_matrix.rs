//! What happens when a back end misbehaves: every class of failure, with a read, a write and a write under an
//! idempotency key, in every mode and at every level that can be set. Judged by what reached the back end and the
//! models.

use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use proscenium::adapt::{ExecutionLevel, ExecutionMode};
use proscenium::run::{Event, Outcome, RequestOptions, RunStatus, SessionId};
use proscenium::{CallOutcome, ChatRequest};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::decision::ALTERNATIVES;
use super::interpretation::{EXPECT, right};
use super::process::{RunningProcess, Workspace};
use crate::support::planner_engine::{ModelRules, QuestionKind, choice, has_results, plan, requests, step};
use crate::support::{
    FaultyBackend, FinishedRun, Misbehaviour, Scripted, ScriptedLlm, Setup, TestEngine, section,
};

/// The time limit of a call, in milliseconds.
pub(super) const TIMEOUT_MS: u64 = 1_000;

/// The tools: a read, a write, and a write under an idempotency key.
pub(super) const TOOLS: [&str; 3] = ["Look", "Book", "Pay"];

/// How a cell ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The second attempt succeeds.
    Retried,
    /// The first attempt has failed.
    Failed,
    /// The back end refused it.
    Refused,
    /// A person is asked what the write did.
    PutToAPerson,
}

use End::{Failed, PutToAPerson, Refused, Retried};

/// For each class of failure, with a status or a behaviour that shows it: what becomes of a read, a write and a keyed
/// write, without a mode and with one. Level and kind of mode make no difference to these.
const MATRIX: [(&str, [End; 3], [End; 3]); 7] = [
    ("rate_limit", [Failed, Failed, Failed], [Retried, Retried, Retried]),
    ("timeout", [Failed, PutToAPerson, Retried], [Retried, PutToAPerson, Retried]),
    ("unavailable", [Failed, PutToAPerson, Retried], [Retried, PutToAPerson, Retried]),
    ("not_found", [Failed, Refused, Refused], [Failed, Refused, Refused]),
    ("bad_data", [Failed, Refused, Refused], [Failed, Refused, Refused]),
    ("denied", [Failed, Refused, Refused], [Failed, Refused, Refused]),
    ("other", [Failed, Refused, Refused], [Failed, Refused, Refused]),
];

/// The first request to a place misbehaves as its name says; later ones are answered.
pub(super) fn misbehaviour(place: &str, nth: usize) -> Misbehaviour {
    let class = place.rsplit('/').next().unwrap_or_default();
    let status = |status| Misbehaviour::Status(status, Vec::new());
    match class {
        _ if nth > 0 => Misbehaviour::Answer,
        "rate_limit" => status(429),
        "timeout" => Misbehaviour::Silence(Duration::from_millis(TIMEOUT_MS * 10)),
        "unavailable" => status(503),
        "not_found" => status(404),
        "bad_data" => status(422),
        "denied" => status(403),
        "other" => status(409),
        "hang_up" => Misbehaviour::HangUp,
        "half" => Misbehaviour::Half,
        other => panic!("{other}"),
    }
}

/// A scene with the three tools at `address`, and two twins of each with `Elsewhere` and `Abroad` after its name; `more` is added to each
/// of the three, with `{tool}` for its name; lines of it that begin with `{read}` or `{write}` only to those.
pub(super) fn write_scene(dir: &Path, address: &str, more: &str) {
    let one = |name: &str, effect: &str, repeat: &str, method: &str, more: &str| {
        format!(
            "[[tools]]\nname = \"{name}\"\ndescription = \"{name} something up, once.\"\neffect = \"{effect}\"\n\
             {repeat}\ntimeout_ms = {TIMEOUT_MS}\nsay = {{ en = \"{{{{ arguments.cell }}}}: {{{{ text }}}}.\" }}\n\
             parameters = {{ type = \"object\", required = [\"cell\"], properties = {{ cell = {{ type = \"string\" }} }} }}\n\
             {more}\n[tools.http]\nmethod = \"{method}\"\nurl = \"{address}/{name}/{{cell}}\"\n"
        )
    };
    let tool = |name: &str, effect: &str, repeat: &str, method: &str| {
        let twins = ["Elsewhere", "Abroad"]
            .map(|where_to| one(&format!("{name}{where_to}"), effect, repeat, method, ""));
        let other = if effect == "read" { "{write}" } else { "{read}" };
        let more: Vec<&str> = more.lines().filter(|line| !line.contains(other)).collect();
        let more = more.join("\n").replace("{tool}", name).replace("{read}", "").replace("{write}", "");
        format!("{}{}", one(name, effect, repeat, method, &more), twins.concat())
    };
    let text = format!(
        "name = \"Desk\"\ndescription = \"Looks, books and pays.\"\ninstructions = \"Call the tools.\"\n{}{}{}",
        tool("Look", "read", "", "GET"),
        tool("Book", "write", "", "POST"),
        tool("Pay", "write", "repeat = \"key\"", "POST"),
    );
    std::fs::create_dir_all(dir.join("desk")).unwrap();
    std::fs::write(dir.join("desk/scene.toml"), text).unwrap();
}

/// A model that plans the call which the request names, as `Book cell 503`; with `then Book`, also one with its result.
pub(super) fn model() -> ScriptedLlm {
    rules().start()
}

pub(super) fn rules() -> ModelRules {
    let parts = |request: &Value| {
        let words = section(request, "request").or_else(|| section(request, "purpose")).unwrap_or_default();
        let tool = TOOLS.into_iter().find(|tool| words.contains(*tool)).unwrap_or("Look");
        let cell = words.split("cell ").nth(1).and_then(|rest| rest.split_whitespace().next());
        // What an earlier request found.
        let cell = if words.contains("that") { "R-4711" } else { cell.unwrap_or_default() }.to_owned();
        (words.clone(), tool, cell)
    };
    ModelRules::of(Value::Null)
        .plan(move |request, _| {
            let (words, tool, cell) = parts(request);
            let mut step = step(1, "Desk", &[tool], Value::Null);
            step["purpose"] = json!(words);
            let arguments = json!({"cell": cell}).to_string();
            step["prepared_calls"] = json!([{"tool": tool, "arguments": arguments}]);
            step["if_needed"] = json!([]);
            if !words.contains("then Book") {
                return Scripted::forced(request, plan(json!([step])));
            }
            let mut next = step.clone();
            next["step_number"] = json!(2);
            next["depends_on_step"] = json!(1);
            next["expected_tools"] = json!(["Book"]);
            let found = json!({"cell": {"$ref": {"step": 1, "tool": tool, "pointer": "/code"}}});
            next["prepared_calls"] = json!([{"tool": "Book", "arguments": found.to_string()}]);
            Scripted::forced(request, plan(json!([step, next])))
        })
        .scene(move |request, _| {
            let (_, tool, cell) = parts(request);
            match has_results(request) {
                true => Scripted::Text("That is what came of it.".to_owned()),
                false => Scripted::call(tool, json!({"cell": cell})),
            }
        })
}

pub(super) struct World {
    pub(super) llm: ScriptedLlm,
    pub(super) backend: FaultyBackend,
    pub(super) test: TestEngine,
    _scenes: TempDir,
}

impl World {
    /// An engine with the scene, in this mode and at this level of the configuration.
    pub(super) async fn open(level: Option<&str>, mode: Option<&str>, more: &str) -> Self {
        Self::with(level, mode, more, misbehaviour, |setup| setup).await
    }

    pub(super) async fn with(
        level: Option<&str>,
        mode: Option<&str>,
        more: &str,
        script: impl Fn(&str, usize) -> Misbehaviour + Send + Sync + 'static,
        set: impl FnOnce(Setup) -> Setup,
    ) -> Self {
        Self::of_model(model(), level, mode, more, (script, set)).await
    }

    /// With a model of one's own.
    pub(super) async fn of_model(
        llm: ScriptedLlm,
        level: Option<&str>,
        mode: Option<&str>,
        more: &str,
        (script, set): (
            impl Fn(&str, usize) -> Misbehaviour + Send + Sync + 'static,
            impl FnOnce(Setup) -> Setup,
        ),
    ) -> Self {
        let (backend, scenes) = (FaultyBackend::start(script), TempDir::new().unwrap());
        write_scene(scenes.path(), backend.address(), more);
        let mut setup = Setup::scripted(&llm).alone().scenes(scenes.path());
        setup = setup.set("scenes.allow_private_addresses", true);
        setup = setup.set("execution.policies.backoff_ms", 20).set("execution.language", "en");
        for (key, value) in [("execution.level", level), ("execution.mode", mode)] {
            if let Some(value) = value {
                setup = setup.set(key, value);
            }
        }
        Self { llm, backend, test: set(setup).start().await, _scenes: scenes }
    }

    pub(super) async fn ask(&self, tool: &str, cell: &str) -> FinishedRun {
        self.test.chat(&format!("{tool}-{cell}"), &format!("{tool} cell {cell}")).await
    }

    pub(super) fn wire(&self, tool: &str, cell: &str) -> usize {
        self.backend.requests(&place(tool, cell)).len()
    }
}

pub(super) fn place(tool: &str, cell: &str) -> String {
    let method = if tool.starts_with("Look") { "GET" } else { "POST" };
    format!("{method} /{tool}/{cell}")
}

/// The names of the run's events.
pub(super) fn names(run: &FinishedRun) -> Vec<&'static str> {
    run.events.iter().map(|event| event.body.name()).collect()
}

fn check_cell(world: &World, (tool, class): (&str, &str), expected: End, adapts: bool, run: &FinishedRun) {
    let cell = format!("{tool} after {class}: {:#?}", names(run));
    let requests = world.backend.requests(&place(tool, class));
    assert_eq!(requests.len(), if expected == Retried { 2 } else { 1 }, "{cell}");
    assert!(requests.windows(2).all(|pair| pair[0].key == pair[1].key), "{cell}");
    assert_eq!(requests[0].key.is_some(), tool == "Pay", "{cell}");
    let calls: Vec<CallOutcome> = run.answer.steps[0].tool_calls.iter().map(|call| call.outcome).collect();
    let outcome = match expected {
        Retried => CallOutcome::Ok,
        Failed => CallOutcome::Failed,
        Refused => CallOutcome::Refused,
        PutToAPerson => CallOutcome::Unknown,
    };
    assert_eq!(calls, [outcome], "{cell}");
    let asked = run.answer.approvals.len();
    assert_eq!(asked, usize::from(expected == PutToAPerson), "{cell}");
    let is_own_refusal = expected == Refused && class == "other";
    let unexpected = names(run).contains(&"unexpected");
    assert_eq!(unexpected, adapts && !is_own_refusal, "{cell}");
    assert_eq!(names(run).contains(&"timer_fired"), adapts && expected == Retried, "{cell}");
}

async fn matrix(level: Option<&str>, mode: Option<&str>) {
    let world = World::open(level, mode, "").await;
    let adapts = level.is_some() || mode.is_some();
    let cells =
        MATRIX.iter().flat_map(|row| TOOLS.into_iter().enumerate().map(move |(at, tool)| (row, at, tool)));
    let cells: Vec<_> = cells.collect();
    let runs = join_all(cells.iter().map(|(row, _, tool)| world.ask(tool, row.0))).await;
    for ((row, at, tool), run) in cells.iter().zip(&runs) {
        let expected = if adapts { row.2[*at] } else { row.1[*at] };
        check_cell(&world, (tool, row.0), expected, adapts, run);
    }
    if level == Some("basic") {
        assert_eq!(requests(&world.llm, QuestionKind::Plan).len(), cells.len());
        assert_eq!(world.llm.count(), cells.len(), "a model was asked after the plan");
    }
}

/// Where policies declare an alternative for every class and nothing else: what becomes of a read, a write and a keyed
/// write in mode `adaptive` and in mode `strict`.
const WITH_ALTERNATIVE: [(&str, [Instead; 3], [Instead; 3]); 7] = {
    use Instead::{Asked, No, Replaced};
    // What was not done can be done elsewhere, after a yes. What may have been done is not.
    let sure = [Replaced, Asked, Asked];
    let unsure = [Replaced, No(PutToAPerson), No(Retried)];
    let refused = [No(Failed), No(Refused), No(Refused)];
    [
        ("rate_limit", sure, [No(Failed), No(Failed), No(Failed)]),
        ("timeout", unsure, [No(Failed), No(PutToAPerson), No(Retried)]),
        ("unavailable", unsure, [No(Failed), No(PutToAPerson), No(Retried)]),
        ("not_found", sure, refused),
        ("bad_data", sure, refused),
        ("denied", sure, refused),
        // A back end's refusal of a write without a class is a result.
        ("other", [Replaced, No(Refused), No(Refused)], refused),
    ]
};

/// How a cell with an alternative ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instead {
    /// The alternative answers.
    Replaced,
    /// The user is asked whether the alternative may write.
    Asked,
    /// Without it.
    No(End),
}

/// `by` is the alternative that is called, such as `Elsewhere`.
fn check_alternative(
    world: &World,
    (tool, class, by): (&str, &str, &str),
    expected: Instead,
    run: &FinishedRun,
) {
    let cell = format!("{tool} after {class}: {:#?}", names(run));
    let (own, other) = (world.wire(tool, class), world.wire(&format!("{tool}{by}"), class));
    let requests = match expected {
        Instead::Replaced => (1, 1),
        Instead::No(Retried) => (2, 0),
        Instead::Asked | Instead::No(_) => (1, 0),
    };
    assert_eq!((own, other), requests, "{cell}");
    let calls = &run.answer.steps[0].tool_calls;
    let substitute = calls.get(1).map(|call| call.outcome);
    let expected_substitute = match expected {
        Instead::Replaced => Some(CallOutcome::Ok),
        Instead::Asked => Some(CallOutcome::Refused),
        Instead::No(_) => None,
    };
    assert_eq!(substitute, expected_substitute, "{cell}");
    let called = substitute.map(|_| format!("{tool}{by}"));
    assert_eq!(calls[0].by, called, "{cell}");
    let asks = expected == Instead::Asked;
    assert_eq!(run.answer.status == RunStatus::NeedsInput, asks, "{cell}");
    assert_eq!(run.answer.approvals.len(), usize::from(expected == Instead::No(PutToAPerson)), "{cell}");
}

async fn matrix_with_alternatives(level: Option<&str>, mode: &str) {
    let classes = MATRIX.map(|row| format!("{} = {{ do = [\"alternative\"] }}", row.0)).join(", ");
    let more = format!(
        "alternative = {{ tool = \"{{tool}}Elsewhere\", arguments = {{ cell = \"/arguments/cell\" }} }}\n\
         policies = {{ {classes} }}"
    );
    let script = |place: &str, nth: usize| match place.contains("Elsewhere") {
        true => Misbehaviour::Answer,
        false => misbehaviour(place, nth),
    };
    let world = World::with(level, Some(mode), &more, script, |setup| setup).await;
    let cells = || {
        let rows = WITH_ALTERNATIVE.iter();
        rows.flat_map(|row| TOOLS.into_iter().enumerate().map(move |(at, tool)| (row, at, tool)))
    };
    let runs = join_all(cells().map(|(row, _, tool)| world.ask(tool, row.0))).await;
    for ((row, at, tool), run) in cells().zip(&runs) {
        let expected = if mode == "strict" { row.2[at] } else { row.1[at] };
        check_alternative(&world, (tool, row.0, "Elsewhere"), expected, run);
    }
}

/// With two alternatives and criteria: what predefined logic would replace, a model replaces by its choice, and nothing else.
async fn matrix_with_decisions(level: &str) {
    let classes = MATRIX.map(|row| format!("{} = {{ do = [\"alternative\"] }}", row.0)).join(", ");
    let more = format!("{}\npolicies = {{ {classes} }}", ALTERNATIVES.split("policies =").next().unwrap());
    let script = |place: &str, nth: usize| match place.contains("Elsewhere") || place.contains("Abroad") {
        true => Misbehaviour::Answer,
        false => misbehaviour(place, nth),
    };
    let llm = rules().decide(|request, _| Scripted::forced(request, choice("alternative_2"))).start();
    let world = World::of_model(llm, Some(level), Some("adaptive"), &more, (script, |setup| setup)).await;
    let cells = || {
        let rows = WITH_ALTERNATIVE.iter();
        rows.flat_map(|row| TOOLS.into_iter().enumerate().map(move |(at, tool)| (row, at, tool)))
    };
    let runs = join_all(cells().map(|(row, _, tool)| world.ask(tool, row.0))).await;
    let mut decided = 0;
    for ((row, at, tool), run) in cells().zip(&runs) {
        check_alternative(&world, (tool, row.0, "Abroad"), row.1[at], run);
        assert_eq!(world.wire(&format!("{tool}Elsewhere"), row.0), 0, "{tool} after {}", row.0);
        let is_decided = !matches!(row.1[at], Instead::No(_));
        assert_eq!(names(run).contains(&"consultation"), is_decided, "{tool} after {}", row.0);
        decided += usize::from(is_decided);
    }
    assert_eq!(requests(&world.llm, QuestionKind::Decide).len(), decided, "each is another question");
}

#[tokio::test]
async fn matrix_with_decisions_at_level_intelligent() {
    matrix_with_decisions("intelligent").await;
}

#[tokio::test]
async fn matrix_with_decisions_at_level_autonomous() {
    matrix_with_decisions("autonomous").await;
}

#[tokio::test]
async fn decisions_and_interpretations_are_asked_for_where_level_and_mode_allow_them() {
    let script = |place: &str, _: usize| match place.ends_with("/Look/down") {
        true => Misbehaviour::Status(503, Vec::new()),
        false => Misbehaviour::Answer,
    };
    let more = format!("{EXPECT}\n{ALTERNATIVES}");
    for level in ["basic", "adaptive", "intelligent", "autonomous"] {
        for mode in ["strict", "adaptive", "creative"] {
            let llm = rules()
                .decide(|request, _| Scripted::forced(request, choice("alternative_2")))
                .interpret(|request, _| Scripted::forced(request, right()))
                // Nobody tries a failed call again.
                .recovery(|request, _| Scripted::forced(request, choice("abort")));
            let set = (script, |setup: Setup| setup.set("execution.policies.attempts", 1));
            let world = World::of_model(llm.start(), Some(level), Some(mode), &more, set).await;
            let is_asked = mode != "strict" && ["intelligent", "autonomous"].contains(&level);
            let cell = format!("{level} {mode}");
            world.ask("Look", "down").await;
            let called = ["LookElsewhere", "LookAbroad"].map(|tool| world.wire(tool, "down"));
            let expected = match (mode, is_asked) {
                ("strict", _) => [0, 0],
                (_, true) => [0, 1],
                (_, false) => [1, 0],
            };
            assert_eq!(called, expected, "{cell}");
            let run = world.ask("Look", "odd").await;
            let outcome = if is_asked { CallOutcome::Ok } else { CallOutcome::Failed };
            assert_eq!(run.answer.steps[0].tool_calls[0].outcome, outcome, "{cell}: {:#?}", names(&run));
            let asked =
                [QuestionKind::Decide, QuestionKind::Interpret].map(|kind| requests(&world.llm, kind).len());
            assert_eq!(asked, [usize::from(is_asked); 2], "{cell}");
        }
    }
}

#[tokio::test]
async fn matrix_with_alternatives_in_mode_adaptive() {
    matrix_with_alternatives(None, "adaptive").await;
}

#[tokio::test]
async fn matrix_with_alternatives_at_level_basic() {
    matrix_with_alternatives(Some("basic"), "adaptive").await;
}

#[tokio::test]
async fn matrix_with_alternatives_in_mode_strict() {
    matrix_with_alternatives(Some("basic"), "strict").await;
}

#[tokio::test]
async fn matrix_with_last_results() {
    // `denied` cannot be declared.
    let usable = MATRIX.iter().map(|row| row.0).filter(|class| *class != "denied");
    let policies: Vec<String> = usable.map(|class| format!("{class} = {{ do = [\"cached\"] }}")).collect();
    let declared =
        format!("{{read}}cached = {{ max_age_s = 60 }}\n{{read}}policies = {{ {} }}", policies.join(", "));
    let script = |place: &str, nth: usize| match nth {
        0 => Misbehaviour::Answer,
        _ => misbehaviour(place, 0),
    };
    for (mode, more, used) in [
        ("adaptive", declared.as_str(), true),
        ("strict", declared.as_str(), false),
        (
            "adaptive",
            "{read}policies = { timeout = { do = [\"fail\"] }, unavailable = { do = [\"fail\"] }, rate_limit = { do = [\"fail\"] } }",
            false,
        ),
    ] {
        let world = World::with(Some("basic"), Some(mode), more, script, |setup| setup).await;
        for class in MATRIX.iter().map(|row| row.0) {
            let first = world.ask("Look", class).await;
            assert_eq!(first.answer.status, RunStatus::Completed, "{class}");
            let run = world.test.chat(&format!("again-{class}"), &format!("Look cell {class}")).await;
            let expected = used && class != "denied";
            let call = &run.answer.steps[0].tool_calls[0];
            assert_eq!(call.outcome == CallOutcome::Ok, expected, "{mode} {class}: {:#?}", names(&run));
            assert_eq!(call.as_of.is_some(), expected, "{mode} {class}");
            assert_eq!(world.wire("Look", class), 2, "{mode} {class}");
        }
    }
}

#[tokio::test]
async fn matrix_without_level_and_mode() {
    matrix(None, None).await;
}

#[tokio::test]
async fn matrix_in_mode_strict() {
    matrix(None, Some("strict")).await;
}

#[tokio::test]
async fn matrix_in_mode_adaptive() {
    matrix(None, Some("adaptive")).await;
}

#[tokio::test]
async fn matrix_at_level_basic() {
    matrix(Some("basic"), None).await;
}

#[tokio::test]
async fn matrix_at_level_basic_in_mode_strict() {
    matrix(Some("basic"), Some("strict")).await;
}

#[tokio::test]
async fn matrix_at_level_basic_in_mode_adaptive() {
    matrix(Some("basic"), Some("adaptive")).await;
}

#[tokio::test]
async fn broken_connections_are_retried_only_where_that_is_safe() {
    let world = World::open(Some("basic"), None, "").await;
    for cell in ["hang_up", "half"] {
        for (tool, expected) in [("Look", Retried), ("Book", PutToAPerson), ("Pay", Retried)] {
            let run = world.ask(tool, cell).await;
            assert_eq!(world.wire(tool, cell), if expected == Retried { 2 } else { 1 }, "{tool} {cell}");
            assert_eq!(run.answer.approvals.len(), usize::from(expected == PutToAPerson), "{tool} {cell}");
        }
    }
}

#[tokio::test]
async fn wait_that_a_server_asks_for_is_waited_up_to_its_bound() {
    let script = |place: &str, nth: usize| {
        let wait = place.rsplit('/').next().unwrap_or_default().replace('_', " ");
        match nth {
            0 => Misbehaviour::Status(429, vec![("retry-after", wait)]),
            _ => Misbehaviour::Answer,
        }
    };
    let world = World::with(Some("basic"), None, "", script, |setup| setup).await;
    let run = world.ask("Look", "1").await;
    assert_eq!(run.answer.status, RunStatus::Completed);
    let at: Vec<_> = world.backend.requests(&place("Look", "1")).iter().map(|request| request.at).collect();
    assert!(at[1] - at[0] >= Duration::from_secs(1), "{:?}", at[1] - at[0]);
    for endless in ["21", "31536000", "1e30", "inf"] {
        let run = world.ask("Look", endless).await;
        assert_eq!(world.wire("Look", endless), 1, "{endless}");
        assert_eq!(run.answer.status, RunStatus::Failed, "{endless}");
    }
}

#[tokio::test]
async fn attempts_end_at_their_bound_and_at_the_deadline() {
    let always = |_: &str, _: usize| Misbehaviour::Status(503, Vec::new());
    let declared = "policies = { unavailable = { do = [\"retry\"], attempts = 4, backoff_ms = 0 } }";
    let world = World::with(None, Some("adaptive"), declared, always, |setup| setup).await;
    let run = world.ask("Look", "x").await;
    assert_eq!(world.wire("Look", "x"), 4);
    assert_eq!(run.answer.steps[0].tool_calls[0].attempts, Some(4));
    // The second attempt is made at once; the third would begin after the run's end.
    let asks = |_: &str, nth: usize| {
        Misbehaviour::Status(503, vec![("retry-after", if nth == 0 { "0" } else { "15" }.to_owned())])
    };
    let patient = "policies = { unavailable = { do = [\"retry\"], attempts = 9, backoff_ms = 0 } }";
    let limit = |setup: Setup| setup.set("execution.run_timeout_ms", 14_000);
    let world = World::with(Some("basic"), None, patient, asks, limit).await;
    let run = world.ask("Look", "x").await;
    assert_eq!((world.wire("Look", "x"), run.answer.status), (2, RunStatus::Failed), "{:#?}", names(&run));
    assert!(!names(&run).contains(&"cancel_requested"), "{:#?}", names(&run));
}

#[tokio::test]
async fn optional_tool_is_left_out_and_the_answer_says_so() {
    let more = "optional = true\npolicies = { unavailable = { do = [\"skip\"] } }";
    for (mode, skipped) in [("adaptive", true), ("strict", false)] {
        let world = World::open(Some("basic"), Some(mode), more).await;
        let run = world.ask("Look", "unavailable").await;
        let call = &run.answer.steps[0].tool_calls[0];
        assert_eq!((call.left_out, world.wire("Look", "unavailable")), (skipped, 1), "{mode}");
        let says = run.answer.answer.contains("Left out, since it is not available now: Look");
        assert_eq!(says, skipped, "{mode}: {}", run.answer.answer);
        // It was the whole request.
        assert_eq!(run.answer.status, RunStatus::Failed, "{mode}");
    }
}

#[tokio::test]
async fn request_lowers_and_never_raises() {
    let world = World::open(None, None, "").await;
    let ask = |session: &str, words: &str, level, mode| {
        let options = RequestOptions { level, mode, ..RequestOptions::default() };
        let session = SessionId::new(session).unwrap();
        ChatRequest { options, ..world.test.engine.request(words, Some(session)) }
    };
    let basic = ask("a", "Look cell unavailable", Some(ExecutionLevel::Basic), None);
    let run = world.test.finish(world.test.engine.submit(basic).await.unwrap()).await;
    assert_eq!((world.wire("Look", "unavailable"), world.llm.count()), (2, 1), "{:?}", names(&run));
    let metadata = &run.answer.metadata;
    assert_eq!(metadata.level, Some(ExecutionLevel::Basic));
    assert_eq!(metadata.mode, Some(ExecutionMode::Adaptive));
    let higher = (Some(ExecutionLevel::Autonomous), Some(ExecutionMode::Creative));
    let raised = ask("b", "Look cell timeout", higher.0, higher.1);
    let run = world.test.finish(world.test.engine.submit(raised).await.unwrap()).await;
    assert_eq!((run.answer.metadata.level, run.answer.metadata.mode), (None, None));
    assert_eq!(world.wire("Look", "timeout"), 1);
}

#[tokio::test]
async fn cancelled_run_does_not_wait_for_its_next_attempt() {
    let script = |_: &str, nth: usize| match nth {
        0 => Misbehaviour::Status(503, vec![("retry-after", "15".to_owned())]),
        _ => Misbehaviour::Answer,
    };
    let world = World::with(Some("basic"), None, "", script, |setup| setup).await;
    let ticket = world.test.submit("s", "Look cell x").await.unwrap();
    let run = ticket.run;
    let backed_off = async || {
        let events = world.test.events(run).await;
        events.iter().any(|event| matches!(event.body, Event::BackedOff { .. }))
    };
    crate::support::eventually("it backs off", backed_off).await;
    world.test.engine.cancel(&world.test.tenant, run, "keysersoze").await.unwrap();
    let run = world.test.finish(ticket).await;
    assert_eq!((run.answer.status, world.wire("Look", "x")), (RunStatus::Cancelled, 1));
    let failed = |call: &proscenium::run::CallState| {
        matches!(&call.status, proscenium::run::CallStatus::Done { outcome: Outcome::Failed { .. } })
    };
    assert!(run.state.calls.values().all(failed), "{:#?}", run.state.calls);
}

/// Starts a server on the workspace, with crash points, and returns it with its address.
pub(super) fn serve(workspace: &Workspace, env: &[(&str, String)]) -> (RunningProcess, String) {
    let line = ["serve", "--addr", "127.0.0.1:0", "--config", "house.toml", "--scenes", "scenes"];
    let mut process = workspace.spawn_with(&line, env);
    let address = process.served_at();
    (process, address)
}

/// A server is killed where it comes to this crash point, after so many times at it, while it carries out a request; the next
/// one finishes the run. In between, `edit` may change files. Returns the run as the server lists it then.
pub(super) async fn run_after_a_kill(
    workspace: &Workspace,
    (place_of_kill, skipped): (&str, u32),
    words: &str,
    edit: impl FnOnce(),
) -> Value {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let env = [("CRASH_POINT_AT", place_of_kill.to_owned()), ("CRASH_POINT_SKIP", skipped.to_string())];
    let (mut killed, address) = serve(workspace, &env);
    let body = json!({"messages": [{"role": "user", "content": words}], "session_id": "s"});
    let reply = client.post(format!("{address}/api/chat")).json(&body).send().await;
    assert!(reply.is_err() || killed.has_ended(), "{place_of_kill} was not reached");
    // Its connections end before it lets go of the data directory.
    killed.kill();
    edit();
    let (_server, address) = serve(workspace, &[]);
    let mut run = Value::Null;
    crate::support::eventually("the run ends", async || {
        let list: Value =
            client.get(format!("{address}/api/runs")).send().await.unwrap().json().await.unwrap();
        run = list["runs"][0].clone();
        !matches!(run["status"].as_str(), Some("running" | "queued") | None)
    })
    .await;
    run
}

/// What the killed server left behind is finished by the next one.
async fn finished_after_a_kill(tool: &str, place_of_kill: &str) -> (FaultyBackend, Value) {
    let script = |_: &str, nth: usize| match nth {
        0 => Misbehaviour::Status(429, vec![("retry-after", "2".to_owned())]),
        _ => Misbehaviour::Answer,
    };
    let (llm, backend, workspace) = (model(), FaultyBackend::start(script), Workspace::bare());
    write_scene(&workspace.path().join("scenes"), backend.address(), "");
    workspace.write_house(
        &llm,
        "[planning]\nfallback_enabled = false\n\
         [execution]\nlevel = \"basic\"\nconfirm = \"never\"\n\
         [execution.policies]\nbackoff_ms = 20\n",
    );
    let run = run_after_a_kill(&workspace, (place_of_kill, 0), &format!("{tool} cell x"), || {}).await;
    (backend, run)
}

#[tokio::test]
async fn wait_survives_a_kill_and_nothing_is_sent_twice() {
    for tool in ["Look", "Book", "Pay"] {
        for at in ["after:tool_completed", "after:unexpected", "after:backed_off", "after:timer_fired"] {
            let (backend, run) = finished_after_a_kill(tool, at).await;
            let place = place(tool, "x");
            let requests = backend.requests(&place);
            assert_eq!(run["status"], "completed", "{tool} {at}: {run:#}");
            // What was not on disk of a read may be made again.
            let lost = tool == "Look" && matches!(at, "after:tool_completed" | "after:unexpected");
            assert!(requests.len() == 2 || (lost && requests.len() == 3), "{tool} {at}: {requests:#?}");
            assert!(requests.windows(2).all(|pair| pair[0].key == pair[1].key), "{tool} {at}");
            let [.., before, last] = requests.as_slice() else { panic!("{requests:#?}") };
            if !lost {
                assert!(
                    last.at - before.at >= Duration::from_secs(2),
                    "{tool} {at}: {:?}",
                    last.at - before.at
                );
            }
        }
    }
}
