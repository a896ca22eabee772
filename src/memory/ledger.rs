//! The facts ledger of a conversation: what was said, found, quoted and concluded in it, as a fold of its stream.
//!
//! **Invariants:**
//!
//! - A fact supersedes only a fact of its own kind or of a lower one: no guess takes the place of what was given.
//! - A later result of an equal read takes the place of the whole earlier one, so a value never parts from its unit.
//!   Whatever else contradicts stands side by side until a person decides.
//! - Bounded in number and bytes; what was dropped is counted. What was superseded goes first, then guesses, and what was
//!   given last.
//! - The id of a fact depends on its event and its content alone.

mod relevance;
#[cfg(test)]
mod tests;
mod turn_facts;

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::run::{Context, FactEvidence, FactKind, FactSource, SessionEvent, StatedFact, call_key};
use turn_facts::{FindingCall, FoundFact};

/// Most facts of one conversation.
pub const MAX_FACTS: usize = 2_000;
/// Most bytes of the facts of one conversation.
pub const MAX_FACT_BYTES: usize = 1024 * 1024;
/// Most characters of a claim.
pub const MAX_CLAIM_CHARS: usize = 400;
/// What an entry takes beside its texts, in bytes.
const ENTRY_BYTES: usize = 300;
/// Characters of an id.
const ID_CHARS: usize = 12;

/// A fact of a conversation's ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LedgerFact {
    /// Its id, 12 hexadecimal digits.
    pub id: String,
    /// What it says.
    pub claim: String,
    /// How it is known.
    pub kind: FactKind,
    /// Where it comes from.
    pub source: FactSource,
    /// SHA-256 in hex of the text or value at the source.
    pub hash: String,
    /// The fact that it takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<String>,
    /// The fact that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// The confidence in it, in percent.
    pub confidence: u8,
    /// When it came up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub at: Option<Timestamp>,
}

/// Why a fact cannot take the place of another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactRefusal {
    /// No fact has this id, or several begin with it.
    #[error("no single fact of the conversation has the id {0:?}; `proscenium facts` lists them")]
    Unknown(String),
    /// It was superseded before.
    #[error("the fact {id} was superseded by {by}: correct that one")]
    Superseded {
        /// The fact.
        id: String,
        /// The fact that took its place.
        by: String,
    },
    /// The fact is of a higher kind.
    #[error("a {new} fact cannot take the place of a {old} one")]
    Kind {
        /// The kind of the new fact.
        new: &'static str,
        /// The kind of the fact.
        old: &'static str,
    },
}

/// A fact with what the ledger needs of it.
#[derive(Debug, Clone, PartialEq)]
struct LedgerEntry {
    fact: LedgerFact,
    /// What it contributes to the sources of a write; `None` if nothing.
    evidence: Option<FactEvidence>,
    /// The call that found it.
    call: Option<FindingCall>,
    /// What the fact said whose place it takes.
    instead_of: Option<String>,
    /// Whether what took its place says something else.
    is_contradicted: bool,
    /// Whether it may be shown without sharing a word with the request.
    is_lasting: bool,
    /// Its words, and those of the request in which it came up.
    terms: Box<[u32]>,
    topic: Box<[u32]>,
}

impl LedgerEntry {
    fn bytes(&self) -> usize {
        let values = self.evidence.as_ref().map_or(0, |evidence| evidence.values.to_string().len());
        ENTRY_BYTES + 2 * self.fact.claim.len() + values + 4 * (self.terms.len() + self.topic.len())
    }

    fn is_current(&self) -> bool {
        self.fact.superseded_by.is_none()
    }
}

/// The facts of one conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FactLedger {
    /// Oldest first.
    entries: Vec<LedgerEntry>,
    bytes: usize,
    dropped: BTreeMap<FactKind, u64>,
}

