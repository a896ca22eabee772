//! Calls of alternative tools: a substitute takes the place of a call that failed, and the two count as one act.
//!
//! A failed call whose alternative was called has [`CallState::replaced_by`], the substitute has
//! [`CallState::replaces`]. The outcome of the substitute counts for both while it succeeded, may have succeeded, or
//! waits for a yes; where it failed, too, predefined logic goes on with the failed call: another alternative may
//! be called then. An alternative counts as used once its tool was called in place of the call.

use super::confirmation::UNCONFIRMED;
use super::event::{Outcome, RequestedCall};
use super::state::{CallState, CallStatus, RunState};
use crate::adapt::PolicyChoice;

/// Maximum number of calls on the way from a call to the one whose outcome counts for it. A call whose outcome is
/// shared may have been replaced, and its substitute may share another outcome in turn.
const MAX_HOPS: usize = 8;

/// The fault code of a call that a person did not approve.
const REFUSED_BY_PERSON: &str = "approval.refused";

impl RunState {
    /// The call whose outcome counts for `call`: itself, the equal call whose outcome it shares, or the one that took its
    /// place.
    pub fn resolved(&self, call: u32) -> u32 {
        let mut at = call;
        for _ in 0..MAX_HOPS {
            let Some(state) = self.calls.get(&at) else { break };
            at = match (&state.status, self.effective_substitute(state)) {
                (CallStatus::Skipped { first }, _) => *first,
                (_, Some(by)) => by,
                _ => break,
            };
        }
        at
    }

    /// The substitute of `call` whose outcome counts for the call, too.
    pub fn effective_substitute(&self, call: &CallState) -> Option<u32> {
        call.replaced_by.filter(|by| self.calls.get(by).is_some_and(counts_for_both))
    }

    /// The call with this ordinal, and the substitute that was requested in its place, if any.
    pub fn with_substitute(&self, call: u32) -> impl Iterator<Item = (u32, &CallState)> {
        let own = self.calls.get(&call).map(|state| (call, state));
        let by = own.and_then(|(_, state)| state.replaced_by);
        own.into_iter().chain(by.and_then(|by| Some((by, self.calls.get(&by)?))))
    }

    /// The ordinal of the call whose place a call takes: its own, unless it is a substitute.
    pub(super) fn place(&self, call: u32) -> u32 {
        self.calls.get(&call).and_then(|state| state.replaces).unwrap_or(call)
    }

    /// Returns whether the result of a call has the same meaning as one of its own tool.
    pub(super) fn has_own_result(&self, number: u32) -> bool {
        let by = self.calls.get(&self.resolved(number));
        self.calls.get(&number).zip(by).is_some_and(|(call, by)| {
            let declared = call.requested.policies.iter().flat_map(|policies| policies.alternatives());
            let mut by_it = declared.filter(|alternative| alternative.tool == by.requested.tool);
            by.requested.tool == call.requested.tool || by_it.any(|alternative| alternative.same_result)
        })
    }

    /// The calls that were requested in place of this one, in order.
    fn substitutes(&self, number: u32) -> impl Iterator<Item = &CallState> {
        self.calls.range(number..).map(|(_, call)| call).filter(move |call| call.replaces == Some(number))
    }

    /// The places of the declared alternatives that were not called in place of the call. What takes the place of another
    /// call has none.
    pub(super) fn open_alternatives(&self, number: u32, call: &CallState) -> Vec<u32> {
        if call.replaces.is_some() {
            return Vec::new();
        }
        let declared = call.requested.policies.iter().flat_map(|policies| policies.alternatives());
        let is_used = |tool: &str| self.substitutes(number).any(|by| by.requested.tool == tool);
        (0..).zip(declared).filter(|(_, by)| !is_used(&by.tool)).map(|(at, _)| at).collect()
    }

