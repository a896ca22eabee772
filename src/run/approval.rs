//! Approvals of a run: what a person has to decide, and the decisions.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

use super::event::{Effect, Event, Fault};
use super::key::exact_json;
use super::state::{CallState, CallStatus, RunState};
use crate::adapt::resolved_arguments;
use crate::plan::Step;

/// Recorded as the author of a refusal when nobody decided in time.
pub const EXPIRY: &str = "expiry";

/// The subject of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum ApprovalSubject {
    /// Whether a version of the plan may be executed.
    Plan {
        /// From 1.
        version: u32,
    },
    /// Whether a write may be executed with these arguments.
    Call {
        /// The call's ordinal.
        call: u32,
    },
    /// The outcome of a write whose outcome is unknown.
    Outcome {
        /// The call's ordinal.
        call: u32,
    },
}

/// An approval that is needed: why, and what exactly it covers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredApproval {
    /// SHA-256 in hex over everything that the approval covers: the plan's version and steps, or a call's
    /// arguments, and the definitions of the tools.
    pub hash: String,
    /// The reasons, for people.
    pub why: Vec<String>,
    /// The tools (`Scene.Tool`) with a hash of each definition, so that a changed tool can be named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, String>,
    /// Whether the run's requester decides, in words, whatever the settings say about approving one's own requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_user: bool,
    /// The lists of texts among a call's arguments that may be changed, each with what it may contain besides what it
    /// contains already.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lists: BTreeMap<String, Vec<String>>,
}

impl RequiredApproval {
    /// Checks that a call's arguments may be approved as `after`, where they were `before`. Where the approval is the
    /// user's, or declares lists, only these may change, and none of them becomes empty.
    ///
    /// # Errors
    /// What may not be so, for people.
    pub fn check_edit(&self, before: &Value, after: &Value) -> Result<(), String> {
        if !self.by_user && self.lists.is_empty() {
            return Ok(());
        }
        let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let (before, after) = (fields(before), fields(after));
        for name in before.keys().chain(after.keys()).filter(|name| before.get(*name) != after.get(*name)) {
            let Some(allowed) = self.lists.get(name) else {
                return Err(format!("{name} cannot be changed here"));
            };
            let elements = after.get(name).and_then(Value::as_array);
            let elements = elements.filter(|elements| !elements.is_empty());
            let elements =
                elements.ok_or_else(|| format!("{name} has to be a list with at least one text"))?;
            let was = before.get(name).and_then(Value::as_array);
            let is_known = |element: &Value| {
                let text = element.as_str();
                allowed.iter().any(|name| Some(name.as_str()) == text)
                    || was.is_some_and(|was| was.contains(element))
            };
            if let Some(unknown) = elements.iter().find(|element| !is_known(element)) {
                return Err(format!("{name} cannot contain {unknown}"));
            }
            if (1..elements.len()).any(|at| elements[..at].contains(&elements[at])) {
                return Err(format!("{name} names something twice"));
            }
        }
        Ok(())
    }
}

/// A person's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// Approved. With `hold`, the plan waits until it is released.
    Yes {
        /// Approve without beginning.
        #[serde(default)]
        hold: bool,
    },
    /// Refused.
    No,
    /// Approved with these arguments.
    Edited {
        /// The arguments, valid.
        arguments: Value,
        /// The call's key with them.
        key: String,
    },
    /// The write was done.
    Done,
    /// The write was not done.
    NotDone,
    /// The write is to be retried.
    Again,
}

/// New arguments for a call that waits for approval, written by a person other than the run's requester.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EditedCall {
    /// The arguments, valid.
    pub arguments: Value,
    /// The call's key with them.
    pub key: String,
    /// Who wrote them.
    pub by: String,
}

impl Decision {
    /// Its name, as clients send it.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// How a finished write is undone: by calling another tool of its scene with these arguments. A string that
/// begins with `/` is a JSON Pointer (RFC 6901) into `{"arguments": …, "result": …}` of the write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: BTreeMap<String, Value>,
    /// How it may be repeated.
    pub repeat: super::event::Repeat,
    /// Arguments that the tool requires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// The arguments that identify a call for deduplication; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identity: Vec<String>,
}

