//! Runs that an earlier process left unfinished, as the store has them.

use jiff::Timestamp;

use crate::actors::journal;
use crate::answer;
use crate::conversation::{StoredDecisions, is_taken_up};
use crate::run::{Envelope, Event, Fault, RunId, RunState, RunStatus, SessionId, TenantId};
use crate::store::{self, Record, Store, StreamId};

/// The runs of a conversation that have not ended.
#[derive(Default)]
pub(super) struct UnfinishedRuns {
    /// Runs to be resumed, the oldest first.
    pub(super) runs: Vec<RunState>,
    /// Runs that wait for a person.
    pub(super) waiting: Vec<StoredDecisions>,
}

/// The unfinished runs of a conversation. A run whose journal has a gap is ended, with the reason as its last
/// event; one that this program cannot read is left to the program that can.
///
/// # Errors
/// The store's, if it is not the run that is broken: the run is resumed when that has passed.
pub(super) async fn unfinished(
    store: &Store,
    journal: &journal::Handle,
    tenant: &TenantId,
    session: &SessionId,
    resumes_runs: bool,
) -> Result<UnfinishedRuns, store::Error> {
    let mut unfinished = UnfinishedRuns::default();
    let rows = store.unfinished_runs_of(tenant, session).await?;
    for row in rows.into_iter().filter(|row| is_taken_up(row.status, resumes_runs)) {
        let error = match read(store, journal, tenant, row.run).await {
            Ok(state) if row.status == RunStatus::Waiting => {
                let is_shown = answer::is_shown_whole(&state);
                unfinished.waiting.push(StoredDecisions::of(&state, row.updated, is_shown));
                continue;
            }
            Ok(state) => {
                unfinished.runs.push(state);
                continue;
            }
            Err(error) => error,
        };
        match error.kind() {
            store::ErrorCode::Gap => {
                let last = LastEvent { tenant, session, run: row.run, seq: row.last_seq, epoch: row.epoch };
                let readable = store.readable_run_events(row.run).await?;
                let state = RunState::from_events(row.run, &readable);
                let end = state.lost_end(unrecoverable(&error.into()));
                end_by_force(journal, last, end).await?;
            }
            store::ErrorCode::Unreadable => {
                let run = row.run;
                tracing::error!(%run, %session, %tenant, code = error.code(), %error, "this release cannot read a run, so it is not resumed here");
            }
            _ => return Err(error),
        }
    }
    Ok(unfinished)
}

/// A run as the journal has it, open for its next event.
pub(super) async fn read(
    store: &Store,
    journal: &journal::Handle,
    tenant: &TenantId,
    run: RunId,
) -> Result<RunState, store::Error> {
    // A stream that failed, as on a full disk, accepts events again from its last one.
    journal.reopen(StreamId::Run(run)).await?;
    let events = store.run_events(tenant, run).await?;
    let mut state = RunState::from_journal(run, &events);
    // A quarantine takes the run over without another event.
    state.epoch = events.last().map_or(state.epoch, |last| last.epoch.max(state.epoch));
    Ok(state)
}

/// The last event of a run that is to be ended, as the list of runs has it.
pub(super) struct LastEvent<'a> {
    pub(super) tenant: &'a TenantId,
    pub(super) session: &'a SessionId,
    pub(super) run: RunId,
    pub(super) seq: u64,
    pub(super) epoch: u32,
}

/// Ends a run whose driver panicked each time.
pub(super) async fn end_crashed(
    journal: &journal::Handle,
    last: LastEvent<'_>,
    state: &RunState,
) -> Result<(), store::Error> {
    let why = Fault::new("run.crashed", "its driver ended with an internal error each time");
    end_by_force(journal, last, state.forced_end(unrecoverable(&why))).await
}

fn unrecoverable(why: &Fault) -> Fault {
    Fault::new("run.unrecoverable", format!("the run cannot be continued: {}", why.message))
}

/// Ends a run that cannot be resumed, under a new epoch.
async fn end_by_force(
    journal: &journal::Handle,
    last: LastEvent<'_>,
    end: Vec<Event>,
) -> Result<(), store::Error> {
    let LastEvent { run, session, tenant, seq, epoch } = last;
    if let Some(Event::RunFailed { error }) = end.last() {
        tracing::error!(%run, %session, %tenant, code = %error.code, "{}", error.message);
    }
    let at = Timestamp::now();
    let records = (seq + 1..).zip(end).map(|(seq, body)| {
        Record::Run(Envelope::of_run(run, tenant, session, seq, epoch + 1, at, body).into())
    });
    journal.append(records.collect(), true).await
}
