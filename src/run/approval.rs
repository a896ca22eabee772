//! What a person has to decide in a run, and what was decided.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::{Effect, Event, Fault, Outcome};
use super::key::exact_json;
use super::state::{CallState, CallStatus, RunState};
use crate::plan::Step;

/// What is put to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Matter {
    /// Whether a version of the plan may be carried out.
    Plan {
        /// From 1.
        version: u32,
    },
    /// Whether a write may be done with these arguments.
    Call {
        /// The call's ordinal.
        call: u32,
    },
    /// What became of a write whose outcome nobody knows.
    Outcome {
        /// The call's ordinal.
        call: u32,
    },
}

/// That somebody has to be asked, why, and what exactly is approved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needed {
    /// SHA-256 in hex over all that a yes covers: the plan's version and steps, or a call's arguments, and
    /// the definitions of the tools.
    pub hash: String,
    /// Why somebody is asked, for people.
    pub why: Vec<String>,
    /// The tools and a hash of each one's definition (`Scene.Tool`), so that it can be told which changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, String>,
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// It may be done. With `hold` the plan waits until somebody says to begin.
    Yes {
        /// Only approve.
        #[serde(default)]
        hold: bool,
    },
    /// It is not to be done.
    No,
    /// The call may be done with these arguments.
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
    /// The write is to be tried again.
    Again,
}

/// Other arguments of a call that waits for a person, by somebody who did not ask for the run.
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
        match self {
            Decision::Yes { .. } => "yes",
            Decision::No => "no",
            Decision::Edited { .. } => "edited",
            Decision::Done => "done",
            Decision::NotDone => "not_done",
            Decision::Again => "again",
        }
    }
}

/// How a finished write is undone: another tool of its scene, called with these arguments. A string that
/// begins with `/` is a JSON Pointer (RFC 6901) into `{"arguments": …, "result": …}` of the write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: BTreeMap<String, Value>,
    /// How it may be repeated.
    pub repeat: super::event::Repeat,
    /// Arguments without which it is not called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// The arguments that make two of its calls the same; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identity: Vec<String>,
}

impl Undo {
    /// The arguments that undo a write with these arguments and this result; what a pointer does not find
    /// is left out. `None` where that is something that is required: what is to be undone is not known then.
    pub fn arguments_for(&self, arguments: &Value, result: &Value) -> Option<Value> {
        let known = serde_json::json!({"arguments": arguments, "result": result});
        let found = self.arguments.iter().filter_map(|(name, value)| {
            let value = match value.as_str().filter(|text| text.starts_with('/')) {
                Some(pointer) => known.pointer(pointer).filter(|value| !value.is_null())?.clone(),
                None => value.clone(),
            };
            Some((name.clone(), value))
        });
        let found: serde_json::Map<String, Value> = found.collect();
        self.required.iter().all(|name| found.contains_key(name)).then_some(Value::Object(found))
    }
}

/// Something that was put to a person, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Approval {
    /// What about.
    pub matter: Matter,
    /// Why, and what a yes covers.
    pub needed: Needed,
    /// What was decided, and by whom.
    pub decided: Option<(Decision, String)>,
    /// It is not asked any more: what it was about has changed.
    pub lapsed: bool,
}

impl Approval {
    /// Whether a person can still decide it.
    pub fn is_open(&self) -> bool {
        self.decided.is_none() && !self.lapsed
    }
}

/// Whether something may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Permit {
    /// It may.
    Granted,
    /// Nobody was asked yet.
    Ask(Needed),
    /// Somebody was asked, or has to say when to begin.
    Waits,
    /// A person said no.
    Refused {
        /// Who.
        by: String,
    },
}

impl RunState {
    /// The ordinal of the next approval.
    pub fn next_approval(&self) -> u32 {
        self.approvals.keys().next_back().copied().unwrap_or(0) + 1
    }

