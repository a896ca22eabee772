//! Replay: folds a stored run with its recorded replies, outcomes, settings and clock, and compares each
//! event with what the current code would do there.
//!
//! **Invariant:** pure. Every event is compared in the state that the *recorded* events before it lead to,
//! so a difference is never the consequence of an earlier one.
//!
//! External events (a request, a reply, an outcome, a cancellation) are taken as recorded. Decisions of the
//! state machine have to be among the actions of [`RunState::next`]; branches of a plan run in parallel, so
//! their order is free. Replies are read again, and prompts are built again.

mod equality;
mod lines;
mod origin;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::adapt::ConsultationKind;
use crate::llm::{Request, RequestDigest};
use crate::planner;
use crate::run::{Action, Envelope, Event, Origin, RunId, RunState, RunStatus, Subject};
use crate::scene::Catalogue;

use equality::is_same;
pub use lines::{read, write};
use origin::origin;

/// Maximum number of differences, and of prompt differences, that are kept; further ones are only counted.
const MAX_DIFFERENCES: usize = 100;

/// The report of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayReport {
    /// The run.
    pub run_id: RunId,
    /// Whether the current code decides everything as recorded. Prompt differences do not count, since the
    /// recorded replies are used.
    pub same: bool,
    /// The run's status.
    pub status: RunStatus,
    /// The number of events.
    pub events: usize,
    /// How many events were compared, by kind.
    pub held: ComparedCounts,
    /// The catalogues of scenes; absent if the run never started.
    pub scenes: Option<CatalogueComparison>,
    /// Where the current code decides differently, in the order of the events; at most 100.
    pub differences: Vec<ReplayDifference>,
    /// Further differences that are not kept.
    pub more_differences: usize,
    /// Questions whose prompts differ today, in the order of the events; at most 100.
    pub wordings: Vec<PromptDifference>,
    /// Further prompt differences that are not kept.
    pub more_wordings: usize,
    /// What the current code would do next, if the run has not ended. Empty while it waits.
    pub due: Vec<Value>,
}

/// How many events were compared, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ComparedCounts {
    /// Decisions of the state machine.
    pub decisions: usize,
    /// Questions to models.
    pub questions: usize,
    /// Replies that were read again.
    pub replies: usize,
    /// Starts of tool calls.
    pub calls: usize,
    /// External events, taken as recorded.
    pub taken: usize,
}

/// The recorded and the current catalogue of scenes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CatalogueComparison {
    /// SHA-256 of the recorded catalogue, in hex.
    pub recorded: String,
    /// SHA-256 of the current catalogue, in hex.
    pub today: String,
    /// Whether they differ: then prompts differ too, and replies may be read differently.
    pub changed: bool,
}

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DifferenceKind {
    /// The current code does something else, or nothing.
    Decision,
    /// It reads the same reply differently.
    Meaning,
    /// It would have done something else before waiting for this event.
    Order,
}

/// An event at which the current code decides differently.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayDifference {
    /// The event's sequence number in the journal.
    pub seq: u64,
    /// The event's name.
    pub event: String,
    /// The kind of difference.
    pub kind: DifferenceKind,
    /// A description for people.
    pub why: String,
    /// The recorded event.
    pub recorded: Value,
    /// What the current code does there: the events that it records (with a `type`) and the actions that it
    /// begins (with an `action`). Empty if it does nothing.
    pub today: Vec<Value>,
}

/// A question whose prompt differs today. Only the hash of the recorded prompt is known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromptDifference {
    /// The event's sequence number in the journal.
    pub seq: u64,
    /// The question's ordinal.
    pub call: u32,
    /// Its subject.
    pub subject: Subject,
    /// The recorded hash of the request, SHA-256 in hex.
    pub recorded: String,
    /// The current hash.
    pub today: String,
    /// The current request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
}

/// Replays a run from its first to its last recorded event.
pub fn replay(run: RunId, journal: &[Envelope<Event>], catalogue: &Catalogue) -> ReplayReport {
    let mut walk = ReplayWalk::new(run, catalogue);
    for envelope in journal {
        walk.event(envelope.seq, envelope.at, &envelope.body);
    }
    walk.finish(journal.len())
}

