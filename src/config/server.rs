//! `[server]`: where the server listens, and what it takes from a client.

use std::net::{SocketAddr, ToSocketAddrs};

use serde::{Deserialize, Serialize};

use crate::setting::{DAY_MS, Review, Wrong, url_without_passwords};

/// `[server]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Where it listens: `HOST:PORT`; port 0 takes any free one.
    pub addr: String,
    /// Names under which the server is reached where it wants no key, beside those of loopback: `HOST`,
    /// `HOST:PORT`, or `*` for every name.
    pub allowed_hosts: Vec<String>,
    /// Threads that serve connections; 0 for one a core.
    pub workers: usize,
    /// Most connections at once, of all workers together.
    pub max_connections: usize,
    /// Most requests to the assistant at once, those that wait for their turn included.
    pub max_in_flight: usize,
    /// Most bytes of a request's body.
    pub max_body_bytes: usize,
    /// Most messages in one request.
    pub max_messages: usize,
    /// How deep objects and lists may be nested in a request's body.
    pub max_json_depth: usize,
    /// Most bytes of a request's headers, names and values together.
    pub max_header_bytes: usize,
    /// Milliseconds until a request's headers must have come.
    pub header_timeout_ms: u64,
    /// Milliseconds until a request's body must have come.
    pub body_timeout_ms: u64,
    /// Milliseconds after which a client that takes nothing of a reply is cut off.
    pub write_timeout_ms: u64,
    /// Milliseconds that a connection is kept without a request.
    pub keep_alive_ms: u64,
    /// Milliseconds between signs of life on a stream that has nothing to say.
    pub ping_ms: u64,
    /// Milliseconds that a stopping server waits for what it has accepted.
    pub drain_timeout_ms: u64,
    /// Whether `/metrics` is open where keys are needed.
    pub open_metrics: bool,
    /// How a plan's progress is shown to chatbots of the OpenAI protocol.
    pub progress: Progress,
}

/// How a plan's progress is shown on a streamed `/v1/chat/completions`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Not at all: the answer only.
    #[default]
    Off,
    /// As `reasoning_content` beside the answer, which chatbots fold away.
    Reasoning,
    /// As lines of text before the answer.
    Text,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            addr: "127.0.0.1:8080".to_owned(),
            allowed_hosts: Vec::new(),
            workers: 0,
            max_connections: 10_000,
            max_in_flight: 4096,
            max_body_bytes: 1 << 20,
            max_messages: 256,
            max_json_depth: 32,
            max_header_bytes: 16 << 10,
            header_timeout_ms: 10_000,
            body_timeout_ms: 20_000,
            write_timeout_ms: 30_000,
            keep_alive_ms: 75_000,
            ping_ms: 15_000,
            drain_timeout_ms: 30_000,
            open_metrics: false,
            progress: Progress::Off,
        }
    }
}

impl Server {
    /// The addresses that `addr` names.
    ///
    /// # Errors
    /// Where it names none.
    pub fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        self.addr.to_socket_addrs().map(Iterator::collect)
    }

    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<Wrong> {
        let mut review = Review::default();
        let port = self.addr.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
        if !matches!(port, Some((host, Ok(_))) if !host.is_empty()) {
            let message = format!("`server.addr` = `{}` is no address", url_without_passwords(&self.addr));
            review.add("server.addr", message, "write HOST:PORT, such as `127.0.0.1:8080`");
        }
        for host in self.allowed_hosts.iter().filter(|host| !crate::http::is_host(host)) {
            let message = format!(
                "`server.allowed_hosts` has `{}`, which is no name of a host",
                url_without_passwords(host)
            );
            let remedy = "write HOST or HOST:PORT, such as `chat.example.com`, or `*`";
            review.add("server.allowed_hosts", message, remedy);
        }
        review.range("server.workers", self.workers, 0..=1024);
        review.range("server.max_connections", self.max_connections, 1..=1_000_000);
        review.range("server.max_in_flight", self.max_in_flight, 1..=1_000_000);
        review.range("server.max_body_bytes", self.max_body_bytes, 1024..=1 << 30);
        review.range("server.max_messages", self.max_messages, 1..=100_000);
        review.range("server.max_json_depth", self.max_json_depth, 4..=100);
        // Beyond 128 KiB the connection itself refuses.
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
        review.end()
    }
}
