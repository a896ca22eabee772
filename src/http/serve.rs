//! The server's lifecycle: bind, serve, drain, stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::http::KeepAlive;
use actix_web::middleware::from_fn;
use actix_web::rt::net::TcpStream;
use actix_web::{App as Application, HttpServer, web};
use tokio::sync::oneshot;

use super::app::{AnonymousAccess, App};
use super::connections::Connections;
use crate::Engine;
use crate::config::Config;
use crate::store::KeyRing;

/// Length of the system's accept queue.
const BACKLOG: i32 = 2048;

/// How often a draining server checks whether all requests have ended.
const IN_FLIGHT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The server would be open to everybody.
    #[error(
        "{addr} is reachable from other machines, and there is no API key: create one with `proscenium keys create`, \
         or set auth.allow_anonymous = true to serve everybody"
    )]
    Open {
        /// The address.
        addr: SocketAddr,
    },
    /// Keys are required, and there is none.
    #[error(
        "auth.require_keys is set, and there is no API key: create one with `proscenium keys create`, before the server \
         starts"
    )]
    WithoutKeys,
    /// The address cannot be bound.
    #[error("cannot listen on {addr}: {error}; choose another address with server.addr or --addr")]
    Address {
        /// The address.
        addr: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The keys could not be read from the store.
    #[error(transparent)]
    Store(#[from] crate::store::Error),
    /// A thread or the server could not be started.
    #[error("the server cannot be started: {0}")]
    Thread(std::io::Error),
}

impl ServeError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open { .. } => "server.open",
            Self::WithoutKeys => "server.without_keys",
            Self::Address { .. } => "server.address",
            Self::Store(error) => error.code(),
            Self::Thread(_) => "server.start",
        }
    }
}

/// A bound address that is not served yet: connections wait.
pub struct BoundListener {
    listener: std::net::TcpListener,
    addr: SocketAddr,
    anonymous: AnonymousAccess,
}

/// A running server. Dropping it leaves it running; [`Server::stop`] ends it.
pub struct Server {
    addr: SocketAddr,
    handle: ServerHandle,
    app: web::Data<App>,
    thread: Option<std::thread::JoinHandle<()>>,
    ended: oneshot::Receiver<()>,
}

impl std::fmt::Debug for BoundListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoundListener").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Server {
    /// Binds `config.server.addr` and serves `engine` on separate threads.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub async fn start(engine: Arc<Engine>, config: &Config) -> Result<Self, ServeError> {
        let bound = Self::bind(&engine, config).await?;
        Self::serve(engine, config, bound).await
    }

    /// Binds `config.server.addr`. Called before anything else starts, so that a process that cannot serve
    /// does no work.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub async fn bind(engine: &Engine, config: &Config) -> Result<BoundListener, ServeError> {
        let options = &config.server;
        let address = |error| ServeError::Address { addr: options.addr.clone(), error };
        let addresses = options.addresses().map_err(address)?;
        let outside = addresses.iter().find(|addr| !addr.ip().is_loopback()).copied();
        let keys = KeyRing::new(engine.store().clone());
        let anonymous = match outside {
            _ if config.auth.require_keys => match keys.has_keys().await? {
                true => AnonymousAccess::Never,
                false => return Err(ServeError::WithoutKeys),
            },
            _ if config.auth.allow_anonymous => AnonymousAccess::Always,
            None => AnonymousAccess::UntilKeys,
            Some(addr) if !keys.has_keys().await? => return Err(ServeError::Open { addr }),
            Some(_) => AnonymousAccess::Never,
        };
        let listener = std::net::TcpListener::bind(addresses.as_slice()).map_err(address)?;
        // The standard library sets a backlog of 128; a second `listen` raises it.
        socket2::SockRef::from(&listener).listen(BACKLOG).map_err(address)?;
        let addr = listener.local_addr().map_err(address)?;
        Ok(BoundListener { listener, addr, anonymous })
    }

    /// Serves `engine` on the bound address, on separate threads.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub async fn serve(
        engine: Arc<Engine>,
        config: &Config,
        bound: BoundListener,
    ) -> Result<Self, ServeError> {
        let BoundListener { listener, addr, anonymous } = bound;
        let options = config.server.clone();
        let app = web::Data::new(App::new(engine, options.clone(), anonymous));
        let (sender, receiver) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let shared = app.clone();
        let thread = std::thread::Builder::new()
            .name("http".to_owned())
            .spawn(move || {
                let system = actix_web::rt::System::new();
                system.block_on(async move {
                    match build_server(shared, listener, &options) {
                        Ok(server) => {
                            let _ = sender.send(Ok(server.handle()));
                            if let Err(error) = server.await {
                                tracing::error!(%error, "the server ended with an error");
                            }
                        }
                        Err(error) => {
                            let _ = sender.send(Err(error));
                        }
                    }
                });
                let _ = end.send(());
            })
            .map_err(ServeError::Thread)?;
        let gone = || ServeError::Thread(std::io::Error::other("its thread ended"));
        let handle = receiver.await.map_err(|_| gone())?.map_err(ServeError::Thread)?;
        Ok(Self { addr, handle, app, thread: Some(thread), ended })
    }

    /// The address that the server listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops admitting requests, waits at most `server.drain_timeout_ms` for the accepted ones, and stops.
    /// Returns whether all of them had ended by then.
    pub async fn stop(mut self) -> bool {
        self.app.drain();
        let wait = Duration::from_millis(self.app.options.drain_timeout_ms);
        // Connections end first. Runs whose clients have disconnected may take longer.
        let handle = self.handle.clone();
        let drained = async {
            handle.stop(true).await;
            while self.app.in_flight() > 0 {
                tokio::time::sleep(IN_FLIGHT_POLL_INTERVAL).await;
            }
        };
        let drained = tokio::time::timeout(wait, drained).await.is_ok();
        if !drained {
            self.handle.stop(false).await;
        }
        let _ = (&mut self.ended).await;
        if let Some(thread) = self.thread.take() {
            // It has already signalled its end.
            let _ = thread.join();
        }
        drained
    }
}

