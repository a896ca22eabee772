//! What end users read when something fails: a neutral sentence in their language, and never a success.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::fault_matrix::{model, write_scene};
use super::process::Workspace;
use crate::server_api;
use crate::support::{FaultyBackend, Misbehaviour, ServedEngine, Setup};

const PAGE: &str = "<!DOCTYPE HTML><html><body>Error response: nginx</body></html>";

/// A back end that knows order 12, and answers other orders with their number as the status, and a page.
fn start_orders() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let asked = lines.next().unwrap_or_default();
            // The rest of the head.
            lines.find(String::is_empty);
            let number = asked.split(['/', ' ']).find_map(|part| part.parse::<u16>().ok()).unwrap_or(400);
            let (status, body) = match number {
                12 => ("200 OK".to_owned(), r#"{"number": 12, "place": "Bologna"}"#),
                status => (format!("{status} No"), PAGE),
            };
            let kind = if number == 12 { "application/json" } else { "text/html" };
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}");
            let _ = write!(stream, "{head}\r\nconnection: close\r\n\r\n{body}");
        }
    });
    address
}

fn scene(address: &str, more: &str) -> String {
    format!(
        r#"name = "Orders"
description = "Orders of customers: where an order is."
instructions = "Look orders up."

[[examples]]
say = "Where is order 12?"
tool = "FindOrder"
[[examples]]
say = "Dov'è l'ordine 12?"
tool = "FindOrder"
[[examples]]
say = "Cancel order 12"
tool = "CancelOrder"

[[tools]]
name = "FindOrder"
description = "Finds an order by its number."
effect = "read"
say = {{ en = "Order {{{{ number }}}} is in {{{{ place }}}}." }}
[tools.parameters]
type = "object"
required = ["number"]
properties = {{ number = {{ type = "integer", description = "The order's number" }} }}
[tools.http]
url = "http://{address}/{{number}}"
{more}
[[tools]]
name = "CancelOrder"
description = "Cancels an order by its number."
effect = "write"
[tools.parameters]
type = "object"
required = ["number"]
properties = {{ number = {{ type = "integer", description = "The order's number" }} }}
[tools.http]
method = "DELETE"
url = "http://{address}/{{number}}"
"#
    )
}

fn orders(more: &str) -> Workspace {
    let address = start_orders();
    let workspace = Workspace::new().with("PROSCENIUM__SCENES__ALLOW_HOSTS", &format!("[\"{address}\"]"));
    workspace.write("scenes/orders/scene.toml", &scene(&address, more));
    workspace
}

fn ask(workspace: &Workspace, words: &str) -> Value {
    workspace.ask(words, &["--scenes", "scenes"])
}

fn answer(document: &Value) -> &str {
    document["answer"].as_str().unwrap()
}

fn assert_neutral(text: &str) {
    for internal in ["http", "127.0.0.1", "<", "nginx", "404", "503", "Order {{"] {
        assert!(!text.to_lowercase().contains(internal), "{internal} is in {text:?}");
    }
}

#[test]
fn failed_read_is_a_neutral_sentence_in_the_users_language() {
    let workspace = orders("");
    for (words, expected, class) in [
        ("Where is order 404?", "Nothing was found for this.", "not_found"),
        ("Dov'è l'ordine 404?", "Non è stato trovato nulla.", "not_found"),
        ("Where is order 503?", "The service is not available now; please try again later.", "unavailable"),
        ("Where is order 403?", "Access to this is not allowed.", "denied"),
        ("Where is order 422?", "The details were not accepted; please check them.", "bad_data"),
    ] {
        let document = ask(&workspace, words);
        assert_eq!(answer(&document), expected, "{document:#}");
        // The detail remains for developers.
        let error = &document["steps"][0]["tool_calls"][0]["error"];
        assert_eq!(error["say"], expected);
        assert!(error["message"].as_str().unwrap().contains("answered"), "{error}");
        assert_eq!(error["class"], class);
    }
}

