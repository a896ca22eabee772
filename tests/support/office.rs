//! An office whose tools call an external HTTP server, and a model that follows the words of a request: shows
//! the effect of people's decisions.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::model_script::ModelScript;
use super::{Backend, Scripted, ScriptedLlm, ServedEngine, Setup, forced_tool, section};

const SCRIPT: &str = r#"
"book": {steps: [{scene: Desk, rounds: [[{Book: {room: r1}}]]}]}
"prenota la sala per favore": {steps: [{scene: Desk, rounds: [[{Book: {room: r1}}]]}]}
"see": {steps: [{scene: Desk, rounds: [[{See: {room: r1}}]]}]}
"see and book": {steps: [
  {scene: Desk, rounds: [[{See: {room: r1}}]]},
  {scene: Desk, after: [1], rounds: [[{Book: {room: r1}}]]}]}
"pay": {steps: [{scene: Vault, rounds: [[{Pay: {amount: 5}}]]}]}
"pay and see": {steps: [
  {scene: Vault, rounds: [[{Pay: {amount: 5}}]]},
  {scene: Desk, rounds: [[{See: {room: r1}}]]}]}
"book and pay": {steps: [
  {scene: Desk, rounds: [[{Book: {room: r1}}]]},
  {scene: Vault, after: [1], rounds: [[{Pay: {amount: 5}}]]}]}
"book and then pay": {steps: [
  {scene: Desk, rounds: [[{Book: {room: r1}}]]},
  {scene: Vault, after: [1], unprepared: true, rounds: [[{Pay: {amount: 5}}]]}]}
"hello": {says: "Good day."}
"yes": {says: "Yes to what?"}
"#;

/// | request | what happens |
/// | --- | --- |
/// | `see` | a read |
/// | `book` | a write, which `Unbook` undoes |
/// | `see and book` | both, one after the other |
/// | `pay` | a write that needs approval with its arguments |
/// | `pay and see` | the same, and a read in parallel |
/// | `book and pay` | a write, then one that needs approval; while it is `broken`, the second step's model fails |
/// | `book and then pay` | the same, but the plan does not contain the payment |
/// | `hello`, `yes` | no scene |
///
/// The feedback `look first` adds a read before the booking; any other feedback cannot be used.
pub struct Office {
    pub backend: Backend,
    pub llm: ScriptedLlm,
    pub broken: Arc<AtomicBool>,
    /// While it is closed, payments wait at the external server.
    pub till: Till,
    scenes: TempDir,
}

/// Initially open. Clones share the till.
#[derive(Clone, Default)]
pub struct Till(Arc<(Mutex<bool>, Condvar)>);

impl Till {
    pub fn close(&self) {
        *self.0.0.lock().unwrap() = true;
    }

    pub fn open(&self) {
        *self.0.0.lock().unwrap() = false;
        self.0.1.notify_all();
    }

    /// Waits until it is open, with a timeout so that a failing test ends.
    fn wait_open(&self) {
        let closed = self.0.0.lock().unwrap();
        drop(self.0.1.wait_timeout_while(closed, Duration::from_secs(30), |closed| *closed).unwrap());
    }
}

impl Office {
    /// An office, and a server for it with the usual setup.
    pub async fn serve() -> (Self, ServedEngine) {
        let office = Self::open();
        let served = ServedEngine::start(office.setup()).await;
        (office, served)
    }

    pub fn open() -> Self {
        Self::open_with("/arguments/room", &json!({"done": "POST /Book"}))
    }

