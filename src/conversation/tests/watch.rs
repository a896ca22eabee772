//! Watches that the laws hold, at every side effect of every actor.

use std::collections::{BTreeMap, BTreeSet};

use super::journal::Journal;
use crate::conversation::{CallerId, MAX_PANICS, NewRun, RunCondition, SideEffect, WordDecision};
use crate::run::RunId;

/// What a caller sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    Request,
    Command,
    Erase,
    Resume,
    State,
    Hold,
}

/// How far a caller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nothing was replied.
    Open,
    /// Its command is with a driver.
    Delivered,
    /// A caller that resumes runs knows that the runs can be followed.
    Ready,
    /// It got its reply, and waits for the answer of a run.
    Replied,
}

#[derive(Debug, Default)]
pub struct Watch {
    /// Callers that wait for something.
    waiting: BTreeMap<CallerId, (Message, Standing)>,
    /// Commands whose run finished before their driver replied.
    finished: BTreeSet<CallerId>,
    /// Runs with a driver, in the whole process.
    pub drivers: BTreeSet<RunId>,
    /// Those that are driven in their turn.
    current: BTreeSet<RunId>,
    /// Runs that are driven, or were read, for a command.
    commanded: BTreeSet<RunId>,
    /// Accepted runs of this process that have not begun.
    accepted: BTreeSet<RunId>,
    /// Runs that an actor could not continue.
    abandoned: BTreeSet<RunId>,
    panics: BTreeMap<RunId, u32>,
    /// The run and state that the conversation's last answer showed.
    pub shown: Option<(RunId, u64)>,
    /// Drivers whose run words decided about.
    pub by_words: BTreeSet<RunId>,
    /// The turns of the stream whose runs were answered, by their sequence numbers.
    pub answered: BTreeSet<u64>,
    pub accepts: usize,
    pub drives: usize,
    pub decisions: usize,
    pub sleeps: usize,
    /// Summaries beside which a run of the queue was driven.
    pub beside_summaries: usize,
    /// Summaries that were hurried.
    pub hurries: usize,
}

impl Watch {
    pub fn sends(&mut self, caller: CallerId, message: Message) {
        self.waiting.insert(caller, (message, Standing::Open));
    }

    /// The process died: its callers and drivers with it.
    pub fn crash(&mut self, journal: &Journal) {
        let (accepts, drives) = (self.accepts, self.drives);
        let (decisions, sleeps) = (self.decisions, self.sleeps);
        let (beside_summaries, hurries) = (self.beside_summaries, self.hurries);
        let answered = std::mem::take(&mut self.answered);
        *self = Self {
            answered,
            accepts,
            drives,
            decisions,
            sleeps,
            beside_summaries,
            hurries,
            ..Self::default()
        };
        self.loaded(journal);
    }

    /// An actor reads the conversation.
    pub fn loaded(&mut self, journal: &Journal) {
        assert!(self.drivers.is_empty(), "it is read while {:?} are driven", self.drivers);
        self.shown = journal.last_answer();
        self.commanded.clear();
        self.accepted.clear();
        self.abandoned.clear();
        self.panics.clear();
    }

    /// A side effect, before it is performed.
    pub fn before(&mut self, effect: &SideEffect, journal: &Journal) {
        match effect {
            SideEffect::Append(runs) => runs.iter().for_each(|new| self.appends(new, journal)),
            SideEffect::Accept { caller, run } => {
                assert!(journal.runs.contains_key(run), "{run} is accepted and not in the journal");
                self.reply(*caller, &[Message::Request]);
                self.accepted.insert(*run);
                self.accepts += 1;
            }
            SideEffect::Refuse { caller, fault, .. } => {
                let (message, standing) = self.waiting.remove(caller).expect("it is replied to once");
                assert_eq!(standing, Standing::Open, "{message:?} is refused after a reply");
                let is_full = fault.code == "session.queue_full";
                assert!(!is_full || message == Message::Request, "a decision queues behind requests");
            }
            SideEffect::DecideByWords { caller, decision } => self.decides(*caller, decision, journal),
            SideEffect::ReadRun { run, .. } => {
                assert!(!self.drivers.contains(run), "{run} is read while it is driven");
                if !self.current.contains(run) {
                    self.commanded.insert(*run);
                }
            }
            SideEffect::Drive { run, .. } => self.drives(*run, journal),
            SideEffect::Finish { run, callers, fault } => {
                assert!(!self.drivers.contains(run), "{run} is finished while it is driven");
                match fault {
                    Some(_) => drop(self.abandoned.insert(*run)),
                    None => {
                        self.answered.extend(journal.turns_of(*run));
                        self.answers(*run, journal);
                    }
                }
                self.accepted.remove(run);
                self.panics.remove(run);
                self.current.remove(run);
                self.commanded.remove(run);
                callers.iter().for_each(|caller| self.answer(*caller));
            }
            SideEffect::ReplyStated { caller, .. } => {
                let stated = self.waiting.remove(caller);
                assert_eq!(stated, Some((Message::State, Standing::Open)));
            }
            SideEffect::ReplyErased { caller, .. } => {
                let erased = self.waiting.remove(caller);
                assert_eq!(erased, Some((Message::Erase, Standing::Open)));
            }
            SideEffect::Hold { caller } => {
                let held = self.waiting.remove(caller);
                assert_eq!(held, Some((Message::Hold, Standing::Open)));
                assert!(self.drivers.is_empty() && self.accepted.is_empty(), "it is held while it is busy");
            }
            SideEffect::ReplyReady { caller } => {
                let before = self.waiting.insert(*caller, (Message::Resume, Standing::Ready));
                assert_eq!(before, Some((Message::Resume, Standing::Open)));
            }
            SideEffect::ReplyResumed { caller } => {
                let resumed = self.waiting.remove(caller);
                assert!(matches!(resumed, Some((Message::Resume, _))));
            }
            SideEffect::Erase { .. } => {
                assert!(self.drivers.is_empty() && self.accepted.is_empty(), "it is erased while it is busy");
            }
            SideEffect::Stop => self.sleeps += 1,
            _ => {}
        }
    }

