//! `[server]`: the address, and the limits for clients.

use std::net::{SocketAddr, ToSocketAddrs};

use serde::{Deserialize, Serialize};

use crate::setting::{DAY_MS, SettingProblem, SettingsReview, redact_url};

/// `[server]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The address to listen on: `HOST:PORT`; port 0 picks a free one.
    pub addr: String,
    /// Host names that are accepted in requests without a key, besides loopback names: `HOST`, `HOST:PORT`,
    /// or `*` for every name.
    pub allowed_hosts: Vec<String>,
    /// Origins whose browser pages may use the server, with a key or, if none is required, without one:
    /// `https://HOST[:PORT]` or `http://HOST[:PORT]`.
    pub allowed_origins: Vec<String>,
    /// Number of worker threads; 0 for one per core.
    pub workers: usize,
    /// Maximum number of connections, across all workers.
    pub max_connections: usize,
    /// Maximum number of requests to the assistant in progress, including queued ones.
    pub max_in_flight: usize,
    /// Maximum size of a request's body, in bytes.
    pub max_body_bytes: usize,
    /// Maximum number of messages in one request. In the OpenAI protocol the oldest are left out.
    pub max_messages: usize,
    /// Maximum nesting depth of a request's body.
    pub max_json_depth: usize,
    /// Maximum size of a request's headers (names, values and path), in bytes.
    pub max_header_bytes: usize,
    /// Timeout for a request's headers, in milliseconds.
    pub header_timeout_ms: u64,
    /// Timeout for a request's body, in milliseconds.
    pub body_timeout_ms: u64,
    /// Milliseconds after which a client that does not read its reply is disconnected.
    pub write_timeout_ms: u64,
    /// Milliseconds that an idle connection is kept open.
    pub keep_alive_ms: u64,
    /// Milliseconds between pings on an idle stream.
    pub ping_ms: u64,
    /// Milliseconds that a shutdown waits for accepted requests.
    pub drain_timeout_ms: u64,
    /// Whether `/metrics` needs no key.
    pub open_metrics: bool,
    /// How the OpenAI protocol shows a plan's progress.
    pub progress: ProgressMode,
    /// Whether each request is logged.
    pub access_log: bool,
}

/// How a streamed `/v1/chat/completions` shows a plan's progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressMode {
    /// Not at all: only the answer.
    #[default]
    Off,
    /// As `reasoning_content` besides the answer, which chatbots collapse.
    Reasoning,
    /// As lines of text before the answer.
    Text,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            addr: "127.0.0.1:8080".to_owned(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            workers: 0,
            max_connections: 10_000,
            max_in_flight: 4096,
            max_body_bytes: 1 << 20,
            max_messages: 256,
            max_json_depth: 32,
            max_header_bytes: 16 << 10,
            header_timeout_ms: 30_000,
            body_timeout_ms: 20_000,
            write_timeout_ms: 30_000,
            keep_alive_ms: 75_000,
            ping_ms: 15_000,
            drain_timeout_ms: 30_000,
            open_metrics: false,
            progress: ProgressMode::Off,
            access_log: false,
        }
    }
}

/// Files that a server has open besides connections: its database, logs, listeners, workers of the sandbox.
const OTHER_FILES: u64 = 256;
/// The fewest of these, without which nothing can be served.
const MIN_OTHER_FILES: u64 = 96;

/// Returns whether `addr` has the form `HOST:PORT`; nothing is looked up.
pub fn is_listen_address(addr: &str) -> bool {
    let parts = addr.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
    matches!(parts, Some((host, Ok(_))) if !host.is_empty())
}

