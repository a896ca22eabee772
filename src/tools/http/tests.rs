use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::run::FaultClass;
use crate::tools::ToolErrorKind;
use crate::tools::guard::MAX_REDIRECTS;
use crate::tools::testing::{Reply, Server, context, serve};

const TOKEN: &str = "s3cr3t-token";

fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some(TOKEN.to_owned()),
        "EMPTY" => Some(String::new()),
        "BROKEN" => Some(format!("{TOKEN}\n")),
        _ => None,
    }
}

fn network() -> HttpNetwork {
    HttpNetwork::new(&NetworkPolicy { allow_private: true, ..NetworkPolicy::default() }).unwrap()
}

fn parameters() -> Value {
    json!({"type": "object", "required": ["id"], "properties": {
        "id": {"type": "string"}, "q": {"type": "string"}, "days": {"type": "integer"},
        "tags": {"type": "array"}, "note": {"type": "string"},
    }})
}

fn get(url: String) -> HttpSpec {
    HttpSpec {
        method: "GET".into(),
        url,
        query: BTreeMap::new(),
        headers: BTreeMap::new(),
        body: None,
        result: None,
        max_response_bytes: DEFAULT_MAX_RESPONSE_BYTES,
        on_status: BTreeMap::new(),
    }
}

fn post(url: String) -> HttpSpec {
    HttpSpec { method: "POST".into(), body: Some(json!({"id": "{id}"})), ..get(url) }
}

fn build(spec: &HttpSpec, effect: Effect) -> Result<HttpTool, Vec<HttpSpecProblem>> {
    let repeat = if effect == Effect::Write { Repeat::Key } else { Repeat::Never };
    build_with(spec, effect, repeat)
}

fn build_with(spec: &HttpSpec, effect: Effect, repeat: Repeat) -> Result<HttpTool, Vec<HttpSpecProblem>> {
    let parameters = parameters();
    let terms = HttpToolTerms { parameters: &parameters, effect, repeat, timeout_ms: 1000 };
    HttpTool::new(spec, terms, &network(), &environment)
}

async fn read(spec: &HttpSpec, arguments: Value) -> Result<Value, ToolError> {
    build(spec, Effect::Read).unwrap().call(context(), arguments).await
}

async fn write(spec: &HttpSpec) -> Result<Value, ToolError> {
    build(spec, Effect::Write).unwrap().call(context(), json!({"id": "1"})).await
}

fn first_line(server: &Server) -> String {
    server.requests()[0].lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn arguments_are_percent_encoded_and_absent_ones_drop_their_parameter() {
    let server = serve([Reply::json("[1]"), Reply::json("[1]")]).await;
    let mut spec = get(server.url("/v1/{id}/items?q={q}&unit=c%20x&n={note}"));
    spec.query.insert("for days".into(), "{days}".into());
    spec.query.insert("tag".into(), "{tags}".into());
    spec.query.insert("who".into(), "${user}".into());
    let arguments = json!({"id": "a/b?c #%", "q": "Milano & Forlì", "days": 3, "tags": ["x", "y z"]});
    assert_eq!(read(&spec, arguments).await, Ok(json!([1])));
    assert_eq!(
        first_line(&server),
        "GET /v1/a%2Fb%3Fc%20%23%25/items?q=Milano%20%26%20Forl%C3%AC&unit=c%20x&for%20days=3&tag=x&tag=y%20z&who=keysersoze HTTP/1.1"
    );
}

#[tokio::test]
async fn argument_cannot_escape_the_path() {
    let server = serve([]).await;
    for id in ["..", ".", ""] {
        let error = read(&get(server.url("/users/{id}/x")), json!({"id": id})).await.unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Refused, "http.argument"), "{id:?}");
    }
}

#[tokio::test]
async fn body_keeps_argument_types_and_drops_absent_ones() {
    let server = serve([Reply::json("{}")]).await;
    let mut spec = post(server.url("/"));
    spec.body = Some(json!({
        "id": "{id}", "days": "{days}", "tags": "{tags}", "note": "{note}", "text": "{days} days of {{id}}",
        "by": "${user}", "fixed": true, "nested": [{"note": "n: {note}"}, "{q}"],
    }));
    let tool = build(&spec, Effect::Write).unwrap();
    tool.call(context(), json!({"id": "1", "days": 3, "tags": ["a"], "note": null})).await.unwrap();
    let request = &server.requests()[0];
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(body).unwrap(),
        json!({"id": "1", "days": 3, "tags": ["a"], "text": "3 days of {id}", "by": "keysersoze", "fixed": true, "nested": [{}]})
    );
    assert!(head.to_lowercase().contains("content-type: application/json"));
    assert!(head.to_lowercase().contains("idempotency-key: key-1"));
}

