//! Closes connections that have been idle for too long.
//!
//! The framework limits the time for the head of a connection's first request only: a client that sends one
//! request and then drips the next would stay connected for ever. So every connection is checked
//! periodically, and closed when it has had no request for too long.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::web::Bytes;
use socket2::{SockRef, Socket};

use crate::mutex::lock;

/// Maximum time between two checks.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Connection {
    /// A duplicate of the socket, because the framework does not expose its own.
    socket: Socket,
    state: Mutex<ConnectionState>,
}

struct ConnectionState {
    /// Requests in progress.
    in_flight: usize,
    /// When the last request was answered, or the connection was opened.
    idle_since: Instant,
}

#[derive(Clone, Default)]
pub(crate) struct Connections(Arc<Mutex<Vec<Weak<Connection>>>>);

impl Connections {
    /// Adds a connection. It is checked as long as the returned handle lives. `None` if the system has no
    /// file descriptor left: then the connection works, without this check.
    pub(crate) fn add(&self, stream: &actix_web::rt::net::TcpStream) -> Option<Arc<Connection>> {
        let socket = SockRef::from(stream).try_clone().ok()?;
        let state = Mutex::new(ConnectionState { in_flight: 0, idle_since: Instant::now() });
        let connection = Arc::new(Connection { socket, state });
        lock(&self.0).push(Arc::downgrade(&connection));
        Some(connection)
    }

    /// Closes every connection that has had no request for `patience`. Runs as long as the server.
    pub(crate) async fn close_idle(self, patience: Duration) {
        loop {
            tokio::time::sleep(MAX_CHECK_INTERVAL.min(patience / 2)).await;
            let now = Instant::now();
            let mut all = lock(&self.0);
            all.retain(|open| open.upgrade().is_some_and(|open| open.keep_or_close(now, patience)));
        }
    }
}

impl Connection {
    fn keep_or_close(&self, now: Instant, patience: Duration) -> bool {
        let state = self.state();
        let stays = state.in_flight > 0 || now.duration_since(state.idle_since) < patience;
        if !stays {
            // The client may have closed it.
            let _ = self.socket.shutdown(std::net::Shutdown::Both);
        }
        stays
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        lock(&self.state)
    }
}

/// Marks a request in progress on a tracked connection.
pub(crate) struct InFlightGuard(Arc<Connection>);

impl InFlightGuard {
    /// `None` if the connection is not tracked.
    pub(crate) fn begin(request: &HttpRequest) -> Option<Self> {
        let connection = request.conn_data::<Arc<Connection>>()?.clone();
        connection.state().in_flight += 1;
        Some(Self(connection))
    }

    /// Wraps the body: the request counts as answered when the body has been sent.
    pub(crate) fn wrap_body<B: MessageBody + 'static>(self, body: B) -> InFlightBody {
        InFlightBody { body: body.boxed(), _busy: self }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        state.idle_since = Instant::now();
    }
}

/// The body of a reply in progress.
pub(crate) struct InFlightBody {
    body: BoxBody,
    _busy: InFlightGuard,
}

impl MessageBody for InFlightBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}
