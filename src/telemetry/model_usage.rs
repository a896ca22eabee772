//! Records the duration and the cost of attempts at models.

use super::labels::TokenKind;
use super::run_metrics::{self, RunMetrics};
use super::run_tracker::MetricSink;
use crate::run::{Attempt, TenantId, Usage};

/// Records the usage of model attempts of a tenant. Events of older versions have no attempts: their usage then
/// counts for `model` and `purpose`.
pub(super) fn record_attempts(
    attempts: &[Attempt],
    usage: Usage,
    (tenant, model, purpose): (&TenantId, &str, &str),
    to: MetricSink<'_>,
) {
    let Some(metrics) = to.metrics else { return };
    let sent = attempts.iter().filter(|attempt| attempt.was_sent());
    let cost = match attempts.is_empty() {
        true => usage.cost_nano_usd,
        false => sent.map(|attempt| attempt.usage.cost_nano_usd).sum(),
    };
    if cost > 0 {
        metrics.tenants.add_cost(tenant, cost);
    }
    for attempt in attempts.iter().filter(|attempt| attempt.was_sent()) {
        let (model, purpose) =
            (to.names.model_index(&attempt.model), run_metrics::purpose_index(&attempt.purpose));
        let at = [model, purpose, run_metrics::attempt_outcome_index(&attempt.outcome)];
        metrics.models.requests.inc(at);
        metrics.models.seconds.observe(at, attempt.millis as f64 / 1e3);
        if let Some(first) = attempt.first_token_millis {
            metrics.models.first_token.observe(at, first as f64 / 1e3);
        }
        record_usage(metrics, model, purpose, attempt.usage);
    }
    if attempts.is_empty() && usage != Usage::default() {
        record_usage(metrics, to.names.model_index(model), run_metrics::purpose_index(purpose), usage);
    }
}

fn record_usage(metrics: &RunMetrics, model: usize, purpose: usize, usage: Usage) {
    let cached = usage.cached_input_tokens.min(usage.input_tokens);
    let tokens = [
        (TokenKind::Input, usage.input_tokens - cached),
        (TokenKind::CachedInput, cached),
        (TokenKind::Output, usage.output_tokens),
    ];
    for (kind, tokens) in tokens {
        metrics.models.tokens.add([model, purpose, kind as usize], tokens);
    }
    metrics.models.cost.add([model, purpose], usage.cost_nano_usd);
}
