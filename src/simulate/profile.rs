//! How the simulated model behaves.

use strum::EnumCount;

use super::fate::FaultKind;
use super::latency::LatencyDistribution;
use super::question::QuestionFacts;
use crate::run::Purpose;

/// How the simulated model behaves. The default answers at once, and without faults.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// What all that is random follows from.
    pub seed: u64,
    /// Maximum number of requests in progress; more are refused with status 503.
    pub max_in_flight: usize,
    /// Maximum size of a request, in bytes.
    pub max_body_bytes: usize,
    /// Milliseconds for replies in progress when it is stopped.
    pub drain_ms: u64,
    /// From the request to the first token.
    pub first_token: LatencyDistribution,
    /// For each token.
    pub per_token: LatencyDistribution,
    /// Maximum number of chunks of a streamed reply.
    pub chunks: usize,
    /// Whether replies say how many tokens they took.
    pub usage_reported: bool,
    /// The share of the prompt's tokens that is reported as cached, from 0 to 1.
    pub cached_share: f64,
    /// How often each fault is shown.
    pub faults: FaultRates,
    /// What status 429 asks to wait, in seconds.
    pub retry_after_s: u64,
    /// Milliseconds that a request waits that meets [`FaultKind::Timeout`].
    pub timeout_ms: u64,
    /// Milliseconds between the pieces of a reply that meets [`FaultKind::SlowDrip`].
    pub drip_ms: u64,
    /// Faults of chosen requests; the first entry that fits counts, before the rates.
    pub script: Vec<ScriptedFault>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            seed: 1,
            max_in_flight: 20_000,
            max_body_bytes: 8 * 1024 * 1024,
            drain_ms: 5_000,
            first_token: LatencyDistribution::default(),
            per_token: LatencyDistribution::default(),
            chunks: 20,
            usage_reported: true,
            cached_share: 0.0,
            faults: FaultRates::default(),
            retry_after_s: 1,
            timeout_ms: 120_000,
            drip_ms: 1_000,
            script: Vec::new(),
        }
    }
}

/// The rate of each fault: its share, from 0 to 1, of the requests that can meet it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FaultRates([f64; FaultKind::COUNT]);

impl FaultRates {
    /// The rate of a fault.
    pub fn rate(&self, fault: FaultKind) -> f64 {
        self.0.get(fault as usize).copied().unwrap_or_default()
    }

    /// Sets the rate of a fault.
    pub fn set_rate(&mut self, fault: FaultKind, rate: f64) {
        if let Some(place) = self.0.get_mut(fault as usize) {
            *place = rate;
        }
    }

    /// The sum of all rates.
    pub fn sum(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// A fault of chosen requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptedFault {
    /// Of questions of this kind (`Some(None)`: of requests of no known kind); of all if absent.
    pub question: Option<Option<Purpose>>,
    /// Of questions whose words contain this text.
    pub contains: String,
    /// When the question is asked for these times, counted from 1; always if empty.
    pub times: Vec<u64>,
    /// The fault; `None` protects from rates.
    pub fault: Option<FaultKind>,
}

impl ScriptedFault {
    /// Returns whether it is about a question that is asked for the `nth` time.
    pub(super) fn fits(&self, question: &QuestionFacts, nth: u64) -> bool {
        self.question.is_none_or(|kind| kind == question.kind)
            && question.words.contains(&self.contains)
            && (self.times.is_empty() || self.times.contains(&nth))
    }
}
