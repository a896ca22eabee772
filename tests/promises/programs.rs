//! Programs as plans: a model writes one, it runs in the real sandbox, and its calls are calls of the run.

use std::sync::{Arc, Mutex};

use proscenium::adapt::ExecutionLevel;
use proscenium::run::{Event, PlanMaker, PlanningMaker, ProgramStop, RequestOptions, RunStatus, SessionId};
use proscenium::tools::{ToolContext, ToolError, native};
use reqwest::Method;
use serde_json::{Value, json};

use crate::process::{RunningProcess, Workspace};
use crate::support::test_engine::{FinishedRun, Setup, TestEngine};
use crate::support::{Backend, Reply, Scripted, ScriptedLlm, forced_tool, last_message, section};

const SHOP: &str = r#"
name = "Shop"
description = "The stock of a shop, and orders of more."
instructions = "Call the tools."

[[examples]]
say = "Order lamps"
tool = "Order"

[[tools]]
name = "List"
description = "Lists the items with their stock."
effect = "read"
native = "test.list"
[tools.parameters]
type = "object"
[tools.parameters.properties.from]
type = "string"
description = "The shelf"

[[tools]]
name = "Order"
description = "Orders more of an item."
effect = "write"
native = "test.order"
[tools.parameters]
type = "object"
required = ["item", "quantity"]
[tools.parameters.properties.item]
type = "string"
[tools.parameters.properties.quantity]
type = "integer"
minimum = 1
"#;

const ORDERS: &str = r#"
items = Shop.List()["items"]
low = [item for item in items if item["stock"] < 5]
ordered = []
for item in low:
    try:
        done = Shop.Order(item=item["name"], quantity=5 - item["stock"])
        ordered.append({"item": item["name"], "quantity": done["ordered"]})
    except ToolError as error:
        print("not ordered", item["name"], error)
STATUS = "success" if ordered else "no_match"
answer_text = f"I ordered {len(ordered)} items."
answer_rows = ordered
"#;

fn block(source: &str) -> Scripted {
    Scripted::Text(format!("<execute_python>\n{source}\n</execute_python>"))
}

/// An engine with the shop and what was ordered there.
struct Shop {
    test: TestEngine,
    llm: ScriptedLlm,
    orders: Arc<Mutex<Vec<Value>>>,
    _scenes: tempfile::TempDir,
}

impl Shop {
    /// With a model that replies to the nth question for a program with the nth of these replies, or the last one.
    async fn start(programs: &[&str], more: impl FnOnce(Setup) -> Setup) -> Self {
        Self::with_scene(SHOP, programs, more).await
    }

    async fn with_scene(scene: &str, programs: &[&str], more: impl FnOnce(Setup) -> Setup) -> Self {
        let programs: Vec<String> = programs.iter().map(|source| (*source).to_owned()).collect();
        let llm = ScriptedLlm::start(move |request, nth| match forced_tool(request) {
            Some("CreateExecutionPlan") => Scripted::forced(
                request,
                json!({"needs_execution": true, "reasoning": "", "unserved": [], "steps": [{"step_number": 1,
                    "scene_name": "PROGRAM", "purpose": "Order what is low", "scenes": ["Shop"], "depends_on_step": null}]}),
            ),
            _ => match programs.get(nth).or(programs.last()) {
                Some(text) if text.starts_with("plain: ") => Scripted::Text(text.clone()),
                Some(source) => block(source),
                None => Scripted::status(500),
            },
        });
        let (scenes, orders) = (tempfile::tempdir().unwrap(), Arc::<Mutex<Vec<Value>>>::default());
        std::fs::create_dir_all(scenes.path().join("shop")).unwrap();
        std::fs::write(scenes.path().join("shop/scene.toml"), scene).unwrap();
        let ordered = orders.clone();
        let setup = more(Setup::scripted(&llm).alone().scenes(scenes.path()).set("planning.maker", "code"))
            .native(
                "test.list",
                native(|_: Value, _: ToolContext| async {
                    Ok::<_, ToolError>(json!({"items": [
                        {"name": "lamp", "stock": 2}, {"name": "desk", "stock": 9}, {"name": "chair", "stock": 4}]}))
                }),
            )
            .native(
                "test.order",
                native(move |sent: Value, _: ToolContext| {
                    ordered.lock().unwrap().push(sent.clone());
                    async move { Ok::<_, ToolError>(json!({"ordered": sent["quantity"]})) }
                }),
            );
        Self { test: setup.start().await, llm, orders, _scenes: scenes }
    }