#[tokio::test]
async fn ids_beyond_64_bits_keep_their_digits() {
    let server =
        serve([Reply::json(r#"{"id": 123456789012345678901, "n": [18446744073709551615, 1.5]}"#)]).await;
    let result = json!({"id": "123456789012345678901", "n": [18_446_744_073_709_551_615_u64, 1.5]});
    assert_eq!(read(&get(server.url("/")), json!({})).await, Ok(result));
}

#[tokio::test]
async fn result_pointer_selects_the_result() {
    let server = serve([Reply::json(r#"{"data":[{"t":21}]}"#), Reply::json(r#"{"data":[]}"#)]).await;
    let spec = HttpSpec { result: Some("/data/0".into()), ..get(server.url("/")) };
    assert_eq!(read(&spec, json!({})).await, Ok(json!({"t": 21})));
    let error = read(&spec, json!({})).await.unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Failed, "http.unexpected_answer"));
    assert!(error.message.contains("/data/0"), "{}", error.message);
}

#[tokio::test]
async fn response_over_its_bound_is_truncated() {
    let long = "word ".repeat(100);
    let server = serve([Reply::new(200, "text/plain", &long), Reply::json(&format!("[{long:?}]"))]).await;
    let spec = HttpSpec { max_response_bytes: 50, ..get(server.url("/")) };
    let cut = read(&spec, json!({})).await.unwrap();
    assert_eq!(cut["truncated"], true);
    assert_eq!(cut["shown_bytes"], 50);
    assert_eq!(cut["value"].as_str().unwrap().len(), 50);
    let error = read(&spec, json!({})).await.unwrap_err();
    assert!(error.message.contains("more than 50 bytes"), "{}", error.message);
}

#[tokio::test]
async fn content_that_is_neither_json_nor_text_is_refused() {
    let server =
        serve([Reply::new(200, "image/png", "x"), Reply::new(200, "application/json", "<html>")]).await;
    let spec = get(server.url("/"));
    for expected in ["image/png", "not JSON"] {
        let error = read(&spec, json!({})).await.unwrap_err();
        assert_eq!(error.code, "http.unexpected_answer");
        assert!(error.message.contains(expected), "{}", error.message);
    }
}

#[tokio::test]
async fn response_is_read_in_its_character_set_and_never_guessed() {
    let reply = |named: &str, body: &[u8]| {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {named}\r\ncontent-length: {}\r\n\r\n", body.len());
        Reply::Bytes([head.as_bytes(), body].concat())
    };
    let server = serve([
        reply("application/json; charset=ISO-8859-1", b"{\"city\": \"Citt\xe0\"}"),
        reply("text/plain; charset=\"windows-1252\"", b"5 \x80"),
        reply("application/json", b"\xef\xbb\xbf{\"n\": 1}"),
        reply("application/json", b"{\"city\": \"Citt\xe0\"}"),
        reply("text/plain; charset=utf-16", b"5\0"),
    ])
    .await;
    let read = build(&get(server.url("/")), Effect::Read).unwrap();
    for expected in [json!({"city": "Città"}), json!("5 €"), json!({"n": 1})] {
        assert_eq!(read.call(context(), json!({})).await, Ok(expected));
    }
    for _ in 0..2 {
        let error = read.call(context(), json!({})).await.unwrap_err();
        assert_eq!((error.code.as_str(), error.class), ("http.unexpected_answer", FaultClass::BadData));
    }
}

#[tokio::test]
async fn read_error_is_a_failure() {
    let server = serve([
        Reply::new(404, "text/plain", "no such city"),
        Reply::new(503, "text/plain", ""),
        Reply::Hang,
    ])
    .await;
    let spec = get(server.url("/"));
    let mut seen = Vec::new();
    for _ in 0..3 {
        let error = read(&spec, json!({})).await.unwrap_err();
        seen.push((error.kind, error.code));
    }
    let failed = |code: &str| (ToolErrorKind::Failed, code.to_owned());
    assert_eq!(seen, [failed("http.status"), failed("http.status"), failed("http.connection_lost")]);
}

#[tokio::test]
async fn write_that_may_have_happened_is_unknown() {
    let partial =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"a\"".to_vec();
    let cases = [
        (
            Reply::new(422, "application/json", r#"{"error":"overlap"}"#),
            ToolErrorKind::Refused,
            "http.status",
        ),
        (Reply::new(429, "text/plain", "later"), ToolErrorKind::Failed, "http.status"),
        (Reply::new(500, "text/plain", "oops"), ToolErrorKind::Unknown, "http.status"),
        (Reply::Hang, ToolErrorKind::Unknown, "http.connection_lost"),
        (Reply::Silence, ToolErrorKind::Unknown, "http.timeout"),
        (Reply::Bytes(partial), ToolErrorKind::Unknown, "http.connection_lost"),
        (Reply::redirect(302, "ftp://elsewhere/"), ToolErrorKind::Unknown, "http.connection_lost"),
        (Reply::redirect(307, "http://localhost:1/"), ToolErrorKind::Failed, "http.redirect"),
    ];
    for (number, (reply, kind, code)) in cases.into_iter().enumerate() {
        let server = serve([reply]).await;
        let error = write(&post(server.url("/"))).await.unwrap_err();
        assert_eq!(error.kind, kind, "case {number}: {error:?}");
        if number != 6 {
            assert_eq!(error.code, code, "case {number}: {error:?}");
        }
    }
}

#[tokio::test]
async fn refusal_whose_body_does_not_end_is_a_refusal() {
    let head = "HTTP/1.1 409 Conflict\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\n";
    let server = serve([Reply::Held(format!("{head}taken").into_bytes())]).await;
    let error = write(&post(server.url("/"))).await.unwrap_err();
    assert_eq!(
        (error.kind, error.code.as_str(), error.status),
        (ToolErrorKind::Refused, "http.status", Some(409))
    );
}

#[tokio::test]
async fn write_that_never_reached_the_server_failed() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [format!("http://{nobody}/"), "http://nowhere.invalid/".to_owned()] {
        let error = write(&post(url)).await.unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Failed, "http.unreachable"));
    }
}

#[tokio::test]
async fn redirected_write_that_reaches_nobody_is_unknown_if_it_may_have_been_done() {
    use ToolErrorKind::{Failed, Unknown};
    for (method, before, last, kind) in [
        ("PUT", None, 307, Failed),
        ("DELETE", None, 308, Failed),
        ("POST", None, 307, Failed),
        ("PUT", None, 301, Unknown),
        ("DELETE", None, 302, Unknown),
        ("POST", None, 302, Unknown),
        ("PUT", None, 303, Unknown),
        ("PUT", Some(307), 308, Failed),
        ("DELETE", Some(302), 307, Unknown),
    ] {
        let redirects = before.map(|status| Reply::redirect(status, "/b")).into_iter();
        let server = serve(redirects.chain([Reply::last_redirect(last, "/c")])).await;
        let spec = HttpSpec { method: method.into(), ..get(server.url("/a")) };
        let error = write(&spec).await.unwrap_err();
        let case = format!("{method} {before:?} {last}");
        assert_eq!((error.kind, error.code.as_str()), (kind, "http.unreachable"), "{case}: {error:?}");
        assert_eq!(error.class, FaultClass::Unavailable, "{case}");
        assert_eq!(server.requests().len(), 1 + usize::from(before.is_some()), "{case}");
    }
    let server = serve([Reply::last_redirect(302, "/b")]).await;
    let error = read(&get(server.url("/a")), json!({})).await.unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (Failed, "http.unreachable"));
}

#[tokio::test]
async fn redirected_write_is_sent_again_only_if_nothing_was_done_or_with_a_key() {
    let never = Repeat::Never;
    for (method, status, repeat, is_sent_again) in [
        ("PUT", 301, never, false),
        ("PATCH", 302, never, false),
        ("DELETE", 302, never, false),
        ("PUT", 307, never, true),
        ("DELETE", 308, never, true),
        ("PUT", 302, Repeat::Key, true),
        // Its result is fetched.
        ("POST", 302, never, true),
        ("DELETE", 303, never, true),
    ] {
        let case = format!("{method} {status} {repeat:?}");
        let server = serve([Reply::redirect(status, "/b"), Reply::json("1")]).await;
        let spec = HttpSpec { method: method.into(), ..get(server.url("/a")) };
        let result =
            build_with(&spec, Effect::Write, repeat).unwrap().call(context(), json!({"id": "1"})).await;
        assert_eq!(server.requests().len(), 1 + usize::from(is_sent_again), "{case}");
        match is_sent_again {
            true => assert_eq!(result, Ok(json!(1)), "{case}"),
            false => {
                let error = result.unwrap_err();
                assert_eq!(
                    (error.kind, error.code.as_str()),
                    (ToolErrorKind::Unknown, "http.redirect"),
                    "{case}"
                );
            }
        }
    }
}

#[tokio::test]
async fn failure_behind_a_redirect_is_unknown_if_the_write_may_have_been_done() {
    use ToolErrorKind::{Failed, Refused, Unknown};
    for (status, without_end, refused) in [(307, Failed, Refused), (302, Unknown, Unknown)] {
        let server = serve((0..=MAX_REDIRECTS).map(|_| Reply::redirect(status, "/again"))).await;
        let put = |server: &Server| HttpSpec { method: "PUT".into(), ..get(server.url("/a")) };
        let error = write(&put(&server)).await.unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (without_end, "http.too_many_redirects"), "{status}");
        // No address gets the write a second time.
        assert_eq!(server.requests().len(), 2, "{status}");
        let replies = [Reply::redirect(status, "/b"), Reply::new(404, "text/plain", "")];
        let server = serve(replies).await;
        assert_eq!(write(&put(&server)).await.unwrap_err().kind, refused, "{status}");
    }
}

