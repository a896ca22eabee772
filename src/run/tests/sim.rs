//! A driver for generated worlds: performs the actions of `next`, completes work in flight in any order,
//! crashes and restarts, and writes a journal that a second state is folded from.

use jiff::Timestamp;

use super::approvers::{self, RemainingFaults};
use super::checker::RunChecker;
use super::consent::ConsentChecker;
use super::generators;
use super::programs;
use super::world::{Dice, Style, World};
use crate::adapt::{MappedPlace, RecoveryAction};
use crate::plan::{PlanStatus, StepStatus, TaskId};
use crate::planner::{self, Command, PatchReply};
use crate::program::{ProgramLimits, Stop, Unavailable};
use crate::run::{
    Action, Adaptation, AskStatus, CallStatus, ConsultationChoice, ConsultationSubject, Effect, Event, Fault,
    FaultClass, InterpretedResult, Outcome, POSTCONDITION, PlanMade, PlanMaker, PlanRecall, ProgramStop,
    RecallOutcome, RecalledResult, Reply, ResultNotes, RunId, RunQueued, RunStarted, RunState, RunStatus,
    Settings, Subject, TimerSubject,
};
use crate::scene::Catalogue;

/// More events than any run within the bounds of [`super::world::settings`] can need.
const LIMIT: usize = 6000;

/// Maximum number of commands of people per run, legal or not; after these they only unblock it.
const MAX_COMMANDS: u32 = 24;

pub fn queued(plan_only: bool) -> Event {
    let task = TaskId(uuid::Uuid::from_u128(7));
    Event::RunQueued(RunQueued { plan_only, ..RunQueued::new("everything", "keysersoze", task) })
}

pub fn started(settings: &Settings) -> Event {
    Event::RunStarted(RunStarted {
        language: Some("it".to_owned()),
        settings: settings.clone(),
        catalogue: "c0ffee".to_owned(),
        ..RunStarted::new("2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap())
    })
}

pub fn new_run() -> RunState {
    RunState::new(RunId(uuid::Uuid::from_u128(1)))
}

/// Work in flight, as the process remembers it.
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
    pub watch: RunChecker,
    pub consent: ConsentChecker,
    pub flights: Vec<Flight>,
    pub events: Vec<Event>,
    /// When each event was appended.
    times: Vec<Timestamp>,
    stale: Vec<Action>,
    crashes: u32,
    /// Whether the scenes were changed since the run began.
    reloaded: bool,
    wishes: u32,
    reopened: u32,
}

impl Sim {
    pub fn new(world: World) -> Self {
        let dice = Dice::new(&world);
        let watch = RunChecker::new(&world.settings);
        let (state, shadow) = (new_run(), new_run());
        Self {
            world,
            dice,
            state,
            shadow,
            watch,
            consent: ConsentChecker::default(),
            flights: Vec::new(),
            events: Vec::new(),
            times: Vec::new(),
            stale: Vec::new(),
            crashes: 0,
            reloaded: false,
            wishes: 0,
            reopened: 0,
        }
    }

    /// The request of this world.
    pub fn queued(&mut self) -> Event {
        let Event::RunQueued(mut queued) = queued(self.world.plan_only) else { panic!("no request") };
        queued.options.dry_run = self.world.dry_run;
        queued.options.require_approval = self.world.require_approval;
        if self.world.given {
            let max = self.world.settings.max_steps;
            queued.plan = Some(generators::plan(&mut self.dice, &self.state, max, false));
        }
        Event::RunQueued(queued)
    }

