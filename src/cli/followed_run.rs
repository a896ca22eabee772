//! A run of the server that owns the data directory, followed by reading the store, which has every event in
//! full.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use proscenium::Answer;
use proscenium::run::{Envelope, Event, RunId, RunStatus, SessionId};
use reqwest::Response;
use tokio::time::Instant;

use super::assistant::FollowedTicket;
use super::failure::Failure;
use super::remote::{RemoteServer, RemoteStream};

/// How often the store is read while a run is active.
const LOOK: Duration = Duration::from_millis(100);
/// How often the store is read after the server's stream has ended, for events that are still being written.
const LAST_LOOKS: u32 = 50;
/// After this many of them, the server is asked again: a stream may break, or be refused for a while.
const ASK_AGAIN: u32 = 10;

/// A run of another process that is followed.
pub struct FollowedRun {
    server: RemoteServer,
    run: RunId,
    session: SessionId,
    before: Vec<Envelope<Event>>,
    /// The sequence number of the last event that was read.
    last_seen: u64,
    news: VecDeque<Envelope<Event>>,
    alive: Option<Response>,
    /// How often the store was read since the server's stream ended.
    looks: u32,
    /// The run has ended or waits.
    rests: bool,
}

impl FollowedRun {
    /// Follows a run from behind `before`, which was read already. `alive` is the server's stream, which is
    /// open for as long as the run is active there.
    pub fn new(
        server: RemoteServer,
        run: RunId,
        session: SessionId,
        before: Vec<Envelope<Event>>,
        alive: Option<Response>,
    ) -> Self {
        let last_seen = before.last().map_or(0, |event| event.seq);
        Self { server, run, session, before, last_seen, news: VecDeque::new(), alive, looks: 0, rests: false }
    }

    /// Reads new events; false if there are none.
    async fn look(&mut self) -> bool {
        let stored = self.server.stored();
        let Ok(Some((status, last))) = stored.status(self.run).await else { return false };
        self.rests = rests(status);
        if last <= self.last_seen {
            return false;
        }
        let Ok(journal) = stored.journal(self.run).await else { return false };
        self.news.extend(journal.into_iter().filter(|event| event.seq > self.last_seen));
        self.last_seen = self.news.back().map_or(self.last_seen, |event| event.seq);
        self.looks = 0;
        !self.news.is_empty()
    }

    /// Waits, for a limited time, until the server's stream of a run that rests has ended.
    async fn leave(&mut self) {
        let Some(alive) = &mut self.alive else { return };
        let ends = async { while let Ok(Some(_)) = alive.chunk().await {} };
        let over = tokio::time::timeout(LOOK * LAST_LOOKS, ends).await.is_ok();
        self.look().await;
        // Another client may have decided just then: the run continues and is followed further.
        if over || self.rests {
            self.alive = None;
        }
    }

    /// Waits until the server's stream has an event, or for a moment.
    async fn pause(&mut self) {
        let until = Instant::now() + LOOK;
        while let Some(alive) = &mut self.alive {
            match tokio::time::timeout_at(until, alive.chunk()).await {
                // Chunks of the answer's text are not events of the journal.
                Ok(Ok(Some(piece))) if only_words(&piece) => {}
                Ok(Ok(Some(_))) => return,
                // The stream is open, so the run is still active.
                Err(_) => {
                    self.looks = 0;
                    return;
                }
                Ok(Ok(None) | Err(_)) => self.alive = None,
            }
        }
        self.looks += 1;
        tokio::time::sleep_until(until).await;
        if self.looks.is_multiple_of(ASK_AGAIN) {
            self.ask_again().await;
        }
    }

    /// Opens the server's stream again. The run is followed for as long as the server is alive.
    async fn ask_again(&mut self) {
        let lives = match self.server.events(self.run, self.last_seen).await {
            RemoteStream::Open(alive) => {
                self.alive = Some(alive);
                return;
            }
            RemoteStream::Refused => true,
            // A server that shuts down accepts no connection, but finishes what it has accepted.
            RemoteStream::Unreachable => self.server.stored().is_owned().await,
        };
        if lives {
            self.looks = 0;
        }
    }
}

