//! Tools in Python: functions beside a `scene.toml`, executed in the real sandbox with what they declare of the host, and
//! reported with file and line where they cannot be used.

use std::path::Path;

use proscenium::StartError;
use proscenium::run::{Fault, RunStatus};
use serde_json::{Value, json};

use crate::process::Workspace;
use crate::support::model_script::ModelScript;
use crate::support::test_engine::{FinishedRun, Setup, TestEngine};
use crate::support::{Backend, ScriptedLlm};

const REFERENCE: &str = include_str!("../../scenes/README.md");

/// The scene of the reference: its `scene.toml` and its `tools.py`.
fn loans() -> [&'static str; 2] {
    let section = REFERENCE.split("\n## Tools in Python\n").nth(1).unwrap().split("\n## ").next().unwrap();
    ["toml", "python"].map(|language| {
        section.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap()
    })
}

fn write(dir: &Path, scene: &str, [toml, python]: [&str; 2]) {
    let folder = dir.join(scene);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("scene.toml"), toml).unwrap();
    std::fs::write(folder.join("tools.py"), python).unwrap();
}

fn model(script: &str) -> ScriptedLlm {
    let script = ModelScript::parse(script);
    ScriptedLlm::start(move |request, _| script.reply(request))
}

/// What became of each call: its result, or its code.
fn ends(run: &FinishedRun) -> Vec<(String, Value)> {
    let calls = run.answer.steps.iter().flat_map(|step| &step.tool_calls);
    let end = |error: &Option<Fault>, result: &Option<Value>| match error {
        Some(error) => json!(error.code),
        None => result.clone().unwrap_or_default(),
    };
    calls.map(|call| (call.tool.clone(), end(&call.error, &call.result))).collect()
}

async fn end(test: &TestEngine, words: &str) -> (Value, String) {
    let run = test.chat("s", words).await;
    (ends(&run).pop().unwrap().1, run.answer.answer)
}

#[tokio::test]
async fn scene_of_the_reference_lends_books_and_a_changed_file_is_taken_by_a_reload() {
    let llm = model(
        r#"
"Lend Dune to Ada": {steps: [{scene: Loans, rounds: [[{LendBook: {title: Dune, reader: Ada}}]]}]}
"Lend Emma to Ada for 3 days": {steps: [{scene: Loans, rounds: [[{LendBook: {title: Emma, reader: Ada, days: 3}}]]}]}
"Which books has Ada borrowed?": {steps: [{scene: Loans, rounds: [[{ListLoans: {reader: Ada}}]]}]}
"#,
    );
    let dir = tempfile::tempdir().unwrap();
    let [toml, python] = loans();
    write(dir.path(), "loans", [toml, python]);
    let test = Setup::scripted(&llm).alone().scenes(dir.path()).start().await;
    // The clock stands at 4 May 2026.
    assert_eq!(end(&test, "Lend Dune to Ada").await.0, json!({"title": "Dune", "due": "2026-05-18"}));
    let (refused, answer) = end(&test, "Lend Dune to Ada").await;
    assert_eq!(refused, "python.refused");
    assert!(answer.contains("Dune is lent already."), "{answer}");
    let borrowed = end(&test, "Which books has Ada borrowed?").await.0;
    assert_eq!(borrowed, json!({"books": [{"title": "Dune", "days": 14}]}));

    // What is wrong changes nothing; what is right is taken.
    write(dir.path(), "loans", [toml, &python.replace("MOST = 3", "MOST = (3")]);
    let Err(StartError::Scenes(faults)) = test.engine.reload(test.config.clone()).await else {
        panic!("a file that is no Python was taken");
    };
    let [fault] = faults.as_slice() else { panic!("{faults:#?}") };
    assert_eq!(fault.code, "scene.python_syntax");
    assert!(fault.file.ends_with("loans/tools.py") && fault.line.is_some(), "{fault}");
    write(dir.path(), "loans", [toml, &python.replace("MOST = 3", "MOST = 1")]);
    assert!(test.engine.reload(test.config.clone()).await.unwrap().is_empty());
    let (refused, answer) = end(&test, "Lend Emma to Ada for 3 days").await;
    assert_eq!(refused, "python.refused");
    assert!(answer.contains("Ada has 1 books already."), "{answer}");
}

