use std::collections::VecDeque;
use std::sync::Mutex;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::*;
use crate::program::{Finished, ProgramLimits};
use crate::staged::{CellValue, ColumnDefinition, ColumnKind, SceneTables, TableDefinition};
use crate::tools::tables::schema;
use crate::tools::{SceneStore, testing};

/// An interpreter that stops where the test says, and remembers the programs that it got.
#[derive(Debug, Default)]
struct Script {
    stops: Mutex<VecDeque<Stop>>,
    programs: Mutex<Vec<Program>>,
}

#[async_trait]
impl Interpreter for Script {
    async fn execute(&self, program: &Program) -> Result<Stop, Unavailable> {
        self.programs.lock().unwrap().push(program.clone());
        let next = self.stops.lock().unwrap().pop_front();
        match next {
            Some(stop) => Ok(stop),
            None => std::future::pending().await,
        }
    }

    fn limits(&self) -> ProgramLimits {
        ProgramLimits { calls: 10, ..ProgramLimits::default() }
    }
}

fn call(function: &str, arguments: Value) -> Stop {
    let arguments = arguments.as_object().cloned().unwrap();
    Stop::Call { call: ProgramCall { function: function.to_owned(), arguments }, line: Some(4) }
}

fn returns(value: Value) -> Stop {
    Stop::Finished(Finished {
        printed: String::new(),
        cut: false,
        status: None,
        answer_text: None,
        answer_rows: None,
        returned: Some(value),
        dry_run: None,
    })
}

fn fault(code: &str) -> Stop {
    let (code, message) = (code.to_owned(), "ValueError: no".to_owned());
    Stop::Fault(ProgramFault { code, message, line: Some(7), printed: String::new() })
}

/// A scene with one table of numbers, and an interpreter.
struct Counter {
    pool: sqlx::SqlitePool,
    script: Arc<Script>,
    _directory: tempfile::TempDir,
}

fn tables() -> Arc<SceneTables> {
    let column = |name: &str, kind| ColumnDefinition {
        name: name.to_owned(),
        kind,
        optional: false,
        values: Vec::new(),
        filled: None,
    };
    let row =
        [("name".to_owned(), CellValue::Text("a".to_owned())), ("number".to_owned(), CellValue::Integer(1))];
    Arc::new(SceneTables(vec![TableDefinition {
        name: "numbers".to_owned(),
        description: String::new(),
        columns: vec![column("name", ColumnKind::Text), column("number", ColumnKind::Integer)],
        key: vec!["name".to_owned()],
        checks: vec!["number >= 0".to_owned()],
        append_only: false,
        records: None,
        initial: vec![row.into()],
    }]))
}

impl Counter {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options =
            SqliteConnectOptions::new().filename(directory.path().join("t.db")).create_if_missing(true);
        let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(schema("Counter", &tables()))).execute(&pool).await.unwrap();
        Self { pool, script: Arc::default(), _directory: directory }
    }

    fn context(&self, key: &str) -> ToolContext {
        let mut context = testing::context();
        context.store = SceneStore::new(self.pool.clone()).with_tables("Counter", tables());
        context.idempotency_key = Some(key.to_owned());
        context.interpreter = Some(self.script.clone());
        context
    }

    /// A call of a tool that writes, while the interpreter stops at these places.
    async fn call(&self, key: &str, stops: impl IntoIterator<Item = Stop>) -> Result<Value, ToolError> {
        self.script.stops.lock().unwrap().extend(stops);
        let ended = tool(true, 60_000).call(self.context(key), json!({"from": 2, "other": 3})).await;
        self.script.stops.lock().unwrap().clear();
        ended
    }

    async fn number(&self) -> Value {
        let row = self.context("read").tables().unwrap().get("numbers", json!("a")).await.unwrap();
        row["number"].clone()
    }

    fn executed(&self) -> usize {
        self.script.programs.lock().unwrap().len()
    }
}

fn tool(writes: bool, timeout_ms: u64) -> PythonTool {
    PythonTool::new(PythonToolTerms {
        source: "def count(from_): ...".into(),
        function: "count".to_owned(),
        parameters: vec![("from".to_owned(), "from_".to_owned())],
        host: vec!["tables.get".to_owned(), "tables.update".to_owned()],
        requests: vec![HostRequest {
            name: "rate".to_owned(),
            parameters: vec!["day".to_owned()],
            tool: Arc::new(Rate),
        }],
        writes,
        timeout_ms,
    })
}

/// A request whose answer is the day that it is given, unless that is Sunday.
struct Rate;

#[async_trait]
impl Tool for Rate {
    async fn call(&self, _: ToolContext, arguments: Value) -> Result<Value, ToolError> {
        match arguments["day"].as_str() {
            Some("Sunday") => Err(ToolError::failed("http.status", "GET http://rates answered 503")),
            _ => Ok(json!({"rate": arguments["day"]})),
        }
    }
}

fn rate(day: &str) -> Stop {
    call("requests.rate", json!({"day": day}))
}

fn get() -> Stop {
    call("tables.get", json!({"table": "numbers", "key": "a"}))
}

fn update(number: i64) -> Stop {
    call("tables.update", json!({"table": "numbers", "key": "a", "values": {"number": number}}))
}

