//! From an event to the journal and to the state; and to listeners once it is committed.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::broadcast;

use super::{Driver, Told, store_fault};
use crate::actors::feed::Feed;
use crate::actors::journal;
use crate::crash;
use crate::memory;
use crate::run::{Effect, Envelope, Event, Fault, Illegal, SCHEMA, SessionEvent};
use crate::store::Record;

/// Events that listeners are told of once they are committed.
struct Announcement {
    events: Vec<Told>,
    listeners: broadcast::Sender<Told>,
    feed: Arc<Feed>,
}

impl journal::Listeners for Announcement {
    fn are_there(&self) -> bool {
        self.feed.is_read() && self.events.iter().any(|event| event.body.public_name().is_some())
    }

    fn tell(self: Box<Self>) {
        for event in self.events {
            // Nobody may be listening.
            let _ = self.listeners.send(event);
        }
    }
}

impl Driver {
    /// Appends and applies it, and has listeners told of it once it is committed.
    pub(super) async fn record(&mut self, event: Event) -> Result<(), Fault> {
        let illegal = |error: Illegal| Fault::new("run.illegal_event", error.to_string());
        self.state.check(&event).map_err(illegal)?;
        self.append(event).await
    }

    /// The same for an event that the machine has just asked for: what is due can happen.
    pub(super) async fn append(&mut self, event: Event) -> Result<(), Fault> {
        debug_assert_eq!(self.state.check(&event), Ok(()));
        self.append_together(vec![event]).await
    }

    /// The same for several, none of which is on disk without the others.
    pub(super) async fn append_together(&mut self, events: Vec<Event>) -> Result<(), Fault> {
        let passes = self.is_passed_with(&events);
        let durable = passes || self.must_be_durable(&events);
        let envelopes = self.envelopes(events);
        if !self.known.is_empty() {
            self.shared.journal.known(std::mem::take(&mut self.known));
        }
        for envelope in &envelopes {
            crash::point(crash::BEFORE, envelope.body.name(), self.state.request());
        }
        let records = envelopes.iter().cloned().map(Record::Run).collect();
        match envelopes.last().filter(|last| last.body.is_terminal()) {
            Some(last) => self.append_last(records, last).await?,
            None => {
                let (listeners, feed) = (self.live.listeners.clone(), self.live.feed.clone());
                // What is waited for here is told from here, once it is applied.
                let told = Announcement { events: envelopes.clone(), listeners, feed };
                let told = (!durable).then(|| Box::new(told) as Box<dyn journal::Listeners>);
                let appended = self.shared.journal.append_and_tell(records, durable, told).await;
                appended.map_err(|error| store_fault(&error))?;
            }
        }
        if passes {
            self.passed();
        }
        for envelope in envelopes {
            crash::point(crash::AFTER, envelope.body.name(), self.state.request());
            self.state.apply_checked(&envelope.body);
            self.live.feed.journalled(envelope.seq, &envelope.body);
            if durable {
                // Nobody may be listening.
                let _ = self.live.listeners.send(envelope);
            }
        }
        Ok(())
    }

    fn must_be_durable(&self, events: &[Event]) -> bool {
        // A reader has the whole answer before the run's end is on its way.
        let read = self.live.feed.is_read() && matches!(events, [Event::Answered { .. }]);
        read || events.iter().any(|event| event.must_be_durable(self.is_about_a_write(event)))
    }

    fn envelopes(&self, events: Vec<Event>) -> Vec<Told> {
        let (at, first) = (Timestamp::now(), self.state.seq + 1);
        let mut epoch = self.state.epoch;
        let envelope = |(seq, event): (u64, Event)| {
            if let Event::RunResumed { epoch: next, .. } = &event {
                epoch = *next;
            }
            Arc::new(self.envelope(seq, at, epoch, event))
        };
        (first..).zip(events).map(envelope).collect()
    }

    fn envelope(&self, seq: u64, at: Timestamp, epoch: u32, event: Event) -> Envelope<Event> {
        Envelope {
            seq,
            run: Some(self.state.run),
            session: self.session.clone(),
            tenant: self.principal.tenant.clone(),
            at,
            epoch,
            schema: SCHEMA,
            body: event,
        }
    }

    /// With a run's end the conversation remembers it, in the same commit.
    async fn append_last(&mut self, mut records: Vec<Record>, last: &Told) -> Result<(), Fault> {
        let session = self.session_seq.clone();
        let mut seq = session.lock().await;
        let turn = self.turn(last, *seq + 1);
        let remembered = turn.as_ref().map(|turn| turn.body.clone());
        records.extend(turn.map(Record::Session));
        self.shared.journal.append(records, true).await.map_err(|error| store_fault(&error))?;
        if let Some(remembered) = remembered {
            *seq += 1;
            self.turns.push((*seq, remembered));
        }
        Ok(())
    }

    fn turn(&self, last: &Envelope<Event>, seq: u64) -> Option<Envelope<SessionEvent>> {
        let mut ended = self.state.clone();
        ended.apply(&last.body).ok()?;
        let body = memory::turn_ended(&ended)?;
        Some(Envelope {
            seq,
            run: None,
            session: last.session.clone(),
            tenant: last.tenant.clone(),
            at: last.at,
            epoch: 0,
            schema: SCHEMA,
            body,
        })
    }

    pub(super) fn is_about_a_write(&self, event: &Event) -> bool {
        let (Event::ToolStarted { call, .. } | Event::ToolCompleted { call, .. }) = event else {
            return false;
        };
        self.state.calls.get(call).is_some_and(|c| c.requested.effect == Effect::Write)
    }
}
