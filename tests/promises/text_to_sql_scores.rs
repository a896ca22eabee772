//! How many questions the text_to_sql flow answers, and along which paths: over questions that were written without
//! looking at its rules. `--nocapture` prints the counts, `SOAK=1` asks all questions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::{self, StreamExt as _};
use proscenium::run::{Outcome, PlanGuidance, RunStatus, SessionId};
use proscenium::sql_engine::SqlDatabase;
use serde_json::{Value, json};

use crate::support::sql_pairs::{
    Declined, PathRequest, SampleDatabase, SampleFiles, SqlPair, declined, found, path_requests,
};
use crate::support::test_engine::{FinishedRun, Setup, TestEngine};
use crate::support::{Scripted, ScriptedLlm, forced_tool, section};

/// The day of questions that name none.
const TODAY: &str = "2026-11-20";

/// The share of questions that the rules have to answer, in percent.
const MIN_RIGHT: usize = 60;
/// The share of requests whose path has to be the expected one, in percent.
const MIN_PATHS: usize = 95;
/// How many questions are asked at the same time, each in a conversation of its own.
const AT_ONCE: usize = 8;

async fn ask(test: &TestEngine, session: &str, words: &str, state: Value) -> FinishedRun {
    let mut request = test.engine.request(words, Some(SessionId::new(session).unwrap()));
    request.plan = Some(proscenium::plan::Plan::of_flow("text_to_sql", words));
    request.guidance = PlanGuidance::of(None, Some(state), true);
    let ticket = test.engine.submit(request).await.unwrap();
    let answer = ticket.answer().await.unwrap();
    let events = test.events(answer.run_id).await;
    let state = test.engine.run(&test.tenant, answer.run_id).await.unwrap();
    FinishedRun { answer, state, events }
}

/// A session of its own for each question.
fn session() -> String {
    static SESSIONS: AtomicUsize = AtomicUsize::new(0);
    format!("s{}", SESSIONS.fetch_add(1, Ordering::SeqCst))
}

/// The rows that a run found; `None` if it executed nothing.
fn rows(run: &FinishedRun) -> Option<Vec<Vec<Value>>> {
    let (number, _) = run.state.calls.iter().rfind(|(_, call)| call.requested.tool == "execute_sql")?;
    let Some(Outcome::Ok { result, whole, .. }) = run.state.outcome(*number) else { return None };
    let result = whole.as_ref().unwrap_or(result);
    let rows = result["result"]["rows"].as_array()?;
    Some(rows.iter().map(|row| row.as_array().unwrap().clone()).collect())
}

fn tables_of(database: &SqlDatabase) -> Vec<String> {
    database.schema().tables.iter().map(|table| table.name.name.clone()).collect()
}

/// Counts by kind: right, declined, wrong.
#[derive(Debug, Default)]
struct Score {
    by_kind: BTreeMap<String, [usize; 3]>,
    held_out: [usize; 3],
    wrong: Vec<String>,
}

impl Score {
    fn add(&mut self, pair: &SqlPair, outcome: usize) {
        self.by_kind.entry(pair.kind.clone()).or_default()[outcome] += 1;
        self.held_out[outcome] += usize::from(pair.held_out);
        if outcome == 2 {
            self.wrong.push(pair.id.clone());
        }
    }

    #[expect(clippy::print_stdout, reason = "the counts are what the tests show")]
    fn print(&self, title: &str) -> usize {
        let sum = |at: usize| self.by_kind.values().map(|counts| counts[at]).sum::<usize>();
        let all: usize = (0..3).map(sum).sum();
        println!("{title}: {} of {all} right, {} declined, {} wrong", sum(0), sum(1), sum(2));
        let [right, declined, wrong] = self.held_out;
        println!("  held out   {right:3} right {declined:3} declined {wrong:3} wrong");
        for (kind, [right, declined, wrong]) in &self.by_kind {
            println!("  {kind:10} {right:3} right {declined:3} declined {wrong:3} wrong");
        }
        sum(0) * 100 / all.max(1)
    }
}

/// One of so many questions is asked through the flow. What the rules answer to all of them is tested beside the rules
/// (`scenes/text_to_sql/scores.rs`). `SOAK=1` asks all through the flow, on both engines.
fn step(files: &SampleFiles) -> usize {
    match (std::env::var_os("SOAK"), files.is_postgres()) {
        (Some(_), _) => 1,
        (None, false) => 9,
        (None, true) => 18,
    }
}