    fn appends(&self, new: &NewRun, journal: &Journal) {
        assert!(!journal.runs.contains_key(&new.run));
        assert!(matches!(self.waiting.get(&new.caller), Some((Message::Request, Standing::Open))));
        if let Some(asked) = new.answers {
            let later = journal.runs.iter().filter(|(run, _)| **run > asked);
            let rests = |run: &RunId, condition: &RunCondition| {
                *condition == RunCondition::Ended || self.abandoned.contains(run)
            };
            for (run, entry) in later {
                assert!(rests(run, &entry.condition), "it answers {asked}, but {run} came later");
            }
        }
    }

    fn decides(&mut self, caller: CallerId, decision: &WordDecision, journal: &Journal) {
        let (message, standing) = self.waiting.get_mut(&caller).expect("it waits");
        assert_eq!((*message, *standing), (Message::Request, Standing::Open));
        *message = Message::Command;
        let run = decision.approval.run;
        let entry = &journal.runs[&run];
        let RunCondition::Waiting(open) = &entry.condition else { panic!("words decide about {entry:?}") };
        assert!(open.is_shown_whole, "words decide what was not shown whole");
        assert_eq!(open.approvals, [decision.approval.approval], "words decide about one of several");
        assert_eq!(
            self.shown,
            Some((run, decision.before)),
            "words decide what the last answer did not show"
        );
        assert_eq!(entry.seq, decision.before, "it has changed since it was shown");
        self.decisions += 1;
    }

    fn drives(&mut self, run: RunId, journal: &Journal) {
        self.drives += 1;
        let entry = journal.runs.get(&run).expect("only what is in the journal is driven");
        assert!(self.drivers.insert(run), "{run} has two drivers");
        assert!(self.panics.get(&run).is_none_or(|panics| *panics < MAX_PANICS), "{run} panics for ever");
        self.accepted.remove(&run);
        if self.commanded.contains(&run) || self.current.contains(&run) {
            return;
        }
        assert!(self.current.is_empty(), "{run} is driven in its turn beside {:?}", self.current);
        self.current.insert(run);
        for (earlier, other) in &journal.runs {
            let is_due = other.place < entry.place && other.condition == RunCondition::Unfinished;
            let is_elsewhere = self.commanded.contains(earlier) || self.abandoned.contains(earlier);
            assert!(!is_due || is_elsewhere, "{run} begins before {earlier}");
        }
    }

    /// Whether the effect drives the run whose turn it is.
    pub fn is_current(&self, effect: &SideEffect) -> bool {
        matches!(effect, SideEffect::Drive { run, .. } if self.current.contains(run))
    }

    /// A command is in a driver's inbox.
    pub fn delivered(&mut self, caller: CallerId) {
        let (message, standing) = self.waiting.get_mut(&caller).expect("it waits");
        assert_eq!((*message, *standing), (Message::Command, Standing::Open));
        *standing = Standing::Delivered;
    }

    /// The driver replied, or dropped the command.
    pub fn driver_replied(&mut self, caller: CallerId) {
        if self.finished.remove(&caller) {
            return;
        }
        let (_, standing) = self.waiting.get_mut(&caller).expect("it waits");
        assert_eq!(*standing, Standing::Delivered, "a driver replies twice");
        *standing = Standing::Replied;
    }

    fn reply(&mut self, caller: CallerId, messages: &[Message]) {
        let (message, standing) = self.waiting.get_mut(&caller).expect("it is replied to once");
        assert!(messages.contains(message) && *standing == Standing::Open, "{message:?} {standing:?}");
        *standing = Standing::Replied;
    }

    fn answer(&mut self, caller: CallerId) {
        let (_, standing) = self.waiting.remove(&caller).expect("it gets one answer");
        match standing {
            Standing::Replied => {}
            // Its channel is dropped with the run's entry, which is a reply.
            Standing::Delivered => drop(self.finished.insert(caller)),
            other => panic!("an answer before the reply: {other:?}"),
        }
    }

    /// The conversation's user is answered, if it was the user who asked.
    fn answers(&mut self, run: RunId, journal: &Journal) {
        if self.current.contains(&run) | self.by_words.remove(&run) {
            let entry = &journal.runs[&run];
            let is_waiting = matches!(entry.condition, RunCondition::Waiting(_));
            self.shown = is_waiting.then_some((run, entry.seq));
        }
    }

    pub fn driver_left(&mut self, run: RunId) {
        assert!(self.drivers.remove(&run));
    }

    pub fn panicked(&mut self, run: RunId) {
        self.driver_left(run);
        *self.panics.entry(run).or_default() += 1;
    }

    pub fn at_end(&self) {
        assert!(self.waiting.is_empty(), "nobody replied to {:?}", self.waiting);
    }
}
