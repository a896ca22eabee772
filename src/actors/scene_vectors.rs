//! The vectors of the scenes' texts, and the ranking of scenes by their similarity to a request.
//!
//! Vectors are computed in the background, a batch at a time, and kept in memory by model and text: after a reload only
//! those of changed texts are missing. A run that needs them while they are computed waits, up to a bound of its own. The
//! rules are those of [`VectorTable`].
//!
//! They belong to no run, so the tenant who pays for them is that of the server (`auth.default_tenant`), and their usage
//! is recorded beside the journal ([`Store::add_usage`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::scene::FailedModelCall;
use crate::llm::budget::{AccountKey, Hold};
use crate::llm::cache::Mode;
use crate::llm::embeddings::{self, MAX_TEXTS, Vector};
use crate::llm::{Caller, Gateway, Replied, Request, VectorKey, VectorLookup, VectorTable};
use crate::mutex::lock;
use crate::planner::MAX_RANKED;
use crate::run::{Attempt, Fault, SessionId, TenantId};
use crate::scene::Catalogue;
use crate::store::Store;

/// The session in whose name vectors are computed.
const SESSION: &str = "scene-vectors";

/// The vectors of all scenes that were needed so far; clones share them.
#[derive(Clone)]
pub(crate) struct SceneVectors(Arc<SharedVectors>);

struct SharedVectors {
    store: Store,
    table: Mutex<VectorTable>,
    /// Signals every change of the table.
    changed: watch::Sender<()>,
    stop: CancellationToken,
}

/// Ranks the scenes of one catalogue with the models of one configuration; clones share what they know.
#[derive(Clone)]
pub(crate) struct SceneRanking {
    vectors: SceneVectors,
    gateway: Gateway,
    catalogue: Arc<Catalogue>,
    payer: TenantId,
    /// The keys of the scenes' texts, in the order of the catalogue.
    keys: Arc<OnceLock<Vec<VectorKey>>>,
}

impl SceneVectors {
    /// No vectors yet. Their usage is recorded in `store`.
    pub(crate) fn new(store: Store) -> Self {
        let (changed, stop) = (watch::Sender::new(()), CancellationToken::new());
        Self(Arc::new(SharedVectors { store, table: Mutex::default(), changed, stop }))
    }

    /// The ranking of the scenes of `catalogue`, whose vectors `payer` pays for. It is made for a new configuration, which
    /// may have fixed what failed, so a pause ends.
    pub(crate) fn ranking(
        &self,
        gateway: Gateway,
        catalogue: Arc<Catalogue>,
        payer: TenantId,
    ) -> SceneRanking {
        self.table().forget_failures();
        SceneRanking { vectors: self.clone(), gateway, catalogue, payer, keys: Arc::default() }
    }

    /// Computes nothing any more.
    pub(crate) fn stop(&self) {
        self.0.stop.cancel();
    }

    fn table(&self) -> MutexGuard<'_, VectorTable> {
        lock(&self.0.table)
    }

    /// Ends a computation.
    fn finish(&self, result: Result<(), Fault>) {
        let failed = result.as_ref().err().cloned();
        let pause = self.table().finish(result, Instant::now());
        if let (Some(fault), Some(pause)) = (failed, pause) {
            warn_of_pause(&fault, pause);
        }
        self.0.changed.send_replace(());
    }
}

fn warn_of_pause(fault: &Fault, pause: Duration) {
    let (code, pause_s) = (fault.code.as_str(), pause.as_secs());
    tracing::warn!(code, pause_s, "scenes are ranked by words alone for now: {}", fault.message);
}

impl SceneRanking {
    /// Computes the missing vectors in the background.
    pub(crate) fn prepare(&self) {
        // What is missing is computed by looking it up.
        drop(self.look_up());
    }

