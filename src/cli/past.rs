//! What was run, read from the store without owning it: also while another process works with it.

use proscenium::config::Loaded;
use proscenium::run::{Envelope, Event, RunId, RunState, TenantId};
use proscenium::store::{Page, RunFilter, Store};

use super::failure::Failure;
use super::table::RunRow;

/// The runs of the configured tenant.
pub struct Past {
    store: Store,
    tenant: TenantId,
}

/// Opens the store for reading.
pub async fn open(loaded: &Loaded) -> Result<Past, Failure> {
    let store = Store::open_reading(&loaded.config.store.data_dir)
        .await
        .map_err(|error| Failure::new(error.code(), error.to_string()))?;
    Ok(Past { store, tenant: loaded.config.auth.default_tenant.clone() })
}

impl Past {
    /// The last runs, the newest first.
    pub async fn runs(&self, limit: u32) -> Result<Vec<RunRow>, Failure> {
        let page = Page { limit, after: None };
        let rows = self
            .store
            .runs(&self.tenant, &RunFilter::default(), &page)
            .await
            .map_err(|error| Failure::new(error.code(), error.to_string()))?;
        let mut runs = Vec::with_capacity(rows.len());
        for row in rows {
            let mut state = RunState::new(row.run);
            for event in self.events(row.run).await? {
                state.apply(&event.body).map_err(|error| {
                    Failure::new("run.illegal_event", format!("event {} of run {}: {error}", event.seq, row.run))
                })?;
            }
            runs.push(RunRow {
                run: row.run,
                at: row.created,
                status: row.status,
                session: row.session,
                llm_calls: state.usage.calls,
                cost_nano_usd: state.usage.cost_nano_usd,
                request: row.request,
            });
        }
        Ok(runs)
    }

    /// The journal of a run, in order; not empty.
    pub async fn journal(&self, run: RunId) -> Result<Vec<Envelope<Event>>, Failure> {
        let events = self.events(run).await?;
        if events.is_empty() {
            return Err(Failure::new("run.unknown", format!("there is no run {run}"))
                .help("`proscenium runs list` shows the runs there are"));
        }
        Ok(events)
    }

    async fn events(&self, run: RunId) -> Result<Vec<Envelope<Event>>, Failure> {
        self.store
            .run_events(&self.tenant, run)
            .await
            .map_err(|error| Failure::new(error.code(), error.to_string()))
    }
}
