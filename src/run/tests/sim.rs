//! A driver for invented worlds: performs what `next` asks for, completes what is under way in any
//! order, dies and comes back, and writes a journal that a second state is folded from.

use super::watch::Watch;
use super::words;
use super::world::{Dice, Style, World};
use crate::plan::{PlanStatus, StepStatus, TaskId};
use crate::run::{
    Action, AskStatus, CallStatus, Context, Event, Fault, Maker, Reply, RunId, RunQueued, RunStarted,
    RunState, Settings, Subject,
};

/// More events than any run within the bounds of [`super::world::settings`] can need.
const LIMIT: usize = 6000;

pub fn queued(plan_only: bool) -> Event {
    let task = TaskId(uuid::Uuid::from_u128(7));
    Event::RunQueued(RunQueued { plan_only, ..RunQueued::new("everything", "keysersoze", task) })
}

pub fn started(settings: &Settings) -> Event {
    Event::RunStarted(RunStarted {
        now: "2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap(),
        language: Some("it".to_owned()),
        settings: settings.clone(),
        catalogue: "c0ffee".to_owned(),
        context: Context::default(),
    })
}

pub fn new_run() -> RunState {
    RunState::new(RunId(uuid::Uuid::from_u128(1)))
}

/// What a process remembers of the things it has set going.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flight {
    Ask(u32),
    Call(u32),
}

pub struct Sim {
    pub world: World,
    pub dice: Dice,
    pub state: RunState,
    /// The fold of the journal as it was written, event by event.
    pub shadow: RunState,
    pub watch: Watch,
    pub flights: Vec<Flight>,
    pub events: Vec<Event>,
    stale: Vec<Action>,
    crashes: u32,
}

impl Sim {
    pub fn new(world: World) -> Self {
        let dice = Dice::new(&world);
        let watch = Watch::new(&world.settings);
        let (state, shadow) = (new_run(), new_run());
        let (flights, events, stale) = (Vec::new(), Vec::new(), Vec::new());
        Self { world, dice, state, shadow, watch, flights, events, stale, crashes: 0 }
    }

    /// A whole run, from the request to its end.
    pub fn run(world: World) -> Self {
        let mut sim = Self::new(world);
        sim.record(queued(sim.world.plan_only));
        sim.finish();
        sim
    }

    /// Carries the run on until it has ended.
    pub fn finish(&mut self) {
        while !self.state.status.is_terminal() {
            self.turn();
            assert!(self.events.len() < LIMIT, "the run does not end");
        }
        assert_eq!(self.state.next(), Vec::new(), "a run that has ended wants more");
        self.watch.at_end(&self.state);
    }

    /// Appends and applies; checks everything that must hold after any event.
    pub fn record(&mut self, event: Event) {
        assert_eq!(self.state.check(&event), Ok(()), "{event:?} in {:#?}", self.state);
        self.watch.before(&self.state, &event);
        let line = serde_json::to_string(&event).unwrap();
        self.state.apply(&event).unwrap();
        let back: Event = serde_json::from_str(&line).unwrap();
        self.shadow.apply(&back).unwrap();
        assert_eq!(self.shadow, self.state, "the journal tells another story after {line}");
        self.watch.after(&self.state);
        match &event {
            Event::ModelAsked { call, .. } => self.flights.push(Flight::Ask(*call)),
            Event::ToolStarted { call, .. } => self.flights.push(Flight::Call(*call)),
            _ => {}
        }
        self.events.push(event);
    }

    /// One move of the world.
    pub fn turn(&mut self) {
        let actions = self.asked();
        assert!(
            !actions.is_empty() || !self.flights.is_empty(),
            "nothing is under way and nothing is to be done: {:#?}",
            self.state
        );
        if self.dice.chance(self.world.stops, 64) {
            let deadline = self.dice.pick(2) == 1;
            return self.record(Event::CancelRequested { by: "somebody".to_owned(), deadline });
        }
        if self.crashes < self.world.crashes && self.dice.chance(1, 24) {
            return self.crash();
        }
        if actions.is_empty() || (!self.flights.is_empty() && self.dice.pick(2) == 1) {
            let flight = self.dice.pick(self.flights.len());
            return self.complete(flight);
        }
        match self.world.style {
            Style::First => self.perform(actions[0].clone()),
            Style::All => {
                let mut left = actions;
                while !left.is_empty() {
                    let action = left.remove(self.dice.pick(left.len()));
                    self.perform(action);
                }
            }
            Style::Stale => {
                self.stale.extend(actions);
                let action = self.stale.remove(self.dice.pick(self.stale.len()));
                if self.still_possible(&action) {
                    self.perform(action);
                } else {
                    let first = self.asked().remove(0);
                    self.perform(first);
                }
                let keep = self.stale.len().min(12);
                self.stale.truncate(keep);
            }
        }
    }

    /// `next`, held to what must always hold of it.
    pub fn asked(&self) -> Vec<Action> {
        let actions = self.state.next();
        assert_eq!(actions, self.state.next(), "next is not a function of the state");
        let ids: std::collections::BTreeSet<String> = actions.iter().map(Action::id).collect();
        assert_eq!(ids.len(), actions.len(), "two actions of one name in {actions:#?}");
        let mut keys = std::collections::BTreeSet::new();
        for action in &actions {
            if let Action::Call { call, .. } = action {
                let call = &self.state.calls[call];
                assert!(keys.insert(call.requested.key.clone()), "two equal calls at once in {actions:#?}");
            }
        }
        actions
    }

