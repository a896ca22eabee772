//! A shop's stock: kept by the offline model, and changed by programs whose changes are staged.

use std::path::Path;

use proscenium::run::{Event, RunStatus};
use serde_json::{Value, json};

use crate::process::Workspace;
use crate::support::sandbox_programs::kill_computing_worker;
use crate::support::test_engine::{FinishedRun, Setup, TestEngine};
use crate::support::{Scripted, ScriptedLlm, ServedEngine, forced_tool, last_message, messages, section};

/// The folder of the scene inside the program, which is not served by itself.
const SCENES: &str = "shipped:inventory";

/// A program that sells pieces of an item, with the number and the item in place of `NUMBER` and `SKU`.
const SALE: &str = r#"
number = NUMBER
item = Inventory.find(table="items", where={"sku": "SKU"})[0]
if item["stock"] < number:
    STATUS = "insufficient_stock"
    answer_text = f"There are only {item['stock']} left."
else:
    Inventory.update(table="items", key="SKU", values={"stock": item["stock"] - number})
    Inventory.insert(table="transactions", values={
        "kind": "sale", "sku": "SKU", "stock_change": -number,
        "unit_cents": item["price_cents"], "total_cents": number * item["price_cents"]})
    left = Inventory.get(table="items", key="SKU")["stock"]
    STATUS = "success"
    answer_text = f"Sold, {left} are left."
"#;

fn sale(number: &str, sku: &str) -> String {
    SALE.replace("NUMBER", number).replace("SKU", sku)
}

/// A shop whose model replies to the nth question for a program with the nth of these, or the last one.
fn setup(confirm: &str, programs: &[String]) -> (Setup, ScriptedLlm) {
    let programs = programs.to_vec();
    let llm = ScriptedLlm::start(move |_, nth| match programs.get(nth).or(programs.last()) {
        Some(source) => Scripted::Text(format!("<execute_python>\n{source}\n</execute_python>")),
        None => Scripted::status(500),
    });
    let setup = Setup::scripted(&llm).alone().scenes(Path::new(SCENES));
    (setup.set("planning.maker", "code").set("execution.confirm", confirm), llm)
}

/// Such a shop, in which nothing is confirmed.
async fn shop(programs: &[String]) -> (TestEngine, ScriptedLlm) {
    let (setup, llm) = setup("never", programs);
    (setup.start().await, llm)
}

/// A shop that asks before it sells, for a stored run.
pub(crate) async fn recorded_shop() -> (TestEngine, ScriptedLlm) {
    let (setup, llm) = setup("unclear", &[sale("3", "CUP-ESP")]);
    (setup.start().await, llm)
}

/// Pieces of an item, and the number of transactions.
async fn stock(test: &TestEngine, sku: &str) -> (i64, i64) {
    let pool = test.engine.store().pool();
    let sql = "SELECT stock FROM \"inventory:items\" WHERE sku = ?1";
    let stock = sqlx::query_scalar(sql).bind(sku).fetch_one(pool).await.unwrap();
    let sql = "SELECT count(*) FROM \"inventory:transactions\"";
    (stock, sqlx::query_scalar(sql).fetch_one(pool).await.unwrap())
}

fn tools(run: &FinishedRun) -> Vec<&str> {
    run.answer.steps[0].tool_calls.iter().map(|call| call.tool.as_str()).collect()
}

