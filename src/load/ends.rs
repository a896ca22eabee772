//! The check that each accepted request was executed once and ended: what replies said, compared with the server's list of runs.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Maximum number of runs and conversations that are remembered.
pub const MAX_TRACKED: usize = 1_000_000;
/// Runs that a report names as examples.
const MAX_EXAMPLES: usize = 5;

/// The runs of a load test. A conversation is named by the load and a number, so that the server's runs of this load are
/// recognised.
#[derive(Debug)]
pub struct RunLedger {
    /// The beginning of the names of its conversations.
    prefix: String,
    conversations: Vec<LedgerConversation>,
    runs: HashMap<Uuid, TrackedRun>,
    /// Requests that are not checked, because the ledger is full.
    untracked: u64,
    /// How often replies in two conversations named the same run, and some of these runs.
    shared: u64,
    shared_runs: Vec<Uuid>,
}

#[derive(Debug, Clone, Copy, Default)]
struct LedgerConversation {
    /// Runs that replies named.
    heard: u32,
    /// Requests without a reply: each may have been accepted.
    silent: u32,
    /// Runs in the server's list.
    listed: u32,
}

#[derive(Debug, Clone, Copy)]
struct TrackedRun {
    conversation: u32,
    /// Until its answer arrived, in microseconds.
    latency_us: u32,
    is_heard: bool,
    state: ListedState,
}

/// What the server's list says of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListedState {
    Missing,
    Unfinished,
    Waiting,
    Ended,
}

/// The ends of a load's requests, as far as the server's list of runs tells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunEnds {
    /// Runs that were accepted: a reply named them, or the list has them in a conversation of this load.
    pub accepted: u64,
    /// Those that ended.
    pub ended: u64,
    /// Those that wait for a person.
    pub waiting: u64,
    /// Those that are not in the list, or had not ended after the grace.
    pub lost: u64,
    /// Runs beyond one for each request that may have been accepted (a refused one has none), and runs that replies in two
    /// conversations named.
    pub duplicates: u64,
    /// Accepted runs of which no reply told the client.
    pub unheard: u64,
    /// Requests that were not checked, because there were more than a million.
    pub unchecked: u64,
    /// Ids of some lost runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_runs: Vec<Uuid>,
    /// Ids of some runs of conversations with duplicates, and of runs that two conversations share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub duplicate_runs: Vec<Uuid>,
}

impl RunLedger {
    /// An empty ledger. `load` is part of the names of its conversations, and no other load's.
    pub fn new(load: &str) -> Self {
        Self {
            prefix: format!("load-{load}-"),
            conversations: Vec::new(),
            runs: HashMap::new(),
            untracked: 0,
            shared: 0,
            shared_runs: Vec::new(),
        }
    }

    /// The name of a conversation.
    pub fn session(&self, conversation: u64) -> String {
        format!("{}{conversation}", self.prefix)
    }

    /// Records a reply that names its run, after `latency`.
    pub fn heard(&mut self, conversation: u64, run: Uuid, latency: Duration) {
        let Some(of) = self.conversation(conversation) else { return };
        match self.runs.get(&run) {
            // A later request of the conversation can continue a run that waited.
            Some(known) if known.conversation == of => {}
            Some(_) => {
                self.shared += 1;
                if self.shared_runs.len() < MAX_EXAMPLES {
                    self.shared_runs.push(run);
                }
            }
            None if self.runs.len() >= MAX_TRACKED => self.untracked += 1,
            None => {
                let latency_us = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
                let state = ListedState::Missing;
                self.runs.insert(run, TrackedRun { conversation: of, latency_us, is_heard: true, state });
                self.conversations[of as usize].heard += 1;
            }
        }
    }

    /// Records a request without a reply, which the server may have accepted.
    pub fn silent(&mut self, conversation: u64) {
        if let Some(of) = self.conversation(conversation) {
            self.conversations[of as usize].silent += 1;
        }
    }

    /// Records a row of the server's list of runs. Rows of other conversations are ignored; a repeated row replaces the
    /// earlier one. Returns whether the run belongs to this load.
    pub fn listed(&mut self, run: Uuid, session: &str, status: &str) -> bool {
        let number = session.strip_prefix(&self.prefix).and_then(|number| number.parse::<u64>().ok());
        let Some(number) = number else { return false };
        let Some(of) = self.conversation(number) else { return true };
        let state = match status {
            "queued" | "running" => ListedState::Unfinished,
            "waiting" => ListedState::Waiting,
            _ => ListedState::Ended,
        };
        if !self.runs.contains_key(&run) {
            if self.runs.len() >= MAX_TRACKED {
                self.untracked += 1;
                return true;
            }
            let state = ListedState::Missing;
            self.runs.insert(run, TrackedRun { conversation: of, latency_us: 0, is_heard: false, state });
        }
        if let Some(tracked) = self.runs.get_mut(&run) {
            if tracked.state == ListedState::Missing {
                self.conversations[of as usize].listed += 1;
            }
            tracked.state = state;
        }
        true
    }

    /// The first of the runs that replies named and that are not known to have ended or to wait: ids sort by time.
    pub fn first_unsettled(&self) -> Option<Uuid> {
        let is_settled = |run: &TrackedRun| matches!(run.state, ListedState::Waiting | ListedState::Ended);
        self.runs.iter().filter(|(_, run)| !is_settled(run)).map(|(id, _)| *id).min()
    }