fn build_server(
    app: web::Data<App>,
    listener: std::net::TcpListener,
    options: &crate::config::ServerConfig,
) -> std::io::Result<actix_web::dev::Server> {
    let workers = match options.workers {
        0 => std::thread::available_parallelism().map_or(2, usize::from),
        workers => workers,
    };
    let write_timeout = Duration::from_millis(options.write_timeout_ms);
    let connections = Connections::default();
    // The time for a request's head comes on top of the keep-alive time.
    let idle_timeout = Duration::from_millis(options.keep_alive_ms.saturating_add(options.header_timeout_ms));
    actix_web::rt::spawn(connections.clone().close_idle(idle_timeout));
    actix_web::rt::spawn(app.keys.clone().watch_revocations());
    let server = HttpServer::new(move || {
        Application::new()
            .app_data(app.clone())
            .wrap(from_fn(super::middleware::guard_request))
            // The outermost is the last one.
            .wrap(from_fn(super::middleware::count_request))
            .configure(super::register_routes)
    })
    .workers(workers)
    .max_connections(options.max_connections.div_ceil(workers))
    .keep_alive(KeepAlive::Timeout(Duration::from_millis(options.keep_alive_ms)))
    .client_request_timeout(Duration::from_millis(options.header_timeout_ms))
    .client_disconnect_timeout(Duration::from_secs(1))
    // Treat a half-closed connection as disconnected: only then a waiting handler is dropped, and
    // `v1::retry` learns that the client has not got its answer.
    .h1_allow_half_closed(false)
    .on_connect(move |connection, data| {
        if let Some(stream) = connection.downcast_ref::<TcpStream>() {
            set_socket_options(stream, write_timeout);
            if let Some(entry) = connections.add(stream) {
                data.insert(entry);
            }
        }
    })
    .shutdown_timeout(options.drain_timeout_ms.div_ceil(1000))
    .disable_signals();
    listener.set_nonblocking(true)?;
    Ok(server.listen(listener)?.run())
}

/// Sets `TCP_USER_TIMEOUT` (RFC 5482), so that the system closes a connection whose client stops reading.
fn set_socket_options(stream: &TcpStream, write_timeout: Duration) {
    // If this fails, the connection works without the timeout.
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(write_timeout));
    #[cfg(not(target_os = "linux"))]
    let _ = write_timeout;
    let _ = stream.set_nodelay(true);
}
