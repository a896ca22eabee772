//! A server is killed in each kind of node of a flow, before and after each of its events, and restarted: the run goes
//! on at that node, and nothing is done twice.

use std::collections::BTreeSet;

use proscenium::run::{ApprovalSubject, Envelope, Event, Outcome, RunState, TenantId};
use proscenium::scene::{Catalogue, load_dir};
use proscenium::store::{Page, RunFilter, Store};
use proscenium::tools::guard::NetworkPolicy;
use serde_json::{Value, json};

use crate::crash::scene;
use crate::process::{RunningProcess, Workspace};
use crate::support::{Backend, Reply, Scripted, ScriptedLlm, forced_tool, journal};

const FLOW: &str = r#"
name = "lend"
description = "Lends a book."
inputs = ["username", "books"]

[[nodes]]
name = "name_book"
description = "Names the book."
kind = "llm"
inputs = ["request"]
outputs = ["book"]
possible_next_nodes = ["find_person"]
template = "Which book? {{ request }}"
[nodes.output]
type = "object"
required = ["book"]
[nodes.output.properties.book]
type = "string"

[[nodes]]
name = "find_person"
description = "Finds who asks."
kind = "native"
native = "identity.get_user_name"
inputs = ["username"]
outputs = ["found"]
possible_next_nodes = ["decide"]

[[nodes]]
name = "decide"
description = "Goes on in any case."
kind = "condition"
inputs = ["found"]
possible_next_nodes = ["look"]

[[nodes]]
name = "look"
description = "Looks whether the book is there."
kind = "tool"
scene = "Shelf"
tool = "Look"
inputs = ["book"]
outputs = ["done"]
possible_next_nodes = ["ask"]
arguments = { book = "book" }

[[nodes]]
name = "ask"
description = "Lets the user choose."
kind = "approval"
by = "user"
inputs = ["books"]
possible_next_nodes = ["reserve"]
[nodes.values]
books = "books"
[nodes.question]
en = "Reserve these?"

[[nodes]]
name = "reserve"
description = "Reserves the book."
kind = "tool"
scene = "Shelf"
tool = "Reserve"
inputs = ["book"]
arguments = { book = "book" }
"#;

const NODES: [&str; 6] = ["name_book", "find_person", "decide", "look", "ask", "reserve"];

fn reply(request: &Value) -> Scripted {
    match forced_tool(request) {
        Some("PlanFlowPath") => Scripted::forced(request, json!({"reasoning": "", "path": NODES})),
        Some("ReportNode") => Scripted::forced(request, json!({"book": "emma"})),
        Some("CheckContinuation") => Scripted::answered(request, "It is reserved."),
        _ => Scripted::Text("It is reserved.".into()),
    }
}

/// A workspace with the flow, its models and the back end of its tools.
struct Lending {
    workspace: Workspace,
    backend: Backend,
    llm: ScriptedLlm,
    client: reqwest::Client,
}

struct Server {
    process: RunningProcess,
    address: String,
    client: reqwest::Client,
}

impl Lending {
    fn new() -> Self {
        let backend = Backend::start(|reached| json!({"done": reached.place}));
        let llm = ScriptedLlm::start(|request, _| reply(request));
        let workspace = Workspace::bare();
        // A keyed write is repeated under its key, where its outcome is not known.
        let shelf = scene("Shelf", &[("Look", "read"), ("Reserve", "key")], backend.address());
        workspace.write("scenes/shelf/scene.toml", &shelf);
        workspace.write("scenes/shelf/flow.toml", FLOW);
        workspace.write_house(&llm, "[execution]\nconfirm = \"never\"\n[planning]\nlearn = \"reuse\"\n");
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        Self { workspace, backend, llm, client }
    }

    fn start(&self, env: &[(&str, String)]) -> Server {
        let line = ["serve", "--addr", "127.0.0.1:0", "--config", "house.toml", "--scenes", "scenes"];
        let mut process = self.workspace.spawn_with(&line, env);
        let address = process.served_at();
        Server { process, address, client: self.client.clone() }
    }