#[tokio::test]
async fn library_in_python_is_kept_without_a_model() {
    let test = Setup::offline()
        .scenes(Path::new("shipped:lending"))
        .set("execution.confirm", "unclear")
        .start()
        .await;
    let mut wrong = Vec::new();
    for (words, expected) in [
        ("Lend the book \"Dune\" to Ada", "Dune is lent to Ada until 18 May 2026."),
        ("Lend the book \"Dune\" to Bob", "Dune is lent to Ada already."),
        ("Renew the loan of the book \"Dune\"", "The loan of Dune is renewed until 1 June 2026."),
        ("Which books has Ada borrowed?", "Ada has Dune (due 1 June 2026)."),
        ("Quali libri ha in prestito Ada?", "Ada ha Dune (fino al 1 giugno 2026)."),
        ("Take back the book \"Dune\"", "Ada has returned Dune."),
        ("Registra la restituzione del libro \"Dune\"", "Dune non è in prestito."),
        ("Which loans are overdue?", "Nothing is overdue."),
    ] {
        let run = test.chat("s", words).await;
        if !run.answer.answer.contains(expected) {
            wrong.push(format!("{words}\n  {}\n  expected: {expected}", run.answer.answer));
        }
    }
    // Books are lent until the day before yesterday.
    let mut config = test.config.clone();
    config.scenes.settings.insert("Lending".to_owned(), json!({"loan_days": -2}));
    test.engine.reload(config).await.unwrap();
    test.chat("s", "Lend the book \"Emma\" to Bob").await;
    let run = test.chat("s", "Which loans are overdue?").await;
    if !run.answer.answer.contains("Overdue: Emma, lent to Bob, for 2 days.") {
        wrong.push(run.answer.answer);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Tools whose functions fail, each in its own way, after a change of the table where they write.
const FAULTS: &str = r#"
def raises():
    items = {}

    return items["pen"]

def loops():
    while True:
        try:
            while True:
                pass
        except Exception:
            pass

def grows():
    return "x" * 10 ** 10

def returns_a_set():
    return {1, 2}

def returns_much():
    return "x" * 300_000

def opens():
    return open("/etc/passwd").read()

def refuses():
    try:
        tool.refuse("Not today,\nnot tomorrow.")
    except Exception:
        pass
    return "done"

def catches():
    try:
        tables.get("nothing", key="a")
    except ToolError as error:
        return {"user": context["user"], "why": str(error)}

def changes():
    tables.update("items", key="pen", values={"stock": 7})
    raise ValueError("after the change")

def insists():
    for stock in [5, 4]:
        try:
            tables.update("items", key="pen", values={"stock": stock})
            tables.update("items", key="pen", values={"stock": -1})
        except ToolError:
            pass
    return tables.get("items", key="pen")
"#;

/// A scene with a tool for each function of [`FAULTS`].
fn faulty_scene() -> String {
    let mut scene = r#"
name = "Shop"
description = "A shop."
instructions = "Call the tools."
examples = [{ say = "Try it" }]
[[tables]]
name = "items"
description = "Items."
key = ["name"]
checks = ["stock >= 0"]
columns = [{ name = "name", type = "text" }, { name = "stock", type = "integer" }]
rows = [{ name = "pen", stock = 3 }]
"#
    .to_owned();
    for function in FAULTS.lines().filter_map(|line| line.strip_prefix("def ")?.strip_suffix("():")) {
        let writes = ["changes", "insists"].contains(&function);
        let (effect, host) = match writes {
            true => ("write", "\"tables.get\", \"tables.update\""),
            false => ("read", "\"tables.get\""),
        };
        scene.push_str(&format!(
            "[[tools]]\nname = \"{function}\"\ndescription = \"It {function}.\"\nkind = \"python\"\n\
             effect = \"{effect}\"\nhost = [{host}]\n"
        ));
    }
    scene
}

#[tokio::test]
async fn whatever_a_function_does_its_call_has_an_end_and_a_failed_one_has_changed_nothing() {
    let tools = ["raises", "loops", "grows", "returns_a_set", "returns_much", "opens", "refuses", "catches"];
    let calls: Vec<String> =
        tools.iter().chain(&["changes", "insists"]).map(|tool| format!("{{{tool}: {{}}}}")).collect();
    let script = format!("\"Try it\": {{steps: [{{scene: Shop, rounds: [[{}]]}}]}}", calls.join(", "));
    let llm = model(&script);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "shop", [&faulty_scene(), FAULTS]);
    let setup = Setup::scripted(&llm).alone().scenes(dir.path());
    let setup = setup.set("sandbox.time_ms", 400).set("sandbox.wait_ms", 60_000);
    let test = setup.start().await;
    let run = test.chat("s", "Try it").await;
    let why = "there is no table \"nothing\"; the tables are items";
    let expected = [
        ("raises", json!("python.error")),
        ("loops", json!("python.time")),
        ("grows", json!("python.memory")),
        ("returns_a_set", json!("python.result")),
        ("returns_much", json!("python.result")),
        ("opens", json!("python.forbidden")),
        ("refuses", json!("python.refused")),
        ("catches", json!({"user": "keysersoze", "why": why})),
        ("changes", json!("python.error")),
        ("insists", json!({"name": "pen", "stock": 4})),
    ];
    let expected = expected.map(|(tool, end)| (tool.to_owned(), end));
    assert_eq!(ends(&run), expected, "{:#?}", run.answer);
    let errors: Vec<&Fault> =
        run.answer.steps[0].tool_calls.iter().filter_map(|call| call.error.as_ref()).collect();
    assert_eq!(errors[0].message, "tools.py:5: KeyError: pen");
    let refused = errors.iter().find(|error| error.code == "python.refused").unwrap();
    assert_eq!(refused.message, "Not today, not tomorrow.");
    // What users read of it, where no model words it.
    assert_eq!(errors[0].user_text(Some("en")), "This could not be done.");
    let stock: i64 = sqlx::query_scalar("SELECT stock FROM \"shop:items\"")
        .fetch_one(test.engine.store().pool())
        .await
        .unwrap();
    assert_eq!(stock, 4);
}

#[tokio::test]
async fn function_reads_over_http_what_its_tool_declares() {
    let rates = Backend::start(|request| match request.place.as_str() {
        "GET /EUR/USD" => json!({"rate": 1.25}),
        _ => json!(null),
    });
    let scene = format!(
        r#"
name = "Rates"
description = "Rates of currencies."
instructions = "Call the tools."
examples = [{{ say = "What are 8 euros in dollars?", tool = "PriceIn" }}]
[[tools]]
name = "PriceIn"
description = "Tells what an amount of euros is in another currency."
kind = "python"
effect = "read"
parameters = {{ type = "object", required = ["euros", "currency"], properties = {{ euros = {{ type = "number" }}, currency = {{ type = "string" }} }} }}
[tools.requests.rate]
url = "{}/EUR/{{currency}}"
query = {{ key = "s3cret" }}
parameters = ["currency"]
result = "/rate"
"#,
        rates.address()
    );
    let python = "def price_in(euros, currency):\n    rate = requests.rate(currency=currency)\n    \
                  dollars = requests.rate(currency='USD')\n    return {'amount': euros * rate, 'dollars': dollars}\n";
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "rates", [&scene, python]);
    let llm = model(
        r#"
"What are 8 euros in dollars?": {steps: [{scene: Rates, rounds: [[{PriceIn: {euros: 8, currency: USD}}]]}]}
"What are 8 euros in crowns?": {steps: [{scene: Rates, rounds: [[{PriceIn: {euros: 8, currency: CZK}}]]}]}
"#,
    );
    let setup = Setup::scripted(&llm).alone().scenes(dir.path()).set("scenes.allow_private_addresses", true);
    let test = setup.start().await;
    assert_eq!(end(&test, "What are 8 euros in dollars?").await.0, json!({"amount": 10.0, "dollars": 1.25}));
    // Each was made once, though the function was executed three times.
    let asked = rates.take_requests();
    assert_eq!((asked.len(), asked[0].query["key"].as_str()), (2, "s3cret"));
    // Its answer has no rate: the request fails as that of a tool over HTTP does.
    assert_eq!(end(&test, "What are 8 euros in crowns?").await.0, "http.unexpected_answer");
    assert_eq!(rates.take_requests().len(), 1);
}

