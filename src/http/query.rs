//! Query parameters, with errors that name the parameter.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest};
use serde::de::DeserializeOwned;

use super::body::wrong_field;

#[derive(Debug, Clone)]
pub(crate) struct QueryParameters<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest for QueryParameters<T> {
    type Error = actix_web::Error;
    type Future = Ready<Result<Self, Self::Error>>;

    fn from_request(request: &HttpRequest, _: &mut actix_web::dev::Payload) -> Self::Future {
        let pairs = form_urlencoded::parse(request.query_string().as_bytes());
        let read = serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(pairs));
        ready(read.map(Self).map_err(|error| {
            let path = error.path().to_string();
            let problem = wrong_field("request.query", &path, "the query", &error.inner().to_string());
            super::protocol_error(request, problem)
        }))
    }
}
