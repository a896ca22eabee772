//! The labelled requests of `tests/eval`, played with the embedded rules: how many are executed as labelled.
//! `EVAL_SHOW=all` or the id of a request shows what was executed, `-- --nocapture` the table.

mod judged;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use jiff::civil::Date;
use proscenium::run::{Effect, PrepareMode, RunId, RunState, TenantId};
use proscenium::{Answer, ChatRequest};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use judged::Judged;
use table::{Tally, by_class, faults};

use crate::support::eval::{self, Call, Labelled, Lang, Service, Set};
use crate::support::{Backend, ReceivedRequest, ServedEngine, Setup};

/// Concurrent requests.
const AT_ONCE: usize = 8;
/// Upper bound for one request.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with the scenes of a catalogue, and their backends.
struct EvalServer {
    served: ServedEngine,
    today: Date,
    _backends: Vec<Backend>,
    _scenes: TempDir,
}

/// A tool call that was started.
struct MadeCall {
    tool: String,
    arguments: Map<String, Value>,
    writes: bool,
    schema: Value,
}

/// A request and its result.
struct PlayedRequest {
    labelled: Labelled,
    status: String,
    answer: String,
    scenes: BTreeSet<String>,
    calls: Vec<MadeCall>,
    model_calls: u32,
    tokens: u64,
    /// The whole document, for display.
    document: Value,
}

impl EvalServer {
    async fn of(set: &Set, prepare: PrepareMode) -> Self {
        let scenes = tempfile::tempdir().unwrap();
        let mut backends = vec![];
        for service in Service::of(&set.catalogue) {
            let folder = scenes.path().join(&service.folder);
            fs::create_dir(&folder).unwrap();
            let replies = service.replies;
            let backend = Backend::start(move |reached| reply(&replies, reached));
            let scene = service.scene.replace("http://eval.invalid", backend.address());
            fs::write(folder.join("scene.toml"), scene).unwrap();
            backends.push(backend);
        }
        let setup = Setup::offline()
            .set("execution.fixed_now", &set.clock)
            .set("execution.time_zone", &set.time_zone)
            .set("planning.prepare", json!(prepare).as_str().unwrap())
            .set("scenes.allow_private_addresses", true)
            .scenes(scenes.path());
        let setup = if set.alone { setup.alone() } else { setup };
        let now: jiff::Zoned = format!("{}[{}]", set.clock, set.time_zone).parse().unwrap();
        let served = ServedEngine::start(setup).await;
        let place = Self { served, today: now.date(), _backends: backends, _scenes: scenes };
        for (labelled, free) in set.requests.iter().zip((1000..).step_by(10)) {
            place.prepare_cancellations(labelled, free).await;
        }
        place
    }

    /// Creates the vacation that a labelled call cancels, so that the first refusal does not stop the second.
    /// Numbers from `free` on belong to requests that are cancelled by their first day.
    async fn prepare_cancellations(&self, labelled: &Labelled, free: i64) {
        let cancelled = labelled.calls.iter().filter(|call| call.tool == "CancelRequest");
        for (number, call) in (0..).zip(cancelled) {
            let first = call.arguments.get("from").and_then(Value::as_str).map(str::to_owned);
            let first = first.unwrap_or_else(|| format!("2027-09-{:02}", number + 1));
            let (_, user) = self.served.engine.default_principal();
            let sql = "INSERT INTO vacation_requests (id, tenant, user, first_day, last_day, requested_at, \
                       idempotency_key, answer) VALUES (?, ?, ?, ?, ?, '2026-11-20T08:00:00Z', ?, '{}') RETURNING id";
            let id: i64 = sqlx::query_scalar(sql)
                .bind(call.arguments.get("request_id").and_then(Value::as_i64).unwrap_or(free + number))
                .bind(&labelled.id)
                .bind(user)
                .bind(&first)
                .bind(&first)
                .bind(format!("eval-{number}"))
                .fetch_one(self.served.engine.store().pool())
                .await
                .unwrap();
            let sql = "INSERT INTO vacation_days (request, year, days) VALUES (?, 2027, 1)";
            let pool = self.served.engine.store().pool();
            sqlx::query(sql).bind(id).execute(pool).await.unwrap();
        }
    }