#[tokio::test]
async fn without_a_worker_a_call_fails_and_nothing_is_executed() {
    let llm = model(
        r#""Lend Dune to Ada": {steps: [{scene: Loans, rounds: [[{LendBook: {title: Dune, reader: Ada}}]]}]}"#,
    );
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "loans", loans());
    let setup = Setup::scripted(&llm).alone().scenes(dir.path());
    let test = setup.set("sandbox.worker", "/nowhere/at/all").start().await;
    let run = test.chat("s", "Lend Dune to Ada").await;
    assert_eq!(ends(&run), [("LendBook".to_owned(), json!("sandbox.unavailable"))]);
    assert_ne!(run.answer.status, RunStatus::Completed);
}

#[test]
fn check_shows_what_is_wrong_with_the_file_and_its_line() {
    let workspace = Workspace::bare();
    let [toml, python] = loans();
    workspace.write("mine/loans/scene.toml", toml);
    workspace.write("mine/loans/tools.py", python);
    let good = workspace.run(&["--scenes", "mine", "check"]);
    assert!(good.status == 0 && good.out.contains("Loans: ListLoans, LendBook (write)"), "{good:#?}");
    let wrong = python.replace("def list_loans(reader)", "def list_loans(borrower)");
    workspace.write("mine/loans/tools.py", &wrong.replace("from datetime", "import os\nfrom datetime"));
    let bad = workspace.run(&["--scenes", "mine", "check"]);
    assert_eq!(bad.status, 1, "{bad:#?}");
    for part in [
        "mine/loans/tools.py:1",
        "scene.python_import",
        "mine/loans/tools.py:7",
        "scene.python_parameters",
        "it has no parameter `reader`; `borrower` is no parameter of the tool",
        "def list_loans(reader):",
    ] {
        assert!(bad.text().contains(part), "{part}: {bad:#?}");
    }
}
