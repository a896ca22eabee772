//! A receiver of traces over OTLP (HTTP, protobuf).

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes, Data, PayloadConfig, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;

use super::loopback_server::LoopbackServer;

/// How the receiver answers an export.
#[derive(Debug, Clone, Copy)]
pub enum Answers {
    /// It takes all spans.
    Takes,
    /// It takes all but so many.
    Rejects(i64),
    /// With this status, and nothing is taken.
    Status(u16),
    /// Not at all.
    Never,
}

/// A received span.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedSpan {
    /// In hex, as the parent, which may be empty.
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    /// In nanoseconds.
    pub times: (u64, u64),
    /// Texts, and other values as Rust shows them.
    pub attributes: BTreeMap<String, String>,
    /// The code of the error that it ended with.
    pub error: Option<String>,
    /// The name of the service.
    pub service: String,
}

/// The server. It stops when it is dropped.
pub struct OtlpReceiver {
    address: String,
    state: Arc<ReceiverState>,
    _server: LoopbackServer,
}

struct ReceiverState {
    /// In turn, the last one repeated.
    answers: Vec<Answers>,
    exports: Mutex<usize>,
    spans: Mutex<Vec<ReceivedSpan>>,
}

impl OtlpReceiver {
    /// Starts a receiver that answers like this in turn; the last answer is repeated.
    pub fn start(answers: impl IntoIterator<Item = Answers>) -> Self {
        let answers = answers.into_iter().collect();
        Self::serve(Arc::new(ReceiverState { answers, exports: Mutex::default(), spans: Mutex::default() }))
    }

    fn serve(state: Arc<ReceiverState>) -> Self {
        let data = Data::from(state.clone());
        let routes = move |routes: &mut ServiceConfig| {
            let payload = PayloadConfig::new(16 * 1024 * 1024);
            routes.app_data(data.clone()).app_data(payload).route("/v1/traces", web::post().to(take));
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server = LoopbackServer::start(listener, 1, Arc::new(routes));
        Self { address: format!("http://{}", server.address()), state, _server: server }
    }

    /// The base URL.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How many exports arrived.
    pub fn exports(&self) -> usize {
        *self.state.exports.lock().unwrap()
    }

    /// The spans that it took, in the order of their beginnings.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        let mut spans = self.state.spans.lock().unwrap().clone();
        spans.sort_by_key(|span| span.times);
        spans
    }
}

async fn take(state: Data<ReceiverState>, request: HttpRequest, body: Bytes) -> HttpResponse {
    assert_eq!(request.headers().get("content-type").unwrap(), "application/x-protobuf");
    let nth = {
        let mut exports = state.exports.lock().unwrap();
        *exports += 1;
        *exports - 1
    };
    let rejected = match state.answers[nth.min(state.answers.len() - 1)] {
        Answers::Takes => 0,
        Answers::Rejects(spans) => spans,
        Answers::Status(status) => {
            let status = StatusCode::from_u16(status).unwrap();
            return HttpResponse::build(status).insert_header(("retry-after", "0")).finish();
        }
        Answers::Never => return std::future::pending().await,
    };
    let export = ExportTraceServiceRequest::decode(body).unwrap();
    for part in export.resource_spans {
        let resource = attributes(&part.resource.unwrap().attributes);
        for span in part.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            let hex = |bytes: &[u8]| data_encoding::HEXLOWER.encode(bytes);
            state.spans.lock().unwrap().push(ReceivedSpan {
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                name: span.name,
                times: (span.start_time_unix_nano, span.end_time_unix_nano),
                attributes: attributes(&span.attributes),
                error: span.status.map(|status| status.message),
                service: resource["service.name"].clone(),
            });
        }
    }
    let partial_success = (rejected > 0)
        .then(|| ExportTracePartialSuccess { rejected_spans: rejected, error_message: "no room".to_owned() });
    let response = ExportTraceServiceResponse { partial_success };
    HttpResponse::Ok().content_type("application/x-protobuf").body(response.encode_to_vec())
}

fn attributes(values: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &KeyValue| match value.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(yes)) => yes.to_string(),
        other => format!("{other:?}"),
    };
    values.iter().map(|value| (value.key.clone(), text(value))).collect()
}