impl Undo {
    /// The arguments that undo a write with these arguments and this result. Arguments whose pointer finds
    /// nothing are omitted. `None` where a required one is missing: it is then unknown what to undo.
    pub fn arguments_for(&self, arguments: &Value, result: &Value) -> Option<Value> {
        let known = serde_json::json!({"arguments": arguments, "result": result});
        let found = resolved_arguments(&self.arguments, &known);
        self.required.iter().all(|name| found.contains_key(name)).then_some(Value::Object(found))
    }
}

/// A requested approval and its decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Approval {
    /// Its subject.
    pub matter: ApprovalSubject,
    /// Why, and what the approval covers.
    pub needed: RequiredApproval,
    /// The decision, and who made it.
    pub decided: Option<(Decision, String)>,
    /// Whether it is void because its subject has changed.
    pub lapsed: bool,
    /// When it was requested; 1970 if events were folded without their times.
    #[serde(skip)]
    pub requested: Timestamp,
    /// The user's reply, while a model is asked what it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<ListChangeWords>,
}

/// A user's reply to a question about lists that does not clearly say what to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListChangeWords {
    /// The user.
    pub by: String,
    /// The reply.
    pub text: String,
}

impl Approval {
    /// Returns whether a person can still decide it.
    pub fn is_open(&self) -> bool {
        self.decided.is_none() && !self.lapsed
    }
}

/// The lists that the user may change in words, while nothing else waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovableLists {
    /// The arguments to be approved.
    pub arguments: Value,
    /// The lists among them, each with what it may contain besides what it contains already.
    pub lists: BTreeMap<String, Vec<String>>,
}

/// The state of an approval: whether the plan or the call may proceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApprovalGate {
    Granted,
    /// The approval was not requested yet.
    Ask(RequiredApproval),
    /// A decision or a release is pending.
    Waits,
    /// A person refused it.
    Refused {
        by: String,
    },
}

impl RunState {
    /// The open approvals that nobody decided within `limit` of their request, at `now`. Questions about the outcome of
    /// a write are not among them: it can be reported at any time.
    pub fn overdue_approvals(&self, now: Timestamp, limit: Duration) -> Vec<u32> {
        let is_overdue = |approval: &Approval| {
            approval.is_open()
                && !matches!(approval.matter, ApprovalSubject::Outcome { .. })
                && Duration::try_from(now.duration_since(approval.requested))
                    .is_ok_and(|waited| waited > limit)
        };
        self.approvals
            .iter()
            .filter(|(_, approval)| is_overdue(approval))
            .map(|(number, _)| *number)
            .collect()
    }

    /// The ordinal of the next approval.
    pub fn next_approval(&self) -> u32 {
        self.approvals.keys().next_back().copied().unwrap_or(0) + 1
    }

    /// Returns whether the approval of its plan covers a call, because the plan showed it with exactly these
    /// arguments.
    pub fn is_shown(&self, call: &CallState) -> bool {
        let step = self.steps.get(&call.step).map(|step| &step.step);
        let requested = &call.requested;
        self.approval_of_step(call.step).is_some()
            && step.is_some_and(|step| {
                shows_call(step, &requested.tool, &requested.arguments, requested.occurrence)
            })
    }

    /// The approval of the plan in force that is open or was decided last.
    pub fn plan_approval(&self) -> Option<(u32, &Approval)> {
        self.approval_of_version(self.plan()?.version)
    }

    /// Returns whether the last approval that was requested about `matter` is for the user to decide.
    pub(super) fn is_asked_of_user(&self, matter: ApprovalSubject) -> bool {
        let last = self.approvals.values().rev().find(|approval| approval.matter == matter);
        last.is_some_and(|approval| approval.needed.by_user)
    }

    /// Returns whether a program made the call. A program continues after a refusal.
    pub(super) fn is_of_program(&self, matter: ApprovalSubject) -> bool {
        let ApprovalSubject::Call { call } = matter else { return false };
        self.calls.get(&call).is_some_and(|call| self.is_program(call.step))
    }

