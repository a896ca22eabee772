//! Flows: a path through described nodes is planned, checked and executed as steps of the run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::flow::PathMaker;
use proscenium::plan::StepStatus;
use proscenium::planner::{ApproverChoice, Command, CommandAction};
use proscenium::run::{
    Envelope, Event, PlanConstraints, PlanGuidance, RequestOptions, RunState, RunStatus, SessionId, Subject,
};
use proscenium::scene::Catalogue;
use proscenium::tools::{ToolContext, ToolError, native};
use serde_json::{Value, json};

use crate::support::journal;
use crate::support::test_engine::{FinishedRun, Setup, TestEngine};
use crate::support::{Scripted, ScriptedLlm, ServedEngine, forced_tool, section};

pub(super) const SCENE: &str = r#"
name = "Database"
description = "Runs queries."
instructions = "Run the query."

[[examples]]
say = "Run select 1"
tool = "Run"

[[tools]]
name = "Run"
description = "Runs a query."
effect = "read"
native = "test.run"
[tools.parameters]
type = "object"
required = ["sql"]
[tools.parameters.properties.sql]
type = "string"

[[tools]]
name = "Save"
description = "Saves a report under a title."
effect = "write"
native = "test.save"
[tools.parameters]
type = "object"
required = ["title"]
[tools.parameters.properties.title]
type = "string"
[tools.say]
en = "Saved {{ arguments.title }}."
"#;

pub(super) const FLOW: &str = r#"
name = "lookup"
description = "Answers questions from the database."
inputs = ["sql", "sensitive", "save"]
max_node_steps = 14

[[examples]]
say = "Fix this SQL"
path = ["classify", "validate", "approve", "execute", "tell"]

[[invariants]]
before = ["validate", "execute"]
[[invariants]]
before = ["approve", "execute"]
[[invariants]]
excludes = ["general", "generate", "execute"]

[[nodes]]
name = "classify"
description = "Decides what the request is about."
kind = "llm"
inputs = ["request"]
outputs = ["kind", "title"]
possible_next_nodes = ["general", "generate", "validate"]
template = "What is this about? {{ request }}"
fallback = "test.classify"
[nodes.output]
type = "object"
required = ["kind", "title"]
[nodes.output.properties]
kind = { type = "string", enum = ["general", "data"] }
title = { type = "string" }
[[nodes.conditions]]
next = "general"
value = "kind"
is = "general"

[[nodes]]
name = "general"
description = "Answers a question that needs no data."
kind = "llm"
inputs = ["request"]
outputs = ["text"]
template = "Answer: {{ request }}"
[nodes.output]
type = "object"
required = ["text"]
[nodes.output.properties.text]
type = "string"

[[nodes]]
name = "generate"
description = "Writes the query."
kind = "llm"
inputs = ["request"]
optional_inputs = ["error"]
outputs = ["sql"]
possible_next_nodes = ["validate"]
max_visits = 3
template = "Write SQL for {{ request }}. {% if error %}Not so: {{ error }}{% endif %}"
fallback = "test.generate"
[nodes.output]
type = "object"
required = ["sql"]
[nodes.output.properties.sql]
type = "string"

[[nodes]]
name = "validate"
description = "Checks the query."
kind = "native"
native = "test.validate"
inputs = ["sql"]
outputs = ["valid", "error"]
possible_next_nodes = ["approve", "generate"]
[[nodes.conditions]]
next = "approve"
value = "valid"
is = true
[[nodes.conditions]]
next = "generate"
value = "valid"
is = false

[[nodes]]
name = "approve"
description = "Lets a person approve the query."
kind = "approval"
inputs = ["sql"]
possible_next_nodes = ["execute"]
[nodes.question]
en = "Run {{ sql }}?"
[nodes.when]
value = "sensitive"
exists = true

[[nodes]]
name = "execute"
description = "Runs the query."
kind = "tool"
inputs = ["sql"]
outputs = ["rows"]
possible_next_nodes = ["store", "tell"]
scene = "Database"
tool = "Run"
arguments = { sql = "sql" }
[[nodes.conditions]]
next = "store"
value = "save"
exists = true

[[nodes]]
name = "store"
description = "Saves the report."
kind = "tool"
inputs = ["title"]
scene = "Database"
tool = "Save"
arguments = { title = "title" }

[[nodes]]
name = "tell"
description = "Tells the rows."
kind = "native"
native = "test.tell"
inputs = ["rows"]
outputs = ["text"]
[nodes.say]
en = "The rows: {{ text }}."
"#;

pub(super) const FULL: [&str; 6] = ["classify", "generate", "validate", "approve", "execute", "tell"];

/// What the world's tools have done.
#[derive(Default)]
pub(super) struct Done {
    pub(super) runs: AtomicUsize,
    pub(super) saves: AtomicUsize,
}

