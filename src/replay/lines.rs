//! A recorded run as a file: one event a line, in JSON, with its envelope.

use serde::Deserialize;

use crate::run::{Envelope, Event, Fault, SCHEMA};

/// What every line has, whatever its event is.
#[derive(Deserialize)]
struct Head {
    seq: u64,
    schema: u16,
}

/// Reads a run that [`write()`] wrote. Blank lines are passed over.
///
/// # Errors
/// `replay.unreadable` names the line, also where it was written by a newer program; `replay.gap` names
/// the event that is missing; `replay.empty`; `replay.mixed` where the lines are of several runs.
pub fn read(text: &str) -> Result<Vec<Envelope<Event>>, Fault> {
    let mut events: Vec<Envelope<Event>> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let unreadable = |why: String| Fault::new("replay.unreadable", format!("line {number}: {why}"));
        let head: Head = serde_json::from_str(line).map_err(|error| unreadable(error.to_string()))?;
        if head.schema > SCHEMA {
            let (given, known) = (head.schema, SCHEMA);
            let why = format!("event {} has format {given}, this program knows up to {known}", head.seq);
            return Err(unreadable(why));
        }
        let expected = events.len() as u64 + 1;
        if head.seq != expected {
            let found = head.seq;
            return Err(Fault::new(
                "replay.gap",
                format!("line {number}: event {expected} is missing, event {found} is there"),
            ));
        }
        let event: Envelope<Event> =
            serde_json::from_str(line).map_err(|error| unreadable(error.to_string()))?;
        if event.run.is_none() || events.first().is_some_and(|first| first.run != event.run) {
            return Err(Fault::new(
                "replay.mixed",
                format!("line {number}: the event is not of the same run"),
            ));
        }
        events.push(event);
    }
    match events.is_empty() {
        true => Err(Fault::new("replay.empty", "there is no event")),
        false => Ok(events),
    }
}

/// A run's events, one a line, as [`read()`] takes them. They hold everything that was said and found.
pub fn write(events: &[Envelope<Event>]) -> String {
    let mut text = String::new();
    for event in events {
        // Plain data, which can always be written.
        text.push_str(&serde_json::to_string(event).unwrap_or_default());
        text.push('\n');
    }
    text
}
