//! Learning from executions: what is reused without a planner, for whom, and what never is.

use proscenium::access::Role;
use proscenium::adapt::ExecutionLevel;
use proscenium::run::{ConfirmPolicy, Event, LearnMode, PlanMaker, RecallOutcome, RunStatus, SessionId};
use proscenium::{ChatRequest, Config, LearnedStanding};
use serde_json::{Value, json};

use crate::support::planner_engine::{AnsweredRun, ModelRules, QuestionKind, Town, plan, requests, step};
use crate::support::{Scripted, ScriptedLlm, ServedEngine, Setup, section};

/// A planner that finds a title in quotes, or a plate and a day, in the request.
fn planner(request: &Value) -> Scripted {
    let words = section(request, "request").unwrap();
    let quoted = words.split('"').nth(1).map(str::to_owned);
    let plate =
        words.split([' ', '.']).find(|word| word.len() == 7 && word.ends_with("CD")).map(str::to_owned);
    let (scene, tool, arguments) = match (quoted, plate) {
        (Some(title), _) => ("Library", "FindBook", json!({"title": title})),
        (None, Some(plate)) => ("Parking", "BookSpace", json!({"day": "2026-05-05", "plate": plate})),
        (None, None) => ("Canteen", "Menu", json!({"day": "2026-05-05"})),
    };
    let mut planned = step(1, scene, &[tool], Value::Null);
    planned["prepared_calls"] = json!([{"tool": tool, "arguments": arguments.to_string()}]);
    planned["if_needed"] = json!([]);
    Scripted::forced(request, plan(json!([planned])))
}

fn model() -> ScriptedLlm {
    ModelRules::of(Value::Null).plan(|request, _| planner(request)).start()
}

fn reuse(config: &mut Config) {
    config.planning.learn = LearnMode::Reuse;
    config.execution.level = Some(ExecutionLevel::Basic);
}

fn outcome(run: &AnsweredRun) -> RecallOutcome {
    let recalled = run.events.iter().find_map(|event| match event {
        Event::PlanRecalled(recall) => Some(recall.outcome),
        _ => None,
    });
    recalled.unwrap()
}

async fn teach(town: &Town, times: usize) {
    for title in ["Dune", "Emma", "Ulysses"].iter().cycle().take(times) {
        let run = town.ask(&format!("Find the book \"{title}\".")).await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
        assert!(run.has("plan_observed"), "{:?}", run.names());
    }
}

#[tokio::test]
async fn proven_plan_needs_no_planner_and_at_basic_no_model() {
    let llm = model();
    let town = Town::open(&llm, reuse).await;
    teach(&town, 3).await;
    assert_eq!(llm.count(), 3);
    let run = town.ask("Find the book \"Solaris\".").await;
    assert_eq!((run.answer.status, outcome(&run)), (RunStatus::Completed, RecallOutcome::Reused), "{run:#?}");
    assert_eq!(llm.count(), 3, "no model was asked");
    assert_eq!(run.plans()[0].maker, PlanMaker::Learned);
    assert_eq!(town.log.calls().last().unwrap().1, json!({"title": "Solaris"}));
    assert!(run.answer.answer.contains("The book Solaris is on shelf B4"), "{}", run.answer.answer);
}

#[tokio::test]
async fn plan_is_not_reused_for_other_words_hidden_clauses_or_the_conversation() {
    let llm = model();
    let town = Town::open(&llm, reuse).await;
    teach(&town, 3).await;
    for words in [
        "Find the book \"Dune\", and cancel the rest.",
        "Don't find the book \"Dune\".",
        "If it rains, find the book \"Dune\".",
        "Find that book \"Dune\".",
        "Find the books \"Dune\".",
        "Find the book \"Dune\" tomorrow.",
    ] {
        let before = llm.count();
        let run = town.ask(words).await;
        assert_ne!(outcome(&run), RecallOutcome::Reused, "{words}");
        assert_eq!(llm.count(), before + 1, "{words}");
    }
}