#[tokio::test]
async fn write_is_committed_once_and_a_repeated_call_gets_the_first_result() {
    let counter = Counter::new().await;
    let first = counter.call("k1", [get(), update(5), returns(json!({"number": 5}))]).await;
    assert_eq!(first, Ok(json!({"number": 5})));
    let programs = counter.script.programs.lock().unwrap().clone();
    let entry = programs[0].entry.clone().unwrap();
    assert_eq!((entry.function.as_str(), Value::Object(entry.arguments)), ("count", json!({"from_": 2})));
    assert_eq!((&entry.context["user"], entry.utc_offset_s), (&json!("keysersoze"), 7200));
    let seen: Vec<&PastOutcome> = programs[2].calls.iter().map(|past| &past.outcome).collect();
    let row = |number: i64| PastOutcome::Returned(json!({"name": "a", "number": number}));
    assert_eq!(seen, [&row(1), &row(5)]);
    // One that changes nothing is done, too.
    assert_eq!(counter.call("k0", [returns(json!("none"))]).await, Ok(json!("none")));
    assert_eq!(counter.call("k0", [update(8), returns(json!(8))]).await, Ok(json!("none")));
    counter.script.programs.lock().unwrap().truncate(3);
    // Nothing is executed again.
    assert_eq!(counter.call("k1", []).await, Ok(json!({"number": 5})));
    assert_eq!((counter.executed(), counter.number().await), (3, json!(5)));
    assert_eq!(counter.call("k2", [update(6), returns(json!(6))]).await, Ok(json!(6)));
    assert_eq!(counter.number().await, json!(6));
}

#[tokio::test]
async fn failure_before_the_end_has_done_nothing() {
    let counter = Counter::new().await;
    let large = "x".repeat(MAX_STORED_BYTES);
    for (last, code) in [
        (vec![fault("code.error")], "python.error"),
        (vec![fault("code.arguments")], "python.result"),
        (vec![returns(json!(large))], "python.result"),
        (vec![call("tables.find", json!({"table": "numbers"}))], "python.forbidden"),
        (vec![get(); 10], "python.calls"),
    ] {
        let stops = [update(9)].into_iter().chain(last);
        let error = counter.call("k", stops).await.unwrap_err();
        assert_eq!((error.code.as_str(), error.kind), (code, ToolErrorKind::Failed), "{error}");
        assert_eq!(counter.number().await, json!(1), "{code}");
    }
    let error = counter.call("k", [update(9), fault("code.error")]).await.unwrap_err();
    assert_eq!(error.message, "tools.py:7: ValueError: no");
    let refused = counter.call("k", [update(9), call(REFUSE, json!({"message": "Not today."}))]).await;
    let refused = refused.unwrap_err();
    assert_eq!((refused.code.as_str(), refused.message.as_str()), ("python.refused", "Not today."));
    assert_eq!((refused.kind, counter.number().await), (ToolErrorKind::Refused, json!(1)));
    // One that does not end.
    let error = tool(true, 40).call(counter.context("k"), json!({})).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.kind), ("python.time", ToolErrorKind::Failed));
    let mut context = counter.context("k");
    context.interpreter = None;
    let error = tool(false, 60_000).call(context, json!({})).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.kind), ("sandbox.unavailable", ToolErrorKind::Failed));
}

#[tokio::test]
async fn refusal_of_a_table_is_raised_and_a_read_commits_nothing() {
    let counter = Counter::new().await;
    counter.call("k", [update(-1), returns(json!(null))]).await.unwrap();
    let programs = counter.script.programs.lock().unwrap().clone();
    let Some(PastOutcome::Raised(message)) = programs[1].calls.first().map(|past| past.outcome.clone())
    else {
        panic!("{programs:?}");
    };
    assert!(message.contains("number >= 0"), "{message}");
    counter.script.stops.lock().unwrap().extend([get(), returns(json!(7))]);
    assert_eq!(tool(false, 60_000).call(counter.context("r"), json!({})).await, Ok(json!(7)));
    counter.script.stops.lock().unwrap().extend([update(7), returns(json!(7))]);
    let error = tool(false, 60_000).call(counter.context("r"), json!({})).await.unwrap_err();
    assert_eq!(error.code, "python.forbidden");
    assert_eq!(counter.number().await, json!(1));
}

#[tokio::test]
async fn failed_request_is_raised_and_is_the_failure_of_a_function_that_does_not_handle_it() {
    let counter = Counter::new().await;
    let done = counter.call("k1", [rate("Sunday"), rate("Monday"), returns(json!(1))]).await;
    assert_eq!(done, Ok(json!(1)));
    let programs = counter.script.programs.lock().unwrap().clone();
    let seen: Vec<&PastOutcome> = programs[2].calls.iter().map(|past| &past.outcome).collect();
    let raised = PastOutcome::Raised("requests.rate failed: http.status".to_owned());
    assert_eq!(seen, [&raised, &PastOutcome::Returned(json!({"rate": "Monday"}))]);
    let unhandled = |message: &str| {
        let (code, message) = ("code.error".to_owned(), message.to_owned());
        Stop::Fault(ProgramFault { code, message, line: Some(2), printed: String::new() })
    };
    let own = "ToolError: requests.rate failed: http.status";
    let error = counter.call("k2", [update(9), rate("Sunday"), unhandled(own)]).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.kind), ("http.status", ToolErrorKind::Failed));
    assert_eq!(error.message, "GET http://rates answered 503");
    let large = std::iter::repeat_n(rate(&"x".repeat(250_000)), 9);
    let error = counter.call("k2", large).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.kind), ("python.calls", ToolErrorKind::Failed), "{error}");
    let error = counter.call("k2", [rate("Sunday"), unhandled("ValueError: no")]).await.unwrap_err();
    assert_eq!((error.code.as_str(), counter.number().await), ("python.error", json!(1)));
}
