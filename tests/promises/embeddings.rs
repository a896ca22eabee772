//! Scenes are ranked by embeddings where a model offers them, and by words alone where that fails.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::tz::TimeZone;
use proscenium::run::{ConfirmPolicy, Event, RunStatus, Subject, TenantId};
use proscenium::scene::{Catalogue, Scene};
use proscenium::{ChatRequest, Config};
use serde_json::{Value, json};

use crate::many_scenes::register;
use crate::process::Workspace;
use crate::support::planner_engine::{
    AnsweredRun, CallLog, ModelRules, QuestionKind, Town, plan, requests, scenes, step,
};
use crate::support::{Scripted, ScriptedLlm, embeddings, eventually, section};

/// Scenes besides the three of the town.
const OTHERS: usize = 47;
/// A request for parking that shares no word with that scene.
const REQUEST: &str = "Where does a roadster sleep overnight?";

fn fifty_scenes(log: &CallLog) -> Vec<Scene> {
    scenes(log).into_iter().chain((0..OTHERS).map(register)).collect()
}

fn planner() -> ScriptedLlm {
    ModelRules::of(plan(json!([step(1, "Parking", &["FreeSpaces"], Value::Null)]))).start()
}

/// Fifty scenes, of which prompts describe two.
fn config(llm: &ScriptedLlm, vectors: Option<&ScriptedLlm>) -> Config {
    let mut config = Config { llm: llm.options(), ..Config::default() };
    config.llm.models.extend(vectors.map(embeddings::model));
    config.planning.fallback_enabled = false;
    config.planning.shortlist = 2;
    // A slow machine must not turn a ranking into a failure.
    config.planning.embeddings_timeout_ms = 60_000;
    config.execution.confirm = ConfirmPolicy::Never;
    config
}

async fn open(config: Config) -> Town {
    let log = CallLog::default();
    let scenes = fifty_scenes(&log);
    Town::with(config, scenes, log).await
}

/// The names of the scenes that the prompt for the first plan describes.
fn shortlist(llm: &ScriptedLlm) -> Vec<String> {
    let asked = requests(llm, QuestionKind::Plan);
    let lines = section(&asked[0], "shortlist").unwrap();
    let name =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["scene"].as_str().unwrap().to_owned();
    lines.lines().map(name).collect()
}

/// The questions about the ranking, and the code of the fault of each that failed.
fn rankings(run: &AnsweredRun) -> (usize, Vec<String>) {
    let mut asked = Vec::new();
    let mut failed = Vec::new();
    for event in &run.events {
        match event {
            Event::ModelAsked { call, subject: Subject::Ranking, .. } => asked.push(*call),
            Event::ModelFailed { call, error, .. } if asked.contains(call) => failed.push(error.code.clone()),
            _ => {}
        }
    }
    (asked.len(), failed)
}

#[tokio::test]
async fn request_in_other_words_reaches_its_scene() {
    let words: Vec<Scene> = fifty_scenes(&CallLog::default());
    let catalogue = Catalogue::new(words);
    let found: Vec<&str> = catalogue.matching(REQUEST).map(|scene| scene.name.as_str()).collect();
    assert!(!found.contains(&"Parking"), "{found:?}");

    let (llm, vectors) = (planner(), embeddings::server());
    let town = open(config(&llm, Some(&vectors))).await;
    let run = town.ask(REQUEST).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    assert!(shortlist(&llm).contains(&"Parking".to_owned()), "{:?}", shortlist(&llm));
    assert_eq!(town.log.names(), ["FreeSpaces"]);
    assert_eq!(rankings(&run), (1, vec![]));
    let before = run.names().iter().position(|name| *name == "plan_created").unwrap();
    let ranked = run.names().iter().position(|name| *name == "scenes_ranked").unwrap();
    assert!(ranked < before, "{:?}", run.names());
    // Every scene once, in batches, and the request.
    assert_eq!(embeddings::counts(&vectors).len(), OTHERS + 3 + 1);
    assert_eq!(vectors.count(), 3);
    assert!(embeddings::counts(&vectors).values().all(|count| *count == 1));
    town.ask("Does that roadster stay overnight?").await;
    assert_eq!(vectors.count(), 4, "the vectors of scenes are kept");
    let run = town.ask(REQUEST).await;
    assert_eq!((rankings(&run), vectors.count()), ((1, vec![]), 4), "the embedding of the request is cached");
}

