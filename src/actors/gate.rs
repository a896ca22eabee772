//! Who may drive a run: everybody, but where this process recovers from the deaths of earlier ones, in the
//! bounds of [`recovery`](crate::run::recovery). Here is only the waiting, and what has to be on disk first.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::run::RunId;
use crate::run::recovery::{Admission, Deaths, Ticket};
use crate::store::{Error, Store};

/// How often it is tried again to store what holds, where the disk takes nothing.
const AGAIN: Duration = Duration::from_millis(250);

/// The gate; clones share it.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Inner>);

struct Inner {
    store: Store,
    /// `None` in a process that carries nothing on: there everybody may.
    state: Mutex<Option<State>>,
    /// The last version that is on disk. Held by who stores the next.
    stored: tokio::sync::Mutex<u64>,
    /// The process was told to stop: nothing waits for room on the disk any more.
    stops: AtomicBool,
}

struct State {
    admission: Admission,
    waiting: HashMap<Ticket, oneshot::Sender<Place>>,
}

/// What a driver hears that comes to a run.
pub(crate) enum Turn {
    /// It drives the run, and keeps the place until it leaves it.
    Drive(Place),
    /// The run is to be put aside.
    Aside(Gate),
}

/// A place among the runs under way.
pub(crate) struct Place {
    gate: Gate,
    run: RunId,
}

impl Gate {
    pub(crate) fn new(store: Store) -> Self {
        let stored = tokio::sync::Mutex::new(0);
        Self(Arc::new(Inner { store, state: Mutex::new(None), stored, stops: AtomicBool::new(false) }))
    }

    /// From now on runs begin in the bounds that hold after the deaths of earlier processes, and none
    /// before [`begin`](Self::begin).
    ///
    /// # Errors
    /// The store's, where it cannot be read.
    pub(crate) async fn close(&self, unfinished: BTreeSet<RunId>) -> Result<(), Error> {
        let deaths = self.0.store.deaths().await?.after(&unfinished);
        if let Some(limit) = deaths.limit() {
            tracing::warn!(limit, "earlier processes died several times: fewer runs are under way at once");
        }
        let admission = Admission::new(deaths, unfinished);
        *self.state() = Some(State { admission, waiting: HashMap::new() });
        Ok(())
    }

    /// Opens, once what holds is on disk: where that is full, when there is room.
    pub(crate) async fn begin(&self) {
        self.store().await;
        self.change(Admission::open);
    }

    /// All that an earlier process left was carried on.
    pub(crate) async fn recovered(&self) {
        self.change(Admission::recovered);
        self.store().await;
    }

    /// The process is told to stop: however it ends, it has not died. Waits for no room on the disk.
    pub(crate) async fn stop(&self) {
        if self.0.stops.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut stored = self.0.stored.lock().await;
        let Some((mut deaths, _)) = self.snapshot() else { return };
        deaths.stop();
        match self.0.store.set_deaths(&deaths).await {
            // Nothing that changes from now on is stored.
            Ok(()) => *stored = u64::MAX,
            Err(error) => tracing::warn!(%error, "the next start takes this stop for a death"),
        }
    }

    /// Waits until the run may be driven.
    pub(crate) async fn turn(&self, run: RunId) -> Turn {
        let Some(wait) = self.line_up(run) else { return Turn::Drive(self.place(run)) };
        let Some(mut line) = wait else { return Turn::Aside(self.clone()) };
        self.call();
        let place = match line.place.take() {
            // Its sender goes only with what it waits for.
            Some(place) => place.await.unwrap_or_else(|_| self.place(run)),
            None => self.place(run),
        };
        // Who dies of it has to be known.
        self.store().await;
        Turn::Drive(place)
    }

    /// A place in the line: none where nobody waits, and none for a run that is to be put aside.
    fn line_up(&self, run: RunId) -> Option<Option<Line>> {
        let mut state = self.state();
        let state = state.as_mut()?;
        if state.admission.is_aside(run) {
            return Some(None);
        }
        let ticket = state.admission.wait(run);
        let (send, place) = oneshot::channel();
        state.waiting.insert(ticket, send);
        Some(Some(Line { gate: self.clone(), ticket, place: Some(place) }))
    }

    /// A run was put aside, and that is on disk.
    pub(crate) async fn was_put_aside(&self, run: RunId) {
        self.change(|admission| admission.was_put_aside(run));
        self.store().await;
    }

    fn place(&self, run: RunId) -> Place {
        Place { gate: self.clone(), run }
    }

    fn change(&self, change: impl FnOnce(&mut Admission)) {
        if let Some(state) = self.state().as_mut() {
            change(&mut state.admission);
        }
        self.call();
    }

    /// Lets those in whose turn it is.
    fn call(&self) {
        loop {
            let next = {
                let mut state = self.state();
                let Some(state) = state.as_mut() else { return };
                let Some((ticket, run)) = state.admission.admit() else { return };
                (state.waiting.remove(&ticket), run)
            };
            let (waiting, run) = next;
            let place = self.place(run);
            match waiting {
                // Where it has gone, its place comes back, which lets the next one in.
                Some(waiting) => drop(waiting.send(place)),
                None => drop(place),
            }
        }
    }

    fn snapshot(&self) -> Option<(Deaths, u64)> {
        self.state().as_ref().map(|state| state.admission.stored())
    }

    /// Stores what holds now, unless it is on disk; waits for room there.
    async fn store(&self) {
        let mut stored = self.0.stored.lock().await;
        loop {
            let Some((deaths, version)) = self.snapshot() else { return };
            if version <= *stored || self.0.stops.load(Ordering::Acquire) {
                return;
            }
            match self.0.store.set_deaths(&deaths).await {
                Ok(()) => {
                    *stored = version;
                    return;
                }
                Err(error) if error.may_pass() => tokio::time::sleep(AGAIN).await,
                Err(error) => {
                    tracing::error!(code = error.code(), %error, "what is under way could not be stored");
                    return;
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, Option<State>> {
        // Each change of it is whole.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whether it has yet to be seen that the run comes to something.
    pub(crate) fn is_suspect(&self) -> bool {
        self.gate.state().as_ref().is_some_and(|state| state.admission.is_suspect(self.run))
    }

    /// Something has come of the run, and is on disk.
    pub(crate) fn passed(&self) {
        self.gate.change(|admission| admission.passed(self.run));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.change(|admission| admission.left(self.run));
    }
}

/// A run that waits in the line.
struct Line {
    gate: Gate,
    ticket: Ticket,
    place: Option<oneshot::Receiver<Place>>,
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(state) = self.gate.state().as_mut() {
            state.waiting.remove(&self.ticket);
            state.admission.give_up(self.ticket);
        }
    }
}
