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
            let usage = self.state(row.run).await?.1.usage;
            runs.push(RunRow {
                run: row.run,
                at: row.created,
                status: row.status,
                session: row.session,
                llm_calls: usage.calls,
                cost_nano_usd: usage.cost_nano_usd,
                request: row.request,
            });
        }
        Ok(runs)
    }

    /// The journal of a run, in order and not empty, and what it says.
    pub async fn run(&self, run: RunId) -> Result<(Vec<Envelope<Event>>, RunState), Failure> {
        let (journal, state) = self.state(run).await?;
        if journal.is_empty() {
            return Err(unknown(run));
        }
        Ok((journal, state))
    }

    /// The journal of a run, in order and not empty, whatever today's rules say to it.
    pub async fn journal(&self, run: RunId) -> Result<Vec<Envelope<Event>>, Failure> {
        let journal = self
            .store
            .run_events(&self.tenant, run)
            .await
            .map_err(|error| Failure::new(error.code(), error.to_string()))?;
        if journal.is_empty() { Err(unknown(run)) } else { Ok(journal) }
    }

    async fn state(&self, run: RunId) -> Result<(Vec<Envelope<Event>>, RunState), Failure> {
        let journal = self
            .store
            .run_events(&self.tenant, run)
            .await
            .map_err(|error| Failure::new(error.code(), error.to_string()))?;
        let state = proscenium::fold(run, &journal);
        Ok((journal, state))
    }
}

fn unknown(run: RunId) -> Failure {
    Failure::new("run.unknown", format!("there is no run {run}"))
        .help("`proscenium runs list` shows the runs there are")
}