/// Whether a question is answered: 0 if rightly, 1 if not, 2 if wrongly.
async fn outcome(
    test: &TestEngine,
    (files, database): (&SampleFiles, &SqlDatabase),
    pair: &SqlPair,
) -> usize {
    assert!(pair.today.as_deref().is_none_or(|today| today.starts_with(TODAY)), "{}", pair.id);
    let state = json!({"database": database.name(), "approved_tables": tables_of(database)});
    let Some(got) = rows(&ask(test, &session(), &pair.question, state).await) else { return 1 };
    let mut is_right = false;
    for sql in pair.right(files.is_postgres()) {
        is_right |= pair.matches(&found(database, &sql).await, &got);
    }
    if is_right { 0 } else { 2 }
}

async fn score(setup: impl Fn(&str) -> Setup, files: &SampleFiles) -> Score {
    let mut score = Score::default();
    // All questions with a day have the same one, so one engine serves.
    let test = setup(TODAY).start().await;
    for sample in SampleDatabase::ALL {
        let database = files.open(sample.name()).await;
        let all = sample.pairs().into_iter().chain(sample.second_pairs());
        let pairs: Vec<SqlPair> = all.step_by(step(files)).collect();
        let outcomes = stream::iter(&pairs).map(|pair| outcome(&test, (files, &database), pair));
        let outcomes: Vec<usize> = outcomes.buffered(AT_ONCE).collect().await;
        for (pair, outcome) in pairs.iter().zip(outcomes) {
            score.add(pair, outcome);
        }
    }
    score
}

async fn rules_are_right(files: &SampleFiles, engine: &str) {
    let score = score(|today| files.setup(Setup::offline(), today), files).await;
    let right = score.print(&format!("offline model on {engine}"));
    assert!(score.wrong.is_empty(), "wrong but confident: {:?}", score.wrong);
    // A sample says less about the share.
    assert!(right >= MIN_RIGHT || step(files) > 1, "{right} % right");
}

#[tokio::test]
async fn rules_answer_most_questions_and_none_wrongly() {
    rules_are_right(&SampleFiles::write().await, "SQLite").await;
}

async fn gets_rows(test: &TestEngine, tables: &BTreeMap<&str, Vec<String>>, question: &Declined) -> bool {
    let tables = &tables[question.database.as_str()];
    let state = json!({"database": question.database, "approved_tables": tables});
    let run = ask(test, &session(), &question.question, state).await;
    rows(&run).is_some_and(|rows| !rows.is_empty())
}

#[tokio::test]
async fn questions_that_the_data_does_not_answer_get_no_rows() {
    let files = SampleFiles::write().await;
    let test = files.setup(Setup::offline(), TODAY).start().await;
    let all: Vec<Declined> = declined().into_iter().step_by(step(&files)).collect();
    let mut tables = BTreeMap::new();
    for sample in SampleDatabase::ALL {
        tables.insert(sample.name(), tables_of(&files.open(sample.name()).await));
    }
    let outcomes: Vec<bool> = stream::iter(&all)
        .map(|question| gets_rows(&test, &tables, question))
        .buffered(AT_ONCE)
        .collect()
        .await;
    let answered = all.iter().zip(outcomes).filter(|(_, has_rows)| *has_rows);
    let wrong: Vec<_> = answered.map(|(question, _)| (&question.id, &question.why)).collect();
    println!("declines: {} of {} got rows", wrong.len(), all.len());
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The line of a prompt after `label`.
fn line<'a>(task: &'a str, label: &str) -> &'a str {
    task.lines().find_map(|line| line.strip_prefix(label)).unwrap_or_default().trim()
}

