//! Facts of a conversation: what was said, found, quoted or concluded in it, and where that comes from.
//!
//! Most facts are folded from the turns of a session's stream (`memory::Ledger`). Only what no turn holds is an event
//! of its own ([`StatedFact`]): what a person states or corrects, and what a document says.

use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{EnumString, IntoStaticStr};

use super::event::Effect;
use super::ids::RunId;

/// How a fact is known. Ordered by what it may supersede: a fact supersedes only facts of its own kind or of a lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// A model said it, and it has no source.
    Guess,
    /// A model concluded it from other values, which it names.
    Derived,
    /// A document says it, or a text inside a tool's result.
    Quoted,
    /// A tool's result contains it.
    Verified,
    /// The user said it.
    Given,
}

impl FactKind {
    /// All kinds, the most trusted first.
    pub const ALL: [FactKind; 5] =
        [FactKind::Given, FactKind::Verified, FactKind::Quoted, FactKind::Derived, FactKind::Guess];

    /// Its name in events, documents and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns whether the arguments of a write may come from such facts without a person's confirmation.
    pub fn may_ground(self) -> bool {
        matches!(self, FactKind::Given | FactKind::Verified)
    }

    /// The confidence in facts of this kind, in percent, where nothing more exact is known.
    pub fn confidence(self) -> u8 {
        match self {
            FactKind::Given | FactKind::Verified => 100,
            FactKind::Quoted => 80,
            FactKind::Derived => 50,
            FactKind::Guess => 20,
        }
    }
}

/// A part of a document, in bytes of its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DocumentSpan {
    /// The document's id.
    pub document: String,
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
}

/// Where a fact comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FactSource {
    /// The run in which it came up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub run: Option<RunId>,
    /// The step of the run's plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The call of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// The tool that was called, as `Scene.Tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The place in the call's result, as a JSON Pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The part of a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<DocumentSpan>,
    /// The user who said it, or for whom it was found; absent in journals of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A fact with an event of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedFact {
    /// How it is known. A person's fact is given, a document's is quoted.
    pub kind: FactKind,
    /// Its claim.
    pub claim: String,
    /// Where it comes from.
    #[serde(default)]
    pub source: FactSource,
    /// SHA-256 in hex of the text at the source.
    pub hash: String,
    /// The id of the fact that it takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<String>,
    /// Where that fact comes from: it is found by this if a later release gives it another id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<FactSource>,
    /// The confidence in it, in percent, where it is not that of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<u8>,
    /// The local time at which it was stated, to which days such as "tomorrow" refer.
    pub at: Zoned,
}

/// A fact that a run knows, as frozen when it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownFact {
    /// Its id in the conversation's ledger.
    pub id: String,
    /// How it is known.
    pub kind: FactKind,
    /// Its claim.
    pub claim: String,
    /// When it came up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// What the fact said whose place it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    /// Whether a write of its scene came later: it may have changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outdated: bool,
    /// What may be the source of a write's arguments; absent if nothing of it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<FactEvidence>,
}

/// The contribution of a fact to the sources of a write's arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FactEvidence {
    /// What the user said, without the days in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The days that the user meant, or the values that a tool found.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub values: Value,
    /// The key of the read that found them: a result of an equal call in the run takes their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<String>,
}

/// The origin of a run's turn that the turn does not say itself, and facts need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnOrigin {
    /// The frozen local time of the request.
    pub now: Zoned,
    /// The user who asked.
    pub user: String,
    /// Whether a model worded the answer.
    pub by_model: bool,
    /// Whether flows or steps without a tool made values, which the answer may contain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_made_values: bool,
    /// What summaries of documents say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<DocumentQuote>,
    /// The places of the turn's calls, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallOrigin>,
}

/// A sentence of a summary, and the place in a document that it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentQuote {
    /// The step that summarised.
    pub step: u32,
    /// The sentence.
    pub claim: String,
    /// The place.
    pub span: DocumentSpan,
    /// SHA-256 of the document's content, in hex.
    pub sha256: String,
}

/// The place of a turn's call in its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallOrigin {
    /// The step.
    pub step: u32,
    /// The call.
    pub call: u32,
    /// Whether it reads or writes.
    pub effect: Effect,
    /// The tool's own sentence about the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// Whether it was undone, or its result is not as its tool declares.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub void: bool,
    /// Whether its result is what documents say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quotes_documents: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_ordered_by_what_they_may_supersede() {
        let mut kinds = FactKind::ALL;
        kinds.sort();
        kinds.reverse();
        assert_eq!(kinds, FactKind::ALL);
        let grounding: Vec<FactKind> = kinds.into_iter().filter(|kind| kind.may_ground()).collect();
        assert_eq!(grounding, [FactKind::Given, FactKind::Verified]);
        assert_eq!("quoted".parse(), Ok(FactKind::Quoted));
    }
}
