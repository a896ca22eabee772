//! Webhook delivery and signatures, as specified by <https://www.standardwebhooks.com>.

use std::time::Duration;

use data_encoding::BASE64;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode, Url};
use secrecy::{ExposeSecret, SecretSlice};
use sha2::Sha256;

use crate::config::WebhookConfig;
use crate::fault::root_cause;
use crate::retry_after::retry_after;
use crate::run::Fault;

/// Maximum wait before a retry, whether from backoff or requested by the receiver.
const MAX_BACKOFF: Duration = Duration::from_secs(3600);
/// The wait after the first attempt; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);

/// A webhook that is notified of every open approval.
#[derive(Clone)]
pub struct WebhookTarget {
    url: Url,
    secret: std::sync::Arc<SecretSlice<u8>>,
    http: Client,
    max_attempts: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeliveryOutcome {
    Delivered,
    /// Delivery failed: retry after this time.
    Retry(Duration, String),
    /// Delivery failed and is not retried.
    Abandoned(String),
}

impl WebhookTarget {
    /// The configured webhook, if there is one. `get` looks up the environment variable of the secret.
    ///
    /// # Errors
    /// `config.webhook` if the URL is invalid, or the variable is not set or holds no valid secret.
    pub fn of(webhook: &WebhookConfig, get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Fault> {
        let fault = |what: String| Fault::new("config.webhook", format!("approval.webhook: {what}"));
        if webhook.url.is_empty() {
            return Ok(None);
        }
        let url = Url::parse(&webhook.url)
            .map_err(|error| fault(format!("`{}`: {error}", crate::setting::redact_url(&webhook.url))))?;
        let secret = webhook.secret(get).map_err(fault)?;
        let near = url.host_str().is_some_and(|host| {
            let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
            host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
        });
        let mut http = Client::builder()
            .timeout(Duration::from_millis(webhook.timeout_ms))
            // A redirected POST could arrive as a GET, or send its content to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("proscenium/", env!("CARGO_PKG_VERSION")));
        if near {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| fault(format!("cannot create the HTTP client: {error}")))?;
        Ok(Some(Self { url, secret: std::sync::Arc::new(secret), http, max_attempts: webhook.max_attempts }))
    }

    /// The signature of a message.
    fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        // HMAC accepts keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.secret.expose_secret()) else {
            return String::new();
        };
        mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes()))
    }

    /// Sends a message with its id, which is the same for each attempt. `attempts` is the number of earlier
    /// attempts.
    pub(super) async fn send(&self, id: &str, body: String, attempts: u32) -> DeliveryOutcome {
        let now = jiff::Timestamp::now();
        let timestamp = now.as_second();
        let request = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", self.sign(id, timestamp, &body))
            .body(body);
        let (why, asked) = match request.send().await {
            Ok(response) if response.status().is_success() => return DeliveryOutcome::Delivered,
            Ok(response) if response.status() == StatusCode::GONE => {
                return DeliveryOutcome::Abandoned("the receiver is gone (status 410)".to_owned());
            }
            Ok(response) => {
                (format!("status {}", response.status().as_u16()), retry_after(response.headers(), now))
            }
            // Without the URL, which may contain secrets.
            Err(error) => (root_cause(&error.without_url()), None),
        };
        if attempts + 1 >= self.max_attempts {
            return DeliveryOutcome::Abandoned(format!("{why}, after {} attempts", attempts + 1));
        }
        let own = FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(attempts));
        DeliveryOutcome::Retry(own.max(asked.unwrap_or_default()).min(MAX_BACKOFF), why)
    }
}

impl std::fmt::Debug for WebhookTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(secret: &str) -> WebhookTarget {
        let webhook = WebhookConfig {
            url: "http://127.0.0.1:9/hook?token=hidden".to_owned(),
            secret_env: "HOOK".to_owned(),
            ..WebhookConfig::default()
        };
        WebhookTarget::of(&webhook, |_| Some(secret.to_owned())).unwrap().unwrap()
    }

    #[test]
    fn message_signature_matches_standard_webhooks_example() {
        // The example of https://github.com/standard-webhooks/standard-webhooks.
        let target = target("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signature = target.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(!format!("{target:?}").contains("hidden"));
    }

    #[test]
    fn missing_or_invalid_secret_error_names_its_variable() {
        let webhook = WebhookConfig {
            url: "https://example.com".to_owned(),
            secret_env: "HOOK".to_owned(),
            ..WebhookConfig::default()
        };
        for (value, what) in [
            (None, "not set"),
            (Some(" "), "not set"),
            (Some("whsec_?"), "base64"),
            (Some("whsec_"), "empty"),
        ] {
            let error = WebhookTarget::of(&webhook, |_| value.map(str::to_owned)).unwrap_err();
            assert_eq!(error.code, "config.webhook");
            assert!(error.message.contains("HOOK") && error.message.contains(what), "{error}");
        }
        assert!(WebhookTarget::of(&webhook, |_| Some("any words".to_owned())).unwrap().is_some());
        assert!(WebhookTarget::of(&WebhookConfig::default(), |_| None).unwrap().is_none());
    }
}
