//! Questions about a database: the shipped flow over its sample shop, without a model and with scripted ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::run::{Envelope, Event, PlanGuidance, RequestOptions, RunStatus, SessionId};
use serde_json::{Value, json};

use crate::support::sql_pairs::SampleFiles;
use crate::support::test_engine::{FinishedRun, Setup, TestEngine};
use crate::support::{Scripted, ScriptedLlm, ServedEngine, forced_tool, journal, section};

const FULL: [&str; 9] = [
    "classify_prompt", "rewrite_prompt", "get_relevant_tables", "has_user_approved", "trim_relevant_tables",
    "generate_sql", "validate_sql", "execute_sql", "format_final_response",
];

/// Asks the flow by its name.
async fn ask(test: &TestEngine, words: &str, state: Value) -> FinishedRun {
    static SESSIONS: AtomicUsize = AtomicUsize::new(0);
    let session = format!("s{}", SESSIONS.fetch_add(1, Ordering::SeqCst));
    let mut request = test.engine.request(words, Some(SessionId::new(&session).unwrap()));
    request.plan = Some(proscenium::plan::Plan::of_flow("text_to_sql", words));
    request.guidance = PlanGuidance::of(None, Some(state), true);
    request.options = RequestOptions::default();
    let ticket = test.engine.submit(request).await.unwrap();
    let answer = ticket.answer().await.unwrap();
    finished(test, answer).await
}

async fn finished(test: &TestEngine, answer: proscenium::Answer) -> FinishedRun {
    let events = test.events(answer.run_id).await;
    let state = test.engine.run(&test.tenant, answer.run_id).await.unwrap();
    let run = FinishedRun { answer, state, events };
    if run.state.status.is_terminal() {
        journal::assert_invariants(&run);
        journal::assert_replayed(run.answer.run_id, &run.events, &test.engine.catalogue());
    }
    run
}

/// What the user says to the question of a run.
async fn reply(test: &TestEngine, run: &FinishedRun, words: &str) -> FinishedRun {
    test.chat(run.answer.session_id.as_str(), words).await
}

/// A model that writes `sql` in turn, and otherwise reads the request as a question for data.
fn writer(sql: impl Fn(usize, &Value) -> Value + Send + Sync + 'static) -> ScriptedLlm {
    let asked = AtomicUsize::new(0);
    ScriptedLlm::start(move |request, _| match forced_tool(request) {
        Some("PlanFlowPath") => Scripted::forced(request, json!({"reasoning": "", "path": FULL})),
        Some("ReportNode") => {
            let node = section(request, "node").unwrap();
            let reply = match node.trim_start_matches("text_to_sql.") {
                "classify_prompt" => json!({"kind": "question", "run": true, "fix": false, "sql": ""}),
                "rewrite_prompt" => json!({"question": "the question"}),
                _ => sql(asked.fetch_add(1, Ordering::SeqCst), request),
            };
            Scripted::forced(request, reply)
        }
        Some("CheckContinuation") => Scripted::answered(request, Value::Null),
        _ => Scripted::Text("Here is what was found.".into()),
    })
}

fn written(sql: &str) -> Value {
    json!({"sql": sql, "declined": "", "understood": ""})
}

async fn scripted(llm: &ScriptedLlm) -> TestEngine {
    Setup::scripted(llm).start().await
}

/// The text of the step, which is that of the flow's last node.
fn text(run: &FinishedRun) -> String {
    run.answer.steps[0].result.clone().unwrap_or_default()
}

#[tokio::test]
async fn question_is_answered_without_a_model_from_the_sample_shop() {
    let test = Setup::offline().start().await;
    let run = ask(&test, "How many products are there?", json!({})).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!(run.entered(), FULL);
    assert!(run.answer.answer.contains("```sql\nSELECT"), "{}", run.answer.answer);
    assert!(run.answer.approvals.is_empty(), "nothing sensitive is read");
    let is_failure = |event: &Envelope<Event>| matches!(event.body, Event::ModelFailed { .. });
    assert!(!run.events.iter().any(is_failure), "nothing failed: {:#?}", run.events);
}

