//! Tools in Python: functions beside a `scene.toml`, executed in the real sandbox with what they declare of the host, and
//! reported with file and line where they cannot be used.

use std::path::Path;
use std::time::Duration;

use proscenium::run::{Fault, RunStatus};
use proscenium::sandbox::{self, Pool};
use proscenium::scene::SceneFault;
use proscenium::store::Store;
use proscenium::{Builder, Engine, StartError};
use serde_json::{Value, json};

use crate::process::Workspace;
use crate::server_api::ask;
use crate::support::faulty_backend::{FaultyBackend, Misbehaviour};
use crate::support::model_script::ModelScript;
use crate::support::test_engine::{FinishedRun, Setup, TestEngine};
use crate::support::{Backend, Reply, ScriptedLlm, ServedEngine, eventually};

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
    let [fault] = faults.0.as_slice() else { panic!("{faults:#?}") };
    assert_eq!(fault.code, "scene.python_syntax");
    assert!(fault.file.ends_with("loans/tools.py") && fault.line.is_some(), "{fault}");
    write(dir.path(), "loans", [toml, &python.replace("MOST = 3", "MOST = 1")]);
    assert!(test.engine.reload(test.config.clone()).await.unwrap().is_empty());
    let (refused, answer) = end(&test, "Lend Emma to Ada for 3 days").await;
    assert_eq!(refused, "python.refused");
    assert!(answer.contains("Ada has 1 books already."), "{answer}");
}

#[tokio::test]
async fn refusal_of_a_function_is_answered_with_its_sentence_at_every_level() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "loans", loans());
    for set in [None, Some(("execution.scenes", "prepared")), Some(("execution.mode", "strict"))] {
        let mut setup = Setup::offline().alone().scenes(dir.path()).set("execution.confirm", "never");
        if let Some((key, value)) = set {
            setup = setup.set(key, value);
        }
        let served = ServedEngine::start(setup).await;
        let mut body = ask("Lend Dune to Ada");
        let lent = served.post("/api/chat", &body).await;
        assert_eq!(lent.json()["status"], "completed", "{lent:#?}");
        for level in [json!(null), json!("basic"), json!("adaptive")] {
            body["level"] = level.clone();
            let reply = served.post("/api/chat", &body).await;
            let answer = reply.json();
            assert_eq!(
                (reply.status, &answer["status"]),
                (200, &json!("partial")),
                "{set:?} {level}: {answer:#}"
            );
            assert!(
                answer["answer"].as_str().unwrap().contains("Dune is lent already."),
                "{set:?} {level}: {answer:#}"
            );
        }
        body.as_object_mut().unwrap().remove("level");
        (body["model"], body["stream"]) = (json!("proscenium"), json!(true));
        let streamed = served.request("POST", "/v1/chat/completions").header("x-execution-level", "basic");
        let streamed = Reply::of(streamed.json(&body).send().await.unwrap()).await;
        assert!(
            streamed.body.contains("Dune is lent already.") && !streamed.body.contains("server_error"),
            "{streamed:#?}"
        );
    }
}

#[tokio::test]
async fn call_that_returns_nothing_is_told_in_words_without_a_model() {
    let guide = include_str!("../../docs/scenes.md").split("\n## Tools in Python\n").nth(1).unwrap();
    let block = |language: &str| {
        guide.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap().to_owned()
    };
    let silent = block("python").replace("    return tables.update(", "    tables.update(");
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "stock", [&block("toml"), &silent]);
    let test = Setup::offline().alone().scenes(dir.path()).start().await;
    let answer = end(&test, "Add 5 pieces of paper to the stock").await;
    assert_eq!(answer, (Value::Null, "AddToStock (item: paper, pieces: 5)".to_owned()));
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

def returns_nothing():
    tables.update("items", key="pen", values={"stock": 6})
"#;

