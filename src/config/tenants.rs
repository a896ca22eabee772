//! Settings of one tenant that contradict each other or have no effect.

use super::Config;
use super::approval::TenantApprovalConfig;
use crate::adapt::{ExecutionLevel, ExecutionMode};
use crate::run::TenantId;
use crate::setting::{SettingProblem, SettingsReview};

/// Validates `[tenants]`, also against `[approval.tenants]`, where some of its settings were before.
pub(super) fn problems(config: &Config) -> Vec<SettingProblem> {
    let mut review = SettingsReview::default();
    for (name, tenant) in &config.tenants {
        if TenantId::new(name).is_err() {
            let message = format!("`{name}` is not a valid tenant name");
            review.add(format!("tenants.{name}"), message, "use A-Z a-z 0-9 . _ : -");
        }
        if let Some(before) = config.approval.tenants.get(name) {
            check_same(&mut review, name, &tenant.approval, before);
        }
    }
    review.into_problems()
}

fn check_same(
    review: &mut SettingsReview,
    name: &str,
    own: &TenantApprovalConfig,
    before: &TenantApprovalConfig,
) {
    let differ = [
        ("plans", own.plans.is_some() && before.plans.is_some() && own.plans != before.plans),
        ("calls", own.calls.is_some() && before.calls.is_some() && own.calls != before.calls),
        (
            "by_oneself",
            own.by_oneself.is_some() && before.by_oneself.is_some() && own.by_oneself != before.by_oneself,
        ),
    ];
    for (key, _) in differ.into_iter().filter(|(_, differ)| *differ) {
        let (new, old) = (format!("tenants.{name}.approval.{key}"), format!("approval.tenants.{name}.{key}"));
        let message = format!("`{new}` and `{old}` have different values");
        review.contradiction(&[&new, &old], message, format!("remove `{old}`"));
    }
}

/// The keys of tenants whose level or mode is above the configured one, with a message for each.
pub(super) fn without_effect(config: &Config) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let own = &config.execution;
    for (name, tenant) in &config.tenants {
        if tenant.level.is_some() && ExecutionLevel::narrowed(own.level, tenant.level) != tenant.level {
            let key = format!("tenants.{name}.level");
            found.push((key.clone(), format!("`{key}` is above `execution.level` and has no effect")));
        }
        if tenant.mode.is_some() && ExecutionMode::narrowed(own.mode, tenant.mode) != tenant.mode {
            let key = format!("tenants.{name}.mode");
            found.push((key.clone(), format!("`{key}` is above `execution.mode` and has no effect")));
        }
        if tenant.maker.is_some_and(|maker| config.planning.maker.narrowed(Some(maker)) != maker) {
            let key = format!("tenants.{name}.maker");
            found.push((key.clone(), format!("`{key}` is wider than `planning.maker` and has no effect")));
        }
    }
    found
}
