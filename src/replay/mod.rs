//! Replay: a stored run is folded with its recorded replies, outcomes, settings and clock, and at each
//! event today's code is asked what it would do there.
//!
//! **Invariant:** pure. Every event is judged in the state that the *recorded* events before it lead to,
//! so a difference is one by itself and not the consequence of an earlier one.
//!
//! What comes from outside (a request, a reply, an outcome, a wish to stop) is taken as it was. What the
//! machine decides has to be among what [`RunState::next`] offers: several branches of a plan go on side
//! by side, so the order within one offer is free. What a reply means is read again, and what a model is
//! asked is worded again.

mod lines;
mod origin;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use crate::llm::Request;
use crate::planner;
use crate::run::{Action, Envelope, Event, RunId, RunState, RunStatus, Subject};
use crate::scene::Catalogue;

pub use lines::{read, write};
use origin::{Origin, origin};

/// Most differences, and most wordings, that are kept; the others are counted.
const MOST: usize = 100;

/// What came of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// The run.
    pub run_id: RunId,
    /// Whether today's code decides everything as it was decided. Questions that are only worded
    /// otherwise do not count: what was replied to them is taken as it was.
    pub same: bool,
    /// Where the run stands.
    pub status: RunStatus,
    /// How many events it has.
    pub events: usize,
    /// How many of them each part of today's code was held against.
    pub held: Held,
    /// The catalogue of scenes; absent where the run never started.
    pub scenes: Option<Scenes>,
    /// Where today's code decides otherwise, in the order of the events; at most 100.
    pub differences: Vec<Difference>,
    /// Further differences that are not kept.
    pub more_differences: usize,
    /// Questions that are worded otherwise today, in the order of the events; at most 100.
    pub wordings: Vec<Wording>,
    /// Further wordings that are not kept.
    pub more_wordings: usize,
    /// What today's code would do next, where the run has not ended. Empty while it waits.
    pub due: Vec<Value>,
}

/// How many events were held against what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Decisions of the machine.
    pub decisions: usize,
    /// Questions to models.
    pub questions: usize,
    /// Replies, read again.
    pub replies: usize,
    /// Beginnings of tool calls.
    pub calls: usize,
    /// What came from outside, taken as it was.
    pub taken: usize,
}

/// The scenes that the run worked with, and those of today.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scenes {
    /// SHA-256 of the recorded catalogue, in hex.
    pub recorded: String,
    /// SHA-256 of today's catalogue, in hex.
    pub today: String,
    /// Whether they differ: prompts then do, and what a reply means may.
    pub changed: bool,
}

/// In what today's code differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It does something else, or nothing, at this point.
    Decision,
    /// It reads the same reply otherwise.
    Meaning,
    /// It would have done something more before it waited for this.
    Order,
}

/// A place where today's code decides otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The event's number in the journal.
    pub seq: u64,
    /// The event's name.
    pub event: String,
    /// In what it differs.
    pub kind: Kind,
    /// In words.
    pub why: String,
    /// The recorded event.
    pub recorded: Value,
    /// What today's code does there: the events that it records (with a `type`) and what it begins
    /// (with an `action`). Empty where it does nothing.
    pub today: Vec<Value>,
}

/// A question that is worded otherwise today. Of the recorded wording only the hash is known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wording {
    /// The event's number in the journal.
    pub seq: u64,
    /// The question's ordinal.
    pub call: u32,
    /// What it is about.
    pub subject: Subject,
    /// The recorded hash of the request, SHA-256 in hex.
    pub recorded: String,
    /// Today's.
    pub today: String,
    /// Today's request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
}

/// Replays a run from its first event on, as far as its journal goes.
pub fn replay(run: RunId, journal: &[Envelope<Event>], catalogue: &Catalogue) -> Replayed {
    let mut walk = Walk::new(run, catalogue);
    for envelope in journal {
        walk.event(envelope.seq, &envelope.body);
    }
    walk.end(journal.len())
}

