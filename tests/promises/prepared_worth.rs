//! Plans with prepared calls beside plans without, on the same requests and the same corrupted replies.
//!
//! 30% of the planner's replies are corrupted: in form, in content (unknown names, cycles, …), and in their prepared calls
//! (wrong types, missing and invented values, references into nowhere, writes that nobody asked for). The scenes' model is
//! sound: it does what the request says, once. The fallback is off. The table is printed by
//!
//! ```text
//! SOAK=1000 cargo test --test promises prepared_worth -- --nocapture
//! ```
//!
//! A plain run sends fewer requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::{StreamExt, stream};
use proscenium::Config;
use proscenium::run::{Effect, PrepareMode, RunStatus};
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, native};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::support::corruption::{FORMS, corrupted, dice, is_corrupted};
use crate::support::planner_engine::{CallLog, QuestionKind, Town, plan, question_kind, step};
use crate::support::{Scripted, ScriptedLlm, section, size};

const PLAN: &str = "CreateExecutionPlan";
const SCENES: [&str; 4] = ["Badges", "Canteen", "Library", "Parking"];
/// More than the requests of any run: the number of another request is that of one of these and this.
const OTHER: usize = 1_000_000;
const SHARE: f64 = 0.3;
const SEED: u64 = 0x5eed_0013_0000_0000;
/// Concurrent requests, each in its own conversation.
const TOGETHER: usize = 32;
/// Faults of a plan's content.
const MISPLANNED: usize = 5;
/// Faults of its prepared calls.
const MISPREPARED: usize = 5;

/// Each scene has a read and a write.
fn scenes(log: &CallLog) -> Vec<Scene> {
    let scene = |name: &'static str| {
        let tool = |verb: &'static str, about: &str, effect| {
            let log = log.clone();
            let called = format!("{name}{verb}");
            let logged = called.clone();
            let work = native(move |arguments: Value, _: ToolContext| {
                log.begin(&logged, &arguments);
                async move { Ok(json!({"done": true})) }
            });
            let number = json!({"type": "object", "required": ["number"],
                "properties": {"number": {"type": "integer", "description": "The number asked for"}}});
            SceneTool::dynamic(&called, about, effect, number, work)
        };
        Scene::builder(name)
            .description(&format!("All about {name}."))
            .instructions("Do as asked.")
            .concurrency(TOGETHER as u32)
            .tool(tool("Show", "Shows what is known of a number.", Effect::Read))
            .tool(tool("Order", "Orders a number.", Effect::Write))
            .build()
            .unwrap()
    };
    SCENES.map(scene).into()
}

/// The calls that a request asks for, in order: one to three scenes, a third of them writes.
fn wanted(request: usize) -> Vec<(&'static str, &'static str)> {
    let mut dice = dice(!SEED, request, 0);
    let count = *[1, 1, 1, 2, 2, 3].choose(&mut dice).unwrap();
    let mut left = SCENES.to_vec();
    let one = |_| {
        let scene = left.swap_remove(dice.random_range(0..left.len()));
        (scene, *["Show", "Show", "Order"].choose(&mut dice).unwrap())
    };
    (0..count).map(one).collect()
}

fn request_text(request: usize) -> String {
    let clause = |(scene, verb): &(&str, &str)| format!("{verb} {scene}");
    let clauses: Vec<String> = wanted(request).iter().map(clause).collect();
    format!("{} with number {request}", clauses.join(", then "))
}

fn number(request: &Value) -> usize {
    section(request, "request").unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

/// The right plan of a request. Each step waits for the one before.
fn right(request: usize, prepare: PrepareMode) -> Value {
    let steps = (1..).zip(wanted(request)).map(|(at, (scene, verb)): (u32, _)| {
        let tool = format!("{scene}{verb}");
        let after = if at == 1 { Value::Null } else { json!(at - 1) };
        let mut step = step(at, scene, &[&tool], after);
        if prepare == PrepareMode::Always {
            step["prepared_calls"] = json!([call(&tool, &json!({"number": request}))]);
        }
        step
    });
    plan(steps.collect())
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"tool": tool, "arguments": arguments.to_string()})
}

/// A fault of a well-formed plan.
fn misplanned(request: usize, prepare: PrepareMode, fault: usize, dice: &mut ChaCha8Rng) -> Value {
    let mut plan = right(request, prepare);
    let at = dice.random_range(0..plan["steps"].as_array().unwrap().len());
    let step = &mut plan["steps"][at];
    match fault {
        0 => step["scene_name"] = json!("Garage"),
        1 => step["expected_tools"] = json!(["Open(door)"]),
        2 => step["depends_on_step"] = json!(9),
        3 => plan["needs_execution"] = json!(false),
        _ => plan["steps"] = json!([]),
    }
    plan
}

