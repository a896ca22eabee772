//! A run's public events in order: those that the journal has, then those that happen, with the
//! answer's words between them as they are written.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use futures::stream::{BoxStream, StreamExt, unfold};
use serde_json::json;
use tokio::sync::{broadcast, watch};

use super::{EventId, PublicEvent, Teller};
use crate::actors::active_runs::RunWatch;
use crate::actors::driver::{PublishedRunEvent, store_fault};
use crate::actors::feed::{Feed, FeedCursor, FeedReaderGuard};
use crate::actors::journal;
use crate::run::{Envelope, Event, Fault, RunId, TenantId};
use crate::store::Store;

/// The public events of one run. It ends after the run's last event, where a run waits for a person, or
/// where a run that is not under way has not ended: its journal was told then. What comes later (somebody
/// has decided, or carries a failed run on) is told to whoever comes back with the last id. An error is the last item: the journal could not be
/// read. Nothing waits for whoever reads it, and nothing is told that is not on the disk, but for the words of
/// an answer, which are told as they come.
pub struct PublicStream {
    events: BoxStream<'static, Result<PublicEvent, Fault>>,
}

impl Stream for PublicStream {
    type Item = Result<PublicEvent, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(cx)
    }
}

/// Where events are read that a listener has missed.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) store: Store,
    pub(crate) journal: journal::Handle,
    pub(crate) tenant: TenantId,
    pub(crate) run: RunId,
}

impl PublicStream {
    /// Everything of a run after `last`; `watch` where it is under way.
    pub(crate) fn resumed(source: Source, watch: Option<RunWatch>, last: EventId) -> Self {
        let mut reader = Reader::new(source, Teller::default(), watch);
        reader.last = Some(last);
        reader.behind = true;
        Self::over(reader)
    }

    /// Everything of a run that was just accepted, by one who follows it from the beginning.
    pub(crate) fn fresh(source: Source, watch: RunWatch) -> Self {
        let mut reader = Reader::new(source, Teller::of(watch.task), Some(watch));
        // Its first event tells that it was accepted.
        reader.seq = 1;
        reader.unsynced = true;
        Self::over(reader)
    }

    fn over(reader: Reader) -> Self {
        let events = unfold(reader, |mut reader| async move { Some((reader.next().await?, reader)) });
        Self { events: events.boxed() }
    }
}

struct Reader {
    source: Source,
    teller: Teller,
    /// The last event that was taken from the journal or from the run.
    seq: u64,
    /// How often the run had been taken over by then.
    epoch: u32,
    /// What was told before, by whom it was told; until the journal was looked at.
    last: Option<EventId>,
    /// Events up to this one were told before.
    after: u64,
    /// There may be events that were written before somebody was there to be told, and are not on the disk.
    unsynced: bool,
    /// Events of the journal that are to be told.
    stored: VecDeque<PublishedRunEvent>,
    /// The journal has events that are not here.
    behind: bool,
    live: Option<Following>,
    /// What of the answer was told.
    cursor: FeedCursor,
    /// There are words that were written after an event that is still to be taken.
    early: bool,
    /// The answer is known and told.
    answered: bool,
    /// The last event said that the run waits for a person.
    waits: bool,
    /// The last event was told.
    over: bool,
    ready: VecDeque<PublicEvent>,
}

/// A run under way.
struct Following {
    events: broadcast::Receiver<PublishedRunEvent>,
    _reading: FeedReaderGuard,
    /// Nothing more is said.
    ended: bool,
    feed: Arc<Feed>,
    changes: watch::Receiver<()>,
}

impl Reader {
    fn new(source: Source, teller: Teller, watch: Option<RunWatch>) -> Self {
        let live = watch.map(|watch| {
            let mut changes = watch.feed.changes();
            // Whatever was written before.
            changes.mark_changed();
            let _reading = watch.feed.add_reader();
            Following { events: watch.events, _reading, ended: false, feed: watch.feed, changes }
        });
        Self {
            source,
            teller,
            seq: 0,
            epoch: 0,
            last: None,
            after: 0,
            unsynced: false,
            stored: VecDeque::new(),
            behind: false,
            live,
            cursor: FeedCursor { generation: None, offset: 0 },
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
            if let Some(told) = self.stored.pop_front() {
                self.take(&told);
                continue;
            }
            // Nobody drives it on, and whoever does later drives it for others to follow.
            if self.waits && self.live.as_ref().is_some_and(|live| live.ended) {
                return None;
            }
            let live = self.live.as_mut().filter(|live| !live.ended)?;
            tokio::select! {
                biased;
                told = live.events.recv() => match told {
                    Ok(told) if told.seq <= self.seq => {}
                    Ok(told) if told.seq == self.seq + 1 => {
                        self.take(&told);
                        // What is read of the journal may have been carried on since.
                        self.over |= told.body.is_terminal();
                    }
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => self.behind = true,
                    Err(broadcast::error::RecvError::Closed) => {
                        live.ended = true;
                        self.behind = !self.waits;
                    }
                },
                // The feed is held here, so it tells of each change.
                Ok(()) = live.changes.changed(), if !self.answered => self.show(),
            }
        }
    }

