//! A run of the server that owns the data directory, told from the store: that can be read beside it, and
//! has every event whole.

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

/// How often the store is looked at while a run is under way.
const LOOK: Duration = Duration::from_millis(100);
/// Looks after the server has said that the run is not under way, until what it did is in the store.
const LAST_LOOKS: u32 = 50;
/// Every so many of them, the server is asked once more: a stream may break, or be refused for a while.
const ASK_AGAIN: u32 = 10;

/// A run that is followed.
pub struct Followed {
    server: RemoteServer,
    run: RunId,
    session: SessionId,
    before: Vec<Envelope<Event>>,
    /// The number of the last event that was read.
    told: u64,
    news: VecDeque<Envelope<Event>>,
    alive: Option<Response>,
    /// Looks since the server has nothing more to say.
    looks: u32,
    /// It has ended or waits.
    rests: bool,
}

impl Followed {
    /// The run from behind `before`, which was read of it already. `alive` is open for as long as the run is
    /// under way at the server: it tells when there is nothing more to wait for.
    pub fn new(
        server: RemoteServer,
        run: RunId,
        session: SessionId,
        before: Vec<Envelope<Event>>,
        alive: Option<Response>,
    ) -> Self {
        let told = before.last().map_or(0, |event| event.seq);
        Self { server, run, session, before, told, news: VecDeque::new(), alive, looks: 0, rests: false }
    }

    /// Reads what is new; false where that is nothing.
    async fn look(&mut self) -> bool {
        let past = self.server.past();
        let Ok(Some((status, last))) = past.stands(self.run).await else { return false };
        self.rests = rests(status);
        if last <= self.told {
            return false;
        }
        let Ok(journal) = past.journal(self.run).await else { return false };
        self.news.extend(journal.into_iter().filter(|event| event.seq > self.told));
        self.told = self.news.back().map_or(self.told, |event| event.seq);
        self.looks = 0;
        !self.news.is_empty()
    }

    /// Until a run that rests is not under way any more at the server, for as long as that may take.
    async fn leave(&mut self) {
        let Some(alive) = &mut self.alive else { return };
        let ends = async { while let Ok(Some(_)) = alive.chunk().await {} };
        let over = tokio::time::timeout(LOOK * LAST_LOOKS, ends).await.is_ok();
        self.look().await;
        // Somebody else may have decided just then: it goes on, and is followed on.
        if over || self.rests {
            self.alive = None;
        }
    }

    /// Until the server says something, or a moment.
    async fn pause(&mut self) {
        let until = Instant::now() + LOOK;
        while let Some(alive) = &mut self.alive {
            match tokio::time::timeout_at(until, alive.chunk()).await {
                // An answer comes in many pieces, and none of them is an event to look for.
                Ok(Ok(Some(piece))) if only_words(&piece) => {}
                Ok(Ok(Some(_))) => return,
                // One that is open while nothing happens is of a run that is under way.
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

    /// Has the server tell the run's events once more. It is waited for as long as it lives.
    async fn ask_again(&mut self) {
        let lives = match self.server.events(self.run, self.told).await {
            RemoteStream::Open(alive) => {
                self.alive = Some(alive);
                return;
            }
            RemoteStream::Refused => true,
            // One that ends takes nothing new, and finishes what it has accepted.
            RemoteStream::Unreachable => self.server.past().is_owned().await,
        };
        if lives {
            self.looks = 0;
        }
    }
}

/// Whether a run that stands so does nothing by itself.
fn rests(status: RunStatus) -> bool {
    status.is_terminal() || status == RunStatus::Waiting
}

/// Whether there is nothing in these events but words of the answer.
fn only_words(piece: &[u8]) -> bool {
    let text = String::from_utf8_lossy(piece);
    text.split_terminator("\n\n").all(|event| event.contains("\nevent: answer_delta\n"))
}

#[async_trait(?Send)]
impl FollowedTicket for Followed {
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
                // Until its conversation knows, too: what is said next may be about what waits.
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
        // The server knows who asks by the key; where it does not answer, the run goes on, as it is told.
        if let Err(failure) = self.server.cancel(self.run).await {
            tracing::warn!(code = failure.code, "the run could not be stopped: {}", failure.message);
        }
    }

    async fn answer(self: Box<Self>) -> Result<Answer, Failure> {
        // From the store: the server may have gone since, with everything done.
        let answer = self.server.past().answer(self.run).await?;
        if rests(answer.status) { Ok(answer) } else { Err(self.server.gone(self.run).await) }
    }
}

#[cfg(test)]
mod tests {
    use proscenium::config::{Config, ConfigFlags};
    use proscenium::store::{DataDir, Store};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;

    use super::super::{past, recorded};
    use super::*;

    #[tokio::test]
    async fn a_server_that_refuses_a_stream_or_breaks_it_off_is_asked_again() {
        const REFUSED: &str =
            "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        // A piece, and no end.
        const BROKEN: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\n: ping\n\n\r\n";
        let dir = tempfile::tempdir().unwrap();
        Store::open(DataDir::open(dir.path()).unwrap()).await.unwrap().close().await;
        let flags = ConfigFlags { data_dir: Some(dir.path().to_owned()), ..ConfigFlags::default() };
        let past = past::open(&Config::load(None, std::iter::empty(), flags).unwrap()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = RemoteServer::at(url, past, false).unwrap_or_else(|why| panic!("{why:?}"));
        let mut followed = Followed::new(server, recorded::run_id(), recorded::session(), Vec::new(), None);
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
    fn words_of_an_answer_are_told_from_events_of_a_run() {
        let words = "id: 7.3\nevent: answer_delta\ndata: {\"text\":\"event: \"}\n\n";
        let step = "id: 8.0\nevent: step_started\ndata: {}\n\n";
        assert!(only_words(words.as_bytes()) && only_words(words.repeat(2).as_bytes()));
        assert!(!only_words(step.as_bytes()) && !only_words(format!("{words}{step}").as_bytes()));
        assert!(!only_words(b": ping\n\n"));
    }
}
