//! Checks what a tool declares about its failures: a policy for each class of them, and whether it is optional.

use super::document::Located;
use super::draft::{CachedDraft, PolicyDraft};
use super::fault::FaultReport;
use crate::adapt::{CachedResult, FaultPolicy, PolicyAction, ToolPolicies};
use crate::fault::FaultClass;
use crate::nearest::{did_you_mean, name_list};
use crate::run::{Effect, Repeat};

/// The bounds of a policy's numbers.
const MAX_ATTEMPTS: u64 = 10;
const MAX_BACKOFF_MS: u64 = 60_000;
const MAX_WAIT_MS: u64 = 600_000;

/// The greatest age of a result, in seconds: 30 days.
const MAX_AGE_S: u64 = 30 * 24 * 60 * 60;

/// The tool whose policies are checked.
pub(super) struct PolicySubject<'a> {
    pub(super) tool: &'a str,
    pub(super) effect: Option<Effect>,
    pub(super) repeat: Repeat,
    pub(super) optional: Option<&'a Located<bool>>,
    /// The line of the declared alternative, if there is one.
    pub(super) alternative: Option<Option<u32>>,
    pub(super) cached: Option<&'a CachedDraft>,
    pub(super) volatile: bool,
}

/// The checked policies. Faults are reported.
pub(super) fn check(
    drafts: Vec<PolicyDraft>,
    subject: &PolicySubject<'_>,
    report: &FaultReport,
) -> ToolPolicies {
    let optional = subject.optional.is_some_and(|flag| flag.value);
    let cached = check_cached(subject, report);
    let mut policies = ToolPolicies { optional, cached, ..ToolPolicies::default() };
    for draft in drafts {
        let class = draft.class;
        policies.by_class.insert(class, check_policy(draft, subject, optional, report));
    }
    let uses = |action: PolicyAction| {
        policies.by_class.values().any(|policy| policy.actions.iter().flatten().any(|a| *a == action))
    };
    if let Some(line) = subject.alternative.filter(|_| !uses(PolicyAction::Alternative)) {
        let message = format!("{} has an alternative, and no policy calls it", subject.tool);
        let remedy = "add \"alternative\" to the `do` of a policy, such as [tools.policies.unavailable]";
        report.warning(line, "policy_unused", message, remedy);
    }
    if let Some(cached) = subject.cached.filter(|_| !uses(PolicyAction::Cached)) {
        let message = format!("the last result of {} may be used, and no policy uses it", subject.tool);
        let remedy = "add \"cached\" to the `do` of a policy, such as [tools.policies.unavailable]";
        report.warning(cached.line, "policy_unused", message, remedy);
    }
    if let Some(flag) = subject.optional.filter(|_| optional)
        && !uses(PolicyAction::Skip)
    {
        let message = format!("{} is optional, and no policy leaves it out", subject.tool);
        let remedy = "add \"skip\" to the `do` of a policy, such as [tools.policies.unavailable]";
        report.warning(flag.line, "policy_unused", message, remedy);
    }
    policies
}

/// The age up to which the last result may be used. Only a read whose result may be reused has one.
fn check_cached(subject: &PolicySubject<'_>, report: &FaultReport) -> Option<CachedResult> {
    let (draft, tool) = (subject.cached?, subject.tool);
    if subject.effect == Some(Effect::Write) || subject.volatile {
        let why = if subject.volatile { "is volatile" } else { "writes" };
        let message = format!("{tool} {why}: an earlier result does not stand for a new one");
        report.error(draft.line, "policy_cached", message, "remove [tools.cached]");
    }
    let age = bounded("max_age_s", draft.max_age_s.as_ref(), 1, MAX_AGE_S, report)?;
    u32::try_from(age).ok().map(|max_age_s| CachedResult { max_age_s })
}

