//! Earlier results: the last good result of a read in place of one that failed.

use jiff::{SignedDuration, Timestamp};

use super::event::{Effect, Outcome, RecalledResult};
use super::state::{CallStatus, RunState};
use crate::adapt::PolicyChoice;

impl RunState {
    /// Returns whether the result of an earlier call, recorded at `at`, may be used for `call` now: such a result is
    /// looked for, and it is not too old and not from the future.
    pub fn may_recall(&self, call: u32, at: Timestamp) -> bool {
        let Some(CallStatus::Failing { chosen: Some(PolicyChoice::Cached { max_age_s }), .. }) =
            self.calls.get(&call).map(|call| &call.status)
        else {
            return false;
        };
        let age = self.at.duration_since(at);
        (SignedDuration::ZERO..=SignedDuration::from_secs((*max_age_s).into())).contains(&age)
    }

    /// Returns whether a write has begun, so that earlier results of reads may be outdated.
    pub(super) fn has_begun_a_write(&self) -> bool {
        self.calls.values().any(|call| call.requested.effect == Effect::Write && call.attempts > 0)
    }

    /// Returns whether any result is one of an earlier run.
    pub fn has_earlier_result(&self) -> bool {
        self.calls.values().any(|call| call.stale_since.is_some())
    }

    /// Folds what was found. A write that has begun meanwhile makes it void.
    pub(super) fn recall(&mut self, call: u32, found: Option<&RecalledResult>) {
        let found = found.filter(|_| !self.has_begun_a_write());
        self.calls.change(call, |state| {
            let CallStatus::Failing { outcome, .. } = &state.status else { return };
            state.recalled = true;
            state.status = match found {
                Some(found) => {
                    let RecalledResult { result, say, whole, at, .. } = found.clone();
                    state.stale_since = Some(at);
                    CallStatus::Done { outcome: Outcome::Ok { result, say, whole } }
                }
                None => CallStatus::Failing { outcome: outcome.clone(), chosen: None },
            };
        });
        self.close_call(call);
    }
}
