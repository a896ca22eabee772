//! An HTTP backend on loopback, for tools that are HTTP requests.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::web::{self, Bytes, Data, Query};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use serde_json::Value;

/// A request received by the backend.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedRequest {
    /// Method and path, such as `GET /books`.
    pub place: String,
    /// Its query parameters, decoded.
    pub query: BTreeMap<String, String>,
    /// Its body; null if there is none.
    pub body: Value,
    /// Its idempotency key header.
    pub idempotency_key: Option<String>,
    /// Its header `traceparent`.
    pub trace_parent: Option<String>,
}

type Handler = dyn Fn(&ReceivedRequest) -> Value + Send + Sync;

/// The server. It stops when it is dropped.
pub struct Backend {
    address: String,
    data: Arc<BackendState>,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

struct BackendState {
    handler: Box<Handler>,
    reached: Mutex<Vec<ReceivedRequest>>,
}

/// A listener at a port, which another test may hold for a while if it is a fixed one.
#[expect(clippy::disallowed_methods, reason = "a port that becomes free tells nobody")]
fn listen(port: u16) -> TcpListener {
    let mut tries = 0;
    loop {
        match TcpListener::bind(("127.0.0.1", port)) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && tries < 600 => tries += 1,
            bound => return bound.unwrap(),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

impl Backend {
    /// Starts a server that answers every request with the handler's JSON.
    pub fn start(handler: impl Fn(&ReceivedRequest) -> Value + Send + Sync + 'static) -> Self {
        Self::start_at(0, handler)
    }

    /// The same at a fixed port, for tools whose definition must not change.
    pub fn start_at(port: u16, handler: impl Fn(&ReceivedRequest) -> Value + Send + Sync + 'static) -> Self {
        Self::serve(port, Arc::new(BackendState { handler: Box::new(handler), reached: Mutex::default() }))
    }

    /// Not generic, or each handler's type would have a web server of its own compiled.
    fn serve(port: u16, state: Arc<BackendState>) -> Self {
        let data = Data::from(state.clone());
        let (sender, receiver) = mpsc::sync_channel(1);
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let app = move || App::new().app_data(data.clone()).default_service(web::to(answer));
                let server = HttpServer::new(app).workers(1).disable_signals().shutdown_timeout(0);
                let server = server.listen(listen(port)).unwrap();
                let address = server.addrs()[0];
                let server = server.run();
                sender.send((address, server.handle())).unwrap();
                server.await.unwrap();
            });
        });
        let (address, handle) = receiver.recv().unwrap();
        Self { address: format!("http://{address}"), data: state, handle, thread: Some(thread) }
    }

    /// Its URL: `http://127.0.0.1:…`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The requests received since the last call, in order.
    pub fn take_requests(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut self.data.reached.lock().unwrap())
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        // The command is sent at once; joining the thread waits for it.
        drop(self.handle.stop(false));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn answer(state: Data<BackendState>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let query = Query::<BTreeMap<String, String>>::from_query(request.query_string()).unwrap().into_inner();
    let header = |name: &str| Some(request.headers().get(name)?.to_str().ok()?.to_owned());
    let reached = ReceivedRequest {
        place: format!("{} {}", request.method(), request.path()),
        query,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        idempotency_key: header("idempotency-key"),
        trace_parent: header("traceparent"),
    };
    state.reached.lock().unwrap().push(reached.clone());
    HttpResponse::Ok().json((state.handler)(&reached))
}