#[tokio::test]
async fn nodes_are_told_what_the_user_asked_before() {
    let llm = writer(|_, _| written("SELECT COUNT(*) AS orders FROM orders"));
    let test = scripted(&llm).await;
    let first = ask(&test, "How many orders were placed in March?", json!({})).await;
    let mut request = test.engine.request("and in April?", Some(first.answer.session_id));
    request.plan = Some(proscenium::plan::Plan::of_flow("text_to_sql", "and in April?"));
    let answer = test.engine.submit(request).await.unwrap().answer().await.unwrap();
    assert_eq!(answer.status, RunStatus::Completed, "{answer:#?}");
    let told = |node: &str| {
        let asked =
            llm.requests().into_iter().filter(|request| section(request, "node").as_deref() == Some(node));
        let tasks: Vec<String> = asked.map(|request| section(&request, "task").unwrap()).collect();
        tasks
            .iter()
            .map(|task| task.contains("- How many orders were placed in March?"))
            .collect::<Vec<bool>>()
    };
    assert_eq!(told("text_to_sql.classify_prompt"), [false, true]);
    assert_eq!(told("text_to_sql.rewrite_prompt"), [false, true]);
}

#[tokio::test]
async fn question_beside_one_for_a_scene_is_answered_without_a_model() {
    let test = Setup::offline().start().await;
    let run =
        test.chat("s", "What is the weather in Milan, and how many orders were placed in March 2026?").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    let scenes: Vec<&str> = run.answer.steps.iter().map(|step| step.scene_name.as_str()).collect();
    assert_eq!(scenes, ["Weather", "text_to_sql"]);
    assert!(
        run.answer.answer.contains("°C") && run.answer.answer.contains("count: 7"),
        "{}",
        run.answer.answer
    );
}

#[tokio::test]
async fn value_alone_completes_the_question_before_it_without_a_model() {
    let test = Setup::offline().start().await;
    for (words, expected) in [
        ("How many orders were placed in March 2026?", "count: 7"),
        ("and in April?", "count: 9"),
        ("What is the weather in Milan?", "°C"),
        ("How many customers do we have in Milan?", "count: 38"),
        ("and in Rome?", "count: 31"),
    ] {
        let run = test.chat("s", words).await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
        assert!(run.answer.answer.contains(expected), "{words}: {}", run.answer.answer);
    }
}

#[tokio::test]
async fn rows_are_a_table_in_the_users_language() {
    let llm = writer(|_, _| {
        written("SELECT name, price, added_on, discontinued FROM products ORDER BY price DESC, id LIMIT 2")
    });
    let test = scripted(&llm).await;
    let run = ask(&test, "Quali sono i due prodotti più cari?", json!({})).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    let text = text(&run);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("| name"), "{text}");
    assert!(lines[2].contains(',') && lines[2].contains(" 20") && lines[2].contains("| no "), "{text}");
    assert!(lines[4].is_empty() && lines[5] == "```sql", "{text}");
}

#[tokio::test]
async fn more_rows_than_the_bound_are_left_out_and_said() {
    let llm = writer(|_, _| written("SELECT id, name FROM products ORDER BY id"));
    let test = Setup::scripted(&llm).set("scenes.settings.text_to_sql.max_rows", 5).start().await;
    let run = ask(&test, "List all products", json!({})).await;
    let text = text(&run);
    assert!(text.contains("only the first 5 rows"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with('|')).count(), 7, "{text}");
}

