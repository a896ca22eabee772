//! How much an evaluation may spend on models.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use super::fault::EvalError;
use crate::config::Config;
use crate::llm::ModelOptions;
use crate::llm::budget::SpendingCap;
use crate::mutex::lock;

/// Limits of a whole evaluation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpendingLimits {
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Calls to models.
    pub model_calls: Option<u64>,
}

impl SpendingLimits {
    /// With the budgets of the configuration: an evaluation counts as one tenant on one day.
    #[must_use]
    pub fn within(self, config: &Config) -> Self {
        let limits = [self.cost_usd, config.budget.day_usd, config.budget.tenant_usd];
        Self { cost_usd: limits.into_iter().flatten().reduce(f64::min), ..self }
    }

    /// Checks that models that may cost something cannot be called without an end. The offline model costs nothing, and neither
    /// do models on this machine without a price.
    ///
    /// # Errors
    /// `eval.unbounded_cost`, with the models that need a limit.
    pub fn check(self, config: &Config) -> Result<(), EvalError> {
        let remote: Vec<&ModelOptions> =
            config.llm.models.iter().filter(|model| !is_local(model) || is_priced(model)).collect();
        let unpriced: Vec<&str> =
            remote.iter().filter(|model| !is_priced(model)).map(|model| model.name.as_str()).collect();
        if remote.is_empty() || self.model_calls.is_some() || (self.cost_usd.is_some() && unpriced.is_empty())
        {
            return Ok(());
        }
        if self.cost_usd.is_some() {
            let message = format!(
                "no price is configured for {}, so that --max-cost would never end it",
                unpriced.join(", ")
            );
            let remedy = "give --max-calls N, or configure the prices";
            return Err(EvalError::new("eval.unbounded_cost", message, remedy));
        }
        let names: Vec<&str> = remote.iter().map(|model| model.name.as_str()).collect();
        let message = format!(
            "models that may cost money would be asked, and nothing limits that: {}",
            names.join(", ")
        );
        let remedy = "give --max-cost USD or --max-calls N, or --rules for the offline model";
        Err(EvalError::new("eval.unbounded_cost", message, remedy))
    }
}

