//! Protects a server without keys from web pages of other sites: checks the host name of each request, and
//! the origin of requests that change something.
//!
//! A page of another site can send requests here, and with DNS rebinding it can even read the replies.
//! Clients that are not browsers send no `Origin` header and pass. Pages of the origins in
//! `server.allowed_origins` are told by CORS headers that they may use the server.

use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::http::{Method, StatusCode};

use super::app::AnonymousAccess;
use super::problem::Problem;
use crate::host::{ANY_HOST, Host, PageOrigin};

/// Maximum length of a client's value that an error message repeats, in characters.
const MAX_SHOWN_CHARS: usize = 80;

/// Checks the `Host` of a request without a key. Allowed are loopback names, the configured names, and with
/// `auth.allow_anonymous` any IP address.
///
/// # Errors
/// `auth.host` (403).
pub(super) fn check_host(host: &str, anonymous: AnonymousAccess, allowed: &[String]) -> Result<(), Problem> {
    let named = Host::parse_header(host);
    let own = named.as_ref().is_some_and(|named| {
        // DNS rebinding needs a name: an IP address is safe.
        let address = anonymous == AnonymousAccess::Always && named.address().is_some();
        let every = allowed.iter().any(|entry| entry == ANY_HOST);
        named.is_loopback() || address || every || named.is_allowed(allowed)
    });
    if own {
        return Ok(());
    }
    let host: String = host.chars().take(MAX_SHOWN_CHARS).collect();
    let detail = format!(
        "without a key this server does not accept the host `{host}`; add it to server.allowed_hosts, or create a key"
    );
    Err(Problem::new(StatusCode::FORBIDDEN, "auth.host", detail))
}

/// Rejects a request without a key that changes something and comes from a page of another origin.
///
/// # Errors
/// `auth.origin` (403).
pub(super) fn check_origin(
    method: &Method,
    headers: &HeaderMap,
    host: &str,
    allowed: &[String],
) -> Result<(), Problem> {
    if method.is_safe() {
        return Ok(());
    }
    let texts = |name: header::HeaderName| {
        headers.get_all(name).map(|value| value.to_str().unwrap_or_default().trim().to_owned())
    };
    let site = header::HeaderName::from_static("sec-fetch-site");
    let cross =
        texts(site).any(|site| site.eq_ignore_ascii_case("cross-site")).then(|| "another site".to_owned());
    let foreign = || texts(header::ORIGIN).find(|origin| !is_own_origin(origin, host, allowed));
    let Some(from) = cross.or_else(foreign) else { return Ok(()) };
    let from: String = from.chars().take(MAX_SHOWN_CHARS).collect();
    let detail = format!(
        "a page of `{from}` cannot change anything without a key; send a key, or add the host under which browsers \
         reach this server in server.allowed_hosts, or the page's origin in server.allowed_origins"
    );
    Err(Problem::new(StatusCode::FORBIDDEN, "auth.origin", detail))
}

/// The origin of the page that sent a request, if `server.allowed_origins` names it.
pub(super) fn allowed_origin(headers: &HeaderMap, allowed: &[String]) -> Option<HeaderValue> {
    let mut origins = headers.get_all(header::ORIGIN);
    let (Some(origin), None) = (origins.next(), origins.next()) else { return None };
    let page = PageOrigin::parse(origin.to_str().ok()?)?;
    allowed.iter().any(|entry| PageOrigin::parse(entry).as_ref() == Some(&page)).then(|| origin.clone())
}

/// The reply to a CORS preflight, with which a browser asks whether a page of an allowed origin may send a request;
/// `None` if it is another request.
pub(super) fn preflight_reply(method: &Method, headers: &HeaderMap) -> Option<HttpResponse> {
    if *method != Method::OPTIONS || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut reply = HttpResponse::NoContent();
    reply.insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, DELETE"));
    reply.insert_header((header::ACCESS_CONTROL_MAX_AGE, "600"));
    if let Some(names) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        reply.insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, names));
    }
    Some(reply.finish())
}

