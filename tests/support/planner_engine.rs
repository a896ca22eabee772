//! A real engine with a scripted model server: a town with three small scenes whose tools log their calls,
//! and [`ModelRules`] that answer each kind of question by its own rule.
//!
//! ```ignore
//! let llm = ModelRules::of(plan(json!([step(1, "Library", &["FindBook"], json!(null))]))).start();
//! let town = Town::open(&llm, |_| {}).await;
//! let run = town.ask("Find Dune.").await;
//! assert_eq!(run.answer.status, RunStatus::Completed);
//! assert_eq!(town.log.names(), ["FindBook"]);
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use proscenium::run::{ConfirmPolicy, Effect, Event, PlanMade, SessionId, TenantId};
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, native};
use proscenium::{Answer, Config, Engine};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Barrier;

use super::{Scripted, ScriptedLlm, forced_tool, journal, section};

/// The default text of the check's answer.
pub const FROM_CHECK: &str = "All of it is done, says the check.";
/// The default text of the answer call.
pub const FROM_ANSWER: &str = "All of it is done, says the answer.";
/// The title for which `FindBook` waits until a second call of it has started.
pub const MEETING: &str = "Meeting";

/// The kind of question in a request to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuestionKind {
    Plan,
    Scene,
    Check,
    Answer,
    Recovery,
    Interpret,
    Decide,
    Adapt,
}

/// The kind of question in `request`.
pub fn question_kind(request: &Value) -> QuestionKind {
    match forced_tool(request) {
        Some("CreateExecutionPlan") => QuestionKind::Plan,
        Some("CheckContinuation") => QuestionKind::Check,
        Some("ChooseRecovery") => QuestionKind::Recovery,
        Some("InterpretData") => QuestionKind::Interpret,
        Some("MakeDecision") => QuestionKind::Decide,
        Some("AdaptPlan") => QuestionKind::Adapt,
        _ if section(request, "scene").is_some() => QuestionKind::Scene,
        _ => QuestionKind::Answer,
    }
}

/// The recorded requests of one kind, in order.
pub fn requests(llm: &ScriptedLlm, what: QuestionKind) -> Vec<Value> {
    llm.requests().into_iter().filter(|request| question_kind(request) == what).collect()
}

/// A plan with these steps.
pub fn plan(steps: Value) -> Value {
    let needed = steps.as_array().is_some_and(|steps| !steps.is_empty());
    json!({"needs_execution": needed, "reasoning": "scripted", "steps": steps})
}

/// The plan that looks a book up.
pub fn book_plan() -> Value {
    plan(json!([step(1, "Library", &["FindBook"], Value::Null)]))
}

/// A step of a plan.
pub fn step(number: u32, scene: &str, tools: &[&str], depends: Value) -> Value {
    json!({"step_number": number, "scene_name": scene, "purpose": format!("What {scene} is asked for."),
        "expected_tools": tools, "depends_on_step": depends})
}

/// A verdict that ends the run with [`FROM_CHECK`].
pub fn final_verdict() -> Value {
    json!({"should_continue": false, "can_answer_now": true, "reasoning": "scripted",
        "missing_information": null, "answer": FROM_CHECK})
}

/// A verdict that asks for more.
pub fn more(missing: &str) -> Value {
    json!({"should_continue": true, "can_answer_now": false, "reasoning": "scripted",
        "missing_information": missing, "answer": null})
}

/// Whether the history contains the result of a call: a scene's model may then phrase it.
pub fn has_results(request: &Value) -> bool {
    request["messages"].as_array().is_some_and(|all| all.iter().any(|message| message["role"] == "tool"))
}

/// The ids of what a consultation offers.
pub fn offered_options(request: &Value) -> Vec<String> {
    let lines = section(request, "options").unwrap_or_default();
    let parsed = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    parsed.map(|option| option["choice"].as_str().unwrap().to_owned()).collect()
}

/// The choice of this option.
pub fn choice(id: &str) -> Value {
    json!({"reason": "scripted", "choice": id})
}

/// The choice of the first option.
pub fn first_option(request: &Value) -> Value {
    choice(&offered_options(request)[0])
}

type Rule = Box<dyn Fn(&Value, usize) -> Scripted + Send + Sync>;