fn check_policy(
    draft: PolicyDraft,
    subject: &PolicySubject<'_>,
    optional: bool,
    report: &FaultReport,
) -> FaultPolicy {
    let (tool, class) = (subject.tool, draft.class.name());
    let attempts = bounded("attempts", draft.attempts.as_ref(), 1, MAX_ATTEMPTS, report);
    let backoff_ms = bounded("backoff_ms", draft.backoff_ms.as_ref(), 0, MAX_BACKOFF_MS, report);
    let max_wait_ms = bounded("max_wait_ms", draft.max_wait_ms.as_ref(), 0, MAX_WAIT_MS, report);
    let line = draft.line;
    let actions = draft.actions.map(|words| check_actions(&words, tool, line, report));
    let declares = |action| actions.iter().flatten().any(|one| *one == action);
    if declares(PolicyAction::Skip) && !optional {
        let message = format!("{tool} may be skipped when it fails with {class}, and it is not optional");
        report.error(line, "policy_skip", message, "add optional = true to the tool, or remove \"skip\"");
    }
    if declares(PolicyAction::Cached) && subject.cached.is_none() {
        let message =
            format!("the last result of {tool} is to be used after {class}, and it does not declare that");
        report.error(
            line,
            "policy_cached",
            message,
            "add [tools.cached] with max_age_s, or remove \"cached\"",
        );
    }
    if declares(PolicyAction::Cached) && draft.class == FaultClass::Denied {
        let message = format!("what a back end denies now is not told from earlier: {tool} after denied");
        report.error(line, "policy_cached", message, "remove \"cached\"");
    }
    if declares(PolicyAction::Alternative) && subject.alternative.is_none() {
        let message = format!("{tool} is to be replaced when it fails with {class}, and has no alternative");
        let remedy = "add [tools.alternative] with `tool` and `arguments`, or remove \"alternative\"";
        report.error(line, "policy_alternative", message, remedy);
    }
    let retries = declares(PolicyAction::Retry);
    if retries && attempts == Some(1) {
        let message = format!("{tool} is to be retried after {class} with attempts = 1");
        let remedy = "use 2 or more: the first attempt counts, too";
        report.error(draft.attempts.as_ref().and_then(|given| given.line), "bound", message, remedy);
    }
    if retries && subject.effect == Some(Effect::Write) && subject.repeat == Repeat::Never {
        let message = format!("{tool} writes: it is retried after {class} only if it certainly did nothing");
        let remedy = "with a back end that honours idempotency keys, set repeat = \"key\"";
        report.warning(line, "policy_write", message, remedy);
    }
    if retries && matches!(draft.class, FaultClass::Denied | FaultClass::BadData) {
        let message = format!("{tool} is retried after {class}, which does not pass by itself");
        report.warning(line, "policy_retry", message, "remove \"retry\"");
    }
    let has_numbers = attempts.is_some() || backoff_ms.is_some() || max_wait_ms.is_some();
    let may_retry = retries || (actions.is_none() && draft.class.is_transient());
    if has_numbers && !may_retry {
        let message = format!("the policy of {tool} for {class} has numbers for retries, and does not retry");
        report.warning(line, "policy_unused", message, "add \"retry\" to its `do`, or remove the numbers");
    }
    let attempts = attempts.and_then(|attempts| u32::try_from(attempts).ok());
    FaultPolicy { actions, attempts, backoff_ms, max_wait_ms }
}

fn check_actions(
    words: &[Located<String>],
    tool: &str,
    line: Option<u32>,
    report: &FaultReport,
) -> Vec<PolicyAction> {
    let names = || PolicyAction::declarable().map(|action| action.name());
    let mut actions: Vec<PolicyAction> = Vec::new();
    if words.is_empty() {
        let message = format!("a policy of {tool} does nothing");
        let remedy = "write do = [\"fail\"], or remove `do` for what follows from the class";
        report.error(line, "policy_action", message, remedy);
    }
    for word in words {
        let wrong = |message: String, remedy: String| {
            report.error(word.line, "policy_action", message, remedy);
        };
        let Some(action) = PolicyAction::declarable().find(|action| action.name() == word.value) else {
            let hint = did_you_mean(&word.value, names());
            let message = format!("{:?} is not an action of a policy", word.value);
            let remedy = format!("write one of: {}; {hint}", name_list(names()));
            wrong(message, remedy.trim_end_matches([';', ' ']).to_owned());
            continue;
        };
        if actions.contains(&action) {
            wrong(format!("{:?} is listed twice", word.value), "remove one of them".to_owned());
        } else if actions.contains(&PolicyAction::Fail) {
            wrong(format!("{:?} comes after \"fail\"", word.value), "write \"fail\" last".to_owned());
        }
        actions.push(action);
    }
    actions
}

fn bounded(key: &str, given: Option<&Located<u64>>, min: u64, max: u64, report: &FaultReport) -> Option<u64> {
    let given = given?;
    if !(min..=max).contains(&given.value) {
        let message = format!("{key} = {} is out of bounds", given.value);
        report.error(given.line, "bound", message, format!("use {min} to {max}"));
    }
    Some(given.value)
}
