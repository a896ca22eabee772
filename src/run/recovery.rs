//! How many runs a server carries on at once after it died, and which run is put aside: pure rules.
//!
//! The server cannot know which run ended it, or whether any did. So after the first death all are carried on.
//! Each further death before anything came of them quarters how many are under way at once, down to one; only
//! a run that was under way alone at three deaths in a row is put aside. What comes to something widens the
//! bound again. A process that was told to stop has not died.
//!
//! [`Deaths`] is what survives a death: it is stored before anything begins under it. [`Admission`] is the
//! same within the life of one process.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::event::Fault;
use super::ids::RunId;

/// Deaths in a row at each of which a run was under way alone; then it is put aside.
const ALONE: u32 = 3;

/// The level at which one run at a time is under way; further deaths change nothing.
const LAST: u32 = 4;

/// What is known of the deaths of earlier processes. Stored as one row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deaths {
    /// The process that stored this is at work, or has died.
    running: bool,
    /// How often the bound was tightened: 0 after a death of which everything was recovered.
    level: u32,
    /// The runs that were under way, where that was bounded; else any that has not ended may have been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    under_way: Option<BTreeSet<RunId>>,
    /// The run that was under way alone at the last death, and at how many in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alone: Option<(RunId, u32)>,
    /// Runs that are to be put aside.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    aside: BTreeSet<RunId>,
}

impl Deaths {
    /// What holds for the process that starts now, with the runs that are neither ended nor waiting.
    #[must_use]
    pub fn after(&self, unfinished: &BTreeSet<RunId>) -> Self {
        let mut next = self.clone();
        next.running = true;
        next.aside.retain(|run| unfinished.contains(run));
        if self.running {
            next.died(unfinished);
        }
        if unfinished.iter().all(|run| next.aside.contains(run)) {
            next.level = 0;
        }
        next.under_way = next.limit().is_some().then(BTreeSet::new);
        next
    }

    fn died(&mut self, unfinished: &BTreeSet<RunId>) {
        let under_way = self.under_way.take();
        let was = |run: &&RunId| under_way.as_ref().is_none_or(|runs| runs.contains(run));
        let mut suspects = unfinished.iter().filter(was).filter(|run| !self.aside.contains(run));
        let alone = match (suspects.next(), suspects.next()) {
            (Some(run), None) => Some(*run),
            _ => None,
        };
        let before = self.alone.take();
        self.level = (self.level + 1).min(LAST);
        let Some(run) = alone else { return };
        let deaths = before.filter(|(other, _)| *other == run).map_or(1, |(_, deaths)| deaths + 1);
        if deaths >= ALONE {
            self.aside.insert(run);
        } else {
            self.alone = Some((run, deaths));
        }
    }

    /// How many runs may be under way at once; `None` for as many as come.
    pub fn limit(&self) -> Option<usize> {
        match self.level {
            0 | 1 => None,
            2 => Some(16),
            3 => Some(4),
            _ => Some(1),
        }
    }

    /// The process is told to stop: whatever ends it from now on is no death.
    pub fn stop(&mut self) {
        self.running = false;
    }

    /// Whether a run is to be put aside.
    pub fn is_aside(&self, run: RunId) -> bool {
        self.aside.contains(&run)
    }
}

/// Why a run was put aside.
pub fn put_aside() -> Fault {
    Fault::new(
        "run.put_aside",
        format!(
            "the server died {ALONE} times in a row while this run was under way alone: it waits until somebody \
             resumes or cancels it; its events tell what was done before"
        ),
    )
}

/// Which runs may be under way in this process.
#[derive(Debug, Default)]
pub struct Admission {
    deaths: Deaths,
    /// Runs that an earlier process left and of which nothing has come here.
    suspects: BTreeSet<RunId>,
    /// Those that have to come to something before the bound is widened, and how many were chosen for that.
    trial: BTreeSet<RunId>,
    chosen: usize,
    under_way: BTreeSet<RunId>,
    /// Runs that wait for a place, in their order: those of earlier processes first.
    waiting: BTreeMap<Ticket, RunId>,
    tickets: u64,
    /// Nothing begins before what holds now was stored.
    open: bool,
    /// Counts changes of what is to be stored.
    version: u64,
}

