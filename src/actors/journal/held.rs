//! What the disk did not take: the events of runs that were accepted wait and are tried again, so that a
//! disk that was full for a while costs nobody a run. What would begin a run is refused, since whoever
//! asked can ask again.

use std::time::{Duration, Instant};

use actix::prelude::*;

use super::{Batch, Journal, Next, answer};
use crate::store::{Error, Row, Stream};

/// How long something is tried again. Longer than anybody waits; what it holds is bounded by the queue.
const MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(250);

/// What waits for the disk, in the order in which it came.
#[derive(Default)]
pub(super) struct Held {
    batch: Batch,
    /// When the first of the tries failed.
    since: Option<Instant>,
}

impl Held {
    /// Whether something of this stream waits.
    pub(super) fn has(&self, stream: &Stream) -> bool {
        self.batch.groups.iter().flatten().any(|row| row.stream == *stream)
    }

    /// Whether it was tried for long enough.
    pub(super) fn too_long(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= MOST)
    }
}

impl Journal {
    /// Keeps what did not get written, for another try.
    pub(super) fn hold(&mut self, batch: Batch, error: Error, context: &mut Context<Self>) {
        let Batch { groups, waiting, flushes } = batch;
        for done in flushes {
            answer(Some(done), Err(error.clone()));
        }
        let mut kept = Batch::default();
        for (group, waiting) in groups.into_iter().zip(waiting) {
            // Before whoever waits for it hears of it, so that there is room again.
            if group.iter().any(Row::begins_a_run) {
                drop(waiting.permit);
                answer(waiting.done, Err(error.clone()));
            } else {
                kept.groups.push(group);
                kept.waiting.push(waiting);
            }
        }
        if kept.groups.is_empty() {
            // Each of them was told, so a flush has nothing to tell of.
            tracing::error!(code = error.code(), %error, "nothing can be written: requests are refused");
            self.released();
            self.committing = false;
            return self.work(context);
        }
        if self.held.since.is_none() {
            let events = kept.groups.iter().map(Vec::len).sum::<usize>();
            tracing::error!(
                code = error.code(), %error, events,
                "nothing can be written: runs wait, requests are refused"
            );
        }
        self.held.since.get_or_insert_with(Instant::now);
        self.held.batch = kept;
        self.shared.refuse(Some(error));
        context.run_later(PAUSE, Self::try_again);
    }

    /// Another try, with what has come since.
    fn try_again(&mut self, context: &mut Context<Self>) {
        let come = match self.shared.next(true) {
            Next::Work(items) => self.batch(items),
            Next::Linger | Next::Nothing => Batch::default(),
        };
        let mut batch = std::mem::take(&mut self.held.batch);
        batch.groups.extend(come.groups);
        batch.waiting.extend(come.waiting);
        batch.flushes.extend(come.flushes);
        self.commit(batch, context);
    }

    /// Something was written, or is given up: nothing waits for the disk any more.
    pub(super) fn released(&mut self) {
        if let Some(since) = self.held.since.take() {
            tracing::info!(seconds = since.elapsed().as_secs(), "the journal goes on");
            self.shared.refuse(None);
        }
    }
}
