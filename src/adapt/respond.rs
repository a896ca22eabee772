//! The response of predefined logic to a failed attempt of a call: one pure function of its facts.

use serde::{Deserialize, Serialize};

use super::backoff::backoff_ms;
use super::{Capabilities, ConsultationKind, FaultPolicy, PolicyAction, PolicyDefaults, ToolPolicies};
use crate::fault::FaultClass;

mod decision_options;
mod recovery_options;

pub use decision_options::{decision_id, decision_options, decision_refusal};
pub use recovery_options::{RecoveryAction, is_final, recovery_choices, recovery_options, recovery_refusal};

/// A retry makes sense only if about this much time is left for it afterwards, in milliseconds.
const MIN_ATTEMPT_MS: u64 = 1_000;

/// The fewest attempts of a write that its key makes safe to repeat.
const KEYED_ATTEMPTS: u32 = 2;

/// The permission to make the same call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    /// A read.
    Harmless,
    /// A write of which no attempt took effect, as its tool reports.
    NothingDone,
    /// A write of which no attempt took effect, as this process itself knows, or whose tool honours its idempotency
    /// key anyway.
    SurelyNothingDone,
    /// A write that may have taken effect, under an idempotency key that its tool honours.
    Keyed,
    /// A write that may have taken effect: a person decides.
    Unsafe,
}

/// The facts of a failed attempt.
#[derive(Debug, Clone, Copy)]
pub struct CallFailure<'a> {
    /// The kind of failure.
    pub class: FaultClass,
    /// Whether the same call may be made again.
    pub repetition: Repetition,
    /// Whether its tool is not called at present: it is switched off, or its breaker is open.
    pub is_barred: bool,
    /// How many attempts were made, without those that a restart interrupted.
    pub attempts: u32,
    /// How many retries the run has begun.
    pub retries_in_run: u32,
    /// How long the run has waited for retries, in milliseconds.
    pub waited_ms: u64,
    /// How long the server asks to wait, in milliseconds.
    pub asked_ms: Option<u64>,
    /// Milliseconds until the run's deadline.
    pub left_ms: u64,
    /// Whether an alternative was called in its place already, or it is called in place of another call.
    pub used_alternative: bool,
    /// The places of the declared alternatives that were not called in its place, in order.
    pub open_alternatives: &'a [u32],
    /// Whether the last good result was looked for already.
    pub used_cached: bool,
    /// Whether the run has begun a write, which may have changed what the call returns.
    pub wrote: bool,
    /// What the variable part of the delay depends on.
    pub seed: &'a str,
}

/// The choice about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum PolicyChoice {
    /// Another attempt.
    Retry {
        /// After so many milliseconds.
        delay_ms: u64,
    },
    /// An alternative tool is called in its place.
    Alternative {
        /// Its place among those that are declared, from 0.
        #[serde(default, skip_serializing_if = "is_first")]
        at: u32,
    },
    /// The last good result is used, if there is one.
    Cached {
        /// Its greatest age in seconds.
        max_age_s: u32,
    },
    /// The call is left out.
    Skip,
    /// The call has failed.
    Fail,
    /// A model is asked: predefined logic would give the call up.
    Consult {
        /// The consultation's ordinal.
        consultation: u32,
        /// What the model is asked; absent for a recovery and for a change of the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<ConsultationKind>,
        /// How many models vote; one model decides where it is 1.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        voters: u32,
    },
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
pub(crate) fn is_one(voters: &u32) -> bool {
    *voters == 1
}