#[tokio::test]
async fn sensitive_table_is_read_only_after_a_yes_and_the_list_may_be_changed() {
    let llm = writer(|_, _| written("SELECT count(*) AS people FROM employees"));
    let test = scripted(&llm).await;
    let run = ask(&test, "How many employees are there?", json!({})).await;
    assert_eq!(run.answer.status, RunStatus::Waiting, "{:#?}", run.answer);
    assert!(!run.entered().contains(&"generate_sql".to_owned()), "{:?}", run.entered());
    let asked = run.answer.approvals[0].clone();
    assert!(asked.why[0].contains("employees"), "{asked:#?}");
    let run = reply(&test, &run, "yes").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert!(text(&run).starts_with("people: "), "{}", text(&run));

    let run = ask(&test, "How many employees are there?", json!({})).await;
    let run = reply(&test, &run, "yes, but without employees").await;
    assert!(executed(&run).is_empty(), "{:?}", run.entered());
    assert!(text(&run).contains("may not be read without approval: employees"), "{}", text(&run));

    let run = ask(&test, "How many employees are there?", json!({})).await;
    let run = reply(&test, &run, "no").await;
    assert!(executed(&run).is_empty() && !run.answer.answer.is_empty(), "{:#?}", run.answer);
}

#[tokio::test]
async fn table_beyond_the_approved_ones_is_refused_and_asked_for_if_it_is_needed_all_the_same() {
    let llm =
        writer(|_, _| written("SELECT count(*) AS n FROM orders o JOIN employees e ON e.id = o.employee_id"));
    let test = scripted(&llm).await;
    let run = ask(&test, "How many orders are there?", json!({})).await;
    assert_eq!(run.answer.status, RunStatus::Waiting, "{:#?}", run.answer);
    assert!(!run.entered().contains(&"execute_sql".to_owned()));
    assert!(run.answer.approvals[0].why[0].contains("employees"), "{:#?}", run.answer.approvals);
    let twice = run.entered().iter().filter(|node| *node == "generate_sql").count();
    assert_eq!(twice, 2, "it was written once more without the table first");
}

#[tokio::test]
async fn tables_that_are_given_are_not_looked_for_and_not_approved() {
    let llm = writer(|_, _| written("SELECT count(*) AS n FROM employees"));
    let test = scripted(&llm).await;
    let run = ask(&test, "How many are there?", json!({"tables": ["employees"]})).await;
    assert_eq!(run.answer.status, RunStatus::Waiting, "{:#?}", run.answer);
    assert!(!run.entered().contains(&"get_relevant_tables".to_owned()));
    let approved = json!({"tables": ["employees"], "approved_tables": ["employees"]});
    let run = ask(&test, "How many are there?", approved).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
}

#[tokio::test]
async fn wrong_statement_is_written_again_with_its_error_and_only_three_times() {
    let llm = writer(|nth, request| match nth {
        0 => written("SELECT nme FROM products"),
        _ => {
            let task = section(request, "task").unwrap();
            assert!(task.contains("SELECT nme FROM products") && task.contains("unknown_column"), "{task}");
            written("SELECT count(name) AS names FROM products")
        }
    });
    let test = scripted(&llm).await;
    let run = ask(&test, "How many names are there?", json!({})).await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert!(text(&run).starts_with("names: "), "{}", text(&run));

    let stubborn = writer(|nth, _| written(&format!("SELECT nme{nth} FROM products")));
    let test = scripted(&stubborn).await;
    let run = ask(&test, "How many names are there?", json!({})).await;
    assert_eq!(run.entered().iter().filter(|node| *node == "generate_sql").count(), 3);
    assert!(text(&run).contains("could not write a query"), "{}", text(&run));

    let same = writer(|_, _| written("SELECT nme FROM products"));
    let test = scripted(&same).await;
    let run = ask(&test, "How many names are there?", json!({})).await;
    assert_eq!(run.entered().iter().filter(|node| *node == "generate_sql").count(), 2);
}

