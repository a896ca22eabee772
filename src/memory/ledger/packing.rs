//! Facts in a compact form, for waiting conversations: hashes as bytes, times as numbers, absent members as one byte.

use std::borrow::Cow;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::LedgerFact;
use crate::run::{DocumentSpan, FactKind, FactSource, RunId};

/// A text that most likely consists of hexadecimal digits.
struct Hex<'a>(Cow<'a, str>);

impl<'a> Hex<'a> {
    fn of(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.as_bytes();
        let (kind, bytes) = match HEXLOWER.decode(text) {
            Ok(decoded) => (1, Cow::Owned(decoded)),
            Err(_) => (0, Cow::Borrowed(text)),
        };
        let mut written = Vec::with_capacity(bytes.len() + 1);
        written.push(kind);
        written.extend_from_slice(&bytes);
        serializer.serialize_bytes(&written)
    }
}

impl<'de> Deserialize<'de> for Hex<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match <&[u8]>::deserialize(deserializer)?.split_first() {
            Some((1, bytes)) => HEXLOWER.encode(bytes),
            Some((_, text)) => String::from_utf8(text.to_vec()).map_err(D::Error::custom)?,
            None => String::new(),
        };
        Ok(Self(Cow::Owned(text)))
    }
}

/// A text of hexadecimal digits, or another one.
pub(super) mod hex {
    use super::{Deserialize, Deserializer, Hex, Serialize, Serializer};

    pub(in crate::memory::ledger) fn serialize<S: Serializer>(
        text: &str,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        Hex::of(text).serialize(serializer)
    }

    pub(in crate::memory::ledger) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<String, D::Error> {
        Ok(Hex::deserialize(deserializer)?.0.into_owned())
    }
}

/// Keys of calls, with their runs.
pub(super) mod calls {
    use std::collections::VecDeque;

    use super::{Deserialize, Deserializer, Hex, RunId, Serializer};

    pub(in crate::memory::ledger) fn serialize<S: Serializer>(
        calls: &VecDeque<(Option<RunId>, String)>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(calls.iter().map(|(run, key)| (run, Hex::of(key))))
    }

    pub(in crate::memory::ledger) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<VecDeque<(Option<RunId>, String)>, D::Error> {
        let calls = Vec::<(Option<RunId>, Hex<'_>)>::deserialize(deserializer)?;
        Ok(calls.into_iter().map(|(run, key)| (run, key.0.into_owned())).collect())
    }
}

/// Hashes of words: random numbers of full length.
pub(super) mod terms {
    use super::{Deserialize, Deserializer, Serializer};

    pub(in crate::memory::ledger) fn serialize<S: Serializer>(
        terms: &[u32],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = terms.iter().flat_map(|term| term.to_le_bytes()).collect();
        serializer.serialize_bytes(&bytes)
    }

    pub(in crate::memory::ledger) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Box<[u32]>, D::Error> {
        let (terms, _) = <&[u8]>::deserialize(deserializer)?.as_chunks::<4>();
        Ok(terms.iter().map(|term| u32::from_le_bytes(*term)).collect())
    }
}

/// A fact, member by member.
#[derive(Serialize, Deserialize)]
struct PackedFact<'a> {
    id: Hex<'a>,
    claim: Cow<'a, str>,
    kind: FactKind,
    run: Option<RunId>,
    step: Option<u32>,
    call: Option<u32>,
    tool: Option<Cow<'a, str>>,
    pointer: Option<Cow<'a, str>>,
    document: Option<Cow<'a, DocumentSpan>>,
    by: Option<Cow<'a, str>>,
    hash: Hex<'a>,
    supersedes: Option<Hex<'a>>,
    is_unresolved: bool,
    superseded_by: Option<Hex<'a>>,
    confidence: u8,
    /// Nanoseconds since 1970.
    at: Option<i128>,
}

/// A fact without the names of its members.
pub(super) mod fact {
    use super::{
        Cow, Deserialize, Deserializer, FactSource, Hex, LedgerFact, PackedFact, Serialize, Serializer,
        Timestamp,
    };
    use serde::de::Error as _;

    pub(in crate::memory::ledger) fn serialize<S: Serializer>(
        fact: &LedgerFact,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        // All members by name: one that is added is packed, too.
        let LedgerFact {
            id,
            claim,
            kind,
            source,
            hash,
            supersedes,
            is_unresolved,
            superseded_by,
            confidence,
            at,
        } = fact;
        let FactSource { run, step, call, tool, pointer, document, by } = source;
        let packed = PackedFact {
            id: Hex::of(id),
            claim: claim.into(),
            kind: *kind,
            run: *run,
            step: *step,
            call: *call,
            tool: tool.as_deref().map(Cow::from),
            pointer: pointer.as_deref().map(Cow::from),
            document: document.as_ref().map(Cow::Borrowed),
            by: by.as_deref().map(Cow::from),
            hash: Hex::of(hash),
            supersedes: supersedes.as_deref().map(Hex::of),
            is_unresolved: *is_unresolved,
            superseded_by: superseded_by.as_deref().map(Hex::of),
            confidence: *confidence,
            at: at.map(Timestamp::as_nanosecond),
        };
        packed.serialize(serializer)
    }

    pub(in crate::memory::ledger) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<LedgerFact, D::Error> {
        let packed = PackedFact::deserialize(deserializer)?;
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        let hex = |text: Option<Hex<'_>>| text.map(|text| text.0.into_owned());
        let source = FactSource {
            run: packed.run,
            step: packed.step,
            call: packed.call,
            tool: owned(packed.tool),
            pointer: owned(packed.pointer),
            document: packed.document.map(Cow::into_owned),
            by: owned(packed.by),
        };
        Ok(LedgerFact {
            id: packed.id.0.into_owned(),
            claim: packed.claim.into_owned(),
            kind: packed.kind,
            source,
            hash: packed.hash.0.into_owned(),
            supersedes: hex(packed.supersedes),
            is_unresolved: packed.is_unresolved,
            superseded_by: hex(packed.superseded_by),
            confidence: packed.confidence,
            at: packed.at.map(Timestamp::from_nanosecond).transpose().map_err(D::Error::custom)?,
        })
    }
}