/// Says these words to a shop without a model, and compares what is in the answers.
async fn converse(turns: &[(&str, &str)]) {
    let test = Setup::offline().scenes(Path::new(SCENES)).start().await;
    let mut wrong = Vec::new();
    for (words, expected) in turns {
        let run = test.chat("s", words).await;
        if !run.answer.answer.contains(expected) {
            wrong.push(format!("{words}\n  {}\n  expected: {expected}", run.answer.answer));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn shop_is_kept_without_a_model() {
    converse(&[
        ("How many espresso cups do we have?", "Espresso cup: 42 in stock."),
        ("Sell 3 espresso cups and 2 teapots", "Sold: 3 × espresso cup at €4.50 (39 left), 2 × teapot"),
        ("How much is a teapot?", "Teapot: €22.90."),
        ("Set the price of teapots to 24.50", "Teapot costs €24.50 now, instead of €22.90."),
        ("Sell 20 teapots", "teapot: 20 asked for, 6 in stock. Nothing was done."),
        ("Restock 10 teapots", "10 × teapot (16 in stock now)"),
        ("What did we sell this week?", "Total: €59.30."),
        ("Sell -2 teapots", "-2 is not a number of pieces"),
        ("Sell a teapot and an espresso cup", "Sold: 1 × espresso cup at €4.50 (38 left), 1 × teapot at"),
    ])
    .await;
}

#[tokio::test]
async fn shop_is_kept_without_a_model_in_italian() {
    converse(&[
        ("Quante tazzine da caffè abbiamo?", "Tazzina da caffè: 42 in magazzino."),
        ("Vendi una lattiera e due teiere", "1 × lattiera a 12,50 € (ne restano 11)"),
        ("Registra il reso di una teiera", "Reso: 1 × teiera a 22,90 € (7 in magazzino)."),
        ("Quanto costano le teiere?", "Teiera: 22,90 €."),
        ("Cosa abbiamo venduto questa settimana?", "1 × lattiera"),
        (
            "Registra la vendita di tre tazzine e una teiera",
            "(ne restano 39), 1 × teiera a 22,90 € (ne restano 6)",
        ),
        (
            "Registra il reso di una lattiera e una teiera",
            "(12 in magazzino), 1 × teiera a 22,90 € (7 in magazzino)",
        ),
        ("Registra il reso di una lattiera", "Reso: 1 × lattiera a 12,50 € (13 in magazzino)"),
        ("Registra il reso di due set di cucchiaini", "Reso: 2 × set di cucchiaini"),
        ("Vendi una teiera", "Venduto: 1 × teiera a 22,90 € (ne restano 6)"),
        ("Rendi una teiera", "Reso: 1 × teiera a 22,90 € (7 in magazzino)"),
    ])
    .await;
}

#[tokio::test]
async fn model_that_names_another_number_or_item_is_not_followed() {
    for items in ["thirty teapots", "30 teapots", "3 moka pots"] {
        let llm = ScriptedLlm::start(move |request, _| {
            let mut plan = json!({"needs_execution": true, "reasoning": "", "unserved": [], "steps": [{"step_number": 1,
                "scene_name": "Inventory", "purpose": "Sell 3 teapots", "expected_tools": ["SellItems"],
                "depends_on_step": null}]});
            plan["steps"][0]["prepared_calls"] =
                json!([{"tool": "SellItems", "arguments": json!({"items": items}).to_string()}]);
            plan["steps"][0]["if_needed"] = json!([]);
            Scripted::forced(request, plan)
        });
        let setup = Setup::scripted(&llm).scenes(Path::new(SCENES)).set("execution.confirm", "unclear");
        let test = setup.start().await;
        let run = test.chat("s", "Sell 3 teapots").await;
        let sold = run.events.iter().any(|event| matches!(event.body, Event::ToolStarted { .. }));
        assert!(!sold && run.answer.status != RunStatus::Completed, "{items}: {:#?}", run.answer);
    }
}

#[tokio::test]
async fn program_stages_changes_and_commits_them_at_its_end() {
    let (test, llm) = shop(&[sale("3", "CUP-ESP")]).await;
    let run = test.chat("s", "Sell 3 espresso cups").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert!(run.answer.answer.starts_with("Sold, 39 are left."), "{:#?}", run.answer);
    assert!(run.answer.answer.contains("CUP-ESP\": stock 42 → 39"), "{:#?}", run.answer);
    assert_eq!(stock(&test, "CUP-ESP").await, (39, 1));
    assert_eq!(tools(&run), ["find", "update", "insert", "get", "commit"]);
    let committed = &run.answer.steps[0].tool_calls[4].arguments;
    let change = &committed["diff"][0];
    assert_eq!((&change["before"]["stock"], &change["after"]["stock"]), (&json!(42), &json!(39)));
    let functions = section(&llm.request(0), "functions").unwrap();
    assert!(functions.contains("def find(table: str, where: dict = {}) -> list[dict]"), "{functions}");
    assert!(functions.contains("always: stock >= 0") && !functions.contains("def commit"), "{functions}");
    insta::assert_snapshot!("program_prompt", messages(&llm.request(0)));
    let metrics = test.engine.metrics().await.unwrap();
    let committed = "proscenium_tool_calls_total{outcome=\"ok\",scene=\"Inventory\",tool=\"commit\"} 1\n";
    assert!(metrics.contains(committed), "{metrics}");
}

#[tokio::test]
async fn program_whose_worker_dies_after_it_staged_changes_nothing() {
    let memory_mib = 83;
    let program = sale("3", "CUP-ESP") + "\nwhile True: pass";
    let (setup, _llm) = setup("never", &[program]);
    let setup = setup.set("sandbox.memory_mib", memory_mib).set("sandbox.time_ms", 30_000);
    let test = setup.set("planning.max_retries", 0).start().await;
    let (run, ()) = tokio::join!(test.chat("s", "Sell 3 espresso cups"), kill_computing_worker(memory_mib));
    let error = run.answer.steps[0].error.as_ref().unwrap();
    assert_eq!((run.answer.status, error.code.as_str()), (RunStatus::Failed, "code.crashed"), "{error:?}");
    assert_eq!(stock(&test, "CUP-ESP").await, (42, 0));
}

#[tokio::test]
async fn price_that_the_user_states_is_no_breach() {
    let (test, _llm) = shop(&[sale("3", "CUP-ESP").replace("item[\"price_cents\"]", "400")]).await;
    let run = test.chat("s", "Sell 3 espresso cups at 4 euros each").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!(stock(&test, "CUP-ESP").await, (39, 1));
}

#[tokio::test]
async fn yes_covers_exactly_the_rows_that_were_shown() {
    let (setup, _llm) = setup("unclear", &[sale("30", "CUP-ESP")]);
    let served = ServedEngine::start(setup).await;
    let say = async |session: &str, words: &str| {
        let body = json!({"messages": [{"role": "user", "content": words}], "session_id": session});
        served.post("/api/chat", &body).await.json()
    };
    for session in ["one", "other"] {
        let asked = say(session, "Sell some espresso cups").await;
        assert_eq!(asked["status"], "waiting", "{asked:#}");
        let question = asked["answer"].as_str().unwrap();
        assert!(question.contains("stock 42 → 12") && !question.contains("base:"), "{asked:#}");
    }
    assert_eq!(stock(&served, "CUP-ESP").await, (42, 0));
    let done = say("other", "yes").await;
    assert!(done["answer"].as_str().unwrap().starts_with("Sold, 12 are left."), "{done:#}");
    // What the first one was asked about is gone; read again, there are too few.
    let late = say("one", "yes").await;
    assert!(late["answer"].as_str().unwrap().contains("There are only 12 left."), "{late:#}");
    assert_eq!(stock(&served, "CUP-ESP").await, (12, 1));
}

#[tokio::test]
async fn of_two_programs_that_sell_the_last_piece_one_succeeds() {
    let (test, _llm) = shop(&[sale("1", "MOKA-3")]).await;
    let (one, two) = tokio::join!(test.chat("a", "Sell 1 moka pot"), test.chat("b", "Sell 1 moka pot"));
    let mut answers = [one.answer.answer, two.answer.answer];
    answers.sort();
    assert!(
        answers[0].starts_with("Sold, 0 are left.") && answers[1] == "There are only 0 left.",
        "{answers:?}"
    );
    assert_eq!(stock(&test, "MOKA-3").await, (0, 1));
}

#[tokio::test]
async fn program_that_breaks_a_rule_or_fails_commits_nothing() {
    let cases = [
        (sale("3", "CUP-ESP").replace("\"success\"", "\"no_match\""), "changes are staged, and STATUS is"),
        (
            sale("3", "CUP-ESP").replace("\"stock_change\": -number", "\"stock_change\": -1"),
            "breaks the rule",
        ),
        (sale("-3", "CUP-ESP"), "breaks the rule"),
        (
            sale("3", "CUP-ESP").replace("item[\"price_cents\"]", "99"),
            "breaks the rule `kind != 'sale' or unit_cents",
        ),
        (sale("3.0", "CUP-ESP"), "expected a whole number"),
        (sale("3", "CUP-ESP").replace("Inventory.insert(", "dict("), "has no entry in transactions"),
    ];
    for (program, told) in cases {
        let (test, llm) =
            shop(&[program.clone(), "STATUS = 'no_match'\nanswer_text = 'No.'".to_owned()]).await;
        let run = test.chat("s", "Sell 3 espresso cups").await;
        assert_eq!(stock(&test, "CUP-ESP").await, (42, 0), "{program}");
        assert!(!tools(&run).contains(&"commit"), "{program}");
        let request = llm.request(1);
        let message = last_message(&request).unwrap();
        assert!(message.contains(told), "{told}: {message}");
    }
}

#[tokio::test]
async fn program_for_an_unclear_request_shows_the_diff_and_changes_nothing() {
    let (test, llm) = shop(&[format!("{}\nDRY_RUN = True", sale("3", "CUP-ESP"))]).await;
    let run = test.chat("s", "Sell a few espresso cups").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    let told = "Nothing was changed, since the request is not clear. This would be changed: items \"CUP-ESP\": stock 42 → 39; ";
    assert!(run.answer.answer.starts_with(told), "{:#?}", run.answer);
    let change = &run.answer.steps[0].would_change[0];
    assert_eq!((&change["before"]["stock"], &change["after"]["stock"]), (&json!(42), &json!(39)));
    assert!(!tools(&run).contains(&"commit"));
    assert_eq!(stock(&test, "CUP-ESP").await, (42, 0));
    assert!(llm.request(0).to_string().contains("DRY_RUN = True"));
    let run = test.chat("italian", "Vendi qualche tazzina da caffè, per favore").await;
    assert!(run.answer.answer.starts_with("Non è stato modificato nulla"), "{:#?}", run.answer);
    assert_eq!(stock(&test, "CUP-ESP").await, (42, 0));
}

#[tokio::test]
async fn step_that_its_plan_marks_as_unclear_is_a_dry_run_despite_its_program() {
    let llm = ScriptedLlm::start(|request, _| match forced_tool(request) {
        Some("CreateExecutionPlan") => Scripted::forced(
            request,
            json!({"needs_execution": true, "reasoning": "", "unserved": [], "steps": [{"step_number": 1,
                "scene_name": "PROGRAM", "purpose": "Sell cups", "scenes": ["Inventory"], "expected_tools": [],
                "depends_on_step": null, "unclear": true}]}),
        ),
        _ => Scripted::Text(format!("<execute_python>\n{}\n</execute_python>", sale("3", "CUP-ESP"))),
    });
    let setup = || Setup::scripted(&llm).alone().scenes(Path::new(SCENES)).set("planning.maker", "auto");
    let test = setup().start().await;
    let run = test.chat("s", "Sell a few espresso cups").await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    let told = "Nothing was changed, since the request is not clear. This would be changed: items \"CUP-ESP\": stock 42 → 39; ";
    // What the program says was written for changes that are made.
    assert!(run.answer.answer.starts_with(told) && !run.answer.answer.contains("Sold"), "{:#?}", run.answer);
    let change = &run.answer.steps[0].would_change[0];
    assert_eq!((&change["before"]["stock"], &change["after"]["stock"]), (&json!(42), &json!(39)));
    assert!(!tools(&run).contains(&"commit"));
    assert_eq!(stock(&test, "CUP-ESP").await, (42, 0));
}

#[tokio::test]
async fn dry_run_of_a_program_shows_the_diff_and_changes_nothing() {
    let (test, _llm) = shop(&[sale("3", "CUP-ESP")]).await;
    let mut request = test.engine.request("Sell 3 espresso cups", None);
    request.options.dry_run = true;
    let run = test.finish(test.engine.submit(request).await.unwrap()).await;
    assert_eq!(tools(&run).last(), Some(&"commit"));
    assert!(run.answer.answer.contains("Dry run, nothing was changed."), "{:#?}", run.answer);
    let commit: &Value = &run.answer.steps[0].tool_calls[4].arguments;
    assert_eq!(commit["diff"][0]["after"]["stock"], json!(39));
    assert_eq!(stock(&test, "CUP-ESP").await, (42, 0));
}

#[tokio::test]
async fn commit_of_a_program_that_is_killed_before_its_outcome_is_recorded_is_made_once() {
    let told = "rows = Inventory.find(table='transactions')\ncup = Inventory.get(table='items', key='CUP-ESP')\n\
                STATUS = 'success'\nanswer_text = f\"{cup['stock']} cups, {len(rows)} transactions.\"";
    let programs = [sale("3", "CUP-ESP"), told.to_owned()];
    let llm = ScriptedLlm::start(move |_, nth| {
        Scripted::Text(format!("<execute_python>\n{}\n</execute_python>", programs[nth.min(1)]))
    });
    let workspace = Workspace::new();
    let model = format!("[[llm.models]]\nname = \"m\"\nbase_url = \"{}\"\n", llm.base_url());
    let config = "[execution]\nconfirm = \"never\"\n[planning]\nmaker = \"code\"\n";
    workspace.write("shop.toml", &format!("{config}{model}"));
    let chat = |words| ["chat", "-q", "--config", "shop.toml", "--scenes", SCENES, "--session", "s", words];
    // Find, update, insert and get have completed; the commit is in the tables.
    let crash =
        [("CRASH_POINT_AT", "before:tool_completed".to_owned()), ("CRASH_POINT_SKIP", "4".to_owned())];
    workspace.spawn_with(&chat("Sell 3 espresso cups"), &crash).end();
    let server = workspace.serve(&["--config", "shop.toml", "--scenes", SCENES]);
    let told = workspace.run(&chat("How many espresso cups do we have?"));
    assert!(told.out.contains("39 cups, 1 transactions."), "{told:#?}");
    server.kill();
}

#[test]
fn sale_that_is_killed_between_intent_and_outcome_is_made_once() {
    for place in ["after:tool_started", "before:tool_completed"] {
        let workspace = Workspace::new();
        let crash = [("CRASH_POINT_AT", place.to_owned())];
        let line = ["chat", "-q", "--scenes", SCENES, "--session", "s", "Sell 3 espresso cups"];
        workspace.spawn_with(&line, &crash).end();
        let server = workspace.serve(&["--scenes", SCENES]);
        // Queued behind the sale, which is resumed first.
        let line = ["chat", "-q", "--scenes", SCENES, "--session", "s", "How many espresso cups do we have?"];
        let told = workspace.run(&line);
        assert!(told.out.contains("Espresso cup: 39 in stock."), "{place}: {told:#?}");
        server.kill();
    }
}
