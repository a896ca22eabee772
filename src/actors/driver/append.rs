//! Appends events to the journal, applies them to the state, and publishes them once committed.

use std::sync::Arc;

use tokio::sync::broadcast;

use super::{Driver, PublishedRunEvent};
use crate::actors::answer_feed::AnswerFeed;
use crate::actors::journal;
use crate::actors::tool_healths::EndedCall;
use crate::crash;
use crate::memory;
use crate::run::{Envelope, Event, Fault, Illegal, SessionEvent};
use crate::store::Record;

/// Events that are published once they are committed.
struct EventPublication {
    events: Vec<PublishedRunEvent>,
    event_sender: broadcast::Sender<PublishedRunEvent>,
    feed: Arc<AnswerFeed>,
}

impl journal::CommitHook for EventPublication {
    fn has_readers(&self) -> bool {
        self.feed.has_readers() && self.events.iter().any(|event| event.body.public_name().is_some())
    }

    fn publish(self: Box<Self>) {
        for event in self.events {
            // There may be no subscriber.
            let _ = self.event_sender.send(event);
        }
    }
}

impl Driver {
    /// Appends the event, applies it, and publishes it once it is committed.
    pub(super) async fn record(&mut self, event: Event) -> Result<(), Fault> {
        self.record_together(vec![event]).await
    }

    /// Like [`record`](Self::record) for an event and what follows from it, written atomically. Only the first one is
    /// checked: the state that the others are legal in comes with it.
    pub(super) async fn record_together(&mut self, events: Vec<Event>) -> Result<(), Fault> {
        let illegal = |error: Illegal| Fault::new("run.illegal_event", error.to_string());
        if let Some(first) = events.first() {
            self.state.check(first).map_err(illegal)?;
        }
        self.append_together(events).await
    }

    /// Like [`record`](Self::record), for an event that the machine has just requested and that is
    /// therefore legal.
    pub(super) async fn append(&mut self, event: Event) -> Result<(), Fault> {
        debug_assert_eq!(self.state.check(&event), Ok(()));
        self.append_together(vec![event]).await
    }

    /// Like [`append`](Self::append) for several events, written atomically.
    pub(super) async fn append_together(&mut self, events: Vec<Event>) -> Result<(), Fault> {
        let passes = self.clears_suspicion(&events);
        let durable = passes || self.must_be_durable(&events);
        let cost = events.iter().map(Event::cost_nano_usd).fold(0, u64::saturating_add);
        let envelopes = self.envelopes(events);
        for envelope in &envelopes {
            crash::point(crash::BEFORE, envelope.body.name(), self.state.request());
        }
        let records = envelopes.iter().cloned().map(Record::Run).collect();
        match envelopes.last().filter(|last| last.body.is_terminal()) {
            Some(last) => self.append_terminal(records, last).await?,
            None => {
                // Durable events are published below, after they are applied.
                let commit_hook = (!durable).then(|| self.publication(&envelopes));
                let appended = self.shared.journal.append_with_hook(records, durable, commit_hook).await;
                appended?;
            }
        }
        self.account.record(cost);
        if passes {
            self.clear_suspicion();
        }
        for envelope in envelopes {
            crash::point(crash::AFTER, envelope.body.name(), self.state.request());
            self.report_health(&envelope);
            self.state.apply_checked(&envelope.body, envelope.at);
            self.live.feed.apply_event(envelope.seq, &envelope.body);
            if durable {
                // There may be no subscriber.
                let _ = self.live.event_sender.send(envelope);
            }
        }
        Ok(())
    }

    /// Publishes these events when it is told that they are committed.
    fn publication(&self, events: &[PublishedRunEvent]) -> Box<dyn journal::CommitHook> {
        let (event_sender, feed) = (self.live.event_sender.clone(), self.live.feed.clone());
        Box::new(EventPublication { events: events.to_vec(), event_sender, feed })
    }

    /// Records how an ended call went, for the calls after it.
    fn report_health(&self, envelope: &Envelope<Event>) {
        if let Some(ended) = EndedCall::of(&self.state, envelope) {
            self.shared.health.record(ended, self.shared.breaker);
        }
    }

    fn must_be_durable(&self, events: &[Event]) -> bool {
        // Readers receive the whole answer before the run's terminal event is appended.
        let read = self.live.feed.has_readers() && matches!(events, [Event::Answered { .. }]);
        read || events.iter().any(|event| event.must_be_durable(self.state.concerns_write(event)))
    }

    fn envelopes(&self, events: Vec<Event>) -> Vec<PublishedRunEvent> {
        let (at, first) = (self.clock.now(), self.state.seq + 1);
        let mut epoch = self.state.epoch;
        let envelope = |(seq, event): (u64, Event)| {
            if let Event::RunResumed { epoch: next, .. } = &event {
                epoch = *next;
            }
            let (run, tenant) = (self.state.run, &self.principal.tenant);
            Arc::new(Envelope::of_run(run, tenant, &self.session, seq, epoch, at, event))
        };
        (first..).zip(events).map(envelope).collect()
    }

    /// Appends the run's terminal event and the session's turn in the same commit.
    async fn append_terminal(
        &mut self,
        mut records: Vec<Record>,
        last: &PublishedRunEvent,
    ) -> Result<(), Fault> {
        let session = self.session_end.clone();
        let mut end = session.lock().await;
        let seq = end.last() + 1;
        let turn = self.ended_turn(last, seq);
        let remembered = turn.as_ref().map(|turn| turn.body.clone());
        records.extend(turn.map(Record::Session));
        self.shared.journal.append(records, true).await?;
        if let Some(remembered) = remembered {
            end.appended([(seq, remembered)]);
            self.turns.extend_from_slice(end.unreported());
        }
        Ok(())
    }

    fn ended_turn(&self, last: &Envelope<Event>, seq: u64) -> Option<Envelope<SessionEvent>> {
        let body = memory::turn_after(&self.state, &last.body)?;
        Some(Envelope::of_session(&last.tenant, &last.session, seq, last.at, body))
    }
}
