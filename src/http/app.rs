//! The state that handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;
use super::v1::RetryRegistry;
use crate::Engine;
use crate::config::ServerConfig;
use crate::store::KeyRing;

/// The engine, with the server's options, keys and admission control.
pub(crate) struct App {
    pub(crate) engine: Arc<Engine>,
    pub(crate) options: ServerConfig,
    pub(crate) keys: KeyRing,
    pub(crate) anonymous: AnonymousAccess,
    /// Recent runs of the OpenAI protocol, so that a client's retry finds its run.
    pub(crate) tries: RetryRegistry,
    admission: Arc<Semaphore>,
    draining: AtomicBool,
}

/// When a request without a key is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnonymousAccess {
    /// Always: `auth.allow_anonymous`.
    Always,
    /// Until the first key is created: the default on loopback.
    UntilKeys,
    /// Never.
    Never,
}

impl App {
    pub(crate) fn new(engine: Arc<Engine>, options: ServerConfig, anonymous: AnonymousAccess) -> Self {
        let keys = KeyRing::new(engine.store().clone());
        let tries = RetryRegistry::from_earlier(&engine.take_earlier_requests());
        let admission = Arc::new(Semaphore::new(options.max_in_flight));
        Self { engine, options, keys, anonymous, tries, admission, draining: AtomicBool::new(false) }
    }

    /// Takes a permit for a request to the assistant. The caller holds it until the run has ended.
    ///
    /// # Errors
    /// `server.draining`, `server.overloaded`: 503, before anything is accepted.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        if self.is_draining() {
            let detail =
                "this server is shutting down; send the request to another server, or retry in a moment";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "server.draining", detail));
        }
        self.admission.clone().try_acquire_owned().map_err(|_| {
            self.engine.outside().shed(crate::telemetry::Component::Http);
            let detail = format!(
                "{} requests are in progress, which is the limit (server.max_in_flight); retry in a moment",
                self.options.max_in_flight
            );
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "server.overloaded", detail)
        })
    }

    /// How many requests to the assistant are in progress.
    pub(crate) fn in_flight(&self) -> usize {
        self.options.max_in_flight.saturating_sub(self.admission.available_permits())
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Stops admitting requests.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }
}
