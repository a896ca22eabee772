//! Admits runs to their drivers. Normally every run is admitted; while this process recovers from crashes of
//! earlier ones, the rules of [`recovery`](crate::run::recovery) apply. This module only implements the
//! waiting and persists the admission state first.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::mutex::lock;
use crate::run::RunId;
use crate::run::recovery::{AdmissionTicket, CrashHistory, RecoveryAdmission};
use crate::store::{Error, Store};

/// The delay between attempts to store the admission state while the disk rejects writes.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// The gate; clones share it.
#[derive(Clone)]
pub(crate) struct RecoveryGate(Arc<GateShared>);

struct GateShared {
    store: Store,
    /// `None` in a process that resumes no runs: every run is admitted.
    state: Mutex<Option<GateState>>,
    /// The last version on disk. Locked by the task that stores the next one.
    stored_version: tokio::sync::Mutex<u64>,
    /// Whether the process is shutting down, so that storing is no longer retried.
    stopping: AtomicBool,
}

struct GateState {
    admission: RecoveryAdmission,
    waiting: HashMap<AdmissionTicket, oneshot::Sender<RunPermit>>,
}

/// The work of a driver with a run.
pub(crate) enum GateOutcome {
    /// Drive the run, holding the permit until the driver leaves it.
    Drive(RunPermit),
    Quarantine(RecoveryGate),
}

/// How a run arrives at the gate.
enum GateEntry {
    /// No run waits in this process.
    Admitted,
    Quarantined,
    Waiting(GateWaiter),
}

/// A permit among the active runs, returned on drop.
pub(crate) struct RunPermit {
    gate: RecoveryGate,
    run: RunId,
    /// Whether the run has made no progress since it was suspected of a crash.
    is_suspect: bool,
}

impl RecoveryGate {
    pub(crate) fn new(store: Store) -> Self {
        let stored = tokio::sync::Mutex::new(0);
        Self(Arc::new(GateShared {
            store,
            state: Mutex::new(None),
            stored_version: stored,
            stopping: AtomicBool::new(false),
        }))
    }

    /// Applies the bounds that follow from the crashes of earlier processes. No run starts before
    /// [`open`](Self::open).
    ///
    /// # Errors
    /// The store's, if the stored state cannot be read.
    pub(crate) async fn close(&self, unfinished: BTreeSet<RunId>) -> Result<(), Error> {
        let history = self.0.store.crash_history().await?.at_start(&unfinished);
        if let Some(limit) = history.limit() {
            tracing::warn!(limit, "earlier processes crashed repeatedly: fewer runs are active at once");
        }
        let admission = RecoveryAdmission::new(history, unfinished);
        *self.state() = Some(GateState { admission, waiting: HashMap::new() });
        Ok(())
    }

    /// Opens the gate once the admission state is on disk. If the disk is full, waits until it has space.
    pub(crate) async fn open(&self) {
        self.store().await;
        self.change(RecoveryAdmission::open);
    }

    /// Records that every run left by an earlier process was resumed.
    pub(crate) async fn finish_recovery(&self) {
        self.change(RecoveryAdmission::finish_recovery);
        self.store().await;
    }

    /// Records a regular shutdown, so that the next process does not count this one as crashed. Does not
    /// retry if the disk rejects the write.
    pub(crate) async fn stop(&self) {
        if self.0.stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut stored = self.0.stored_version.lock().await;
        let Some((mut history, _)) = self.snapshot() else { return };
        history.record_shutdown();
        match self.0.store.set_crash_history(&history).await {
            // Later changes are not stored.
            Ok(()) => *stored = u64::MAX,
            Err(error) => tracing::warn!(%error, "the next start will treat this shutdown as a crash"),
        }
    }