    fn still_possible(&self, action: &Action) -> bool {
        match action {
            Action::Start => {
                self.state.check(&started(&self.world.settings)).is_ok() && self.state.cancel.is_none()
            }
            Action::Record { event } => self.state.check(event).is_ok(),
            Action::Ask { .. } => self.state.check(&asked(action)).is_ok(),
            Action::Call { call, attempt } => {
                self.state.check(&Event::ToolStarted { call: *call, attempt: *attempt }).is_ok()
            }
            Action::Read { .. } | Action::Take { .. } => self.state.next().contains(action),
        }
    }

    pub fn perform(&mut self, action: Action) {
        match &action {
            Action::Start => self.record(started(&self.world.settings.clone())),
            Action::Record { event } => self.record(event.clone()),
            Action::Ask { .. } => self.record(asked(&action)),
            Action::Call { call, attempt } => {
                self.record(Event::ToolStarted { call: *call, attempt: *attempt })
            }
            Action::Take { version } => {
                let error = Fault::new("plan.none", "no plan came with it");
                self.record(Event::PlanningFailed { version: *version, error });
            }
            Action::Read { call, subject } => {
                let event = self.read(*call, *subject);
                self.record(event);
            }
        }
    }

    /// What a reply turns out to mean.
    fn read(&mut self, call: u32, subject: Subject) -> Event {
        let (trouble, stubborn) = (self.world.trouble, self.world.stubborn);
        if self.dice.chance(self.world.faults, 16) {
            return Event::ReplyRejected {
                call,
                problems: vec![crate::plan::Problem::new("plan.odd", "odd")],
            };
        }
        match subject {
            Subject::Plan { version } => {
                let fallback = self.state.asks[&call].fallback;
                let maker = if fallback { Maker::Fallback } else { Maker::Deterministic };
                let plan = words::plan(&mut self.dice, &self.state, self.world.settings.max_steps);
                let made = words::made(&self.state, plan, maker);
                if version == 1 { Event::PlanCreated(made) } else { Event::Replanned(made) }
            }
            Subject::Scene { step } if !self.state.steps[&step].decided && self.dice.chance(trouble, 32) => {
                let next = Some("write".to_owned());
                let (text, calls, question) = (String::new(), Vec::new(), None);
                Event::SceneReplied { step, call, text, calls, question, next }
            }
            Subject::Scene { step } => {
                let kind = self.dice.pick(8);
                let asks = self.dice.chance(trouble, 48);
                Event::SceneReplied {
                    step,
                    call,
                    text: if kind.is_multiple_of(2) { "done".to_owned() } else { " ".to_owned() },
                    calls: match kind {
                        0 => Vec::new(),
                        1 if trouble > 0 => Vec::new(),
                        _ => words::calls(&mut self.dice, &self.state, step, trouble),
                    },
                    question: asks.then(words::question),
                    next: None,
                }
            }
            Subject::Continuation { round } => Event::Continuation {
                round,
                verdict: words::verdict(&mut self.dice, stubborn),
                degraded: false,
            },
            Subject::Answer => Event::Answered { text: "answer".to_owned(), degraded: false },
        }
    }

    /// One of the things under way ends.
    fn complete(&mut self, flight: usize) {
        let trouble = self.world.trouble;
        let event = match self.flights.swap_remove(flight) {
            Flight::Ask(call) if self.dice.chance(self.world.faults, 24) => Event::ModelFailed {
                call,
                error: Fault::new("llm.down", "nobody is there"),
                usage: words::usage(&mut self.dice),
                millis: 1,
                attempts: vec![],
            },
            Flight::Ask(call) => Event::ModelReplied {
                call,
                reply: Reply { text: format!("reply {call}"), ..Reply::default() },
                usage: words::usage(&mut self.dice),
                millis: 1,
                attempts: vec![],
            },
            Flight::Call(call) => {
                Event::ToolCompleted { call, outcome: words::outcome(&mut self.dice, trouble), millis: 1 }
            }
        };
        self.record(event);
    }

    /// The process dies: what was under way is lost, and only the journal is left.
    pub fn crash(&mut self) {
        self.crashes += 1;
        self.flights.clear();
        self.stale.clear();
        let mut state = new_run();
        for event in &self.events {
            state.apply(event).unwrap();
        }
        assert_eq!(state, self.state, "a restart wakes up elsewhere");
        self.record(Event::RunResumed { epoch: self.state.epoch + 1 });
        assert!(self.state.asks.values().all(|a| a.status != AskStatus::InFlight));
        assert!(self.state.calls.values().all(|c| !matches!(c.status, CallStatus::InFlight { .. })));
    }

    /// The numbers of the steps by how they ended.
    pub fn steps(&self, status: StepStatus) -> Vec<u32> {
        self.state.steps.iter().filter(|(_, s)| s.status == status).map(|(n, _)| *n).collect()
    }

    pub fn plan_status(&self) -> PlanStatus {
        self.state.plan_status
    }
}

pub fn asked(action: &Action) -> Event {
    let Action::Ask { call, subject, attempt, fallback } = action else {
        panic!("not a question: {action:?}")
    };
    Event::ModelAsked {
        call: *call,
        subject: *subject,
        attempt: *attempt,
        fallback: *fallback,
        prompt_hash: format!("hash {call}"),
    }
}