fn write_scenes(dir: &Path, flow: &str) {
    let folder = dir.join("scenes/database");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("scene.toml"), SCENE).unwrap();
    std::fs::write(folder.join("flow.toml"), flow).unwrap();
}

pub(super) fn with_tools(setup: Setup, dir: &tempfile::TempDir, done: &Arc<Done>) -> Setup {
    write_scenes(dir.path(), FLOW);
    let (runs, saves) = (done.clone(), done.clone());
    setup
        .alone()
        .scenes(&dir.path().join("scenes"))
        .native(
            "test.classify",
            native(|_: Value, _: ToolContext| async { Ok(json!({"kind": "data", "title": "x"})) }),
        )
        .native("test.generate", native(|_: Value, _: ToolContext| async { Ok(json!({"sql": "select 7"})) }))
        .native(
            "test.validate",
            native(|sent: Value, _: ToolContext| async move {
                let valid = sent["sql"].as_str().unwrap_or_default().starts_with("select");
                Ok(json!({"valid": valid, "error": if valid { "" } else { "only select" }}))
            }),
        )
        .native(
            "test.run",
            native(move |sent: Value, _: ToolContext| {
                runs.runs.fetch_add(1, Ordering::SeqCst);
                async move { Ok::<_, ToolError>(json!({"rows": [sent["sql"]]})) }
            }),
        )
        .native(
            "test.save",
            native(move |_: Value, _: ToolContext| {
                saves.saves.fetch_add(1, Ordering::SeqCst);
                async { Ok::<_, ToolError>(json!({"saved": true})) }
            }),
        )
        .native(
            "test.tell",
            native(
                |sent: Value, _: ToolContext| async move { Ok(json!({"text": sent["rows"].to_string()})) },
            ),
        )
}

/// A model that plans the flow, replies with `paths` to questions for paths, in turn, and to nodes as `node` says.
pub(super) fn model(
    paths: Vec<Vec<&'static str>>,
    node: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
) -> ScriptedLlm {
    let path = move |nth: usize| {
        let path = paths.get(nth).or(paths.last()).cloned().unwrap_or_default();
        json!({"reasoning": "", "path": path})
    };
    replying(path, node)
}

/// The same, where `path` has the arguments of the nth question for a path.
fn replying(
    path: impl Fn(usize) -> Value + Send + Sync + 'static,
    node: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
) -> ScriptedLlm {
    let asked = AtomicUsize::new(0);
    ScriptedLlm::start(move |request, _| match forced_tool(request) {
        Some("CreateExecutionPlan") => {
            let step = json!({"step_number": 1, "scene_name": "lookup", "purpose": "Look it up", "expected_tools": [],
                "depends_on_step": null, "unclear": false, "prepared_calls": [], "if_needed": []});
            Scripted::forced(
                request,
                json!({"needs_execution": true, "reasoning": "", "steps": [step], "unserved": [], "answer": null}),
            )
        }
        Some("PlanFlowPath") => Scripted::forced(request, path(asked.fetch_add(1, Ordering::SeqCst))),
        Some("ReportNode") => {
            let name = section(request, "node").unwrap();
            Scripted::forced(request, node(name.trim_start_matches("lookup."), request))
        }
        Some("CheckContinuation") => Scripted::answered(request, Value::Null),
        _ => Scripted::Text("Here is what was found.".into()),
    })
}

/// Sensible replies of nodes' models.
pub(super) fn sensible(node: &str, _: &Value) -> Value {
    match node {
        "classify" => json!({"kind": "data", "title": "secret plan"}),
        "general" => json!({"text": "Hello."}),
        _ => json!({"sql": "select 1"}),
    }
}

pub(super) struct World {
    pub(super) test: TestEngine,
    pub(super) llm: ScriptedLlm,
    pub(super) done: Arc<Done>,
    scenes: tempfile::TempDir,
}

impl World {
    pub(super) async fn start(llm: ScriptedLlm, more: impl FnOnce(Setup) -> Setup) -> Self {
        Self::start_with(FLOW, llm, more).await
    }

    /// With another definition of the flow.
    async fn start_with(flow: &str, llm: ScriptedLlm, more: impl FnOnce(Setup) -> Setup) -> Self {
        let (scenes, done) = (tempfile::tempdir().unwrap(), Arc::new(Done::default()));
        let setup = with_tools(Setup::scripted(&llm), &scenes, &done);
        write_scenes(scenes.path(), flow);
        Self { test: more(setup).start().await, llm, done, scenes }
    }

    async fn ask(&self, words: &str, state: Value, options: RequestOptions, by_name: bool) -> FinishedRun {
        self.ask_within(None, words, state, options, by_name).await
    }