/// A model that answers the questions of nodes: `sql` by the question.
fn replaying(sql: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> ScriptedLlm {
    ScriptedLlm::start(move |request, _| match forced_tool(request) {
        Some("ReportNode") => {
            let (node, task) = (section(request, "node").unwrap(), section(request, "task").unwrap());
            let question = line(&task, "Question:");
            let reply = match node.trim_start_matches("text_to_sql.") {
                "classify_prompt" => json!({"kind": "question", "run": true, "fix": false, "sql": ""}),
                "rewrite_prompt" => json!({"question": question}),
                _ => json!({"sql": sql(question).unwrap_or_default(), "declined": "", "understood": ""}),
            };
            Scripted::forced(request, reply)
        }
        Some("CheckContinuation") => Scripted::answered(request, Value::Null),
        // No path is planned: the rules choose one.
        _ => Scripted::Text("Here is what was found.".into()),
    })
}

async fn references_are_right(files: &SampleFiles, engine: &str) {
    let mut references = BTreeMap::new();
    for sample in SampleDatabase::ALL {
        for pair in sample.pairs().into_iter().chain(sample.second_pairs()) {
            references.insert(pair.question.trim().to_owned(), pair.right(files.is_postgres()).remove(0));
        }
    }
    let llm = replaying(move |question| references.get(question).cloned());
    let setup = |today: &str| {
        files
            .setup(Setup::scripted(&llm), today)
            .set("planning.fallback_enabled", true)
            .set("planning.max_retries", 0)
    };
    let score = score(setup, files).await;
    let right = score.print(&format!("replayed references on {engine}"));
    assert_eq!((right, score.wrong.len()), (100, 0), "{:?}", score.wrong);
}

#[tokio::test]
async fn model_that_replays_the_references_is_right_about_all_questions() {
    references_are_right(&SampleFiles::write().await, "SQLite").await;
}

#[tokio::test]
async fn rules_and_replayed_references_are_right_on_postgres() {
    let Some(files) = SampleFiles::write_postgres("text to SQL on PostgreSQL").await else { return };
    rules_are_right(&files, "PostgreSQL").await;
    references_are_right(&files, "PostgreSQL").await;
}

/// The nodes of a path that are compared: without the approval, which is passed in any case, and without repairs at run
/// time, which are no part of what was planned.
fn compared(path: &[String]) -> Vec<&str> {
    let mut nodes: Vec<&str> = Vec::new();
    for node in path.iter().map(String::as_str).filter(|node| *node != "has_user_approved") {
        let is_repair = node == "generate_sql" && nodes.contains(&"validate_sql");
        if !is_repair && nodes.last() != Some(&node) {
            nodes.push(node);
        }
    }
    nodes
}

/// The nodes of a request, with approval by a person where one is asked.
async fn path_of(test: &TestEngine, request: &PathRequest) -> (Vec<String>, bool) {
    let session = session();
    if let Some(before) = &request.after {
        let earlier = ask(test, &session, before, json!({"database": request.database})).await;
        if earlier.answer.status == RunStatus::Waiting {
            test.chat(&session, "yes").await;
        }
    }
    let mut state = json!({"database": request.database});
    for (name, value) in request.given.as_object().into_iter().flatten() {
        state[name] = value.clone();
    }
    let mut run = ask(test, &session, &request.message, state).await;
    let asked = run.answer.status == RunStatus::Waiting || run.answer.status == RunStatus::NeedsInput;
    if asked {
        let answered = test.chat(run.answer.session_id.as_str(), "yes").await;
        run.events = answered.events;
    }
    (run.entered(), asked)
}

#[tokio::test]
async fn rules_choose_the_path_that_a_request_needs() {
    let files = SampleFiles::write().await;
    let requests = path_requests();
    // Only the SQL is a model's; it reads the tables that the request is about.
    let statements: BTreeMap<String, String> = requests
        .iter()
        .map(|request| {
            let counts: Vec<String> = request
                .tables
                .iter()
                .map(|table| format!("(SELECT count(*) FROM {table}) AS {table}"))
                .collect();
            (
                line(&format!("Question: {}", request.message), "Question:").to_owned(),
                format!("SELECT {}", counts.join(", ")),
            )
        })
        .collect();
    let llm = ScriptedLlm::start(move |request, _| {
        let is_writing = section(request, "node").is_some_and(|node| node == "text_to_sql.generate_sql");
        if forced_tool(request) == Some("ReportNode") && is_writing {
            let task = section(request, "task").unwrap();
            let sql = statements.get(line(&task, "Question:")).cloned().unwrap_or_default();
            return Scripted::forced(request, json!({"sql": sql, "declined": "", "understood": ""}));
        }
        Scripted::Text("no".into())
    });
    let test = files
        .setup(Setup::scripted(&llm), TODAY)
        .set("planning.fallback_enabled", true)
        .set("planning.max_retries", 0)
        .start()
        .await;
    let mut by_kind: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let mut wrong = Vec::new();
    let paths = stream::iter(&requests).map(|request| path_of(&test, request));
    let paths: Vec<_> = paths.buffered(AT_ONCE).collect().await;
    for (request, (path, asked)) in requests.iter().zip(paths) {
        let is_right = compared(&path) == compared(&request.path) && asked == request.asks_approval;
        by_kind.entry(request.kind.clone()).or_default()[usize::from(is_right)] += 1;
        if !is_right {
            wrong.push(request.id.clone());
        }
    }
    let right = requests.len() - wrong.len();
    println!("paths: {right} of {} right", requests.len());
    for (kind, [wrong, right]) in &by_kind {
        println!("  {kind:14} {right:3} right {wrong:3} wrong");
    }
    assert!(right * 100 >= requests.len() * MIN_PATHS, "{right} of {}: {wrong:?}", requests.len());
}
