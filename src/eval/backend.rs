//! A back end on loopback for the HTTP tools of evaluated scenes: it replies as `replies.json` says.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread::JoinHandle;

use actix_web::dev::ServerHandle;
use actix_web::web::{self, Bytes, Data, Query};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use serde_json::{Map, Value, json};

use super::fault::EvalError;

/// The replies of a scene's back end by method and path, such as `GET /balance`.
pub(super) type ScriptedReplies = BTreeMap<String, Map<String, Value>>;

/// The back end of all evaluated scenes. It stops when it is dropped.
pub(super) struct RepliesServer {
    address: SocketAddr,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

impl RepliesServer {
    /// Starts the back end of these scenes.
    pub(super) fn start(listener: TcpListener, scenes: Vec<ScriptedReplies>) -> Result<Self, EvalError> {
        let failed =
            |why: String| EvalError::new("eval.backend", format!("the back end does not start: {why}"), "");
        let address = listener.local_addr().map_err(|error| failed(error.to_string()))?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let scenes = Data::new(scenes);
        let serve = move || {
            actix_web::rt::System::new().block_on(async move {
                let app = move || App::new().app_data(scenes.clone()).default_service(web::to(reply));
                let server = HttpServer::new(app).workers(1).disable_signals().shutdown_timeout(0);
                let bound = server.listen(listener).map(HttpServer::run);
                let handle = bound.as_ref().map(|server| server.handle()).map_err(ToString::to_string);
                // Both ends are in this function: the receiver is there.
                let _ = sender.send(handle);
                if let Ok(server) = bound {
                    let _ = server.await;
                }
            });
        };
        let thread = std::thread::Builder::new().name("eval-backend".to_owned()).spawn(serve);
        let thread = thread.map_err(|error| failed(error.to_string()))?;
        let handle = receiver.recv().map_err(|error| failed(error.to_string()))?.map_err(failed)?;
        Ok(Self { address, handle, thread: Some(thread) })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for RepliesServer {
    fn drop(&mut self) {
        // The command is sent at once; joining the thread waits for it.
        drop(self.handle.stop(false));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The path of a request is `/NUMBER/PATH`, with the number of the scene.
async fn reply(scenes: Data<Vec<ScriptedReplies>>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let (scene, path) = request.path().trim_start_matches('/').split_once('/').unwrap_or_default();
    let replies = scene.parse::<usize>().ok().and_then(|number| scenes.get(number));
    let place = format!("{} /{path}", request.method());
    let Some(configured) = replies.and_then(|replies| replies.get(&place)) else {
        let message = format!("replies.json has no {place}");
        return HttpResponse::NotFound().json(json!({"error": message}));
    };
    let query = Query::<BTreeMap<String, String>>::from_query(request.query_string());
    let query = query.map(Query::into_inner).unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    HttpResponse::Ok().json(merged(configured, query, body.as_object().cloned().unwrap_or_default()))
}

/// The configured reply with what was received, unless the reply says otherwise. A reply that has only an object in it is
/// an envelope, and what was received is added inside.
fn merged(
    configured: &Map<String, Value>,
    query: BTreeMap<String, String>,
    body: Map<String, Value>,
) -> Map<String, Value> {
    let mut received: Map<String, Value> =
        query.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    received.extend(body.into_iter().filter(|(_, value)| !value.is_null()));
    let mut entries = configured.iter();
    if let (Some((name, Value::Object(inner))), None) = (entries.next(), entries.next()) {
        received.extend(inner.clone());
        return Map::from_iter([(name.clone(), Value::Object(received))]);
    }
    received.extend(configured.clone());
    received
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_what_was_received_unless_they_say_otherwise() {
        let merge = |configured: Value| {
            let query = BTreeMap::from([("city".to_owned(), "Milan".to_owned())]);
            let body = json!({"days": 2, "note": null, "code": "mine"});
            Value::Object(merged(configured.as_object().unwrap(), query, body.as_object().unwrap().clone()))
        };
        assert_eq!(merge(json!({"code": "R-7"})), json!({"city": "Milan", "days": 2, "code": "R-7"}));
        let within = json!({"city": "Milan", "days": 2, "code": "R-7"});
        assert_eq!(merge(json!({"reservation": {"code": "R-7"}})), json!({"reservation": within}));
    }
}
