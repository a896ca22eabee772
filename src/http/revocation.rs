//! Ends an event stream when its key is revoked.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::HttpRequest;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::http::StatusCode;
use actix_web::web::Bytes;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::problem::Problem;
use super::v1;
use crate::store::KeyHold;

/// The body of an event stream that ends when its key is revoked.
pub(super) struct RevocableBody {
    body: BoxBody,
    revoked: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The event to end with; `None` after it was sent.
    final_event: Option<Bytes>,
    _held: KeyHold,
}

impl RevocableBody {
    pub(super) fn new(request: &HttpRequest, body: BoxBody, held: KeyHold) -> Self {
        let revoked = Box::pin(held.revoked());
        Self { body, revoked, final_event: Some(revoked_event(request)), _held: held }
    }
}

/// The final event with the reason, in the format of the route's protocol.
fn revoked_event(request: &HttpRequest) -> Bytes {
    let detail = "the API key was revoked, has expired or was given another role while its stream was open; the run itself continues";
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "auth.key", detail);
    // Plain data always serializes.
    Bytes::from(if super::is_openai(request) {
        let body = serde_json::to_string(&v1::Error::from(problem).body()).unwrap_or_default();
        format!("data: {body}\n\ndata: [DONE]\n\n")
    } else {
        format!("event: error\ndata: {}\n\n", serde_json::to_string(&problem).unwrap_or_default())
    })
}

impl MessageBody for RevocableBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if self.final_event.is_none() {
            return Poll::Ready(None);
        }
        if self.revoked.as_mut().poll(cx).is_ready() {
            return Poll::Ready(self.final_event.take().map(Ok));
        }
        Pin::new(&mut self.body).poll_next(cx)
    }
}