    /// Whether a yes to its plan covers a call, since the plan showed it with just these arguments.
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
        let version = self.plan()?.version;
        let about = |approval: &Approval| approval.matter == Matter::Plan { version } && !approval.lapsed;
        self.approvals.iter().rev().find(|(_, a)| about(a)).map(|(n, a)| (*n, a))
    }

    /// The yes of a person to the plan that brought `step`.
    pub fn approval_of_step(&self, step: u32) -> Option<&Approval> {
        let version = self.steps.get(&step).map_or(0, |step| step.version);
        self.approvals.values().find(|a| {
            a.matter == Matter::Plan { version }
                && !a.lapsed
                && matches!(a.decided, Some((Decision::Yes { .. }, _)))
        })
    }

    /// Whether the plan in force was approved and somebody has yet to say that it begins.
    pub fn is_held(&self) -> bool {
        !self.released
            && !self.has_begun()
            && self
                .plan_approval()
                .is_some_and(|(_, a)| matches!(a.decided, Some((Decision::Yes { hold: true }, _))))
    }

    /// Whether a step of the plan in force has begun, or it ended.
    pub fn has_begun(&self) -> bool {
        let version = self.plans.len() as u32;
        self.steps.values().any(|s| s.version == version && !s.is_untouched())
    }

    /// Whether the plan in force may be carried out.
    pub(super) fn plan_permit(&self) -> Permit {
        let Some(made) = self.plan() else { return Permit::Granted };
        let Some(needed) = made.approval.as_ref().filter(|_| !self.is_dry_run()) else {
            return Permit::Granted;
        };
        match self.plan_approval().map(|(_, approval)| &approval.decided) {
            None => Permit::Ask(needed.clone()),
            Some(None) => Permit::Waits,
            Some(Some((Decision::No, by))) => Permit::Refused { by: by.clone() },
            Some(Some(_)) if self.is_held() => Permit::Waits,
            Some(Some(_)) => Permit::Granted,
        }
    }

    /// Whether a call may be done: what was said of this very call counts, then a no to an equal one, then
    /// a yes to one with the very arguments and tool that were shown. What was decided is not asked again.
    pub(super) fn call_permit(&self, number: u32) -> Permit {
        let Some(call) = self.calls.get(&number) else { return Permit::Granted };
        let Some(needed) = call.requested.approval.as_ref().filter(|_| !self.is_dry_run()) else {
            return Permit::Granted;
        };
        if let Some((_, own)) = self.call_approvals().find(|(about, _)| *about == number) {
            return match &own.decided {
                None => Permit::Waits,
                Some((Decision::No, by)) => Permit::Refused { by: by.clone() },
                Some(_) => Permit::Granted,
            };
        }
        let mut granted = false;
        for (about, approval) in self.call_approvals() {
            let Some(other) = self.calls.get(&about) else { continue };
            let same = other.scene == call.scene && other.requested.key == call.requested.key;
            match &approval.decided {
                Some((Decision::No, by)) if same => return Permit::Refused { by: by.clone() },
                Some((Decision::Yes { .. } | Decision::Edited { .. }, _)) => {
                    // A yes is one to a single act, also of a tool that may be repeated.
                    let same = same && other.requested.occurrence == call.requested.occurrence;
                    granted |= same && approval.needed.tools == needed.tools && shows(other, call);
                }
                _ => {}
            }
        }
        if granted { Permit::Granted } else { Permit::Ask(needed.clone()) }
    }

    /// Whether `matter` is a write that has not begun, about which nobody was asked by itself and which a
    /// yes to its plan, or to an equal call, may cover.
    pub(super) fn is_covered_unasked(&self, matter: Matter) -> bool {
        let Matter::Call { call: number } = matter else { return false };
        let Some(call) = self.calls.get(&number) else { return false };
        call.status == CallStatus::Requested
            && call.requested.effect == Effect::Write
            && call.undoes.is_none()
            && (call.requested.approval.is_some() || self.approval_of_step(call.step).is_some())
            && !self.call_approvals().any(|(about, _)| about == number)
    }

    /// Whether a person was asked about the call and has not decided.
    pub(super) fn is_put(&self, number: u32) -> bool {
        self.call_approvals().any(|(about, approval)| about == number && approval.decided.is_none())
    }

    fn call_approvals(&self) -> impl Iterator<Item = (u32, &Approval)> {
        self.approvals.values().filter(|a| !a.lapsed).filter_map(|approval| match approval.matter {
            Matter::Call { call } => Some((call, approval)),
            _ => None,
        })
    }

    /// The event that puts `matter` to a person.
    pub(super) fn put(&self, matter: Matter, needed: Needed) -> Event {
        Event::ApprovalRequired { approval: self.next_approval(), matter, needed }
    }

    /// The events by which a run is ended that nobody can carry on, for which `error` is why: what becomes
    /// of a write that is under way will not be heard of any more, so it is put to people with the end.
    pub fn forced_end(&self, error: Fault) -> Vec<Event> {
        let mut after = self.clone();
        let mut events = Vec::new();
        while let Some(put) = after.unresolved(true) {
            after.apply_checked(&put);
            events.push(put);
        }
        events.push(Event::RunFailed { error });
        events
    }

    /// A write whose outcome nobody knows and that is not put to a person. Where the run `ends`, also one
    /// that is under way, or was to be repeated and now never will be.
    pub(super) fn unresolved(&self, ends: bool) -> Option<Event> {
        let asked = |matter, a: &Approval| a.matter == matter && a.is_open();
        let put = |call: u32| self.approvals.values().any(|a| asked(Matter::Outcome { call }, a));
        let unknown = |call: &CallState| {
            call.requested.effect == Effect::Write
                && match call.status {
                    CallStatus::Done { outcome: Outcome::Unknown { .. } } => true,
                    CallStatus::Again { .. } | CallStatus::InFlight { .. } => ends,
                    _ => false,
                }
        };
        let (number, call) = self.calls.iter().find(|(number, call)| unknown(call) && !put(**number))?;
        let or = if call.undoes.is_none() { ", or have it tried again" } else { "" };
        let (tool, scene) = (&call.requested.tool, &call.scene);
        let why = format!("nobody knows whether {tool} of {scene} was done: say whether it was{or}");
        Some(self.put(Matter::Outcome { call: *number }, Needed { why: vec![why], ..Needed::default() }))
    }

    /// Whether anything that a person has to say holds the run up.
    pub(super) fn waits_for_a_person(&self) -> bool {
        self.is_held()
            || self.approvals.values().any(|a| a.is_open() && !matches!(a.matter, Matter::Outcome { .. }))
    }

    /// Whether a question or a call is under way.
    pub fn in_flight(&self) -> bool {
        self.asks.values().any(|ask| ask.status == super::state::AskStatus::InFlight)
            || self.calls.values().any(|call| matches!(call.status, CallStatus::InFlight { .. }))
    }
}

/// Whether what was shown of one call is all that there is of another.
fn shows(shown: &CallState, call: &CallState) -> bool {
    exact_json(&shown.requested.arguments) == exact_json(&call.requested.arguments)
}

/// Whether a step shows a call of `tool` with just these arguments, and more than `occurrence` of them.
pub fn shows_call(step: &Step, tool: &str, arguments: &Value, occurrence: u32) -> bool {
    let known = exact_json(arguments);
    let prepared = step.prepared_calls.iter().filter(|prepared| prepared.tool == tool);
    let same = prepared.filter(|prepared| exact_json(&Value::Object(prepared.arguments.clone())) == known);
    same.count() > occurrence as usize
}