/// A fault of a plan's prepared calls. Without them, only the write that nobody asked for remains.
fn misprepared(request: usize, prepare: PrepareMode, fault: usize, dice: &mut ChaCha8Rng) -> Value {
    let mut plan = right(request, prepare);
    let at = dice.random_range(0..plan["steps"].as_array().unwrap().len());
    let step = &mut plan["steps"][at];
    let tool = step["expected_tools"][0].as_str().unwrap().to_owned();
    let mut replace = |arguments: &Value| {
        if prepare == PrepareMode::Always {
            step["prepared_calls"] = json!([call(&tool, arguments)]);
        }
    };
    match fault {
        0 => replace(&json!({"number": "many"})),
        1 => replace(&json!({})),
        2 => replace(&json!({"number": request + 1 + OTHER})),
        3 => replace(&json!({"number": {"$ref": {"step": 7, "tool": "LibraryShow", "pointer": "/number"}}})),
        _ => {
            let scene = step["scene_name"].as_str().unwrap();
            let unasked = format!("{scene}Order");
            if unasked != tool && !request_text(request).contains("Order") {
                step["expected_tools"] = json!([tool, unasked]);
                if prepare == PrepareMode::Always {
                    let calls = step["prepared_calls"].as_array_mut().unwrap();
                    calls.push(call(&unasked, &json!({"number": request})));
                }
            }
        }
    }
    plan
}

/// The planner's reply, corrupted or not: a function of the request and the attempt.
fn planner(request: &Value, prepare: PrepareMode, number: usize, attempt: usize) -> Scripted {
    let mut dice = dice(SEED, number, attempt);
    if !is_corrupted(&mut dice, SHARE) {
        return Scripted::forced(request, right(number, prepare));
    }
    let fault = dice.random_range(0..FORMS.len() + MISPLANNED + MISPREPARED);
    match (FORMS.get(fault), fault.saturating_sub(FORMS.len())) {
        (Some(form), _) => {
            let (one, other) = (right(number, prepare), right(number + OTHER, prepare));
            corrupted(*form, PLAN, &one, &other, &mut dice)
        }
        (None, content) if content < MISPLANNED => {
            Scripted::forced(request, misplanned(number, prepare, content, &mut dice))
        }
        (None, content) => {
            Scripted::forced(request, misprepared(number, prepare, content - MISPLANNED, &mut dice))
        }
    }
}

/// A sound scene: it makes the call that the request asks for, unless it was made.
fn scene(request: &Value) -> Scripted {
    let (number, scene) = (number(request), section(request, "scene").unwrap());
    let (_, verb) = wanted(number).into_iter().find(|(name, _)| *name == scene).unwrap();
    let tool = format!("{scene}{verb}");
    let messages = request["messages"].as_array().unwrap();
    let made = messages.iter().any(|message| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        calls.into_iter().any(|call| {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            call["function"]["name"] == tool.as_str() && arguments.contains(&format!(":{number}"))
        })
    });
    if made { Scripted::Text("Done.".into()) } else { Scripted::call(&tool, json!({"number": number})) }
}

fn verdict(number: usize) -> Value {
    json!({"should_continue": false, "can_answer_now": true, "reasoning": "All was done.",
        "missing_information": null, "answer": format!("What you asked for number {number} was carried out.")})
}

/// What a provider's prefix cache would hold: of each prompt, what an earlier one began with, in blocks of 128 tokens from 1,024
/// on, as OpenAI documents it. A token counts as four bytes.
#[derive(Clone, Default)]
struct PrefixCache(Arc<Mutex<BTreeMap<QuestionKind, Vec<u8>>>>);

impl PrefixCache {
    fn metered(&self, request: &Value, reply: Scripted) -> Scripted {
        let mut prompt = request["tools"].to_string();
        let messages = request["messages"].as_array().unwrap();
        messages.iter().for_each(|message| prompt.push_str(&message["content"].to_string()));
        let before = self.0.lock().unwrap().insert(question_kind(request), prompt.clone().into_bytes());
        let same = before.iter().flatten().zip(prompt.bytes()).take_while(|(a, b)| **a == *b).count() / 4;
        let cached = if same >= 1024 { same / 128 * 128 } else { 0 };
        let written = format!("{reply:?}").len() / 4;
        match reply {
            // They have no usage.
            Scripted::Status { .. } | Scripted::Json(_) => reply,
            reply => reply.metered((prompt.len() / 4) as u64, cached as u64, written as u64),
        }
    }
}

/// The results of all requests in one mode.
#[derive(Debug)]
struct Row {
    prepare: PrepareMode,
    /// Completed with exactly the right calls, in their order.
    right: usize,
    /// Writes that were not asked for.
    wrong_writes: usize,
    /// Reads with other values than asked for.
    wrong_reads: usize,
    model_calls: u32,
    prompt_tokens: u64,
    cached_tokens: u64,
    completion_tokens: u64,
}

