//! A run's public events in order: first from the journal, then live, interleaved with the answer's text as
//! it is produced.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use futures::stream::{BoxStream, StreamExt, unfold};
use serde_json::json;
use tokio::sync::{broadcast, watch};

use super::{EventId, PublicEvent, PublicProjection};
use crate::actors::active_runs::RunWatch;
use crate::actors::answer_feed::{AnswerFeed, FeedReaderGuard};
use crate::actors::driver::PublishedRunEvent;
use crate::actors::journal;
use crate::run::{AnswerCursor, Envelope, Event, Fault, RunId, TenantId};
use crate::store::Store;

/// The public events of one run. The stream ends after the run's last event, when the run waits for a
/// person, or at the end of the journal if the run is not in progress. Later events (after a decision or a
/// resume) are delivered to a client that reconnects with the last id. If the journal cannot be read, the
/// last item is an error. Slow readers delay nothing. Only events on disk are delivered, except for the
/// answer's text, which is delivered as it is produced.
pub struct PublicStream {
    events: BoxStream<'static, Result<PublicEvent, Fault>>,
}

impl std::fmt::Debug for PublicStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublicStream").finish_non_exhaustive()
    }
}

impl Stream for PublicStream {
    type Item = Result<PublicEvent, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(cx)
    }
}

/// Where to read events that a subscriber has missed.
#[derive(Clone)]
pub(crate) struct EventSource {
    pub(crate) store: Store,
    pub(crate) journal: journal::Handle,
    pub(crate) tenant: TenantId,
    pub(crate) run: RunId,
}

impl PublicStream {
    /// The events after `last`; `watch` is present if the run is in progress.
    pub(crate) fn resumed(source: EventSource, watch: Option<RunWatch>, last: EventId) -> Self {
        let mut reader = PublicEventReader::new(source, PublicProjection::default(), watch);
        reader.last = Some(last);
        reader.behind = true;
        Self::from_reader(reader)
    }

    /// All events of a run that was just accepted; `watch` subscribed before its first event.
    pub(crate) fn fresh(source: EventSource, watch: RunWatch) -> Self {
        let mut reader = PublicEventReader::new(source, PublicProjection::of(watch.task), Some(watch));
        // Its first event is the acceptance, which is not public.
        reader.seq = 1;
        reader.unsynced = true;
        Self::from_reader(reader)
    }

    fn from_reader(reader: PublicEventReader) -> Self {
        let events = unfold(reader, |mut reader| async move { Some((reader.next().await?, reader)) });
        Self { events: events.boxed() }
    }
}

struct PublicEventReader {
    source: EventSource,
    projection: PublicProjection,
    /// The last event taken from the journal or the live run.
    seq: u64,
    /// The epoch of that event: how often the run had been taken over.
    epoch: u32,
    /// The client's last event id, until the journal was read.
    last: Option<EventId>,
    /// Events up to this one were delivered before.
    after: u64,
    /// Whether events from before the subscription may not be on disk yet.
    unsynced: bool,
    /// Events of the journal to be delivered.
    stored: VecDeque<PublishedRunEvent>,
    /// Whether the journal has events that were not read yet.
    behind: bool,
    live: Option<LiveRun>,
    /// How much of the answer was delivered.
    cursor: AnswerCursor,
    /// Whether there is answer text that belongs after an event that was not taken yet.
    early: bool,
    /// Whether the complete answer was delivered.
    answered: bool,
    /// Whether the run waits for a person, according to the last event.
    waits: bool,
    /// Whether the last event was delivered.
    over: bool,
    ready: VecDeque<PublicEvent>,
}

/// The subscription to a run in progress.
struct LiveRun {
    events: broadcast::Receiver<PublishedRunEvent>,
    _reading: FeedReaderGuard,
    /// Whether there will be no more events.
    ended: bool,
    feed: Arc<AnswerFeed>,
    changes: watch::Receiver<()>,
}

impl PublicEventReader {
    fn new(source: EventSource, projection: PublicProjection, watch: Option<RunWatch>) -> Self {
        let live = watch.map(|watch| {
            let mut changes = watch.feed.changes();
            // Deliver text from before the subscription.
            changes.mark_changed();
            let _reading = watch.feed.add_reader();
            LiveRun { events: watch.events, _reading, ended: false, feed: watch.feed, changes }
        });
        Self {
            source,
            projection,
            seq: 0,
            epoch: 0,
            last: None,
            after: 0,
            unsynced: false,
            stored: VecDeque::new(),
            behind: false,
            live,
            cursor: AnswerCursor { generation: None, offset: 0 },
            early: false,
            answered: false,
            waits: false,
            over: false,
            ready: VecDeque::new(),
        }
    }

