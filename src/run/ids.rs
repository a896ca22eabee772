//! Ids of runs, approvals, sessions and tenants.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The id of a run: a UUIDv7, generated without coordination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub Uuid);

impl RunId {
    /// When the run's request arrived, by its id; `None` if the id has no time.
    pub fn time(self) -> Option<jiff::Timestamp> {
        let (seconds, nanoseconds) = self.0.get_timestamp()?.to_unix();
        jiff::Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanoseconds).ok()?).ok()
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for RunId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(RunId)
    }
}

/// The public id of an approval: the run's id, a dot, and the approval's ordinal in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApprovalId {
    /// The run.
    pub run: RunId,
    /// From 1.
    pub approval: u32,
}

impl std::fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.run, self.approval)
    }
}

impl std::str::FromStr for ApprovalId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = || InvalidId { what: "approval id", given: text.chars().take(140).collect() };
        let (run, approval) = text.split_once('.').ok_or_else(invalid)?;
        let run = run.parse().map_err(|_| invalid())?;
        Ok(Self { run, approval: approval.parse().map_err(|_| invalid())? })
    }
}

impl Serialize for ApprovalId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ApprovalId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The name of one conversation: chosen by the client (1 to 128 characters from `A-Z a-z 0-9 . _ : -`) or
/// generated. Copies share one text: each event and row has one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SessionId(Arc<str>);

/// The tenant that is billed. All data is isolated by tenant. Copies share one text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TenantId(Arc<str>);

/// An id with characters or a length that are not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {given:?} is not allowed: use 1 to 128 characters from A-Z a-z 0-9 . _ : -")]
pub struct InvalidId {
    what: &'static str,
    given: String,
}

fn allowed(what: &'static str, given: &str) -> Result<Arc<str>, InvalidId> {
    let fits = (1..=128).contains(&given.len())
        && given.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b));
    if fits { Ok(given.into()) } else { Err(InvalidId { what, given: given.chars().take(140).collect() }) }
}

macro_rules! named {
    ($type:ident, $what:literal) => {
        impl $type {
            /// The name, if its characters and length are allowed.
            pub fn new(given: &str) -> Result<Self, InvalidId> {
                allowed($what, given).map(Self)
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let given = String::deserialize(deserializer)?;
                Self::new(&given).map_err(serde::de::Error::custom)
            }
        }
    };
}

named!(SessionId, "session id");

impl SessionId {
    /// Returns whether the id is a dot segment of a URL path. Clients normalise `..` away, so such a conversation
    /// could be neither read nor erased. Old journals may contain one.
    pub fn is_path_step(&self) -> bool {
        matches!(&*self.0, "." | "..")
    }
}

named!(TenantId, "tenant");
