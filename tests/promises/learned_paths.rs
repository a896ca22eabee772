//! Paths through flows that are learned from executions: what is followed without a path planner, for whom, and what never
//! is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proscenium::access::Role;
use proscenium::flow::PathMaker;
use proscenium::run::{
    Demotion, Event, FaultClass, LearnMode, PlanConstraints, PlanGuidance, RecallOutcome, RunStatus,
    SessionId, TenantId,
};
use proscenium::tools::{ToolContext, ToolError, native};
use proscenium::{ChatRequest, LearnedDocument, LearnedStanding};
use serde_json::{Value, json};

use super::flows::{Done, FLOW, FULL, World, maker, model, sensible, with_tools};
use crate::support::{FinishedRun, ScriptedLlm, ServedEngine, Setup, forced_tool, section};

const CITIES: [&str; 3] = ["Milan", "Rome", "Turin"];

fn weather(city: &str) -> String {
    format!("Show the weather in {city}.")
}

fn planner() -> ScriptedLlm {
    model(vec![FULL.to_vec()], sensible)
}

fn learning(setup: Setup, mode: LearnMode) -> Setup {
    setup.set("planning.learn", <&'static str>::from(mode))
}

async fn world(mode: LearnMode) -> World {
    World::start(planner(), |setup| learning(setup, mode)).await
}

/// Answers a request of its own conversation, with what it gives.
async fn ask_with(world: &World, words: &str, guidance: Option<PlanGuidance>) -> FinishedRun {
    let mut request = world.test.engine.request(words, None);
    request.guidance = guidance;
    answered(world, request).await
}

async fn answered(world: &World, request: ChatRequest) -> FinishedRun {
    let ticket = world.test.engine.submit(request).await.unwrap();
    let answer = ticket.answer().await.unwrap();
    world.finished(answer).await
}

async fn ask(world: &World, words: &str) -> FinishedRun {
    ask_with(world, words, None).await
}

async fn prove(world: &World) {
    for city in CITIES {
        let run = ask(world, &weather(city)).await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
        let teaches = run.events.iter().any(|event| matches!(event.body, Event::PathObserved { .. }));
        assert_eq!((maker(&run), teaches), (PathMaker::Planner, true));
    }
}

fn outcome(run: &FinishedRun) -> Option<RecallOutcome> {
    run.events.iter().find_map(|event| match &event.body {
        Event::PathRecalled { recall, .. } => Some(recall.outcome),
        _ => None,
    })
}

async fn known(world: &World) -> Vec<LearnedDocument> {
    world.test.engine.learned_plans(&world.test.tenant, None, 10).await.unwrap()
}

fn given(state: Value) -> Option<PlanGuidance> {
    PlanGuidance::of(None, Some(state), true)
}

#[tokio::test]
async fn proven_path_is_followed_without_a_question_and_replayed_as_recorded() {
    let world = world(LearnMode::Reuse).await;
    prove(&world).await;
    assert_eq!(world.asked("PlanFlowPath"), 3);
    // `World::finished` replays every run.
    let run = ask(&world, &weather("Naples")).await;
    assert_eq!((run.answer.status, outcome(&run)), (RunStatus::Completed, Some(RecallOutcome::Reused)));
    assert_eq!((world.asked("PlanFlowPath"), world.asked("CreateExecutionPlan")), (3, 4));
    assert_eq!(run.entered(), FULL);
    let flow = run.answer.steps[0].flow.as_ref().unwrap();
    assert_eq!((maker(&run), flow.planned_by), (PathMaker::Learned, PathMaker::Learned));
    let all = known(&world).await;
    assert_eq!((all.len(), all[0].flow.as_deref(), all[0].uses), (1, Some("lookup"), 1));
    assert_eq!((all[0].standing, all[0].successes), (LearnedStanding::Proven, 4));
    assert_eq!(all[0].plan["steps"][0]["path"], json!(FULL));
    let told = serde_json::to_string(&all).unwrap();
    for city in CITIES.iter().chain(&["Naples", "naples"]) {
        assert!(!told.contains(city), "{city} in {told}");
    }
    let metrics = world.test.engine.metrics().await.unwrap();
    for counted in [
        r#"proscenium_flow_paths_total{flow="lookup",planned_by="learned"} 1"#,
        r#"proscenium_path_reuse_total{outcome="reused"} 1"#,
        r#"proscenium_path_reuse_total{outcome="unproven"} 2"#,
    ] {
        assert!(metrics.contains(counted), "{counted}: {metrics}");
    }
}

#[tokio::test]
async fn at_the_level_basic_a_proven_path_is_followed_where_its_nodes_need_no_model() {
    for (has_functions, expected) in [(true, RecallOutcome::Reused), (false, RecallOutcome::Unusable)] {
        let set = |setup: Setup| {
            let setup =
                setup.set("execution.level", "adaptive").set("planning.fallback_enabled", has_functions);
            learning(setup, LearnMode::Reuse)
        };
        let world = World::start(planner(), set).await;
        prove(&world).await;
        let (paths, nodes) = (world.asked("PlanFlowPath"), world.asked("ReportNode"));
        let mut request = world.test.engine.request(&weather("Naples"), None);
        request.options.level = Some(proscenium::adapt::ExecutionLevel::Basic);
        let run = answered(&world, request).await;
        assert_eq!(outcome(&run), Some(expected));
        assert_eq!(maker(&run) == PathMaker::Learned, has_functions);
        assert_eq!(run.answer.status == RunStatus::Completed, has_functions, "{:#?}", run.answer);
        assert_eq!(
            (world.asked("PlanFlowPath"), world.asked("ReportNode")),
            (paths, nodes),
            "no model is asked"
        );
        // It was proven with models, so a run without them says nothing about it.
        let learned = known(&world).await.remove(0);
        assert_eq!((learned.standing, learned.successes), (LearnedStanding::Proven, 3));
    }
}

#[tokio::test]
async fn hints_show_proven_paths_to_the_planner_and_off_leaves_no_trace() {
    let shown = world(LearnMode::Hints).await;
    prove(&shown).await;
    let run = ask(&shown, "Show the weather in Naples tomorrow.").await;
    assert_eq!((outcome(&run), maker(&run)), (Some(RecallOutcome::Hints), PathMaker::Planner));
    assert_eq!(shown.asked("PlanFlowPath"), 4);
    let asked = shown.llm.requests();
    let paths: Vec<&Value> = asked.iter().filter(|r| forced_tool(r) == Some("PlanFlowPath")).collect();
    assert_eq!(section(paths[0], "similar_paths"), None);
    let hints = section(paths[3], "similar_paths").unwrap();
    assert!(hints.contains("show the weather in {name}") && hints.contains("validate"), "{hints}");
    assert!(CITIES.iter().all(|city| !hints.contains(city)), "{hints}");
    // A path is no plan: the planner of plans is not shown it.
    let mut plans = asked.iter().filter(|request| forced_tool(request) == Some("CreateExecutionPlan"));
    assert!(plans.all(|request| section(request, "similar_plans").is_none()));

    let off = world(LearnMode::Off).await;
    for city in CITIES.iter().chain(&["Naples"]) {
        let run = ask(&off, &weather(city)).await;
        let traces = run.events.iter().filter(|event| event.body.key().starts_with("path_"));
        assert_eq!(traces.count(), 0);
    }
    assert_eq!((off.asked("PlanFlowPath"), known(&off).await.len()), (4, 0));
}

#[tokio::test]
async fn path_is_planned_for_other_words_values_users_and_tenants() {
    let world = world(LearnMode::Reuse).await;
    prove(&world).await;
    let asked = async |request: ChatRequest| {
        let before = world.asked("PlanFlowPath");
        world.test.engine.chat(request).await.unwrap();
        world.asked("PlanFlowPath") - before
    };
    let request = |words: &str| world.test.engine.request(words, None);
    for words in [
        "Show the weather in Milan, and cancel the rest.",
        "Don't show the weather in Milan.",
        "Show that weather in Milan.",
        "Show me the weather in Milan.",
        "Show the weather in Milan tomorrow.",
    ] {
        assert_eq!(asked(request(words)).await, 1, "{words}");
    }
    // Each request names another city: equal questions share a cached reply.
    let mut with_sql = request(&weather("Bergamo"));
    with_sql.guidance = given(json!({"sql": "select 5"}));
    assert_eq!(asked(with_sql).await, 1, "other values are given");
    let mut constrained = request(&weather("Trento"));
    let within = PlanConstraints { max_steps: Some(3), ..PlanConstraints::default() };
    constrained.guidance = PlanGuidance::of(Some(within), None, true);
    assert_eq!(asked(constrained).await, 1, "a constraint");
    let mut unrelated = request(&weather("Udine"));
    unrelated.guidance = given(json!({"unrelated": 1}));
    assert_eq!(asked(unrelated).await, 1, "the planner saw what is no input of the flow");
    let before = known(&world).await.len();
    ask_with(&world, &weather("Cuneo"), given(json!({"save": false}))).await;
    assert_eq!(known(&world).await.len(), before, "a planner that saw given values teaches nothing");
    let (_, user) = world.test.engine.default_principal();
    let of =
        |tenant: &TenantId, user: &str, city: &str| ChatRequest::new(weather(city), tenant.clone(), user);
    assert_eq!(asked(of(&world.test.tenant, "bob", "Lecce")).await, 1, "he never said such a request");
    assert_eq!(asked(of(&TenantId::new("elsewhere").unwrap(), &user, "Varese")).await, 1);
    let named = request(&weather("Savona"));
    let plan = proscenium::plan::Plan::of_flow("lookup", &weather("Savona"));
    assert_eq!(asked(ChatRequest { plan: Some(plan), ..named }).await, 0, "it names the flow itself");
}

#[tokio::test]
async fn nothing_is_learned_in_a_conversation_or_where_the_graph_led_elsewhere() {
    let corrected = |node: &str, request: &Value| {
        let task = section(request, "task").unwrap_or_default();
        match node {
            "generate" if !task.contains("Not so") => json!({"sql": "drop everything"}),
            _ => sensible(node, request),
        }
    };
    let world =
        World::start(model(vec![FULL.to_vec()], corrected), |setup| learning(setup, LearnMode::Reuse)).await;
    let run = ask(&world, &weather("Milan")).await;
    assert_eq!((run.answer.status, known(&world).await.len()), (RunStatus::Completed, 0));
    let world = self::world(LearnMode::Reuse).await;
    let session = SessionId::new("s").unwrap();
    for (words, expected) in [(weather("Milan"), 1), (weather("Rome"), 1)] {
        let request = world.test.engine.request(&words, Some(session.clone()));
        answered(&world, request).await;
        assert_eq!(known(&world).await[0].successes, expected, "{words}");
    }
    assert!(world.test.engine.erase(&world.test.tenant, &session).await.unwrap());
    assert!(known(&world).await.is_empty(), "one user's template is erased with the conversation");
}

/// A world in which a query is not valid, or its back end out of service, once that is set.
async fn fragile() -> (World, Arc<AtomicBool>, Arc<AtomicBool>) {
    let (invalid, down) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (is_invalid, is_down) = (invalid.clone(), down.clone());
    let llm = model(vec![FULL.to_vec()], move |node, request| match node {
        "generate" if is_invalid.load(Ordering::SeqCst) => json!({"sql": "drop everything"}),
        _ => sensible(node, request),
    });
    let run = native(move |sent: Value, _: ToolContext| {
        let is_down = is_down.load(Ordering::SeqCst);
        async move {
            match is_down {
                true => Err(ToolError::failed("db.down", "no answer").classed(FaultClass::Unavailable)),
                false => Ok(json!({"rows": [sent["sql"]]})),
            }
        }
    });
    let set = |setup: Setup| learning(setup, LearnMode::Reuse).native("test.run", run);
    (World::start(llm, set).await, invalid, down)
}

#[tokio::test]
async fn outage_suspends_a_failure_demotes_and_the_next_path_is_planned() {
    let (world, invalid, down) = fragile().await;
    prove(&world).await;
    down.store(true, Ordering::SeqCst);
    let run = ask(&world, &weather("Naples")).await;
    assert_eq!((run.answer.status, outcome(&run)), (RunStatus::Failed, Some(RecallOutcome::Reused)));
    let learned = known(&world).await.remove(0);
    assert_eq!((learned.standing, learned.demoted), (LearnedStanding::Suspended, None));
    down.store(false, Ordering::SeqCst);
    invalid.store(true, Ordering::SeqCst);
    let run = ask(&world, &weather("Naples")).await;
    assert_eq!((run.answer.status, outcome(&run)), (RunStatus::Failed, Some(RecallOutcome::Suspended)));
    let learned = known(&world).await.remove(0);
    assert_eq!((learned.demoted, learned.failures), (Some(Demotion::Failure), 1));
    invalid.store(false, Ordering::SeqCst);
    assert_eq!(outcome(&ask(&world, &weather("Naples")).await), Some(RecallOutcome::Demoted));
    assert_eq!(world.asked("PlanFlowPath"), 5);
}

#[tokio::test]
async fn changed_flow_demotes_at_once_and_the_path_is_learned_again() {
    let world = world(LearnMode::Reuse).await;
    prove(&world).await;
    world.redefine(&FLOW.replace("Runs the query.", "Runs the query once.")).await;
    let run = ask(&world, &weather("Naples")).await;
    assert_eq!((outcome(&run), maker(&run)), (Some(RecallOutcome::Changed), PathMaker::Planner));
    let learned = known(&world).await.remove(0);
    assert_eq!((learned.successes, learned.standing), (1, LearnedStanding::Unproven));
    for city in ["Bari", "Siena"] {
        assert_eq!(outcome(&ask(&world, &weather(city)).await), Some(RecallOutcome::Unproven));
    }
    assert_eq!(outcome(&ask(&world, &weather("Pisa")).await), Some(RecallOutcome::Reused));
}

#[tokio::test]
async fn write_on_a_learned_path_is_confirmed_though_the_policy_asks_for_nothing() {
    let saving = vec!["classify", "generate", "validate", "approve", "execute", "store"];
    let llm = model(vec![saving], sensible);
    let world = World::start(llm, |setup| learning(setup, LearnMode::Reuse)).await;
    let save = async |city: &str| {
        let words = format!("Save the report about {city}.");
        // What a planner worded with a given state is not learned; here, the flow is asked for by name.
        let mut request = world.test.engine.request(&words, None);
        request.plan = Some(proscenium::plan::Plan::of_flow("lookup", &words));
        request.guidance = given(json!({"save": true}));
        answered(&world, request).await
    };
    for city in CITIES {
        assert_eq!(save(city).await.answer.status, RunStatus::Completed);
    }
    assert_eq!(world.done.saves.load(Ordering::SeqCst), 3);
    let run = save("Naples").await;
    assert_eq!((run.answer.status, maker(&run)), (RunStatus::NeedsInput, PathMaker::Learned));
    assert_eq!(world.done.saves.load(Ordering::SeqCst), 3, "nobody considered the title");
}

#[tokio::test]
async fn learned_path_survives_a_restart_and_is_listed_rated_and_deleted_over_http() {
    let (scenes, done) = (tempfile::tempdir().unwrap(), Arc::new(Done::default()));
    let (llm, dir) = (planner(), Arc::new(tempfile::tempdir().unwrap()));
    let setup = || learning(with_tools(Setup::scripted(&llm), &scenes, &done), LearnMode::Reuse);
    let first = setup().on(&dir).set("planning.learn_after", 1).start().await;
    let key = first.key(first.tenant.as_str(), "root", Role::Admin).await;
    let (tenant, paths) = (first.tenant.clone(), || {
        let asked = llm.requests();
        asked.iter().filter(|request| forced_tool(request) == Some("PlanFlowPath")).count()
    });
    let request = ChatRequest::new(weather("Milan"), tenant, "root");
    assert_eq!(first.engine.chat(request).await.unwrap().status, RunStatus::Completed);
    drop(first.stop().await);

    let served = ServedEngine::start(setup().on(&dir).set("planning.learn_after", 1)).await;
    served.wait_for_keys().await;
    let send = async |method: &str, path: &str, body: Value| served.send(&key, method, path, &body).await;
    // Each request names another city: equal questions share a cached reply.
    let chat = async |city: &str| {
        let body = json!({"messages": [{"role": "user", "content": weather(city)}]});
        send("POST", "/api/chat", body).await.json()
    };
    let answer = chat("Rome").await;
    assert_eq!((&answer["status"], paths()), (&json!("completed"), 1), "{answer:#}");
    assert_eq!(answer["steps"][0]["flow"]["planned_by"], "learned", "{answer:#}");
    let listed = send("GET", "/api/learned", Value::Null).await.json();
    let one = &listed["learned"][0];
    assert_eq!((&one["flow"], &one["uses"]), (&json!("lookup"), &json!(1)), "{listed:#}");
    let address = format!("/api/learned/{}", one["id"].as_str().unwrap());

    let rating = format!("/api/plans/{}/rating", answer["task_id"].as_str().unwrap());
    assert_eq!(send("POST", &rating, json!({"score": -1})).await.status, 200);
    assert_eq!(send("GET", &address, Value::Null).await.json()["demoted"], "rating");
    chat("Turin").await;
    assert_eq!(paths(), 2, "it is not followed any more");
    assert_eq!(send("POST", &rating, json!({"score": 1})).await.status, 200);
    chat("Naples").await;
    assert_eq!(paths(), 2);
    assert_eq!(send("DELETE", &address, Value::Null).await.status, 204);
    chat("Siena").await;
    assert_eq!(paths(), 3);
}
