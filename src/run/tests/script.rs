//! Named runs, told event by event: what each event changed in the state, and what was to be done
//! then. The whole state stands at the end.

use serde_json::{Map, Value, json};

use super::sim::{asked, new_run, queued, started};
use super::words;
use crate::plan::{Plan, Step};
use crate::run::{
    Action, Effect, Event, Maker, Outcome, Repeat, Reply, RequestedCall, RunState, Settings, Subject, Usage,
    Verdict, call_key,
};

pub struct Script {
    pub state: RunState,
    told: Vec<Value>,
}

impl Script {
    /// A run that has started, with its first plan asked for.
    pub fn new(settings: Settings) -> Self {
        let mut script = Self { state: new_run(), told: Vec::new() };
        script.tell(queued(false));
        script.tell(started(&settings));
        script.settle();
        script
    }

    /// Folds `event` and notes what it changed.
    pub fn tell(&mut self, event: Event) {
        let before = serde_json::to_value(&self.state).unwrap();
        self.state.apply(&event).unwrap();
        let after = serde_json::to_value(&self.state).unwrap();
        let mut changed = Map::new();
        differences("", &before, &after, &mut changed);
        changed.remove("/seq");
        let next: Vec<String> = self.state.next().iter().map(Action::id).collect();
        self.told.push(json!({ "event": event, "changed": changed, "next": next }));
    }

    /// Performs all that needs nobody's words: what the machine records, questions, calls.
    pub fn settle(&mut self) {
        loop {
            let event = match self.state.next().into_iter().find(|a| !matches!(a, Action::Read { .. })) {
                Some(Action::Record { event }) => event,
                Some(Action::Call { call, attempt }) => Event::ToolStarted { call, attempt },
                Some(ask @ Action::Ask { .. }) => asked(&ask),
                _ => return,
            };
            self.tell(event);
        }
    }

    /// The question about `subject` that is under way.
    pub fn question(&self, subject: Subject) -> u32 {
        let flying =
            |a: &crate::run::Ask| a.subject == subject && a.status == crate::run::AskStatus::InFlight;
        *self.state.asks.iter().find(|(_, a)| flying(a)).unwrap().0
    }

    /// A reply to the question about `subject` comes in.
    fn reply(&mut self, subject: Subject) -> u32 {
        let call = self.question(subject);
        let usage =
            Usage { calls: 1, input_tokens: 100, output_tokens: 10, cost_nano_usd: 5, ..Usage::default() };
        self.tell(Event::ModelReplied { call, reply: Reply::default(), usage, millis: 20, attempts: vec![] });
        call
    }

    /// The plan comes: steps as (scene, depends on).
    pub fn plan(&mut self, maker: Maker, steps: &[(&str, &[u32])]) {
        self.reply(Subject::Plan { version: self.state.plans.len() as u32 + 1 });
        let first = self.state.last_step() + 1;
        let steps = steps.iter().zip(first..).map(|((scene, depends), number)| Step {
            step_number: number,
            scene_name: (*scene).to_owned(),
            purpose: "something".to_owned(),
            expected_tools: Vec::new(),
            depends_on_step: depends.iter().copied().collect(),
        });
        let plan = Plan { needs_execution: true, reasoning: String::new(), steps: steps.collect() };
        let made = words::made(&self.state, plan, maker);
        self.tell(if made.version == 1 { Event::PlanCreated(made) } else { Event::Replanned(made) });
        self.settle();
    }

    /// A scene's model asks for calls of tools, each with one argument.
    pub fn calls(&mut self, step: u32, tools: &[(&str, Effect, Repeat, u32)]) {
        let call = self.reply(Subject::Scene { step });
        let scene = self.state.steps[&step].step.scene_name.clone();
        let first = self.state.next_call();
        let calls = tools.iter().zip(first..).map(|((tool, effect, repeat, n), call)| {
            let arguments = json!({ "n": n });
            RequestedCall {
                call,
                provider_id: format!("call_{call}"),
                tool: (*tool).to_owned(),
                key: call_key(&scene, tool, &arguments, &[]),
                arguments,
                effect: *effect,
                repeat: *repeat,
                problem: None,
            }
        });
        let (text, calls) = (String::new(), calls.collect());
        self.tell(Event::SceneReplied { step, call, text, calls, question: None });
        self.settle();
    }

    /// A scene's model says its last word, or asks the user.
    pub fn ends(&mut self, step: u32, text: &str, asks: bool) {
        let call = self.reply(Subject::Scene { step });
        let question = asks.then(words::question);
        self.tell(Event::SceneReplied { step, call, text: text.to_owned(), calls: Vec::new(), question });
        self.settle();
    }

    pub fn done(&mut self, call: u32, result: Value) {
        self.outcome(call, Outcome::Ok { result, say: None });
    }

    pub fn outcome(&mut self, call: u32, outcome: Outcome) {
        self.tell(Event::ToolCompleted { call, outcome, millis: 3 });
        self.settle();
    }

    pub fn check(&mut self, more: Option<&str>, can_answer: bool, answer: Option<&str>) {
        let round = self.state.plans.len() as u32;
        self.reply(Subject::Continuation { round });
        let verdict = Verdict {
            should_continue: more.is_some(),
            can_answer_now: can_answer,
            reasoning: String::new(),
            missing_information: more.map(str::to_owned),
            answer: answer.map(str::to_owned),
        };
        self.tell(Event::Continuation { round, verdict, degraded: false });
        self.settle();
    }

    /// The whole story, for a snapshot.
    pub fn story(self) -> Value {
        json!({ "events": self.told, "state": self.state })
    }
}

/// What differs, by JSON pointer: the new value, or null for what is gone.
fn differences(at: &str, before: &Value, after: &Value, found: &mut Map<String, Value>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in new {
                let at = format!("{at}/{name}");
                match old.get(name) {
                    Some(was) => differences(&at, was, value, found),
                    None => {
                        found.insert(at, value.clone());
                    }
                }
            }
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                found.insert(format!("{at}/{name}"), Value::Null);
            }
        }
        _ if before != after => {
            found.insert(at.to_owned(), after.clone());
        }
        _ => {}
    }
}
