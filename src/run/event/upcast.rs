//! Reading events of earlier formats: each is changed step by step into the present one before it is parsed.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Changes the JSON of an event from one format into the next one. It gets the events of runs and of
/// conversations, and leaves alone what its change does not concern.
type Upcast = fn(&mut Value);

/// Entry `i` changes format `i + 1` into `i + 2`. Raising the format means adding one.
const UPCASTS: [Upcast; (SCHEMA - 1) as usize] = [];

/// The version of the event format that this program writes.
pub const SCHEMA: u16 = 1;

/// Parses the body of an event that was written in format `schema`, at most [`SCHEMA`].
///
/// # Errors
/// The body is not an event of that format.
pub fn parse_event<B: DeserializeOwned>(schema: u16, body: &str) -> serde_json::Result<B> {
    read_with(&UPCASTS, schema, body)
}

fn read_with<B: DeserializeOwned>(upcasts: &[Upcast], schema: u16, body: &str) -> serde_json::Result<B> {
    let due = upcasts.get(usize::from(schema.max(1)) - 1..).unwrap_or_default();
    if due.is_empty() {
        return serde_json::from_str(body);
    }
    let mut value = serde_json::from_str(body)?;
    for upcast in due {
        upcast(&mut value);
    }
    serde_json::from_value(value)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Map;

    use super::*;
    use crate::run::{Envelope, Event};

    /// A format in which what is now `call` was called `ordinal`.
    fn downcast(mut event: Value) -> Value {
        rename(&mut event, "call", "ordinal");
        event
    }

    fn to_second(event: &mut Value) {
        rename(event, "ordinal", "call");
    }

    /// A format in which a tag was called `kind`: the second change follows the first.
    fn to_third(event: &mut Value) {
        rename(event, "kind", "type");
    }

    fn rename(event: &mut Value, from: &str, to: &str) {
        let fields = event.as_object_mut().map(std::mem::take).unwrap_or_default();
        let renamed =
            |(name, value): (String, Value)| (if name == from { to.to_owned() } else { name }, value);
        *event = Value::Object(fields.into_iter().map(renamed).collect::<Map<_, _>>());
    }

    fn journals(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(journals(&path));
            } else if path.extension().is_some_and(|end| end == "jsonl") {
                found.push(std::fs::read_to_string(path).unwrap());
            }
        }
        found
    }

    #[test]
    fn events_of_stored_journals_are_read_from_earlier_formats() {
        let mut events = 0;
        for journal in journals(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replays")) {
            for line in journal.lines() {
                let event = serde_json::from_str::<Envelope<Event>>(line).unwrap().body;
                let written = serde_json::to_value(&event).unwrap();
                let mut first = downcast(written.clone());
                rename(&mut first, "type", "kind");
                let mut second = written.clone();
                rename(&mut second, "type", "kind");
                for (schema, body) in [(1, first), (2, second), (3, written)] {
                    let read = read_with::<Event>(&[to_second, to_third], schema, &body.to_string());
                    assert_eq!(read.unwrap(), event);
                }
                events += 1;
            }
        }
        assert!(events > 500, "{events}");
    }

    #[test]
    fn every_format_up_to_the_present_one_has_its_upcast() {
        assert_eq!(UPCASTS.len() + 1, usize::from(SCHEMA));
    }
}
