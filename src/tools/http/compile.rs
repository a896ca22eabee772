//! From what is written to a request that can be made, with every problem found on the way.

use std::time::Duration;

use reqwest::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use reqwest::{Method, Url};
use serde_json::Value;

use super::template::{Body, Flaw, Secret, Template};
use super::{Http, IDEMPOTENCY_HEADER, Literal, Network, Problem, Spec, Terms};
use crate::nearest::{did_you_mean, listed};
use crate::run::{Effect, Repeat};

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

pub(super) fn compile(
    spec: &Spec,
    terms: Terms<'_>,
    network: &Network,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Http, Vec<Problem>> {
    let mut reader = Reader { terms, environment, problems: Vec::new() };
    let method = reader.method(spec);
    let (origin, path, mut query) = reader.url(&spec.url, network);
    for (name, text) in &spec.query {
        query.push((name.clone(), reader.template(&format!("query.{name}"), text), Literal::Plain));
    }
    let headers = reader.headers(spec);
    let body = spec.body.as_ref().map(|body| Body::read(body, &mut |text| reader.template("body", text)));
    if let Some(pointer) = &spec.result
        && !pointer.is_empty()
        && !pointer.starts_with('/')
    {
        reader.problem(
            "result",
            "http_result",
            format!("{pointer:?} is no JSON pointer"),
            "write it as /field/0/field, or leave it out for the whole response",
        );
    }
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let secrets: Vec<Secret> = path
        .iter()
        .chain(query.iter().map(|(_, template, _)| template))
        .chain(headers.iter().map(|(_, template)| template))
        .chain(body.iter().flat_map(Body::templates))
        .flat_map(Template::secrets)
        .cloned()
        .collect();
    // Its own deadline comes just before that of whoever calls it, so that its words are the ones told.
    let spare = (terms.timeout_ms / 20).min(250);
    Ok(Http {
        method,
        origin,
        path,
        query,
        headers,
        body,
        result: spec.result.clone().filter(|pointer| !pointer.is_empty()),
        max_response_bytes: spec.max_response_bytes,
        write: terms.effect == Effect::Write,
        keyed: terms.repeat == Repeat::Key,
        timeout: Duration::from_millis(terms.timeout_ms - spare),
        secrets: secrets.into(),
        network: network.clone(),
    })
}

struct Reader<'a> {
    terms: Terms<'a>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<Problem>,
}

type QueryTemplates = Vec<(String, Template, Literal)>;

