//! Compiles a written HTTP request into a tool and reports all problems.

use std::time::Duration;

use reqwest::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use reqwest::{Method, Url};

use super::template::{BodyTemplate, Template, TemplateFlaw, TemplateSecret};
use super::{
    HttpNetwork, HttpSpec, HttpSpecProblem, HttpTool, HttpToolTerms, IDEMPOTENCY_HEADER, QueryEncoding,
};
use crate::nearest::{did_you_mean, name_list};
use crate::run::{Effect, Repeat};
use crate::schema::{is_required, property_names};

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

pub(super) fn compile(
    spec: &HttpSpec,
    terms: HttpToolTerms<'_>,
    network: &HttpNetwork,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<HttpTool, Vec<HttpSpecProblem>> {
    let mut reader = SpecCompiler { terms, environment, problems: Vec::new() };
    let method = reader.method(spec);
    let (origin, path, mut query) = reader.url(&spec.url, network);
    for (name, text) in &spec.query {
        query.push((name.clone(), reader.template(&format!("query.{name}"), text), QueryEncoding::Plain));
    }
    let headers = reader.headers(spec);
    let body =
        spec.body.as_ref().map(|body| BodyTemplate::parse(body, &mut |text| reader.template("body", text)));
    if let Some(pointer) = &spec.result
        && !pointer.is_empty()
        && !pointer.starts_with('/')
    {
        reader.problem(
            "result",
            "http_result",
            format!("{pointer:?} is not a JSON pointer"),
            "write it as /field/0/field, or omit it for the whole response",
        );
    }
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let secrets: Vec<TemplateSecret> = path
        .iter()
        .chain(query.iter().map(|(_, template, _)| template))
        .chain(headers.iter().map(|(_, template)| template))
        .chain(body.iter().flat_map(BodyTemplate::templates))
        .flat_map(Template::secrets)
        .cloned()
        .collect();
    // Its deadline is slightly before the caller's, so that its more specific error is reported.
    let spare = (terms.timeout_ms / 20).min(250);
    Ok(HttpTool {
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
        on_status: spec.on_status.clone(),
    })
}

struct SpecCompiler<'a> {
    terms: HttpToolTerms<'a>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<HttpSpecProblem>,
}

type QueryTemplates = Vec<(String, Template, QueryEncoding)>;

