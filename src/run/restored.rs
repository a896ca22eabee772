//! Runs that were unfinished in a backup which was restored. What such a run did after the backup was taken is not in its
//! journal: it may have written, been approved, or ended. So nothing of it continues until a person has seen to it, not
//! even a cancellation, which may undo writes.

use jiff::Timestamp;

use super::action::Action;
use super::approval::{Approval, ApprovalSubject};
use super::event::{Effect, Event, Fault, Outcome, StatusChange, Usage};
use super::state::{CallState, CallStatus, RunState};

/// The code of runs that wait because they were restored from a backup.
pub const RESTORED: &str = "run.restored";

impl RunState {
    /// Returns whether the run waits until a person resumes or cancels it, whatever else is decided about it meanwhile.
    pub fn is_quarantined(&self) -> bool {
        self.aside.is_some() && (self.cancel.is_none() || self.copied.is_some())
    }

    /// The event after which lists show the run as waiting again, to be appended after `events` of a command or a
    /// lapse, if the run still waits until a person resumes or cancels it. Without it, lists would show the run as
    /// running once something was decided about it.
    #[must_use]
    pub fn parked_again(&self, events: &[Event]) -> Option<Event> {
        let is_shown_as_running = |event: &Event| event.facts().status == Some(StatusChange::Resume);
        if !self.is_quarantined() || !events.iter().any(is_shown_as_running) {
            return None;
        }
        let mut after = self.clone();
        events.iter().for_each(|event| after.apply_checked(event, after.at));
        let error = after.aside.clone().filter(|_| after.is_quarantined())?;
        Some(Event::RunPutAside { error, copied: after.copied })
    }

    /// The ends of the questions that were in flight when the run was taken over, each with what it may have cost.
    pub fn interrupted_questions(&self) -> impl Iterator<Item = (Usage, Event)> {
        self.unsettled_reservations().map(|(call, reserved)| {
            let attempt = reserved.interrupted_attempt();
            let (usage, attempts) = (attempt.usage, vec![attempt]);
            let error = Fault::new("llm.interrupted", "the process ended before the reply arrived");
            (usage, Event::ModelFailed { call, error, usage, millis: 0, attempts })
        })
    }

    /// The events that park the run after the backup of `copied` was restored; none if it has ended. It is taken over,
    /// so its epoch rises. Pending approvals are requested again once the run continues, and a person is asked about
    /// each write that was in flight.
    #[must_use]
    pub fn restored_events(&self, copied: Timestamp) -> Vec<Event> {
        if self.queued.is_none() || self.status.is_terminal() {
            return Vec::new();
        }
        let mut after = self.clone();
        let mut events = vec![resumed(self.epoch)];
        events.iter().for_each(|event| after.apply_checked(event, after.at));
        let interrupted: Vec<Event> = after.interrupted_questions().map(|(_, event)| event).collect();
        let lapses = self.approvals.iter().filter_map(|(number, approval)| lapse(*number, approval, copied));
        // It is parked last, because a lapsed approval shows a waiting run as running in lists.
        for event in interrupted.into_iter().chain(lapses).chain([put_aside(copied)]) {
            // It is parked even if today's rules do not allow an event of its journal.
            if matches!(event, Event::RunPutAside { .. }) || after.check(&event).is_ok() {
                after.apply_checked(&event, after.at);
                events.push(event);
            }
        }
        // Each question is about another write.
        for _ in 0..after.calls.len() {
            let Some(Action::Record { event: event @ Event::ApprovalRequired { .. } }) =
                after.next().first().cloned()
            else {
                break;
            };
            after.apply_checked(&event, after.at);
            events.push(event);
        }
        events
    }
}

/// An open approval may have been decided after the backup, and its write may have been done. So it is void, and is
/// requested again, with the reason, once the run continues.
fn lapse(number: u32, approval: &Approval, copied: Timestamp) -> Option<Event> {
    if !approval.is_open() || matches!(approval.matter, ApprovalSubject::Outcome { .. }) {
        return None;
    }
    let why = format!("restored from the backup of {copied:.0}: it may have been approved and done later");
    let mut needed = approval.needed.clone();
    needed.why.push(why.clone());
    let (matter, why) = (approval.matter, vec![why]);
    Some(Event::ApprovalLapsed { approval: number, matter, why, needed, edited: None, read: None })
}

/// The events that park a run whose journal this program cannot read, given the epoch of its last event. A program that
/// can read it finds the run waiting.
#[must_use]
pub fn unreadable_restored_events(epoch: u32, copied: Timestamp) -> [Event; 2] {
    [resumed(epoch), put_aside(copied)]
}

/// The writes of a run that its journal contains and that of a backup does not, or not with the same outcome, as
/// `Scene.Tool: outcome`, in their order.
#[must_use]
pub fn writes_since(backup: &RunState, later: &RunState) -> Vec<String> {
    let is_known = |number: &u32, call: &CallState| {
        let before = backup.calls.get(number);
        before.is_some_and(|before| {
            before.status == call.status
                && before.attempts == call.attempts
                && backup.is_undone(before) == later.is_undone(call)
        })
    };
    let begun =
        later.calls.iter().filter(|(_, call)| call.requested.effect == Effect::Write && call.attempts > 0);
    let writes = begun.filter(|(number, call)| !is_known(number, call));
    writes
        .map(|(_, call)| {
            let outcome = match &call.status {
                CallStatus::Done { outcome: Outcome::Ok { .. } } if later.is_undone(call) => "undone",
                CallStatus::Done { outcome: Outcome::Ok { .. } } => "done",
                CallStatus::Done { outcome: Outcome::Unknown { .. } } | CallStatus::InFlight { .. } => {
                    "unknown"
                }
                _ => "not done",
            };
            format!("{}.{}: {outcome}", call.scene, call.requested.tool)
        })
        .collect()
}

fn resumed(epoch: u32) -> Event {
    Event::RunResumed { epoch: epoch.saturating_add(1), restart: true, catalogue: None }
}

fn put_aside(copied: Timestamp) -> Event {
    let message = format!(
        "the run was unfinished in the backup of {copied:.0} that was restored: what it did later is unknown, so nothing of it \
         continues until it is resumed or cancelled; check first what became of its writes"
    );
    Event::RunPutAside { error: Fault::new(RESTORED, message), copied: Some(copied) }
}