    async fn ask(&self, options: RequestOptions) -> FinishedRun {
        let words = "Order more of what is running out";
        let mut request = self.test.engine.request(words, Some(SessionId::new("s").unwrap()));
        request.options = options;
        let ticket = self.test.engine.submit(request).await.unwrap();
        self.test.finish(ticket).await
    }

    async fn run(&self) -> FinishedRun {
        self.ask(RequestOptions::default()).await
    }

    fn orders(&self) -> Vec<Value> {
        self.orders.lock().unwrap().clone()
    }
}

fn same(setup: Setup) -> Setup {
    setup
}

#[tokio::test]
async fn program_loops_over_a_read_and_writes_with_one_model_call() {
    let shop = Shop::start(&[ORDERS], same).await;
    let run = shop.run().await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!(
        shop.orders(),
        [json!({"item": "lamp", "quantity": 3}), json!({"item": "chair", "quantity": 1})]
    );
    assert_eq!(
        run.answer.answer,
        "I ordered 2 items.\n- item: lamp, quantity: 3\n- item: chair, quantity: 1"
    );
    assert_eq!(run.answer.steps[0].rows[1]["item"], "chair");
    assert_eq!(
        (run.answer.steps[0].scene_name.as_str(), run.answer.steps[0].tool_calls.len()),
        ("PROGRAM", 3)
    );
    assert_eq!((run.state.plans[0].maker, shop.llm.count()), (PlanMaker::Code, 1));
    let prompt = shop.llm.request(0);
    let functions = section(&prompt, "functions").unwrap();
    assert!(
        functions.contains("def Order(item: str, quantity: int) -> Any:  # changes something"),
        "{functions}"
    );
    assert!(functions.contains("def List(from_: str | None = None)"), "{functions}");
    // Each execution stopped at a call, and the last one at the end.
    let stops = run.events.iter().filter(|event| event.body.name() == "program_replied").count();
    assert_eq!(stops, 4);
}

#[tokio::test]
async fn broken_contract_is_sent_back_with_the_exact_fault_and_writes_are_not_repeated() {
    let broken = ORDERS.replace("\"success\" if ordered", "\"done\" if ordered");
    let shop = Shop::start(&[&broken, "plain: I corrected it.", ORDERS], same).await;
    let run = shop.run().await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!((shop.orders().len(), shop.llm.count()), (2, 3));
    let request = shop.llm.request(1);
    let told = last_message(&request).unwrap();
    assert!(told.contains("STATUS is \"done\"") && told.contains("insufficient_stock"), "{told}");
    let request = shop.llm.request(2);
    let told = last_message(&request).unwrap();
    assert!(told.contains("the reply has no program"), "{told}");
}

#[tokio::test]
async fn program_that_stays_wrong_fails_its_step_clearly() {
    let shop = Shop::start(&["STATUS = 'success'"], |setup| setup.set("planning.max_retries", 1)).await;
    let run = shop.run().await;
    let error = run.answer.steps[0].error.as_ref().unwrap();
    assert_eq!((run.answer.status, error.code.as_str()), (RunStatus::Failed, "code.contract"), "{error:?}");
    assert!(error.message.contains("answer_text is not set"), "{error:?}");
    // Users read a neutral sentence.
    assert!(!run.answer.answer.contains("answer_text"), "{:#?}", run.answer);
    assert_eq!(shop.llm.count(), 2);
}

#[tokio::test]
async fn program_that_claims_what_it_did_not_do_is_contradicted() {
    let claims = "STATUS = 'success'\nanswer_text = 'I ordered 5 lamps.'";
    for program in [claims.to_owned(), format!("Shop.List()\n{claims}")] {
        let shop = Shop::start(&[&program], same).await;
        let run = shop.run().await;
        assert_eq!((shop.orders().len(), shop.llm.count()), (0, 1));
        assert_eq!(run.answer.answer, "I ordered 5 lamps.\nNothing was changed.", "{:#?}", run.answer);
    }
}

