//! When and after which delay a failed call is retried at the same model. Pure.

use std::time::Duration;

use super::error::{Error, ErrorKind};
use super::options::Options;

/// The maximum jitter between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// The delay before the next attempt at the same model; `None` to stop retrying.
///
/// `attempt` counts from 1 and has just failed with `error`. `another` says that another model is
/// left: then a model that did not respond is not retried. `jitter` is between 0 and 1. A server's
/// `Retry-After` is the minimum delay; one longer than `max_retry_after_ms` ends the retries.
pub(super) fn wait(
    error: &Error,
    attempt: u32,
    another: bool,
    options: &Options,
    jitter: f64,
) -> Option<Duration> {
    if !error.is_retryable() || attempt >= options.max_attempts {
        return None;
    }
    if another && matches!(error.kind(), ErrorKind::Silence { .. }) {
        return None;
    }
    let asked = error.retry_after().unwrap_or_default();
    if asked > Duration::from_millis(options.max_retry_after_ms) {
        return None;
    }
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
    let bound = Duration::from_millis(options.backoff_ms).saturating_mul(doubled).min(MAX_BACKOFF);
    // Half of the delay is fixed, so that calls that failed together do not retry together immediately.
    Some(asked + bound.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: ErrorKind) -> Error {
        Error::new("m", kind)
    }

    fn limited(seconds: u64) -> Error {
        let retry_after = Some(Duration::from_secs(seconds));
        failed(ErrorKind::RateLimited { retry_after, detail: String::new() })
    }

    fn status(status: u16) -> Error {
        failed(ErrorKind::Status { status, retry_after: None, detail: String::new() })
    }

    #[test]
    fn waits_double_and_are_bounded() {
        let options = Options { max_attempts: 40, ..Options::default() };
        let at = |attempt| wait(&failed(ErrorKind::CutStream), attempt, false, &options, 1.0);
        assert_eq!(at(1), Some(Duration::from_millis(250)));
        assert_eq!(at(3), Some(Duration::from_millis(1_000)));
        assert_eq!(at(39), Some(MAX_BACKOFF));
        assert_eq!(at(40), None);
        let min = wait(&failed(ErrorKind::CutStream), 1, false, &options, 0.0);
        assert_eq!(min, Some(Duration::from_millis(125)));
    }

    #[test]
    fn retry_after_is_honoured_up_to_a_bound() {
        let options = Options::default();
        assert_eq!(wait(&limited(7), 1, false, &options, 0.0), Some(Duration::from_millis(7125)));
        assert_eq!(wait(&limited(21), 1, false, &options, 0.0), None);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let options = Options::default();
        let again = |error: Error| wait(&error, 1, false, &options, 0.5).is_some();
        for code in [408, 409, 500, 502, 503, 529] {
            assert!(again(status(code)), "{code}");
        }
        for code in [400, 404, 422, 501, 302] {
            assert!(!again(status(code)), "{code}");
        }
        assert!(!again(failed(ErrorKind::TooLarge { limit: 1 })));
        assert!(!again(failed(ErrorKind::Cancelled)));
    }

    #[test]
    fn timed_out_model_is_not_retried_while_another_is_left() {
        let silence = failed(ErrorKind::Silence { millis: 1, option: "o" });
        assert!(wait(&silence, 1, true, &Options::default(), 0.5).is_none());
        assert!(wait(&silence, 1, false, &Options::default(), 0.5).is_some());
    }
}