impl PolicyChoice {
    /// Returns the action.
    pub fn action(self) -> PolicyAction {
        match self {
            PolicyChoice::Retry { .. } => PolicyAction::Retry,
            PolicyChoice::Alternative { .. } => PolicyAction::Alternative,
            PolicyChoice::Cached { .. } => PolicyAction::Cached,
            PolicyChoice::Skip => PolicyAction::Skip,
            PolicyChoice::Fail => PolicyAction::Fail,
            PolicyChoice::Consult { .. } => PolicyAction::Consult,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
pub(super) fn is_first(at: &u32) -> bool {
    *at == 0
}

/// An action that was considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeighedAction {
    /// The action.
    pub action: PolicyAction,
    /// Why it was not taken; absent for the one that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedAction>,
}

/// Why an action was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RefusedAction {
    /// The run's level and mode do not allow it.
    NotAllowed,
    /// The write may have taken effect, and nothing makes a repetition safe.
    NotRepeatable,
    /// The tool is switched off, or its breaker is open.
    Barred,
    /// The call had all its attempts.
    NoAttemptsLeft,
    /// The run had all its retries.
    RunLimit,
    /// The server asks for a longer wait than is allowed, or the run has waited enough.
    WaitTooLong,
    /// The run's deadline comes before.
    NoTimeLeft,
    /// The tool is not optional.
    NotOptional,
    /// The tool does not declare it.
    NotDeclared,
    /// That was tried already, or the call takes the place of another.
    Used,
    /// The run has begun a write, which may have changed what the call returns.
    VoidAfterWrite,
    /// The write may have taken effect, so it is neither left out nor done in another way.
    MayBeDone,
}

impl RefusedAction {
    /// The reason, for operators.
    pub fn reason(self) -> &'static str {
        match self {
            RefusedAction::NotAllowed => "the run's level and mode do not allow it",
            RefusedAction::NotRepeatable => {
                "the write may have taken effect, and no idempotency key makes a repetition safe"
            }
            RefusedAction::Barred => "the tool is switched off, or its breaker is open",
            RefusedAction::NoAttemptsLeft => "the call had all attempts that its policy allows",
            RefusedAction::RunLimit => "the run had all its retries (execution.policies.max_retries)",
            RefusedAction::WaitTooLong => {
                "the wait is longer than the policy allows, or the run has waited enough"
            }
            RefusedAction::NoTimeLeft => "the run's deadline comes before",
            RefusedAction::NotOptional => "the tool is not optional",
            RefusedAction::NotDeclared => "the tool does not declare it",
            RefusedAction::Used => "that was tried already, or the call takes the place of another",
            RefusedAction::VoidAfterWrite => "the run has begun a write, which may have changed the result",
            RefusedAction::MayBeDone => {
                "the write may have taken effect, so it is neither left out nor done in another way"
            }
        }
    }
}

/// Returns what predefined logic does about a failure, and what it considered before that. The last considered action is the
/// chosen one. No policy repeats a write that may have taken effect, unless its key makes that safe, and none does it in
/// another way.
pub fn respond(
    failure: &CallFailure<'_>,
    declared: Option<&ToolPolicies>,
    defaults: &PolicyDefaults,
    may: Capabilities,
) -> (PolicyChoice, Vec<WeighedAction>) {
    let policy = declared.and_then(|declared| declared.by_class.get(&failure.class));
    let mut weighed = Vec::new();
    let mut actions = actions(failure, policy);
    if failure.is_barred {
        add_alternative(&mut actions, declared);
    }
    for action in actions {
        let considered = match action {
            PolicyAction::Retry => retry(failure, policy, defaults, may, 0),
            PolicyAction::Alternative => alternative(failure, declared, may),
            PolicyAction::Cached => cached(failure, declared, may),
            PolicyAction::Skip => skip(failure, declared, may),
            // No tool can declare a consultation.
            PolicyAction::Fail | PolicyAction::Consult => Ok(PolicyChoice::Fail),
        };
        weighed.push(WeighedAction { action, refused: considered.err() });
        if let Ok(choice) = considered {
            return (choice, weighed);
        }
    }
    weighed.push(WeighedAction { action: PolicyAction::Fail, refused: None });
    (PolicyChoice::Fail, weighed)
}

/// The actions to consider, in order. A write under a key is repeated once whatever is declared: otherwise a person
/// would have to find out what it did.
fn actions(failure: &CallFailure<'_>, policy: Option<&FaultPolicy>) -> Vec<PolicyAction> {
    let declared = policy.and_then(|policy| policy.actions.clone());
    if failure.repetition == Repetition::Keyed {
        return match declared {
            Some(declared) if declared == [PolicyAction::Fail] => declared,
            Some(declared) if declared.contains(&PolicyAction::Retry) => declared,
            declared => std::iter::once(PolicyAction::Retry).chain(declared.unwrap_or_default()).collect(),
        };
    }
    declared.unwrap_or_else(|| {
        let sure = matches!(failure.repetition, Repetition::Harmless | Repetition::SurelyNothingDone);
        if sure && failure.class.is_transient() { vec![PolicyAction::Retry] } else { Vec::new() }
    })
}

/// If the tool is not called at present, its alternative is considered, whatever failure classes declare it.
fn add_alternative(actions: &mut Vec<PolicyAction>, declared: Option<&ToolPolicies>) {
    let has_alternative = declared.is_some_and(|declared| declared.alternative.is_some());
    if has_alternative && !actions.contains(&PolicyAction::Alternative) && *actions != [PolicyAction::Fail] {
        let at = usize::from(actions.first() == Some(&PolicyAction::Retry));
        actions.insert(at, PolicyAction::Alternative);
    }
}