#[tokio::test]
async fn completed_write_succeeds_with_any_answer() {
    let server = serve([
        Reply::new(201, "application/json", "not json"),
        Reply::new(204, "text/plain", ""),
        Reply::new(200, "image/png", "x"),
        Reply::json(r#"{"other":1}"#),
    ])
    .await;
    let spec = HttpSpec { result: Some("/id".into()), ..post(server.url("/")) };
    let mut results = Vec::new();
    for _ in 0..4 {
        results.push(write(&spec).await.unwrap());
    }
    assert_eq!(
        results,
        [
            json!({"status": 201}),
            json!({"status": 204}),
            json!({"status": 200, "content_type": "image/png"}),
            json!({"other": 1})
        ]
    );
}

/// A login form, say: nothing of it is a result, and whether a write was done is unknown.
#[tokio::test]
async fn web_page_is_no_result() {
    let page = || Reply::new(200, "text/html; charset=utf-8", "<!DOCTYPE html><p>Please log in</p>");
    let html = |body: &str| Reply::new(200, "text/html", body);
    let server = serve([page(), page(), page(), html(""), html("OK"), html("{\"id\": 7}"), html("OK")]).await;
    let read = build(&get(server.url("/")), Effect::Read).unwrap();
    let error = read.call(context(), json!({})).await.unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Failed, "http.unexpected_answer"));
    assert_eq!(error.class, FaultClass::BadData);
    assert!(!error.message.contains("DOCTYPE"), "{error:?}");
    let error = write(&post(server.url("/"))).await.unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Unknown, "http.unexpected_answer"));
    let mut spec = get(server.url("/"));
    spec.headers.insert("Accept".into(), "text/html".into());
    let asked_for = build(&spec, Effect::Read).unwrap().call(context(), json!({})).await;
    assert_eq!(asked_for, Ok(json!("<!DOCTYPE html><p>Please log in</p>")));
    // Servers that label everything as HTML.
    for expected in [json!({"status": 200}), json!("OK"), json!({"id": 7})] {
        assert_eq!(read.call(context(), json!({})).await, Ok(expected));
    }
    assert_eq!(write(&post(server.url("/"))).await, Ok(json!("OK")));
}