struct ReplayWalk<'a> {
    catalogue: &'a Catalogue,
    state: RunState,
    held: ComparedCounts,
    differences: Vec<ReplayDifference>,
    more_differences: usize,
    wordings: Vec<PromptDifference>,
    more_wordings: usize,
    /// Due actions that were reported as a difference and not recorded since.
    reported: BTreeSet<String>,
}

impl<'a> ReplayWalk<'a> {
    fn new(run: RunId, catalogue: &'a Catalogue) -> Self {
        Self {
            catalogue,
            state: RunState::new(run),
            held: ComparedCounts::default(),
            differences: Vec::new(),
            more_differences: 0,
            wordings: Vec::new(),
            more_wordings: 0,
            reported: BTreeSet::new(),
        }
    }

    fn event(&mut self, seq: u64, at: Timestamp, event: &Event) {
        let due = self.state.next().to_vec();
        match origin(event, &self.state) {
            Origin::Outside { awaited } => {
                self.held.taken += 1;
                if awaited {
                    self.check_overdue(seq, event, &due);
                }
                if let Err(illegal) = self.state.check(event) {
                    self.add_difference(seq, event, DifferenceKind::Decision, illegal.to_string(), &[]);
                }
            }
            Origin::Start => {
                self.held.decisions += 1;
                self.check_offered(seq, event, &due, |action| *action == Action::Start);
            }
            Origin::Question { subject, attempt, fallback, prompt_hash } => {
                self.held.questions += 1;
                let same = |action: &Action| {
                    matches!(action, Action::Ask { subject: s, attempt: a, fallback: f, .. }
                        if (*s, *a, *f) == (subject, attempt, fallback))
                };
                if self.check_offered(seq, event, &due, same) {
                    self.compare_prompt(seq, event, subject, prompt_hash);
                }
            }
            Origin::Call { call, attempt } => {
                self.held.calls += 1;
                self.check_offered(seq, event, &due, |action| *action == Action::Call { call, attempt });
            }
            Origin::Machine
            | Origin::QuestionFailure { .. }
            | Origin::CallEnd { .. }
            | Origin::OutcomeQuestion { .. }
            | Origin::RunFailure { .. } => self.compare_decision(seq, event, &due),
        }
        self.state.apply_checked(event, at);
    }

    /// Compares an event that the planner makes from the state alone with what it makes today; `why` says how it differs.
    fn compare_made(&mut self, seq: u64, event: &Event, today: Event, why: String) {
        self.held.replies += 1;
        let today = as_stored(today);
        if !is_same(event, &today) {
            self.add_difference(seq, event, DifferenceKind::Meaning, why, &[Action::Record { event: today }]);
        }
    }

    /// Compares an event that was decided here: by the state machine, or by reading a reply.
    fn compare_decision(&mut self, seq: u64, event: &Event, due: &[Action]) {
        let recorded = |action: &Action| matches!(action, Action::Record { event: e } if is_same(event, e));
        let reply = due.iter().find_map(|action| match action {
            Action::Read { call, subject } if is_reading_of(event, *call, *subject) => {
                Some((*call, *subject))
            }
            _ => None,
        });
        let taken = due.iter().any(|action| matches!(action, Action::Take { .. }));
        if taken && let Event::PlanCreated(_) | Event::PlanningFailed { .. } = event {
            let today = planner::supplied_plan(&self.state, self.catalogue, 1);
            let why = "the plan supplied with the request is validated differently".to_owned();
            return self.compare_made(seq, event, today, why);
        }
        if let Event::Prepared { step, .. } = event
            && due.contains(&Action::Prepare { step: *step })
        {
            let today = planner::prepared(&self.state, self.catalogue, *step);
            let why = format!("the calls of step {step} are prepared differently");
            return self.compare_made(seq, event, today, why);
        }
        if let Event::Adapted { change } = event
            && due.contains(&Action::Substitute { call: change.call() })
        {
            let today = planner::substitute(&self.state, self.catalogue, change.call());
            let why = format!("another call takes the place of call {}", change.call());
            return self.compare_made(seq, event, today, why);
        }
        if let Event::Adapted { change } = event
            && due.contains(&Action::Interpret { call: change.call() })
        {
            let today = planner::interpreted(&self.state, self.catalogue, change.call());
            let why = format!("the data of call {} is mapped to another result", change.call());
            return self.compare_made(seq, event, today, why);
        }
        let Some((call, subject)) = reply.filter(|_| !due.iter().any(recorded)) else {
            self.held.decisions += 1;
            self.check_offered(seq, event, due, recorded);
            return;
        };
        self.held.replies += 1;
        if matches!(subject, Subject::Summary { .. }) {
            return;
        }
        let today = as_stored(planner::read(&self.state, self.catalogue, call, subject));
        if is_same(event, &today) {
            return;
        }
        let why = match today.name() {
            name if name == event.name() => format!("the reply to question {call} is read differently"),
            name => format!("the reply to question {call} is read as {name}"),
        };
        self.add_difference(seq, event, DifferenceKind::Meaning, why, &[Action::Record { event: today }]);
    }