    /// With this reply to bookings, whose undo gets its room from this JSON pointer.
    pub fn open_with(undo_room: &str, booking: &Value) -> Self {
        let booking = booking.clone();
        let till = Till::default();
        let paid = till.clone();
        let backend = Backend::start(move |reached| {
            if reached.place == "POST /Pay" {
                paid.wait_open();
            }
            match reached.place.as_str() {
                "POST /Book" => booking.clone(),
                place => json!({ "done": place }),
            }
        });
        let broken = Arc::new(AtomicBool::new(false));
        let (script, out) = (ModelScript::parse(SCRIPT), broken.clone());
        let llm = ScriptedLlm::start(move |request, _| {
            let is_plan = forced_tool(request) == Some("CreateExecutionPlan");
            match section(request, "feedback").as_deref().filter(|_| is_plan) {
                Some("look first") => {
                    let mut plan: Value = serde_json::from_str(&section(request, "plan").unwrap()).unwrap();
                    plan["steps"][0]["expected_tools"] = json!(["See", "Book"]);
                    plan["steps"][0]["purpose"] = json!("Look at the room, then book it");
                    Scripted::forced(request, plan)
                }
                Some(_) => Scripted::status(500),
                None if out.load(Ordering::SeqCst)
                    && section(request, "scene").as_deref() == Some("Vault") =>
                {
                    Scripted::status(500)
                }
                None => script.reply(request),
            }
        });
        let office = Self { backend, llm, broken, till, scenes: tempfile::tempdir().unwrap() };
        office.write_scenes_with(office.scenes.path(), "Books a room.", undo_room);
        office
    }

    /// Writes the scenes into a directory; `book` is the description of the booking tool.
    pub fn write_scenes(&self, dir: &Path, book: &str) {
        self.write_scenes_with(dir, book, "/arguments/room");
    }

    fn write_scenes_with(&self, dir: &Path, book: &str, undo_room: &str) {
        let address = self.backend.address();
        let tool = |name: &str, about: &str, effect: &str, argument: &str, kind: &str, more: &str| {
            let method = if effect == "read" { "GET" } else { "POST" };
            format!(
                "[[tools]]\nname = \"{name}\"\ndescription = \"{about}\"\neffect = \"{effect}\"\n{more}\n\
                 parameters = {{ type = \"object\", required = [\"{argument}\"], properties = {{ {argument} = {{ type = \"{kind}\", description = \"Which\" }} }} }}\n\
                 http = {{ method = \"{method}\", url = \"{address}/{name}?{argument}={{{argument}}}\" }}\n"
            )
        };
        let head = |name: &str, about: &str| {
            format!("name = \"{name}\"\ndescription = \"{about}\"\ninstructions = \"Call the tools.\"\n")
        };
        let undo = format!("undo = {{ tool = \"Unbook\", arguments = {{ room = \"{undo_room}\" }} }}");
        let desk = [
            head("Desk", "Rooms of the office."),
            "examples = [{ say = \"Show room r1\", tool = \"See\" }]\n".to_owned(),
            tool("See", "Shows a room.", "read", "room", "string", ""),
            tool("Book", book, "write", "room", "string", &undo),
            tool("Unbook", "Gives a room back.", "write", "room", "string", ""),
        ];
        let vault = [
            head("Vault", "Payments of the office."),
            "examples = [{ say = \"Pay 5\", tool = \"Pay\" }]\n".to_owned(),
            tool("Pay", "Pays an amount.", "write", "amount", "integer", "approval = \"call\""),
        ];
        for (name, parts) in [("desk", desk.as_slice()), ("vault", vault.as_slice())] {
            fs::create_dir_all(dir.join(name)).unwrap();
            fs::write(dir.join(name).join("scene.toml"), parts.concat()).unwrap();
        }
    }

    /// Where its scenes are.
    pub fn scenes(&self) -> &Path {
        self.scenes.path()
    }

    pub fn setup(&self) -> Setup {
        Setup::scripted(&self.llm)
            .alone()
            .scenes(self.scenes.path())
            .set("scenes.allow_private_addresses", true)
            .set("llm.max_attempts", 1)
    }

    /// The requests that reached the external server since the last call, such as `POST /Book`.
    pub fn reached(&self) -> Vec<String> {
        self.backend.take_requests().into_iter().map(|reached| reached.place).collect()
    }
}
