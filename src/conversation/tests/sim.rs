//! An invented outside of a conversation: callers, a registry, drivers and a disk. What is in progress
//! completes in any order, drivers panic, the process dies, and the journal stays.

use std::collections::{BTreeMap, VecDeque};

use super::journal::Journal;
use super::watch::Watch;
use super::world::World;
use crate::conversation::side_effect::ReadAttempt;
use crate::conversation::{
    CallerId, ConversationState, DriverReport, Input, NewRun, Phase, RunCondition, RunReading, SideEffect,
    WordDecision,
};
use crate::memory::SummaryJob;
use crate::run::tests::Dice;
use crate::run::{Fault, RunId, SessionEvent, StatedFact, Usage};

/// The context window of the model that plans, in tokens.
pub(super) const WINDOW: usize = 100_000;

/// Something in progress, whose completion is an input of the actor.
#[derive(Debug)]
pub(super) enum Work {
    Load,
    Append(Vec<NewRun>),
    Read(RunId, ReadAttempt),
    Drive(RunId),
    Ended(RunId, DriverReport),
    Panicked(RunId),
    Summary(SummaryJob),
    State(CallerId, StatedFact),
    /// What was appended is about to be reported, or that it could not be.
    Report(Input),
    Erase(bool),
    Hold,
    Timer,
    Sleep(u64),
    SleepReply(bool),
}

impl Work {
    fn is_summary(&self) -> bool {
        let is_report = |input: &Input| matches!(input, Input::Summarised { .. } | Input::StreamFailed(_));
        match self {
            Self::Summary(_) => true,
            Self::Report(input) => is_report(input),
            _ => false,
        }
    }

    /// Whether a stated fact is being appended.
    fn is_fact(&self) -> bool {
        matches!(self, Self::State(..) | Self::Report(Input::FactAppended { .. }))
    }
}

/// What a summary leads to.
fn summarised(job: &SummaryJob) -> SessionEvent {
    let (through, summary, usage) = (job.through, job.fallback(), Usage::default());
    SessionEvent::Summarised { through, summary, usage, attempts: Vec::new(), sources: Vec::new() }
}

/// One actor of the conversation.
pub(super) struct Actor {
    pub(super) state: ConversationState,
    pub(super) mailbox: VecDeque<Input>,
    pub(super) work: Vec<Work>,
    /// How many messages the registry sent it.
    pub(super) sent: u64,
    pub(super) is_stopped: bool,
}

/// A run's entry among the live runs of the process.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) commands: VecDeque<CallerId>,
    pub(super) is_open: bool,
    /// Refused commands, whose callers hear of it when the run has a state again.
    pub(super) refused: Vec<CallerId>,
}

pub struct Sim {
    pub(super) world: World,
    pub(super) dice: Dice,
    pub journal: Journal,
    pub watch: Watch,
    pub(super) actors: Vec<Actor>,
    /// Whether the registry knows the last of the actors.
    pub(super) is_registered: bool,
    pub(super) live: BTreeMap<RunId, Entry>,
    pub(super) words: BTreeMap<CallerId, WordDecision>,
    /// What drivers appended to the session's stream and have not reported.
    pub(super) turns: BTreeMap<RunId, Vec<(u64, SessionEvent)>>,
    /// What was appended to the session's stream and is not known to the actor, by whomever.
    pub(super) unreported: Vec<(u64, SessionEvent)>,
    pub(super) last_id: u64,
    pub crashes: u32,
    pub(super) is_calm: bool,
    /// The length of the stream when what is remembered was last compared with it.
    judged: std::cell::Cell<usize>,
}

impl Sim {
    /// A whole history, until everything that began has ended.
    pub fn run(world: World) -> Self {
        let mut sim = Self {
            dice: Dice::of(world.tape.clone(), world.seed),
            world,
            journal: Journal::default(),
            watch: Watch::default(),
            actors: Vec::new(),
            is_registered: false,
            live: BTreeMap::new(),
            words: BTreeMap::new(),
            turns: BTreeMap::new(),
            unreported: Vec::new(),
            last_id: 0,
            crashes: 0,
            is_calm: false,
            judged: std::cell::Cell::default(),
        };
        for _ in 0..sim.world.moves {
            sim.turn();
        }
        sim.is_calm = true;
        sim.settle();
        sim.watch.at_end();
        // What an actor could not continue is continued by the next one.
        sim.resume();
        sim.settle();
        sim.watch.at_end();
        let unfinished = sim.journal.runs.values().find(|run| run.condition == RunCondition::Unfinished);
        assert!(unfinished.is_none(), "a run is left: {unfinished:?}");
        assert!(sim.actors.is_empty(), "an actor does not sleep");
        sim
    }