impl FactLedger {
    /// The ledger after the events of a session's stream, with their sequence numbers.
    pub fn from_events<'a>(events: impl IntoIterator<Item = (u64, &'a SessionEvent)>) -> Self {
        let mut ledger = Self::default();
        for (seq, event) in events {
            ledger.apply(seq, event);
        }
        ledger
    }

    /// Applies the event with the sequence number `seq`.
    pub fn apply(&mut self, seq: u64, event: &SessionEvent) {
        match event {
            SessionEvent::TurnEnded { turn, origin, .. } => {
                let (found, left_out) = turn_facts::of(turn, origin.as_ref(), || self.trusted_claims());
                for (kind, count) in left_out {
                    *self.dropped.entry(kind).or_default() += count;
                }
                let topic = relevance::terms(&turn.request);
                for fact in found {
                    self.add_found(seq, fact, &topic);
                }
            }
            SessionEvent::Fact { fact } => self.add_stated(seq, fact),
            SessionEvent::SessionStarted {}
            | SessionEvent::Summarised { .. }
            | SessionEvent::SummaryFailed { .. } => {}
        }
        self.keep_bounds();
    }

    fn add_found(&mut self, seq: u64, found: FoundFact, topic: &[u32]) {
        let FoundFact { kind, claim, source, hash, at, evidence, call, is_lasting, words } = found;
        let id = fact_id(seq, kind, &source, &claim);
        let is_there = |entry: &LedgerEntry| {
            let fact = &entry.fact;
            let is_same = fact.kind == kind && fact.claim == claim && fact.source.by == source.by;
            match &call {
                // A resumed run has a turn for each of its ends.
                Some(_) => is_same && (fact.source.run, fact.source.call) == (source.run, source.call),
                None => is_same && entry.is_current(),
            }
        };
        if self.entries.iter().any(|entry| entry.fact.id == id || is_there(entry)) {
            return;
        }
        if let Some(read) = call.as_ref().filter(|call| call.is_read) {
            let is_earlier = |entry: &&mut LedgerEntry| {
                let is_equal = entry.call.as_ref().is_some_and(|call| call.is_read && call.key == read.key);
                let (old, new) = (&entry.fact.source, &source);
                // An older run that ended late may have read before this one.
                let is_before = old.run <= new.run && (old.run, old.call) != (new.run, new.call);
                is_equal && entry.is_current() && is_before
            };
            for entry in self.entries.iter_mut().filter(is_earlier) {
                entry.fact.superseded_by = Some(id.clone());
                entry.is_contradicted = entry.call.as_ref().is_none_or(|call| call.result != read.result);
            }
        }
        let terms = relevance::terms(&format!("{claim} {words}"));
        let (supersedes, superseded_by, confidence) = (None, None, kind.confidence());
        let fact = LedgerFact { id, claim, kind, source, hash, supersedes, superseded_by, confidence, at };
        let (topic, instead_of, is_contradicted) = (topic.into(), None, false);
        self.push(LedgerEntry {
            fact,
            evidence,
            call,
            instead_of,
            is_contradicted,
            is_lasting,
            terms,
            topic,
        });
    }

    fn add_stated(&mut self, seq: u64, stated: &StatedFact) {
        let kind = stated.kind;
        let said = turn_facts::said(&stated.claim, stated.at.date());
        let id = Self::stated_id(seq, stated);
        let may = |entry: &&mut LedgerEntry| {
            let is_meant = stated.supersedes.as_ref() == Some(&entry.fact.id);
            is_meant && kind >= entry.fact.kind && entry.is_current()
        };
        let mut replaced = None;
        if let Some(target) = self.entries.iter_mut().find(may) {
            target.fact.superseded_by = Some(id.clone());
            target.is_contradicted = true;
            replaced = Some((target.fact.id.clone(), target.fact.claim.clone()));
        }
        let (supersedes, instead_of) = replaced.unzip();
        let terms =
            relevance::terms(&format!("{} {}", said.claim, instead_of.as_deref().unwrap_or_default()));
        let evidence = said.evidence.filter(|_| kind == FactKind::Given);
        let confidence = stated.confidence.unwrap_or(kind.confidence()).min(100);
        let (source, hash, at) = (stated.source.clone(), stated.hash.clone(), Some(stated.at.timestamp()));
        let (claim, superseded_by) = (said.claim, None);
        let fact = LedgerFact { id, claim, kind, source, hash, supersedes, superseded_by, confidence, at };
        let (is_lasting, is_contradicted) = (kind == FactKind::Given, false);
        let (call, topic) = (None, Box::default());
        self.push(LedgerEntry {
            fact,
            evidence,
            call,
            instead_of,
            is_contradicted,
            is_lasting,
            terms,
            topic,
        });
    }

    /// The id of a stated fact whose event has the sequence number `seq`.
    pub fn stated_id(seq: u64, stated: &StatedFact) -> String {
        let claim = turn_facts::said(&stated.claim, stated.at.date()).claim;
        fact_id(seq, stated.kind, &stated.source, &claim)
    }

    fn push(&mut self, entry: LedgerEntry) {
        self.bytes += entry.bytes();
        self.entries.push(entry);
    }

    /// Drops what matters least until the bounds hold.
    fn keep_bounds(&mut self) {
        while self.entries.len() > MAX_FACTS || self.bytes > MAX_FACT_BYTES {
            let worth = |(at, entry): &(usize, &LedgerEntry)| (entry.is_current(), entry.fact.kind, *at);
            let Some((at, _)) = self.entries.iter().enumerate().min_by_key(worth) else { return };
            let entry = self.entries.remove(at);
            self.bytes -= entry.bytes();
            *self.dropped.entry(entry.fact.kind).or_default() += 1;
        }
    }

    /// The claims that a model's sentence may rest on.
    fn trusted_claims(&self) -> String {
        let trusted = self.entries.iter().filter(|entry| entry.fact.kind >= FactKind::Quoted);
        trusted.map(|entry| entry.fact.claim.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// All facts, the oldest first.
    pub fn facts(&self) -> impl ExactSizeIterator<Item = &LedgerFact> {
        self.entries.iter().map(|entry| &entry.fact)
    }

    /// How many facts the bounds have dropped, by kind.
    pub fn dropped(&self) -> &BTreeMap<FactKind, u64> {
        &self.dropped
    }

    /// The fact with this id, or the only one whose id begins with it.
    ///
    /// # Errors
    /// [`FactRefusal::Unknown`] if there is none, or several.
    pub fn find(&self, id: &str) -> Result<&LedgerFact, FactRefusal> {
        let mut found = self.facts().filter(|fact| !id.is_empty() && fact.id.starts_with(id));
        match (found.next(), found.next()) {
            (Some(fact), None) => Ok(fact),
            _ => Err(FactRefusal::Unknown(id.chars().take(64).collect())),
        }
    }

    /// The fact that a new one of the kind `new` may take the place of, by its id or the beginning of it.
    ///
    /// # Errors
    /// If there is none, if it was superseded, or if its kind is higher.
    pub fn correctable(&self, id: &str, new: FactKind) -> Result<&LedgerFact, FactRefusal> {
        let fact = self.find(id)?;
        match &fact.superseded_by {
            Some(by) => Err(FactRefusal::Superseded { id: fact.id.clone(), by: by.clone() }),
            None if new < fact.kind => Err(FactRefusal::Kind { new: new.name(), old: fact.kind.name() }),
            None => Ok(fact),
        }
    }

    /// Adds to the context of a run that starts now what it should know of the facts: those that the request of `user` is
    /// about, in at most `budget` tokens, without those that the context's turns show. Results of its turns that were
    /// superseded are marked as stale.
    pub fn inform(&self, context: &mut Context, request: &str, user: &str, budget: usize) {
        if budget == 0 {
            return;
        }
        context.facts = relevance::select(&self.entries, context, request, user, budget);
        for turn in &mut context.turns {
            for call in turn.calls.iter_mut().filter(|call| !call.stale) {
                let key = call_key(&call.scene, &call.tool, &call.arguments, &[]);
                let is_of_call = |entry: &LedgerEntry| {
                    entry.fact.source.run == turn.run && entry.call.as_ref().is_some_and(|of| of.key == key)
                };
                call.stale = self.entries.iter().any(|entry| entry.is_contradicted && is_of_call(entry));
            }
        }
    }
}

/// The id of a fact: by its event, kind, source and claim.
fn fact_id(seq: u64, kind: FactKind, source: &FactSource, claim: &str) -> String {
    // Serialising plain data cannot fail.
    let source = serde_json::to_string(source).unwrap_or_default();
    let mut id = content_hash(&format!("{seq}\n{}\n{source}\n{claim}", kind.name()));
    id.truncate(ID_CHARS);
    id
}

/// SHA-256 in hex of a text.
pub fn content_hash(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}