/// Whether a run with this status makes no progress by itself.
fn rests(status: RunStatus) -> bool {
    status.is_terminal() || status == RunStatus::Waiting
}

/// Whether these events contain only text of the answer.
fn only_words(piece: &[u8]) -> bool {
    let text = String::from_utf8_lossy(piece);
    text.split_terminator("\n\n").all(|event| event.contains("\nevent: answer_delta\n"))
}

#[async_trait(?Send)]
impl FollowedTicket for FollowedRun {
    fn session(&self) -> SessionId {
        self.session.clone()
    }

    fn before(&mut self) -> Vec<Envelope<Event>> {
        std::mem::take(&mut self.before)
    }

    async fn next(&mut self) -> Option<Envelope<Event>> {
        loop {
            if let Some(event) = self.news.pop_front() {
                return Some(event);
            }
            if self.look().await {
                continue;
            }
            if self.rests && self.alive.is_some() {
                // Wait until the conversation knows, too: the next message may be about the open question.
                self.leave().await;
                continue;
            }
            if self.rests || self.looks >= LAST_LOOKS {
                return None;
            }
            self.pause().await;
        }
    }

    async fn cancel(&self, _: &str) {
        // The server knows the user by the key. If it cannot be reached, the run continues, as the log says.
        if let Err(failure) = self.server.cancel(self.run).await {
            tracing::warn!(code = failure.code, "the run could not be stopped: {}", failure.message);
        }
    }

    async fn answer(self: Box<Self>) -> Result<Answer, Failure> {
        // From the store: the server may have exited since, with everything done.
        let answer = self.server.stored().answer(self.run).await?;
        if rests(answer.status) { Ok(answer) } else { Err(self.server.gone(self.run).await) }
    }
}

#[cfg(test)]
mod tests {
    use proscenium::config::{Config, ConfigFlags};
    use proscenium::store::{DataDir, Store};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;

    use super::super::{recorded, stored_runs};
    use super::*;

    #[tokio::test]
    async fn refused_or_broken_stream_is_opened_again() {
        const REFUSED: &str =
            "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        // A piece, and no end.
        const BROKEN: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\n: ping\n\n\r\n";
        let dir = tempfile::tempdir().unwrap();
        Store::open(DataDir::open(dir.path()).unwrap()).await.unwrap().close().await;
        let flags = ConfigFlags { data_dir: Some(dir.path().to_owned()), ..ConfigFlags::default() };
        let stored =
            stored_runs::open(&Config::load(None, std::iter::empty(), flags).unwrap()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = RemoteServer::at(url, stored, false).unwrap_or_else(|why| panic!("{why:?}"));
        let mut followed =
            FollowedRun::new(server, recorded::run_id(), recorded::session(), Vec::new(), None);
        let asked = async {
            for reply in [REFUSED, BROKEN, REFUSED] {
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    assert_ne!(stream.read_line(&mut head).await.unwrap(), 0, "{head}");
                }
                assert!(head.starts_with("GET /api/runs/") && head.contains("last-event-id: 0.0"), "{head}");
                stream.write_all(reply.as_bytes()).await.unwrap();
            }
            listener.accept().await.unwrap()
        };
        tokio::select! {
            event = followed.next() => panic!("it is given up: {event:?}"),
            _ = asked => {}
        }
        assert!(followed.looks <= ASK_AGAIN, "each time it was found to live: {}", followed.looks);
    }

    #[test]
    fn answer_text_is_distinguished_from_run_events() {
        let words = "id: 7.3\nevent: answer_delta\ndata: {\"text\":\"event: \"}\n\n";
        let step = "id: 8.0\nevent: step_started\ndata: {}\n\n";
        assert!(only_words(words.as_bytes()) && only_words(words.repeat(2).as_bytes()));
        assert!(!only_words(step.as_bytes()) && !only_words(format!("{words}{step}").as_bytes()));
        assert!(!only_words(b": ping\n\n"));
    }
}