    /// Whether the recorded event is among the due actions; reports a difference if not.
    fn check_offered(
        &mut self,
        seq: u64,
        event: &Event,
        due: &[Action],
        same: impl Fn(&Action) -> bool,
    ) -> bool {
        if let Some(action) = due.iter().find(|action| same(action)) {
            self.reported.remove(&action_identity(action));
            return true;
        }
        // Actions with the same subject explain the difference best.
        let near: Vec<Action> = due.iter().filter(|action| is_near(action, event)).cloned().collect();
        let today = if near.is_empty() { due } else { &near };
        let why = match today {
            [] if self.state.status.is_terminal() => "the run has already ended".to_owned(),
            [] => "nothing is due here before an external event".to_owned(),
            some => format!("{} is due here in its place", action_list(some)),
        };
        self.add_difference(seq, event, DifferenceKind::Decision, why, today);
        false
    }

    /// Reports actions that are due although the recorded run was waiting.
    fn check_overdue(&mut self, seq: u64, event: &Event, due: &[Action]) {
        // An execution is under way until it has stopped.
        let is_overdue = |a: &&Action| {
            !matches!(a, Action::Execute { .. }) && !self.reported.contains(&action_identity(a))
        };
        let mut left: Vec<Action> = due.iter().filter(is_overdue).cloned().collect();
        // A run awaits the cost of questions in flight before it ends.
        if matches!(event, Event::ModelReplied { .. } | Event::ModelFailed { .. }) {
            left.retain(|action| !matches!(action, Action::Record { event } if event.is_terminal()));
        }
        if !left.is_empty() {
            let why = format!("{} is due before this is waited for", action_list(&left));
            self.add_difference(seq, event, DifferenceKind::Order, why, &left);
        }
    }

    fn compare_prompt(&mut self, seq: u64, event: &Event, subject: Subject, recorded: &str) {
        let Event::ModelAsked { call, .. } = event else { return };
        // The text of its documents is not in the journal.
        if matches!(subject, Subject::Summary { .. }) {
            return;
        }
        let request = planner::request(&self.state, self.catalogue, subject);
        let today = RequestDigest::of(&request).hex();
        if today == recorded {
            return;
        }
        if self.wordings.len() == MAX_DIFFERENCES {
            self.more_wordings += 1;
            return;
        }
        let recorded = recorded.to_owned();
        self.wordings.push(PromptDifference {
            seq,
            call: *call,
            subject,
            recorded,
            today,
            request: Some(request),
        });
    }

    fn add_difference(
        &mut self,
        seq: u64,
        event: &Event,
        kind: DifferenceKind,
        why: String,
        today: &[Action],
    ) {
        self.reported.extend(today.iter().map(action_identity));
        if self.differences.len() == MAX_DIFFERENCES {
            self.more_differences += 1;
            return;
        }
        self.differences.push(ReplayDifference {
            seq,
            event: event.name().to_owned(),
            kind,
            why,
            recorded: json(event),
            today: today.iter().map(action_json).collect(),
        });
    }

    fn finish(self, events: usize) -> ReplayReport {
        let scenes = self.state.started.as_ref().map(|started| {
            let today = self.catalogue.hash();
            CatalogueComparison {
                changed: started.catalogue != today,
                recorded: started.catalogue.clone(),
                today,
            }
        });
        ReplayReport {
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
            due: self.state.next().iter().map(action_json).collect(),
        }
    }
}

