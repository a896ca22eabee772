//! An HTTP backend on loopback, for tools that are HTTP requests.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::web::{self, Bytes, Data, Query, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::Value;

use super::loopback_server::LoopbackServer;

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
    _server: LoopbackServer,
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

    fn serve(port: u16, state: Arc<BackendState>) -> Self {
        let data = Data::from(state.clone());
        let routes = move |routes: &mut ServiceConfig| {
            routes.app_data(data.clone()).default_service(web::to(answer));
        };
        let server = LoopbackServer::start(listen(port), 1, Arc::new(routes));
        Self { address: format!("http://{}", server.address()), data: state, _server: server }
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
