//! What learning is worth: the same requests with learning off, with hints and with reuse, at the level `basic` and without a
//! level. The planner is a scripted server whose replies are right and take [`LATENCY`]; it has no use for hints, so they only
//! show what they cost. Prices are those of a small model ($ 0.40 and $ 1.60 per million tokens, four characters a token).
//!
//! ```text
//! LEARN=1 cargo test --release --test promises learning_worth -- --nocapture     # 360 requests of 36 templates
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proscenium::adapt::ExecutionLevel;
use proscenium::run::{ConfirmPolicy, LearnMode, RunStatus};
use serde_json::{Value, json};

use crate::support::planner_engine::{
    FROM_CHECK, QuestionKind, Town, final_verdict, plan, question_kind, step,
};
use crate::support::{Scripted, ScriptedLlm, section};

/// How long each model call takes in the full run.
const LATENCY: Duration = Duration::from_millis(40);

const TITLES: [&str; 10] = [
    "Dune", "Solaris", "Emma", "Ulysses", "Neuromancer", "Middlemarch", "Persuasion", "Ubik", "Hyperion",
    "Walden",
];

/// Six wordings for each of six kinds of request; `{t}` is a title, `{n}` a number, `{d}` a day, `{p}` a plate.
const WORDINGS: [[&str; 6]; 6] = [
    [
        "Find the book \"{t}\"",
        "Find the shelf of the book \"{t}\"",
        "Search the library for the book \"{t}\"",
        "Look up the book \"{t}\" in the library",
        "Show me the shelf of \"{t}\"",
        "Please find \"{t}\" in the library",
    ],
    [
        "Show the menu of the canteen on {d}",
        "Tell me the menu of the canteen on {d}",
        "Look up the canteen menu of {d}",
        "Show me the dish of {d}",
        "What is on the menu on {d}?",
        "Give me the menu of the canteen for {d}",
    ],
    [
        "Reserve the book \"{t}\" for {n} days",
        "Reserve \"{t}\" in the library for {n} days",
        "Please reserve the book \"{t}\" for me for {n} days",
        "Reserve for {n} days the book \"{t}\"",
        "I want to reserve the book \"{t}\" for {n} days",
        "Please reserve \"{t}\" for {n} days",
    ],
    [
        "Show the free parking spaces on {d}",
        "Count the free parking spaces of {d}",
        "How many parking spaces are free on {d}?",
        "Tell me how many spaces are free on {d}",
        "Look up the free parking spaces for {d}",
        "Give me the number of free parking spaces on {d}",
    ],
    [
        "Book a parking space for {d} for the plate {p}",
        "Please book a parking space for the plate {p} for {d}",
        "Book for {d} a parking space for the plate {p}",
        "I want to book a parking space for {d} for the plate {p}",
        "Book me a parking space for {d} for the plate {p}",
        "Book the plate {p} a parking space for {d}",
    ],
    [
        "Find the book \"{t}\" and then book a parking space for {d} for the plate {p}",
        "Find the shelf of \"{t}\" and book a parking space for {d} for the plate {p}",
        "Look up the book \"{t}\", then book a parking space for the plate {p} for {d}",
        "Please find the book \"{t}\" and then book a parking space for the plate {p} for {d}",
        "Search the library for \"{t}\" and book a parking space for {d} for the plate {p}",
        "Show me the shelf of \"{t}\" and then book a parking space for {d} for the plate {p}",
    ],
];

/// A request, and the calls that carry it out.
struct Asked {
    words: String,
    calls: Vec<(&'static str, &'static str, Value)>,
}

fn asked(kind: usize, wording: usize, round: usize) -> Asked {
    let title = TITLES[(round + wording) % TITLES.len()];
    let (day, number) = (1 + (round * 3 + wording) % 28, 2 + (round * 5 + wording) % 25);
    let plate = format!("AB{:03}CD", 100 + round * 7 + wording);
    let words = WORDINGS[kind][wording]
        .replace("{t}", title)
        .replace("{n}", &number.to_string())
        .replace("{d}", &format!("{day} June"))
        .replace("{p}", &plate);
    let day = format!("2026-06-{day:02}");
    let find = ("Library", "FindBook", json!({"title": title}));
    let book = ("Parking", "BookSpace", json!({"day": day, "plate": plate}));
    let calls = match kind {
        0 => vec![find],
        1 => vec![("Canteen", "Menu", json!({"day": day}))],
        2 => vec![("Library", "ReserveBook", json!({"title": title, "days": number}))],
        3 => vec![("Parking", "FreeSpaces", json!({"day": day}))],
        4 => vec![book],
        _ => vec![find, book],
    };
    Asked { words, calls }
}

fn right_plan(asked: &Asked) -> Value {
    let steps = asked.calls.iter().zip(1..).map(|((scene, tool, arguments), number)| {
        let mut step =
            step(number, scene, &[tool], if number == 1 { Value::Null } else { json!(number - 1) });
        step["prepared_calls"] = json!([{"tool": tool, "arguments": arguments.to_string()}]);
        step["if_needed"] = json!([]);
        step
    });
    plan(steps.collect())
}