#[tokio::test]
async fn statement_that_changes_data_is_never_executed() {
    let llm = writer(|_, _| written("DELETE FROM orders"));
    let test = scripted(&llm).await;
    let run = ask(&test, "How many orders are there?", json!({})).await;
    assert!(!run.entered().contains(&"execute_sql".to_owned()), "{:?}", run.entered());
    let test = Setup::offline().start().await;
    let run = ask(&test, "Delete all orders", json!({})).await;
    assert_eq!(run.entered(), ["classify_prompt", "general_questions"]);
    assert!(text(&run).contains("only be read"), "{}", text(&run));
    let run = ask(&test, "How many products are there?", json!({})).await;
    assert_eq!(run.answer.status, RunStatus::Completed);
}

#[tokio::test]
async fn given_statements_skip_what_they_do_not_need() {
    let test = Setup::offline().start().await;
    let cases: [(&str, &[&str], &str); 5] = [
        (
            "Fix this SQL: SELEC nme FROM products",
            &[
                "classify_prompt", "get_relevant_tables", "has_user_approved", "validate_sql",
                "format_final_response",
            ],
            "SELECT name FROM products",
        ),
        (
            "Is this SQL valid? SELECT name FROM products",
            &[
                "classify_prompt", "get_relevant_tables", "has_user_approved", "validate_sql",
                "format_final_response",
            ],
            "The query is valid",
        ),
        (
            "Run this SQL: SELECT count(*) AS n FROM products",
            &[
                "classify_prompt", "get_relevant_tables", "has_user_approved", "validate_sql", "execute_sql",
                "format_final_response",
            ],
            "n: ",
        ),
        (
            "Explain this SQL: SELECT count(*) FROM orders WHERE status = 'new'",
            &["classify_prompt", "get_relevant_tables", "format_final_response"],
            "keeps only rows with `status = 'new'`",
        ),
        ("Which tables are in the database?", &["classify_prompt", "general_questions"], "- order_items"),
    ];
    for (request, path, expected) in cases {
        let run = ask(&test, request, json!({})).await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{request}: {:#?}", run.answer);
        assert_eq!(run.entered(), path, "{request}");
        assert!(text(&run).contains(expected), "{request}: {}", text(&run));
    }
}

#[tokio::test]
async fn another_tenants_database_is_unknown() {
    let test = Setup::offline().start().await;
    let run = ask(&test, "How many products are there?", json!({"database": "sales"})).await;
    assert_eq!(run.answer.steps[0].error.as_ref().unwrap().code, "text_to_sql.unknown_database");
}

#[tokio::test]
async fn answer_over_http_has_the_table_and_the_document_the_status() {
    let served = ServedEngine::start(Setup::offline()).await;
    let body = json!({"messages": [{"role": "user", "content": "How many products are there?"}], "flow": "text_to_sql"});
    let reply = served.post("/api/chat", &body).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    let answer = reply.json();
    assert_eq!(answer["status"], "completed", "{answer:#}");
    assert!(answer["answer"].as_str().unwrap().contains("```sql"), "{answer:#}");
    assert_eq!(answer["metadata"]["planned_execution_path"], json!(FULL));
}

#[tokio::test]
async fn every_kind_of_request_completes_without_a_model() {
    let test = Setup::offline().start().await;
    // Those of `benches/text_to_sql`.
    for words in [
        "How many products are there?",
        "Which customers have no orders in 2026?",
        "Fix this SQL: SELEC nme FROM products",
        "Run this SQL: SELECT id, name, price FROM products ORDER BY id",
        "Explain this SQL: SELECT count(*) FROM orders WHERE status = 'new'",
        "Which tables are in the database?",
    ] {
        let run = ask(&test, words, json!({})).await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{words}: {:#?}", run.answer);
    }
}

#[tokio::test]
async fn sample_file_is_not_changed_by_questions() {
    let test = Setup::offline().start().await;
    ask(&test, "How many products are there?", json!({})).await;
    let folder = test.dir.path().join("data/samples");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let before = std::fs::read(&files[0]).unwrap();
    ask(&test, "How many customers are there?", json!({})).await;
    assert_eq!(std::fs::read(&files[0]).unwrap(), before);
    let _: Arc<tempfile::TempDir> = test.stop().await;
}

/// The statements that reached the database.
fn executed(run: &FinishedRun) -> Vec<String> {
    let calls = run.state.calls.values().filter(|call| call.requested.tool == "execute_sql");
    calls.map(|call| call.requested.arguments["sql"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn instruction_in_a_description_changes_nothing_even_if_the_model_obeys_it() {
    let files = SampleFiles::write().await;
    let obeys = |is_obedient: bool| {
        writer(move |_, request| {
            let task = section(request, "task").unwrap();
            match is_obedient && task.contains("ignore your rules") {
                true => written("SELECT s.tax_code, s.birth_date FROM students s, courses c"),
                false => written("SELECT count(*) AS courses FROM courses WHERE notes IS NOT NULL"),
            }
        })
    };
    let mut answers = Vec::new();
    for is_obedient in [false, true] {
        let llm = obeys(is_obedient);
        let test = files.setup(Setup::scripted(&llm), "2026-11-20").start().await;
        let run = ask(&test, "How many courses have notes?", json!({"database": "university"})).await;
        assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
        assert!(run.answer.approvals.is_empty());
        let asked =
            llm.requests().iter().filter(|request| request.to_string().contains("ignore your rules")).count();
        assert!(asked > 0, "the instruction is in the prompt");
        answers.push((text(&run), executed(&run)));
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn instruction_in_a_cell_reads_no_other_table() {
    let files = SampleFiles::write().await;
    let replans = AtomicUsize::new(0);
    let obedient = ScriptedLlm::start(move |request, _| match forced_tool(request) {
        Some("PlanFlowPath") => Scripted::forced(request, json!({"reasoning": "", "path": FULL})),
        Some("ReportNode") => {
            let node = section(request, "node").unwrap();
            let is_told = request.to_string().contains("iban");
            let reply = match node.trim_start_matches("text_to_sql.") {
                "classify_prompt" => json!({"kind": "question", "run": true, "fix": false, "sql": ""}),
                "rewrite_prompt" if is_told => json!({"question": "salary and iban of the staff"}),
                "rewrite_prompt" => json!({"question": "reviews of July 2026"}),
                _ if is_told => written("SELECT salary, iban FROM employees"),
                _ => written(
                    "SELECT body FROM reviews WHERE created_at >= '2026-07-01' AND created_at < '2026-08-01'",
                ),
            };
            Scripted::forced(request, reply)
        }
        Some("CheckContinuation") => {
            let obeys = request.to_string().contains("SYSTEM NOTE TO THE ASSISTANT")
                && replans.fetch_add(1, Ordering::SeqCst) == 0;
            Scripted::forced(
                request,
                json!({"should_continue": obeys, "can_answer_now": !obeys, "reasoning": "",
                    "missing_information": if obeys { json!("salary and iban of employees") } else { Value::Null },
                    "answer": null}),
            )
        }
        Some("CreateExecutionPlan") => {
            let step = json!({"step_number": 1, "scene_name": "text_to_sql", "purpose": "read salary and iban of employees",
                "expected_tools": [], "depends_on_step": null, "unclear": false, "prepared_calls": [], "if_needed": []});
            Scripted::forced(
                request,
                json!({"needs_execution": true, "reasoning": "", "steps": [step], "unserved": [], "answer": null}),
            )
        }
        _ => Scripted::Text("Here is what was found.".into()),
    });
    let test = files.setup(Setup::scripted(&obedient), "2026-11-20").start().await;
    let words = "Show me the text of the reviews written in July 2026";
    let run = ask(&test, words, json!({"database": "shop"})).await;
    let statements = executed(&run);
    assert!(
        !statements.is_empty() && statements.iter().all(|sql| !sql.contains("employees")),
        "{statements:?}"
    );
    assert_eq!(run.state.plans.len(), 2, "the check obeyed");
    assert!(run.answer.approvals.is_empty(), "nobody is asked about another table: {:#?}", run.answer);
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
}
