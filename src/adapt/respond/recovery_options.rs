//! The options that a model has where predefined logic would give up on a failed call. The same safety rules apply to
//! both.

use serde::{Deserialize, Serialize};

use super::{
    CallFailure, Capabilities, FaultPolicy, PolicyAction, PolicyChoice, PolicyDefaults, RefusedAction,
    Repetition, ToolPolicies, alternative, cached, decision_refusal, is_first, retry, skip,
};
use crate::fault::FaultClass;

/// How many attempts beyond those of predefined logic a recovery may choose.
const EXTRA_ATTEMPTS: u32 = 1;

/// An action that a recovery can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "action", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RecoveryAction {
    /// One more attempt of the same call.
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
    /// The call is left out: its tool is optional.
    Skip,
    /// The user is asked how to go on, and the step ends.
    AskUser,
    /// The call has failed, and what its step has not begun is not done.
    Abort,
}

impl RecoveryAction {
    /// Its id in the question: `retry`, `alternative`, `cached`, `skip`, `ask_user` or `abort`.
    pub fn id(self) -> &'static str {
        self.into()
    }
}

/// Returns what a recovery may choose where predefined logic would give up, in the order in which it is offered.
pub fn recovery_options(
    failure: &CallFailure<'_>,
    declared: Option<&ToolPolicies>,
    defaults: &PolicyDefaults,
    may: Capabilities,
) -> Vec<RecoveryAction> {
    let considered = |action| consider(action, failure, declared, defaults, may).ok();
    let again = considered(RecoveryAction::Retry { delay_ms: 0 });
    let passes = failure.class.is_transient();
    let others = [
        RecoveryAction::Alternative { at: 0 },
        RecoveryAction::Cached { max_age_s: 0 },
        RecoveryAction::Skip,
    ]
    .into_iter()
    .filter_map(considered);
    let first = again.filter(|_| passes).into_iter().chain(others).chain(again.filter(|_| !passes));
    first.chain(considered(RecoveryAction::AskUser)).chain([RecoveryAction::Abort]).collect()
}

/// How many of `options` are a choice besides giving up. To ask the user alone is one only where waiting would not help.
pub fn recovery_choices(options: &[RecoveryAction], class: FaultClass) -> usize {
    let asks = options.contains(&RecoveryAction::AskUser) && !class.is_transient();
    let ways =
        options.iter().filter(|o| !matches!(o, RecoveryAction::AskUser | RecoveryAction::Abort)).count();
    if ways == 0 { usize::from(asks) } else { ways }
}

/// Why `action` cannot be taken now, if so.
pub fn recovery_refusal(
    action: RecoveryAction,
    failure: &CallFailure<'_>,
    declared: Option<&ToolPolicies>,
    defaults: &PolicyDefaults,
    may: Capabilities,
) -> Option<RefusedAction> {
    match consider(action, failure, declared, defaults, may) {
        // Another one may be open.
        Ok(RecoveryAction::Alternative { .. }) => decision_refusal(action, failure, declared, may),
        considered => considered.err(),
    }
}

/// Returns whether the tool declares that failures of this class end with `fail`, so that nobody is asked.
pub fn is_final(class: FaultClass, declared: Option<&ToolPolicies>) -> bool {
    let policy = declared.and_then(|declared| declared.by_class.get(&class));
    policy
        .and_then(|policy| policy.actions.as_ref())
        .is_some_and(|all| all.last() == Some(&PolicyAction::Fail))
}

/// The action as it would be taken now, or why it cannot be.
fn consider(
    action: RecoveryAction,
    failure: &CallFailure<'_>,
    declared: Option<&ToolPolicies>,
    defaults: &PolicyDefaults,
    may: Capabilities,
) -> Result<RecoveryAction, RefusedAction> {
    let policy = declared.and_then(|declared| declared.by_class.get(&failure.class));
    // A denial is not circumvented, unless the tool declares that.
    let circumvents = |action| failure.class == FaultClass::Denied && !names(policy, action);
    match action {
        RecoveryAction::Retry { .. } => {
            again(failure, policy)?;
            match retry(failure, policy, defaults, may, EXTRA_ATTEMPTS)? {
                PolicyChoice::Retry { delay_ms } => Ok(RecoveryAction::Retry { delay_ms }),
                _ => Err(RefusedAction::NotAllowed),
            }
        }
        RecoveryAction::Alternative { .. } if circumvents(PolicyAction::Alternative) => {
            Err(RefusedAction::NotDeclared)
        }
        RecoveryAction::Cached { .. } => match cached(failure, declared, may)? {
            PolicyChoice::Cached { max_age_s } => Ok(RecoveryAction::Cached { max_age_s }),
            _ => Err(RefusedAction::NotAllowed),
        },
        RecoveryAction::Skip if circumvents(PolicyAction::Skip) => Err(RefusedAction::NotDeclared),
        RecoveryAction::Alternative { .. } => match alternative(failure, declared, may)? {
            PolicyChoice::Alternative { at } => Ok(RecoveryAction::Alternative { at }),
            _ => Err(RefusedAction::NotAllowed),
        },
        RecoveryAction::Skip => skip(failure, declared, may).map(|_| action),
        RecoveryAction::AskUser if matches!(failure.repetition, Repetition::Keyed | Repetition::Unsafe) => {
            Err(RefusedAction::MayBeDone)
        }
        RecoveryAction::AskUser | RecoveryAction::Abort => Ok(action),
    }
}

/// Whether one more attempt makes sense and is safe. A tool's own report that it did nothing is not enough, unless the
/// tool declares retries.
fn again(failure: &CallFailure<'_>, policy: Option<&FaultPolicy>) -> Result<(), RefusedAction> {
    let declared = names(policy, PolicyAction::Retry);
    let helps = declared || failure.class.is_transient() || failure.class == FaultClass::Other;
    match failure.repetition {
        Repetition::Unsafe => Err(RefusedAction::NotRepeatable),
        Repetition::NothingDone if !declared => Err(RefusedAction::NotRepeatable),
        _ if !helps => Err(RefusedAction::NotDeclared),
        _ => Ok(()),
    }
}

/// Whether the list of the class names `action`.
fn names(policy: Option<&FaultPolicy>, action: PolicyAction) -> bool {
    policy.and_then(|policy| policy.actions.as_ref()).is_some_and(|all| all.contains(&action))
}
