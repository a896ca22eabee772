//! The value of each part of the planner's parsing, on the same corrupted replies.
//!
//! 30% of the planner's replies are corrupted at random: in form (text, fences, prose, another tool's name,
//! truncated, empty, …) and in content (unknown names, cycles, repeated numbers, …). The corruption is a
//! function of the request and the attempt, so that every setting gets the same replies. The fallback is off.
//! The tables are printed by
//!
//! ```text
//! SOAK=1000 cargo test --test promises planner_worth -- --nocapture
//! ```
//!
//! A plain run takes fewer requests, and of those whose first reply is not corrupted it sends one in ten: all settings
//! handle them alike.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::stream;
use proscenium::Config;
use proscenium::run::{Effect, ReaderMode, RunStatus};
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, native};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::support::corruption::{FORMS, corrupted, dice, is_corrupted};
use crate::support::planner_engine::{CallLog, QuestionKind, Town, has_results, plan, question_kind, step};
use crate::support::{Scripted, ScriptedLlm, section, size};

const PLAN: &str = "CreateExecutionPlan";
const CHECK: &str = "CheckContinuation";
const SCENES: [&str; 6] = ["Badges", "Canteen", "Library", "Parking", "Printers", "Rooms"];
/// More than the requests of any run: the number of another request is that of one of these and this.
const OTHER: usize = 1_000_000;
const SHARE: f64 = 0.3;
const SEED: u64 = 0x5eed_0001_0000_0000;
/// Concurrent requests, each in its own conversation.
const TOGETHER: usize = 32;

fn scenes(log: &CallLog) -> Vec<Scene> {
    let scene = |name: &'static str| {
        let log = log.clone();
        let work = native(move |arguments: Value, _: ToolContext| {
            log.begin(name, &arguments);
            async move { Ok(json!({"seen": name})) }
        });
        let number =
            json!({"type": "object", "required": ["number"], "properties": {"number": {"type": "integer"}}});
        Scene::builder(name)
            .description(&format!("All about {name}."))
            .instructions("Look.")
            .example(&format!("Look at {name}"), &format!("{name}Look"))
            .concurrency(TOGETHER as u32)
            .tool(SceneTool::dynamic(&format!("{name}Look"), "Looks.", Effect::Read, number, work))
            .build()
            .unwrap()
    };
    SCENES.map(scene).into()
}

/// The right plan of a request: one to three scenes, in random order and with random dependencies.
fn right(request: usize) -> Value {
    let mut dice = dice(!SEED, request, 0);
    // Most requests are simple.
    let count = *[1, 1, 1, 2, 2, 3].choose(&mut dice).unwrap();
    let mut left = SCENES.to_vec();
    let steps: Vec<Value> = (1..=count)
        .map(|number| {
            let scene = left.swap_remove(dice.random_range(0..left.len()));
            let depends = match dice.random_range(0..3) {
                _ if number == 1 => Value::Null,
                0 => Value::Null,
                1 => json!(number - 1),
                _ => (1..number).collect(),
            };
            step(number, scene, &[&format!("{scene}Look")], depends)
        })
        .collect();
    plan(json!(steps))
}

/// The scenes of the steps, and the scenes each depends on.
fn expected(request: usize) -> BTreeMap<String, Vec<String>> {
    let plan: proscenium::plan::Plan = serde_json::from_value(right(request)).unwrap();
    let scene = |number: u32| plan.steps[number as usize - 1].scene_name.clone();
    let steps = plan.steps.iter();
    steps.map(|step| (step.scene_name.clone(), step.depends_on_step.iter().map(scene).collect())).collect()
}

