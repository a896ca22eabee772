//! Request bodies: JSON, limited in size, depth and time.

use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::web::{BytesMut, Payload};
use actix_web::{FromRequest, HttpRequest};
use futures::StreamExt;
use futures::future::LocalBoxFuture;
use serde::de::DeserializeOwned;

use super::principal::{RequestPrincipal, app_data, authenticate};
use super::problem::Problem;
use crate::config::ServerConfig;
use crate::long_integers;
use crate::nesting;

/// The authenticated sender of a request, and its body, which is not read yet.
pub(crate) struct AuthenticatedPayload {
    pub(crate) who: RequestPrincipal,
    pub(crate) payload: Payload,
}

impl FromRequest for AuthenticatedPayload {
    type Error = actix_web::Error;
    type Future = LocalBoxFuture<'static, Result<Self, Self::Error>>;

    fn from_request(request: &HttpRequest, payload: &mut actix_web::dev::Payload) -> Self::Future {
        let (request, payload) = (request.clone(), Payload::from_request(request, payload));
        Box::pin(async move {
            let payload = payload.await?;
            let who =
                authenticate(&request).await.map_err(|problem| super::protocol_error(&request, problem))?;
            Ok(Self { who, payload })
        })
    }
}

/// A JSON body and its authenticated sender. The body is read only after authentication.
pub(crate) struct AuthenticatedJson<T> {
    pub(crate) who: RequestPrincipal,
    pub(crate) body: T,
}

impl<T: DeserializeOwned + 'static> FromRequest for AuthenticatedJson<T> {
    type Error = actix_web::Error;
    type Future = LocalBoxFuture<'static, Result<Self, Self::Error>>;

    fn from_request(request: &HttpRequest, payload: &mut actix_web::dev::Payload) -> Self::Future {
        let (request, sent) = (request.clone(), AuthenticatedPayload::from_request(request, payload));
        Box::pin(async move {
            let AuthenticatedPayload { who, payload } = sent.await?;
            let read = async { json(&request, payload, &app_data(&request)?.options).await };
            let body = read.await.map_err(|problem| super::protocol_error(&request, problem))?;
            Ok(Self { who, body })
        })
    }
}

/// Reads a JSON body.
///
/// # Errors
/// `request.media_type` (415), `request.too_large` (413), `request.slow` (408), `request.interrupted`
/// (400), `request.json` (400: not JSON), `request.too_deep` and `request.body` (422: JSON of another
/// shape, with the path).
pub(crate) async fn json<T: DeserializeOwned>(
    request: &HttpRequest,
    payload: Payload,
    options: &ServerConfig,
) -> Result<T, Problem> {
    require_json(request)?;
    parse(&read_body(request, payload, options).await?, options.max_json_depth)
}

/// Like [`json`], but an empty body gives the default value.
///
/// # Errors
/// As [`json`].
pub(crate) async fn optional_json<T: DeserializeOwned + Default>(
    request: &HttpRequest,
    payload: Payload,
    options: &ServerConfig,
) -> Result<T, Problem> {
    let bytes = read_body(request, payload, options).await?;
    if bytes.is_empty() {
        return Ok(T::default());
    }
    require_json(request)?;
    parse(&bytes, options.max_json_depth)
}

fn require_json(request: &HttpRequest) -> Result<(), Problem> {
    let media =
        request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = media.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let detail = "the body must be JSON: send `Content-Type: application/json`";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "request.media_type", detail));
    }
    if !media.split(';').skip(1).all(is_utf8) {
        let detail = "the body must be JSON in UTF-8: send `Content-Type: application/json`";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "request.media_type", detail));
    }
    if !is_uncompressed(request) {
        let detail = "the body must not be compressed: send it without `Content-Encoding`";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "request.media_type", detail));
    }
    Ok(())
}

