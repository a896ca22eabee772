//! Reading from the store: the whole conversation when its actor starts, and single runs for their drivers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::prelude::*;

use super::SceneManager;
use super::recovery::{self, LastEvent};
use super::runs::condition;
use crate::actors::runtime_task::run_as_task;
use crate::actors::stream_end::{SharedStreamEnd, StreamEnd};
use crate::answer::unknown_run_fault;
use crate::conversation::{Input, LoadedConversation, ReadAttempt, RunReading};
use crate::llm::budget::{AccountKey, BudgetScope, Hold};
use crate::run::{Envelope, Fault, RunId, RunState, SessionEvent, SessionId, TenantId};
use crate::store::{self, Store};

struct StoredConversation {
    events: Vec<Envelope<SessionEvent>>,
    /// The user of its first request.
    owner: Option<String>,
    unfinished: recovery::UnfinishedRuns,
    /// Keeps its budget account open.
    account: Hold,
}

struct StoredRun {
    state: RunState,
    /// After a panic: the session's stream.
    turns: Vec<(u64, SessionEvent)>,
}

impl SceneManager {
    /// Reads the conversation once no run of it is driven: if the actor before this one died, its drivers
    /// continue by themselves.
    pub(super) fn load(&self, ctx: &mut Context<Self>) {
        let (store, tenant, session) =
            (self.options.store.clone(), self.tenant.clone(), self.session.clone());
        let shared = self.options.shared.load();
        let (budget, journal) = (shared.gateway.guards().budget.clone(), shared.journal.clone());
        let resumes_runs = self.options.resumes_runs.load(Ordering::Acquire);
        let live = shared.live.clone();
        let read = run_as_task(async move {
            live.wait_until_session_idle(&tenant, &session).await;
            let stored = store.stored_session(&tenant, &session).await?;
            // Of a conversation that begins now, nothing else need be read.
            let (unfinished, events) = if stored.has_events {
                let unfinished =
                    recovery::unfinished(&store, &journal, &tenant, &session, resumes_runs).await?;
                (unfinished, store.session_events(&tenant, &session).await?)
            } else {
                (recovery::UnfinishedRuns::default(), Vec::new())
            };
            // Costs are summed up only if they are limited.
            let spent = if stored.has_events && budget.is_limited(BudgetScope::Session) {
                store.session_usage(&tenant, &session).await?.cost_nano_usd
            } else {
                0
            };
            let account = budget.hold(AccountKey::Session(tenant, session), spent);
            Ok::<_, store::Error>(StoredConversation { events, owner: stored.owner, unfinished, account })
        });
        let loaded = |manager: &mut Self, read: Result<_, store::Error>| match read {
            Ok(stored) => Input::Loaded(Box::new(manager.take_over(stored))),
            Err(error) => Input::LoadFailed(error.into()),
        };
        self.feed_later(read, loaded, ctx);
    }

    fn take_over(&mut self, stored: StoredConversation) -> LoadedConversation {
        let StoredConversation { events, owner, unfinished, account } = stored;
        self.account = Some(account);
        // Nobody else holds it before the first run is driven.
        let end = StreamEnd::at(events.last().map_or(0, |last| last.seq));
        self.end = Arc::new(tokio::sync::Mutex::new(end));
        LoadedConversation {
            last_event_at: events.last().map(|last| last.at),
            events: events.into_iter().map(|event| (event.seq, event.body)).collect(),
            owner,
            unfinished: self.enter_recovered(unfinished.runs),
            waiting: unfinished.waiting,
        }
    }

    pub(super) fn read_run(&self, run: RunId, attempt: ReadAttempt, ctx: &mut Context<Self>) {
        let journal = self.options.shared.load().journal.clone();
        let (store, tenant, session) =
            (self.options.store.clone(), self.tenant.clone(), self.session.clone());
        let end = self.end.clone();
        let work = run_as_task(async move {
            // Events that were appended without waiting for the disk.
            journal.flush().await?;
            let row = store.run(&tenant, run).await?;
            let Some(row) = row.filter(|row| row.session == session) else {
                return Err(Fault::new("run.not_found", format!("this conversation has no run {run}")));
            };
            let state = recovery::read(&store, &journal, &tenant, run).await?;
            if state.queued.is_none() {
                return Err(unknown_run_fault(run));
            }
            let turns = match attempt {
                ReadAttempt::ForCommand => Vec::new(),
                // The run may have ended, and its slot is not known here.
                ReadAttempt::AfterPanic | ReadAttempt::AfterLastPanic => {
                    read_stream(&store, &end, &tenant, &session).await?
                }
            };
            if attempt == ReadAttempt::AfterLastPanic && state.is_unfinished() {
                let last = LastEvent {
                    tenant: &tenant,
                    session: &session,
                    run,
                    seq: row.last_seq,
                    epoch: row.epoch,
                };
                recovery::end_crashed(&journal, last, &state).await?;
            }
            Ok(StoredRun { state, turns })
        });
        let read = move |manager: &mut Self, read: Result<StoredRun, Fault>| {
            let outcome = read.map(|StoredRun { state, turns }| {
                let condition = condition(&state);
                manager.keep_read(run, state, attempt != ReadAttempt::ForCommand);
                RunReading { condition, turns }
            });
            Input::RunRead { run, outcome }
        };
        self.feed_later(work, read, ctx);
    }
}

/// Reads the session's own stream, and tells all its writers where it ends.
async fn read_stream(
    store: &Store,
    end: &SharedStreamEnd,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<(u64, SessionEvent)>, Fault> {
    let mut end = end.lock().await;
    let events = store.session_events(tenant, session).await?;
    *end = StreamEnd::at(events.last().map_or(0, |last| last.seq));
    Ok(events.into_iter().map(|event| (event.seq, event.body)).collect())
}