/// A rule for each kind of question. Each gets the request and the number of earlier requests of its kind.
pub struct ModelRules {
    plan: Rule,
    scene: Rule,
    check: Rule,
    answer: Rule,
    recovery: Rule,
    interpret: Rule,
    decide: Rule,
    adapt: Rule,
}

impl ModelRules {
    /// Rules with which everything succeeds: this plan, each step's first expected tool called once, and a
    /// satisfied check.
    pub fn of(plan: Value) -> Self {
        Self {
            plan: Box::new(move |request, _| Scripted::forced(request, plan.clone())),
            scene: Box::new(|request, _| {
                let expected = section(request, "expected_tools").unwrap_or_default();
                match expected.lines().next() {
                    Some(tool) if !has_results(request) => Scripted::call(tool, arguments_of(tool)),
                    _ => {
                        Scripted::Text(format!("{} is done.", section(request, "scene").unwrap_or_default()))
                    }
                }
            }),
            check: Box::new(|request, _| Scripted::forced(request, final_verdict())),
            answer: Box::new(|_, _| Scripted::Text(FROM_ANSWER.to_owned())),
            recovery: Box::new(|request, _| Scripted::forced(request, first_option(request))),
            decide: Box::new(|request, _| Scripted::forced(request, first_option(request))),
            interpret: Box::new(|request, _| {
                Scripted::forced(request, json!({"reason": "scripted", "mapping": []}))
            }),
            adapt: Box::new(|request, _| {
                let unchanged = json!({"reason": "scripted", "remove": [], "replace": [], "add": []});
                Scripted::forced(request, unchanged)
            }),
        }
    }

    pub fn plan(mut self, rule: impl Fn(&Value, usize) -> Scripted + Send + Sync + 'static) -> Self {
        self.plan = Box::new(rule);
        self
    }

    pub fn scene(mut self, rule: impl Fn(&Value, usize) -> Scripted + Send + Sync + 'static) -> Self {
        self.scene = Box::new(rule);
        self
    }

    pub fn check(mut self, rule: impl Fn(&Value, usize) -> Scripted + Send + Sync + 'static) -> Self {
        self.check = Box::new(rule);
        self
    }

    pub fn answer(mut self, rule: impl Fn(&Value, usize) -> Scripted + Send + Sync + 'static) -> Self {
        self.answer = Box::new(rule);
        self
    }

    pub fn recovery(mut self, rule: impl Fn(&Value, usize) -> Scripted + Send + Sync + 'static) -> Self {
        self.recovery = Box::new(rule);
        self
    }

    pub fn interpret(mut self, rule: impl Fn(&Value, usize) -> Scripted + Send + Sync + 'static) -> Self {
        self.interpret = Box::new(rule);
        self
    }

    pub fn decide(mut self, rule: impl Fn(&Value, usize) -> Scripted + Send + Sync + 'static) -> Self {
        self.decide = Box::new(rule);
        self
    }

    pub fn adapt(mut self, rule: impl Fn(&Value, usize) -> Scripted + Send + Sync + 'static) -> Self {
        self.adapt = Box::new(rule);
        self
    }

    /// The reply of the scene rule.
    pub fn scene_reply(&self, request: &Value, nth: usize) -> Scripted {
        (self.scene)(request, nth)
    }

    /// A server that applies the rules.
    pub fn start(self) -> ScriptedLlm {
        let counts: Mutex<BTreeMap<QuestionKind, usize>> = Mutex::default();
        ScriptedLlm::start(move |request, _| {
            let what = question_kind(request);
            let nth = {
                let mut counts = counts.lock().unwrap();
                let count = counts.entry(what).or_default();
                *count += 1;
                *count - 1
            };
            let rule = match what {
                QuestionKind::Plan => &self.plan,
                QuestionKind::Scene => &self.scene,
                QuestionKind::Check => &self.check,
                QuestionKind::Answer => &self.answer,
                QuestionKind::Recovery => &self.recovery,
                QuestionKind::Interpret => &self.interpret,
                QuestionKind::Decide => &self.decide,
                QuestionKind::Adapt => &self.adapt,
            };
            rule(request, nth)
        })
    }
}

/// Valid arguments for one of the town's tools.
pub fn arguments_of(tool: &str) -> Value {
    match tool {
        "FindBook" => json!({"title": "Dune"}),
        "ReserveBook" => json!({"title": "Dune", "days": 7}),
        "BookSpace" => json!({"day": "2026-05-05", "plate": "AB123CD"}),
        _ => json!({"day": "2026-05-05"}),
    }
}

