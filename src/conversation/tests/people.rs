//! Callers of an invented world: what they send, by way of its registry.

use std::collections::VecDeque;

use super::sim::{Actor, Sim, WINDOW};
use super::watch::Message;
use crate::conversation::{
    CallerId, ConversationLimits, ConversationState, FactStatement, IncomingRequest, Input, OpenHistories,
};
use crate::run::{RunId, SessionId};

impl Sim {
    fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Somebody sends something, by way of the registry.
    pub(super) fn send(&mut self) {
        let caller = CallerId(self.id());
        let run = RunId(uuid::Uuid::from_u128(u128::from(self.id())));
        if self.watch.shown.is_some() && self.dice.pick(3) == 0 {
            return self.send_request(caller, run, Some("yes".to_owned()));
        }
        if !self.dice.chance(self.world.people, 8) {
            let words = Some("look".to_owned());
            return self.send_request(caller, run, words);
        }
        match self.dice.pick(9) {
            8 => self.post(caller, Message::Hold, Input::Hold { caller }),
            0 => {
                let since = (self.dice.pick(2) == 1).then(jiff::Timestamp::now);
                self.post(caller, Message::Erase, Input::Erase { caller, since });
            }
            1 => self.post(caller, Message::Resume, Input::Resume { caller }),
            5 => {
                let ledger = self.journal.ledger();
                let corrects = ledger.facts().last().map(|fact| fact.id.clone());
                let corrects = corrects.filter(|_| self.dice.pick(2) == 1);
                let (claim, by) = (format!("the limit is {} euros", self.id()), "ada".to_owned());
                let at = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
                let statement = Box::new(FactStatement { claim, corrects, by, at });
                self.post(caller, Message::State, Input::State { caller, statement });
            }
            2..=4 => {
                let words = if self.dice.pick(3) == 0 { "no" } else { "yes" };
                self.send_request(caller, run, Some(words.to_owned()));
            }
            _ => {
                let runs: Vec<RunId> = self.journal.runs.keys().copied().collect();
                let last = runs.get(self.dice.pick(runs.len())).copied();
                let run = last.unwrap_or(run);
                self.post(caller, Message::Command, Input::Command { caller, run });
            }
        }
    }

    fn send_request(&mut self, caller: CallerId, run: RunId, words: Option<String>) {
        let user = if self.dice.pick(12) == 11 { "bob" } else { "ada" }.to_owned();
        let own_session = self.dice.pick(2) == 1;
        let request = IncomingRequest { caller, run, user, own_session, words, answered: None };
        self.post(caller, Message::Request, Input::Request(request));
    }

    pub(super) fn resume(&mut self) {
        let caller = CallerId(self.id());
        self.post(caller, Message::Resume, Input::Resume { caller });
    }

    fn post(&mut self, caller: CallerId, message: Message, input: Input) {
        self.watch.sends(caller, message);
        if !self.is_registered {
            let session = SessionId::new("s-1").unwrap();
            let limits = ConversationLimits {
                max_queued: self.world.max_queued,
                memory: self.world.memory.clone(),
                window: WINDOW,
                open: OpenHistories::new(10_000),
            };
            let (state, effects) = ConversationState::new(session, limits, false);
            let (mailbox, work) = (VecDeque::new(), Vec::new());
            self.actors.push(Actor { state, mailbox, work, sent: 0, is_stopped: false });
            self.is_registered = true;
            self.perform(self.actors.len() - 1, effects);
        }
        let actor = self.actors.last_mut().unwrap();
        actor.sent += 1;
        actor.mailbox.push_back(input);
    }
}