    /// Reads what the journal has after the last event taken.
    async fn catch_up(&mut self) -> Result<(), Fault> {
        let Source { store, journal, tenant, run } = &self.source;
        // What a run has said may still be on its way to the disk.
        journal.flush_for_read().await.map_err(|error| store_fault(&error))?;
        self.unsynced = false;
        if !self.behind {
            return Ok(());
        }
        let events = store.run_events(tenant, *run).await.map_err(|error| store_fault(&error))?;
        if let Some(last) = self.last.take() {
            self.begin_behind(last, &events);
        }
        self.stored = events.into_iter().filter(|event| event.seq > self.seq).map(Arc::new).collect();
        self.behind = false;
        Ok(())
    }

    /// Begins behind what was told before, in a history that may have gone another way since.
    fn begin_behind(&mut self, last: EventId, events: &[Envelope<Event>]) {
        self.after = shared(last, events);
        let offset = usize::try_from(last.offset).unwrap_or(usize::MAX);
        self.cursor = FeedCursor { generation: None, offset };
        // Another process would count the bytes of another text.
        let is_same = last.epoch.is_some() && last.epoch == events.last().map(|event| event.epoch);
        if let Some(live) = self.live.as_ref().filter(|_| is_same) {
            self.cursor = live.feed.resume(self.after, offset);
        }
    }

    /// Takes the next event: tells it, and before it what was written of the answer by then.
    fn take(&mut self, told: &PublishedRunEvent) {
        let event = self.teller.tell(told);
        let known = told.seq <= self.after;
        let ends = told.body.is_terminal();
        match &told.body {
            _ if known => {}
            Event::Answered { text, .. } => self.complete(text),
            // What was told of an answer that never came.
            _ if ends && !self.answered => self.reset(),
            // It is answered anew: what came before is not its answer any more.
            Event::RunReopened { .. } => self.forget(),
            // An event's id says how much of the answer was told, and of the text that it is by now.
            _ if event.is_some() => self.show(),
            _ => {}
        }
        match &told.body {
            Event::Answered { .. } => self.answered = true,
            Event::RunReopened { .. } => self.answered = false,
            _ => {}
        }
        self.waits = matches!(told.body, Event::RunWaiting {} | Event::RunPutAside { .. });
        // Only now: whoever got no further than the words before it still has to get it.
        self.seq = told.seq;
        self.epoch = told.epoch;
        if let Some(mut event) = event.filter(|_| !known) {
            event.id.offset = self.cursor.offset as u64;
            self.ready.push_back(event);
        }
        if self.early {
            self.show();
        }
    }

    /// Tells what was written of the answer.
    fn show(&mut self) {
        let Some(live) = self.live.as_ref().filter(|_| !self.answered) else { return };
        let mut cursor = self.cursor;
        // Words come after the events that they were written after.
        let piece = live.feed.read_after(self.seq, &mut cursor);
        self.early = piece.is_none();
        let Some(piece) = piece else { return };
        if piece.reset {
            self.reset();
        }
        self.cursor = cursor;
        self.delta(&piece.text);
    }

    /// Tells what is missing of the answer, now that it is known.
    fn complete(&mut self, text: &str) {
        let goes_on = self.live.as_ref().is_some_and(|live| live.feed.matches_prefix(self.cursor, text));
        if !goes_on {
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

    /// Begins the answer anew.
    fn forget(&mut self) {
        self.reset();
        self.cursor = FeedCursor { generation: None, offset: 0 };
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

/// The last event that the journal shares with the history of a client that has got `last`: where a process was
/// killed and lost what it had told, the next one has gone on from an earlier event.
pub(super) fn shared(last: EventId, events: &[Envelope<Event>]) -> u64 {
    let Some(end) = events.last() else { return 0 };
    // Earlier releases did not say which process told an event, and told some that they then lost: only what
    // the first process wrote is sure to be what was told.
    let told_by = last.epoch.unwrap_or(0);
    let parts = events.iter().rev().find(|event| event.epoch <= told_by).map_or(0, |event| event.seq);
    // A client that has got more than there is has not got the end.
    let most = if last.seq > end.seq { end.seq.saturating_sub(1) } else { end.seq };
    last.seq.min(parts).min(most)
}
