//! The supporting actors between the gateway and the models: cache, budget and rate limits.

use std::sync::Arc;

use jiff::Zoned;
use tokio::runtime;

use super::builder::{StartError, start_fault};
use crate::actors::clock::EngineClock;
use crate::actors::cost_budget::{self, SpendingSource};
use crate::actors::{journal, rate_limiter, response_cache};
use crate::config::Config;
use crate::llm::budget::{self, Budget, Spending, SpendingCap, TenantSpending};
use crate::llm::{DisabledModels, Guards};
use crate::store::Store;
use crate::telemetry::ServerMetrics;

/// Their handles; clones share the actors.
#[derive(Clone)]
pub(super) struct GuardActors {
    cache: response_cache::Handle,
    budget: cost_budget::Handle,
    limits: rate_limiter::Handle,
    /// The cap that several engines share.
    cap: Option<SpendingCap>,
    /// The models that are switched off.
    pub(super) disabled: DisabledModels,
}

impl GuardActors {
    /// The actors' handles. Questions wait until [`GuardActors::start`].
    pub(super) fn new(
        config: &Config,
        clock: &EngineClock,
        metrics: &ServerMetrics,
        cap: Option<SpendingCap>,
    ) -> Self {
        let zone = clock.zone();
        Self {
            cache: response_cache::Handle::new(response_cache::Options {
                cache: config.cache.clone(),
                metrics: metrics.clone(),
            }),
            budget: cost_budget::Handle::new(cost_budget::Options {
                limits: config.budget.clone(),
                now: Arc::new(move || Zoned::now().with_time_zone(zone.clone())),
                metrics: metrics.clone(),
            }),
            limits: rate_limiter::Handle::new(rate_limiter::Options {
                limits: config.limits.clone(),
                metrics: metrics.clone(),
            }),
            cap,
            disabled: DisabledModels::default(),
        }
    }

    pub(super) fn guards(&self) -> Guards {
        let budget: Arc<dyn Budget> = Arc::new(self.budget.clone());
        Guards {
            cache: Arc::new(self.cache.clone()),
            budget: match self.cap.clone() {
                Some(cap) => cap.guard(budget),
                None => budget,
            },
            limits: Arc::new(self.limits.clone()),
            disabled: self.disabled.clone(),
        }
    }

    /// Starts the actors on the runtime on which models are called.
    pub(super) fn start(
        &self,
        runtime: &runtime::Handle,
        store: &Store,
        journal: &journal::Handle,
        clock: &EngineClock,
    ) {
        let (store, journal, clock) = (store.clone(), journal.clone(), clock.clone());
        let source: SpendingSource = Box::new(move || {
            let (store, journal, clock) = (store.clone(), journal.clone(), clock.clone());
            Box::pin(async move {
                // Charges that were appended without waiting for the disk.
                journal.flush().await.map_err(|error| error.to_string())?;
                read_spending(&store, &clock).await.map_err(|error| error.to_string())
            })
        });
        self.budget.start(runtime.clone(), source);
        self.limits.start(runtime.clone());
        self.cache.start(runtime.clone());
    }

    /// Applies budgets. What tenants have spent is read from the journal if a budget depends on it.
    ///
    /// # Errors
    /// The journal cannot be read, or the actor has stopped; then nothing has changed.
    pub(super) async fn configure_budget(&self, limits: &budget::Options) -> Result<(), StartError> {
        let configured = self.budget.configure(limits.clone()).await;
        configured.map_err(|error| start_fault("engine.start", error.to_string()))
    }

    /// Applies a changed configuration.
    ///
    /// # Errors
    /// As [`GuardActors::configure_budget`].
    pub(super) async fn reload(&self, before: &Config, config: &Config) -> Result<(), StartError> {
        if before.budget != config.budget {
            self.configure_budget(&config.budget).await?;
        }
        if before.cache != config.cache {
            self.cache.configure(config.cache.clone());
        }
        if before.limits != config.limits || before.llm.models != config.llm.models {
            self.limits.configure(config.limits.clone());
        }
        Ok(())
    }

    /// Stops the actors; waiting questions get an error.
    pub(super) fn stop(&self) {
        self.budget.stop();
        self.limits.stop();
        self.cache.stop();
    }
}

/// What each tenant has spent according to the journal.
async fn read_spending(store: &Store, clock: &EngineClock) -> Result<Spending, StartError> {
    let midnight = Zoned::now().with_time_zone(clock.zone()).start_of_day().map_err(|error| {
        start_fault("engine.clock", format!("cannot compute the start of today: {error}"))
    })?;
    let day = midnight.date();
    // Where the clock was ahead for a while, the journal has later days, too.
    let end = day.tomorrow().and_then(|next| next.to_zoned(clock.zone()));
    let end = end.ok().map(|end| end.timestamp());
    let today = store.usage(Some(midnight.timestamp()), end).await?;
    let total = store.usage(None, None).await?;
    let tenants = total.into_iter().map(|(tenant, usage)| {
        let today = today.get(&tenant).map_or(0, |usage| usage.cost_nano_usd);
        (tenant, TenantSpending { total: usage.cost_nano_usd, today })
    });
    Ok(Spending { day, tenants: tenants.collect() })
}