/// A call with its arguments, or the end of one.
type LogEntry = (String, Option<Value>);

/// The tool calls in the order in which they started.
#[derive(Clone, Default)]
pub struct CallLog(Arc<Mutex<Vec<LogEntry>>>);

impl CallLog {
    pub fn begin(&self, tool: &str, arguments: &Value) {
        self.0.lock().unwrap().push((tool.to_owned(), Some(arguments.clone())));
    }

    pub fn end(&self, tool: &str) {
        self.0.lock().unwrap().push((tool.to_owned(), None));
    }

    /// Every call with its arguments.
    pub fn calls(&self) -> Vec<(String, Value)> {
        let log = self.0.lock().unwrap();
        log.iter().filter_map(|(tool, arguments)| Some((tool.clone(), arguments.clone()?))).collect()
    }

    /// The names of the tools that were called.
    pub fn names(&self) -> Vec<String> {
        self.calls().into_iter().map(|(tool, _)| tool).collect()
    }

    /// Starts and ends, such as `begin FindBook`.
    pub fn marks(&self) -> Vec<String> {
        let log = self.0.lock().unwrap();
        let mark = |(tool, arguments): &(String, Option<Value>)| match arguments {
            Some(_) => format!("begin {tool}"),
            None => format!("end {tool}"),
        };
        log.iter().map(mark).collect()
    }
}

/// The result of a request.
#[derive(Debug)]
pub struct AnsweredRun {
    pub answer: Answer,
    /// The run's journal.
    pub events: Vec<Event>,
}

impl AnsweredRun {
    /// The codes of the problems of each rejected reply.
    pub fn rejected(&self) -> Vec<Vec<&str>> {
        let rejected = self.events.iter().filter_map(|event| match event {
            Event::ReplyRejected { problems, .. } => Some(problems),
            _ => None,
        });
        rejected.map(|problems| problems.iter().map(|problem| problem.code.as_str()).collect()).collect()
    }

    /// The message of every problem of every rejected reply.
    pub fn problems(&self) -> Vec<&str> {
        let problems = self.events.iter().filter_map(|event| match event {
            Event::ReplyRejected { problems, .. } => Some(problems),
            _ => None,
        });
        problems.flatten().map(|problem| problem.message.as_str()).collect()
    }

    /// Every plan version.
    pub fn plans(&self) -> Vec<&PlanMade> {
        let made = self.events.iter().filter_map(|event| match event {
            Event::PlanCreated(made) | Event::Replanned(made) => Some(made),
            _ => None,
        });
        made.collect()
    }

    /// The names of the events.
    pub fn names(&self) -> Vec<&str> {
        self.events.iter().map(Event::name).collect()
    }

    /// Whether there is an event of that name.
    pub fn has(&self, name: &str) -> bool {
        self.names().contains(&name)
    }
}

/// An engine with the town's scenes.
pub struct Town {
    pub engine: Engine,
    pub log: CallLog,
    _dir: TempDir,
}

impl Town {
    /// An engine whose only model is `llm`, with the fallback off unless `configure` enables it.
    pub fn open(llm: &ScriptedLlm, configure: impl FnOnce(&mut Config)) -> impl Future<Output = Self> {
        let mut config = Config { llm: llm.options(), ..Config::default() };
        config.planning.fallback_enabled = false;
        // Scripted writes are not in the request.
        config.execution.confirm = ConfirmPolicy::Never;
        let log = CallLog::default();
        configure(&mut config);
        Self::with(config, scenes(&log), log)
    }

    /// An engine with other scenes, whose tools write to `log`.
    pub async fn with(mut config: Config, scenes: Vec<Scene>, log: CallLog) -> Self {
        let dir = tempfile::tempdir().unwrap();
        config.store.data_dir = dir.path().to_owned();
        config.execution.time_zone = "Europe/Rome".to_owned();
        config.execution.fixed_now = Some("2026-05-04T09:00:00+02:00".parse().unwrap());
        let builder = scenes.into_iter().fold(Engine::builder(config), |builder, scene| builder.scene(scene));
        Self { engine: builder.start().await.unwrap(), log, _dir: dir }
    }