    /// The call that waits for the user's decision, with its approval, if the run waits for nothing else.
    pub fn only_question_to_user(&self) -> Option<(&CallState, &RequiredApproval)> {
        let open = |a: &&Approval| a.is_open() && !matches!(a.matter, ApprovalSubject::Outcome { .. });
        let mut open = self.approvals.values().filter(open);
        let (Some(only), None) = (open.next(), open.next()) else { return None };
        let ApprovalSubject::Call { call } = only.matter else { return None };
        self.calls.get(&call).filter(|_| only.needed.by_user).map(|call| (call, &only.needed))
    }

    /// The lists that the user may change, if the run waits for nothing but the question about them.
    pub fn only_lists_of_user(&self) -> Option<ApprovableLists> {
        let (call, needed) = self.only_question_to_user().filter(|(_, needed)| !needed.lists.is_empty())?;
        let arguments = call.requested.arguments.clone();
        Some(ApprovableLists { arguments, lists: needed.lists.clone() })
    }

    /// The granted approval of the plan that added `step`.
    pub fn approval_of_step(&self, step: u32) -> Option<&Approval> {
        let version = self.steps.get(&step).map_or(0, |step| step.version);
        self.approvals.values().find(|a| {
            a.matter == ApprovalSubject::Plan { version }
                && !a.lapsed
                && matches!(a.decided, Some((Decision::Yes { .. }, _)))
        })
    }

    /// Returns whether the plan in force was approved but not released yet.
    pub fn is_held(&self) -> bool {
        !self.released
            && !self.has_begun()
            && self
                .plan_approval()
                .is_some_and(|(_, a)| matches!(a.decided, Some((Decision::Yes { hold: true }, _))))
    }

    /// Returns whether a step of the plan in force has begun or ended.
    pub fn has_begun(&self) -> bool {
        self.has_begun_version(self.plans.len() as u32)
    }

    /// Decides whether a call may be executed. Its own decision counts first, then a refusal of an equal call, then
    /// the approval of a call with exactly the same arguments and tool. A decided question is not asked
    /// again.
    pub(super) fn call_gate(&self, number: u32) -> ApprovalGate {
        let Some(call) = self.calls.get(&number) else { return ApprovalGate::Granted };
        // A dry run makes its reads.
        let is_made = call.requested.effect == Effect::Read || !self.is_dry_run();
        let Some(needed) = call.requested.approval.as_ref().filter(|_| is_made) else {
            return ApprovalGate::Granted;
        };
        if let Some((_, approval)) = self.call_approvals().find(|(about, _)| *about == number) {
            return match &approval.decided {
                None => ApprovalGate::Waits,
                Some((Decision::No, by)) => ApprovalGate::Refused { by: by.clone() },
                Some(_) => ApprovalGate::Granted,
            };
        }
        let mut granted = false;
        for (about, approval) in self.call_approvals() {
            let Some(other) = self.calls.get(&about) else { continue };
            let same = other.scene == call.scene && other.requested.key == call.requested.key;
            match &approval.decided {
                Some((Decision::No, by)) if same => return ApprovalGate::Refused { by: by.clone() },
                Some((Decision::Yes { .. } | Decision::Edited { .. }, _)) => {
                    // An approval covers a single call, also of a repeatable tool.
                    let same = same && other.requested.occurrence == call.requested.occurrence;
                    granted |= same && approval.needed.tools == needed.tools && shows(other, call);
                }
                _ => {}
            }
        }
        if granted { ApprovalGate::Granted } else { ApprovalGate::Ask(needed.clone()) }
    }

    /// Returns whether `matter` is a write that has not begun, has no approval of its own, and may be covered by
    /// the approval of its plan or of an equal call.
    pub(super) fn is_covered_unasked(&self, matter: ApprovalSubject) -> bool {
        let ApprovalSubject::Call { call: number } = matter else { return false };
        let Some(call) = self.calls.get(&number) else { return false };
        call.status == CallStatus::Requested
            && call.requested.effect == Effect::Write
            && call.undoes.is_none()
            && (call.requested.approval.is_some() || self.approval_of_step(call.step).is_some())
            && !self.call_approvals().any(|(about, _)| about == number)
    }

    /// Returns whether the call's approval was requested and not decided yet.
    pub(super) fn is_awaiting_approval(&self, number: u32) -> bool {
        self.call_approvals().any(|(about, approval)| about == number && approval.decided.is_none())
    }