#[tokio::test]
async fn ranking_costs_its_run_and_vectors_of_scenes_the_default_tenant() {
    let (llm, vectors) = (planner(), embeddings::server());
    let town = open(config(&llm, Some(&vectors))).await;
    let (own, user) = town.engine.default_principal();
    let other = TenantId::new("acme").unwrap();
    let answer = town.engine.chat(ChatRequest::new(REQUEST, other.clone(), user)).await.unwrap();
    // Ten tokens a text, at one USD per million.
    assert_eq!(answer.usage.cost_usd, 10.0 / 1e6);
    let embedded = async |tenant: &TenantId| {
        let rows = town.engine.store().usage_breakdown(tenant, None, None, &TimeZone::UTC).await.unwrap();
        let rows = rows.into_iter().filter(|row| row.purpose == "embedding" && row.model == "vectors");
        rows.map(|row| (row.calls, row.cost_nano_usd)).collect::<Vec<_>>()
    };
    assert_eq!(embedded(&other).await, [(1, 10_000)]);
    assert_eq!(embedded(&own).await, [(2, (OTHERS as u64 + 3) * 10_000)]);
    let total = town.engine.store().usage(None, None).await.unwrap();
    assert_eq!(
        total[&own].cost_nano_usd,
        (OTHERS as u64 + 3) * 10_000,
        "a start rebuilds the budget from this"
    );
}

#[tokio::test]
async fn reload_tries_at_once_what_failed_before() {
    let llm = planner();
    let vectors = ScriptedLlm::start(|request, nth| match nth {
        0 => Scripted::status(401),
        _ => embeddings::embedded(request),
    });
    let config = config(&llm, Some(&vectors));
    let town = open(config.clone()).await;
    assert_eq!(rankings(&town.ask(REQUEST).await), (1, vec!["llm.unauthorized".to_owned()]));
    town.engine.reload(config).await.unwrap();
    let run = town.ask(REQUEST).await;
    assert_eq!(rankings(&run), (1, vec![]));
    assert!(run.has("scenes_ranked"));
}

#[tokio::test]
async fn failed_vectors_of_scenes_leave_the_words() {
    let zeros = |count: usize, dimensions: usize| vec![vec![1.0; dimensions]; count];
    let faults: Vec<(&str, Scripted)> = vec![
        ("llm.status", Scripted::status(500)),
        ("llm.unauthorized", Scripted::status(401)),
        ("llm.timeout", Scripted::Silence),
        ("llm.malformed", Scripted::Malformed("{\"data\": [".to_owned())),
        ("llm.malformed", Scripted::WrongContentType),
        ("llm.malformed", Scripted::Json(json!({"data": []}))),
        ("llm.malformed", embeddings::reply(&zeros(31, 4))),
        ("llm.malformed", embeddings::reply(&vec![Vec::new(); 32])),
        ("llm.malformed", embeddings::reply(&[zeros(31, 4), zeros(1, 5)].concat())),
        ("llm.malformed", embeddings::reply(&vec![vec![0.0; 4]; 32])),
        ("llm.malformed", Scripted::Json(json!({"data": vec![json!({"embedding": ["NaN", null]}); 32]}))),
        ("llm.too_large", Scripted::Json(json!({"data": "x".repeat(5 * 1024 * 1024)}))),
    ];
    for (code, fault) in faults {
        let (llm, told) = (planner(), format!("{fault:.80?}"));
        let is_silent = matches!(fault, Scripted::Silence);
        let vectors = ScriptedLlm::sequence([fault]);
        let mut config = config(&llm, Some(&vectors));
        if is_silent {
            config.planning.embeddings_timeout_ms = 50;
        }
        let town = open(config).await;
        for _ in 0..3 {
            let run = town.ask("Are parking spaces free tomorrow?").await;
            assert_eq!(run.answer.status, RunStatus::Completed, "{told} {run:#?}");
            assert_eq!(rankings(&run), (1, vec![code.to_owned()]), "{told}");
            assert!(!run.has("scenes_ranked"));
        }
        assert!(shortlist(&llm).contains(&"Parking".to_owned()));
        assert_eq!(vectors.count(), 1, "{told}: nothing is asked again for a while");
    }
}

