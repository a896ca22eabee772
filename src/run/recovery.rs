//! Crash recovery rules: how many runs a server resumes at once after a crash, and which run it
//! quarantines. Pure.
//!
//! The server cannot know which run crashed it, or whether any did. After the first crash, all runs are
//! resumed. Each further crash without progress quarters the limit of concurrent runs, down to one. A run
//! is quarantined only if it was the only one in progress at three consecutive crashes. Progress raises the
//! limit again. A regular shutdown is not a crash.
//!
//! [`CrashHistory`] survives a crash: it is stored before any run begins under it. [`RecoveryAdmission`]
//! applies it within one process.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::event::Fault;
use super::ids::RunId;

/// Consecutive crashes with only this run in progress after which it is quarantined.
const MAX_CRASHES_ALONE: u32 = 3;

/// The level at which one run at a time is in progress; further crashes do not raise it.
const MAX_LEVEL: u32 = 4;

/// The crashes of earlier processes. Stored as one row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashHistory {
    /// Whether the process that stored this is running, or crashed.
    running: bool,
    /// How often the limit was lowered: 0 once everything was recovered.
    level: u32,
    /// The runs in progress, where their number was limited; otherwise any unfinished run may have been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    under_way: Option<BTreeSet<RunId>>,
    /// The only run in progress at the last crash, and at how many consecutive ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alone: Option<(RunId, u32)>,
    /// Runs that are to be quarantined.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    aside: BTreeSet<RunId>,
}

impl CrashHistory {
    /// The history for a starting process, given the runs that have neither ended nor wait.
    #[must_use]
    pub fn at_start(&self, unfinished: &BTreeSet<RunId>) -> Self {
        let mut next = self.clone();
        next.running = true;
        next.aside.retain(|run| unfinished.contains(run));
        if self.running {
            next.record_crash(unfinished);
        }
        if unfinished.iter().all(|run| next.aside.contains(run)) {
            next.level = 0;
        }
        next.under_way = next.limit().is_some().then(BTreeSet::new);
        next
    }

    fn record_crash(&mut self, unfinished: &BTreeSet<RunId>) {
        let under_way = self.under_way.take();
        let was = |run: &&RunId| under_way.as_ref().is_none_or(|runs| runs.contains(run));
        let mut suspects = unfinished.iter().filter(was).filter(|run| !self.aside.contains(run));
        let alone = match (suspects.next(), suspects.next()) {
            (Some(run), None) => Some(*run),
            _ => None,
        };
        let before = self.alone.take();
        self.level = (self.level + 1).min(MAX_LEVEL);
        let Some(run) = alone else { return };
        let crashes = before.filter(|(other, _)| *other == run).map_or(1, |(_, crashes)| crashes + 1);
        if crashes >= MAX_CRASHES_ALONE {
            self.aside.insert(run);
        } else {
            self.alone = Some((run, crashes));
        }
    }

    /// How many runs may be in progress at once; `None` for no limit.
    pub fn limit(&self) -> Option<usize> {
        match self.level {
            0 | 1 => None,
            2 => Some(16),
            3 => Some(4),
            _ => Some(1),
        }
    }

    /// Records a regular shutdown: the end of the process from now on is not a crash.
    pub fn record_shutdown(&mut self) {
        self.running = false;
    }

    /// Returns whether a run is to be quarantined.
    pub fn is_quarantined(&self, run: RunId) -> bool {
        self.aside.contains(&run)
    }
}

/// The fault of a quarantined run.
pub fn quarantine_fault() -> Fault {
    Fault::new(
        "run.put_aside",
        format!(
            "the server crashed {MAX_CRASHES_ALONE} times in a row while only this run was in progress: it is \
             quarantined until it is resumed or cancelled; its events show what was done before"
        ),
    )
}