    fn turn(&mut self) {
        let has_message = self.actors.iter().any(|actor| !actor.mailbox.is_empty());
        match self.dice.pick(8) {
            0 | 1 => self.send(),
            2 | 3 if has_message => self.receive(),
            7 if self.crashes < self.world.crashes && self.dice.pick(8) == 7 => self.crash(),
            _ => self.complete(),
        }
        self.check();
    }

    /// Completes everything, without any new accident.
    fn settle(&mut self) {
        for _ in 0..20_000 {
            while self.actors.iter().any(|actor| !actor.mailbox.is_empty()) {
                self.receive();
            }
            if self.actors.is_empty() {
                return;
            }
            self.complete();
            self.check();
        }
        panic!("it does not come to rest: {:#?}", self.actors.iter().map(|a| &a.state).collect::<Vec<_>>());
    }

    /// What must hold between any two inputs.
    fn check(&self) {
        // One that the registry has forgotten has nothing to remember.
        let last = self.actors.last().filter(|_| self.is_registered);
        if let Some(actor) = last.filter(|actor| matches!(actor.state.phase, Phase::Awake(_))) {
            let is_writing = actor.work.iter().any(|work| {
                matches!(work, Work::Ended(..) | Work::Panicked(_) | Work::Read(_, ReadAttempt::AfterPanic))
                    || matches!(work, Work::Read(_, ReadAttempt::AfterLastPanic) | Work::Report(_))
            });
            if !is_writing && self.turns.is_empty() {
                // A fold of the whole stream is slow.
                let events = self.journal.stream.len();
                if self.judged.replace(events) != events {
                    let memory = self.journal.memory(self.world.memory.clone());
                    let known = actor.state.history.checked();
                    assert_eq!(known.0, memory, "the memory is not what the stream tells");
                    assert_eq!(known.1, self.journal.ledger());
                }
            }
        }
    }

    /// An actor takes a message.
    fn receive(&mut self) {
        let ready: Vec<usize> =
            (0..self.actors.len()).filter(|at| !self.actors[*at].mailbox.is_empty()).collect();
        let at = ready[self.dice.pick(ready.len())];
        let mut input = self.actors[at].mailbox.pop_front().unwrap();
        if let Input::Request(request) = &mut input {
            // The answer of a run may be read before its driver has left.
            let current = self.actors[at].state.current_run();
            request.answered = current.filter(|run| self.journal.runs[run].condition == RunCondition::Ended);
        }
        self.feed(at, input);
    }

    fn feed(&mut self, at: usize, input: Input) {
        let command = match &input {
            Input::Command { caller, run } => Some((*caller, *run)),
            _ => None,
        };
        let effects = self.actors[at].state.on(input);
        if let Some((caller, run)) = command {
            self.is_not_queued(at, caller, run, &effects);
        }
        self.check_waiting(at);
        if at + 1 == self.actors.len() {
            let last = self.actors[at].state.last_known();
            self.unreported.retain(|(seq, _)| *seq > last);
        }
        self.perform(at, effects);
        self.actors.retain(|actor| !actor.is_stopped);
    }

    /// A person's decision is under way at once, however many requests wait.
    fn is_not_queued(&mut self, at: usize, caller: CallerId, run: RunId, effects: &[SideEffect]) {
        let state = &mut self.actors[at].state;
        let Phase::Awake(awake) = &state.phase else { return };
        if awake.appending.as_ref().is_some_and(|appending| appending.runs.iter().any(|new| new.run == run)) {
            return;
        }
        let is_moved = effects.iter().any(|effect| match effect {
            SideEffect::Deliver { caller: delivered, .. } => *delivered == caller,
            SideEffect::ReadRun { run: read, .. } => *read == run,
            _ => false,
        });
        let is_held = state.runs.is_held(run, caller);
        assert!(is_moved || is_held, "a command waits for something else: {effects:?}");
    }

