//! Catalogues with more scenes than `planning.shortlist`: a plan's prompt lists all of them and describes some, and the
//! planner can ask for others.

use proscenium::Config;
use proscenium::run::{ConfirmPolicy, Effect, RunStatus};
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, native};
use serde_json::{Value, json};

use crate::support::planner_engine::{
    CallLog, ModelRules, QuestionKind, Town, arguments_of, book_plan, plan, requests, scenes, step,
};
use crate::support::{Scripted, ScriptedLlm, section};

/// Scenes besides those of the town.
const OTHERS: usize = 40;

/// A scene that no request of these tests is about.
pub(super) fn register(number: usize) -> Scene {
    let work = native(|_: Value, _: ToolContext| async { Ok(json!("found")) });
    let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let tool = SceneTool::dynamic("LookUp", "Looks up an entry by its id.", Effect::Read, schema, work);
    Scene::builder(&format!("Register{number}"))
        .description(&format!("Keeps the entries of the commercial register {number}. Only clerks use it."))
        .instructions("Be brief.")
        .tool(tool)
        .build()
        .unwrap()
}

async fn open(llm: &ScriptedLlm, shortlist: u32) -> Town {
    let mut config = Config { llm: llm.options(), ..Config::default() };
    config.planning.fallback_enabled = false;
    config.planning.shortlist = shortlist;
    config.execution.confirm = ConfirmPolicy::Never;
    let log = CallLog::default();
    let scenes = scenes(&log).into_iter().chain((0..OTHERS).map(register)).collect();
    Town::with(config, scenes, log).await
}

/// The names of the scenes of a section, in order.
fn names(request: &Value, name: &str) -> Vec<String> {
    let lines = section(request, name).unwrap_or_default();
    let scene =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["scene"].as_str().unwrap().to_owned();
    lines.lines().map(scene).collect()
}

#[tokio::test]
async fn prompt_lists_every_scene_and_describes_those_that_fit_the_request() {
    let llm = ModelRules::of(book_plan()).start();
    let town = open(&llm, 5).await;
    let run = town.ask("On which shelf is the book Dune?").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    let asked = &requests(&llm, QuestionKind::Plan)[0];
    assert_eq!(names(asked, "scenes").len(), OTHERS + 3);
    let overview = section(asked, "scenes").unwrap();
    assert!(!overview.contains("Only clerks use it") && !overview.contains("LookUp"), "{overview}");
    let shortlist = names(asked, "shortlist");
    assert!(shortlist.len() <= 5 && shortlist.contains(&"Library".to_owned()), "{shortlist:?}");
    assert!(section(asked, "shortlist").unwrap().contains("FindBook"));
    let tool = &asked["tools"][0]["function"];
    assert_eq!(tool["strict"], true);
    let scenes =
        &tool["parameters"]["properties"]["steps"]["items"]["anyOf"][0]["properties"]["scene_name"]["enum"];
    assert_eq!(scenes.as_array().unwrap().len(), OTHERS + 3, "any scene may be planned");
}

#[tokio::test]
async fn tools_and_scenes_come_first_and_are_the_same_for_every_request() {
    let llm = ModelRules::of(book_plan()).start();
    let town = open(&llm, 5).await;
    town.ask("On which shelf is the book Dune?").await;
    town.ask("Is there a parking space tomorrow?").await;
    let asked = requests(&llm, QuestionKind::Plan);
    assert_eq!(asked[0]["tools"], asked[1]["tools"]);
    assert_eq!(asked[0]["messages"][0], asked[1]["messages"][0]);
    let text = |request: &Value| request["messages"][1]["content"].as_str().unwrap().to_owned();
    let (first, second) = (text(&asked[0]), text(&asked[1]));
    let same = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
    assert!(first[..same].contains("</scenes>"), "{}", &first[..same]);
}

#[tokio::test]
async fn planner_is_shown_the_scenes_that_it_asks_for() {
    for wanted in ["Parking", "a space for the car"] {
        let llm = ModelRules::of(json!(null))
            .plan(move |request, nth| {
                let mut written = plan(json!([step(1, "Parking", &["BookSpace"], Value::Null)]));
                if nth == 0 {
                    written = plan(json!([]));
                    written["more_scenes"] = json!([wanted]);
                }
                Scripted::forced(request, written)
            })
            .start();
        let town = open(&llm, 1).await;
        let run = town.ask("Find the book Dune.").await;
        let asked = requests(&llm, QuestionKind::Plan);
        assert_eq!(names(&asked[0], "shortlist"), ["Library"]);
        assert!(names(&asked[1], "shortlist").contains(&"Parking".to_owned()), "{wanted}");
        assert_eq!(run.rejected(), [["plan.more_scenes"]]);
        assert_eq!(town.log.names(), ["BookSpace"]);
    }
}