    /// The same, with constraints.
    async fn ask_within(
        &self,
        constraints: Option<PlanConstraints>,
        words: &str,
        state: Value,
        options: RequestOptions,
        by_name: bool,
    ) -> FinishedRun {
        let mut request = self.test.engine.request(words, Some(SessionId::new("s").unwrap()));
        request.guidance = PlanGuidance::of(constraints, Some(state), true);
        request.options = options;
        request.plan = by_name.then(|| proscenium::plan::Plan::of_flow("lookup", words));
        let ticket = self.test.engine.submit(request).await.unwrap();
        let answer = ticket.answer().await.unwrap();
        self.finished(answer).await
    }

    /// The run of an answer; the invariants of its journal are checked if it has ended.
    pub(super) async fn finished(&self, answer: proscenium::Answer) -> FinishedRun {
        let (engine, tenant, id) = (&self.test.engine, &self.test.tenant, answer.run_id);
        let (events, state) = (self.test.events(id).await, engine.run(tenant, id).await.unwrap());
        let run = FinishedRun { answer, state, events };
        if run.state.status.is_terminal() {
            journal::assert_invariants(&run);
            journal::assert_replayed(id, &run.events, &engine.catalogue());
        }
        run
    }

    async fn look_up(&self, state: Value) -> FinishedRun {
        self.ask("How many are there?", state, RequestOptions::default(), false).await
    }

    async fn decide(&self, run: &FinishedRun, command: Command) -> FinishedRun {
        let (engine, tenant, id) = (&self.test.engine, &self.test.tenant, run.answer.run_id);
        let answer = engine.command_and_wait(tenant, id, command).await.unwrap().unwrap();
        self.finished(answer).await
    }

    /// Loads another definition of the flow.
    pub(super) async fn redefine(&self, flow: &str) {
        write_scenes(self.scenes.path(), flow);
        self.test.engine.reload(self.test.config.clone()).await.unwrap();
    }

    pub(super) fn asked(&self, tool: &str) -> usize {
        self.llm.requests().iter().filter(|request| forced_tool(request) == Some(tool)).count()
    }
}

pub(super) fn maker(run: &FinishedRun) -> PathMaker {
    let planned = run.events.iter().find_map(|event| match &event.body {
        Event::FlowPlanned { maker, .. } => Some(*maker),
        _ => None,
    });
    planned.unwrap()
}

#[tokio::test]
async fn planned_path_is_executed_node_by_node_and_ends_with_the_result_of_the_last_node() {
    let world = World::start(model(vec![FULL.to_vec()], sensible), |setup| setup).await;
    let run = world.look_up(json!({})).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!(run.entered(), FULL);
    assert_eq!((maker(&run), world.done.runs.load(Ordering::SeqCst)), (PathMaker::Planner, 1));
    assert_eq!(run.answer.steps.len(), 1, "nodes are not steps of the plan");
    assert!(
        run.answer.steps[0].result.as_ref().unwrap().contains("The rows: [\"select 1\"]"),
        "{:#?}",
        run.answer
    );
    assert_eq!(run.answer.metadata.planned_execution_path, FULL);
    assert_eq!(run.answer.metadata.current_path_index, FULL.len());
    assert!(run.answer.approvals.is_empty(), "nothing sensitive was given");
}

#[tokio::test]
async fn path_that_is_not_possible_is_sent_back_with_its_problems() {
    let wrong = vec!["classify", "execute", "tell"];
    let world = World::start(model(vec![wrong, FULL.to_vec()], sensible), |setup| setup).await;
    let run = world.look_up(json!({})).await;
    assert_eq!((run.answer.status, run.entered().len()), (RunStatus::Completed, 6));
    let problems = run.events.iter().find_map(|event| match &event.body {
        Event::ReplyRejected { problems, .. } => Some(problems.clone()),
        _ => None,
    });
    let codes: Vec<String> = problems.unwrap().into_iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["path.no_edge", "path.invariant", "path.input"]);
}

#[tokio::test]
async fn when_no_model_plans_a_path_the_rules_do_and_without_fallback_the_step_fails() {
    let never = || model(vec![vec!["nowhere"]], sensible);
    let world = World::start(never(), |setup| setup.set("planning.fallback_enabled", true)).await;
    let run = world.ask("Fix this SQL", json!({"sql": "select 5"}), RequestOptions::default(), true).await;
    assert_eq!(
        (run.answer.status, maker(&run)),
        (RunStatus::Completed, PathMaker::Rules),
        "{:#?}",
        run.answer
    );
    assert_eq!(run.entered(), ["classify", "validate", "approve", "execute", "tell"], "nothing is generated");
    let world = World::start(never(), |setup| setup).await;
    let run = world.look_up(json!({})).await;
    assert_eq!((run.answer.status, run.entered().len()), (RunStatus::Failed, 0));
    assert_eq!(run.answer.steps[0].error.as_ref().unwrap().code, "llm.unusable");
}