    /// Nobody waits for a summary that is not made, or that a prompt can do without.
    fn check_waiting(&self, at: usize) {
        let state = &self.actors[at].state;
        let Phase::Awake(awake) = &state.phase else { return };
        if state.runs.queued() > 0 && state.runs.of_the_queue().is_none() {
            let is_needed = awake.summarising && awake.hurried && state.history.is_overdue(WINDOW);
            assert!(is_needed || state.history.is_behind(), "a request waits for nothing: {state:#?}");
        }
    }

    /// A run whose turn came knows every turn that was answered, and its prompt holds what is remembered.
    fn check_begin(&self, at: usize, run: RunId) {
        let history = &self.actors[at].state.history;
        assert!(!history.is_overdue(WINDOW), "{run} begins with a memory that is overdue");
        let last = self.watch.answered.last().copied().unwrap_or_default();
        assert!(last <= history.last(), "{run} does not know the turn {last}, whose run was answered");
    }

    fn crash(&mut self) {
        self.crashes += 1;
        let actors = std::mem::take(&mut self.actors);
        for work in actors.into_iter().flat_map(|actor| actor.work) {
            // An append that nobody heard of may be on disk.
            match work {
                Work::Append(runs) => {
                    for new in runs {
                        if self.dice.pick(2) == 1 {
                            self.journal.append(new.run, "ada");
                        }
                    }
                }
                Work::State(_, fact) if self.dice.pick(2) == 1 => {
                    drop(self.journal.tell(SessionEvent::Fact { fact }))
                }
                Work::Summary(job) if self.dice.pick(2) == 1 => drop(self.journal.tell(summarised(&job))),
                _ => {}
            }
        }
        self.live.clear();
        self.words.clear();
        self.turns.clear();
        self.unreported.clear();
        self.is_registered = false;
        self.watch.crash(&self.journal);
        // A server that starts carries on what was left.
        if self.dice.pick(2) == 1 {
            self.resume();
        }
    }

    pub(super) fn perform(&mut self, at: usize, effects: Vec<SideEffect>) {
        let mut returned = Vec::new();
        for effect in effects {
            self.before(at, &effect);
            let work = &mut self.actors[at].work;
            match effect {
                SideEffect::Load => work.push(Work::Load),
                SideEffect::Append(runs) => {
                    for new in &runs {
                        self.live.insert(new.run, Entry { is_open: true, ..Entry::default() });
                    }
                    work.push(Work::Append(runs));
                }
                SideEffect::DecideByWords { caller, decision } => drop(self.words.insert(caller, decision)),
                SideEffect::Deliver { caller, run } => returned.extend(self.deliver(caller, run)),
                SideEffect::ReadRun { run, attempt } => work.push(Work::Read(run, attempt)),
                SideEffect::Drive { run, commands } => {
                    work.push(Work::Drive(run));
                    let entry = self.live.entry(run).or_default();
                    if !entry.is_open {
                        *entry = Entry { is_open: true, ..Entry::default() };
                    }
                    for caller in commands {
                        assert!(self.deliver(caller, run).is_none(), "a new driver does not take a command");
                    }
                }
                SideEffect::Finish { run, .. } => {
                    let entry = self.live.remove(&run).unwrap_or_default();
                    for caller in entry.commands.into_iter().chain(entry.refused) {
                        self.watch.driver_replied(caller);
                    }
                }
                SideEffect::Summarise(_) | SideEffect::HurrySummary | SideEffect::AppendFact { .. } => {
                    self.begin_append(at, effect);
                }
                SideEffect::Erase { since } => work.push(Work::Erase(since.is_some())),
                SideEffect::Hold { .. } => {
                    let asks_to_sleep = |work: &Work| matches!(work, Work::Sleep(_) | Work::SleepReply(_));
                    assert!(
                        work.iter().all(asks_to_sleep),
                        "it is held while something is in progress: {work:?}"
                    );
                    work.push(Work::Hold);
                }
                SideEffect::StartTimer => {
                    assert!(!work.iter().any(|work| matches!(work, Work::Timer)), "two timers");
                    work.push(Work::Timer);
                }
                SideEffect::CancelTimer => work.retain(|work| !matches!(work, Work::Timer)),
                SideEffect::RequestSleep { received } => work.push(Work::Sleep(received)),
                SideEffect::Stop => {
                    let actor = &mut self.actors[at];
                    // Neither a message nor an append, a read or a driver.
                    assert!(actor.mailbox.is_empty(), "a message is lost");
                    assert!(actor.work.is_empty(), "it stops with {:?}", actor.work);
                    assert!(!actor.state.runs.has_active(), "it stops with a queued run");
                    actor.is_stopped = true;
                }
                _ => {}
            }
        }
        for input in returned {
            self.feed(at, input);
        }
    }