/// A place in the line.
pub type Ticket = (bool, RunId, u64);

impl Admission {
    /// With all that an earlier process has left unfinished.
    pub fn new(deaths: Deaths, mut unfinished: BTreeSet<RunId>) -> Self {
        unfinished.retain(|run| !deaths.is_aside(*run));
        let trial = if deaths.limit().is_none() { unfinished.clone() } else { BTreeSet::new() };
        Self { deaths, trial, suspects: unfinished, version: 1, ..Self::default() }
    }

    /// What is to be stored, and the count of its changes.
    pub fn stored(&self) -> (Deaths, u64) {
        (self.deaths.clone(), self.version)
    }

    /// What holds was stored: runs may begin.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// Whether a run is to be put aside.
    pub fn is_aside(&self, run: RunId) -> bool {
        self.deaths.is_aside(run)
    }

    /// A run was put aside; once somebody resumes it, it is a run as any other.
    pub fn was_put_aside(&mut self, run: RunId) {
        if self.deaths.aside.remove(&run) {
            self.version += 1;
        }
    }

    /// A run waits for a place.
    pub fn wait(&mut self, run: RunId) -> Ticket {
        self.tickets += 1;
        let ticket = (!self.suspects.contains(&run), run, self.tickets);
        self.waiting.insert(ticket, run);
        ticket
    }

    /// It waits no more.
    pub fn give_up(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// The next run that may begin, which is then under way; `None` while none may.
    pub fn admit(&mut self) -> Option<(Ticket, RunId)> {
        let limit = self.deaths.limit();
        if !self.open || limit.is_some_and(|limit| self.under_way.len() >= limit) {
            return None;
        }
        let (ticket, run) = self.waiting.pop_first()?;
        self.under_way.insert(run);
        if let Some(runs) = &mut self.deaths.under_way {
            runs.clone_from(&self.under_way);
            self.version += 1;
            if self.suspects.contains(&run) && Some(self.chosen) < limit && self.trial.insert(run) {
                self.chosen += 1;
            }
        }
        Some((ticket, run))
    }

    /// Whether the run still has to come to something.
    pub fn is_suspect(&self, run: RunId) -> bool {
        self.suspects.contains(&run)
    }

    /// Something has come of a run, and it is on disk; where that is so of all that were to show it, the
    /// bound is widened.
    pub fn passed(&mut self, run: RunId) {
        if !self.suspects.remove(&run) {
            return;
        }
        if self.deaths.alone.take_if(|(alone, _)| *alone == run).is_some() {
            self.version += 1;
        }
        self.trial.remove(&run);
        if self.trial.is_empty() {
            self.widen();
        }
    }

    /// A run ended or waits for a person.
    pub fn left(&mut self, run: RunId) {
        self.under_way.remove(&run);
        self.passed(run);
    }

    fn widen(&mut self) {
        if self.deaths.level == 0 {
            return;
        }
        self.deaths.level = if self.suspects.is_empty() { 0 } else { self.deaths.level - 1 };
        self.version += 1;
        if self.deaths.limit().is_none() {
            self.deaths.under_way = None;
            self.trial.clone_from(&self.suspects);
        } else {
            // Those that are under way already have to show it first.
            self.trial = self.suspects.intersection(&self.under_way).copied().collect();
            self.chosen = self.trial.len();
        }
    }

    /// All that could be carried on has come to something: what is left is for another program.
    pub fn recovered(&mut self) {
        self.suspects.clear();
        self.trial.clear();
        self.widen();
    }
}

#[cfg(test)]
mod tests;
