//! Metrics of HTTP requests. Labels are the patterns of the route table and closed lists of methods and statuses: no
//! client can invent one.

use std::time::Instant;

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts};

use super::grid::{Grid, axis};
use super::{OTHER, PREFIX, buckets};

/// The methods that have a label of their own.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The statuses that have a label of their own. The last one is no reply: the client left before there was one.
const STATUSES: [&str; 28] = [
    "200", "201", "202", "204", "206", "304", "400", "401", "403", "404", "405", "408", "409", "410", "411",
    "413", "415", "416", "422", "429", "431", "500", "501", "502", "503", "504", "507", "499",
];

/// The status of a request whose client left, as some proxies log it.
const CLIENT_LEFT: &str = "499";

/// Counts HTTP requests and times their replies.
pub struct HttpMetrics {
    routes: Vec<&'static str>,
    /// Present: creating the metrics fails only for an invalid name.
    recorded: Option<RecordedRequests>,
}

struct RecordedRequests {
    count: IntCounterVec,
    seconds: HistogramVec,
    /// By method, route and status.
    counts: Grid<IntCounterVec, 3>,
    /// By method and route.
    times: Grid<HistogramVec, 2>,
}

impl RecordedRequests {
    fn new(routes: &[&'static str]) -> Result<Self, prometheus::Error> {
        let count = Opts::new(
            format!("{PREFIX}http_requests_total"),
            "HTTP requests by method, route (its pattern; other: no route) and status (499: the client left before the \
             reply). What is no HTTP, or comes too slowly, is not among them.",
        );
        let seconds = HistogramOpts::new(
            format!("{PREFIX}http_request_duration_seconds"),
            "Time from an HTTP request to the head of its reply; an event stream's head is sent when it begins.",
        );
        let count = IntCounterVec::new(count, &["method", "route", "status"])?;
        let seconds = HistogramVec::new(seconds.buckets(buckets::HTTP.to_vec()), &["method", "route"])?;
        let named = |names: &[&str]| axis(names.iter().copied().chain([OTHER]));
        let (methods, routes) = (named(&METHODS), named(routes));
        let counts = Grid::new(count.clone(), [methods.clone(), routes.clone(), named(&STATUSES)]);
        let times = Grid::new(seconds.clone(), [methods, routes]);
        Ok(Self { count, seconds, counts, times })
    }
}

/// The index of a value, or that of `other` after them.
fn place(values: &[&str], value: &str) -> usize {
    values.iter().position(|known| *known == value).unwrap_or(values.len())
}

impl HttpMetrics {
    /// Metrics for the routes with these patterns.
    pub fn new(routes: Vec<&'static str>) -> Self {
        let recorded = RecordedRequests::new(&routes).ok();
        Self { routes, recorded }
    }

    /// Begins a request. `route` is the pattern that its path matches, if any.
    pub fn begin(&self, method: &str, route: Option<&str>) -> HttpExchange<'_> {
        let route = route.map_or(self.routes.len(), |route| place(&self.routes, route));
        HttpExchange {
            metrics: self,
            at: [place(&METHODS, method), route],
            began: Instant::now(),
            is_ended: false,
        }
    }

    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        let all = self.recorded.iter();
        all.flat_map(|all| all.count.collect().into_iter().chain(all.seconds.collect())).collect()
    }
}

impl std::fmt::Debug for HttpMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpMetrics").finish_non_exhaustive()
    }
}

/// A request that has no reply yet. If it is dropped without one, its client counts as gone.
#[derive(Debug)]
pub struct HttpExchange<'a> {
    metrics: &'a HttpMetrics,
    /// The indexes of its method and route.
    at: [usize; 2],
    began: Instant,
    is_ended: bool,
}

impl HttpExchange<'_> {
    /// Counts the request with the status of its reply, such as `200`.
    pub fn end(mut self, status: &str) {
        self.is_ended = true;
        self.count(status);
        if let Some(recorded) = &self.metrics.recorded {
            recorded.times.observe(self.at, self.began.elapsed().as_secs_f64());
        }
    }

    fn count(&self, status: &str) {
        let [method, route] = self.at;
        if let Some(recorded) = &self.metrics.recorded {
            recorded.counts.inc([method, route, place(&STATUSES, status)]);
        }
    }
}

impl Drop for HttpExchange<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            // A handler that panics ends its connection without a reply.
            self.count(if std::thread::panicking() { "500" } else { CLIENT_LEFT });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Exposition;

    #[test]
    fn methods_and_routes_of_clients_get_no_label_of_their_own() {
        let metrics = HttpMetrics::new(vec!["/api/runs/{run_id}"]);
        metrics.begin("GET", Some("/api/runs/{run_id}")).end("200");
        metrics.begin("GET", Some("/api/runs/{run_id}")).end("404");
        metrics.begin("GET", Some("/unlisted")).end("404");
        metrics.begin("BREW", None).end("418");
        drop(metrics.begin("POST", None));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _exchange = metrics.begin("PUT", None);
            panic!("told to");
        }));
        assert!(panicked.is_err());
        let mut text = Exposition::default();
        text.add_http(&metrics);
        let text = text.text();
        let mut counted: Vec<&str> =
            text.lines().filter(|line| line.starts_with("proscenium_http_requests_total")).collect();
        counted.sort_unstable();
        assert_eq!(
            counted,
            [
                r#"proscenium_http_requests_total{method="GET",route="/api/runs/{run_id}",status="200"} 1"#,
                r#"proscenium_http_requests_total{method="GET",route="/api/runs/{run_id}",status="404"} 1"#,
                r#"proscenium_http_requests_total{method="GET",route="other",status="404"} 1"#,
                r#"proscenium_http_requests_total{method="POST",route="other",status="499"} 1"#,
                r#"proscenium_http_requests_total{method="PUT",route="other",status="500"} 1"#,
                r#"proscenium_http_requests_total{method="other",route="other",status="other"} 1"#,
            ]
        );
        // A request without a reply has no duration.
        assert!(!text.contains(r#"seconds_count{method="POST""#), "{text}");
        assert!(text.contains(r#"seconds_count{method="GET",route="/api/runs/{run_id}"} 2"#), "{text}");
    }
}