    /// Waits until the run may be driven.
    pub(crate) async fn admit(&self, run: RunId) -> GateOutcome {
        let mut waiter = match self.enqueue(run) {
            GateEntry::Admitted => return GateOutcome::Drive(self.permit(run)),
            GateEntry::Quarantined => return GateOutcome::Quarantine(self.clone()),
            GateEntry::Waiting(waiter) => waiter,
        };
        self.admit_next();
        let permit = match waiter.permit.take() {
            // The sender is dropped only after it has sent the permit.
            Some(permit) => permit.await.unwrap_or_else(|_| self.permit(run)),
            None => self.permit(run),
        };
        // If the process crashes on this run, the next one has to know that it was active.
        self.store().await;
        GateOutcome::Drive(permit)
    }

    /// Queues the run, unless it need not wait or is quarantined.
    fn enqueue(&self, run: RunId) -> GateEntry {
        let mut state = self.state();
        let Some(state) = state.as_mut() else { return GateEntry::Admitted };
        if state.admission.is_quarantined(run) {
            return GateEntry::Quarantined;
        }
        let ticket = state.admission.enqueue(run);
        let (send, permit) = oneshot::channel();
        state.waiting.insert(ticket, send);
        GateEntry::Waiting(GateWaiter { gate: self.clone(), ticket, permit: Some(permit) })
    }

    /// Records that a run's quarantine is on disk.
    pub(crate) async fn record_quarantine(&self, run: RunId) {
        self.change(|admission| admission.clear_quarantine(run));
        self.store().await;
    }

    fn permit(&self, run: RunId) -> RunPermit {
        let is_suspect = self.state().as_ref().is_some_and(|state| state.admission.is_suspect(run));
        RunPermit { gate: self.clone(), run, is_suspect }
    }

    fn change(&self, change: impl FnOnce(&mut RecoveryAdmission)) {
        if let Some(state) = self.state().as_mut() {
            change(&mut state.admission);
        }
        self.admit_next();
    }

    /// Admits the runs that the current bound allows.
    fn admit_next(&self) {
        loop {
            let next = {
                let mut state = self.state();
                let Some(state) = state.as_mut() else { return };
                let Some((ticket, run)) = state.admission.admit() else { return };
                (state.waiting.remove(&ticket), run)
            };
            let (waiting, run) = next;
            let permit = self.permit(run);
            match waiting {
                // If the waiter is gone, dropping the permit admits the next run.
                Some(waiting) => drop(waiting.send(permit)),
                None => drop(permit),
            }
        }
    }

    fn snapshot(&self) -> Option<(CrashHistory, u64)> {
        self.state().as_ref().map(|state| state.admission.to_store())
    }

    /// Stores the current admission state unless it is on disk already. Retries while the disk rejects it.
    async fn store(&self) {
        let mut stored = self.0.stored_version.lock().await;
        loop {
            let Some((history, version)) = self.snapshot() else { return };
            if version <= *stored || self.0.stopping.load(Ordering::Acquire) {
                return;
            }
            match self.0.store.set_crash_history(&history).await {
                Ok(()) => {
                    *stored = version;
                    return;
                }
                Err(error) if error.is_transient() => tokio::time::sleep(RETRY_INTERVAL).await,
                Err(error) => {
                    tracing::error!(code = error.code(), %error, "the admission state could not be stored");
                    return;
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, Option<GateState>> {
        lock(&self.0.state)
    }
}

impl RunPermit {
    /// Returns whether the run is suspected of crashing the process, because it has made no progress since.
    pub(crate) fn is_suspect(&self) -> bool {
        self.is_suspect
    }

    /// Records that the run has made progress and that this is on disk.
    pub(crate) fn mark_progressed(&mut self) {
        self.is_suspect = false;
        self.gate.change(|admission| admission.record_progress(self.run));
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        self.gate.change(|admission| admission.release(self.run));
    }
}

/// A run that waits for its permit.
struct GateWaiter {
    gate: RecoveryGate,
    ticket: AdmissionTicket,
    permit: Option<oneshot::Receiver<RunPermit>>,
}

impl Drop for GateWaiter {
    fn drop(&mut self) {
        if let Some(state) = self.gate.state().as_mut() {
            state.waiting.remove(&self.ticket);
            state.admission.dequeue(self.ticket);
        }
    }
}
