//! Runs that were unfinished in a backup which was restored. What such a run did after the backup was taken is not in its
//! journal: it may have written, been approved, or ended. So nothing of it continues until a person has seen to it, not
//! even a cancellation, which may undo writes.

use jiff::Timestamp;

use super::action::Action;
use super::event::{Event, Fault, Usage};
use super::state::RunState;

impl RunState {
    /// Whether the run waits until a person resumes or cancels it, whatever is decided about it meanwhile.
    pub fn is_quarantined(&self) -> bool {
        self.aside.is_some() && (self.cancel.is_none() || self.copied.is_some())
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

    /// The events that park the run after the backup of `copied` was restored; none if it has ended. It is taken over, so
    /// its epoch rises; a person is asked about each write that was in flight.
    #[must_use]
    pub fn restored_events(&self, copied: Timestamp) -> Vec<Event> {
        if self.queued.is_none() || self.status.is_terminal() {
            return Vec::new();
        }
        let mut after = self.clone();
        let mut events = vec![resumed(self.epoch)];
        events.iter().for_each(|event| after.apply_checked(event, after.at));
        events.extend(after.interrupted_questions().map(|(_, event)| event));
        events.push(put_aside(copied));
        events.iter().skip(1).for_each(|event| after.apply_checked(event, after.at));
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

/// The events that park a run whose journal this program cannot read, by the epoch of its last event. A program that can
/// read it finds it waiting.
#[must_use]
pub fn unreadable_restored_events(epoch: u32, copied: Timestamp) -> [Event; 2] {
    [resumed(epoch), put_aside(copied)]
}

fn resumed(epoch: u32) -> Event {
    Event::RunResumed { epoch: epoch.saturating_add(1), restart: true, catalogue: None }
}

fn put_aside(copied: Timestamp) -> Event {
    let message = format!(
        "the run was unfinished in the backup of {copied:.0} that was restored: what it did later is unknown, so nothing of it \
         continues until it is resumed or cancelled; check first what became of its writes"
    );
    Event::RunPutAside { error: Fault::new("run.restored", message), copied: Some(copied) }
}