/// A login form, say, with status 200: no result of a read, and no proof that a write was done.
#[test]
fn web_page_is_neither_shown_nor_a_success() {
    let workspace = orders("");
    let document = ask(&workspace, "Where is order 200?");
    assert_eq!((&document["status"], &document["steps"][0]["status"]), (&"partial".into(), &"failed".into()));
    assert_neutral(answer(&document));
    let document = ask(&workspace, "Cancel order 200");
    assert_neutral(&answer(&document).replace("200", ""));
    assert!(answer(&document).contains("It is not known whether this was done"), "{document:#}");
    assert_eq!(document["writes"][0]["outcome"], "unknown", "{document:#}");
}

#[test]
fn failed_call_is_no_success_anywhere() {
    let workspace = orders("");
    let document = ask(&workspace, "Where is order 404?");
    assert_eq!(document["status"], "partial");
    assert_eq!(document["steps"][0]["status"], "failed", "{document:#}");
    let ran = workspace.run(&["chat", "--scenes", "scenes", "Where is order 404?"]);
    assert_eq!(ran.status, 1, "{ran:#?}");
    for claim in ["completed", "Every step was carried out", "the request is answered"] {
        assert!(!ran.err.contains(claim) && !ran.out.contains(claim), "{ran:#?}");
    }
    assert!(ran.err.contains("step 1 Orders: did not succeed"), "{ran:#?}");
    assert_neutral(&ran.out);
    let (_, told) = ran.err.split_once("step 1 Orders: did not").unwrap();
    // The last line has figures: it may have taken 404 ms.
    let (told, _) = told.rsplit_once(" model calls, ").unwrap();
    assert_neutral(told);
    let (run, task) = (document["run_id"].as_str().unwrap(), document["task_id"].as_str().unwrap());
    for command in [["runs", "show", run], ["plans", "show", task]] {
        let shown = workspace.run(&command).out;
        let (_, step) = shown.split_once("## Step 1: Orders\n").unwrap_or_else(|| panic!("{shown}"));
        assert!(step.split("\n\n").next().unwrap().ends_with("Status: failed"), "{shown}");
        assert!(!shown.contains("Status: completed"), "{shown}");
    }
}

#[test]
fn unknown_outcome_of_a_write_does_not_name_the_back_end() {
    let workspace = orders("");
    let document = ask(&workspace, "Cancel order 503");
    let told = answer(&document).replace("503", "");
    assert!(told.contains("It is not known whether this was done"), "{told}");
    assert!(!told.contains("try again"), "{told}");
    assert_neutral(&told);
}

#[test]
fn scene_words_the_statuses_of_its_back_end() {
    let sentences = r#"[tools.http.on_status]
404 = { en = "There is no order {{ arguments.number }}.", it = "L'ordine {{ arguments.number }} non esiste." }
"#;
    let workspace = orders(sentences);
    assert_eq!(answer(&ask(&workspace, "Where is order 404?")), "There is no order 404.");
    assert_eq!(answer(&ask(&workspace, "Dov'è l'ordine 404?")), "L'ordine 404 non esiste.");
    assert_eq!(
        answer(&ask(&workspace, "Where is order 403?")),
        "Access to this is not allowed.",
        "other statuses keep their neutral sentence"
    );
}

#[test]
fn sentences_by_status_are_checked() {
    let workspace =
        orders("[tools.http.on_status]\n200 = { en = \"Fine.\" }\n404 = { xx = \"No {{ order\" }\n");
    let ran = workspace.run(&["check", "--scenes", "scenes"]);
    assert_eq!(ran.status, 1, "{ran:#?}");
    for code in ["scene.http_on_status", "scene.say_language", "scene.say_template"] {
        assert!(ran.out.contains(code) || ran.err.contains(code), "{code}: {ran:#?}");
    }
}

#[test]
fn misspelt_variables_of_sentences_are_faults() {
    let workspace = orders("");
    let text = scene("127.0.0.1:1", "").replace(
        "en = \"Order {{ number }} is in {{ place }}.\"",
        "en = \"{{ number }}: {{ arguments.numbr }}.\"",
    );
    workspace.write("scenes/orders/scene.toml", &text);
    let ran = workspace.run(&["check", "--scenes", "scenes"]);
    assert_eq!(ran.status, 1, "{ran:#?}");
    let all = format!("{}{}", ran.out, ran.err);
    assert!(all.contains("scene.say_variable") && all.contains("did you mean \"number\"?"), "{all}");
}

