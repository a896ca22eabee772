//! The state that handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::key_limits::KeyLimits;
use super::problem::Problem;
use super::v1::RetryRegistry;
use crate::Engine;
use crate::config::ServerConfig;
use crate::fairness::{FairPermit, FairPermits, NoPermit};
use crate::run::TenantId;
use crate::store::KeyRing;
use crate::telemetry::{Component, HttpMetrics};
use actix_web::http::StatusCode;

/// The engine, with the server's options, keys and admission control.
pub(crate) struct App {
    pub(crate) engine: Arc<Engine>,
    pub(crate) options: ServerConfig,
    pub(crate) keys: KeyRing,
    pub(crate) anonymous: AnonymousAccess,
    /// Recent runs of the OpenAI protocol, so that a client's retry finds its run.
    pub(crate) tries: RetryRegistry,
    pub(crate) key_limits: KeyLimits,
    /// Counts requests by route and status.
    pub(crate) http_metrics: HttpMetrics,
    admission: FairPermits<TenantId>,
    /// Documents that are being uploaded.
    uploads: FairPermits<TenantId>,
    draining: AtomicBool,
}

/// A place among the requests in progress.
pub(crate) type AdmissionPermit = FairPermit<TenantId>;

/// When a request without a key is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnonymousAccess {
    /// Always: `auth.allow_anonymous`.
    Always,
    /// Until the first key is created: the default on loopback.
    UntilKeys,
    Never,
}

impl App {
    pub(crate) fn new(engine: Arc<Engine>, options: ServerConfig, anonymous: AnonymousAccess) -> Self {
        let keys = KeyRing::new(engine.store().clone());
        let tries = RetryRegistry::from_earlier(&engine.take_earlier_requests());
        let admission = FairPermits::new(options.max_in_flight);
        let uploads = FairPermits::new(engine.max_uploads());
        let (key_limits, draining) = (KeyLimits::default(), AtomicBool::new(false));
        let http_metrics = HttpMetrics::new(super::route_patterns());
        Self {
            engine,
            options,
            keys,
            anonymous,
            tries,
            key_limits,
            http_metrics,
            admission,
            uploads,
            draining,
        }
    }

    /// Takes a permit for a request of `tenant` to the assistant. The caller holds it until the run has ended.
    ///
    /// # Errors
    /// `server.draining`, `server.overloaded`: 503, before anything is accepted.
    pub(crate) async fn admit(&self, tenant: &TenantId) -> Result<AdmissionPermit, Problem> {
        let is_shared = self.note_tenant(tenant).await?;
        self.admission.take(tenant, is_shared).map_err(|no| {
            self.overloaded(tenant, no, "requests", self.options.max_in_flight, "server.max_in_flight")
        })
    }

    /// Takes a permit for an upload of `tenant`, held until it has ended.
    ///
    /// # Errors
    /// As [`App::admit`].
    pub(crate) async fn admit_upload(&self, tenant: &TenantId) -> Result<AdmissionPermit, Problem> {
        let is_shared = self.note_tenant(tenant).await?;
        self.uploads.take(tenant, is_shared).map_err(|no| {
            self.overloaded(tenant, no, "uploads", self.engine.max_uploads(), "documents.max_uploads")
        })
    }

    /// Notes that a tenant uses this server. Returns whether others do, too.
    ///
    /// # Errors
    /// `server.draining`; errors of the store.
    async fn note_tenant(&self, tenant: &TenantId) -> Result<bool, Problem> {
        if self.is_draining() {
            let detail =
                "this server is shutting down; send the request to another server, or retry in a moment";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "server.draining", detail));
        }
        let tenants = self.engine.tenants();
        tenants.see(tenant);
        tenants.expect(&self.expected_tenants().await?);
        Ok(tenants.is_shared())
    }

    /// The tenants that may come at any time: those with keys, two of which are enough, and that of requests without a key.
    async fn expected_tenants(&self) -> Result<Arc<[TenantId]>, Problem> {
        let keyed = self.keys.tenants().await?;
        if self.anonymous != AnonymousAccess::Always || keyed.is_empty() {
            return Ok(keyed);
        }
        let (anonymous, _) = self.engine.default_principal();
        Ok(keyed.iter().cloned().chain([anonymous]).collect())
    }

    fn overloaded(&self, tenant: &TenantId, no: NoPermit, what: &str, max: usize, key: &str) -> Problem {
        self.engine.server_metrics().shed(Component::Http);
        let detail = match no {
            NoPermit::AllTaken => {
                format!("{max} {what} are in progress, which is the limit ({key}); retry in a moment")
            }
            NoPermit::ShareReached { held } => format!(
                "tenant `{tenant}` has {held} {what} in progress, which is its share of the {max} that \
                 this server takes at once from all tenants ({key}); retry in a moment"
            ),
        };
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "server.overloaded", detail)
    }

    /// How many requests to the assistant are in progress.
    pub(crate) fn in_flight(&self) -> usize {
        self.admission.taken()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Stops admitting requests.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }
}
