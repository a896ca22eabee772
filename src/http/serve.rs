//! The server's life: it listens, serves, drains and ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::http::KeepAlive;
use actix_web::middleware::from_fn;
use actix_web::rt::net::TcpStream;
use actix_web::{App as Application, HttpServer, web};
use tokio::sync::oneshot;

use super::app::{Anonymous, App};
use super::line::Lines;
use super::problem::Problem;
use crate::Engine;
use crate::config::Config;

/// Connections that wait to be accepted by the system.
const BACKLOG: i32 = 2048;

/// How often a draining server looks whether everything has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It would be open to everybody.
    #[error(
        "{addr} is reachable from other machines, and no API key was made: make one with `proscenium keys create`, \
         or set auth.allow_anonymous = true to serve everybody"
    )]
    Open {
        /// Where it was to listen.
        addr: SocketAddr,
    },
    /// The address cannot be had.
    #[error("cannot listen on {addr}: {error}; name another address in server.addr or with --addr")]
    Address {
        /// Where it was to listen.
        addr: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The store could not be asked for keys.
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
            Self::Address { .. } => "server.address",
            Self::Store(error) => error.code(),
            Self::Thread(_) => "server.start",
        }
    }
}

/// An address that is taken, and not served yet: connections wait.
pub struct Bound {
    listener: std::net::TcpListener,
    addr: SocketAddr,
    anonymous: Anonymous,
}

/// A running server. Dropping it leaves it running; [`Server::stop`] ends it.
pub struct Server {
    addr: SocketAddr,
    handle: ServerHandle,
    app: web::Data<App>,
    thread: Option<std::thread::JoinHandle<()>>,
    ended: oneshot::Receiver<()>,
}

impl Server {
    /// Listens on `config.server.addr` and serves `engine` on threads of its own.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub async fn start(engine: Arc<Engine>, config: &Config) -> Result<Self, ServeError> {
        let bound = Self::bind(&engine, config).await?;
        Self::serve(engine, config, bound).await
    }

    /// Takes `config.server.addr`, so that nothing is begun by a process that cannot serve.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub async fn bind(engine: &Engine, config: &Config) -> Result<Bound, ServeError> {
        let options = &config.server;
        let address = |error| ServeError::Address { addr: options.addr.clone(), error };
        let addresses = options.addresses().map_err(address)?;
        let outside = addresses.iter().find(|addr| !addr.ip().is_loopback()).copied();
        let anonymous = match outside {
            _ if config.auth.allow_anonymous => Anonymous::Always,
            None => Anonymous::UntilKeys,
            Some(addr) if !engine.store().has_keys().await? => return Err(ServeError::Open { addr }),
            Some(_) => Anonymous::Never,
        };
        let listener = std::net::TcpListener::bind(addresses.as_slice()).map_err(address)?;
        // The standard library lets 128 connections wait; asking again lets more.
        socket2::SockRef::from(&listener).listen(BACKLOG).map_err(address)?;
        let addr = listener.local_addr().map_err(address)?;
        Ok(Bound { listener, addr, anonymous })
    }

    /// Serves `engine` where it is bound, on threads of its own.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub async fn serve(engine: Arc<Engine>, config: &Config, bound: Bound) -> Result<Self, ServeError> {
        let Bound { listener, addr, anonymous } = bound;
        let options = config.server.clone();
        let app = web::Data::new(App::new(engine, options.clone(), anonymous));
        let (tell, told) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let shared = app.clone();
        let thread = std::thread::Builder::new()
            .name("http".to_owned())
            .spawn(move || {
                let system = actix_web::rt::System::new();
                system.block_on(async move {
                    match build(shared, listener, &options) {
                        Ok(server) => {
                            let _ = tell.send(Ok(server.handle()));
                            if let Err(error) = server.await {
                                tracing::error!(%error, "the server ended with an error");
                            }
                        }
                        Err(error) => {
                            let _ = tell.send(Err(error));
                        }
                    }
                });
                let _ = end.send(());
            })
            .map_err(ServeError::Thread)?;
        let gone = || ServeError::Thread(std::io::Error::other("its thread ended"));
        let handle = told.await.map_err(|_| gone())?.map_err(ServeError::Thread)?;
        Ok(Self { addr, handle, app, thread: Some(thread), ended })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Takes nothing more, waits for what was accepted (as long as `server.drain_timeout_ms` says), and
    /// ends. Whether everything had ended by then.
    pub async fn stop(mut self) -> bool {
        self.app.drain();
        let wait = Duration::from_millis(self.app.options.drain_timeout_ms);
        // Connections go first; runs whose clients have gone may go on a little longer.
        let handle = self.handle.clone();
        let drained = async {
            handle.stop(true).await;
            while self.app.in_flight() > 0 {
                tokio::time::sleep(LOOK).await;
            }
        };
        let drained = tokio::time::timeout(wait, drained).await.is_ok();
        if !drained {
            self.handle.stop(false).await;
        }
        let _ = (&mut self.ended).await;
        if let Some(thread) = self.thread.take() {
            // It has told that it ended.
            let _ = thread.join();
        }
        drained
    }
}

fn build(
    app: web::Data<App>,
    listener: std::net::TcpListener,
    options: &crate::config::Server,
) -> std::io::Result<actix_web::dev::Server> {
    let workers = match options.workers {
        0 => std::thread::available_parallelism().map_or(2, usize::from),
        workers => workers,
    };
    let patience = Duration::from_millis(options.write_timeout_ms);
    let lines = Lines::default();
    // A request's head has its time beyond that of a connection without one.
    let quiet = Duration::from_millis(options.keep_alive_ms.saturating_add(options.header_timeout_ms));
    actix_web::rt::spawn(lines.clone().watch(quiet));
    actix_web::rt::spawn(app.keys.clone().watch());
    let server = HttpServer::new(move || {
        let query = web::QueryConfig::default().error_handler(|error, request| {
            let detail = format!("the query is not understood: {error}");
            super::refusal(request, Problem::unprocessable("request.query", detail))
        });
        Application::new()
            .app_data(app.clone())
            .app_data(query)
            .wrap(from_fn(super::gate::gate))
            .configure(super::routes)
    })
    .workers(workers)
    .max_connections(options.max_connections.div_ceil(workers))
    .keep_alive(KeepAlive::Timeout(Duration::from_millis(options.keep_alive_ms)))
    .client_request_timeout(Duration::from_millis(options.header_timeout_ms))
    .client_disconnect_timeout(Duration::from_secs(1))
    // A client that closes its side has gone: only so a handler that waits for an answer learns of it,
    // and with it which runs wait for a further try (`v1::retry`).
    .h1_allow_half_closed(false)
    .on_connect(move |connection, data| {
        if let Some(stream) = connection.downcast_ref::<TcpStream>() {
            bound(stream, patience);
            if let Some(line) = lines.add(stream) {
                data.insert(line);
            }
        }
    })
    .shutdown_timeout(options.drain_timeout_ms.div_ceil(1000))
    .disable_signals();
    listener.set_nonblocking(true)?;
    Ok(server.listen(listener)?.run())
}

/// Has the system cut a connection whose other side takes nothing for a while (RFC 5482): a reply that
/// nobody reads would stay for ever.
fn bound(stream: &TcpStream, patience: Duration) {
    // Without it the connection is only less well guarded.
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(patience));
    #[cfg(not(target_os = "linux"))]
    let _ = patience;
    let _ = stream.set_nodelay(true);
}
