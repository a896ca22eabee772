//! How long the offline model takes to make a plan, compared with writing and reading the same question as
//! JSON, the least that asking a model costs. See `benches/README.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints its measurements")]

#[path = "../shared/run.rs"]
mod run;

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use mimalloc::MiMalloc;
use proscenium::llm::Request;
use proscenium::llm::offline::OfflineModel;
use proscenium::parts::{Planner, PlannerRequest};
use proscenium::plan::Plan;
use proscenium::run::{Fault, Verdict};
use proscenium::{Config, Engine};

use run::{Failure, run};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Requests of one, two and three clauses, reads and writes; `{n}` makes each one unique.
const REQUESTS: [&str; 12] = [
    "What is the weather in Milan, and then request vacation from {n} to 28 June",
    "Che tempo fa a Roma? E prenota 3 giorni di ferie dal {n} luglio",
    "How many days of vacation do I have left in 20{n}?",
    "Send {n} euros to Mario Rossi and tell me the balance of my account",
    "Blocca la carta di debito, poi fammi vedere i movimenti dal {n} ottobre",
    "Book car AB{n}CD tomorrow from 9:00 to 11:00",
    "Don't book anything, only tell me which cars are free on {n} June",
    "Prenota una visita dal dentista il {n} dicembre alle 10:00",
    "Cancel appointment {n} and tell me who I am",
    "Can I take a vacation on {n} July?",
    "Rinnova il prestito {n} e dimmi che tempo fa a Torino",
    "Who approves my vacation from {n} August, and what is the weather in Naples?",
];

/// Records the questions and plans nothing.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Request>>>);

#[async_trait]
impl Planner for Recorder {
    async fn plan(&self, question: PlannerRequest) -> Result<Plan, Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(question.request);
        Err(Fault::new("bench.recorded", "recorded"))
    }

    async fn check(&self, _: PlannerRequest) -> Result<Verdict, Fault> {
        Err(Fault::new("bench.recorded", "recorded"))
    }
}

/// Writes `count` scenes over HTTP: those of the tests, and then copies under other names.
fn write_scenes(into: &Path, count: usize) -> Result<(), Failure> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let own = ["eval/scenes/bank", "eval/scenes/cars", "eval/scenes/clinic", "scenarios/library"];
    let read = |folder: &str| std::fs::read_to_string(tests.join(folder).join("scene.toml"));
    let texts = own.into_iter().map(read).collect::<Result<Vec<String>, _>>()?;
    for (n, text) in texts.iter().cycle().take(count).enumerate() {
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let name = name.ok_or("a scene without a name")?;
        let number = if n < texts.len() { String::new() } else { n.to_string() };
        let text = text.replacen(&format!("name = \"{name}\""), &format!("name = \"{name}{number}\""), 1);
        let folder = into.join(format!("scene-{n:03}"));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("scene.toml"), text.replace(".invalid", ".example"))?;
    }
    Ok(())
}

/// The planning questions for `count` scenes, `rounds` times each request with other numbers.
async fn questions(count: usize, rounds: usize) -> Result<Vec<Request>, Failure> {
    let folder = tempfile::tempdir()?;
    write_scenes(&folder.path().join("scenes"), count)?;
    let mut config = Config::default();
    config.store.data_dir = folder.path().join("data");
    config.scenes.dir = Some(folder.path().join("scenes"));
    config.scenes.builtin = false;
    config.planning.fallback_enabled = false;
    config.planning.max_retries = 0;
    let asked = Recorder::default();
    let engine = Engine::builder(config).planner(asked.clone()).start().await?;
    for round in 0..rounds {
        for request in REQUESTS {
            let number = (10 + round % 18).to_string();
            engine.chat(engine.request(&request.replace("{n}", &number), None)).await?;
        }
    }
    engine.stop().await?;
    let mut asked = asked.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut asked))
}

/// The durations of `work` for each question, sorted.
fn timed(questions: &[Request], mut work: impl FnMut(&Request)) -> Vec<Duration> {
    let one = |question: &Request| {
        let begun = Instant::now();
        work(question);
        begun.elapsed()
    };
    let mut all: Vec<Duration> = questions.iter().map(one).collect();
    all.sort_unstable();
    all
}

fn millis(all: &[Duration], share: usize) -> f64 {
    let at = (all.len() * share / 100).min(all.len().saturating_sub(1));
    all.get(at).map_or(0.0, Duration::as_secs_f64) * 1e3
}

async fn measure(rounds: usize) -> Result<(), Failure> {
    println!("| scenes | first plan ms | plan p50 ms | plan p95 ms | floor p50 ms | plan / floor |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    for count in [8, 100] {
        let questions = questions(count, rounds).await?;
        let (first, rest) = questions.split_first().ok_or("nothing was asked")?;
        // The rules cache texts per thread: a new thread has an empty cache.
        let measured = std::thread::scope(|scope| {
            let plan = |question: &Request| drop(black_box(OfflineModel.complete(question)));
            scope.spawn(move || (timed(std::slice::from_ref(first), plan), timed(rest, plan))).join()
        });
        let (first, plans) = measured.map_err(|_| "the rules panicked")?;
        let floor = timed(rest, |question| {
            let written = serde_json::to_vec(question).unwrap_or_default();
            drop(black_box(serde_json::from_slice::<serde_json::Value>(&written)));
        });
        println!(
            "| {count} | {:.1} | {:.2} | {:.2} | {:.2} | {:.1} |",
            millis(&first, 50),
            millis(&plans, 50),
            millis(&plans, 95),
            millis(&floor, 50),
            millis(&plans, 50) / millis(&floor, 50),
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    run(|quick| measure(if quick { 2 } else { 18 }))
}