    /// A request in a new conversation.
    pub async fn ask(&self, message: &str) -> AnsweredRun {
        self.ask_in(None, message).await
    }

    /// A request in a conversation.
    pub async fn ask_in(&self, session: Option<SessionId>, message: &str) -> AnsweredRun {
        let request = self.engine.request(message, session);
        let tenant = request.tenant.clone();
        let answer = self.engine.chat(request).await.unwrap();
        self.answered(&tenant, answer).await
    }

    /// A request whose answer is read as it is written.
    pub async fn ask_reading(&self, message: &str) -> AnsweredRun {
        let request = self.engine.request(message, None);
        let tenant = request.tenant.clone();
        let mut ticket = self.engine.submit(request).await.unwrap();
        let mut events = ticket.stream();
        while events.next().await.is_some() {}
        let answer = ticket.answer().await.unwrap();
        self.answered(&tenant, answer).await
    }

    async fn answered(&self, tenant: &TenantId, answer: Answer) -> AnsweredRun {
        let stored = self.engine.store().run_events(tenant, answer.run_id).await.unwrap();
        journal::assert_replayed(answer.run_id, &stored, &self.engine.catalogue());
        AnsweredRun { answer, events: stored.into_iter().map(|event| event.body).collect() }
    }
}

/// The town's scenes.
pub fn scenes(log: &CallLog) -> Vec<Scene> {
    let text = json!({"type": "string"});
    let day = json!({"type": "string", "format": "date", "description": "The day, YYYY-MM-DD"});
    let tool = |name: &'static str, about: &str, effect: Effect, properties: Value, result: Value| {
        let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
        let schema = json!({"type": "object", "required": required, "properties": properties});
        let (log, meeting) = (log.clone(), Arc::new(Barrier::new(2)));
        let work = native(move |arguments: Value, _: ToolContext| {
            let (log, meeting, result) = (log.clone(), meeting.clone(), result.clone());
            async move {
                log.begin(name, &arguments);
                if arguments["title"].as_str().is_some_and(|title| title.starts_with(MEETING)) {
                    meeting.wait().await;
                }
                tokio::task::yield_now().await;
                log.end(name);
                Ok(result)
            }
        });
        SceneTool::dynamic(name, about, effect, schema, work)
    };
    let library = Scene::builder("Library")
        .description("Finds and reserves books of the city library.")
        .instructions("Give the shelf of a book.")
        .example("Find the book Neuromancer", "FindBook")
        .example("On which shelf is the book Solaris?", "FindBook")
        .example("Reserve the book Solaris for 7 days", "ReserveBook")
        .tool(
            tool(
                "FindBook",
                "Finds a book by its title.",
                Effect::Read,
                json!({"title": text}),
                json!({"shelf": "B4"}),
            )
            .say("en", "The book {{ arguments.title }} is on shelf {{ shelf }}."),
        )
        .tool(tool(
            "ReserveBook",
            "Reserves a book for some days.",
            Effect::Write,
            json!({"title": text, "days": {"type": "integer"}}),
            json!({"reserved": true}),
        ));
    let parking = Scene::builder("Parking")
        .description("The company's car park: free parking spaces, and booking one.")
        .instructions("Give the number of the space.")
        .example("How many parking spaces are free tomorrow?", "FreeSpaces")
        .example("Book a parking space for tomorrow for the plate AB123CD", "BookSpace")
        .tool(
            tool(
                "FreeSpaces",
                "Counts the free parking spaces of a day.",
                Effect::Read,
                json!({"day": day}),
                json!({"free": 3}),
            )
            .say("en", "{{ free }} parking spaces are free."),
        )
        .tool(tool(
            "BookSpace",
            "Books a parking space for a day.",
            Effect::Write,
            json!({"day": day, "plate": text}),
            json!({"space": 17}),
        ));
    let canteen = Scene::builder("Canteen")
        .description("What the canteen cooks: the menu of a day.")
        .instructions("Give the dish.")
        .example("What is on the menu of the canteen tomorrow?", "Menu")
        .tool(
            tool(
                "Menu",
                "Tells the menu of a day.",
                Effect::Read,
                json!({"day": day}),
                json!({"dish": "risotto"}),
            )
            .say("en", "The canteen cooks {{ dish }}."),
        );
    [library, parking, canteen].map(|scene| scene.build().unwrap()).into()
}
