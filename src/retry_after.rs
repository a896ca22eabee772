//! The wait that a server demands in its response, of models, tools and webhooks.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Reads `retry-after-ms` (milliseconds) or `Retry-After` (seconds or a date, RFC 9110 section 10.2.3). A date is
/// compared with the server's own `Date` where it sends one. A date in the past is no wait.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let get = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    // A positive number that does not fit is a longer wait than any.
    let seconds = |text: &str, scale: f64| {
        let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0)?;
        Some(Duration::try_from_secs_f64(number * scale).unwrap_or(Duration::MAX))
    };
    if let Some(wait) = get("retry-after-ms").and_then(|ms| seconds(ms, 1e-3)) {
        return Some(wait);
    }
    let value = get(RETRY_AFTER.as_str())?;
    if let Some(wait) = seconds(value, 1.0) {
        return Some(wait);
    }
    let date = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|at| at.timestamp());
    let now = get(DATE.as_str()).and_then(date).unwrap_or(now);
    let wait = date(value)?.duration_since(now);
    Some(wait.try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(headers: &[(&'static str, &str)]) -> Option<Duration> {
        let map = headers.iter().map(|(n, v)| ((*n).parse().unwrap(), v.parse().unwrap())).collect();
        retry_after(&map, "2026-05-04T07:00:00Z".parse().unwrap())
    }

    #[test]
    fn retry_after_is_read_in_every_form() {
        assert_eq!(waits(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(waits(&[("retry-after", "1.5")]), Some(Duration::from_millis(1_500)));
        assert_eq!(waits(&[("retry-after-ms", "20"), ("retry-after", "1")]), Some(Duration::from_millis(20)));
        let date = ("retry-after", "Mon, 04 May 2026 07:00:30 GMT");
        assert_eq!(waits(&[date]), Some(Duration::from_secs(30)));
        assert_eq!(waits(&[date, ("date", "Mon, 04 May 2026 07:00:20 GMT")]), Some(Duration::from_secs(10)));
        assert_eq!(waits(&[("retry-after", "Mon, 04 May 2026 06:00:00 GMT")]), Some(Duration::ZERO));
        assert_eq!(waits(&[("retry-after", "soon")]), None);
        assert_eq!(waits(&[("retry-after", "-1")]), None);
        assert_eq!(waits(&[("retry-after", "NaN")]), None);
        for endless in ["1e30", "inf", "99999999999999999999999"] {
            assert_eq!(waits(&[("retry-after", endless)]), Some(Duration::MAX), "{endless}");
        }
        let year = Duration::from_secs(365 * 86_400);
        assert_eq!(waits(&[("retry-after", "31536000")]), Some(year));
        assert_eq!(waits(&[("retry-after", "Tue, 04 May 2027 07:00:00 GMT")]), Some(year));
    }
}