#[tokio::test]
async fn without_planning_the_graph_is_followed_by_its_conditions() {
    let unplanned = RequestOptions { unplanned: true, ..RequestOptions::default() };
    let world = World::start(model(vec![], sensible), |setup| setup).await;
    let run = world.ask("How many?", json!({}), unplanned, true).await;
    assert_eq!(
        (run.answer.status, maker(&run)),
        (RunStatus::Completed, PathMaker::Graph),
        "{:#?}",
        run.answer
    );
    assert_eq!(run.entered(), FULL);
    assert_eq!((world.asked("PlanFlowPath"), world.asked("CreateExecutionPlan")), (0, 0));
    let general = |node: &str, request: &Value| match node {
        "classify" => json!({"kind": "general", "title": ""}),
        _ => sensible(node, request),
    };
    let world = World::start(model(vec![], general), |setup| setup).await;
    let run = world.ask("Hello", json!({}), unplanned, true).await;
    assert_eq!(run.entered(), ["classify", "general"]);
}

#[tokio::test]
async fn condition_leaves_the_planned_path_along_a_declared_edge() {
    let asked = AtomicUsize::new(0);
    let corrected = move |node: &str, request: &Value| match node {
        "generate" if asked.fetch_add(1, Ordering::SeqCst) == 0 => json!({"sql": "drop everything"}),
        "generate" => {
            assert!(section(request, "task").unwrap().contains("Not so: only select"));
            json!({"sql": "select 2"})
        }
        _ => sensible(node, request),
    };
    let world = World::start(model(vec![FULL.to_vec()], corrected), |setup| setup).await;
    let run = world.look_up(json!({})).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    let expected = ["classify", "generate", "validate", "generate", "validate", "approve", "execute", "tell"];
    assert_eq!(run.entered(), expected);
    let lefts: Vec<String> = run
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Event::NodeStarted { left: Some(left), .. } => Some(left.planned.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(lefts, ["approve"]);
}

#[tokio::test]
async fn loop_that_never_succeeds_ends_at_its_bound() {
    let never = |node: &str, request: &Value| match node {
        "generate" => json!({"sql": "drop everything"}),
        _ => sensible(node, request),
    };
    let world = World::start(model(vec![FULL.to_vec()], never), |setup| setup).await;
    let run = world.look_up(json!({})).await;
    assert_eq!(run.answer.status, RunStatus::Failed);
    assert_eq!(run.answer.steps[0].error.as_ref().unwrap().code, "flow.no_edge");
    assert!(!run.answer.answer.contains("no edge"), "users read no names of nodes: {}", run.answer.answer);
    assert_eq!(world.done.runs.load(Ordering::SeqCst), 0);
}

fn decide(choice: ApproverChoice) -> Command {
    Command::new("boss", CommandAction::Decide { approval: 1, choice, hash: None })
}

#[tokio::test]
async fn approval_node_waits_for_a_person_whose_change_binds_what_follows() {
    let world = World::start(model(vec![FULL.to_vec()], sensible), |setup| setup).await;
    let run = world.look_up(json!({"sensitive": true})).await;
    assert_eq!(run.answer.status, RunStatus::Waiting, "{:#?}", run.answer);
    assert_eq!(run.answer.approvals[0].why, ["Run select 1?"]);
    assert_eq!(run.answer.metadata.current_path_index, 3, "classify, generate and validate are done");
    assert_eq!(world.done.runs.load(Ordering::SeqCst), 0, "nothing was read yet");
    let edited = decide(ApproverChoice::Edited(json!({"sql": "select 9"})));
    let run = world.decide(&run, edited).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert!(run.answer.steps[0].result.as_ref().unwrap().contains("select 9"), "{:#?}", run.answer);
}

#[tokio::test]
async fn refused_approval_ends_the_flow_before_what_it_guards() {
    let world = World::start(model(vec![FULL.to_vec()], sensible), |setup| setup).await;
    let run = world.look_up(json!({"sensitive": true})).await;
    let refused = decide(ApproverChoice::No);
    let run = world.decide(&run, refused).await;
    assert_eq!(run.answer.steps[0].error.as_ref().unwrap().code, "approval.refused");
    assert_eq!(world.done.runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn write_of_a_flow_is_confirmed_where_a_model_wrote_its_values() {
    let saving = ["classify", "generate", "validate", "approve", "execute", "store"];
    let world = World::start(model(vec![saving.to_vec()], sensible), |setup| {
        setup.set("execution.confirm", "unclear")
    })
    .await;
    let run = world.look_up(json!({"save": true})).await;
    assert_eq!(run.answer.status, RunStatus::NeedsInput, "{:#?}", run.answer);
    assert_eq!(world.done.saves.load(Ordering::SeqCst), 0);
    assert!(run.answer.answer.contains("secret plan"), "{}", run.answer.answer);
    let run = world.test.chat("s", "yes").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!(world.done.saves.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn without_a_model_nodes_use_the_functions_they_declare() {
    let (scenes, done) = (tempfile::tempdir().unwrap(), Arc::new(Done::default()));
    let test = with_tools(Setup::offline(), &scenes, &done).start().await;
    let mut request = test.engine.request("How many are there?", None);
    request.plan = Some(proscenium::plan::Plan::of_flow("lookup", "How many are there?"));
    let ticket = test.engine.submit(request).await.unwrap();
    let run = test.finish(ticket).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert!(run.answer.answer.contains("select 7"), "{}", run.answer.answer);
    let is_about_a_node = |event: &Envelope<Event>| match &event.body {
        Event::ModelAsked { subject, .. } => matches!(subject, Subject::Node { .. }),
        Event::ModelFailed { .. } => true,
        _ => false,
    };
    assert!(
        !run.events.iter().any(is_about_a_node),
        "no model is asked that cannot answer: {:#?}",
        run.events
    );
}

#[tokio::test]
async fn node_of_a_model_that_fails_uses_its_function_and_the_failure_is_recorded() {
    let llm = ScriptedLlm::start(|request, _| match forced_tool(request) {
        Some("ReportNode") => Scripted::status(400),
        Some("PlanFlowPath") => Scripted::forced(request, json!({"reasoning": "", "path": FULL})),
        Some("CheckContinuation") => Scripted::answered(request, "That is what was found."),
        _ => Scripted::Text("That is what was found.".into()),
    });
    let world = World::start(llm, |setup| setup.set("planning.fallback_enabled", true)).await;
    let run = world.ask("How many?", json!({}), RequestOptions::default(), true).await;
    let is_failure = |event: &Envelope<Event>| matches!(event.body, Event::ModelFailed { .. });
    assert_eq!(run.events.iter().filter(|event| is_failure(event)).count(), 2, "{:#?}", run.events);
    assert_eq!(run.answer.steps[0].status, StepStatus::Completed, "{:#?}", run.answer);
}

#[tokio::test]
async fn at_the_level_basic_no_model_is_asked_and_a_node_without_a_function_fails() {
    let basic = RequestOptions {
        level: Some(proscenium::adapt::ExecutionLevel::Basic),
        unplanned: true,
        ..RequestOptions::default()
    };
    let world = World::start(model(vec![], sensible), |setup| setup.set("execution.level", "adaptive")).await;
    let run = world.ask("How many?", json!({}), basic, true).await;
    assert_eq!(world.asked("ReportNode"), 0);
    assert_eq!(run.answer.steps[0].error.as_ref().unwrap().code, "level.basic", "no fallback is enabled");
    let world = World::start(model(vec![], sensible), |setup| {
        setup.set("execution.level", "adaptive").set("planning.fallback_enabled", true)
    })
    .await;
    let run = world.ask("How many?", json!({}), basic, true).await;
    assert_eq!(
        (run.answer.status, world.asked("ReportNode")),
        (RunStatus::Completed, 0),
        "{:#?}",
        run.answer
    );
}

#[tokio::test]
async fn after_each_event_an_interrupted_run_continues_where_it_was() {
    let world = World::start(model(vec![FULL.to_vec()], sensible), |setup| setup).await;
    let run = world.look_up(json!({})).await;
    for length in 1..run.events.len() {
        let prefix = run.events[..length].iter().map(|event| &event.body);
        let mut state = RunState::from_events(run.answer.run_id, prefix);
        state.apply(&Event::RunResumed { epoch: state.epoch + 1, restart: true, catalogue: None }).unwrap();
        let last = run.events[length - 1].body.name();
        assert!(!state.next().is_empty(), "nothing is due after event {length}, {last}");
    }
}

/// A node's model that first writes a query that is refused, so that the planned path is left.
fn corrected() -> impl Fn(&str, &Value) -> Value + Send + Sync + 'static {
    let asked = AtomicUsize::new(0);
    move |node: &str, request: &Value| match node {
        "generate" if asked.fetch_add(1, Ordering::SeqCst) == 0 => json!({"sql": "drop everything"}),
        _ => sensible(node, request),
    }
}

/// A run that leaves its planned path, waits for a person and goes on with what that person changed: for `tests/replays`.
pub(crate) async fn recorded_run() -> Vec<Envelope<Event>> {
    let world = World::start(model(vec![FULL.to_vec()], corrected()), |setup| setup).await;
    let run = world.look_up(json!({"sensitive": true})).await;
    let edited = decide(ApproverChoice::Edited(json!({"sql": "select 9"})));
    world.decide(&run, edited).await.events
}

/// The scenes of that run.
pub(crate) async fn catalogue() -> Arc<Catalogue> {
    World::start(model(vec![], sensible), |setup| setup).await.test.engine.catalogue()
}

#[tokio::test]
async fn nodes_with_forbidden_tools_are_planned_around() {
    let read_only = || Some(PlanConstraints { read_only: true, ..PlanConstraints::default() });
    let saving = ["classify", "generate", "validate", "approve", "execute", "store"];
    let world = World::start(model(vec![saving.to_vec(), FULL.to_vec()], sensible), |setup| setup).await;
    let state = || json!({"save": true});
    let run = world.ask_within(read_only(), "How many?", state(), RequestOptions::default(), true).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!(
        (run.entered().as_slice(), world.asked("PlanFlowPath")),
        (FULL.map(str::to_owned).as_slice(), 2)
    );
    // So does the graph, although the condition of the other edge holds.
    let unplanned = RequestOptions { unplanned: true, ..RequestOptions::default() };
    let run = world.ask_within(read_only(), "How many?", state(), unplanned, true).await;
    assert_eq!(run.entered(), FULL);
    assert_eq!(world.done.saves.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn flow_is_refused_only_where_every_path_needs_a_forbidden_tool() {
    let without = || {
        let without_tools = vec!["Database.Run".to_owned()];
        Some(PlanConstraints { without_tools, ..PlanConstraints::default() })
    };
    let general = vec!["classify", "general"];
    let about_nothing = |node: &str, request: &Value| match node {
        "classify" => json!({"kind": "general", "title": ""}),
        _ => sensible(node, request),
    };
    let world = World::start(model(vec![general.clone()], about_nothing), |setup| setup).await;
    let run = world.ask_within(without(), "How many?", json!({}), RequestOptions::default(), true).await;
    assert_eq!(
        (run.answer.status, run.entered()),
        (RunStatus::Completed, vec!["classify".into(), "general".into()])
    );
    let only_queries = FLOW.replace("possible_next_nodes = [\"general\", ", "possible_next_nodes = [");
    let at = only_queries.find("[[nodes]]\nname = \"general\"").unwrap();
    let end = only_queries.find("[[nodes]]\nname = \"generate\"").unwrap();
    let only_queries = format!("{}{}", &only_queries[..at], &only_queries[end..]);
    let condition = "[[nodes.conditions]]\nnext = \"general\"\nvalue = \"kind\"\nis = \"general\"\n";
    let only_queries = only_queries.replace(condition, "");
    let only_queries =
        only_queries.replace("[[invariants]]\nexcludes = [\"general\", \"generate\", \"execute\"]\n", "");
    let world = World::start_with(&only_queries, model(vec![general], sensible), |setup| setup).await;
    let run = world.ask_within(without(), "How many?", json!({}), RequestOptions::default(), true).await;
    assert_eq!((run.answer.status, run.entered().len()), (RunStatus::Failed, 0), "{:#?}", run.answer);
    let problem = run.state.error.as_ref().unwrap();
    assert!(problem.message.contains("every path through lookup needs"), "{problem:?}");
}

#[tokio::test]
async fn flow_has_a_level_of_its_own() {
    let basic = FLOW.replace("max_node_steps = 14", "max_node_steps = 14\nlevel = \"basic\"");
    let adaptive =
        |setup: Setup| setup.set("execution.level", "adaptive").set("planning.fallback_enabled", true);
    let world = World::start_with(&basic, model(vec![FULL.to_vec()], sensible), adaptive).await;
    let run = world.ask("How many?", json!({}), RequestOptions::default(), true).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!(
        (world.asked("PlanFlowPath"), world.asked("ReportNode")),
        (0, 0),
        "the functions of nodes are used"
    );
    assert_eq!(run.answer.metadata.level, Some(proscenium::adapt::ExecutionLevel::Basic));
}

/// A plan of one flow that is not executed.
async fn draft(world: &World, state: Value) -> FinishedRun {
    let mut request = world.test.engine.request("Fix this SQL", None);
    request.guidance = PlanGuidance::of(None, Some(state), true);
    request.plan = Some(proscenium::plan::Plan::of_flow("lookup", "Fix this SQL"));
    request.plan_only = true;
    let answer = world.test.engine.chat(request).await.unwrap();
    world.finished(answer).await
}

#[tokio::test]
async fn plan_alone_has_the_path_and_executes_no_node() {
    let short = vec!["classify", "validate", "approve", "execute", "tell"];
    let world = World::start(model(vec![vec!["tell"], short.clone()], sensible), |setup| setup).await;
    let run = draft(&world, json!({"sql": "select 5"})).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!(
        (run.answer.metadata.planned_execution_path.clone(), run.entered()),
        (short.iter().map(|name| (*name).to_owned()).collect(), Vec::<String>::new())
    );
    assert_eq!((world.asked("PlanFlowPath"), world.done.runs.load(Ordering::SeqCst)), (2, 0));
    let flow = run.answer.steps[0].flow.as_ref().unwrap();
    assert_eq!((flow.flow.as_str(), flow.planned_by), ("lookup", PathMaker::Planner));
    assert!(flow.nodes.is_empty() && flow.skipped.is_empty(), "{flow:#?}");
}

#[tokio::test]
async fn plan_alone_fails_where_no_path_can_be_planned() {
    let world = World::start(model(vec![vec!["nowhere"]], sensible), |setup| setup).await;
    let run = draft(&world, json!({})).await;
    assert_eq!(run.answer.status, RunStatus::Failed);
    assert_eq!(run.answer.error.as_ref().unwrap().code, "llm.unusable");
    let world = World::start(model(vec![vec!["nowhere"]], sensible), |setup| {
        setup.set("planning.fallback_enabled", true)
    })
    .await;
    let run = draft(&world, json!({"sql": "select 5"})).await;
    let flow = run.answer.steps[0].flow.as_ref().unwrap();
    assert_eq!((flow.planned_by, flow.path.len()), (PathMaker::Rules, 5), "{:#?}", run.answer);
}

#[tokio::test]
async fn answer_lists_the_nodes_of_a_flow_with_times_calls_and_where_the_path_was_left() {
    let asked = AtomicUsize::new(0);
    let corrected = move |node: &str, request: &Value| match node {
        "generate" if asked.fetch_add(1, Ordering::SeqCst) == 0 => json!({"sql": "drop everything"}),
        _ => sensible(node, request),
    };
    let world = World::start(model(vec![FULL.to_vec()], corrected), |setup| setup).await;
    let run = world.look_up(json!({})).await;
    let step = &run.answer.steps[0];
    let flow = step.flow.as_ref().unwrap();
    let nodes: Vec<&str> = flow.nodes.iter().map(|node| node.node.as_str()).collect();
    assert_eq!(nodes, run.entered());
    assert_eq!(flow.skipped, ["general", "store"]);
    let left: Vec<(&str, &str)> = flow
        .nodes
        .iter()
        .filter_map(|node| Some((node.node.as_str(), node.left_path.as_ref()?.planned.as_str())))
        .collect();
    assert_eq!(left, [("generate", "approve")]);
    for node in &flow.nodes {
        assert_eq!(node.status, proscenium::plan::StepStatus::Completed);
        assert!(node.ended_at.unwrap() >= node.started_at, "{node:#?}");
    }
    let calls: Vec<(&str, &str)> =
        step.tool_calls.iter().map(|call| (call.node.as_deref().unwrap(), call.tool.as_str())).collect();
    let expected = [("validate", "validate"), ("validate", "validate"), ("execute", "Run"), ("tell", "tell")];
    assert_eq!(calls, expected);
    let metrics = world.test.engine.metrics().await.unwrap();
    for expected in [
        r#"proscenium_flow_nodes_total{flow="lookup",node="validate",outcome="completed"} 2"#,
        r#"proscenium_flow_nodes_total{flow="lookup",node="execute",outcome="completed"} 1"#,
        r#"proscenium_flow_paths_total{flow="lookup",planned_by="planner"} 1"#,
        r#"proscenium_steps_total{outcome="completed",scene="lookup"} 1"#,
        r#"proscenium_tool_calls_total{outcome="ok",scene="Database",tool="Run"} 1"#,
    ] {
        assert!(metrics.contains(expected), "no {expected} in {metrics}");
    }
    assert!(!metrics.contains(r#"proscenium_steps_total{outcome="completed",scene="other"}"#), "{metrics}");
    let lines = flow.lines();
    assert!(lines.iter().any(|line| line == "skipped: general, store"), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line.starts_with("left the path before approve for generate:")),
        "{lines:#?}"
    );
}

#[tokio::test]
async fn node_that_the_planner_missed_is_kept_as_a_suggestion_and_never_executed() {
    let missing = |name: &str, description: &str| json!({"name": name, "description": description, "why": "such\nrequests \u{202e}need it"});
    let long = "x".repeat(5_000);
    let suggestions = [
        missing("e-mail the rows", "Sends the\u{200b} rows."),
        missing("EXECUTE", "Is there already."),
        missing("!", "Has no name."),
        json!("translate"),
        missing("translate", &long),
        Value::Null,
    ];
    let count = suggestions.len();
    let path = move |nth: usize| json!({"reasoning": "", "path": ["classify", "general"], "missing_node": suggestions[nth % count]});
    let general = |node: &str, request: &Value| match node {
        "classify" => json!({"kind": "general", "title": ""}),
        _ => sensible(node, request),
    };
    let llm = replying(path, general);
    let world = World::start(llm, |setup| setup).await;
    let mut found = Vec::new();
    for _ in 0..count {
        let run = world.ask("Hello", json!({}), RequestOptions::default(), true).await;
        assert_eq!(run.entered(), ["classify", "general"], "{:#?}", run.answer);
        found.push(run.answer.steps[0].flow.clone().unwrap().missing_node);
    }
    let named: Vec<Option<&str>> =
        found.iter().map(|found| found.as_ref().map(|node| node.name.as_str())).collect();
    assert_eq!(named, [Some("e_mail_the_rows"), None, None, None, Some("translate"), None]);
    let first = found[0].as_ref().unwrap();
    assert_eq!(
        (first.description.as_str(), first.why.as_str()),
        (r"Sends the\u{200b} rows.", r"such requests \u{202e}need it")
    );
    assert_eq!(found[4].as_ref().unwrap().description.len(), 300);
    let (engine, tenant) = (&world.test.engine, &world.test.tenant);
    let shown = engine.flow_document(tenant, "lookup", None).await.unwrap().unwrap();
    let names: Vec<&str> = shown.missing_nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["translate", "e_mail_the_rows"], "the newest first");
    let (_, user) = engine.default_principal();
    let of = |user: String| async move {
        engine.flow_document(tenant, "lookup", Some(&user)).await.unwrap().unwrap().missing_nodes.len()
    };
    assert_eq!((of(user).await, of("somebody".to_owned()).await), (2, 0));
    let other = proscenium::run::TenantId::new("elsewhere").unwrap();
    assert!(engine.flow_document(&other, "lookup", None).await.unwrap().unwrap().missing_nodes.is_empty());
}

#[tokio::test]
async fn progress_of_a_chat_interface_names_no_node() {
    let (scenes, done) = (tempfile::tempdir().unwrap(), Arc::new(Done::default()));
    let llm = model(vec![FULL.to_vec()], sensible);
    let setup = with_tools(Setup::scripted(&llm), &scenes, &done).set("server.progress", "reasoning");
    let served = ServedEngine::start(setup).await;
    let body = json!({"model": "proscenium", "stream": true,
        "messages": [{"role": "user", "content": "How many are there?"}]});
    let reply = served.post("/v1/chat/completions", &body).await;
    let deltas = reply.events().into_iter().filter_map(|event| {
        event.data["choices"][0]["delta"]["reasoning_content"].as_str().map(str::to_owned)
    });
    let progress: String = deltas.collect();
    insta::assert_snapshot!(progress.trim_end(), @r"
    Planning…
    1. lookup: Look it up
    Step 1, lookup: started
    Step 1, lookup: part 1
    Step 1, lookup: part 2
    Step 1, lookup: part 3
    Step 1, lookup: part 4
    Step 1, lookup: part 5
    Step 1, lookup: part 6
    Step 1, lookup: done
    ");
    for inner in FULL.iter().chain(&["Database", "Run", "select"]) {
        assert!(!progress.contains(inner), "{inner} in {progress}");
    }
}

#[tokio::test]
async fn path_is_planned_over_http_and_the_document_of_the_flow_lists_what_was_missed() {
    let (scenes, done) = (tempfile::tempdir().unwrap(), Arc::new(Done::default()));
    let short = ["validate", "approve", "execute", "tell"];
    let path = move |nth: usize| {
        let path = if nth == 0 { vec!["classify"] } else { [&["classify"], &short[..]].concat() };
        let missing =
            json!({"name": "explain", "description": "Explains a query.", "why": "They ask for it."});
        json!({"reasoning": "", "path": path, "missing_node": missing})
    };
    let llm = replying(path, sensible);
    let served = ServedEngine::start(with_tools(Setup::scripted(&llm), &scenes, &done)).await;
    let body = json!({"message": "Fix this SQL", "flow": "lookup", "current_state": {"sql": "select 5"}});
    let planned = served.post("/api/planning/plan", &body).await.json();
    let flow = &planned["flows"][0];
    assert_eq!(flow["path"], json!(["classify", "validate", "approve", "execute", "tell"]), "{planned:#}");
    assert_eq!((&flow["planned_by"], &flow["missing_node"]["name"]), (&json!("planner"), &json!("explain")));
    assert_eq!(done.runs.load(Ordering::SeqCst), 0);
    let shown = served.get("/api/planning/flows/lookup").await.json();
    let missing = &shown["missing_nodes"][0];
    assert_eq!((&missing["name"], &missing["run_id"]), (&json!("explain"), &planned["run_id"]), "{shown:#}");
}
