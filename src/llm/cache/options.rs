//! The configuration's section `cache`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::llm::Purpose;
pub use crate::run::CacheMode as Mode;
use crate::setting::{SettingProblem, SettingsReview};

/// How much is kept, for how long, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Maximum number of bytes of replies that are kept; the least used go first. 0 keeps none.
    pub max_bytes: u64,
    /// Seconds for which a reply is kept.
    pub ttl_s: u64,
    /// Seconds for which the reply to a consultation is kept, at most `ttl_s`.
    pub consultation_ttl_s: u64,
    /// How each purpose uses the cache; one that is not listed does not.
    pub purposes: BTreeMap<Purpose, Mode>,
}

impl Default for Options {
    fn default() -> Self {
        // Decisions and summaries are cached, so that the same question is decided in the same way. An embedding
        // follows from its text. The next step of a scene's model, and the words of an answer, are asked for each time.
        let purposes = [
            (Purpose::Plan, Mode::On),
            (Purpose::Continuation, Mode::On),
            (Purpose::Scene, Mode::Off),
            (Purpose::Answer, Mode::Off),
            (Purpose::Summary, Mode::On),
            (Purpose::Embedding, Mode::On),
            (Purpose::Recovery, Mode::On),
            (Purpose::Interpretation, Mode::On),
            (Purpose::Decision, Mode::On),
            (Purpose::Adaptation, Mode::Off),
            (Purpose::Path, Mode::On),
            (Purpose::Node, Mode::Off),
            (Purpose::Program, Mode::Off),
        ];
        Self { max_bytes: 16 * 1024 * 1024, ttl_s: 3_600, consultation_ttl_s: 60, purposes: purposes.into() }
    }
}

impl Options {
    /// How a question of this purpose uses the cache: as its caller `asks`, otherwise as configured for the purpose. A
    /// cache of size zero is not used.
    pub(crate) fn mode(&self, asks: Option<Mode>, purpose: Purpose) -> Mode {
        if self.max_bytes == 0 {
            return Mode::Off;
        }
        asks.unwrap_or_else(|| self.purposes.get(&purpose).copied().unwrap_or_default())
    }

    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        review.range("cache.max_bytes", self.max_bytes, 0..=1 << 40);
        review.range("cache.ttl_s", self.ttl_s, 1..=30 * 86_400);
        review.range("cache.consultation_ttl_s", self.consultation_ttl_s, 1..=86_400);
        review.into_problems()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caller_decides_before_the_purpose_and_an_empty_cache_is_used_by_none() {
        use Mode::{Off, On, ReadOnly, WriteOnly};
        let purposes = BTreeMap::from([(Purpose::Plan, On), (Purpose::Answer, ReadOnly)]);
        for (max_bytes, asks, purpose, expected) in [
            (1, None, Purpose::Plan, On),
            (1, None, Purpose::Answer, ReadOnly),
            // This purpose is not listed.
            (1, None, Purpose::Scene, Off),
            (1, Some(Off), Purpose::Plan, Off),
            (1, Some(WriteOnly), Purpose::Answer, WriteOnly),
            (1, Some(On), Purpose::Scene, On),
            (0, None, Purpose::Plan, Off),
            (0, Some(On), Purpose::Plan, Off),
            (0, Some(ReadOnly), Purpose::Scene, Off),
        ] {
            let options = Options { max_bytes, purposes: purposes.clone(), ..Options::default() };
            let case = format!("{max_bytes} {asks:?} {purpose:?}");
            assert_eq!(options.mode(asks, purpose), expected, "{case}");
        }
    }
}