    /// Watches an effect before it is performed.
    fn before(&mut self, at: usize, effect: &SideEffect) {
        let is_current = self.watch.is_current(effect);
        self.watch.before(effect, &self.journal);
        if let SideEffect::Drive { run, .. } = effect
            && !is_current
            && self.watch.is_current(effect)
        {
            self.check_begin(at, *run);
        }
    }

    /// Begins a summary, or to append a stated fact: one of each at a time.
    fn begin_append(&mut self, at: usize, effect: SideEffect) {
        let work = &mut self.actors[at].work;
        match effect {
            SideEffect::Summarise(job) => {
                assert!(!work.iter().any(Work::is_summary), "two summaries at once");
                work.push(Work::Summary(job));
            }
            SideEffect::HurrySummary => {
                assert!(work.iter().any(Work::is_summary), "no summary is made");
                self.watch.hurries += 1;
            }
            SideEffect::AppendFact { caller, fact } => {
                assert!(!work.iter().any(Work::is_fact), "two facts at once");
                work.push(Work::State(caller, fact));
            }
            _ => {}
        }
    }

    fn deliver(&mut self, caller: CallerId, run: RunId) -> Option<Input> {
        match self.live.get_mut(&run).filter(|entry| entry.is_open) {
            Some(entry) => {
                entry.commands.push_back(caller);
                self.watch.delivered(caller);
                None
            }
            None => Some(Input::CommandNotTaken { caller, run }),
        }
    }

    fn fails(&mut self) -> Option<Fault> {
        let fails = !self.is_calm && self.dice.chance(self.world.faults, 16);
        fails.then(|| Fault::new("store.full", "the disk is full"))
    }

    /// Something in progress completes, or makes a step.
    fn complete(&mut self) {
        let is_timer_due = self.is_calm || self.dice.pick(4) == 0;
        let is_driven = !self.watch.drivers.is_empty();
        let is_ready = |work: &Work| match work {
            Work::Timer => is_timer_due,
            // The drivers of the actor before it leave first.
            Work::Load => !is_driven,
            _ => true,
        };
        let of = |(at, actor): (usize, &Actor)| {
            let ready = (0..actor.work.len()).filter(|nth| is_ready(&actor.work[*nth]));
            ready.map(|nth| (at, nth)).collect::<Vec<_>>()
        };
        let ready: Vec<(usize, usize)> = self.actors.iter().enumerate().flat_map(of).collect();
        if ready.is_empty() {
            assert!(!self.is_calm, "nothing is in progress, and it does not end");
            return;
        }
        let (at, nth) = ready[self.dice.pick(ready.len())];
        let work = self.actors[at].work.remove(nth);
        if let Some(input) = self.end(at, work) {
            self.feed(at, input);
        }
    }