/// Content faults of a well-formed plan.
fn misplanned(request: usize, dice: &mut ChaCha8Rng) -> Value {
    let mut plan = right(request);
    let count = plan["steps"].as_array().unwrap().len();
    let at = dice.random_range(0..count);
    match dice.random_range(0..6) {
        0 => plan["steps"][at]["scene_name"] = json!("Garage"),
        1 => plan["steps"][at]["expected_tools"] = json!(["Open(door)"]),
        2 => plan["steps"][0]["depends_on_step"] = json!(count),
        3 => {
            let mut twice = plan["steps"][at].clone();
            twice["depends_on_step"] = Value::Null;
            plan["steps"].as_array_mut().unwrap().push(twice);
        }
        4 => plan["needs_execution"] = json!(false),
        _ => plan["steps"] = json!([]),
    }
    // A cycle needs the last step to depend on the first.
    if count > 1 && plan["steps"][0]["depends_on_step"] == json!(count) {
        plan["steps"][count - 1]["depends_on_step"] = json!([1]);
    }
    plan
}

/// The planner's reply, corrupted or not.
fn planner(request: &Value, number: usize, attempt: usize) -> Scripted {
    let mut dice = dice(SEED, number, attempt);
    if !is_corrupted(&mut dice, SHARE) {
        return Scripted::forced(request, right(number));
    }
    // Six content faults in addition to those of form, all equally likely.
    match FORMS.get(dice.random_range(0..FORMS.len() + 6)) {
        Some(form) => corrupted(*form, PLAN, &right(number), &right(number + OTHER), &mut dice),
        None => Scripted::forced(request, misplanned(number, &mut dice)),
    }
}

fn number(request: &Value) -> usize {
    let words = section(request, "request").unwrap();
    words.rsplit(' ').next().unwrap().parse().unwrap()
}

fn look(request: &Value) -> Scripted {
    match section(request, "expected_tools") {
        Some(tool) if !has_results(request) => Scripted::call(&tool, json!({"number": number(request)})),
        _ => Scripted::Text("Seen.".into()),
    }
}

fn answer_to(number: usize) -> String {
    format!("Number {number} was looked at, as you asked, in every place that you named.")
}

fn verdict(number: usize) -> Value {
    json!({"should_continue": false, "can_answer_now": true, "reasoning": "All was seen.",
        "missing_information": null, "answer": answer_to(number)})
}

/// How often each question about a request was asked.
#[derive(Clone, Default)]
struct Attempts(Arc<Mutex<BTreeMap<usize, usize>>>);

impl Attempts {
    fn next(&self, request: usize) -> usize {
        let mut tries = self.0.lock().unwrap();
        let count = tries.entry(request).or_default();
        *count += 1;
        *count - 1
    }

    fn all(&self) -> usize {
        self.0.lock().unwrap().values().sum()
    }
}

/// Which of the requests `0..count` are sent: in a plain run those of which one of the first replies is corrupted, and one
/// in ten of the others.
fn sample(count: usize, seeds: &[u64]) -> Vec<usize> {
    let is_first = |number: &usize| {
        let mut seeds = seeds.iter();
        number.is_multiple_of(10) || seeds.any(|seed| is_corrupted(&mut dice(*seed, *number, 0), SHARE))
    };
    (0..count).filter(|number| std::env::var_os("SOAK").is_some() || is_first(number)).collect()
}

/// Sends these requests and returns for each its number, its status, its answer and its number of model calls.
async fn send(town: &Town, llm: &ScriptedLlm, numbers: &[usize]) -> Vec<(usize, (RunStatus, String, u32))> {
    let one = async |number: usize| {
        let request = town.engine.request(&format!("Look at number {number}"), None);
        let answer = town.engine.chat(request).await.unwrap();
        if number.is_multiple_of(50) {
            llm.forget();
        }
        (number, (answer.status, answer.answer, answer.usage.llm_calls))
    };
    stream::iter(numbers.iter().copied()).map(one).buffer_unordered(TOGETHER).collect().await
}

async fn open(llm: &ScriptedLlm, configure: impl FnOnce(&mut Config)) -> Town {
    let mut config = Config { llm: llm.options(), ..Config::default() };
    config.planning.fallback_enabled = false;
    configure(&mut config);
    let log = CallLog::default();
    Town::with(config, scenes(&log), log).await
}

/// The results of all requests in one setting.
#[derive(Debug, Clone, Copy)]
struct Row {
    reader: ReaderMode,
    retries: u32,
    /// Completed with exactly the right scenes, in an order that the dependencies allow.
    right: usize,
    /// Something else was executed.
    wrong: usize,
    /// Nothing was executed and the user was informed.
    refused: usize,
    plan_calls: usize,
}

