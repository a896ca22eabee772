//! Appends that the disk rejected. Events of accepted runs are held and retried, so that a temporarily
//! full disk loses no run. An append that would start a run is refused, because the client can retry the
//! request.

use std::time::{Duration, Instant};

use actix::prelude::*;

use super::{CommitBatch, InboxPoll, Journal, send_reply};
use crate::store::{Error, JournalRow, StreamId};

/// How long held appends are retried: longer than any caller waits. The queue bounds their number.
const MAX_HOLD_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The delay between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Appends that wait for the disk, in arrival order.
#[derive(Default)]
pub(super) struct HeldAppends {
    batch: CommitBatch,
    /// When the first attempt failed.
    since: Option<Instant>,
}

impl HeldAppends {
    pub(super) fn contains_stream(&self, stream: &StreamId) -> bool {
        self.batch.groups.iter().flatten().any(|row| row.stream == *stream)
    }

    /// Returns whether the appends have been held for the maximum time.
    pub(super) fn is_expired(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= MAX_HOLD_TIME)
    }
}

impl Journal {
    /// Holds what could not be written, for a retry.
    pub(super) fn hold(&mut self, batch: CommitBatch, error: Error, context: &mut Context<Self>) {
        let CommitBatch { groups, waiting, flushes } = batch;
        for done in flushes {
            send_reply(Some(done), Err(error.clone()));
        }
        let mut kept = CommitBatch::default();
        for (group, waiting) in groups.into_iter().zip(waiting) {
            // The permit is released before the waiter is answered, so that a retry finds room.
            if group.iter().any(JournalRow::starts_run) {
                drop(waiting.permit);
                send_reply(waiting.done, Err(error.clone()));
            } else {
                kept.groups.push(group);
                kept.waiting.push(waiting);
            }
        }
        if kept.groups.is_empty() {
            // Every waiter was answered, so the next flush has nothing to report.
            tracing::error!(code = error.code(), %error, "the disk rejects writes: new requests are refused");
            self.clear_held();
            self.committing = false;
            return self.process_inbox(context);
        }
        if self.held.since.is_none() {
            let events = kept.groups.iter().map(Vec::len).sum::<usize>();
            tracing::error!(
                code = error.code(), %error, events,
                "the disk rejects writes: runs wait and new requests are refused"
            );
        }
        self.held.since.get_or_insert_with(Instant::now);
        self.held.batch = kept;
        self.shared.set_write_error(Some(error));
        context.run_later(RETRY_INTERVAL, Self::retry_held);
    }

    /// Retries the commit, with what was queued since.
    fn retry_held(&mut self, context: &mut Context<Self>) {
        let come = match self.shared.poll_inbox(true) {
            InboxPoll::Ready(items) => self.assemble_batch(items),
            InboxPoll::Linger | InboxPoll::Empty => CommitBatch::default(),
        };
        let mut batch = std::mem::take(&mut self.held.batch);
        batch.groups.extend(come.groups);
        batch.waiting.extend(come.waiting);
        batch.flushes.extend(come.flushes);
        self.commit(batch, context);
    }

    /// Ends the hold, after a write succeeded or the held appends were abandoned.
    pub(super) fn clear_held(&mut self) {
        if let Some(since) = self.held.since.take() {
            tracing::info!(seconds = since.elapsed().as_secs(), "the journal accepts writes again");
            self.shared.set_write_error(None);
        }
    }
}