/// Another attempt; `extra` allows more attempts than predefined logic makes.
fn retry(
    failure: &CallFailure<'_>,
    policy: Option<&FaultPolicy>,
    defaults: &PolicyDefaults,
    may: Capabilities,
    extra: u32,
) -> Result<PolicyChoice, RefusedAction> {
    let keyed = failure.repetition == Repetition::Keyed;
    let declared = policy.and_then(|policy| policy.attempts);
    let max = match (declared, keyed) {
        (Some(declared), true) => declared.max(KEYED_ATTEMPTS),
        (None, true) if !failure.class.is_transient() => KEYED_ATTEMPTS,
        (None, true) => defaults.attempts.max(KEYED_ATTEMPTS),
        (declared, false) => declared.unwrap_or(defaults.attempts),
    };
    let max_wait = policy.and_then(|policy| policy.max_wait_ms).unwrap_or(defaults.max_wait_ms);
    let base = policy.and_then(|policy| policy.backoff_ms).unwrap_or(defaults.backoff_ms);
    let delay_ms = backoff_ms(failure.attempts, base, failure.asked_ms, failure.seed);
    let first_keyed = keyed && failure.attempts < KEYED_ATTEMPTS;
    if !may.repeats {
        Err(RefusedAction::NotAllowed)
    } else if failure.repetition == Repetition::Unsafe {
        Err(RefusedAction::NotRepeatable)
    } else if failure.is_barred {
        Err(RefusedAction::Barred)
    } else if failure.attempts >= max.saturating_add(extra) {
        Err(RefusedAction::NoAttemptsLeft)
    } else if failure.retries_in_run >= defaults.max_retries && !first_keyed {
        Err(RefusedAction::RunLimit)
    } else if failure.asked_ms.unwrap_or(0) > max_wait
        || failure.waited_ms.saturating_add(delay_ms) > defaults.max_wait_per_run_ms
    {
        Err(RefusedAction::WaitTooLong)
    } else if delay_ms.saturating_add(MIN_ATTEMPT_MS) >= failure.left_ms {
        Err(RefusedAction::NoTimeLeft)
    } else {
        Ok(PolicyChoice::Retry { delay_ms })
    }
}

fn alternative(
    failure: &CallFailure<'_>,
    declared: Option<&ToolPolicies>,
    may: Capabilities,
) -> Result<PolicyChoice, RefusedAction> {
    if !may.alternatives {
        Err(RefusedAction::NotAllowed)
    } else if matches!(failure.repetition, Repetition::Keyed | Repetition::Unsafe) {
        Err(RefusedAction::MayBeDone)
    } else {
        let is_declared = declared.is_some_and(|declared| declared.alternative.is_some());
        match failure.open_alternatives.first() {
            None if failure.used_alternative || is_declared => Err(RefusedAction::Used),
            None => Err(RefusedAction::NotDeclared),
            Some(_) if failure.left_ms <= MIN_ATTEMPT_MS => Err(RefusedAction::NoTimeLeft),
            Some(at) => Ok(PolicyChoice::Alternative { at: *at }),
        }
    }
}

/// The last good result. It is not used if the back end denies the caller now.
fn cached(
    failure: &CallFailure<'_>,
    declared: Option<&ToolPolicies>,
    may: Capabilities,
) -> Result<PolicyChoice, RefusedAction> {
    if !may.cached || failure.repetition != Repetition::Harmless || failure.class == FaultClass::Denied {
        return Err(RefusedAction::NotAllowed);
    }
    if failure.used_cached {
        return Err(RefusedAction::Used);
    }
    if failure.wrote {
        return Err(RefusedAction::VoidAfterWrite);
    }
    let declared = declared.and_then(|declared| declared.cached).ok_or(RefusedAction::NotDeclared)?;
    Ok(PolicyChoice::Cached { max_age_s: declared.max_age_s })
}

fn skip(
    failure: &CallFailure<'_>,
    declared: Option<&ToolPolicies>,
    may: Capabilities,
) -> Result<PolicyChoice, RefusedAction> {
    if !may.skips {
        Err(RefusedAction::NotAllowed)
    } else if !declared.is_some_and(|declared| declared.optional) {
        Err(RefusedAction::NotOptional)
    } else if matches!(failure.repetition, Repetition::Keyed | Repetition::Unsafe) {
        Err(RefusedAction::MayBeDone)
    } else {
        Ok(PolicyChoice::Skip)
    }
}

#[cfg(test)]
mod tests;