    /// Plays a request in its own conversation.
    async fn play(&self, labelled: &Labelled) -> PlayedRequest {
        let playing = async {
            if labelled.system.is_none() && labelled.history.is_empty() {
                self.chat(labelled).await
            } else {
                self.complete(labelled).await
            }
        };
        match tokio::time::timeout(PATIENCE, playing).await {
            Ok(Ok((answer, state))) => self.played(labelled, &answer, &state),
            Ok(Err(refused)) => PlayedRequest::without_a_run(labelled, refused),
            Err(_) => PlayedRequest::without_a_run(labelled, "no answer in time".into()),
        }
    }

    /// Each has its own tenant, so that no request finds the vacation of another.
    async fn chat(&self, labelled: &Labelled) -> Result<(Answer, RunState), String> {
        let (tenant, (_, user)) =
            (TenantId::new(&labelled.id).unwrap(), self.served.engine.default_principal());
        let request = ChatRequest::new(labelled.say.as_str(), tenant.clone(), user);
        let ticket = self.served.engine.submit(request).await.map_err(|fault| fault.to_string())?;
        let answer = ticket.answer().await.map_err(|fault| fault.to_string())?;
        let state = self.served.engine.run(&tenant, answer.run_id).await.unwrap();
        Ok((answer, state))
    }

    /// Over the OpenAI protocol, with the messages before it.
    async fn complete(&self, labelled: &Labelled) -> Result<(Answer, RunState), String> {
        let message = |role: &str, words: &str| json!({"role": role, "content": words});
        let mut messages: Vec<Value> =
            labelled.system.iter().map(|system| message("system", system)).collect();
        for turn in &labelled.history {
            messages.extend([message("user", &turn.user), message("assistant", &turn.assistant)]);
        }
        messages.push(message("user", &labelled.say));
        let body = json!({"model": "proscenium", "messages": messages});
        let reply = self.served.post("/v1/chat/completions", &body).await;
        let Ok(run) = reply.header("x-run-id").parse::<RunId>() else { return Err(reply.body) };
        let tenant = &self.served.tenant;
        let answer = self.served.engine.answer_of(tenant, run).await.unwrap();
        let answer = answer.ok_or_else(|| format!("{run} has no answer"))?;
        let state = self.served.engine.run(tenant, run).await.unwrap();
        Ok((answer, state))
    }

    fn played(&self, labelled: &Labelled, answer: &Answer, state: &RunState) -> PlayedRequest {
        let catalogue = self.served.engine.catalogue();
        let made = state.calls.values().filter(|call| call.attempts > 0 && call.undoes.is_none());
        let calls = made.map(|call| {
            let tool = catalogue.get(&call.scene).and_then(|scene| scene.tool(&call.requested.tool));
            MadeCall {
                tool: call.requested.tool.clone(),
                arguments: call.requested.arguments.as_object().cloned().unwrap_or_default(),
                writes: call.requested.effect == Effect::Write,
                schema: tool.map_or(Value::Null, |tool| (*tool.parameters).clone()),
            }
        });
        PlayedRequest {
            labelled: labelled.clone(),
            status: json!(answer.status).as_str().unwrap().to_owned(),
            answer: answer.answer.clone(),
            scenes: answer.steps.iter().map(|step| step.scene_name.clone()).collect(),
            calls: calls.collect(),
            model_calls: answer.usage.llm_calls,
            tokens: answer.usage.input_tokens,
            document: json!({"plan": answer.plan, "steps": answer.steps}),
        }
    }