    /// The events of the only run.
    async fn events(&self) -> Vec<Envelope<Event>> {
        let tenant = TenantId::new("local").unwrap();
        let store = Store::open_read_only(&self.workspace.data()).await.unwrap();
        let page = Page { limit: 10, after: None };
        let rows = store.runs(&tenant, &RunFilter::default(), &page).await.unwrap();
        let [row] = rows.as_slice() else { panic!("{rows:#?}") };
        store.run_events(&tenant, row.run).await.unwrap()
    }

    fn catalogue(&self) -> Catalogue {
        let policy = NetworkPolicy { allow_private: true, allow_hosts: Vec::new() };
        let loaded = load_dir(&self.workspace.path().join("scenes"), &proscenium::shipped::tools(), &policy);
        Catalogue::new(loaded.scenes)
    }
}

impl Server {
    /// `None` if the server died before it replied.
    async fn send(&self, words: &str, by_name: bool) -> Option<Value> {
        let mut body = json!({"messages": [{"role": "user", "content": words}], "session_id": "s"});
        if by_name {
            body["flow"] = json!("lend");
            body["current_state"] = json!({"username": "alan", "books": ["emma", "persuasion"]});
        }
        let request = self.client.post(format!("{}/api/chat", self.address));
        let request = request.header("Idempotency-Key", if by_name { "first" } else { words }).json(&body);
        Some(Reply::of(request.send().await.ok()?).await.json())
    }

    /// Sends the request, and its answer to the question, until there is an end. `None` if the server died first.
    async fn lend(&self) -> Option<Value> {
        let document = self.send("Reserve emma", true).await?;
        // A repeated request gets the document of its run.
        let document = if document["document"].is_object() { document["document"].clone() } else { document };
        if document["status"] != "waiting" {
            return Some(document);
        }
        let path = format!("{}/api/runs/{}", self.address, document["run_id"].as_str().unwrap());
        let decided = self.send("without persuasion", false).await?;
        if decided["status"] == "completed" {
            return Some(decided);
        }
        // An earlier server took the reply: the run goes on by itself.
        let events = self.client.get(format!("{path}/events")).send().await.ok()?;
        events.bytes().await.ok()?;
        Some(Reply::of(self.client.get(path).send().await.ok()?).await.json())
    }
}

/// The number of the node that each event belongs to, in the order of the nodes.
fn nodes_of(events: &[Envelope<Event>]) -> Vec<Option<usize>> {
    let mut state = RunState::new(events[0].run.unwrap());
    let (mut out, mut node) = (Vec::new(), None);
    for event in events {
        match &event.body {
            Event::NodeStarted { node: name, .. } => node = NODES.iter().position(|known| known == name),
            Event::StepCompleted { step, .. } if state.steps[step].flow().is_some() => node = None,
            _ => {}
        }
        out.push(node);
        state.apply(&event.body).unwrap();
    }
    out
}

/// Kills a server before and after each event of the node at `at`, one server for each.
async fn kill_in(at: usize) {
    let calm = Lending::new();
    let document = calm.start(&[]).lend().await.unwrap();
    assert_eq!(document["status"], "completed", "{document:#}");
    let events = calm.events().await;
    let nodes = nodes_of(&events);
    let mut places = BTreeSet::new();
    for (number, event) in events.iter().enumerate().filter(|(number, _)| nodes[*number] == Some(at)) {
        let name = event.body.name();
        let before = events[..number].iter().filter(|earlier| earlier.body.name() == name).count();
        places.extend([("before", name, before), ("after", name, before)]);
    }
    assert!(places.len() >= 4, "{places:?}");
    for (when, name, skipped) in places {
        kill_at((when, name, skipped), &format!("{} killed {when} {name}", NODES[at])).await;
    }
}