    /// Ranks the scenes by the similarity of their texts to that of `request`, which is embedded for `caller`. The text of
    /// the reply is the list of their names, the most similar first.
    pub(crate) async fn rank(
        &self,
        caller: &Caller,
        request: &Request,
        timeout: Duration,
        stop: &CancellationToken,
    ) -> Result<Replied, FailedModelCall> {
        let deadline = Instant::now() + timeout;
        let found = tokio::select! {
            biased;
            () = stop.cancelled() => Err(Fault::new("llm.cancelled", "the run ended before the scenes were ranked")),
            found = tokio::time::timeout_at(deadline, self.found()) => found.unwrap_or_else(|_| Err(late(timeout))),
        };
        let vectors = found.map_err(FailedModelCall::without_attempts)?;
        let left_ms = deadline.saturating_duration_since(Instant::now()).as_millis();
        let left_ms = u64::try_from(left_ms).unwrap_or(u64::MAX);
        if left_ms == 0 {
            return Err(FailedModelCall::without_attempts(late(timeout)));
        }
        let mut replied =
            self.gateway.complete_within(caller, request, left_ms, stop).await.map_err(|error| {
                let failed = FailedModelCall::from(error);
                let is_late = failed.fault.code == "llm.timeout";
                FailedModelCall { fault: if is_late { late(timeout) } else { failed.fault }, ..failed }
            })?;
        match self.names(&replied.reply.text, &vectors) {
            Ok(names) => {
                self.vectors.table().record_use();
                replied.reply.text = names;
                Ok(replied)
            }
            Err(why) => {
                replied.confirm.rejected();
                let fault = Fault::new("llm.malformed", format!("the embedding of the request: {why}"));
                self.discard(fault.clone());
                Err(FailedModelCall { fault, attempts: replied.attempts })
            }
        }
    }

    /// The names of the scenes most similar to the vector in `reply`, as JSON.
    fn names(&self, reply: &str, vectors: &[Arc<Vector>]) -> Result<String, String> {
        let read = embeddings::read(reply, 1)?;
        let own = read.first().ok_or("there is none")?;
        let places = embeddings::by_similarity(own, vectors.iter().map(AsRef::as_ref))?;
        let scenes: Vec<_> = self.catalogue.iter().collect();
        let names = places.into_iter().filter_map(|place| scenes.get(place)).map(|scene| scene.name.as_str());
        serde_json::to_string(&names.take(MAX_RANKED).collect::<Vec<_>>()).map_err(|error| error.to_string())
    }

    /// The vectors of the scenes, once they are computed.
    async fn found(&self) -> Result<Vec<Arc<Vector>>, Fault> {
        let mut changed = self.vectors.0.changed.subscribe();
        loop {
            if let Some(vectors) = self.look_up()? {
                return Ok(vectors);
            }
            // The sender lives as long as this handle.
            let _ = changed.changed().await;
        }
    }

    /// The vectors; `None` while they, or those of another catalogue, are being computed. Begins to compute missing ones.
    ///
    /// # Errors
    /// Why they are not computed now.
    fn look_up(&self) -> Result<Option<Vec<Arc<Vector>>>, Fault> {
        let mut table = self.vectors.table();
        let failed = match table.look_up(self.keys(), Instant::now()) {
            VectorLookup::Complete(vectors) => return Ok(Some(vectors)),
            VectorLookup::Computing => return Ok(None),
            VectorLookup::Missing => None,
            VectorLookup::Paused(fault) => Some(fault),
        };
        if self.gateway.embedding_model().is_none() {
            return Err(Fault::new("llm.not_configured", "no model offers embeddings now"));
        }
        if self.vectors.0.stop.is_cancelled() {
            return Err(Fault::new("engine.stopped", "the engine has stopped"));
        }
        if let Some(fault) = failed {
            let why = format!("the scenes have no vectors for now: {}", fault.message);
            return Err(Fault::new(&fault.code, why));
        }
        table.begin();
        // A computation that cannot be spawned ends at once, for which it needs the lock.
        drop(table);
        let computation = VectorComputation { ranking: self.clone(), is_finished: false };
        drop(self.gateway.spawn(computation.run())?);
        Ok(None)
    }

    /// The keys of the scenes' texts; without a model there are none.
    fn keys(&self) -> &[VectorKey] {
        self.keys.get_or_init(|| {
            let model = self.gateway.embedding_model().unwrap_or_default();
            self.catalogue.iter().map(|scene| VectorKey::new(&model, &scene.embedded_text())).collect()
        })
    }

