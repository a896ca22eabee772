//! The memory of a conversation as compressed bytes. Of ten thousand conversations that are awake, a few hundred have a request
//! at a time; the others wait for their users.
//!
//! **Invariant:** what is unpacked equals what was packed.

use super::{FactLedger, Memory};

/// The folds of a session's stream, packed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PackedHistory(Box<[u8]>);

impl PackedHistory {
    /// `None` if they cannot be written, which no event leads to.
    pub(crate) fn of(memory: &Memory, ledger: &FactLedger) -> Option<Self> {
        let plain = postcard::to_allocvec(&(memory, ledger)).ok()?;
        Some(Self(lz4_flex::block::compress_prepend_size(&plain).into_boxed_slice()))
    }

    /// The folds; `None` if they cannot be read, which never happens to what this process packed.
    pub(crate) fn unpacked(&self) -> Option<(Memory, FactLedger)> {
        let plain = lz4_flex::block::decompress_size_prepended(&self.0).ok()?;
        postcard::from_bytes(&plain).ok()
    }

    /// A history that cannot be read.
    #[cfg(test)]
    pub(crate) fn unreadable() -> Self {
        Self(Box::default())
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl std::fmt::Debug for PackedHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PackedHistory({} bytes)", self.bytes())
    }
}

/// Values as JSON inside other formats, for types that omit absent members.
pub(super) mod as_json {
    use serde::de::{DeserializeOwned, Error as _};
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::memory) fn serialize<T: Serialize, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serde_json::to_string(value).map_err(S::Error::custom)?.serialize(serializer)
    }

    pub(in crate::memory) fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        serde_json::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