#[tokio::test]
async fn program_changes_tables_and_calls_writes_only_where_the_scene_allows_it_and_says_what_was_done() {
    const NOTED: &str = "Shop.insert(table='notes', values={'text': 'lamps'})\nShop.Order(item='lamp', quantity=3)\n\
                         STATUS = 'success'\nanswer_text = 'Three lamps are ordered.'";
    let notes = "[[tables]]\nname = \"notes\"\ndescription = \"Notes.\"\nkey = [\"id\"]\ncolumns = [\
                 {name = \"id\", type = \"text\", filled = \"id\"}, {name = \"text\", type = \"text\"}]\n";
    let strict = format!("{SHOP}\n{notes}");
    let mixed = strict.replacen("instructions", "mixed_writes = true\ninstructions", 1);
    let noted = async |shop: &Shop| -> i64 {
        let sql = "SELECT count(*) FROM \"shop:notes\"";
        sqlx::query_scalar(sql).fetch_one(shop.test.engine.store().pool()).await.unwrap()
    };
    let few = |setup: Setup| setup.set("planning.max_retries", 0);

    let shop = Shop::with_scene(&strict, &[NOTED], few).await;
    let error = shop.run().await.answer.steps.remove(0).error.unwrap();
    assert_eq!((error.code.as_str(), shop.orders().len(), noted(&shop).await), ("code.refused", 0, 0));

    let shop = Shop::with_scene(&mixed, &[NOTED], few).await;
    let run = shop.run().await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!((shop.orders().len(), noted(&shop).await), (1, 1));
    let functions = shop.llm.request(0).to_string();
    assert!(functions.contains("it stays done if the staged changes are not made"), "{functions}");

    let shop = Shop::with_scene(&mixed, &[&format!("{NOTED}\n1 / 0")], few).await;
    let run = shop.run().await;
    let error = run.answer.steps[0].error.clone().unwrap();
    assert_eq!((error.code.as_str(), shop.orders().len(), noted(&shop).await), ("code.error", 1, 0));
    let done = "these writes were done before, and no others: Shop.Order({\"item\":\"lamp\",\"quantity\":3})";
    assert!(error.message.contains(done), "{error:?}");
    // The document lists it, and so does the question for the words of the answer.
    assert_eq!((run.answer.status, run.answer.writes[0].tool.as_str()), (RunStatus::Partial, "Order"));
    let request = shop.llm.request(shop.llm.count() - 1);
    assert!(last_message(&request).unwrap().contains("\"ordered\":3"), "{request:#}");

    let shop = Shop::with_scene(&mixed, &[NOTED], |setup| setup.set("execution.confirm", "unclear")).await;
    let say = async |words: &str| shop.test.submit("s", words).await.unwrap().answer().await.unwrap();
    let asked = say("Order more of what is running out").await;
    assert_eq!(
        asked.answer,
        "Shall I carry out Order (Shop)?\nitem: \"lamp\"\nquantity: 3\nReply yes or no."
    );
    assert!(shop.orders().is_empty());
    let asked = say("yes").await;
    let question = "Shall I make these changes? notes";
    assert!(
        asked.answer.contains(question)
            && asked.answer.contains("(Done already, in any case: Shop.Order(")
            && !asked.answer.contains("\nbase: "),
        "{asked:#?}"
    );
    let refused = say("no").await;
    let error = refused.steps[0].error.as_ref().unwrap();
    assert!(
        error.message.contains("these writes were done before, and no others: Shop.Order("),
        "{refused:#?}"
    );
    assert_eq!((shop.orders().len(), noted(&shop).await), (1, 0));
}

#[tokio::test]
async fn without_a_sandbox_nothing_is_executed() {
    let shop = Shop::start(&[ORDERS], |setup| setup.set("sandbox.worker", "/nowhere/at/all")).await;
    let run = shop.run().await;
    let error = run.answer.steps[0].error.as_ref().unwrap();
    assert_eq!(
        (run.answer.status, error.code.as_str()),
        (RunStatus::Failed, "sandbox.unavailable"),
        "{error:?}"
    );
    assert!(shop.orders().is_empty() && run.answer.steps[0].tool_calls.is_empty());
}