#[expect(clippy::disallowed_methods, reason = "the model's latency, on a thread of its server")]
fn model(plans: BTreeMap<String, Value>, latency: Duration) -> ScriptedLlm {
    let plans = Arc::new(plans);
    ScriptedLlm::start(move |request, _| {
        std::thread::sleep(latency);
        let prompt = request.to_string().len() as u64 / 4;
        let (reply, length) = match question_kind(request) {
            QuestionKind::Plan => {
                let planned = &plans[&section(request, "request").unwrap()];
                (Scripted::forced(request, planned.clone()), planned.to_string().len())
            }
            QuestionKind::Check => {
                (Scripted::forced(request, final_verdict()), final_verdict().to_string().len())
            }
            _ => (Scripted::Text(FROM_CHECK.into()), FROM_CHECK.len()),
        };
        reply.metered(prompt, 0, length as u64 / 4)
    })
}

#[derive(Debug, Default)]
struct Row {
    requests: usize,
    right: usize,
    reused: usize,
    templates: usize,
    plan_calls: usize,
    calls: usize,
    usd: f64,
    millis: Vec<f64>,
}

async fn measure(
    learn: LearnMode,
    level: Option<ExecutionLevel>,
    size: (usize, usize),
    latency: Duration,
) -> Row {
    let (wordings, rounds) = size;
    let all: Vec<Vec<Asked>> = (0..rounds)
        .map(|round| {
            (0..6).flat_map(|kind| (0..wordings).map(move |wording| asked(kind, wording, round))).collect()
        })
        .collect();
    let plans = all.iter().flatten().map(|asked| (asked.words.clone(), right_plan(asked))).collect();
    let llm = model(plans, latency);
    let town = Town::open(&llm, |config| {
        config.planning.learn = learn;
        config.execution.level = level;
        config.execution.confirm = ConfirmPolicy::Unclear;
        config.llm.models[0].input_usd_per_million = 0.4;
        config.llm.models[0].output_usd_per_million = 1.6;
    })
    .await;
    let mut row = Row::default();
    let mut reused = std::collections::BTreeSet::new();
    for asked in &all {
        for (template, asked) in asked.iter().enumerate() {
            let began = (Instant::now(), town.log.calls().len());
            let run = town.ask(&asked.words).await;
            row.millis.push(began.0.elapsed().as_secs_f64() * 1e3);
            let made: Vec<(String, Value)> = town.log.calls().split_off(began.1);
            let wanted: Vec<(String, Value)> = asked
                .calls
                .iter()
                .map(|(_, tool, arguments)| ((*tool).to_owned(), arguments.clone()))
                .collect();
            row.requests += 1;
            row.right += usize::from(run.answer.status == RunStatus::Completed && made == wanted);
            row.usd += run.answer.usage.cost_usd;
            if run.plans()[0].maker == proscenium::run::PlanMaker::Learned {
                row.reused += 1;
                reused.insert(template);
            }
        }
        row.plan_calls +=
            llm.requests().iter().filter(|asked| question_kind(asked) == QuestionKind::Plan).count();
        row.calls += llm.count();
        llm.forget();
    }
    row.templates = reused.len();
    row
}

fn table(rows: &[(&str, &str, Row)]) -> String {
    let mut text = "| level | learn | requests | right | reused | templates reused | planner calls | model calls | $ per 1,000 | p50 ms |\n\
                    | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for (level, learn, row) in rows {
        let mut millis = row.millis.clone();
        millis.sort_by(f64::total_cmp);
        let _ = writeln!(
            text,
            "| {level} | {learn} | {} | {} | {} | {} | {} | {} | {:.3} | {:.1} |",
            row.requests,
            row.right,
            row.reused,
            row.templates,
            row.plan_calls,
            row.calls,
            row.usd * 1e3 / row.requests as f64,
            millis[millis.len() / 2],
        );
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reuse_saves_planner_calls_and_success_does_not_fall() {
    let full = std::env::var("LEARN").is_ok();
    let (size, latency) = if full { ((6, 10), LATENCY) } else { ((1, 5), Duration::ZERO) };
    let modes = [("off", LearnMode::Off), ("hints", LearnMode::Hints), ("reuse", LearnMode::Reuse)];
    let mut rows = Vec::new();
    for (level, name) in [(None, "none"), (Some(ExecutionLevel::Basic), "basic")] {
        for (mode, learn) in modes {
            rows.push((name, mode, measure(learn, level, size, latency).await));
        }
    }
    let shown = table(&rows);
    println!("{shown}");
    for of_level in rows.chunks(3) {
        let [(_, _, off), (_, _, hints), (_, _, reuse)] = of_level else { panic!("three modes") };
        assert!(reuse.right >= off.right && hints.right >= off.right, "{shown}");
        assert_eq!(off.right, off.requests, "{shown}");
        let templates = size.0 * 6;
        assert!(reuse.templates * 6 >= templates * 5, "{shown}");
        assert!(reuse.plan_calls * 2 < off.plan_calls * 2 - reuse.reused, "{shown}");
        assert_eq!(reuse.plan_calls + reuse.reused, reuse.requests, "{shown}");
    }
    let (_, _, basic) = &rows[5];
    assert_eq!(basic.calls, basic.plan_calls, "a reused plan at `basic` asks no model at all: {shown}");
}