#[test]
fn sentence_in_another_language_is_used_before_raw_fields() {
    let workspace = orders("");
    assert_eq!(answer(&ask(&workspace, "Dov'è l'ordine 12?")), "Order 12 is in Bologna.");
}

#[test]
fn conversation_and_then_the_configuration_decide_the_language() {
    let workspace = orders("").with("PROSCENIUM__EXECUTION__LANGUAGE", "it");
    assert_eq!(answer(&ask(&workspace, "order 404")), "Nothing was found for this.");
    let ran = Workspace::new().with("PROSCENIUM__EXECUTION__LANGUAGE", "xx").run(&["check"]);
    assert_eq!(ran.status, 1, "{ran:#?}");
}

#[tokio::test]
async fn failed_run_shows_clients_no_address_of_a_back_end() {
    let backend = FaultyBackend::start(|_: &str, _: usize| Misbehaviour::Status(403, Vec::new()));
    let (llm, scenes) = (model(), TempDir::new().unwrap());
    write_scene(scenes.path(), backend.address(), "");
    let setup = Setup::scripted(&llm).alone().scenes(scenes.path()).set("execution.level", "basic");
    let setup = setup.set("scenes.allow_private_addresses", true).set("execution.language", "en");
    let served = ServedEngine::start(setup).await;
    for stream in [false, true] {
        let mut body = server_api::ask("Look cell one");
        (body["model"], body["stream"]) = (json!("proscenium"), json!(stream));
        let reply = served.post("/v1/chat/completions", &body).await;
        assert!(reply.body.contains("Access to this is not allowed."), "{}", reply.body);
        assert!(!reply.body.contains("127.0.0.1"), "{}", reply.body);
    }
    let problem = served.post("/api/chat", &server_api::ask("Look cell two")).await.json();
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("Access to this is not allowed.") && !detail.contains("127.0.0.1"),
        "{problem:#}"
    );
}

#[tokio::test]
async fn write_that_a_back_end_refuses_is_answered_at_every_level() {
    let backend = FaultyBackend::start(|_: &str, _: usize| Misbehaviour::Status(409, Vec::new()));
    let (llm, scenes) = (model(), TempDir::new().unwrap());
    write_scene(scenes.path(), backend.address(), "");
    let setup = Setup::scripted(&llm).alone().scenes(scenes.path()).set("execution.confirm", "never");
    let setup = setup.set("scenes.allow_private_addresses", true).set("execution.language", "en");
    let served = ServedEngine::start(setup).await;
    for (cell, level) in [json!("basic"), json!("adaptive"), json!(null)].into_iter().enumerate() {
        let mut body = server_api::ask(&format!("Book cell c{cell}"));
        body["level"] = level.clone();
        let reply = served.post("/api/chat", &body).await;
        assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("partial")), "{level}: {reply:#?}");
    }
}

#[tokio::test]
async fn read_that_finds_nothing_is_answered_at_every_level() {
    let backend = FaultyBackend::start(|_: &str, _: usize| Misbehaviour::Status(404, Vec::new()));
    let (llm, scenes) = (model(), TempDir::new().unwrap());
    write_scene(scenes.path(), backend.address(), "");
    let setup = Setup::scripted(&llm).alone().scenes(scenes.path());
    let setup = setup.set("scenes.allow_private_addresses", true).set("execution.language", "en");
    let served = ServedEngine::start(setup).await;
    for level in [json!("basic"), json!("adaptive"), json!(null)] {
        let mut body = server_api::ask("Look cell x");
        body["level"] = level.clone();
        let reply = served.post("/api/chat", &body).await;
        let answer = reply.json();
        assert_eq!((reply.status, &answer["status"]), (200, &json!("partial")), "{level}: {reply:#?}");
        let text = answer["answer"].as_str().unwrap();
        assert!(level != "basic" || text.contains("Nothing was found"), "{level}: {text}");
    }
}
