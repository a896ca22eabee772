//! Drivers of an invented world: what they append, which commands they carry out, and how they leave.

use super::sim::{Sim, Work};
use crate::conversation::{CallerId, DriverReport, RunCondition};
use crate::run::{Fault, RunId};

impl Sim {
    /// One step of a run's driver: it goes on, leaves or panics.
    pub(super) fn drive(&mut self, run: RunId) -> Work {
        if !self.is_calm && self.dice.chance(self.world.panics, 24) {
            return self.panic(run);
        }
        let command = self.live.get_mut(&run).expect("a driver has an entry").commands.pop_front();
        let condition = self.journal.runs[&run].condition.clone();
        match (command, condition) {
            (Some(command), condition) => self.obey(run, command, &condition),
            (None, RunCondition::Unfinished) => match self.dice.pick(6) {
                0 => self.journal.change(run, |_| ()),
                1 | 2 => {
                    let approvals = 1 + self.dice.pick(5) as u32 / 4;
                    let is_shown_whole = self.dice.pick(6) != 5;
                    self.journal.wait(run, approvals, is_shown_whole);
                }
                3 if !self.is_calm && self.dice.chance(self.world.faults, 32) => {
                    return self.leave(run, Some(Fault::new("store.full", "the disk is full")));
                }
                _ => {
                    let asks = self.dice.pick(3) == 2;
                    let turn = self.journal.end(run, asks);
                    self.unreported.push(turn);
                    // With what others appended before, and have not reported.
                    self.turns.entry(run).or_default().extend_from_slice(&self.unreported);
                }
            },
            (None, _) => return self.leave(run, None),
        }
        Work::Drive(run)
    }

    /// Carries a command out, or refuses it.
    fn obey(&mut self, run: RunId, caller: CallerId, condition: &RunCondition) {
        let is_word = self.words.remove(&caller);
        let taken = match (condition, &is_word) {
            (RunCondition::Waiting(open), Some(word)) => {
                open.approvals.contains(&word.approval.approval).then_some(RunCondition::Unfinished)
            }
            (_, Some(_)) => None,
            (RunCondition::Waiting(_), None) => match self.dice.pick(4) {
                0 => None,
                1 => Some(condition.clone()),
                _ => Some(RunCondition::Unfinished),
            },
            (RunCondition::Ended, None) => (self.dice.pick(4) == 3).then_some(RunCondition::Unfinished),
            (RunCondition::Unfinished, None) => None,
        };
        match taken {
            // A person changed the plan: it waits again, in another form.
            Some(RunCondition::Waiting(_)) => {
                self.journal.wait(run, 1, true);
                self.journal.runs.get_mut(&run).expect("it waits").is_changed = true;
            }
            Some(condition) => {
                if is_word.is_some() {
                    self.watch.by_words.insert(run);
                }
                self.journal.change(run, |entry| {
                    entry.condition = condition;
                    entry.is_changed = false;
                });
            }
            None => return self.live.get_mut(&run).expect("it is driven").refused.push(caller),
        }
        self.watch.driver_replied(caller);
    }

    /// The driver leaves; what arrives from here on is not taken.
    fn leave(&mut self, run: RunId, broken: Option<Fault>) -> Work {
        self.live.get_mut(&run).expect("it is driven").is_open = false;
        self.watch.driver_left(run);
        let entry = &self.journal.runs[&run];
        let (condition, seq) = (entry.condition.clone(), entry.seq);
        let turns = self.turns.remove(&run).unwrap_or_default();
        let decided_by_words = self.watch.by_words.contains(&run);
        Work::Ended(run, DriverReport { condition, seq, turns, decided_by_words, broken })
    }

    fn panic(&mut self, run: RunId) -> Work {
        self.turns.remove(&run);
        let entry = self.live.get_mut(&run).expect("it is driven");
        entry.is_open = false;
        let dropped: Vec<CallerId> = entry.commands.drain(..).chain(entry.refused.drain(..)).collect();
        for caller in dropped {
            self.watch.driver_replied(caller);
        }
        self.watch.panicked(run);
        self.watch.by_words.remove(&run);
        Work::Panicked(run)
    }
}