/// Returns whether a parameter of a media type names no other character set than UTF-8.
pub(super) fn is_utf8(parameter: &str) -> bool {
    match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            let charset = value.trim().trim_matches('"').to_ascii_lowercase();
            matches!(charset.as_str(), "utf-8" | "utf8" | "us-ascii")
        }
        _ => true,
    }
}

/// Returns whether the body is sent as it is: no request is decompressed, since a small one could become a large one.
pub(super) fn is_uncompressed(request: &HttpRequest) -> bool {
    let encoding = request.headers().get(header::CONTENT_ENCODING);
    encoding.is_none_or(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Reads the bytes of a body, limited in time and size.
async fn read_body(
    request: &HttpRequest,
    payload: Payload,
    options: &ServerConfig,
) -> Result<BytesMut, Problem> {
    let wait = Duration::from_millis(options.body_timeout_ms);
    // A length is not trusted to be so small, but a body that is announced as too large is not waited for.
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if announced
        .and_then(|length| length.parse().ok())
        .is_some_and(|length: u64| length > options.max_body_bytes as u64)
    {
        return Err(too_large(options.max_body_bytes));
    }
    tokio::time::timeout(wait, collect(payload, options.max_body_bytes)).await.map_err(|_| {
        let detail = format!("the body did not arrive within {} ms", options.body_timeout_ms);
        Problem::new(StatusCode::REQUEST_TIMEOUT, "request.slow", detail)
    })?
}

async fn collect(mut payload: Payload, max: usize) -> Result<BytesMut, Problem> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| {
            let detail = format!("the body could not be read: {error}");
            Problem::new(StatusCode::BAD_REQUEST, "request.interrupted", detail)
        })?;
        if bytes.len() + chunk.len() > max {
            return Err(too_large(max));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn too_large(max: usize) -> Problem {
    let detail = format!("the body has more than {max} bytes (server.max_body_bytes)");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "request.too_large", detail)
}

fn parse<T: DeserializeOwned>(bytes: &[u8], max_depth: usize) -> Result<T, Problem> {
    if nesting::depth_of_text(bytes) > max_depth {
        let detail = format!("the body is nested deeper than {max_depth} levels (server.max_json_depth)");
        return Err(Problem::unprocessable("request.too_deep", detail));
    }
    // Serde would accept a struct's fields as a list, too: `["yes"]` must not approve anything.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::unprocessable("request.body", "the body must be an object, not a list"));
    }
    let bytes = &*long_integers::with_long_integers_as_texts(bytes);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = error.path().to_string();
        let inner = error.inner();
        // A number in place of one of several words is a syntax error to serde, although the body is JSON.
        if inner.is_data() || serde_json::from_slice::<serde_json::Value>(bytes).is_ok() {
            return wrong_field("request.body", &place, "the body", &inner.to_string());
        }
        Problem::new(StatusCode::BAD_REQUEST, "request.json", format!("the body is not valid JSON: {inner}"))
    })?;
    reader.end().map_err(|error| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "request.json",
            format!("unexpected data after the JSON: {error}"),
        )
    })?;
    Ok(value)
}

/// The problem for a field with a wrong value; `why` is serde's error. `whole` names what the path `.` means.
pub(super) fn wrong_field(code: &str, path: &str, whole: &str, why: &str) -> Problem {
    let why = in_json_terms(why);
    if path == "." {
        return Problem::unprocessable(code, format!("{whole}: {why}"));
    }
    let top = path.split(['.', '[']).next().unwrap_or(path);
    let problem = Problem::unprocessable(code, format!("`{path}`: {why}"));
    Problem { param: Some(Box::new(top.to_owned())), ..problem }
}

