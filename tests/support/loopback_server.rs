//! A web server on loopback with a thread of its own, for scripted models, back ends and receivers.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use actix_web::dev::ServerHandle;
use actix_web::web::ServiceConfig;
use actix_web::{App, HttpServer};

/// The server. It stops when it is dropped.
pub struct LoopbackServer {
    address: SocketAddr,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

impl LoopbackServer {
    /// Serves the routes that `configure` adds on `listener`. Not generic, or each caller would have a web server of its own
    /// compiled.
    pub fn start(
        listener: TcpListener,
        workers: usize,
        configure: Arc<dyn Fn(&mut ServiceConfig) + Send + Sync>,
    ) -> Self {
        // The standard library's queue of 128 connections is too short for tests with many clients.
        socket2::SockRef::from(&listener).listen(2048).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, receiver) = mpsc::sync_channel(1);
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let app = move || {
                    let configure = configure.clone();
                    App::new().configure(move |routes| configure(routes))
                };
                let server = HttpServer::new(app).workers(workers).disable_signals().shutdown_timeout(0);
                let server = server.listen(listener).unwrap().run();
                sender.send(server.handle()).unwrap();
                server.await.unwrap();
            });
        });
        Self { address, handle: receiver.recv().unwrap(), thread: Some(thread) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        // The command is sent at once; joining the thread waits for it.
        drop(self.handle.stop(false));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