    /// Returns whether a call that takes the place of this one has not ended.
    pub(super) fn has_open_substitute(&self, call: &CallState) -> bool {
        call.replaced_by.is_some_and(|by| self.calls.is_open(by))
    }

    /// Returns whether an alternative was called in place of the call, or it is called in place of another.
    pub(super) fn has_used_alternative(&self, number: u32, call: &CallState) -> bool {
        call.replaces.is_some() || self.substitutes(number).next().is_some()
    }

    /// Returns whether two calls are the same act: equal, or one takes the place of a call, or stands beside a substitute of it,
    /// that equals the other.
    pub(super) fn is_same_act(&self, a: &CallState, b: &CallState) -> bool {
        let theirs = self.act_keys(b);
        self.act_keys(a).iter().any(|key| theirs.contains(key))
    }

    /// The keys of a call, of the one whose place it takes, and of all that took that place.
    fn act_keys<'a>(&'a self, call: &'a CallState) -> Vec<&'a str> {
        let of_substitute = call.replaced_by.and_then(|by| self.calls.get(&by)?.replaces);
        let Some(place) = call.replaces.or(of_substitute) else { return vec![&call.requested.key] };
        let first = self.calls.get(&place).into_iter();
        first.chain(self.substitutes(place)).map(|call| call.requested.key.as_str()).collect()
    }

    /// Adds the call that takes the place of `call`, directly before it, so that it keeps its turn.
    pub(super) fn substitute(&mut self, call: u32, requested: &RequestedCall) {
        let number = requested.call;
        let changed = self.calls.change(call, |original| {
            original.replaced_by = Some(number);
            (original.step, original.scene.clone(), original.fallback)
        });
        let Some((step, scene, fallback)) = changed else { return };
        let follows_documents = self.follows_documents(requested);
        let substitute = CallState::requested(step, scene, requested.clone());
        let substitute = CallState { fallback, follows_documents, replaces: Some(call), ..substitute };
        self.calls.insert(number, substitute);
        self.step(step, |s| {
            s.calls.push(number);
            let at = s.open_calls.iter().position(|open| *open == call).unwrap_or(0);
            s.open_calls.insert(at, number);
        });
    }

    /// Handles the end of a substitute: the call that it replaces ends with it, or predefined logic decides about that
    /// call again. A call that has ended already stays so.
    pub(super) fn settle_replaced(&mut self, substitute: u32) {
        let Some(state) = self.calls.get(&substitute) else { return };
        let Some(original) = state.replaces else { return };
        let speaks = counts_for_both(state);
        self.calls.change(original, |call| {
            let CallStatus::Failing { outcome, chosen: Some(PolicyChoice::Alternative { .. }) } =
                &call.status
            else {
                return;
            };
            let outcome = outcome.clone();
            call.status = match speaks {
                true => CallStatus::Done { outcome },
                false => CallStatus::Failing { outcome, chosen: None },
            };
        });
        self.close_call(original);
    }

    /// The calls of a round in the order in which they are made: each substitute directly before the call that it
    /// replaces.
    pub(super) fn in_turn(&self, round: &[u32]) -> Vec<u32> {
        let mut all = Vec::with_capacity(round.len());
        for call in round {
            let by = self.calls.get(call).and_then(|state| state.replaced_by);
            all.extend(by.filter(|by| self.calls.is_open(*by) && !round.contains(by)));
            all.push(*call);
        }
        all
    }
}

/// Whether the outcome of a substitute also counts for the call that it replaces: it succeeded, may have succeeded, or
/// needs a person's approval.
fn counts_for_both(substitute: &CallState) -> bool {
    match &substitute.status {
        CallStatus::Done { outcome: Outcome::Ok { .. } | Outcome::Unknown { .. } }
        | CallStatus::Skipped { .. } => true,
        CallStatus::Done { outcome: Outcome::Refused { error } } => {
            [UNCONFIRMED, REFUSED_BY_PERSON].contains(&error.code.as_str())
        }
        _ => false,
    }
}