#[tokio::test]
async fn conflict_after_another_write_of_a_program_says_what_was_done_and_nothing_is_done_twice() {
    const RESTOCKED: &str = "row = Shop.get(table='shelf', key='lamp')\n\
        Shop.update(table='shelf', key='lamp', values={'left': row['left'] + 3})\nShop.Order(item='lamp', quantity=3)\n\
        STATUS = 'success'\nanswer_text = 'Three lamps are ordered.'";
    let shelf = "[[tables]]\nname = \"shelf\"\ndescription = \"What is left.\"\nkey = [\"item\"]\ncolumns = [\
                 {name = \"item\", type = \"text\"}, {name = \"left\", type = \"integer\"}]\n\
                 rows = [{item = \"lamp\", left = 2}]\n";
    let scene = format!("{SHOP}\n{shelf}").replacen("instructions", "mixed_writes = true\ninstructions", 1);
    let asking = |setup: Setup| setup.set("execution.confirm", "unclear");
    let shop = Shop::with_scene(&scene, &[RESTOCKED], asking).await;
    let say = async |words: &str| shop.test.submit("s", words).await.unwrap().answer().await.unwrap();
    assert!(say("Order more of what is running out").await.answer.contains("lamp"));
    let asked = say("yes").await;
    assert!(asked.answer.contains("Shall I make these changes? shelf"), "{asked:#?}");
    // Another commit changes the row between the dry run and the yes.
    let pool = shop.test.engine.store().pool();
    sqlx::query("UPDATE \"shop:shelf\" SET \"left\" = 7, row_version = 99").execute(pool).await.unwrap();
    let told = say("yes").await;
    let error = told.steps[0].error.as_ref().unwrap();
    assert_eq!(error.code, "staged.conflict", "{told:#?}");
    let done = "these writes were done before, and no others: Shop.Order({\"item\":\"lamp\",\"quantity\":3})";
    assert!(error.message.contains(done), "{error:?}");
    let calls = |tool: &str| told.steps[0].tool_calls.iter().filter(|call| call.tool == tool).count();
    assert_eq!((told.status, calls("Order"), calls("commit")), (RunStatus::Partial, 1, 1), "{told:#?}");
    let left: i64 = sqlx::query_scalar("SELECT \"left\" FROM \"shop:shelf\"").fetch_one(pool).await.unwrap();
    let commits: i64 =
        sqlx::query_scalar("SELECT count(*) FROM \"shop:commits\" WHERE key <> 'initial rows'")
            .fetch_one(pool)
            .await
            .unwrap();
    // No other program was asked for in its place.
    let events = shop.test.events(told.run_id).await;
    let written = events.iter().filter(|event| matches!(event.body, Event::ProgramWritten { .. })).count();
    assert_eq!((left, commits, shop.orders().len(), written), (7, 0, 1, 1));
}

#[tokio::test]
async fn program_reaches_nothing_but_its_functions() {
    let source = "import os\nos.remove('/etc/passwd')\nSTATUS = 'success'\nanswer_text = 'Gone.'";
    let shop = Shop::start(&[source], |setup| setup.set("planning.max_retries", 0)).await;
    let run = shop.run().await;
    assert_eq!(run.answer.status, RunStatus::Failed, "{:#?}", run.answer);
    let stopped = run.events.iter().find_map(|event| match &event.body {
        Event::ProgramReplied { stop: ProgramStop::Fault { fault }, .. } => Some(fault.clone()),
        _ => None,
    });
    assert!(stopped.unwrap().code.starts_with("code."));
}

#[tokio::test]
async fn planner_may_choose_a_program_and_a_request_may_rule_it_out() {
    let shop = Shop::start(&["", ORDERS], |setup| setup.set("planning.maker", "auto")).await;
    let run = shop.run().await;
    assert_eq!(run.answer.status, RunStatus::Completed, "{:#?}", run.answer);
    assert_eq!((run.state.plans[0].maker, shop.orders().len()), (PlanMaker::Deterministic, 2));
    assert!(shop.llm.request(0).to_string().contains("PROGRAM"));
    let narrowed = RequestOptions { maker: Some(PlanningMaker::Scenes), ..RequestOptions::default() };
    let before = shop.llm.count();
    let run = shop.ask(narrowed).await;
    // The plan names what it may not contain, and is sent back until the planner gives up.
    assert_eq!(run.answer.status, RunStatus::Failed, "{:#?}", run.answer);
    assert!(!shop.llm.request(before).to_string().contains("one Python program"));
    assert_eq!(shop.orders().len(), 2);
}