/// Decides which runs may be in progress in this process.
#[derive(Debug, Default)]
pub struct RecoveryAdmission {
    history: CrashHistory,
    /// Runs of an earlier process that have made no progress in this one.
    suspects: BTreeSet<RunId>,
    /// Runs that have to make progress before the limit is raised, and how many were chosen.
    trial: BTreeSet<RunId>,
    chosen: usize,
    under_way: BTreeSet<RunId>,
    /// Runs that wait for admission, in order: those of earlier processes first.
    waiting: BTreeMap<AdmissionTicket, RunId>,
    tickets: u64,
    /// Whether the current history was stored; nothing begins before that.
    open: bool,
    /// Counts changes of the history to be stored.
    version: u64,
}

/// A place in the queue.
pub type AdmissionTicket = (bool, RunId, u64);

impl RecoveryAdmission {
    /// Starts with the runs that earlier processes left unfinished.
    pub fn new(history: CrashHistory, mut unfinished: BTreeSet<RunId>) -> Self {
        unfinished.retain(|run| !history.is_quarantined(*run));
        let trial = if history.limit().is_none() { unfinished.clone() } else { BTreeSet::new() };
        Self { history, trial, suspects: unfinished, version: 1, ..Self::default() }
    }

    /// The history to be stored, and its version.
    pub fn to_store(&self) -> (CrashHistory, u64) {
        (self.history.clone(), self.version)
    }

    /// The history was stored: runs may begin.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// Returns whether a run is to be quarantined.
    pub fn is_quarantined(&self, run: RunId) -> bool {
        self.history.is_quarantined(run)
    }

    /// The quarantine of a run was recorded; once resumed, it is treated like any other run.
    pub fn clear_quarantine(&mut self, run: RunId) {
        if self.history.aside.remove(&run) {
            self.version += 1;
        }
    }

    /// Queues a run for admission.
    pub fn enqueue(&mut self, run: RunId) -> AdmissionTicket {
        self.tickets += 1;
        let ticket = (!self.suspects.contains(&run), run, self.tickets);
        self.waiting.insert(ticket, run);
        ticket
    }

    /// Removes a waiting run from the queue.
    pub fn dequeue(&mut self, ticket: AdmissionTicket) {
        self.waiting.remove(&ticket);
    }

    /// Admits the next run; `None` while none may begin.
    pub fn admit(&mut self) -> Option<(AdmissionTicket, RunId)> {
        let limit = self.history.limit();
        if !self.open || limit.is_some_and(|limit| self.under_way.len() >= limit) {
            return None;
        }
        let (ticket, run) = self.waiting.pop_first()?;
        self.under_way.insert(run);
        if let Some(runs) = &mut self.history.under_way {
            runs.clone_from(&self.under_way);
            self.version += 1;
            if self.suspects.contains(&run) && Some(self.chosen) < limit && self.trial.insert(run) {
                self.chosen += 1;
            }
        }
        Some((ticket, run))
    }

    /// Returns whether the run still has to make progress.
    pub fn is_suspect(&self, run: RunId) -> bool {
        self.suspects.contains(&run)
    }

    /// A run made progress, which is on disk. Once all chosen runs did, the limit is raised.
    pub fn record_progress(&mut self, run: RunId) {
        if !self.suspects.remove(&run) {
            return;
        }
        if self.history.alone.take_if(|(alone, _)| *alone == run).is_some() {
            self.version += 1;
        }
        self.trial.remove(&run);
        if self.trial.is_empty() {
            self.raise_limit();
        }
    }

    /// A run ended or waits for a person.
    pub fn release(&mut self, run: RunId) {
        self.under_way.remove(&run);
        self.record_progress(run);
    }

    fn raise_limit(&mut self) {
        if self.history.level == 0 {
            return;
        }
        self.history.level = if self.suspects.is_empty() { 0 } else { self.history.level - 1 };
        self.version += 1;
        if self.history.limit().is_none() {
            self.history.under_way = None;
            self.trial.clone_from(&self.suspects);
        } else {
            // Runs that are in progress already have to make progress first.
            self.trial = self.suspects.intersection(&self.under_way).copied().collect();
            self.chosen = self.trial.len();
        }
    }

    /// Every run that could be resumed made progress: recovery is complete. Remaining runs need another
    /// release.
    pub fn finish_recovery(&mut self) {
        self.suspects.clear();
        self.trial.clear();
        self.raise_limit();
    }
}

#[cfg(test)]
mod tests;