async fn measure(reader: ReaderMode, retries: u32, requests: &[usize]) -> Row {
    let tries = Attempts::default();
    let counted = tries.clone();
    let llm = ScriptedLlm::start(move |request, _| match question_kind(request) {
        QuestionKind::Plan => planner(request, number(request), counted.next(number(request))),
        QuestionKind::Scene => look(request),
        QuestionKind::Check => Scripted::forced(request, verdict(number(request))),
        QuestionKind::Answer
        | QuestionKind::Recovery
        | QuestionKind::Interpret
        | QuestionKind::Decide
        | QuestionKind::Adapt => Scripted::Text(answer_to(number(request))),
    });
    let town = open(&llm, |config| {
        config.planning.reader = reader;
        config.planning.max_retries = retries;
    })
    .await;
    let results = send(&town, &llm, requests).await;

    let mut executed: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (scene, arguments) in town.log.calls() {
        executed.entry(arguments["number"].as_u64().unwrap() as usize).or_default().push(scene);
    }
    let mut row = Row { reader, retries, right: 0, wrong: 0, refused: 0, plan_calls: tries.all() };
    for (number, (status, _, _)) in results {
        let seen = executed.remove(&number).unwrap_or_default();
        if status == RunStatus::Failed && seen.is_empty() {
            row.refused += 1;
        } else if status == RunStatus::Completed && is_right(&seen, &expected(number)) {
            row.right += 1;
        } else {
            row.wrong += 1;
        }
    }
    row
}

fn is_right(seen: &[String], expected: &BTreeMap<String, Vec<String>>) -> bool {
    let place = |scene: &String| seen.iter().position(|other| other == scene);
    let in_order = |(scene, waits_for): (&String, &Vec<String>)| {
        place(scene)
            .is_some_and(|at| waits_for.iter().all(|other| place(other).is_some_and(|then| then < at)))
    };
    seen.len() == expected.len() && expected.iter().all(in_order)
}

#[tokio::test]
async fn planner_worth_nearly_all_requests_run_exactly_the_right_scenes() {
    let all = size(200);
    let numbers = sample(all, &[SEED]);
    let requests = numbers.len();
    let mut rows = Vec::new();
    for reader in [ReaderMode::Strict, ReaderMode::Tolerant] {
        for retries in [0, 1, 3] {
            rows.push(measure(reader, retries, &numbers).await);
        }
    }
    println!(
        "{requests} of {all} requests, {:.0}% of the planner's replies corrupted, fallback off",
        SHARE * 100.0
    );
    println!("| reader   | retries | right scenes | wrong scenes | refused | planner calls a request |");
    println!("| -------- | ------: | -----------: | -----------: | ------: | ----------------------: |");
    for row in &rows {
        let share = |count: usize| count as f64 * 100.0 / requests as f64;
        let reader = if row.reader == ReaderMode::Strict { "strict" } else { "tolerant" };
        println!(
            "| {reader:8} | {:7} | {:10.1} % | {:10.1} % | {:5.1} % | {:23.2} |",
            row.retries,
            share(row.right),
            share(row.wrong),
            share(row.refused),
            row.plan_calls as f64 / requests as f64
        );
    }
    let [strict @ .., _, _, _] = &rows[..] else { panic!("six rows") };
    let tolerant = &rows[3..];
    for (strict, tolerant) in strict.iter().zip(tolerant) {
        assert!(tolerant.right > strict.right, "tolerant parsing helps: {strict:?} {tolerant:?}");
        assert_eq!(tolerant.wrong, 0, "unparseable plans are never partially executed: {tolerant:?}");
    }
    for rows in [strict, tolerant] {
        assert!(rows[0].right < rows[1].right && rows[1].right < rows[2].right, "retries help: {rows:?}");
    }
    assert!((requests - tolerant[2].right) * 100 <= all, "{:?}", tolerant[2]);
}

