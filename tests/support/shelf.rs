//! A scene whose write waits at a gate, and a model that waits at another: tests hold a run at a chosen
//! place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::run::Effect;
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::model_script::ModelScript;
use super::{Gate, Scripted, ScriptedLlm, ServedEngine, Setup, forced_tool, section};

const SCRIPT: &str = r#"
"look": {steps: [{scene: Shelf, rounds: [[{Look: {item: lamp}}]]}]}
"wait": {steps: [{scene: Shelf, rounds: [[{Look: {item: lamp}}]]}]}
"put": {steps: [{scene: Shelf, rounds: [[{Put: {item: lamp}}]]}]}
"put at once": {steps: [{scene: Shelf, rounds: [[{Put: {item: book}}]]}]}
"hello": {says: "Good day."}
"what did I say?": {}
"fail": {steps: [{scene: Shelf, rounds: [[{Look: {item: lamp}}]]}]}
"#;

/// What a lamp is to be put on, and who asks.
#[derive(Deserialize, schemars::JsonSchema)]
struct Item {
    /// The thing.
    item: String,
}

/// | request | what happens |
/// | --- | --- |
/// | `look` | a read |
/// | `put at once` | a write |
/// | `put` | a write that has `started` and ends when `done` opens |
/// | `wait` | its model is `asked` and answers when `go` opens |
/// | `hello`, `what did I say?` | no scene |
/// | `fail` | every model call gets status 500 |
pub struct Shelf {
    pub llm: ScriptedLlm,
    pub started: Gate,
    pub done: Gate,
    pub asked: Gate,
    pub go: Gate,
    puts: Arc<AtomicUsize>,
}

impl Shelf {
    pub fn new() -> Self {
        let gates = [Gate::closed(), Gate::closed(), Gate::closed(), Gate::closed()];
        let [started, done, asked, go] = gates;
        let script = ModelScript::parse(SCRIPT);
        let (reached, wait) = (asked.clone(), go.clone());
        let llm = ScriptedLlm::start(move |request, _| match section(request, "request").as_deref() {
            Some("fail") => Scripted::status(500),
            Some("what did I say?")
                if forced_tool(request).is_none() && section(request, "conversation").is_none() =>
            {
                Scripted::Text("Nothing.".to_owned())
            }
            Some("wait") => {
                reached.open();
                script.reply(request).held(&wait)
            }
            _ => script.reply(request),
        });
        Self { llm, started, done, asked, go, puts: Arc::default() }
    }

    /// The number of writes to the shelf.
    pub fn puts(&self) -> usize {
        self.puts.load(Ordering::SeqCst)
    }

    /// A shelf, and a server for it with the usual setup.
    pub async fn serve() -> (Self, ServedEngine) {
        let shelf = Self::new();
        let served = ServedEngine::start(shelf.setup()).await;
        (shelf, served)
    }

    pub fn setup(&self) -> Setup {
        Setup::scripted(&self.llm).alone().set("llm.max_attempts", 1).scene(self.scene())
    }

    fn scene(&self) -> Scene {
        let (started, done, puts) = (self.started.clone(), self.done.clone(), self.puts.clone());
        let look =
            |item: Item, _: ToolContext| async move { Ok::<Value, ToolError>(json!({"item": item.item})) };
        let put = move |item: Item, _: ToolContext| {
            let (started, done, puts) = (started.clone(), done.clone(), puts.clone());
            async move {
                puts.fetch_add(1, Ordering::SeqCst);
                if item.item == "lamp" {
                    started.open();
                    done.wait_open().await;
                }
                Ok::<Value, ToolError>(json!({"item": item.item}))
            }
        };
        Scene::builder("Shelf")
            .description("Things on a shelf.")
            .instructions("Look at them, or put them there.")
            .tool(
                SceneTool::native("Look", "Looks at a thing.", Effect::Read, look)
                    .say("en", "The {{ item }} stands on the shelf."),
            )
            .tool(
                SceneTool::native("Put", "Puts a thing there.", Effect::Write, put)
                    .say("en", "The {{ item }} stands there now."),
            )
            .build()
            .unwrap()
    }
}