    /// Returns whether no reply named a run: then the list cannot be compared with anything.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// At most `max` of the ended runs that replies named, evenly spread: each with its conversation, and with the
    /// latency that the client saw.
    pub fn sample(&self, max: usize) -> Vec<(Uuid, u64, Duration)> {
        let ended = self.runs.iter().filter(|(_, run)| run.is_heard && run.state == ListedState::Ended);
        let mut ended: Vec<(Uuid, u64, Duration)> = ended
            .map(|(id, run)| (*id, u64::from(run.conversation), Duration::from_micros(run.latency_us.into())))
            .collect();
        // The ids sort by time.
        ended.sort_unstable();
        let every = ended.len().div_ceil(max.max(1)).max(1);
        ended.into_iter().step_by(every).collect()
    }

    /// Returns what became of the requests.
    pub fn ends(&self) -> RunEnds {
        let count = |state: ListedState| self.runs.values().filter(|run| run.state == state).count() as u64;
        let mut ends = RunEnds {
            accepted: self.runs.len() as u64,
            ended: count(ListedState::Ended),
            waiting: count(ListedState::Waiting),
            unheard: self.runs.values().filter(|run| !run.is_heard).count() as u64,
            unchecked: self.untracked,
            ..RunEnds::default()
        };
        let beyond = |of: &LedgerConversation| of.listed.saturating_sub(of.heard.saturating_add(of.silent));
        ends.lost = count(ListedState::Missing) + count(ListedState::Unfinished);
        ends.duplicates =
            self.conversations.iter().map(|of| u64::from(beyond(of))).sum::<u64>() + self.shared;
        let mut lost: Vec<Uuid> =
            self.ids(|run| matches!(run.state, ListedState::Missing | ListedState::Unfinished));
        let mut duplicate = self.ids(|run| {
            !run.is_heard
                && self.conversations.get(run.conversation as usize).is_some_and(|of| beyond(of) > 0)
        });
        duplicate.extend(&self.shared_runs);
        for ids in [&mut lost, &mut duplicate] {
            ids.sort_unstable();
            ids.truncate(MAX_EXAMPLES);
        }
        (ends.lost_runs, ends.duplicate_runs) = (lost, duplicate);
        ends
    }

    fn ids(&self, wanted: impl Fn(&TrackedRun) -> bool) -> Vec<Uuid> {
        self.runs.iter().filter(|(_, run)| wanted(run)).map(|(id, _)| *id).collect()
    }

    /// The place of a conversation, if there is room for it.
    fn conversation(&mut self, number: u64) -> Option<u32> {
        let at = usize::try_from(number).ok().filter(|at| *at < MAX_TRACKED);
        let Some(at) = at else {
            self.untracked += 1;
            return None;
        };
        if self.conversations.len() <= at {
            self.conversations.resize(at + 1, LedgerConversation::default());
        }
        u32::try_from(at).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    fn hear(ledger: &mut RunLedger, conversation: u64, run: u128) {
        ledger.heard(conversation, id(run), Duration::from_millis(5));
    }

    /// Two requests in the conversation 0 that were answered by runs 1 and 2, and one in 1 without a reply.
    fn ledger() -> RunLedger {
        let mut ledger = RunLedger::new("x");
        hear(&mut ledger, 0, 1);
        hear(&mut ledger, 0, 2);
        ledger.silent(1);
        ledger
    }

    #[test]
    fn ended_runs_are_neither_lost_nor_duplicates() {
        let mut ledger = ledger();
        assert!(!ledger.listed(id(9), "somebody-else", "running"));
        assert!(ledger.listed(id(1), "load-x-0", "running") && ledger.first_unsettled() == Some(id(1)));
        assert!(ledger.listed(id(1), "load-x-0", "completed"));
        ledger.listed(id(2), "load-x-0", "waiting");
        // The request without a reply had been accepted.
        ledger.listed(id(3), "load-x-1", "failed");
        assert_eq!(ledger.first_unsettled(), None);
        let ends = ledger.ends();
        assert_eq!((ends.accepted, ends.ended, ends.waiting, ends.unheard), (3, 2, 1, 1));
        assert_eq!((ends.lost, ends.duplicates), (0, 0));
        assert_eq!(ledger.sample(10), [(id(1), 0, Duration::from_millis(5))]);
    }

    #[test]
    fn accepted_runs_that_are_missing_or_do_not_end_are_lost() {
        let mut ledger = ledger();
        ledger.listed(id(1), "load-x-0", "running");
        let ends = ledger.ends();
        assert_eq!((ends.accepted, ends.lost, ends.lost_runs), (2, 2, vec![id(1), id(2)]));
    }

    #[test]
    fn runs_beyond_one_for_each_request_are_duplicates() {
        let mut ledger = ledger();
        for (run, session) in
            [(1, "load-x-0"), (2, "load-x-0"), (3, "load-x-0"), (4, "load-x-1"), (5, "load-x-1")]
        {
            ledger.listed(id(run), session, "completed");
        }
        let ends = ledger.ends();
        assert_eq!((ends.duplicates, ends.lost), (2, 0));
        assert!(ends.duplicate_runs.contains(&id(3)), "{ends:?}");
        // One run as the answer of two conversations, which is none of a later turn of the same one.
        hear(&mut ledger, 0, 1);
        assert_eq!(ledger.ends().duplicates, 2);
        hear(&mut ledger, 7, 1);
        assert_eq!(ledger.ends().duplicates, 3);
    }

    #[test]
    fn conversations_beyond_the_bound_are_counted_as_unchecked() {
        let mut ledger = ledger();
        hear(&mut ledger, MAX_TRACKED as u64, 8);
        assert_eq!((ledger.ends().unchecked, ledger.ends().accepted), (1, 2));
    }
}