    fn end(&mut self, at: usize, work: Work) -> Option<Input> {
        match work {
            Work::Load => match self.fails() {
                Some(fault) => Some(Input::LoadFailed(fault)),
                None => {
                    self.judged.set(usize::MAX);
                    self.unreported.clear();
                    self.watch.loaded(&self.journal);
                    let loaded = self.journal.load();
                    for run in &loaded.unfinished {
                        self.live.insert(*run, Entry { is_open: true, ..Entry::default() });
                    }
                    Some(Input::Loaded(Box::new(loaded)))
                }
            },
            Work::Append(runs) => Some(self.append(runs)),
            Work::Read(run, attempt) => Some(self.read(run, attempt)),
            Work::Drive(run) => {
                let next = self.drive(run);
                self.actors[at].work.push(next);
                None
            }
            Work::Ended(run, report) => Some(Input::DriverEnded { run, report }),
            Work::Panicked(run) => Some(Input::DriverPanicked { run }),
            Work::Summary(job) => {
                self.watch.beside_summaries += usize::from(self.actors[at].state.current_run().is_some());
                let report = Work::Report(self.summarise(&job));
                self.actors[at].work.push(report);
                None
            }
            Work::State(caller, fact) => {
                let report = Work::Report(self.state(caller, fact));
                self.actors[at].work.push(report);
                None
            }
            Work::Report(input) => Some(input),
            Work::Erase(is_old) => Some(Input::Erased(self.erase(is_old))),
            Work::Hold => {
                self.journal.rewrite();
                Some(Input::Released)
            }
            Work::Timer => Some(Input::IdleElapsed),
            Work::Sleep(received) => {
                let is_last = at + 1 == self.actors.len();
                assert!(is_last && self.is_registered, "an actor asks to sleep that was forgotten");
                let agreed = self.actors[at].sent == received;
                self.is_registered = !agreed;
                self.actors[at].work.push(Work::SleepReply(agreed));
                None
            }
            Work::SleepReply(agreed) => Some(if agreed { Input::SleepAgreed } else { Input::SleepRefused }),
        }
    }

    fn append(&mut self, runs: Vec<NewRun>) -> Input {
        let mut results = Vec::new();
        for new in runs {
            let fault = self.fails();
            if fault.is_none() {
                self.journal.append(new.run, "ada");
            }
            results.push((new.run, fault.map_or(Ok(()), Err)));
        }
        Input::Appended(results)
    }

    fn state(&mut self, caller: CallerId, fact: StatedFact) -> Input {
        let result = match self.fails() {
            Some(fault) => Err(fault),
            None => {
                let supersedes = fact.supersedes.clone();
                let event = self.journal.tell(SessionEvent::Fact { fact });
                self.unreported.push(event.clone());
                let ledger = self.journal.ledger();
                let stated = ledger.facts().last().and_then(|fact| fact.supersedes.clone());
                assert_eq!(stated, supersedes, "it was not judged by the ledger before it");
                Ok(event)
            }
        };
        Input::FactAppended { caller, result: Box::new(result) }
    }

    fn summarise(&mut self, job: &SummaryJob) -> Input {
        let event = summarised(job);
        if let Some(fault) = self.fails() {
            // It may be on disk all the same.
            if self.dice.pick(2) == 1 {
                self.journal.tell(event);
            }
            return Input::StreamFailed(fault);
        }
        let event = self.journal.tell(event);
        self.unreported.push(event.clone());
        Input::Summarised { turns: vec![event] }
    }

    fn erase(&mut self, is_old: bool) -> Result<bool, Fault> {
        if let Some(fault) = self.fails() {
            return Err(fault);
        }
        if self.journal.runs.values().any(|run| run.condition == RunCondition::Unfinished) {
            return Err(Fault::new("store.session_busy", "a run of it is not over"));
        }
        if self.journal.runs.is_empty() || (is_old && self.dice.pick(2) == 1) {
            return Ok(false);
        }
        self.journal.erase();
        self.unreported.clear();
        self.watch.answered.clear();
        self.watch.shown = None;
        Ok(true)
    }

    fn read(&mut self, run: RunId, attempt: ReadAttempt) -> Input {
        let turns = if attempt == ReadAttempt::ForCommand { Vec::new() } else { self.journal.stream.clone() };
        let fault = self.fails();
        let outcome = match (fault, self.journal.runs.get(&run).map(|entry| entry.condition.clone())) {
            (Some(fault), _) => Err(fault),
            (None, None) => Err(Fault::new("run.not_found", "there is no such run")),
            (None, Some(RunCondition::Unfinished)) if attempt == ReadAttempt::AfterLastPanic => {
                self.journal.change(run, |entry| entry.condition = RunCondition::Ended);
                Ok(RunReading { condition: RunCondition::Unfinished, turns })
            }
            (None, Some(condition)) => Ok(RunReading { condition, turns }),
        };
        if let Ok(RunReading { condition: RunCondition::Ended, .. }) = &outcome
            && !self.live.contains_key(&run)
        {
            self.live.insert(run, Entry::default());
        }
        Input::RunRead { run, outcome }
    }
}