/// Those of them that write.
const WRITES: [&str; 3] = ["changes", "insists", "returns_nothing"];

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
        let writes = WRITES.contains(&function);
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
async fn every_call_of_a_function_ends_and_a_failed_one_changes_nothing() {
    let tools = ["raises", "loops", "grows", "returns_a_set", "returns_much", "opens", "refuses", "catches"];
    let calls: Vec<String> = tools.iter().chain(&WRITES).map(|tool| format!("{{{tool}: {{}}}}")).collect();
    let script = format!("\"Try it\": {{steps: [{{scene: Shop, rounds: [[{}]]}}]}}", calls.join(", "));
    let llm = model(&script);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "shop", [&faulty_scene(), FAULTS]);
    let setup = Setup::scripted(&llm).alone().scenes(dir.path());
    let setup = setup.set("sandbox.time_ms", 1_500).set("sandbox.wait_ms", 60_000);
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
        ("returns_nothing", Value::Null),
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
    assert_eq!(stock, 6);
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

#[cfg(unix)]
#[tokio::test]
async fn without_a_worker_no_file_is_taken_and_no_call_is_executed() {
    let llm = model(
        r#""Lend Dune to Ada": {steps: [{scene: Loans, rounds: [[{LendBook: {title: Dune, reader: Ada}}]]}]}"#,
    );
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "loans", loans());
    let place = tempfile::tempdir().unwrap();
    let worker = place.path().join("worker");
    let setup = || Setup::scripted(&llm).alone().scenes(dir.path()).set("sandbox.worker", worker.display());
    let codes = |faults: Vec<SceneFault>| faults.into_iter().map(|fault| fault.code).collect::<Vec<_>>();
    let refused = |started: Result<(), StartError>| match started {
        Err(StartError::Scenes(faults)) => assert_eq!(codes(faults.0), ["scene.python_worker"]),
        other => panic!("{other:?}"),
    };
    refused(setup().try_start().await.map(drop));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_proscenium"), &worker).unwrap();
    let test = setup().start().await;
    std::fs::remove_file(&worker).unwrap();
    let run = test.chat("s", "Lend Dune to Ada").await;
    assert_eq!(ends(&run), [("LendBook".to_owned(), json!("sandbox.unavailable"))]);
    assert_ne!(run.answer.status, RunStatus::Completed);
    // What was read before is known.
    test.engine.reload(test.config.clone()).await.unwrap();
    let [toml, python] = loans();
    write(dir.path(), "loans", [toml, &format!("{python}\n")]);
    refused(test.engine.reload(test.config.clone()).await.map(drop));

    // An interpreter of one's own reads them in its place, if it can.
    let mut config = test.config.clone();
    config.sandbox.worker = None;
    let load = |builder: Builder| codes(builder.load_scenes().faults);
    assert_eq!(load(Engine::builder(config.clone())), ["scene.python_worker"]);
    let worker = Some(env!("CARGO_BIN_EXE_proscenium").into());
    let own = Pool::new(sandbox::Options { worker, ..sandbox::Options::default() });
    assert!(load(Engine::builder(config).interpreter(own)).is_empty());
}

/// A line that the depth at which the interpreter gives up decides.
const ANY_LINE: u32 = 0;

/// Files of functions that an interpreter may not survive, each with the line of its fault; none where it is taken.
fn hostile_files() -> Vec<(&'static str, String, Option<u32>)> {
    let flat = |before: &str, part: &str, after: &str| {
        format!("{before}{}{after}\n", part.repeat(32 * 1024 / part.len()))
    };
    let tower = format!("x = {}1{}\n", "[".repeat(1_000), " for a in [1]]".repeat(1_000));
    let blocks: String = (0..300).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect();
    let all = [
        ("brackets", flat("x = ", "[", ""), Some(3)),
        ("dictionaries", flat("x = ", "{1:", ""), Some(3)),
        ("lambdas", flat("x = ", "lambda:", "1"), Some(3)),
        ("operators", flat("x = ", "1+", "1"), Some(3)),
        ("powers", flat("x = ", "2**", "2"), Some(3)),
        ("unary", flat("x = ", "not ", "1"), Some(3)),
        ("attributes", flat("x = do", ".a", ""), Some(3)),
        ("calls", flat("x = do", "()", ""), Some(3)),
        ("fstrings", flat("x = ", "f\"{", ""), Some(3)),
        ("comprehensions", tower, Some(3)),
        ("blocks", format!("{blocks}{}1\n", " ".repeat(300)), Some(ANY_LINE)),
        ("branches", flat("if do:\n x=1\n", "elif do:\n x=1\n", ""), Some(ANY_LINE)),
        ("decorators", flat("", "@do\n", "def other():\n    return 1"), None),
        ("integer", flat("x = ", "9", ""), Some(3)),
        ("text", flat("x = '", "\\u00e9", "'"), None),
        ("names", flat("x", "\u{e9}", " = 1"), None),
        ("folded", "\u{ff44}\u{ff45}\u{ff46} other():\n    pass\n".to_owned(), Some(3)),
        ("zero", "x = 1\0\n".to_owned(), Some(3)),
    ];
    all.into_iter()
        .map(|(name, text, line)| (name, format!("def do():\n    return 1\n{text}"), line))
        .collect()
}