/// Whether `event` is a reading of the reply to question `call`.
fn is_reading_of(event: &Event, call: u32, subject: Subject) -> bool {
    match event {
        Event::SceneReplied { call: of, .. }
        | Event::ReplyRejected { call: of, .. }
        | Event::ScenesRanked { call: of, .. } => *of == call,
        Event::PlanCreated(made) | Event::Replanned(made) => match &made.patch {
            None => subject == Subject::Plan { version: made.version },
            Some(patch) => {
                let (consultation, kind) = (patch.consultation, ConsultationKind::Adaptation);
                subject == Subject::Consultation { consultation, kind }
            }
        },
        Event::FlowPlanned { step, .. } => subject == Subject::Path { step: *step },
        Event::ApprovalLapsed { read, .. } => *read == Some(call) && matches!(subject, Subject::Node { .. }),
        Event::NodeReplied { step, .. } => subject == Subject::Node { step: *step },
        Event::ProgramWritten { call: of, .. } => *of == call,
        Event::Continuation { round, .. } => subject == Subject::Continuation { round: *round },
        Event::Answered { .. } => subject == Subject::Answer,
        Event::Voted { question, .. } => *question == call,
        Event::Consultation { question, .. } => *question == Some(call),
        _ => false,
    }
}

/// Whether an action has the same subject as an event that it does not lead to.
fn is_near(action: &Action, event: &Event) -> bool {
    match (action, event) {
        (Action::Record { event: today }, _) => today.key() == event.key(),
        (Action::Ask { subject, .. }, Event::ModelAsked { subject: of, .. }) => subject == of,
        (Action::Call { call, .. }, Event::ToolStarted { call: of, .. }) => call == of,
        _ => false,
    }
}

/// The event after serialisation: replay compares stored events.
fn as_stored(event: Event) -> Event {
    serde_json::to_value(&event).and_then(serde_json::from_value).unwrap_or(event)
}

/// A name that is stable for the same action, also if other questions were asked in between.
fn action_identity(action: &Action) -> String {
    match action {
        Action::Ask { subject, attempt, fallback, .. } => format!("ask/{subject:?}/{attempt}/{fallback}"),
        other => other.id(),
    }
}

/// For people: `step_started/2, a question about step 3`.
fn action_list(actions: &[Action]) -> String {
    let names: Vec<String> = actions.iter().map(describe_action).collect();
    names.join(", ")
}

fn describe_action(action: &Action) -> String {
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
                Subject::Path { step } => format!("the question for the path of step {step}"),
                Subject::Node { step } => format!("the question of node {step}"),
                Subject::Program { step } => format!("the question for the program of step {step}"),
                Subject::Summary { step, part, .. } => {
                    format!("the question about part {part} of step {step}")
                }
                Subject::Continuation { round } => format!("the question for check {round}"),
                Subject::Answer => "the question for the answer".to_owned(),
                Subject::Ranking => "the question for the ranking of scenes".to_owned(),
                Subject::Consultation { consultation, .. } => {
                    format!("the question of consultation {consultation}")
                }
                Subject::Vote { consultation, voter } => {
                    format!("the question of consultation {consultation} to voter {voter}")
                }
            };
            if *fallback { format!("{what} to the offline model") } else { what }
        }
        Action::Read { call, .. } => format!("reading the reply to question {call}"),
        Action::Take { version } => format!("validating the supplied plan {version}"),
        Action::LookUpPlan => "the look-up of learned plans".to_owned(),
        Action::OutlineDocuments { step } => format!("reading the documents of step {step}"),
        Action::LookUpPath { step } => format!("the look-up of learned paths for step {step}"),
        Action::Prepare { step } => format!("preparing the calls of step {step}"),
        Action::Recall { call } => format!("looking for an earlier result of call {call}"),
        Action::Interpret { call } => format!("the result that a mapping makes for call {call}"),
        Action::Substitute { call } => format!("the call in place of call {call}"),
        Action::Execute { step } => format!("executing the program of step {step}"),
        Action::Call { call, attempt } => format!("attempt {attempt} of tool call {call}"),
    }
}

fn action_json(action: &Action) -> Value {
    match action {
        Action::Record { event } => json(event),
        other => json(other),
    }
}

/// Serialising events and actions cannot fail.
fn json(data: &impl Serialize) -> Value {
    serde_json::to_value(data).unwrap_or_default()
}