#[tokio::test]
async fn redirect_after_write_fetches_answer_without_second_write() {
    let server = serve([Reply::redirect(303, "/done"), Reply::json(r#"{"id":7}"#)]).await;
    assert_eq!(write(&post(server.url("/"))).await, Ok(json!({"id": 7})));
    let requests = server.requests();
    assert!(requests[1].starts_with("GET /done "));
    assert!(!requests[1].to_lowercase().contains("idempotency-key"));
    let server = serve([Reply::redirect(303, "/done"), Reply::new(404, "text/plain", "")]).await;
    assert_eq!(write(&post(server.url("/"))).await.unwrap_err().kind, ToolErrorKind::Unknown);
}

#[tokio::test]
async fn secret_reaches_only_its_origin_and_is_redacted() {
    let other = serve([Reply::json("{}")]).await;
    let echo = format!(r#"{{"you sent {TOKEN}": ["{TOKEN}"]}}"#);
    let server = serve([
        Reply::redirect(302, &other.url("/")),
        Reply::json(&echo),
        Reply::new(401, "text/plain", &format!("{}{TOKEN} is wrong", "x".repeat(290))),
        Reply::new(200, "text/plain", &format!("{}{TOKEN}", "x".repeat(40))),
    ])
    .await;
    let mut spec = HttpSpec { max_response_bytes: 48, ..get(server.url("/")) };
    spec.headers.insert("X-Api-Key".into(), "${env:TOKEN}".into());
    spec.headers.insert("X-Lang".into(), "it".into());
    let tool = build(&spec, Effect::Read).unwrap();
    assert!(!format!("{tool:?}").contains(TOKEN));
    assert!(!format!("{:?}", tool.headers).contains(TOKEN));

    assert_eq!(tool.call(context(), json!({})).await, Ok(json!({})));
    assert!(server.requests()[0].contains(TOKEN));
    assert!(!other.requests()[0].contains(TOKEN));
    assert!(other.requests()[0].to_lowercase().contains("x-lang: it"));

    assert_eq!(tool.call(context(), json!({})).await, Ok(json!({"you sent ***": ["***"]})));
    let refused = tool.call(context(), json!({})).await.unwrap_err();
    assert!(!refused.message.contains("s3cr"), "{}", refused.message);
    let cut = tool.call(context(), json!({})).await.unwrap();
    assert!(!cut.to_string().contains("s3cr"), "{cut}");
}

#[tokio::test]
async fn network_policy_applies_at_every_redirect() {
    let inner = serve([Reply::json("{}")]).await;
    let outer = serve([Reply::redirect(302, &inner.url("/"))]).await;
    let policy = NetworkPolicy { allow_hosts: vec![outer.authority()], ..NetworkPolicy::default() };
    let network = HttpNetwork::new(&policy).unwrap();
    let parameters = parameters();
    let terms = HttpToolTerms {
        parameters: &parameters,
        effect: Effect::Read,
        repeat: Repeat::Never,
        timeout_ms: 1000,
    };
    let tool = HttpTool::new(&get(outer.url("/")), terms, &network, &environment).unwrap();
    let error = tool.call(context(), json!({})).await.unwrap_err();
    assert_eq!(error.code, "http.private_address");
    assert!(inner.requests().is_empty());
    // A name that resolves to a private address is refused at resolution.
    let spec = get(format!("http://localhost:{}/", inner.port()));
    let tool = HttpTool::new(&spec, terms, &network, &environment).unwrap();
    let error = tool.call(context(), json!({})).await.unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Refused, "http.private_address"));
}

#[tokio::test]
async fn cancelled_read_stops_and_cancelled_write_completes() {
    let context = context();
    context.cancelled.cancel();
    let server = serve([Reply::json("{}")]).await;
    let read = build(&get(server.url("/")), Effect::Read).unwrap();
    assert_eq!(read.call(context.clone(), json!({})).await.unwrap_err().code, "tool.cancelled");
    let write = build(&post(server.url("/")), Effect::Write).unwrap();
    assert_eq!(write.call(context, json!({"id": "1"})).await, Ok(json!({})));
}

#[test]
fn every_problem_of_a_request_is_reported_at_once() {
    let mut spec = get("http://10.0.0.1/{idd}/{q}".into());
    spec.method = "get".into();
    spec.headers.insert("Authorization".into(), "Bearer ${env:MISSING}".into());
    spec.headers.insert("X".into(), "${env:EMPTY} ${secret}".into());
    spec.headers.insert("Y".into(), "Bearer ${env:BROKEN}".into());
    spec.headers.insert("Host".into(), "x".into());
    spec.query.insert("a".into(), "{q".into());
    spec.result = Some("data".into());
    let parameters = parameters();
    let terms = HttpToolTerms {
        parameters: &parameters,
        effect: Effect::Read,
        repeat: Repeat::Never,
        timeout_ms: 1000,
    };
    let network = HttpNetwork::new(&NetworkPolicy::default()).unwrap();
    let problems = HttpTool::new(&spec, terms, &network, &environment).unwrap_err();
    let told: Vec<String> =
        problems.iter().map(|p| format!("{}: {}: {} | {}", p.at, p.code, p.message, p.remedy)).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    method: http_method: "get" is not a supported method | write "GET"
    url: http_private_address: 10.0.0.1 is not a public address: loopback, private and link-local addresses are reached only with `scenes.allow_private_addresses = true` or the host in `scenes.allow_hosts` | write a public host, or add "10.0.0.1" to `scenes.allow_hosts`
    url: http_placeholder: {idd} is not among the tool's parameters | did you mean "id"?
    url: http_placeholder: {q} is part of the path, but q is optional | add "q" to `required`, or put it in `query`
    query.a: http_placeholder: "{q" has a brace that is not part of an {argument} | write {{ and }} for literal braces
    headers.Authorization: http_secret: the environment variable MISSING is not set | set MISSING before starting, or remove the reference
    headers.Host: http_header: Host is set by the server itself | remove it
    headers.X: http_secret: the environment variable EMPTY is not set | set EMPTY before starting, or remove the reference
    headers.X: http_placeholder: ${secret} is not a reference | use ${env:NAME} for a secret, ${user} or ${tenant} for the requester
    headers.Y: http_secret: a secret in "Bearer ${env:BROKEN}" cannot be sent in a header | use visible ASCII, without a line break at its end
    result: http_result: "data" is not a JSON pointer | write it as /field/0/field, or omit it for the whole response
    "#);
}

#[test]
fn url_whose_host_depends_on_arguments_is_refused() {
    for (url, expected) in [
        ("https://{q}.example.com/", "fixed"),
        ("https://example.com{q}/", "fixed"),
        ("ftp://example.com/", "not supported"),
        ("https://u:p@example.com/", "credentials"),
        ("example.com/x", "not a URL"),
        ("https://example.com/#{q}", "fragment"),
    ] {
        let problems = build(&get(url.into()), Effect::Read).unwrap_err();
        assert!(
            problems[0].code == "http_url" && problems[0].message.contains(expected),
            "{url}: {problems:?}"
        );
    }
    let with_body = HttpSpec { body: Some(json!({})), ..get("https://example.com/".into()) };
    assert_eq!(build(&with_body, Effect::Read).unwrap_err()[0].code, "http_body");
}

#[tokio::test]
async fn failures_have_a_class_and_the_wait_that_the_server_demands() {
    use FaultClass::{BadData, Denied, NotFound, Other, RateLimit, Timeout, Unavailable};
    let statuses = [
        (400, BadData),
        (401, Denied),
        (403, Denied),
        (404, NotFound),
        (408, Timeout),
        (409, Other),
        (410, NotFound),
        (422, BadData),
        (429, RateLimit),
        (500, Unavailable),
        (503, Unavailable),
        (504, Timeout),
    ];
    for (status, class) in statuses {
        let reply = |wait: &str| {
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n{wait}\r\n");
            Reply::Bytes(head.into_bytes())
        };
        let server = serve([reply("retry-after: 7\r\n"), reply("")]).await;
        let spec = get(server.url("/"));
        let error = read(&spec, json!({})).await.unwrap_err();
        assert_eq!((error.class, error.retry_after), (class, Some(Duration::from_secs(7))), "{status}");
        assert_eq!(read(&spec, json!({})).await.unwrap_err().retry_after, None);
    }
    let server = serve([Reply::json("{"), Reply::Hang, Reply::Silence]).await;
    for class in [BadData, Unavailable, Timeout] {
        assert_eq!(read(&get(server.url("/")), json!({})).await.unwrap_err().class, class);
    }
    let closed = serve([]).await;
    let url = closed.url("/");
    drop(closed);
    assert_eq!(read(&get(url), json!({})).await.unwrap_err().class, Unavailable);
    let error = read(&get(server.url("/{id}")), json!({"id": ".."})).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.class), ("http.argument", BadData));
}
