//! The vectors of the scenes' texts, and the ranking of scenes by their similarity to a request.
//!
//! Vectors are computed in the background, a batch at a time, and kept in memory by model and text: after a reload only
//! those of changed texts are missing. A run that needs them while they are computed waits, up to a bound of its own. After
//! a failure nothing is computed for a while, which doubles with each further one.
//!
//! They belong to no run, so the tenant who pays for them is that of the server (`auth.default_tenant`), and their usage
//! is recorded beside the journal ([`Store::add_usage`]).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::scene::FailedModelCall;
use crate::llm::budget::{AccountKey, Hold};
use crate::llm::cache::Mode;
use crate::llm::embeddings::{self, MAX_TEXTS, Vector};
use crate::llm::{Caller, Gateway, Replied, Request};
use crate::mutex::lock;
use crate::planner::MAX_RANKED;
use crate::run::{Attempt, Fault, SessionId, TenantId};
use crate::scene::Catalogue;
use crate::store::Store;

/// The session in whose name vectors are computed.
const SESSION: &str = "scene-vectors";
/// How long nothing is computed after a first failure, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const MAX_PAUSE: Duration = Duration::from_secs(3_600);

/// SHA-256 of a model and a text.
type Key = [u8; 32];

/// The vectors of all scenes that were needed so far; clones share them.
#[derive(Clone)]
pub(crate) struct SceneVectors(Arc<SharedVectors>);

struct SharedVectors {
    store: Store,
    state: Mutex<VectorState>,
    /// Signals every change of the state.
    changed: watch::Sender<()>,
    stop: CancellationToken,
}

#[derive(Default)]
struct VectorState {
    vectors: HashMap<Key, Arc<Vector>>,
    is_computing: bool,
    /// Failures since the last ranking that succeeded.
    failures: u32,
    /// Until when nothing is computed, and why.
    pause: Option<(Instant, Fault)>,
}

/// What is known of the vectors of a catalogue.
enum VectorLookup {
    Complete(Vec<Arc<Vector>>),
    /// They, or those of another catalogue, are being computed.
    Computing,
    Failed(Fault),
}

/// Ranks the scenes of one catalogue with the models of one configuration; clones share what they know.
#[derive(Clone)]
pub(crate) struct SceneRanking {
    vectors: SceneVectors,
    gateway: Gateway,
    catalogue: Arc<Catalogue>,
    payer: TenantId,
    /// The keys of the scenes' texts, in the order of the catalogue.
    keys: Arc<OnceLock<Vec<Key>>>,
}

impl SceneVectors {
    /// No vectors yet. Their usage is recorded in `store`.
    pub(crate) fn new(store: Store) -> Self {
        let (changed, stop) = (watch::Sender::new(()), CancellationToken::new());
        Self(Arc::new(SharedVectors { store, state: Mutex::default(), changed, stop }))
    }

    /// The ranking of the scenes of `catalogue`, whose vectors `payer` pays for. It is made for a new configuration, which
    /// may have fixed what failed, so a pause ends.
    pub(crate) fn ranking(
        &self,
        gateway: Gateway,
        catalogue: Arc<Catalogue>,
        payer: TenantId,
    ) -> SceneRanking {
        let mut state = self.state();
        (state.failures, state.pause) = (0, None);
        drop(state);
        SceneRanking { vectors: self.clone(), gateway, catalogue, payer, keys: Arc::default() }
    }

    /// Computes nothing any more.
    pub(crate) fn stop(&self) {
        self.0.stop.cancel();
    }

    fn state(&self) -> MutexGuard<'_, VectorState> {
        lock(&self.0.state)
    }

    /// Ends a computation.
    fn finish(&self, result: Result<(), Fault>) {
        let mut state = self.state();
        state.is_computing = false;
        match result {
            // Only a ranking shows that the vectors are of use.
            Ok(()) => state.pause = None,
            Err(fault) => state.pause_after(fault),
        }
        drop(state);
        self.0.changed.send_replace(());
    }
}