    /// Asserts that the labels name existing tools and arguments, and every required value.
    fn assert_known(&self, set: &Set) {
        let catalogue = self.served.engine.catalogue();
        for labelled in &set.requests {
            let known = |name: &String| catalogue.iter().find_map(|scene| scene.tool(name));
            for Call { tool, arguments } in &labelled.calls {
                let tool = known(tool).unwrap_or_else(|| panic!("{}: there is no {tool}", labelled.id));
                let properties = &tool.parameters["properties"];
                let unknown = arguments.keys().find(|name| properties[name.as_str()].is_null());
                assert_eq!(unknown, None, "{}: no such argument", labelled.id);
                let required = tool.parameters["required"].as_array().into_iter().flatten();
                let missing = required.filter_map(Value::as_str).find(|name| !arguments.contains_key(*name));
                assert_eq!(missing, None, "{}: a required argument has no label", labelled.id);
            }
            assert!(labelled.optional.iter().all(|tool| known(tool).is_some()), "{}", labelled.id);
            let scenes = labelled.scenes.iter().flatten();
            let unknown = scenes.into_iter().find(|scene| catalogue.get(scene).is_none());
            assert_eq!(unknown, None, "{}: no such scene", labelled.id);
        }
    }
}

/// The reply configured in `replies.json`, with the received arguments.
fn reply(replies: &BTreeMap<String, Value>, reached: &ReceivedRequest) -> Value {
    let mut reply = Map::new();
    reply.extend(reached.query.iter().map(|(name, value)| (name.clone(), json!(value))));
    let sent = reached.body.as_object().cloned().unwrap_or_default();
    reply.extend(sent.into_iter().filter(|(_, value)| !value.is_null()));
    let Some(configured) = replies.get(&reached.place) else {
        return json!({"error": format!("there is no {}", reached.place)});
    };
    reply.extend(configured.as_object().cloned().unwrap());
    if reached.place == "POST /reservations" { json!({"reservation": reply}) } else { Value::Object(reply) }
}

impl PlayedRequest {
    fn without_a_run(labelled: &Labelled, why: String) -> Self {
        let (scenes, calls) = (BTreeSet::new(), vec![]);
        let status = "none".to_owned();
        let labelled = labelled.clone();
        let (model_calls, tokens) = (0, 0);
        Self { labelled, status, answer: why, scenes, calls, model_calls, tokens, document: Value::Null }
    }

    fn brief(&self) -> String {
        let scenes: Vec<&str> = self.scenes.iter().map(String::as_str).collect();
        let calls: Vec<String> = self.calls.iter().map(MadeCall::to_string).collect();
        let answer: String = self.answer.chars().take(200).collect::<String>().replace('\n', " ");
        let (id, say) = (&self.labelled.id, &self.labelled.say);
        let calls = if calls.is_empty() { "none".to_owned() } else { calls.join("; ") };
        format!(
            "{id}: {say:?}\n    {} [{}] calls: {calls}\n    answer: {answer}",
            self.status,
            scenes.join(", ")
        )
    }
}

impl std::fmt::Display for MadeCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.tool, json!(self.arguments))
    }
}

/// What `EVAL_SHOW` asks to show of a request: nothing by default.
fn display(played: &PlayedRequest) -> String {
    match std::env::var("EVAL_SHOW").unwrap_or_default() {
        selected if selected == "all" => format!("- {}\n", played.brief()),
        selected if selected == played.labelled.id => {
            format!("- {}\n{:#}\n{}\n", played.brief(), played.document, played.answer)
        }
        _ => String::new(),
    }
}

