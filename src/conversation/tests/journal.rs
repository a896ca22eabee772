//! What is on disk in an invented world, and survives its crashes.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::conversation::input::OpenDecisions;
use crate::conversation::{LoadedConversation, RunCondition, StoredDecisions};
use crate::memory;
use crate::run::{PendingQuestion, Question, RunId, RunStatus, SessionEvent, Turn, Usage};

/// A run in the journal.
#[derive(Debug, Clone)]
pub struct JournalRun {
    /// Its place in the order in which runs were appended.
    pub place: usize,
    pub seq: u64,
    pub condition: RunCondition,
    /// When its last event was appended.
    pub since: i64,
    /// Whether what it waits for was changed by a person since it was shown.
    pub is_changed: bool,
    pub last_approval: u32,
}

#[derive(Debug, Default)]
pub struct Journal {
    pub runs: BTreeMap<RunId, JournalRun>,
    pub stream: Vec<(u64, SessionEvent)>,
    stream_at: Option<i64>,
    pub owner: Option<String>,
    now: i64,
    places: usize,
}

impl Journal {
    pub fn append(&mut self, run: RunId, user: &str) {
        self.places += 1;
        self.now += 1;
        let (place, condition) = (self.places, RunCondition::Unfinished);
        let entry =
            JournalRun { place, seq: 1, condition, since: self.now, is_changed: false, last_approval: 0 };
        assert!(self.runs.insert(run, entry).is_none(), "a run is appended twice");
        self.owner.get_or_insert_with(|| user.to_owned());
    }

    /// The next event of a run.
    pub fn change(&mut self, run: RunId, change: impl FnOnce(&mut JournalRun)) {
        self.now += 1;
        let entry = self.runs.get_mut(&run).expect("only runs of the journal change");
        entry.seq += 1;
        entry.since = self.now;
        change(entry);
    }

    /// The run waits for `approvals` new decisions.
    pub fn wait(&mut self, run: RunId, approvals: u32, is_shown_whole: bool) {
        self.change(run, |entry| {
            let first = entry.last_approval + 1;
            entry.last_approval += approvals;
            let approvals = (first..=entry.last_approval).collect();
            entry.condition = RunCondition::Waiting(OpenDecisions {
                seq: entry.seq,
                approvals,
                lists: None,
                reads_words: false,
                is_shown_whole,
                language: None,
            });
        });
    }

    /// The run ends, with its turn in the same commit.
    pub fn end(&mut self, run: RunId, asks: bool) -> (u64, SessionEvent) {
        self.change(run, |entry| entry.condition = RunCondition::Ended);
        let (request, answer) = ("look".to_owned(), "done".to_owned());
        let turn = Turn { run: Some(run), request, answer, status: RunStatus::Completed, calls: Vec::new() };
        let pending = asks.then(|| pending(run));
        self.tell(SessionEvent::TurnEnded { turn, pending, usage: Usage::default(), origin: None })
    }

    /// An event of the session's stream.
    pub fn tell(&mut self, event: SessionEvent) -> (u64, SessionEvent) {
        self.now += 1;
        self.stream_at = Some(self.now);
        self.stream.push((self.stream.len() as u64 + 1, event));
        self.stream.last().cloned().expect("one was pushed")
    }

    /// What turns say is changed where they stand.
    pub fn rewrite(&mut self) {
        for (_, event) in &mut self.stream {
            if let SessionEvent::TurnEnded { turn, .. } = event {
                turn.answer = "rewritten".to_owned();
            }
        }
    }

    /// The sequence numbers of a run's turns in the stream.
    pub fn turns_of(&self, run: RunId) -> impl Iterator<Item = u64> {
        let is_own = move |event: &SessionEvent| match event {
            SessionEvent::TurnEnded { turn, .. } => turn.run == Some(run),
            _ => false,
        };
        self.stream.iter().filter(move |(_, event)| is_own(event)).map(|(seq, _)| *seq)
    }

    pub fn erase(&mut self) {
        let (now, places) = (self.now, self.places);
        *self = Self { now, places, ..Self::default() };
    }

    pub fn memory(&self, options: memory::Options) -> memory::Memory {
        memory::Memory::from_events(options, self.stream.iter().map(|(_, event)| event))
    }

    pub fn ledger(&self) -> memory::FactLedger {
        memory::FactLedger::from_events(self.stream.iter().map(|(seq, event)| (*seq, event)))
    }

    pub fn load(&self) -> LoadedConversation {
        let mut unfinished: Vec<_> = self.runs.iter().collect();
        unfinished.retain(|(_, entry)| entry.condition == RunCondition::Unfinished);
        unfinished.sort_by_key(|(_, entry)| entry.place);
        let waiting = self.runs.iter().filter_map(|(run, entry)| match &entry.condition {
            RunCondition::Waiting(open) => Some(StoredDecisions {
                run: *run,
                open: open.clone(),
                since: at(entry.since),
                is_changed: entry.is_changed,
            }),
            _ => None,
        });
        LoadedConversation {
            events: self.stream.clone(),
            last_event_at: self.stream_at.map(at),
            owner: self.owner.clone(),
            unfinished: unfinished.into_iter().map(|(run, _)| *run).collect(),
            waiting: waiting.collect(),
        }
    }

    /// The run whose answer was the last one, if it waits, as far as the journal tells.
    pub fn last_answer(&self) -> Option<(RunId, u64)> {
        let waiting =
            self.runs.iter().filter(|(_, entry)| matches!(entry.condition, RunCondition::Waiting(_)));
        let (run, entry) = waiting.max_by_key(|(_, entry)| entry.since)?;
        let is_last = self.stream_at.is_none_or(|at| at < entry.since);
        (is_last && !entry.is_changed).then_some((*run, entry.seq))
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a small number")
}

pub fn pending(run: RunId) -> PendingQuestion {
    let text = "Is it right?".to_owned();
    let question = Question {
        text,
        tool: None,
        missing: Vec::new(),
        known: serde_json::Value::Null,
        choices: Vec::new(),
    };
    PendingQuestion {
        request: "book".to_owned(),
        scene: "desk".to_owned(),
        purpose: "book".to_owned(),
        question,
        unconfirmed: Vec::new(),
        user: "ada".to_owned(),
        run: Some(run),
        documents: Vec::new(),
    }
}
