//! W3C trace context: the header `traceparent`, and the ids of a run's spans.
//!
//! All ids are derived, so that a run that is resumed by another process continues its trace, and what sends a request
//! knows the id of the span that is exported once the request has ended.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// The name of the header.
pub const TRACEPARENT: &str = "traceparent";

/// Length of a header of version 00.
const LENGTH: usize = 55;

/// The id of a trace. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// The id of a span. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId([u8; 8]);

/// The place of a request in a trace, as in the header `traceparent` of version 00.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace: TraceId,
    /// The span that the request belongs to.
    pub span: SpanId,
    /// Whether the span is recorded.
    pub is_sampled: bool,
}

/// What the header says is not a `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not a `traceparent` as the W3C defines it: 00-(32 hex digits)-(16 hex digits)-(2 hex digits)"
)]
pub struct InvalidTraceParent;

/// Which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceSampler {
    /// The share of them, from 0 to 1.
    pub ratio: f64,
}

/// The trace of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunTrace {
    /// Its id: that of the request's `traceparent`, or else the run's id.
    pub id: TraceId,
    /// The span of the client that sent the request, if it named one.
    pub parent: Option<SpanId>,
    /// Whether its spans are recorded.
    pub is_sampled: bool,
    /// The run's id.
    run: [u8; 16],
}

/// The subject of a span of a run. Equal keys of a run are the same span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKey {
    /// What an event of the run began.
    Event {
        /// The event's sequence number.
        seq: u64,
        /// What of several things that the event began.
        part: u32,
    },
    /// A question to a model.
    ModelCall {
        /// Its ordinal in the run.
        call: u32,
    },
    /// One attempt at a model.
    ModelAttempt {
        /// The question's ordinal.
        call: u32,
        /// Its place among the question's attempts, from 0.
        index: u32,
    },
    /// One attempt of a tool call.
    ToolCall {
        /// The call's ordinal.
        call: u32,
        /// From 1.
        attempt: u32,
    },
}

/// The place of a question to a model in the trace of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelCallTrace {
    /// The trace.
    pub run: RunTrace,
    /// The question's ordinal.
    pub call: u32,
}

impl ModelCallTrace {
    /// Returns what an attempt sends as `traceparent`; `index` is its place among the question's attempts, from 0.
    pub fn attempt(&self, index: usize) -> TraceParent {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        self.run.parent_of(SpanKey::ModelAttempt { call: self.call, index })
    }
}

impl TraceId {
    /// The id of these bytes; `None` if all are zero.
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; 16] {
        self.0
    }

    /// The last 56 bits, which are random in every trace id (W3C trace context level 2, and UUIDv7).
    fn randomness(&self) -> u64 {
        let [.., a, b, c, d, e, f, g] = self.0;
        u64::from_be_bytes([0, a, b, c, d, e, f, g])
    }
}

impl SpanId {
    /// The id of these bytes; `None` if all are zero.
    pub fn new(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; 8] {
        self.0
    }
}

impl TraceSampler {
    /// Returns whether a trace is recorded: the same answer wherever and whenever it is asked about the same trace.
    pub fn keeps(&self, trace: TraceId) -> bool {
        let whole = (1_u64 << 56) as f64;
        // 1 keeps every trace, 0 keeps none.
        (trace.randomness() as f64) >= (1.0 - self.ratio.clamp(0.0, 1.0)) * whole
    }
}

impl RunTrace {
    /// The trace of the run with this id, whose request had this `traceparent`. A trace that its client does not record
    /// is not recorded here.
    pub fn new(run: uuid::Uuid, incoming: Option<TraceParent>, sampler: TraceSampler) -> Self {
        let run = run.into_bytes();
        // The nil id belongs to no run.
        let own = TraceId::new(run).unwrap_or(TraceId([1; 16]));
        let id = incoming.map_or(own, |parent| parent.trace);
        Self {
            id,
            parent: incoming.map(|parent| parent.span),
            is_sampled: incoming.is_none_or(|parent| parent.is_sampled) && sampler.keeps(id),
            run,
        }
    }

    /// The id of a span.
    pub fn span(&self, key: SpanKey) -> SpanId {
        let (kind, first, second): (u8, u64, u32) = match key {
            SpanKey::Event { seq, part } => (0, seq, part),
            SpanKey::ModelCall { call } => (1, call.into(), 0),
            SpanKey::ModelAttempt { call, index } => (2, call.into(), index),
            SpanKey::ToolCall { call, attempt } => (3, call.into(), attempt),
        };
        let hash = Sha256::new()
            .chain_update(self.id.0)
            .chain_update(self.run)
            .chain_update([kind])
            .chain_update(first.to_be_bytes())
            .chain_update(second.to_be_bytes())
            .finalize();
        let mut id = [0; 8];
        id.copy_from_slice(&hash[..8]);
        SpanId::new(id).unwrap_or(SpanId([1; 8]))
    }

    /// Returns what a request that belongs to a span sends as `traceparent`.
    pub fn parent_of(&self, key: SpanKey) -> TraceParent {
        TraceParent { trace: self.id, span: self.span(key), is_sampled: self.is_sampled }
    }
}

/// Reads lower-case hex digits.
fn hex<const N: usize>(text: &str) -> Result<[u8; N], InvalidTraceParent> {
    let mut bytes = [0; N];
    let is_right = text.len() == 2 * N && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
    if !is_right {
        return Err(InvalidTraceParent);
    }
    data_encoding::HEXLOWER.decode_mut(text.as_bytes(), &mut bytes).map_err(|_| InvalidTraceParent)?;
    Ok(bytes)
}

