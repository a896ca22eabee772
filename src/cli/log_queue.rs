//! The log of a server: lines wait in a bounded queue for the thread that writes them. Whatever happens to the reader of
//! standard error, no request waits for it: what has no room is dropped and counted.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use super::progress::LogWriter;

/// Maximum number of lines that wait.
const MAX_LINES: usize = 8192;
/// Maximum number of bytes that wait.
const MAX_BYTES: usize = 4 << 20;
/// How long the end of the process waits for lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Lines that wait to be written; clones share them.
#[derive(Clone)]
pub struct LogQueue {
    sender: SyncSender<LogItem>,
    waiting: Arc<WaitingLines>,
}

#[derive(Default)]
struct WaitingLines {
    lines: AtomicUsize,
    bytes: AtomicUsize,
    /// Lines dropped since the last report.
    dropped: AtomicU64,
    /// Lines dropped since the start.
    dropped_ever: Arc<AtomicU64>,
}

enum LogItem {
    Line(Vec<u8>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

impl LogQueue {
    /// Starts the thread that writes to standard error.
    pub fn start() -> io::Result<Self> {
        Self::start_with(LogWriter)
    }

    fn start_with(writer: impl Write + Send + 'static) -> io::Result<Self> {
        let (sender, items) = sync_channel(MAX_LINES + 1);
        let waiting = Arc::new(WaitingLines::default());
        let shared = waiting.clone();
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_lines(&items, &shared, writer))?;
        Ok(Self { sender, waiting })
    }

    /// Adds a line with its end.
    pub fn push(&self, line: &[u8]) {
        let waiting = &self.waiting;
        let lines = waiting.lines.fetch_add(1, Relaxed);
        let bytes = waiting.bytes.fetch_add(line.len(), Relaxed);
        let has_room = lines < MAX_LINES && bytes.saturating_add(line.len()) <= MAX_BYTES;
        if !has_room || self.sender.try_send(LogItem::Line(line.to_vec())).is_err() {
            waiting.remove(line.len());
            waiting.dropped.fetch_add(1, Relaxed);
            waiting.dropped_ever.fetch_add(1, Relaxed);
        }
    }

    /// How many lines were dropped since the start; the queue goes on counting in it.
    pub fn dropped_lines(&self) -> Arc<AtomicU64> {
        self.waiting.dropped_ever.clone()
    }

    /// Waits until everything is written, within bounds.
    pub fn flush(&self) {
        let (done, ended) = sync_channel(1);
        if self.sender.try_send(LogItem::Flush(done)).is_ok() {
            // Nobody reads: the process ends nevertheless.
            let _ = ended.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

impl WaitingLines {
    fn remove(&self, bytes: usize) {
        self.lines.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    /// The lines dropped since the last report, once a report has room.
    fn take_dropped(&self) -> u64 {
        let has_room = self.lines.load(Relaxed) < MAX_LINES / 2 && self.bytes.load(Relaxed) < MAX_BYTES / 2;
        if has_room { self.dropped.swap(0, Relaxed) } else { 0 }
    }
}

/// Each line that is written takes one call, and so does each log line that `LogLayer` hands over.
impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_lines(items: &Receiver<LogItem>, waiting: &WaitingLines, mut writer: impl Write) {
    while let Ok(item) = items.recv() {
        // There is nowhere to report an error of standard error.
        match item {
            LogItem::Line(line) => {
                let _ = writer.write_all(&line);
                waiting.remove(line.len());
            }
            LogItem::Flush(done) => {
                let _ = writer.flush();
                let _ = done.try_send(());
            }
        }
        let dropped = waiting.take_dropped();
        if dropped > 0 {
            tracing::warn!(
                target: "proscenium::server", code = "log.dropped", dropped,
                "log lines were dropped: standard error was not read fast enough"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A writer whose reader reads nothing until it is told to.
    struct Blocked {
        goes_on: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // An error once the sender is gone: from then on nothing blocks.
            let _ = self.goes_on.recv();
            self.written.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_without_room_are_dropped_and_counted_and_the_others_written() {
        let (go_on, goes_on) = sync_channel(0);
        let written = Arc::new(Mutex::new(Vec::new()));
        let queue = LogQueue::start_with(Blocked { goes_on, written: written.clone() }).unwrap();
        let sent = MAX_LINES + 100;
        for _ in 0..sent {
            queue.push(b"line\n");
        }
        let dropped = queue.waiting.dropped.load(Relaxed) as usize;
        assert_eq!(dropped, 100);
        assert_eq!(queue.waiting.take_dropped(), 0, "there is no room for a report");
        drop(go_on);
        queue.flush();
        assert_eq!(written.lock().unwrap().len(), (sent - dropped) * b"line\n".len());
        assert_eq!(queue.waiting.dropped.load(Relaxed), 0, "reported");
        assert_eq!((queue.waiting.lines.load(Relaxed), queue.waiting.bytes.load(Relaxed)), (0, 0));
        let long = vec![b'x'; MAX_BYTES + 1];
        queue.push(&long);
        assert_eq!(queue.waiting.lines.load(Relaxed), 0);
        assert_eq!(queue.dropped_lines().load(Relaxed), 101, "a report takes nothing off the metric");
    }
}
