//! Splits a stream of server-sent events into events.

/// Longest event that is kept, in bytes.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamedEvent {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its data; the lines of several are joined.
    pub data: String,
}

/// Takes a stream apart as it arrives, in pieces of any size.
#[derive(Debug, Default)]
pub struct EventSplitter {
    bytes: Vec<u8>,
    event: StreamedEvent,
}

impl EventSplitter {
    /// The events that these bytes complete. `None` if an event is longer than 8 MiB: the stream is not read further.
    pub fn push(&mut self, bytes: &[u8]) -> Option<Vec<StreamedEvent>> {
        self.bytes.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut read = 0;
        while let Some(end) = self.bytes.get(read..)?.iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(self.bytes.get(read..read + end)?).into_owned();
            read += end + 1;
            events.extend(self.line(line.trim_end_matches('\r')));
        }
        self.bytes.drain(..read);
        (self.bytes.len() + self.event.data.len() <= MAX_EVENT_BYTES).then_some(events)
    }

    fn line(&mut self, line: &str) -> Option<StreamedEvent> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return (event != StreamedEvent::default()).then_some(event);
        }
        // A line that begins with a colon is a comment, which has no name.
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = ": ping\n\nid: 1\r\nevent: answer_delta\r\ndata: {\"text\":\"Città\"}\r\n\r\ndata: a\ndata: b\n\ndata: [DONE]\n\ndata: cut";

    #[test]
    fn events_are_complete_with_their_empty_line() {
        let events = EventSplitter::default().push(STREAM.as_bytes()).unwrap();
        let read: Vec<_> = events.iter().map(|event| (event.name.as_str(), event.data.as_str())).collect();
        assert_eq!(read, [("answer_delta", "{\"text\":\"Città\"}"), ("", "a\nb"), ("", "[DONE]")]);
    }

    #[test]
    fn endless_event_is_given_up() {
        let mut splitter = EventSplitter::default();
        let piece = vec![b'x'; MAX_EVENT_BYTES / 2];
        assert!(splitter.push(&piece).is_some());
        assert!(splitter.push(&piece).is_some());
        assert!(splitter.push(b"y").is_none());
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_events(size in 1_usize..40) {
            let mut splitter = EventSplitter::default();
            let events: Vec<_> =
                STREAM.as_bytes().chunks(size).flat_map(|piece| splitter.push(piece).unwrap()).collect();
            prop_assert_eq!(events, EventSplitter::default().push(STREAM.as_bytes()).unwrap());
        }
    }
}