async fn measure(prepare: PrepareMode, requests: usize) -> Row {
    let attempts: Arc<Mutex<BTreeMap<usize, usize>>> = Arc::default();
    let reply = move |request: &Value| match question_kind(request) {
        QuestionKind::Plan => {
            let number = number(request);
            let attempt = {
                let mut attempts = attempts.lock().unwrap();
                let count = attempts.entry(number).or_default();
                *count += 1;
                *count - 1
            };
            planner(request, prepare, number, attempt)
        }
        QuestionKind::Scene => scene(request),
        QuestionKind::Check => Scripted::forced(request, verdict(number(request))),
        QuestionKind::Answer
        | QuestionKind::Recovery
        | QuestionKind::Interpret
        | QuestionKind::Decide
        | QuestionKind::Adapt => Scripted::Text("Done.".into()),
    };
    let cache = PrefixCache::default();
    let llm = ScriptedLlm::start(move |request, _| cache.metered(request, reply(request)));
    let mut config = Config { llm: llm.options(), ..Config::default() };
    config.planning.fallback_enabled = false;
    config.planning.prepare = prepare;
    let log = CallLog::default();
    let town = Town::with(config, scenes(&log), log).await;
    let ask = async |number: usize| {
        let request = town.engine.request(&request_text(number), None);
        let answer = town.engine.chat(request).await.unwrap();
        if number.is_multiple_of(50) {
            llm.forget();
        }
        (number, answer)
    };
    let answers: Vec<_> = stream::iter(0..requests).map(ask).buffer_unordered(TOGETHER).collect().await;

    let mut made: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (tool, arguments) in town.log.calls() {
        made.entry(arguments["number"].as_u64().unwrap()).or_default().push(tool);
    }
    let mut row = Row {
        prepare,
        right: 0,
        wrong_writes: 0,
        wrong_reads: 0,
        model_calls: 0,
        prompt_tokens: 0,
        cached_tokens: 0,
        completion_tokens: 0,
    };
    for (number, answer) in answers {
        let tools: Vec<String> =
            wanted(number).iter().map(|(scene, verb)| format!("{scene}{verb}")).collect();
        let made = made.remove(&(number as u64)).unwrap_or_default();
        row.right += usize::from(answer.status == RunStatus::Completed && made == tools);
        let other = made.iter().filter(|tool| !tools.contains(tool));
        row.wrong_writes += other.filter(|tool| tool.ends_with("Order")).count();
        let twice = tools.iter().map(|tool| made.iter().filter(|one| *one == tool).count().saturating_sub(1));
        row.wrong_writes += twice.sum::<usize>();
        row.model_calls += answer.usage.llm_calls;
        row.prompt_tokens += answer.usage.input_tokens;
        row.cached_tokens += answer.usage.cached_input_tokens;
        row.completion_tokens += answer.usage.output_tokens;
    }
    for tools in made.values() {
        let writes = tools.iter().filter(|tool| tool.ends_with("Order")).count();
        row.wrong_writes += writes;
        row.wrong_reads += tools.len() - writes;
    }
    row
}

#[tokio::test]
async fn prepared_worth_no_less_success_and_no_wrong_write_in_fewer_calls() {
    let requests = size(100);
    let rows = [measure(PrepareMode::Never, requests).await, measure(PrepareMode::Always, requests).await];
    println!("{requests} requests, {:.0}% of the planner's replies corrupted, fallback off", SHARE * 100.0);
    println!(
        "| prepare | right   | wrong writes | wrong reads | model calls | tokens in | cached | tokens out |"
    );
    println!(
        "| ------- | ------: | -----------: | ----------: | ----------: | --------: | -----: | ---------: |"
    );
    for row in &rows {
        let each = |count: u64| count as f64 / requests as f64;
        println!(
            "| {:7} | {:5.1} % | {:12} | {:11} | {:11.2} | {:9.0} | {:4.0} % | {:10.0} |",
            format!("{:?}", row.prepare).to_lowercase(),
            row.right as f64 * 100.0 / requests as f64,
            row.wrong_writes,
            row.wrong_reads,
            each(row.model_calls.into()),
            each(row.prompt_tokens),
            row.cached_tokens as f64 * 100.0 / row.prompt_tokens as f64,
            each(row.completion_tokens),
        );
    }
    let [never, always] = &rows;
    assert_eq!((never.wrong_writes, always.wrong_writes), (0, 0), "{rows:?}");
    assert_eq!(always.wrong_reads, 0, "{rows:?}");
    assert!(always.right * 1000 >= requests * 999 && always.right >= never.right, "{rows:?}");
    assert!(f64::from(always.model_calls) < 0.65 * f64::from(never.model_calls), "{rows:?}");
}