    /// The missing texts with their keys.
    fn missing(&self) -> Vec<(VectorKey, String)> {
        let table = self.vectors.table();
        let keyed = self.keys().iter().zip(self.catalogue.iter());
        let missing = keyed.filter(|(key, _)| !table.contains(key));
        let texts: BTreeMap<VectorKey, String> =
            missing.map(|(key, scene)| (*key, scene.embedded_text())).collect();
        texts.into_iter().collect()
    }

    /// Forgets the vectors of this catalogue, which are not of the model that replies now.
    fn discard(&self, fault: Fault) {
        let pause = self.vectors.table().discard(fault.clone(), Instant::now());
        warn_of_pause(&fault, pause);
        self.vectors.0.changed.send_replace(());
    }
}

/// A computation of missing vectors. However it ends, it is finished.
struct VectorComputation {
    ranking: SceneRanking,
    is_finished: bool,
}

impl VectorComputation {
    async fn run(mut self) {
        let result = self.compute().await;
        if result.is_ok() {
            // Texts of catalogues that are not used any more.
            self.ranking.vectors.table().keep_only(self.ranking.keys());
        }
        self.is_finished = true;
        self.ranking.vectors.finish(result);
    }

    async fn compute(&self) -> Result<(), Fault> {
        let SceneRanking { gateway, payer, .. } = &self.ranking;
        let session = SessionId::new(SESSION)
            .map_err(|error| Fault::new("engine.session", format!("{SESSION}: {error}")))?;
        let account = AccountKey::Session(payer.clone(), session.clone());
        let account = gateway.guards().budget.hold(account, 0);
        let caller = Caller {
            tenant: payer.clone(),
            session,
            run: None,
            cache: Some(Mode::Off),
            voter: None,
            trace: None,
        };
        let missing = self.ranking.missing();
        for batch in missing.chunks(MAX_TEXTS) {
            self.compute_batch(&caller, &account, batch).await?;
        }
        tracing::info!(scenes = missing.len(), "the vectors of scenes were computed");
        Ok(())
    }

    async fn compute_batch(
        &self,
        caller: &Caller,
        account: &Hold,
        batch: &[(VectorKey, String)],
    ) -> Result<(), Fault> {
        let ranking = &self.ranking;
        let request = embeddings::request(batch.iter().map(|(_, text)| text.as_str()));
        let stop = &ranking.vectors.0.stop;
        let replied = ranking.gateway.complete_within(caller, &request, u64::MAX, stop).await;
        let (vectors, attempts) = match replied {
            Ok(done) => {
                let malformed = |why| Fault::new("llm.malformed", format!("the vectors of scenes: {why}"));
                (embeddings::read(&done.reply.text, batch.len()).map_err(malformed), done.attempts)
            }
            Err(error) => {
                let failed = FailedModelCall::from(error);
                (Err(failed.fault), failed.attempts)
            }
        };
        self.record(caller, account, &attempts).await;
        let keyed = batch.iter().map(|(key, _)| *key).zip(vectors?);
        ranking.vectors.table().add(ranking.keys(), keyed)
    }

    /// Records what attempts cost.
    async fn record(&self, caller: &Caller, account: &Hold, attempts: &[Attempt]) {
        let store = &self.ranking.vectors.0.store;
        match store.add_usage(&caller.tenant, Timestamp::now(), attempts).await {
            Ok(()) => account.record(Attempt::sum(attempts).cost_nano_usd),
            Err(error) => {
                tracing::error!(code = error.code(), %error, "the cost of vectors of scenes is not recorded");
            }
        }
    }
}

impl Drop for VectorComputation {
    fn drop(&mut self) {
        if !self.is_finished {
            let fault =
                Fault::new("llm.interrupted", "the computation of the vectors of scenes was interrupted");
            self.ranking.vectors.finish(Err(fault));
        }
    }
}

fn late(timeout: Duration) -> Fault {
    let message = format!(
        "the scenes were not ranked by embeddings within {} ms: `planning.embeddings_timeout_ms` sets the bound",
        timeout.as_millis()
    );
    Fault::new("llm.timeout", message)
}
