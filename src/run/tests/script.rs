//! Scripted runs, event by event: after each event its changes, the whole state, and the due actions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::approvers;
use super::generators;
use super::sim::{asked, new_run, queued, started};
use super::state_view;
use crate::plan::{Plan, Step};
use crate::planner;
use crate::run::{
    Action, CallStatus, Decision, Effect, Event, Fault, FaultClass, Outcome, PlanMade, PlanMaker, Repeat,
    Reply, RequestedCall, RunState, Settings, Subject, Undo, Usage, Verdict, call_key,
};

/// Parts of the state that never change once set. The story shows each of them once, and asserts that no
/// event changes them.
const FROZEN: [&str; 2] = ["queued", "started"];

/// A call of a tool: its name, effect and repetition, and the number in its arguments.
pub type ScriptedCall = (&'static str, Effect, Repeat, u32);

pub const LOOK: ScriptedCall = ("look", Effect::Read, Repeat::Never, 1);
pub const LOOK_ELSEWHERE: ScriptedCall = ("look", Effect::Read, Repeat::Never, 2);
pub const BOOK: ScriptedCall = ("book", Effect::Write, Repeat::Never, 1);
pub const PAY: ScriptedCall = ("pay", Effect::Write, Repeat::Key, 1);

pub struct Script {
    pub state: RunState,
    /// Whether new plans need approval.
    pub asks_plans: bool,
    /// Whether writes need approval.
    pub asks_calls: bool,
    events: usize,
    story: String,
    brief: String,
}

/// An outage of a back end.
pub fn unavailable() -> Outcome {
    Outcome::Failed { error: Fault::new("http.status", "503").classed(FaultClass::Unavailable) }
}

impl Script {
    /// A started run whose first plan is being requested.
    pub fn new(settings: Settings) -> Self {
        Self::of(queued(false), settings)
    }

    /// The same for another kind of request.
    pub fn of(queued: Event, settings: Settings) -> Self {
        let state = new_run();
        let mut script = Self {
            state,
            asks_plans: false,
            asks_calls: false,
            events: 0,
            story: String::new(),
            brief: String::new(),
        };
        script.record(queued);
        script.record(started(&settings));
        script.settle();
        script
    }

    /// Folds `event` and records the resulting state.
    pub fn record(&mut self, event: Event) {
        let before = serde_json::to_value(&self.state).unwrap();
        self.state.apply(&event).unwrap();
        let mut after = serde_json::to_value(&self.state).unwrap();
        let mut changed = Vec::new();
        differences("", &before, &after, &mut changed);
        self.events += 1;
        let mut event = serde_json::to_value(&event).unwrap();
        let name = event.as_object_mut().unwrap().remove("type").unwrap();
        if self.events > 1 {
            self.story.push('\n');
        }
        self.story.push_str(&format!("=== event {:02} {}\n", self.events, name.as_str().unwrap()));
        state_view::part("told", &event, 0, &mut self.story);
        state_view::part("changed", &json!(changed), 0, &mut self.story);
        for part in FROZEN.iter().filter(|part| !before[**part].is_null()) {
            assert_eq!(before[*part], after[*part], "event {} changed what was frozen", self.events);
            after[*part] = json!("as it was frozen");
        }
        self.story.push_str("state:\n");
        state_view::parts(&after, 2, &mut self.story);
        let mut next: Vec<Value> = Vec::new();
        for action in self.state.next().to_vec() {
            let mut shown = serde_json::to_value(&action).unwrap();
            shown["id"] = action.id().into();
            next.push(shown);
        }
        state_view::part("next", &json!(next), 0, &mut self.story);
        state_view::part(
            &format!("{:02} {}", self.events, name.as_str().unwrap()),
            &event,
            0,
            &mut self.brief,
        );
        let ids: Vec<String> = self.state.next().iter().map(Action::id).collect();
        let stands = format!("run {}, plan {}", word(&after["status"]), word(&after["plan_status"]));
        self.brief.push_str(&format!("   {stands}; next: [{}]\n", ids.join(", ")));
    }

    /// Performs everything that needs no external input: records, questions, calls.
    pub fn settle(&mut self) {
        loop {
            let event = match self.state.next().iter().find(|a| !matches!(a, Action::Read { .. })).cloned() {
                Some(Action::Record { event }) => event,
                Some(Action::Call { call, attempt }) => Event::ToolStarted { call, attempt },
                Some(ask @ Action::Ask { .. }) => asked(&ask),
                Some(Action::Substitute { call }) => {
                    planner::substitute(&self.state, approvers::catalogue(false), call)
                }
                _ => return,
            };
            self.record(event);
        }
    }

    /// The question about `subject` that is in flight.
    pub fn question(&self, subject: Subject) -> u32 {
        let flying =
            |a: &crate::run::Ask| a.subject == subject && a.status == crate::run::AskStatus::InFlight;
        *self.state.asks.iter().rev().find(|(_, a)| flying(a)).unwrap().0
    }

    /// A reply to the question about `subject` arrives.
    pub fn reply(&mut self, subject: Subject) -> u32 {
        let call = self.question(subject);
        let usage =
            Usage { calls: 1, input_tokens: 100, output_tokens: 10, cost_nano_usd: 5, ..Usage::default() };
        self.record(Event::ModelReplied {
            call,
            reply: Reply::default(),
            usage,
            millis: 20,
            attempts: vec![],
        });
        call
    }

    /// The plan arrives: steps as (scene, dependencies).
    pub fn plan(&mut self, maker: PlanMaker, steps: &[(&str, &[u32])]) {
        self.reply(Subject::Plan { version: self.state.plans.len() as u32 + 1 });
        let version = self.state.plans.len() as u32 + 1;
        let changes = self.state.planning.as_ref().is_some_and(|p| p.feedback.is_some());
        let first = self.state.last_fixed_step(changes) + 1;
        let steps = steps.iter().zip(first..).map(|((scene, depends), number)| Step {
            step_number: number,
            scene_name: (*scene).to_owned(),
            purpose: "something".to_owned(),
            depends_on_step: depends.iter().copied().collect(),
            ..Step::default()
        });
        let plan = Plan {
            needs_execution: true,
            reasoning: String::new(),
            steps: steps.collect(),
            ..Plan::default()
        };
        let approval = self.asks_plans.then(|| generators::needed(&format!("plan {version}")));
        let made = PlanMade { approval, ..generators::made(&self.state, plan, maker) };
        self.record(if made.version == 1 { Event::PlanCreated(made) } else { Event::Replanned(made) });
        self.settle();
    }

    /// A scene's model requests tool calls, each with one argument.
    pub fn reply_with_calls(&mut self, step: u32, tools: &[(&str, Effect, Repeat, u32)]) {
        let call = self.reply(Subject::Scene { step });
        let scene = self.state.steps[&step].step.scene_name.clone();
        let first = self.state.next_call();
        let calls = tools.iter().zip(first..).map(|((tool, effect, repeat, n), call)| {
            let arguments = json!({ "n": n });
            RequestedCall {
                provider_id: format!("call_{call}"),
                repeat: *repeat,
                approval: self.needs_yes(*effect).then(|| generators::needed(&format!("call {call}"))),
                undo: self.is_undoable(*effect).then(undo),
                ..RequestedCall::new(call, *tool, call_key(&scene, tool, &arguments, &[]), arguments, *effect)
            }
        });
        let (text, calls) = (String::new(), calls.collect());
        self.record(Event::SceneReplied { step, call, text, calls, question: None, next: None });
        self.settle();
    }

    /// A scene's model ends the step, or asks the user.
    pub fn reply_with_end(&mut self, step: u32, text: &str, asks: bool) {
        let call = self.reply(Subject::Scene { step });
        let question = asks.then(generators::question);
        self.record(Event::SceneReplied {
            step,
            call,
            text: text.to_owned(),
            calls: Vec::new(),
            question,
            next: None,
        });
        self.settle();
    }

    pub fn done(&mut self, call: u32, result: Value) {
        self.outcome(call, Outcome::Ok { result, say: None, whole: None });
    }

    pub fn outcome(&mut self, call: u32, outcome: Outcome) {
        self.record(Event::ToolCompleted { call, outcome, millis: 3, notes: None });
        self.settle();
    }

    pub fn check(&mut self, more: Option<&str>, can_answer: bool, answer: Option<&str>) {
        let round = self.state.rounds();
        self.reply(Subject::Continuation { round });
        let verdict = Verdict {
            should_continue: more.is_some(),
            can_answer_now: can_answer,
            reasoning: String::new(),
            missing_information: more.map(str::to_owned),
            answer: answer.map(str::to_owned),
        };
        self.record(Event::Continuation { round, verdict, degraded: false });
        self.settle();
    }

    fn needs_yes(&self, effect: Effect) -> bool {
        self.asks_calls && effect == Effect::Write
    }

    fn is_undoable(&self, effect: Effect) -> bool {
        self.state.settings().compensate && effect == Effect::Write
    }

    /// The answer's text arrives.
    pub fn answer(&mut self, text: &str) {
        self.reply(Subject::Answer);
        self.record(Event::Answered { text: text.to_owned(), degraded: false, error: None });
        self.settle();
    }

    /// A person decides, and everything that follows automatically.
    pub fn decide(&mut self, approval: u32, decision: Decision, by: &str) {
        let matter = self.state.approvals[&approval].matter;
        let by = by.to_owned();
        self.record(Event::Decided { approval, matter, decision, by, note: None, word: None });
        self.settle();
    }

    /// A person asks for a change of the plan.
    pub fn modify(&mut self, words: &str) {
        let version = self.state.plans.len() as u32 + 1;
        self.record(Event::ModificationAsked { version, by: "hockney".to_owned(), words: words.to_owned() });
        self.settle();
    }

    /// A person resumes the ended run.
    pub fn reopen(&mut self) {
        self.record(Event::RunReopened { by: "hockney".to_owned() });
        self.settle();
    }

    pub fn cancel(&mut self, deadline: bool) {
        self.record(Event::CancelRequested { by: "keysersoze".to_owned(), deadline, note: None });
        self.settle();
    }

    /// The process crashes, and another takes the run over.
    pub fn crash(&mut self) {
        self.record(Event::RunResumed { epoch: self.state.epoch + 1, restart: false, catalogue: None });
        self.settle();
    }

    /// The tools that were started, in order.
    pub fn begun(&self) -> Vec<String> {
        let begun = self.state.calls.values().filter(|call| call.attempts > 0);
        begun.map(|call| format!("{} {}", call.requested.tool, call.requested.arguments)).collect()
    }

    /// The whole story, for a snapshot.
    pub fn story(self) -> String {
        self.story
    }

    /// The events, and the statuses of run and plan after each.
    pub fn summary(self) -> String {
        self.brief
    }

    /// The code with which a call was refused, if it was.
    pub fn refusal(&self, call: u32) -> Option<&str> {
        match &self.state.calls[&call].status {
            CallStatus::Done { outcome: Outcome::Refused { error } } => Some(error.code.as_str()),
            _ => None,
        }
    }

    /// How many questions consultations have asked.
    pub fn consultation_questions(&self) -> usize {
        self.state.asks.values().filter(|ask| matches!(ask.subject, Subject::Consultation { .. })).count()
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The undo of the writes in these stories.
pub fn undo() -> Undo {
    Undo {
        tool: "unbook".to_owned(),
        arguments: BTreeMap::from([("id".to_owned(), json!("/result/id"))]),
        repeat: Repeat::Never,
        required: vec!["id".to_owned()],
        identity: Vec::new(),
    }
}

/// The differences, by JSON pointer.
fn differences(at: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let mut names: Vec<&String> =
                new.keys().chain(old.keys().filter(|n| !new.contains_key(*n))).collect();
            names.sort();
            for name in names {
                let at = format!("{at}/{name}");
                match (old.get(name), new.get(name)) {
                    (Some(was), Some(is)) => differences(&at, was, is, found),
                    _ => found.push(at),
                }
            }
        }
        _ if before != after => found.push(at.to_owned()),
        _ => {}
    }
}
