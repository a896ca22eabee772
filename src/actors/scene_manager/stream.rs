//! Appending to the session's own stream, beside the drivers of its runs.

use actix::prelude::*;
use jiff::Timestamp;

use super::SceneManager;
use crate::actors::journal;
use crate::actors::runtime_task::run_as_task;
use crate::actors::stream_end::{SharedStreamEnd, StreamEnd};
use crate::conversation::{CallerId, Input};
use crate::run::{Envelope, Fault, SessionEvent, SessionId, StatedFact, TenantId};
use crate::store::{self, Record, Store, StreamId};

/// The session's stream, apart from the actor.
pub(super) struct SessionStream {
    journal: journal::Handle,
    store: Store,
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
    end: SharedStreamEnd,
}

impl SceneManager {
    pub(super) fn stream(&self) -> SessionStream {
        SessionStream {
            journal: self.options.shared.load().journal.clone(),
            store: self.options.store.clone(),
            tenant: self.tenant.clone(),
            session: self.session.clone(),
            end: self.end.clone(),
        }
    }

    pub(super) fn append_fact(&self, caller: CallerId, fact: StatedFact, ctx: &mut Context<Self>) {
        let stream = self.stream();
        let work = async move { stream.append(vec![SessionEvent::Fact { fact }]).await };
        let appended = move |_: &mut Self, result: Result<Vec<(u64, SessionEvent)>, store::Error>| {
            let event = result.map_err(Fault::from).and_then(|mut events| {
                events
                    .pop()
                    .ok_or_else(|| Fault::new("store.failed", "the fact was not stored; state it again"))
            });
            Input::FactAppended { caller, result: Box::new(event) }
        };
        self.feed_later(work, appended, ctx);
    }
}

impl SessionStream {
    /// Appends the events to the session's stream. Returns them with their sequence numbers.
    pub(super) async fn append(
        self,
        events: Vec<SessionEvent>,
    ) -> Result<Vec<(u64, SessionEvent)>, store::Error> {
        let Self { journal, store, tenant, session, end } = self;
        let mut end = end.lock().await;
        let events: Vec<(u64, SessionEvent)> = (end.last() + 1..).zip(events).collect();
        let record = |(seq, body): &(u64, SessionEvent)| {
            Record::Session(Envelope::of_session(&tenant, &session, *seq, Timestamp::now(), body.clone()))
        };
        if let Err(error) = journal.append(events.iter().map(record).collect(), true).await {
            // Runs that are driven beside the queue end in this stream, too.
            let last = run_as_task(last_in_stream(journal, store, tenant, session));
            if let Some(last) = last.await {
                *end = StreamEnd::at(last);
            }
            return Err(error);
        }
        end.appended(events.iter().cloned());
        Ok(events)
    }
}

/// The last sequence number of the session's stream on disk.
async fn last_in_stream(
    journal: journal::Handle,
    store: Store,
    tenant: TenantId,
    session: SessionId,
) -> Option<u64> {
    journal.reopen(StreamId::Session(tenant.clone(), session.clone())).await.ok()?;
    let events = store.session_events(&tenant, &session).await.ok()?;
    Some(events.last().map_or(0, |last| last.seq))
}