#[tokio::test]
async fn planner_is_shown_more_scenes_once() {
    let llm = ModelRules::of(json!(null))
        .plan(|request, _| {
            let mut written = book_plan();
            written["more_scenes"] = json!(["Parking"]);
            Scripted::forced(request, written)
        })
        .start();
    let town = open(&llm, 1).await;
    let run = town.ask("Find the book Dune.").await;
    assert_eq!(requests(&llm, QuestionKind::Plan).len(), 2);
    assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    assert!(!run.has("planning_failed"));
    assert_eq!(town.log.calls(), [("FindBook".to_owned(), arguments_of("FindBook"))]);
}

#[tokio::test]
async fn repair_of_a_plan_describes_the_scenes_that_it_named() {
    let llm = ModelRules::of(json!(null))
        .plan(|request, nth| {
            let tool = if nth == 0 { "Book" } else { "BookSpace" };
            Scripted::forced(request, plan(json!([step(1, "Parking", &[tool], Value::Null)])))
        })
        .start();
    let town = open(&llm, 1).await;
    town.ask("Find the book Dune.").await;
    let asked = requests(&llm, QuestionKind::Plan);
    assert!(!names(&asked[0], "shortlist").contains(&"Parking".to_owned()));
    assert!(names(&asked[1], "shortlist").contains(&"Parking".to_owned()));
    assert_eq!(town.log.names(), ["BookSpace"]);
}

#[tokio::test]
async fn few_scenes_are_all_described() {
    let llm = ModelRules::of(book_plan()).start();
    let town = open(&llm, OTHERS as u32 + 3).await;
    town.ask("Find the book Dune.").await;
    let asked = &requests(&llm, QuestionKind::Plan)[0];
    assert_eq!(section(asked, "shortlist"), None);
    assert!(section(asked, "scenes").unwrap().contains("FindBook"));
}