/// Plays all labelled requests; also returns what came of them as text.
async fn played(prepare: PrepareMode) -> (Vec<(PlayedRequest, Judged)>, String) {
    let start = Instant::now();
    let mut all = vec![];
    let mut report = String::new();
    for set in eval::sets() {
        let place = EvalServer::of(&set, prepare).await;
        place.assert_known(&set);
        let playing = set.requests.iter().map(|labelled| place.play(labelled));
        let played: Vec<PlayedRequest> = futures::stream::iter(playing).buffered(AT_ONCE).collect().await;
        for played in played {
            report.push_str(&display(&played));
            let judged = played.judged(place.today);
            all.push((played, judged));
        }
    }
    let tally = tally(&all);
    let (by_class, table) = (by_class(&all), tally.table());
    let took = start.elapsed();
    report.push_str(&format!("planning.prepare = {}\n{}\n", json!(prepare), faults(&all)));
    report.push_str(&format!("{by_class}\n{table}({took:.1?})"));
    (all, report)
}

fn tally(all: &[(PlayedRequest, Judged)]) -> Tally {
    let mut tally = Tally::default();
    all.iter().for_each(|(played, judged)| tally.add(played, judged));
    let missed: Vec<&str> = tally.bars().iter().filter(|bar| !bar.4).map(|bar| bar.0).collect();
    assert!(
        missed.is_empty(),
        "bars that are not met: {}\n{}\n{}",
        missed.join(", "),
        faults(all),
        tally.table()
    );
    tally
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labelled_requests_are_executed_as_labelled() {
    let (step_by_step, mut report) = played(PrepareMode::Approval).await;
    let (prepared, more) = played(PrepareMode::Always).await;
    report.push_str(&format!("\n{more}\n"));
    report.push_str("| planning.prepare | model calls a request | prompt tokens a request |\n");
    report.push_str("| ---------------- | --------------------: | ----------------------: |\n");
    let mut means = vec![];
    for (name, all) in [("approval", &step_by_step), ("always", &prepared)] {
        let mean = |sum: f64| sum / all.len() as f64;
        let calls = mean(all.iter().map(|(played, _)| f64::from(played.model_calls)).sum());
        let tokens = mean(all.iter().map(|(played, _)| played.tokens as f64).sum());
        report.push_str(&format!("| {name:16} | {calls:21.2} | {tokens:23.0} |\n"));
        means.push(calls);
    }
    println!("{report}");
    fs::write(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("eval.txt"), report).unwrap();
    assert!(means[1] < means[0], "{means:?}");
    // No request that was executed completely step by step is left undone when its calls are prepared.
    let left = |(played, judged): &(PlayedRequest, Judged)| (played.labelled.id.clone(), judged.left);
    let before: BTreeMap<String, usize> = step_by_step.iter().map(left).collect();
    let worse: Vec<String> =
        prepared.iter().map(left).filter(|(id, left)| *left > before[id]).map(|(id, _)| id).collect();
    assert!(worse.is_empty(), "worse when prepared: {}", worse.join(", "));
}

#[test]
fn labelled_set_is_balanced() {
    let all: Vec<Labelled> = eval::sets().into_iter().flat_map(|set| set.requests).collect();
    let count = |test: &dyn Fn(&Labelled) -> bool| all.iter().filter(|labelled| test(labelled)).count();
    let ids: BTreeSet<&String> = all.iter().map(|labelled| &labelled.id).collect();
    assert_eq!(ids.len(), all.len(), "ids are unique");
    assert!(all.len() >= 330, "{}", all.len());
    let english = count(&|labelled| labelled.lang == Lang::En);
    assert!((all.len() * 4 / 10..=all.len() * 6 / 10).contains(&english), "{english} of {}", all.len());
    let none = count(&|labelled| labelled.class.must_not_write());
    assert!((all.len() * 45 / 100..=all.len() * 55 / 100).contains(&none), "{none} of {}", all.len());
    let blind = count(&|labelled| labelled.blind);
    assert!(blind * 4 >= all.len() * 3, "{blind} of {}", all.len());
    let torn = count(&|labelled| labelled.asks && (labelled.plain || labelled.may_ask));
    assert_eq!(torn, 0, "a request that must ask is not plain");
}
