//! A scene of an unknown domain, loaded from a folder: its requests are routed, planned, filled in and
//! answered by the offline model, alone and together with the weather.

use std::cell::RefCell;
use std::fmt::Debug;
use std::fs;

use proscenium::plan::StepStatus;
use proscenium::run::{Event, RunStatus};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Backend, FinishedRun, ReceivedRequest, Setup, TestEngine};

const SCENE: &str = include_str!("../scenarios/library/scene.toml");

/// A library scene and an engine that serves it. [`Self::assert_kept`] reports all failures together.
struct Town {
    library: Backend,
    test: TestEngine,
    faults: RefCell<Vec<String>>,
    _scenes: TempDir,
}

impl Town {
    async fn built() -> Self {
        let library = Backend::start(serve);
        let scenes = tempfile::tempdir().unwrap();
        fs::create_dir(scenes.path().join("library")).unwrap();
        let scene = SCENE.replace("http://library.invalid", library.address());
        fs::write(scenes.path().join("library/scene.toml"), scene).unwrap();
        let setup = Setup::offline().scenes(scenes.path()).set("scenes.allow_private_addresses", true);
        Self { library, test: setup.start().await, faults: RefCell::default(), _scenes: scenes }
    }

    /// Asserts that every request had the expected result.
    fn assert_kept(self) {
        let faults = self.faults.into_inner();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    fn expect<T: PartialEq + Debug>(&self, words: &str, what: &str, got: T, expected: T) {
        if got != expected {
            self.faults.borrow_mut().push(format!("{words}\n  {what}: {got:?}\n  expected: {expected:?}"));
        }
    }

    fn expect_in(&self, words: &str, answer: &str, expected: &str) {
        if !answer.contains(expected) {
            self.faults
                .borrow_mut()
                .push(format!("{words}\n  answer: {answer}\n  expected in it: {expected}"));
        }
    }

    /// A request in its own conversation, and the requests that reached the library.
    async fn ask(&self, words: &str) -> (FinishedRun, Vec<ReceivedRequest>) {
        let finished = self.test.chat(&uuid::Uuid::now_v7().to_string(), words).await;
        self.expect(words, "status", finished.answer.status, RunStatus::Completed);
        (finished, self.library.take_requests())
    }

    /// A search for exactly this.
    async fn assert_search(&self, words: &str, query: Value) {
        let (finished, reached) = self.ask(words).await;
        self.expect(words, "scenes", scenes(&finished), vec!["Library"]);
        self.check_requests(words, &finished, &reached, &search(query));
    }

    /// A reservation with exactly this body.
    async fn assert_reserve(&self, words: &str, body: Value) {
        let (finished, reached) = self.ask(words).await;
        self.expect(words, "scenes", scenes(&finished), vec!["Library"]);
        self.check_requests(words, &finished, &reached, &reservation(body));
    }

    /// One of the two together with the weather of a city, in this order; `in_turn` if the second depends on
    /// the first.
    async fn assert_combined(
        &self,
        words: &str,
        order: [&str; 2],
        in_turn: bool,
        expected: Value,
        city: &str,
    ) {
        let (finished, reached) = self.ask(words).await;
        self.expect(words, "scenes", scenes(&finished), order.to_vec());
        self.check_requests(words, &finished, &reached, &expected);
        let forecasts = finished.answer.steps.iter().flat_map(|step| &step.tool_calls);
        let forecasts = forecasts.filter(|call| call.tool == "WeatherForecast_Get");
        let cities: Vec<Value> =
            forecasts.filter_map(|call| Some(call.result.as_ref()?["city"].clone())).collect();
        self.expect(words, "cities", cities, vec![json!(city)]);
        self.expect_in(words, &finished.answer.answer, "°C");
        if in_turn {
            self.expect(words, "step 2 waited for step 1", started_after(&finished, 1, 2), true);
        }
    }

    /// Checks that exactly this reached the library, once, and that the answer reports its result.
    fn check_requests(
        &self,
        words: &str,
        finished: &FinishedRun,
        reached: &[ReceivedRequest],
        expected: &Value,
    ) {
        let got: Vec<Value> = reached.iter().map(in_brief).collect();
        self.expect(words, "requests to the library", got, vec![expected.clone()]);
        let result = if expected["place"] == "GET /books" { "Opera prima" } else { "R-7" };
        self.expect_in(words, &finished.answer.answer, result);
    }
}

fn search(query: Value) -> Value {
    json!({"place": "GET /books", "query": query, "body": null, "repeatable": false})
}

fn reservation(mut body: Value) -> Value {
    body["for"] = "keysersoze".into();
    json!({"place": "POST /reservations", "query": {}, "body": body, "repeatable": true})
}

fn in_brief(reached: &ReceivedRequest) -> Value {
    let ReceivedRequest { place, query, body, idempotency_key, .. } = reached;
    json!({"place": place, "query": query, "body": body, "repeatable": idempotency_key.is_some()})
}

fn serve(reached: &ReceivedRequest) -> Value {
    match reached.place.as_str() {
        "GET /books" => {
            let author = reached.query.get("author").map_or("Anonimo", String::as_str);
            json!({"books": [{"title": "Opera prima", "author": author}]})
        }
        "POST /reservations" => {
            let mut reservation = reached.body.clone();
            reservation["code"] = "R-7".into();
            json!({"reservation": reservation})
        }
        other => json!({"error": format!("there is no {other}")}),
    }
}

/// The scenes whose steps completed, in the order of the plan.
fn scenes(finished: &FinishedRun) -> Vec<&str> {
    let done = finished.answer.steps.iter().filter(|step| step.status == StepStatus::Completed);
    done.map(|step| step.scene_name.as_str()).collect()
}

fn started_after(finished: &FinishedRun, first: u32, second: u32) -> bool {
    let at = |expected: &dyn Fn(&Event) -> bool| {
        finished.events.iter().find(|event| expected(&event.body)).map(|e| e.seq)
    };
    let ended = at(&|event| matches!(event, Event::StepCompleted { step, .. } if *step == first));
    let started = at(&|event| matches!(event, Event::StepStarted { step } if *step == second));
    ended.is_some() && ended < started
}

#[tokio::test]
async fn books_are_found_by_author_subject_and_format() {
    let town = Town::built().await;
    town.assert_search("Avete libri di Italo Calvino?", json!({"author": "Italo Calvino"})).await;
    town.assert_search("Do you have any books by Stephen King?", json!({"author": "Stephen King"})).await;
    town.assert_search(
        "Find ebooks about the French Revolution",
        json!({"subject": "the French Revolution", "format": "ebook"}),
    )
    .await;
    town.assert_search(
        "Cerca degli audiolibri di Elena Ferrante",
        json!({"author": "Elena Ferrante", "format": "audiobook"}),
    )
    .await;
    town.assert_kept();
}

#[tokio::test]
async fn books_are_reserved_with_all_given_arguments() {
    let town = Town::built().await;
    town.assert_reserve(
        "Prenota il libro \"Cuore\" dal 20 giugno per 10 giorni alla sede stazione",
        json!({"title": "Cuore", "from": "2026-06-20", "days": 10, "branch": "station"}),
    )
    .await;
    town.assert_reserve(
        "Reserve the book \"Moby Dick\" from 3 July for 21 days at the campus branch",
        json!({"title": "Moby Dick", "from": "2026-07-03", "days": 21, "branch": "campus"}),
    )
    .await;
    town.assert_reserve(
        "Reserve \"Dubliners\" from tomorrow for 7 days for Nina Weber",
        json!({"title": "Dubliners", "from": "2026-05-05", "days": 7, "reader": "Nina Weber"}),
    )
    .await;
    town.assert_reserve(
        "Prenota \"Il gattopardo\" per Giulia Ferri dal 15 giugno per 10 giorni",
        json!({"title": "Il gattopardo", "from": "2026-06-15", "days": 10, "reader": "Giulia Ferri"}),
    )
    .await;
    town.assert_reserve(
        "Prenota \"La coscienza di Zeno\" dal 1 settembre per 30 giorni, nota: edizione illustrata",
        json!({"title": "La coscienza di Zeno", "from": "2026-09-01", "days": 30, "note": "edizione illustrata"}),
    )
    .await;
    town.assert_kept();
}

#[tokio::test]
async fn requests_worded_unlike_the_examples_are_understood() {
    let town = Town::built().await;
    town.assert_search("C'è qualcosa di Primo Levi in biblioteca?", json!({"author": "Primo Levi"})).await;
    town.assert_search(
        "Which titles by Virginia Woolf does the library have?",
        json!({"author": "Virginia Woolf"}),
    )
    .await;
    town.assert_search(
        "In biblioteca avete qualcosa di Natalia Ginzburg?",
        json!({"author": "Natalia Ginzburg"}),
    )
    .await;
    town.assert_search(
        "Does the library have anything by Toni Morrison?",
        json!({"author": "Toni Morrison"}),
    )
    .await;
    town.assert_search("Are there any books written by Virginia Woolf?", json!({"author": "Virginia Woolf"}))
        .await;
    town.assert_search("Sto cercando un libro di Primo Levi", json!({"author": "Primo Levi"})).await;
    town.assert_reserve(
        "Mi serve \"Gomorra\" per 15 giorni a partire dal 12 maggio, potresti prenotarlo?",
        json!({"title": "Gomorra", "from": "2026-05-12", "days": 15}),
    )
    .await;
    town.assert_reserve(
        "I need \"Middlemarch\" for 20 days from 9 June, could you reserve it?",
        json!({"title": "Middlemarch", "from": "2026-06-09", "days": 20}),
    )
    .await;
    town.assert_reserve(
        "Avrei bisogno di \"Il nome della rosa\" dal 3 giugno per 7 giorni: me lo prenoti?",
        json!({"title": "Il nome della rosa", "from": "2026-06-03", "days": 7}),
    )
    .await;
    town.assert_reserve(
        "Vorrei leggere \"Lessico famigliare\" dal 9 giugno per 12 giorni, lo puoi prenotare?",
        json!({"title": "Lessico famigliare", "from": "2026-06-09", "days": 12}),
    )
    .await;
    town.assert_reserve(
        "Vorrei avere in prestito \"Gomorra\" dal 12 maggio per 15 giorni",
        json!({"title": "Gomorra", "from": "2026-05-12", "days": 15}),
    )
    .await;
    town.assert_reserve(
        "Could you keep a copy of the book \"Ulysses\" for me, 14 days from June 8?",
        json!({"title": "Ulysses", "from": "2026-06-08", "days": 14}),
    )
    .await;
    town.assert_kept();
}

#[tokio::test]
async fn italian_requests_combine_with_the_weather_scene() {
    let town = Town::built().await;
    let cuore = || json!({"title": "Cuore", "from": "2026-06-20", "days": 10});
    town.assert_combined(
        "Che tempo fa a Torino, e poi prenota il libro \"Cuore\" dal 20 giugno per 10 giorni",
        ["Weather", "Library"],
        true,
        reservation(cuore()),
        "Turin",
    )
    .await;
    town.assert_combined(
        "Prenota il libro \"Cuore\" dal 20 giugno per 10 giorni, e poi dimmi che tempo fa a Torino",
        ["Library", "Weather"],
        true,
        reservation(cuore()),
        "Turin",
    )
    .await;
    town.assert_combined(
        "Avete libri di Italo Calvino? Vorrei anche sapere il meteo a Napoli",
        ["Library", "Weather"],
        false,
        search(json!({"author": "Italo Calvino"})),
        "Naples",
    )
    .await;
    town.assert_kept();
}

#[tokio::test]
async fn english_requests_combine_with_the_weather_scene() {
    let town = Town::built().await;
    let emma = || json!({"title": "Emma", "from": "2026-07-03", "days": 21, "branch": "station"});
    town.assert_combined(
        "First reserve the book \"Emma\" from 3 July for 21 days at the station branch, then tell me the weather in Milan",
        ["Library", "Weather"],
        true,
        reservation(emma()),
        "Milan",
    )
    .await;
    town.assert_combined(
        "First tell me the weather in Milan, then reserve the book \"Emma\" from 3 July for 21 days at the station branch",
        ["Weather", "Library"],
        true,
        reservation(emma()),
        "Milan",
    )
    .await;
    town.assert_combined(
        "What is the weather in Rome and also find books by Jane Austen",
        ["Weather", "Library"],
        false,
        search(json!({"author": "Jane Austen"})),
        "Rome",
    )
    .await;
    town.assert_combined(
        "Find books by Jane Austen and also tell me the weather in Rome",
        ["Library", "Weather"],
        false,
        search(json!({"author": "Jane Austen"})),
        "Rome",
    )
    .await;
    town.assert_kept();
}

#[tokio::test]
async fn missing_value_is_asked_for_and_the_next_message_continues() {
    let town = Town::built().await;
    for (number, (words, named, next, body)) in [
        (
            "Prenota il libro \"Cuore\" dal 20 giugno",
            ["giorni", "days"],
            "Per 10 giorni",
            json!({"title": "Cuore", "from": "2026-06-20", "days": 10}),
        ),
        (
            "Reserve the book \"Emma\" for 21 days",
            ["day", "date"],
            "From 3 July",
            json!({"title": "Emma", "from": "2026-07-03", "days": 21}),
        ),
        (
            "Vorrei prenotare un libro dal 20 giugno per 10 giorni",
            ["titolo", "title"],
            "\"Cuore\"",
            json!({"title": "Cuore", "from": "2026-06-20", "days": 10}),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let session = format!("asked-{number}");
        let finished = town.test.chat(&session, words).await;
        town.expect(words, "status", finished.answer.status, RunStatus::NeedsInput);
        town.expect(words, "requests to the library", town.library.take_requests(), vec![]);
        let question = finished.answer.answer.to_lowercase();
        let asks = question.contains('?') && named.iter().any(|name| question.contains(name));
        town.expect(words, &format!("asks for {named:?}: {question}"), asks, true);

        let finished = town.test.chat(&session, next).await;
        let both = format!("{words} / {next}");
        town.expect(&both, "status", finished.answer.status, RunStatus::Completed);
        town.check_requests(&both, &finished, &town.library.take_requests(), &reservation(body));
    }
    town.assert_kept();
}

#[tokio::test]
async fn unserved_request_calls_no_tool_and_lists_abilities() {
    let town = Town::built().await;
    for words in [
        "Calcola la radice quadrata di 144",
        "Write me a poem about libraries and the sea",
        "Scrivi un racconto ambientato in una biblioteca",
        "Who invented the public library?",
        "What happened to the library of Alexandria?",
        "What is the Italian word for book?",
        "Ci sono biblioteche a Milano?",
        "Mi serve un consiglio, potresti aiutarmi?",
        "What is the capital of Australia?",
        "Scrivi una poesia sul mare",
        "Translate \"good morning\" into Japanese",
    ] {
        let (finished, reached) = town.ask(words).await;
        town.expect(words, "scenes", scenes(&finished), vec![]);
        town.expect(words, "calls", finished.state.calls.len(), 0);
        town.expect(words, "requests to the library", reached, vec![]);
        for scene in town.test.engine.catalogue().iter() {
            let mut texts = scene.about.values().chain([&scene.description]);
            let told_of = texts.any(|text| {
                let begins: String = text.chars().take(20).collect();
                finished.answer.answer.contains(&begins)
            });
            town.expect(
                words,
                &format!("mentions {}: {}", scene.name, finished.answer.answer),
                told_of,
                true,
            );
        }
    }
    town.assert_kept();
}