/// Whether a model is served by this machine.
fn is_local(model: &ModelOptions) -> bool {
    let url = reqwest::Url::parse(&model.base_url).ok();
    let host =
        url.as_ref().and_then(reqwest::Url::host_str).map(|host| host.trim_matches(['[', ']']).to_owned());
    host.is_some_and(|host| {
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

fn is_priced(model: &ModelOptions) -> bool {
    model.input_usd_per_million > 0.0 || model.output_usd_per_million > 0.0
}

/// The spending of an evaluation so far, and what requests in progress may spend.
#[derive(Debug, Default)]
pub(super) struct EvalSpending {
    limits: SpendingLimits,
    /// What the engines spend together, where that is limited.
    cap: Option<SpendingCap>,
    is_stopped: AtomicBool,
    state: Mutex<SpentSoFar>,
    settled: Notify,
}

#[derive(Debug, Default)]
struct SpentSoFar {
    cost_usd: f64,
    model_calls: u64,
    in_progress: u32,
    /// The most that one request has spent: each one in progress counts as much.
    most_usd: f64,
    most_calls: u64,
    has_settled: bool,
    /// Of requests that were cut off.
    cut_off_usd: f64,
}

impl EvalSpending {
    pub(super) fn new(limits: SpendingLimits) -> Self {
        let nano = |usd: f64| (usd * 1e9) as u64;
        Self { limits, cap: limits.cost_usd.map(|usd| SpendingCap::new(nano(usd))), ..Self::default() }
    }

    /// Returns what all engines of the evaluation have to keep to together.
    pub(super) fn cap(&self) -> Option<SpendingCap> {
        self.cap.clone()
    }

    /// Returns whether what is left did not cover a call to a model: requests that were in progress then were not executed as
    /// they would be, and none further begins.
    pub(super) fn is_exhausted(&self) -> bool {
        self.cap.as_ref().is_some_and(SpendingCap::has_refused)
    }

    fn lock(&self) -> MutexGuard<'_, SpentSoFar> {
        lock(&self.state)
    }

    /// Waits until a request may begin; false if none may any more. Until it is known what a request costs, one at a time
    /// is executed where there is a limit.
    pub(super) async fn admit(&self) -> bool {
        loop {
            let settled = self.settled.notified();
            {
                if self.is_stopped.load(Ordering::Acquire) || self.is_exhausted() {
                    return false;
                }
                let mut state = self.lock();
                let is_limited = self.limits != SpendingLimits::default();
                let is_known = !is_limited || state.has_settled || state.in_progress == 0;
                if is_known && self.fits(&state) {
                    state.in_progress += 1;
                    return true;
                }
                if state.in_progress == 0 {
                    return false;
                }
            }
            settled.await;
        }
    }

    /// Admits no further request.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.settled.notify_waiters();
    }

    /// Whether one more request fits, if it and those in progress cost as much as the most expensive so far.
    fn fits(&self, state: &SpentSoFar) -> bool {
        let next = state.in_progress + 1;
        let usd = state.cost_usd + f64::from(next) * state.most_usd;
        let calls = state.model_calls + u64::from(next) * state.most_calls;
        self.limits.cost_usd.is_none_or(|limit| usd <= limit && state.cost_usd < limit)
            && self.limits.model_calls.is_none_or(|limit| calls <= limit && state.model_calls < limit)
    }

    /// Records what a settled request has spent that counts as not executed.
    pub(super) fn cut_off(&self, cost_usd: f64) {
        self.lock().cut_off_usd += cost_usd;
    }

    /// Returns what such requests have spent, in US dollars.
    pub(super) fn cut_off_usd(&self) -> f64 {
        self.lock().cut_off_usd
    }

    /// Records what an admitted request has spent.
    pub(super) fn settle(&self, cost_usd: f64, model_calls: u32) {
        let model_calls = u64::from(model_calls);
        let mut state = self.lock();
        state.in_progress = state.in_progress.saturating_sub(1);
        state.cost_usd += cost_usd;
        state.model_calls += model_calls;
        state.most_usd = state.most_usd.max(cost_usd);
        state.most_calls = state.most_calls.max(model_calls);
        state.has_settled = true;
        drop(state);
        self.settled.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn model(name: &str, base_url: &str, price: f64) -> ModelOptions {
        let (name, base_url) = (name.to_owned(), base_url.to_owned());
        ModelOptions { name, base_url, input_usd_per_million: price, ..ModelOptions::default() }
    }

    #[test]
    fn models_elsewhere_need_a_limit_that_can_end_it() {
        let check = |models: &[ModelOptions], cost_usd, model_calls| {
            let mut config = Config::default();
            config.llm.models = models.to_vec();
            let checked = SpendingLimits { cost_usd, model_calls }.within(&config).check(&config);
            checked.err().map(|error| error.to_string())
        };
        let (local, priced) =
            (model("l", "http://127.0.0.1:9/v1", 0.0), model("p", "https://m.example/v1", 1.0));
        let free = model("f", "https://m.example/v1", 0.0);
        assert_eq!(check(&[], None, None), None);
        assert_eq!(check(&[local], None, None), None);
        // A gateway on this machine, in front of models that cost something.
        assert!(check(&[model("g", "http://127.0.0.1:9/v1", 1.0)], None, None).unwrap().ends_with(": g"));
        assert!(check(std::slice::from_ref(&priced), None, None).unwrap().ends_with(": p"));
        assert_eq!(check(std::slice::from_ref(&priced), Some(1.0), None), None);
        assert!(
            check(&[priced.clone(), free.clone()], Some(1.0), None)
                .unwrap()
                .contains("price is configured for f")
        );
        assert_eq!(check(&[priced, free], None, Some(10)), None);
    }

    #[test]
    fn no_request_begins_that_the_limit_may_not_cover() {
        let spending = EvalSpending::new(SpendingLimits { cost_usd: Some(1.0), model_calls: None });
        let admit = || spending.admit().now_or_never();
        // The first one alone, until it is known what a request costs.
        assert_eq!((admit(), admit()), (Some(true), None));
        spending.settle(0.3, 2);
        assert_eq!((admit(), admit(), admit()), (Some(true), Some(true), None));
        spending.settle(0.3, 2);
        spending.settle(0.3, 2);
        assert_eq!(admit(), Some(false));
    }

    #[test]
    fn calls_are_limited_too() {
        let spending = EvalSpending::new(SpendingLimits { cost_usd: None, model_calls: Some(4) });
        let admit = || spending.admit().now_or_never();
        assert_eq!(admit(), Some(true));
        spending.settle(0.0, 3);
        assert_eq!(admit(), Some(false));
        let unlimited = EvalSpending::default();
        assert_eq!(unlimited.admit().now_or_never(), Some(true));
        unlimited.stop();
        assert_eq!(unlimited.admit().now_or_never(), Some(false));
    }
}