/// The check's reply: corrupted in form, or wrong in one of its fields.
fn check(request: &Value, number: usize, attempt: usize) -> Scripted {
    let mut dice = dice(SEED, number, attempt);
    if !is_corrupted(&mut dice, SHARE) {
        return Scripted::forced(request, verdict(number));
    }
    let mut wrong = verdict(number);
    match dice.random_range(0..FORMS.len() + 5) {
        0 => wrong["answer"] = Value::Null,
        1 => wrong["can_answer_now"] = json!(false),
        2 => wrong["should_continue"] = json!(true),
        3 => wrong["can_answer_now"] = json!("yes"),
        4 => {
            wrong.as_object_mut().unwrap().remove("should_continue");
        }
        form => {
            let mut other = verdict(number);
            other["answer"] = json!("Nothing was found.");
            return corrupted(FORMS[form - 5], CHECK, &verdict(number), &other, &mut dice);
        }
    }
    Scripted::forced(request, wrong)
}

/// The answer call's reply: corrupted as often, in ways that apply to plain text.
fn answer(number: usize, attempt: usize) -> Scripted {
    let mut dice = dice(SEED.rotate_left(1), number, attempt);
    let whole = answer_to(number);
    if !is_corrupted(&mut dice, SHARE) {
        return Scripted::Text(whole);
    }
    let part: String = whole.chars().take(dice.random_range(0..whole.chars().count())).collect();
    let reason = *["length", "stop"].choose(&mut dice).unwrap();
    Scripted::Text(part).finished(reason)
}

/// Right final answers and model calls of these requests, with corrupted replies of the check, and of the answer call if
/// `both`.
async fn answers(with_check: bool, both: bool, numbers: &[usize]) -> (usize, u32) {
    let (checks, words) = (Attempts::default(), Attempts::default());
    let llm = ScriptedLlm::start(move |request, _| {
        let number = number(request);
        match question_kind(request) {
            QuestionKind::Plan => Scripted::forced(request, right(number)),
            QuestionKind::Scene => look(request),
            QuestionKind::Check => check(request, number, checks.next(number)),
            QuestionKind::Answer if both => answer(number, words.next(number)),
            QuestionKind::Answer
            | QuestionKind::Recovery
            | QuestionKind::Interpret
            | QuestionKind::Decide
            | QuestionKind::Adapt => Scripted::Text(answer_to(number)),
        }
    });
    let town = open(&llm, |config| config.planning.answer_with_check = with_check).await;
    let results = send(&town, &llm, numbers).await;
    let calls = results.iter().map(|(_, (_, _, calls))| calls).sum();
    let is_right = |(number, (status, text, _)): &&(usize, (RunStatus, String, u32))| {
        *status == RunStatus::Completed && *text == answer_to(*number)
    };
    (results.iter().filter(is_right).count(), calls)
}

#[tokio::test]
async fn planner_worth_check_answer_is_as_reliable_as_an_answer_call() {
    let all = size(100);
    // The answer call's replies have a seed of their own.
    let numbers = sample(all, &[SEED, SEED.rotate_left(1)]);
    let requests = numbers.len();
    println!(
        "{requests} of {all} requests, {:.0}% of the check's replies corrupted, fallback off",
        SHARE * 100.0
    );
    println!("| answer_with_check | answer calls corrupted too | right answers | model calls a request |");
    println!("| ----------------- | -------------------------- | ------------: | --------------------: |");
    for both in [false, true] {
        let mut right = [0; 2];
        let mut calls = [0; 2];
        for (i, with_check) in [true, false].into_iter().enumerate() {
            (right[i], calls[i]) = answers(with_check, both, &numbers).await;
            println!(
                "| {with_check:17} | {both:26} | {:11.1} % | {:21.2} |",
                right[i] as f64 * 100.0 / requests as f64,
                f64::from(calls[i]) / requests as f64
            );
        }
        assert!(right[0] >= right[1], "an answer with the check is no worse: {right:?}");
        assert!((requests - right[0]) * 100 <= all, "{right:?}");
        assert!(calls[0] < calls[1], "it saves calls: {calls:?}");
    }
}
