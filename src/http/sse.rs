//! Server-sent events: streams a run's public events.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use futures::{Stream, StreamExt, stream};
use serde::Serialize;
use utoipa::ToSchema;

use super::key_limits::OpenStream;
use super::problem::Problem;
use crate::public::PublicEvent;
use crate::run::{Fault, RunId, SessionId};

pub(crate) const MEDIA_TYPE: &str = "text/event-stream";

/// One event of a stream. OpenAPI has no streams, so the document describes a single event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerEvent {
    /// Its id, to resume after it; absent on `/v1`.
    pub(crate) id: Option<String>,
    /// Its name, such as `step_started`; absent on `/v1`.
    pub(crate) event: Option<String>,
    /// Its body as JSON; on `/v1` a chunk, and finally `[DONE]`.
    pub(crate) data: String,
}

/// A reply that streams these events until the run ends or waits for a person. It counts among the open streams
/// of its key until then.
pub(crate) fn event_stream_reply(
    run: RunId,
    session: &SessionId,
    events: impl Stream<Item = Result<PublicEvent, Fault>> + 'static,
    ping_ms: u64,
    open: OpenStream,
) -> HttpResponse {
    let lines = with_keep_alive(
        events.map(format_event),
        Duration::from_millis(ping_ms),
        Bytes::from_static(b": ping\n\n"),
    );
    HttpResponse::Ok()
        .content_type(MEDIA_TYPE)
        .insert_header(("cache-control", "no-store"))
        // Buffering proxies would hold the events back.
        .insert_header(("x-accel-buffering", "no"))
        .insert_header(("x-run-id", run.to_string()))
        .insert_header(("x-session-id", session.to_string()))
        .streaming(open.counted(lines))
}

/// Formats one event. If the journal cannot be read, an event `error` ends the stream.
fn format_event(event: Result<PublicEvent, Fault>) -> Bytes {
    let event = match event {
        Ok(event) => event,
        Err(fault) => {
            let problem = serde_json::to_string(&Problem::from(fault)).unwrap_or_default();
            return Bytes::from(format!("event: error\ndata: {problem}\n\n"));
        }
    };
    // Plain data always serializes.
    let data = serde_json::to_string(&event.data).unwrap_or_default();
    Bytes::from(format!("id: {}\nevent: {}\ndata: {data}\n\n", event.id, event.name))
}

/// Adds a keep-alive `sign` whenever `lines` had nothing for the time `every`. Nothing is read ahead, so a
/// slow client delays only itself.
pub(crate) fn with_keep_alive<S: Stream<Item = Bytes>>(
    lines: S,
    every: Duration,
    sign: Bytes,
) -> impl Stream<Item = Bytes> {
    stream::unfold((Box::pin(lines), sign), move |(mut lines, sign)| async move {
        match tokio::time::timeout(every, lines.next()).await {
            Ok(line) => line.map(|line| (line, (lines, sign))),
            Err(_) => Some((sign.clone(), (lines, sign))),
        }
    })
}