    fn call_approvals(&self) -> impl Iterator<Item = (u32, &Approval)> {
        self.approvals.values().filter(|a| !a.lapsed).filter_map(|approval| match approval.matter {
            ApprovalSubject::Call { call } => Some((call, approval)),
            _ => None,
        })
    }

    /// The event that requests an approval for `matter`.
    pub(super) fn request_approval(&self, matter: ApprovalSubject, needed: RequiredApproval) -> Event {
        Event::ApprovalRequired { approval: self.next_approval(), matter, needed }
    }

    /// Returns whether the run was ended by force because of `fault`: one of its events was invalid or could not be
    /// stored, although the journal accepts others.
    pub fn is_ended_by_force(&self, fault: &Fault) -> bool {
        !self.status.is_terminal() && matches!(fault.code.as_str(), "run.illegal_event" | "store.bad_record")
    }

    /// The events that end a run that cannot be continued, because of `error`. The outcomes of writes in
    /// flight will never be known, so people are asked about them together with the end.
    pub fn forced_end(&self, error: Fault) -> Vec<Event> {
        let mut after = self.clone();
        let mut events = Vec::new();
        while let Some(request) = after.unknown_write_request(true) {
            after.apply_checked(&request, after.at);
            events.push(request);
        }
        events.push(Event::RunFailed { error });
        events
    }

    /// The end of a run about which nothing can be decided any more, because of `error`. It names the writes whose outcome
    /// is unknown.
    pub(crate) fn lost_end(&self, mut error: Fault) -> Vec<Event> {
        for event in self.forced_end(error.clone()) {
            if let Event::ApprovalRequired { needed, .. } = event {
                error.message = format!("{}; {}", error.message, needed.why.join("; "));
            }
        }
        vec![Event::RunFailed { error }]
    }

    /// The approval request for a write whose outcome is unknown and that nobody was asked about yet. Where
    /// the run `ends`, this includes writes in flight and writes that were to be repeated.
    pub(super) fn unknown_write_request(&self, ends: bool) -> Option<Event> {
        let asked = |matter, a: &Approval| a.matter == matter && a.is_open();
        let is_asked =
            |call: u32| self.approvals.values().any(|a| asked(ApprovalSubject::Outcome { call }, a));
        let begun = self.calls.open().filter(|(_, call)| ends && self.may_be_done(call));
        let unresolved = self.calls.unknown_writes().chain(begun).filter(|(number, _)| !is_asked(*number));
        let (number, call) = unresolved.min_by_key(|(number, _)| *number)?;
        let or = if call.undoes.is_none() { ", or have it tried again" } else { "" };
        let (tool, scene) = (&call.requested.tool, &call.scene);
        let why = format!("nobody knows whether {tool} of {scene} was done: say whether it was{or}");
        Some(self.request_approval(
            ApprovalSubject::Outcome { call: number },
            RequiredApproval { why: vec![why], ..RequiredApproval::default() },
        ))
    }

    /// Returns whether the run waits for a person's decision.
    pub(super) fn waits_for_a_person(&self) -> bool {
        self.is_held()
            || self
                .approvals
                .values()
                .any(|a| a.is_open() && !matches!(a.matter, ApprovalSubject::Outcome { .. }))
    }

    /// Returns whether a question or a call is in flight, or a timer runs.
    pub fn has_work_in_flight(&self) -> bool {
        !self.open_asks.is_empty()
            || self.next_timer().is_some()
            || self.calls.open().any(|(_, call)| matches!(call.status, CallStatus::InFlight { .. }))
    }
}

/// Whether `call` has exactly the arguments that were shown for `shown`.
fn shows(shown: &CallState, call: &CallState) -> bool {
    exact_json(&shown.requested.arguments) == exact_json(&call.requested.arguments)
}

/// Returns whether a step shows more than `occurrence` calls of `tool` with exactly these arguments.
pub fn shows_call(step: &Step, tool: &str, arguments: &Value, occurrence: u32) -> bool {
    let known = exact_json(arguments);
    let prepared = step.prepared_calls.iter().filter(|prepared| prepared.tool == tool);
    let same = prepared.filter(|prepared| exact_json(&Value::Object(prepared.arguments.clone())) == known);
    same.count() > occurrence as usize
}
