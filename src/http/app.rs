//! What every handler works with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;
use super::v1::Tries;
use crate::Engine;
use crate::config::Server;
use crate::store::KeyRing;

/// The engine behind the addresses, and what stands before it.
pub(crate) struct App {
    pub(crate) engine: Arc<Engine>,
    pub(crate) options: Server,
    pub(crate) keys: KeyRing,
    pub(crate) anonymous: Anonymous,
    /// Runs of the OpenAI protocol, for clients that send again.
    pub(crate) tries: Tries,
    admission: Arc<Semaphore>,
    draining: AtomicBool,
}

/// When a request without a key is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anonymous {
    /// Always: `auth.allow_anonymous`.
    Always,
    /// As long as no key was made: loopback.
    UntilKeys,
    /// Never.
    Never,
}

impl App {
    pub(crate) fn new(engine: Arc<Engine>, options: Server, anonymous: Anonymous) -> Self {
        let keys = KeyRing::new(engine.store().clone());
        let tries = Tries::after(&engine.take_earlier());
        let admission = Arc::new(Semaphore::new(options.max_in_flight));
        Self { engine, options, keys, anonymous, tries, admission, draining: AtomicBool::new(false) }
    }

    /// A place for a request to the assistant, to be kept until its run ended.
    ///
    /// # Errors
    /// `server.draining`, `server.overloaded`: 503, before anything was accepted.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        if self.is_draining() {
            let detail = "this server is stopping; send the request to another one, or again in a moment";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "server.draining", detail));
        }
        self.admission.clone().try_acquire_owned().map_err(|_| {
            self.engine.outside().shed(crate::telemetry::Part::Http);
            let detail = format!(
                "{} requests are at work, which is the bound (server.max_in_flight); try again in a moment",
                self.options.max_in_flight
            );
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "server.overloaded", detail)
        })
    }

    /// Requests to the assistant that are at work.
    pub(crate) fn in_flight(&self) -> usize {
        self.options.max_in_flight.saturating_sub(self.admission.available_permits())
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// From now on nothing is admitted.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }
}