impl ServerConfig {
    /// The addresses that `addr` names.
    ///
    /// # Errors
    /// If it names none.
    pub fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        self.addr.to_socket_addrs().map(Iterator::collect)
    }

    /// How many files the server may have open at once: each connection with the duplicate by which it is closed when it is
    /// idle, and a connection to a model or a back end for each request in progress.
    pub fn open_files(&self) -> u64 {
        let (connections, requests) = (self.max_connections as u64, self.max_in_flight as u64);
        connections.saturating_mul(2).saturating_add(requests).saturating_add(OTHER_FILES)
    }

    /// These values with as few connections and requests as a limit of open files allows; `None` if it allows none.
    /// With more, accepted requests would fail, since their models and back ends could not be reached.
    pub fn within_open_files(&self, limit: u64) -> Option<Self> {
        if self.open_files() <= limit {
            return Some(self.clone());
        }
        let others = (limit / 2).clamp(MIN_OTHER_FILES, OTHER_FILES);
        // Each has its connection with the duplicate, and keeps one open to a model and one to a back end.
        let places = usize::try_from(limit.saturating_sub(others) / 4).unwrap_or(usize::MAX);
        (places > 0).then(|| Self {
            max_connections: self.max_connections.min(places),
            max_in_flight: self.max_in_flight.min(places),
            ..self.clone()
        })
    }

    /// Validates these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        if !is_listen_address(&self.addr) {
            let message = format!("`server.addr` = `{}` is not an address", redact_url(&self.addr));
            review.add("server.addr", message, "write HOST:PORT, such as `127.0.0.1:8080`");
        }
        for host in self.allowed_hosts.iter().filter(|host| !crate::host::is_host_entry(host)) {
            let message =
                format!("`server.allowed_hosts` has `{}`, which is not a host name", redact_url(host));
            let remedy = "write HOST or HOST:PORT, such as `chat.example.com`, or `*`";
            review.add("server.allowed_hosts", message, remedy);
        }
        for origin in self.allowed_origins.iter().filter(|origin| !crate::host::is_origin_entry(origin)) {
            let message =
                format!("`server.allowed_origins` has `{}`, which is not an origin", redact_url(origin));
            let remedy = "write SCHEME://HOST or SCHEME://HOST:PORT, such as `https://chat.example.com`";
            review.add("server.allowed_origins", message, remedy);
        }
        review.range("server.workers", self.workers, 0..=1024);
        review.range("server.max_connections", self.max_connections, 1..=1_000_000);
        review.range("server.max_in_flight", self.max_in_flight, 1..=1_000_000);
        review.range("server.max_body_bytes", self.max_body_bytes, 1024..=1 << 30);
        review.range("server.max_messages", self.max_messages, 1..=100_000);
        review.range("server.max_json_depth", self.max_json_depth, 4..=100);
        // The HTTP library rejects more than 128 KiB.
        review.range("server.max_header_bytes", self.max_header_bytes, 1024..=128 << 10);
        for (key, value) in [
            ("server.header_timeout_ms", self.header_timeout_ms),
            ("server.body_timeout_ms", self.body_timeout_ms),
            ("server.write_timeout_ms", self.write_timeout_ms),
            ("server.keep_alive_ms", self.keep_alive_ms),
            ("server.ping_ms", self.ping_ms),
            ("server.drain_timeout_ms", self.drain_timeout_ms),
        ] {
            review.range(key, value, 1..=DAY_MS);
        }
        review.into_problems()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fit_into_the_limit_of_open_files() {
        let options = ServerConfig::default();
        assert_eq!(options.within_open_files(options.open_files()), Some(options.clone()));
        for limit in (100..20_000).step_by(7) {
            let fitted = options.within_open_files(limit).unwrap();
            let places = fitted.max_connections;
            assert!(places >= 1 && fitted.max_in_flight <= places, "{limit}: {places}");
            assert!(4 * places as u64 + MIN_OTHER_FILES <= limit, "{limit}: {places}");
        }
        assert_eq!(options.within_open_files(64), None);
        let few = ServerConfig { max_connections: 2, ..options };
        assert_eq!(few.within_open_files(256).unwrap().max_connections, 2);
    }
}