/// An error of serde in the terms of JSON instead of those of Rust, without its place in the text: the path says more.
fn in_json_terms(why: &str) -> String {
    let why = match why.rsplit_once(" at line ") {
        Some((reason, place)) if place.contains(" column ") => reason,
        _ => why,
    };
    match why {
        "expected value" | "key must be a string" => return "expected a string".to_owned(),
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            return "expected a whole number that is not negative".to_owned();
        }
        "number too large to fit in target type" => return "the number is too large".to_owned(),
        "provided string was not `true` or `false`" => return "expected `true` or `false`".to_owned(),
        _ if why.starts_with("UUID parsing failed") => {
            return "expected an id such as 01890a5d-ac96-774b-bcce-b302099a8057".to_owned();
        }
        _ => {}
    }
    let Some((found, expected)) = why.rsplit_once(", expected ") else {
        return why.to_owned();
    };
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    };
    let found = match found {
        "invalid type: map" => "invalid type: object",
        "invalid type: sequence" => "invalid type: list",
        _ => found,
    };
    format!("{found}, expected {expected}").replacen("floating point `", "number `", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_body_is_reported_with_its_path() {
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "only its shape matters")]
        struct Body {
            messages: Vec<u32>,
        }
        let problem = parse::<Body>(br#"{"messages": [1, "two"]}"#, 8).unwrap_err();
        assert_eq!((problem.status, &*problem.code), (422, "request.body"));
        assert_eq!(
            &*problem.detail,
            "`messages[1]`: invalid type: string \"two\", expected a whole number that is not negative"
        );
        assert_eq!(problem.param.as_ref().map(|param| param.as_str()), Some("messages"));
        let problem = parse::<Body>(b"null", 8).unwrap_err();
        assert_eq!(&*problem.detail, "the body: invalid type: null, expected an object");
        assert_eq!(parse::<Body>(b"{", 8).unwrap_err().status, 400);
        assert_eq!(parse::<Body>(b" [[1]]", 8).unwrap_err().code.as_ref(), "request.body");
        assert_eq!(parse::<Body>(b"[[[[]]]]", 3).unwrap_err().code.as_ref(), "request.too_deep");
        assert_eq!(parse::<u32>(b"1 2", 3).unwrap_err().code.as_ref(), "request.json");
    }

    #[test]
    fn wrong_values_are_described_in_the_terms_of_json() {
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "only its shape matters")]
        struct Body {
            count: Option<u32>,
            mode: Option<Mode>,
            names: Option<Vec<String>>,
            id: Option<uuid::Uuid>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Mode {
            Strict,
        }
        for (body, status, detail) in [
            (r#"{"mode": 5}"#, 422, "`mode`: expected a string"),
            (r#"{"mode": "x"}"#, 422, "`mode`: unknown variant `x`, expected `strict`"),
            (
                r#"{"count": 1e30}"#,
                422,
                "`count`: invalid type: number `1e+30`, expected a whole number that is not negative",
            ),
            (
                r#"{"count": -1}"#,
                422,
                "`count`: invalid value: integer `-1`, expected a whole number that is not negative",
            ),
            (r#"{"names": "x"}"#, 422, "`names`: invalid type: string \"x\", expected a list"),
            (r#"{"names": {}}"#, 422, "`names`: invalid type: object, expected a list"),
            (r#"{"id": "x"}"#, 422, "`id`: expected an id such as 01890a5d-ac96-774b-bcce-b302099a8057"),
        ] {
            let problem = parse::<Body>(body.as_bytes(), 8).unwrap_err();
            assert_eq!((problem.status, &*problem.detail), (status, detail), "{body}");
        }
        let problem = parse::<Body>(br#"{"mode": 5"#, 8).unwrap_err();
        assert_eq!((problem.status, &*problem.code), (400, "request.json"));
    }

    #[test]
    fn wrong_query_values_are_described_in_plain_terms() {
        for (why, plain) in [
            ("invalid digit found in string", "expected a whole number that is not negative"),
            ("number too large to fit in target type", "the number is too large"),
            ("provided string was not `true` or `false`", "expected `true` or `false`"),
            ("unknown field `x`, expected `from` or `to`", "unknown field `x`, expected `from` or `to`"),
        ] {
            assert_eq!(in_json_terms(why), plain);
        }
    }
}
