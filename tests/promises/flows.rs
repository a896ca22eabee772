//! Flows: a path through described nodes is planned, checked and executed as steps of the run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::flow::PathMaker;
use proscenium::planner::{ApproverChoice, Command, CommandAction};
use proscenium::run::{Event, PlanGuidance, RequestOptions, RunState, RunStatus, SessionId};
use proscenium::tools::{ToolContext, ToolError, native};
use serde_json::{Value, json};

use crate::support::journal;
use crate::support::test_engine::{FinishedRun, Setup, TestEngine};
use crate::support::{Scripted, ScriptedLlm, forced_tool, section};

const SCENE: &str = r#"
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

const FLOW: &str = r#"
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

const FULL: [&str; 6] = ["classify", "generate", "validate", "approve", "execute", "tell"];

/// What the world's tools have done.
#[derive(Default)]
struct Done {
    runs: AtomicUsize,
    saves: AtomicUsize,
}

fn write_scenes(dir: &Path) {
    let folder = dir.join("scenes/database");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("scene.toml"), SCENE).unwrap();
    std::fs::write(folder.join("flow.toml"), FLOW).unwrap();
}

fn with_tools(setup: Setup, dir: &tempfile::TempDir, done: &Arc<Done>) -> Setup {
    write_scenes(dir.path());
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
fn model(
    paths: Vec<Vec<&'static str>>,
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
        Some("PlanFlowPath") => {
            let nth = asked.fetch_add(1, Ordering::SeqCst);
            let path = paths.get(nth).or(paths.last()).cloned().unwrap_or_default();
            Scripted::forced(request, json!({"reasoning": "", "path": path}))
        }
        Some("ReportNode") => {
            let name = section(request, "node").unwrap();
            Scripted::forced(request, node(name.trim_start_matches("lookup."), request))
        }
        Some("CheckContinuation") => Scripted::forced(
            request,
            json!({"should_continue": false, "can_answer_now": true, "reasoning": "", "missing_information": null,
                "answer": null}),
        ),
        _ => Scripted::Text("Here is what was found.".into()),
    })
}

/// Sensible replies of nodes' models.
fn sensible(node: &str, _: &Value) -> Value {
    match node {
        "classify" => json!({"kind": "data", "title": "secret plan"}),
        "general" => json!({"text": "Hello."}),
        _ => json!({"sql": "select 1"}),
    }
}

struct World {
    test: TestEngine,
    llm: ScriptedLlm,
    done: Arc<Done>,
    _scenes: tempfile::TempDir,
}

impl World {
    async fn start(llm: ScriptedLlm, more: impl FnOnce(Setup) -> Setup) -> Self {
        let (scenes, done) = (tempfile::tempdir().unwrap(), Arc::new(Done::default()));
        let setup = with_tools(Setup::scripted(&llm), &scenes, &done);
        Self { test: more(setup).start().await, llm, done, _scenes: scenes }
    }

    async fn ask(&self, words: &str, state: Value, options: RequestOptions, by_name: bool) -> FinishedRun {
        let mut request = self.test.engine.request(words, Some(SessionId::new("s").unwrap()));
        request.guidance = PlanGuidance::of(None, Some(state), true);
        request.options = options;
        request.plan = by_name.then(|| proscenium::plan::Plan::of_flow("lookup", words));
        let ticket = self.test.engine.submit(request).await.unwrap();
        let answer = ticket.answer().await.unwrap();
        self.finished(answer).await
    }

    /// The run of an answer; the invariants of its journal are checked if it has ended.
    async fn finished(&self, answer: proscenium::Answer) -> FinishedRun {
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

    fn asked(&self, tool: &str) -> usize {
        self.llm.requests().iter().filter(|request| forced_tool(request) == Some(tool)).count()
    }
}

/// The nodes that a run entered.
fn entered(run: &FinishedRun) -> Vec<String> {
    let nodes = run.events.iter().filter_map(|event| match &event.body {
        Event::NodeStarted { node, .. } => Some(node.clone()),
        _ => None,
    });
    nodes.collect()
}

fn maker(run: &FinishedRun) -> PathMaker {
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
    assert_eq!(entered(&run), FULL);
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
    assert_eq!((run.answer.status, entered(&run).len()), (RunStatus::Completed, 6));
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
    assert_eq!(entered(&run), ["classify", "validate", "approve", "execute", "tell"], "nothing is generated");
    let world = World::start(never(), |setup| setup).await;
    let run = world.look_up(json!({})).await;
    assert_eq!((run.answer.status, entered(&run).len()), (RunStatus::Failed, 0));
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
    assert_eq!(entered(&run), FULL);
    assert_eq!((world.asked("PlanFlowPath"), world.asked("CreateExecutionPlan")), (0, 0));
    let general = |node: &str, request: &Value| match node {
        "classify" => json!({"kind": "general", "title": ""}),
        _ => sensible(node, request),
    };
    let world = World::start(model(vec![], general), |setup| setup).await;
    let run = world.ask("Hello", json!({}), unplanned, true).await;
    assert_eq!(entered(&run), ["classify", "general"]);
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
    assert_eq!(entered(&run), expected);
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
    assert_eq!(world.done.runs.load(Ordering::SeqCst), 0);
}

fn decide(choice: ApproverChoice) -> Command {
    Command {
        by: "boss".to_owned(),
        note: None,
        action: CommandAction::Decide { approval: 1, choice, hash: None },
        no_own_approval: false,
        is_authenticated: false,
    }
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
async fn after_each_event_an_interrupted_run_goes_on_where_it_was() {
    let world = World::start(model(vec![FULL.to_vec()], sensible), |setup| setup).await;
    let run = world.look_up(json!({})).await;
    for length in 1..run.events.len() {
        let prefix = run.events[..length].iter().map(|event| &event.body);
        let mut state = RunState::from_events(run.answer.run_id, prefix);
        state.apply(&Event::RunResumed { epoch: state.epoch + 1, restart: true }).unwrap();
        let last = run.events[length - 1].body.name();
        assert!(!state.next().is_empty(), "nothing is due after event {length}, {last}");
    }
}