#[cfg(unix)]
#[test]
fn no_file_harms_check_or_a_server_that_reloads() {
    let workspace = Workspace::bare();
    let [toml, python] = loans();
    workspace.write("live/loans/scene.toml", toml);
    workspace.write("live/loans/tools.py", python);
    let mut server = workspace.serve(&["--scenes", "live"]);
    for (name, text, _) in hostile_files() {
        let scene = format!(
            "name = \"{name}\"\ndescription = \"It does.\"\ninstructions = \"Do.\"\nexamples = [{{ say = \"Do {name}\" }}]\n\
             [[tools]]\nname = \"Do\"\ndescription = \"Does.\"\nkind = \"python\"\neffect = \"read\"\n"
        );
        workspace.write(&format!("live/{name}/scene.toml"), &scene);
        workspace.write(&format!("live/{name}/tools.py"), &text);
    }
    server.signal("HUP");
    server.read_stderr_until("stays in force");
    let checked = workspace.run(&["--scenes", "live", "check"]);
    assert_eq!(checked.status, 1, "{checked:#?}");
    let text = checked.text();
    let told = |name: &str| {
        let start = text.find(&format!("live/{name}/tools.py"))?;
        text[start..].lines().next()
    };
    let wrong: Vec<String> = hostile_files()
        .into_iter()
        .filter(|(name, _, line)| {
            let place = line.map(|line| match line {
                ANY_LINE => "error[scene.python_syntax]: SyntaxError: Source is too deeply nested".to_owned(),
                line => format!("live/{name}/tools.py:{line}: error[scene.python_syntax]"),
            });
            match (told(name), place) {
                (None, None) => false,
                (Some(told), Some(place)) => !told.contains(&place),
                _ => true,
            }
        })
        .map(|(name, _, line)| format!("{name}: {line:?}: {:?}", told(name)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // It serves as before.
    let asked = workspace.run(&["chat", "-q", "--session", "s", "Which books has Ada borrowed?"]);
    assert_eq!(asked.status, 0, "{asked:#?}");
    server.kill();
}

/// A scene whose tools count in a table: one that may be repeated under its key, and one that may not. Each waits for the address
/// before it returns, but for `c`.
fn counting(address: &str) -> [String; 2] {
    let mut scene = "name = \"Counts\"\ndescription = \"Counts.\"\ninstructions = \"Call the tools.\"\n\
        examples = [{ say = \"Add to a\", tool = \"Add\" }]\n[[tables]]\nname = \"counts\"\ndescription = \"Counts.\"\n\
        key = [\"name\"]\ncolumns = [{ name = \"name\", type = \"text\" }, { name = \"n\", type = \"integer\" }]\n\
        rows = [{ name = \"a\", n = 0 }, { name = \"b\", n = 0 }, { name = \"c\", n = 0 }]\n"
        .to_owned();
    for (tool, repeat) in [("Add", "key"), ("Once", "never")] {
        scene.push_str(&format!(
            "[[tools]]\nname = \"{tool}\"\ndescription = \"Adds one.\"\nkind = \"python\"\nfunction = \"add\"\n\
             effect = \"write\"\nrepeat = \"{repeat}\"\nhost = [\"tables.get\", \"tables.update\"]\n\
             parameters = {{ type = \"object\", required = [\"name\"], properties = {{ name = {{ type = \"string\" }} }} }}\n\
             [tools.requests.hold]\nurl = \"{address}/hold/{{name}}\"\nparameters = [\"name\"]\n"
        ));
    }
    let python = "def add(name):\n    row = tables.get('counts', key=name)\n    \
                  row = tables.update('counts', key=name, values={'n': row['n'] + 1})\n    \
                  if name != 'c':\n        requests.hold(name=name)\n    return row\n";
    [scene, python.to_owned()]
}

#[cfg(unix)]
#[tokio::test]
async fn write_whose_server_is_killed_is_committed_once_or_referred_to_a_person() {
    // The first server gets no answer from here.
    let backend = FaultyBackend::start(|_, nth| match nth {
        0 => Misbehaviour::Silence(Duration::from_secs(60)),
        _ => Misbehaviour::Answer,
    });
    let llm = model(
        r#"
"Add to a": {steps: [{scene: Counts, rounds: [[{Add: {name: a}}]]}]}
"Once to b": {steps: [{scene: Counts, rounds: [[{Once: {name: b}}]]}]}
"Add to c": {steps: [{scene: Counts, rounds: [[{Add: {name: c}}]]}]}
"#,
    );
    let workspace = Workspace::bare();
    let [toml, python] = counting(backend.address());
    workspace.write("scenes/counts/scene.toml", &toml);
    workspace.write("scenes/counts/tools.py", &python);
    workspace.write(
        "house.toml",
        &format!(
            "[scenes]\nbuiltin = false\nallow_private_addresses = true\n[execution]\nconfirm = \"never\"\n\
             [[llm.models]]\nname = \"m\"\nbase_url = \"{}\"\nforcing = \"named\"\n",
            llm.base_url()
        ),
    );
    let line = ["serve", "--addr", "127.0.0.1:0", "--config", "house.toml", "--scenes", "scenes"];
    // The one with `c` is killed between its commit and the entry of the journal; the others are in the middle of their function.
    let crash = [
        ("CRASH_POINT_AT", "before:tool_completed".to_owned()),
        ("CRASH_POINT_WORDS", "Add to c".to_owned()),
    ];
    let mut server = workspace.spawn_with(&line, &crash);
    let address = server.served_at();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = |words: &str| {
        let body =
            json!({"messages": [{"role": "user", "content": words}], "session_id": words.replace(' ', "-")});
        client.post(format!("{address}/api/chat")).json(&body).send()
    };
    let held = [ask("Add to a"), ask("Once to b")].map(tokio::spawn);
    let is_held = |name: &str| !backend.requests(&format!("GET /hold/{name}")).is_empty();
    eventually("both functions are executed", async || is_held("a") && is_held("b")).await;
    assert!(ask("Add to c").await.is_err());
    for held in held {
        assert!(held.await.unwrap().is_err());
    }
    drop(server.end());

    let mut server = workspace.spawn(&line);
    let address = server.served_at();
    let get = async |path: &str| -> Value {
        client.get(format!("{address}{path}")).send().await.unwrap().json().await.unwrap()
    };
    eventually("all runs have ended or wait", async || {
        let listed = get("/api/runs").await;
        let runs = listed["runs"].as_array().unwrap();
        runs.iter().all(|run| !["queued", "running"].contains(&run["status"].as_str().unwrap()))
    })
    .await;
    let open = get("/api/approvals").await;
    let [asked] = open["approvals"].as_array().unwrap().as_slice() else { panic!("{open:#}") };
    assert_eq!(asked["about"], "outcome", "{asked:#}");
    server.signal("TERM");
    assert_eq!(server.end().status, 0);
    let store = Store::open_read_only(&workspace.data()).await.unwrap();
    let counts: Vec<(String, i64)> = sqlx::query_as("SELECT name, n FROM \"counts:counts\" ORDER BY name")
        .fetch_all(store.pool())
        .await
        .unwrap();
    let counts: Vec<i64> = counts.into_iter().map(|(_, n)| n).collect();
    assert_eq!(counts, [1, 0, 1]);
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
        "it has no parameter `reader`; `borrower` is not a parameter of the tool",
        "def list_loans(reader):",
    ] {
        assert!(bad.text().contains(part), "{part}: {bad:#?}");
    }
}