#[tokio::test]
async fn prompts_fit_into_the_window_and_say_what_was_cut() {
    let log = CallLog::default();
    let work = native(|_: Value, _: ToolContext| async { Ok(json!({"text": "All is well. ".repeat(2000)})) });
    let schema = json!({"type": "object", "properties": {}});
    let archive = Scene::builder("Archive")
        .description("Keeps old letters.")
        .instructions("Be brief.")
        .tool(SceneTool::dynamic("ReadLetter", "Reads a letter.", Effect::Read, schema, work))
        .build()
        .unwrap();
    let llm = ModelRules::of(plan(json!([step(1, "Archive", &["ReadLetter"], Value::Null)])))
        .scene(|request, nth| match nth {
            0 => Scripted::call("ReadLetter", json!({})),
            _ => {
                assert!(request["messages"].to_string().contains("All is well"), "its beginning is shown");
                Scripted::Text("All is well.".to_owned())
            }
        })
        .start();
    let mut config = Config { llm: llm.options(), ..Config::default() };
    config.llm.models[0].context_window = 4000;
    config.llm.models[0].max_output_tokens = 1000;
    let town = Town::with(config, vec![archive], log).await;
    let run = town.ask("Read the letter.").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{run:#?}");
    for request in llm.requests() {
        let bytes = request["messages"].to_string().len() + request["tools"].to_string().len();
        assert!(bytes * 2 / 7 < 4000, "{bytes} bytes");
    }
    let asked = &requests(&llm, QuestionKind::Scene)[1];
    assert!(asked["messages"].to_string().contains("\\\"cut\\\":true"), "{asked:#}");
}

#[tokio::test]
async fn request_that_cannot_fit_is_refused_by_name_before_it_is_sent() {
    let llm = ModelRules::of(book_plan()).start();
    let town = Town::open(&llm, |config| {
        config.llm.models[0].context_window = 1000;
        config.llm.models[0].max_output_tokens = 200;
    })
    .await;
    let run = town.ask(&"Find the book Dune. ".repeat(300)).await;
    assert_eq!(run.answer.status, RunStatus::Failed);
    assert_eq!(run.answer.error.unwrap().code, "prompt.too_large");
    assert_eq!(llm.count(), 0);
    assert_eq!(run.answer.usage.llm_calls, 0);
}

/// Requests in English and Italian of the labelled set, and paraphrases that avoid the words of their scenes, with up to 500
/// scenes. Prints the share of the labelled scenes that are on the shortlist, by words alone and with the embeddings of a
/// simulated model.
mod recall {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;
    use std::sync::Arc;

    use proscenium::eval::EvalSet;
    use proscenium::llm::embeddings::{self as vector, MAX_TEXTS, Vector};
    use proscenium::llm::{Caller, Gateway, Options};
    use proscenium::planner::MAX_RANKED;
    use proscenium::run::{SessionId, TenantId};
    use proscenium::scene::{self, Catalogue, SceneLoader};
    use proscenium::tools::guard::NetworkPolicy;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::support::{NoModel, embeddings, eval};

    /// The default of `planning.shortlist`.
    const SHORTLIST: usize = 24;

    /// What other departments of a company have, for scenes that no labelled request is about.
    const AREAS: [&str; 25] = [
        "invoice", "contract", "warehouse", "shipment", "recruiting", "training", "expense", "payroll",
        "insurance", "newsletter", "campaign", "complaint", "warranty", "supplier", "tender", "audit",
        "incident", "firewall", "backup", "licence", "canteen", "printer", "visitor", "furniture",
        "translation",
    ];
    const WORK: [&str; 20] = [
        "archive", "approval", "report", "forecast", "search", "planning", "pricing", "history",
        "statistics", "reminder", "template", "inventory", "schedule", "request", "registration", "review",
        "budget", "export", "notification", "booking",
    ];

    fn distractor(area: &str, work: &str) -> Scene {
        let tool = |name: &str, about: String, effect| {
            let call = native(|_: Value, _: ToolContext| async { Ok(Value::Null) });
            let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
            SceneTool::dynamic(name, &about, effect, schema, call)
        };
        let name = |word: &str| format!("{}{}", word[..1].to_uppercase(), &word[1..]);
        Scene::builder(&format!("{}{}", name(area), name(work)))
            .description(&format!(
                "The {work} of the {area} department: look up, list and change a {area} {work}."
            ))
            .instructions("Be brief.")
            .tool(tool("Get", format!("Gets one {area} {work}."), Effect::Read))
            .tool(tool("Change", format!("Changes a {area} {work}."), Effect::Write))
            .build()
            .unwrap()
    }

    /// The scenes of the labelled requests: the shipped ones and those of the test services.
    fn labelled_scenes() -> Vec<Scene> {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
        let natives = proscenium::shipped::tools();
        let shipped = scene::load_dir(&shipped, &natives, &NetworkPolicy::default()).scenes;
        let others = SceneLoader::new(&natives).load(vec![eval::folders()], &BTreeMap::new()).scenes;
        shipped.into_iter().chain(others).collect()
    }

    /// Requests that share hardly a word with the scene that they are about.
    const PARAPHRASES: [(&str, &str); 16] = [
        ("Do I need an umbrella in Turin tomorrow?", "Weather"),
        ("Is it freezing up in Oslo right now?", "Weather"),
        ("Domani a Genova serve l'ombrello?", "Weather"),
        ("I want to unwind from Monday to Wednesday.", "VacationManagement"),
        ("Vorrei staccare la spina dal 3 al 7 agosto.", "VacationManagement"),
        ("Who sits at the desk beside mine?", "Identity"),
        ("Come si chiama quel collega nuovo?", "Identity"),
        ("My tooth hurts, I need somebody to look at it.", "Clinic"),
        ("Mi fa male un dente.", "Clinic"),
        ("How much is left until payday?", "Bank"),
        ("The landlord wants his 500 euros.", "Bank"),
        ("Devo saldare l'affitto di marzo.", "Bank"),
        ("I need wheels to get to the airport.", "SharedCars"),
        ("Come arrivo in aeroporto se devo guidare io?", "SharedCars"),
        ("Some poems for the train.", "Library"),
        ("Un romanzo da leggere in treno.", "Library"),
    ];

    /// A request with the names of its scenes.
    struct Expected {
        set: &'static str,
        say: String,
        scenes: BTreeSet<String>,
    }

    fn expected() -> Vec<Expected> {
        let sets = eval::sets();
        let labelled = sets.iter().flat_map(EvalSet::requests).map(|request| Expected {
            set: if request.lang.as_deref() == Some("en") { "english" } else { "italian" },
            say: request.say.clone(),
            scenes: request.scenes.iter().flatten().cloned().collect(),
        });
        let others = PARAPHRASES.iter().map(|(say, scene)| Expected {
            set: "paraphrase",
            say: (*say).to_owned(),
            scenes: BTreeSet::from([(*scene).to_owned()]),
        });
        labelled.chain(others).collect()
    }

    /// The vectors of texts, through the gateway, from a simulated model.
    async fn embedded(texts: &[String]) -> Vec<Vector> {
        let server = embeddings::server();
        let options = Options { models: vec![embeddings::model(&server)], ..Options::default() };
        let gateway = Gateway::new(options, Arc::new(NoModel)).unwrap();
        let caller = caller();
        let mut vectors = Vec::new();
        for batch in texts.chunks(MAX_TEXTS) {
            let request = vector::request(batch.iter().map(String::as_str));
            let replied =
                gateway.complete(&caller, &request, false, &CancellationToken::new()).await.unwrap();
            vectors.extend(vector::read(&replied.reply.text, batch.len()).unwrap());
        }
        vectors
    }

    fn caller() -> Caller {
        let (tenant, session) = (TenantId::new("local").unwrap(), SessionId::new("recall").unwrap());
        Caller { tenant, session, run: None, cache: None, voter: None, trace: None }
    }

    /// The share of the expected scenes that are among the first of a ranking.
    #[derive(Default)]
    struct Recall {
        labels: u32,
        listed: u32,
    }

    impl Recall {
        fn add(&mut self, catalogue: &Catalogue, request: &Expected, found: &BTreeSet<&str>) {
            for name in request.scenes.iter().filter(|name| catalogue.get(name).is_some()) {
                self.labels += 1;
                // All scenes of a small catalogue are described.
                self.listed += u32::from(catalogue.len() <= SHORTLIST || found.contains(name.as_str()));
            }
        }

        fn share(&self) -> f64 {
            f64::from(self.listed) / f64::from(self.labels)
        }
    }

    #[tokio::test]
    async fn labelled_scenes_are_on_the_shortlist() {
        let requests = expected();
        let mut all: Vec<Scene> = labelled_scenes();
        all.extend(AREAS.iter().flat_map(|area| WORK.iter().map(|work| distractor(area, work))));
        let says: Vec<String> = requests.iter().map(|request| request.say.clone()).collect();
        let of_requests = embedded(&says).await;
        println!("{:>6} {:>11} {:>7} {:>8} {:>11}", "scenes", "requests", "labels", "words", "embeddings");
        for size in [5, 50, 500] {
            // Small catalogues need not contain what a request is about; it is then not counted.
            let catalogue = Catalogue::new(all.iter().take(size).cloned());
            let texts: Vec<String> = catalogue.iter().map(|scene| scene.embedded_text()).collect();
            let of_scenes = embedded(&texts).await;
            let names: Vec<&str> = catalogue.iter().map(|scene| scene.name.as_str()).collect();
            for set in ["english", "italian", "paraphrase"] {
                let (mut words, mut both) = (Recall::default(), Recall::default());
                for (request, own) in requests.iter().zip(&of_requests).filter(|(one, _)| one.set == set) {
                    let places = vector::by_similarity(own, &of_scenes).unwrap();
                    let places = places.iter().take(MAX_RANKED);
                    let similar: Vec<String> = places.map(|place| names[*place].to_owned()).collect();
                    let listed = |similar: &[String]| -> BTreeSet<&str> {
                        let ranked = catalogue.ranked(&request.say, similar).take(SHORTLIST);
                        ranked.map(|scene| scene.name.as_str()).collect()
                    };
                    words.add(&catalogue, request, &listed(&[]));
                    both.add(&catalogue, request, &listed(&similar));
                }
                let (labels, by_words, by_both) = (words.labels, words.share(), both.share());
                println!(
                    "{size:>6} {set:>11} {labels:>7} {:>7.1}% {:>10.1}%",
                    by_words * 100.0,
                    by_both * 100.0
                );
                assert!(by_both >= 0.95, "{size} scenes, {set}: {by_both}");
                assert!(set == "paraphrase" || by_words >= 0.95, "{size} scenes, {set}: {by_words}");
            }
        }
    }
}
