//! Notices of a server about itself on standard error: lines for people, or log lines if the log is JSON, so that
//! everything on standard error is JSON then.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use proscenium::config::{ConfigFaults, LogFormat};

use super::failure::{Exit, Failure};
use super::log_queue::LogQueue;
use super::{table, wrap};

/// The target of these lines, which is logged whatever the level.
const TARGET: &str = "proscenium::server";

/// Writes the notices of a server.
pub struct ServerNotices {
    queue: LogQueue,
    format: LogFormat,
}

impl ServerNotices {
    /// Writes to the queue of the log, which has this format.
    pub fn new(queue: LogQueue, format: LogFormat) -> Self {
        Self { queue, format }
    }

    /// How many lines the queue has dropped since the start.
    pub fn dropped_lines(&self) -> Arc<AtomicU64> {
        self.queue.dropped_lines()
    }

    /// Says what the server does.
    pub fn say(&self, text: &str) {
        match self.format {
            LogFormat::Text => self.write(text),
            LogFormat::Json => tracing::info!(target: TARGET, "{text}"),
        }
    }

    /// Says what is wrong, in a text that has its code.
    pub fn error(&self, text: &str) {
        match self.format {
            LogFormat::Text => self.write(text),
            LogFormat::Json => tracing::error!(target: TARGET, "{text}"),
        }
    }

    /// Says what failed.
    pub fn failure(&self, failure: &Failure) {
        if self.format == LogFormat::Json {
            let (code, help) = (failure.code.as_str(), failure.remedy.as_deref());
            return tracing::error!(target: TARGET, code, help, "{}", failure.message);
        }
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = failure.write(&mut text);
        self.write(String::from_utf8_lossy(&text).trim_end());
    }

    /// Says what is wrong with a configuration.
    pub fn faults(&self, faults: &ConfigFaults) {
        if self.format == LogFormat::Text {
            return self.write(&faults.to_string());
        }
        for fault in &faults.0 {
            let (code, key, help) = (fault.code, fault.key.as_str(), fault.remedy.as_str());
            tracing::error!(target: TARGET, code, key, origin = %fault.origin, help, "{}", fault.message);
        }
    }

    /// Says why the command failed, if it did, and waits until everything is written.
    pub fn end(self, ended: Result<Exit, Failure>) -> Exit {
        let exit = ended.unwrap_or_else(|failure| {
            self.failure(&failure);
            failure.exit
        });
        self.queue.flush();
        exit
    }

    fn write(&self, text: &str) {
        let width = table::stderr_width();
        let shown = |line: &str| width.map_or_else(|| line.to_owned(), |width| wrap::line(line, width));
        let lines: Vec<String> = text.lines().map(shown).collect();
        self.queue.push(format!("{}\n", lines.join("\n")).as_bytes());
    }
}
