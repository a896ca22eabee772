//! Calls of alternative tools: a substitute takes the place of a call that failed, and the two count as one act.
//!
//! A failed call whose alternative was called has [`CallState::replaced_by`], the substitute has
//! [`CallState::replaces`]. The substitute speaks for both while it succeeded, may have succeeded, or waits for a yes;
//! where it failed, too, the failed call speaks for itself and predefined logic goes on with it.

use super::confirmation::UNCONFIRMED;
use super::event::{Outcome, RequestedCall};
use super::state::{CallState, CallStatus, RunState};
use crate::adapt::PolicyChoice;

/// Most calls on the way from a call to the one whose outcome counts for it. A shared call may have been replaced, and
/// its substitute may share an outcome in turn.
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
            at = match (&state.status, self.stand_in(state)) {
                (CallStatus::Skipped { first }, _) => *first,
                (_, Some(by)) => by,
                _ => break,
            };
        }
        at
    }

    /// The call that speaks for `call`, since it took its place.
    pub fn stand_in(&self, call: &CallState) -> Option<u32> {
        call.replaced_by.filter(|by| self.calls.get(by).is_some_and(speaks_for_both))
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

    /// Whether the result of a call may be taken for one of its own tool.
    pub(super) fn has_own_result(&self, number: u32) -> bool {
        let by = self.calls.get(&self.resolved(number));
        self.calls.get(&number).is_some_and(|call| {
            let declared =
                call.requested.policies.as_ref().and_then(|policies| policies.alternative.as_ref());
            by.is_some_and(|by| by.requested.tool == call.requested.tool)
                || declared.is_some_and(|alternative| alternative.same_result)
        })
    }

    /// Whether an alternative was called in place of the call, or it is called in place of another.
    pub(super) fn has_used_alternative(&self, number: u32, call: &CallState) -> bool {
        call.replaces.is_some() || self.calls.range(number..).any(|(_, c)| c.replaces == Some(number))
    }

    /// Whether two calls are the same act: equal, or one takes the place of a call that equals the other.
    pub(super) fn is_same_act(&self, a: &CallState, b: &CallState) -> bool {
        let theirs = self.act_keys(b);
        self.act_keys(a).iter().any(|key| theirs.contains(key))
    }

    /// The keys of a call and of those that it takes the place of or that took its place.
    fn act_keys<'a>(&'a self, call: &'a CallState) -> Vec<&'a str> {
        let linked = [call.replaces, call.replaced_by].into_iter().flatten();
        let linked = linked.filter_map(|other| self.calls.get(&other));
        linked.chain([call]).map(|call| call.requested.key.as_str()).collect()
    }

    /// Adds the call that takes the place of `call`, directly before it, so that it keeps its turn.
    pub(super) fn substitute(&mut self, call: u32, requested: &RequestedCall) {
        let number = requested.call;
        let changed = self.calls.change(call, |original| {
            original.replaced_by = Some(number);
            (original.step, original.scene.clone(), original.fallback)
        });
        let Some((step, scene, fallback)) = changed else { return };
        let substitute = CallState::requested(step, scene, requested.clone());
        self.calls.insert(number, CallState { fallback, replaces: Some(call), ..substitute });
        self.step(step, |s| {
            s.calls.push(number);
            let at = s.open_calls.iter().position(|open| *open == call).unwrap_or(0);
            s.open_calls.insert(at, number);
        });
    }

    /// After the end of a substitute: the call whose place it took has ended with it, or predefined logic decides about
    /// it anew. A call that has ended already stays so.
    pub(super) fn settle_replaced(&mut self, substitute: u32) {
        let Some(state) = self.calls.get(&substitute) else { return };
        let Some(original) = state.replaces else { return };
        let speaks = speaks_for_both(state);
        self.calls.change(original, |call| {
            let CallStatus::Failing { outcome, chosen: Some(PolicyChoice::Alternative) } = &call.status
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

    /// The calls of a round in the order in which they are made: each substitute directly before the call whose place it
    /// takes.
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

/// Whether a substitute speaks for the call whose place it took: it was done, may have been, or needs a person's yes.
fn speaks_for_both(substitute: &CallState) -> bool {
    match &substitute.status {
        CallStatus::Done { outcome: Outcome::Ok { .. } | Outcome::Unknown { .. } }
        | CallStatus::Skipped { .. } => true,
        CallStatus::Done { outcome: Outcome::Refused { error } } => {
            [UNCONFIRMED, REFUSED_BY_PERSON].contains(&error.code.as_str())
        }
        _ => false,
    }
}