impl Reader<'_> {
    fn problem(&mut self, at: &str, code: &'static str, message: String, remedy: impl Into<String>) {
        let message = crate::setting::without_passwords(&message);
        let problem = Problem { at: at.to_owned(), code, message, remedy: remedy.into() };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn method(&mut self, spec: &Spec) -> Method {
        if !METHODS.contains(&spec.method.as_str()) {
            let upper = spec.method.to_uppercase();
            let hint = if METHODS.contains(&upper.as_str()) {
                format!("write {upper:?}")
            } else {
                format!("use one of {}", METHODS.join(", "))
            };
            self.problem("method", "http_method", format!("{:?} is no method for a tool", spec.method), hint);
        }
        if spec.method == "GET" && spec.body.is_some() {
            self.problem(
                "body",
                "http_body",
                "a GET request has no body".to_owned(),
                "put the values in `query`, or use another `method`",
            );
        }
        Method::from_bytes(spec.method.as_bytes()).unwrap_or(Method::GET)
    }

    /// A template whose references all exist; the problems are noted, and it is empty then.
    fn template(&mut self, at: &str, text: &str) -> Template {
        let template = match Template::parse(text, self.environment) {
            Ok(template) => template,
            Err(flaws) => {
                for flaw in flaws {
                    self.flaw(at, text, flaw);
                }
                return Template::default();
            }
        };
        for name in template.arguments() {
            let known = self.properties();
            if known.contains(&name) {
                continue;
            }
            let message = format!("{{{name}}} is not among the tool's parameters");
            let hint = did_you_mean(name, known.iter().copied());
            let remedy = if hint.is_empty() {
                format!("declare it in `parameters`, or use one of: {}", listed(known))
            } else {
                hint
            };
            self.problem(at, "http_placeholder", message, remedy);
        }
        template
    }

    fn flaw(&mut self, at: &str, text: &str, flaw: Flaw) {
        match flaw {
            Flaw::Brace => self.problem(
                at,
                "http_placeholder",
                format!("{text:?} has a brace that belongs to no {{argument}}"),
                "write {{ and }} for braces that are meant as such",
            ),
            Flaw::Reference(name) => self.problem(
                at,
                "http_placeholder",
                format!("${{{name}}} is no reference"),
                "use ${env:NAME} for a secret, ${user} or ${tenant} for who asks",
            ),
            Flaw::Unset(name) => self.problem(
                at,
                "http_secret",
                format!("the environment variable {name} is not set"),
                format!("set {name} before starting, or take the reference out"),
            ),
        }
    }

    fn headers(&mut self, spec: &Spec) -> Vec<(HeaderName, Template)> {
        let mut headers = Vec::new();
        for (name, text) in &spec.headers {
            let at = format!("headers.{name}");
            let template = self.template(&at, text);
            if template.is_fixed() && HeaderValue::from_str(text).is_err() {
                self.problem(
                    &at,
                    "http_header",
                    format!("{text:?} cannot be sent in a header"),
                    "use visible ASCII",
                );
            }
            let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
                self.problem(
                    &at,
                    "http_header",
                    format!("{name:?} is no header name"),
                    "use letters, digits and -",
                );
                continue;
            };
            let own = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION];
            if own.contains(&header) || (self.terms.repeat == Repeat::Key && header == IDEMPOTENCY_HEADER) {
                self.problem(
                    &at,
                    "http_header",
                    format!("{name} is set by the program itself"),
                    "take it out",
                );
                continue;
            }
            headers.push((header, template));
        }
        headers
    }

    /// The origin, the path's segments and the query, each with its references.
    fn url(&mut self, url: &str, network: &Network) -> (String, Vec<Template>, QueryTemplates) {
        let (origin, path, query) = parts(url);
        if origin.contains(['{', '}', '$']) {
            let message = "the scheme, host and port of a URL are fixed".to_owned();
            self.problem(
                "url",
                "http_url",
                message,
                "write the host out; arguments go into the path and the query",
            );
            return Default::default();
        }
        let allowed = match Url::parse(origin) {
            Err(error) => Err(format!("{url:?} is no URL: {error}")),
            Ok(parsed) if !matches!(parsed.scheme(), "http" | "https") => {
                Err(format!("{:?} URLs are not supported", parsed.scheme()))
            }
            Ok(parsed) if !parsed.username().is_empty() || parsed.password().is_some() => {
                Err("credentials in a URL are seen by everyone".to_owned())
            }
            Ok(_) if url.contains('#') => Err("a fragment (#…) is never sent".to_owned()),
            Ok(parsed) => Ok(network.policy().check(&parsed)),
        };
        match allowed {
            Err(message) => {
                let remedy = "write http://host/path or https://host/path; secrets go into `headers`";
                self.problem("url", "http_url", message, remedy);
                return Default::default();
            }
            Ok(Err(refused)) => {
                let remedy = "write a public host, or allow this one in the configuration";
                self.problem("url", "http_private_address", refused.message, remedy);
            }
            Ok(Ok(())) => {}
        }
        let path = path.split('/').map(|segment| self.segment(segment)).collect();
        let query = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                if name.contains(['{', '}', '$']) {
                    let message = format!("the query parameter {name:?} has a reference in its name");
                    self.problem("url", "http_url", message, "references stand for values");
                }
                (name.to_owned(), self.template("url", value), Literal::Encoded)
            })
            .collect();
        (origin.to_owned(), path, query)
    }

    /// A path cannot do without one of its segments, so its arguments are required ones.
    fn segment(&mut self, text: &str) -> Template {
        let template = self.template("url", text);
        let required: Vec<&str> = match self.terms.parameters.get("required").and_then(Value::as_array) {
            Some(names) => names.iter().filter_map(Value::as_str).collect(),
            None => Vec::new(),
        };
        for name in template.arguments() {
            if self.properties().contains(&name) && !required.contains(&name) {
                self.problem(
                    "url",
                    "http_placeholder",
                    format!("{{{name}}} stands in the path, and {name} may be left out"),
                    format!("add {name:?} to `required`, or put it in `query`"),
                );
            }
        }
        template
    }

    fn properties(&self) -> Vec<&str> {
        match self.terms.parameters.get("properties").and_then(Value::as_object) {
            Some(properties) => properties.keys().map(String::as_str).collect(),
            None => Vec::new(),
        }
    }
}

/// `scheme://authority`, the path without its first `/`, and the query without `?`.
fn parts(url: &str) -> (&str, &str, &str) {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let end = url[authority..].find(['/', '?', '#']).map_or(url.len(), |at| authority + at);
    let (origin, rest) = url.split_at(end);
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    (origin, path.strip_prefix('/').unwrap_or(path), query)
}