#[tokio::test]
async fn at_basic_no_program_is_written() {
    let shop = Shop::start(&[ORDERS], same).await;
    let basic = RequestOptions { level: Some(ExecutionLevel::Basic), ..RequestOptions::default() };
    let run = shop.ask(basic).await;
    assert_eq!(run.answer.steps[0].error.as_ref().unwrap().code, "level.basic");
    assert_eq!((shop.llm.count(), shop.orders().len()), (0, 0));
}

/// A server that is killed while a program waits in the middle of a line.
struct Server {
    process: RunningProcess,
    address: String,
    client: reqwest::Client,
}

impl Server {
    fn start(workspace: &Workspace) -> Self {
        let line = ["serve", "--addr", "127.0.0.1:0", "--config", "house.toml", "--scenes", "scenes"];
        let mut process = workspace.spawn(&line);
        let address = process.served_at();
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        Self { process, address, client }
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let request = self.client.request(method, format!("{}{path}", self.address));
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        let reply = Reply::of(request.send().await.unwrap()).await;
        if path.ends_with("/events") { Value::Null } else { reply.json() }
    }

    /// Approves the only pending approval, and waits until the run has ended or waits again.
    async fn approve(&self, run: &str) -> Value {
        let open = self.send(Method::GET, "/api/approvals", None).await;
        let [approval] = open["approvals"].as_array().unwrap().as_slice() else { panic!("{open:#}") };
        let path = format!("/api/approvals/{}", approval["approval_id"].as_str().unwrap());
        self.send(Method::POST, &path, Some(json!({"decision": "yes"}))).await;
        self.send(Method::GET, &format!("/api/runs/{run}/events"), None).await;
        self.send(Method::GET, &format!("/api/runs/{run}"), None).await
    }
}

#[tokio::test]
async fn waiting_program_continues_in_the_middle_of_a_line_after_a_kill() {
    let backend = Backend::start(|reached| json!({"done": reached.place}));
    let llm = ScriptedLlm::start(|_, _| {
        block(
            "first = Shelf.Look(book='emma')\n\
             both = [Shelf.Reserve(book='emma'), Shelf.Reserve(book='ulysses')]\n\
             STATUS = 'success'\nanswer_text = f'{len(both)} books are reserved: emma and ulysses.'",
        )
    });
    let workspace = Workspace::bare();
    let scene = crate::crash::scene("Shelf", &[("Look", "read"), ("Reserve", "write")], backend.address());
    workspace.write("scenes/shelf/scene.toml", &scene);
    let more =
        "[execution]\nconfirm = \"never\"\n[planning]\nmaker = \"code\"\n[approval]\ncalls = \"writes\"\n";
    workspace.write_house(&llm, more);

    let server = Server::start(&workspace);
    let words = json!({"messages": [{"role": "user", "content": "Reserve both books"}], "session_id": "s"});
    let waits = server.send(Method::POST, "/api/chat", Some(words)).await;
    assert_eq!(waits["status"], "waiting", "{waits:#}");
    let run = waits["run_id"].as_str().unwrap().to_owned();
    server.process.kill();

    let server = Server::start(&workspace);
    let waits = server.approve(&run).await;
    assert_eq!(waits["status"], "waiting", "{waits:#}");
    server.process.kill();

    let server = Server::start(&workspace);
    let done = server.approve(&run).await;
    assert_eq!(
        (&done["status"], &done["answer"]),
        (&json!("completed"), &json!("2 books are reserved: emma and ulysses.")),
        "{done:#}"
    );
    let reached: Vec<String> = backend.take_requests().into_iter().map(|call| call.place).collect();
    assert_eq!(reached.iter().filter(|place| *place == "GET /Look").count(), 1, "{reached:?}");
    assert_eq!(reached.iter().filter(|place| *place == "POST /Reserve").count(), 2, "{reached:?}");
    assert_eq!(llm.count(), 1);
    server.process.kill();
}