#[tokio::test]
async fn plan_of_few_users_serves_only_them() {
    let llm = model();
    let town = Town::open(&llm, reuse).await;
    let ask = async |user: &str| {
        let (tenant, _) = town.engine.default_principal();
        let request = ChatRequest::new("Find the book \"Dune\".", tenant.clone(), user);
        let answer = town.engine.chat(request).await.unwrap();
        let events = town.engine.store().run_events(&tenant, answer.run_id).await.unwrap();
        events
            .iter()
            .any(|event| matches!(&event.body, Event::PlanCreated(made) if made.maker == PlanMaker::Learned))
    };
    for _ in 0..3 {
        assert!(!ask("ada").await);
    }
    assert!(ask("ada").await, "it is her own");
    assert!(!ask("bob").await);
    assert!(ask("bob").await, "he said it before");
    assert!(!ask("eve").await);
    assert!(ask("nobody").await, "three users said it");
}

#[tokio::test]
async fn reused_write_is_confirmed_unless_the_request_names_it() {
    let llm = model();
    let town = Town::open(&llm, |config| {
        reuse(config);
        config.execution.confirm = ConfirmPolicy::Never;
    })
    .await;
    for plate in ["AA111CD", "BB222CD", "CC333CD"] {
        let run = town.ask(&format!("Book a parking space for tomorrow for the plate {plate}.")).await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    }
    let run = town.ask("Book a parking space for tomorrow for the plate DD444CD.").await;
    assert_eq!((run.answer.status, outcome(&run)), (RunStatus::Completed, RecallOutcome::Reused));
    assert_eq!(town.log.calls().last().unwrap().1, json!({"day": "2026-05-05", "plate": "DD444CD"}));
    assert_eq!((town.log.names().len(), llm.count()), (4, 3));
}

#[tokio::test]
async fn hints_are_shown_to_the_planner_and_plan_nothing_by_themselves() {
    let llm = model();
    let town = Town::open(&llm, |config| config.planning.learn = LearnMode::Hints).await;
    teach(&town, 3).await;
    let run = town.ask("Find the book \"Solaris\" in the library.").await;
    assert_eq!(outcome(&run), RecallOutcome::Hints);
    let asked = requests(&llm, QuestionKind::Plan);
    let hints = section(asked.last().unwrap(), "similar_plans").unwrap();
    assert!(hints.contains("find the book \\\" {quote} \\\"") && hints.contains("FindBook"), "{hints}");
    assert!(!hints.contains("Dune"), "{hints}");
    assert_eq!(section(&asked[0], "similar_plans"), None);
}

#[tokio::test]
async fn nothing_is_learned_in_a_conversation_and_off_leaves_no_trace() {
    let llm = model();
    let town = Town::open(&llm, reuse).await;
    let session = || Some(SessionId::new("s").unwrap());
    town.ask_in(session(), "What is on the menu tomorrow?").await;
    let run = town.ask_in(session(), "Find the book \"Dune\".").await;
    assert!(!run.has("plan_observed"), "{:?}", run.names());
    let off = Town::open(&llm, |_| {}).await;
    let run = off.ask("Find the book \"Dune\".").await;
    assert!(!run.has("plan_recalled") && !run.has("plan_observed"), "{:?}", run.names());
}

/// A served engine in which a plan is proven.
async fn served(llm: &ScriptedLlm) -> ServedEngine {
    let mut setup =
        Setup::scripted(llm).alone().set("planning.learn", "reuse").set("planning.learn_after", 1);
    setup = crate::support::planner_engine::scenes(&Default::default()).into_iter().fold(setup, Setup::scene);
    ServedEngine::start(setup).await
}

async fn find(served: &ServedEngine, key: &str, title: &str) -> Value {
    let words = format!("Find the book \"{title}\".");
    let body = json!({"messages": [{"role": "user", "content": words}]});
    served.send(key, "POST", "/api/chat", &body).await.json()
}