struct Walk<'a> {
    catalogue: &'a Catalogue,
    state: RunState,
    held: Held,
    differences: Vec<Difference>,
    more_differences: usize,
    wordings: Vec<Wording>,
    more_wordings: usize,
    /// Actions that are due, were told as a difference, and were not recorded since.
    told: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    fn new(run: RunId, catalogue: &'a Catalogue) -> Self {
        Self {
            catalogue,
            state: RunState::new(run),
            held: Held::default(),
            differences: Vec::new(),
            more_differences: 0,
            wordings: Vec::new(),
            more_wordings: 0,
            told: BTreeSet::new(),
        }
    }

    fn event(&mut self, seq: u64, event: &Event) {
        let due = self.state.next();
        match origin(event, &self.state) {
            Origin::Outside { awaited } => {
                self.held.taken += 1;
                if awaited {
                    self.overdue(seq, event, &due);
                }
                if let Err(illegal) = self.state.check(event) {
                    self.differ(seq, event, Kind::Decision, illegal.to_string(), &[]);
                }
            }
            Origin::Start => {
                self.held.decisions += 1;
                self.offered(seq, event, &due, |action| *action == Action::Start);
            }
            Origin::Question { subject, attempt, fallback, prompt_hash } => {
                self.held.questions += 1;
                let same = |action: &Action| {
                    matches!(action, Action::Ask { subject: s, attempt: a, fallback: f, .. }
                        if (*s, *a, *f) == (subject, attempt, fallback))
                };
                if self.offered(seq, event, &due, same) {
                    self.worded(seq, event, subject, prompt_hash);
                }
            }
            Origin::Call { call, attempt } => {
                self.held.calls += 1;
                self.offered(seq, event, &due, |action| *action == Action::Call { call, attempt });
            }
            Origin::Machine => self.decided(seq, event, &due),
        }
        self.state.apply_checked(event);
    }

    /// An event that was decided here: by the machine, or by whoever reads replies.
    fn decided(&mut self, seq: u64, event: &Event, due: &[Action]) {
        let recorded = |action: &Action| matches!(action, Action::Record { event: e } if e == event);
        let reply = due.iter().find_map(|action| match action {
            Action::Read { call, subject } if tells_of(event, *call, *subject) => Some((*call, *subject)),
            _ => None,
        });
        let taken = due.iter().any(|action| matches!(action, Action::Take { .. }));
        if taken && let Event::PlanCreated(_) | Event::PlanningFailed { .. } = event {
            self.held.replies += 1;
            let today = stored(planner::given(&self.state, self.catalogue, 1));
            if today != *event {
                let why = "the plan that came with the request is taken otherwise".to_owned();
                self.differ(seq, event, Kind::Meaning, why, &[Action::Record { event: today }]);
            }
            return;
        }
        if let Event::Prepared { step, .. } = event
            && due.contains(&Action::Prepare { step: *step })
        {
            self.held.replies += 1;
            let today = stored(planner::prepared(&self.state, self.catalogue, *step));
            if today != *event {
                let why = format!("the calls of step {step} are prepared otherwise");
                self.differ(seq, event, Kind::Meaning, why, &[Action::Record { event: today }]);
            }
            return;
        }
        let Some((call, subject)) = reply.filter(|_| !due.iter().any(recorded)) else {
            self.held.decisions += 1;
            self.offered(seq, event, due, recorded);
            return;
        };
        self.held.replies += 1;
        let today = stored(planner::read(&self.state, self.catalogue, call, subject));
        if today == *event {
            return;
        }
        let why = match today.name() {
            name if name == event.name() => format!("the reply to question {call} is read otherwise"),
            name => format!("the reply to question {call} is read as {name}"),
        };
        self.differ(seq, event, Kind::Meaning, why, &[Action::Record { event: today }]);
    }

    /// Whether what was recorded is among what is due; told where it is not.
    fn offered(&mut self, seq: u64, event: &Event, due: &[Action], same: impl Fn(&Action) -> bool) -> bool {
        if let Some(action) = due.iter().find(|action| same(action)) {
            self.told.remove(&name(action));
            return true;
        }
        // What is about the same thing says most.
        let near: Vec<Action> = due.iter().filter(|action| is_near(action, event)).cloned().collect();
        let today = if near.is_empty() { due } else { &near };
        let why = match today {
            [] if self.state.status.is_terminal() => "the run has ended before".to_owned(),
            [] => "nothing is to be done here before something comes from outside".to_owned(),
            some => format!("{} is due here in its place", names(some)),
        };
        self.differ(seq, event, Kind::Decision, why, today);
        false
    }

    /// Everything that is due is done before anything is waited for.
    fn overdue(&mut self, seq: u64, event: &Event, due: &[Action]) {
        let mut left: Vec<Action> = due.iter().filter(|a| !self.told.contains(&name(a))).cloned().collect();
        // What questions under way have cost is waited for before a run ends.
        if matches!(event, Event::ModelReplied { .. } | Event::ModelFailed { .. }) {
            left.retain(|action| !matches!(action, Action::Record { event } if event.is_terminal()));
        }
        if !left.is_empty() {
            let why = format!("{} is due before this is waited for", names(&left));
            self.differ(seq, event, Kind::Order, why, &left);
        }
    }

    fn worded(&mut self, seq: u64, event: &Event, subject: Subject, recorded: &str) {
        let Event::ModelAsked { call, .. } = event else { return };
        let request = planner::request(&self.state, self.catalogue, subject);
        let today = planner::prompt_hash(&request);
        if today == recorded {
            return;
        }
        if self.wordings.len() == MOST {
            self.more_wordings += 1;
            return;
        }
        let recorded = recorded.to_owned();
        self.wordings.push(Wording { seq, call: *call, subject, recorded, today, request: Some(request) });
    }

    fn differ(&mut self, seq: u64, event: &Event, kind: Kind, why: String, today: &[Action]) {
        self.told.extend(today.iter().map(name));
        if self.differences.len() == MOST {
            self.more_differences += 1;
            return;
        }
        self.differences.push(Difference {
            seq,
            event: event.name().to_owned(),
            kind,
            why,
            recorded: json(event),
            today: today.iter().map(told).collect(),
        });
    }

    fn end(self, events: usize) -> Replayed {
        let scenes = self.state.started.as_ref().map(|started| {
            let today = self.catalogue.hash();
            Scenes { changed: started.catalogue != today, recorded: started.catalogue.clone(), today }
        });
        Replayed {
            run_id: self.state.run,
            same: self.differences.is_empty(),
            status: self.state.status,
            events,
            held: self.held,
            scenes,
            differences: self.differences,
            more_differences: self.more_differences,
            wordings: self.wordings,
            more_wordings: self.more_wordings,
            due: self.state.next().iter().map(told).collect(),
        }
    }
}

