//! The vectors of texts, by model and text, and when missing ones may be computed. The rules are pure: the time is an
//! argument.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::embeddings::Vector;
use crate::run::Fault;

/// How long nothing is computed after a first failure, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const MAX_PAUSE: Duration = Duration::from_secs(3_600);

/// SHA-256 of a model and a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct VectorKey([u8; 32]);

impl VectorKey {
    /// The key of a text's vector by this model.
    pub(crate) fn new(model: &str, text: &str) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(model);
        hasher.update([0]);
        hasher.update(text);
        Self(hasher.finalize().into())
    }
}

/// What is known of the vectors of some texts.
#[derive(Debug, PartialEq)]
pub(crate) enum VectorLookup {
    Complete(Vec<Arc<Vector>>),
    /// Vectors are being computed, these or others.
    Computing,
    /// Some are missing and may be computed.
    Missing,
    /// Some are missing, and after this failure nothing is computed for a while.
    Paused(Fault),
}

/// The vectors that were needed so far.
#[derive(Debug, Default)]
pub(crate) struct VectorTable {
    vectors: HashMap<VectorKey, Arc<Vector>>,
    is_computing: bool,
    /// Failures since the last time that vectors were of use.
    failures: u32,
    /// Until when nothing is computed, and why.
    pause: Option<(Instant, Fault)>,
}

impl VectorTable {
    pub(crate) fn look_up(&self, keys: &[VectorKey], now: Instant) -> VectorLookup {
        if let Some(vectors) = keys.iter().map(|key| self.vectors.get(key).cloned()).collect() {
            return VectorLookup::Complete(vectors);
        }
        match &self.pause {
            _ if self.is_computing => VectorLookup::Computing,
            Some((until, fault)) if now < *until => VectorLookup::Paused(fault.clone()),
            _ => VectorLookup::Missing,
        }
    }

    pub(crate) fn contains(&self, key: &VectorKey) -> bool {
        self.vectors.contains_key(key)
    }

    /// Begins a computation.
    pub(crate) fn begin(&mut self) {
        self.is_computing = true;
    }

    /// Ends a computation. After a failure, returns how long nothing is computed.
    pub(crate) fn finish(&mut self, result: Result<(), Fault>, now: Instant) -> Option<Duration> {
        self.is_computing = false;
        match result {
            // Only a use shows that the vectors are right.
            Ok(()) => {
                self.pause = None;
                None
            }
            Err(fault) => Some(self.pause_after(fault, now)),
        }
    }

    /// Adds vectors to those of `keys`, which are compared with each other.
    ///
    /// # Errors
    /// They have another number of dimensions than earlier ones. Then none is kept.
    pub(crate) fn add(
        &mut self,
        keys: &[VectorKey],
        added: impl IntoIterator<Item = (VectorKey, Vector)>,
    ) -> Result<(), Fault> {
        let mut dimensions =
            keys.iter().find_map(|key| self.vectors.get(key)).map(|known| known.dimensions());
        for (key, vector) in added {
            let (earlier, own) = (*dimensions.get_or_insert(vector.dimensions()), vector.dimensions());
            if earlier != own {
                self.vectors.clear();
                let why = format!("the vectors of scenes have {earlier} and {own} numbers");
                return Err(Fault::new("llm.malformed", why));
            }
            self.vectors.insert(key, Arc::new(vector));
        }
        Ok(())
    }

    /// Forgets all vectors but those of `keys`.
    pub(crate) fn keep_only(&mut self, keys: &[VectorKey]) {
        self.vectors.retain(|key, _| keys.contains(key));
    }

    /// Forgets all vectors, since they are not of the model that replies now. Returns how long nothing is computed.
    pub(crate) fn discard(&mut self, fault: Fault, now: Instant) -> Duration {
        self.vectors.clear();
        self.pause_after(fault, now)
    }

    /// Notes that the vectors were of use.
    pub(crate) fn record_use(&mut self) {
        self.failures = 0;
    }

    /// Forgets the failures: what caused them may have been fixed.
    pub(crate) fn forget_failures(&mut self) {
        (self.failures, self.pause) = (0, None);
    }

    fn pause_after(&mut self, fault: Fault, now: Instant) -> Duration {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(MAX_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.pause = Some((now + pause, fault));
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(numbers: &[f32]) -> Vector {
        Vector::new(numbers.to_vec()).unwrap()
    }

    fn fault() -> Fault {
        Fault::new("llm.status", "no")
    }

    #[test]
    fn pause_doubles_with_each_failure_up_to_an_hour() {
        let (mut table, now) = (VectorTable::default(), Instant::now());
        let pauses: Vec<u64> =
            (0..9).filter_map(|_| Some(table.finish(Err(fault()), now)?.as_secs())).collect();
        assert_eq!(pauses, [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
        table.record_use();
        assert_eq!(table.discard(fault(), now).as_secs(), 30);
        table.failures = u32::MAX;
        assert_eq!(table.discard(fault(), now).as_secs(), 3_600);
    }

    #[test]
    fn key_depends_on_model_and_text() {
        let keys =
            [("a", "b"), ("a", "c"), ("b", "b"), ("", "ab"), ("ab", "")].map(|(m, t)| VectorKey::new(m, t));
        assert!((0..keys.len()).all(|i| (0..i).all(|j| keys[i] != keys[j])));
    }

    #[test]
    fn missing_vectors_are_computed_once_and_not_during_a_pause() {
        let (mut table, now) = (VectorTable::default(), Instant::now());
        let keys = ["one", "two"].map(|text| VectorKey::new("m", text));
        assert_eq!(table.look_up(&keys, now), VectorLookup::Missing);
        table.begin();
        assert_eq!(table.look_up(&keys, now), VectorLookup::Computing);
        let pause = table.finish(Err(fault()), now).unwrap();
        assert_eq!(table.look_up(&keys, now), VectorLookup::Paused(fault()));
        assert_eq!(table.look_up(&keys, now + pause), VectorLookup::Missing);
        table.forget_failures();
        assert_eq!(table.look_up(&keys, now), VectorLookup::Missing);
        table.begin();
        table.add(&keys, keys.map(|key| (key, vector(&[1.0, 0.0])))).unwrap();
        let found =
            VectorLookup::Complete(vec![Arc::new(vector(&[1.0, 0.0])), Arc::new(vector(&[1.0, 0.0]))]);
        // Those of other texts may still be computed.
        assert_eq!(table.look_up(&keys, now), found);
        assert_eq!(table.finish(Ok(()), now), None);
        table.keep_only(&keys[1..]);
        assert_eq!(keys.map(|key| table.contains(&key)), [false, true]);
    }

    #[test]
    fn vectors_of_different_dimensions_are_not_mixed() {
        let (mut table, keys) =
            (VectorTable::default(), ["one", "two"].map(|text| VectorKey::new("m", text)));
        table.add(&keys, [(keys[0], vector(&[1.0]))]).unwrap();
        let error = table.add(&keys, [(keys[1], vector(&[1.0, 2.0]))]).unwrap_err();
        assert_eq!(error.message, "the vectors of scenes have 1 and 2 numbers");
        assert_eq!(keys.map(|key| table.contains(&key)), [false, false]);
    }
}