#[tokio::test]
async fn bad_rating_ends_the_reuse_and_a_good_one_lifts_that() {
    let llm = model();
    let served = served(&llm).await;
    let key = async |user: &str, role: Role| served.key(served.tenant.as_str(), user, role).await;
    let (ada, bob) = (key("ada", Role::User).await, key("bob", Role::User).await);
    let (auditor, admin) = (key("audrey", Role::Auditor).await, key("root", Role::Admin).await);
    served.wait_for_keys().await;
    let send =
        async |key: &str, method: &str, path: &str, body: Value| served.send(key, method, path, &body).await;
    let first = find(&served, &ada, "Dune").await;
    let path = format!("/api/plans/{}/rating", first["task_id"].as_str().unwrap());
    send(&ada, "POST", &path, json!({"score": 0})).await.assert_problem(422, "request.body");
    send(&bob, "POST", &path, json!({"score": 1})).await.assert_problem(404, "plan.unknown");
    send(&auditor, "POST", &path, json!({"score": 1})).await.assert_problem(403, "auth.role");
    let list = send(&auditor, "GET", "/api/learned", Value::Null).await.json();
    assert_eq!(list["learned"][0]["standing"], "proven", "{list:#}");
    let after = format!("/api/learned?after={}", list["learned"][0]["id"].as_str().unwrap());
    let next = send(&auditor, "GET", &after, Value::Null).await.json();
    assert_eq!(next["learned"], json!([]), "{next:#}");
    send(&auditor, "GET", "/api/learned?after=zz", Value::Null).await.assert_problem(404, "learned.unknown");
    let rated = send(&ada, "POST", &path, json!({"score": -1, "note": "not what I meant"})).await;
    assert_eq!(rated.status, 200, "{rated:#?}");
    let ratings = &rated.json()["ratings"];
    assert_eq!((&ratings[0]["score"], &ratings[0]["by"]), (&json!(-1), &json!("ada")), "{ratings:#}");

    let id = list["learned"][0]["id"].as_str().unwrap();
    let one = format!("/api/learned/{id}");
    let shown = send(&admin, "GET", &one, Value::Null).await.json();
    assert_eq!((&shown["standing"], &shown["demoted"]), (&json!("demoted"), &json!("rating")), "{shown:#}");
    assert_eq!(shown["request"], "find the book \" {quote} \"");
    let planned = |llm: &ScriptedLlm| requests(llm, QuestionKind::Plan).len();
    find(&served, &ada, "Emma").await;
    assert_eq!(planned(&llm), 2);
    let rated = send(&ada, "POST", &path, json!({"score": 1})).await;
    assert_eq!(rated.json()["ratings"].as_array().unwrap().len(), 1, "the last one of each person counts");
    find(&served, &ada, "Emma").await;
    assert_eq!(planned(&llm), 2, "it is reused");

    for key in [&ada, &bob] {
        send(key, "GET", "/api/learned", Value::Null).await.assert_problem(403, "auth.role");
        send(key, "DELETE", &one, Value::Null).await.assert_problem(403, "auth.role");
    }
    send(&auditor, "DELETE", &one, Value::Null).await.assert_problem(403, "auth.role");
    assert_eq!(send(&admin, "DELETE", &one, Value::Null).await.status, 204);
    send(&admin, "GET", &one, Value::Null).await.assert_problem(404, "learned.unknown");
    let metrics = send(&admin, "GET", "/metrics", Value::Null).await.body;
    for line in [
        "proscenium_plan_reuse_total{outcome=\"reused\"} 1",
        "proscenium_plan_ratings_total{score=\"bad\"} 1",
        "proscenium_learned_plans{state=\"proven\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[tokio::test]
async fn learned_template_of_one_user_is_erased_with_the_conversation() {
    let llm = model();
    let town = Town::open(&llm, reuse).await;
    let session = SessionId::new("s").unwrap();
    town.ask_in(Some(session.clone()), "Find the book \"Dune\".").await;
    let (tenant, _) = town.engine.default_principal();
    let known = async || town.engine.learned_plans(&tenant, None, 10).await.unwrap();
    assert_eq!(known().await[0].standing, LearnedStanding::Unproven);
    assert!(town.engine.erase(&tenant, &session).await.unwrap());
    assert!(known().await.is_empty());
}