/// Whether `event` is what somebody made of the reply to question `call`.
fn tells_of(event: &Event, call: u32, subject: Subject) -> bool {
    match event {
        Event::SceneReplied { call: of, .. } | Event::ReplyRejected { call: of, .. } => *of == call,
        Event::PlanCreated(made) | Event::Replanned(made) => {
            subject == Subject::Plan { version: made.version }
        }
        Event::Continuation { round, .. } => subject == Subject::Continuation { round: *round },
        Event::Answered { .. } => subject == Subject::Answer,
        _ => false,
    }
}

/// Whether an action is about the same thing as an event that it does not lead to.
fn is_near(action: &Action, event: &Event) -> bool {
    match (action, event) {
        (Action::Record { event: today }, _) => today.key() == event.key(),
        (Action::Ask { subject, .. }, Event::ModelAsked { subject: of, .. }) => subject == of,
        (Action::Call { call, .. }, Event::ToolStarted { call: of, .. }) => call == of,
        _ => false,
    }
}

/// As it would be read back: what is compared are stored events.
fn stored(event: Event) -> Event {
    serde_json::to_value(&event).and_then(serde_json::from_value).unwrap_or(event)
}

/// The same for the same thing to be done, also when other questions were asked meanwhile.
fn name(action: &Action) -> String {
    match action {
        Action::Ask { subject, attempt, fallback, .. } => format!("ask/{subject:?}/{attempt}/{fallback}"),
        other => other.id(),
    }
}

/// As people read it: `step_started/2, a question about step 3`.
fn names(actions: &[Action]) -> String {
    let names: Vec<String> = actions.iter().map(in_words).collect();
    names.join(", ")
}

fn in_words(action: &Action) -> String {
    match action {
        Action::Start => "run_started".to_owned(),
        Action::Record { event } => match event.key().split_once('/') {
            Some((name, "0")) => name.to_owned(),
            _ => event.key(),
        },
        Action::Ask { subject, fallback, .. } => {
            let what = match subject {
                Subject::Plan { version } => format!("the question for plan {version}"),
                Subject::Scene { step } => format!("the question of step {step}"),
                Subject::Continuation { round } => format!("the question for check {round}"),
                Subject::Answer => "the question for the answer".to_owned(),
            };
            if *fallback { format!("{what} to the embedded rules") } else { what }
        }
        Action::Read { call, .. } => format!("reading the reply to question {call}"),
        Action::Take { version } => format!("taking the given plan {version}"),
        Action::Prepare { step } => format!("preparing the calls of step {step}"),
        Action::Call { call, attempt } => format!("attempt {attempt} of tool call {call}"),
    }
}

fn told(action: &Action) -> Value {
    match action {
        Action::Record { event } => json(event),
        other => json(other),
    }
}

/// Events and actions are plain data and can always be written.
fn json(data: &impl Serialize) -> Value {
    serde_json::to_value(data).unwrap_or_default()
}
