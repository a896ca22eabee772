//! Connections that say nothing that could be answered.
//!
//! The framework bounds the time for the head of a connection's first request only: whoever sends one
//! request and then drips the next would stay for ever. So each connection is looked at now and then, and
//! is cut when it has had no request for too long.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::web::Bytes;
use socket2::{SockRef, Socket};

/// How often connections are looked at, at least.
const LOOK: Duration = Duration::from_secs(1);

/// A connection.
pub(crate) struct Line {
    /// The same connection once more: the framework keeps its own to itself.
    socket: Socket,
    state: Mutex<State>,
}

struct State {
    /// Requests that are being answered.
    busy: usize,
    /// When the last one had been answered, or the connection began.
    since: Instant,
}

/// The connections there are.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<Weak<Line>>>>);

impl Lines {
    /// Takes a connection up; whoever holds what is returned keeps it watched. `None` where the system
    /// has no descriptor left for it: then it is only less well guarded.
    pub(crate) fn add(&self, stream: &actix_web::rt::net::TcpStream) -> Option<Arc<Line>> {
        let socket = SockRef::from(stream).try_clone().ok()?;
        let state = Mutex::new(State { busy: 0, since: Instant::now() });
        let line = Arc::new(Line { socket, state });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&line));
        Some(line)
    }

    /// Cuts every connection that has had no request for `patience`, as long as the server runs.
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
            // It may be gone by itself.
            let _ = self.socket.shutdown(std::net::Shutdown::Both);
        }
        stays
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered on a watched connection.
pub(crate) struct Busy(Arc<Line>);

impl Busy {
    /// `None` where its connection is not watched.
    pub(crate) fn begin(request: &HttpRequest) -> Option<Self> {
        let line = request.conn_data::<Arc<Line>>()?.clone();
        line.state().busy += 1;
        Some(Self(line))
    }

    /// The same body; the request is answered when it has been sent.
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

/// The body of a reply on its way.
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