impl VectorState {
    fn pause_after(&mut self, fault: Fault) {
        let pause = pause_after(self.failures);
        self.failures = self.failures.saturating_add(1);
        let (code, pause_s) = (fault.code.as_str(), pause.as_secs());
        tracing::warn!(code, pause_s, "scenes are ranked by words alone for now: {}", fault.message);
        self.pause = Some((Instant::now() + pause, fault));
    }
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
                self.vectors.state().failures = 0;
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
            match self.look_up() {
                VectorLookup::Complete(vectors) => return Ok(vectors),
                VectorLookup::Failed(fault) => return Err(fault),
                VectorLookup::Computing => {
                    // The sender lives as long as this handle.
                    let _ = changed.changed().await;
                }
            }
        }
    }

    /// Looks up the vectors. Begins to compute missing ones, unless that is in progress, paused or impossible.
    fn look_up(&self) -> VectorLookup {
        let mut state = self.vectors.state();
        let vectors = self.keys().iter().map(|key| state.vectors.get(key).cloned()).collect();
        if let Some(vectors) = vectors {
            return VectorLookup::Complete(vectors);
        }
        if state.is_computing {
            return VectorLookup::Computing;
        }
        if self.gateway.embedding_model().is_none() {
            return VectorLookup::Failed(Fault::new("llm.not_configured", "no model offers embeddings now"));
        }
        if self.vectors.0.stop.is_cancelled() {
            return VectorLookup::Failed(Fault::new("engine.stopped", "the engine has stopped"));
        }
        if let Some((until, fault)) = &state.pause
            && Instant::now() < *until
        {
            let why = format!("the scenes have no vectors for now: {}", fault.message);
            return VectorLookup::Failed(Fault::new(&fault.code, why));
        }
        state.is_computing = true;
        // A computation that cannot be spawned ends at once, for which it needs the lock.
        drop(state);
        let computation = VectorComputation { ranking: self.clone(), is_finished: false };
        match self.gateway.spawn(computation.run()) {
            Ok(_) => VectorLookup::Computing,
            Err(error) => VectorLookup::Failed(error.into()),
        }
    }

    /// The keys of the scenes' texts; without a model there are none.
    fn keys(&self) -> &[Key] {
        self.keys.get_or_init(|| {
            let model = self.gateway.embedding_model().unwrap_or_default();
            self.catalogue.iter().map(|scene| key(&model, &scene.embedded_text())).collect()
        })
    }

    /// The missing texts with their keys.
    fn missing(&self) -> Vec<(Key, String)> {
        let state = self.vectors.state();
        let keyed = self.keys().iter().zip(self.catalogue.iter());
        let missing = keyed.filter(|(key, _)| !state.vectors.contains_key(*key));
        let texts: BTreeMap<Key, String> =
            missing.map(|(key, scene)| (*key, scene.embedded_text())).collect();
        texts.into_iter().collect()
    }

    /// Forgets the vectors of this catalogue, which are not of the model that replies now.
    fn discard(&self, fault: Fault) {
        let mut state = self.vectors.state();
        state.vectors.clear();
        state.pause_after(fault);
        drop(state);
        self.vectors.0.changed.send_replace(());
    }

    /// Adds vectors of one batch.
    ///
    /// # Errors
    /// They have another number of dimensions than those of earlier batches.
    fn add(&self, batch: &[(Key, String)], vectors: Vec<Vector>) -> Result<(), Fault> {
        let mut state = self.vectors.state();
        let earlier = self.keys().iter().find_map(|key| state.vectors.get(key)).map(|v| v.dimensions());
        let own = vectors.first().map(Vector::dimensions);
        if let (Some(earlier), Some(own)) = (earlier, own)
            && earlier != own
        {
            state.vectors.clear();
            let why = format!("the vectors of scenes have {earlier} and {own} numbers");
            return Err(Fault::new("llm.malformed", why));
        }
        state.vectors.extend(batch.iter().map(|(key, _)| *key).zip(vectors.into_iter().map(Arc::new)));
        Ok(())
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
            let keys = self.ranking.keys();
            self.ranking.vectors.state().vectors.retain(|key, _| keys.contains(key));
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
        batch: &[(Key, String)],
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
        ranking.add(batch, vectors?)
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

/// How long nothing is computed after a failure that follows `earlier` others.
fn pause_after(earlier: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << earlier.min(16)).min(MAX_PAUSE)
}

fn key(model: &str, text: &str) -> Key {
    let mut hasher = Sha256::new();
    hasher.update(model);
    hasher.update([0]);
    hasher.update(text);
    hasher.finalize().into()
}

fn late(timeout: Duration) -> Fault {
    let message = format!(
        "the scenes were not ranked by embeddings within {} ms: `planning.embeddings_timeout_ms` sets the bound",
        timeout.as_millis()
    );
    Fault::new("llm.timeout", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_doubles_with_each_failure_up_to_an_hour() {
        let seconds: Vec<u64> = [0, 1, 2, 6, 7, u32::MAX].map(|n| pause_after(n).as_secs()).to_vec();
        assert_eq!(seconds, [30, 60, 120, 1_920, 3_600, 3_600]);
    }

    #[test]
    fn key_depends_on_model_and_text() {
        let keys = [key("a", "b"), key("a", "c"), key("b", "b"), key("", "ab"), key("ab", "")];
        assert!((0..keys.len()).all(|i| (0..i).all(|j| keys[i] != keys[j])));
    }
}