    pub fn catalogue(&self) -> &'static Catalogue {
        approvers::catalogue(self.reloaded)
    }

    /// A whole run, from the request to its end.
    pub fn run(world: World) -> Self {
        let mut sim = Self::new(world);
        let queued = sim.queued();
        sim.record(queued);
        sim.finish();
        sim
    }

    /// Continues the run until it has finally ended.
    pub fn finish(&mut self) {
        loop {
            while !self.state.status.is_terminal() {
                self.turn();
                assert!(self.events.len() < LIMIT, "the run does not end");
            }
            assert_eq!(self.state.next(), [], "a run that has ended wants more");
            self.watch.at_end(&self.state);
            self.consent.at_end(&self.state);
            for _ in 0..self.dice.pick(4) {
                if self.state.status.is_terminal() {
                    self.person_command();
                }
            }
            if self.state.status.is_terminal() {
                return;
            }
        }
    }

    /// The time of the next event: it mostly advances, sometimes not, and sometimes the clock is set back.
    fn now(&self) -> Timestamp {
        let events = i64::try_from(self.events.len()).unwrap();
        let back = if events % 31 == 30 { 5_000 } else { 0 };
        Timestamp::from_millisecond(1_800_000_000_000 + events / 3 * 211 - back).unwrap()
    }

    /// Appends and applies; checks everything that must hold after any event.
    pub fn record(&mut self, event: Event) {
        assert_eq!(self.state.check(&event), Ok(()), "{event:?} in {:#?}", self.state);
        self.watch.before(&self.state, &event);
        self.consent.before(&self.state, &event);
        let line = serde_json::to_string(&event).unwrap();
        let at = self.now();
        self.times.push(at);
        self.state.apply_at(&event, at).unwrap();
        let back: Event = serde_json::from_str(&line).unwrap();
        self.shadow.apply_at(&back, at).unwrap();
        // A difference stays, and to compare a whole run costs more than an event.
        if self.events.len().is_multiple_of(8) || event.is_terminal() || matches!(event, Event::RunWaiting {})
        {
            assert_eq!(self.shadow, self.state, "the journal tells another story after {line}");
        }
        self.watch.after(&self.state);
        self.consent.after(&self.state);
        // A driver stops at the end of a run: its successor does not know what was due then.
        if matches!(event, Event::RunReopened { .. }) {
            self.stale.clear();
        }
        self.flights.retain(|flight| match flight {
            Flight::Ask(call) => self.state.asks[call].status == AskStatus::InFlight,
            Flight::Call(call) => matches!(self.state.calls[call].status, CallStatus::InFlight { .. }),
        });
        match &event {
            // Its driver has stopped.
            _ if event.is_terminal() => self.flights.clear(),
            Event::RunReopened { .. } => self.reopened += 1,
            Event::RunWaiting {} => {
                assert_eq!(self.flights, [], "it waits while something is under way");
                assert_eq!(self.state.next(), [], "it waits and has something to do");
                assert_eq!(self.state.next_timer(), None, "it waits while a timer runs");
                self.can_be_ended();
            }
            Event::BackedOff { .. } if !self.state.write_in_flight() => self.can_be_ended(),
            Event::ModelAsked { call, .. } => self.flights.push(Flight::Ask(*call)),
            Event::ToolStarted { call, .. } => self.flights.push(Flight::Call(*call)),
            _ => {}
        }
        self.events.push(event);
    }

    /// One step of the world.
    pub fn turn(&mut self) {
        let actions = self.asked();
        let waits = self.state.status == RunStatus::Waiting;
        let timers: Vec<TimerSubject> = self.state.timers().map(|timer| timer.timer).collect();
        let pending = self.flights.len() + timers.len();
        assert!(
            !actions.is_empty() || pending > 0 || waits,
            "nothing is under way and nothing is to be done: {:#?}",
            self.state
        );
        if self.dice.chance(self.world.stops, 64) {
            let deadline = self.dice.pick(2) == 1;
            return self.record(Event::CancelRequested { by: "somebody".to_owned(), deadline, note: None });
        }
        if self.crashes < self.world.crashes && self.dice.chance(1, 24) {
            return self.crash();
        }
        if self.wishes < MAX_COMMANDS && self.dice.chance(self.world.people, 24) {
            return self.person_command();
        }
        if waits {
            return self.is_decided();
        }
        if actions.is_empty() || (pending > 0 && self.dice.pick(2) == 1) {
            let picked = self.dice.pick(pending);
            return match picked.checked_sub(self.flights.len()) {
                None => self.complete(picked),
                Some(timer) => self.record(Event::TimerFired { timer: timers[timer] }),
            };
        }
        match self.world.style {
            Style::First => self.perform(actions[0].clone()),
            Style::All => {
                let (mut left, mut decided) = (actions, false);
                while !left.is_empty() {
                    let action = left.remove(self.dice.pick(left.len()));
                    // Parallel steps are limited: a step that became ready by another's end may come first.
                    // What is done about a failure depends on the retries of the run and on time, and a write that
                    // fails for good is put to a person before anything else. Equal calls wait for a substitute.
                    // The bound of consultations counts questions, and the end of one may stop its step.
                    let is_policy = matches!(
                        action,
                        Action::Substitute { .. }
                            | Action::Recall { .. }
                            | Action::Interpret { .. }
                            | Action::Record {
                                event: Event::Unexpected { .. }
                                    | Event::BackedOff { .. }
                                    | Event::Consultation { .. }
                            }
                            | Action::Ask {
                                subject: Subject::Consultation { .. } | Subject::Vote { .. },
                                ..
                            }
                            | Action::Read {
                                subject: Subject::Consultation { .. } | Subject::Vote { .. },
                                ..
                            }
                    );
                    decided |= is_policy;
                    // The end of a step may lead to a question about what is left of the plan.
                    let is_step = matches!(
                        action,
                        Action::Record {
                            event: Event::StepStarted { .. }
                                | Event::StepFailed { status: StepStatus::Blocked, .. }
                        }
                    );
                    let may_change = is_step || decided;
                    if may_change && !self.still_possible(&action) {
                        continue;
                    }
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

    /// A person sends a command.
    pub fn person_command(&mut self) {
        if self.wishes >= MAX_COMMANDS {
            return;
        }
        self.wishes += 1;
        let left = RemainingFaults {
            changes: self.wishes < MAX_COMMANDS / 2,
            reopens: self.reopened < self.world.reopens,
            stops: self.world.stops > 0,
        };
        let max = self.world.settings.max_steps;
        let command = approvers::any_command(&mut self.dice, &self.state, max, left);
        self.order(&command);
    }

    /// A person unblocks a waiting run, whose scenes may have changed in between.
    fn is_decided(&mut self) {
        if self.wishes < MAX_COMMANDS && self.dice.pick(4) == 3 {
            self.reload();
        }
        if self.wishes < MAX_COMMANDS && self.dice.pick(3) == 2 {
            return self.person_command();
        }
        if self.state.status == RunStatus::Waiting {
            let command = approvers::unblocking_command(&mut self.dice, &self.state);
            let before = self.events.len();
            self.order(&command);
            assert!(self.events.len() > before, "{command:?} does not get it on: {:#?}", self.state);
        }
    }

    /// The scenes change, and the driver that resumes the run records what lapsed.
    fn reload(&mut self) {
        self.wishes += 1;
        self.reloaded = !self.reloaded;
        while let Some(event) = planner::lapsed_approval(&self.state, self.catalogue()) {
            self.lapses(event);
        }
    }

    /// Records a lapse as the driver does.
    fn lapses(&mut self, lapse: Event) {
        let again = self.state.parked_again(std::slice::from_ref(&lapse));
        [lapse].into_iter().chain(again).for_each(|event| self.record(event));
    }

    /// Executes a command, or checks its refusal. `record` checks that each event is legal.
    fn order(&mut self, command: &Command) {
        match planner::events_for_command(&self.state, self.catalogue(), command) {
            Ok(events) => {
                assert!(!events.is_empty(), "{command:?} does nothing");
                events.into_iter().for_each(|event| self.record(event));
            }
            Err(refused) => {
                assert!(!refused.fault.code.is_empty() && !refused.fault.message.is_empty());
                if let Some(lapse) = refused.record {
                    self.lapses(lapse.0);
                }
            }
        }
    }

    /// Whatever a run waits for, a cancellation ends it, with only its own records and compensations.
    fn can_be_ended(&self) {
        let mut state = self.state.clone();
        state
            .apply(&Event::CancelRequested { by: "somebody".to_owned(), deadline: false, note: None })
            .unwrap();
        for _ in 0..LIMIT {
            let event = match state.next().first().cloned() {
                Some(Action::Record { event }) => event,
                Some(Action::Call { call, attempt }) => {
                    state.apply(&Event::ToolStarted { call, attempt }).unwrap();
                    let outcome = Outcome::Ok { result: serde_json::Value::Null, say: None, whole: None };
                    Event::ToolCompleted { call, outcome, millis: 0, notes: None }
                }
                other => panic!("a run that waited is not cancelled but {other:?}: {state:#?}"),
            };
            state.apply(&event).unwrap();
            if state.status.is_terminal() {
                assert_eq!(state.status, RunStatus::Cancelled);
                return;
            }
        }
        panic!("a run that waited cannot be ended");
    }

    /// `next`, with its invariants checked.
    pub fn asked(&self) -> Vec<Action> {
        let actions = self.state.next().to_vec();
        self.state.calls.assert_indexed();
        assert_eq!(actions, self.state.due_actions(), "next is not a function of the state");
        let ids: std::collections::BTreeSet<String> = actions.iter().map(Action::id).collect();
        assert_eq!(ids.len(), actions.len(), "two actions of one name in {actions:#?}");
        let mut keys = std::collections::BTreeSet::new();
        for action in &actions {
            if let Action::Call { call, .. } = action {
                let call = &self.state.calls[call];
                let key = (call.requested.key.clone(), call.requested.occurrence);
                assert!(keys.insert(key), "two equal calls at once in {actions:#?}");
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
            Action::Execute { .. }
            | Action::OutlineDocuments { .. }
            | Action::Read { .. }
            | Action::Take { .. }
            | Action::Prepare { .. }
            | Action::Substitute { .. }
            | Action::Recall { .. }
            | Action::Interpret { .. }
            | Action::LookUpPlan
            | Action::LookUpPath { .. } => self.state.next().contains(action),
        }
    }

    pub fn perform(&mut self, action: Action) {
        match &action {
            Action::Start => self.record(started(&self.world.settings.clone())),
            Action::Record { event: Event::StepStarted { step } }
                if self.state.begins_with_newest_version(*step)
                    && self.world.style != Style::All
                    && !self.state.has_begun()
                    && self.dice.chance(self.world.trouble, 96) =>
            {
                let problems =
                    vec![crate::plan::PlanProblem::new("preflight.scene", "a scene is not loaded")];
                let version = self.state.plans.len() as u32;
                self.record(Event::PlanRefused { version, problems, retry_after_ms: None });
            }
            Action::Record { event } => self.record(event.clone()),
            Action::Ask { .. } => self.record(asked(&action)),
            Action::Call { call, attempt } => {
                self.record(Event::ToolStarted { call: *call, attempt: *attempt })
            }
            Action::Execute { step } => self.execute(*step),
            Action::LookUpPlan => {
                let known = self.dice.chance(8, 16);
                let max = self.world.settings.max_steps;
                let plan = known.then(|| generators::plan(&mut self.dice, &self.state, max, false));
                let outcome = if known { RecallOutcome::Reused } else { RecallOutcome::Unknown };
                self.record(Event::PlanRecalled(PlanRecall {
                    outcome,
                    template: known.then(|| "template".to_owned()),
                    plan,
                    hints: Vec::new(),
                }));
            }
            // No plan here has a flow or a summary.
            Action::LookUpPath { .. } | Action::OutlineDocuments { .. } => panic!("{action:?}"),
            Action::Take { version } => {
                let event = planner::supplied_plan(&self.state, self.catalogue(), *version);
                self.record(event);
            }
            Action::Recall { call } => {
                let age = [0, 1, 59, 61][self.dice.pick(4)];
                let at = self.state.at - jiff::SignedDuration::from_secs(age);
                let (result, say) = (serde_json::json!("earlier"), Some("said earlier".to_owned()));
                let found = RecalledResult { result, say, whole: None, at, run: self.state.run };
                let found = Some(found).filter(|found| self.state.may_recall(*call, found.at)).map(Box::new);
                assert_eq!(found.is_some(), age < 60, "a result is used up to its age");
                self.record(Event::Adapted { change: Adaptation::Recalled { call: *call, found } });
            }
            Action::Interpret { call } => {
                let found = InterpretedResult {
                    result: self.state.data_to_map(*call).unwrap()["value"].clone(),
                    say: None,
                    whole: None,
                };
                let found = (self.dice.pick(4) > 0).then(|| Box::new(found));
                self.record(Event::Adapted { change: Adaptation::Interpreted { call: *call, found } });
            }
            Action::Substitute { call } => {
                let event = planner::substitute(&self.state, self.catalogue(), *call);
                self.record(event);
            }
            Action::Prepare { step } => {
                let event = planner::prepared(&self.state, self.catalogue(), *step);
                self.record(event);
            }
            Action::Read { call, subject } => {
                let event = self.read(*call, *subject);
                self.record(event);
            }
        }
    }

    /// The event that a reply yields.
    fn read(&mut self, call: u32, subject: Subject) -> Event {
        let (trouble, stubborn) = (self.world.trouble, self.world.stubborn);
        if self.dice.chance(self.world.faults, 16) {
            return Event::ReplyRejected {
                call,
                problems: vec![crate::plan::PlanProblem::new("plan.odd", "odd")],
            };
        }
        match subject {
            Subject::Plan { version } => {
                let fallback = self.state.asks[&call].fallback;
                let maker = if fallback { PlanMaker::Fallback } else { PlanMaker::Deterministic };
                let changes = self.state.planning.as_ref().is_some_and(|p| p.feedback.is_some());
                let plan =
                    generators::plan(&mut self.dice, &self.state, self.world.settings.max_steps, changes);
                if changes && !plan.needs_execution {
                    let problems =
                        vec![crate::plan::PlanProblem::new("plan.nothing_left", "nothing is left")];
                    return Event::ReplyRejected { call, problems };
                }
                let made = generators::made(&self.state, plan, maker);
                let made = planner::with_approval(&self.state, self.catalogue(), made);
                if version == 1 { Event::PlanCreated(made) } else { Event::Replanned(made) }
            }
            Subject::Scene { step }
                if !self.state.scene_work(step).is_some_and(|work| work.decided)
                    && self.dice.chance(trouble, 32) =>
            {
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
                        _ => {
                            let catalogue = approvers::catalogue(self.reloaded);
                            generators::calls(&mut self.dice, &self.state, catalogue, (step, call), trouble)
                        }
                    },
                    question: asks.then(generators::question),
                    next: None,
                }
            }
            Subject::Program { step } => {
                let source = programs::source(&mut self.dice);
                programs::written(&self.state, (step, call), source, self.reloaded)
            }
            Subject::Path { .. } | Subject::Node { .. } => unreachable!("no flow is planned in this world"),
            Subject::Summary { .. } => unreachable!("no summary is planned in this world"),
            Subject::Continuation { round } => Event::Continuation {
                round,
                verdict: generators::verdict(&mut self.dice, stubborn),
                degraded: false,
            },
            Subject::Answer => Event::Answered { text: "answer".to_owned(), degraded: false, error: None },
            Subject::Ranking => Event::ScenesRanked { call, scenes: vec!["Weather".to_owned()] },
            Subject::Vote { consultation, voter } => self.vote(call, consultation, voter),
            Subject::Consultation { consultation, .. } => {
                match self.state.consultations[&consultation].subject {
                    ConsultationSubject::Recovery { .. } => self.choice(call, consultation),
                    ConsultationSubject::Decision { .. } => self.decision(call, consultation),
                    ConsultationSubject::Interpretation { .. } => self.mapping(call, consultation),
                    ConsultationSubject::Adaptation { step } => self.patch(call, consultation, step),
                }
            }
        }
    }

    /// A program is executed, as the real driver has it. Nothing but what its execution came to is admitted.
    fn execute(&mut self, step: u32) {
        let program = planner::program(&self.state, self.catalogue(), step, ProgramLimits::default());
        let stop = match (self.dice.chance(self.world.trouble, 96), program) {
            (true, _) => Err(Unavailable { code: "sandbox.busy", message: "no worker is free".to_owned() }),
            (false, Ok(program)) => Ok(programs::execute(&program)),
            (false, Err(fault)) => Ok(Stop::Fault(fault)),
        };
        let event = planner::program_replied(&self.state, self.catalogue(), step, stop, 3);
        if let Event::ProgramReplied { stop: ProgramStop::Call { written, line, requested, .. }, .. } = &event
        {
            let mut forged = requested.clone();
            forged.call += 1;
            let (written, line) = (written.clone(), *line);
            let stop = ProgramStop::Call { written, line, is_untraced: false, requested: forged, ends: None };
            let forged = Event::ProgramReplied { step, stop, millis: 0 };
            assert!(self.state.check(&forged).is_err(), "a call with another ordinal is admitted");
        }
        self.record(event);
    }

    /// A model changes the plan, as the real reading of its reply has it. What is fixed cannot be changed.
    fn patch(&mut self, call: u32, consultation: u32, about: u32) -> Event {
        let max = self.world.settings.max_steps;
        let reply = generators::patch(&mut self.dice, &self.state, about, max);
        let own = self.state.consultations[&consultation].clone();
        match planner::read_patch(&self.state, self.catalogue(), &reply, (consultation, about), true) {
            Err(problems) => Event::ReplyRejected { call, problems },
            Ok(PatchReply::Changed(made)) => {
                let mut forged = PlanMade::clone(&made);
                let fixed = self.state.steps.iter().find(|(_, step)| !self.state.is_patchable(step));
                let patch = forged.patch.as_mut().unwrap();
                patch.removed.extend(fixed.map(|(number, _)| *number));
                let forged = Event::Replanned(forged);
                assert!(fixed.is_none() || self.state.check(&forged).is_err(), "a fixed step is taken out");
                Event::Replanned(*made)
            }
            Ok(PatchReply::Unchanged { reason }) => Event::Consultation {
                consultation,
                subject: own.subject,
                question: Some(call),
                how: self.state.consultation_outcome(call),
                chosen: None,
                refused: None,
                reason,
                model: None,
                ask: None,
                error: None,
            },
        }
    }

    /// A model chooses one of the options of a consultation. No other choice is admitted.
    fn choice(&mut self, call: u32, consultation: u32) -> Event {
        let own = self.state.consultations[&consultation].clone();
        let end = |action| {
            let chosen = ConsultationChoice::Recovery { action };
            let asks = action == RecoveryAction::AskUser;
            Event::Consultation {
                consultation,
                subject: own.subject,
                question: Some(call),
                how: self.state.consultation_outcome(call),
                chosen: Some(chosen.clone()),
                refused: self.state.choice_refusal(consultation, &chosen),
                reason: String::new(),
                model: None,
                ask: asks.then(|| self.state.question_how_to_continue(own.subject)).flatten(),
                error: None,
            }
        };
        let forged = end(RecoveryAction::Retry { delay_ms: 987_654_321 });
        assert!(self.state.check(&forged).is_err(), "what was not offered is admitted");
        let options = own.options.len();
        let picked = self.dice.clone().pick(options);
        let event = end(own.options[picked]);
        self.dice.pick(options);
        event
    }

    /// A model chooses one of the alternatives. No other one is admitted.
    fn decision(&mut self, call: u32, consultation: u32) -> Event {
        let own = self.state.consultations[&consultation].clone();
        let end = |chosen: ConsultationChoice| Event::Consultation {
            consultation,
            subject: own.subject,
            question: Some(call),
            how: self.state.consultation_outcome(call),
            refused: self.state.choice_refusal(consultation, &chosen),
            chosen: Some(chosen),
            reason: String::new(),
            model: None,
            ask: None,
            error: None,
        };
        let forged = end(ConsultationChoice::Decision { at: 7 });
        assert!(self.state.check(&forged).is_err(), "what was not offered is admitted");
        let forged = end(ConsultationChoice::Recovery { action: own.options[0] });
        assert!(self.state.check(&forged).is_err(), "the choice of another kind is admitted");
        let picked = self.dice.clone().pick(own.options.len());
        let RecoveryAction::Alternative { at } = own.options[picked] else { panic!("{:?}", own.options) };
        let event = end(ConsultationChoice::Decision { at });
        self.dice.pick(own.options.len());
        event
    }

    /// One of several models votes for one of the alternatives. No other vote is admitted.
    fn vote(&mut self, question: u32, consultation: u32, voter: u32) -> Event {
        let options = self.state.consultations[&consultation].options.clone();
        let vote = |at| Event::Voted {
            consultation,
            voter,
            question,
            at,
            reason: String::new(),
            model: Some("small".to_owned()),
        };
        assert!(self.state.check(&vote(7)).is_err(), "a vote for what was not offered is admitted");
        let RecoveryAction::Alternative { at } = options[self.dice.pick(options.len())] else {
            panic!("{options:?}")
        };
        vote(at)
    }

    /// A model says where the expected values are, or that they are not there. No other place is admitted.
    fn mapping(&mut self, call: u32, consultation: u32) -> Event {
        let own = self.state.consultations[&consultation].clone();
        let end = |from: Option<&str>| {
            let place = |from: &str| MappedPlace { to: String::new(), from: from.to_owned() };
            Event::Consultation {
                consultation,
                subject: own.subject,
                question: Some(call),
                how: self.state.consultation_outcome(call),
                chosen: from.map(|from| ConsultationChoice::Interpretation { mapping: vec![place(from)] }),
                refused: None,
                reason: String::new(),
                model: None,
                ask: None,
                error: None,
            }
        };
        assert!(self.state.check(&end(Some("/nowhere"))).is_err(), "a place that is not there is admitted");
        let event = end([Some("/value"), Some(""), None][self.dice.clone().pick(3)]);
        self.dice.pick(3);
        event
    }

    /// A read returns data of another shape than its tool declares, at times.
    fn odd_result(&mut self, call: u32) -> Option<Event> {
        let requested = &self.state.calls[&call].requested;
        let interprets = requested.policies.as_ref().is_some_and(|policies| policies.interpret);
        let counts = interprets && requested.effect == Effect::Read && self.state.settings().mode.is_some();
        if !counts || !self.dice.chance(self.world.trouble, 24) {
            return None;
        }
        let error = Fault::new(POSTCONDITION, "another shape").classed(FaultClass::BadData);
        let rejected = Some(serde_json::json!({"value": self.dice.pick(9)}));
        let breaches = vec!["another shape".to_owned()];
        let notes = ResultNotes { breaches, rejected, mappable: true, ..ResultNotes::default() };
        let (outcome, notes) = (Outcome::Failed { error }, Some(Box::new(notes)));
        Some(Event::ToolCompleted { call, outcome, millis: 1, notes })
    }

    /// One item of work in flight ends.
    fn complete(&mut self, flight: usize) {
        let trouble = self.world.trouble;
        let event = match self.flights.swap_remove(flight) {
            Flight::Ask(call) if self.dice.chance(self.world.faults, 24) => Event::ModelFailed {
                call,
                error: Fault::new(
                    ["llm.down", "budget.exceeded", "limits.exceeded"][self.dice.pick(3)],
                    "nobody is there",
                ),
                usage: generators::usage(&mut self.dice),
                millis: 1,
                attempts: vec![],
            },
            Flight::Ask(call) => Event::ModelReplied {
                call,
                reply: Reply { text: format!("reply {call}"), ..Reply::default() },
                usage: generators::usage(&mut self.dice),
                millis: 1,
                attempts: vec![],
            },
            Flight::Call(call) => self.odd_result(call).unwrap_or_else(|| Event::ToolCompleted {
                call,
                outcome: generators::outcome(&mut self.dice, trouble),
                millis: 1,
                notes: None,
            }),
        };
        self.record(event);
    }

    /// The process crashes: work in flight is lost, and only the journal remains.
    pub fn crash(&mut self) {
        self.crashes += 1;
        self.flights.clear();
        self.stale.clear();
        let mut state = new_run();
        for (event, at) in self.events.iter().zip(&self.times) {
            state.apply_at(event, *at).unwrap();
        }
        assert_eq!(state, self.state, "a restart wakes up elsewhere");
        self.record(Event::RunResumed { epoch: self.state.epoch + 1, restart: false, catalogue: None });
        if self.dice.pick(4) == 3 {
            self.reload();
        }
        assert!(self.state.asks.values().all(|a| a.status != AskStatus::InFlight));
        assert!(self.state.calls.values().all(|c| !matches!(c.status, CallStatus::InFlight { .. })));
    }

    /// The run is restored from a backup: what was in flight is gone, and nothing goes on by itself.
    pub fn restore(&mut self) {
        self.flights.clear();
        self.stale.clear();
        for event in self.state.restored_events(self.state.at) {
            self.record(event);
        }
    }

    /// The numbers of the steps with this status.
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
        reserved: None,
    }
}
