//! The configuration's section `cache`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::llm::Purpose;
use crate::setting::{Review, Wrong};

/// How much is kept, for how long, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Most bytes of replies that are kept; the least used go first. 0 keeps none.
    pub max_bytes: u64,
    /// Seconds for which a reply is kept.
    pub ttl_s: u64,
    /// How each purpose uses the cache; one that is not listed does not.
    pub purposes: BTreeMap<Purpose, Mode>,
}

impl Default for Options {
    fn default() -> Self {
        // Decisions and summaries: the same question is to be decided in the same way. What a scene's
        // model does next, and the words of an answer, are asked for each time.
        let purposes = [
            (Purpose::Plan, Mode::On),
            (Purpose::Continuation, Mode::On),
            (Purpose::Scene, Mode::Off),
            (Purpose::Answer, Mode::Off),
            (Purpose::Summary, Mode::On),
        ];
        Self { max_bytes: 64 * 1024 * 1024, ttl_s: 3_600, purposes: purposes.into() }
    }
}

/// How the cache is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = CacheMode)]
pub enum Mode {
    /// Not at all.
    #[default]
    Off,
    /// Replies are taken from it and put into it.
    On,
    /// Replies are taken from it only.
    ReadOnly,
    /// Replies are put into it only: whatever is there is made anew.
    WriteOnly,
}

impl Mode {
    pub(super) fn reads(self) -> bool {
        matches!(self, Mode::On | Mode::ReadOnly)
    }

    pub(super) fn writes(self) -> bool {
        matches!(self, Mode::On | Mode::WriteOnly)
    }
}

impl Options {
    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<Wrong> {
        let mut review = Review::default();
        review.range("cache.max_bytes", self.max_bytes, 0..=1 << 40);
        review.range("cache.ttl_s", self.ttl_s, 1..=30 * 86_400);
        review.end()
    }
}
