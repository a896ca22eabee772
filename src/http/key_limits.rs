//! Limits of each API key: requests a minute, and open event streams.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use actix_web::http::StatusCode;
use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpRequest};
use futures::{Stream, StreamExt};
use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use super::app::App;
use super::principal::PresentedKey;
use super::problem::Problem;
use crate::mutex::lock;

/// The number of remembered keys at which those with an unused rate are forgotten.
const MANY_KEYS: usize = 1024;

/// Open streams by the id of their key.
type StreamCounts = Arc<Mutex<HashMap<String, u32>>>;

/// The use that each key makes of its limits.
#[derive(Debug, Default)]
pub(crate) struct KeyLimits {
    rate: Mutex<Option<KeyRate>>,
    streams: StreamCounts,
}

/// The rates of all keys, for one configured value.
#[derive(Debug)]
struct KeyRate {
    per_minute: NonZeroU32,
    limiter: RateLimiter<String, HashMapStateStore<String>, DefaultClock>,
}

impl App {
    /// Counts a request against the rate of its key.
    ///
    /// # Errors
    /// `key.rate_limited` (429).
    pub(crate) fn count_request(&self, request: &HttpRequest, is_keyed: bool) -> Result<(), Problem> {
        let per_minute = self.engine.key_limits().requests_per_minute.and_then(NonZeroU32::new);
        match per_minute {
            Some(per_minute) if is_keyed => self.key_limits.count_request(key_id(request), per_minute),
            _ => Ok(()),
        }
    }

    /// Opens an event stream for the key of a request. Called before the request is accepted.
    ///
    /// # Errors
    /// `key.streams` (429).
    pub(crate) fn open_stream(&self, request: &HttpRequest, is_keyed: bool) -> Result<OpenStream, Problem> {
        if !is_keyed {
            return Ok(OpenStream { counted: None });
        }
        self.key_limits.open_stream(key_id(request), self.engine.key_limits().open_streams)
    }
}

/// The id of a request's key; empty for all requests without one.
fn key_id(request: &HttpRequest) -> String {
    request.extensions().get::<PresentedKey>().map(|key| key.0.id.clone()).unwrap_or_default()
}

impl KeyLimits {
    fn count_request(&self, key: String, per_minute: NonZeroU32) -> Result<(), Problem> {
        let mut rate = lock(&self.rate);
        // A reload may have changed the value.
        let rate = match &mut *rate {
            Some(rate) if rate.per_minute == per_minute => rate,
            other => {
                let limiter = RateLimiter::hashmap(Quota::per_minute(per_minute));
                other.insert(KeyRate { per_minute, limiter })
            }
        };
        if rate.limiter.len() >= MANY_KEYS {
            rate.limiter.retain_recent();
        }
        let Err(not_until) = rate.limiter.check_key(&key) else { return Ok(()) };
        let wait = not_until.wait_time_from(DefaultClock::default().now());
        let seconds = wait.as_secs_f64().ceil().max(1.0) as u32;
        let detail = format!(
            "this API key may send {per_minute} such requests a minute (auth.limits.requests_per_minute); retry in \
             {seconds} s"
        );
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "key.rate_limited", detail);
        Err(Problem { retry_after: Some(seconds), ..problem })
    }

    fn open_stream(&self, key: String, max: u32) -> Result<OpenStream, Problem> {
        let mut streams = lock(&self.streams);
        let open = streams.entry(key.clone()).or_default();
        if *open >= max {
            let detail = format!(
                "this API key has {open} open event streams, of {max} allowed (auth.limits.open_streams); close \
                 one, or ask without a stream"
            );
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "key.streams", detail));
        }
        *open += 1;
        Ok(OpenStream { counted: Some((self.streams.clone(), key)) })
    }
}

/// An open event stream, which counts until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream {
    /// The open streams of all keys, and this one's key; `None` where streams are not limited.
    counted: Option<(StreamCounts, String)>,
}

impl OpenStream {
    /// The lines of a reply, which hold this until they end or the client has gone.
    pub(crate) fn counted(
        self,
        lines: impl Stream<Item = Bytes>,
    ) -> impl Stream<Item = Result<Bytes, actix_web::Error>> {
        lines.map(move |line| {
            let _held = &self;
            Ok(line)
        })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let Some((streams, key)) = &self.counted else { return };
        let mut streams = lock(streams);
        if let Some(open) = streams.get_mut(key) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                streams.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_minute: u32) -> NonZeroU32 {
        NonZeroU32::new(per_minute).unwrap()
    }

    #[test]
    fn each_key_has_a_rate_of_its_own() {
        let limits = KeyLimits::default();
        for _ in 0..2 {
            limits.count_request("a".to_owned(), rate(2)).unwrap();
        }
        let refused = limits.count_request("a".to_owned(), rate(2)).unwrap_err();
        assert_eq!((refused.status, &*refused.code), (429, "key.rate_limited"));
        assert!(refused.retry_after.is_some_and(|seconds| (1..=30).contains(&seconds)), "{refused:?}");
        limits.count_request("b".to_owned(), rate(2)).unwrap();
        limits.count_request("a".to_owned(), rate(3)).unwrap();
    }

    #[test]
    fn stream_that_ends_makes_room() {
        let limits = KeyLimits::default();
        let first = limits.open_stream("a".to_owned(), 1).unwrap();
        let refused = limits.open_stream("a".to_owned(), 1).unwrap_err();
        assert_eq!((refused.status, &*refused.code), (429, "key.streams"));
        let _other = limits.open_stream("b".to_owned(), 1).unwrap();
        drop(first);
        drop(limits.open_stream("a".to_owned(), 1).unwrap());
        assert_eq!(limits.streams.lock().unwrap().len(), 1);
    }
}