    async fn next(&mut self) -> Option<Result<PublicEvent, Fault>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.over {
                return None;
            }
            if (self.behind || self.unsynced)
                && let Err(fault) = self.catch_up().await
            {
                self.over = true;
                return Some(Err(fault));
            }
            if let Some(envelope) = self.stored.pop_front() {
                self.take(&envelope);
                continue;
            }
            // Its driver has ended. A later driver has its own subscribers.
            if self.waits && self.live.as_ref().is_some_and(|live| live.ended) {
                return None;
            }
            let live = self.live.as_mut().filter(|live| !live.ended)?;
            tokio::select! {
                biased;
                envelope = live.events.recv() => match envelope {
                    Ok(envelope) if envelope.seq <= self.seq => {}
                    Ok(envelope) if envelope.seq == self.seq + 1 => {
                        self.take(&envelope);
                        // A terminal event read from the journal may have been followed by a resume.
                        self.over |= envelope.body.is_terminal();
                    }
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => self.behind = true,
                    Err(broadcast::error::RecvError::Closed) => {
                        live.ended = true;
                        self.behind = !self.waits;
                    }
                },
                // `live` keeps the feed alive, so this cannot fail.
                Ok(()) = live.changes.changed(), if !self.answered => self.show(),
            }
        }
    }

    /// Reads the journal's events after the last one taken.
    async fn catch_up(&mut self) -> Result<(), Fault> {
        let EventSource { store, journal, tenant, run } = &self.source;
        // Events may still be in the journal's queue.
        journal.flush_for_read().await?;
        self.unsynced = false;
        if !self.behind {
            return Ok(());
        }
        let events = store.run_events(tenant, *run).await?;
        if let Some(last) = self.last.take() {
            self.begin_after(last, &events);
        }
        self.stored = events.into_iter().filter(|event| event.seq > self.seq).map(Arc::new).collect();
        self.behind = false;
        Ok(())
    }

    /// Starts after the client's last event, in a history that may have diverged since.
    fn begin_after(&mut self, last: EventId, events: &[Envelope<Event>]) {
        self.after = last_common_seq(last, events);
        let offset = usize::try_from(last.offset).unwrap_or(usize::MAX);
        self.cursor = AnswerCursor { generation: None, offset };
        // The offset of another process refers to another text.
        let is_same = last.epoch.is_some() && last.epoch == events.last().map(|event| event.epoch);
        if let Some(live) = self.live.as_ref().filter(|_| is_same) {
            self.cursor = live.feed.resume(self.after, offset);
        }
    }

    /// Takes the next event and delivers it, after the answer text produced before it.
    fn take(&mut self, envelope: &PublishedRunEvent) {
        let event = self.projection.project(envelope);
        let known = envelope.seq <= self.after;
        let ends = envelope.body.is_terminal();
        match &envelope.body {
            _ if known => {}
            Event::Answered { text, .. } => self.finish_answer(text),
            // Deltas of an answer that was never completed.
            _ if ends && !self.answered => self.reset(),
            // The run will be answered again: the previous answer is obsolete.
            Event::RunReopened { .. } => self.restart_answer(),
            // The event's id contains the offset in the current text, so deliver the text first.
            _ if event.is_some() => self.show(),
            _ => {}
        }
        match &envelope.body {
            Event::Answered { .. } => self.answered = true,
            Event::RunReopened { .. } => self.answered = false,
            _ => {}
        }
        self.waits = matches!(envelope.body, Event::RunWaiting {} | Event::RunPutAside { .. });
        // Only now: the ids of text before this event must not cover the event.
        self.seq = envelope.seq;
        self.epoch = envelope.epoch;
        if let Some(mut event) = event.filter(|_| !known) {
            event.id.offset = self.cursor.offset as u64;
            self.ready.push_back(event);
        }
        if self.early {
            self.show();
        }
    }

    /// Delivers new text of the answer.
    fn show(&mut self) {
        let Some(live) = self.live.as_ref().filter(|_| !self.answered) else { return };
        let mut cursor = self.cursor;
        // Text is delivered after the events that preceded it.
        let piece = live.feed.read_after(self.seq, &mut cursor);
        self.early = piece.is_none();
        let Some(piece) = piece else { return };
        if piece.reset {
            self.reset();
        }
        self.cursor = cursor;
        self.delta(&piece.text);
    }

    /// Delivers the rest of the complete answer.
    fn finish_answer(&mut self, text: &str) {
        let is_continued = self.live.as_ref().is_some_and(|live| live.feed.matches_prefix(self.cursor, text));
        if !is_continued {
            self.reset();
        }
        let rest = text.get(self.cursor.offset..).unwrap_or_default();
        self.cursor.offset = text.len();
        self.delta(rest);
    }

    fn reset(&mut self) {
        if self.cursor.offset > 0 {
            self.cursor.offset = 0;
            self.ready.push_back(PublicEvent { id: self.id(), name: "answer_reset", data: json!({}) });
        }
    }

    /// Discards the answer and starts a new one.
    fn restart_answer(&mut self) {
        self.reset();
        self.cursor = AnswerCursor { generation: None, offset: 0 };
    }

    fn delta(&mut self, text: &str) {
        if !text.is_empty() {
            let data = json!({"text": text});
            self.ready.push_back(PublicEvent { id: self.id(), name: "answer_delta", data });
        }
    }

    fn id(&self) -> EventId {
        EventId { epoch: Some(self.epoch), seq: self.seq, offset: self.cursor.offset as u64 }
    }
}

/// The last event that the journal has in common with the history of a client that received `last`. The
/// histories diverge if a killed process lost events that it had delivered: the next process continued from
/// an earlier event.
pub(super) fn last_common_seq(last: EventId, events: &[Envelope<Event>]) -> u64 {
    let Some(end) = events.last() else { return 0 };
    // Ids of earlier releases have no epoch, and these releases could lose delivered events. Only events of
    // the first process are certain to be the delivered ones.
    let epoch = last.epoch.unwrap_or(0);
    let diverged_after = events.iter().rev().find(|event| event.epoch <= epoch).map_or(0, |event| event.seq);
    // A client with more events than exist has not received the actual last one.
    let max = if last.seq > end.seq { end.seq.saturating_sub(1) } else { end.seq };
    last.seq.min(diverged_after).min(max)
}