impl FromStr for TraceParent {
    type Err = InvalidTraceParent;

    /// Reads a header as level 1 of the recommendation says: of a later version, what version 00 has.
    fn from_str(text: &str) -> Result<Self, InvalidTraceParent> {
        let Some(head) = text.get(..LENGTH) else { return Err(InvalidTraceParent) };
        let rest = &text[LENGTH..];
        let mut parts = head.split('-');
        let mut next = || parts.next().ok_or(InvalidTraceParent);
        let (version, trace, span, flags) = (next()?, next()?, next()?, next()?);
        let [version] = hex(version)?;
        let is_whole = if version == 0 { rest.is_empty() } else { rest.is_empty() || rest.starts_with('-') };
        if version == 0xff || !is_whole || parts.next().is_some() {
            return Err(InvalidTraceParent);
        }
        let [flags] = hex(flags)?;
        Ok(Self {
            trace: TraceId::new(hex(trace)?).ok_or(InvalidTraceParent)?,
            span: SpanId::new(hex(span)?).ok_or(InvalidTraceParent)?,
            is_sampled: flags & 1 == 1,
        })
    }
}

impl Display for TraceId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl Display for SpanId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl Display for TraceParent {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn all() -> TraceSampler {
        TraceSampler { ratio: 1.0 }
    }

    #[test]
    fn header_is_read_as_the_recommendation_says_and_anything_else_is_refused() {
        let read: TraceParent = HEADER.parse().unwrap();
        assert_eq!((read.to_string().as_str(), read.is_sampled), (HEADER, true));
        let unsampled: TraceParent = HEADER.replace("-01", "-02").parse().unwrap();
        assert!(!unsampled.is_sampled);
        for later in
            [HEADER.replacen("00", "cc", 1), format!("{}-what-follows", HEADER.replacen("00", "01", 1))]
        {
            assert_eq!(later.parse::<TraceParent>(), Ok(read), "{later}");
        }
        let zeros = |from: &str| HEADER.replace(from, &"0".repeat(from.len()));
        for bad in [
            String::new(),
            HEADER[..54].to_owned(),
            format!("{HEADER}-more"),
            format!("{HEADER} "),
            format!("{}.", HEADER.replacen("00", "01", 1)),
            HEADER.replacen("00", "ff", 1),
            HEADER.to_uppercase(),
            HEADER.replace('-', "_"),
            HEADER.replace("4bf92f", "4bf92g"),
            HEADER.replace("4bf92f", "+bf92f"),
            HEADER.replace("4bf92f", "é92f"),
            zeros("4bf92f3577b34da6a3ce929d0e0e4736"),
            zeros("00f067aa0ba902b7"),
        ] {
            assert_eq!(bad.parse::<TraceParent>(), Err(InvalidTraceParent), "{bad}");
        }
    }

    #[test]
    fn trace_is_that_of_the_client_or_else_has_the_id_of_the_run() {
        let run = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);
        let own = RunTrace::new(run, None, all());
        assert_eq!((own.id.to_string(), own.parent), (run.simple().to_string(), None));
        let parent: TraceParent = HEADER.parse().unwrap();
        let theirs = RunTrace::new(run, Some(parent), all());
        assert_eq!((theirs.id, theirs.parent, theirs.is_sampled), (parent.trace, Some(parent.span), true));
        let dropped = RunTrace::new(run, Some(TraceParent { is_sampled: false, ..parent }), all());
        assert!(!dropped.is_sampled, "a trace that its client does not record");
        let none = RunTrace::new(run, Some(parent), TraceSampler { ratio: 0.0 });
        assert!(!none.is_sampled, "the operator's share holds for clients' traces, too");
    }

    proptest! {
        #[test]
        fn no_text_that_is_read_differs_from_what_is_written(text in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}") {
            if let Ok(read) = text.parse::<TraceParent>() {
                let written = read.to_string();
                prop_assert_eq!(&written[3..52], &text[3..52]);
                prop_assert_eq!(written.parse::<TraceParent>(), Ok(read));
            }
        }

        #[test]
        fn spans_differ_by_run_and_by_what_they_are_about(run in 1_u128.., a in 0..50_u32, b in 0..50_u32) {
            let trace = RunTrace::new(Uuid::from_u128(run), HEADER.parse().ok(), all());
            let other = RunTrace::new(Uuid::from_u128(run ^ 2), HEADER.parse().ok(), all());
            let keys = [
                SpanKey::Event { seq: a.into(), part: b },
                SpanKey::ModelCall { call: a },
                SpanKey::ModelAttempt { call: a, index: b },
                SpanKey::ToolCall { call: a, attempt: b },
                SpanKey::ToolCall { call: a, attempt: b + 1 },
            ];
            let mut ids: Vec<SpanId> = keys.iter().flat_map(|key| [trace.span(*key), other.span(*key)]).collect();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), 2 * keys.len());
        }

        #[test]
        fn a_larger_share_keeps_what_a_smaller_one_keeps(run in 1_u128.., low in 0.0..1.0_f64, more in 0.0..1.0_f64) {
            let id = RunTrace::new(Uuid::from_u128(run), None, all()).id;
            let keeps = |ratio: f64| TraceSampler { ratio }.keeps(id);
            prop_assert!(keeps(1.0) && !keeps(0.0));
            prop_assert!(!keeps(low) || keeps(low + more));
        }
    }
}
