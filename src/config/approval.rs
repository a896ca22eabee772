//! `[approval]`: what a person has to say yes to, who may, and who is told.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretSlice;
use serde::{Deserialize, Serialize};

use crate::run::{ApprovalPolicy, ApprovalScope, TenantId};
use crate::setting::{Review, Wrong, url_without_passwords};

/// Longest time that an approval waits: ten years.
const MAX_EXPIRY_S: u64 = 10 * 366 * 86_400;

/// What a secret in the form of Standard Webhooks begins with.
const SECRET_PREFIX: &str = "whsec_";

/// `[approval]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Approval {
    /// Which plans a person has to approve before their first step.
    pub plans: ApprovalScope,
    /// Which writes a person has to approve, with their arguments.
    pub calls: ApprovalScope,
    /// Whether who asked for something may approve it.
    pub by_oneself: bool,
    /// Seconds after which what nobody decided counts as refused; 0 for never.
    pub expires_s: u64,
    /// Who is told that something waits.
    pub webhook: Webhook,
    /// What is different for a tenant.
    pub tenants: BTreeMap<String, TenantApproval>,
}

/// What is different for one tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantApproval {
    /// As `approval.plans`.
    pub plans: Option<ApprovalScope>,
    /// As `approval.calls`.
    pub calls: Option<ApprovalScope>,
    /// As `approval.by_oneself`.
    pub by_oneself: Option<bool>,
}

/// `[approval.webhook]`: an address that is told of everything that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Webhook {
    /// Where; empty for nowhere.
    pub url: String,
    /// The environment variable with the secret that messages are signed with; needed with an address.
    pub secret_env: String,
    /// Milliseconds until an attempt counts as failed.
    pub timeout_ms: u64,
    /// Attempts for one message; the time between them doubles.
    pub max_attempts: u32,
}

impl Default for Approval {
    fn default() -> Self {
        let policy = ApprovalPolicy::default();
        Self {
            plans: policy.plans,
            calls: policy.calls,
            by_oneself: policy.by_oneself,
            expires_s: 0,
            webhook: Webhook::default(),
            tenants: BTreeMap::new(),
        }
    }
}

impl Default for Webhook {
    fn default() -> Self {
        Self { url: String::new(), secret_env: String::new(), timeout_ms: 10_000, max_attempts: 8 }
    }
}

impl Webhook {
    /// The secret, of which `get` looks up the environment variable: `whsec_` and base64, or any other
    /// text as it is.
    ///
    /// # Errors
    /// What is wrong, and with which variable.
    pub fn secret(&self, get: impl Fn(&str) -> Option<String>) -> Result<SecretSlice<u8>, String> {
        let variable = &self.secret_env;
        let text = get(variable).map(|text| text.trim().to_owned()).unwrap_or_default();
        if text.is_empty() {
            return Err(format!(
                "the secret is to be in the environment variable {variable}, which is not set"
            ));
        }
        let bytes = match text.strip_prefix(SECRET_PREFIX) {
            None => text.into_bytes(),
            Some(encoded) => STANDARD.decode(encoded).map_err(|_| {
                format!("the secret in {variable} begins with {SECRET_PREFIX} and is no base64 after it")
            })?,
        };
        if bytes.is_empty() { Err(format!("the secret in {variable} is empty")) } else { Ok(bytes.into()) }
    }
}

impl Approval {
    /// What runs freeze where nothing else is said for their tenant.
    pub fn policy(&self) -> ApprovalPolicy {
        ApprovalPolicy { plans: self.plans, calls: self.calls, by_oneself: self.by_oneself }
    }

    /// How long what is put to people waits for them, before it counts as refused; `None` for ever.
    pub fn expires(&self) -> Option<Duration> {
        (self.expires_s > 0).then(|| Duration::from_secs(self.expires_s))
    }

    /// What runs of `tenant` freeze.
    pub fn policy_of(&self, tenant: &TenantId) -> ApprovalPolicy {
        let policy = self.policy();
        match self.tenants.get(tenant.as_str()) {
            None => policy,
            Some(own) => ApprovalPolicy {
                plans: own.plans.unwrap_or(policy.plans),
                calls: own.calls.unwrap_or(policy.calls),
                by_oneself: own.by_oneself.unwrap_or(policy.by_oneself),
            },
        }
    }

    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<Wrong> {
        let mut review = Review::default();
        review.range("approval.expires_s", self.expires_s, 0..=MAX_EXPIRY_S);
        review.range("approval.webhook.timeout_ms", self.webhook.timeout_ms, 1..=60_000);
        review.range("approval.webhook.max_attempts", self.webhook.max_attempts, 1..=50);
        let url = &self.webhook.url;
        let right = reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !url.is_empty() && !right {
            let shown = url_without_passwords(url);
            let message = format!("`approval.webhook.url` = `{shown}` is no address");
            review.add("approval.webhook.url", message, "write http://… or https://…");
        }
        if !url.is_empty() && self.webhook.secret_env.is_empty() {
            let message = "`approval.webhook.secret_env` is missing: messages are signed";
            let remedy = "name the environment variable that holds the secret";
            review.add("approval.webhook.secret_env", message, remedy);
        }
        for tenant in self.tenants.keys().filter(|tenant| TenantId::new(tenant).is_err()) {
            let message = format!("`{tenant}` is no name of a tenant");
            review.add(format!("approval.tenants.{tenant}"), message, "use A-Z a-z 0-9 . _ : -");
        }
        review.end()
    }
}