#[tokio::test]
async fn failed_embedding_of_a_request_leaves_the_words() {
    let faults: Vec<(&str, Scripted)> = vec![
        ("llm.status", Scripted::status(503)),
        ("llm.malformed", Scripted::Json(json!({"choices": []}))),
        ("llm.malformed", embeddings::reply(&[vec![1.0, 2.0, 3.0]])),
        ("llm.malformed", embeddings::reply(&[vec![1.0], vec![1.0]])),
    ];
    for (code, fault) in faults {
        let llm = planner();
        let told = format!("{fault:.80?}");
        let vectors =
            ScriptedLlm::start(move |request, _| match embeddings::inputs(request).unwrap().len() {
                1 => fault.clone(),
                _ => embeddings::embedded(request),
            });
        let town = open(config(&llm, Some(&vectors))).await;
        let run = town.ask("Are parking spaces free tomorrow?").await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{told} {run:#?}");
        assert_eq!(rankings(&run), (1, vec![code.to_owned()]), "{told}");
        assert!(shortlist(&llm).contains(&"Parking".to_owned()));
        assert_eq!(vectors.count(), 3, "{told}: it is not asked again");
    }
}

#[tokio::test]
async fn exhausted_budget_leaves_the_words() {
    let (llm, vectors) = (planner(), embeddings::server());
    let mut config = config(&llm, Some(&vectors));
    config.budget.run_usd = Some(1e-9);
    let town = open(config).await;
    let run = town.ask("Are parking spaces free tomorrow?").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    assert_eq!(rankings(&run), (1, vec!["budget.exceeded".to_owned()]));
    assert_eq!(run.answer.usage.cost_usd, 0.0);
}

#[tokio::test]
async fn nothing_is_asked_where_nothing_is_ranked_by_embeddings() {
    let (llm, vectors) = (planner(), embeddings::server());
    let few = |config: &mut Config| config.planning.shortlist = 50;
    let off = |config: &mut Config| config.planning.embeddings_timeout_ms = 0;
    let all = |config: &mut Config| config.planning.shortlist = 0;
    let none = |config: &mut Config| config.llm.models.retain(|model| !model.embeddings);
    let changes: [&dyn Fn(&mut Config); 4] = [&few, &off, &all, &none];
    for change in changes {
        let mut config = config(&llm, Some(&vectors));
        change(&mut config);
        let town = open(config).await;
        let run = town.ask("Are parking spaces free tomorrow?").await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
        assert_eq!(rankings(&run), (0, vec![]));
    }
    assert_eq!(vectors.count(), 0);
}

#[tokio::test]
async fn reload_embeds_only_changed_texts() {
    let (llm, vectors) = (planner(), embeddings::server());
    let folder = tempfile::tempdir().unwrap();
    let write = |about: &str| {
        let text = format!(
            "name = \"Notes\"\ndescription = \"{about}\"\ninstructions = \"Look notes up.\"\n\
             examples = [{{ say = \"Show note 7\", tool = \"GetNote\" }}]\n[[tools]]\nname = \"GetNote\"\n\
             description = \"Tells what a note says.\"\neffect = \"read\"\n\
             parameters = {{ type = \"object\", required = [\"number\"], properties = {{ number = {{ type = \
             \"integer\", description = \"The note's number\" }} }} }}\n\
             http = {{ method = \"GET\", url = \"http://127.0.0.1:9/{{number}}\" }}\n"
        );
        fs::create_dir_all(folder.path().join("notes")).unwrap();
        fs::write(folder.path().join("notes/scene.toml"), text).unwrap();
    };
    write("Notes of the office.");
    let mut config = config(&llm, Some(&vectors));
    config.scenes.dir = Some(folder.path().to_owned());
    config.scenes.allow_hosts = vec!["127.0.0.1:9".to_owned()];
    config.cache.max_bytes = 0;
    let town = open(config.clone()).await;
    town.ask(REQUEST).await;
    let before = embeddings::counts(&vectors);
    assert_eq!(before.len(), OTHERS + 3 + 1 + 1);
    write("Notes of the whole company.");
    // The vectors do not depend on what they cost.
    config.llm.models[1].input_usd_per_million = 2.0;
    // The clock and the data directory stay as the town has them.
    town.engine.reload(config).await.unwrap();
    town.ask(REQUEST).await;
    let mut after = embeddings::counts(&vectors);
    assert_eq!(after.remove(REQUEST), Some(2));
    assert!(after.values().all(|count| *count == 1), "{after:?}");
    let new: Vec<&String> = after.keys().filter(|text| !before.contains_key(*text)).collect();
    assert!(new.len() == 1 && new[0].starts_with("Notes: Notes of the whole company."), "{new:?}");
}

#[tokio::test]
async fn vectors_of_scenes_are_computed_when_the_engine_begins_to_serve() {
    let (llm, vectors) = (planner(), embeddings::server());
    let town = open(config(&llm, Some(&vectors))).await;
    assert_eq!(vectors.count(), 0);
    town.engine.resume_unfinished().await.unwrap();
    eventually("the vectors are computed", async || vectors.count() == 2).await;
}

#[tokio::test]
async fn engine_stops_while_vectors_are_computed() {
    let llm = planner();
    let begun = Arc::new(AtomicBool::new(false));
    let seen = begun.clone();
    let vectors = ScriptedLlm::start(move |_, _| {
        seen.store(true, Ordering::SeqCst);
        Scripted::Silence
    });
    let town = open(config(&llm, Some(&vectors))).await;
    town.engine.resume_unfinished().await.unwrap();
    eventually("a batch is sent", async || begun.load(Ordering::SeqCst)).await;
    town.engine.stop().await.unwrap();
}

#[test]
fn check_tests_a_model_of_embeddings_and_names_a_wrong_purpose() {
    let vectors = embeddings::server();
    let models = format!(
        "[[llm.models]]\nname = \"vectors\"\nbase_url = \"{}\"\nembeddings = true\n",
        vectors.base_url()
    );
    let workspace = Workspace::bare();
    workspace.write("site.toml", &models);
    let ran = workspace.run(&["check", "--live", "--config", "site.toml"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    for expected in
        ["vectors: vectors at http://127.0.0.1", "for embeddings, no key", "embeds texts in 40 dimensions"]
    {
        assert!(ran.out.contains(expected), "no {expected:?} in {}", ran.out);
    }
    workspace.write("site.toml", &format!("{models}\n[llm.purposes]\nplan = [\"vectors\"]\n"));
    let ran = workspace.run(&["check", "--config", "site.toml"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.out.contains("`llm.purposes.plan.0` = `vectors` offers only embeddings"), "{}", ran.out);
    assert!(ran.out.contains("help: name it in `llm.purposes.embedding` only"), "{}", ran.out);
    drop(vectors);
    workspace.write("site.toml", &models);
    let ran = workspace.run(&["check", "--live", "--config", "site.toml"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.out.contains("model vectors: error[llm.connect]"), "{}", ran.out);
}