/// Tells a browser that pages of this origin may read a reply, with the headers that clients use.
pub(super) fn allow_reading(headers: &mut HeaderMap, origin: HeaderValue) {
    const READABLE: &str =
        "x-run-id, x-session-id, x-request-id, x-should-retry, idempotent-replayed, retry-after, location";
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READABLE));
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}

/// Whether `origin` is this server: the host of the request or a configured one. Only host and port are
/// compared, because a proxy in front may use another scheme.
fn is_own_origin(origin: &str, host: &str, allowed: &[String]) -> bool {
    let Some((scheme, rest)) = origin.split_once("://") else { return false };
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let Some(page) = Host::parse_header(rest) else { return false };
    let same = Host::parse_header(host)
        .is_some_and(|own| own.name == page.name && own.port.unwrap_or(usual) == page.port.unwrap_or(usual));
    same || page.is_allowed(allowed)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    #[test]
    fn keyless_server_accepts_only_its_own_host_names() {
        let reached = |host: &str, anonymous, allowed: &[&str]| {
            check_host(host, anonymous, &list(allowed)).map_err(|problem| problem.code.to_string())
        };
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:80", "127.1.2.3", "[::1]", "[::1]:8080"] {
            for anonymous in [AnonymousAccess::UntilKeys, AnonymousAccess::Always] {
                assert_eq!(reached(host, anonymous, &[]), Ok(()), "{host}");
            }
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "a@localhost", "", "localhost:x", "x y"] {
            for anonymous in [AnonymousAccess::UntilKeys, AnonymousAccess::Always] {
                assert_eq!(reached(host, anonymous, &["chat.example"]), Err("auth.host".into()), "{host}");
            }
        }
        assert_eq!(reached("10.0.0.5:8080", AnonymousAccess::Always, &[]), Ok(()));
        assert_eq!(reached("10.0.0.5", AnonymousAccess::UntilKeys, &[]), Err("auth.host".into()));
        for anonymous in [AnonymousAccess::UntilKeys, AnonymousAccess::Always] {
            assert_eq!(reached("Chat.Example:8080", anonymous, &["chat.example"]), Ok(()));
            assert_eq!(reached("chat.example:8080", anonymous, &["chat.example:8080"]), Ok(()));
            assert_eq!(reached("chat.example", anonymous, &["chat.example:8080"]), Err("auth.host".into()));
            assert_eq!(reached("evil.example", anonymous, &["*"]), Ok(()));
        }
    }

    #[test]
    fn cross_origin_writes_without_a_key_are_rejected() {
        let comes = |method: &Method, headers: &[(&'static str, &'static str)], allowed: &[&str]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(header::HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            check_origin(method, &map, "127.0.0.1:8080", &list(allowed)).is_ok()
        };
        let post = Method::POST;
        assert!(comes(&post, &[], &[]));
        assert!(comes(&post, &[("origin", "http://127.0.0.1:8080"), ("sec-fetch-site", "same-origin")], &[]));
        assert!(comes(&post, &[("sec-fetch-site", "none")], &[]));
        assert!(comes(
            &Method::GET,
            &[("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")],
            &[]
        ));
        for origin in [
            "http://evil.example",
            "http://127.0.0.1:3000",
            "http://127.0.0.1",
            "http://localhost:8080",
            "https://127.0.0.1:8080.evil.example",
            "null",
            "",
            "file://",
            "chrome-extension://127.0.0.1:8080",
        ] {
            for method in [Method::POST, Method::DELETE, Method::PUT] {
                assert!(!comes(&method, &[("origin", origin)], &[]), "{method} {origin}");
                assert!(!comes(&method, &[("origin", origin)], &["*"]), "{method} {origin}");
            }
        }
        assert!(!comes(&post, &[("sec-fetch-site", "cross-site")], &[]));
        assert!(!comes(
            &post,
            &[("origin", "http://127.0.0.1:8080"), ("origin", "http://evil.example")],
            &[]
        ));
        assert!(comes(&post, &[("origin", "https://chat.example")], &["chat.example"]));
        assert!(!comes(&post, &[("origin", "https://chat.example")], &["chat.example:8443"]));
    }
}
