//! A recorded run as JSON Lines: one event per line, with its envelope.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::run::{Envelope, Event, Fault, SCHEMA, parse_event};

/// The fields of every line, whatever its event.
#[derive(Deserialize)]
struct EventHeader {
    seq: u64,
    schema: u16,
}

/// Parses a run written by [`write()`]. Blank lines are skipped.
///
/// # Errors
/// `replay.unreadable` names the line, also if a newer release wrote it; `replay.gap` names the missing
/// event; `replay.empty`; `replay.mixed` if the lines belong to several runs.
pub fn read(text: &str) -> Result<Vec<Envelope<Event>>, Fault> {
    let mut events: Vec<Envelope<Event>> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let unreadable = |why: String| Fault::new("replay.unreadable", format!("line {number}: {why}"));
        let head: EventHeader = serde_json::from_str(line).map_err(|error| unreadable(error.to_string()))?;
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
        let event = parse(line).map_err(|error| unreadable(error.to_string()))?;
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

fn parse(line: &str) -> serde_json::Result<Envelope<Event>> {
    let Envelope { seq, run, session, tenant, at, epoch, schema, body } =
        serde_json::from_str::<Envelope<Box<RawValue>>>(line)?;
    let body = parse_event(schema, body.get())?;
    Ok(Envelope { seq, run, session, tenant, at, epoch, schema, body })
}

/// Serialises a run's events, one per line, for [`read()`]. They contain all texts and results of the run.
pub fn write(events: &[Envelope<Event>]) -> String {
    let mut text = String::new();
    for event in events {
        // Serialising plain data cannot fail.
        text.push_str(&serde_json::to_string(event).unwrap_or_default());
        text.push('\n');
    }
    text
}
