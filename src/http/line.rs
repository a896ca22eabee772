//! Closes connections that have been idle for too long.
//!
//! The framework limits the time for the head of a connection's first request only: a client that sends one
//! request and then drips the next would stay connected for ever. So every connection is checked
//! periodically, and closed when it has had no request for too long.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::web::Bytes;
use socket2::{SockRef, Socket};

/// Maximum time between two checks.
const LOOK: Duration = Duration::from_secs(1);

/// A connection.
pub(crate) struct Line {
    /// A duplicate of the socket, because the framework does not expose its own.
    socket: Socket,
    state: Mutex<State>,
}

struct State {
    /// Requests in progress.
    busy: usize,
    /// When the last request was answered, or the connection was opened.
    since: Instant,
}

/// All open connections.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<Weak<Line>>>>);

impl Lines {
    /// Adds a connection. It is checked as long as the returned handle lives. `None` if the system has no
    /// file descriptor left: then the connection works, without this check.
    pub(crate) fn add(&self, stream: &actix_web::rt::net::TcpStream) -> Option<Arc<Line>> {
        let socket = SockRef::from(stream).try_clone().ok()?;
        let state = Mutex::new(State { busy: 0, since: Instant::now() });
        let line = Arc::new(Line { socket, state });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&line));
        Some(line)
    }

    /// Closes every connection that has had no request for `patience`. Runs as long as the server.
    pub(crate) async fn watch(self, patience: Duration) {
        loop {
            tokio::time::sleep(LOOK.min(patience / 2)).await;
            let now = Instant::now();
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            lines.retain(|line| line.upgrade().is_some_and(|line| line.stays(now, patience)));
        }
    }
}

impl Line {
    fn stays(&self, now: Instant, patience: Duration) -> bool {
        let state = self.state();
        let stays = state.busy > 0 || now.duration_since(state.since) < patience;
        if !stays {
            // The client may have closed it.
            let _ = self.socket.shutdown(std::net::Shutdown::Both);
        }
        stays
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks a request in progress on a tracked connection.
pub(crate) struct Busy(Arc<Line>);

impl Busy {
    /// `None` if the connection is not tracked.
    pub(crate) fn begin(request: &HttpRequest) -> Option<Self> {
        let line = request.conn_data::<Arc<Line>>()?.clone();
        line.state().busy += 1;
        Some(Self(line))
    }

    /// Wraps the body: the request counts as answered when the body has been sent.
    pub(crate) fn until<B: MessageBody + 'static>(self, body: B) -> Answering {
        Answering { body: body.boxed(), _busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.busy = state.busy.saturating_sub(1);
        state.since = Instant::now();
    }
}

/// The body of a reply in progress.
pub(crate) struct Answering {
    body: BoxBody,
    _busy: Busy,
}

impl MessageBody for Answering {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}