/// Kills a server before or after the nth event of a name, and has another one end the run.
async fn kill_at((when, name, skipped): (&str, &str, usize), place: &str) {
    let lending = Lending::new();
    let env = [("CRASH_POINT_AT", format!("{when}:{name}")), ("CRASH_POINT_SKIP", skipped.to_string())];
    let server = lending.start(&env);
    let died = server.lend().await.is_none();
    assert!(died, "the server was not killed {when} {name} ({skipped})");
    assert_eq!(server.process.end().status, -1);
    let cut = lending.events().await;
    let document = lending.start(&[]).lend().await.unwrap();
    assert_eq!(document["status"], "completed", "{place}: {document:#}");
    let events = lending.events().await;
    assert!(events.len() > cut.len(), "{place}");
    check(&lending, &events, &cut, place);
    for once in ["path_recalled", "path_observed"] {
        let times = events.iter().filter(|event| event.body.name() == once).count();
        assert_eq!(times, 1, "{place}: {once}");
    }
}

/// Each node was entered once and has one outcome, and what was done before the kill was not done again.
fn check(lending: &Lending, events: &[Envelope<Event>], cut: &[Envelope<Event>], place: &str) {
    let entered: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.body {
            Event::NodeStarted { node, .. } => Some(node.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(entered, NODES, "{place}");
    let count = |is: &dyn Fn(&Event) -> bool| events.iter().filter(|event| is(&event.body)).count();
    assert_eq!(count(&|event| matches!(event, Event::NodeReplied { .. })), 1, "{place}");
    assert_eq!(count(&|event| matches!(event, Event::FlowPlanned { .. })), 1, "{place}");
    assert_eq!(count(&|event| matches!(event, Event::Prepared { .. })), 4, "{place}");
    let is_decided =
        |event: &Event| matches!(event, Event::Decided { matter: ApprovalSubject::Call { .. }, .. });
    assert_eq!(count(&is_decided), 1, "{place}");
    let completed = |event: &Event| matches!(event, Event::ToolCompleted { outcome: Outcome::Ok { .. }, .. });
    assert_eq!(count(&completed), 4, "{place}");
    // What the journal has as under way is done again; nothing else is.
    let open = |name: &str, end: &str| {
        let times = |name: &str| cut.iter().filter(|event| event.body.name() == name).count();
        times(name) - times(end)
    };
    let started = count(&|event| matches!(event, Event::ToolStarted { .. }));
    assert_eq!(started, 4 + open("tool_started", "tool_completed"), "{place}");
    // What a read or a model returned may be lost with the process, before it was on disk.
    let asked = lending.llm.requests().iter().filter(|r| forced_tool(r) == Some("ReportNode")).count();
    assert!(asked <= 2, "{place}: the node's model was asked {asked} times");
    let reached = lending.backend.take_requests();
    let of = |place: &str| reached.iter().filter(|call| call.place == place).collect::<Vec<_>>();
    assert!(of("GET /Look").len() <= 2, "{place}: {reached:#?}");
    let keys: BTreeSet<_> = of("POST /Reserve").iter().map(|call| call.idempotency_key.clone()).collect();
    assert_eq!(keys.len(), 1, "{place}: {keys:?}");
    let writes = of("POST /Reserve").len();
    assert!(writes <= 1 + open("tool_started", "tool_completed"), "{place}: {writes} writes");
    journal::assert_replayed(events[0].run.unwrap(), events, &lending.catalogue());
}

#[tokio::test]
async fn kill_in_a_node_with_a_model() {
    kill_in(0).await;
}

#[tokio::test]
async fn kill_in_a_node_with_a_function() {
    kill_in(1).await;
}

#[tokio::test]
async fn kill_in_a_node_that_is_a_condition() {
    kill_in(2).await;
}

#[tokio::test]
async fn kill_in_a_node_that_reads_with_a_tool() {
    kill_in(3).await;
}

#[tokio::test]
async fn kill_in_a_node_that_asks_the_user() {
    kill_in(4).await;
}

#[tokio::test]
async fn kill_in_a_node_that_writes_with_a_tool() {
    kill_in(5).await;
}

#[tokio::test]
async fn kill_where_a_path_is_looked_up_and_where_it_is_learned() {
    for (when, name) in [("before", "path_recalled"), ("after", "path_recalled"), ("before", "path_observed")]
    {
        kill_at((when, name, 0), &format!("killed {when} {name}")).await;
    }
}
