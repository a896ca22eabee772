//! `[telemetry.otlp]`: where the spans of runs are sent.

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::setting::{SettingsReview, redact_url};

/// `[telemetry.otlp]`: the traces of runs, sent as OTLP (HTTP, protobuf).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OtlpConfig {
    /// The URL that spans are posted to; `/v1/traces` is added where it has no path. If empty, there are no traces.
    pub endpoint: String,
    /// The environment variable with the headers of each export, as `name=value,name=value` with percent-coded values;
    /// empty for none.
    pub headers_env: String,
    /// The name of this service in traces.
    pub service_name: String,
    /// The share of traces that is recorded, 0 to 1, by their ids.
    pub sample_ratio: f64,
    /// Whether spans have requests, replies of models, and arguments and results of tools.
    pub content: bool,
    /// Timeout of one export, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for OtlpConfig {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            headers_env: String::new(),
            service_name: "proscenium".to_owned(),
            sample_ratio: 1.0,
            content: false,
            timeout_ms: 10_000,
        }
    }
}

/// A receiver of spans.
#[derive(Clone)]
pub struct OtlpTarget {
    /// The URL that spans are posted to.
    pub url: Url,
    /// The headers of each request. They may be secrets.
    pub headers: HeaderMap,
    /// The name of this service.
    pub service: String,
}

impl OtlpConfig {
    /// Adds the problems of these values.
    pub(super) fn review(&self, review: &mut SettingsReview) {
        review.range("telemetry.otlp.sample_ratio", self.sample_ratio, 0.0..=1.0);
        review.range("telemetry.otlp.timeout_ms", self.timeout_ms, 1..=60_000);
        if !self.endpoint.is_empty()
            && let Err(why) = self.url()
        {
            let remedy = "write http://… or https://…, such as http://localhost:4318";
            review.add("telemetry.otlp.endpoint", why, remedy);
        }
        let name = &self.service_name;
        if name.trim().is_empty() || name.chars().count() > 128 || name.chars().any(char::is_control) {
            let message = "`telemetry.otlp.service_name` must have 1 to 128 printable characters";
            review.add("telemetry.otlp.service_name", message, "write a short name");
        }
    }

    fn url(&self) -> Result<Url, String> {
        let shown = redact_url(&self.endpoint);
        let mut url = Url::parse(&self.endpoint)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| format!("`telemetry.otlp.endpoint` = `{shown}` is not a URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!(
                "`telemetry.otlp.endpoint` = `{shown}` has a user or a password, which belong in a header (`headers_env`)"
            ));
        }
        if url.path().trim_matches('/').is_empty() {
            url.set_path("/v1/traces");
        }
        Ok(url)
    }

    /// The receiver, if there is one. `get` looks up environment variables.
    ///
    /// # Errors
    /// What cannot be used, and why; without the values of headers.
    pub fn target(&self, get: impl Fn(&str) -> Option<String>) -> Result<Option<OtlpTarget>, String> {
        if self.endpoint.is_empty() {
            return Ok(None);
        }
        let url = self.url()?;
        let variable = &self.headers_env;
        let headers = match get(variable).map(|text| text.trim().to_owned()) {
            _ if variable.is_empty() => HeaderMap::new(),
            Some(text) if !text.is_empty() => header_map(&text).ok_or_else(|| {
                format!("the headers in {variable} are not `name=value,name=value` with percent-coded values")
            })?,
            _ => {
                return Err(format!(
                    "the headers of exports are read from the environment variable {variable}, which is not set"
                ));
            }
        };
        Ok(Some(OtlpTarget { url, headers, service: self.service_name.clone() }))
    }
}

impl std::fmt::Debug for OtlpTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtlpTarget").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

fn header_map(text: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=')?;
        let mut value = HeaderValue::try_from(decoded(value.trim())?).ok()?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name.trim()).ok()?, value);
    }
    Some(headers)
}

/// Decodes percent-coded text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(data_encoding::HEXLOWER_PERMISSIVE.decode(digits).ok()?.first().copied()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(endpoint: &str) -> OtlpConfig {
        OtlpConfig { endpoint: endpoint.to_owned(), ..OtlpConfig::default() }
    }

    #[test]
    fn spans_are_posted_to_the_path_of_the_url_or_the_usual_one() {
        let url =
            |endpoint: &str| at(endpoint).target(|_| None).map(|target| target.unwrap().url.to_string());
        assert_eq!(url("http://localhost:4318").unwrap(), "http://localhost:4318/v1/traces");
        assert_eq!(url("https://host/").unwrap(), "https://host/v1/traces");
        assert_eq!(url("https://host/mine?team=a").unwrap(), "https://host/mine?team=a");
        assert!(at("").target(|_| None).unwrap().is_none());
        for wrong in ["ftp://host", "host:4318", "https://u:hunter2@host", "https://hunter2@host"] {
            assert!(!url(wrong).unwrap_err().contains("hunter2"), "{wrong}");
        }
    }

    #[test]
    fn headers_are_secrets_and_what_is_wrong_with_them_names_their_variable() {
        let otlp = OtlpConfig { headers_env: "OTLP_KEY".to_owned(), ..at("http://127.0.0.1:4318") };
        let target =
            |value: Option<&str>| otlp.target(|name| value.filter(|_| name == "OTLP_KEY").map(str::to_owned));
        let found = target(Some("Authorization=Basic%20hunter2, x-team=a")).unwrap().unwrap();
        assert_eq!(
            (&found.headers["authorization"], &found.headers["x-team"]),
            (&"Basic hunter2".parse().unwrap(), &"a".parse().unwrap())
        );
        assert!(!format!("{found:?} {:?}", found.headers).contains("hunter2"));
        for wrong in
            [Some("hunter2"), Some("a b=hunter2"), Some("a=hunter2%2"), Some("a=hunter2%0a"), Some(" "), None]
        {
            let error = target(wrong).unwrap_err();
            assert!(error.contains("OTLP_KEY") && !error.contains("hunter2"), "{error}");
        }
    }
}
