//! `[approval]`: what requires approval, who may approve, and the webhook that is notified.

use std::collections::BTreeMap;
use std::time::Duration;

use data_encoding::BASE64;
use secrecy::SecretSlice;
use serde::{Deserialize, Serialize};

use crate::run::{ApprovalPolicy, ApprovalScope, TenantId};
use crate::setting::{SettingProblem, SettingsReview, redact_url};

/// Maximum time until an approval expires: ten years.
const MAX_EXPIRY_S: u64 = 10 * 366 * 86_400;

/// The prefix of a secret in the format of Standard Webhooks.
const SECRET_PREFIX: &str = "whsec_";

/// `[approval]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalConfig {
    /// Which plans require approval before their first step.
    pub plans: ApprovalScope,
    /// Which writes require approval, with their arguments.
    pub calls: ApprovalScope,
    /// Whether requesters may approve their own requests.
    pub by_oneself: bool,
    /// Seconds after which a pending approval counts as refused; 0 for never.
    pub expires_s: u64,
    /// The webhook that is notified of pending approvals.
    pub webhook: WebhookConfig,
    /// Overrides by tenant.
    pub tenants: BTreeMap<String, TenantApprovalConfig>,
}

/// Overrides for one tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantApprovalConfig {
    /// As `approval.plans`.
    pub plans: Option<ApprovalScope>,
    /// As `approval.calls`.
    pub calls: Option<ApprovalScope>,
    /// As `approval.by_oneself`.
    pub by_oneself: Option<bool>,
}

/// `[approval.webhook]`: a URL that is notified of every pending approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookConfig {
    /// The URL; empty for no webhook.
    pub url: String,
    /// The environment variable with the secret that signs the messages; required if `url` is set.
    pub secret_env: String,
    /// Timeout of one attempt, in milliseconds.
    pub timeout_ms: u64,
    /// Maximum number of attempts for one message; the time between them doubles.
    pub max_attempts: u32,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        let policy = ApprovalPolicy::default();
        Self {
            plans: policy.plans,
            calls: policy.calls,
            by_oneself: policy.by_oneself,
            expires_s: 0,
            webhook: WebhookConfig::default(),
            tenants: BTreeMap::new(),
        }
    }
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self { url: String::new(), secret_env: String::new(), timeout_ms: 10_000, max_attempts: 8 }
    }
}

impl WebhookConfig {
    /// The secret: `whsec_` and base64, or any other text as is. `get` looks up environment variables.
    ///
    /// # Errors
    /// What is wrong, with the name of the variable.
    pub fn secret(&self, get: impl Fn(&str) -> Option<String>) -> Result<SecretSlice<u8>, String> {
        let variable = &self.secret_env;
        let text = get(variable).map(|text| text.trim().to_owned()).unwrap_or_default();
        if text.is_empty() {
            return Err(format!(
                "the secret is read from the environment variable {variable}, which is not set"
            ));
        }
        let bytes = match text.strip_prefix(SECRET_PREFIX) {
            None => text.into_bytes(),
            Some(encoded) => BASE64.decode(encoded.as_bytes()).map_err(|_| {
                format!(
                    "the secret in {variable} begins with {SECRET_PREFIX} but the rest is not valid base64"
                )
            })?,
        };
        if bytes.is_empty() { Err(format!("the secret in {variable} is empty")) } else { Ok(bytes.into()) }
    }
}

impl ApprovalConfig {
    /// The policy that runs freeze unless their tenant overrides it.
    pub fn policy(&self) -> ApprovalPolicy {
        ApprovalPolicy { plans: self.plans, calls: self.calls, by_oneself: self.by_oneself }
    }

    /// How long an approval waits before it counts as refused; `None` for ever.
    pub fn expires(&self) -> Option<Duration> {
        (self.expires_s > 0).then(|| Duration::from_secs(self.expires_s))
    }

    /// The policy that runs of `tenant` freeze. `own` is `[tenants.NAME.approval]`, which goes before
    /// `[approval.tenants.NAME]`, where these settings were before.
    pub fn policy_of(&self, tenant: &TenantId, own: &TenantApprovalConfig) -> ApprovalPolicy {
        let policy = self.policy();
        let before = self.tenants.get(tenant.as_str()).cloned().unwrap_or_default();
        ApprovalPolicy {
            plans: own.plans.or(before.plans).unwrap_or(policy.plans),
            calls: own.calls.or(before.calls).unwrap_or(policy.calls),
            by_oneself: own.by_oneself.or(before.by_oneself).unwrap_or(policy.by_oneself),
        }
    }

    /// Validates these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        review.range("approval.expires_s", self.expires_s, 0..=MAX_EXPIRY_S);
        review.range("approval.webhook.timeout_ms", self.webhook.timeout_ms, 1..=60_000);
        review.range("approval.webhook.max_attempts", self.webhook.max_attempts, 1..=50);
        let url = &self.webhook.url;
        let right = reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !url.is_empty() && !right {
            let shown = redact_url(url);
            let message = format!("`approval.webhook.url` = `{shown}` is not a URL");
            review.add("approval.webhook.url", message, "write http://… or https://…");
        }
        if !url.is_empty() && self.webhook.secret_env.is_empty() {
            let message = "`approval.webhook.secret_env` is missing: messages are signed";
            let remedy = "name the environment variable that holds the secret";
            review.add("approval.webhook.secret_env", message, remedy);
        }
        for tenant in self.tenants.keys().filter(|tenant| TenantId::new(tenant).is_err()) {
            let message = format!("`{tenant}` is not a valid tenant name");
            review.add(format!("approval.tenants.{tenant}"), message, "use A-Z a-z 0-9 . _ : -");
        }
        review.into_problems()
    }
}