impl SpecCompiler<'_> {
    fn problem(&mut self, at: &str, code: &'static str, message: String, remedy: impl Into<String>) {
        let message = crate::setting::redact_passwords(&message);
        let problem = HttpSpecProblem { at: at.to_owned(), code, message, remedy: remedy.into() };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn method(&mut self, spec: &HttpSpec) -> Method {
        if !METHODS.contains(&spec.method.as_str()) {
            let upper = spec.method.to_uppercase();
            let hint = if METHODS.contains(&upper.as_str()) {
                format!("write {upper:?}")
            } else {
                format!("use one of {}", METHODS.join(", "))
            };
            self.problem(
                "method",
                "http_method",
                format!("{:?} is not a supported method", spec.method),
                hint,
            );
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

    /// Parses a template and checks its references. Returns an empty template if problems were reported.
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
                format!("declare it in `parameters`, or use one of: {}", name_list(known))
            } else {
                hint
            };
            self.problem(at, "http_placeholder", message, remedy);
        }
        template
    }

    fn flaw(&mut self, at: &str, text: &str, flaw: TemplateFlaw) {
        match flaw {
            TemplateFlaw::Brace => self.problem(
                at,
                "http_placeholder",
                format!("{text:?} has a brace that is not part of an {{argument}}"),
                "write {{ and }} for literal braces",
            ),
            TemplateFlaw::Reference(name) => self.problem(
                at,
                "http_placeholder",
                format!("${{{name}}} is not a reference"),
                "use ${env:NAME} for a secret, ${user} or ${tenant} for the requester",
            ),
            TemplateFlaw::Unset(name) => self.problem(
                at,
                "http_secret",
                format!("the environment variable {name} is not set"),
                format!("set {name} before starting, or remove the reference"),
            ),
        }
    }

    fn headers(&mut self, spec: &HttpSpec) -> Vec<(HeaderName, Template)> {
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
            if !template.secrets().all(TemplateSecret::fits_header) {
                self.problem(
                    &at,
                    "http_secret",
                    format!("a secret in {text:?} cannot be sent in a header"),
                    "use visible ASCII, without a line break at its end",
                );
            }
            let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
                self.problem(
                    &at,
                    "http_header",
                    format!("{name:?} is not a header name"),
                    "use letters, digits and -",
                );
                continue;
            };
            let own = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION];
            if own.contains(&header) || (self.terms.repeat == Repeat::Key && header == IDEMPOTENCY_HEADER) {
                self.problem(&at, "http_header", format!("{name} is set by the server itself"), "remove it");
                continue;
            }
            headers.push((header, template));
        }
        headers
    }

    /// The origin, and the templates of the path's segments and of the query.
    fn url(&mut self, url: &str, network: &HttpNetwork) -> (String, Vec<Template>, QueryTemplates) {
        let (origin, path, query) = split_url(url);
        if origin.contains(['{', '}', '$']) {
            let message = "the scheme, host and port of a URL are fixed".to_owned();
            self.problem(
                "url",
                "http_url",
                message,
                "write the host literally; arguments go into the path and the query",
            );
            return Default::default();
        }
        let allowed = match Url::parse(origin) {
            Err(error) => Err(format!("{url:?} is not a URL: {error}")),
            Ok(parsed) if !matches!(parsed.scheme(), "http" | "https") => {
                Err(format!("{:?} URLs are not supported", parsed.scheme()))
            }
            Ok(parsed) if !parsed.username().is_empty() || parsed.password().is_some() => {
                Err("credentials in a URL are visible to everyone".to_owned())
            }
            Ok(_) if url.contains('#') => Err("a fragment (#…) is never sent".to_owned()),
            Ok(parsed) => Ok(network.policy().check(&parsed).map_err(|refused| {
                let port = parsed.port().map(|port| format!(":{port}")).unwrap_or_default();
                (refused.message, format!("{}{port}", parsed.host_str().unwrap_or_default()))
            })),
        };
        match allowed {
            Err(message) => {
                let remedy = "write http://host/path or https://host/path; secrets go into `headers`";
                self.problem("url", "http_url", message, remedy);
                return Default::default();
            }
            Ok(Err((message, host))) => {
                let remedy = format!("write a public host, or add {host:?} to `scenes.allow_hosts`");
                self.problem("url", "http_private_address", message, remedy);
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
                    self.problem("url", "http_url", message, "use references in values only");
                }
                (name.to_owned(), self.template("url", value), QueryEncoding::Encoded)
            })
            .collect();
        (origin.to_owned(), path, query)
    }

    /// Parses a path segment. Its arguments must be required, because no segment can be omitted.
    fn segment(&mut self, text: &str) -> Template {
        let template = self.template("url", text);
        for name in template.arguments() {
            if self.properties().contains(&name) && !is_required(self.terms.parameters, name) {
                self.problem(
                    "url",
                    "http_placeholder",
                    format!("{{{name}}} is part of the path, but {name} is optional"),
                    format!("add {name:?} to `required`, or put it in `query`"),
                );
            }
        }
        template
    }

    fn properties(&self) -> Vec<&str> {
        property_names(self.terms.parameters).collect()
    }
}

/// `scheme://authority`, the path without its first `/`, and the query without `?`.
fn split_url(url: &str) -> (&str, &str, &str) {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let end = url[authority..].find(['/', '?', '#']).map_or(url.len(), |at| authority + at);
    let (origin, rest) = url.split_at(end);
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    (origin, path.strip_prefix('/').unwrap_or(path), query)
}
